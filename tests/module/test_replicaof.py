"""Boards move from a redis-server with the module to the server: REPLICAOF under load, a dump file, payloads."""
import random
import signal
import socket
import threading
import time
import unittest

import redis

from crc import Crc
from hosts import MODULE_TEST, SHORT, wait_until
import follow
from pair import Load, Pair, SEED, bans, raw
from test_dump import run_import

SECONDS = 2 if SHORT else 60
RATE = 6000 if SHORT else 12000
LONG = 10000 if SHORT else 100000
# Of sorted sets of the host, which the server makes boards of.
SETTINGS = follow.SETTINGS


class HostsLoad(Load):
    """What the host's own commands do to boards, in two databases, and to other keys. No hour or day ends a period:
    behind the cut-over each of the two would see that for itself, and not at once."""
    late = "daily:late"

    def __init__(self, seed, has_players=False):
        super().__init__(seed, keys=("daily:1", "daily:2", "daily:3", "m:1", "m:2", "daily:late", "daily:p"),
                         has_players=has_players)
        self.others = follow.Writer(seed)

    def rows(self):
        r = self.random
        text = lambda: r.choice(["text:1", "daily:3"])
        return super().rows() + [
            lambda: ["PEXPIRE", self.key(), r.choice([20, 100000, 10 ** 9])],
            lambda: ["MOVE", self.key(), 3],
            lambda: ["SET", text(), "x"],
            lambda: ["SADD", "set:1", self.member()],
            lambda: ["SUNIONSTORE", "text:1", "set:1"],
            lambda: ["DEL", text()],
            lambda: ["LB.ZUNIONSTORE", self.key(), 1, self.key()],
            lambda: ["LB.ADD", "daily:late", "*", r.randrange(3), self.member()],
            lambda: ["EVAL", "local v = redis.call('DUMP', KEYS[1]); if v then "
                             "redis.call('RESTORE', KEYS[2], 0, v, 'REPLACE') end", 2, self.key(),
                     self.key()],
            lambda: [*self.others.table[r.randrange(len(self.others.table))][1]()],
            lambda: ["SWAPDB", 0, 3] if r.random() < 0.1 else ["FLUSHDB"] if r.random() < 0.03
            else ["PING"],
        ]


class PlayersLoad(HostsLoad):
    """The same with LB.FORGET, LB.MOVE, LB.BAN and LB.UNBAN, which take steps between other commands."""

    def __init__(self, seed):
        super().__init__(seed, has_players=True)


