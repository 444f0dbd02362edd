"""Commands on one member wherever it is, in redis-server: in steps, with bans and orders that are kept."""
import random
import threading
import time
import unittest
from pathlib import Path

import redis

from hosts import Changes, Hosted, Server, SHORT, settled, wait_until

BOARDS = 20000 if SHORT else 300000
BANNED = "BANNED member is banned from this board"


def pairs(reply):
    return dict(zip(reply[::2], reply[1::2]))


def listed(client, *options):
    """All that LB.LIST replies, by name."""
    boards, cursor = {}, "0"
    while True:
        cursor, found = client.execute_command("LB.LIST", "CURSOR", cursor, *options)
        boards.update((pairs(board)["name"], pairs(board)) for board in found)
        if str(cursor) == "0":
            return boards


def fill(client, count, member="ann"):
    pipe = client.pipeline(transaction=False)
    for number in range(count):
        pipe.zadd(f"daily:{number}", {member: number, f"other{number % 7}": 5})
        if number % 1000 == 999:
            pipe.execute()
    pipe.execute()


class Hosts(Hosted):
    def expect_error(self, client, text, *command):
        with self.assertRaisesRegex(redis.ResponseError, text):
            client.execute_command(*command)

    def begin(self, host, *command, is_long=True):
        """Send a command that takes long; returns a function that waits for its reply."""
        got = []

        def ask():
            try:
                got.append(host.client(decode_responses=True).execute_command(*command))
            except (redis.RedisError, OSError) as error:
                got.append(error)
        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: host.client().info("clients")["blocked_clients"] == 1 or got, "it runs")
        if is_long:
            self.assertEqual(got, [], "it takes several steps")

        def reply():
            asking.join(120)
            return got[0]
        return reply


