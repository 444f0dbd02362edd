"""full.py's part `threads`: leaderboard with io-threads 1, 2 and 4 beside redis-server with as many
threads in all, on the same core.

leaderboard's io-threads n > 1 are n threads for the network besides the engine's; redis-server's
main thread is one of its n. So 1, 2 and 4 are compared with 1, 3 and 5. Only CPU per thread, which
the kernel counts, says what more cores would give: on one core threads only take turns."""
import contextlib
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import plot
from compare import ZADD, ZREVRANK
from servers import BASE, OURS, SETTLE_S, Server, alternate, cores, markdown_table, pinned, say

MILLION = 1000000
SETTINGS = ((OURS, 1, 1), (OURS, 2, 3), (OURS, 4, 5), (BASE, 1, 1), (BASE, 3, 3), (BASE, 5, 5))
RUN_S = 1
LONG_RUN_S = 2.5
RUN_MIN_S, LONG_RUN_MIN_S = 0.2, 1.5
IDLE_S = 5
MAIN_TABLES = ("clients", "pipeline")
OTHER_ROUNDS_MAX = 3
FILL_PIPELINE = 1000
CROWD = 10000
SPARE_FILES = 1000
BUSY = 100
SLOW = 1000
LARGE_BYTES = 16 * 1000 * 1000
TOP100 = "ZREVRANGE board 0 99 WITHSCORES"
TITLES = {
    "clients": "One request at a time",
    "pipeline": "Pipeline of 32, 50 clients",
    "one": "One client, one request at a time",
    "curve": "More and fewer clients, one request at a time",
    "crowd": "100 clients beside 10,000 that are connected and idle",
    "slow": "1000 clients with one request a second each",
    "large": "100 clients beside one that sends requests of 16 MB",
    "cores": "Servers that may use all cores, the client on one of them",
    "idle": "Nobody connected",
}


def label_of(name, io_threads):
    return f"{name}, io-threads {io_threads}"


class Bench:
    """Servers with all settings, and what measures them."""

    def __init__(self, part):
        self.part = part
        self.members = min(MILLION, part.scaled(10 * MILLION))
        self.tables = []
        self.only = set(part.options.only.split(",")) if part.options.only else set(TITLES)
        self.crowd = min(CROWD, raise_file_limit() - SPARE_FILES)

    def seconds(self, is_long=False):
        full, least = (LONG_RUN_S, LONG_RUN_MIN_S) if is_long else (RUN_S, RUN_MIN_S)
        return max(least, full * self.part.options.scale)

    def start(self, core):
        """All servers, filled."""
        self.part.stop()
        for name, io_threads, _ in SETTINGS:
            settings = ["--io-threads", str(io_threads), "--maxclients", str(CROWD + SPARE_FILES)]
            if name == BASE and io_threads > 1:
                settings += ["--io-threads-do-reads", "yes"]
            label = label_of(name, io_threads)
            server = Server(label, self.part.programs[name], settings, core=core)
            self.part.servers[label] = server
            self.part.versions[name] = server.version()
        self.part.fill(self.members, FILL_PIPELINE, 1)  # of one client: threads sleep
        time.sleep(SETTLE_S)

    def run(self, server, command, clients, pipeline=1, is_long=False):
        figures = self.part.generator.run(server, f"--seconds {self.seconds(is_long)} {command}",
                                          1, self.members, pipeline, clients, engine_counters)
        for name in ("sleeps", "turns"):
            if name in figures:
                figures[f"per_{name[:-1]}"] = figures["requests"] / max(figures[name], 1)
        return figures

    def row(self, table, title, measure, **facts):
        """One row: measure(server) of all servers in turns."""
        rounds = self.part.options.rounds
        if table not in MAIN_TABLES:
            rounds = min(rounds, OTHER_ROUNDS_MAX)
        cells = alternate(self.part.servers, rounds, measure)
        self.tables.append({"table": table, "title": title, "rounds": rounds, "is_curve": False,
                            **facts, "servers": cells})
        say(f"  {title:40} " + " ".join(f"{cell['engine_us']:.2f}/{cell['us']:.2f}"
                                        for cell in cells.values()) + " us, engine/server")

    def row_of(self, table, command, clients, pipeline=1, **facts):
        title = f"{short(command)}, {clients:,} client{'s' if clients > 1 else ''}"
        self.row(table, title, lambda server: self.run(server, command, clients, pipeline),
                 clients=clients, command=short(command), **facts)


def short(command):
    return "top 100" if command == TOP100 else command.split()[0]


