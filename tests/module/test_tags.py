"""Tags of a board's members in redis-server: they go wherever the board goes, and every copy answers for groups."""
import re
import unittest

import redis

from hosts import MODULE_TEST, Hosted, Server, SHORT, settled, wait_until

MEMBERS = 3000 if SHORT else 100000
COUNTRIES = ["DE", "FR", "US", "JP", ""]
QUESTIONS = [
    ["LB.COUNT", "{}", "BY", "country", "BY", "clan"],
    ["LB.COUNT", "{}", 0, 99, "BY", "clan", "WHERE", "country", "FR"],
    ["LB.RANGE", "{}", 0, 50, "WHERE", "country", "DE", "WHERENOT", "clan", "", "TAGS"],
    ["LB.AROUND", "{}", "MEMBER", "user:7", 5, "WITHIN", "country", "TAGS"],
    ["LB.GET", "{}", 2, "user:7", "user:8", "WHERE", "country", "US", "PCT"],
    ["LB.HIST", "{}", 20, 50, "WHERE", "clan", "clan 3"],
    ["LB.QUANTILE", "{}", 0.5, "WHERE", "country", ""],
    ["LB.RANGE", "{}", 0, -1, "WITHKEY", "TAGS"],
]


def told(client, key):
    """All that a board with tags answers."""
    return [client.execute_command(*[str(word).format(key) for word in question]) for question in QUESTIONS]


