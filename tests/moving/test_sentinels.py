"""Sentinels that start beside a server that is full."""
import shutil
import unittest

import process
import servers
from process import wait_until

CONFIG = """sentinel monitor boards 127.0.0.1 {port} 2
sentinel down-after-milliseconds boards 5000
"""


class Sentinels(unittest.TestCase):
    def start_sentinel(self, port):
        directory = process.new_directory()
        config = directory / "sentinel.conf"
        config.write_text(CONFIG.format(port=port))
        sentinel = process.Server("--sentinel", program=shutil.which("redis-server"), config=config,
                                  directory=directory)
        self.addCleanup(sentinel.stop)
        return sentinel

    def test_they_find_each_other_above_maxmemory(self):
        ours = servers.start_leaderboard()
        self.addCleanup(ours.stop)
        ours.ask("ZADD", "race", "1", "ann")
        ours.ask("CONFIG", "SET", "maxmemory", "1")
        self.assertTrue(ours.ask("ZADD", "race", "2", "bob").text.startswith("OOM"))
        sentinels = [self.start_sentinel(ours.port) for _ in range(2)]
        for sentinel in sentinels:
            wait_until(lambda asked=sentinel: self.has_quorum(asked), sentinel.told, limit_s=30)

    def has_quorum(self, sentinel):
        reply = sentinel.ask("SENTINEL", "CKQUORUM", "boards")
        return isinstance(reply, bytes) and reply.startswith(b"OK 2 usable Sentinels")
