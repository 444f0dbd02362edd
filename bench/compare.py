#!/usr/bin/env python3
"""leaderboard and other servers side by side: same board, same commands, alternating rounds.

    make bench                                       the short form, against redis-server
    make bench BENCH_ARGS="--members 10000000 --rounds 5 --requests-factor 3 --name long"
    make bench PEERS="valkey=/opt/valkey/bin/valkey-server redis8=/opt/redis8/bin/redis-server"

The figure that counts is the server's CPU time (user and system) per operation, which does not
depend on how fast the client asks; and of that, the ratio between servers of one run. Each server
runs on one core, the client on another. Results go to bench/results/ as .md, .svg and .json.
"""
import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import plot

MEMBER_SIZE = len("user:000000123456")
START_LIMIT_S = 30
WARM_REQUESTS = 20000
BASE = "redis-server"
OURS = "leaderboard"


class Row:
    """One line of the table. {third} and {third9} stand for a place in the middle of the board."""

    def __init__(self, name, title, words, requests, pipeline=True):
        self.name, self.title, self.words = name, title, words
        self.requests, self.pipeline = requests, pipeline


ROWS = [
    Row("zadd", "ZADD, random update", "ZADD board __rand_int__ user:__rand_int__", 400000),
    Row("zincrby", "ZINCRBY 3", "ZINCRBY board 3 user:__rand_int__", 400000),
    Row("zrevrank", "ZREVRANK", "ZREVRANK board user:__rand_int__", 500000),
    Row("zscore", "ZSCORE", "ZSCORE board user:__rand_int__", 800000),
    Row("top100", "ZREVRANGE 0 99 WITHSCORES", "ZREVRANGE board 0 99 WITHSCORES", 60000),
    Row("page300", "ZREVRANGE 299 398 WITHSCORES", "ZREVRANGE board 299 398 WITHSCORES", 60000),
    Row("deep10", "ZREVRANGE n/3 .. +9 WITHSCORES",
        "ZREVRANGE board {third} {third9} WITHSCORES", 400000),
    Row("byscore", "ZREVRANGEBYSCORE LIMIT 0 10", "ZREVRANGEBYSCORE board +inf -inf LIMIT 0 10",
        500000),
    Row("plain-zadd", "ZADD, no pipeline", "ZADD board __rand_int__ user:__rand_int__", 100000,
        False),
    Row("plain-zincrby", "ZINCRBY 3, no pipeline", "ZINCRBY board 3 user:__rand_int__", 100000,
        False),
    Row("plain-zrevrank", "ZREVRANK, no pipeline", "ZREVRANK board user:__rand_int__", 100000,
        False),
    Row("plain-top10", "ZREVRANGE 0 9 WITHSCORES, no pipeline", "ZREVRANGE board 0 9 WITHSCORES",
        100000, False),
]


