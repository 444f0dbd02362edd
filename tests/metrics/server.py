"""A server with a metrics-port, and HTTP to it."""
import base64
import http.client
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "moving"))
import redis
from servers import end_with_the_test, hold_port

PROGRAM = os.environ.get("LEADERBOARD_SERVER") or str(ROOT / "build" / "leaderboard-server")
PEERS = Path(PROGRAM).resolve().parent / "peers"
LIMIT_S = 120


class Server:
    def __init__(self, *arguments, directory=None, tls=None, wait=True):
        self.held = [hold_port(), hold_port()]
        self.port, self.metrics_port = (held.getsockname()[1] for held in self.held)
        self.own_directory = None if directory else tempfile.mkdtemp(prefix="leaderboard-metrics-")
        self.directory = directory or self.own_directory
        self.log = Path(self.directory) / "log"
        self.tls = tls
        words = ["--port", self.port, "--bind", "127.0.0.1", "--metrics-port", self.metrics_port,
                 "--save", "", "--dir", self.directory, *arguments]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([PROGRAM, *map(str, words)], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=end_with_the_test)
        if wait:
            self.wait(lambda: self.client().ping())

    def wait(self, is_so):
        give_up_at = time.monotonic() + LIMIT_S
        while True:
            try:
                if is_so():
                    return
            except (redis.RedisError, OSError, http.client.HTTPException):
                pass
            if time.monotonic() > give_up_at or self.process.poll() is not None:
                raise AssertionError(f"it does not come to that:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.02)

    def client(self, **options):
        return redis.Redis(port=self.port, **options)

    def connection(self):
        if self.tls:
            return http.client.HTTPSConnection(
                "localhost", self.metrics_port, timeout=LIMIT_S,
                context=ssl.create_default_context(cafile=self.tls))
        return http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=LIMIT_S)

    def get(self, path, method="GET", user=None, **headers):
        """(status, body, headers); a server that was too busy is asked again."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        give_up_at = time.monotonic() + LIMIT_S
        while True:
            connection = self.connection()
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            body = reply.read().decode()
            connection.close()
            if reply.status != 503 or not body.startswith("busy") or time.monotonic() > give_up_at:
                return reply.status, body, reply.headers

    def metrics(self, **headers):
        status, body, _ = self.get("/metrics", **headers)
        assert status == 200, (status, body)
        return samples(body)

    def stop(self):
        for held in self.held:
            held.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(LIMIT_S)
        text = self.log.read_text()
        if self.own_directory:
            shutil.rmtree(self.own_directory, ignore_errors=True)
        assert status == 0, f"status {status}:\n{text[-3000:]}"


def samples(text):
    """{'name{labels}': value} of a scrape."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert name not in found, f"twice: {name}"
            found[name] = float(value)
    return found


def names(scrape):
    return {re.sub(r"\{.*", "", name) for name in scrape}
