#!/usr/bin/env python3
"""Boards of the module beside redis-server's own sorted sets, in the same process.

    python3 bench/module.py --module build/leaderboard.so [--members 1000000] [--rounds 9]
        [--host build/hosts/valkey-9.1.2/bin/redis-server --name valkey-9]

Every row alternates between the two, and with two commands of a module that does nothing
(bench/module_floor.c; make build/bench/module-floor.so): what any module's command costs. CPU is that of
the server's main thread, by the kernel's own accounting. Writes bench/results/<date>-module.md and .json.
redis-server is taken from PATH, or from build/peers (make redis-server). With --host it is another one
(make hosts), and only the commands are measured.
"""
import argparse
import datetime
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from servers import cores, machine, markdown_table, pinned, say

NAME_SIZE = 17  # user:000000123456
PIPELINE, CLIENTS = 32, 50
KINDS = {"native": ("sorted", ""), "module": ("board", "LB.")}
FLOORS = {"a command that only replies": "FLOOR.REPLY", "a command that opens its key": "FLOOR.OPEN"}
ROWS = [  # title, command, share of the requests, what is asked for, options of redis-benchmark
    ("ZREVRANK", "ZREVRANK KEY user:__rand_int__", 1.0, 1.8, ()),
    ("ZSCORE", "ZSCORE KEY user:__rand_int__", 1.0, None, ()),
    ("ZADD, random update", "ZADD KEY __rand_int__ user:__rand_int__", 1.0, 2.5, ()),
    ("ZINCRBY", "ZINCRBY KEY 3 user:__rand_int__", 1.0, 2.5, ()),
    ("top 100 with scores", "ZREVRANGE KEY 0 99 WITHSCORES", 0.1, 3.0, ()),
    ("top 100 with scores, RESP3", "ZREVRANGE KEY 0 99 WITHSCORES", 0.1, None, ("-3",)),
]


class Host:
    def __init__(self, program, module, *options):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.directory = tempfile.mkdtemp(prefix="leaderboard-bench-")
        link = Path(self.directory) / "redis-server"
        link.symlink_to(program)
        self.process = subprocess.Popen(
            [str(link), "--port", str(self.port), "--save", "", "--dir", self.directory,
             "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--loadmodule",
             str(module), *options], stdout=subprocess.DEVNULL, preexec_fn=pinned(cores()[0]))
        while self.ask("PING") != "PONG":
            time.sleep(0.05)

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *map(str, words)],
                              capture_output=True, text=True)
        return done.stdout.strip()

    def cpu_us(self):
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1000

    def load(self, kind, members):
        key, prefix = KINDS[kind]
        numbers = list(range(members))
        random.Random(1).shuffle(numbers)
        lines = (f"{prefix}ZADD {key} " + " ".join(
            f"{random.randrange(members)} user:{n:012d}" for n in numbers[at:at + 50])
                 for at in range(0, members, 50))
        subprocess.run(["redis-cli", "-p", str(self.port), "--pipe"], text=True,
                       input="\n".join(lines) + "\n", stdout=subprocess.DEVNULL, check=True)

    def run(self, kind, command, count, members, options=()):
        key, prefix = KINDS.get(kind, ("board", ""))
        words = (prefix + command.replace("KEY", key)).split()
        subprocess.run(["redis-benchmark", "-p", str(self.port), "-P", str(PIPELINE), "-c",
                        str(CLIENTS), "-r", str(members), "-n", str(count), "-q", *options, *words],
                       stdout=subprocess.DEVNULL, check=True, preexec_fn=pinned(cores()[-1]))

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def info(host, section, name):
    for line in host.ask("INFO", section).splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    return None


def measure_rows(host, options):
    results = {}
    for title, command, share, asked, words in ROWS:
        count = max(1000, int(options.requests * share))
        taken = {kind: [] for kind in KINDS}
        for _ in range(options.rounds):
            for kind in KINDS:
                before = host.cpu_us()
                host.run(kind, command, count, options.members, words)
                taken[kind].append((host.cpu_us() - before) / count)
        results[title] = {**{kind: statistics.median(values) for kind, values in taken.items()},
                          "asked": asked}
        say(f"{title}: {results[title]}")
    return results


def measure_floors(host, options):
    """Together with ZSCORE of both kinds, in turn."""
    score = "ZSCORE KEY user:__rand_int__"
    commands = {"ZSCORE, own sorted set": ("native", score), "ZSCORE, board": ("module", score),
                **{title: ("floor", f"{name} KEY user:__rand_int__")
                   for title, name in FLOORS.items()}}
    taken = {title: [] for title in commands}
    for _ in range(options.rounds):
        for title, (kind, command) in commands.items():
            before = host.cpu_us()
            host.run(kind, command, options.requests, options.members)
            taken[title].append((host.cpu_us() - before) / options.requests)
    floors = {title: statistics.median(values) for title, values in taken.items()}
    say(f"floors: {floors}")
    return floors


