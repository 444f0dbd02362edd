<?php

declare(strict_types=1);

namespace Leaderboard;

/** @internal Reads records, by what they were asked for. */
final class Asked
{
    /**
     * @param ?list<string> $fields
     * @param list<string> $boards
     */
    public function __construct(
        private bool $pct = false,
        private bool $withkey = false,
        private bool $tags = false,
        private bool $data = false,
        private ?array $fields = null,
        private bool $since = false,
        private array $boards = []
    ) {
    }

    /** [member, rank, time, values ..., percent, key, tags, data, rank on another board], the last five if they were asked for. */
    private function record(mixed $reply): Record
    {
        $rest = Replies::row($reply, 4);
        $pop = function (bool $isThere, callable $read) use (&$rest) {
            $value = $isThere ? array_pop($rest) : null;
            return $value === null ? null : $read($value);
        };
        $since = $pop($this->since, Replies::integer(...));
        $data = $pop($this->data, fn ($value) => $this->fields === null ? Replies::texts($value)
            : array_combine($this->fields, array_slice(Replies::row($value, count($this->fields)), 0, count($this->fields))));
        $tags = $pop($this->tags, Replies::texts(...));
        $key = $pop($this->withkey, Replies::number(...));
        $percent = $pop($this->pct, fn ($value) => (float) Replies::text($value));
        [$member, $rank, $time] = Replies::row($rest, 4);
        return new Record(
            Replies::text($member),
            Replies::integer($rank),
            $time === null ? null : Replies::moment($time),
            array_map(Replies::number(...), array_slice($rest, 3)),
            $percent,
            $key,
            $tags,
            $data,
            $since
        );
    }

    private function recordOrNone(mixed $reply): ?Record
    {
        return $reply === null ? null : $this->record($reply);
    }

    private static function integerOrNone(mixed $reply): ?int
    {
        return $reply === null ? null : Replies::integer($reply);
    }

    /** @return list<Record> */
    public function records(mixed $reply): array
    {
        return array_map($this->record(...), Replies::row($reply, 0));
    }

    /** @return list<?Record> */
    public function recordsOrNone(mixed $reply): array
    {
        return array_map($this->recordOrNone(...), Replies::row($reply, 0));
    }

    /** @return list<Placed> */
    public function placed(mixed $reply): array
    {
        return array_map(function ($each) {
            $row = Replies::row($each, 2);
            return new Placed($this->recordOrNone($row[0]), self::integerOrNone($row[1]), isset($row[2]) && Replies::flag($row[2]));
        }, Replies::row($reply, 0));
    }

    /** @return list<Result> */
    public function results(mixed $reply): array
    {
        return array_map(function (string $board, $each) {
            $row = Replies::row($each, 3);
            return new Result(
                $board,
                $this->recordOrNone($row[0]),
                self::integerOrNone($row[1]),
                Replies::flag($row[2]),
                isset($row[3]) && Replies::flag($row[3])
            );
        }, $this->boards, array_slice(Replies::row($reply, count($this->boards)), 0, count($this->boards)));
    }

    /** @return list<array{board: string, record: Record}> */
    public function boardRecords(mixed $reply): array
    {
        return array_map(function ($each) {
            [$board, $record] = Replies::row($each, 2);
            return ['board' => Replies::text($board), 'record' => $this->record($record)];
        }, Replies::row($reply, 0));
    }

    public function leaguePlace(mixed $reply): ?LeaguePlace
    {
        if ($reply === null || Replies::row($reply, 1)[0] === null) {
            return null;
        }
        $row = Replies::row($reply, 4);
        // The last one is a word of LB.LEAGUE GET, or what withrepeat asks LB.LEAGUE ADD for.
        $last = $row[4] ?? null;
        $isOutlook = in_array($last, ['up', 'stay', 'down'], true);
        return new LeaguePlace(
            Replies::integer($row[0]),
            self::integerOrNone($row[1]),
            $this->recordOrNone($row[2]),
            self::integerOrNone($row[3]),
            $isOutlook ? $last : null,
            !$isOutlook && $last !== null && Replies::flag($last)
        );
    }
}
