"""Servers on this machine's loopback, without the namespaces of cluster.py, and who writes to them."""
import threading
from contextlib import contextmanager

import process
import resp
from process import LIMIT_S, wait_until  # noqa: F401


class Server(process.Server):
    """name: "leaderboard" ($LEADERBOARD_SERVER) or "redis"."""

    def __init__(self, name, *words):
        if name == "redis":
            super().__init__("--repl-diskless-sync-delay", "0", *words, program=process.PEERS / "redis-server",
                             is_started=False)
        else:
            super().__init__(*words, is_started=False)
        self.spawn()

    def ask(self, *words):
        """None: it does not answer."""
        try:
            return super().ask(*words)
        except OSError:
            return None

    def has(self, line):
        """In INFO replication."""
        text = self.ask("INFO", "replication")
        return isinstance(text, bytes) and line.encode() in text

    def takes_writes(self):
        return isinstance(self.ask("ZADD", "begin", 1, "begin"), int)


@contextmanager
def servers(name, count, *words, first=()):
    """A master and replicas of it, which are being sent what is written. first: words of the master alone."""
    nodes = []
    try:
        for number in range(count):
            following = ("--replicaof", "127.0.0.1", str(nodes[0].port)) if number else first
            nodes.append(Server(name, *words, *following))
        for node in nodes[1:]:
            wait_until(lambda node=node: node.has("master_link_status:up"), "a replica")
        # A Redis says so before it is sent anything.
        wait_until(nodes[0].takes_writes, "the first write")
        for node in nodes[1:]:
            wait_until(lambda node=node: node.ask("ZSCORE", "begin", "begin"), "the first write on a replica")
        yield nodes
    except AssertionError:
        for node in nodes:
            print(f"---- {node.port}\n{node.told()}", flush=True)
        raise
    finally:
        for node in nodes:
            node.kill()
            process.let_port_go(node.port)


class Writer(threading.Thread):
    """New members on "board" and increments of its own counter on "sums", in turn, until a write is refused or
    the connection breaks. Each answer is known beforehand."""

    def __init__(self, port, number, pipeline):
        super().__init__(daemon=True)
        self.client, self.number, self.pipeline = resp.Client(port), number, pipeline
        self.sent = 0                      # pairs of an increment and a new member
        self.added = self.incremented = 0  # as answered
        self.is_refused = False

    def requests(self, count):
        for i in range(self.sent, self.sent + count):
            yield ("ZINCRBY", "sums", 1, self.number)
            yield ("ZADD", "board", 1, f"{self.number}:{i}")

    def take(self):
        """One pair of answers."""
        for name in ("incremented", "added"):
            answer = self.client.receive()
            if isinstance(answer, resp.Error):
                assert answer.text.startswith(("READONLY", "LOADING")), answer
                self.is_refused = True
            else:
                assert not self.is_refused, f"{answer} behind a refusal"
                setattr(self, name, getattr(self, name) + 1)

    def run(self):
        try:
            while not self.is_refused:
                self.client.send(list(self.requests(self.pipeline)))
                self.sent += self.pipeline
                for _ in range(self.pipeline):
                    self.take()
        except OSError:
            pass
        self.client.close()


def start_writers(port, pipelines):
    writers = [Writer(port, number, pipeline) for number, pipeline in enumerate(pipelines)]
    for writer in writers:
        writer.start()
    return writers


class Found:
    """What writers were answered, held against what is there."""

    def __init__(self, writers, server):
        there = set(server.ask("ZRANGE", "board", 0, -1))
        rows = server.ask("ZRANGE", "sums", 0, -1, "WITHSCORES")
        sums = dict(zip(rows[::2], map(float, rows[1::2])))
        self.answered = self.lost = self.unanswered = 0
        for writer in writers:
            added = sum(f"{writer.number}:{i}".encode() in there for i in range(writer.sent))
            incremented = int(sums.get(str(writer.number).encode(), 0))
            for done, answered in ((added, writer.added), (incremented, writer.incremented)):
                self.answered += answered
                self.lost += max(0, answered - done)
                self.unanswered += max(0, done - answered)