def measure_alone(program, options, kind):
    """What one kind costs in a server of its own: memory, files, a fork, a replica."""
    host = Host(program, options.module)
    before = int(info(host, "memory", "used_memory"))
    host.load(kind, options.members)
    found = {"bytes": (int(info(host, "memory", "used_memory")) - before) / options.members
             - NAME_SIZE}
    at = host.cpu_us()
    host.ask("SAVE")
    found["save_s"] = (host.cpu_us() - at) / 1e6
    at = host.cpu_us()
    host.ask("DEBUG", "RELOAD", "NOSAVE")
    found["load_s"] = (host.cpu_us() - at) / 1e6
    writes = "ZADD KEY __rand_int__ user:__rand_int__"
    host.ask("BGSAVE")
    host.run(kind, writes, options.requests // 2, options.members)
    while info(host, "persistence", "rdb_bgsave_in_progress") != "0":
        time.sleep(0.1)
    found["cow_mb"] = int(info(host, "persistence", "rdb_last_cow_size")) / 1e6
    replica = Host(program, options.module, "--replicaof", f"127.0.0.1 {host.port}")
    settle(host, replica)
    at = replica.cpu_us()
    host.run(kind, writes, options.requests, options.members)
    settle(host, replica)
    found["replica_us"] = (replica.cpu_us() - at) / options.requests
    replica.stop()
    host.stop()
    say(f"{kind}: {found}")
    return found


def settle(master, replica):
    while (info(replica, "replication", "master_link_status") != "up" or
           info(replica, "replication", "slave_repl_offset") !=
           info(master, "replication", "master_repl_offset")):
        time.sleep(0.05)


def own_table(alone):
    native, module = alone["native"], alone["module"]
    more = [[title, f"{native[name]:{form}}", f"{module[name]:{form}}",
             f"{native[name] / max(module[name], 1e-9):.2f}"] for title, name, form in (
                 ("bytes a member beyond its name", "bytes", ".1f"),
                 ("SAVE, seconds of CPU", "save_s", ".2f"),
                 ("loading, seconds of CPU", "load_s", ".2f"),
                 ("copied pages while saving under writes, MB", "cow_mb", ".1f"),
                 ("a replica, us a ZADD", "replica_us", ".2f"))]
    return ["", "## Each in a server of its own", "",
            markdown_table(["", "own sorted set", "board", "ratio"], more)]


def write(options, rows, floors, alone, version):
    ratio = lambda row: row["native"] / row["module"]
    table = [[title, f"{row['native']:.2f}", f"{row['module']:.2f}", f"{ratio(row):.2f}",
              f"{row['asked']}" if row["asked"] else ""] for title, row in rows.items()]
    stem = f"{datetime.date.today().isoformat()}-module" + (f"-{options.name}" if options.name else "")
    directory = Path(__file__).resolve().parent / "results"
    directory.joinpath(f"{stem}.json").write_text(json.dumps(
        {"rows": rows, "floors": floors, "alone": alone}, indent=1) + "\n")
    directory.joinpath(f"{stem}.md").write_text("\n".join([
        f"# Boards in redis-server, {stem}", "",
        f"- Machine: {machine()}", f"- Server: {version}, without AOF",
        f"- Command: `python3 bench/module.py {' '.join(sys.argv[1:])}`",
        f"- {options.members:,} members of {NAME_SIZE} bytes, {CLIENTS} clients, pipelines of"
        f" {PIPELINE}; median of {options.rounds} runs that alternate between the two",
        f"- Load of the machine at the end, from other work too: {os.getloadavg()[0]:.1f}; only"
        " ratios count", "",
        "## CPU of the main thread, us an operation", "",
        markdown_table(["", "own sorted set", "board", "times less", "asked"], table), "",
        "## What any module's command costs, us an operation, in turn with ZSCORE", "",
        markdown_table(["", "us"], [[title, f"{us:.2f}"] for title, us in floors.items()]),
        *(own_table(alone) if alone else []), ""]))
    say(f"written: {directory / stem}.md")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="build/leaderboard.so")
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--requests", type=int, default=300000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--floor", default="build/bench/module-floor.so")
    parser.add_argument("--host")
    parser.add_argument("--name", default="")
    options = parser.parse_args()
    options.floor = Path(options.floor).resolve()
    options.module = Path(options.module).resolve()
    peers = options.module.parent / "peers" / "redis-server"
    program = options.host and str(Path(options.host).resolve()) or (
        str(peers) if peers.exists() else shutil.which("redis-server") or shutil.which("redis-check-rdb"))
    host = Host(program, options.module, "--loadmodule", str(options.floor))
    for kind in KINDS:
        host.load(kind, options.members)
    rows = measure_rows(host, options)
    floors = measure_floors(host, options)
    valkey = info(host, "server", "valkey_version")
    version = f"Valkey {valkey}" if valkey else f"Redis {info(host, 'server', 'redis_version')}"
    host.stop()
    alone = None if options.host else {kind: measure_alone(program, options, kind) for kind in KINDS}
    write(options, rows, floors, alone, version)


if __name__ == "__main__":
    main()