class Moving(Pair, unittest.TestCase):
    def follow(self):
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.host.port)
        follow.wait_until_it_follows(self.ours)

    def fill(self):
        """Boards of each kind, in order and in none."""
        run = self.old.execute_command
        HostsLoad(f"{SEED} fill").run(raw(self.host.client()), 500)
        self.old.flushall()
        run("LB.CREATE", "daily:latest", "FIELD", "score", 20, "TIME", 24, "M", "LATEST", "CAP", 4)
        run("LB.CREATE", "daily:empty", "FIELD", "score", 64, "SIGNED")
        run("LB.CREATE", "daily:rolled", "PERIOD", "DAY", "TZ", "Europe/Berlin", "ARCHIVE", 2)
        for key in ("daily:latest", "daily:rolled", "daily:{b}"):
            self.old.zadd(key, {f"m{i}": i % 3 for i in range(3000)})
        run("LB.ALTER", "daily:latest", "CAP", 5000, "FREEZE")
        for i in range(0, LONG, 1000):
            self.old.zadd("daily:long", {f"member:{j}" * (1 + j % 40): j % 17 for j in range(i, i + 1000)})
        self.old.zadd("money:1", {"ann": 1.5, "bob": 1.5, "kim": -2})
        self.old.hset("hash:1", mapping={"f": "v", "g": ""})
        self.old.set("text", "x")
        self.old.pexpire("daily:{b}", 10 ** 8)
        self.host.client(db=3).zadd("daily:other", {"ann": 1})

    # ---- following ----

    def test_every_command_with_links_that_break(self):
        print(f"seed {SEED}", end=" ")
        self.start_host()
        self.start_server(*SETTINGS, "--appendonly", "yes")
        self.old.zadd("daily:9", {f"m{i}": i for i in range(2000)})
        with follow.Writers(self.host.port, SEED, count=3, rate=RATE, writer=HostsLoad):
            time.sleep(0.5)
            self.follow()
            for _ in follow.again(SECONDS, 0.2, 1.2):
                self.old.execute_command("CLIENT", "KILL", "TYPE", "replica")
        follow.cut_over(self.old, self.ours)
        self.assert_equal((0, 3))
        # What was never followed is there, too: the journal has it.
        self.assertEqual(self.server.stop(), 0)
        self.start_server(*SETTINGS, "--appendonly", "yes")
        self.assert_equal((0, 3))

    def test_players_are_forgotten_and_moved_under_load(self):
        print(f"seed {SEED}", end=" ")
        self.start_host()
        self.start_server(*SETTINGS)
        self.old.zadd("daily:9", {f"user:{i}": i for i in range(300)})
        with follow.Writers(self.host.port, SEED, count=4, rate=RATE / 4, writer=PlayersLoad):
            self.follow()
            for _ in follow.again(SECONDS, 0.2, 1.2):
                if random.random() < 0.5:
                    self.old.execute_command("CLIENT", "KILL", "TYPE", "replica")
        # Every client had its replies; what has begun is finished.
        wait_until(lambda: self.old.info("clients")["blocked_clients"] == 0, "nobody waits")
        follow.cut_over(self.old, self.ours)
        self.assert_equal((0, 3))

    def test_killed_under_load_again_and_again(self):
        """Nothing is applied twice, nothing is left out."""
        print(f"seed {SEED}", end=" ")
        self.start_host("--repl-backlog-size", "256mb")
        options = [*SETTINGS, "--appendonly", "yes", "--replicaof", f"127.0.0.1 {self.host.port}"]
        self.start_server(*options)
        with follow.Writers(self.host.port, SEED, count=2, rate=RATE / 2, writer=HostsLoad):
            for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                follow.wait_until_it_follows(self.ours)
                time.sleep(random.uniform(0.3, 1.0))
                self.server.process.send_signal(how)
                self.server.process.wait()
                self.start_server(*options)
        follow.cut_over(self.old, self.ours)
        self.assert_equal((0, 3))

    def test_killed_with_keys_that_are_asked_for(self):
        """A transaction of which a part was applied is not applied again, and what was asked is asked again."""
        self.start_host()
        self.old.zadd("daily:1", {"ann": 1, "bob": 2})
        self.old.sadd("set:1", "ann")
        options = [*SETTINGS, "--appendonly", "yes", "--replicaof", f"127.0.0.1 {self.host.port}"]
        self.start_server(*options)
        for number in range(4):
            follow.wait_until_it_follows(self.ours)
            pipeline = self.old.pipeline(transaction=True)
            pipeline.zincrby("daily:1", 1, "bob").zadd("daily:1", {f"kim {number}": 3})
            pipeline.zunionstore("money:1", ["set:1"]).execute()
            if number % 2 == 0:
                follow.wait_until(lambda: self.ours.zscore("daily:1", f"kim {number}") == 3)
            self.server.process.kill()
            self.server.process.wait()
            self.start_server(*options)
        follow.wait_until_it_follows(self.ours)
        follow.cut_over(self.old, self.ours)
        self.assert_equal()

    def test_a_copy_and_the_link_that_goes_on(self):
        self.start_host()
        self.fill()
        self.start_server(*SETTINGS)
        self.ours.zadd("mine", {"gone": 1})
        self.follow()
        self.assert_equal((0, 3))
        for number in range(3):
            self.old.execute_command("CLIENT", "KILL", "TYPE", "replica")
            self.old.zincrby("daily:{b}", 1, "m7")
            follow.wait_for_offset(self.old, self.ours)
        self.assert_equal((0, 3))
        info = follow.source_info(self.ours)
        self.assertEqual((info["source_full_syncs"], info["source_copied_module_boards"]), (1, 6))
        self.assertEqual(info["source_skipped_keys_strings"], 1)

    def test_what_overwrites_a_key_of_another_type(self):
        self.start_host()
        self.old.zadd("daily:1", {"ann": 1})
        self.old.set("daily:text", "x")
        self.old.sadd("daily:set", "a")
        self.start_server(*SETTINGS)
        self.follow()
        for key in ("daily:text", "daily:set"):
            self.old.execute_command("ZUNIONSTORE", key, 1, "daily:1")
        self.old.set("daily:1", "x")
        follow.wait_for_offset(self.old, self.ours)
        self.assert_equal()
        self.assertEqual(sorted(self.ours.keys()), [b"daily:set", b"daily:text"])

    # ---- bans ----

    def ban(self, first=0):
        """For ever and until a time, from all boards and from some, in two databases."""
        for number in range(first, first + 60):
            for pattern in range(number % 4):
                self.old.execute_command("LB.BAN", f"cheat{number}", "MATCH", f"board{pattern}:*",
                                         *([["EX", 10000], []][number % 2]))
            if number % 3 == 0:
                self.old.execute_command("LB.BAN", f"cheat{number}", "EX", 1000 + number)
        self.host.client(db=3).execute_command("LB.BAN", f"\x00other{first}")

    def assert_same_bans(self, least):
        count = 0
        for database in (0, 3):
            found = bans(self.ours_in(database))
            self.assertEqual(found, bans(raw(self.host.client(db=database))))
            count += len(found)
        self.assertGreaterEqual(count, least)

    def ours_in(self, database):
        return raw(redis.Redis(port=self.server.port, db=database))

    def banned_members(self):
        return sum(len({ban[0] for ban in bans(raw(self.host.client(db=database)))})
                   for database in (0, 3))

    def test_bans_come_with_the_copy_and_behind_it(self):
        self.start_host()
        self.old.zadd("daily:1", {"ann": 1, "bob": 2})
        self.ban()
        self.old.execute_command("LB.BAN", "soon", "EX", 2)
        options = [*SETTINGS, "--appendonly", "yes"]
        self.start_server(*options)
        # What was banned here goes with the boards.
        self.ours.execute_command("LB.BAN", "here")
        self.ours_in(5).execute_command("LB.BAN", "here", "EX", 1000)
        copied = self.banned_members()
        self.follow()
        self.assert_same_bans(100)
        self.assertEqual(bans(self.ours_in(5)), [])
        self.assertEqual(int(follow.source_info(self.ours)["source_copied_bans"]), copied)
        self.ban(60)
        self.old.execute_command("LB.UNBAN", "cheat3")
        self.old.execute_command("LB.BAN", "cheat7", "EX", 5000, "MATCH", "board0:*")
        with self.old.pipeline(transaction=True) as pipe:
            pipe.execute_command("LB.UNBAN", "cheat9")
            pipe.zadd("daily:1", {"kim": 3})
            pipe.execute()
        self.old.execute_command("LB.BAN", "ann")
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(self.old.zrange("daily:1", 0, -1), [b"bob", b"kim"])
        self.assert_same_bans(200)
        # A ban that ends goes on both.
        wait_until(lambda: not any(ban[0] == b"soon" for ban in bans(raw(self.host.client()))), "it ends")
        self.old.zadd("daily:1", {"soon": 3})
        follow.wait_for_offset(self.old, self.ours)
        self.assert_same_bans(200)
        self.assert_equal((0, 3))
        # A kill, a ban meanwhile, and the position is still that of the bans.
        self.server.process.kill()
        self.server.process.wait()
        self.old.execute_command("LB.BAN", "meanwhile")
        self.old.execute_command("LB.UNBAN", "cheat11")
        self.start_server(*options, "--replicaof", f"127.0.0.1 {self.host.port}")
        follow.wait_until_it_follows(self.ours)
        follow.wait_for_offset(self.old, self.ours)
        self.assertEqual(follow.source_info(self.ours)["source_full_syncs"], 0)
        self.assert_same_bans(200)
        self.assertEqual(int(follow.source_info(self.ours)["source_skipped_commands"]), 0)
        follow.cut_over(self.old, self.ours)
        self.assert_same_bans(200)
        for command in (["ZADD", "daily:1", 3, "ann"], ["LB.ADD", "daily:2", 3, "meanwhile"],
                        ["ZADD", "board0:1", 3, "cheat7"]):
            with self.assertRaisesRegex(redis.ResponseError, "is banned from this board"):
                self.ours.execute_command(*command)
        self.assertEqual(self.ours.zadd("elsewhere", {"cheat7": 3}), 1)
        self.assertEqual(self.ours.execute_command("LB.UNBAN", "ann"), 1)
        self.assertEqual(self.ours.zadd("daily:1", {"ann": 3}), 1)

    def test_a_copy_replaces_what_was_banned(self):
        self.start_host()
        self.ban()
        self.old.zadd("daily:1", {"ann": 1})
        self.start_server(*SETTINGS)
        self.follow()
        self.assert_same_bans(100)
        self.ours.execute_command("REPLICAOF", "NO", "ONE")
        self.ours.execute_command("LB.BAN", "here")
        self.ours.execute_command("LB.UNBAN", "cheat7")
        self.old.execute_command("LB.UNBAN", "cheat5")
        self.follow()
        self.assert_same_bans(100)
        # A source without bans.
        for client in (raw(self.host.client()), raw(self.host.client(db=3))):
            for member in {ban[0] for ban in bans(client)}:
                client.execute_command("LB.UNBAN", member)
        self.ours.execute_command("REPLICAOF", "NO", "ONE")
        self.follow()
        self.assert_same_bans(0)
        self.assertEqual(bans(self.ours_in(0)), [])

    def test_what_the_source_had_begun_is_finished_here(self):
        """The source dies in the middle of LB.FORGET, and the server takes over."""
        self.start_host()
        self.old.eval("for i = 1, 200000 do redis.call('ZADD', 'daily:' .. i, 1, 'ann') end", 0)
        self.old.zadd("daily:kept", {"bob": 1})
        self.start_server(*SETTINGS)
        self.follow()
        total = self.ours.dbsize()
        with socket.create_connection(("127.0.0.1", self.host.port)) as link:
            link.sendall(follow.encode(["LB.FORGET", "ann"]))
            follow.wait_until(lambda: self.ours.dbsize() < total, step_s=0.001)
            self.host.process.kill()
            self.host.process.wait()
        self.assertGreater(self.ours.dbsize(), 1)
        self.ours.execute_command("REPLICAOF", "NO", "ONE")
        follow.wait_until(lambda: self.ours.dbsize() == 1, lambda: self.ours.dbsize())
        self.assertEqual(self.ours.keys(), [b"daily:kept"])
        self.assertIn("continuing what a restart interrupted", self.server.log.read_text())

    def test_a_dump_file_with_bans_is_imported(self):
        self.start_host()
        self.ban()
        self.old.zadd("daily:1", {"ann": 1})
        self.old.execute_command("LB.BAN", "soon", "EX", 1)
        self.old.save()
        time.sleep(1.1)
        done = run_import(f"{self.host.directory}/dump.rdb", self.directory, *SETTINGS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"bans of the module: {self.banned_members()} members\n", done.stdout)
        self.start_server(*SETTINGS)
        self.assert_same_bans(100)
        with self.assertRaisesRegex(redis.ResponseError, "is banned from this board"):
            self.ours.zadd("daily:1", {"cheat3": 3})

    def test_what_is_banned_in_a_database_that_is_not_here_stops_it(self):
        self.start_host("--databases", "20")
        self.old.zadd("daily:1", {"ann": 1})
        self.start_server(*SETTINGS)
        self.ours.zadd("mine", {"kept": 1})
        self.ours.execute_command("LB.BAN", "here")
        self.host.client(db=17).execute_command("LB.BAN", "far")
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.host.port)
        follow.wait_until(lambda: follow.source_info(self.ours)["master_link_state"] == "stopped")
        self.assertIn("they are of database 17: there are 16 databases here, from 0 on",
                      follow.source_info(self.ours)["master_link_error"])
        self.assertEqual(self.ours.keys(), [b"mine"])
        self.assertEqual([ban[0] for ban in bans(self.ours_in(0))], [b"here"])

    def test_damaged_bans_stop_it_and_change_nothing(self):
        self.start_host()
        self.start_server(*SETTINGS)
        for blob in (b"x", b"\x04" + bytes(8) + b"\xff\xff", b"\x63" + bytes(8)):
            with self.subTest(blob=blob):
                source = FakeSource(follow.encode(["LB.APPLYSTATE", blob]))
                self.addCleanup(source.close)
                self.ours.execute_command("REPLICAOF", "127.0.0.1", source.port)
                follow.wait_until(lambda: "the source's bans: they are damaged"
                                  in follow.source_info(self.ours).get("master_link_error", ""))
                self.assertEqual(bans(self.ours_in(0)), [])

    def test_periods_end_when_the_source_says_so(self):
        self.start_host(module=MODULE_TEST)
        now_us = int(time.time() + 7200) * 1000000
        tick = lambda: self.old.execute_command("LB.TESTCLOCK", now_us, now_us // 1000)
        tick()
        self.old.execute_command("LB.CREATE", "daily:1", "PERIOD", "HOUR", "ARCHIVE", 9)
        self.old.zadd("daily:1", {"ann": 3, "bob": 3})
        self.start_server(*SETTINGS)
        self.follow()
        self.assert_equal()
        for hour in range(5):
            now_us += 3600 * 1000000
            tick()
            self.old.zadd("daily:1", {f"kim{hour}": hour, "bob": 1})
            follow.wait_for_offset(self.old, self.ours)
            self.assert_equal()
        self.assertEqual(len(self.ours.keys("daily:1@*")), 5)
        follow.cut_over(self.old, self.ours)
        self.assert_equal()
        # Server time goes on from the source's.
        self.ours.zadd("daily:1", {"late": 3})
        self.assertGreater(self.ours.execute_command("LB.GET", "daily:1", 1, "late")[0][2],
                           now_us // 1000 - 1)

    def test_damaged_changes_stop_it_and_change_nothing(self):
        self.start_host()
        self.old.zadd("daily:1", {"ann": 1})
        self.start_server(*SETTINGS)
        self.follow()
        for blob in (b"x", b"\x04" + bytes(8) + b"\xff\xff", b"\x63" + bytes(8)):
            with self.subTest(blob=blob):
                payload = follow.encode(["SELECT", 0]) + follow.encode(["LB.APPLY", "daily:1", blob])
                source = FakeSource(payload)
                self.addCleanup(source.close)
                self.ours.execute_command("REPLICAOF", "127.0.0.1", source.port)
                follow.wait_until(lambda: "LB.APPLY" in follow.source_info(self.ours).get("master_link_error", ""))
                self.assertEqual(self.ours.execute_command("ROLE")[3], b"stopped")
                self.assertEqual(self.ours.keys(), [])

    # ---- files and payloads ----

    def test_a_dump_file_is_imported(self):
        self.start_host()
        self.fill()
        self.old.save()
        done = run_import(f"{self.host.directory}/dump.rdb", self.directory, *SETTINGS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("boards of the module: 6 of", done.stdout)
        self.start_server(*SETTINGS)
        self.assert_equal((0, 3))

    def test_payloads_are_restored(self):
        self.start_host()
        self.fill()
        self.start_server(*SETTINGS)
        for name in self.old.keys("daily:*"):
            self.ours.restore(name, 0, self.old.dump(name))
            self.assertEqual(self.ours.dump(name), self.old.execute_command("LB.DUMP", name), name)
            self.ours.delete(name)
            self.old.execute_command("MIGRATE", "127.0.0.1", self.server.port, name, 0, 60000, "COPY")
            self.assertEqual(self.ours.dump(name), self.old.execute_command("LB.DUMP", name), name)
            # The same for a board beside it in the module.
            self.old.execute_command("LB.RESTORE", b"again", 0, self.old.dump(name))
            self.assertEqual(self.old.execute_command("LB.RANGE", "again", 0, -1),
                             self.old.execute_command("LB.RANGE", name, 0, -1))
            self.old.delete("again")

    def test_damaged_payloads_are_refused(self):
        self.start_host()
        self.old.execute_command("LB.CREATE", "daily:1", "FIELD", "score", 20, "TIME", 24, "M")
        self.old.zadd("daily:1", {f"m{i}": i // 2 for i in range(40)})
        payload = self.old.dump("daily:1")
        self.start_server(*SETTINGS)
        crc, taken = Crc(), 0
        for at in range(len(payload) - 10):
            for flip in (1, 128):
                damaged = bytearray(payload)
                damaged[at] ^= flip
                damaged[-8:] = bytes(8)  # no checksum is refused here
                with self.assertRaises(redis.ResponseError):
                    self.ours.restore("x", 0, bytes(damaged))
                damaged[-8:] = crc.of(damaged[:-8]).to_bytes(8, "little")
                try:
                    self.ours.restore("x", 0, bytes(damaged), replace=True)
                    taken += 1
                    self.assertLessEqual(self.ours.zcard("x"), 40)
                except redis.ResponseError:
                    pass
        self.assertEqual(self.ours.ping(), True)
        self.assertLess(taken, len(payload) * 2)


class FakeSource:
    """A master with an empty copy, and these commands behind it."""

    def __init__(self, commands):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.commands = commands
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(link,), daemon=True).start()

    def serve(self, link):
        heard = b""
        head = b"REDIS0010\xff"
        copy = head + Crc().of(head).to_bytes(8, "little")
        try:
            while True:
                heard += link.recv(65536)
                while heard.startswith(b"*"):
                    words, heard = take_command(heard)
                    if words is None:
                        break
                    name = words[0].upper()
                    if name == b"PING":
                        link.sendall(b"+PONG\r\n")
                    elif name == b"PSYNC":
                        link.sendall(b"+FULLRESYNC " + b"a" * 40 + b" 0\r\n$%d\r\n" % len(copy) + copy +
                                     self.commands)
                    elif words[1:2] == [b"leaderboard"]:
                        link.sendall(b"-ERR Unrecognized REPLCONF option: leaderboard\r\n")
                    elif words[1:2] != [b"ACK"]:
                        link.sendall(b"+OK\r\n")
        except OSError:
            pass

    def close(self):
        self.listener.close()


def take_command(heard):
    head, _, rest = heard.partition(b"\r\n")
    words = []
    for _ in range(int(head[1:])):
        size, _, rest = rest.partition(b"\r\n")
        if not size or len(rest) < int(size[1:]) + 2:
            return None, heard
        words.append(rest[:int(size[1:])])
        rest = rest[int(size[1:]) + 2:]
    return words, rest
