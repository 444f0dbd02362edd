<?php

declare(strict_types=1);

namespace Leaderboard;

/** A ban of a member on boards whose names match the pattern; until null: for ever. */
final class Ban
{
    public function __construct(
        public readonly string $member,
        public readonly string $pattern,
        public readonly ?\DateTimeImmutable $until
    ) {
    }
}
