"""What it costs to lose nothing: part `durability` of full.py.

Four questions, each asked of every server, in turns, with the same settings (no `save` points, a
directory of its own on the same file system):

    cost    ZADD without journal, with everysec, with always: CPU, throughput, bytes of journal
    stall   how long a snapshot of ten million members holds up the others, under some ZADDs
    rates   members a second into a snapshot and out of it, effects a second out of a journal
    disk    bytes a member of a snapshot, bytes an effect of a journal

For cost the whole server has one core, and the client the other. For stall and rates its loop has
that core, and its threads (or the child that writes the snapshot) have the client's, which is not
busy then. A tick is measured by the clock on the wall, so for stall the loop runs before all else on
its core, if that is allowed (root). While a server loads it may have both.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import plot
from compare import CPU_NOTE
from servers import BASE, OURS, Server, alternate, cores, markdown_table, pinned, say

MILLION = 1000000
MODES = {"no": ["--appendonly", "no"],
         "everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
         "always": ["--appendonly", "yes", "--appendfsync", "always"]}
PIPELINES = (1, 16, 32)
MEMBER_SIZE = 20
MEMBER = "user:000"  # and 12 digits
ZADD = f"--score-range {MILLION} ZADD board __score_int__ {MEMBER}__rand_int__"
FILL = f"--score-range {MILLION} ZADD board __score_int__ {MEMBER}__mixed_int__"
BOARD_SIZE = 50
BOARD_FILL = (f"--score-range {MILLION} ZADD board:__mixed_int__ "
              + " ".join(f"__score_int__ user:0{number:02}__rand_int__"
                         for number in range(BOARD_SIZE)))
RUN_S = 1.5         # of ZADDs, about
TRY_REQUESTS = 5000
QUIET_S = 1.5
STALL_ROUNDS = 7
OTHERS_STALL_ROUNDS = 3  # they take several times as long
MODERATE_RATE = 20000  # ZADDs a second
PING_SLEEP_US = 50
SETTLE_S = 0.5
WAIT_LIMIT_S = 300
NOT_A_DISK = ("tmpfs", "ramfs")


class Bench:
    """A part of full.py, with a directory on a disk."""

    def __init__(self, part, root):
        self.part, self.root = part, Path(root)
        self.names = list(part.programs)
        self.time_factor = min(1.0, part.options.scale * 10)

    def start(self, name, key, settings=(), core=cores()[0]):
        """A server in a directory of its own, which it may have used before."""
        directory = self.root / "-".join(key)
        directory.mkdir(exist_ok=True)
        settings = ["--auto-aof-rewrite-percentage", "0", *settings]
        server = Server(name, self.part.programs[name], settings, str(directory), core)
        self.part.servers[key] = server
        self.part.versions[name] = server.version()
        return server

    def start_spread(self, name, key, settings=()):
        """As above; threads and children keep off the loop's core."""
        other_core = cores()[1]
        if name != OURS and other_core is not None:
            settings = [*settings, "--bgsave_cpulist", str(other_core), "--aof_rewrite_cpulist",
                        str(other_core), "--bio_cpulist", str(other_core)]
        server = self.start(name, key, settings)
        for task in Path(f"/proc/{server.process.pid}/task").iterdir():
            if other_core is not None and int(task.name) != server.process.pid:
                os.sched_setaffinity(int(task.name), {other_core})
        return server

    def stop(self, key):
        self.part.servers.pop(key).stop()

    def run(self, server, command, requests, number_range, pipeline=None, clients=None):
        return self.part.generator.run(server, command, requests, number_range, pipeline, clients)


# ---- files and waiting ----

def size_of_files(server, pattern):
    return sum(path.stat().st_size for path in Path(server.directory).glob(pattern))


def journal_size(server):
    return size_of_files(server, "appendonlydir/*" + (".journal" if server.name == OURS
                                                      else ".incr.aof"))