class Tagged(Hosted):
    def fill(self, client, key, count=MEMBERS):
        """Members of every country and clan, and some without."""
        pipe = client.pipeline(transaction=False)
        pipe.execute_command("LB.CREATE", key, "FIELD", "points", 20, "TIME", 42, "MS", "TAG", "country", 5, "TAG",
                             "clan", 9)
        for begin in range(0, count, 100):
            words = [word for i in range(begin, begin + 100) for word in (self.draw.randrange(100), f"user:{i}")]
            pipe.execute_command("LB.ADD", key, "TAG", "country", self.draw.choice(COUNTRIES), *words)
        for _ in range(count // 2):
            clan = self.draw.randrange(300)
            pipe.execute_command("LB.TAG", key, f"user:{self.draw.randrange(count)}", "clan",
                                 f"clan {clan}" if clan else "")
        pipe.execute()


class Alone(Tagged):
    def test_whatever_the_host_does_with_a_board(self):
        host = self.host("--appendonly", "yes", "--appendfsync", "always")
        client = host.client(decode_responses=True)
        self.fill(client, "m:1")
        before, digest = told(client, "m:1"), host.digest()
        for what in ("RELOAD", "LOADAOF"):
            client.execute_command("DEBUG", what)
            self.assertEqual(told(client, "m:1"), before, what)
            self.assertEqual(host.digest(), digest, what)
        for preamble in ("no", "yes"):
            client.config_set("aof-use-rdb-preamble", preamble)
            host.come_back_rewritten()
            self.assertEqual(told(client, "m:1"), before, preamble)
            self.assertEqual(host.digest(), digest, preamble)
        payload = host.client().dump("m:1")
        client.execute_command("COPY", "m:1", "copy")
        client.execute_command("COPY", "m:1", "other", "DB", 3)
        client.rename("m:1", "renamed")
        client.restore("restored", 0, payload)
        client.execute_command("LB.RESTORE", "own", 0, host.client().execute_command("LB.DUMP", "copy"))
        for key in ("copy", "renamed", "restored", "own"):
            self.assertEqual(told(client, key), before, key)
        self.assertEqual(told(host.client(db=3, decode_responses=True), "other"), before)
        client.move("renamed", 4)
        client.swapdb(0, 4)
        self.assertEqual(told(client, "renamed"), before)
        client.execute_command("LB.ROLL", "renamed", "archive")
        self.assertEqual(told(client, "archive"), before)
        self.assertEqual(client.execute_command("LB.COUNT", "renamed", "BY", "country"), [])
        # An archive takes no results, but tags.
        self.assertEqual(client.execute_command("LB.TAG", "archive", "user:7", "clan", "x", "IF", "clan", "x"), 0)
        self.assertEqual(client.execute_command("LB.TAG", "archive", "user:7", "clan", "x"), 1)
        digest = host.digest()
        client.execute_command("DEBUG", "LOADAOF")
        self.assertEqual(host.digest(), digest)

    def test_a_digest_has_the_tags(self):
        host = self.host()
        client = host.client()
        self.fill(client, "m:1", 300)
        digest = host.digest()
        tags = client.execute_command("LB.TAGS", "m:1", "user:5")[0]
        country = tags[tags.index(b"country") + 1] if b"country" in tags else b""
        client.execute_command("LB.TAG", "m:1", "user:5", "country", "XX")
        self.assertNotEqual(host.digest(), digest)
        client.execute_command("LB.TAG", "m:1", "user:5", "country", country)
        self.assertEqual(host.digest(), digest)

    def test_transactions_scripts_and_watchers(self):
        host = self.host()
        client = host.client(decode_responses=True)
        self.fill(client, "m:1", 300)
        client.execute_command("LB.TAG", "m:1", "user:5", "clan", "a")
        with client.pipeline() as pipe:
            pipe.watch("m:1")
            self.assertEqual(client.execute_command("LB.TAG", "m:1", "user:5", "clan", "a"), 0)
            pipe.multi()
            pipe.execute_command("LB.TAG", "m:1", "user:5", "clan", "b", "IF", "clan", "a")
            pipe.execute_command("LB.TAG", "m:1", "user:5", "clan", "c", "IF", "clan", "a")
            pipe.execute_command("LB.COUNT", "m:1", "WHERE", "clan", "b")
            self.assertEqual(pipe.execute(), [1, 0, 1])
            pipe.watch("m:1")
            self.assertEqual(client.execute_command("LB.TAG", "m:1", "user:5", "clan", "a"), 1)
            pipe.multi()
            pipe.execute_command("LB.TAG", "m:1", "user:5", "clan", "b")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        script = "return redis.call('LB.TAG', KEYS[1], ARGV[1], 'clan', ARGV[2], 'IF', 'clan', ARGV[3])"
        self.assertEqual(client.eval(script, 1, "m:1", "user:5", "z", "a"), 1)
        self.assertEqual(client.eval(script, 1, "m:1", "user:5", "z", "a"), 0)

    def test_events_are_those_of_sorted_sets(self):
        """What was set before is told no second time."""
        host = self.host("--notify-keyspace-events", "Ez")
        client = host.client(decode_responses=True)
        self.fill(client, "m:1", 100)
        listener = client.pubsub(ignore_subscribe_messages=True)
        listener.psubscribe("__keyevent@0__:*")
        wait_until(lambda: client.pubsub_numpat() == 1, "it listens")
        for value in ("new", "new", "other"):
            client.execute_command("LB.TAG", "m:1", "user:5", "clan", value)
        client.execute_command("ZREM", "m:1", "user:5")
        seen = []
        wait_until(lambda: [seen.append(message["channel"].split(":")[1]) for message in
                            [listener.get_message(timeout=0.1)] if message] is not None and "zrem" in seen, "events")
        self.assertEqual(seen, ["lb.tag", "lb.tag", "zrem"])

    def test_memory_is_the_hosts(self):
        host = self.host()
        client = host.client()
        used = lambda: client.info("memory")["used_memory"]
        self.fill(client, "m:1", 20000)  # what is there from then on is not the board's
        client.unlink("m:1")
        wait_until(lambda: client.info("memory")["lazyfree_pending_objects"] == 0, "it is freed")
        before = used()
        self.fill(client, "m:1", 20000)
        client.execute_command("LB.COUNT", "m:1", "WHERE", "country", "DE", "WHERE", "clan", "clan 1")
        grown, shown = used() - before, client.memory_usage("m:1")
        self.assertLess(abs(shown - grown), grown / 4)
        client.unlink("m:1")
        wait_until(lambda: used() - before < grown / 5, "freed")


class Copies(Tagged):
    def test_replicas_answer_for_groups(self):
        master = self.host("--repl-backlog-size", "16mb")
        client = master.client()
        self.fill(client, "m:1", MEMBERS // 2)  # comes as a copy, and what follows as effects
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}", "--repl-diskless-load",
                            self.draw.choice(["disabled", "swapdb"]), "--appendonly", "yes")
        settled(master, replica)
        self.fill(client, "m:2")
        for clan in range(300):
            client.execute_command("LB.TAG", "m:1", f"user:{self.draw.randrange(MEMBERS // 2)}", "clan", f"new {clan % 100}")
        client.execute_command("LB.ALTER", "m:2", "TAG", "country", "NONE", "TAG", "team", 3)
        client.execute_command("LB.ALTER", "m:2", "TAG", "country", 6)
        client.execute_command("LB.SUBMIT", 2, "m:1", "m:2", "TAG", "country", "FR", 17, "user:7")
        settled(master, replica)
        for key in ("m:1", "m:2"):
            self.assertEqual(told(replica.client(), key), told(client, key), key)
        self.assertEqual(replica.digest(), master.digest())
        replica.client().execute_command("DEBUG", "LOADAOF")
        self.assertEqual(replica.digest(), master.digest())
        with self.assertRaises(redis.exceptions.ReadOnlyError):
            replica.client().execute_command("LB.TAG", "m:1", "user:7", "clan", "x")

    def test_archives_of_periods_keep_them(self):
        master = self.host(module=MODULE_TEST)
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}", module=MODULE_TEST)
        client = master.client()
        end_us = 1795176000 * 10 ** 6  # 2026-11-20 12:00:00Z
        for host in (master, replica):
            host.client().execute_command("LB.TESTCLOCK", end_us - 300000, 1000)
        self.fill(client, "hourly", 300)
        client.execute_command("LB.ALTER", "hourly", "PERIOD", "HOUR")
        before = told(client, "hourly")
        client.execute_command("LB.TESTCLOCK", end_us, 2000)
        client.execute_command("LB.ADD", "hourly", "TAG", "country", "DE", 5, "user:7")
        archive = "hourly@2026-11-20T11"
        self.assertEqual(told(client, archive), before)
        claim = ["LB.TAG", archive, "user:7", "clan", "claimed", "IF", "country", COUNTRIES[0]]
        self.assertEqual(client.execute_command(*claim) + client.execute_command(*claim) < 2, True)
        settled(master, replica)
        self.assertEqual(told(replica.client(), archive), told(client, archive))
        self.assertEqual(replica.client().execute_command("LB.TAGS", "hourly", "user:7"), [[b"country", b"DE"]])
        self.assertEqual(replica.digest(), master.digest())

    def test_effects_that_a_client_sends(self):
        """Whole or not at all: also where a tag has no room for the last one."""
        host = self.host("--appendonly", "yes")
        client = host.client()
        for key in ("m:1", "m:2"):
            client.execute_command("LB.CREATE", key, "FIELD", "points", 20, "TAG", "small", 1)
            client.execute_command("LB.ADD", key, 5, "ann", 6, "bob")
        replica = self.host("--replicaof", f"127.0.0.1 {host.port}")
        settled(host, replica)
        before = len(self.written(host))
        client.execute_command("LB.TAG", "m:1", "ann", "small", "x")
        wait_until(lambda: len(self.written(host)) > before, "it is in the AOF")
        words = self.written(host)[before:].partition(b"LB.APPLY\r\n")[2]
        found = re.match(rb"\$3\r\nm:1\r\n\$(\d+)\r\n", words)
        put_x = words[found.end():found.end() + int(found.group(1))]  # ends with the value
        put_y = put_x[:-1] + b"y"
        digest = host.digest()
        with self.assertRaisesRegex(redis.ResponseError, "fit"):
            client.execute_command("LB.APPLY", "m:2", put_x.replace(b"m:1", b"m:2"), "m:1",
                                   put_y.replace(b"ann", b"bob"))
        self.assertEqual(host.digest(), digest)
        self.assertEqual(client.execute_command("LB.APPLY", "m:2", put_y.replace(b"m:1", b"m:2")), b"OK")
        self.assertEqual(client.execute_command("LB.TAGS", "m:2", "ann"), [[b"small", b"y"]])
        settled(host, replica)
        self.assertEqual(replica.digest(), host.digest())

    def test_what_another_version_has_written_is_refused_by_name(self):
        host = self.host("--appendonly", "yes")
        client = host.client()
        client.zadd("daily:1", {"ann": 1})
        wait_until(lambda: b"LB.APPLY" in self.written(host), "it is in the AOF")
        found = re.search(rb"\$8\r\nLB.APPLY\r\n\$7\r\ndaily:1\r\n\$(\d+)\r\n", self.written(host))
        blob = self.written(host)[found.end():][:int(found.group(1))]
        digest = host.digest()
        self.assertEqual(blob[0], 1)
        for other in b"\x02", b"\x06":  # a later one, and one before 1.0
            with self.assertRaisesRegex(redis.ResponseError, "of another format than this module's"):
                client.execute_command("LB.APPLY", "daily:1", other + blob[1:])
        self.assertEqual(host.digest(), digest)

    def written(self, host):
        return next((host.directory / "appendonlydir").glob("*.incr.aof")).read_bytes()

    def test_boards_with_tags_move_between_the_server_and_the_module(self):
        host, server = self.host(), Server("--layout", "race FIELD points 20 TIME 42 MS TAG country 5 TAG clan 9")
        self.addCleanup(server.stop)
        ours = redis.Redis(port=server.port)
        self.fill(host.client(), "m:1")
        ours.restore("there", 0, host.client().execute_command("LB.DUMP", "m:1"))
        self.assertEqual(told(ours, "there"), told(host.client(), "m:1"))
        host.client().execute_command("LB.RESTORE", "back", 0, ours.dump("there"))
        self.assertEqual(told(host.client(), "back"), told(ours, "there"))
        # Whoever follows the other one has them, too.
        ours.execute_command("REPLICAOF", "127.0.0.1", host.port)
        wait_until(lambda: ours.info("replication").get("source_state") == "follows", server.told)
        host.client().execute_command("LB.TAG", "m:1", "user:7", "clan", "last")
        wait_until(lambda: ours.execute_command("LB.COUNT", "m:1", "WHERE", "clan", "last") == 1, "it has come")
        self.assertEqual(told(ours, "m:1"), told(host.client(), "m:1"))
        ours.execute_command("REPLICAOF", "NO", "ONE")
        host.client().execute_command("REPLICAOF", "127.0.0.1", server.port)
        wait_until(lambda: host.client().info("replication")["master_link_status"] == "up", host.told)
        ours.execute_command("LB.ADD", "m:1", "TAG", "clan", "back", "TAG", "country", "FR", 99, "user:8")
        ours.execute_command("LB.ALTER", "m:1", "TAG", "class", 3)
        ours.execute_command("LB.TAG", "m:1", "user:7", "class", "mage")
        wait_until(lambda: len(host.client().execute_command("LB.INFO", "m:1")[-1]) == 3
                   and host.client().execute_command("LB.COUNT", "m:1", "WHERE", "class", "mage") == 1, "it has come")
        self.assertEqual(told(host.client(), "m:1"), told(ours, "m:1"))


if __name__ == "__main__":
    unittest.main()
