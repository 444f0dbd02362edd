"""What a board is in redis-server: types, keys, events, waiting, memory, files and copies of it."""
import random
import re
import subprocess
import threading
import unittest
from datetime import datetime, timezone
from pathlib import Path

import redis

from connection import Connection
from crc import Crc
from hosts import MODULE, MODULE_TEST, Server, Changes, Host, Hosted, SHORT, settled, wait_until

COUNT = 2000 if SHORT else 100000


class Lazily(unittest.TestCase):
    def test_the_host_frees_later_what_commands_remove(self):
        """The default of Valkey 8 and later."""
        host = Host("--lazyfree-lazy-server-del", "yes", "--lazyfree-lazy-expire", "yes",
                    "--lazyfree-lazy-user-del", "yes", "--lazyfree-lazy-user-flush", "yes")
        self.addCleanup(host.stop)
        client = host.client(decode_responses=True)
        for count in (1, 300, 20000):
            board = {f"user:{i}": i for i in range(count)}
            for _ in range(2):
                client.execute_command("LB.ADD", "m:1", "TAG", "country", "DE", "TAG", "clan", f"clan {count}",
                                       *[word for pair in board.items() for word in reversed(pair)])
                client.zadd("m:2", {"ann": 1})
                self.assertEqual(client.zunionstore("m:1", ["m:2"]), 1)
                client.zadd("m:1", board)
                self.assertEqual(client.zremrangebyrank("m:1", 0, -1), count + 1)
                self.assertEqual(client.exists("m:1"), 0)
                client.zadd("m:1", board)
                client.delete("m:2")
                client.execute_command("LB.ROLL", "m:1", "m:2")
                self.assertEqual(client.zcard("m:2"), count)
                client.zadd("m:3", {**board, "zoe": 1})
                client.execute_command("LB.FORGET", "user:0", "MATCH", "m:3")
                client.pexpire("m:2", 1)
                client.rename("m:3", "m:4")
                self.assertEqual(client.copy("m:4", "m:1", replace=True), True)
                client.delete("m:4")
                client.flushall()
        wait_until(lambda: client.info("memory")["lazyfree_pending_objects"] == 0, "freed")
        self.assertEqual(client.ping(), True)

    def test_what_a_large_removal_leaves_is_freed_in_steps(self):
        """Whatever comes meanwhile, on a replica, too."""
        count, kept = 40000, 50
        host = Host("--save", "")
        self.addCleanup(host.stop)
        replica = Host("--replicaof", f"127.0.0.1 {host.port}")
        self.addCleanup(replica.stop)
        client = host.client(decode_responses=True)
        names = [f"user:{i}" for i in range(count)]
        for at in range(0, count, 1000):
            client.execute_command("LB.ADD", "m:all", "TAG", "clan", f"clan {at % 9000}", *[
                word for i in range(at, at + 1000) for word in (count - i, names[i])])
        members = lambda key: client.execute_command("LB.ZREVRANGE", key, 0, -1)
        size = lambda key: client.memory_usage(key)
        whole = size("m:all")
        removals = [["LB.ALTER", "m:1", "CAP", kept], ["ZREMRANGEBYRANK", "m:1", 0, -1 - kept],
                    ["ZREMRANGEBYSCORE", "m:1", "-inf", count - kept]]
        meanwhile = [[], ["RENAME", "m:1", "m:2"], ["COPY", "m:1", "m:2"], ["UNLINK", "m:1"], ["DEL", "m:1"],
                     ["FLUSHALL", "ASYNC"], ["DEBUG", "RELOAD"], ["ZUNIONSTORE", "m:1", 1, "m:all"],
                     ["ZADD", "m:1", *[word for i in range(kept, 5000) for word in (count - i, names[i])]],
                     ["ZREMRANGEBYRANK", "m:1", 0, -1], ["LB.ROLL", "m:1", "m:2"]]
        payload = host.client().dump("m:all")
        for i, then in enumerate(meanwhile):
            client.flushall()
            host.client().restore("m:all", 0, payload)
            client.copy("m:all", "m:1")
            pipe = client.pipeline(transaction=True)
            pipe.execute_command(*removals[i % len(removals)])
            pipe.memory_usage("m:1")
            self.assertGreater(pipe.execute()[1], whole / 4, then[:2])
            self.assertEqual(members("m:1"), names[:kept], then[:2])
            if then:
                client.execute_command(*then)
            left = {key: members(key) for key in ("m:1", "m:2")}
            expected = {"ZADD": names[:5000], "ZUNIONSTORE": names}.get(then[0] if then else "", names[:kept])
            if not then or then[0] not in ("UNLINK", "DEL", "FLUSHALL", "ZREMRANGEBYRANK"):
                self.assertIn(expected, left.values())
            if then[:1] != ["ZUNIONSTORE"]:
                wait_until(lambda: all(not left[key] or size(key) < whole / 4 for key in left), "it is freed")
            self.assertEqual({key: members(key) for key in left}, left, then[:2])
            settled(host, replica)
            self.assertEqual(host.digest(), replica.digest(), then[:2])
        self.assertEqual(client.ping(), True)


class InACluster(unittest.TestCase):
    def test_the_board_of_since_is_in_the_slot(self):
        host = Host("--cluster-enabled", "yes", is_cluster=True)
        self.addCleanup(host.stop)
        client = host.client(decode_responses=True)
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: "cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), "a cluster")
        client.execute_command("LB.CREATE", "{s}:now", "FIELD", "p", 20, "PERIOD", "DAY", "COPY")
        client.execute_command("LB.ADD", "{s}:now", 9, "SINCE", 8, "ann")
        client.execute_command("LB.ADD", "{s}:then", 9, "ann")
        read = ["LB.GET", "{s}:now", 2, "SINCE", "ann", "SINCE"]
        since = lambda *words: [record[-1] for record in client.execute_command(*words)]
        self.assertEqual(since(*read, "{s}:then"), [None, 0])
        self.assertEqual(since(*read, "LAST"), [None, None])
        self.assertEqual(since("LB.RANGE", "{s}:now", 0, 0, "SINCE", "{s}:then"), [None])
        for other in "then", "{t}:then":
            with self.assertRaisesRegex(redis.ResponseError, "slot"):
                client.execute_command(*read, other)
        with self.assertRaisesRegex(redis.ResponseError, "tag"):
            client.execute_command("LB.CREATE", "now", "FIELD", "p", 20, "PERIOD", "DAY", "COPY")


