#!/usr/bin/python3
"""A board split over a cluster of six hosts with the module (docs/scale/one-board.md): what a call asks for, and what it
costs.

    /usr/bin/python3 bench/split.py [--members 1000000] [--shards 1,2,4,8,16,32,64] [--equal 5000000]

For each number of shards: a board of --members, and of each call the rounds, the requests and the CPU time of all
masters and of the client. Then a board of --equal members in 16 shards beside one board with the same: ranks, pages
and quantiles must be equal. $LEADERBOARD_REDIS_SERVER: the host, such as build/hosts/valkey-9.1.2/bin/redis-server.
Writes bench/results/<date>-split.md and .svg. Debian's interpreter, which sees python3-redis.
"""
import argparse
import datetime
import random
import socket
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("tests/module", "tests/moving", "tests/support", "tests/split",
                                                "clients/python")]

import hosts
import plot
from leaderboard_client.split import SplitBoard, shard_of

CHUNK = 2000
LAYOUT = "FIELD points 30 TIME 34 S"
CALLS = 200


def say(line):
    print(line, flush=True)


def name_of(number):
    return f"user:{number}"


class Nodes(hosts.SixNodes):
    """The cluster of the tests, without a test."""

    def runTest(self):
        pass


def encoded(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def fill(client, board, results):
    """LB.ADD of some thousand results at a time, all with the same time."""
    sockets = {}
    waiting = [[] for _ in range(board.shards)]

    def send(shard):
        key = board.boards[shard].name
        node = client.get_node_from_key(key)
        if node.name not in sockets:
            made = socket.create_connection((node.host, node.port))
            sockets[node.name] = made, made.makefile("rb")
        to, reader = sockets[node.name]
        to.sendall(encoded([b"LB.ADD", key.encode(), b"AT", b"1700000000000", *waiting[shard]]))
        line = reader.readline()
        if not line.startswith(b":"):
            raise SystemExit(f"LB.ADD: {line}")
        waiting[shard] = []
    for number, points in enumerate(results):
        member = name_of(number)
        shard = shard_of(member, board.shards)
        waiting[shard] += [b"%d" % points, member.encode()]
        if len(waiting[shard]) >= 2 * CHUNK:
            send(shard)
    for shard in range(board.shards):
        if waiting[shard]:
            send(shard)
    for made, reader in sockets.values():
        reader.close()
        made.close()


def cpu_s(nodes):
    """Of the masters."""
    return sum(float(info["used_cpu_user"]) + float(info["used_cpu_sys"])
               for info in (host.client().info("cpu") for host in nodes.hosts[:3]))


def count_requests(board):
    """How many requests its rounds have."""
    ask, counts = board._ask, [0]

    def counted(asked):
        counts[0] += len(asked)
        return ask(asked)
    board._ask = counted
    return counts


def measure(nodes, client, shards, members, draw):
    """Rows of (call, rounds, requests, microseconds of the masters, of the client)."""
    board = SplitBoard(client, f"daily:s{shards}", shards)
    board.create(fields=LAYOUT)
    begun = time.monotonic()
    fill(client, board, (draw.randrange(1 << 29) for _ in range(members)))
    say(f"{shards} shards: {members:,} members in {time.monotonic() - begun:.0f} s")
    counts = count_requests(board)
    member = lambda: name_of(draw.randrange(members))
    calls = {
        "submit": lambda: board.submit(member(), draw.randrange(1 << 29), operator="BEST"),
        "rank": lambda: board.rank(member()),
        "ranks of 100": lambda: board.ranks(*[member() for _ in range(100)]),
        "top 50": lambda: board.top(50),
        "around, 11": lambda: board.around(member(), 11),
        "page of 50": lambda: board.page(1 + draw.randrange(members // 50), 50),
        "5 quantiles": lambda: board.quantile(["0.1", "0.5", "0.9", "0.99", "0.999"]),
        "count": board.count,
        "hist, 20 edges": lambda: board.hist([edge << 24 for edge in range(1, 21)]),
    }
    rows = []
    for call, run in calls.items():
        run()  # connections
        rounds, requests, ours, theirs = board.rounds, counts[0], time.process_time(), cpu_s(nodes)
        for _ in range(CALLS):
            run()
        ours, theirs = time.process_time() - ours, cpu_s(nodes) - theirs
        per = lambda number: number / CALLS
        single = call == "submit"  # it goes past the rounds
        rows.append((call, 1 if single else per(board.rounds - rounds), 1 if single else per(counts[0] - requests),
                     1e6 * per(theirs), 1e6 * per(ours)))
        say("  {:16} {:4.1f} rounds {:6.1f} requests {:7.0f} us of the masters {:7.0f} us of the client".format(*rows[-1]))
    board.delete()
    return rows


def compare(client, members, draw):
    """Against one board with the same members. Returns what was compared."""
    board, one = SplitBoard(client, "daily:arena", 16), SplitBoard(client, "daily:one", 1)
    for each in (board, one):
        each.create(fields=LAYOUT)
    seed = draw.randrange(1 << 30)
    for each in (board, one):
        same = random.Random(seed)
        fill(client, each, (same.randrange(members // 4) for _ in range(members)))  # many are equal
    say(f"{members:,} members, twice")
    single = one.boards[0]
    # Equal keys come by shard: the places between are those of the one board.
    places, pages, quantiles = 0, 0, 0
    for _ in range(2000):
        member = name_of(draw.randrange(members))
        ours = board.rank(member)
        first, behind = single.above([ours.key, f"={ours.key}"])
        same = single.range(first, behind - 1, withkey=True)
        order = sorted(same, key=lambda record: (shard_of(record.member, 16), record.rank))
        if order[ours.rank - first].member != member or ours.key != same[0].key:
            raise SystemExit(f"{member}: {ours}, in one board {order}")
        places += 1
    for _ in range(300):
        first = draw.randrange(members - 100)
        ours = board.range(first, first + 99)
        theirs = single.range(first, first + 99, withkey=True)
        low, high = single.above([theirs[0].key, f"={theirs[-1].key}"])
        whole = single.range(low, high - 1, withkey=True)
        order = sorted(whole, key=lambda record: (-record.key, shard_of(record.member, 16), record.rank))
        if [record.member for record in ours] != [record.member for record in order[first - low:first - low + 100]]:
            raise SystemExit(f"the page at {first} differs")
        pages += 1
    for _ in range(60):
        q = [f"{draw.random():.12f}" for _ in range(5)]
        if [record.key for record in board.quantile(q)] != [
                record.key for record in SplitBoard(client, "daily:one", 1).quantile(q)] or [
                record.score for record in board.quantile(q)] != [record.score for record in single.quantile(q)]:
            raise SystemExit(f"quantiles {q} differ")
        quantiles += 5
    edges = sorted(draw.sample(range(members // 4), 50))
    if board.hist(edges) != single.hist(edges) or board.count() != members:
        raise SystemExit("counts differ")
    return f"{places:,} ranks, {pages:,} pages of 100, {quantiles:,} quantiles and a histogram of 51 counts"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--shards", default="1,2,4,8,16,32,64")
    parser.add_argument("--equal", type=int, default=5000000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw, nodes = random.Random(arguments.seed), Nodes()
    nodes.setUp()
    client = nodes.client()
    version = nodes.hosts[0].client().info("server")
    host = f"Valkey {version['valkey_version']}" if "valkey_version" in version else f"Redis {version['redis_version']}"
    rows = {int(shards): measure(nodes, client, int(shards), arguments.members, draw)
            for shards in arguments.shards.split(",")}
    equal = compare(client, arguments.equal, draw) if arguments.equal else "nothing"
    nodes.doCleanups()
    today = datetime.date.today().isoformat()
    lines = [f"# A board split over a cluster, {today}", "",
             f"`{' '.join(['bench/split.py', *sys.argv[1:]])}`: {host}, three masters with a replica each on one machine, "
             f"the Python client beside them. {arguments.members:,} members, {CALLS} calls of each kind, at random "
             "places. CPU time, not wall time: all share two cores. A split of 1 is one board read by the same client.", "",
             f"Equal to one board with the same {arguments.equal:,} members, of which many have equal keys, in 16 shards: "
             f"{equal}.", ""]
    for title, index, form in (("Rounds", 1, "{:.1f}"), ("Requests", 2, "{:.0f}"),
                               ("Microseconds of CPU of all masters, a call", 3, "{:.0f}"),
                               ("Microseconds of CPU of the client, a call", 4, "{:.0f}")):
        lines += [f"## {title}", "", "| call | " + " | ".join(f"{shards} shards" for shards in rows) + " |",
                  "|---|" + "---:|" * len(rows)]
        for call in range(len(next(iter(rows.values())))):
            cells = [form.format(of[call][index]) for of in rows.values()]
            lines.append(f"| {next(iter(rows.values()))[call][0]} | " + " | ".join(cells) + " |")
        lines.append("")
    path = ROOT / "bench/results" / f"{today}-split.md"
    curves = [(call[0], {who: [(shards, of[place][index]) for shards, of in rows.items()]
                         for who, index in (("the masters", 3), ("the client", 4))})
              for place, call in enumerate(next(iter(rows.values())))]
    colors = dict(zip(("the masters", "the client"), plot.COLORS))
    path.with_suffix(".svg").write_text(plot.panels_of(
        "A board split over a cluster: microseconds of CPU, a call", f"{arguments.members:,} members, {host}",
        list(colors.items()), curves, colors, "shards"))
    path.write_text("\n".join(lines).rstrip() + "\n")
    say(f"written: {path}")


if __name__ == "__main__":
    main()