def cores():
    """The server's core and the client's; None without a second one."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1]) if len(allowed) > 1 else (None, None)


def pinned(core):
    return (lambda: os.sched_setaffinity(0, {core})) if core is not None else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One running server. CPU time and memory are the kernel's figures of all its threads."""

    def __init__(self, name, path):
        self.name, self.path, self.port = name, path, free_port()
        self.directory = tempfile.mkdtemp(prefix="leaderboard-bench-")
        words = [path, "--port", str(self.port), "--bind", "127.0.0.1"]
        if name != OURS:
            words += ["--save", "", "--appendonly", "no", "--dir", self.directory]
        with open(Path(self.directory) / "log", "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, preexec_fn=pinned(cores()[0]))
        self.wait_until_ready()

    def wait_until_ready(self):
        give_up_at = time.monotonic() + START_LIMIT_S
        while time.monotonic() < give_up_at and self.process.poll() is None:
            try:
                if self.ask("PING") == "PONG":
                    return
            except OSError:
                pass
            time.sleep(0.02)
        log = (Path(self.directory) / "log").read_text(errors="replace")
        self.stop()
        sys.exit(f"{self.name} ({self.path}) does not start:\n{log}")

    def ask(self, line):
        """Send one inline command, return its reply's first line, or a bulk's text."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(line.encode() + b"\r\n")
            reader = client.makefile("rb")
            head = reader.readline().decode().rstrip()
            if head[:1] == "-":
                sys.exit(f"{self.name}: {line}: {head}")
            return reader.read(int(head[1:])).decode() if head[:1] == "$" else head[1:]

    def cpu_ns(self):
        total = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:
                pass
        return total

    def resident_bytes(self):
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def version(self):
        lines = dict(line.split(":", 1) for line in self.ask("INFO server").splitlines()
                     if ":" in line)
        return (lines.get("leaderboard_version") or lines.get("valkey_version")
                or lines["redis_version"])

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class Bench:
    def __init__(self, options):
        self.options = options
        self.load_path = str(Path(options.server).resolve().parent / "bench" / "load")
        self.programs = {BASE: shutil.which("redis-server"), OURS: options.server}
        for peer in os.environ.get("PEERS", "").split():
            name, _, path = peer.partition("=")
            self.programs[name] = path
        for name, path in self.programs.items():
            if not path or not os.access(path, os.X_OK):
                sys.exit(f"no program for {name}: {path}")
        if not os.access(self.load_path, os.X_OK):
            sys.exit(f"{self.load_path} is missing: make bench builds it")
        self.servers = {}
        self.run_count = 0

    # ---- running one thing on one server ----

    def run_load(self, server, words, requests, pipeline):
        self.run_count += 1
        command = [self.load_path, "--port", str(server.port), "--clients",
                   str(self.options.clients), "--pipeline", str(pipeline), "--requests",
                   str(requests), "--range", str(self.options.members), "--seed",
                   str(self.run_count), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              preexec_fn=pinned(cores()[1]))
        if done.returncode != 0:
            sys.exit(f"{server.name}: {' '.join(words)}: {done.stderr}")
        return json.loads(done.stdout)["seconds"]

    def run_redis_benchmark(self, server, words, requests, pipeline):
        command = ["redis-benchmark", "-p", str(server.port), "-c", str(self.options.clients), "-P",
                   str(pipeline), "-n", str(requests), "-r", str(self.options.members), "-q",
                   *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              preexec_fn=pinned(cores()[1]))
        figure = done.stdout.strip().split("\r")[-1].split("\n")[-1]
        if done.returncode != 0 or "requests per second" not in figure:
            sys.exit(f"{server.name}: {' '.join(words)}: {done.stdout[-500:]}{done.stderr}")
        return requests / float(figure.split(" requests per second")[0].split()[-1])

    def measure(self, server, row):
        third = self.options.members // 3
        words = row.words.format(third=third, third9=third + 9).split()
        requests = max(1000, int(row.requests * self.options.requests_factor))
        pipeline = self.options.pipeline if row.pipeline else 1
        generator = self.options.generator or ("load" if row.pipeline else "redis-benchmark")
        run = self.run_load if generator == "load" else self.run_redis_benchmark
        before = server.cpu_ns()
        seconds = run(server, words, requests, pipeline)
        cpu_us = (server.cpu_ns() - before) / 1000
        return {"us": cpu_us / requests, "per_second": requests / seconds,
                "busy": cpu_us / 1e6 / seconds}

    # ---- memory ----

    def start_warm(self, name):
        """A server whose buffers have been used, so that growth is the board's own."""
        server = Server(name, self.programs[name])
        self.servers[name] = server
        for pipeline in (self.options.pipeline, 1):
            self.run_load(server, ["ZADD", "warm", "__rand_int__", "user"], WARM_REQUESTS, pipeline)
        server.ask("FLUSHALL")
        time.sleep(0.3)
        return server

    def fill(self, server, member):
        """All members, each once. Returns bytes a member beyond its own, and CPU per ZADD."""
        members = self.options.members
        resident, cpu = server.resident_bytes(), server.cpu_ns()
        score = member if member == "__seq_int__" else "__rand_int__"
        self.run_load(server, ["ZADD", "board", score, f"user:{member}"], members,
                      self.options.pipeline)
        cpu_us = (server.cpu_ns() - cpu) / 1000 / members
        if int(server.ask("ZCARD board")) != members:
            sys.exit(f"{server.name}: the board is not complete")
        return self.grown(server, resident), cpu_us

    def grown(self, server, resident):
        return (server.resident_bytes() - resident) / self.options.members - MEMBER_SIZE

    def measure_memory(self):
        """Leaves the servers running, filled in random order: the board of the other rows."""
        sequential, random, updated, load = {}, {}, {}, {}
        for name in self.programs:
            server = self.start_warm(name)
            sequential[name], _ = self.fill(server, "__seq_int__")
            server.stop()
            server = self.start_warm(name)
            resident = server.resident_bytes()
            random[name], load[name] = self.fill(server, "__mixed_int__")
            if self.options.updates:
                self.run_load(server, ["ZADD", "board", "__rand_int__", "user:__rand_int__"],
                              self.options.updates, self.options.pipeline)
                updated[name] = self.grown(server, resident)
            say(f"  {name}: {sequential[name]:.1f} B a member loaded in order,"
                f" {random[name]:.1f} in no order, {load[name]:.2f} us a ZADD of it")
        memory = {"loaded in order": sequential, "loaded in random order": random}
        if updated:
            memory[f"after {self.options.updates:,} random updates"] = updated
        return memory, load

    # ---- all ----

    def run(self):
        options = self.options
        say(f"{options.members:,} members, {options.rounds} rounds, servers: "
            + ", ".join(self.programs))
        memory, load = self.measure_memory()
        rows = []
        for row in (row for row in ROWS if not options.rows or row.name in options.rows):
            rounds = {name: [] for name in self.servers}
            for turn in range(options.rounds):
                names = list(self.servers)
                for name in names[turn % len(names):] + names[:turn % len(names)]:
                    rounds[name].append(self.measure(self.servers[name], row))
            servers = {}
            for name, runs in rounds.items():
                servers[name] = {key: statistics.median(run[key] for run in runs)
                                 for key in ("us", "per_second", "busy")}
                servers[name]["us_rounds"] = [round(run["us"], 4) for run in runs]
            rows.append({"name": row.name, "title": row.title, "servers": servers})
            base, ours = servers[BASE]["us"], servers[OURS]["us"]
            say(f"  {row.title:42} {base:7.2f} {ours:7.2f} us  {base / ours:5.1f}x")
        versions = {name: server.version() for name, server in self.servers.items()}
        return {"members": options.members, "clients": options.clients,
                "pipeline": options.pipeline, "rounds": options.rounds, "base": BASE,
                "versions": versions, "load_us": load, "memory": memory, "rows": rows}

    def stop(self):
        for server in self.servers.values():
            server.stop()


def say(line):
    print(line, flush=True)


def machine():
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def commit():
    done = subprocess.run(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True, check=False)
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def table(results):
    names = list(results["versions"])
    others = [name for name in names if name != BASE]
    head = (["command"] + [f"{name}, us" for name in names]
            + [f"{name}: times less CPU" for name in others]
            + [f"{name}, ops/s" for name in names])
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for row in results["rows"]:
        cells = row["servers"]
        # A server that was not busy could have done more.
        rates = [f"{cells[name]['per_second']:,.0f}{'' if cells[name]['busy'] > 0.9 else ' *'}"
                 for name in names]
        lines.append("| " + " | ".join(
            [row["title"]] + [f"{cells[name]['us']:.2f}" for name in names]
            + [f"**{cells[BASE]['us'] / cells[name]['us']:.1f}**" for name in others] + rates)
            + " |")
    lines += ["", "\\* the server had time to spare: the client, or other work on the machine,"
              " was the limit"]
    lines += ["", "| resident bytes a member, less its own | " + " | ".join(names) + " |",
              "|---" + "|---:" * len(names) + "|"]
    for title, cells in results["memory"].items():
        lines.append(f"| {title} | " + " | ".join(f"{cells[name]:.1f}" for name in names) + " |")
    return "\n".join(lines)


def write_results(results, options):
    directory = Path(options.results)
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{datetime.date.today().isoformat()}-{options.name}"
    (directory / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    (directory / f"{stem}.svg").write_text(plot.of_results(results))
    server_core, client_core = cores()
    pinning = ("no core to spare for pinning" if server_core is None else
               f"server on core {server_core}, client on core {client_core}")
    versions = ", ".join(f"{name} {version}{commit() if name == OURS else ''}"
                         for name, version in results["versions"].items())
    (directory / f"{stem}.md").write_text(f"""# Side by side, {stem}

- Machine: {machine()}; {pinning}
- Servers: {versions}
- Command: `python3 bench/compare.py {' '.join(sys.argv[1:])}`
- One board of {results['members']:,} members `user:000000123456` ({MEMBER_SIZE} bytes),
  random scores; {results['clients']} clients, pipeline {results['pipeline']} unless said;
  {results['rounds']} alternating rounds, medians
- us: the server's CPU time, user and system, per operation. Only ratios of one run count.

![CPU per operation]({stem}.svg)

{table(results)}
""")
    say(f"written: {directory / stem}.md, .svg, .json")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="build/leaderboard-server", help="leaderboard's server")
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pipeline", type=int, default=32)
    parser.add_argument("--requests-factor", type=float, default=1.0,
                        help="more or fewer requests in every row")
    parser.add_argument("--updates", type=int, default=0,
                        help="random updates before memory is measured once more")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=[],
                        help="only these: " + ",".join(row.name for row in ROWS))
    parser.add_argument("--generator", choices=["load", "redis-benchmark"],
                        help="for all rows; default: load, redis-benchmark without pipeline")
    parser.add_argument("--name", default="short", help="of the result files")
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    options = parser.parse_args()
    unknown = set(options.rows) - {row.name for row in ROWS}
    if unknown:
        parser.error("no such rows: " + ", ".join(sorted(unknown)))
    return options


def main():
    options = parse_options()
    bench = Bench(options)
    try:
        results = bench.run()
    finally:
        bench.stop()
    write_results(results, options)


if __name__ == "__main__":
    main()
