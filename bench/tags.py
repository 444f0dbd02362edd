#!/usr/bin/env python3
"""Ranks inside groups: one board with tags, beside redis-server with a sorted set for every combination that a
player is in.

    python3 bench/tags.py [--members 1000000] [--rounds 3] [--server build/leaderboard-server] [--redis PROGRAM]
    python3 bench/tags.py --before PROGRAM [--only WORD]      beside an earlier build of ours; prints only

Each member has a country (of 250, Zipf), a class (of 12) and a platform (of 4): in redis-server it is in eight sorted sets, and
a change of its class is eight commands, which are sent together. `us` is the server's CPU time for one operation, all
of its commands. Writes bench/results/<date>-tags.md and .json.
"""
import argparse
import bisect
import datetime
import itertools
import json
import random
import shutil
import socket
import sys
import time
from pathlib import Path

from servers import BASE, OURS, SETTLE_S, Server, alternate, cores, machine, markdown_table, pinned, say

TAGS = {"country": [f"c{n:03d}" for n in range(250)], "class": [f"k{n}" for n in range(12)],
        "platform": ["pc", "ps", "xbox", "switch"]}
COMBINATIONS = [names for size in (1, 2, 3) for names in itertools.combinations(TAGS, size)]
ZIPF = list(itertools.accumulate(1 / (n + 1) for n in range(250)))
BATCH = 200  # operations that are sent together
SCORES = 1 << 30


def encode(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        text = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(text), text))
    return b"".join(parts)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb", buffering=1 << 20)

    def skip(self):
        """One reply. An error ends the program."""
        left = 1
        while left > 0:
            line = self.reader.readline()
            left -= 1
            if line[:1] == b"-":
                sys.exit(line.decode())
            if line[:1] == b"$" and line[1:2] != b"-":
                self.reader.read(int(line[1:]) + 2)
            elif line[:1] == b"*" and line[1:2] != b"-":
                left += int(line[1:])

    def run(self, operations):
        """operations: lists of encoded commands."""
        sent = list(operations)
        self.socket.sendall(b"".join(b"".join(commands) for commands in sent))
        for commands in sent:
            for _ in commands:
                self.skip()


class Players:
    """What is known of every member, the same for both servers."""

    def __init__(self, count):
        self.random = random.Random(20261126)
        self.count = count
        self.tags = [self.draw() for _ in range(count)]
        self.scores = [self.random.randrange(SCORES) for _ in range(count)]

    def draw(self):
        country = bisect.bisect(ZIPF, self.random.random() * ZIPF[-1])
        return {"country": TAGS["country"][country], "class": self.random.choice(TAGS["class"]),
                "platform": self.random.choice(TAGS["platform"])}

    def pick(self):
        return self.random.randrange(self.count)


def name(member):
    return f"user:{member:012d}"


def key(names, tags):
    return "race" + "".join(f":{tag}:{tags[tag]}" for tag in names)


def words(option, names, tags):
    return [word for tag in names
            for word in ((option, tag, tags[tag]) if option != "WITHIN" else (option, tag))]


# ---- operations, of ours and of redis-server's ----

def put(players, is_ours, member):
    score, tags = players.scores[member], players.tags[member]
    if is_ours:
        return [encode("LB.ADD", "race", *words("TAG", TAGS, tags), score, name(member))]
    return [encode("ZADD", key(names, tags), score, name(member)) for names in [(), *COMBINATIONS]]


def update(players, is_ours):
    member = players.pick()
    players.scores[member] = players.random.randrange(SCORES)
    if is_ours:
        return [encode("LB.ADD", "race", players.scores[member], name(member))]
    return put(players, is_ours, member)


def change_class(players, is_ours):
    member = players.pick()
    tags, score = players.tags[member], players.scores[member]
    before = dict(tags)
    tags["class"] = players.random.choice(TAGS["class"])
    if is_ours:
        return [encode("LB.TAG", "race", name(member), "class", tags["class"])]
    moved = [names for names in COMBINATIONS if "class" in names]
    return ([encode("ZREM", key(names, before), name(member)) for names in moved]
            + [encode("ZADD", key(names, tags), score, name(member)) for names in moved])


