"""Scores that programs have packed into a double move while they go on writing: PACKED and SCORE+FRACTION of `board` lines."""
import itertools
import math
import random
import tempfile
import threading
import time
import unittest
from pathlib import Path

import redis

import follow
import servers
from moving import SEED, Moving, names
from process import IS_SHORT as SHORT
from servers import CLOCK_MS
from test_dump import Ours, run_import
from test_follow import Source

MEMBERS = 120 if SHORT else 2000
WRITES = 600 if SHORT else 30000  # of each program while it is followed
THREADS = 3
FAR_S = 4102415999


class Program:
    """As those of the pages, with one of their keys. Each member belongs to one thread, as their programs lose writes of
    others."""

    key = None
    most = 4000  # points at the beginning

    def __init__(self):
        self.begin = time.monotonic()

    def now_ms(self):
        return CLOCK_MS + int((time.monotonic() - self.begin) * 1000)

    def fill(self, client, members):
        for at in range(0, len(members), 500):
            client.zadd(self.key, {member: self.pack(random.randint(0, self.most), CLOCK_MS - random.randrange(9 ** 9))
                                   for member in members[at:at + 500]})

    def unpack(self, score):
        """What the board should have of this double: fields, and the time in milliseconds, or None where any is right."""
        raise NotImplementedError


class Week(Program):
    """22 bits of points, 41 of milliseconds left: read, add, write."""

    key, bits, end_ms = "week:47", 41, 1795363200000
    most = 4194000

    def pack(self, points, ms):
        return (points << self.bits) + self.end_ms - ms

    def write(self, client, member, choose):
        points = int(client.zscore(self.key, member) or 0) >> self.bits
        client.zadd(self.key, {member: self.pack(points + choose.randint(0, 3), self.now_ms())})

    def unpack(self, score):
        return [int(score) >> self.bits], self.end_ms - int(score) % (1 << self.bits)


class Far(Week):
    key, end_ms = "scores", 3250454399000


class Votes(Week):
    """A loop under WATCH; all voters vote for all."""

    key, bits, end_ms, most = "poll", 34, 1804262399000, 2 ** 29

    def write(self, client, member, choose):
        with client.pipeline() as pipe:
            for _ in range(15):
                try:
                    pipe.watch(self.key)
                    points = int(pipe.zscore(self.key, member) or 0) >> self.bits
                    pipe.multi()
                    pipe.zadd(self.key, {member: self.pack(points + 1, self.now_ms())})
                    pipe.execute()
                    return
                except redis.WatchError:
                    continue


class Contest(Program):
    """33 bits of score, a flag, 29 bits of seconds left: ZINCRBY, and a script that compares and sets."""

    key, most, end_s = "contest", 2 ** 33 - 10 ** 6, 1861891200
    CAS = """if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
             redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
             return 1"""

    def pack(self, score, ms, paid=0):
        return score << 30 | paid << 29 | self.end_s - ms // 1000

    def write(self, client, member, choose):
        if choose.random() < 0.7:
            client.zincrby(self.key, choose.randint(1, 9) << 30, member)
            return
        old = client.execute_command("ZSCORE", self.key, member)
        if old is not None:
            new = self.pack(int(old) >> 30, self.now_ms(), choose.randint(0, 1))
            client.eval(self.CAS, 1, self.key, member, repr(old), new)

    def unpack(self, score):
        key = int(score)
        return [key >> 30, key >> 29 & 1], (self.end_s - key % (1 << 29)) * 1000


class Posts(Program):
    """Two counters and a day as it is written."""

    key, most = "posts", 2047

    def pack(self, agree, ms, comment=0):
        return agree << 42 | comment << 20 | int(time.strftime("%y%m%d", time.gmtime(ms / 1000)))

    def write(self, client, member, choose):
        old = int(client.zscore(self.key, member) or 0)
        client.zadd(self.key, {member: self.pack((old >> 42) + choose.randint(0, 2), self.now_ms(),
                                                 (old >> 20 & 0x3FFFFF) + choose.randint(0, 1))})

    def unpack(self, score):
        key = int(score)
        return [key >> 42, key >> 20 & 0x3FFFFF, key & 0xFFFFF], None


