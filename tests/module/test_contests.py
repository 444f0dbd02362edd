"""STALE and SETTLE in redis-server: who leaves when, what an archive knows, on every copy and after a restart."""
import random
import time
import unittest

from hosts import MODULE_TEST, SHORT, Host, settled, wait_until

START_US = 1826712000 * 10 ** 6  # 2027-11-20 12:00:00Z: later than the machine thinks
MINUTE_US = 60 * 10 ** 6
BOARDS = ["layout", "daily", "FIELD", "score", "34", "TIME", "30", "MS",
          "board", "fresh:*", "default", "STALE", "10", "MINUTE",
          "board", "paid:*", "daily", "PERIOD", "DAY", "ARCHIVE", "1000", "SETTLE", "YES",
          "board", "over:*", "daily", "PERIOD", "DAY", "ARCHIVE", "2", "SETTLE", "YES",
          "board", "day:*", "daily", "PERIOD", "DAY", "ARCHIVE", "1000"]


class Contest(unittest.TestCase):
    def setUp(self):
        self.now_us, self.hosts = START_US, []

    def host(self, *options):
        host = Host(*options, boards=BOARDS, module=MODULE_TEST)
        self.addCleanup(host.stop)
        self.hosts.append(host)
        self.at(self.now_us)
        return host

    def at(self, now_us):
        """This is the time now, for all."""
        self.now_us = now_us
        for host in self.hosts:
            host.client().execute_command("LB.TESTCLOCK", now_us, now_us // 1000)

    def pair(self):
        master = self.host("--appendonly", "yes", "--appendfsync", "always")
        return master, self.host("--replicaof", f"127.0.0.1 {master.port}")

    def info(self, host, key):
        words = host.client(decode_responses=True).execute_command("LB.INFO", key)
        return dict(zip(words[::2], words[1::2]))

    def unsettled(self, host, *more):
        listed = host.client(decode_responses=True).execute_command("LB.LIST", "UNSETTLED", *more)
        return [words[1] for words in listed[1]]


class Stale(Contest):
    def members(self, host, key):
        return host.client(decode_responses=True).execute_command("LB.ZREVRANGE", key, 0, -1)

    def test_who_is_stale_leaves_on_every_copy(self):
        master, replica = self.pair()
        client = master.client()
        client.execute_command("LB.ADD", "fresh:1", 5, "ann", 4, "bob", 3, "cid")
        client.execute_command("LB.ADD", "fresh:2", 5, "ann")
        client.execute_command("LB.CREATE", "stays", "STALE", 10, "MINUTE")
        client.execute_command("LB.ADD", "stays", 5, "ann")
        client.execute_command("LB.ADD", "frozen", 5, "ann")
        client.execute_command("LB.ALTER", "frozen", "STALE", 10, "MINUTE", "FREEZE")
        settled(master, replica)
        self.at(START_US + 9 * MINUTE_US)
        client.execute_command("LB.ADD", "fresh:1", "TOUCH", 4, "bob")
        self.at(START_US + 11 * MINUTE_US)
        wait_until(lambda: self.members(master, "fresh:1") == ["bob"], "two have left")
        wait_until(lambda: not client.exists("fresh:2"), "the board has gone")
        wait_until(lambda: self.members(master, "stays") == [], "a board that was created is empty")
        self.assertEqual(client.exists("stays"), 1)
        self.assertEqual(self.members(master, "frozen"), ["ann"])
        settled(master, replica)
        self.assertEqual(self.members(replica, "fresh:1"), ["bob"])
        self.assertEqual(replica.digest(), master.digest())
        digest = master.digest()
        client.execute_command("DEBUG", "LOADAOF")
        self.assertEqual(master.digest(), digest)

    def test_it_goes_on_after_a_restart_and_under_another_name(self):
        host = self.host("--appendonly", "yes", "--appendfsync", "always")
        client = host.client()
        for key in ("fresh:1", "fresh:2", "fresh:3"):
            client.execute_command("LB.ADD", key, 5, "ann", 4, "bob")
        host.kill()
        host.start()
        self.at(self.now_us)
        client = host.client()
        client.rename("fresh:1", "renamed")
        client.execute_command("COPY", "fresh:2", "copied")
        client.move("fresh:3", 5)
        self.at(START_US + 11 * MINUTE_US)
        wait_until(lambda: client.dbsize() == 0 and host.client(db=5).dbsize() == 0,
                   lambda: f"all have left: {client.keys('*')} {host.client(db=5).keys('*')}", 20)

    def test_a_board_that_is_altered_again_and_again_has_one_note(self):
        host = self.host()
        client = host.client()
        client.execute_command("LB.CREATE", "k")
        client.execute_command("LB.ADD", "k", 5, "ann")
        for i in range(2000):
            client.execute_command("LB.ALTER", "k", "STALE", 10 + i % 2, "MINUTE")
        client.execute_command("LB.ALTER", "k", "STALE", "NONE")
        self.at(START_US + 100 * MINUTE_US)
        time.sleep(1.5)
        self.assertEqual(self.members(host, "k"), ["ann"])
        client.execute_command("LB.ALTER", "k", "STALE", 10, "MINUTE")
        self.at(START_US + 101 * MINUTE_US)
        wait_until(lambda: self.members(host, "k") == [], "it has left")

    def test_many_leave_in_steps_while_others_write(self):
        master, replica = self.pair()
        client, draw = master.client(), random.Random(7)
        count = 20000 if SHORT else 300000
        pipe = client.pipeline(transaction=False)
        for begin in range(0, count, 1000):
            pipe.execute_command("LB.ADD", "fresh:1", *[word for i in range(begin, begin + 1000)
                                                        for word in (draw.randrange(10 ** 6), f"user:{i}")])
        pipe.execute()
        self.at(START_US + 6 * MINUTE_US)
        kept = draw.sample(range(count), 1000)
        for i in kept:
            pipe.execute_command("LB.ADD", "fresh:1", "INCR", "TOUCH", 1, f"user:{i}")
        pipe.execute()
        self.at(START_US + 11 * MINUTE_US)
        longest = 0

        def written():
            nonlocal longest
            begin = time.monotonic()
            client.execute_command("LB.ADD", "fresh:1", "TOUCH", 5, "own")
            longest = max(longest, time.monotonic() - begin)
            return client.execute_command("LB.ZCARD", "fresh:1") <= 1001
        wait_until(written, "all but a thousand have left")
        print(f"longest {longest * 1000:.1f} ms ", end="")
        self.assertEqual(client.execute_command("LB.ZCARD", "fresh:1"), 1001)
        settled(master, replica)
        self.assertEqual(replica.digest(), master.digest())


class Settle(Contest):
    def test_an_archive_is_settled_once_on_every_copy(self):
        master, replica = self.pair()
        client = master.client()
        for key in ("paid:1", "day:1"):
            client.execute_command("LB.ADD", key, 5, "ann")
        self.at(START_US + 24 * 60 * MINUTE_US)
        for key in ("paid:1", "day:1"):
            client.execute_command("LB.ADD", key, 5, "ann")
        archive = "paid:1@2027-11-20"
        self.assertEqual(client.pttl(archive), -1)
        self.assertEqual(self.unsettled(master), ["day:1@2027-11-20", archive])
        self.assertEqual(client.execute_command("LB.SETTLE", archive), 1)
        self.assertEqual(client.execute_command("LB.SETTLE", archive), 0)
        self.assertEqual(client.execute_command("PEXPIRETIME", archive), (START_US + (1000 * 24 + 12) * 60 * MINUTE_US) // 1000)
        self.assertEqual(self.unsettled(master), ["day:1@2027-11-20"])
        settled(master, replica)
        for host in (master, replica):
            self.assertEqual(self.info(host, archive)["settled"], 1)
            self.assertEqual(self.info(host, archive)["ended"], 1826755200000)
            self.assertEqual(self.info(host, "day:1@2027-11-20")["settled"], 0)
        self.assertEqual(replica.client().execute_command("PEXPIRETIME", archive),
                         client.execute_command("PEXPIRETIME", archive))
        self.assertEqual(replica.digest(), master.digest())
        for what in ("LOADAOF", "RELOAD"):
            client.execute_command("DEBUG", what)
            self.assertEqual(self.info(master, archive)["settled"], 1)
            self.assertEqual(self.unsettled(master), ["day:1@2027-11-20"])

    def test_what_the_host_does_with_an_archive(self):
        host = self.host()
        client = host.client()
        client.execute_command("LB.CREATE", "k", "SETTLE", "YES")
        client.execute_command("LB.ADD", "k", 5, "ann")
        client.execute_command("LB.ROLL", "k", "old", "EX", 1000)
        client.execute_command("COPY", "old", "copy")
        payload = client.dump("old")
        client.rename("old", "moved")
        self.assertEqual(self.unsettled(host), ["moved"])
        client.delete("moved")
        client.restore("restored", 0, payload)
        self.assertEqual(self.unsettled(host), ["restored"])
        client.expire("restored", 77)  # by hand: it stays
        self.assertEqual(client.execute_command("LB.SETTLE", "restored"), 1)
        self.assertIn(client.ttl("restored"), (76, 77))
        with self.assertRaisesRegex(Exception, "board is no archive"):
            client.execute_command("LB.SETTLE", "copy")
        self.assertEqual(client.execute_command("LB.SETTLE", "nobody"), 0)

    def test_what_is_overdue_goes_when_it_is_settled(self):
        master, replica = self.pair()
        client = master.client()
        client.execute_command("LB.ADD", "over:1", 5, "ann")
        for days in (1, 2, 10):
            self.at(START_US + days * 24 * 60 * MINUTE_US)
            client.execute_command("LB.ADD", "over:1", 5, "ann")
        self.assertEqual(self.unsettled(master),
                         ["over:1@2027-11-20", "over:1@2027-11-21", "over:1@2027-11-22"])
        for day in (20, 21, 22):
            self.assertEqual(client.execute_command("LB.SETTLE", f"over:1@2027-11-{day}"), 1)
        self.assertEqual(client.keys("*@*"), [])
        settled(master, replica)
        self.assertEqual(replica.digest(), master.digest())


if __name__ == "__main__":
    unittest.main()
