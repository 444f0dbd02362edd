"""A Redis that runs is followed, and left: REPLICAOF, under every command that changes a sorted set."""
import contextlib
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock

import redis

import follow
import servers
from process import IS_SHORT as SHORT, LIMIT_S, hold_port, make_certificate
from moving import SEED, Moving, names
from test_dump import Ours
from test_kind import Gate

SECONDS = 2 if SHORT else 60
RATE = 8000 if SHORT else 20000
EXPIRES_S = 4 if SHORT else 8


class Source(servers.Server):
    """A redis-server that can be started again on its port."""

    def __init__(self):
        super().__init__("--repl-diskless-sync-delay", "0", program=servers.shutil.which("redis-server"))

    def restart(self, how):
        self.process.send_signal(how)
        self.process.wait(LIMIT_S)
        self.start()


class EndlessCopy:
    """What a replica asks a Redis, answered; then a file that has a beginning, and no end."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
                self.answer(client)
            except (OSError, ValueError):
                if self.listener.fileno() < 0:
                    return

    @staticmethod
    def answer(client):
        asked = client.makefile("rb")
        while True:
            words = []
            for _ in range(int(asked.readline()[1:])):
                words.append(asked.read(int(asked.readline()[1:])))
                asked.read(2)
            if words[0] == b"PSYNC":
                break
            is_known = words[0] != b"LB.SYNC" and words[1:2] != [b"leaderboard"]
            client.sendall(b"+OK\r\n" if is_known else b"-ERR Unrecognized REPLCONF option\r\n")
        client.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 1\r\n$EOF:" + b"m" * 40 + b"\r\n")
        client.sendall(b"REDIS0011")
        key = b"\x00\x04skip\x10" + bytes(16)  # a string, which is passed over
        while True:
            client.sendall(key * 4096)


class Followed(unittest.TestCase):
    def setUp(self):
        random.seed(f"{SEED} {self.id()}")
        self.source = Source()
        self.addCleanup(self.source.process.kill)
        self.old = self.source.client()
        self.old.config_set("repl-diskless-sync-delay", 0)
        # With and without a disk at the source, a copy is framed in two ways.
        self.old.config_set("repl-diskless-sync", random.choice(["yes", "no"]))
        directory = tempfile.TemporaryDirectory(prefix="leaderboard-follow-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def start(self, *arguments):
        self.server = Ours(self.directory, *arguments)
        self.addCleanup(self.server.process.kill)
        self.ours = self.server.client()
        return self.ours

    def follow(self):
        self.assertEqual(self.ours.execute_command("REPLICAOF", "127.0.0.1", self.source.port),
                         b"OK")
        follow.wait_until_it_follows(self.ours)

    def assert_equal_to_source(self, databases=(0,)):
        compared = 0  # one of them may have been flushed at last
        for database in databases:
            theirs = follow.content(redis.Redis(port=self.source.port, db=database), False)
            found = follow.content(redis.Redis(port=self.server.port, db=database), True)
            self.assertEqual(sorted(theirs), sorted(found))
            for name, wanted in theirs.items():
                self.assertEqual(wanted, found[name], name)
            compared += len(theirs)
        self.assertGreater(compared, 0)

    # ---- following ----

    def test_every_command_with_links_that_break(self):
        self.start(*follow.SETTINGS, "--appendonly", "yes")
        with follow.Writers(self.source.port, f"{SEED} {self.id()}", rate=RATE):
            time.sleep(0.5)
            self.follow()
            with self.assertRaises(redis.exceptions.ReadOnlyError):
                self.ours.zadd("mine", {"ann": 1})
            for _ in follow.again(SECONDS, 0.2, 1.2):
                self.old.execute_command("CLIENT", "KILL", "TYPE", "replica")
        follow.cut_over(self.old, self.ours)
        self.assert_equal_to_source((0, 3))
        self.assertEqual(self.ours.info("replication")["role"], "master")
        self.assertEqual(self.ours.zadd("mine", {"ann": 1}), 1)
        before = follow.content(self.ours, True)
        self.assertEqual(self.server.stop(), 0)
        self.start(*follow.SETTINGS, "--appendonly", "yes")
        self.assertEqual(follow.content(self.ours, True), before)

    def test_every_command_while_all_connections_break(self):
        """Also the one on which the source is asked, behind any byte of an answer; and we are killed in between."""
        with contextlib.closing(Gate(self.source.port)) as gate:
            arguments = (*follow.SETTINGS, "--appendonly", "yes", "--replicaof", f"127.0.0.1 {gate.port}")
            self.start(*arguments)
            self.old.config_set("repl-backlog-size", 1 << 28)
            with follow.Writers(self.source.port, f"{SEED} {self.id()}", rate=RATE / 4):
                follow.wait_until_it_follows(self.ours)
                for _ in follow.again(SECONDS, 0.1, 0.6):
                    gate.cut()
                    if random.random() < 0.2:
                        self.server.process.kill()
                        self.server.process.wait()
                        self.start(*arguments)
                        follow.wait_until_it_follows(self.ours)
            follow.wait_until_it_follows(self.ours)
            follow.cut_over(self.old, self.ours)
            self.assert_equal_to_source((0, 3))

    def test_the_link_goes_on_where_it_broke(self):
        self.start()
        self.old.zadd("board", {"ann": 1})
        self.follow()
        for number in range(3):
            self.old.execute_command("CLIENT", "KILL", "TYPE", "replica")
            self.old.zincrby("board", 1, "ann")
            follow.wait_for_offset(self.old, self.ours)
        follow.wait_until_it_follows(self.ours)
        info = follow.source_info(self.ours)
        self.assertEqual((info["source_full_syncs"], self.ours.zscore("board", "ann")), (1, 4))
        self.assertGreaterEqual(info["source_partial_syncs"], 1)

    def test_a_replica_of_a_follower_whose_changes_had_no_numbers_copies(self):
        """Without a journal, once no replica was there for repl-backlog-ttl."""
        follower = self.start("--repl-backlog-ttl", "1")
        self.old.zadd("board", {"ann": 1})
        self.follow()
        with tempfile.TemporaryDirectory(prefix="leaderboard-follow-") as directory:
            replica = Ours(directory, "--replicaof", f"127.0.0.1 {self.server.port}")
            self.addCleanup(lambda: replica.process.kill())
            follow.wait_until(lambda: replica.client().zscore("board", "ann") == 1)
            replica.client().save()
            self.assertEqual(replica.stop(), 0)
            follow.wait_until(lambda: not follower.info("replication")["repl_backlog_active"])
            self.old.zadd("board", {"bob": 2})
            follow.wait_for_offset(self.old, self.ours)
            replica = Ours(directory, "--replicaof", f"127.0.0.1 {self.server.port}")
            follow.wait_until(lambda: replica.client().info("replication").get("master_link_status") == "up")
            self.assertEqual(replica.client().zcard("board"), 2)

    def test_a_source_that_is_killed_and_comes_back(self):
        self.start()
        self.old.zadd("board", {name: 5 for name in names(500)})
        self.old.save()
        self.follow()
        self.old.zadd("board", {"lost": 1})
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.ours.zscore("board", "lost"), 1)
        self.source.restart(signal.SIGKILL)
        follow.wait_until(lambda: follow.source_info(self.ours).get("source_full_syncs") == 2
                          and follow.is_following(self.ours))
        self.assertIsNone(self.ours.zscore("board", "lost"))
        self.old.zadd("board", {"new": 2})
        follow.wait_for_offset(self.old, self.ours)
        self.assert_equal_to_source()

    def test_the_role_is_taken_when_the_source_is_dead(self):
        self.start()
        self.old.zadd("board", {name: 5 for name in names(500)})
        self.follow()
        self.old.zadd("board", {"last": 1})
        follow.wait_for_offset(self.old, self.ours)
        self.source.process.kill()
        follow.wait_until(lambda: not follow.is_following(self.ours))
        time.sleep(0.5)  # it waits for its next attempt
        self.assertEqual(self.ours.execute_command("REPLICAOF", "NO", "ONE"), b"OK")
        self.assertEqual(self.ours.zcard("board"), 501)
        self.assertEqual(self.ours.zadd("board", {"mine": 1}), 1)

    def test_the_role_is_taken_while_a_copy_never_ends(self):
        self.start()
        self.ours.zadd("mine", {"ann": 1})
        with EndlessCopy() as source:
            self.ours.execute_command("REPLICAOF", "127.0.0.1", source.port)
            follow.wait_until(lambda: self.ours.info("replication").get("source_state") == "loads")
            self.assertEqual(self.ours.zscore("mine", "ann"), 1)
            self.assertEqual(self.ours.execute_command("REPLICAOF", "NO", "ONE"), b"OK")
        self.assertEqual(self.ours.zadd("mine", {"bob": 1}), 1)
        self.assertEqual(self.ours.zcard("mine"), 2)

    def test_a_source_that_is_restarted_cleanly_goes_on(self):
        self.start()
        self.old.config_set("save", "3600 1")
        self.old.zadd("board", {"ann": 1, "bob": 2})
        self.follow()
        self.source.restart(signal.SIGTERM)
        self.old.zincrby("board", 5, "ann")
        follow.wait_until(lambda: self.ours.zscore("board", "ann") == 6)
        # Before Redis 7 it has forgotten who it was.
        self.assertEqual(follow.source_info(self.ours)["source_full_syncs"],
                         1 if servers.knows(self.old, "FUNCTION") else 2)

    def test_our_restart_goes_on_where_it_was(self):
        """Killed under load, again and again: nothing is applied twice, nothing is left out."""
        self.start(*follow.SETTINGS, "--appendonly", "yes", "--replicaof",
                   f"127.0.0.1 {self.source.port}")
        self.old.config_set("repl-backlog-size", 1 << 28)
        with follow.Writers(self.source.port, f"{SEED} {self.id()}", rate=RATE / 2):
            follow.wait_until_it_follows(self.ours)
            for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                time.sleep(random.uniform(0.3, 1.0))
                self.server.process.send_signal(how)
                self.server.process.wait(LIMIT_S)
                self.start(*follow.SETTINGS, "--appendonly", "yes", "--replicaof",
                           f"127.0.0.1 {self.source.port}")
                follow.wait_until_it_follows(self.ours)
        follow.cut_over(self.old, self.ours)
        self.assert_equal_to_source((0, 3))

    def test_an_expiry_that_is_taken_back_while_we_are_down(self):
        """Past by then, but only the source says that a key is gone."""
        arguments = ("--appendonly", "yes", "--replicaof", f"127.0.0.1 {self.source.port}")
        self.start(*arguments)
        follow.wait_until_it_follows(self.ours)
        for how in (signal.SIGTERM, signal.SIGKILL):
            self.old.zadd("time:4", {"ann": 1, "bob": 2})
            self.old.hset("hash", mapping={"field": "value"})
            for name in ("time:4", "hash"):
                self.old.pexpire(name, EXPIRES_S * 1000)
            past_at = time.monotonic() + EXPIRES_S + 0.1
            follow.wait_for_offset(self.old, self.ours)
            self.server.process.send_signal(how)
            self.server.process.wait(LIMIT_S)
            for name in ("time:4", "hash"):
                self.assertTrue(self.old.persist(name))
            time.sleep(max(past_at - time.monotonic(), 0))
            self.start(*arguments)
            follow.wait_until_it_follows(self.ours)
            follow.wait_for_offset(self.old, self.ours)
            self.assertEqual(follow.source_info(self.ours)["source_full_syncs"], 0)
            self.assert_equal_to_source()

    def test_a_key_that_expires_while_it_is_compared(self):
        """Gone at both, and no difference."""
        self.start()
        self.old.zadd("board", {"ann": 1})
        self.old.zadd("short", {"bob": 1})
        self.follow()
        self.old.pexpire("short", 500)
        follow.cut_over(self.old, self.ours)
        content = follow.content

        def read_slowly(*arguments):
            found = content(*arguments)
            time.sleep(0.7)
            return found

        with unittest.mock.patch("follow.content", read_slowly):
            self.assert_equal_to_source()
        self.assertEqual(self.ours.keys("*"), [b"board"])

    def test_our_restart_needs_no_copy(self):
        self.start("--appendonly", "yes", "--replicaof", f"127.0.0.1 {self.source.port}")
        self.old.sadd("friends", "ann")
        follow.wait_until_it_follows(self.ours)
        self.old.execute_command("SELECT", 3)
        other = redis.Redis(port=self.source.port, db=3)
        other.zadd("board", {"ann": 1})
        for how in (signal.SIGTERM, signal.SIGKILL):
            follow.wait_for_offset(self.old, self.ours)
            time.sleep(1.2)  # everysec
            self.server.process.send_signal(how)
            self.server.process.wait(LIMIT_S)
            other.zincrby("board", 1, "ann")
            self.start("--appendonly", "yes", "--replicaof", f"127.0.0.1 {self.source.port}")
            follow.wait_until_it_follows(self.ours)
            follow.wait_for_offset(self.old, self.ours)
            self.assertEqual(follow.source_info(self.ours)["source_full_syncs"], 0)
        self.assertEqual(redis.Redis(port=self.server.port, db=3).zscore("board", "ann"), 3)
        redis.Redis(port=self.source.port).zunionstore("sum", ["friends", "missing"])
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(follow.source_info(self.ours)["source_full_syncs"], 0)
        self.assertEqual(self.ours.zscore("sum", "ann"), 1)
        self.ours.execute_command("REPLICAOF", "NO", "ONE")
        redis.Redis(port=self.server.port, db=3).zadd("board", {"bob": 9})
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.source.port)
        follow.wait_until_it_follows(self.ours)
        self.assertEqual(follow.source_info(self.ours)["source_full_syncs"], 1)
        self.assert_equal_to_source((3,))

    # ---- the page ----

    def run_page(self, index):
        text = Moving.pages["without-a-stop"].block("sh", index)
        text = text.replace("6379", str(self.source.port))
        if not servers.knows(self.old, "COPY"):  # before Redis 6.2
            text = text.replace("CLIENT PAUSE 60000 WRITE", "CONFIG SET min-replicas-to-write 1000")
        if not servers.knows(self.old, "PEXPIRETIME"):  # before Redis 7
            text = text.replace("+pexpiretime ", "")
        text = text.replace("-p 7000", f"-p {self.server.port}")
        return subprocess.run(["bash", "-euc", text], capture_output=True, text=True,
                              timeout=60, check=True).stdout.split()

    def test_the_page(self):
        """Its commands, in its order, each with the ports of this test."""
        self.start()
        self.old.zadd("arena", {"ann": 3, "bob": 5})
        run = self.run_page
        self.assertEqual(run(0), ["OK"])
        follow.wait_until_it_follows(self.ours)
        shown = run(2)
        self.assertIn("source_state:follows", shown)
        self.assertIn("master_link_status:up", shown)
        self.old.zincrby("arena", 1, "bob")
        follow.wait_for_offset(self.old, self.ours)
        paused, theirs, applied = run(3)
        self.assertEqual((paused, theirs.split(":")[1]), ("OK", applied.split(":")[1]))
        self.assertEqual(run(4), ["OK"])
        self.assertEqual(self.ours.zrevrange("arena", 0, -1, withscores=True),
                         [(b"bob", 6), (b"ann", 3)])
        self.assertEqual(self.ours.zadd("arena", {"cid": 9}), 1)

    # ---- order ----

    def test_equal_scores_of_the_copy_are_in_the_order_of_redis(self):
        self.start(*follow.SETTINGS)
        for key in ("plain", "money:1", "time:1"):
            for size in (5, 300):
                self.old.zadd(f"{key}:{size}", {name: random.choice([1, 1, 2]) for name in
                                                names(size)})
        self.follow()
        for key in self.old.keys():
            self.assertEqual(self.ours.zrange(key, 0, -1), self.old.zrange(key, 0, -1), key)
            self.assertEqual(self.ours.zrevrange(key, 0, -1), self.old.zrevrange(key, 0, -1), key)

    def test_later_ones_rank_behind_their_equals_and_go_by_name(self):
        self.start()
        self.old.zadd("board", {"m": 7})
        self.follow()
        for name in ("z", "a", "k"):
            self.old.zadd("board", {name: 7})
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.ours.zrevrange("board", 0, -1), [b"m", b"z", b"a", b"k"])
        self.assertEqual(self.old.zpopmin("board"), [(b"a", 7)])
        self.assertEqual(self.old.zpopmax("board"), [(b"z", 7)])
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.ours.zrevrange("board", 0, -1), [b"m", b"k"])

    # ---- what is asked for ----

    def test_every_write_on_sorted_sets_and_hashes_that_the_source_has(self):
        """Whatever its COMMAND lists must be in the table below, so that a new one is tried, too."""
        self.start()
        self.follow()
        forms = {line.split()[0]: line.split() for line in """
            ZADD z 5 e|ZINCRBY z 2 a|ZREM z b|ZPOPMIN z|ZPOPMAX z 2|BZPOPMIN z 1|BZPOPMAX z 1|ZMPOP 1 z MIN
            |BZMPOP 1 1 z MAX COUNT 2|ZREMRANGEBYRANK z 0 1|ZREMRANGEBYSCORE z 2 3|ZREMRANGEBYLEX same [a [b
            |ZUNIONSTORE to 2 z same WEIGHTS 2 3|ZINTERSTORE to 2 z set|ZDIFFSTORE to 2 z same
            |ZRANGESTORE z same 0 1|ZMOVE z same MIN|BZMOVE z same MAX 1|ZMOVEMEMBER z to MEMBERS 2 a b
            |ZUNIONSTORE z 2 z set|GEOADD places 13 38 a 15 37 b|GEORADIUS places 15 37 200 km STORE near
            |GEORADIUSBYMEMBER places a 200 km STORE z|GEOSEARCHSTORE z places FROMMEMBER a BYRADIUS 200 km
            |SORT z BY nosort STORE same
            |HSET h f 9|HMSET h f 9 k 8|HSETNX h new 1|HINCRBY h f 3|HINCRBYFLOAT h f 0.5|HDEL h f
            |HEXPIRE h 0 FIELDS 1 f|HPEXPIRE h 0 FIELDS 1 f|HEXPIREAT h 1 FIELDS 1 f|HPEXPIREAT h 1 FIELDS 1 f
            |HPERSIST h FIELDS 1 f|HGETEX h EX 100 FIELDS 1 f|HSETEX h EX 100 FIELDS 2 f 7 n 6
            |HGETDEL h FIELDS 1 f""".replace("\n", " ").split("|")}
        raw = self.source.raw_client()
        table = {row[0].decode().upper(): row for row in raw.execute_command("COMMAND")}
        tried = 0
        for name, row in sorted(table.items()):
            flags, categories = ([bytes(word) for word in row[at]] for at in (2, 6))
            if b"write" not in flags or not {b"@sortedset", b"@hash", b"@geo"} & set(categories):
                continue
            self.assertIn(name, forms, "this command of the source is tried nowhere: give it a line")
            self.old.flushall()
            self.old.zadd("z", {"a": 1, "b": 2, "c": 3, "d": 3})
            self.old.zadd("same", {"a": 7, "b": 7, "c": 7})
            self.old.sadd("set", "a", "x")
            self.old.hset("h", mapping={"f": 5, "k": "v"})
            self.old.geoadd("places", (13.4, 38.1, "a"))
            self.old.geoadd("places", (15.1, 37.5, "b"))
            raw.execute_command(*forms[name])
            raw.execute_command("ZADD", "to", 1, "behind")
            follow.wait_for_offset(self.old, self.ours)
            self.assert_equal_to_source()
            tried += 1
        self.assertGreater(tried, 20)

    def test_a_command_that_takes_the_place_of_a_board(self):
        self.start()
        self.follow()
        for line in ("SET z 1", "SETEX z 50 1", "GETSET z 1", "MSET a 1 z 2", "BITOP OR z text text", "RENAME list z",
                     "SINTERSTORE z set set", "SORT list STORE z", "SPOP set", "RPOPLPUSH list list", "PFADD count 1"):
            self.old.flushall()
            self.old.zadd("z", {"a": 1})
            self.old.zadd("lasting", {"a": 1})
            self.old.set("text", "x")
            self.old.rpush("list", 1, 2)
            self.old.sadd("set", "a", "b")
            if line.startswith("GETSET"):
                self.old.set("z", 1)
            self.old.execute_command(*line.split())
            follow.wait_for_offset(self.old, self.ours)
            self.assert_equal_to_source()
            self.old.execute_command("DEL", "z")
            self.old.zadd("z", {"later": 5})
            follow.wait_for_offset(self.old, self.ours)
            self.assert_equal_to_source()

    def test_ties_stay_in_order_of_arrival_when_others_leave(self):
        self.start()
        self.follow()
        for name in ("m", "z", "a", "k", "b", "y"):
            self.old.zadd("board", {name: 7})
            self.old.zadd("board", {f"low {name}": 1})
        self.old.zremrangebyrank("board", 0, 5)
        self.old.zremrangebylex("board", "[b", "[b")
        self.old.zpopmax("board")
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.ours.zrevrange("board", 0, -1), [b"m", b"a", b"k", b"y"])
        self.assertGreaterEqual(follow.source_info(self.ours)["source_asked_keys"], 1)
        self.assertEqual(follow.source_info(self.ours)["source_open_keys"], 0)

    def test_a_large_board_is_asked_for_while_others_go_on(self):
        count = 20000 if SHORT else 1000000
        self.start()
        pipe = self.old.pipeline(transaction=False)
        for number in range(count):
            pipe.execute_command("ZADD", "large", number % 1000, f"player:{number}")
            if number % 10000 == 9999:
                pipe.execute()
        self.follow()
        for number in range(50):
            self.old.zpopmin("large", 7)
            self.old.zadd("large", {f"new:{number}": 5})
            self.old.zincrby("small", 1, "ann")
        follow.wait_for_offset(self.old, self.ours)
        self.assert_equal_to_source()
        self.assertEqual(self.ours.zscore("small", "ann"), 50)

    def test_a_large_board_that_is_popped_all_the_time_is_asked_for_a_megabyte_a_second(self):
        count = 20000 if SHORT else 200000
        self.start()
        for begin in range(0, count, 1000):
            self.old.zadd("large", {f"player:{number}": number for number in range(begin, begin + 1000)})
        self.follow()
        size = len(self.old.dump("large"))
        self.old.config_resetstat()
        begin = time.monotonic()
        while time.monotonic() < begin + (2 if SHORT else 15):
            for name, score in self.old.zpopmin("large"):
                self.old.zadd("large", {name: score + count})
            time.sleep(0.002)
        asked = self.old.info("commandstats")["cmdstat_dump"]["calls"] * size
        self.assertLess(asked, (time.monotonic() - begin) * 1000000 + 3 * size)
        follow.cut_over(self.old, self.ours)
        self.assert_equal_to_source()

    def test_a_source_that_closes_idle_connections(self):
        self.old.zadd("board", {"ann": 1, "bob": 2, "cid": 3})
        self.old.config_set("timeout", 1)
        self.start()
        self.follow()
        for left in (2, 1):
            time.sleep(2.5)
            self.old.zpopmin("board")
            follow.wait_for_offset(self.old, self.ours)
            self.assertEqual(self.ours.zcard("board"), left)
        self.assertEqual(follow.source_info(self.ours)["source_full_syncs"], 1)
        self.assertNotIn("cannot be asked", self.server.log.read_text())

    def test_a_transaction_with_keys_that_are_asked_for(self):
        self.start()
        self.follow()
        pipe = self.old.pipeline(transaction=True)
        for line in ("ZADD a 1 x 2 y", "ZPOPMIN a", "RENAME a b", "ZADD a 9 z", "COPY b c", "ZUNIONSTORE d 2 a b",
                     "ZADD d 100 later", "DEL b", "PEXPIRE d 100000000", "MOVE c 3", "HSET h f 1", "RENAME h a"):
            if servers.knows(self.old, line.split()[0]):
                pipe.execute_command(*line.split())
        pipe.execute()
        follow.wait_for_offset(self.old, self.ours)
        self.assert_equal_to_source()

    def test_the_role_is_taken_with_a_question_that_nobody_answers(self):
        """The source hangs, and takes the role with it: it is said, and what is here is used."""
        self.start()
        self.old.zadd("board", {"ann": 1, "bob": 2})
        self.follow()
        pipe = self.old.pipeline(transaction=False)
        pipe.zpopmin("board")
        pipe.execute()
        self.source.process.send_signal(signal.SIGKILL)
        follow.wait_until(lambda: not follow.is_following(self.ours))
        self.assertEqual(self.ours.execute_command("REPLICAOF", "NO", "ONE"), b"OK")
        follow.wait_until(lambda: self.ours.info("replication")["role"] == "master")
        self.assertEqual(self.ours.zadd("mine", {"ann": 1}), 1)

    # ---- what stops it ----

    def assert_stopped(self, *words):
        follow.wait_until(lambda: follow.source_info(self.ours).get("source_state") == "stopped")
        error = follow.source_info(self.ours)["master_link_error"]
        for word in words:
            self.assertIn(word, error)
            self.assertIn(word, self.server.log.read_text())
        self.assertEqual(self.ours.execute_command("ROLE")[3], b"stopped")

    def test_a_score_that_the_board_cannot_hold(self):
        self.start()
        self.old.zadd("board", {"ann": 1})
        self.follow()
        self.old.zadd("board", {"bob": 0.5, "cid": 2})
        self.old.zadd("board", {"dan": 3})
        self.assert_stopped("'board'", "'bob'", "0.5")
        self.assertEqual(self.ours.zrange("board", 0, -1), [b"ann"])
        with self.assertRaises(redis.exceptions.ReadOnlyError):
            self.ours.zadd("board", {"ann": 2})
        self.old.zrem("board", "bob")
        self.follow()
        self.assert_equal_to_source()

    def test_a_copy_that_cannot_be_held_leaves_everything(self):
        self.start()
        self.ours.zadd("mine", {"ann": 1})
        self.ours.hset("profile", "a", "b")
        self.old.zadd("first", {"ann": 1})
        self.old.zadd("board", {"bob": 1e300})
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.source.port)
        self.assert_stopped("'board'", "'bob'")
        self.assertEqual((self.ours.keys("*") and sorted(self.ours.keys("*")),
                          self.ours.zscore("mine", "ann")), ([b"mine", b"profile"], 1))
        self.ours.execute_command("REPLICAOF", "NO", "ONE")
        self.assertEqual(self.ours.zadd("mine", {"bob": 1}), 1)

    def test_a_source_that_denies_what_it_is_asked(self):
        """Said at the start, and what is here stays."""
        self.start("--masteruser", "mover", "--masterauth", "secret")
        self.ours.zadd("mine", {"ann": 1})
        rights = "+psync +replconf +ping +select +multi +exec +info +type +dump +pttl +pexpiretime +command".split()
        if not servers.knows(self.old, "PEXPIRETIME"):  # before Redis 7
            rights.remove("+pexpiretime")
        for missing in ("dump", "type", "command", "info", "multi"):
            self.old.execute_command("ACL", "SETUSER", "mover", "reset", "on", ">secret", "~*", "&*"
                                     if servers.knows(self.old, "COPY") else "~*",
                                     *(right for right in rights if right != f"+{missing}"))
            self.ours.execute_command("REPLICAOF", "127.0.0.1", self.source.port)
            self.assert_stopped(missing.upper(), "NOPERM", f"+{missing}")
            self.assertEqual(self.ours.zscore("mine", "ann"), 1)
            self.ours.execute_command("REPLICAOF", "NO", "ONE")
        self.old.execute_command("ACL", "SETUSER", "mover", "reset", "on", ">secret", "~board:*", *rights)
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.source.port)
        self.assert_stopped("NOPERM", "~*")

    # ---- what is passed over ----

    def test_other_types_are_counted(self):
        self.start()
        self.old.set("text", 1)
        self.old.rpush("list", 1, 2)
        self.old.sadd("set", 1)
        self.old.zadd("board", {"ann": 1})
        self.follow()
        self.old.xadd("stream", {"a": 1})
        self.old.sadd("set", 2)
        listener = self.ours.pubsub()
        listener.subscribe("news")
        self.assertEqual(listener.get_message(timeout=5)["type"], "subscribe")
        self.old.publish("news", "hello")
        follow.wait_for_offset(self.old, self.ours)
        info = follow.source_info(self.ours)
        self.assertEqual([info.get(f"source_skipped_keys_{kind}") for kind in
                          ("strings", "lists", "sets")], [1, 1, 1])
        self.assertEqual(info["source_skipped_command_xadd"], 1)
        self.assertEqual(listener.get_message(timeout=5)["data"], b"hello")
        self.assertEqual(self.ours.keys("*"), [b"board"])

    def test_tls(self):
        certificate, key = map(str, make_certificate(alternative="IP:127.0.0.1"))
        port = hold_port()
        try:
            self.old.execute_command("CONFIG", "SET", "tls-cert-file", certificate, "tls-key-file", key,
                                     "tls-ca-cert-file", certificate, "tls-auth-clients", "no", "tls-port", port)
        except redis.ResponseError as error:
            self.skipTest(f"redis-server has no TLS: {error}")
        self.old.zadd("board", {name: 1 for name in names(3000)})
        self.start("--tls-replication", "yes", "--tls-ca-cert-file", certificate)
        self.ours.execute_command("REPLICAOF", "localhost", port)
        follow.wait_until(lambda: "does not name the host" in str(
            follow.source_info(self.ours).get("master_link_error")))
        self.ours.execute_command("REPLICAOF", "127.0.0.1", port)
        follow.wait_until_it_follows(self.ours)
        self.old.zadd("board", {"later": 2})
        self.old.zremrangebyrank("board", 100, 150)
        self.old.zunionstore("sum", ["board", "board"])
        follow.wait_for_offset(self.old, self.ours)
        self.assert_equal_to_source()

    def test_a_password_and_a_name(self):
        self.start("--masteruser", "mover", "--masterauth", "secret")
        self.assertEqual(self.run_page(1), ["OK"])
        self.old.config_set("requirepass", "other")
        self.old = redis.Redis(port=self.source.port, password="other")
        self.old.zadd("board", {"ann": 1})
        self.follow()
        self.old.zadd("board", {"bob": 2, "cid": 0})
        self.old.zpopmin("board")
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.ours.zrange("board", 0, -1), [b"ann", b"bob"])
