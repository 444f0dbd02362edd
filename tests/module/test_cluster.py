"""A cluster of six redis-servers with the module: three masters, three replicas."""
import logging
import random
import re
import subprocess
import shutil
import threading
import time
import unittest

import redis
from redis.cluster import ClusterNode, RedisCluster

from hosts import Host, SHORT, wait_until

BOARDS = 2000 if SHORT else 100000
MEMBERS = 5
logging.getLogger("redis.cluster").setLevel(logging.CRITICAL)  # errors are what is expected
WINDOW_S = 2  # before the kill: what a master acknowledged and had no time to send


class Cluster(unittest.TestCase):
    def setUp(self):
        self.hosts = []
        for _ in range(6):
            host = Host("--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
                        "--repl-ping-replica-period", "1", is_cluster=True)
            self.addCleanup(host.stop)
            self.hosts.append(host)
        self.tell("create", *[f"127.0.0.1:{host.port}" for host in self.hosts],
                  "--cluster-replicas", 1, "--cluster-yes")
        wait_until(lambda: all(host.client().execute_command("CLUSTER INFO")["cluster_state"] == "ok"
                               for host in self.hosts), "a cluster")
        wait_until(lambda: sum(host.client().info("replication")["role"] == "slave" and
                               host.client().info("replication")["master_link_status"] == "up"
                               for host in self.hosts) == 3, "replicas")

    def tell(self, *words):
        done = subprocess.run([shutil.which("redis-cli"), "--cluster", *map(str, words)],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)
        return done.stdout

    def client(self):
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", host.port)
                                           for host in self.hosts if host.process.poll() is None],
                            decode_responses=True, cluster_error_retry_attempts=30)

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

    def check(self, client, boards):
        names = list(boards)
        for begin in range(0, len(names), 200):
            pipe = client.pipeline()
            for name in names[begin:begin + 200]:
                pipe.zrevrange(name, 0, -1)
            for name, got in zip(names[begin:begin + 200], pipe.execute()):
                self.assertEqual(got, boards[name], name)

    def count(self, stop, acknowledged, number):
        """Increments, each acknowledged with its time, until stop; errors are tried again."""
        client = self.client()
        name, value = f"m:count{number}", 0
        while not stop.is_set():
            try:
                value = float(client.zincrby(name, 1, "x"))
                acknowledged.setdefault(name, []).append((time.monotonic(), value))
            except (redis.RedisError, OSError, KeyError, ValueError, IndexError):
                time.sleep(0.05)

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
        with self.assertRaisesRegex(redis.ResponseError, "tag"):
            client.execute_command("LB.CREATE", "daily:p", "PERIOD", "DAY")
        self.assertEqual(client.execute_command("LB.CREATE", "{b}p", "PERIOD", "DAY"), "OK")
        self.check_data(client)
        client.hset("profile:u5", "name", "U")
        self.call("LB.BAN", "cheat")
        self.check_banned(client, boards)
        stop, acknowledged = threading.Event(), {}
        load = [threading.Thread(target=self.count, args=(stop, acknowledged, i), daemon=True)
                for i in range(6)]
        for each in load:
            each.start()
        node_of = lambda host: host.client().execute_command("CLUSTER MYID").decode()
        self.tell("reshard", f"127.0.0.1:{self.hosts[0].port}", "--cluster-from",
                  node_of(self.hosts[0]), "--cluster-to", node_of(self.hosts[1]),
                  "--cluster-slots", 1000, "--cluster-yes", "--cluster-pipeline", 50)
        self.check(self.client(), boards)
        replica = next(host for host in self.hosts[3:] if
                       host.client().info("replication")["master_port"] == self.hosts[2].port)
        killed_at = time.monotonic()
        self.hosts[2].kill()
        wait_until(lambda: replica.client().info("replication")["role"] == "master", "a new master")
        wait_until(lambda: replica.client().execute_command("CLUSTER INFO")["cluster_state"] == "ok",
                   "the cluster is whole")
        time.sleep(1)
        stop.set()
        for each in load:
            each.join(60)
        client = self.client()
        self.check(client, boards)
        self.check_banned(client, boards)
        boards = self.forget_everywhere(boards)
        self.check(client, boards)
        self.assertEqual(client.exists("profile:u5"), 0)
        for name, times in acknowledged.items():
            safe = max(value for at, value in times if at < killed_at - WINDOW_S)
            self.assertGreaterEqual(client.zscore(name, "x"), safe)
        for name, host in (("replica", host) for host in self.hosts[3:]):
            self.assertTrue(host.client().ping(), name)


if __name__ == "__main__":
    unittest.main()