def rank_in(names):
    def operation(players, is_ours):
        member = players.pick()
        tags = players.tags[member]
        return [encode("LB.GET", "race", 1, name(member), *words("WHERE", names, tags)) if is_ours
                else encode("ZREVRANK", key(names, tags), name(member))]
    return operation


def top_ten(names):
    def operation(players, is_ours):
        tags = players.tags[players.pick()]
        return [encode("LB.RANGE", "race", 0, 9, *words("WHERE", names, tags)) if is_ours
                else encode("ZREVRANGE", key(names, tags), 0, 9, "WITHSCORES")]
    return operation


def around(names):
    """In redis-server two commands; the second depends on the reply to the first, here on a guess of it."""
    def operation(players, is_ours):
        member = players.pick()
        if is_ours:
            return [encode("LB.AROUND", "race", "MEMBER", name(member), 10, *words("WITHIN", names, {}))]
        first = players.random.randrange(100)
        group = key(names, players.tags[member])
        return [encode("ZREVRANK", group, name(member)),
                encode("ZREVRANGE", group, first, first + 9, "WITHSCORES")]
    return operation


def within(names):
    def operation(players, is_ours):
        member = players.pick()
        return [encode("LB.GET", "race", 1, name(member), *words("WITHIN", names, {})) if is_ours
                else encode("ZREVRANK", key(names, players.tags[member]), name(member))]
    return operation


