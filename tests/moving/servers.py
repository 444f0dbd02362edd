"""The two servers: redis-server, and ours with a clock that begins inside the page's examples."""
import glob
import shutil
import time

import redis

import process
from process import wait_until

# Inside the periods of the page, whenever the tests are run.
CLOCK = "@2026-11-20 12:00:00"
CLOCK_MS = 1795176000000


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


class Server(process.Server):
    def client(self):
        return redis.Redis(port=self.port)

    def raw_client(self):
        """Replies as they are on the wire: integers, bytes, lists, None."""
        client = self.client()
        client.response_callbacks.clear()
        return client


def start_redis():
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is missing: make test links the one of redis-tools")
    return Server(program=program, environment={"TZ": "UTC"})


def clock_environment():
    """Of a server whose clock begins at CLOCK."""
    libraries = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not libraries:
        raise SystemExit("libfaketime is missing (Debian: libfaketime)")
    return {"TZ": "UTC", "LD_PRELOAD": libraries[0], "FAKETIME": CLOCK, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def start_leaderboard():
    return Server(environment=clock_environment())


def start_follower(source):
    """Ours, following source, whose boards hold packed scores as Redis has them."""
    source.client().config_set("repl-diskless-sync-delay", 0)
    follower = Server("--layout", "packed FIELD score 64 SIGNED", "--layout",
                      "decimal FIELD score 64 SIGNED SCALE 10", "--board", "sales decimal", "--board",
                      "* packed", "--replicaof", f"127.0.0.1 {source.port}", environment={"TZ": "UTC"})
    wait_until(lambda: follower.client().info("replication").get("source_state") == "follows", follower.told)
    return follower
