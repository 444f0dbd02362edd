"""A long load that a kill -9 cuts short: what is there afterwards is the beginning of it, to the
member: at least as long as what was acknowledged, every tie in the order of arrival, every reach
time as it was read before.

One connection writes, so the order of its commands is the order of arrival. Scores come round every
thousand commands, so every member has thousands of equals. The journal grows past its limit again
and again: kills fall into snapshots, too."""
import random
import threading
import time
from collections import Counter

import resp
from crash import Trouble
from servers import Server

MEMBERS = 10_000_000
SCORES = 1000
CHUNK = 2000           # requests sent at once
PAGE = 10_000          # records read at once
OK_SIZE = len(b":1\r\n")
KEY = "board"
SAMPLE_EVERY_S = 0.02
PRIME = 7919           # scores of neighbours lie apart; no divisor of SCORES


def member(index):
    return b"user:%015d" % index


def score(index):
    return index * PRIME % SCORES


def request(index):
    text = b"%d" % score(index)
    return b"*4\r\n$4\r\nZADD\r\n$5\r\nboard\r\n$%d\r\n%b\r\n$20\r\n%b\r\n" % (len(text), text,
                                                                           member(index))


class Load:
    """Sends members in order; acked: how many were answered."""

    def __init__(self, port, first, total):
        self.client = resp.Client(port)
        self.first, self.total, self.reply_bytes = first, total, 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.writer = threading.Thread(target=self.write, daemon=True)
        self.reader.start()
        self.writer.start()

    @property
    def acked(self):
        return self.first + self.reply_bytes // OK_SIZE

    def read(self):
        try:
            while data := self.client.socket.recv(1 << 18):
                self.reply_bytes += len(data)
        except OSError:
            pass

    def write(self):
        try:
            for begin in range(self.first, self.total, CHUNK):
                end = min(begin + CHUNK, self.total)
                self.client.socket.sendall(b"".join(map(request, range(begin, end))))
        except OSError:
            pass

    def end(self):
        self.writer.join()
        self.reader.join()
        self.client.close()


def expected_order(count):
    """The indexes of the first count members, best first, equals as they came."""
    first_of = {score(index): index for index in range(SCORES)}
    for value in range(SCORES - 1, -1, -1):
        yield from range(first_of[value], count, SCORES)


def sample_times(client, acked, randomness, times):
    """Reach times of some members that are surely there."""
    for index in {randomness.randrange(acked) for _ in range(20)}:
        times[index] = client.ask("LB.GET", KEY, 1, member(index))[0][2]


def check(client, acked, times, policy):
    """What is there is the beginning of the load. How long it is."""
    count = client.ask("ZCARD", KEY)
    if count < acked:
        raise Trouble(f"LOST: {acked} members were acknowledged under {policy}, {count} are there")
    indexes, last = expected_order(count), None
    for begin in range(0, count, PAGE):
        for rank, record in enumerate(client.ask("LB.RANGE", KEY, begin, begin + PAGE - 1), begin):
            name, at_ms = record[0], record[2]
            index = next(indexes)
            if name != member(index) or record[1] != rank:
                raise Trouble(f"rank {rank} is {name!r}, not {member(index)!r}")
            if times.get(index, at_ms) != at_ms:
                raise Trouble(f"{name!r} got there at {times[index]}, and now at {at_ms}")
            now = (-score(index), at_ms)
            if last is not None and now < last:
                raise Trouble(f"{name!r} got there before one who came earlier")
            last = now
    return count


def run(program, directory, policy, seed, kills, counts, progress=lambda done: None):
    """kills in one load of MEMBERS, at random moments; each time the load goes on behind what is
    there. A Counter of what was seen."""
    randomness = random.Random(seed)
    server = Server(program, directory, policy)
    begun, times = 0, {}
    moments = sorted(randomness.uniform(0.1, 0.95) * MEMBERS for _ in range(kills))
    try:
        server.start()
        for done, moment in enumerate(moments):
            load = Load(server.port, begun, MEMBERS)
            with server.client() as client:
                while load.acked < moment and load.writer.is_alive():
                    if load.acked > 0:
                        sample_times(client, load.acked, randomness, times)
                    time.sleep(SAMPLE_EVERY_S)
            server.kill()
            load.end()
            server.start()
            with server.client() as client:
                begun = check(client, load.acked, times, policy)
            counts.update(kills=1, acked=load.acked - counts["acked"],
                          members=begun - counts["members"])
            progress(done + 1)
    finally:
        server.kill()
    counts["times"] = len(times)
    return Counter(counts)
