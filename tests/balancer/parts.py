"""What is put together: a server that can be restarted on its port and directory, and HAProxy."""
import atexit
import ctypes
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("LEADERBOARD_SERVER") or ROOT / "build" / "leaderboard-server")
HAPROXY = PROGRAM.parent / "peers" / "haproxy"
LIMIT_S = 120  # for whatever comes at all
FIRST_PORT, LAST_PORT = 20000, 32000  # below those that the system gives to clients


def hold_port():
    """A socket bound to a port that nobody has: see tests/moving/servers.py."""
    while True:
        held = socket.socket()
        try:
            held.bind(("127.0.0.1", random.SystemRandom().randint(FIRST_PORT, LAST_PORT)))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return held
        except OSError:
            held.close()


def end_with_the_test():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def directory():
    path = tempfile.mkdtemp(prefix="leaderboard-balancer-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


def wait_until(claim, what):
    give_up_at = time.monotonic() + LIMIT_S
    while not claim():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.01)


def start(command, log, cwd):
    with open(log, "ab") as out:
        return subprocess.Popen([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=out, preexec_fn=end_with_the_test)


class Server:
    """A leaderboard-server. Its unix socket takes no PROXY header."""

    def __init__(self, *words, config=None, password=None, bind="127.0.0.1"):
        self.password = password
        self.held = hold_port()
        self.port = self.held.getsockname()[1]
        self.directory = directory()
        self.log = self.directory / "log"
        self.socket = self.directory / "socket"
        self.command = [PROGRAM, *([config] if config else []), "--port", self.port,
                        *(["--bind", bind] if bind else []), "--dir", self.directory,
                        "--unixsocket", self.socket, "--save", "", *words]
        if "LEADERBOARD_TEST_IO_THREADS" in os.environ:
            self.command += ["--io-threads", os.environ["LEADERBOARD_TEST_IO_THREADS"]]
        self.start()

    def start(self):
        self.process = start(self.command, self.log, self.directory)
        atexit.register(self.process.kill)
        wait_until(self.is_ready, f"the start of the server:\n{self.log.read_text()}")

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.local().ping()
        except redis.ConnectionError:
            return False
        except redis.ResponseError:  # a master without promises, which is not to open by itself
            return True

    def local(self):
        return redis.Redis(unix_socket_path=str(self.socket), password=self.password,
                           decode_responses=True)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self):
        status = self.process.wait(LIMIT_S)
        assert status == 0, f"status {status}\n{self.log.read_text()}"

    def stop(self):
        self.terminate()
        self.wait()


class Haproxy:
    """deploy/haproxy.cfg with other ports: of the server, and of the two listeners."""
    file, listeners, server_name = "haproxy.cfg", ("leaderboard", "leaderboard-master"), "main"

    def __init__(self, *servers):
        self.held = [hold_port(), hold_port()]
        self.port, self.master_port = (held.getsockname()[1] for held in self.held)
        for held in self.held:
            held.close()  # HAProxy binds without SO_REUSEADDR's kindness to others
        path = directory()
        self.log = path / "log"
        text = (ROOT / "deploy" / self.file).read_text()
        for old, new in self.changes(servers):
            text, count = re.subn(old, new, text)
            assert count > 0, old
        (path / "haproxy.cfg").write_text(text)
        self.process = start([HAPROXY, "-db", "-f", "haproxy.cfg"], self.log, path)
        atexit.register(self.process.kill)
        wait_until(self.answers, f"the start of HAProxy: {self.log.read_text()}")

    def changes(self, servers):
        for old, new in (("6380", servers[0].port), ("6379", self.port), ("6378", self.master_port)):
            yield rf"127\.0\.0\.1:{old}\b", f"127.0.0.1:{new}"

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return all(redis.Redis(port=port).ping() for port in (self.port, self.master_port))
        except redis.ConnectionError:
            return False

    def events(self):
        """[(listener, "UP" or "DOWN", reason)] of the server, as the log has them."""
        return re.findall(rf"Server (\S+)/{self.server_name} is (UP|DOWN), reason: ([^.]*?)\.",
                          self.log.read_text())

    def state(self, listener):
        states = [state for name, state, _ in self.events() if name == listener]
        return states[-1] if states else "UP"

    def wait_for(self, state, *listeners):
        for listener in listeners or self.listeners:
            wait_until(lambda name=listener: self.state(name) == state,
                       f"{listener} {state}\n{self.log.read_text()}")

    def stop(self):
        self.process.terminate()
        self.process.wait(LIMIT_S)


class HaproxyOfThree(Haproxy):
    """deploy/haproxy-sentinel.cfg: port leads to the master, master_port to the replicas."""
    file, server_name = "haproxy-sentinel.cfg", "node1"

    def changes(self, servers):
        for number, server in enumerate(servers, 1):
            yield rf"10\.0\.0\.{number}:6379\b", f"127.0.0.1:{server.port}"
        yield r"bind :6379\b", f"bind 127.0.0.1:{self.port}"
        yield r"bind :6380\b", f"bind 127.0.0.1:{self.master_port}"

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return redis.Redis(port=self.port, socket_timeout=1).ping()
        except (redis.ConnectionError, redis.TimeoutError):
            return False
