#!/usr/bin/env python3
"""leaderboard and other servers side by side: same board, same commands, alternating rounds.

    make bench                                       the short form, against redis-server, and the
                                                     newest Redis and Valkey if make hosts was run
    make bench BENCH_ARGS="--members 10000000 --rounds 5 --requests-factor 3 --name long"
    make bench PEERS=                                against redis-server alone
    make bench PEERS="valkey=/opt/valkey/bin/valkey-server redis8=/opt/redis8/bin/redis-server"

The figure that counts is the server's CPU time (user and system) per operation, which does not
depend on how fast the client asks; and of that, the ratio between servers of one run. Each server
runs on one core, the client on another. Results go to bench/results/ as .md, .svg and .json.
"""
import argparse
import time
from pathlib import Path

import plot
from servers import (BASE, OURS, SETTLE_S, Generator, alternate, find_programs, markdown_table,
                     say, titles_of, write_results)

CPU_NOTE = ("us: the server's CPU time, user and system, per operation. Only ratios of one run"
            " count.")
FLOOR_NOTE = ("above PING: us less those of a PING that comes in the same way (as many of them as"
              " the operation has commands), which is the floor: reading, parsing, replying. In"
              " brackets user and kernel time of the whole operation, which the kernel counts in"
              " ticks: sums of all rounds, good to some percent")


class Row:
    """One line of the table. {third} and {third9} stand for a place in the middle of the board."""

    def __init__(self, name, title, command, requests, pipeline=None, clients=None):
        self.name, self.title, self.command, self.requests = name, title, command, requests
        self.pipeline, self.clients = pipeline, clients

    def floor_name(self):
        return "ping" + "".join(f"-{part}" for part in (self.pipeline, self.clients) if part)

    def floor(self):
        """The row of a PING that comes in the same way."""
        title = "PING" + (", no pipeline" if self.pipeline == 1 else
                          f", pipeline {self.pipeline}" if self.pipeline else "")
        if self.clients:
            title += f", {self.clients:,} client{'s' if self.clients > 1 else ''}"
        return Row(self.floor_name(), title, "PING", 100000 if self.pipeline == 1 else 800000,
                   self.pipeline, self.clients)

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
        return {"us": self.SIZE * sum(part["us"] for part in parts), "commands": 2 * self.SIZE,
                "per_second": 1 / sum(self.SIZE / part["per_second"] for part in parts),
                "busy": min(part["busy"] for part in parts)}


class RoomsRow(Row):
    """On as many small boards as each has members, so one range of numbers draws both."""

    def __init__(self, size, name, title, command, requests=200000):
        super().__init__(f"rooms{size}-{name}", f"{title}, on {size} boards of {size}",
                         command.format(room=f"room{size}:__rand_int__"), requests)
        self.size, self.filled = size, set()

    def measure(self, run, server, members, factor=1.0):
        if server.name not in self.filled:
            self.filled.add(server.name)
            # So many at random leave no place out.
            run(server, f"ZADD room{self.size}:__rand_int__ __rand_int__ {MEMBER}",
                20 * self.size ** 2, self.size)
        return super().measure(run, server, self.size, factor)


class RoomsAroundRow(RoomsRow):
    """Five members around one: LB.AROUND; else ZREVRANK, then ZREVRANGE."""

    def __init__(self, size):
        super().__init__(size, "around", "LB.AROUND; else ZREVRANK and ZREVRANGE of 5",
                         "LB.AROUND {room} MEMBER " + MEMBER + " 5", 100000)

    def measure(self, run, server, members, factor=1.0):
        own = super().measure
        if server.name == OURS:
            return own(run, server, members, factor)
        parts = []
        for command in ("ZREVRANK {} " + MEMBER, "ZREVRANGE {} 3 7 WITHSCORES"):
            part = RoomsRow(self.size, "", "", command.replace("{}", "{room}"), self.requests)
            part.filled = self.filled
            parts.append(part.measure(run, server, members, factor))
        return {"us": sum(part["us"] for part in parts), "commands": 2,
                "per_second": 1 / sum(1 / part["per_second"] for part in parts),
                "busy": min(part["busy"] for part in parts)}


class HashRow(Row):
    """On hashes of three short fields, as many as the board has members."""
    HSET = "HSET profile:{} name __rand_int__ level 12 country de"
    filled = set()

    def measure(self, run, server, members, factor=1.0):
        if server.name not in self.filled:
            self.filled.add(server.name)
            run(server, self.HSET.format("__mixed_int__"), members, members)
        return super().measure(run, server, members, factor)