def raise_file_limit():
    """Of this process and those that it starts. Returns the limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def engine_counters(server):
    """How often the first thread slept, and the turns of its loop, where the server counts them."""
    pid = server.process.pid
    lines = Path(f"/proc/{pid}/task/{pid}/status").read_text().splitlines()
    counts = {"sleeps": int(line.split()[1]) for line in lines
              if line.startswith("voluntary_ctxt_switches")}
    turns = server.info("stats").get("eventloop_cycles")
    return {**counts, "turns": int(turns)} if turns else counts


# ---- the tables ----

def measure_clients(bench):
    for clients in (50, 1000):
        for command in (ZREVRANK, ZADD):
            bench.row_of("clients", command, clients, is_curve=command == ZREVRANK)


def measure_pipeline(bench):
    for command in (ZREVRANK, ZADD, TOP100):
        bench.row_of("pipeline", command, bench.part.options.clients, bench.part.options.pipeline)


def measure_one(bench):
    bench.row_of("one", ZREVRANK, 1, is_curve=True)
    bench.row_of("one", ZADD, 1)


def measure_curve(bench):
    for clients in (10, 100, 5000):
        bench.row_of("curve", ZREVRANK, clients, is_curve=True)


def pinned_behind():
    """On the client's core, where the client that is measured goes first."""
    if cores()[1] is not None:
        os.sched_setaffinity(0, {cores()[1]})
    os.nice(10)


@contextlib.contextmanager
def other_load(bench, server, words, is_sending):
    """A second load, connected, which sends all the while or nothing at all."""
    words = [str(bench.part.generator.directory / "load"), "--wait", "1", "--port",
             str(server.port), *words]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          preexec_fn=pinned_behind if is_sending else pinned(cores()[1])) as process:
        try:
            if process.stdout.readline() == "":
                raise RuntimeError(f"{server.name}: {words}: load failed")
            if is_sending:
                process.stdin.write("\n")
                process.stdin.flush()
            yield
            if process.poll() is not None:
                raise RuntimeError(f"{server.name}: {words}: load ended")
        finally:
            process.kill()


def measure_crowd(bench):
    def measure(server):
        with other_load(bench, server, ["--clients", str(bench.crowd), "PING"], False):
            time.sleep(0.2)
            return bench.run(server, ZREVRANK, BUSY)

    bench.row("crowd", f"ZREVRANK, {BUSY} busy, {bench.crowd:,} idle", measure)


def measure_slow(bench):
    bench.row("slow", f"ZREVRANK, {SLOW:,} clients, once a second each",
              lambda server: bench.run(server, f"--rate {SLOW} {ZREVRANK}", SLOW, 1, True))


def encoded(words):
    parts = [f"*{len(words)}\r\n"] + [f"${len(word)}\r\n{word}\r\n" for word in words]
    return "".join(parts).encode()


