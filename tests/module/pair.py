"""One server of each kind, and what both hold compared to the last bit."""
import random
import tempfile

import redis

import follow
from hosts import Changes, Host
from test_dump import Ours

SEED = random.SystemRandom().randrange(2 ** 32)


def raw(client):
    client.response_callbacks.clear()
    return client


def bans(client):
    """All of LB.BANS, in an order that does not depend on the server."""
    found, cursor = [], b"0"
    while True:
        cursor, some = client.execute_command("LB.BANS", "CURSOR", cursor, "COUNT", 1000)
        found += some
        if cursor == b"0":
            return sorted(found, key=str)


class Load(Changes):
    """Besides changes of boards: what commands do to them as keys, in and out of MULTI. rows() of a subclass has more."""
    late = "late"

    def rows(self):
        r = self.random
        return [
            lambda: ["PERSIST", self.key()],
            lambda: ["UNLINK", self.key()],
            lambda: ["RENAME", self.key(), self.key()],
            lambda: ["COPY", self.key(), self.key(), "DB", 3, "REPLACE"],
            lambda: ["LB.CREATE", self.late, "FIELD", "a", 20, "FIELD", "b", 9, "ASC", "TIME", 24, "M", "LATEST"],
            lambda: ["LB.CREATE", self.key(), "PERIOD", "MONTH", "TZ", "Asia/Tokyo", "ARCHIVE", 3],
            lambda: ["LB.ALTER", self.key(), "PERIOD", r.choice(["YEAR", "NONE"])],
            lambda: ["LB.ADD", self.late, r.randrange(9), r.randrange(3), self.member()],
            lambda: ["LB.ALTER", self.key(), "LIMIT", r.randrange(10, 400)],
            lambda: ["LB.ALTER", self.key(), "CAP", "NONE"],
            lambda: ["LB.ALTER", self.key(), "FREEZE" if r.random() < 0.2 else "THAW"],
            lambda: ["ZADD", self.key(), *[word for _ in range(200)
                                           for word in (r.randrange(100), self.member())]],
        ]

    def next(self):
        return super().next() if self.random.random() < 0.6 else self.random.choice(self.rows())()

    def batch(self):
        commands = [self.next() for _ in range(follow.BATCH)]
        if self.random.random() < 0.3:
            commands = [["MULTI"], *commands, ["EXEC"]]
        return b"".join(follow.encode(command) for command in commands)


class Pair:
    def setUp(self):
        random.seed(f"{SEED} {self.id()}")
        directory = tempfile.TemporaryDirectory(prefix="leaderboard-replicaof-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def start_host(self, *options, **words):
        self.host = Host("--repl-diskless-sync", random.choice(["yes", "no"]), *options, **words)
        self.addCleanup(self.host.stop)
        self.old = self.host.client()
        return self.old

    def start_server(self, *arguments, **options):
        self.server = Ours(self.directory, *arguments, **options)
        self.addCleanup(self.server.process.kill)
        self.ours = self.server.client()
        return self.ours

    def assert_same_board(self, name, ours, theirs):
        found, wanted = ours.dump(name), theirs.execute_command("LB.DUMP", name)
        # The second byte is the database, 0 for the module; at the end is the checksum.
        if found and found[:1] + b"\0" + found[2:-8] == wanted[:-8]:
            return
        for command in (["LB.INFO", name], ["LB.RANGE", name, 0, -1, "WITHKEY"]):
            replies = [client.execute_command(*command) for client in (ours, theirs)]
            pairs = [pair for pair in zip(*replies) if pair[0] != pair[1]]
            print(name, command[0], [len(reply) for reply in replies], pairs[:3])
        raise AssertionError(f"{name} is another board here")

    def assert_equal(self, databases=(0,)):
        """Boards to the last bit: layout, options, order, times. Sorted sets and hashes by value. Bans."""
        boards = 0
        for database in databases:
            theirs = raw(self.host.client(db=database))
            ours = raw(redis.Redis(port=self.server.port, db=database))
            wanted = {}
            for name in theirs.keys():
                kind = theirs.execute_command("LB.TYPE", name)
                if theirs.execute_command("OBJECT", "ENCODING", name) == b"raw" and kind == b"zset":
                    boards += 1
                    self.assert_same_board(name, ours, theirs)
                elif kind == b"zset":
                    pairs = lambda client: sorted(
                        (words[i], float(words[i + 1])) for words in
                        [client.execute_command("ZRANGE", name, 0, -1, "WITHSCORES")]
                        for i in range(0, len(words), 2))
                    self.assertEqual(pairs(ours), pairs(theirs), name)
                elif kind == b"hash":
                    self.assertEqual(redis.Redis(port=self.server.port, db=database).hgetall(name),
                                     self.host.client(db=database).hgetall(name), name)
                else:
                    continue
                wanted[name] = theirs.execute_command("PEXPIRETIME", name)
            found = {name: ours.execute_command("PEXPIRETIME", name)
                     for name in ours.keys()}
            self.assertEqual(found, wanted)
            self.assertEqual(bans(ours), bans(theirs))
        self.assertGreater(boards, 0)