MEMBER = "user:__rand_int__"
ZADD = "ZADD board __rand_int__ user:__rand_int__"
ZINCRBY = "ZINCRBY board 3 user:__rand_int__"
ZREVRANK = "ZREVRANK board user:__rand_int__"
ZSCORE = "ZSCORE board user:__rand_int__"
TOP10 = "ZREVRANGE board 0 9 WITHSCORES"
TOP100 = "ZREVRANGE board 0 99 WITHSCORES"
DEEP10 = "ZREVRANGE board {third} {third9} WITHSCORES"
BYSCORE = "ZREVRANGEBYSCORE board +inf -inf LIMIT 0 10"
ROWS = [
    Row("zadd", "ZADD, random update", ZADD, 400000),
    Row("zincrby", "ZINCRBY 3", ZINCRBY, 400000),
    Row("zrevrank", "ZREVRANK", ZREVRANK, 500000),
    Row("zscore", "ZSCORE", ZSCORE, 800000),
    Row("top100", "ZREVRANGE 0 99 WITHSCORES", TOP100, 60000),
    Row("page300", "ZREVRANGE 299 398 WITHSCORES", "ZREVRANGE board 299 398 WITHSCORES", 60000),
    Row("deep10", "ZREVRANGE n/3 .. +9 WITHSCORES", DEEP10, 400000),
    Row("byscore", "ZREVRANGEBYSCORE LIMIT 0 10", BYSCORE, 500000),
    ListRow("list100", "LB.GET of 100; else 100 ZREVRANK and 100 ZSCORE", True),
    ListRow("pairs100", "100 ZREVRANK and 100 ZSCORE", False),
    Row("plain-zadd", "ZADD, no pipeline", ZADD, 100000, 1),
    Row("plain-zincrby", "ZINCRBY 3, no pipeline", ZINCRBY, 100000, 1),
    Row("plain-zrevrank", "ZREVRANK, no pipeline", ZREVRANK, 100000, 1),
    Row("plain-zscore", "ZSCORE, no pipeline", ZSCORE, 100000, 1),
    Row("plain-top10", "ZREVRANGE 0 9 WITHSCORES, no pipeline", TOP10, 100000, 1),
    Row("plain-top100", "ZREVRANGE 0 99 WITHSCORES, no pipeline", TOP100, 50000, 1),
    Row("plain-deep10", "ZREVRANGE n/3 .. +9 WITHSCORES, no pipeline", DEEP10, 100000, 1),
    Row("plain-byscore", "ZREVRANGEBYSCORE LIMIT 0 10, no pipeline", BYSCORE, 100000, 1),
    *[row for size in (10, 50, 100, 250) for row in (
        RoomsRow(size, "zadd", "ZADD", "ZADD {room} __rand_int__ " + MEMBER),
        RoomsRow(size, "zrevrank", "ZREVRANK", "ZREVRANK {room} " + MEMBER),
        RoomsAroundRow(size))],
    HashRow("hset", "HSET of 3 short fields", HashRow.HSET.format("__rand_int__"), 400000),
    HashRow("hgetall", "HGETALL of 3 short fields", "HGETALL profile:__rand_int__", 400000),
]


def rows_named(*names):
    return [row for row in ROWS if row.name in names]


def with_floors(rows):
    """Before the first row of its kind, the PING that it is compared with."""
    floors, out = set(), []
    for row in rows:
        if row.floor_name() not in floors:
            floors.add(row.floor_name())
            out.append(row.floor())
        out.append(row)
    return out


def run_rows(rows, servers, rounds, measure):
    """measure(row, server) gives figures. Returns the rows' results, medians by server."""
    results = []
    for row in with_floors(rows):
        cells = alternate(servers, rounds, lambda server, row=row: measure(row, server))
        results.append({"name": row.name, "title": row.title, "servers": cells,
                        "floor": row.floor_name()})
        say(f"  {row.title:42}" + "".join(f" {cells[name]['us']:8.2f}" for name in servers)
            + f" us  {cells[BASE]['us'] / cells[OURS]['us']:5.1f}x")
    return results


def load_row(title, costs):
    """Of a load by pipelines, whose floor is the same PING as that of other rows."""
    return {"name": "load", "title": title, "servers": costs, "floor": "ping"}


def others_of(versions):
    return [name for name in versions if name != OURS]


def ratio(theirs, ours):
    return f"{theirs / ours:.{1 if theirs >= 2 * ours else 2}f}"


def cost_table(rows, versions):
    """versions: by server."""
    titles = titles_of(versions)
    head = (["command"] + [f"{title}, us" for title in titles.values()]
            + [f"times less CPU than {titles[name]}" for name in others_of(versions)]
            + [f"{title}, ops/s" for title in titles.values()])
    lines = []
    for row in rows:
        cells = row["servers"]
        # A server that was not busy could have done more.
        rates = [f"{cells[name]['per_second']:,.0f}{'' if cells[name]['busy'] > 0.9 else ' *'}"
                 for name in versions]
        lines.append([row["title"]] + [f"{cells[name]['us']:.2f}" for name in versions]
                     + [f"**{ratio(cells[name]['us'], cells[OURS]['us'])}**"
                        for name in others_of(versions)] + rates)
    parts = [markdown_table(head, lines),
             "\\* the server had time to spare: the client, or other work on the machine, was the"
             " limit", words_on_first([(row["title"], {name: row["servers"][name]["us"]
                                                      for name in versions}) for row in rows],
                                     versions, " us"),
             floor_table(rows, versions)]
    return "\n\n".join(part for part in parts if part)


