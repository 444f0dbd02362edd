"""redis-servers with the module, boards compared, and a load that knows what was acknowledged."""
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import redis
from redis.cluster import ClusterNode, RedisCluster

import process
from process import IS_SHORT as SHORT, PROGRAM as SERVER, ROOT, hold_port, new_directory  # noqa: F401
from servers import Server  # noqa: F401

MODULE = process.os.environ.get("LEADERBOARD_SO") or str(SERVER.parent / "leaderboard.so")
MODULE_TEST = str(Path(MODULE).with_name("leaderboard-test.so"))  # with a clock that is set
BOARDS = ["layout", "money", "FIELD", "points", "22", "TIME", "41", "MS", "TAG", "country", "6", "TAG", "clan", "4",
          "board", "daily:*", "default", "board", "m:*", "money", "board", "*{b}*", "default"]


def program():
    own = process.os.environ.get("LEADERBOARD_REDIS_SERVER")
    peers = SERVER.parent / "peers" / "redis-server"
    return own or (str(peers) if peers.exists() else
                   shutil.which("redis-server") or shutil.which("redis-check-rdb"))


def wait_until(is_so, what, limit_s=process.LIMIT_S):
    return process.wait_until(is_so, what, limit_s, passing=(redis.RedisError, OSError))


class Host(process.Server):
    """A redis-server with the module (boards=None: without) in a directory of its own."""

    def __init__(self, *options, boards=BOARDS, module=MODULE, is_cluster=False, environment=None):
        directory = new_directory()
        link = directory / "redis-server"  # Debian's package redis-tools has it under another name
        link.symlink_to(program())
        self.options, self.boards, self.module = options, boards, module
        if is_cluster:
            self.bus_port = hold_port()
            self.options += ("--cluster-port", self.bus_port)
        super().__init__("--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", program=link,
                         directory=directory, environment=environment)

    def spawn(self, *more):
        module = ["--loadmodule", self.module, *self.boards] if self.boards is not None else []
        super().spawn(*self.options, *more, *module)

    def client(self, **options):
        return redis.Redis(port=self.port, **options)

    def hears_renames(self):
        """Does the module listen to the host's events of keys (docs/reference/versions.md)?"""
        version = self.client().info("server").get("valkey_version")
        numbers = tuple(int(number) for number in version.split(".")) if version else (0,)
        return not (8, 1) <= numbers < (9, 1, 2)

    def digest(self):
        """Of all keys, and the bans."""
        client = self.client()
        return (client.execute_command("DEBUG", "DIGEST"),
                sorted(client.execute_command("LB.BANS", "COUNT", 10000)[1]))

    def wait_for_rewriting(self):
        """Until its AOF has been written anew."""
        told = lambda: self.client().info("persistence")
        wait_until(lambda: not told()["aof_rewrite_in_progress"] and not told()["aof_rewrite_scheduled"], "rewritten")

    def come_back_rewritten(self):
        """Write the AOF anew, be killed, and load it."""
        self.client().bgrewriteaof()
        self.wait_for_rewriting()
        self.kill()
        self.start()

    def stop(self):
        if self.process.poll() is None:
            self.kill()
        elif self.process.returncode not in (0, -signal.SIGKILL, -signal.SIGTERM):
            print(f"{program()} has ended with {self.process.returncode}:\n{self.told()}", file=sys.stderr)
        process.let_port_go(self.port)


class Hosted(unittest.TestCase):
    """Hosts that are stopped behind the test, and random numbers whose seed is printed."""

    def setUp(self):
        self.seed = random.randrange(1 << 30)
        self.draw = random.Random(self.seed)
        print(f"seed {self.seed} ", end="", flush=True)

    def host(self, *options, **more):
        host = Host(*options, **more)
        self.addCleanup(host.stop)
        return host


class SixNodes(unittest.TestCase):
    """Three masters and three replicas."""

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

    def reshard(self, slots, *options):
        """From the first node to the second."""
        first, second = (host.client().execute_command("CLUSTER MYID").decode() for host in self.hosts[:2])
        self.tell("reshard", f"127.0.0.1:{self.hosts[0].port}", "--cluster-from", first, "--cluster-to", second,
                  "--cluster-slots", slots, "--cluster-yes", *options)

    def kill_master(self):
        """The third node, whose replica takes over. The time of the kill, by time.monotonic()."""
        replica = next(host for host in self.hosts[3:] if
                       host.client().info("replication")["master_port"] == self.hosts[2].port)
        killed_at = time.monotonic()
        self.hosts[2].kill()
        wait_until(lambda: replica.client().info("replication")["role"] == "master", "a new master")
        wait_until(lambda: replica.client().execute_command("CLUSTER INFO")["cluster_state"] == "ok",
                   "the cluster is whole")
        return killed_at

    def client(self):
        return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", host.port)
                                           for host in self.hosts if host.process.poll() is None],
                            decode_responses=True, cluster_error_retry_attempts=30)


def settled(master, replica):
    """The replica has all that its master has."""
    def is_settled():
        ours, its = master.client().info("replication"), replica.client().info("replication")
        return (its.get("master_link_status") == "up"
                and its["slave_repl_offset"] == ours["master_repl_offset"])
    wait_until(is_settled, "the replica follows")