def large_requests():
    """Titles, bytes, and rates of the others. A value that is read and found nowhere is work for
    the network alone; the members, which are there already, are work for the engine, and keep it
    busy: others that ask once a second each are enough to see how long they wait."""
    pair_size = len(encoded([f"{0:012}", f"user:{0:012}"])) - len("*2\r\n")
    pairs = [word for number in range(LARGE_BYTES // pair_size)
             for word in (f"{number:012}", f"user:{number:012}")]
    value = encoded(["ZSCORE", "board", "x" * LARGE_BYTES])
    return [("one value", value, None), ("one value", value, 10 * BUSY),
            (f"ZADD of {len(pairs) // 2:,} members", encoded(["ZADD", "large", *pairs]), BUSY)]


def measure_large(bench):
    for title, request, rate in large_requests():
        with tempfile.NamedTemporaryFile() as file:
            file.write(request)
            file.flush()

            def measure(server, name=file.name, size=len(request), rate=rate):
                with other_load(bench, server, ["--clients", "1", "--seconds", "1000", "--file",
                                                name], True):
                    before = int(server.info("stats")["total_net_input_bytes"])
                    begun_at = time.monotonic()
                    figures = bench.run(server, (f"--rate {rate} " if rate else "") + ZREVRANK,
                                        BUSY, 1, True)
                    seconds = time.monotonic() - begun_at
                    received = int(server.info("stats")["total_net_input_bytes"]) - before
                figures["large_per_second"] = received / size / seconds
                return figures

            much = f"{rate:,} a second" if rate else "as many as go"
            bench.row("large", f"ZREVRANK, {BUSY} clients, {much}, beside {title}", measure)


def measure_idle(bench):
    """All servers at the same time."""
    time.sleep(SETTLE_S)
    before = {label: server.cpu_ns_by_thread() for label, server in bench.part.servers.items()}
    time.sleep(IDLE_S)
    cells = {}
    for label, server in bench.part.servers.items():
        after, pid = server.cpu_ns_by_thread(), server.process.pid
        spent = {thread: after[thread] - before[label].get(thread, 0) for thread in after}
        cells[label] = {"cpu_ms_per_second": sum(spent.values()) / 1e6 / IDLE_S,
                        "engine_ms_per_second": spent[pid] / 1e6 / IDLE_S}
    bench.tables.append({"table": "idle", "title": "idle", "rounds": 1, "is_curve": False,
                         "servers": cells})


def measure_cores(bench):
    bench.start(None)
    for clients in (50, 1000):
        bench.row_of("cores", ZREVRANK, clients)


MEASURES = {"idle": measure_idle, "clients": measure_clients, "pipeline": measure_pipeline,
            "one": measure_one, "curve": measure_curve, "crowd": measure_crowd,
            "slow": measure_slow, "large": measure_large, "cores": measure_cores}


# ---- the page ----

COLUMNS = {
    "engine, us": lambda cell: f"{cell['engine_us']:.2f}",
    "server, us": lambda cell: f"{cell['us']:.2f}",
    "requests/s": lambda cell: f"{cell['per_second']:,.0f}{'' if cell['busy'] > 0.9 else ' *'}",
    "half wait, ms": lambda cell: f"{cell['p50_us'] / 1000:.2f}",
    "99% wait, ms": lambda cell: f"{cell['p99_us'] / 1000:.2f}",
    "longest, ms": lambda cell: f"{cell['longest_us'] / 1000:.1f}",
    "requests a turn": lambda cell: f"{cell['per_turn']:,.1f}" if "per_turn" in cell else "",
    "a sleep": lambda cell: f"{cell['per_sleep']:,.1f}" if "per_sleep" in cell else "",
}
MORE_COLUMNS = {
    "slow": {"CPU, ms a second": lambda cell: f"{cell['busy'] * 1000:.1f}"},
    "large": {"large requests/s": lambda cell: f"{cell['large_per_second']:.1f}"},
}
IDLE_COLUMNS = {
    "CPU, ms a second": lambda cell: f"{cell['cpu_ms_per_second']:.3f}",
    "engine, ms a second": lambda cell: f"{cell['engine_ms_per_second']:.3f}",
}


def table_of(name, rows, threads):
    columns = IDLE_COLUMNS if name == "idle" else {**COLUMNS, **MORE_COLUMNS.get(name, {})}
    lines = []
    for row in rows:
        for label, cell in row["servers"].items():
            lines.append([row["title"], label, str(threads[label]["count"])]
                         + [show(cell) for show in columns.values()])
    return markdown_table(["", "server", "threads", *columns], lines)


class Asked:
    """Lines of the table at the top: what was asked for, and what was measured."""

    def __init__(self, tables):
        self.rows = {(row["table"], row["title"]): row["servers"] for row in tables}
        self.lines = []

    def add(self, what, asked, measure):
        """measure() raises KeyError if that table was not measured."""
        with contextlib.suppress(KeyError):
            self.lines.append([what, asked, measure()])

    def cell(self, table, title, io_threads, name=OURS):
        return self.rows[table, title][label_of(name, io_threads)]

    def ratio(self, table, title, key, io_threads):
        return (self.cell(table, title, io_threads)[key] / self.cell(table, title, 1)[key])

    def worst(self, tables, key, is_more_better, against):
        """Of all rows of these tables: ours to redis-server's, whose settings against(threads)
        gives, the best of them."""
        ratios = []
        for (table, title), servers in self.rows.items():
            for name, io_threads, threads in SETTINGS if table in tables else ():
                if name != OURS:
                    continue
                ours = servers[label_of(OURS, io_threads)][key]
                ratio = min((ours / servers[base][key]) ** (1 if is_more_better else -1)
                            for base in against(threads))
                ratios.append((ratio, f"{title}, io-threads {io_threads}"))
        if not ratios:
            raise KeyError(key)
        behind = sum(ratio < 1 for ratio, _ in ratios)
        return f"{min(ratios)[0]:.2f} ({min(ratios)[1]}); below 1 in {behind} of {len(ratios)}"


def same_threads(count):
    return [label_of(BASE, io_threads) for name, io_threads, threads in SETTINGS
            if name == BASE and threads == count]


def any_threads(_):
    return [label_of(BASE, io_threads) for name, io_threads, _ in SETTINGS if name == BASE]


def asked_table(tables):
    asked = Asked(tables)
    many = "{}, 1,000 clients"
    for command, limit in (("ZREVRANK", "0.5"), ("ZADD", "1.0")):
        title = many.format(command)
        asked.add(f"engine thread, us per {title}, io-threads 2", f"at most {limit}",
                  lambda title=title: f"{asked.cell('clients', title, 2)['engine_us']:.2f}")
        asked.add(f"whole server, {title}, io-threads 2 of io-threads 1", "at most 1.15",
                  lambda title=title: f"{asked.ratio('clients', title, 'us', 2):.2f}")
    for command, limit in (("ZREVRANK", "0.6"), ("ZADD", "0.8"), ("top 100", "0.6")):
        title = f"{command}, 50 clients"
        asked.add(f"engine thread, pipeline 32, {command}, io-threads 2 of io-threads 1",
                  f"at most {limit}",
                  lambda title=title: f"{asked.ratio('pipeline', title, 'engine_us', 2):.2f}")
    for wait, key in (("half", "p50_us"), ("99%", "p99_us")):
        asked.add(f"one client's {wait} wait, ZREVRANK, io-threads 4 of io-threads 1",
                  "at most 1.1", lambda key=key:
                  f"{asked.ratio('one', 'ZREVRANK, 1 client', key, 4):.2f}")
    for what, key, is_more_better in (("requests/s", "per_second", True),
                                      ("99% wait", "p99_us", False), ("CPU", "us", False)):
        beside = ("crowd", "slow") if key == "us" else ("crowd", "slow", "large")
        for where, tables in (("one request at a time", ("clients", "one", "curve")),
                              (f"tables {', '.join(beside)}", beside)):
            for base, against in (("as many threads", same_threads),
                                  ("its best io-threads", any_threads)):
                is_asked = against is same_threads and key != "us"
                asked.add(f"{what}, {where}: times better than redis-server with {base}, worst row",
                          "above 1" if is_asked else "",
                          lambda key=key, more=is_more_better, tables=tables, against=against:
                          asked.worst(tables, key, more, against))
    asked.add("idle with io-threads 4, CPU, ms a second", "below 1", lambda:
              f"{asked.cell('idle', 'idle', 4)['cpu_ms_per_second']:.3f}")
    return markdown_table(["", "asked", "measured"], asked.lines)


NOTES = [
    "leaderboard's io-threads n > 1 are n threads for the network besides the engine's; of"
    " redis-server's n the main thread is one (io-threads-do-reads yes): equal `threads` compare",
    "engine: the thread that runs the commands, in redis-server the main thread; server: all"
    " threads; us: CPU, user and system, per request. Only ratios of one run count",
    "All threads of a server have one core, but for the table that says otherwise. redis-server's"
    " threads spin while they wait for each other: that counts as CPU, and takes the core from"
    " those they wait for; its makers advise against more threads than cores",
    "Waits: from sending a request to its reply, of a pipeline to its last reply, seen by a client"
    " that is as busy as the server",
    "Requests a turn of the engine's loop, by INFO's eventloop_cycles where there is one, and for"
    " each time that its thread slept (voluntary context switches)",
    f"At most {OTHER_ROUNDS_MAX} runs from the third table on",
    "\\* the threads were idle for more than a tenth of the time: the client, or other work on the"
    " machine, was the limit",
    "Beside large requests, CPU per request holds their share too: more of them, more CPU",
    "Rates that are given: a request that is sent late waits since it was due",
]


def measure(part):
    bench = Bench(part)
    unknown = bench.only - set(MEASURES)
    if unknown:
        raise SystemExit(f"no such tables: {', '.join(unknown)}; there are: {', '.join(MEASURES)}")
    bench.start(cores()[0])
    for name, run in MEASURES.items():
        if name in bench.only:
            begun_at = time.monotonic()
            run(bench)
            say(f"  {name}: {time.monotonic() - begun_at:.0f} s")
    threads = {label_of(name, io_threads): {"name": name, "io_threads": io_threads, "count": count}
               for name, io_threads, count in SETTINGS}
    subtitle = (f"One board of {bench.members:,} members, one request at a time unless said;"
                f" median of {part.options.rounds} runs of {bench.seconds():g} s")
    body = "## Against what was asked for\n\n" + asked_table(bench.tables)
    for name, title in TITLES.items():
        rows = [row for row in bench.tables if row["table"] == name]
        if rows:
            body += f"\n\n## {title} ({name})\n\n" + table_of(name, rows, threads)
    results = part.results(subtitle, threads=threads, tables=bench.tables)
    part.write("threads", "Network threads", NOTES, body, plot.of_threads, results)
