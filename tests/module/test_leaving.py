"""Boards move from the server to a redis-server with the module: REPLICAOF under load, redis-cli --rdb, an export."""
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

import redis

from hosts import Host, SHORT, settled, wait_until
import follow
from process import hold_port, make_certificate
from pair import Load, Pair, SEED
from test_dump import PROGRAM, Ours, run_import

SECONDS = 2 if SHORT else 60
RATE = 6000 if SHORT else 20000
LONG = 20000 if SHORT else 400000
SETTINGS = ["--layout", "money FIELD points 22 TIME 41 MS TAG country 6 TAG clan 4", "--board", "m:* money"]
DATABASES = (0, 3, 5)


class ServersLoad(Load):
    """Every command of the server that changes keys."""

    def __init__(self, seed):
        super().__init__(seed, keys=("daily:1", "daily:2", "daily:3", "m:1", "m:2", "late", "p"), has_players=True)

    def hash(self):
        return f"hash:{self.random.randrange(4)}"

    def next(self):
        command = super().next()
        return self.next() if command[0] == "EVAL" else command

    def rows(self):
        r = self.random
        field = lambda: f"field {r.randrange(20)}"
        return super().rows() + [
            lambda: ["PEXPIRE", r.choice([self.key(), self.hash()]), r.choice([20, 100000, 10 ** 9])],
            lambda: ["DEL", self.hash()] if r.random() < 0.2 else ["HGETALL", self.hash()],
            lambda: ["RENAME", self.hash(), self.hash()],
            lambda: ["RENAME", self.hash(), self.key()] if r.random() < 0.1 else ["PING"],
            lambda: ["COPY", self.hash(), self.hash(), "DB", r.choice([0, 3]), "REPLACE"],
            lambda: ["HSET", self.hash(), field(), r.randrange(1000), "other", "x" * 100, b"\xff\x00", b""],
            lambda: ["HDEL", self.hash(), field(), "other"],
            lambda: ["HINCRBY", self.hash(), "number", r.randint(-9, 9)],
            lambda: ["HINCRBYFLOAT", self.hash(), "float", 0.5],
            lambda: ["LB.ROLL", "p", f"p@{r.randrange(5)}"],
            lambda: ["FLUSHDB"] if r.random() < 0.03 else ["PING"],
        ]


