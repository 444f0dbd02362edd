"""What only newer versions of Redis and Valkey have: it is followed, passed over and counted, or an error."""
import tempfile
import time
from pathlib import Path

import redis

import follow
import servers
from test_dump import run_import
from test_follow import Followed as Following


class Newer(Following):
    """The source's commands decide what is tried; a version that does not know them skips the test."""

    def knows(self, *commands):
        for command in commands:
            if not servers.knows(self.old, command):
                self.skipTest(f"this version has no {command}")

    def is_equal(self):
        follow.wait_for_offset(self.old, self.ours)
        self.assert_equal_to_source()

    def skipped(self, name):
        return follow.source_info(self.ours).get(f"source_skipped_command_{name}", 0)

    def fill_hash(self):
        self.old.execute_command("HSET", "profile", *"a 1 b 2 c 3 d 4 e 5".split())
        self.old.execute_command("HEXPIRE", "profile", 1000, "FIELDS", 2, "a", "b")

    def test_fields_that_expire(self):
        self.knows("HEXPIRE")
        for entries in ("512", "0"):  # packed, and as a table
            self.old.execute_command("CONFIG", "SET", "hash-max-listpack-entries", entries)
            self.old.execute_command("DEL", "profile")
            self.fill_hash()
            self.start()
            self.follow()
            self.assertEqual(follow.source_info(self.ours)["source_fields_without_expiry"], 2)
            self.is_equal()
            self.old.execute_command("HPEXPIRE", "profile", 20, "FIELDS", 1, "c")
            self.old.execute_command("HEXPIRE", "profile", 0, "FIELDS", 1, "d")
            follow.wait_until(lambda: self.old.execute_command("HLEN", "profile") == 3)
            self.is_equal()
            self.assertGreaterEqual(self.skipped("hpexpireat"), 1)
            self.old.execute_command("HPERSIST", "profile", "FIELDS", 1, "a")
            self.is_equal()
            follow.cut_over(self.old, self.ours)
            self.old.execute_command("CLIENT", "UNPAUSE")
            self.assertEqual(self.server.stop(), 0)

    def test_fields_that_are_set_and_read_with_an_expiry(self):
        self.knows("HSETEX", "HGETEX", "HGETDEL")
        self.start()
        self.fill_hash()
        self.follow()
        for line in ("HSETEX profile EX 100 FIELDS 2 f 6 g 7", "HSETEX profile FNX EX 100 FIELDS 1 h 8",
                     "HSETEX profile FXX KEEPTTL FIELDS 1 f 9", "HSETEX profile FXX EX 9 FIELDS 1 no 1",
                     "HSETEX other EX 100 FIELDS 1 a 1", "HSETEX profile PXAT 1 FIELDS 1 g 7",
                     "HGETEX profile EX 100 FIELDS 1 a", "HGETEX profile PERSIST FIELDS 1 a",
                     "HGETEX profile PXAT 1 FIELDS 1 b", "HGETDEL profile FIELDS 3 c d no",
                     "HGETDEL other FIELDS 1 a", "HGETDEL missing FIELDS 1 a"):
            self.old.execute_command(*line.split())
            self.is_equal()

    def test_what_overwrites_and_removes_any_key(self):
        for line in ("MSETEX 2 board 1 other 2 EX 100", "DELEX board", "DELEX board IFEQ 1",
                     "DELIFEQ board 1", "SET board 2 IFEQ 1"):
            if not servers.knows(self.old, line.split()[0]):
                continue
            self.start()
            self.old.execute_command("DEL", "board", "other")
            self.old.zadd("board", {"ann": 1})
            self.old.zadd("lasting", {"ann": 1})
            self.follow()
            self.assertEqual(self.ours.zcard("board"), 1)
            if "IFEQ" in line:  # it is about strings
                self.old.execute_command("SET", "board", 1)
            try:
                self.old.execute_command(*line.split())
            except redis.ResponseError:
                continue  # SET has no IFEQ yet
            self.is_equal()
            self.assertEqual(self.ours.exists("board"), 0, line)
            self.assertEqual(self.server.stop(), 0)

    def fill_streams(self):
        for number in range(200):
            self.old.execute_command("XADD", "stream", "*", "a", number)
            for key, words in (("unique", ["IDMP", f"producer {number % 3}", f"id {number}"]),
                               ("unique", ["IDMPAUTO", "another"])):
                try:
                    self.old.execute_command("XADD", key, *words, "*", "a", number)
                except redis.ResponseError:
                    pass  # newer than this version
        self.old.execute_command("XGROUP", "CREATE", "stream", "group", 0)
        self.old.execute_command("XREADGROUP", "GROUP", "group", "reader", "COUNT", 50, "STREAMS",
                                 "stream", ">")

    def test_other_types_are_passed_over(self):
        self.fill_streams()
        for line in ("RPUSH list a 1 b", "SADD set a b", "SADD numbers 1 2 3", "PFADD count a b",
                     "SET text x", "VADD vectors VALUES 2 1 1 element",
                     "JSON.SET document $ 1", "TS.ADD series * 1", "BF.ADD filter a"):
            try:
                self.old.execute_command(*line.split())
            except redis.ResponseError:
                pass  # of modules that are not here
        self.old.zadd("board", {f"m{i}": i for i in range(1000)})
        self.start()
        self.follow()
        self.assertGreaterEqual(follow.source_info(self.ours)["source_skipped_keys_streams"], 1)
        self.fill_more()
        self.is_equal()

    def fill_more(self):
        self.old.execute_command("XADD", "stream", "*", "a", 1)
        self.old.execute_command("ZADD", "board", 5, "later")

    def test_an_import_leaves_out_what_has_expired(self):
        self.knows("HEXPIRE")
        self.fill_hash()
        self.old.execute_command("HPEXPIRE", "profile", 300, "FIELDS", 1, "c")
        self.old.save()
        time.sleep(0.4)
        with tempfile.TemporaryDirectory(prefix="leaderboard-dump-") as directory:
            done = run_import(str(Path(self.source.directory) / "dump.rdb"), directory)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("expired: 1 fields of hashes; without expiry now: 2", done.stdout)
            self.start()
            self.assertEqual(self.server.stop(), 0)

    def test_restore_refuses_fields_that_expire(self):
        self.knows("HEXPIRE")
        self.fill_hash()
        self.start()
        payload = self.old.dump("profile")
        with self.assertRaisesRegex(redis.ResponseError, "only whole keys expire here"):
            self.ours.restore("profile", 0, payload)
        with self.assertRaisesRegex(redis.ResponseError, "only whole keys expire here"):
            self.old.execute_command("MIGRATE", "127.0.0.1", self.server.port, "profile", 0, 5000)
        self.assertEqual((self.ours.exists("profile"), self.old.execute_command("EXISTS", "profile")), (0, 1))
        self.old.execute_command("HPERSIST", "profile", "FIELDS", 2, "a", "b")
        self.old.execute_command("MIGRATE", "127.0.0.1", self.server.port, "profile", 0, 5000)
        self.assertEqual(self.ours.hlen("profile"), 5)

    def test_every_way_in_which_a_copy_is_sent(self):
        """With and without its disk, on the link or on one of its own."""
        self.old.zadd("board", {f"m{i}": i for i in range(5000)})
        self.old.execute_command("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', "
                                 "function() return 1 end)") if servers.knows(self.old, "FUNCTION") else None
        for name, values in (("repl-diskless-sync", ("yes", "no")),
                             ("repl-rdb-channel", ("yes", "no")),
                             ("dual-channel-replication-enabled", ("yes", "no")),
                             ("rdbcompression", ("no", "yes")), ("rdbchecksum", None)):
            if values is None or not self.old.config_get(name):
                continue
            for value in values:
                self.old.config_set(name, value)
                self.start()
                self.follow()
                self.old.zadd("board", {"later": time.time() // 1})
                self.is_equal()
                self.assertEqual(self.server.stop(), 0)


for name in dir(Following):  # they run where they are
    if name.startswith("test_"):
        setattr(Newer, name, None)
del Following
