"""A server under test: its settings, its start, its end."""
import ctypes
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

import resp

START_LIMIT_S = 60
POLICIES = ("always", "everysec", "no")
FIRST_PORT, LAST_PORT = 20000, 32000  # below those that the system gives to clients
ROOT = Path(__file__).resolve().parents[2]


def default_program():
    return os.environ.get("LEADERBOARD_SERVER") or str(ROOT / "build" / "leaderboard-server")


def hold_port():
    """A socket bound to a port that nobody has. While it is open the server can listen there, for
    it has SO_REUSEADDR, too, and the jobs beside this one cannot take the port."""
    while True:
        held = socket.socket()
        try:
            held.bind(("127.0.0.1", random.SystemRandom().randint(FIRST_PORT, LAST_PORT)))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return held
        except OSError:
            held.close()


LIBC = ctypes.CDLL(None)


def end_with_the_harness():
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class StartFailed(Exception):
    """The server has ended instead of answering; the text is its log."""


class Server:
    """A server on a directory. settings: words of the command line without the dashes."""

    def __init__(self, program, directory, policy, settings=(), environment=None):
        self.program, self.directory = program, Path(directory)
        self.policy, self.settings = policy, tuple(settings)
        self.environment = environment or {}
        self.is_redis = Path(program).name.startswith("redis")
        self.log = self.directory.parent / (self.directory.name + ".log")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.process = self.port = self.held_port = None

    def command(self, more):
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory),
                 "--save", "", "--appendonly", "no" if self.policy == "off" else "yes"]
        if self.policy != "off":
            words += ["--appendfsync", self.policy]
        if self.is_redis:
            words += ["--aof-use-rdb-preamble", "yes"]
        elif os.environ.get("LEADERBOARD_TEST_IO_THREADS"):
            words += ["--io-threads", os.environ["LEADERBOARD_TEST_IO_THREADS"]]
        return [self.program, *words, *self.settings, *more]

    def spawn(self, *more):
        """Start the process, and do not wait for it. more: settings of this start alone."""
        self.let_port_go()
        self.held_port = hold_port()
        self.port = self.held_port.getsockname()[1]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(more), cwd=self.directory, env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=end_with_the_harness)

    def wait_until_ready(self):
        """Until it has loaded. Raises StartFailed."""
        give_up_at = time.monotonic() + START_LIMIT_S
        while not self.is_ready():
            if self.process.poll() is not None:
                raise StartFailed(f"status {self.process.returncode}\n{self.log_tail()}")
            if time.monotonic() > give_up_at:
                raise StartFailed(f"no answer in {START_LIMIT_S} s\n{self.log_tail()}")
            time.sleep(0.003)

    def is_ready(self):
        try:
            with resp.Client(self.port) as client:
                return client.ask("EXISTS", "x") in (0, 1)
        except ConnectionError:
            return False

    def start(self, *more):
        self.spawn(*more)
        self.wait_until_ready()

    def log_tail(self, size=3000):
        return self.log.read_text(errors="replace")[-size:]

    def let_port_go(self):
        if self.held_port is not None:
            self.held_port.close()
            self.held_port = None

    def kill(self):
        """kill -9, and wait until it is gone."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.let_port_go()

    def terminate(self):
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(START_LIMIT_S)

    def client(self):
        return resp.Client(self.port)