class Loading(unittest.TestCase):
    def setUp(self):
        self.host = Host("--enable-module-command", "yes", boards=None)
        self.addCleanup(self.host.stop)
        self.client = self.host.client(decode_responses=True)

    def load(self, path, *words):
        return self.client.execute_command("MODULE", "LOAD", path, *words)

    def expect_refusal(self, why, path, *words):
        with self.assertRaisesRegex(redis.ResponseError, "rror loading the extension"):
            self.load(path, *words)
        self.assertIn(why, self.host.log.read_text())
        self.assertEqual(self.client.ping(), True)

    def test_a_module_that_is_there_is_not_loaded_again(self):
        """From the same file, or from a copy of it."""
        copy = Path(self.host.directory, "copy.so")
        copy.write_bytes(Path(MODULE).read_bytes())
        self.load(MODULE, "board", "daily:*", "default")
        self.client.zadd("daily:1", {"ann": 7})
        modules = self.client.module_list()
        for path in str(MODULE), str(copy), str(MODULE):
            self.expect_refusal("it is loaded already", path, "board", "other", "default")
        self.assertEqual(self.client.module_list(), modules)
        self.client.zincrby("daily:1", 2, "ann")
        self.client.zadd("other", {"ann": 7})
        self.assertEqual((self.client.zscore("daily:1", "ann"), self.client.object("ENCODING", "other")), (9, "listpack"))

    def test_what_a_refused_module_began_is_undone(self):
        self.expect_refusal("'leyout': arguments begin with", MODULE, "leyout", "daily:*")
        self.expect_refusal("there is no layout 'money'", MODULE, "board", "daily:*", "money")
        self.client.zadd("daily:1", {"ann": 7})
        self.assertEqual(self.client.object("ENCODING", "daily:1"), "listpack")
        self.client.delete("daily:1")
        self.load(MODULE, "board", "daily:*", "default")
        self.client.zadd("daily:1", {"ann": 7})
        self.assertEqual(self.client.execute_command("LB.ZREVRANK", "daily:1", "ann"), 0)


