"""Restarts under load: applications behind HAProxy see no error, no write is lost or done twice, and
the order of ties stays."""
import os
import subprocess
import threading
import time
import unittest

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

import parts

CLIENTS = 8
# and the writes of every client between two of them
RESTARTS, BETWEEN = (3, 50) if os.environ.get("LEADERBOARD_TEST_SHORT") else (20, 400)


class Application(threading.Thread):
    """Writes one after another, as fast as it goes. Every reply is known beforehand: a write that was
    lost or repeated shows in the next one."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.number, self.count, self.error, self.is_over = number, 0, None, False
        errors = [redis.ConnectionError, redis.TimeoutError]
        self.retry = Retry(ExponentialBackoff(cap=0.5, base=0.01), 100)
        self.client = redis.Redis(port=port, decode_responses=True, socket_timeout=parts.LIMIT_S,
                                  retry=self.retry, retry_on_error=errors)

    def write_transaction(self, count):
        with self.client.pipeline(transaction=True) as pipeline:
            pipeline.zincrby("sums", 1, f"py{self.number}")
            pipeline.zadd("ties", {f"{self.number}:{count}": 0}, nx=True)
            return [int(reply) for reply in pipeline.execute()]

    def write(self, count):
        if self.number % 2:
            # redis-py 4 does not repeat a transaction by itself when a connection is lost.
            return self.retry.call_with_retry(lambda: self.write_transaction(count), lambda _: None)
        return [int(self.client.zincrby("sums", 1, f"py{self.number}")),
                self.client.zadd("ties", {f"{self.number}:{count}": 0}, nx=True)]

    def run(self):
        try:
            while not self.is_over:
                replies = self.write(self.count + 1)
                assert replies == [self.count + 1, 1], f"{self.number}: {replies} at {self.count}"
                self.count += 1
        except Exception as error:  # whatever the application would see
            self.error = repr(error)


class Node:
    """The same with one ioredis client, without any option but the port."""

    def __init__(self, port):
        self.process = subprocess.Popen(
            ["node", str(parts.ROOT / "tests/balancer/restart_ioredis.js"), str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=parts.end_with_the_test)

    def end(self):
        """How many writes were answered."""
        output, _ = self.process.communicate("", parts.LIMIT_S)
        assert self.process.returncode == 0, output
        return int(output)


class Restart(unittest.TestCase):
    def test_restarts_under_load_are_not_seen_by_applications(self):
        server = parts.Server("--proxy-protocol", "127.0.0.1", "--appendonly", "yes",
                              "--shutdown-drain-timeout", "60")
        haproxy = parts.Haproxy(server)
        applications = [Application(haproxy.port, i) for i in range(CLIENTS)]
        for application in applications:
            application.start()
        node = Node(haproxy.port)
        for _ in range(RESTARTS):
            self.work(applications)
            server.terminate()
            haproxy.wait_for("DOWN")
            self.work(applications)  # while the balancer sends nobody new
            server.terminate()  # the wait is over
            server.wait()
            server.start()
            haproxy.wait_for("UP")
        self.work(applications)
        for application in applications:
            application.is_over = True
        for application in applications:
            application.join(parts.LIMIT_S)
        self.assertEqual([application.error for application in applications], [None] * CLIENTS)
        self.compare(server.local(), applications, node.end())
        haproxy.stop()
        server.stop()

    def work(self, applications):
        """Until each has written some more."""
        wanted = [application.count + BETWEEN for application in applications]
        parts.wait_until(lambda: all(application.error or application.count >= count
                                     for application, count in zip(applications, wanted)), "writes")

    def compare(self, local, applications, node_count):
        self.assertGreater(node_count, 0)
        self.assertEqual(local.zscore("sums", "node"), node_count)
        order = {}
        for name in local.zrevrange("ties", 0, -1):
            number, count = name.split(":")
            order.setdefault(int(number), []).append(int(count))
        for application in applications:
            written = list(range(1, application.count + 1))
            self.assertEqual(local.zscore("sums", f"py{application.number}"), application.count)
            self.assertEqual(order[application.number], written)

    def test_a_killed_server_is_waited_for(self):
        server = parts.Server("--proxy-protocol", "127.0.0.1", "--appendonly", "yes",
                              "--appendfsync", "always")
        haproxy = parts.Haproxy(server)
        client = redis.Redis(port=haproxy.port)
        client.zadd("board", {"ann": 1})
        client.connection_pool.disconnect()
        server.process.kill()
        server.process.wait(parts.LIMIT_S)
        seen = []
        waiter = threading.Thread(target=lambda: seen.append(client.zscore("board", "ann")))
        waiter.start()
        haproxy.wait_for("DOWN")
        time.sleep(0.1)
        self.assertEqual(seen, [])
        server.start()
        waiter.join(parts.LIMIT_S)
        self.assertEqual(seen, [1.0])
        haproxy.stop()
        server.stop()
