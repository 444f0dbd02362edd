"""What the tests of all pages share: what was meant, filling Redis, the page's lines, comparing.
"""
import os
import random
import subprocess
import time
import unittest
from collections import namedtuple
from unittest import mock

import follow
import servers

MEMBERS = 1000 if os.environ.get("LEADERBOARD_TEST_SHORT") else 10000
MOMENTS = 300
SECOND = 1000
DAY = 86400 * SECOND

# What was meant of one member: its fields, the better the larger, and when it reached them.
Row = namedtuple("Row", "member fields ms")

SEED = int(os.environ.get("LEADERBOARD_TEST_SEED") or time.time())


def names(count):
    """Members of many kinds, none of them twice, in no order."""
    kinds = (b"player:%d", b"Ann Lee %d", "Zoë %d".encode(), b"a_b-%d", b"\"%d\" \\ it's",
             b"\xff\x00\r\n%d")
    found = [kinds[i % len(kinds)] % i for i in range(count)]
    random.shuffle(found)
    return found


def plain_names(count):
    return random.sample([b"player:%d" % i for i in range(count)], count)


def meant(fields, first_ms, last_ms, members=None):
    """Members with fields() each, in the order in which they reached them, many at one time."""
    members = members or names(MEMBERS)
    moments = [random.randint(first_ms, last_ms) for _ in range(MOMENTS)]
    times = sorted(random.choice(moments) for _ in members)
    return [Row(member, fields(), ms) for member, ms in zip(members, times)]


def few(*most):
    """Fields with few values, so that there are many ties, now and then any up to the most."""
    return lambda: tuple(random.randint(0, high if random.random() < 0.2 else min(high, 3))
                         for high in most)


def ranked(rows, unit_ms=1, begin_ms=0, by_name=False, is_latest=False, has_time=True):
    """The records of a board that has all of it right. Where fields and time are equal, rows stand
    as they came, or by_name, as Redis lists them."""

    def unit(row):
        return (row.ms - begin_ms) // unit_ms if has_time else 0

    rows = list(reversed(rows)) if is_latest else list(rows)
    if by_name:
        rows.sort(key=lambda row: row.member, reverse=True)
    sign = -1 if is_latest else 1
    rows.sort(key=lambda row: ([-value for value in row.fields], sign * unit(row)))
    return [[row.member, rank, begin_ms + unit(row) * unit_ms if has_time else None, *row.fields]
            for rank, row in enumerate(rows)]


def place_of(rows, *fields):
    """The place of somebody who comes to have these fields now."""
    return sum(row.fields >= fields for row in rows)


def top_with_scores(records):
    """What ZREVRANGE key 0 9 WITHSCORES answers."""
    return [part for record in records[:10] for part in (record[0], b"%d" % record[3])]


def shown(reply):
    """A reply as the pages print it."""
    if isinstance(reply, list):
        return " ".join(f"[{shown(part)}]" if isinstance(part, list) else shown(part)
                        for part in reply)
    if isinstance(reply, bytes):
        return reply.decode()
    return "nil" if reply is None else str(reply)


class Recent:
    """Equal to a time at which the running test may have written."""

    def __init__(self, unit_ms):
        self.unit_ms = unit_ms

    def __eq__(self, ms):
        return servers.CLOCK_MS - self.unit_ms <= ms < servers.CLOCK_MS + DAY

    def __repr__(self):
        return "recently"


