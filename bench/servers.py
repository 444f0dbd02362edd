"""Servers under measurement, the load on them, and files of results: what compare.py and full.py
share. Each server runs on one core, the client on another; nothing else should use the server's.
"""
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

START_LIMIT_S = 30
SETTLE_S = 1.5
WARM_REQUESTS = 20000
BASE = "redis-server"
OURS = "leaderboard"
TICKS = ("user_ticks", "kernel_ticks")
HOSTS = ("redis", "valkey")  # those of make hosts that a comparison has by itself


def say(line):
    print(line, flush=True)


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

    def __init__(self, name, path, settings=(), directory=None, core=cores()[0]):
        """settings: more words of the command line. directory: the caller's, which stays; None:
        one of its own. core: None for any."""
        self.name, self.path, self.port = name, path, free_port()
        self.is_directory_own = directory is None
        self.directory = directory or tempfile.mkdtemp(prefix="leaderboard-bench-")
        words = [path, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                 "--appendonly", "no", "--dir", self.directory, *settings]
        with open(Path(self.directory) / "log", "wb") as log:
            self.process = subprocess.Popen(self.command(words), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT,
                                            preexec_fn=pinned(core))
        self.wait_until_ready()

    def command(self, words):
        """What is run: the server's own command line, or one around it."""
        return words

    def wait_until_ready(self):
        give_up_at = time.monotonic() + START_LIMIT_S
        while time.monotonic() < give_up_at and self.process.poll() is None:
            try:
                if self.ask("PING")[:8] in ("PONG", "-LOADING"):
                    return
            except OSError:
                pass
            time.sleep(0.02)
        log = self.log()
        self.stop()
        sys.exit(f"{self.name} ({self.path}) does not start:\n{log}")

    def log(self):
        return (Path(self.directory) / "log").read_text(errors="replace")

    def ask(self, line):
        """Send one inline command, return its reply's first line, or a bulk's text."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(line.encode() + b"\r\n")
            reader = client.makefile("rb")
            head = reader.readline().decode().rstrip()
            if head[:8] == "-LOADING":
                return head
            if head[:1] == "-":
                sys.exit(f"{self.name}: {line}: {head}")
            return reader.read(int(head[1:])).decode() if head[:1] == "$" else head[1:]

    def cpu_ns(self):
        return sum(self.cpu_ns_by_thread().values())

    def cpu_ns_by_thread(self):
        """By thread id; the first thread, which runs the commands, has the process's."""
        figures = {}
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                figures[int(task.name)] = int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:
                pass
        return figures

    def cpu_seconds(self):
        """Of threads and children that have ended, too; in steps of 10 ms."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")

    def ticks(self):
        """User and kernel time as the kernel's clock found it, a hundred ticks a second: shares of
        what cpu_ns counts."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]), int(fields[12])

    def resident_bytes(self):
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def info(self, section):
        return dict(line.split(":", 1) for line in self.ask(f"INFO {section}").splitlines()
                    if ":" in line)

    def version(self):
        lines = self.info("server")
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
        if self.is_directory_own:
            shutil.rmtree(self.directory, ignore_errors=True)


class Generator:
    """Sends requests, and says what they cost the server."""

    def __init__(self, server_program, clients, pipeline):
        self.directory = Path(server_program).resolve().parent / "bench"
        self.clients, self.pipeline = clients, pipeline
        self.run_count = 0
        if not os.access(self.directory / "load", os.X_OK):
            sys.exit(f"{self.directory / 'load'} is missing: make bench-build makes it")

    def words(self, server, command, requests, number_range, pipeline=None, clients=None):
        """load's command line."""
        self.run_count += 1
        words = [self.directory / "load", "--wait", "1", "--port", server.port,
                 "--clients", clients or self.clients, "--pipeline", pipeline or self.pipeline,
                 "--requests", requests, "--range", number_range, "--seed", self.run_count,
                 *command.split()]
        return [str(word) for word in words]

    def run(self, server, command, requests, number_range, pipeline=None, clients=None,
            counters=lambda server: {}):
        """With load. What connecting costs is not counted. Returns figures as cost() does, those
        of the first thread (engine), how long clients waited for their replies, and how much
        counters(server), numbers by name, have grown."""
        words = self.words(server, command, requests, number_range, pipeline, clients)
        with subprocess.Popen(words, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=pinned(cores()[1])) as load:
            is_ready = load.stdout.readline() != ""
            pid, counted = server.process.pid, counters(server)
            ticks, before = server.ticks(), server.cpu_ns_by_thread()
            if is_ready:
                load.stdin.write("\n")
                load.stdin.flush()
            line = load.stdout.readline()
            after = server.cpu_ns_by_thread()
            ticks = ticks_since(ticks, server)
            counted = {name: count - counted[name] for name, count in counters(server).items()}
            load.stdin.close()
            error = load.stderr.read()
        if load.returncode != 0:
            sys.exit(f"{server.name}: {command}: {error}")
        told = json.loads(line)
        cpu_ns = sum(after.values()) - sum(before.values())
        return {**self.cost(cpu_ns, told["requests"], told["seconds"], ticks),
                "engine_us": (after[pid] - before[pid]) / 1000 / told["requests"],
                "requests": told["requests"], "seconds": told["seconds"], **counted,
                **{wait: told[wait] for wait in ("p50_us", "p99_us", "longest_us")}}

    def run_redis_benchmark(self, server, command, requests, number_range, pipeline=None,
                            clients=None):
        words = ["redis-benchmark", "-p", server.port, "-c", clients or self.clients, "-P",
                 pipeline or self.pipeline, "-n", requests, "-r", number_range, "-q",
                 *command.split()]
        ticks, before = server.ticks(), server.cpu_ns()
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              check=False, preexec_fn=pinned(cores()[1]))
        cpu_ns = server.cpu_ns() - before
        ticks = ticks_since(ticks, server)
        figure = done.stdout.strip().split("\r")[-1].split("\n")[-1]
        if done.returncode != 0 or "requests per second" not in figure:
            sys.exit(f"{server.name}: {command}: {done.stdout[-500:]}{done.stderr}")
        rate = float(figure.split(" requests per second")[0].split()[-1])
        return self.cost(cpu_ns, requests, requests / rate, ticks)

    @staticmethod
    def cost(cpu_ns, requests, seconds, ticks):
        return with_user_time({"us": cpu_ns / 1000 / requests, "per_second": requests / seconds,
                               "busy": cpu_ns / 1e9 / seconds, **ticks})

    def start_warm(self, name, path):
        """A server whose buffers have been used, so that growth is the boards' own."""
        server = Server(name, path)
        for pipeline in (self.pipeline, 1):
            self.run(server, "ZADD warm __rand_int__ user", WARM_REQUESTS, WARM_REQUESTS, pipeline)
        server.ask("FLUSHALL")
        time.sleep(SETTLE_S)
        return server


