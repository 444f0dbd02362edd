"""redis-py's cache, unchanged: 5.1, the first that has one, and the newest. They come from the registry of Python."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

import process

HERE = Path(__file__).resolve().parent
PAGE = (process.ROOT / "docs" / "cookbook" / "top-in-my-app.md").read_text(encoding="utf-8")
VERSIONS = ("==5.1.0", "")
PROJECTS = process.PROGRAM.parent / "clients"
LIMIT_S = 600  # a registry


class RedisPy(unittest.TestCase):
    def interpreter(self, version):
        directory = PROJECTS / f"tracking-{version.strip('=') or 'newest'}"
        python = directory / "bin" / "python"
        if not (directory / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True, timeout=LIMIT_S)
            pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"redis{version}"]
            subprocess.run(pip, check=True, timeout=LIMIT_S)
            (directory / "ready").touch()
        return python

    def test_replies_are_kept_until_their_keys_change(self):
        setting = re.search(r"`(extended-redis-compatibility) yes`", PAGE)[1]
        made = re.search(r"`redis\.Redis\((.*?)\)`", PAGE)[1]
        for version in VERSIONS:
            with self.subTest(version=version or "newest"):
                server = process.Server(f"--{setting}", "yes")
                self.addCleanup(server.stop)
                words = made.replace("6379", str(server.port))
                done = subprocess.run([self.interpreter(version), HERE / "cache_redis_py.py", str(server.port), words],
                                      timeout=process.LIMIT_S, capture_output=True, text=True, stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                print(done.stdout, end="")