def children_of(process):
    return [int(child) for child in
            Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


class Leaving(Pair, unittest.TestCase):
    def start(self, *settings, **words):
        self.start_server(*SETTINGS, *settings)
        self.start_host("--repl-diskless-load", random.choice(["disabled", "on-empty-db", "swapdb"]), **words)

    def fill(self, client, members=LONG):
        """A long board among others, a hash, expiries, bans, another database."""
        client.execute_command("LB.CREATE", "daily:latest", "FIELD", "score", 20, "TIME", 24, "M", "LATEST")
        client.execute_command("LB.CREATE", "daily:rolled", "PERIOD", "DAY", "TZ", "Europe/Berlin", "ARCHIVE", 2)
        client.execute_command("LB.CREATE", "daily:empty", "FIELD", "score", 64, "SIGNED")
        for key in ("daily:latest", "daily:rolled"):
            client.zadd(key, {f"m{i}": i % 3 for i in range(3000)})
        long = self.client_of(5)  # where no FLUSHDB comes
        for i in range(0, min(members, LONG), 1000):
            long.zadd("daily:long", {f"member:{j}" * (1 + j % 9): j % 17 for j in range(i, i + 1000)})
        for i in range(1, members // LONG):
            long.copy("daily:long", f"daily:long{i}")
        client.hset("hash:long", mapping={f"field {i}": "x" * (i % 300) for i in range(1000)})
        client.hset("hash:1", mapping={"f": "v", "g": ""})
        client.pexpire("hash:1", 10 ** 8)
        client.pexpire("daily:latest", 10 ** 8)
        client.execute_command("LB.BAN", "eve")
        self.client_of(3).zadd("daily:other", {"ann": 1})

    def client_of(self, database):
        return redis.Redis(port=self.server.port, db=database)

    def follow(self):
        self.old.execute_command("REPLICAOF", "127.0.0.1", self.server.port)
        self.wait_for_link()

    def wait_for_link(self):
        wait_until(lambda: self.old.info("replication")["master_link_status"] == "up",
                   lambda: f"Redis follows: {self.host.log.read_text()[-2000:]}")

    def has_everything(self):
        info = self.ours.info("replication")
        return any(info[f"slave{i}"]["state"] == "online"
                   and info[f"slave{i}"]["offset"] == info["master_repl_offset"]
                   for i in range(info["connected_slaves"]))

    def cut_over(self):
        """As docs/scale/server-and-module.md says."""
        self.ours.execute_command("CLIENT", "PAUSE", 120000, "WRITE")
        wait_until(lambda: not follow.expires_soon(self.ours), "no key expires while the two are compared")
        wait_until(self.has_everything, lambda: f"Redis has everything: {self.ours.info('replication')}")

    def assert_same(self):
        self.assert_equal(DATABASES)

    # ---- following ----

    def test_every_command_with_links_that_break(self):
        print(f"seed {SEED}", end=" ")
        self.start()
        self.fill(self.ours)
        with follow.Writers(self.server.port, SEED, count=4, rate=RATE, writer=ServersLoad):
            time.sleep(0.5)
            self.follow()
            for _ in follow.again(SECONDS, 0.5, 1.5):
                self.ours.execute_command("CLIENT", "KILL", "TYPE", "replica")
                self.wait_for_link()
        self.cut_over()
        self.assert_same()
        stats = self.ours.info("stats")
        self.assertGreater(stats["sync_partial_ok"], 0, "links that broke went on")
        self.assertNotIn("CRITICAL", self.host.log.read_text())
        self.old.execute_command("REPLICAOF", "NO", "ONE")
        # It leads, and goes on where the server was: time, order of arrival, bans.
        self.old.execute_command("LB.ZADD", "again", 5, "ann", 5, "bob")
        self.assertEqual(self.old.execute_command("LB.ZREVRANGE", "again", 0, -1), [b"ann", b"bob"])
        with self.assertRaisesRegex(redis.ResponseError, "BANNED"):
            self.old.execute_command("LB.ZADD", "again", 5, "eve")

    def test_a_copy_is_equal_and_shared_by_those_who_wait(self):
        self.start()
        self.fill(self.ours)
        other = Host()
        self.addCleanup(other.stop)
        for client in (self.old, other.client()):
            client.execute_command("REPLICAOF", "127.0.0.1", self.server.port)
        self.wait_for_link()
        wait_until(lambda: other.client().info("replication")["master_link_status"] == "up", "both follow")
        # WAIT counts them, as it counts the server's own replicas.
        link = self.client_of(0)
        link.zadd("daily:1", {"ann": 1})
        self.assertEqual(link.execute_command("WAIT", 2, 60000), 2)
        self.assert_same()
        self.assertEqual(other.digest(), self.host.digest())
        self.assertNotIn("CRITICAL", self.host.log.read_text())

    def test_a_link_goes_on_where_it_was_or_begins_anew(self):
        self.start("--repl-backlog-size", "16384", "--appendonly", "no")
        self.fill(self.ours, 1000)
        self.follow()
        syncs = lambda: [self.ours.info("stats")[f"sync_{kind}"] for kind in ("full", "partial_ok", "partial_err")]
        self.assertEqual(syncs(), [1, 0, 1])  # it had a history of its own
        for number in range(3):
            self.old.execute_command("CLIENT", "KILL", "TYPE", "master")
            self.ours.zadd("daily:1", {"ann": number, "bob": number})
            self.wait_for_link()
            self.cut_over()
            self.assert_same()
            self.ours.execute_command("CLIENT", "UNPAUSE")
            self.assertEqual(syncs(), [1, number + 1, 1])
        # What it needs next is gone from the backlog.
        self.old.config_set("masterauth", "wrong")
        self.ours.execute_command("ACL", "SETUSER", "default", "resetpass", ">other")
        self.ours = redis.Redis(port=self.server.port, password="other")
        self.ours.execute_command("CLIENT", "KILL", "TYPE", "replica")
        for number in range(1000):
            self.ours.zadd("daily:1", {f"member {number}" * 200: number})
        self.old.config_set("masterauth", "other")
        self.wait_for_link()
        self.assertEqual(syncs(), [2, 3, 2])
        self.ours.execute_command("ACL", "SETUSER", "default", "nopass")
        self.ours = redis.Redis(port=self.server.port)
        self.cut_over()
        self.assert_same()

    def test_what_was_there_is_replaced(self):
        self.start()
        self.ours.zadd("daily:1", {"ann": 1})
        self.old.zadd("daily:gone", {"ann": 1})
        self.old.set("daily:1", "text")
        self.old.execute_command("LB.BAN", "kim")
        self.follow()
        self.assert_same()
        self.assertEqual(self.old.keys(), [b"daily:1"])

    def test_redis_and_its_own_replica_follow_a_replica(self):
        """The server's replica feeds Redis, which feeds another Redis."""
        self.start()
        self.fill(self.ours, 3000)
        directory = f"{self.directory}/replica"
        os.mkdir(directory)
        replica = Ours(directory, *SETTINGS, "--replicaof", f"127.0.0.1 {self.server.port}")
        self.addCleanup(replica.process.kill)
        wait_until(lambda: replica.client().info("replication")["master_link_status"] == "up", "the replica follows")
        last = Host()
        self.addCleanup(last.stop)
        self.old.execute_command("REPLICAOF", "127.0.0.1", replica.port)
        self.wait_for_link()
        last.client().execute_command("REPLICAOF", "127.0.0.1", self.host.port)
        load = ServersLoad(f"{SEED} chain")
        for _ in range(40):
            with socket.create_connection(("127.0.0.1", self.server.port)) as link:
                link.sendall(load.batch() + follow.encode(["ECHO", "the end"]))
                while not link.recv(1 << 20).endswith(b"the end\r\n"):
                    pass
        self.ours.execute_command("CLIENT", "PAUSE", 120000, "WRITE")
        offset = lambda client: client.info("replication")["master_repl_offset"]
        wait_until(lambda: replica.client().info("replication")["slave_repl_offset"] == offset(self.ours),
                   "the replica has everything")
        wait_until(lambda: replica.client().info("replication")["slave0"]["offset"] == offset(self.ours),
                   "Redis has everything")
        self.assert_same()
        settled(self.host, last)
        self.assertEqual(last.digest(), self.host.digest())

    # ---- failures ----

    def test_killed_in_the_copy(self):
        """Redis, the process that makes the copy, the server itself: the next copy is whole."""
        self.start("--appendonly", "yes")
        self.fill(self.ours, 200000 if SHORT else 1500000)
        writers = None
        try:
            for what in ("child", "redis", "child"):
                writers = writers or follow.Writers(self.server.port, SEED, count=1, rate=RATE / 10, writer=ServersLoad)
                self.old.execute_command("REPLICAOF", "127.0.0.1", self.server.port)
                said = self.server.log.read_text().count("has failed")
                children = wait_until(lambda: children_of(self.server.process), "a copy is made")
                if what == "child":
                    for child in children:
                        os.kill(child, signal.SIGKILL)
                    # It is said, each time, and Redis asks again. One that was at its end has sent all.
                    wait_until(lambda: self.server.log.read_text().count("has failed") > said
                               or self.old.info("replication")["master_link_status"] == "up",
                               "the log says so, or the copy is there")
                else:
                    self.host.kill()
                    self.host.start()
                    self.old = self.host.client()
                    wait_until(lambda: not children_of(self.server.process), "the copy for nobody ends")
                    continue
                self.wait_for_link()
                self.old.execute_command("REPLICAOF", "NO", "ONE")
        finally:
            writers.stop()
        self.assertIn("has failed", self.server.log.read_text())
        self.old.execute_command("REPLICAOF", "127.0.0.1", self.server.port)
        wait_until(lambda: children_of(self.server.process), "a copy is made")
        self.server.process.kill()
        self.server.process.wait()
        port = self.server.port
        self.start_server(*SETTINGS, "--appendonly", "yes")
        self.assertNotEqual(self.server.port, port)
        self.follow()
        self.cut_over()
        self.assert_same()
        wait_until(lambda: not children_of(self.server.process), "no process is left")

    def ask_and_stop_the_process(self, after_s=0):
        """Somebody asks for a copy, and the process that makes it stands still while much of it is still to come."""
        link = socket.create_connection(("127.0.0.1", self.server.port))
        self.addCleanup(link.close)
        link.sendall(follow.encode(["PSYNC", "?", -1]))
        [child] = wait_until(lambda: "copy for Redis begun" in self.server.log.read_text()
                             and children_of(self.server.process), "a copy is made")
        time.sleep(after_s)
        os.kill(child, signal.SIGSTOP)
        return child

    def test_a_process_that_does_nothing_is_given_up(self):
        """Else no snapshot could be saved any more."""
        self.start_server(*SETTINGS, "--repl-timeout", "2")
        self.fill(self.ours, 500000)
        self.ask_and_stop_the_process()
        wait_until(lambda: "has done nothing for repl-timeout" in self.server.log.read_text(), "the log says so")
        wait_until(lambda: not children_of(self.server.process), "no process is left")
        wait_until(lambda: self.ours.info("replication")["connected_slaves"] == 0, "who waited for it is closed")
        self.ours.execute_command("BGSAVE")

    def assert_shutdown_does_not_wait(self, after_s):
        self.start_server(*SETTINGS)
        self.fill(self.ours, 500000)
        child = self.ask_and_stop_the_process(after_s)
        time.sleep(1)  # until the pipe is full
        self.server.process.terminate()
        try:
            self.assertEqual(self.server.process.wait(30), 0)
        finally:
            if Path(f"/proc/{child}").exists():
                os.kill(child, signal.SIGKILL)

    def test_shutdown_does_not_wait_for_the_process_that_takes_the_snapshot(self):
        self.assert_shutdown_does_not_wait(0)

    def test_shutdown_does_not_wait_for_the_process_that_has_the_snapshot(self):
        self.assert_shutdown_does_not_wait(0.05)

    def test_a_redis_without_the_module_gets_nothing_and_the_server_goes_on(self):
        self.start_server(*SETTINGS)
        self.fill(self.ours, 1000)
        self.start_host(boards=None)
        self.old.execute_command("REPLICAOF", "127.0.0.1", self.server.port)
        wait_until(lambda: "LB-board1" in self.host.log.read_text() or "leaderboard" in self.host.log.read_text(),
                   "Redis says what is missing")
        self.assertEqual(self.client_of(5).zcard("daily:long"), 1000)

    def test_one_that_reads_nothing_is_closed(self):
        self.start_server(*SETTINGS, "--repl-timeout", "3")
        self.fill(self.ours)
        with socket.create_connection(("127.0.0.1", self.server.port)) as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.sendall(follow.encode(["PSYNC", "?", -1]))
            wait_until(lambda: self.ours.info("replication")["connected_slaves"] == 1, "it is a replica")
            with follow.Writers(self.server.port, SEED, count=1, rate=RATE, writer=ServersLoad):
                wait_until(lambda: self.ours.info("replication")["connected_slaves"] == 0,
                           lambda: f"it is closed: {self.ours.info('replication')}")
        wait_until(lambda: not children_of(self.server.process), "no process is left")
        self.assertIn("repl-timeout", self.server.log.read_text())

    def test_one_that_reads_next_to_nothing_does_not_hold_others_up(self):
        self.start_server(*SETTINGS, "--repl-timeout", "3")
        self.fill(self.ours, 500000)
        with socket.create_connection(("127.0.0.1", self.server.port)) as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.sendall(follow.encode(["PSYNC", "?", -1]))

            def is_closed():
                time.sleep(0.1)  # 5 KB/s, a quarter of what is too little
                try:
                    link.recv(500)
                except ConnectionError:
                    pass
                return self.ours.info("replication")["connected_slaves"] == 0

            wait_until(lambda: "copy for Redis begun" in self.server.log.read_text(), "it gets a copy")
            wait_until(is_closed, "it is closed")
        self.assertIn("next to nothing of its copy", self.server.log.read_text())

    def test_rights(self):
        self.start()
        self.ours.execute_command("ACL", "SETUSER", "mover", "on", ">secret", "+psync", "+replconf", "+ping")
        self.ours.execute_command("ACL", "SETUSER", "guest", "on", ">secret", "+ping", "+replconf")
        self.ours.execute_command("ACL", "SETUSER", "default", "resetpass", ">other")
        self.ours = redis.Redis(port=self.server.port, password="other")
        self.ours.zadd("daily:1", {"ann": 1})
        self.old.config_set("masterauth", "secret")
        self.old.config_set("masteruser", "guest")
        self.old.execute_command("REPLICAOF", "127.0.0.1", self.server.port)
        wait_until(lambda: "NOPERM" in self.host.log.read_text(), "the guest is refused")
        self.old.config_set("masteruser", "mover")
        self.wait_for_link()
        self.assertEqual(self.old.execute_command("LB.ZRANGE", "daily:1", 0, -1), [b"ann"])

    def test_tls(self):
        port = hold_port()
        certificate, key = make_certificate(alternative="IP:127.0.0.1")
        self.start_server(*SETTINGS, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key,
                          "--tls-auth-clients", "no")
        self.fill(self.ours)
        self.start_host("--tls-ca-cert-file", certificate, "--tls-cert-file", certificate, "--tls-key-file", key,
                        "--tls-replication", "yes")
        self.old.execute_command("REPLICAOF", "127.0.0.1", port)
        self.wait_for_link()
        self.ours.zadd("daily:1", {"ann": 1})
        self.cut_over()
        self.assert_same()

    def test_what_cannot_be_asked(self):
        self.start_server()
        for words, error in ((["PSYNC", "?"], "wrong number of arguments"),
                             (["PSYNC", "?", "x"], "not an integer"),
                             (["REPLCONF", "rdb-only", "2"], "rdb-only is 0 or 1"),
                             (["REPLCONF", "rdb-filter-only", "functions"], "all keys are sent")):
            with self.subTest(words=words), self.assertRaisesRegex(redis.ResponseError, error):
                self.ours.execute_command(*words)
        pipe = self.ours.pipeline()
        pipe.execute_command("SYNC")
        with self.assertRaises(redis.ResponseError):
            pipe.execute()

    # ---- files ----

    def load_file(self, path):
        """In a redis-server with the module, and in a server by --import."""
        self.start_host()
        self.host.kill()
        shutil.copy(path, f"{self.host.directory}/dump.rdb")
        self.host.start()
        self.old = self.host.client()
        self.assert_same()
        directory = f"{self.directory}/imported"
        os.mkdir(directory)
        done = run_import(path, directory, *SETTINGS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.server = Ours(directory, *SETTINGS)
        self.addCleanup(self.server.process.kill)
        self.ours = self.server.client()
        self.assert_equal(DATABASES)

    def test_redis_cli_writes_a_file_that_loads(self):
        self.start_server(*SETTINGS)
        self.fill(self.ours)
        path = f"{self.directory}/copy.rdb"
        with follow.Writers(self.server.port, SEED, count=1, rate=RATE / 10, writer=ServersLoad):
            done = subprocess.run(["redis-cli", "-p", str(self.server.port), "--rdb", path], timeout=300,
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_until(lambda: self.ours.info("replication")["connected_slaves"] == 0, "it has gone")
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), "--rdb", path], timeout=300,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.load_file(path)

    def test_an_exported_backup_loads(self):
        self.start_server(*SETTINGS)
        self.fill(self.ours)
        backup, path = f"{self.directory}/backup", f"{self.directory}/backup.rdb"
        for words in (["--backup", f"127.0.0.1:{self.server.port}", backup],
                      ["--export", backup, path, "--format", "rdb"]):
            done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(backup, "rb") as file:
            done = subprocess.run([PROGRAM, "--export", "-", "-", "--format", "rdb"], stdin=file,
                                  capture_output=True, timeout=300, cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, Path(path).read_bytes())
        damaged = bytearray(Path(backup).read_bytes())
        damaged[len(damaged) // 2] ^= 1
        done = subprocess.run([PROGRAM, "--export", "-", "-", "--format", "rdb"], input=bytes(damaged),
                              capture_output=True, timeout=300, cwd=self.directory)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.load_file(path)
