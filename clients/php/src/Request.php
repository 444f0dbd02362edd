<?php

declare(strict_types=1);

namespace Leaderboard;

/** @internal The words of a command. What is null has none. */
final class Request
{
    private const EXACT_MAX = 1 << 53;

    /** @var list<string> */
    public array $words;
    /** @var list<string> in a cluster by the first one */
    public array $keys = [];
    public int $keyAt = 0;
    /** Of the result, if it has one. */
    public ?string $id = null;

    public function __construct(public readonly bool $isRead, string ...$name)
    {
        $this->words = array_values($name);
    }

    public function word(string $word): void
    {
        $this->words[] = $word;
    }

    public function board(string $key): void
    {
        $this->keyAt = count($this->words);
        $this->keys = [$key];
        $this->word($key);
    }

    /** @param array<string> $keys */
    public function boards(array $keys): void
    {
        if ($keys === []) {
            throw new \InvalidArgumentException('boards: none');
        }
        $this->word((string) count($keys));
        $this->keyAt = count($this->words);
        $this->keys = array_values($keys);
        array_push($this->words, ...$this->keys);
    }

    public function flag(bool $isGiven, string $token): void
    {
        if ($isGiven) {
            $this->word($token);
        }
    }

    /**
     * The token, if there is one, and the parts, each in groups of words.
     *
     * @param ?list<list<string>> $parts
     */
    public function values(?string $token, ?array ...$parts): void
    {
        if (in_array(null, $parts, true)) {
            return;
        }
        if ($token !== null) {
            $this->word($token);
        }
        foreach ($parts as $groups) {
            array_push($this->words, ...array_merge(...$groups));
        }
    }

    /**
     * The token before each group.
     *
     * @param ?list<list<string>> $groups
     */
    public function each(string $token, ?array $groups): void
    {
        foreach ($groups ?? [] as $group) {
            array_push($this->words, $token, ...$group);
        }
    }

    /**
     * In the syntax of the command: one text with blanks, or an array.
     *
     * @param null|array<int|float|string>|string $value
     */
    public function split(?string $token, null|array|string $value): void
    {
        $words = is_string($value) ? preg_split('/ +/', trim($value)) : $value;
        $this->values($token, self::words($words, 'several'));
    }

    /**
     * One value or several, each a group; of names and values, and of results, a group for each.
     *
     * @return ?list<list<string>>
     */
    public static function words(mixed $value, string $kind): ?array
    {
        if ($value === null) {
            return null;
        }
        $groups = [];
        if ($kind === 'one' || !is_array($value)) {
            return [[self::text($value)]];
        }
        foreach ($value as $name => $each) {
            if ($kind === 'several') {
                $groups[] = [self::text($each)];
            } elseif ($kind === 'results') { // values stand before their member
                $groups[] = [...array_map(self::text(...), array_values((array) $each)), (string) $name];
            } else {
                foreach ((array) $each as $single) {
                    $groups[] = [(string) $name, self::text($single)];
                }
            }
        }
        return $groups;
    }

    /**
     * With the number of groups in front.
     *
     * @return ?list<list<string>>
     */
    public static function counted(mixed $value, string $kind): ?array
    {
        $groups = self::words($value, $kind);
        if ($groups === []) {
            throw new \InvalidArgumentException('none are given where one at least is needed');
        }
        return $groups === null ? null : [[(string) count($groups)], ...$groups];
    }

    /**
     * One of the values of an option that has several.
     *
     * @param ?array<mixed> $values
     */
    public static function at(?array $values, int $place): mixed
    {
        if ($values !== null && !isset($values[$place])) {
            throw new \InvalidArgumentException('value ' . ($place + 1) . ' of an option is missing');
        }
        return $values[$place] ?? null;
    }

    /**
     * Of these one may be given, or must.
     *
     * @param array<string, mixed> $values
     */
    public static function alternatives(bool $isNeeded, array $values): void
    {
        $given = array_keys(array_filter($values, fn ($value) => $value !== null && $value !== false));
        if (count($given) > 1) {
            throw new \InvalidArgumentException(implode(' and ', $given) . ' exclude each other');
        }
        if ($isNeeded && $given === []) {
            throw new \InvalidArgumentException('one of these is needed: ' . implode(', ', array_keys($values)));
        }
    }

    /** An argument, exactly. */
    private static function text(mixed $value): string
    {
        if ($value instanceof \DateTimeInterface) {
            return $value->format('Uv');
        }
        if (is_float($value)) {
            if (!(abs($value) <= self::EXACT_MAX)) {
                throw new \InvalidArgumentException("$value is beyond what a float holds exactly: give an int or a string");
            }
            $text = json_encode($value, JSON_THROW_ON_ERROR);
            return str_contains($text, 'e') ? rtrim(sprintf('%.20F', $value), '0') : $text;
        }
        if (!is_int($value) && !is_string($value)) {
            throw new \InvalidArgumentException(get_debug_type($value) . ' is no argument: an int, a float, a string or a date is');
        }
        return (string) $value;
    }
}
