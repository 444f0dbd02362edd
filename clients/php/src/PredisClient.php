<?php

declare(strict_types=1);

namespace Leaderboard;

use Predis\ClientInterface;
use Predis\Cluster\RedisStrategy;
use Predis\Command\RawCommand;
use Predis\Connection\Aggregate;
use Predis\Connection\Cluster;
use Predis\Response\ErrorInterface;
use Predis\Response\ServerException;

/** Predis 1.1 or 2: a client of a server, of Sentinel, or of a cluster (the option 'cluster' => 'redis'). */
final class PredisClient implements Client
{
    private bool $isCluster;

    public function __construct(private ClientInterface $client, private ?int $slot = null)
    {
        $connection = $client->getConnection();
        $this->isCluster = $connection instanceof Aggregate\RedisCluster // of Predis 1.1
            || $connection instanceof Cluster\RedisCluster;
    }

    public function send(array $words, int $keyAt): mixed
    {
        $command = RawCommand::create(...$words);
        if ($this->isCluster) { // which does not know where the key of this command is
            $command->setSlot($this->slot ?? (new RedisStrategy())->getSlotByKey($words[$keyAt]));
        }
        try {
            $reply = $this->client->executeCommand($command);
        } catch (ServerException $error) {
            throw new ReplyError($error->getMessage(), 0, $error);
        }
        if ($reply instanceof ErrorInterface) { // with the option 'exceptions' => false
            throw new ReplyError($reply->getMessage());
        }
        return $reply instanceof \Stringable ? (string) $reply : $reply;
    }

    public function nodes(): array
    {
        if (!$this->isCluster || $this->slot !== null) {
            return [$this];
        }
        // Rows of a range of slots, and its nodes, of which the first is the master: [address, port, id, ...].
        $found = [];
        foreach ((new self($this->client, 0))->send(['CLUSTER', 'SLOTS'], 0) as [$first, , [, , $id]]) {
            $found[$id] ??= new self($this->client, (int) $first);
        }
        return array_values($found);
    }
}
