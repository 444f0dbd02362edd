<?php

declare(strict_types=1);

namespace Leaderboard;

/** @internal Reads replies. */
final class Replies
{
    private static function refused(mixed $reply, string $what): \UnexpectedValueException
    {
        return new \UnexpectedValueException('the server replied ' . get_debug_type($reply) . " instead of $what");
    }

    public static function text(mixed $reply): string
    {
        return is_string($reply) || is_int($reply) ? (string) $reply : throw self::refused($reply, 'text');
    }

    public static function integer(mixed $reply): int
    {
        $number = self::number($reply);
        return is_int($number) ? $number : throw self::refused($reply, 'an integer');
    }

    /** An int, or its digits if an int does not hold it exactly. */
    public static function number(mixed $reply): int|string
    {
        $text = self::text($reply);
        return $text === (string) (int) $text ? (int) $text : $text;
    }

    public static function flag(mixed $reply): bool
    {
        return self::integer($reply) === 1;
    }

    public static function moment(mixed $reply): \DateTimeImmutable
    {
        $ms = self::integer($reply);
        $seconds = intdiv($ms, 1000) - ($ms % 1000 < 0 ? 1 : 0);
        return (new \DateTimeImmutable("@$seconds"))->modify('+' . ($ms - $seconds * 1000) . ' milliseconds');
    }

    /**
     * An array of so many at least.
     *
     * @return list<mixed>
     */
    public static function row(mixed $reply, int $count): array
    {
        if (!is_array($reply) || !array_is_list($reply) || count($reply) < $count) {
            throw self::refused($reply, "an array of $count");
        }
        return $reply;
    }

    /** @return array<string, mixed> */
    public static function map(mixed $reply): array
    {
        $found = [];
        foreach (array_chunk(self::row($reply, 0), 2) as $pair) {
            [$name, $value] = self::row($pair, 2);
            $found[self::text($name)] = $value;
        }
        return $found;
    }

    /** @return array<string, string> */
    public static function texts(mixed $reply): array
    {
        return array_map(self::text(...), self::map($reply));
    }

    public static function ok(mixed $reply): void
    {
    }

    /** @return list<int> */
    public static function integers(mixed $reply): array
    {
        return array_map(self::integer(...), self::row($reply, 0));
    }

    /** By the letters of Shapes. What a newer server says besides comes as it is. */
    private static function described(mixed $reply, mixed $shape): mixed
    {
        if ($reply === null || $shape === null) {
            return $reply;
        }
        if (is_string($shape)) {
            return match ($shape) {
                'i' => self::integer($reply),
                'b' => self::flag($reply),
                'd' => self::moment($reply),
                '#' => self::number($reply),
                default => self::text($reply),
            };
        }
        if (array_is_list($shape)) {
            return array_map(fn ($each) => self::described($each, $shape[0]), self::row($reply, 0));
        }
        $found = [];
        foreach (self::map($reply) as $name => $value) {
            $found[$name] = self::described($value, $shape[$name] ?? null);
        }
        return $found;
    }

    /** @return array<string, mixed> */
    public static function board(mixed $reply): array
    {
        return self::described($reply, Shapes::BoardInfo);
    }

    /** @return array<string, mixed> */
    public static function league(mixed $reply): array
    {
        return self::described($reply, Shapes::LeagueInfo);
    }

    /** @return list<?array<string, string>> */
    public static function tagsEach(mixed $reply): array
    {
        return array_map(fn ($each) => $each === null ? null : self::texts($each), self::row($reply, 0));
    }

    /** @return list<array{rank: int, key: int|string}> */
    public static function cuts(mixed $reply): array
    {
        return array_map(function ($each) {
            [$rank, $key] = self::row($each, 2);
            return ['rank' => self::integer($rank), 'key' => self::number($key)];
        }, self::row($reply, 0));
    }

    /** @return list<array{values: list<?string>, count: int}> */
    public static function counts(mixed $reply): array
    {
        return array_map(function ($each) {
            $values = self::row($each, 1);
            $count = self::integer(array_pop($values));
            return ['values' => $values, 'count' => $count];
        }, self::row($reply, 0));
    }

    /** @return array{cursor: string, items: list<mixed>} */
    private static function step(mixed $reply, callable $read): array
    {
        [$cursor, $items] = self::row($reply, 2);
        return ['cursor' => self::text($cursor), 'items' => array_map($read, self::row($items, 0))];
    }

    /** @return array{cursor: string, items: list<mixed>} */
    public static function boards(mixed $reply): array
    {
        return self::step($reply, fn ($each) => self::described($each, Shapes::BoardSummary));
    }

    /** @return array{cursor: string, items: list<mixed>} */
    public static function bans(mixed $reply): array
    {
        return self::step($reply, function ($each) {
            [$member, $pattern, $until, $shadow] = self::row($each, 4);
            $end = $until === null ? null : self::moment($until);
            return new Ban(self::text($member), self::text($pattern), $end, self::integer($shadow) === 1);
        });
    }

    // What all nodes of a cluster have replied, as one reply.

    /** @param list<int> $all */
    public static function sumInteger(array $all): int
    {
        return array_sum($all);
    }

    /** @param list<bool> $all */
    public static function sumFlag(array $all): bool
    {
        return in_array(true, $all, true);
    }

    /**
     * @param list<list<int>> $all
     * @return list<int>
     */
    public static function sumIntegers(array $all): array
    {
        return array_map(fn (int $column) => array_sum(array_column($all, $column)), array_keys($all[0]));
    }

    /**
     * @param list<list<mixed>> $all
     * @return list<mixed>
     */
    public static function sumBoardRecords(array $all): array
    {
        return array_merge(...$all);
    }
}
