"""full.py's part `churn`: nine tenths of a board's members are removed at random and put back with other
scores, again and again. Bytes a member, and CPU, beside a board that was just loaded."""
import datetime
import json
import sys
import time
from pathlib import Path

import plot
from compare import CPU_NOTE, USERS, words_on_first
from servers import OURS, SETTLE_S, markdown_table, say, titles_of

MEMBERS = 10000000
GROWTH_MAX = 1.2  # of bytes a member, against the fresh board: ours stays below
ZADD = f"ZADD board __rand_int__ {USERS.of('mixed')}"
ZREM = f"ZREM board {USERS.of('mixed')}"


class Churn:
    """One server's board. `mixed` visits members in no order; where it begins decides whose turn it is."""

    def __init__(self, part, server, members):
        self.part, self.server, self.members = part, server, members
        self.removed = members * 9 // 10
        self.resident = server.resident_bytes()

    def run(self, command, count, begin=0):
        options = f"--from {begin} " if begin else ""
        return self.part.generator.run(self.server, options + command, count, self.members)["us"]

    def size(self, count):
        """Bytes a member of those that are there."""
        time.sleep(SETTLE_S)
        if int(self.server.ask("ZCARD board")) != count:
            raise RuntimeError(f"{self.server.name}: {count} members expected")
        return (self.server.resident_bytes() - self.resident) / count

    def load(self):
        return {"zadd_us": self.run(ZADD, self.members), "bytes": self.size(self.members)}

    def cycle(self, number):
        begin = number * 37 * self.members // 100 % self.members
        zrem_us = self.run(ZREM, self.removed, begin)
        left_bytes = self.size(self.members - self.removed)
        return {"zrem_us": zrem_us, "left_bytes": left_bytes,
                "zadd_us": self.run(ZADD, self.removed, begin), "bytes": self.size(self.members)}


def measured_before(part):
    """With --only: what the day's result says of the other servers."""
    path = Path(part.options.results) / f"{datetime.date.today().isoformat()}-churn.json"
    if not part.options.only or not path.exists():
        return {}
    results = json.loads(path.read_text())
    part.versions.update(results["versions"])
    return results["churn"]


def check_names(part, names, figures):
    """Before anything takes its minutes."""
    unknown = set(names) - set(part.programs)
    if unknown:
        sys.exit(f"no such servers: {', '.join(sorted(unknown))}; there are:"
                 f" {', '.join(part.programs)}")
    if OURS not in {*names, *figures}:
        sys.exit(f"{OURS} is neither among them nor in the day's result, and the others are"
                 " compared with it")


def measure(part):
    members = part.scaled(MEMBERS)
    names = part.options.only.split(",") if part.options.only else list(part.programs)
    figures = measured_before(part)
    check_names(part, names, figures)
    for name in names:
        server = part.start([name])[name]
        board = Churn(part, server, members)
        figures[name] = [board.load()]
        say(f"  {name}: loaded, {figures[name][0]['bytes']:.1f} B a member,"
            f" {figures[name][0]['zadd_us']:.2f} us a ZADD")
        for number in range(1, part.options.cycles + 1):
            point = board.cycle(number)
            figures[name].append(point)
            say(f"  {name}, {number}: {point['bytes']:.1f} B a member, ZREM {point['zrem_us']:.2f} us,"
                f" ZADD {point['zadd_us']:.2f} us; after removing {point['left_bytes']:.1f} B")
        part.stop()
    figures = {name: figures[name] for name in part.programs if name in figures}
    part.versions = {name: part.versions[name] for name in figures}
    write(part, members, figures)


def memory_rows(figures):
    """Bytes a member by title and server, of the servers that came so far."""
    rows = {"loaded": {name: points[0]["bytes"] for name, points in figures.items()}}
    most = max(len(points) for points in figures.values()) - 1
    for number in sorted({1, 2, 5, most} & set(range(1, most + 1))):
        rows[f"after {number} cycle{'s' if number > 1 else ''}"] = {
            name: points[number]["bytes"] for name, points in figures.items()
            if len(points) > number}
    rows["the most of any cycle"] = {name: max(point["bytes"] for point in points)
                                     for name, points in figures.items()}
    return rows


def words_on_cycles(figures):
    return "Cycles: " + ", ".join(f"{name} {len(points) - 1}" for name, points in figures.items())


def write(part, members, figures):
    memory = memory_rows(figures)
    grown = {name: memory["the most of any cycle"][name] / points[0]["bytes"]
             for name, points in figures.items()}
    lines = [[title] + [f"{cells[name]:.1f}" if name in cells else "" for name in figures]
             for title, cells in memory.items()]
    lines.append(["the most, of what the loaded board took"]
                 + [f"**{grown[name]:.2f}**" for name in figures])
    left = ("a tenth of the members left, the last cycle",
            {name: points[-1]["left_bytes"] for name, points in figures.items()})
    lines.append([left[0]] + [f"{size:.1f}" for size in left[1].values()])
    costs = [("ZADD, the first load", lambda points: points[0]["zadd_us"]),
             ("ZREM, the first cycle", lambda points: points[1]["zrem_us"]),
             ("ZREM, the last cycle", lambda points: points[-1]["zrem_us"]),
             ("ZADD, the first cycle", lambda points: points[1]["zadd_us"]),
             ("ZADD, the last cycle", lambda points: points[-1]["zadd_us"])]
    cost_rows = [(title, {name: read(points) for name, points in figures.items()})
                 for title, read in costs]
    titles = list(titles_of(part.versions).values())
    compared = [row for row in memory.items() if len(row[1]) == len(figures)]
    body = "\n\n".join([
        markdown_table(["resident bytes a member, with its name", *titles], lines),
        f"{OURS} {'stays' if grown[OURS] <= GROWTH_MAX else 'DOES NOT STAY'} within"
        f" {100 * GROWTH_MAX - 100:.0f}% of the loaded board",
        markdown_table(["us", *titles], [[title] + [f"{cells[name]:.2f}" for name in figures]
                                         for title, cells in cost_rows]),
        words_on_first([*compared, left, *cost_rows], part.versions, "")])
    subtitle = (f"One board of {members:,} members; nine tenths removed at random and put back with"
                " other scores, again and again")
    part.write("churn", "Churn", [words_on_cycles(figures), CPU_NOTE,
                                  f"Memory is read {SETTLE_S} s after the last command"],
               body, plot.of_memory, part.results(subtitle, memory=dict(compared), churn=figures))