def snapshot_size(server):
    return size_of_files(server, "appendonlydir/*.base" if server.name == OURS else "dump.rdb")


def wait_until(server, *fields):
    """Until all these fields of INFO persistence are 0."""
    give_up_at = time.monotonic() + WAIT_LIMIT_S
    while True:
        info = server.info("persistence")
        if all(info.get(field, "0") == "0" for field in fields):
            return info
        if time.monotonic() > give_up_at or server.process.poll() is not None:
            sys.exit(f"{server.name}: {fields} does not end:\n{server.log()}")
        time.sleep(0.02)


def write_snapshot(server):
    """Returns the seconds that BGSAVE took, and their CPU time, threads and children included."""
    begun_at, cpu = time.monotonic(), server.cpu_seconds()
    server.ask("BGSAVE")
    info = wait_until(server, "rdb_bgsave_in_progress")
    if info["rdb_last_bgsave_status"] != "ok":
        sys.exit(f"{server.name}: BGSAVE has failed:\n{server.log()}")
    return time.monotonic() - begun_at, server.cpu_seconds() - cpu


def loading_seconds(server):
    """What the log says of it."""
    log = server.log()
    if server.name == OURS:
        found = re.search(r"loaded .* members=(\d+) .* members/s=(\d+)", log)
        return int(found[1]) / max(1, int(found[2]))
    found = re.findall(r"DB loaded from (?:disk|append only file): ([\d.]+) seconds", log)
    return float(found[-1])


# ---- cost ----

def fill(bench, server, members, command=FILL):
    bench.run(server, command, members, members)


def start_cost_servers(bench, members):
    for name in bench.names:
        for mode, settings in MODES.items():
            server = bench.start(name, (name, mode), settings)
            wait_until(server, "loading")
            fill(bench, server, members)


def measure_zadds(bench, server, pipeline, requests, members):
    size = journal_size(server)
    figures = bench.run(server, ZADD, requests, members, pipeline)
    figures["journal_bytes"] = (journal_size(server) - size) / requests
    return figures


def measure_cost_row(bench, pipeline, members):
    """Each server runs for about as long. Figures by (name, mode)."""
    requests = {}
    for server in bench.part.servers.values():
        tried = bench.run(server, ZADD, TRY_REQUESTS * (1 if pipeline == 1 else 4), members,
                          pipeline)
        requests[server] = max(1000, int(tried["per_second"] * RUN_S * bench.time_factor))
    return alternate(bench.part.servers, bench.part.options.rounds, lambda server:
                     measure_zadds(bench, server, pipeline, requests[server], members))


def measure_cost(bench):
    """Rows of pipeline, mode and figures by server; and bytes an effect of a single client."""
    members = bench.part.scaled(MILLION)
    start_cost_servers(bench, members)
    rows = []
    for pipeline in PIPELINES:
        cells = measure_cost_row(bench, pipeline, members)
        for mode in MODES:
            row = {"pipeline": pipeline, "mode": mode,
                   "servers": {name: cells[name, mode] for name in bench.names}}
            rows.append(row)
            say(f"  pipeline {pipeline}, {mode}: " + ", ".join(
                f"{name} {cell['us']:.2f} us, {cell['per_second']:,.0f}/s"
                for name, cell in row["servers"].items()))
    requests = bench.part.scaled(20000)
    alone = {}
    for name in bench.names:
        server = bench.part.servers[name, "everysec"]
        size = journal_size(server)
        bench.run(server, ZADD, requests, members, 1, 1)
        alone[name] = (journal_size(server) - size) / requests
    for key in list(bench.part.servers):
        bench.stop(key)
    return {"members": members, "rows": rows, "alone_bytes": alone}


# ---- stall ----

@contextmanager
def running(words):
    """A client on its core, which is told to end when it is not needed any more."""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          preexec_fn=pinned(cores()[1])) as process:
        try:
            yield process
        finally:
            process.terminate()


