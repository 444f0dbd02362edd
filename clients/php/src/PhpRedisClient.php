<?php

declare(strict_types=1);

namespace Leaderboard;

/** phpredis: a Redis or a RedisCluster, connected. */
final class PhpRedisClient implements Client
{
    public function __construct(private \Redis|\RedisCluster $redis, private mixed $node = null)
    {
    }

    public function send(array $words, int $keyAt): mixed
    {
        if ($this->redis->getMode() !== \Redis::ATOMIC) {
            throw new \LogicException('the client is in a MULTI or a pipeline, which replies by its exec() alone');
        }
        $this->redis->clearLastError();
        $before = $this->redis->getOption(\Redis::OPT_NULL_MULTIBULK_AS_NULL);
        $this->redis->setOption(\Redis::OPT_NULL_MULTIBULK_AS_NULL, true);
        try {
            if ($this->redis instanceof \RedisCluster) {
                $reply = $this->redis->rawCommand($this->node ?? $words[$keyAt], ...$words);
            } else {
                $reply = $this->redis->rawCommand(...$words);
            }
        } catch (\RedisException | \RedisClusterException $error) {
            // Of replies those that do not begin with ERR are thrown, as is what happens to the connection.
            throw preg_match('/^[A-Z][A-Z0-9]+ /', $error->getMessage()) ? new ReplyError($error->getMessage(), 0, $error) : $error;
        } finally {
            $this->redis->setOption(\Redis::OPT_NULL_MULTIBULK_AS_NULL, $before);
        }
        $error = $reply === false ? $this->redis->getLastError() : null;
        if ($error !== null) {
            throw new ReplyError($error);
        }
        return self::plain($reply);
    }

    /** A null that is no array is false in phpredis. */
    private static function plain(mixed $reply): mixed
    {
        return is_array($reply) ? array_map(self::plain(...), $reply) : ($reply === false ? null : $reply);
    }

    public function nodes(): array
    {
        if ($this->redis instanceof \Redis || $this->node !== null) {
            return [$this];
        }
        return array_map(fn (array $node) => new self($this->redis, $node), $this->redis->_masters());
    }
}
