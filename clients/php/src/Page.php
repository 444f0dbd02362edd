<?php

declare(strict_types=1);

namespace Leaderboard;

/** A page, the first is 1, and how many pages and records there are. */
final class Page
{
    /** @param list<Record> $records */
    public function __construct(
        public readonly int $number,
        public readonly int $pages,
        public readonly int $count,
        public readonly array $records
    ) {
    }
}