def put_first(server):
    """Where that is allowed nothing else on its core may hold up the loop: what else the machine has
    to do, some milliseconds at a time, says nothing about a server. Its threads and children are
    not put first."""
    try:
        os.sched_setscheduler(server.process.pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK,
                              os.sched_param(1))
    except PermissionError:
        return False
    return True


def watch_once(bench, server, is_saving):
    """What is longest in some seconds, or while a snapshot is written."""
    pings = [str(bench.part.generator.directory / "stall"), "--port", str(server.port), "--sleep",
             str(PING_SLEEP_US), "--seconds", str(WAIT_LIMIT_S)]
    time.sleep(SETTLE_S)
    server.ask("CONFIG RESETSTAT")
    with running(pings) as stall:
        time.sleep(SETTLE_S)
        begun_at = time.monotonic()
        if is_saving:
            write_snapshot(server)
        else:
            time.sleep(QUIET_S * bench.time_factor)
        seconds = time.monotonic() - begun_at
        stall.terminate()
        figures = json.loads(stall.stdout.readline())
    stats = server.info("stats")
    return {"seconds": seconds, "longest_ms": figures["longest_us"] / 1000,
            "p999_ms": figures["p999_us"] / 1000,
            "tick_ms": int(stats["tick_longest_us"]) / 1000 if server.name == OURS else None,
            "fork_ms": None if server.name == OURS or not is_saving
            else int(stats["latest_fork_usec"]) / 1000}


def watch(bench, server, members):
    """PINGs beside ZADDs at a moderate rate, without and with a snapshot in turns: {what: medians}
    and the runs. The loop alone has its core."""
    zadds = bench.part.generator.words(server, f"--rate {MODERATE_RATE} {ZADD}",
                                       MODERATE_RATE * WAIT_LIMIT_S, members, 1)
    runs = {"quiet": [], "snapshot": []}
    is_first = put_first(server)
    with running(zadds) as load:
        load.stdout.readline()
        load.stdin.write(b"\n")
        load.stdin.flush()
        for _ in range(STALL_ROUNDS if server.name == OURS else OTHERS_STALL_ROUNDS):
            for what, cells in runs.items():
                cells.append(watch_once(bench, server, what == "snapshot"))
    return {what: {"runs": cells, "is_first": is_first,
                   **{figure: None if cells[0][figure] is None
                      else statistics.median(cell[figure] for cell in cells)
                      for figure in cells[0]}} for what, cells in runs.items()}


def measure_stall(bench, members):
    """On the servers that run, by server: without and with a snapshot."""
    cells = {}
    for (name, _), server in bench.part.servers.items():
        cells[name] = watch(bench, server, members)
        say(f"  {name}: " + ", ".join(
            f"{what}: longest PING {cell['longest_ms']:.2f} ms, tick {cell['tick_ms']},"
            f" fork {cell['fork_ms']}" for what, cell in cells[name].items()))
    return cells


# ---- rates ----

class Rates:
    """Lines of the table: seconds and CPU of a thing that is done some times, by server."""

    def __init__(self):
        self.lines = {}

    def add(self, title, name, count, seconds, cpu):
        line = self.lines.setdefault(title, {}).setdefault(name, {"count": count, "runs": []})
        line["runs"].append({"seconds": max(seconds, 1e-3), "cpu": cpu})

    def medians(self):
        """[{title, servers: {name: {per_second, us}}}]"""
        return [{"title": title, "servers": {
            name: {"per_second": line["count"] / statistics.median(
                       run["seconds"] for run in line["runs"]),
                   "us": statistics.median(run["cpu"] for run in line["runs"]) * 1e6
                         / line["count"],
                   "seconds_runs": [run["seconds"] for run in line["runs"]]}
            for name, line in lines.items()}} for title, lines in self.lines.items()]


def rounds_of(bench, name):
    """The others take several times as long."""
    return min(3, bench.part.options.rounds) if name == OURS else 1


