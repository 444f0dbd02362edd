<?php

declare(strict_types=1);

namespace Leaderboard;

/** A member's place in a league. */
final class LeaguePlace
{
    /**
     * @param ?int $other of leagueAdd the tier before, of leagueGet the tier to come; null: none
     * @param ?string $outlook of leagueGet what would happen if the period ended now: up, stay or down
     * @param bool $repeated of leagueAdd with withrepeat: did the id of once come before?
     */
    public function __construct(
        public readonly int $tier,
        public readonly ?int $room,
        public readonly ?Record $record,
        public readonly ?int $other,
        public readonly ?string $outlook,
        public readonly bool $repeated
    ) {
    }
}
