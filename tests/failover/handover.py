#!/usr/bin/python3
"""FAILOVER under load, judged like a kill: what was answered must be there, and what was not answered must
not be: a client that is told nothing writes again, and then it counts twice.

    handover.py [--rounds N] [--seed N]         the server is $LEADERBOARD_SERVER"""
import argparse
import random
import sys
import time

sys.dont_write_bytecode = True

import loopback

PIPELINES = (1, 1, 1, 1, 1, 1, 1, 1, 30, 30)  # of each client
# What is promised: how many servers, and with which settings.
PROMISES = {
    "async": (2, []),
    "sync": (3, ["--sync-replicas", "1", "--replication-nodes", "3"]),
    "sync, always": (3, ["--sync-replicas", "1", "--replication-nodes", "3", "--appendfsync", "always"]),
}


def run_round(promise, randomness):
    count, words = PROMISES[promise]
    with loopback.servers("leaderboard", count, "--appendonly", "yes", *words) as nodes:
        writers = loopback.start_writers(nodes[0].port, PIPELINES)
        time.sleep(randomness.uniform(0.1, 0.4))
        target = randomness.choice(nodes[1:])
        began_at = time.monotonic()
        answer = nodes[0].ask("FAILOVER", "TO", "127.0.0.1", target.port, "TIMEOUT", 30000)
        assert answer == b"OK", answer
        loopback.wait_until(target.takes_writes, "the new master")
        gap_s = time.monotonic() - began_at
        for writer in writers:
            writer.join(loopback.LIMIT_S)
        found = loopback.Found(writers, target)
        found.gap_s = gap_s
        found.closed = sum(not writer.is_refused for writer in writers)
        return found


def run(promise, rounds, seed):
    """How many faults: writes lost, and writes done without an answer."""
    randomness = random.Random(seed)
    found = [run_round(promise, randomness) for _ in range(rounds)]
    lost, unanswered = (sum(getattr(each, name) for each in found) for name in ("lost", "unanswered"))
    print(f"  FAILOVER, {promise}: {sum(each.answered for each in found)} answered in {rounds} rounds, {lost} "
          f"lost, {unanswered} done without an answer, {sum(each.closed for each in found)} clients closed, "
          f"{max(each.gap_s for each in found):.2f} s without a master at most", flush=True)
    return lost + unanswered


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    options = parser.parse_args()
    return 1 if sum(run(promise, options.rounds, options.seed) for promise in PROMISES) else 0


if __name__ == "__main__":
    sys.exit(main())