class Arena(Program):
    """A score and 1 - now / a far time, under a lock."""

    key, most = "arena", 131000

    def pack(self, score, ms):
        return round(score + 1 - ms / 1000 / FAR_S, 10)

    def write(self, client, member, choose):
        while not client.set("arena:lock", 1, nx=True, ex=5):
            time.sleep(0.001)
        score = math.floor(client.zscore(self.key, member) or 0)
        client.zadd(self.key, {member: self.pack(score + choose.randint(-3, 5), self.now_ms())})
        client.delete("arena:lock")

    def unpack(self, score):
        whole = math.floor(score)
        return [whole], int((1 - (score - whole)) * FAR_S + 0.5) * 1000


class Hot(Program):
    """Points and 1000000 / now, added at every call."""

    key, most = "hot", 1000

    def pack(self, points, ms):
        return points + 1000000 / ms

    def write(self, client, member, choose):
        client.zincrby(self.key, 1000000 / self.now_ms() + choose.randint(1, 3), member)

    def unpack(self, score):
        return [math.floor(score)], None


PROGRAMS = (Week, Far, Votes, Contest, Posts, Arena, Hot)


def trim(client, program, choose, is_recent):
    """What other jobs do to a board."""
    how, key = choose.randrange(4), program.key
    if how == 0:
        client.zrem(key, *(name for name, _ in client.zrange(key, 0, 1, withscores=True)))
    elif how == 1:
        client.zpopmin(key)
    elif how == 2:
        client.zremrangebyrank(key, 0, 1)
    else:
        client.zadd(key, {b"job": program.pack(choose.randint(0, 9), program.now_ms())}, gt=is_recent)