class Members(Hosts):
    def test_boards_are_listed_as_the_server_does(self):
        host, server = self.host(), Server()
        module = host.client(decode_responses=True)
        standalone = redis.Redis(port=server.port, decode_responses=True)
        for client in (module, standalone):
            for number in range(150):
                client.execute_command("LB.ADD", f"plain:{number}", number, "ann")
                client.hset(f"hash:{number}", "a", 1)
            client.execute_command("LB.CREATE", "month", "FIELD", "points", 20, "PERIOD", "MONTH",
                                   "ARCHIVE", 3, "LIMIT", 7)
            client.execute_command("LB.ADD", "month", 7, "ann")
            client.execute_command("LB.CREATE", "wide", "FIELD", "score", 64, "SIGNED")
        self.assertEqual(listed(module, "COUNT", 7), listed(standalone))
        self.assertEqual(len(listed(module)), 152)
        self.assertEqual(listed(module, "MATCH", "plain:1?"), listed(standalone, "MATCH", "plain:1?"))
        # An archive is named with its board.
        month = listed(module, "MATCH", "month")["month"]
        period = pairs(month["period"])
        before = time.strftime("%Y-%m-01", time.gmtime(period["start"] / 1000 - 1))
        module.rename("plain:1", f"month@{before}")
        self.assertEqual(listed(module, "MATCH", "month")["month"]["archives"], [])  # somebody gave it this name
        module.execute_command("LB.ALTER", f"month@{before}", "FREEZE")
        self.assertEqual(listed(module, "MATCH", "month")["month"]["archives"], [f"month@{before}"])
        info = pairs(module.execute_command("LB.INFO", "month"))
        self.assertEqual(info["archives"], [f"month@{before}"])

    def test_others_are_served_meanwhile(self):
        host = self.host()
        client = host.client(decode_responses=True)
        fill(client, BOARDS)
        reply = self.begin(host, "LB.WHERE", "ann")
        client.zadd("daily:0", {"bob": 3})
        self.assertEqual(client.info("clients")["blocked_clients"], 1)
        found = reply()
        self.assertEqual({name for name, _ in found}, {f"daily:{i}" for i in range(BOARDS)})
        self.assertEqual(len(found), BOARDS)
        # A client that leaves ends a search, and not an order.
        for command, count in (["LB.WHERE", "ann"], BOARDS), (["LB.FORGET", "ann"], 0):
            leaving = redis.Connection(port=host.port)
            leaving.send_command(*command)
            wait_until(lambda: client.info("clients")["blocked_clients"] == 1, "it runs")
            leaving.disconnect()
            wait_until(lambda: client.info("clients")["blocked_clients"] == 0, "it is gone")
            if count == 0:
                wait_until(lambda: not client.execute_command("LB.WHERE", "ann"), "it is finished")
        self.assertEqual(client.zscore("daily:3", "other3"), 5)

    def test_boards_that_get_another_name_meanwhile(self):
        """Nobody puts the member on a board where it was on none: afterwards it is on none."""
        draw = random.Random(self.seed)
        host = self.host()
        if not host.hears_renames():
            self.skipTest("this version does not tell the module of other names (docs/reference/versions.md)")
        client = host.client(decode_responses=True)
        for turn in range(4):
            fill(client, 4000)
            reply = self.begin(host, "LB.FORGET", "ann", "ALL", is_long=False)
            pipe = client.pipeline(transaction=False)
            for _ in range(300):
                a, b = (f"daily:{draw.randrange(4000)}" for _ in range(2))
                database = draw.randrange(1, 4)
                draw.choice([lambda: pipe.rename(a, b), lambda: pipe.copy(a, b, replace=True),
                             lambda: pipe.move(a, database), lambda: pipe.swapdb(0, database),
                             lambda: pipe.copy(a, a, destination_db=database, replace=True),
                             lambda: pipe.execute_command("ZUNIONSTORE", a, 2, a, b),
                             lambda: pipe.execute_command("LB.ROLL", a, b),
                             lambda: pipe.execute_command("ZRANGESTORE", b, a, 0, -1)])()
                if draw.random() < 0.1:
                    pipe.execute(raise_on_error=False)
            pipe.execute(raise_on_error=False)
            self.assertIsInstance(reply(), int)
            for database in range(4):
                other = host.client(db=database, decode_responses=True)
                self.assertEqual(other.execute_command("LB.WHERE", "ann"), [], f"turn {turn}")
            client.flushall()

    def test_rights(self):
        host = self.host()
        client = host.client(decode_responses=True)
        client.zadd("daily:1", {"ann": 7})
        client.zadd("daily:2", {"ann": 9})
        client.hset("profile:ann", "name", "Ann")
        client.hset("secret:ann", "name", "Annette")
        client.execute_command("ACL", "SETUSER", "player", "on", "nopass", "+@all", "~daily:*",
                               "%R~profile:*", "%R~seen:*", "~mine:*")
        player = host.client(username="player", password="x", decode_responses=True)
        denied = "no permissions"
        data = ["LB.GET", "daily:1", 1, "ann", "DATA"]
        self.assertEqual(player.execute_command(*data, "profile:*")[0][4], ["name", "Ann"])
        self.assertEqual(len(player.execute_command("LB.WHERE", "ann", "MATCH", "daily:*")), 2)
        self.assertEqual(player.execute_command("LB.WHERE", "ann", "MATCH", "seen:*"), [])
        self.assertEqual(len(listed(player, "MATCH", "daily:*")), 2)
        self.assertEqual(player.execute_command("LB.FORGET", "ann", "MATCH", "mine:*"), 0)
        script = "return redis.call('LB.GET', KEYS[1], 1, 'ann', 'DATA', ARGV[1])"
        self.assertEqual(player.eval(script, 1, "daily:1", "profile:*")[0][4], ["name", "Ann"])
        for command in (data + ["secret:*"], data + ["*"], ["LB.WHERE", "ann"], ["LB.LIST"],
                        ["LB.WHERE", "ann", "MATCH", "d*"], ["LB.LIST", "MATCH", "*"],
                        ["LB.FORGET", "ann"], ["LB.FORGET", "ann", "MATCH", "seen:*"],
                        ["LB.FORGET", "ann", "MATCH", "mine:*", "DATA", "profile:*"],
                        ["LB.MOVE", "ann", "bob", "MATCH", "seen:*"], ["LB.BAN", "ann"],
                        ["LB.BANS"], ["LB.UNBAN", "ann"],
                        ["EVAL", script, 1, "daily:1", "secret:*"]):
            self.expect_error(player, denied, *command)
        self.assertEqual(len(client.execute_command("LB.WHERE", "ann")), 2)
        self.assertEqual(client.execute_command("LB.BANS"), ["0", []])

    def test_where_it_is_refused(self):
        host = self.host()
        client = host.client(decode_responses=True)
        client.zadd("daily:1", {"ann": 7})
        pipe = client.pipeline(transaction=True)
        for command in (["LB.WHERE", "ann"], ["LB.FORGET", "ann"], ["LB.BAN", "ann"]):
            pipe.execute_command(*command)
        for reply in pipe.execute(raise_on_error=False):
            self.assertIn("not allowed inside a transaction", str(reply))
        self.expect_error(client, "not allowed from script", "EVAL",
                          "return redis.call('LB.FORGET', 'ann')", 0)
        for damaged in (b"", b"x", b"\0" * 20, b"\4" + b"\0" * 8 + b"\377" * 9):
            self.expect_error(client, "Bad data format", "LB.APPLYSTATE", damaged)
        self.assertEqual(client.zcard("daily:1"), 1)
        self.assertEqual(client.execute_command("LB.BANS"), ["0", []])

    def test_the_hash_goes_with_the_member(self):
        host = self.host("--appendonly", "yes")
        replica = self.host("--replicaof", f"127.0.0.1 {host.port}")
        client = host.client(decode_responses=True)
        client.zadd("daily:1", {"ann": 7})
        for database in (0, 5):
            host.client(db=database).hset("profile:ann", "name", "Ann")
        client.set("text:ann", "x")
        self.assertEqual(client.execute_command("LB.FORGET", "ann", "DATA", "text:*"), 1)
        self.assertEqual(client.execute_command("LB.FORGET", "ann", "DATA", "profile:*"), 0)
        self.assertEqual((client.exists("text:ann"), client.exists("profile:ann")), (1, 0))
        self.assertEqual(host.client(db=5).exists("profile:ann"), 1)
        client.execute_command("LB.FORGET", "ann", "DATA", "profile:*", "ALL")
        settled(host, replica)
        for each in (host, replica):
            self.assertEqual(each.client(db=5).exists("profile:ann"), 0)
        client.execute_command("DEBUG", "LOADAOF")
        self.assertEqual(replica.digest(), host.digest())


