"""The same random commands to redis-server and here, by clients of both protocols: every reply, every push, and whether it
comes before or after the reply."""
import os
import random
import unittest
from pathlib import Path

import process
import resp
from speaker import Speaker

PEER = Path(os.environ.get("LEADERBOARD_PEER") or process.PEERS / "redis-server")
CLIENTS = 6
STEPS = 1000 if process.IS_SHORT else 6000
BOARDS, HASHES = [f"z{i}" for i in range(5)], [f"h{i}" for i in range(2)]
KEYS = BOARDS + HASHES
ID_MIN = 40  # of the clients that are compared: above all other numbers
PREFIXES = ["z", "z0", "z1", "h", "x", ""]


def read(draw):
    board, other = draw.sample(BOARDS, 2)
    return draw.choice([("ZCARD", board), ("ZRANGE", board, 0, -1), ("ZSCORE", other, "a"), ("EXISTS", *draw.sample(KEYS, 3)),
                        ("HGETALL", draw.choice(HASHES)), ("ZINTERCARD", 2, board, other), ("TYPE", draw.choice(KEYS)),
                        ("ZCARD", "none"), ("HGET", draw.choice(HASHES), "f"), draw.choice([("NONSENSE",), ("ZCARD",)])])


def write(draw):
    """No two scores are ever equal: Redis has those in another order."""
    board, other = draw.sample(BOARDS, 2)
    return draw.choice([("ZADD", board, draw.choice([1, 3, 5]), "a"), ("ZINCRBY", board, 2, "b"), ("ZREM", board, "a"),
                        ("DEL", draw.choice(KEYS)), ("HSET", draw.choice(HASHES), "f", draw.randint(1, 3)),
                        ("RENAME", board, other), ("EXPIRE", draw.choice(KEYS), 1000), ("PERSIST", draw.choice(KEYS)),
                        ("ZUNIONSTORE", board, 1, other), ("ZPOPMIN", board), ("COPY", board, other, "REPLACE"),
                        ("ZADD", board, "x", "a"), ("PEXPIRE", board, 0)])


def options(draw):
    words = []
    if draw.random() < 0.3:
        words.append("BCAST")
    for word in ("OPTIN", "OPTOUT", "NOLOOP"):
        if draw.random() < 0.1:
            words.append(word)
    if draw.random() < (0.6 if "BCAST" in words else 0.05):
        for prefix in draw.sample(PREFIXES, draw.randint(1, 2)):
            words += ["PREFIX", prefix]
    return words


class Pair:
    """One client at each server."""

    def __init__(self, servers, protocol=2):
        self.both = [Speaker(server.port) for server in servers]
        self.change("hello", protocol)

    def ask(self, *words):
        return [client.ask(*words) for client in self.both]

    def change(self, method, *arguments):
        for client in self.both:
            getattr(client, method)(*arguments)