def ticks_since(before, server):
    return {key: now - then for key, now, then in zip(TICKS, server.ticks(), before)}


def with_user_time(figures):
    """With the user's and the kernel's part of us, where there were ticks to tell them apart."""
    ticks = sum(figures.get(key, 0) for key in TICKS)
    if ticks > 0:
        figures["user_us"] = figures["us"] * figures["user_ticks"] / ticks
        figures["kernel_us"] = figures["us"] - figures["user_us"]
    return figures


def combined(runs, average):
    """Figures of several runs of one row."""
    shared = set(runs[0]).intersection(*runs[1:])
    figures = {key: (sum if key in TICKS else average)([run[key] for run in runs])
               for key in runs[0] if key in shared}
    return with_user_time(figures)


def newest_hosts(directory):
    """Programs by name (redis, valkey): the newest of each that make hosts has unpacked."""
    newest = {}
    for path in Path(directory).glob("*/bin/redis-server"):
        name, _, version = path.parent.parent.name.partition("-")
        numbers = tuple(int(number) for number in version.split("."))
        if name in HOSTS and numbers > newest.get(name, ((), None))[0]:
            newest[name] = (numbers, str(path))
    return {name: newest[name][1] for name in HOSTS if name in newest}


def find_programs(server_program, with_hosts=True):
    """Servers by name: redis-server, ours, and those of PEERS; where PEERS is not set, and
    with_hosts, the newest of what make hosts has unpacked beside our server."""
    programs = {BASE: shutil.which("redis-server"), OURS: server_program}
    if "PEERS" in os.environ:
        peers = os.environ["PEERS"].split()
        programs.update((name, path) for name, _, path in (peer.partition("=") for peer in peers))
    elif with_hosts:
        programs.update(newest_hosts(Path(server_program).resolve().parent / "hosts"))
    for name, path in programs.items():
        if not path or not os.access(path, os.X_OK):
            sys.exit(f"no program for {name}: {path}")
    return programs


def alternate(servers, rounds, measure):
    """measure(server) for each server in every round, each going first in turn. Medians by name."""
    runs = {name: [] for name in servers}
    for turn in range(rounds):
        names = list(servers)
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            runs[name].append(measure(servers[name]))
    return {name: {**combined(figures, statistics.median),
                   "us_rounds": [round(run["us"], 4) for run in figures]}
            for name, figures in runs.items()}


# ---- results ----

def machine():
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    server_core, client_core = cores()
    pinning = ("no core to spare for pinning" if server_core is None else
               f"server on core {server_core}, client on core {client_core}")
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}; {pinning}"


def commit():
    done = subprocess.run(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True, check=False)
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def titles_of(versions):
    """How tables call the servers: with their versions."""
    return {name: f"{name} {version}" for name, version in versions.items()}


def markdown_table(head, rows):
    """head and each row: lists of texts; columns but the first are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def write_results(directory, name, title, notes, body, svg, results):
    """directory/<date>-name.md, .svg and .json. results: versions by server, and what was
    measured."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{datetime.date.today().isoformat()}-{name}"
    versions = ", ".join(f"{server} {version}{commit() if server == OURS else ''}"
                         for server, version in results["versions"].items())
    command = f"python3 bench/{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}"
    facts = [f"Machine: {machine()}", f"Servers: {versions}", f"Command: `{command}`", *notes]
    (directory / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    (directory / f"{stem}.svg").write_text(svg)
    (directory / f"{stem}.md").write_text(
        f"# {title}, {stem}\n\n" + "\n".join(f"- {fact}" for fact in facts)
        + f"\n\n![{title}]({stem}.svg)\n\n{body}\n")
    say(f"written: {directory / stem}.md, .svg, .json")