def words_on_first(rows, versions, unit):
    """Where another server has the lowest figure. rows: (title, {server: figure})."""
    lost = []
    for title, cells in rows:
        best = min(cells, key=cells.get)
        if f"{cells[best]:.2f}" < f"{cells[OURS]:.2f}" and cells[best] < cells[OURS]:
            lost.append(f"{title} ({best} {versions[best]}: {cells[best]:.2f}, {OURS}:"
                        f" {cells[OURS]:.2f}{unit})")
    return (f"{OURS} is not first in: " + "; ".join(lost) if lost
            else f"{OURS} has the lowest figure in every row")


def floor_table(rows, versions):
    """What of a row is above the PING of its kind. Empty if no row has one."""
    floors = {row["name"]: row["servers"] for row in rows}
    lines = []
    for row in rows:
        floor = floors.get(row.get("floor"))
        if not floor:
            continue
        line = [row["title"]]
        for name in versions:
            cell = row["servers"][name]
            above = cell["us"] - cell.get("commands", 1) * floor[name]["us"]
            words = [] if row["name"] == row["floor"] else [f"{above:.2f}"]
            if "user_us" in cell:
                words.append(f"({cell['user_us']:.2f} + {cell['kernel_us']:.2f})")
            line.append(" ".join(words))
        lines.append(line)
    return lines and markdown_table(["above PING (user + kernel), us",
                                     *titles_of(versions).values()], lines)


def memory_table(memory, versions):
    """memory: {title: {server: bytes}}."""
    table = markdown_table(["resident bytes a member, with its name",
                            *titles_of(versions).values()],
                           [[title] + [f"{cells[name]:.1f}" for name in versions]
                            for title, cells in memory.items()])
    return table + "\n\n" + words_on_first(list(memory.items()), versions, " B")


class Names:
    """One kind of members' names. pattern: with {} where load's kind of number goes."""

    def __init__(self, title, pattern, size):
        self.title, self.pattern, self.size = title, pattern, size

    def of(self, kind):
        """kind: seq, mixed or rand."""
        return self.pattern.format(kind)


USERS = Names("`user:` and 12 digits", "user:__{}_int__", 17)


class Memory:
    """Fills boards, each server in turn, and measures what they take."""

    def __init__(self, generator, programs, members, names=USERS):
        self.generator, self.programs = generator, programs
        self.members, self.names = members, names
        self.servers = {}

    def fill(self, server, kind):
        """All members, each once. Returns bytes a member, and CPU per ZADD."""
        resident = server.resident_bytes()
        score = "__seq_int__" if kind == "seq" else "__rand_int__"
        cost = self.generator.run(server, f"ZADD board {score} {self.names.of(kind)}",
                                  self.members, self.members)
        if int(server.ask("ZCARD board")) != self.members:
            raise RuntimeError(f"{server.name}: the board is not complete")
        return self.grown(server, resident), cost["us"]

    def grown(self, server, resident):
        time.sleep(SETTLE_S)  # what its clients took is free by then
        return (server.resident_bytes() - resident) / self.members

    def measure(self, updates):
        """Leaves the servers running, filled in random order. Returns memory by title and server,
        and by server the CPU per ZADD of the random load."""
        sequential, random, updated, load = {}, {}, {}, {}
        for name, path in self.programs.items():
            server = self.servers[name] = self.generator.start_warm(name, path)
            sequential[name], _ = self.fill(server, "seq")
            server.stop()
            server = self.servers[name] = self.generator.start_warm(name, path)
            resident = server.resident_bytes()
            random[name], load[name] = self.fill(server, "mixed")
            if updates:
                self.generator.run(server, f"ZADD board __rand_int__ {self.names.of('rand')}",
                                   updates, self.members)
                updated[name] = self.grown(server, resident)
            say(f"  {name}: {sequential[name]:.1f} B a member loaded in order,"
                f" {random[name]:.1f} in no order, {load[name]:.2f} us a ZADD of it")
        title = self.names.title
        memory = {f"{title}, in order": sequential, f"{title}, random order": random}
        if updates:
            memory[f"{title}, after {updates:,} random updates"] = updated
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
    versions = results["versions"]
    notes = [f"One board of {options.members:,} members `user:000000123456` (17 bytes), random"
             f" scores; {options.clients} clients, pipeline {options.pipeline} unless said;"
             f" {options.rounds} alternating rounds, medians", CPU_NOTE, FLOOR_NOTE]
    body = cost_table(results["rows"], versions) + "\n\n" + memory_table(results["memory"], versions)
    write_results(options.results, options.name, "Side by side", notes, body,
                  plot.of_results(results), results)


if __name__ == "__main__":
    main()