class Alone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host("--notify-keyspace-events", "KEA", "--enable-module-command", "yes")
        cls.addClassCleanup(cls.host.stop)
        cls.client = cls.host.client(decode_responses=True)

    def setUp(self):
        self.client.flushall()

    def expect_error(self, text, *command):
        with self.assertRaisesRegex(redis.ResponseError, text):
            self.client.execute_command(*command)

    def test_existing_commands_reach_boards_by_pattern(self):
        self.assertEqual(self.client.zadd("daily:1", {"ann": 7, "bob": 7, "kim": 9}), 3)
        self.assertEqual(self.client.zrevrange("daily:1", 0, -1), ["kim", "ann", "bob"])
        self.assertEqual(self.client.type("daily:1"), "zset")
        self.assertEqual(self.client.execute_command("LB.ZREVRANK", "daily:1", "bob"), 2)
        record = self.client.execute_command("LB.GET", "daily:1", 1, "bob")[0]
        self.assertEqual((record[0], record[1], record[3]), ("bob", 2, 7))
        self.client.zadd("other", {"ann": 7})
        self.assertEqual(self.client.object("ENCODING", "other"), "listpack")

    def test_a_board_and_a_sorted_set_are_of_different_types(self):
        self.client.zadd("other", {"ann": 7})
        self.client.execute_command("LB.ZADD", "daily:1", 1, "ann")
        self.expect_error("WRONGTYPE", "LB.ZADD", "other", 1, "bob")
        self.expect_error("WRONGTYPE", "LB.ZCARD", "other")
        self.client.set("daily:text", "x")
        self.expect_error("WRONGTYPE", "ZADD", "daily:text", 1, "x")
        self.assertEqual(self.client.get("daily:text"), "x")
        # A destination is replaced, whatever it was, as in Redis.
        self.client.execute_command("ZUNIONSTORE", "daily:text", 1, "daily:1")
        self.assertEqual(self.client.zrange("daily:text", 0, -1), ["ann"])

    def test_events_come_after_the_change(self):
        listener = self.client.pubsub(ignore_subscribe_messages=True)
        listener.psubscribe("__keyevent@0__:*")
        wait_until(lambda: self.client.pubsub_numpat() == 1, "it listens")
        self.client.zadd("daily:1", {"ann": 7})
        self.client.zincrby("daily:1", 1, "ann")
        self.client.zrem("daily:1", "ann")
        seen = []
        wait_until(lambda: [seen.append(m["channel"].split(":")[1]) for m in
                            [listener.get_message(timeout=0.1)] if m] is not None and
                   "del" in seen, "events")
        self.assertEqual([event for event in seen if event != "new"], ["zadd", "zincr", "zrem", "del"])

    def test_watch_sees_changes_and_nothing_else(self):
        with self.client.pipeline() as pipe:
            self.client.zadd("daily:1", {"ann": 7})
            pipe.watch("daily:1")
            self.client.zadd("daily:1", {"ann": 7})  # unchanged
            self.client.zrange("daily:1", 0, -1)
            pipe.multi()
            pipe.zadd("daily:1", {"ann": 8})
            self.assertEqual(pipe.execute(), [0])
            pipe.watch("daily:1")
            self.client.zadd("daily:1", {"ann": 9})
            pipe.multi()
            pipe.zadd("daily:1", {"ann": 10})
            with self.assertRaises(redis.WatchError):
                pipe.execute()

    def test_waiting_for_a_member(self):
        got = []
        waiting = threading.Thread(target=lambda: got.append(
            self.host.client(decode_responses=True).bzpopmin(["daily:1", "daily:2"], 20)))
        waiting.start()
        wait_until(lambda: self.client.info("clients")["blocked_clients"] == 1, "it waits")
        self.client.zadd("daily:2", {"ann": 7, "bob": 8})
        waiting.join()
        self.assertEqual([(got[0][0], got[0][1], float(got[0][2]))], [("daily:2", "ann", 7.0)])
        self.assertEqual(self.client.zrange("daily:2", 0, -1), ["bob"])
        self.assertIsNone(self.client.bzpopmax("daily:9", 0.05))
        pipe = self.client.pipeline(transaction=True)
        pipe.bzpopmax("daily:9", 0)
        self.assertEqual(pipe.execute(), [None])

    def raw(self, protocol=2):
        connection = Connection(self.host, protocol)
        self.addCleanup(connection.close)
        return connection

    def test_numbers_of_resp3_are_exact(self):
        client = self.raw(3)
        for score in (b"9223372036854775807", b"-9223372036854775808", b"12345678901234567"):
            client.ask("LB.CREATE", "daily:wide", "FIELD", "score", 64, "SIGNED")
            client.ask("ZADD", "daily:wide", score, "ann")
            self.assertEqual(client.ask("ZSCORE", "daily:wide", "ann"), score)
            self.assertEqual(client.ask("LB.GET", "daily:wide", 1, "ann", "WITHKEY")[0][0], b"ann")
        client.ask("LB.CREATE", "daily:fine", "FIELD", "score", 64, "SIGNED", "SCALE", 4)
        client.ask("ZADD", "daily:fine", "922337203685477.5807", "ann", "0.1", "bob", "12.25", "kim")
        self.assertEqual(client.ask("ZSCORE", "daily:fine", "ann"), b"922337203685477.5807")
        self.assertEqual([client.ask("ZSCORE", "daily:fine", name) for name in ("bob", "kim")],
                         [b"0.1", b"12.25"])

    def test_a_hash_is_no_board(self):
        self.client.hset("hash", "points", 1)
        self.expect_error("WRONGTYPE", "LB.DUMP", "hash")
        payload = self.raw().ask("DUMP", "hash")
        self.expect_error("hash", "LB.RESTORE", "daily:1", 0, payload)
        self.assertEqual(self.client.exists("daily:1"), 0)

    def test_keys_of_a_board_in_acl(self):
        self.client.execute_command("ACL", "SETUSER", "player", "on", "nopass", "~daily:1",
                                    "+lb.zadd", "+lb.zunionstore")
        player = self.host.client(username="player", password="x")
        self.assertEqual(player.execute_command("ZADD", "daily:1", 1, "ann"), 1)
        for command in (["ZADD", "daily:2", 1, "ann"], ["ZRANGE", "daily:1", 0, -1],
                        ["LB.ZUNIONSTORE", "daily:1", 1, "daily:2"]):
            with self.assertRaises(redis.exceptions.NoPermissionError):
                player.execute_command(*command)
        self.client.execute_command("ACL", "DELUSER", "player")

    def expect_rights(self, rights, allowed, denied):
        self.client.execute_command("ACL", "SETUSER", "player", "reset", "on", "nopass", "+@all", rights)
        player = self.host.client(username="player", password="x")
        for command in allowed:
            player.execute_command(*command)
        for command in denied:
            with self.assertRaises(redis.exceptions.NoPermissionError, msg=(rights, command)):
                player.execute_command(*command)
        self.client.execute_command("ACL", "DELUSER", "player")

    def test_rights_to_read_and_to_write(self):
        reads = [["ZREVRANGE", "daily:1", 0, -1], ["ZSCORE", "daily:1", "ann"], ["LB.GET", "daily:1", 1, "ann"],
                 ["LB.RANGE", "daily:1", 0, 1], ["LB.ZUNION", 1, "daily:1"], ["LB.DUMP", "daily:1"],
                 ["LB.INFO", "daily:1"], ["LB.TAGS", "daily:1", "ann"], ["LB.COUNT", "daily:1", "BY", "clan"]]
        writes = [["ZADD", "daily:1", 6, "bob"], ["ZREM", "daily:1", "bob"], ["LB.CREATE", "daily:2", "FIELD", "p", 20]]
        # By IF and its reply LB.TAG shows what is there.
        both = [["LB.TAG", "daily:1", "ann", "clan", "a"], ["ZINCRBY", "daily:1", 1, "ann"], ["ZPOPMIN", "daily:1"],
                ["LB.ZUNIONSTORE", "daily:1", 1, "daily:1"]]
        kind = [["LB.TYPE", "daily:1"]]
        self.client.zadd("daily:1", {"ann": 7, "kim": 9})
        self.client.execute_command("LB.ALTER", "daily:1", "TAG", "clan", 4)
        self.expect_rights("%R~daily:*", reads + kind, writes + both)
        self.assertEqual(self.client.zrange("daily:1", 0, -1, withscores=True), [("ann", 7), ("kim", 9)])
        self.expect_rights("%W~daily:*", writes + kind, reads + both)
        self.assertEqual(self.client.zrange("daily:1", 0, -1, withscores=True), [("ann", 7), ("kim", 9)])
        self.expect_rights("%RW~daily:*", kind + reads + both + writes[:2], [])

    def test_what_is_done_with_keys(self):
        flags = lambda *command: [[key, sorted(what)] for key, what in self.raw().ask(
            "COMMAND", "GETKEYSANDFLAGS", *command)]
        self.assertEqual(flags("LB.ZRANGE", "a", 0, 1), [[b"a", [b"RO", b"access"]]])
        self.assertEqual(flags("LB.ZADD", "a", 1, "x"), [[b"a", [b"RW", b"update"]]])
        self.assertEqual(flags("LB.TAG", "a", "x", "clan", "y"), [[b"a", [b"RW", b"access", b"update"]]])
        self.assertEqual(flags("LB.TAGS", "a", "x", "y"), [[b"a", [b"RO", b"access"]]])
        self.assertEqual(flags("LB.COUNT", "a", "BY", "clan"), [[b"a", [b"RO", b"access"]]])
        self.assertEqual(flags("LB.SUBMIT", 2, "a", "b", "TAG", "clan", "y", 5, "x"),
                         [[b"a", [b"RW", b"access", b"update"]], [b"b", [b"RW", b"access", b"update"]]])
        self.assertEqual(flags("LB.ZUNIONSTORE", "d", 2, "a", "b"),
                         [[b"d", [b"OW", b"update"]], [b"a", [b"RO", b"access"]], [b"b", [b"RO", b"access"]]])
        self.assertEqual(flags("LB.BZMPOP", 0, 2, "a", "b", "MIN"),
                         [[b"a", [b"RW", b"access", b"delete"]], [b"b", [b"RW", b"access", b"delete"]]])
        self.assertEqual(flags("LB.TYPE", "a"), [[b"a", [b"RO"]]])
        self.assertEqual(flags("LB.RANGE", "a", 0, 1, "SINCE", "b"),
                         [[b"a", [b"RO", b"access"]], [b"b", [b"RO", b"access"]]])

    def has_categories(self):
        """Redis 7.0 has none for modules (docs/reference/versions.md)."""
        return self.client.info("server")["redis_version"] >= "7.2"

    def test_our_commands_are_in_the_categories_of_the_server(self):
        server = Server()
        self.addCleanup(server.stop)
        acl_cat = lambda *category: {name.decode() for name in
                                     server.client().execute_command("ACL", "CAT", *category)}
        native = acl_cat("leaderboard")  # LB.INFO is not INFO
        host_name = lambda name: name if name in native or "lb." + name in native else "lb." + name
        # What a container may do its subcommands say.
        ours = sorted(name.decode() for name in self.raw().ask("COMMAND", "LIST")
                      if name.startswith(b"lb.") and name != b"lb.league")
        expected = {category: {host_name(name) for name in acl_cat(category)} & set(ours)
                    for category in acl_cat()}
        for name, categories in (("lb.type", ("keyspace", "read", "fast")),
                                 ("lb.apply", ("write", "admin", "slow", "dangerous")),
                                 ("lb.applystate", ("write", "admin", "slow", "dangerous"))):
            for category in categories:
                expected[category].add(name)
        self.assertIn("lb.zadd", expected["sortedset"])
        self.assertIn("lb.forget", expected["dangerous"])
        if "leaderboard" not in self.client.execute_command("ACL", "CAT"):
            del expected["leaderboard"]
        infos = self.raw().ask("COMMAND", "INFO", *ours)
        arities = {name: abs(info[1]) for name, info in zip(ours, infos)}
        for category, names in expected.items():
            self.client.execute_command("ACL", "SETUSER", "only", "reset", "on", "allkeys", "+@" + category)
            pipe = self.client.pipeline(transaction=False)
            for name in ours:
                words = name.split("|")
                pipe.execute_command("ACL", "DRYRUN", "only", *words, *["1"] * (arities[name] - len(words)))
            allowed = {name for name, reply in zip(ours, pipe.execute()) if reply in ("OK", True)}
            self.assertEqual(allowed, names if self.has_categories() else set(), category)

    def test_a_user_of_sorted_sets_may_use_boards(self):
        self.client.execute_command("ACL", "SETUSER", "gamer", "reset", "on", "nopass", "allkeys",
                                    "+@sortedset", "-@dangerous")
        player = self.host.client(username="gamer", password="x")
        if self.has_categories():
            self.assertEqual(player.zadd("daily:1", {"ann": 1}), 1)
        else:
            with self.assertRaises(redis.exceptions.NoPermissionError):
                player.zadd("daily:1", {"ann": 1})
        self.client.execute_command("ACL", "SETUSER", "gamer", "+@all", "-@dangerous")
        forget = lambda: player.execute_command("LB.FORGET", "ann")
        if self.has_categories():
            with self.assertRaises(redis.exceptions.NoPermissionError):
                forget()
        else:
            self.assertEqual(forget(), 0)

    def test_what_the_host_says_of_commands(self):
        pairs = lambda flat: dict(zip(flat[::2], flat[1::2]))
        docs = pairs(pairs(self.raw().ask("COMMAND", "DOCS", "LB.ZREVRANGE"))[b"lb.zrevrange"])
        self.assertEqual(docs[b"summary"], b"Members by place, from the highest score down")
        self.assertEqual(docs[b"group"], b"module")
        names = [pairs(argument)[b"name"] for argument in docs[b"arguments"]]
        self.assertEqual(names, [b"key", b"start", b"stop", b"withscores"])
        # Every command has its documentation.
        docs = pairs(self.raw().ask("COMMAND", "DOCS"))
        ours = {name: pairs(about) for name, about in docs.items() if name.startswith(b"lb.")}
        self.assertGreater(len(ours), 50)
        self.assertEqual([name for name, about in ours.items() if b"summary" not in about], [])

    def test_long_replies(self):
        """Around the sizes of the pieces by which they go, and from where the host calls already."""
        self.expect_error("for the module itself", "LB.REPLY")
        members = {f"user:{n:012d}": n for n in range(1200)}
        self.client.zadd("daily:1", members)
        best = [[name, str(score)] for name, score in reversed(members.items())]
        script = "return redis.call('LB.ZREVRANGE', KEYS[1], 0, ARGV[1], 'WITHSCORES')"
        for protocol in (2, 3):
            raw = self.raw()
            raw.ask("HELLO", protocol)
            for count in [*range(1, 50), 100, 300, 500, 600, 1200]:
                command = ["ZREVRANGE", "daily:1", 0, count - 1, "WITHSCORES"]
                flat = [word.encode() for pair in best[:count] for word in pair]
                expected = flat if protocol == 2 else [list(pair) for pair in zip(flat[::2], flat[1::2])]
                self.assertEqual(raw.ask(*command), expected, (protocol, count))
                self.assertEqual(raw.ask("EVAL", script, 1, "daily:1", count - 1), flat)
                self.assertEqual(raw.ask("MULTI"), b"OK")
                raw.ask(*command)
                raw.ask("ZCARD", "daily:1")
                self.assertEqual(raw.ask("EXEC"), [expected, 1200])

    def test_a_long_reply_is_one_command(self):
        """In MONITOR, SLOWLOG and the host's statistics."""
        self.client.zadd("daily:1", {f"user:{n:012d}": n for n in range(100)})
        self.client.config_resetstat()
        self.client.config_set("slowlog-log-slower-than", 0)
        self.client.slowlog_reset()
        with self.client.monitor() as monitor:
            self.client.zrevrange("daily:1", 0, -1)
            self.client.echo("end")
            seen = []
            while not seen or "end" not in seen[-1]:
                seen.append(monitor.next_command()["command"])
        self.client.config_set("slowlog-log-slower-than", 10000)
        slow = [str(entry["command"]) for entry in self.client.slowlog_get(100)]
        self.assertTrue(any("ZREVRANGE" in entry for entry in slow), slow)
        self.assertFalse(any("LB.REPLY" in entry for entry in seen + slow), (seen, slow))
        self.assertNotIn("cmdstat_lb.reply", self.client.info("commandstats"))

    def test_where_keys_are(self):
        self.client.set_response_callback("COMMAND", lambda reply, **_: reply)
        keys = lambda *command: self.client.execute_command("COMMAND", "GETKEYS", *command)
        self.assertEqual(keys("LB.ZADD", "a", 1, "x"), ["a"])
        self.assertEqual(keys("LB.ZUNIONSTORE", "d", 2, "a", "b"), ["d", "a", "b"])
        self.assertEqual(keys("LB.ZMPOP", 2, "a", "b", "MIN"), ["a", "b"])
        self.assertEqual(keys("LB.SUBMIT", 2, "a", "b", 5, "ann"), ["a", "b"])
        self.assertEqual(keys("LB.SUBMIT", 2, "a", "b", "TAG", "clan", "c", 5, "ann"), ["a", "b"])
        self.assertEqual(keys("LB.TAG", "a", "ann", "clan", "c", "IF", "clan", ""), ["a"])
        self.assertEqual(keys("LB.TAGS", "a", "ann", "bob"), ["a"])
        self.assertEqual(keys("LB.COUNT", "a", 0, 9, "BY", "clan", "WHERE", "class", "c"), ["a"])
        self.assertEqual(keys("LB.GET", "a", 2, "SINCE", "x", "SINCE", "b", "PCT"), ["a", "b"])
        self.assertEqual(keys("LB.GET", "a", 2, "SINCE", "x", "SINCE", "LAST"), ["a"])
        self.assertEqual(keys("LB.AROUND", "a", "MEMBER", "SINCE", 3, "TAGS"), ["a"])

    def test_since(self):
        """Ranks on another board: a key that is read; the newest archive, whose name the server finds."""
        self.client.execute_command("LB.CREATE", "since:1", "FIELD", "p", 20, "PERIOD", "HOUR")
        self.client.execute_command("LB.ADD", "since:1", 3, "ann", 2, "kim")
        self.client.execute_command("LB.CREATE", "since:2", "FIELD", "p", 20)
        self.client.execute_command("LB.ADD", "since:2", 9, "kim", 8, "ann", 7, "bob")
        since = lambda client, *words: [record[-1] for record in client.execute_command(*words)]
        self.assertEqual(since(self.client, "LB.RANGE", "since:2", 0, -1, "SINCE", "since:1"), [1, 0, None])
        self.assertEqual(since(self.client, "LB.RANGE", "since:1", 0, -1, "SINCE", "LAST"), [None, None])
        start = self.client.execute_command("LB.INFO", "since:1")
        start = dict(zip(start[::2], start[1::2]))["period"]
        begun = datetime.fromtimestamp(dict(zip(start[::2], start[1::2]))["start"] / 1000 - 3600, timezone.utc)
        archive = f"since:1@{begun:%Y-%m-%dT%H}"
        self.client.execute_command("COPY", "since:2", archive)
        self.assertEqual(since(self.client, "LB.RANGE", "since:1", 0, -1, "SINCE", "LAST"), [None, None])
        self.client.execute_command("LB.ALTER", archive, "FREEZE")
        self.assertEqual(since(self.client, "LB.RANGE", "since:1", 0, -1, "SINCE", "LAST"), [1, 0])
        self.client.execute_command("ACL", "SETUSER", "player", "on", "nopass", "+@all", "%R~since:1",
                                    "%W~since:2")
        player = self.host.client(username="player", password="x", decode_responses=True)
        self.assertEqual(since(player, "LB.GET", "since:1", 1, "ann", "SINCE", "since:1"), [0])
        for command in (["LB.GET", "since:1", 1, "ann", "SINCE", "since:2"],
                        ["LB.RANGE", "since:1", 0, 0, "SINCE", "LAST"]):
            with self.assertRaises(redis.exceptions.NoPermissionError):
                player.execute_command(*command)
        self.client.execute_command("ACL", "DELUSER", "player")

    def test_memory_is_the_hosts(self):
        before = self.client.info("memory")["used_memory"]
        pipe = self.client.pipeline(transaction=False)
        for i in range(0, 20000, 100):
            pipe.execute_command("ZADD", "daily:big", *[word for j in range(i, i + 100)
                                                        for word in (j, f"user:{j:012d}")])
        pipe.execute()
        grown = self.client.info("memory")["used_memory"] - before
        shown = self.client.memory_usage("daily:big")
        self.assertGreater(grown, 20000 * 17)
        self.assertLess(abs(shown - grown), grown / 5)
        self.client.execute_command("UNLINK", "daily:big")
        wait_until(lambda: self.client.info("memory")["used_memory"] - before < grown / 5, "freed")

    def test_over_maxmemory_is_refused(self):
        self.client.config_set("maxmemory", "1mb")
        try:
            self.expect_error("OOM", "ZADD", "daily:1", 1, "ann")
        finally:
            self.client.config_set("maxmemory", "0")

    def test_the_module_stays_while_its_type_is_there(self):
        self.client.zadd("daily:1", {"ann": 7})
        self.expect_error("exports one or more module-side data types", "MODULE", "UNLOAD", "leaderboard")
        self.assertEqual(self.client.zcard("daily:1"), 1)
        self.assertIn("leaderboard", [module["name"] for module in self.client.module_list()])

    def test_keys_expire_move_and_swap(self):
        self.client.zadd("daily:1", {"ann": 7})
        self.client.expire("daily:1", 100)
        self.client.rename("daily:1", "daily:2")
        self.assertEqual(self.client.zincrby("daily:2", 1, "ann"), 8)
        self.assertGreater(self.client.ttl("daily:2"), 90)
        self.client.move("daily:2", 3)
        other = self.host.client(db=3, decode_responses=True)
        self.assertEqual(other.zrange("daily:2", 0, -1), ["ann"])
        self.client.swapdb(0, 3)
        self.assertEqual(self.client.zrange("daily:2", 0, -1), ["ann"])
        self.client.pexpire("daily:2", 1)
        wait_until(lambda: self.client.exists("daily:2") == 0, "it expires")
        # What a store replaces has no expiry any more.
        self.client.zadd("daily:1", {"ann": 7})
        self.client.expire("daily:1", 100)
        self.client.zadd("daily:2", {"bob": 7})
        self.client.zunionstore("daily:1", ["daily:2"])
        self.assertEqual(self.client.ttl("daily:1"), -1)

    def test_lb_apply_takes_nothing_damaged(self):
        self.client.zadd("daily:1", {"ann": 7})
        before = self.host.digest()
        seed = random.randrange(1 << 30)
        draw = random.Random(seed)
        for _ in range(2000 if SHORT else 50000):
            size = draw.randrange(60)
            blob = bytes([3]) + bytes(draw.randrange(256) for _ in range(size))
            try:
                self.client.execute_command("LB.APPLY", "daily:2", blob)
            except redis.ResponseError:
                pass
        self.client.delete("daily:2")
        self.assertEqual(self.host.digest(), before, f"seed {seed}")


