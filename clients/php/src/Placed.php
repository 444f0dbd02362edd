<?php

declare(strict_types=1);

namespace Leaderboard;

/** A member's record after a write, null if it is not on the board. */
final class Placed
{
    /**
     * @param ?int $before its rank before; null: none
     * @param bool $repeated with withrepeat: did the id of once come before?
     */
    public function __construct(
        public readonly ?Record $record,
        public readonly ?int $before,
        public readonly bool $repeated
    ) {
    }
}
