"""Results with an id in redis-server: the ids are a board beside their key, and go wherever it goes."""
import time
import unittest

import redis

from hosts import BOARDS, Host, settled, wait_until


class Once(unittest.TestCase):
    def host(self, *options, **more):
        host = Host(*options, **more)
        self.addCleanup(host.stop)
        return host

    def add(self, client, key, name, hashes="run:*"):
        return client.execute_command("LB.ADD", key, "ONCE", name, "HSET", hashes, 1, "id", name, "INCR", 1, "ann")

    def test_an_id_is_in_every_file_of_the_host(self):
        host = self.host("--appendonly", "yes", "--appendfsync", "always")
        client = host.client(decode_responses=True)
        self.assertEqual([self.add(client, "m:1", name) for name in "abba"], [1, 1, 0, 0])
        self.assertEqual(client.execute_command("LB.SUBMIT", 2, "m:1", "m:2", "ONCE", "c", "INCR", 1, "ann")[1][2], 1)
        digest = host.digest()
        self.assertGreater(client.pttl("{m:1}:once"), 600000)

        def is_kept(what):
            self.assertEqual([self.add(client, "m:1", name) for name in "abc"], [0, 0, 0], what)
            self.assertEqual(client.execute_command("LB.SUBMIT", 2, "m:1", "m:2", "ONCE", "c", "INCR", 1, "ann")[0][2],
                             0, what)
            self.assertEqual((client.zscore("m:1", "ann"), client.hgetall("run:ann")), (3, {"id": "b"}), what)
            self.assertEqual(host.digest(), digest, what)
            self.assertGreater(client.pttl("{m:1}:once"), 600000, what)
        is_kept("again")
        for what in ("RELOAD", "LOADAOF"):
            client.execute_command("DEBUG", what)
            is_kept(what)
        host.kill()
        host.start()
        is_kept("kill -9")
        for preamble in ("no", "yes"):
            client.config_set("aof-use-rdb-preamble", preamble)
            client.bgrewriteaof()
            wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"] and
                       not client.info("persistence")["aof_rewrite_scheduled"], "rewritten")
            host.kill()
            host.start()
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
        self.assertEqual(replica.client().pttl("{m:1}:once") > 600000, True)
        master.kill()
        other = replica.client()
        other.execute_command("REPLICAOF", "NO", "ONE")
        self.assertEqual([self.add(other, "m:1", name) for name in ("before", "a", "b", "c", "d")], [0, 0, 0, 0, 1])
        self.assertEqual((other.zscore("m:1", "ann"), other.hget("run:ann", "id")), (5, b"d"))

    def test_old_ids_go(self):
        host = self.host(boards=[*BOARDS, "once-window", "1", "once-max", "3"])
        client = host.client()
        self.assertEqual([self.add(client, "m:1", name) for name in "abc"], [1, 1, 1])
        with self.assertRaisesRegex(redis.ResponseError, "TRYAGAIN"):
            self.add(client, "m:1", "d")
        self.assertEqual(self.add(client, "m:2", "d"), 1)  # of another key
        self.assertEqual((client.zscore("m:1", "ann"), client.execute_command("LB.ZCARD", "{m:1}:once")), (3, 3))
        time.sleep(1.1)
        self.assertEqual([self.add(client, "m:1", name) for name in "ab"], [1, 1])
        self.assertEqual(client.execute_command("LB.ZCARD", "{m:1}:once"), 2)
        self.assertLessEqual(client.pttl("{m:1}:once"), 2000)
        wait_until(lambda: not client.exists("{m:1}:once"), "the host removes the board")
        self.assertEqual(self.add(client, "m:1", "a"), 1)

    def test_what_cannot_hold_ids_or_a_hash_is_an_error(self):
        host = self.host()
        client = host.client()
        for make in (lambda: client.set("{m:1}:once", "x"), lambda: client.hset("{m:1}:once", "f", "v"),
                     lambda: client.execute_command("LB.ADD", "{m:1}:once", 5, "ann")):
            make()
            with self.assertRaisesRegex(redis.ResponseError, "WRONGTYPE.*:once holds something else"):
                self.add(client, "m:1", "a")
            client.delete("{m:1}:once")
        for words in (("LB.SUBMIT", 2, "m:1", "{m:1}:once", "ONCE", "a", 5, "ann"),
                      ("LB.ADD", "m:1", "ONCE", "a", "HSET", "{m:*}:once", 1, "f", "v", 5, "1"),
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

    def test_in_a_cluster_all_are_in_one_slot(self):
        host = self.host("--cluster-enabled", "yes", is_cluster=True)
        client = host.client()
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", "a cluster of one")
        for key, ids in (("m:1", "{m:1}:once"), ("m:{1}x", "m:{1}x:once"), ("{m}:1}", "{m}:1}:once")):
            self.assertEqual(client.execute_command("LB.ADD", key, "ONCE", "a", 5, "ann"), 1)
            self.assertEqual(client.execute_command("LB.ADD", key, "ONCE", "a", 5, "ann"), 0)
            self.assertEqual(client.execute_command("LB.ZCARD", ids), 1)
            self.assertEqual(client.cluster("KEYSLOT", key), client.cluster("KEYSLOT", ids))
        for key in ("m:}1", "{}m:1"):
            with self.assertRaisesRegex(redis.ResponseError, "in a cluster ONCE needs a key"):
                client.execute_command("LB.ADD", key, "ONCE", "a", 5, "ann")
        client.execute_command("LB.SUBMIT", 2, "{m}:1", "{m}:2", "ONCE", "a", "HSET", "{m}:run:*", 1, "f", "v", 5, "ann")
        self.assertEqual(client.hgetall("{m}:run:ann"), {b"f": b"v"})
        for words in (("LB.SUBMIT", 2, "{m}:1", "{m}:2"), ("LB.ADD", "{m}:1")):
            with self.assertRaisesRegex(redis.ResponseError, "in a cluster HSET needs the board's"):
                client.execute_command(*words, "HSET", "run:*", 1, "f", "v", 6, "ann")
        self.assertEqual(float(client.execute_command("LB.ZSCORE", "{m}:1", "ann")), 5)


if __name__ == "__main__":
    unittest.main()
