<?php

declare(strict_types=1);

namespace Leaderboard;

/** The client that a program has: PhpRedisClient, PredisClient, or one of your own. */
interface Client
{
    /**
     * Sends a command, and gives its reply: null, int, string, or an array of these.
     *
     * @param list<string> $words the command and its arguments
     * @param int $keyAt the place of the key among the words, by which a cluster finds the node; 0: it has none
     * @throws ReplyError if the server replied an error; whatever else is thrown means that the reply was lost
     */
    public function send(array $words, int $keyAt): mixed;

    /**
     * A client for each node that has keys, in a cluster its masters.
     *
     * @return list<Client>
     */
    public function nodes(): array;
}
