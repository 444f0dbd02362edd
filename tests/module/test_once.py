"""Results with an id in redis-server: the ids are a part of their key's value, and live and die with it."""
import random
import re
import time
import unittest

import redis

from crc import Crc
from hosts import BOARDS, MODULE_TEST, Hosted, settled, wait_until

END_US = (1795176000 + 3600) * 10 ** 6  # 2026-11-20 13:00:00Z
WINDOW_S = 600  # by the hosts' clock, which the tests set: however slow the machine, no id goes before they say so
draw = random.Random(7)


class Once(Hosted):
    def add(self, client, key, name, hashes="run:*"):
        return client.execute_command("LB.ADD", key, "ONCE", name, "HSET", hashes, 1, "id", name, "INCR", 1, "ann")

    def window_ends(self, *hosts, windows=1):
        now_us = int((time.time() + windows * (WINDOW_S + 60)) * 10 ** 6)
        for host in hosts:
            host.client().execute_command("LB.TESTCLOCK", now_us, now_us // 1000)

    def host_of_ids(self, *options, more=()):
        return self.host(*options, module=MODULE_TEST, boards=[*BOARDS, "once-window", str(WINDOW_S), *more])

    def test_an_id_is_in_every_file_of_the_host(self):
        host = self.host("--appendonly", "yes", "--appendfsync", "always")
        client = host.client(decode_responses=True)
        self.assertEqual([self.add(client, "m:1", name) for name in "abba"], [1, 1, 0, 0])
        self.assertEqual(client.execute_command("LB.SUBMIT", 2, "m:1", "m:2", "ONCE", "c", "INCR", 1, "ann")[1][2], 1)
        digest = host.digest()

        def is_kept(what):
            self.assertEqual([self.add(client, "m:1", name) for name in "abc"], [0, 0, 0], what)
            self.assertEqual(client.execute_command("LB.SUBMIT", 2, "m:1", "m:2", "ONCE", "c", "INCR", 1, "ann")[0][2],
                             0, what)
            self.assertEqual((client.zscore("m:1", "ann"), client.hgetall("run:ann")), (3, {"id": "b"}), what)
            self.assertEqual(host.digest(), digest, what)
            self.assertEqual(sorted(client.keys()), ["m:1", "m:2", "run:ann"], what)
            self.assertEqual((client.pttl("m:1"), client.dbsize()), (-1, 3), what)
        is_kept("again")
        for what in ("RELOAD", "LOADAOF"):
            client.execute_command("DEBUG", what)
            is_kept(what)
        host.kill()
        host.start()
        is_kept("kill -9")
        for preamble in ("no", "yes"):
            client.config_set("aof-use-rdb-preamble", preamble)
            host.come_back_rewritten()
            is_kept(preamble)
        client.swapdb(0, 4)  # the ids are in the database of their key
        client = host.client(decode_responses=True, db=4)
        self.assertEqual(self.add(client, "m:1", "a"), 0)
        self.assertEqual(client.zscore("m:1", "ann"), 3)

    def test_a_replica_knows_them_when_it_takes_over(self):
        master = self.host()
        client = master.client()
        self.add(client, "m:1", "before")  # comes as a copy, and what follows as effects
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}")
        settled(master, replica)
        for name in ("a", "b", "a"):
            self.add(client, "m:1", name)
        with client.pipeline() as pipe:
            self.add(pipe, "m:1", "c")
            self.add(pipe, "m:1", "c")
            self.assertEqual(pipe.execute(), [1, 0])
        settled(master, replica)
        self.assertEqual(replica.digest(), master.digest())
        master.kill()
        other = replica.client()
        other.execute_command("REPLICAOF", "NO", "ONE")
        self.assertEqual([self.add(other, "m:1", name) for name in ("before", "a", "b", "c", "d")], [0, 0, 0, 0, 1])
        self.assertEqual((other.zscore("m:1", "ann"), other.hget("run:ann", "id")), (5, b"d"))

    def test_old_ids_go(self):
        host = self.host_of_ids(more=["once-max", "3"])
        client = host.client()
        plain = client.memory_usage("m:1") or 0
        pipe = client.pipeline(transaction=False)
        for name in "abcd":
            self.add(pipe, "m:1", name)
        *counted, refused = pipe.execute(raise_on_error=False)
        self.assertEqual((counted, "TRYAGAIN" in str(refused)), ([1, 1, 1], True), refused)
        self.assertEqual(self.add(client, "m:2", "d"), 1)  # of another key
        self.assertEqual(client.zscore("m:1", "ann"), 3)
        self.window_ends(host)
        self.assertEqual([self.add(client, "m:1", name) for name in "ab"], [1, 1])
        with_ids = client.memory_usage("m:1")
        self.window_ends(host, windows=2)
        wait_until(lambda: client.memory_usage("m:1") < with_ids, "the ids of a board that stays go by themselves")
        self.assertGreater(client.memory_usage("m:1"), plain)
        self.assertEqual(client.zscore("m:1", "ann"), 5)
        self.assertEqual(self.add(client, "m:1", "a"), 1)

    def test_many_old_ids_go_in_steps(self):
        host = self.host_of_ids()
        client = host.client()
        self.add(client, "m:1", "first")
        few = client.memory_usage("m:1")
        pipe = client.pipeline(transaction=False)
        for i in range(5000):
            self.add(pipe, "m:1", f"result:{i}")
        self.assertEqual(set(pipe.execute()), {1})
        self.assertGreater(client.memory_usage("m:1"), few + 5000 * 20)
        self.window_ends(host)
        wait_until(lambda: client.memory_usage("m:1") <= few, "no id is left")
        self.assertEqual(client.zscore("m:1", "ann"), 5001)

    def test_ids_go_by_themselves_again_and_again(self):
        """Also where all that were there before have gone."""
        host = self.host_of_ids()
        client = host.client()
        client.execute_command("ZADD", "m:1", 0, "ann")
        for windows, name in enumerate("abc", 1):
            self.assertEqual(self.add(client, "m:1", name), 1)
            with_ids = client.memory_usage("m:1")
            self.window_ends(host, windows=windows)
            wait_until(lambda: client.memory_usage("m:1") < with_ids, "the ids have gone")
        self.assertEqual(client.zscore("m:1", "ann"), 3)

    def test_what_is_left_of_many_members_and_ids_is_freed_whatever_comes_meanwhile(self):
        """By the host's thread, too: of the board, of the ids, and of both."""
        host = self.host("--save", "", boards=[*BOARDS, "once-window", "1"])
        client, count = host.client(decode_responses=True), 4000
        added = [word for i in range(count) for word in (i, f"user:{i}")]
        trim = ["ZREMRANGEBYRANK", "m:1", 0, -51]
        ways = [["UNLINK", "m:1"], ["DEL", "m:1"], ["FLUSHALL", "ASYNC"], ["RENAME", "m:1", "m:2"], ["DEBUG", "RELOAD"],
                ["LB.CREATE", "m:2", "FIELD", "n", 9], ["LB.ROLL", "m:1", "m:2"], ["ZREMRANGEBYRANK", "m:1", 0, -1]]
        for then in ways:
            client.flushall()
            pipe = client.pipeline(transaction=False)
            for i in range(count):
                pipe.execute_command("LB.ADD", "m:1", "ONCE", f"result:{i}", "INCR", 1, "ann")
            pipe.execute_command("LB.ADD", "m:1", *added)
            self.assertEqual(pipe.execute()[:-1], [1] * count, then[:2])
            time.sleep(1.1)
            pipe = client.pipeline(transaction=True)
            pipe.execute_command("LB.ADD", "m:1", "ONCE", "late", "INCR", 1, "ann")  # some of the old ids go
            pipe.execute_command(*trim)
            if then[0] != "DEBUG":
                pipe.execute_command(*then)
            self.assertEqual(pipe.execute()[:2], [1, count - 49], then[:2])
            if then[0] == "DEBUG":
                client.execute_command(*then)
            for key in {"m:1", "m:2"} & set(client.keys()):
                wait_until(lambda: (client.memory_usage(key) or 0) < 40000, f"{key} is small again")
            self.assertEqual(client.execute_command("LB.ADD", "m:1", "ONCE", "new", "INCR", 1, "ann"), 1, then[:2])
        self.assertTrue(client.ping())

    def test_ids_outlive_the_last_member_and_then_the_key_goes(self):
        master = self.host_of_ids("--appendonly", "yes", "--appendfsync", "always")
        replica = self.host_of_ids("--replicaof", f"127.0.0.1 {master.port}")
        settled(master, replica)
        client = master.client(decode_responses=True)
        self.assertEqual(self.add(client, "m:1", "a"), 1)
        client.pexpire("m:1", 2000)
        self.assertEqual(client.zpopmin("m:1"), [("ann", 1.0)])
        # Of LB.SUBMIT the first board holds the id, though the member comes only to the second.
        client.execute_command("ZADD", "m:2", 0, "ann")
        submit = ["LB.SUBMIT", 2, "m:0", "m:2", "ONCE", "s", "XX", "INCR", 1, "ann"]
        client.execute_command(*submit)

        def is_known(client, what):
            self.assertEqual(client.execute_command("LB.TYPE", "m:1"), "none", what)
            self.assertEqual(client.execute_command("LB.LIST")[1][0][1], "m:2", what)
            self.assertEqual((client.execute_command("LB.ZCARD", "m:1"), client.exists("m:1", "m:0")), (0, 2), what)
            self.assertEqual((client.pttl("m:1"), client.execute_command("LB.ZSCORE", "m:2", "ann")), (-1, "1"), what)
        is_known(client, "popped")
        settled(master, replica)
        is_known(replica.client(decode_responses=True), "replica")
        self.assertEqual(replica.digest(), master.digest())
        for what in ("RELOAD", "LOADAOF"):
            client.execute_command("DEBUG", what)
            is_known(client, what)
        client.config_set("aof-use-rdb-preamble", "no")
        master.come_back_rewritten()
        is_known(client, "rewritten")
        self.assertEqual(self.add(client, "m:1", "a"), 0)
        client.execute_command(*submit)
        is_known(client, "again")
        client.execute_command("LB.CREATE", "m:1", "FIELD", "n", 8)  # for it there is no key
        client.delete("m:1")
        self.window_ends(master, replica)
        wait_until(lambda: client.keys() == ["m:2", "run:ann"] or sorted(client.keys()) == ["m:2", "run:ann"],
                   "keys without a board go by themselves")
        wait_until(lambda: sorted(replica.client().keys()) == [b"m:2", b"run:ann"], "on the replica too")
        self.assertEqual(client.execute_command("LB.ZSCORE", "m:2", "ann"), "1")

    def test_a_key_that_has_only_ids_may_be_named_twice(self):
        """It has no board by whose name it would be found when it comes again."""
        host = self.host()
        replica = self.host("--replicaof", f"127.0.0.1 {host.port}")
        client = host.client(decode_responses=True)
        client.zadd("m:from", {"ann": 1, "bob": 2})
        for words, count in ((["LB.ZUNIONSTORE", "m:1", 2, "m:from", "m:1"], 2),
                             (["LB.ZDIFFSTORE", "m:1", 3, "m:from", "m:1", "m:1"], 2),
                             (["LB.ZINTERSTORE", "m:1", 2, "m:1", "m:from"], 0),
                             (["LB.ZRANGESTORE", "m:1", "m:1", 0, -1], 0),
                             (["LB.ZMPOP", 2, "m:1", "m:1", "MAX"], None),
                             (["LB.ZUNION", 2, "m:1", "m:1"], [])):
            self.assertEqual(client.execute_command("LB.ADD", "m:1", "ONCE", "a", "XX", "INCR", 1, "kim"), 0)
            self.assertEqual((client.exists("m:1"), client.zcard("m:1")), (1, 0))
            self.assertEqual(client.execute_command(*words), count, words)
            self.assertEqual(client.zrange("m:1", 0, -1), ["ann", "bob"][:count if isinstance(count, int) else 0], words)
            self.assertEqual(client.execute_command("LB.ADD", "m:1", "ONCE", "a", "INCR", 1, "kim"), 0, "seen before")
            settled(host, replica)
            self.assertEqual(replica.digest(), host.digest(), words)
            client.delete("m:1")
        host.client().execute_command("DEBUG", "RELOAD")

    def test_ids_stay_with_the_board_that_goes_on(self):
        host = self.host(module=MODULE_TEST, boards=["board", "p:*", "default", "PERIOD", "HOUR"])
        client = host.client(decode_responses=True)
        client.execute_command("LB.TESTCLOCK", END_US - 10 ** 7, 1000)
        self.assertEqual([self.add(client, key, "a") for key in ("p:1", "p:2", "m:1")], [1, 1, 1])
        client.execute_command("LB.TESTCLOCK", END_US + 10 ** 7, 21000)
        self.assertEqual(self.add(client, "p:1", "a"), 0)  # where a board of the new hour is to come
        self.assertEqual(client.execute_command("LB.ZCARD", "p:1"), 0)
        self.assertEqual((client.execute_command("LB.TYPE", "p:1"), client.exists("p:1")), ("none", 1))
        self.assertEqual(self.add(client, "p:1", "a"), 0)
        self.assertEqual(client.execute_command("LB.ZSCORE", "p:1@2026-11-20T12", "ann"), "1")
        self.assertEqual([self.add(client, "p:2", name) for name in "ba"], [1, 0])  # where it has come
        self.assertEqual(client.execute_command("LB.ROLL", "m:1", "m:old"), 1)
        self.assertEqual([self.add(client, "m:1", name) for name in "ab"], [0, 1])
        self.assertEqual([client.execute_command("LB.ZSCORE", key, "ann") for key in ("p:2", "m:1", "m:old")],
                         ["1", "1", "1"])

    def test_ids_go_where_the_value_goes(self):
        host, other = self.host(), self.host()
        client, there = host.client(), other.client()
        for name in "abc":
            self.add(client, "m:1", name)
        client.copy("m:1", "m:2")
        self.assertEqual(self.add(client, "m:2", "a"), 1)  # of another name
        client.rename("m:1", "m:3")
        self.assertEqual([self.add(client, key, "a") for key in ("m:3", "m:1")], [0, 1])
        client.execute_command("MOVE", "m:3", 5)
        there.restore("m:3", 0, host.client(db=5).dump("m:3"))
        self.assertEqual([self.add(there, "m:3", name) for name in "abcd"], [0, 0, 0, 1])
        self.assertEqual(there.zscore("m:3", "ann"), 4)
        there.delete("m:3")
        self.assertEqual(self.add(there, "m:3", "a"), 1)
        there.zpopmin("m:3")
        there.expire("m:3", 1000)
        self.assertEqual([self.add(there, "m:3", "b"), there.ttl("m:3")], [1, -1])  # of the board that came
        there.zpopmin("m:3")
        there.execute_command("ZADD", "m:4", 7, "ann")  # what takes the name leaves its ids
        there.execute_command("ZUNIONSTORE", "m:3", 1, "m:4")
        self.assertEqual([self.add(there, "m:3", name) for name in "ae"], [0, 1])
        self.assertEqual(there.zscore("m:3", "ann"), 8)
        there.execute_command("ZREM", "m:3", "ann")
        self.assertEqual(there.execute_command("LB.CREATE", "m:3", "FIELD", "n", 9), b"OK")
        self.assertEqual([self.add(there, "m:3", name) for name in "ef"], [0, 1])
        host.client(db=5).execute_command("ZREM", "m:3", "ann")
        payload = host.client(db=5).dump("m:3")
        there.restore("m:5", 0, payload)
        self.assertEqual(([self.add(there, "m:5", name) for name in "ag"], there.zscore("m:5", "ann")), ([0, 1], 1))

    def test_damaged_ids_are_refused(self):
        client, crc = self.host().client(), Crc()
        self.add(client, "m:1", "abcdefgh")
        payload = client.dump("m:1")
        self.assertEqual(payload.count(b"abcdefgh"), 1)
        signed = lambda body: body + crc.of(body).to_bytes(8, "little")
        self.assertEqual(signed(payload[:-8]), payload)
        with self.assertRaisesRegex(redis.ResponseError, "Bad data format"):
            client.restore("m:2", 0, signed(payload[:-8].replace(b"time_ms", b"time_mt")))
        refused = 0
        for at in range(payload.index(b"time_ms"), len(payload) - 10):
            body = payload[:at] + bytes([payload[at] ^ draw.randrange(1, 256)]) + payload[at + 1:-8]
            try:
                client.restore("m:2", 0, signed(body), replace=True)
                self.add(client, "m:2", "x")
            except redis.ResponseError:
                refused += 1
        self.assertGreater(refused, 10)
        self.assertTrue(client.ping())

    def test_ids_that_would_not_be_forgotten_for_long_are_refused(self):
        """So what a server has is what its files say."""
        source = self.host("--appendonly", "yes", "--appendfsync", "always", module=MODULE_TEST)
        client, hour_us = source.client(), 3600 * 10 ** 6
        now_us = int(time.time() * 10 ** 6)
        clock = lambda hours: client.execute_command("LB.TESTCLOCK", now_us + hours * hour_us, 1000)
        clock(44)
        self.assertEqual(self.add(client, "m:1", "a"), 1)
        logged = b"".join(path.read_bytes() for path in sorted(source.directory.glob("appendonlydir/*.incr.aof")))
        size, rest = re.search(rb"LB\.APPLY\r\n\$3\r\nm:1\r\n\$(\d+)\r\n(.*)", logged, re.S).groups()
        clock(20)
        self.assertEqual(self.add(client, "m:2", "a"), 1)
        host = self.host("--appendonly", "yes")
        there = host.client()
        for words in (["RESTORE", "m:1", 0, client.dump("m:1")], ["LB.APPLY", "m:1", rest[:int(size)]]):
            with self.assertRaisesRegex(redis.ResponseError, "Bad data format"):
                there.execute_command(*words)
            self.assertEqual(there.dbsize(), 0)
        there.restore("m:2", 0, client.dump("m:2"))
        for what in ("RELOAD", "LOADAOF"):
            there.execute_command("DEBUG", what)
            self.assertEqual(self.add(there, "m:2", "a"), 0, what)
        client.execute_command("DEBUG", "RELOAD")  # a server believes its own files
        self.assertEqual([self.add(client, key, "a") for key in ("m:1", "m:2")], [0, 0])

    def test_no_command_sees_ids_as_members(self):
        client = self.host().client(decode_responses=True)
        for name in ("bob", "eve", "eve"):
            self.add(client, "m:1", name)
        self.assertEqual(client.execute_command("LB.WHERE", "bob"), [])
        self.assertEqual([board[1] for board in client.execute_command("LB.LIST")[1]], ["m:1"])
        self.assertEqual(client.execute_command("LB.FORGET", "bob"), 0)
        self.assertEqual(client.execute_command("LB.MOVE", "bob", "kim"), [0, 0])
        client.execute_command("LB.BAN", "eve")
        self.assertEqual([self.add(client, "m:1", name) for name in ("bob", "eve", "kim")], [0, 0, 1])
        self.assertEqual(sorted(client.keys()), ["m:1", "run:ann"])

    def test_what_evicts_keys_with_an_expiry_evicts_no_ids(self):
        for policy in ("volatile-lru", "volatile-ttl", "volatile-random", "volatile-lfu"):
            client = self.host().client(decode_responses=True)
            keys = [f"m:{i}" for i in range(20)]
            again = lambda: [client.execute_command("LB.ADD", key, "ONCE", "a", "INCR", 1, "ann") for key in keys]
            self.assertEqual(again(), [1] * 20)
            for key in keys[:10]:  # keys without a board hold ids, too
                client.execute_command("ZREM", key, "ann")
            client.config_set("maxmemory-policy", policy)
            client.config_set("maxmemory", client.info("memory")["used_memory"] + 1000000)
            pipe = client.pipeline(transaction=False)
            for i in range(20000):
                pipe.set(f"x:{i}", "x" * 100, ex=100000)
            pipe.execute()
            self.assertGreater(client.info("stats")["evicted_keys"], 1000)
            self.assertEqual(again(), [0] * 20, policy)

    def test_effects_of_a_client_change_ids_as_a_whole_or_not_at_all(self):
        host = self.host("--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no")
        client = host.client()
        self.add(client, "m:1", "a")
        logged = b"".join(path.read_bytes() for path in sorted(host.directory.glob("appendonlydir/*.incr.aof")))
        size, rest = re.search(rb"LB\.APPLY\r\n\$3\r\nm:1\r\n\$(\d+)\r\n(.*)", logged, re.S).groups()
        blob = rest[:int(size)]
        client.delete("m:1")
        with self.assertRaises(redis.ResponseError):  # the ids, and then what is damaged
            client.execute_command("LB.APPLY", "m:1", blob[:-1])
        self.assertEqual(client.exists("m:1"), 0)
        client.execute_command("LB.APPLY", "m:1", blob)
        self.assertEqual([self.add(client, "m:1", name) for name in "ab"], [0, 1])
        client.delete("m:1")
        client.execute_command("ZADD", "m:1", 1, "bob")
        with self.assertRaises(redis.ResponseError):
            client.execute_command("LB.APPLY", "m:1", blob)  # the ids fit, and its board is there already
        self.assertEqual(self.add(client, "m:1", "a"), 1)
        with self.assertRaises(redis.ResponseError):
            client.execute_command("LB.APPLY", "m:2", blob)
        client.delete("m:1")
        client.hset("m:1", "f", "v")
        with self.assertRaises(redis.ResponseError):
            client.execute_command("LB.APPLY", "m:1", blob)
        self.assertEqual(client.hgetall("m:1"), {b"f": b"v"})

    def test_what_cannot_hold_a_result_or_a_hash_is_an_error(self):
        host = self.host()
        client = host.client()
        for make in (lambda: client.set("m:1", "x"), lambda: client.hset("m:1", "f", "v")):
            make()
            with self.assertRaisesRegex(redis.ResponseError, "WRONGTYPE"):
                self.add(client, "m:1", "a")
            client.delete("m:1")
        for words in (("LB.ADD", "m:1", "ONCE", "a", "HSET", "m:*", 1, "f", "v", 5, "1"),
                      ("LB.ADD", "m:1", "HSET", "m:*", 1, "f", "v", 5, "1")):
            with self.assertRaises(redis.ResponseError):
                client.execute_command(*words)
            self.assertEqual(client.keys(), [], words)
        client.set("run:ann", "x")
        with self.assertRaisesRegex(redis.ResponseError, "WRONGTYPE"):
            self.add(client, "m:1", "a")
        self.assertEqual(client.keys(), [b"run:ann"])
        client.delete("run:ann")
        self.assertEqual(self.add(client, "m:1", "a"), 1)

    def test_a_server_whose_commands_have_other_names_refuses_what_needs_them(self):
        client = self.host("--rename-command", "HSET", "", "--rename-command", "SCAN", "").client()
        with self.assertRaisesRegex(redis.ResponseError, "no command of this name"):
            self.add(client, "m:1", "a")
        self.assertEqual(client.dbsize(), 0)
        with self.assertRaisesRegex(redis.ResponseError, "no SCAN"):
            client.execute_command("LB.LIST")

    def test_users_need_the_right_to_the_hash(self):
        host = self.host()
        client = host.client()
        client.acl_setuser("sam", enabled=True, nopass=True, categories=["+@all"], keys=["m:*", "run:*"])
        sam = host.client(username="sam", password="x")
        self.assertEqual(self.add(sam, "m:1", "a"), 1)
        for pattern in ("other:*", "*"):
            with self.assertRaisesRegex(redis.ResponseError, "no permissions"):
                self.add(sam, "m:1", "b", pattern)
        self.assertEqual(client.zscore("m:1", "ann"), 1)

    def test_in_a_cluster_any_key_takes_ids_and_hashes_are_in_its_slot(self):
        host = self.host("--cluster-enabled", "yes", is_cluster=True)
        client = host.client()
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", "a cluster of one")
        for key in ("m:1", "m:{1}x", "{m}:1}", "m:}1", "{}m:1"):
            self.assertEqual(client.execute_command("LB.ADD", key, "ONCE", "a", 5, "ann"), 1)
            self.assertEqual(client.execute_command("LB.ADD", key, "ONCE", "a", 5, "ann"), 0)
        client.execute_command("LB.SUBMIT", 2, "{m}:1", "{m}:2", "ONCE", "a", "HSET", "{m}:run:*", 1, "f", "v", 5, "ann")
        self.assertEqual(client.hgetall("{m}:run:ann"), {b"f": b"v"})
        for words in (("LB.SUBMIT", 2, "{m}:1", "{m}:2"), ("LB.ADD", "{m}:1")):
            with self.assertRaisesRegex(redis.ResponseError, "in a cluster HSET needs the board's"):
                client.execute_command(*words, "HSET", "run:*", 1, "f", "v", 6, "ann")
        self.assertEqual(float(client.execute_command("LB.ZSCORE", "{m}:1", "ann")), 5)


if __name__ == "__main__":
    unittest.main()
