<?php

declare(strict_types=1);

namespace Leaderboard;

/** A ban of a member on boards whose names match the pattern; until null: for ever. With a shadow
 * the player goes on, and sees the own entry. */
final class Ban
{
    public function __construct(
        public readonly string $member,
        public readonly string $pattern,
        public readonly ?\DateTimeImmutable $until,
        public readonly bool $shadow = false
    ) {
    }
}
