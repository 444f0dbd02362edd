#!/usr/bin/python3
"""kill -9 of a master under load, without sync-replicas: what was answered and is not on its replica?

    kills.py [--rounds N] [--seed N]         the server is $LEADERBOARD_SERVER

A killed process loses nothing that is in its sockets. So a master that sends its replicas what it answers
before it answers loses nothing to a kill. redis-server, in the same run, is the measure."""
import argparse
import os
import random
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(__file__), "..", "support"))

import loopback

PIPELINES = (1, 1, 1, 1, 1, 1, 16, 16)  # of each client


def run_round(name, randomness):
    with loopback.servers(name, 2, "--appendonly", randomness.choice(("yes", "no"))) as (master, replica):
        writers = loopback.start_writers(master.port, PIPELINES)
        time.sleep(randomness.uniform(0.2, 0.6))
        master.process.send_signal(signal.SIGKILL)
        master.process.wait()
        for writer in writers:
            writer.join()
        loopback.wait_until(lambda: replica.has("master_link_status:down"), "the end of the link")
        replica.ask("REPLICAOF", "NO", "ONE")  # what has come is applied
        loopback.wait_until(replica.takes_writes, "the new master")
        return loopback.Found(writers, replica)


def run(name, rounds, seed):
    """How many writes that were answered are lost."""
    randomness = random.Random(seed)
    found = [run_round(name, randomness) for _ in range(rounds)]
    lost = [each.lost for each in found]
    print(f"  kill -9 without sync-replicas: {name}: {sum(each.answered for each in found)} answered in "
          f"{rounds} rounds, {sum(lost)} lost, in {sum(count > 0 for count in lost)} rounds", flush=True)
    return sum(lost)


def compare(rounds, seed):
    """Is more lost than by redis-server?"""
    ours = run("leaderboard", rounds, seed)
    return ours > run("redis", rounds, seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    options = parser.parse_args()
    return int(compare(options.rounds, options.seed))


if __name__ == "__main__":
    sys.exit(main())
