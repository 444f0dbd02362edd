#!/usr/bin/env python3
"""The long measurements, in parts; every part writes bench/results/<date>-<part>.md, .svg, .json.

    make bench-full                                       all of it: four hours
    make bench-full PARTS="memory growth"                 these
    make bench-full PARTS=growth BENCH_ARGS="--growth-max 10000000"
    make bench-full BENCH_ARGS="--scale 0.01 --rounds 1"  does it all run?

    side          compare.py's rows, a million members
    ten-million   load by random ZADDs, then ZADD, ZINCRBY, ZREVRANK, ten million members
    clients       one request at a time, from 1, 50 and 1000 clients
    memory        bytes a member with its name: random bytes, UUIDs, ids, `user:`; small boards
    churn         nine tenths of ten million members removed and put back, ten times
    growth        one board of a thousand to a hundred million members
    boards        a million boards of ten members
    hashes        a million hashes of three fields
    stall         how long one long command holds up everybody else
    long          every long command at a million members: how long others wait, beside redis-server
    durability    what a journal costs, snapshots beside writes, loading, bytes on disk
    players       commands that visit a million boards: how long others wait
    threads       io-threads 1, 2 and 4 beside redis-server and its own
    tls           with TLS: requests from 1, 50 and 1000 clients, pipelines, and handshakes
    sync          what sync-replicas costs: rate, waits, CPU of a master and two replicas
    replication   CPU of a master and its replicas, a full copy, and how far behind replicas are
    replica-cost  what replicas cost their master: instructions and the kernel's time, by callgrind
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import churn
import compare
import durability
import hashes
import long
import players
import plot
import replica_cost
import replication
import sync
import threads
import tls
from compare import (CPU_NOTE, FLOOR_NOTE, TOP10, USERS, ZADD, ZINCRBY, ZREVRANK, ZSCORE, Memory,
                     Names, Row, rows_named)
from servers import (BASE, OURS, SETTLE_S, Generator, alternate, combined, cores,
                     find_programs, markdown_table, pinned, say, titles_of, write_results)

MILLION = 1000000
PER_BOARD = 10
BASE_MEMBERS_MAX = 10 * MILLION  # of growth, for servers that are not ours
GROWTH_MAX = 100 * MILLION
GROWTH_BYTES = 60  # a member of 17 bytes in memory, rather too many
LOADS_MAX = 20     # of a small board: one alone is over too soon


class Part:
    """What the parts share: options, generator, programs, and the servers that run."""

    def __init__(self, options, with_hosts=True):
        """with_hosts: also beside the newest Redis and Valkey, where they are at hand."""
        self.options = options
        self.generator = Generator(options.server, options.clients, options.pipeline)
        self.programs = find_programs(options.server, with_hosts)
        self.servers = {}
        self.versions = {}
        self.tick_note = ""

    def scaled(self, count):
        return max(1000, int(count * self.options.scale))

    def start(self, names=None):
        for name in names or self.programs:
            server = self.generator.start_warm(name, self.programs[name])
            self.servers[name] = server
            self.versions[name] = server.version()
        return self.servers

    def stop(self):
        for server in self.servers.values():
            server.stop()
        self.servers = {}

    def measure(self, rows, members):
        """Rows on the servers that run. Returns their results."""
        return compare.run_rows(rows, self.servers, self.options.rounds, lambda row, server:
                                row.measure(self.generator.run, server, members,
                                            min(1.0, self.options.scale * 10)))

    def fill(self, members, pipeline=None, clients=None):
        for server in self.servers.values():
            self.generator.run(server, "ZADD board __rand_int__ user:__mixed_int__", members,
                               members, pipeline, clients)

    def results(self, subtitle, **measured):
        return {"base": BASE, "versions": self.versions, "subtitle": subtitle, **measured}

    def write(self, name, title, notes, body, draw, results):
        write_results(self.options.results, name, title, [results["subtitle"], *notes], body,
                      draw(results), results)

    def write_rows(self, name, title, results, body=""):
        table = compare.cost_table(results["rows"], self.versions)
        self.write(name, title, [CPU_NOTE, FLOOR_NOTE], table + body,
                   lambda results: plot.of_rows(results, results["subtitle"]), results)


# ---- the parts ----

def side(part):
    options = part.options
    compare.main(["--server", options.server, "--members", str(part.scaled(MILLION)),
                  "--rounds", str(options.rounds), "--results", options.results, "--name", "side",
                  "--requests-factor", str(min(1.0, options.scale * 10)),
                  "--updates", str(part.scaled(3 * MILLION))])


def ten_million(part):
    members = part.scaled(10 * MILLION)
    loads = {name: part.generator.run(server, ZADD, 3 * members, members)
             for name, server in part.start().items()}
    say("  load: " + ", ".join(f"{name} {cost['us']:.2f} us" for name, cost in loads.items()))
    rows = [compare.load_row(f"load, {3 * members:,} random ZADDs", loads)]
    rows += part.measure(rows_named("zadd", "zincrby", "zrevrank", "plain-zadd", "plain-zrevrank"),
                         members)
    subtitle = (f"One board of {members:,} members, random scores; 50 clients, pipeline 32;"
                f" median of {part.options.rounds} rounds, one load")
    part.write_rows("ten-million", "Ten million members", part.results(subtitle, rows=rows))


def clients(part):
    members = part.scaled(MILLION)
    part.start()
    part.fill(members)
    rows = []
    for count, requests in ((1, 50000), (50, 100000), (1000, 100000)):
        words = f"{count} client{'s' if count > 1 else ''}"
        rows += [Row(f"{command.split()[0].lower()}-{count}", f"{title}, {words}", command,
                     requests, 1, count)
                 for title, command in (("ZADD", ZADD), ("ZINCRBY 3", ZINCRBY),
                                        ("ZREVRANK", ZREVRANK), ("ZSCORE", ZSCORE),
                                        ("ZREVRANGE 0 9", TOP10))]
    subtitle = (f"One board of {members:,} members; no pipeline: every client waits for its reply;"
                f" median of {part.options.rounds} rounds")
    part.write_rows("clients", "Without pipeline",
                    part.results(subtitle, rows=part.measure(rows, members)))


NAMES = [Names("20 random bytes", "__{}_bytes__", 20), Names("UUIDs", "__{}_uuid__", 36),
         Names("10-digit ids", "__{}_id__", 10), USERS]


def memory_of(part, names, members, updates=0):
    """A board of members with such names, on each server. Returns bytes a member by title."""
    sizes = Memory(part.generator, part.programs, members, names)
    part.servers = sizes.servers
    figures, _ = sizes.measure(updates)
    part.versions = {name: server.version() for name, server in sizes.servers.items()}
    part.stop()
    return figures


def memory_of_small_boards(part, count):
    """Boards of ten UUIDs. Returns bytes a member, its part of the board and its name included."""
    figures = {}
    for name, server in part.start().items():
        resident = server.resident_bytes()
        for number in range(1, PER_BOARD + 1):
            part.generator.run(server, f"--names {number} ZADD board:__mixed_int__ __rand_int__"
                               " __mixed_uuid__", count, count)
        time.sleep(SETTLE_S)
        figures[name] = (server.resident_bytes() - resident) / count / PER_BOARD
        say(f"  {name}: {PER_BOARD * figures[name]:.1f} B a board of {PER_BOARD} UUIDs")
    part.stop()
    return figures


def memory(part):
    members, few, boards_count = (part.scaled(count * MILLION) for count in (5, 2, 1))
    figures = {}
    for names in NAMES:
        say(f"  {names.title}:")
        figures.update(memory_of(part, names, members, 2 * members if names is NAMES[0] else 0))
    say(f"  {NAMES[0].title}, {few:,} members:")
    for title, cells in memory_of(part, NAMES[0], few).items():
        figures[f"{few:,} members: {title}"] = cells
    small = memory_of_small_boards(part, boards_count)
    figures[f"{boards_count:,} boards of ten UUIDs, names of the boards included"] = small
    lines = [[f"{boards_count:,} boards of ten UUIDs, bytes a board"]
             + [f"{PER_BOARD * small[name]:.1f}" for name in part.versions]]
    body = (compare.memory_table(figures, part.versions) + "\n\n"
            + markdown_table(["resident bytes", *titles_of(part.versions).values()], lines))
    subtitle = f"One board of {members:,} members unless said, random scores; names included"
    part.write("memory", "Memory", ["Growth of resident memory from the empty, warmed up server,"
                                    " per member, the bytes of its name included",
                                    "In order: ascending scores; names of `user:` ascend, too",
                                    f"{OURS} takes memory in pieces of 2 MiB: with less than a"
                                    " million members its figures are coarse"],
               body, plot.of_memory, part.results(subtitle, memory=figures))


def growth_sizes(options):
    """Powers of ten, from a thousand members on."""
    most = options.growth_max
    if most is None:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        available = int(lines["MemAvailable"].split()[0]) * 1024
        most = GROWTH_MAX if available > 2 * GROWTH_MAX * GROWTH_BYTES else BASE_MEMBERS_MAX
    most = int(most * options.scale)
    return [10 ** power for power in range(3, 12) if 10 ** power <= most]


def load_board(part, server, members):
    """Load the board, a small one several times. Returns CPU per ZADD."""
    command = "ZADD board __rand_int__ user:__mixed_int__"
    costs = []
    for _ in range(max(1, min(LOADS_MAX, part.scaled(MILLION) // members))):
        server.ask("DEL board")
        time.sleep(0.02)  # for what is freed after the reply
        costs.append(part.generator.run(server, command, members, members)["us"])
    return statistics.median(costs)


FLOOR_TITLE = "PING, \u00b5s"
GROWTH_ROWS = {"ZADD, \u00b5s": "zadd", "ZINCRBY 3, \u00b5s": "zincrby",
               "ZREVRANK, \u00b5s": "zrevrank",
               "ZREVRANGE n/3 .. +9, \u00b5s": "deep10"}
LOAD_TITLE = "load by ZADD, \u00b5s"
BYTES_TITLE = "bytes a member, with its name"


def growth_point(part, members):
    """Figures by server, on one board of this size."""
    names = [name for name in part.programs if name == OURS or members <= BASE_MEMBERS_MAX]
    figures = {}
    for name, server in part.start(names).items():
        resident = server.resident_bytes()
        figures[name] = {LOAD_TITLE: load_board(part, server, members)}
        # Memory comes in pieces of 2 MiB, and what was loaded twice has left holes.
        if members >= part.scaled(MILLION):
            time.sleep(SETTLE_S)
            grown = server.resident_bytes() - resident
            figures[name][BYTES_TITLE] = grown / members
    rows = {title: rows_named(row_name)[0] for title, row_name in GROWTH_ROWS.items()}
    rows[FLOOR_TITLE] = rows_named("zadd")[0].floor()
    for title, row in rows.items():
        cells = alternate(part.servers, part.options.rounds, lambda server, row=row:
                          row.measure(part.generator.run, server, members))
        for name, cell in cells.items():
            figures[name][title] = cell["us"]
    part.stop()
    return figures


def growth(part):
    curves = {name: [] for name in part.programs}
    for members in growth_sizes(part.options):
        for name, figures in growth_point(part, members).items():
            curves[name].append({"members": members, "figures": figures})
            say(f"  {members:,} {name}: "
                + ", ".join(f"{title} {value:.2f}" for title, value in figures.items()))
    titles = [LOAD_TITLE, *GROWTH_ROWS, FLOOR_TITLE, BYTES_TITLE]
    lines = [[f"{point['members']:,}, {name} {part.versions[name]}"]
             + [f"{point['figures'][title]:.2f}" if title in point["figures"] else ""
                for title in titles] for name, points in curves.items() for point in points]
    subtitle = f"One board; 50 clients, pipeline 32; median of {part.options.rounds} rounds"
    part.write("growth", "Cost against size",
               [CPU_NOTE, "Bytes: resident growth a member, its name of 17 included"],
               markdown_table(["members", *titles], lines), plot.of_growth,
               part.results(subtitle, growth=curves, titles=titles))


def boards(part):
    count = part.scaled(MILLION)
    sizes = {"bytes a board": {}, "bytes a member": {}}
    loads = {}
    for name, server in part.start().items():
        resident = server.resident_bytes()
        costs = [part.generator.run(server, f"ZADD board:__mixed_int__ __rand_int__"
                                    f" user:{number:012}", count, count)
                 for number in range(PER_BOARD)]
        loads[name] = combined(costs, statistics.mean)
        time.sleep(SETTLE_S)
        bytes_a_board = (server.resident_bytes() - resident) / count
        sizes["bytes a board"][name] = bytes_a_board
        sizes["bytes a member"][name] = bytes_a_board / PER_BOARD
        say(f"  {name}: {bytes_a_board:.1f} B a board")
    rows = [compare.load_row("load by ZADD", loads)]
    rows += part.measure([
        Row("zadd", "ZADD", "ZADD board:__rand_int__ __rand_int__ user:000000000004", 400000),
        Row("zrevrank", "ZREVRANK", "ZREVRANK board:__rand_int__ user:000000000004", 400000)],
        count)
    subtitle = (f"{count:,} boards of {PER_BOARD} members of 17 bytes; 50 clients, pipeline 32;"
                f" median of {part.options.rounds} rounds, one load")
    table = markdown_table(["resident memory, names of boards and members included",
                            *titles_of(part.versions).values()],
                           [[title] + [f"{cells[name]:.1f}" for name in part.versions]
                            for title, cells in sizes.items()])
    part.write_rows("boards", "Many small boards",
                    part.results(subtitle, rows=rows, memory=sizes), "\n\n" + table)


def stall_commands(members):
    """In this order, each on what the one before has left."""
    return ["ZREVRANGE board 0 99999 WITHSCORES", f"ZREMRANGEBYRANK board 0 {members // 10 - 1}",
            "COPY board copy", "DEL copy", "UNLINK board", "FLUSHALL"]


def run_stall(part, server, command):
    program = part.generator.directory / "stall"
    return subprocess.Popen([program, "--port", str(server.port), *command.split()],
                            stdout=subprocess.PIPE, text=True, preexec_fn=pinned(cores()[1]))


def stalls_of(part, server, members):
    """Figures by command. The board is loaded first, and once more before FLUSHALL."""
    def load():
        part.generator.run(server, "ZADD board __rand_int__ user:__mixed_int__", members, members)

    load()
    if server.name == OURS:
        longest_ms = int(server.info("stats")["tick_longest_us"]) / 1000
        part.tick_note = f"Longest tick of {OURS} until the board was loaded: {longest_ms:.2f} ms"
    figures = {}
    for command in stall_commands(members):
        if command == "FLUSHALL":
            load()
        with run_stall(part, server, command) as process:
            line = process.stdout.readline()
        if process.returncode != 0:
            sys.exit(f"{server.name}: {command}: stall failed")
        figures[command] = json.loads(line)
        time.sleep(SETTLE_S)
    return figures


def stall(part):
    if not (part.generator.directory / "stall").exists():
        say("  bench/stall is not built: this part is left out")
        return
    members = part.scaled(10 * MILLION)
    figures = {name: stalls_of(part, server, members) for name, server in part.start().items()}
    names = list(part.versions)
    rows = [{"title": command, "servers": {name: figures[name][command] for name in names}}
            for command in stall_commands(members)]
    lines = []
    for row in rows:
        cells = [row["servers"][name] for name in names]
        lines.append([f"`{row['title']}`"] + [f"{cell['longest_us'] / 1000:.2f}" for cell in cells]
                     + [f"{cell['command_us'] / 1000:.2f}" for cell in cells]
                     + [f"{cell['before_longest_us'] / 1000:.2f}" for cell in cells])
    head = ["command"] + [f"{name}, {what}, ms" for what in
                          ("longest PING", "the command", "longest PING before it")
                          for name in names]
    subtitle = f"One board of {members:,} members; PINGs of another client while a command runs"
    part.write("stall", "Longest wait", [part.tick_note], markdown_table(head, lines),
               plot.of_stalls, part.results(subtitle, stalls=rows))


PARTS = {"side": side, "ten-million": ten_million, "clients": clients, "memory": memory, "churn": churn.measure,
         "growth": growth, "boards": boards, "hashes": hashes.measure, "stall": stall,
         "long": long.measure, "durability": durability.measure, "players": players.measure,
         "threads": threads.measure, "tls": tls.measure,
         "replication": replication.measure, "replica-cost": replica_cost.measure, "sync": sync.measure}
# The others measure what each version does alike, or how long: with PEERS beside others, too.
WITH_HOSTS = ("side", "ten-million", "clients", "memory", "churn", "growth", "boards", "hashes", "tls")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help="default: all")
    parser.add_argument("--server", default="build/leaderboard-server", help="leaderboard's server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pipeline", type=int, default=32)
    parser.add_argument("--growth-max", type=int, help="members of the largest board; default:"
                        " a hundred million where memory allows, else ten")
    parser.add_argument("--cycles", type=int, default=10, help="of `churn`")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes: 0.01 to try it")
    parser.add_argument("--only", help="of `long`: commands whose titles have one of these words,"
                        " with commas between them; of `threads`: tables with these names; of"
                        " `churn`: servers with these, beside what the day's result has of the others")
    parser.add_argument("--data", help="directory for what durability writes; default: where the"
                        " server is")
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error("no such parts: " + ", ".join(sorted(unknown)) + "; there are: "
                     + ", ".join(PARTS))
    return options


def main():
    options = parse_options()
    for name in options.parts or PARTS:
        begun_at = time.monotonic()
        say(f"{name}:")
        part = Part(options, name in WITH_HOSTS)
        try:
            PARTS[name](part)
        finally:
            part.stop()
        say(f"  {time.monotonic() - begun_at:.0f} s")


if __name__ == "__main__":
    main()