def incr_file(host):
    return next(Path(host.directory, "appendonlydir").glob("*.incr.aof"))


class Files(Hosted):
    """What is saved is loaded, and what is replicated is the same, to the last bit."""

    def test_rdb_and_aof(self):
        for preamble in ("yes", "no"):
            host = self.host("--appendonly", "yes", "--appendfsync", "always",
                             "--aof-use-rdb-preamble", preamble)
            client = host.client()
            changes = Changes(self.seed, has_players=True)
            changes.run(client, COUNT)
            digest = host.digest()
            client.execute_command("DEBUG", "RELOAD")
            self.assertEqual(host.digest(), digest)
            client.execute_command("DEBUG", "LOADAOF")
            self.assertEqual(host.digest(), digest)
            client.bgrewriteaof()
            changes.run(client, 500)
            host.wait_for_rewriting()
            changes.run(client, 500)
            digest = host.digest()
            host.kill()
            host.start()
            self.assertEqual(host.digest(), digest)

    def test_replicas(self):
        master = self.host("--repl-backlog-size", "16mb")
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}", "--appendonly", "yes",
                            "--repl-diskless-load", "swapdb")
        second = self.host("--replicaof", f"127.0.0.1 {replica.port}")
        changes = Changes(self.seed, has_players=True)
        changes.run(master.client(), COUNT)
        settled(master, replica)
        settled(master, second)
        self.assertEqual(replica.digest(), master.digest())
        self.assertEqual(second.digest(), master.digest())
        # A break, and what was missed: a part only.
        full = master.client().info("stats")["sync_full"]
        replica.client().execute_command("CLIENT", "KILL", "TYPE", "master")
        changes.run(master.client(), 500)
        settled(master, replica)
        self.assertEqual(replica.digest(), master.digest())
        self.assertEqual(master.client().info("stats")["sync_full"], full)
        replica.client().execute_command("DEBUG", "LOADAOF")
        self.assertEqual(replica.digest(), master.digest())
        # A copy under load.
        third = self.host()
        third.client().execute_command("REPLICAOF", "127.0.0.1", master.port)
        changes.run(master.client(), COUNT // 4)
        settled(master, third)
        self.assertEqual(third.digest(), master.digest())
        # The replica takes over and goes on where the master was.
        master.kill()
        replica.client().execute_command("REPLICAOF", "NO", "ONE")
        changes.run(replica.client(), 500)
        settled(replica, second)
        self.assertEqual(second.digest(), replica.digest())

    def test_redis_cli_copies_a_dump_file(self):
        host = self.host()
        Changes(self.seed).run(host.client(), COUNT // 5)
        host.client().set("other", "x")
        other = self.host(boards=[])
        other.kill()
        done = subprocess.run(["redis-cli", "-p", str(host.port), "--rdb",
                               str(Path(other.directory) / "dump.rdb")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        other.start()
        self.assertEqual(other.digest(), host.digest())
        self.assertGreater(other.client().dbsize(), 2)

    def blob_of(self, host, *command):
        """The effects of a command, as a replica gets them."""
        before = len(incr_file(host).read_bytes())
        host.client().execute_command(*command)
        wait_until(lambda: len(incr_file(host).read_bytes()) > before, "it is in the AOF")
        written = incr_file(host).read_bytes()[before:]
        at = written.index(b"LB.APPLY\r\n")
        return re.match(rb"LB\.APPLY\r\n\$\d+\r\n.*?\r\n\$(\d+)\r\n", written[at:]), written[at:]

    def test_effects_that_a_client_sends_are_applied_whole_or_not_at_all(self):
        host = self.host("--appendonly", "yes")
        replica = self.host("--replicaof", f"127.0.0.1 {host.port}")
        client, blobs = host.client(decode_responses=True), {}
        client.zadd("daily:1", {"ann": 1, "bob": 2})
        for name, command in (("put", ["ZADD", "daily:1", 5, "kim"]), ("take", ["ZREM", "daily:1", "kim"])):
            found, written = self.blob_of(host, *command)
            blobs[name] = written[found.end():found.end() + int(found.group(1))]
        before = host.digest()
        apply = lambda *words: client.execute_command("LB.APPLY", *words)
        with self.assertRaisesRegex(redis.ResponseError, "fit"):
            apply("daily:1", blobs["put"], "daily:1", blobs["take"], "daily:1", blobs["take"])
        self.assertEqual(host.digest(), before)
        with self.assertRaisesRegex(redis.ResponseError, "fit"):
            apply("daily:1", blobs["take"])
        # The time in it moves nobody's clock.
        ahead = blobs["put"][:1] + (2 * 10 ** 17).to_bytes(8, "little") + blobs["put"][9:]
        self.assertEqual(apply("daily:1", ahead), "OK")
        self.assertEqual(client.zrange("daily:1", 0, -1), ["ann", "bob", "kim"])
        settled(host, replica)
        self.assertEqual(replica.digest(), host.digest())
        self.assertNotIn("lead_seconds", replica.log.read_text())

    def test_a_waiting_client_leaves_replicas_equal(self):
        master = self.host("--appendonly", "yes")
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}")
        client = master.client()
        for protocol in (2, 3):
            for i in range(20):
                waiting = [Connection(master, protocol) for _ in range(2)]
                for each in waiting:
                    each.send("BZMPOP", 5, 3, "daily:1", f"daily:{i}x", "daily:2", "MAX")
                wait_until(lambda: client.info("clients")["blocked_clients"] == 2, "they wait")
                client.zadd(f"daily:{i}x", {f"x{i}": i})
                client.zadd("daily:1", {"ann": 1, f"y{i}": 2})
                for each in waiting:
                    self.assertEqual(len(each.read()), 2)
                    each.close()
                client.zremrangebyrank("daily:1", 0, 0)
        settled(master, replica)
        self.assertEqual(replica.digest(), master.digest())
        digest = master.digest()
        client.execute_command("DEBUG", "LOADAOF")
        self.assertEqual(master.digest(), digest)

    def test_a_sorted_set_under_a_boards_name_is_replicated(self):
        master, sets = self.host(), self.host(boards=None)
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}")
        sets.client().zadd("x", {"ann": 1, "bob": 2, "kim": 3})
        master.client().restore("daily:1", 0, sets.client().dump("x"))
        self.assertEqual(master.client().execute_command("ZMPOP", 2, "other", "daily:1", "MIN")[1][0][0],
                         b"ann")
        settled(master, replica)
        self.assertEqual(replica.digest(), master.digest())
        replica.client().execute_command("REPLICAOF", "NO", "ONE")
        self.assertEqual(replica.client().zadd("daily:2", {"ann": 1}), 1)
        self.assertEqual(replica.client().execute_command("LB.ZCARD", "daily:2"), 1)

    def test_periods_roll_over_by_a_timer_on_the_master(self):
        master = self.host(module=MODULE_TEST)
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}", module=MODULE_TEST)
        client = master.client(decode_responses=True)
        end_us = 1795176000 * 10 ** 6  # 2026-11-20 12:00:00Z
        for host in (master, replica):
            host.client().execute_command("LB.TESTCLOCK", end_us - 300000, 1000)
        client.execute_command("LB.CREATE", "hourly", "FIELD", "points", 20, "TIME", 42, "MS",
                               "PERIOD", "HOUR")
        client.execute_command("LB.ZADD", "hourly", 7, "ann")
        client.rename("hourly", "daily:h")
        settled(master, replica)
        master.client().execute_command("LB.TESTCLOCK", end_us, 2000)
        def has_rolled(name, archive):
            if not master.hears_renames():  # then it is the next command that sees the new name
                client.execute_command("LB.ZCARD", name)
            return client.exists(archive) == 1

        wait_until(lambda: has_rolled("daily:h", "daily:h@2026-11-20T11"), "it rolls over")
        settled(master, replica)
        for host in (master, replica):
            asked = host.client(decode_responses=True)
            self.assertEqual(asked.execute_command("LB.ZCARD", "daily:h"), 0)
            self.assertEqual(asked.execute_command("LB.ZRANGE", "daily:h@2026-11-20T11", 0, -1),
                             ["ann"])
        self.assertEqual(master.digest(), replica.digest())
        # While a failover waits for the replicas, nothing rolls over, whoever looks.
        client.execute_command("LB.TESTCLOCK", end_us + 3600 * 10 ** 6 - 300000, 2500)
        client.zadd("daily:h", {"bob": 3})
        client.rename("daily:h", "daily:i")
        client.execute_command("CLIENT", "PAUSE", 1500, "WRITE")
        master.client().execute_command("LB.TESTCLOCK", end_us + 3600 * 10 ** 6, 3000)
        self.assertEqual(client.execute_command("LB.ZCARD", "daily:i"), 1)
        self.assertEqual(client.exists("daily:i@2026-11-20T12"), 0)
        wait_until(lambda: has_rolled("daily:i", "daily:i@2026-11-20T12"), "it rolls over then")

    def test_a_board_that_is_rolled_keeps_its_expiry(self):
        """As in the server; on a replica and in the AOF, too."""
        master = Host("--appendonly", "yes")
        self.addCleanup(master.stop)
        replica = Host("--replicaof", f"127.0.0.1 {master.port}")
        self.addCleanup(replica.stop)
        settled(master, replica)
        client = master.client()
        client.execute_command("LB.CREATE", "m:1", "FIELD", "score", 33)
        client.pexpireat("m:1", 4000000000000)
        for old in ("m:2", "m:3"):
            client.execute_command("ZADD", "m:1", 5, "ann")
            client.execute_command("LB.ROLL", "m:1", old)
            settled(master, replica)
            for each in (client, replica.client()):
                self.assertEqual([each.pexpiretime(key) for key in ("m:1", old)], [4000000000000, -1])
        client.execute_command("DEBUG", "LOADAOF")
        self.assertEqual(client.pexpiretime("m:1"), 4000000000000)
        client.execute_command("LB.ZUNIONSTORE", "m:1", 1, "m:2")  # and what takes its place has none
        self.assertEqual((client.pexpiretime("m:1"), client.execute_command("LB.ZCARD", "m:1")), (-1, 1))
        settled(master, replica)
        self.assertEqual(replica.digest(), master.digest())

    def test_archives_that_are_copies(self):
        """By a timer on the master, or with the first command behind the end; the board goes on."""
        master = self.host("--appendonly", "yes", module=MODULE_TEST)
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}", module=MODULE_TEST)
        client = master.client(decode_responses=True)
        end_us = 1795176000 * 10 ** 6  # 2026-11-20 12:00:00Z
        for host in (master, replica):
            host.client().execute_command("LB.TESTCLOCK", end_us - 300000, 1000)
        client.execute_command("LB.CREATE", "all", "FIELD", "points", 20, "TIME", 42, "MS", "TAG", "t", 4,
                               "PERIOD", "HOUR", "COPY")
        for begin in range(0, 1000, 50):
            client.execute_command("LB.ADD", "all", "TAG", "t", begin % 7, *[word for i in range(begin, begin + 50)
                                                                           for word in (i % 10, f"m{i}")])
        settled(master, replica)
        master.client().execute_command("LB.TESTCLOCK", end_us, 2000)
        wait_until(lambda: client.exists("all@2026-11-20T11") == 1, "the timer has copied it")
        client.execute_command("LB.ADD", "all", 11, "m5")
        client.execute_command("LB.TESTCLOCK", end_us + 3600 * 10 ** 6, 2500)
        self.assertEqual(client.execute_command("LB.GET", "all", 1, "m5", "SINCE", "LAST")[0][-1], 0)
        settled(master, replica)
        def look(host):
            asked = host.client(decode_responses=True)
            self.assertEqual([asked.execute_command("LB.ZCARD", name)
                              for name in ("all", "all@2026-11-20T11", "all@2026-11-20T12")], [1000] * 3)
            self.assertEqual(asked.execute_command("LB.GET", "all", 1, "m5", "SINCE", "all@2026-11-20T11", "TAGS")[0][-2:],
                             [["t", "0"], 400])
        look(master)
        look(replica)
        self.assertEqual(master.digest(), replica.digest())
        master.kill()
        master.start()
        master.client().execute_command("LB.TESTCLOCK", end_us + 3600 * 10 ** 6, 3000)
        look(master)

    def test_what_has_an_archives_name_stays_and_the_archive_gets_a_number(self):
        master = self.host(module=MODULE_TEST)
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}", module=MODULE_TEST)
        end_us = 1795176000 * 10 ** 6  # 2026-11-20 12:00:00Z
        for number, value in enumerate(["board", "set", "string"]):
            end_us += 3600 * 10 ** 6
            name = f"{{t}}{number}"
            for host in (master, replica):
                host.client().execute_command("LB.TESTCLOCK", end_us - 60 * 10 ** 6, 1000)
            client = master.client()
            client.execute_command("LB.CREATE", name, "FIELD", "points", 20,
                                   "TIME", 42, "MS", "PERIOD", "HOUR")
            archive = name + "@" + datetime.fromtimestamp(
                end_us // 10 ** 6 - 3600, timezone.utc).strftime("%Y-%m-%dT%H")
            client.execute_command("LB.ZADD", name, 7, "ann")
            if value == "board":
                client.execute_command("LB.ZADD", archive, 8, "bob")
            elif value == "set":
                client.sadd(archive, "bob")
            else:
                client.set(archive, "bob")
            master.client().execute_command("LB.TESTCLOCK", end_us, 2000)
            client.execute_command("LB.ZADD", name, 9, "kim")
            self.assertEqual(client.execute_command("LB.ZREVRANGE", archive + ".2", 0, -1), [b"ann"],
                             value)
            if value == "board":
                self.assertEqual(client.execute_command("LB.ZREVRANGE", archive, 0, -1), [b"bob"])
            else:
                self.assertEqual(client.type(archive), value.encode())
            # The boards of the turns before roll over as well, when the timer comes to them.
            wait_until(lambda: master.digest() == replica.digest(), value)
        self.assertNotIn("CRITICAL", replica.log.read_text(errors="replace"))

    def test_boards_move_between_the_server_and_the_module(self):
        host, server = self.host(), Server()
        module, standalone = host.client(), redis.Redis(port=server.port)
        changes = Changes(self.seed, ["m:1"])
        while module.zcard("m:1") < 40:
            changes.run(module, 50)
        range_of = lambda client, key: client.execute_command("LB.RANGE", key, 0, -1, "WITHKEY")
        board_options_of = lambda client, key: [
            pair for pair in zip(*[iter(client.execute_command("LB.INFO", key))] * 2)
            if pair[0] != b"memory"]
        standalone.restore("there", 0, module.execute_command("LB.DUMP", "m:1"))
        self.assertEqual(range_of(standalone, "there"), range_of(module, "m:1"))
        self.assertEqual(board_options_of(standalone, "there"), board_options_of(module, "m:1"))
        module.execute_command("LB.RESTORE", "back", 100000, standalone.dump("there"))
        self.assertEqual(range_of(module, "back"), range_of(module, "m:1"))
        self.assertGreater(module.ttl("back"), 90)
        # A sorted set of the same redis-server becomes a board.
        module.zadd("native", {"ann": 7, "bob": 9, "kim": 7})
        module.execute_command("LB.RESTORE", "daily:n", 0, module.dump("native"))
        self.assertEqual(module.zrevrange("daily:n", 0, -1), module.zrevrange("native", 0, -1))
        replica = self.host("--replicaof", f"127.0.0.1 {host.port}")
        settled(host, replica)
        module.execute_command("LB.RESTORE", "back", 100000, standalone.dump("there"), "REPLACE")
        settled(host, replica)
        self.assertEqual(replica.digest(), host.digest())

    def test_payloads(self):
        host = self.host()
        client = host.client()
        changes = Changes(self.seed, ["daily:1"])
        while client.zcard("daily:1") < 40:
            changes.run(client, 50)
        payload = client.dump("daily:1")
        range_of = lambda key: client.execute_command("LB.RANGE", key, 0, -1, "WITHKEY")
        client.restore("daily:copy", 0, payload)
        self.assertEqual(range_of("daily:copy"), range_of("daily:1"))
        draw = random.Random(self.seed)
        restored = 0
        if client.config_get("sanitize-dump-payload"):  # Valkey 9.1 has it no more
            client.config_set("sanitize-dump-payload", "yes")
        crc = Crc()
        for _ in range(1000 if SHORT else 100000):
            damaged = bytearray(payload[:-8])
            for _ in range(draw.randrange(1, 4)):
                damaged[draw.randrange(2, len(damaged) - 2)] = draw.randrange(256)
            if draw.random() < 0.2:
                at = draw.randrange(2, len(damaged) - 2)
                del damaged[at:at + draw.randrange(1, 9)]
            damaged += crc.of(bytes(damaged)).to_bytes(8, "little")
            try:
                client.restore("daily:2", 0, bytes(damaged), replace=True)
                restored += 1
                members = client.execute_command("LB.ZRANGE", "daily:2", 0, -1)
                self.assertEqual(len(members), len(set(members)))
                client.execute_command("LB.ZADD", "daily:2", 1, "someone")
            except redis.ResponseError:
                pass
        self.assertGreater(restored, 0)  # a changed letter of a name is no damage
        self.assertEqual(range_of("daily:copy"), range_of("daily:1"))


if __name__ == "__main__":
    unittest.main()