def measure_snapshots(bench, rates, title, count):
    """Write snapshots on the servers that run, then load them. Returns bytes a member."""
    sizes = {}
    for (name, _), server in bench.part.servers.items():
        for _ in range(rounds_of(bench, name)):
            rates.add(f"write {title}", name, count, *write_snapshot(server))
        sizes[name] = snapshot_size(server) / count
    for key in list(bench.part.servers):
        bench.stop(key)
        for _ in range(rounds_of(bench, key[0])):
            server = bench.start(key[0], key, core=None)
            wait_until(server, "loading")
            rates.add(f"load {title}", key[0], count, loading_seconds(server),
                      server.cpu_seconds())
            check_loaded(server, count)
            bench.stop(key)
    say_rates(rates, title)
    return sizes


def check_loaded(server, count):
    """A board of all members, or as many of BOARD_SIZE."""
    boards = int(server.ask("DBSIZE"))
    members = int(server.ask("ZCARD board")) if boards == 1 else boards * BOARD_SIZE
    if members != count:
        sys.exit(f"{server.name}: {members} of {count} members are there:\n{server.log()}")


def say_rates(rates, title):
    for line in rates.medians():
        if line["title"].endswith(title):
            say(f"  {line['title']}: " + ", ".join(
                f"{name} {cell['per_second']:,.0f}/s" for name, cell in line["servers"].items()))


def measure_boards(bench, rates):
    count = bench.part.scaled(100000)
    for name in bench.names:
        server = bench.start_spread(name, (name, "boards"))
        bench.run(server, BOARD_FILL, count, count, 4)
    return measure_snapshots(bench, rates, f"{count:,} boards of {BOARD_SIZE}", count * BOARD_SIZE)


def load_again(bench, name):
    """Start with what the directory holds. Returns the server, and seconds and CPU it took."""
    server = bench.start(name, (name, "journal"), MODES["everysec"], core=None)
    wait_until(server, "loading")
    return server, loading_seconds(server), server.cpu_seconds()


def measure_journal(bench, rates):
    """A base of a million members, and random ZADDs behind it; what loading the base alone takes
    is taken off."""
    members = bench.part.scaled(MILLION)
    effects = 5 * members
    title = f"{effects:,} effects, board of {members:,}"
    for name in bench.names:
        key = (name, "journal")
        server = bench.start(name, key, MODES["everysec"])
        wait_until(server, "loading")
        fill(bench, server, members)
        server.ask("BGREWRITEAOF")
        wait_until(server, "aof_rewrite_in_progress", "aof_rewrite_scheduled")
        bench.stop(key)
        server, base_seconds, base_cpu = load_again(bench, name)
        bench.run(server, ZADD, effects, members)
        for _ in range(rounds_of(bench, name)):
            bench.stop(key)
            server, seconds, cpu = load_again(bench, name)
            rates.add(f"load {title}", name, effects, seconds - base_seconds, cpu - base_cpu)
            check_loaded(server, members)
        bench.stop(key)
    say_rates(rates, title)


def measure_large(bench, rates):
    """Ten million members: stalls, then snapshots. Returns stalls and bytes a member."""
    members = bench.part.scaled(10 * MILLION)
    for name in bench.names:
        fill(bench, bench.start_spread(name, (name, "large")), members)
    stalls = measure_stall(bench, members)
    return stalls, measure_snapshots(bench, rates, f"{members:,} members", members)


# ---- results ----

def mode_title(row):
    return f"pipeline {row['pipeline']}, {row['mode']}"


