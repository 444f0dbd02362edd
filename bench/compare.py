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
from pathlib import Path

import plot
from servers import (BASE, OURS, Generator, alternate, find_programs, markdown_table, say,
                     write_results)

CPU_NOTE = ("us: the server's CPU time, user and system, per operation. Only ratios of one run"
            " count.")


class Row:
    """One line of the table. {third} and {third9} stand for a place in the middle of the board."""

    def __init__(self, name, title, command, requests, pipeline=None, clients=None):
        self.name, self.title, self.command, self.requests = name, title, command, requests
        self.pipeline, self.clients = pipeline, clients

    def measure(self, run, server, members, factor=1.0):
        """run: of Generator. Returns its figures."""
        third = members // 3
        command = self.command.format(third=third, third9=third + 9)
        requests = max(1000, int(self.requests * factor))
        return run(server, command, requests, members, self.pipeline, self.clients)


class ListRow(Row):
    """The rank and score of a hundred members: one LB.GET where there is one, and it is asked for,
    else a hundred ZREVRANK and a hundred ZSCORE in pipelines. One operation is the whole list."""

    SIZE = 100

    def __init__(self, name, title, is_native):
        members = " ".join([MEMBER] * self.SIZE)
        super().__init__(name, title, f"LB.GET board {self.SIZE} {members}", 8000)
        self.is_native = is_native

    def measure(self, run, server, members, factor=1.0):
        if self.is_native and server.name == OURS:
            return super().measure(run, server, members, factor)
        requests = max(1000, int(self.requests * factor * self.SIZE / 2))
        parts = [run(server, f"{command} board {MEMBER}", requests, members)
                 for command in ("ZREVRANK", "ZSCORE")]
        return {"us": self.SIZE * sum(part["us"] for part in parts),
                "per_second": 1 / sum(self.SIZE / part["per_second"] for part in parts),
                "busy": min(part["busy"] for part in parts)}


MEMBER = "user:__rand_int__"
ZADD = "ZADD board __rand_int__ user:__rand_int__"
ZINCRBY = "ZINCRBY board 3 user:__rand_int__"
ZREVRANK = "ZREVRANK board user:__rand_int__"
TOP10 = "ZREVRANGE board 0 9 WITHSCORES"
ROWS = [
    Row("zadd", "ZADD, random update", ZADD, 400000),
    Row("zincrby", "ZINCRBY 3", ZINCRBY, 400000),
    Row("zrevrank", "ZREVRANK", ZREVRANK, 500000),
    Row("zscore", "ZSCORE", "ZSCORE board user:__rand_int__", 800000),
    Row("top100", "ZREVRANGE 0 99 WITHSCORES", "ZREVRANGE board 0 99 WITHSCORES", 60000),
    Row("page300", "ZREVRANGE 299 398 WITHSCORES", "ZREVRANGE board 299 398 WITHSCORES", 60000),
    Row("deep10", "ZREVRANGE n/3 .. +9 WITHSCORES",
        "ZREVRANGE board {third} {third9} WITHSCORES", 400000),
    Row("byscore", "ZREVRANGEBYSCORE LIMIT 0 10", "ZREVRANGEBYSCORE board +inf -inf LIMIT 0 10",
        500000),
    ListRow("list100", "LB.GET of 100; else 100 ZREVRANK and 100 ZSCORE", True),
    ListRow("pairs100", "100 ZREVRANK and 100 ZSCORE", False),
    Row("plain-zadd", "ZADD, no pipeline", ZADD, 100000, 1),
    Row("plain-zincrby", "ZINCRBY 3, no pipeline", ZINCRBY, 100000, 1),
    Row("plain-zrevrank", "ZREVRANK, no pipeline", ZREVRANK, 100000, 1),
    Row("plain-top10", "ZREVRANGE 0 9 WITHSCORES, no pipeline", TOP10, 100000, 1),
]


def rows_named(*names):
    return [row for row in ROWS if row.name in names]


def run_rows(rows, servers, rounds, measure):
    """measure(row, server) gives figures. Returns the rows' results, medians by server."""
    results = []
    for row in rows:
        cells = alternate(servers, rounds, lambda server, row=row: measure(row, server))
        results.append({"name": row.name, "title": row.title, "servers": cells})
        base, ours = cells[BASE]["us"], cells[OURS]["us"]
        say(f"  {row.title:42} {base:7.2f} {ours:7.2f} us  {base / ours:5.1f}x")
    return results