class BesideRedis(unittest.TestCase):
    def setUp(self):
        self.servers = [process.Server(program=PEER), process.Server()]
        self.addCleanup(lambda: [server.stop() for server in self.servers])
        for server in self.servers:
            while server.ask("CLIENT", "ID") < ID_MIN:
                pass
        self.pairs = [Pair(self.servers) for _ in range(CLIENTS)]
        self.admin = Pair(self.servers)
        version = dict(line.split(":", 1) for line in self.admin.both[0].ask("INFO", "server").splitlines() if ":" in line)
        # Redis 7.0 puts a message into the reply of the very EXEC or ZPOPMIN that caused it.
        self.splits_replies = [int(part) for part in version["redis_version"].split(".")[:2]] < [7, 2]
        self.gone, self.steps, self.told, self.is_compared = [], [], 0, False
        seed = int(os.environ.get("LEADERBOARD_TEST_SEED") or random.SystemRandom().randint(1, 1 << 30))
        print(f"LEADERBOARD_TEST_SEED={seed}", flush=True)
        self.draw = random.Random(seed)

    def tearDown(self):
        for pair in [*self.pairs, self.admin]:
            pair.change("close")

    def numbered(self, item, side):
        """Ids as the numbers of their clients, keys told together in order."""
        if isinstance(item, resp.Error):
            # With which of several prefixes is not said; newer ones do not repeat the words of an unknown command.
            return item.text.partition(" overlaps with ")[0].partition(", with args beginning")[0]
        if isinstance(item, list):
            item = [self.numbered(each, side) for each in item]
            return type(item)(sorted(item)) if all(each in [*KEYS, *PREFIXES] for each in item) else item
        if isinstance(item, dict):
            return {key: sorted(value) if isinstance(value, list) else self.numbered(value, side)
                    for key, value in item.items()}
        ids = {pair.both[side].id: f"client {i}" for i, pair in enumerate([*self.pairs, *self.gone])}
        return ids.get(item, item) if isinstance(item, int) and item > ID_MIN else item

    def same(self, values, number=None):
        redis, ours = (self.numbered(value, side) for side, value in enumerate(values))
        own = [step[1:] for step in self.steps if step[0] == number]
        self.assertEqual(ours, redis, f"behind {self.steps[-12:]}" + (f"; client {number}: {own[-40:]}" if own else ""))

    def compare_pushes(self):
        self.is_compared = True
        for client in [client for pair in self.pairs for client in pair.both]:
            client.send("PING")
        for number, pair in enumerate(self.pairs):
            # Who is told first of those that have read a key is not said.
            pushed = [sorted((self.numbered(each, side) for each in client.take()), key=repr)
                      for side, client in enumerate(pair.both)]
            self.same(pushed, number)
            self.told += len(pushed[0])

    def run_each(self, number, *words):
        self.steps.append((number, *words))
        pair = self.pairs[number]
        self.same(pair.ask(*words))
        if self.is_compared:
            self.assertEqual(pair.both[1].pushed, [], "before the reply")
            self.is_compared = False

    def track(self, number):
        words = ["ON", *options(self.draw)] if self.draw.random() < 0.85 else ["OFF"]
        pair = self.pairs[number]
        other = self.draw.choice(self.pairs) if self.draw.random() < 0.4 and words[0] == "ON" else None
        self.steps.append((number, "CLIENT", "TRACKING", *words, *(["REDIRECT", self.pairs.index(other)] if other else [])))
        replies = []
        for side, client in enumerate(pair.both):
            redirect = ["REDIRECT", other.both[side].id] if other else []
            replies.append(client.ask("CLIENT", "TRACKING", *words, *redirect))
        self.same(replies)

    def replace(self, number):
        """Another client in its place. Those that redirect to it find it gone."""
        pair = self.pairs[number]
        self.steps.append((number, "leaves"))
        for side, client in enumerate(pair.both):
            self.admin.both[side].ask("CLIENT", "KILL", "ID", client.id)
            client.close()
        self.gone.append(pair)
        self.pairs[number] = Pair(self.servers, self.draw.choice([2, 3, 3, 3]))

    def step(self, kind):
        draw, number = self.draw, self.draw.randrange(CLIENTS)
        pair = self.pairs[number]
        if pair.both[0].is_subscriber and pair.both[0].protocol == 2 and kind < 0.94:
            kind, number = kind * 0.5, next((i for i, each in enumerate(self.pairs) if not each.both[0].is_subscriber
                                             or each.both[0].protocol == 3), None)
            if number is None:
                return self.replace(0)
            pair = self.pairs[number]
        if kind < 0.40:
            self.run_each(number, *read(draw))
        elif kind < 0.62:
            words = write(draw)
            if words[0] != "ZPOPMIN" or not self.splits_replies or pair.both[0].protocol == 2:
                self.run_each(number, *words)
        elif kind < 0.67:
            self.run_each(number, "MULTI")
            for _ in range(draw.randint(1, 4)):
                is_read = self.splits_replies and pair.both[0].protocol == 3
                self.run_each(number, *draw.choice([read, read if is_read else write])(draw))
            self.run_each(number, "EXEC")
        elif kind < 0.79:
            self.track(number)
        elif kind < 0.82:
            self.run_each(number, "CLIENT", "CACHING", draw.choice(["YES", "NO"]))
        elif kind < 0.86:
            self.run_each(number, "CLIENT", draw.choice(["TRACKINGINFO", "GETREDIR"]))
        elif kind < 0.88:
            self.run_each(number, "SELECT", draw.choice([0, 0, 1]))
        elif kind < 0.90:
            self.run_each(number, "ZADD", "z0", 7, "seed")
            self.compare_pushes()
            self.run_each(number, draw.choice(["FLUSHALL", "FLUSHDB"]))
        elif kind < 0.94:
            protocol = draw.choice([2, 3, 3])
            self.steps.append((number, "HELLO", protocol))
            self.pairs[number].change("hello", protocol)
        elif kind < 0.97:
            self.steps.append((number, "SUBSCRIBE"))
            self.pairs[number].change("subscribe")
        else:
            self.replace(number)

    def test_random_commands_reply_and_push_the_same(self):
        for number in range(CLIENTS):
            self.pairs[number].change("hello", 3 if number < 4 else 2)
        for _ in range(STEPS):
            self.step(self.draw.random())
            if self.draw.random() < 0.3:
                self.compare_pushes()
        self.compare_pushes()
        self.assertGreater(self.told, STEPS // 100)

    def test_flags_in_client_list_and_figures_are_the_same(self):
        a, b, c = self.pairs[:3]
        for pair in self.pairs[:3]:
            pair.change("hello", 3)
        self.same(a.ask("CLIENT", "TRACKING", "ON", "OPTOUT"))
        self.same(b.ask("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x", "PREFIX", "y"))
        for client, other in zip(c.both, self.pairs[3].both):
            client.ask("CLIENT", "TRACKING", "ON", "REDIRECT", other.id)
        self.same(a.ask("EXISTS", "z0", "z1"))
        self.same(c.ask("ZCARD", "z0"))
        self.replace(3)
        self.same(self.admin.ask("ZADD", "z0", 1, "a"))
        self.compare_pushes()
        shown = []
        for side, client in enumerate(self.admin.both):
            lines = client.ask("CLIENT", "LIST").splitlines()
            fields = {line.split()[0][3:]: dict(word.partition("=")[::2] for word in line.split()) for line in lines}
            shown.append([(fields[str(pair.both[side].id)]["flags"], fields[str(pair.both[side].id)]["redir"] in ("0", "-1"))
                          for pair in self.pairs[:3]])
            shown[-1].append([line for line in client.ask("INFO", "everything").splitlines() if line.startswith("tracking_")])
        self.steps.append("CLIENT LIST and INFO")
        self.assertEqual(shown[1], shown[0])
        self.assertEqual([flags for flags, _ in shown[1][:3]], ["t", "tB", "tR"])

    def test_a_message_about_a_key_that_a_waiting_client_takes_comes(self):
        reader, waiter, writer = self.pairs[:3]
        reader.change("hello", 3)
        self.same(reader.ask("CLIENT", "TRACKING", "ON"))
        self.same(reader.ask("ZCARD", "z0"))
        for client in waiter.both:
            client.send("BZPOPMIN", "z0", 0)
        for side, client in enumerate(self.admin.both):
            process.wait_until(lambda: "blocked_clients:1" in client.ask("INFO", "clients"), "the waiting client")
        self.same(writer.ask("ZADD", "z0", 1, "a"))
        self.same([client.read() for client in waiter.both])
        self.compare_pushes()
        self.assertEqual(self.told, 1)