def cost_table(cost, names):
    plain = {row["pipeline"]: row["servers"] for row in cost["rows"] if row["mode"] == "no"}
    others = [name for name in names if name != OURS]
    head = (["ZADD"] + [f"{name}, {what}" for what in ("us", "ops/s") for name in names]
            + [f"{name}, {what} of no journal's" for what in ("us", "ops/s") for name in names]
            + [f"{what} than {name}" for what in ("times less CPU", "times more ops/s")
               for name in others])
    lines = []
    for row in cost["rows"]:
        cells, base = row["servers"], plain[row["pipeline"]]
        ours = cells[OURS]
        lines.append(
            [mode_title(row)] + [f"{cells[name]['us']:.2f}" for name in names]
            + [f"{cells[name]['per_second']:,.0f}" for name in names]
            + [f"{cells[name][figure] / base[name][figure]:.2f}"
               for figure in ("us", "per_second") for name in names]
            + [f"**{cells[name]['us'] / ours['us']:.1f}**" for name in others]
            + [f"{ours['per_second'] / cells[name]['per_second']:.2f}" for name in others])
    return markdown_table(head, lines)


def stall_table(stalls, names):
    def words(value):
        return "" if value is None else f"{value:.2f}"

    lines = []
    for what, title in (("quiet", "without a snapshot"), ("snapshot", "while one is written")):
        for name in names:
            cell = stalls[name][what]
            lines.append([f"{name}, {title}"] + [words(cell[figure]) for figure in (
                "tick_ms", "fork_ms", "longest_ms", "p999_ms", "seconds")]
                + [" ".join(words(run["tick_ms"]) for run in cell["runs"])])
    is_first = all(stalls[name][what]["is_first"] for name in names for what in stalls[name])
    note = ("Each server's loop ran before all else on its core (SCHED_FIFO)." if is_first else
            "The loops were not put first on their core: what else the machine did is in these.")
    return note + "\n\n" + markdown_table(
        ["medians", "longest tick, ms", "fork, ms", "longest PING, ms", "PING, 99.9%, ms",
         "seconds", "longest tick in each run, ms"], lines)


def rates_table(rates, names):
    head = ["", *[f"{name}, {what}" for what in ("a second", "us CPU each") for name in names]]
    lines = [[line["title"]] + [f"{line['servers'][name]['per_second']:,.0f}" for name in names]
             + [f"{line['servers'][name]['us']:.3f}" for name in names] for line in rates]
    return markdown_table(head, lines)


def disk_lines(cost, sizes):
    """(title, {name: bytes})"""
    lines = [(f"snapshot, a member: {title}", cells) for title, cells in sizes.items()]
    lines.append(("journal, an effect: 1 client, pipeline 1", cost["alone_bytes"]))
    lines += [(f"journal, an effect: 50 clients, pipeline {row['pipeline']}",
               {name: cell["journal_bytes"] for name, cell in row["servers"].items()})
              for row in cost["rows"] if row["mode"] == "everysec"]
    return lines


def disk_table(lines, names):
    return markdown_table(["bytes on disk", *names, f"part of {BASE}'s"],
                          [[title] + [f"{cells[name]:.1f}" for name in names]
                           + [f"{cells[OURS] / cells[BASE]:.2f}"] for title, cells in lines])


