"""What is at the other end, a Redis or a leaderboard server: asked for at each connection, and answered with an error
now and then."""
import contextlib
import socket
import tempfile
import threading
import unittest

import redis

import follow
import servers
from test_dump import Ours

TOO_MANY = b"-ERR max number of clients reached\r\n"


class Gate:
    """Passes on to a port, but may answer REPLCONF leaderboard itself."""

    def __init__(self, target):
        self.target = target
        self.refusal = None
        self.refused = 0
        self.links = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with contextlib.suppress(OSError):
                    server = socket.create_connection(("127.0.0.1", self.target))
                    self.links += [client, server]
                    threading.Thread(target=self.send, args=(client, server), daemon=True).start()
                    threading.Thread(target=self.answer, args=(server, client), daemon=True).start()

    def send(self, client, server):
        """The handshake's lines come one by one."""
        with contextlib.suppress(OSError):
            while heard := client.recv(65536):
                if self.refusal is not None and b"leaderboard\r\n" in heard:
                    self.refused += 1
                    client.sendall(self.refusal)
                else:
                    server.sendall(heard)
            server.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def answer(server, client):
        with contextlib.suppress(OSError):
            while heard := server.recv(65536):
                client.sendall(heard)
            client.shutdown(socket.SHUT_RDWR)

    def cut(self):
        for link in self.links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        self.cut()


class Kind(unittest.TestCase):
    def start(self, *arguments):
        directory = tempfile.TemporaryDirectory(prefix="leaderboard-kind-")
        self.addCleanup(directory.cleanup)
        server = Ours(directory.name, *arguments)
        self.addCleanup(server.process.kill)
        return server.client()

    def put_gate(self, client):
        gate = Gate(client.connection_pool.connection_kwargs["port"])
        self.addCleanup(gate.close)
        return gate

    def start_source(self):
        source = servers.Server(program=servers.shutil.which("redis-server"))
        self.addCleanup(source.process.kill)
        source.client().config_set("repl-diskless-sync-delay", 0)
        return source.client()

    def follow_a_leaderboard(self):
        """A master with a board, a gate, and a replica that has the board through it."""
        self.master = self.start()
        self.master.zadd("board", {"ann": 1, "bob": 2})
        self.gate = self.put_gate(self.master)
        self.ours = self.start("--replicaof", f"127.0.0.1 {self.gate.port}")
        self.wait_for("board", 2)

    def wait_for(self, name, count):
        def is_there():
            try:
                return self.ours.zcard(name) == count
            except redis.BusyLoadingError:
                return False

        follow.wait_until(is_there, lambda: self.ours.info("replication"))

    def refuse(self, refusal):
        self.gate.refused, self.gate.refusal = 0, refusal
        self.gate.cut()
        follow.wait_until(lambda: self.gate.refused >= 2, lambda: self.ours.info("replication"))

    def assert_error(self, text):
        info = self.ours.info("replication")
        self.assertEqual(info["master_link_status"], "down")
        self.assertIn(text, str(info["master_link_error"]))  # redis-py takes a text with commas apart
        self.assertNotIn("source_type", info)

    def test_an_error_does_not_make_a_master_a_redis(self):
        self.follow_a_leaderboard()
        self.refuse(TOO_MANY)
        self.assert_error("max number of clients reached")
        self.assertEqual(self.ours.zcard("board"), 2)
        self.gate.refusal = None
        self.master.zadd("board", {"kim": 3})
        self.wait_for("board", 3)
        self.assertEqual(self.master.info("stats")["sync_full"], 1)
        self.assertEqual(self.ours.info("replication")["master_replid"],
                         self.master.info("replication")["master_replid"])

    def test_an_error_at_the_first_connection(self):
        self.master = self.start()
        self.master.zadd("board", {"ann": 1})
        self.gate = self.put_gate(self.master)
        self.gate.refusal = TOO_MANY
        self.ours = self.start()
        self.ours.zadd("mine", {"ann": 1})
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.gate.port)
        follow.wait_until(lambda: self.gate.refused >= 2)
        self.assert_error("max number of clients reached")
        self.assertEqual(self.ours.zcard("mine"), 1)
        self.gate.refusal = None
        self.wait_for("board", 1)
        self.assertEqual(self.ours.keys("*"), [b"board"])

    def test_keys_of_a_leaderboard_are_not_replaced_by_those_of_a_redis(self):
        self.follow_a_leaderboard()
        source = self.start_source()
        source.zadd("other", {"eve": 1})
        master_port, self.gate.target = self.gate.target, source.connection_pool.connection_kwargs["port"]
        self.gate.cut()
        follow.wait_until(lambda: "is a Redis now" in str(self.ours.info("replication").get("master_link_error")))
        self.assert_error("is a Redis now")
        self.assertEqual(self.ours.keys("*"), [b"board"])
        # The master is back.
        self.gate.target = master_port
        self.master.zadd("board", {"kim": 3})
        self.wait_for("board", 3)
        # Whoever wants it says so.
        self.gate.target = source.connection_pool.connection_kwargs["port"]
        self.ours.execute_command("REPLICAOF", "NO", "ONE")
        self.ours.execute_command("REPLICAOF", "127.0.0.1", self.gate.port)
        self.wait_for("other", 1)
        self.assertEqual(self.ours.keys("*"), [b"other"])

    def test_a_leaderboard_that_takes_the_place_of_a_redis(self):
        source = self.start_source()
        source.zadd("other", {"eve": 1})
        self.gate = self.put_gate(source)
        self.ours = self.start("--replicaof", f"127.0.0.1 {self.gate.port}", "--appendonly", "yes")
        self.wait_for("other", 1)
        # Not known for a moment: what is here stays.
        self.refuse(TOO_MANY)
        self.assertIn("max number of clients", self.ours.info("replication")["master_link_error"])
        self.assertEqual(self.ours.zcard("other"), 1)
        self.master = self.start()
        self.master.zadd("board", {"ann": 1, "bob": 2})
        self.gate.refusal = None
        self.gate.target = self.master.connection_pool.connection_kwargs["port"]
        self.gate.cut()
        self.wait_for("board", 2)
        self.assertEqual(self.ours.keys("*"), [b"board"])
        info = self.ours.info("replication")
        self.assertNotIn("source_type", info)
        self.assertEqual(info["master_replid"], self.master.info("replication")["master_replid"])
        self.master.zadd("board", {"kim": 3})
        self.wait_for("board", 3)