def page(**tags):
    """A hundred from a place far inside, of a group that has more than a thousand in a board of a million."""
    def operation(players, is_ours):
        first = players.random.randrange(players.count // 2000)
        return [encode("LB.RANGE", "race", first, first + 99, *words("WHERE", tags, tags)) if is_ours
                else encode("ZREVRANGE", key(tags, tags), first, first + 99, "WITHSCORES")]
    return operation


def quantiles(**tags):
    """In redis-server a group of several values has no sorted set: there it is one of the first value."""
    choices = [["WHERE", tag, value] for tag, values in tags.items() for value in values]
    points = [n / 100 for n in range(101)]

    def operation(players, is_ours):
        if is_ours:
            return [encode("LB.QUANTILE", "race", *points, *itertools.chain(*choices))]
        group = key(tags, {tag: values[0] for tag, values in tags.items()})
        ranks = [players.random.randrange(1000) for _ in points]
        return [encode("ZREVRANGE", group, rank, rank, "WITHSCORES") for rank in ranks]
    return operation


def histogram(**tags):
    edges = [SCORES * n // 101 for n in range(1, 101)]

    def operation(_, is_ours):
        if is_ours:
            return [encode("LB.HIST", "race", *edges, *words("WHERE", tags, tags))]
        return [encode("ZCOUNT", key(tags, tags), first, f"({last}")
                for first, last in zip([0, *edges], [*edges, SCORES])]
    return operation


def counts(*names):
    def operation(_, is_ours):
        if is_ours:
            return [encode("LB.COUNT", "race", *(word for tag in names for word in ("BY", tag)))]
        return [encode("ZCARD", key(names, dict(zip(names, values))))
                for values in itertools.product(*(TAGS[tag] for tag in names))]
    return operation


ROWS = ([("update of a score", update, 1.0), ("change of the class", change_class, 1.0)]
        + [(f"rank in {' and '.join(names)}", rank_in(names), 1.0) for names in COMBINATIONS]
        + [("top ten of a class", top_ten(("class",)), 1.0),
           ("top ten of all three", top_ten(tuple(TAGS)), 0.2),
           ("ten around, in the country", around(("country",)), 1.0),
           ("ten around, in all three", around(tuple(TAGS)), 0.2),
           ("ten around, in country and class", around(("country", "class")), 0.2),
           ("rank within country and class", within(("country", "class")), 0.5),
           ("a hundred of one in 12", page(**{"class": "k3"}), 0.05),
           ("a hundred of one in 200", page(country="c032"), 0.05),
           ("a hundred of one in 1,600", page(**{"country": "c021", "class": "k3"}), 0.05),
           ("101 quantiles of a class", quantiles(**{"class": ["k3"]}), 0.02),
           ("101 quantiles of two platforms of 4", quantiles(platform=["pc", "xbox"]), 0.02),
           ("101 quantiles of 11 countries", quantiles(country=TAGS["country"][:11]), 0.02),
           ("101 quantiles of 32 countries", quantiles(country=TAGS["country"][2:34]), 0.02),
           ("101 quantiles of two classes of a country",
            quantiles(country=["c000"], **{"class": ["k1", "k3"]}), 0.02),
           ("100 edges in a platform", histogram(platform="pc"), 0.05),
           ("100 edges in country and class", histogram(**{"country": "c002", "class": "k3"}), 0.05),
           ("members of every country", counts("country"), 0.05),
           ("members of every country and class", counts("country", "class"), 0.05)])


# ---- measuring ----

def spend(server, client, make, count):
    """CPU of the server for each operation; what is sent is made before."""
    batches = [[make() for _ in range(min(BATCH, count - done))] for done in range(0, count, BATCH)]
    before = server.cpu_ns()
    for batch in batches:
        client.run(batch)
    return (server.cpu_ns() - before) / 1000 / count


def load(server, client, options, is_ours):
    players = Players(options.members)
    if is_ours:
        client.run([[encode("LB.CREATE", "race", "FIELD", "score", 33, "TIME", 31, "S", "TAG", "country", 8,
                            "TAG", "class", 4, "TAG", "platform", 3)]])
    resident = server.resident_bytes()
    for begin in range(0, options.members, BATCH):
        client.run(put(players, is_ours, member)
                   for member in range(begin, min(begin + BATCH, options.members)))
    time.sleep(SETTLE_S)
    return players, (server.resident_bytes() - resident) / options.members


def measure(options, programs):
    servers = {title: Server(title, path) for title, path in programs.items()}
    clients = {title: Client(server.port) for title, server in servers.items()}
    players, memory, rows = {}, {}, {}
    for title, server in servers.items():
        players[title], memory[title] = load(server, clients[title], options, title != BASE)
        say(f"{title}: {memory[title]:.1f} B a member")
    for title, make, factor in ROWS:
        if options.only not in title:
            continue

        def run(server, make=make, factor=factor):
            own, is_ours = players[server.name], server.name != BASE
            return {"us": spend(server, clients[server.name], lambda: make(own, is_ours),
                                max(BATCH, int(options.operations * factor)))}
        rows[title] = alternate(servers, options.rounds, run)
        say(f"  {title:36}" + "".join(f"{rows[title][name]['us']:12.2f}" for name in servers))
    versions = {title: server.version() for title, server in servers.items()}
    for server in servers.values():
        server.stop()
    return {"members": options.members, "versions": versions, "memory": memory, "rows": rows}


def write(results):
    stem = f"{datetime.date.today().isoformat()}-tags"
    directory = Path(__file__).resolve().parent / "results"
    cells = [["bytes a member, its name included"] + [f"{results['memory'][name]:.0f}" for name in (BASE, OURS)]
             + [f"{results['memory'][BASE] / results['memory'][OURS]:.1f}"]]
    for title, row in results["rows"].items():
        theirs, ours = row[BASE]["us"], row[OURS]["us"]
        cells.append([f"{title}, us", f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.2f}"])
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    (directory / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    (directory / f"{stem}.md").write_text("\n".join([
        f"# Ranks inside groups, {stem}", "", f"- Machine: {machine()}", f"- Servers: {versions}",
        f"- Command: `python3 bench/tags.py {' '.join(sys.argv[1:])}`",
        f"- {results['members']:,} members, with one of 250 countries (Zipf), 12 classes and 4 platforms",
        f"- {BASE}: a sorted set for all, and one for each of the seven combinations that a member is in;"
        f" {OURS}: one board with tags",
        "- us: CPU of the server for one operation, all of its commands", "",
        markdown_table(["", BASE, OURS, "ratio"], cells), ""]))
    say(f"written: {directory / stem}.md, .json")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--operations", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", default="build/leaderboard-server")
    parser.add_argument("--redis", default=shutil.which("redis-server"))
    parser.add_argument("--before", help="another build of ours, in place of redis-server")
    parser.add_argument("--only", default="", help="rows with this in their title")
    parser.add_argument("--no-results", action="store_true", help="print only")
    options = parser.parse_args()
    core = cores()[1]
    if core is not None:
        pinned(core)()
    other = {"before": options.before} if options.before else {BASE: options.redis}
    results = measure(options, {**other, OURS: options.server})
    if not options.no_results and not options.before and not options.only:
        write(results)


if __name__ == "__main__":
    main()