def targets(results):
    """What was asked for, and what was measured. [[what, asked, measured]]"""
    rows = {(row["pipeline"], row["mode"]): row["servers"] for row in results["cost"]["rows"]}
    most = max(PIPELINES)

    def kept(pipeline):
        part = (rows[pipeline, "everysec"][OURS]["per_second"]
                / rows[pipeline, "no"][OURS]["per_second"])
        return f"{part * 100:.0f}%"

    everysec, always = rows[most, "everysec"], rows[1, "always"]
    loads = {line["title"]: line["servers"][OURS]["per_second"] for line in results["rates"]}
    large, effects = (next(rate for title, rate in loads.items() if title.startswith("load ")
                           and title.endswith(end))
                      for end in (results["large_title"], results["journal_title"]))
    disk = [(title, cells[OURS] / cells[BASE]) for title, cells in results["disk"]]
    tick_ms = results["stall"][OURS]["snapshot"]["tick_ms"]
    return [
        ["everysec, throughput against no journal, pipelines " + ", ".join(map(str, PIPELINES)),
         "at least 85%", ", ".join(kept(pipeline) for pipeline in PIPELINES)],
        [f"everysec, pipeline {most}: times less CPU than {BASE}", "at least 5",
         f"{everysec[BASE]['us'] / everysec[OURS]['us']:.1f}"],
        [f"always, 50 clients, pipeline 1: throughput, of {BASE}'s", "at least 1",
         f"{always[OURS]['per_second'] / always[BASE]['per_second']:.2f}"],
        [f"longest tick while a snapshot is written, median of {STALL_ROUNDS}", "at most 2 ms",
         f"{tick_ms:.2f} ms"],
        ["loading a snapshot, members a second", "5,000,000", f"{large:,.0f}"],
        ["loading a journal, effects a second", "2,000,000", f"{effects:,.0f}"],
        [f"snapshot, of {BASE}'s", "at most 1",
         ", ".join(f"{part:.2f}" for title, part in disk if title.startswith("snapshot"))],
        [f"journal, of {BASE}'s: 1 client; 50 clients, pipelines "
         + ", ".join(map(str, PIPELINES)), "at most 0.5",
         ", ".join(f"{part:.2f}" for title, part in disk if title.startswith("journal"))]]


def body_of(results, names):
    members = results["cost"]["members"]
    sections = [
        ("Against what was asked for",
         markdown_table(["", "asked", "measured"], targets(results))),
        (f"ZADD with a journal: random updates of a board of {members:,}, "
         f"{results['clients']} clients", cost_table(results["cost"], names)),
        (f"A snapshot of {results['large_title']} beside {MODERATE_RATE:,} ZADDs a second",
         stall_table(results["stall"], names)),
        ("Rates", rates_table(results["rates"], names)),
        ("Bytes on disk", disk_table(results["disk"], names))]
    return "\n\n".join(f"## {title}\n\n{table}" for title, table in sections)


def data_directory(options):
    """Where the servers' files go. Memory would not do for a disk."""
    directory = Path(options.data or Path(options.server).resolve().parent)
    kind = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True,
                          check=True).stdout.strip()
    if kind in NOT_A_DISK:
        sys.exit(f"{directory} is on {kind}: --data names a directory on a disk")
    return directory, kind


def fsync_ms(directory):
    """What everybody waits for with always."""
    times = []
    with open(directory / "fsync", "wb", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(4096))
            begun_at = time.monotonic()
            os.fdatasync(file.fileno())
            times.append(time.monotonic() - begun_at)
    return statistics.median(times) * 1000


def measure(part):
    """The part durability of full.py."""
    if not (part.generator.directory / "stall").exists():
        sys.exit("bench/stall is not built: make bench-build makes it")
    directory, kind = data_directory(part.options)
    rates = Rates()
    with tempfile.TemporaryDirectory(prefix="durability-", dir=directory) as root:
        bench = Bench(part, root)
        sync_ms = fsync_ms(bench.root)
        try:
            cost = measure_cost(bench)
            stalls, large_sizes = measure_large(bench, rates)
            board_sizes = measure_boards(bench, rates)
            measure_journal(bench, rates)
        finally:
            part.stop()
    large, boards = (f"{part.scaled(10 * MILLION):,} members",
                     f"{part.scaled(100000):,} boards of {BOARD_SIZE}")
    journal = f"board of {part.scaled(MILLION):,}"
    results = part.results(
        f"Members of {MEMBER_SIZE} bytes, scores random below {MILLION:,}; median of"
        f" {part.options.rounds} rounds", cost=cost, stall=stalls, rates=rates.medians(),
        disk=disk_lines(cost, {large: large_sizes, boards: board_sizes}), large_title=large,
        journal_title=journal, clients=part.options.clients)
    notes = [CPU_NOTE, f"Files on {kind}, where an fsync takes {sync_ms:.2f} ms; `save` points, and"
             " rewriting by growth, off"]
    part.write("durability", "Durability", notes, body_of(results, bench.names),
               plot.of_durability, results)