class Bans(Hosts):
    def bans(self, host, database=0):
        return sorted(host.client(db=database, decode_responses=True)
                      .execute_command("LB.BANS", "COUNT", 10000)[1])

    def set_up(self, host):
        client = host.client(decode_responses=True)
        for number in range(200):
            client.execute_command("LB.BAN", f"cheat{number}", "MATCH", "daily:*")
        client.execute_command("LB.BAN", "ann", "EX", 1000)
        client.execute_command("LB.BAN", "ann", "MATCH", "m:*")
        client.execute_command("LB.UNBAN", "cheat7")
        host.client(db=3).execute_command("LB.BAN", "bob")
        self.check(host)
        return client

    def check(self, host):
        client = host.client(decode_responses=True)
        self.assertEqual(len(self.bans(host)), 199 + 2)
        self.assertEqual(self.bans(host, 3), [["bob", "*", None, 0]])
        if client.info("replication")["role"] == "master":
            self.expect_error(client, BANNED, "ZADD", "daily:1", 1, "cheat8")
            self.expect_error(client, BANNED, "ZADD", "other{b}", 1, "ann")
            self.expect_error(host.client(db=3), BANNED, "ZADD", "daily:1", 1, "bob")
            client.zadd("daily:1", {"cheat7": 1, "bob": 2})

    def test_files_have_them(self):
        always = ["--appendonly", "yes", "--appendfsync", "always"]
        for options in ([], always, [*always, "--aof-use-rdb-preamble", "no"]):
            with self.subTest(options):
                host = self.host(*options)
                client = self.set_up(host)
                client.execute_command("DEBUG", "RELOAD")
                self.check(host)
                if not options:
                    client.save()
                else:
                    client.execute_command("DEBUG", "LOADAOF")
                    self.check(host)
                    client.bgrewriteaof()
                    host.wait_for_rewriting()
                    client.execute_command("LB.BAN", "late")
                    client.execute_command("LB.UNBAN", "late")
                host.kill()
                host.start()
                self.check(host)
                client.flushall()
                self.check(host)  # as in the server, only LB.UNBAN and the end of a ban lift it

    def test_replicas_have_them(self):
        master = self.host()
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}",
                            "--repl-diskless-load", "swapdb")
        settled(master, replica)
        self.set_up(master)
        settled(master, replica)
        self.check(replica)
        self.assertEqual(self.bans(replica), self.bans(master))
        # A full copy puts its master's bans in the place of its own.
        for load in ("disabled", "swapdb"):
            other = self.host("--repl-diskless-load", load)
            other.client().execute_command("LB.BAN", "somebody")
            other.client().execute_command("REPLICAOF", "127.0.0.1", master.port)
            settled(master, other)
            self.assertEqual(self.bans(other), self.bans(master))
        # Bans end on replicas by the same time.
        master.client().execute_command("LB.BAN", "eve", "EX", 1)
        master.client().execute_command("LB.BAN", "eve", "EX", 2, "MATCH", "x*")
        wait_until(lambda: not any(ban[0] == "eve" for ban in self.bans(replica)), "it ends")
        master.client().execute_command("LB.UNBAN", "eve")
        master.client().execute_command("LB.BAN", "eve")
        settled(master, replica)
        self.assertEqual(self.bans(replica), self.bans(master))
        master.client().execute_command("LB.UNBAN", "eve")
        master.kill()
        replica.client().execute_command("REPLICAOF", "NO", "ONE")
        self.check(replica)

    def test_whatever_command_writes(self):
        """Who is banned from all boards is on none, whatever changes them."""
        host = self.host()
        changes = Changes(self.seed, has_players=True)
        client = host.client(decode_responses=True)
        checked = 0
        for _ in range(20):
            changes.run(client, 200 if SHORT else 2500)
            for member, pattern, *_ in self.bans(host):
                if pattern == "*":
                    self.assertEqual(client.execute_command("LB.WHERE", member), [], member)
                    checked += 1
        self.assertGreater(checked, 100)


