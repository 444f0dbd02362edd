"""Where the clients' packages are tried: a server, one as it is after installation, Sentinel, and the module in a cluster
of three hosts (Valkey where build/hosts has one, else Debian's redis-server)."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "moving"), str(HERE.parent / "module")]

import process

HOSTS = sorted(process.PROGRAM.parent.glob("hosts/valkey-*/bin/redis-server"),
               key=lambda path: [int(number) for number in re.findall(r"\d+", path.parts[-3])])
if HOSTS:
    os.environ.setdefault("LEADERBOARD_REDIS_SERVER", str(HOSTS[-1]))

import hosts


def start_sentinel(port):
    """Its port, once it knows the server."""
    own, directory = process.hold_port(), process.new_directory()
    file = directory / "sentinel.conf"
    file.write_text(f"port {own}\nbind 127.0.0.1\ndir {directory}\nsentinel monitor boards 127.0.0.1 {port} 1\n")
    program = directory / "redis-sentinel"  # this name makes the server's program one
    program.symlink_to(process.PEERS / "redis-sentinel")
    process.spawn([program, file], directory / "log")

    def knows():
        with process.resp.Client(own) as client:
            return client.ask("SENTINEL", "get-master-addr-by-name", "boards")
    process.wait_until(knows, lambda: f"Sentinel: {(directory / 'log').read_text()}")
    return own


def start_cluster():
    """The hosts, which are a cluster."""
    nodes = [hosts.Host("--cluster-enabled", "yes", boards=["board", "split:*", "default"], is_cluster=True) for _ in range(3)]
    subprocess.run([shutil.which("redis-cli"), "--cluster", "create", *[f"127.0.0.1:{node.port}" for node in nodes],
                    "--cluster-yes"], check=True, capture_output=True, timeout=120)
    hosts.wait_until(lambda: all(node.client().execute_command("CLUSTER INFO")["cluster_state"] == "ok"
                                 for node in nodes), "a cluster")
    return nodes


class Places:
    def __init__(self):
        self.server = process.Server("--notify-board-events", "yes")
        self.untouched = process.Server()  # as it is after installation
        self.nodes = start_cluster()
        self.told = {"server": str(process.PROGRAM), "port": self.server.port, "untouched": self.untouched.port,
                     "sentinel": start_sentinel(self.server.port), "ports": [node.port for node in self.nodes]}

    def stop(self):
        for each in [*self.nodes, self.server, self.untouched]:
            each.stop()