class Changes:
    """Random changes of boards: every command that changes one, in and out of MULTI and Lua.

    m:* have tags from the beginning, others where LB.ALTER has given them some, and sometimes a tag has no room for a
    value. has_players: members are banned, forgotten and moved, too."""

    TAGS = {"country": ["DE", "FR", "US", ""], "clan": ["", *[f"clan {i}" for i in range(18)]]}

    def __init__(self, seed, keys=("daily:1", "daily:2", "daily:3", "m:1", "m:2"),
                 has_players=False):
        self.random, self.keys, self.has_players = random.Random(seed), list(keys), has_players

    def key(self):
        return self.random.choice(self.keys)

    def member(self):
        return f"user:{self.random.randrange(300)}"

    def value(self):
        """Name and value of a tag."""
        name = self.random.choice(list(self.TAGS))
        return [name, self.random.choice(self.TAGS[name])]

    def next(self):
        r = self.random
        number = lambda: r.randrange(100)
        if self.has_players and number() < 20:
            return r.choice([
                ["LB.BAN", self.member()], ["LB.UNBAN", self.member()],
                ["LB.BAN", self.member(), "EX", 1000, "MATCH", "m:*"],
                ["LB.FORGET", self.member()],
                ["LB.MOVE", self.member(), self.member(), r.choice(["BEST", "SUM"])]])
        return r.choice([
            lambda: ["ZADD", self.key(), number(), self.member()],
            lambda: ["ZADD", self.key(), *[word for _ in range(40)
                                           for word in (number(), self.member())]],
            lambda: ["ZINCRBY", self.key(), number(), self.member()],
            lambda: ["ZREM", self.key(), self.member(), self.member()],
            lambda: ["ZPOPMAX", self.key(), r.randrange(5)],
            lambda: ["ZMPOP", 2, self.key(), self.key(), "MIN", "COUNT", 2],
            lambda: ["ZREMRANGEBYRANK", self.key(), 100, 110],
            lambda: ["ZREMRANGEBYSCORE", self.key(), number(), number()],
            lambda: [r.choice(["ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"]), self.key(), 2,
                     self.key(), self.key()],
            lambda: ["ZRANGESTORE", self.key(), self.key(), 0, 60],
            lambda: ["DEL", self.key()] if number() < 20 else ["ZADD", self.key(), 1, "x"],
            lambda: ["RENAME", self.key(), self.key()],
            lambda: ["COPY", self.key(), self.key(), "REPLACE"],
            lambda: ["LB.ADD", self.key(), "INCR", number(), self.member()],
            lambda: ["LB.ADD", self.key(), "ONCE", f"r{number()}", "INCR", number(), self.member()],
            lambda: ["LB.SUBMIT", 2, self.key(), self.key(), "ONCE", f"r{number()}", "XX", "INCR", 1, self.member()],
            lambda: ["LB.ADD", self.key(), "TAG", *self.value(), *[word for _ in range(r.choice([1, 1, 30]))
                                                                   for word in (number(), self.member())]],
            lambda: ["LB.TAG", self.key(), self.member(), *self.value()],
            lambda: ["LB.TAG", r.choice(["m:1", "m:2"]), self.member(), *self.value(), *self.value()],
            lambda: ["LB.TAG", self.key(), self.member(), *self.value(), "IF", *self.value()],
            lambda: ["LB.ALTER", self.key(), "TAG", "country", 6, "TAG", "clan", r.choice([4, 4, 3])],
            lambda: ["LB.ALTER", self.key(), "TAG", "clan", 4, "TAG", "country", 9],
            lambda: ["LB.ALTER", self.key(), "TAG", self.value()[0], "NONE" if number() < 20 else 5],
            lambda: ["LB.SUBMIT", 2, "m:1", "m:2", "BEST", "TAG", *self.value(), number(), self.member()],
            lambda: ["LB.ROLL", self.key(), self.key()],
            lambda: ["LB.SETTLE", self.key()],
            lambda: ["LB.ALTER", self.key(), "SETTLE", r.choice(["YES", "NO"]), "STALE", 1000, r.choice(["DAY", "HOUR"])],
            lambda: ["LB.ALTER", self.key(), "CAP", 50 + number()],
            lambda: ["LB.CREATE", self.key()],
            lambda: ["LB.SUBMIT", 2, self.key(), self.key(), "INCR", 1, self.member()],
            lambda: ["EVAL", "redis.call('ZADD',KEYS[1],ARGV[1],ARGV[2]); "
                             "return redis.call('ZINCRBY',KEYS[1],2,ARGV[2])", 1, self.key(),
                     number(), self.member()],
        ])()

    def run(self, client, count):
        """Returns the number of error replies."""
        errors = 0
        while count > 0:
            pipe = client.pipeline(transaction=self.random.random() < 0.3)
            for _ in range(min(count, 50)):
                pipe.execute_command(*self.next())
            count -= 50
            try:
                replies = pipe.execute(raise_on_error=False)
            except redis.ResponseError as error:  # of a command that this version does not know: none of them has run
                replies = [error]
            errors += sum(isinstance(reply, redis.RedisError) for reply in replies)
        return errors