class Damage(Hosts):
    def blobs(self, host):
        """What LB.APPLYSTATE got, from an AOF of commands."""
        found = []
        for path in Path(host.directory, "appendonlydir").glob("*.incr.aof"):
            aof, mark = path.read_bytes(), b"$13\r\nLB.APPLYSTATE\r\n$"
            for part in aof.split(mark)[1:]:
                size, rest = part.split(b"\r\n", 1)
                found.append(rest[:int(size)])
        return found

    def test_damaged_state_is_refused(self):
        host = self.host("--appendonly", "yes", "--appendfsync", "always",
                         "--aof-use-rdb-preamble", "no")
        client = host.client()
        for number in range(30):
            client.execute_command("LB.BAN", f"cheat{number}", "EX", 1000, "MATCH", f"b{number}:*")
        client.execute_command("LB.UNBAN", "cheat7")
        blobs = self.blobs(host)
        self.assertGreaterEqual(len(blobs), 31)
        draw, taken = random.Random(self.seed), 0
        for _ in range(3000 if SHORT else 100000):
            damaged = bytearray(draw.choice(blobs))
            for _ in range(draw.randrange(1, 4)):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            if draw.random() < 0.3:
                del damaged[draw.randrange(len(damaged)):]
            try:
                client.execute_command("LB.APPLYSTATE", bytes(damaged))
                taken += 1
            except redis.ResponseError as error:
                self.assertIn("Bad data format", str(error))
        self.assertGreater(taken, 0)  # a changed letter of a name is no damage
        client.execute_command("LB.BANS", "COUNT", 10000)
        client.execute_command("DEBUG", "RELOAD")
        client.zadd("daily:1", {"ann": 7})

    def test_damaged_files_are_refused(self):
        host = self.host("--rdbchecksum", "no")
        client = host.client(decode_responses=True)
        for number in range(30):
            client.execute_command("LB.BAN", f"cheat{number}", "MATCH", f"b{number}:*")
        client.save()
        path = Path(host.directory, "dump.rdb")
        whole, draw, refused = path.read_bytes(), random.Random(self.seed), 0
        begin = whole.index(b"cheat") - 40
        for _ in range(25 if SHORT else 400):
            damaged = bytearray(whole)
            damaged[draw.randrange(begin, len(whole) - 10)] ^= 1 << draw.randrange(8)
            host.kill()
            path.write_bytes(damaged)
            try:
                host.start()
                host.client().execute_command("LB.BANS", "COUNT", 10000)
            except AssertionError as error:
                self.assertNotRegex(str(error), "crashed|BUG REPORT|signal")
                refused += 1
        self.assertGreater(refused, 0)
        host.kill()
        path.write_bytes(whole)
        host.start()
        self.assertEqual(len(client.execute_command("LB.BANS", "COUNT", 10000)[1]), 30)


