#!/usr/bin/env python3
"""One player on all boards of a redis-server with the module: what it costs, and what others wait meanwhile.

    python3 bench/module_players.py --module build/leaderboard.so [--boards 1000000] [--every 10]

Every tenth board has the member. CPU is that of the server's main thread, by the kernel's own accounting.
Another client sends PING after PING; how long each took is shown for an idle server and for each command.
Writes bench/results/<date>-module-players.md and .json.
"""
import argparse
import datetime
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from module import Host, info
from servers import machine, markdown_table, say

COMMANDS = [("LB.WHERE nobody", "LB.WHERE nobody"), ("LB.WHERE", "LB.WHERE ann"),
            ("LB.MOVE", "LB.MOVE ann zoe"), ("LB.FORGET", "LB.FORGET zoe")]


def load(host, options):
    lines = (f"LB.ZADD board:{n} {n % 1000} bob" + (" 5 ann" if n % options.every == 0 else "")
             for n in range(options.boards))
    subprocess.run(["redis-cli", "-p", str(host.port), "--pipe"], text=True,
                   input="\n".join(lines) + "\n", stdout=subprocess.DEVNULL, check=True)


class Pings(threading.Thread):
    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.is_over, self.taken = port, False, []

    def run(self):
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.is_over:
                at = time.perf_counter()
                server.sendall(b"PING\r\n")
                server.recv(100)
                self.taken.append(time.perf_counter() - at)

    def end(self):
        """Milliseconds: median, 99 of 100, 999 of 1000, longest."""
        self.is_over = True
        self.join()
        taken = sorted(self.taken)
        at = lambda share: taken[min(len(taken) - 1, int(len(taken) * share))] * 1e3
        return [at(0.5), at(0.99), at(0.999), taken[-1] * 1e3]


def waited_us(host):
    """How long the main thread could have run and had no core."""
    return int(Path(f"/proc/{host.process.pid}/schedstat").read_text().split()[1]) / 1000


def measure(host, options, command):
    pings = Pings(host.port)
    cpu, waited, begin = host.cpu_us(), waited_us(host), time.monotonic()
    pings.start()
    if command is None:
        time.sleep(2)
    else:
        host.ask(*command.split())
    seconds, pings_ms = time.monotonic() - begin, pings.end()
    cpu_us = host.cpu_us() - cpu
    return {"seconds": seconds, "waited_s": (waited_us(host) - waited) / 1e6,
            "cpu_us_a_board": cpu_us / options.boards, "pings": len(pings.taken),
            "pings_ms": pings_ms}


def write(options, rows, version):
    stem = f"{datetime.date.today().isoformat()}-module-players"
    directory = Path(__file__).resolve().parent / "results"
    table = [[title, f"{row['seconds']:.2f}", f"{row['waited_s']:.2f}", f"{row['cpu_us_a_board']:.2f}",
              *(f"{value:.2f}" for value in row["pings_ms"])] for title, row in rows.items()]
    directory.joinpath(f"{stem}.json").write_text(json.dumps(rows, indent=1) + "\n")
    directory.joinpath(f"{stem}.md").write_text("\n".join([
        f"# One player on all boards in redis-server, {stem}", "",
        f"- Machine: {machine()}", f"- Server: redis-server {version}, without AOF",
        f"- Command: `python3 bench/module_players.py {' '.join(sys.argv[1:])}`",
        f"- {options.boards:,} boards, every {options.every}th with the member; CPU of the main"
        " thread, with that of the PINGs of the other client",
        f"- Load of the machine at the end, from other work too: {os.getloadavg()[0]:.1f}: a PING"
        " that came while the server had no core waited for that, too", "",
        markdown_table(["", "seconds", "of these without a core", "CPU, us a board", "PING ms, median", "99%", "99.9%",
                        "longest"], table), ""]))
    say(f"written: {directory / stem}.md")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="build/leaderboard.so")
    parser.add_argument("--boards", type=int, default=1000000)
    parser.add_argument("--every", type=int, default=10)
    options = parser.parse_args()
    options.module = Path(options.module).resolve()
    peers = options.module.parent / "peers" / "redis-server"
    program = str(peers) if peers.exists() else (shutil.which("redis-server")
                                                 or shutil.which("redis-check-rdb"))
    host = Host(program, options.module)
    load(host, options)
    rows = {"idle": measure(host, options, None)}
    for title, command in COMMANDS:
        rows[title] = measure(host, options, command)
        say(f"{title}: {rows[title]}")
    version = info(host, "server", "redis_version")
    host.stop()
    write(options, rows, version)


if __name__ == "__main__":
    main()
