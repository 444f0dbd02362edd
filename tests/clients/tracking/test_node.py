"""node-redis's clientSideCache and ioredis with manual tracking, unchanged; and the programs of the cookbook's page."""
import re
import subprocess
import unittest
from pathlib import Path

import process

HERE = Path(__file__).resolve().parent
PAGE = (process.ROOT / "docs" / "cookbook" / "top-in-my-app.md").read_text(encoding="utf-8")
MODULES = HERE.parent / "node"


class Node(unittest.TestCase):
    def setUp(self):
        self.server = process.Server()
        self.addCleanup(self.server.stop)

    def run_node(self, file, *words):
        done = subprocess.run(["node", file, *map(str, words)], cwd=MODULES, timeout=process.LIMIT_S, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_node_redis_keeps_replies_until_their_keys_change(self):
        for package in ("redis", "redis-6"):
            told = self.run_node(HERE / "cache_redis.js", self.server.port, package)
            self.assertEqual(told, ["all as expected"])

    def test_ioredis_is_told_on_its_second_connection(self):
        for package in ("ioredis", "ioredis-6"):
            told = self.run_node(HERE / "cache_ioredis.js", self.server.port, package)
            self.assertEqual(told, ["all as expected"])

    def test_the_programs_of_the_page_print_what_they_say(self):
        self.server.ask("ZADD", "top", 50, "ann", 40, "bob")
        directory = process.new_directory()
        (directory / "node_modules").symlink_to(MODULES / "node_modules")
        programs = re.findall(r"^```js\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(programs), 2)
        newer = [re.sub(r'from "(\w+)"', r'from "\1-6"', code) for code in programs]
        for number, code in enumerate([*programs, *newer]):
            file = directory / f"{number}.mjs"
            file.write_text(code.replace("6379", str(self.server.port)), encoding="utf-8")
            self.assertEqual(self.run_node(file), re.findall(r"console\.log\(.*; // (.*)", code))
