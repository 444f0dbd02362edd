"""A cluster of six redis-servers with the module: three masters, three replicas."""
import logging
import random
import re
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from hosts import ROOT, SHORT, SixNodes

logging.getLogger("redis.cluster").setLevel(logging.CRITICAL + 1)  # every error that it gets over

BOARDS = 1000 if SHORT else 100000
SLOTS = 200 if SHORT else 1000  # that move
REST_S = 0.01 if SHORT else 0  # of a client between two writes
MEMBERS = 5
TAGGED = 5  # one of so many boards has tags
LOADS = 3  # clients of each kind
WINDOW_S = 2  # before the kill: what a master acknowledged and had no time to send


class Cluster(SixNodes):
    def fill(self, client, draw):
        """Boards with ties: the order of arrival is what must not be lost. Returns them."""
        boards = {}
        for begin in range(0, BOARDS, 200):
            pipe = client.pipeline()
            for number in range(begin, min(begin + 200, BOARDS)):
                members = draw.sample(range(100), MEMBERS)
                scores = [draw.randrange(3) for _ in members]
                for member, score in zip(members, scores):
                    pipe.zadd(f"daily:{number}", {f"u{member}": score})
                order = sorted(range(MEMBERS), key=lambda i: -scores[i])
                boards[f"daily:{number}"] = [f"u{members[i]}" for i in order]
            pipe.execute()
        return boards

    def tag(self, client, boards):
        """Some boards get tags: members' places modulo three."""
        names = list(boards)[::TAGGED]
        for begin in range(0, len(names), 200):
            pipe = client.pipeline()
            for name in names[begin:begin + 200]:
                pipe.execute_command("LB.ALTER", name, "TAG", "team", 2)
                for place, member in enumerate(boards[name]):
                    if place % 3:
                        pipe.execute_command("LB.TAG", name, member, "team", f"t{place % 3}")
            pipe.execute()

    def check_tags(self, client, boards):
        for name in list(boards)[::TAGGED * max(1, len(boards) // 2000)]:
            expected = [["team", f"t{place % 3}"] if place % 3 else [] for place in range(MEMBERS)]
            self.assertEqual(client.execute_command("LB.TAGS", name, *boards[name]), expected, name)
            self.assertEqual(client.execute_command("LB.COUNT", name, "WHERE", "team", "t1"), 2, name)

    def check(self, client, boards):
        names = list(boards)
        for begin in range(0, len(names), 200):
            pipe = client.pipeline()
            for name in names[begin:begin + 200]:
                pipe.zrevrange(name, 0, -1)
            for name, got in zip(names[begin:begin + 200], pipe.execute()):
                self.assertEqual(got, boards[name], name)

    def work(self, stop, name, acknowledged):
        """redis-py's client, doing what load_ioredis.js does."""
        client, number = self.client(), 0
        def try_until_done(ask):
            while not stop.is_set():
                try:
                    return ask()
                except (redis.RedisError, OSError, KeyError, ValueError, IndexError, AttributeError):
                    time.sleep(0.05)
        while not stop.is_set():
            value = try_until_done(lambda: client.zincrby(f"m:count-{name}", 1, "x"))
            if value is not None:
                acknowledged.append(("count", value, time.monotonic()))
            added = try_until_done(lambda: client.zadd(f"m:order-{name}", {f"w{number}": 7}))
            if added is not None:
                acknowledged.append(("order", f"w{number}", time.monotonic()))
            number += 1
            time.sleep(REST_S)

    def begin_load(self):
        """Clients of both kinds. Returns a function that ends them and returns what was acknowledged."""
        stop, threads, programs, acknowledged = threading.Event(), [], {}, {}
        directory = tempfile.TemporaryDirectory(prefix="leaderboard-module-")
        self.addCleanup(directory.cleanup)
        for i in range(LOADS):
            acknowledged[f"py{i}"] = []
            threads.append(threading.Thread(target=self.work, daemon=True,
                                            args=(stop, f"py{i}", acknowledged[f"py{i}"])))
            threads[-1].start()
            output = open(f"{directory.name}/io{i}", "w+")
            self.addCleanup(output.close)
            programs[f"io{i}"] = output, subprocess.Popen(
                ["node", str(ROOT / "tests/module/load_ioredis.js"), f"io{i}", str(REST_S * 1000),
                 *[str(host.port) for host in self.hosts]], stdin=subprocess.PIPE, stdout=output)
            self.addCleanup(programs[f"io{i}"][1].kill)

        def end():
            stop.set()
            for thread in threads:
                thread.join(60)
            for name, (output, program) in programs.items():
                program.stdin.close()
                self.assertEqual(program.wait(60), 0)
                output.seek(0)
                lines = [line.split() for line in output]
                acknowledged[name] = [(kind, float(what) if kind == "count" else what, float(at))
                                      for kind, what, at in lines]
            return acknowledged
        return end

    def verify_load(self, client, acknowledged, killed_at):
        """Nothing from before the window is lost, and what is there is in the order of arrival."""
        lost = total = 0
        for name, records in acknowledged.items():
            safe = [(kind, what) for kind, what, at in records if at < killed_at - WINDOW_S]
            later = [what for kind, what, at in records if kind == "order" and at > killed_at + 1]
            self.assertGreater(len(safe), 10, f"{name} did nothing")
            self.assertGreater(len(later), 10, f"{name} did nothing after the failover")
            self.assertGreaterEqual(client.zscore(f"m:count-{name}", "x"),
                                    max(what for kind, what in safe if kind == "count"))
            members = client.zrevrange(f"m:order-{name}", 0, -1)
            numbers = [int(member[1:]) for member in members]
            self.assertEqual(numbers, sorted(numbers), name)
            missing = {what for kind, what, _ in records if kind == "order"} - set(members)
            self.assertFalse(missing & {what for _, what in safe}, name)
            total += len(records)
            lost += len(missing)
        print(f"{total} acknowledged, {lost} of the last {WINDOW_S} s lost ", end="", flush=True)

    def call(self, *command):
        """Ask every master; returns their replies as redis-cli prints them."""
        port = next(host.port for host in self.hosts if host.process.poll() is None)
        said = self.tell("call", f"127.0.0.1:{port}", *command, "--cluster-only-masters")
        replies = re.findall(r"^127\.0\.0\.1:\d+: (.*)$", said, re.M)
        self.assertEqual(len(replies), 3, said)
        return replies

    def check_data(self, client):
        client.zadd("{b}daily", {"ann": 7})
        client.hset("{b}profile:ann", "name", "Ann")
        client.hset("profile:ann", "name", "Annette")
        get = ["LB.GET", "{b}daily", 1, "ann", "DATA"]
        self.assertEqual(client.execute_command(*get, "{b}profile:*")[0][4], ["name", "Ann"])
        for pattern in "profile:*", "*", "{c}profile:*", "{*}profile", "*{b}", "{}b*":
            with self.assertRaisesRegex(redis.ResponseError, "tag"):
                client.execute_command(*get, pattern)

    def check_banned(self, client, boards):
        for name in list(boards)[::max(1, len(boards) // 300)]:
            with self.assertRaisesRegex(redis.ResponseError, "BANNED"):
                client.zadd(name, {"cheat": 1})

    def forget_everywhere(self, boards):
        """One of the members, on all nodes."""
        counts = [int(reply) for reply in self.call("LB.FORGET", "u5", "DATA", "profile:*")]
        self.assertEqual(sum(counts), sum("u5" in members for members in boards.values()))
        self.assertTrue(all(count > 0 for count in counts), counts)
        return {name: [each for each in members if each != "u5"]
                for name, members in boards.items()}

    def test_slots_move_and_a_master_is_killed(self):
        seed = random.randrange(1 << 30)
        print(f"seed {seed} ", end="", flush=True)
        client = self.client()
        boards = self.fill(client, random.Random(seed))
        self.check(client, boards)
        self.tag(client, boards)
        self.check_tags(client, boards)
        with self.assertRaisesRegex(redis.ResponseError, "tag"):
            client.execute_command("LB.CREATE", "daily:p", "PERIOD", "DAY")
        self.assertEqual(client.execute_command("LB.CREATE", "{b}p", "PERIOD", "DAY"), "OK")
        self.check_data(client)
        client.hset("profile:u5", "name", "U")
        self.call("LB.BAN", "cheat")
        self.check_banned(client, boards)
        end_load = self.begin_load()
        time.sleep(WINDOW_S)
        self.reshard(SLOTS, "--cluster-pipeline", 50)
        self.check(self.client(), boards)
        self.check_tags(self.client(), boards)
        time.sleep(2 * WINDOW_S)
        killed_at = self.kill_master()
        print(f"failover in {time.monotonic() - killed_at:.1f} s, ", end="", flush=True)
        time.sleep(3 * WINDOW_S)
        acknowledged = end_load()
        client = self.client()
        self.check(client, boards)
        self.check_tags(client, boards)
        self.verify_load(client, acknowledged, killed_at)
        self.check_banned(client, boards)
        boards = self.forget_everywhere(boards)
        self.check(client, boards)
        self.assertEqual(client.exists("profile:u5"), 0)
        for name, host in (("replica", host) for host in self.hosts[3:]):
            self.assertTrue(host.client().ping(), name)


if __name__ == "__main__":
    unittest.main()
