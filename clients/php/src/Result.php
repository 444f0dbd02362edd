<?php

declare(strict_types=1);

namespace Leaderboard;

/** A member's record after a write on one of several boards, null if it is not there. */
final class Result
{
    /**
     * @param ?int $before its rank before; null: none
     * @param bool $counts was the result written there?
     * @param bool $repeated with withrepeat: did the id of once come before?
     */
    public function __construct(
        public readonly string $board,
        public readonly ?Record $record,
        public readonly ?int $before,
        public readonly bool $counts,
        public readonly bool $repeated
    ) {
    }
}
