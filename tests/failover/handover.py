#!/usr/bin/python3
"""Planned hand-overs under load, judged like kills: what was answered must be there, and what was not answered
must not be: a client that is told nothing writes again, and then it counts twice.

    handover.py [--rounds N] [--seed N]         the server is $LEADERBOARD_SERVER"""
import argparse
import os
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(__file__), "..", "support"))

import loopback
import resp

PIPELINES = (1, 1, 1, 1, 1, 1, 1, 1, 30, 30)  # of each client
# What is promised: how many servers, and with which settings.
PROMISES = {
    "async": (2, []),
    "sync": (3, ["--sync-replicas", "1", "--replication-nodes", "3"]),
    "sync, always": (3, ["--sync-replicas", "1", "--replication-nodes", "3", "--appendfsync", "always"]),
}


def order_failover(master, target):
    """As a person does."""
    answer = master.ask("FAILOVER", "TO", "127.0.0.1", target.port, "TIMEOUT", 30000)
    assert answer == b"OK", answer


def order_as_sentinel(_, target):
    """As any Sentinel does for SENTINEL FAILOVER. It closes the clients of the new master, too."""
    with resp.Client(target.port) as client:
        client.send([("CLIENT", "SETNAME", "sentinel-0123abcd-cmd"), ("MULTI",), ("SLAVEOF", "NO", "ONE"),
                     ("CONFIG", "REWRITE"), ("CLIENT", "KILL", "TYPE", "normal"),
                     ("CLIENT", "KILL", "TYPE", "pubsub"), ("EXEC",)])
        answers = [client.receive() for _ in range(7)]
        assert answers[6][0] == b"OK", answers


def order_as_valkey(master, target):
    """As the Sentinel of Valkey 9 does for SENTINEL FAILOVER ... COORDINATED."""
    with resp.Client(master.port) as client:
        client.send([("CLIENT", "SETNAME", "sentinel-0123abcd-cmd"), ("MULTI",),
                     ("CLIENT", "PAUSE", 20000, "WRITE"),
                     ("FAILOVER", "TO", "127.0.0.1", target.port, "TIMEOUT", 20000), ("EXEC",)])
        answers = [client.receive() for _ in range(5)]
        assert answers[4] == [b"OK", b"OK"], answers
        loopback.wait_until(lambda: target.has("role:master"), "the new master's role")
        client.send([("MULTI",), ("CONFIG", "REWRITE"), ("CLIENT", "KILL", "TYPE", "normal"),
                     ("CLIENT", "KILL", "TYPE", "pubsub"), ("CLIENT", "UNPAUSE"), ("EXEC",)])
        for _ in range(6):
            client.receive()


ORDERS = {"FAILOVER": order_failover, "SENTINEL FAILOVER": order_as_sentinel, "COORDINATED": order_as_valkey}


def run_round(promise, order, randomness):
    count, words = PROMISES[promise]
    with loopback.servers("leaderboard", count, "--appendonly", "yes", *words) as nodes:
        writers = loopback.start_writers(nodes[0].port, PIPELINES)
        time.sleep(randomness.uniform(0.1, 0.4))
        target = randomness.choice(nodes[1:])
        began_at = time.monotonic()
        if order != "FAILOVER":  # it watches
            with resp.Client(nodes[0].port) as watcher:
                watcher.ask("SUBSCRIBE", "__sentinel__:hello")
                answer = nodes[0].ask("FAILOVER", "TO", "127.0.0.1", target.port, "TIMEOUT", 30000)
                assert isinstance(answer, resp.Error) and "SENTINEL FAILOVER" in answer.text, answer
                ORDERS[order](nodes[0], target)
        else:
            ORDERS[order](nodes[0], target)
        loopback.wait_until(target.takes_writes, "the new master")
        gap_s = time.monotonic() - began_at
        for writer in writers:
            writer.join(loopback.LIMIT_S)
        found = loopback.Found(writers, target)
        found.gap_s = gap_s
        found.closed = sum(not writer.is_refused for writer in writers)
        return found


def run(promise, order, rounds, seed):
    """How many faults: writes lost, and writes done without an answer."""
    randomness = random.Random(seed)
    found = [run_round(promise, order, randomness) for _ in range(rounds)]
    lost, unanswered = (sum(getattr(each, name) for each in found) for name in ("lost", "unanswered"))
    print(f"  {order}, {promise}: {sum(each.answered for each in found)} answered in {rounds} rounds, {lost} "
          f"lost, {unanswered} done without an answer, {sum(each.closed for each in found)} clients closed, "
          f"{max(each.gap_s for each in found):.2f} s without a master at most", flush=True)
    return lost + unanswered


def run_all(rounds, seed):
    """How many of each promise and order had faults, of how many."""
    faults = [run(promise, order, rounds, seed) for order in ORDERS for promise in PROMISES]
    return sum(map(bool, faults)), len(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    options = parser.parse_args()
    return 1 if run_all(options.rounds, options.seed)[0] else 0


if __name__ == "__main__":
    sys.exit(main())