class Leaving(Hosts):
    def test_a_server_without_boards_can_leave_the_module(self):
        host = self.host("--appendonly", "no")
        client = host.client(decode_responses=True)
        client.set("text", "x")
        client.zadd("daily:1", {"ann": 7})
        client.execute_command("LB.BAN", "bob")
        client.delete("daily:1")
        client.execute_command("LB.UNBAN", "bob")
        client.config_set("aof-use-rdb-preamble", "no")
        client.config_set("appendonly", "yes")
        host.wait_for_rewriting()
        host.kill()
        host.boards = None
        host.options = ("--appendonly", "yes", "--aof-use-rdb-preamble", "no")
        host.start()
        self.assertEqual(client.get("text"), "x")
        self.assertEqual(client.keys(), ["text"])


class Orders(Hosts):
    def test_a_kill_is_followed_by_the_rest(self):
        host = self.host("--appendonly", "yes", "--appendfsync", "always")
        client = host.client(decode_responses=True)
        fill(client, BOARDS)
        self.begin(host, "LB.MOVE", "ann", "zoe", "SUM")
        host.kill()
        host.start()
        wait_until(lambda: not client.execute_command("LB.WHERE", "ann"), "the rest is done")
        found = client.execute_command("LB.WHERE", "zoe")
        self.assertEqual({name: record[3] for name, record in found},
                         {f"daily:{number}": number for number in range(BOARDS)})
        client.execute_command("DEBUG", "LOADAOF")
        self.assertEqual(len(client.execute_command("LB.WHERE", "zoe")), BOARDS)

    def test_a_replica_that_takes_over_finishes_it(self):
        master = self.host()
        fill(master.client(), BOARDS)
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}")
        settled(master, replica)
        reply = self.begin(master, "LB.FORGET", "ann")
        master.client().execute_command("CLIENT", "PAUSE", 100000, "WRITE")
        settled(master, replica)
        left = len(replica.client().execute_command("LB.WHERE", "ann"))
        self.assertTrue(0 < left < BOARDS, left)
        master.kill()
        self.assertIsInstance(reply(), (redis.RedisError, OSError))
        client = replica.client(decode_responses=True)
        client.execute_command("REPLICAOF", "NO", "ONE")
        wait_until(lambda: not client.execute_command("LB.WHERE", "ann"), "the rest is done")
        self.assertEqual(client.zrange("daily:3", 0, -1), ["other3"])

    def test_a_master_that_becomes_a_replica_leaves_it(self):
        first, second = self.host(), self.host()
        fill(first.client(), BOARDS)
        second.client().execute_command("REPLICAOF", "127.0.0.1", first.port)
        settled(first, second)
        reply = self.begin(first, "LB.FORGET", "ann")
        first.client().execute_command("REPLICAOF", "127.0.0.1", second.port)
        self.assertIn("UNBLOCKED", str(reply()))
        second.client().execute_command("REPLICAOF", "NO", "ONE")
        client = second.client(decode_responses=True)
        wait_until(lambda: not client.execute_command("LB.WHERE", "ann"), "the new master does it")
        settled(second, first)
        self.assertEqual(first.digest(), second.digest())

    def test_nothing_changes_while_a_failover_waits(self):
        host = self.host()
        client = host.client(decode_responses=True)
        fill(client, BOARDS)
        reply = self.begin(host, "LB.FORGET", "ann")
        client.execute_command("CLIENT", "PAUSE", 1000000, "WRITE")
        count = len(client.execute_command("LB.WHERE", "ann"))
        self.assertEqual(len(client.execute_command("LB.WHERE", "ann")), count)
        self.assertGreater(count, 0)
        client.execute_command("CLIENT", "UNPAUSE")
        self.assertEqual(reply(), BOARDS)


if __name__ == "__main__":
    unittest.main()