class Packed(unittest.TestCase):
    def setUp(self):
        random.seed(f"{SEED} {self.id()}")
        self.source = Source()
        self.addCleanup(self.source.process.kill)
        self.old = self.source.client()
        directory = tempfile.TemporaryDirectory(prefix="leaderboard-packed-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

        # What Redis 6.2 brought: GT and LT, COPY.
        self.is_recent = servers.knows(self.old, "COPY")

    def config(self, more=""):
        """The lines of the page."""
        path = Path(self.directory, "leaderboard.conf")
        path.write_text(Moving.pages["without-a-stop"].block("conf", 0) + more)
        return path

    def start(self, *arguments, more=""):
        self.server = Ours(self.directory, *arguments, config=self.config(more), environment=servers.clock_environment())
        self.addCleanup(self.server.process.kill)
        self.ours = self.server.client()

    def follow(self):
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.source.port)
        self.wait_until_it_follows()

    def wait_until_it_follows(self):
        follow.wait_until_it_follows(self.ours)

    def board(self, key, *words):
        client = redis.Redis(port=self.server.port)
        client.response_callbacks.clear()
        return client.execute_command("LB.RANGE", key, 0, -1, *words)

    def assert_moved(self, program, key=None):
        """Fields and times are those that Redis's doubles say, the best first."""
        key = key or program.key
        wanted = {member: program.unpack(score) for member, score in self.old.zrange(key, 0, -1, withscores=True)}
        records = self.board(key)
        found = {record[0]: (record[3:], None if wanted[record[0]][1] is None else record[2]) for record in records}
        self.assertGreater(len(wanted), MEMBERS // 2)
        for member in wanted:
            self.assertEqual(found.get(member), wanted[member], (key, member, self.old.zscore(key, member)))
        self.assertEqual(found.keys(), wanted.keys())
        order = [(record[3:], -(found[record[0]][1] or 0)) for record in records]
        self.assertEqual(order, sorted(order, reverse=True))

    # ---- programs that go on ----

    def run_programs(self, programs, members, writes):
        """Until each has written so often. Jobs beside them."""
        def run(program, thread):
            choose = random.Random(f"{SEED} {program.key} {thread}")
            client = redis.Redis(port=self.source.port)
            for _ in range(writes // THREADS):
                program.write(client, members[thread::THREADS][choose.randrange(len(members) // THREADS)], choose)
                if choose.random() < 0.02:
                    trim(client, program, choose, self.is_recent)
        threads = [threading.Thread(target=run, args=(program, thread)) for program, thread in
                   itertools.product(programs, range(THREADS))]
        for thread in threads:
            thread.start()
        return threads

    def test_all_packings_move_while_their_programs_write(self):
        programs = [program() for program in PROGRAMS]
        members = names(MEMBERS)
        for program in programs:
            program.fill(self.old, members)
        self.start()
        threads = self.run_programs(programs, members, WRITES)
        self.follow()
        for thread in threads:
            thread.join()
        follow.cut_over(self.old, self.ours)
        for program in programs:
            self.assert_moved(program)
        # The programs of the other pages take over.
        best = self.board("poll")[0]
        self.assertEqual(float(self.ours.zincrby("poll", 1, best[0])), best[3] + 1)
        self.assertEqual(self.board("poll")[0][0], best[0])
        self.assertGreaterEqual(self.board("poll")[0][2], CLOCK_MS)
        record = self.board("contest")[-1]
        self.ours.execute_command("LB.ADD", "contest", "INCR", "KEEPTIME", 3, "*", record[0])
        after = next(one for one in self.board("contest") if one[0] == record[0])
        self.assertEqual(after[2:], [record[2], record[3] + 3, record[4]])

    def test_a_server_that_is_killed_goes_on_where_it_was(self):
        programs = [program() for program in (Week, Contest, Arena)]
        members = names(MEMBERS)
        for program in programs:
            program.fill(self.old, members)
        self.start("--appendonly", "yes", "--replicaof", f"127.0.0.1 {self.source.port}")
        self.wait_until_it_follows()
        threads = self.run_programs(programs, members, WRITES // 3)
        self.server.kill()
        self.server.start()
        for thread in threads:
            thread.join()
        self.wait_until_it_follows()
        follow.cut_over(self.old, self.ours)
        for program in programs:
            self.assert_moved(program)

    # ---- ties ----

    def order(self, key):
        return [record[0] for record in self.board(key)]

    def test_ties_rank_as_redis_lists_them_and_later_ones_as_they_come(self):
        self.start()
        scores = {"poll": str((5 << 34) + 77), "arena": "5.5", "hot": "5.0000001"}
        for key, score in scores.items():
            self.old.zadd(key, {name: score for name in ("bob", "ann", "eve")})
        self.follow()
        for key, score in scores.items():
            self.assertEqual(self.order(key), [b"eve", b"bob", b"ann"])
            self.old.zadd(key, {"zoe": score})
            self.old.zadd(key, {"kim": score})
            self.old.zadd(key, {"bob": score})          # the same
            if self.is_recent:
                self.old.zadd(key, {"ann": 1}, gt=True)  # it loses
                self.old.zadd(key, {"ann": float(score) * 2}, lt=True)
            self.old.zadd(key, {"eve": 1}, nx=True)
            self.old.zadd(key, {"joe": score}, xx=True)  # there is none
            follow.wait_for_offset(self.old, self.ours)
            self.assertEqual(self.order(key), [b"eve", b"bob", b"ann", b"zoe", b"kim"])
        self.old.zadd("poll", {"ann": scores["poll"], "kim": str((5 << 34) + 78)})
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.order("poll"), [b"kim", b"eve", b"bob", b"ann", b"zoe"])

    def test_a_greater_one_and_a_lesser_one_are_told_by_all_digits(self):
        if not self.is_recent:
            return
        self.start()
        self.follow()
        point = 1 << 34
        self.old.zadd("poll", {"ann": 5 * point + 100, "bob": 5 * point + 100})
        self.old.zadd("poll", {"ann": 5 * point + 101}, gt=True)
        self.old.zadd("poll", {"bob": 5 * point + 99}, gt=True)
        self.old.zadd("poll", {"cid": 3}, gt=True)
        early, late = (Arena().pack(7, CLOCK_MS - 5000 * i) for i in (1, 0))
        self.old.zadd("arena", {"ann": late, "bob": late})
        self.old.zadd("arena", {"ann": early}, gt=True)
        self.old.zadd("arena", {"bob": early}, lt=True)
        asked = follow.source_info(self.ours)["source_asked_keys"]
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual([(record[0], record[3], record[2]) for record in self.board("poll")],
                         [(b"ann", 5, Votes.end_ms - 101), (b"bob", 5, Votes.end_ms - 100), (b"cid", 0, Votes.end_ms - 3)])
        self.assertEqual([(record[0], [record[3:], record[2]]) for record in self.board("arena")],
                         [(b"ann", list(Arena().unpack(early))), (b"bob", list(Arena().unpack(late)))])
        self.assertEqual(follow.source_info(self.ours)["source_asked_keys"], asked)

    # ---- names ----

    def test_a_board_keeps_its_form_under_another_name(self):
        self.start(more="board poll:copy votes PACKED\n")
        self.follow()
        self.old.zadd("poll", {"ann": (5 << 34) + 1})
        self.old.rename("poll", "poll:old")
        if self.is_recent:
            self.old.copy("poll:old", "poll:copy")
        else:
            self.old.restore("poll:copy", 0, self.old.dump("poll:old"))
        self.old.zincrby("poll:old", 1 << 34, "ann")
        self.old.zadd("plain", {"ann": 7})
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.board("poll:old"), [[b"ann", 0, Votes.end_ms - 1, 6]])
        self.assertEqual(self.board("poll:copy"), [[b"ann", 0, Votes.end_ms - 1, 5]])
        self.assertEqual(self.board("plain")[0][3:], [7])

    def test_stored_results_are_packed_as_their_names_say(self):
        self.start()
        self.follow()
        self.old.zadd("parts", {"ann": 3})
        self.old.zadd("poll", {"ann": 9 << 34, "bob": (2 << 34) + 8})
        self.old.zunionstore("poll", ["poll", "parts"])
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.board("poll"), [[b"ann", 0, Votes.end_ms - 3, 9], [b"bob", 1, Votes.end_ms - 8, 2]])

    # ---- what doubles have lost ----

    def test_what_was_lost_is_counted_and_said_once(self):
        self.old.zadd("poll", {"ann": 9 << 34, "bob": (2 ** 29 << 34) + 1024, "cid": (2 ** 20 << 34) + 4})
        self.old.zadd("posts", {"ann": 4096 << 42, "bob": 1 << 42})
        self.old.zadd("arena", {"ann": Arena().pack(131000, CLOCK_MS), "bob": Arena().pack(10 ** 8, CLOCK_MS)})
        self.start()
        self.follow()
        self.old.zadd("poll", {"dan": (2 ** 29 << 34) + 2048, "eve": 1 << 34})
        follow.wait_for_offset(self.old, self.ours)
        info = follow.source_info(self.ours)
        # ann and bob of posts have no time: 4096 << 42 is 2^54, where a double drops two bits of the day.
        self.assertEqual([info[name] for name in ("source_packed_scores", "source_rounded_scores", "source_rounded_fields")],
                         [9, 5, 1])
        within_ms = info["source_rounded_within_ms"]
        self.assertTrue(60000 < within_ms < 70000, within_ms)  # of 10^8 and a fraction
        said = [line for line in Path(self.server.log).read_text().splitlines() if "rounded=" in line]
        self.assertEqual(len(said), 1, said)
        self.assertIn("packed=7 rounded=4 rounded_fields=1 within_ms=%d" % within_ms, said[0])

    def test_a_double_that_is_no_key_stops_with_its_name(self):
        self.start()
        for key, score, why in (("poll", 1.5, "packed key 1.5 is not an integer of this layout's 64 bits"),
                                ("week:47", -1, "packed key -1 is not an integer of this layout's 63 bits"),
                                ("arena", 7, "time 2099-12-31T15:59:59Z is out of range"),
                                ("hot", "inf", "inf")):
            self.old.flushall()
            self.old.zadd(key, {"ann": score})
            self.ours.execute_command("REPLICAOF", "127.0.0.1", self.source.port)
            follow.wait_until(lambda: follow.source_info(self.ours).get("source_state") == "stopped", key)
            error = follow.source_info(self.ours)["master_link_error"]
            for part in (f"key '{key}'", "member 'ann'", why):
                self.assertIn(part, error)
            self.ours.execute_command("REPLICAOF", "NO", "ONE")

    # ---- other ways ----

    def test_a_dump_file_and_a_payload_are_read_alike(self):
        programs = [program() for program in PROGRAMS]
        for program in programs:
            program.fill(self.old, names(MEMBERS))
        self.old.save()
        with tempfile.TemporaryDirectory(prefix="leaderboard-packed-") as directory:
            done = run_import(Path(self.source.directory, "dump.rdb"), directory, "--layout", "x FIELD a 1",
                              *itertools.chain(*([f"--{line.split(' ', 1)[0]}", line.split(" ", 1)[1].strip()]
                                                 for line in self.config().read_text().splitlines() if line)))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"scores taken apart: packed={MEMBERS * len(programs)} rounded=", done.stdout)
            self.server = Ours(directory, config=self.config(), environment=servers.clock_environment())
            self.addCleanup(self.server.process.kill)
            self.ours = self.server.client()
            for program in programs:
                self.assert_moved(program)
                self.ours.delete(program.key)
                self.ours.restore(program.key, 0, self.old.dump(program.key))
                self.assert_moved(program)
            self.assertEqual(self.server.stop(), 0)

    def test_lines_that_contradict_themselves_are_refused(self):
        self.start()
        for layout, words, why in (
                ("FIELD a 9", "PACKED SCORE+FRACTION", "PACKED and SCORE+FRACTION exclude each other"),
                ("FIELD a 9 SCALE 1 DOUBLE", "PACKED", "PACKED needs a layout without DOUBLE and DECAY"),
                ("FIELD a 9 TIME 30 S", "PACKED PERIOD DAY", "PACKED and PERIOD exclude each other"),
                ("FIELD a 9 ASC TIME 30 S", "SCORE+FRACTION", "SCORE+FRACTION needs a first field without ASC"),
                ("FIELD a 9", f"SCORE+FRACTION {FAR_S}000", "SCORE+FRACTION with a time needs a layout with a TIME"),
                ("FIELD a 9 TIME 30 S LATEST", f"SCORE+FRACTION {FAR_S}000", "without LATEST"),
                ("FIELD a 9 TIME 31 S", f"SCORE+FRACTION {FAR_S}", f"SCORE+FRACTION '{FAR_S}' is not a time from 2000 on"),
                ("FIELD a 9 TIME 31 S", "SCORE+FRACTION CAP", "CAP needs a number of members")):
            with self.assertRaises(redis.ResponseError) as caught:
                self.ours.execute_command("CONFIG", "SET", "layout", f"one {layout}", "board", f"* one {words}")
            self.assertIn(why, str(caught.exception))
        for command in ("LB.CREATE x PACKED", "LB.CREATE x SCORE+FRACTION"):
            with self.assertRaises(redis.ResponseError) as caught:
                self.ours.execute_command(*command.split())
            self.assertIn("is for `board` lines of leaderboard.conf", str(caught.exception))
        self.ours.execute_command("CONFIG", "SET", "board", f"* default SCORE+FRACTION CAP 5\ny default SCORE+FRACTION {FAR_S}000 KEEP BEST")
        self.assertEqual(self.ours.execute_command("CONFIG", "GET", "board")[1],
                         f"* default SCORE+FRACTION CAP 5\ny default SCORE+FRACTION {FAR_S}000 KEEP BEST".encode())
