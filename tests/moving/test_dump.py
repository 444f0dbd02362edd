"""A dump of Redis, imported; and single keys, moved by RESTORE and MIGRATE."""
import os
import random
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import redis

from moving import SEED, Moving, names
import servers
from process import IS_SHORT as SHORT, PROGRAM, wait_until
from resp import encode

BOARDS = 20 if SHORT else 400
LARGEST = 1500 if SHORT else 20000
SETTINGS = ["--layout", "money FIELD balance 48 SIGNED SCALE 4 TIME 16 D", "--board",
            "money:* money", "--layout", "times FIELD ms 40 ASC", "--board", "time:* times"]
# What makes Redis store the same values in other ways.
ENCODINGS = [{}, {"zset-max-listpack-entries": 0, "hash-max-listpack-entries": 0},
             {"zset-max-listpack-entries": 5000, "hash-max-listpack-entries": 5000,
              "zset-max-listpack-value": 1000, "hash-max-listpack-value": 1000}]


class Ours(servers.Server):
    """Our server, on the machine's clock, in a directory that stays, with the usual save points."""

    def __init__(self, directory, *arguments, **options):
        super().__init__("--save", "3600 1 300 100 60 10000", *arguments, directory=directory, **options)


def run_import(dump, directory, *arguments):
    return subprocess.run([PROGRAM, "--import", dump, "--dir", directory, *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def scores(kind):
    if kind == "money":
        return round(random.uniform(-1e6, 1e6), random.choice([0, 1, 2, 4]))
    if kind == "time":
        return random.choice([0, 1, 2, random.randrange(2 ** 40)])
    return random.choice([0, 1, 1, 2, -3, 4294967295, -4294967296, random.randrange(-1000, 1000)])


def fill(client, now_ms):
    """Keys of every kind in several databases, some with an expiry."""
    for number in range(BOARDS):
        client.execute_command("SELECT", random.choice([0, 0, 0, 1, 7, 15]))
        kind = random.choice(["money", "time", "plain"])
        key = f"{kind}:{number}"
        size = random.choice([1, 2, 10, 100, 128, 129, random.randrange(1, LARGEST)])
        members = names(size)
        if random.random() < 0.2:
            members = [member * random.choice([1, 20]) for member in members]
        for at in range(0, size, 500):
            client.zadd(key, {member: scores(kind) for member in members[at:at + 500]})
        fields = {member: random.choice([b"", b"7", b"-40000", b"9" * 19, b"text", b"long " * 60])
                  for member in names(random.choice([1, 3, 200, 600]))}
        client.hset(f"hash:{number}", mapping=fields)
        for name in (key, f"hash:{number}"):
            if random.random() < 0.3:
                client.pexpireat(name, now_ms + random.randrange(100, 1000) * 1000000)
    client.execute_command("SELECT", 0)
    client.set("string", "x" * 1000)
    client.set("number", 12)
    client.rpush("list", *range(300))
    client.rpush("short list", "a", 1, "long " * 100)
    client.sadd("set", *range(1000))
    client.sadd("letters", *(f"member {i}" for i in range(1000)))
    for number in range(300):
        client.xadd("stream", {"a": number, "b": "x" * (number % 50)})
    client.xgroup_create("stream", "group", 0)
    client.xreadgroup("group", "reader", {"stream": ">"}, count=70)
    client.set("gone", 1, px=1)
    if servers.knows(client, "FUNCTION"):
        client.execute_command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', "
                               "function() return 1 end)")


def as_floats(rows):
    return [(rows[i], float(rows[i + 1])) for i in range(0, len(rows), 2)]


class Moved(unittest.TestCase):
    redis = None

    @classmethod
    def setUpClass(cls):
        cls.redis = servers.start_redis()

    @classmethod
    def tearDownClass(cls):
        cls.redis.stop()

    def setUp(self):
        random.seed(f"{SEED} {self.id()}")
        self.old = redis.Redis(port=self.redis.port, single_connection_client=True)
        self.old.flushall()
        if servers.knows(self.old, "FUNCTION"):
            self.old.execute_command("FUNCTION", "FLUSH")
        for name, value in ENCODINGS[1].items():
            servers.set_encoding(self.old, name, {"zset-max-listpack-entries": 128,
                                                  "hash-max-listpack-entries": 512}[name])
        self.directory = tempfile.mkdtemp(prefix="leaderboard-dump-", dir=self.redis.directory)

    def dump(self):
        self.old.save()
        return str(Path(self.redis.directory) / "dump.rdb")

    def assert_same_board(self, old, new, key):
        for order in ("ZRANGE", "ZREVRANGE"):
            wanted = as_floats(old.execute_command(order, key, 0, -1, "WITHSCORES"))
            self.assertEqual(as_floats(new.execute_command(order, key, 0, -1, "WITHSCORES")),
                             wanted, (key, order))
        for member, _ in random.sample(wanted, min(len(wanted), 5)):
            for rank in ("ZRANK", "ZREVRANK"):
                self.assertEqual(new.execute_command(rank, key, member),
                                 old.execute_command(rank, key, member), (key, rank))

    def assert_same_key(self, old, new, key):
        if old.execute_command("TYPE", key) == b"zset":
            self.assert_same_board(old, new, key)
        else:
            wanted = old.execute_command("HGETALL", key)
            found = new.execute_command("HGETALL", key)
            self.assertEqual(dict(zip(found[::2], found[1::2])), dict(zip(wanted[::2], wanted[1::2])))
        self.assertEqual(new.execute_command("PEXPIRETIME", key), servers.expire_time(old, key), key)

    def clients(self, server):
        for database in range(16):
            pair = [redis.Redis(port=port, db=database, single_connection_client=True)
                    for port in (self.redis.port, server.port)]
            for client in pair:
                client.response_callbacks.clear()
            yield pair
            for client in pair:
                client.close()

    def assert_all_moved(self, server):
        count = 0
        for old, new in self.clients(server):
            kept = {key for key in old.execute_command("KEYS", "*")
                    if old.execute_command("TYPE", key) in (b"zset", b"hash")}
            self.assertEqual(set(new.execute_command("KEYS", "*")), kept)
            for key in kept:
                self.assert_same_key(old, new, key)
            count += len(kept)
        self.assertEqual(count, 2 * BOARDS)

    def test_an_import_has_all_members_scores_ranks_and_expiries(self):
        for encoding in ENCODINGS:
            self.old.flushall()
            for name, value in encoding.items():
                servers.set_encoding(self.old, name, value)
            fill(self.old, int(time.time() * 1000))
            directory = tempfile.mkdtemp(prefix="leaderboard-dump-", dir=self.redis.directory) + "/new"
            self.old.config_set("rdbcompression", random.choice(["yes", "no"]))
            done = run_import(self.dump(), directory, *SETTINGS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"imported: {BOARDS} sorted sets", done.stdout)
            has_functions = servers.knows(self.old, "FUNCTION")
            self.assertRegex(done.stdout, "skipped: [23] strings")  # one of them expires
            for skipped in ("2 lists", "1 streams",
                            *["1 libraries of functions"] * has_functions):
                self.assertIn(f"skipped: {skipped}", done.stdout)
            for arguments in (["--appendonly", "yes"], ["--appendonly", "no"]):
                server = Ours(directory, *SETTINGS, *arguments)
                self.assert_all_moved(server)
                self.assertEqual(server.stop(), 0)
            again = run_import(self.dump(), directory, *SETTINGS)
            self.assertEqual(again.returncode, 1)
            self.assertIn("has the files of a server already", again.stderr)
            if has_functions:
                self.old.execute_command("FUNCTION", "FLUSH")

    def test_what_a_layout_cannot_hold_stops_an_import_and_nothing_is_made(self):
        cases = [(1.123456789, "too many decimals", "SCALE 9"), (5e30, "out of range", "takes -9223372036854775808"),
                 (float("inf"), "out of range", "arena")]
        for score, why, setting in cases:
            self.old.flushall()
            self.old.zadd("arena", {"ann": 1, "bob": score})
            done = run_import(self.dump(), self.directory)
            self.assertEqual(done.returncode, 1)
            for text in ("key 'arena'", "member 'bob'", why, setting):
                self.assertIn(text, done.stderr)
            self.assertEqual(os.listdir(self.directory), [])

    def test_the_pages_lines_give_the_key_the_layout_that_the_error_names(self):
        self.old.zadd("contest", {"ann": 100.1290072179})
        lines = Moving.pages["dump"].block("conf", 0)
        layout = lines.splitlines()[0].removeprefix("layout wide ")
        done = run_import(self.dump(), self.directory)
        self.assertIn(f"a board with {layout} takes it", done.stderr)
        settings = Path(self.directory) / "leaderboard.conf"
        settings.write_text(lines)
        done = subprocess.run([PROGRAM, "--import", self.dump(), str(settings), "--dir", self.directory],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_file_that_is_cut_or_damaged_stops_an_import(self):
        self.old.zadd("arena", {f"m{i}": i for i in range(200)})
        whole = Path(self.dump()).read_bytes()
        damaged = Path(self.directory) / "damaged.rdb"
        for content in (b"", whole[:-1], whole[:60], whole[:-9], whole + b"*1\r\n",
                        whole[:70] + bytes([whole[70] ^ 1]) + whole[71:], b"LB" + whole):
            damaged.write_bytes(content)
            for directory in (self.directory, self.directory + "/new"):
                done = run_import(str(damaged), directory)
                self.assertEqual(done.returncode, 1, content[:80])
                self.assertIn("damaged.rdb", done.stderr)
            self.assertEqual(os.listdir(self.directory), ["damaged.rdb"])

    def test_migrate_moves_keys_of_a_running_redis(self):
        settings = [*SETTINGS, "--requirepass", "secret", "--appendonly", "yes"]
        server = Ours(self.directory, *settings)
        new = redis.Redis(port=server.port, password="secret", db=3)
        new.response_callbacks.clear()
        twin = redis.Redis(port=self.redis.port, db=9)
        twin.response_callbacks.clear()
        twin.execute_command("FLUSHDB")
        keys = []
        for number, size in enumerate([1, 100, 128, 129, LARGEST]):
            for kind in ("money", "time", "plain"):
                keys.append(f"{kind}:{number}")
                self.old.zadd(keys[-1], {member: scores(kind) for member in names(size)})
            keys.append(f"hash:{number}")
            self.old.hset(keys[-1], mapping={member: "value" for member in names(size)})
        self.old.pexpire(keys[0], 10 ** 9)
        for key in keys:
            twin.execute_command("RESTORE", key, 0, self.old.dump(key))
        twin.execute_command("PEXPIRE", keys[0], 10 ** 9)

        def migrate(*words):
            return self.old.execute_command("MIGRATE", "127.0.0.1", server.port, *words)
        self.assertEqual(migrate(keys[0], 3, 10000, "COPY", "AUTH", "secret"), b"OK")
        self.assertEqual(self.old.exists(keys[0]), 1)
        with self.assertRaisesRegex(redis.ResponseError, "BUSYKEY"):
            migrate(keys[0], 3, 10000, "AUTH", "secret")
        self.assertEqual(migrate(keys[0], 3, 10000, "REPLACE", "AUTH", "secret"), b"OK")
        self.assertEqual(self.old.exists(keys[0]), 0)
        self.assertEqual(
            migrate("", 3, 10000, "REPLACE", "AUTH", "secret", "KEYS", *keys[1:]), b"OK")
        self.assertEqual(self.old.dbsize(), 0)
        left = new.execute_command("PTTL", keys[0])
        self.assertTrue(0 < left <= 10 ** 9, left)
        new.execute_command("PERSIST", keys[0])
        twin.execute_command("PERSIST", keys[0])
        for key in keys:
            self.assert_same_key(twin, new, key)
        # What was restored is in the journal.
        self.assertEqual(server.stop(), 0)
        server = Ours(self.directory, *settings)
        new = redis.Redis(port=server.port, password="secret", db=3)
        new.response_callbacks.clear()
        wait_until(lambda: b"\r\nloading:0\r\n" in new.execute_command("INFO", "persistence"),
                   "the boards are loaded")
        for key in keys:
            self.assert_same_key(twin, new, key)
        self.old.set("text", "x")
        with self.assertRaisesRegex(redis.ResponseError, "no strings here"):
            migrate("text", 3, 10000, "AUTH", "secret")
        self.assertEqual(self.old.exists("text"), 1)
        self.assertEqual(server.stop(), 0)

    def test_a_hash_goes_back_to_redis(self):
        server = Ours(self.directory)
        new = redis.Redis(port=server.port)
        for size in (1, 70, 600, 17000):
            fields = {b"f%d" % i: random.choice([b"", b"12", b"x" * 70, b"y" * 20000])
                      for i in range(size if size < 1000 or not SHORT else 1000)}
            new.hset("h", mapping=fields)
            payload = new.dump("h")
            self.old.restore("h", 0, payload, replace=True)
            self.assertEqual(self.old.hgetall("h"), fields)
            new.delete("h")
            new.restore("h", 0, self.old.dump("h"))
            self.assertEqual(new.hgetall("h"), fields)
            new.delete("h")
        new.zadd("board", {"ann": 1})
        with self.assertRaisesRegex(redis.ResponseError, "version or checksum"):
            self.old.restore("board", 0, new.dump("board"))
        self.assertEqual(server.stop(), 0)

    def run_page(self, heading, replaced):
        text = Moving.pages[heading].block("sh", 0)
        for old, new in [("-p 6379", f"-p {self.redis.port}"), *replaced]:
            self.assertIn(old, text)
            text = text.replace(old, new)
        done = subprocess.run(["bash", "-e", "-c", text], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout

    def fill_arena(self):
        self.old.zadd("arena", {"ann": 7, "bob": 7, "cid": 9})
        self.old.hset("profile:ann", "name", "Ann")

    def assert_arena(self, server):
        new = redis.Redis(port=server.port)
        self.assertEqual(new.zrevrange("arena", 0, -1, withscores=True),
                         self.old.zrevrange("arena", 0, -1, withscores=True))
        self.assertEqual(new.hgetall("profile:ann"), {b"name": b"Ann"})

    def test_the_page_imports_a_dump(self):
        self.fill_arena()
        settings = Path(self.directory) / "leaderboard.conf"
        settings.write_text("layout money FIELD balance 48\n")
        text = self.run_page("dump", [
            ("leaderboard-server leaderboard.conf --dir /var/lib/leaderboard", ""),
            ("leaderboard-server", str(PROGRAM)), ("leaderboard.conf", str(settings)),
            ("/var/lib/redis", str(self.redis.directory)), ("/var/lib/leaderboard", self.directory)])
        self.assertIn("imported: 1 sorted sets with 3 members, 1 hashes with 1 fields", text)
        server = Ours(self.directory)
        self.assert_arena(server)
        self.assertEqual(server.stop(), 0)

    def test_the_page_moves_single_keys(self):
        self.fill_arena()
        server = Ours(self.directory)
        text = self.run_page("single-keys", [("127.0.0.1 7000", f"127.0.0.1 {server.port}")])
        self.assertEqual(text.split(), ["OK", "OK"])
        self.assert_arena(server)
        self.assertEqual(server.stop(), 0)

    def test_both_servers_answer_restore_alike(self):
        server = Ours(self.directory)
        sides = [Line(self.redis.port), Line(server.port)]
        self.old.zadd("z", {"ann": 1, "bob": 2})
        self.old.hset("h", mapping={"a": "1", "b": "2"})
        payloads = [self.old.dump("z"), self.old.dump("h")]
        payloads += [b"", b"short", payloads[0][:-1], payloads[0] + b"x", b"\x05" + payloads[0][1:]]
        words = [b"REPLACE", b"ABSTTL", b"absttl", b"IDLETIME", b"FREQ", b"5", b"-1", b"256", b"x"]
        oks = 0
        for number in range(600 if SHORT else 6000):
            if number % 200 == 0:
                for side in sides:
                    side.ask(b"HELLO", b"3" if number % 400 else b"2")
            request = [b"RESTORE", random.choice([b"k", b"z2", b"h2"]),
                       random.choice([b"0", b"0", b"100000", b"1", b"-1", b"x", b"9999999999999"]),
                       random.choice(payloads[:2] * 6 + payloads[2:]),
                       *random.choices(words, k=random.choice([0, 0, 1, 1, 2, 3]))]
            wanted, found = [side.ask(*request) for side in sides]
            self.assertEqual(found, wanted, request)
            oks += found == b"+OK\r\n"
            ask = random.choice([[b"TYPE", request[1]], [b"EXISTS", request[1]], [b"DUMP", b"none"],
                                 [b"DEL", request[1]], [b"DUMP"], [b"RESTORE", b"k", b"0"]])
            if request[2] != b"1":
                self.assertEqual(*[side.ask(*ask) for side in sides], (request, ask))
                continue
            for side in sides:  # it may have expired on one of them alone
                side.ask(b"DEL", request[1])
        self.assertGreater(oks, 50)
        for side in sides:
            side.socket.close()
        self.assertEqual(server.stop(), 0)


class Line:
    """A client whose replies are lines, as they are on the wire."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)

    def ask(self, *words):
        self.socket.sendall(encode(words))
        end = b"\r\n"
        if words[0] == b"HELLO":  # a reply of many lines, and no two versions end it alike
            self.socket.sendall(b"PING\r\n")
            end = b"+PONG\r\n"
        reply = b""
        while not reply.endswith(end):
            piece = self.socket.recv(65536)
            assert piece, reply
            reply += piece
        return reply
