"""The two servers: redis-server, and ours with a clock that begins inside the page's examples."""
import atexit
import ctypes
import glob
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import redis

# Inside the periods of the page, whenever the tests are run.
CLOCK = "@2026-11-20 12:00:00"
CLOCK_MS = 1795176000000
START_LIMIT_S = 60
FIRST_PORT, LAST_PORT = 20000, 32000  # below those that the system gives to clients
ROOT = Path(__file__).resolve().parents[2]


def hold_port():
    """A socket bound to a port that nobody has. While it is open the server can listen there, for
    it has SO_REUSEADDR, too, and no program beside this one can take the port."""
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


class About(int):
    """A time as a version tells it that only says how long it is until then."""

    def __eq__(self, other):
        return abs(int(self) - int(other)) < 5000

    __hash__ = None


def knows(client, command):
    """Has this version the command?"""
    client = redis.Redis(**client.connection_pool.connection_kwargs)
    client.response_callbacks.clear()
    return client.execute_command("COMMAND", "INFO", command) not in ([None], [], None)


def expire_time(client, key):
    """In milliseconds, -1 without an expiry. Before Redis 7 it is about so."""
    try:
        return client.execute_command("PEXPIRETIME", key)
    except redis.ResponseError:
        left = client.execute_command("PTTL", key)
        return About(time.time() * 1000 + left) if left >= 0 else left


def set_encoding(client, name, value):
    """Before Redis 7 small values are ziplists."""
    client.config_set(name if client.config_get(name) else name.replace("listpack", "ziplist"), value)


class Server:
    def __init__(self, program, environment=None, arguments=()):
        self.held_port = hold_port()
        self.port = self.held_port.getsockname()[1]
        self.directory = tempfile.mkdtemp(prefix="leaderboard-moving-")
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.log = Path(self.directory) / "log"
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                   "--appendonly", "no", "--dir", self.directory, *arguments]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=self.directory, env={**os.environ, "TZ": "UTC", **(environment or {})},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_the_test)
        give_up_at = time.monotonic() + START_LIMIT_S
        while not self.answers():
            if time.monotonic() > give_up_at or self.process.poll() is not None:
                raise SystemExit(f"{program} does not start:\n{self.log.read_text()}")
            time.sleep(0.02)

    def answers(self):
        try:
            return self.client().ping()
        except redis.ConnectionError:
            return False

    def client(self):
        return redis.Redis(port=self.port)

    def raw_client(self):
        """Replies as they are on the wire: integers, bytes, lists, None."""
        client = self.client()
        client.response_callbacks.clear()
        return client

    def stop(self):
        """The exit status."""
        self.process.terminate()
        status = self.process.wait(START_LIMIT_S)
        if status != 0:
            print(self.log.read_text()[-5000:])
        return status


def start_redis():
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is missing: make test links the one of redis-tools")
    return Server(program)


def start_leaderboard():
    libraries = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not libraries:
        raise SystemExit("libfaketime is missing (Debian: libfaketime)")
    program = os.environ.get("LEADERBOARD_SERVER") or str(ROOT / "build" / "leaderboard-server")
    return Server(program, environment={"LD_PRELOAD": libraries[0], "FAKETIME": CLOCK,
                                        "FAKETIME_DONT_FAKE_MONOTONIC": "1"})


def start_follower(source):
    """Ours, following source, whose boards hold packed scores as Redis has them."""
    source.client().config_set("repl-diskless-sync-delay", 0)
    program = os.environ.get("LEADERBOARD_SERVER") or str(ROOT / "build" / "leaderboard-server")
    follower = Server(program, arguments=[
        "--layout", "packed FIELD score 64 SIGNED", "--layout",
        "decimal FIELD score 64 SIGNED SCALE 10", "--board", "sales decimal", "--board",
        "* packed", "--replicaof", f"127.0.0.1 {source.port}"])
    give_up_at = time.monotonic() + START_LIMIT_S
    while follower.client().info("replication").get("source_state") != "follows":
        if time.monotonic() > give_up_at:
            raise SystemExit(f"it does not follow:\n{follower.log.read_text()}")
        time.sleep(0.02)
    return follower
