<?php

declare(strict_types=1);

namespace Leaderboard;

/** @internal Sends requests, again where that does no harm. */
abstract class Sending
{
    public function __construct(
        protected readonly Client $client,
        public readonly string $key,
        public readonly int $retries = 0
    ) {
        if ($retries < 0) {
            throw new \InvalidArgumentException("retries: $retries: a number from 0 on is allowed");
        }
    }

    /** The id of a result, drawn if it may have to be sent again. LB.ADD PACKED takes none. */
    protected function idOf(?string $own, bool $mayHave): ?string
    {
        return $own ?? ($mayHave && $this->retries > 0 ? bin2hex(random_bytes(16)) : null);
    }

    private static function mayBeSentAgain(\Throwable $error): bool
    {
        return $error instanceof ReplyError
            ? in_array(strstr($error->getMessage(), ' ', true), Shapes::Passing, true)
            : $error instanceof \RuntimeException || $error instanceof \RedisException || $error instanceof \RedisClusterException
                || $error instanceof \Predis\PredisException;
    }

    private function send(Request $r): mixed
    {
        $retries = $r->isRead || $r->id !== null ? $this->retries : 0;
        [$pauseMs, $pauseMaxMs] = Shapes::PausesMs;
        for (;; $pauseMs = min(2 * $pauseMs, $pauseMaxMs)) {
            try {
                return $this->client->send($r->words, $r->keyAt);
            } catch (\Throwable $error) {
                if ($retries-- === 0 || !self::mayBeSentAgain($error)) {
                    throw $error;
                }
                usleep(1000 * $pauseMs);
            }
        }
    }

    protected function on(Request $r, callable $read): mixed
    {
        return $read($this->send($r));
    }

    protected function make(Request $r, bool $mayExist): void
    {
        try {
            $this->send($r);
        } catch (ReplyError $error) {
            if (!$mayExist || !str_starts_with($error->getMessage(), 'BUSYKEY')) {
                throw $error;
            }
        }
    }

    protected function by(Client $client): static
    {
        return new static($client, $this->key, $this->retries);
    }

    protected function onAll(Request $r, callable $read, callable $sum): mixed
    {
        return $sum(array_map(fn (Client $node) => $this->by($node)->on($r, $read), $this->client->nodes()));
    }

    protected function onOne(Request $r, callable $read): mixed
    {
        $nodes = $this->client->nodes();
        if (count($nodes) !== 1) {
            throw new \LogicException('each node of a cluster has a cursor of its own: use boards() or banned()');
        }
        return $this->by($nodes[0])->on($r, $read);
    }
}