class Moving(unittest.TestCase):
    """One page: page_name. Its class has the two servers, old and new."""

    page_name = None
    pages = redis_server = leaderboard = follower = None
    # Tests that the follower cannot take part in: scores beyond 64 bits with a sign, or of all digits
    # that a double has; what reads or writes it as only Redis does.
    not_followed = ()
    unfollowed = None

    @classmethod
    def begin(cls, pages, redis_server, leaderboard, follower=None):
        """follower: a server that follows redis_server; the page's lines then read from it."""
        cls.pages, cls.redis_server, cls.leaderboard = pages, redis_server, leaderboard
        cls.follower = follower

    def setUp(self):
        random.seed(f"{SEED} {self.id()}")
        if self.follower is not None and self._testMethodName in self.not_followed:
            self.skipTest("not for a follower")
        self.page = self.pages[self.page_name]
        self.old, self.new = self.redis_server.client(), self.leaderboard.raw_client()
        self.old.flushall()
        self.new.flushall()
        self.names = {}
        shared = self.pages["loading"].block("python", 0)
        for port, server in (("port=6379", self.follower or self.redis_server),
                             ("port=7000", self.leaderboard)):
            self.assertEqual(shared.count(port), 1)
            shared = shared.replace(port, f"port={server.port}")
        self.execute(shared, "what all share")

    def tearDown(self):
        if self.follower is not None:
            self.catch_up_again()
        for client in (self.old, self.new, self.names.get("old"), self.names.get("new")):
            if client is not None:
                client.connection_pool.disconnect()

    def catch_up_again(self):
        """A test that failed leaves no stopped follower to the next one."""
        client = self.follower.client()
        if client.info("replication").get("source_state") == "stopped":
            self.old.flushall()
            client.execute_command("REPLICAOF", "127.0.0.1", self.redis_server.port)
            follow.wait_until_it_follows(client)

    def catch_up(self):
        """The follower has all that Redis has."""
        if self.follower is None:
            return
        follow.wait_for_offset(self.redis_server.client(), self.follower.client())

    # ---- the page's lines ----

    def execute(self, text, name):
        self.catch_up()
        exec(compile(text, f"<{self.page_name}: {name}>", "exec"), self.names)

    def run_python(self, index, records=None, page=None):
        text = (page or self.page).block("python", index)
        self.names["records"] = records
        self.execute(text, f"block {index}")

    def run_shell(self, index):
        text = self.page.block("sh", index)
        self.catch_up()
        for port, server in (("-p 6379", self.follower or self.redis_server), ("-p 7000", self.leaderboard)):
            self.assertEqual(text.count(port), 1)
            text = text.replace(port, f"-p {server.port}")
        done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=300,
                              check=True)
        self.assertIn("errors: 0", done.stdout)

    def run_transcript(self, index=0):
        for command, answer in self.page.transcript(index):
            self.assertEqual(shown(self.new.execute_command(*command.split())), "\n".join(answer),
                             command)

    def assert_said(self, *claims):
        """The page's prose makes these claims, which the test has shown to be true."""
        for claim in claims:
            self.assertIn(claim, self.page.prose())

    def check_table(self, *steps):
        """steps: (a command of the right column, its answer); all of them, in the table's order."""
        self.assertEqual([command for command, _ in steps], self.page.commands())
        for command, answer in steps:
            self.assertEqual(self.new.execute_command(*command.split()), answer, command)

    # ---- filling and comparing ----

    def fill(self, key, pairs):
        """pairs: (member, score)."""
        pairs = list(pairs)
        for i in range(0, len(pairs), 1000):
            self.old.zadd(key, dict(pairs[i:i + 1000]))

    def shown_by_redis(self, key):
        return self.old.zrevrange(key, 0, -1)

    def board(self, key, *words):
        return self.new.execute_command("LB.RANGE", key, 0, -1, *words)

    def assert_same(self, seen, wanted):
        """Two long lists; only the first difference is told."""
        for place, (one, other) in enumerate(zip(seen, wanted)):
            self.assertEqual(one, other, f"at place {place}")
        self.assertEqual(len(seen), len(wanted))

    def assert_moved(self, key, records):
        self.assert_same(self.board(key), records)

    def assert_ranked_otherwise_by_redis(self, key, records):
        """It has the same members, in another order."""
        seen, wanted = self.shown_by_redis(key), [record[0] for record in records]
        self.assertEqual(sorted(seen), sorted(wanted))
        self.assertNotEqual(seen, wanted)

    def assert_keys(self, key, rows, pack):
        """The board's packed keys are those that the old program makes."""
        wanted = {row.member: b"%d" % pack(*row.fields, row.ms) for row in rows}
        self.assertEqual({record[0]: record[-1] for record in self.board(key, "WITHKEY")}, wanted)

    def scratch(self):
        """A Redis that nobody follows, for scores of any kind."""
        if self.follower is None:
            return self.old
        if Moving.unfollowed is None:
            Moving.unfollowed = servers.start_redis()
        return Moving.unfollowed.client()

    def kept_by_redis(self, number):
        """What Redis makes of a score."""
        self.scratch().zadd("one", {"member": number})
        return self.scratch().zscore("one", "member")

    def assert_redis_keeps_up_to(self, last, beyond):
        self.assertEqual(int(self.kept_by_redis(last)), last)
        self.assertNotEqual(int(self.kept_by_redis(beyond)), beyond)

    def assert_redis_loses_an_addition(self, add):
        """Two clients read, both add one, both write. add(number): with a point more."""
        self.old.zadd("race", {"ann": 0})
        first, second = self.redis_server.client(), self.redis_server.client()
        read_by_first, read_by_second = first.zscore("race", "ann"), second.zscore("race", "ann")
        first.zadd("race", {"ann": add(int(read_by_first))})
        second.zadd("race", {"ann": add(int(read_by_second))})
        self.assertEqual(int(first.zscore("race", "ann")), add(0))
        self.assertNotEqual(add(0), add(add(0)))

    def assert_refused(self, *command):
        """An error that names the time, and nothing has changed."""
        before = self.board(command[1], "WITHKEY")
        with self.assertRaisesRegex(self.names["redis"].ResponseError, "is out of range: this"):
            self.new.execute_command(*command)
        self.assertEqual(self.board(command[1], "WITHKEY"), before)

    def clock(self):
        """time.time() as our server has it."""
        started = time.monotonic()
        return mock.patch("time.time", lambda: servers.CLOCK_MS / 1000 + time.monotonic() - started)


