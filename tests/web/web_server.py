"""A leaderboard-server with its page, and the boards that the tests look at."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote_from_bytes

import redis

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "moving"))

from servers import end_with_the_test, hold_port  # noqa: E402

PROGRAM = os.environ.get("LEADERBOARD_SERVER") or str(ROOT / "build" / "leaderboard-server")
START_LIMIT_S = 60


class WebServer:
    def __init__(self, *words, password=None):
        self.password = password
        self.held = [hold_port(), hold_port()]
        self.port, self.web_port = (held.getsockname()[1] for held in self.held)
        self.held[1].close()  # libmicrohttpd binds alone
        self.directory = Path(tempfile.mkdtemp(prefix="leaderboard-web-"))
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.log = self.directory / "log"
        self.command = [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                        "--dir", str(self.directory), "--web-port", str(self.web_port),
                        *(["--requirepass", password] if password else []), *words]
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, cwd=self.directory, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=end_with_the_test)
        give_up_at = time.monotonic() + START_LIMIT_S
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < give_up_at, self.log.read_text()
            time.sleep(0.02)
        self.client = redis.Redis(port=self.port, password=self.password)
        self.client.response_callbacks.clear()

    def answers(self):
        try:
            return redis.Redis(port=self.port, password=self.password).ping()
        except redis.ConnectionError:
            return False

    def stop(self):
        self.process.terminate()
        assert self.process.wait(START_LIMIT_S) == 0, self.crash()

    def crash(self):
        """The log from the report of a crash on, or its end."""
        text = self.log.read_text()
        begin = text.find(" report ")
        return text[max(0, begin - 500):][:6000] if begin >= 0 else text[-5000:]

    def run(self, *words):
        return self.client.execute_command(*words)

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.web_port}{path}"

    def board_url(self, board, query=""):
        name = board if isinstance(board, bytes) else board.encode()
        return self.url(f"/boards/{quote_from_bytes(name, safe='')}{'?' if query else ''}{query}")


def encoded(name):
    return quote_from_bytes(name if isinstance(name, bytes) else name.encode(), safe="")