def cost_table(rows, names):
    others = [name for name in names if name != BASE]
    head = (["command"] + [f"{name}, us" for name in names]
            + [f"{name}: times less CPU" for name in others]
            + [f"{name}, ops/s" for name in names])
    lines = []
    for row in rows:
        cells = row["servers"]
        # A server that was not busy could have done more.
        rates = [f"{cells[name]['per_second']:,.0f}{'' if cells[name]['busy'] > 0.9 else ' *'}"
                 for name in names]
        lines.append([row["title"]] + [f"{cells[name]['us']:.2f}" for name in names]
                     + [f"**{cells[BASE]['us'] / cells[name]['us']:.1f}**" for name in others]
                     + rates)
    return (markdown_table(head, lines) + "\n\n\\* the server had time to spare: the client, or"
            " other work on the machine, was the limit")


def memory_table(memory, names):
    """memory: {title: {server: bytes}}."""
    return markdown_table(["resident bytes a member, less its own", *names],
                          [[title] + [f"{cells[name]:.1f}" for name in names]
                           for title, cells in memory.items()])


class Memory:
    """Fills boards, each server in turn, and measures what they take."""

    def __init__(self, generator, programs, members, prefix="user:"):
        self.generator, self.programs = generator, programs
        self.members, self.prefix = members, prefix
        self.member_size = len(prefix) + 12
        self.servers = {}

    def fill(self, server, member):
        """All members, each once. Returns bytes a member beyond its own, and CPU per ZADD."""
        resident = server.resident_bytes()
        score = member if member == "__seq_int__" else "__rand_int__"
        cost = self.generator.run(server, f"ZADD board {score} {self.prefix}{member}",
                                  self.members, self.members)
        if int(server.ask("ZCARD board")) != self.members:
            raise RuntimeError(f"{server.name}: the board is not complete")
        return self.grown(server, resident), cost["us"]

    def grown(self, server, resident):
        return (server.resident_bytes() - resident) / self.members - self.member_size

    def measure(self, updates):
        """Leaves the servers running, filled in random order. Returns memory by title and server,
        and by server the CPU per ZADD of the random load."""
        sequential, random, updated, load = {}, {}, {}, {}
        for name, path in self.programs.items():
            server = self.servers[name] = self.generator.start_warm(name, path)
            sequential[name], _ = self.fill(server, "__seq_int__")
            server.stop()
            server = self.servers[name] = self.generator.start_warm(name, path)
            resident = server.resident_bytes()
            random[name], load[name] = self.fill(server, "__mixed_int__")
            if updates:
                self.generator.run(server, f"ZADD board __rand_int__ {self.prefix}__rand_int__",
                                   updates, self.members)
                updated[name] = self.grown(server, resident)
            say(f"  {name}: {sequential[name]:.1f} B a member loaded in order,"
                f" {random[name]:.1f} in no order, {load[name]:.2f} us a ZADD of it")
        memory = {"loaded in order": sequential, "loaded in random order": random}
        if updates:
            memory[f"after {updates:,} random updates"] = updated
        return memory, load

    def stop(self):
        for server in self.servers.values():
            server.stop()


def run(options):
    generator = Generator(options.server, options.clients, options.pipeline)
    memory = Memory(generator, find_programs(options.server), options.members)

    def measure(row, server):
        name = options.generator or ("redis-benchmark" if row.pipeline else "load")
        send = generator.run if name == "load" else generator.run_redis_benchmark
        return row.measure(send, server, options.members, options.requests_factor)

    say(f"{options.members:,} members, {options.rounds} rounds, servers: "
        + ", ".join(memory.programs))
    try:
        sizes, load = memory.measure(options.updates)
        rows = [row for row in ROWS if not options.rows or row.name in options.rows]
        rows = run_rows(rows, memory.servers, options.rounds, measure)
        versions = {name: server.version() for name, server in memory.servers.items()}
    finally:
        memory.stop()
    return {"members": options.members, "clients": options.clients, "pipeline": options.pipeline,
            "rounds": options.rounds, "base": BASE, "versions": versions, "load_us": load,
            "memory": sizes, "rows": rows}


def parse_options(arguments):
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
    options = parser.parse_args(arguments)
    unknown = set(options.rows) - {row.name for row in ROWS}
    if unknown:
        parser.error("no such rows: " + ", ".join(sorted(unknown)))
    return options


def main(arguments=None):
    options = parse_options(arguments)
    results = run(options)
    names = list(results["versions"])
    notes = [f"One board of {options.members:,} members `user:000000123456` (17 bytes), random"
             f" scores; {options.clients} clients, pipeline {options.pipeline} unless said;"
             f" {options.rounds} alternating rounds, medians", CPU_NOTE]
    body = cost_table(results["rows"], names) + "\n\n" + memory_table(results["memory"], names)
    write_results(options.results, options.name, "Side by side", notes, body,
                  plot.of_results(results), results)


if __name__ == "__main__":
    main()