class Packed(Moving):
    """Fields and time in one number. key: the sorted set, and the board."""

    key = None
    since_ms = servers.CLOCK_MS - 30 * DAY

    def pack(self, *fields_and_ms):
        raise NotImplementedError

    def meant(self, fields):
        return meant(fields, self.since_ms, servers.CLOCK_MS)

    def fill_packed(self, rows, pack=None):
        self.fill(self.key, ((row.member, (pack or self.pack)(*row.fields, row.ms)) for row in rows))

    def begin_with(self, fields, transcript=0, pack=None):
        self.run_transcript(transcript)
        rows = self.meant(fields)
        self.fill_packed(rows, pack)
        return rows

    def move_records(self, index, rows):
        """From records: the page's lines for that, onto a board made anew."""
        self.new.delete(self.key)
        self.run_transcript()
        self.run_python(index, [(row.member, *row.fields, row.ms) for row in rows])

    def assert_moved_as_listed(self, rows, unit_ms=1):
        """Also in the order of Redis, and with its keys. The records."""
        right = ranked(rows, unit_ms, by_name=True)
        self.assert_moved(self.key, right)
        self.assertEqual([record[0] for record in right], self.shown_by_redis(self.key))
        self.assert_keys(self.key, rows, self.pack)
        return right

    def assert_fields_moved(self, rows):
        """The times on the board, by member."""
        board = {record[0]: record for record in self.board(self.key)}
        self.assertEqual({member: tuple(record[3:]) for member, record in board.items()},
                         {row.member: row.fields for row in rows})
        return {member: record[2] for member, record in board.items()}

    def assert_fields_moved_and_times_within(self, rows, limit_ms):
        """And not exactly: Redis has rounded them."""
        times = self.assert_fields_moved(rows)
        worst = max(abs(times[row.member] - row.ms) for row in rows)
        self.assertTrue(0 < worst <= limit_ms, worst)
