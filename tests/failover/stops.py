#!/usr/bin/python3
"""SIGTERM of a master under load, over RESP and HTTP, judged like hand-overs: what was answered must be there, and what
was not answered must not be: docs/reference/retries.md promises that a stop answers what it has run.

    stops.py [--rounds N] [--seed N]         the server is $LEADERBOARD_SERVER

Then the same server comes back, as behind `systemctl restart`, or one of its replicas takes its place."""
import argparse
import http.client
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(__file__), "..", "support"))

import handover
import loopback
import process

PIPELINES = (1, 1, 1, 1, 1, 1, 30, 30)  # of each client
WEB_CLIENTS = 4
PROMISES = {**handover.PROMISES,
            "sync, 3 threads": (3, [*handover.PROMISES["sync"][1], "--io-threads", "3"])}


class WebWriter(threading.Thread):
    """New members on "web", one a request, until one is refused or the connection breaks."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.client, self.number = http.client.HTTPConnection("127.0.0.1", port, timeout=60), number
        self.sent = self.added = 0
        self.is_refused = False

    def run(self):
        try:
            while not self.is_refused:
                self.sent += 1
                self.client.request("POST", "/api/v1/boards/web/results?create=1",
                                    f'{{"member": "{self.number}:{self.sent}", "value": 1}}',
                                    {"Content-Type": "application/json"})
                answer = self.client.getresponse()
                answer.read()
                assert answer.status in (200, 503), answer.status
                self.is_refused = answer.status != 200
                self.added += not self.is_refused
        except (OSError, http.client.HTTPException):
            pass
        self.client.close()


def count_web(found, writers, server):
    """Into what was found, what they were answered."""
    there = set(server.ask("ZRANGE", "web", 0, -1))
    for writer in writers:
        done = sum(f"{writer.number}:{i}".encode() in there for i in range(1, writer.sent + 1))
        found.answered += writer.added
        found.lost += max(0, writer.added - done)
        found.unanswered += max(0, done - writer.added)


def come_back(nodes, _):
    """As behind systemctl restart."""
    nodes[0].start()
    return nodes[0]


def take_over(nodes, randomness):
    """As Sentinel has it, when the master has ended: a replica becomes master, and the others follow it."""
    target = randomness.choice(nodes[1:])
    for node in nodes[1:]:
        loopback.wait_until(lambda node=node: node.has("master_link_status:down"), "the end of the link")
    assert target.ask("REPLICAOF", "NO", "ONE") == b"OK"
    for node in nodes[1:]:
        if node is not target:
            node.ask("REPLICAOF", "127.0.0.1", target.port)
    return target


BEHIND = (come_back, take_over)


def run_round(promise, behind, randomness):
    count, words = PROMISES[promise]
    web_port = process.hold_port()
    web = ("--web-port", web_port, "--web-write", "yes", "--web-write-rate", "0")
    with loopback.servers("leaderboard", count, "--appendonly", "yes", *words, first=web) as nodes:
        writers = loopback.start_writers(nodes[0].port, PIPELINES)
        web_writers = [WebWriter(web_port, number) for number in range(WEB_CLIENTS)]
        for writer in web_writers:
            writer.start()
        time.sleep(randomness.uniform(0.2, 0.5))
        began_at = time.monotonic()
        nodes[0].stop()
        stopped_s = time.monotonic() - began_at
        for writer in (*writers, *web_writers):
            writer.join(loopback.LIMIT_S)
        assert any(writer.added for writer in web_writers)
        master = behind(nodes, randomness)
        loopback.wait_until(master.takes_writes, "the master behind the stop")
        found = loopback.Found(writers, master)
        count_web(found, web_writers, master)
        found.stopped_s = stopped_s
        process.let_port_go(web_port)
        return found


def run(promise, rounds, seed):
    """How many faults: writes lost, and writes done without an answer."""
    randomness = random.Random(seed)
    found = [run_round(promise, BEHIND[number % len(BEHIND)], randomness) for number in range(rounds)]
    lost, unanswered = (sum(getattr(each, name) for each in found) for name in ("lost", "unanswered"))
    print(f"  SIGTERM, {promise}: {sum(each.answered for each in found)} answered in {rounds} rounds, {lost} lost, "
          f"{unanswered} done without an answer, {max(each.stopped_s for each in found):.2f} s at most",
          flush=True)
    return lost + unanswered


def run_all(rounds, seed):
    """How many of each promise had faults, of how many."""
    faults = [run(promise, rounds, seed) for promise in PROMISES]
    return sum(map(bool, faults)), len(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    options = parser.parse_args()
    return 1 if run_all(options.rounds, options.seed)[0] else 0


if __name__ == "__main__":
    sys.exit(main())
