<?php

declare(strict_types=1);

namespace Leaderboard;

/**
 * One board. Commands without a key are about its database, in a cluster about all nodes.
 *
 * With retries, results get an id (ONCE), and are sent again with it up to so many times while there is no reply, with pauses
 * of 10 ms to 1 s: a result counts once. What reads is sent again, too.
 *
 * @implements \IteratorAggregate<int, Record>
 */
final class Leaderboard extends Commands implements \IteratorAggregate
{
    /** Another board, by the same client and retries. */
    public function named(string $key): self
    {
        return new self($this->client, $key, $this->retries);
    }

    private static function needFromOne(string $name, int $value): void
    {
        if ($value < 1) {
            throw new \InvalidArgumentException("$name: $value: a number from 1 on is allowed");
        }
    }

    /**
     * The best, with the options of range.
     *
     * @return list<Record>
     */
    public function top(int $count, mixed ...$options): array
    {
        self::needFromOne('count', $count);
        return $this->range(0, $count - 1, ...$options);
    }

    /** A member's record, with the options of get; null: it is not there. */
    public function record(string $member, mixed ...$options): ?Record
    {
        return $this->get($member, ...$options)[0];
    }

    /** How many were there. By ZREM: in the module a `board` line must match the board's name. */
    public function remove(string ...$members): int
    {
        $r = new Request(false, 'ZREM');
        $r->board($this->key);
        $r->values(null, Request::words(array_values($members), 'several'));
        return $this->on($r, Replies::integer(...));
    }

    /** Was there a board? */
    public function delete(): bool
    {
        $r = new Request(false, 'UNLINK');
        $r->board($this->key);
        return $this->on($r, Replies::flag(...));
    }

    /** The first page is 1. With options of range. Two commands: a result that comes in between is in one of them. */
    public function page(int $number, int $size = 20, mixed ...$options): Page
    {
        self::needFromOne('page', $number);
        self::needFromOne('size', $size);
        self::refuseScores($options);
        $records = $this->range(($number - 1) * $size, $number * $size - 1, ...$options);
        $count = $this->count(...array_intersect_key($options, ['where' => 1, 'wherenot' => 1]));
        return new Page($number, intdiv($count + $size - 1, $size), $count, $records);
    }

    /** @param array<mixed> $options */
    private static function refuseScores(array $options): void
    {
        if (array_intersect_key($options, ['byscore' => 1, 'limit' => 1]) !== []) {
            throw new \InvalidArgumentException('byscore and limit are no options of pages');
        }
    }

    /**
     * All, the best first, read batch ranks at a time: one that moves meanwhile may be missed or come twice.
     *
     * @return \Generator<int, Record>
     */
    public function records(int $batch = 500, mixed ...$options): \Generator
    {
        self::needFromOne('batch', $batch);
        self::refuseScores($options);
        for ($start = 0;; $start += $batch) {
            $records = $this->range($start, $start + $batch - 1, ...$options);
            foreach ($records as $record) {
                yield $record;
            }
            if (count($records) < $batch) {
                return;
            }
        }
    }

    /** @return \Generator<int, Record> */
    public function getIterator(): \Generator
    {
        return $this->records();
    }

    /**
     * All boards of the database, with the options of list, in a cluster those of one node after another.
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function boards(mixed ...$options): \Generator
    {
        return $this->steps(fn (self $board, string $cursor) => $board->list(...['cursor' => $cursor] + $options));
    }

    /**
     * All bans of the database, with the options of bans.
     *
     * @return \Generator<int, Ban>
     */
    public function banned(mixed ...$options): \Generator
    {
        return $this->steps(fn (self $board, string $cursor) => $board->bans(...['cursor' => $cursor] + $options));
    }

    private function steps(callable $next): \Generator
    {
        foreach ($this->client->nodes() as $node) {
            $cursor = '0';
            do {
                ['cursor' => $cursor, 'items' => $items] = $next($this->by($node), $cursor);
                foreach ($items as $item) {
                    yield $item;
                }
            } while ($cursor !== '0');
        }
    }
}
