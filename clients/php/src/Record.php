<?php

declare(strict_types=1);

namespace Leaderboard;

/** What a board has of a member. */
final class Record
{
    /** The first value: an int, or its digits if an int does not hold it exactly. */
    public readonly int|string $score;

    /**
     * @param int $rank 0 is the best
     * @param ?\DateTimeImmutable $time when the values were reached; null on boards without TIME
     * @param non-empty-list<int|string> $values in the order of the layout
     * @param ?float $percent with pct
     * @param int|string|null $key with withkey: the packed key
     * @param ?array<string, string> $tags with tags
     * @param ?array<string, ?string> $data with data: the member's hash, or the fields asked for; null: there is no hash
     * @param ?int $since with since: the rank on the other board; null: it was not there
     */
    public function __construct(
        public readonly string $member,
        public readonly int $rank,
        public readonly ?\DateTimeImmutable $time,
        public readonly array $values,
        public readonly ?float $percent = null,
        public readonly int|string|null $key = null,
        public readonly ?array $tags = null,
        public readonly ?array $data = null,
        public readonly ?int $since = null
    ) {
        $this->score = $values[0];
    }
}
