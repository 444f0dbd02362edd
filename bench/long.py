"""full.py's part `long`: how long one long command holds up everybody else, ours and redis-server.

Each command runs alone on a server that has one core to itself; PINGs of another client, from the
other core, say how long it was before the server answered again. A request is a file, sent as fast
as the server takes it: parsing it, and sending the reply, are in the wait as far as they hold up
others."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import plot
from durability import put_first
from servers import BASE, OURS, SETTLE_S, cores, markdown_table, pinned, say

MILLION = 1000000
PING_SLEEP_US = 100
QUIET_MS = 700
AFTER_S = 0.5
ROUNDS_MAX = 3
SCRATCH = "scratch"  # what a command changes: a copy of the board, made before it
UNION_KEYS = 20


def encoded(*words):
    parts = [f"*{len(words)}\r\n"]
    parts += [f"${len(word)}\r\n{word}\r\n" for word in words]
    return "".join(parts).encode()


def member(number):
    return f"user:{number:012}"


def spread(count, of):
    """count numbers below of, all different, in no order."""
    step = 7919 * 104729
    return [(i * step) % of for i in range(count)]


class Command:
    """What to send to each server, and what to do before."""

    def __init__(self, title, ours, theirs=None, prepare=(), base_title=None):
        """ours, theirs: bytes; theirs None: the same. prepare: inline commands."""
        self.title, self.base_title = title, base_title or title
        self.requests = {OURS: ours}
        self.theirs = theirs if theirs is not None else ours
        self.prepare = prepare

    def request(self, name):
        return self.requests.get(name, self.theirs)


def in_one_go(requests):
    """As one transaction: what a server does without a break."""
    return encoded("MULTI") + b"".join(requests) + encoded("EXEC")


def sized(members):
    """300,000, a hundred thousand and ten thousand at a million members."""
    return members * 3 // 10, members // 10, members // 100


def commands(members):
    many, some, few = sized(members)
    names = [member(number) for number in spread(many, members)]
    pairs = [word for i, name in enumerate(names) for word in (str(i * 37 % members), name)]
    boards = [f"board{i % 4}" for i in range(UNION_KEYS)]
    copy = [f"COPY board0 {SCRATCH} REPLACE"]
    drop = [f"DEL {SCRATCH}"]
    edges = [str(i * members // few) for i in range(few)]
    quantiles = [f"{i / few:.6f}" for i in range(few)]
    zadds = [encoded("ZADD", SCRATCH, pairs[2 * i], pairs[2 * i + 1]) for i in range(some)]
    zrevranks = [encoded("ZREVRANK", "board0", name) for name in names[:some]]
    return [
        Command(f"ZUNIONSTORE of {UNION_KEYS} keys",
                encoded("ZUNIONSTORE", SCRATCH, str(UNION_KEYS), *boards), prepare=drop),
        Command("ZUNION of 2 keys WITHSCORES", encoded("ZUNION", "2", "board0", "half",
                                                       "WITHSCORES")),
        Command("ZINTERSTORE of 2 keys", encoded("ZINTERSTORE", SCRATCH, "2", "board0", "half"),
                prepare=drop),
        Command("ZINTER of 2 keys", encoded("ZINTER", "2", "board0", "half")),
        Command("ZINTERCARD of 2 keys", encoded("ZINTERCARD", "2", "board0", "board1")),
        Command("ZDIFFSTORE of 2 keys", encoded("ZDIFFSTORE", SCRATCH, "2", "board0", "half"),
                prepare=drop),
        Command("ZRANGESTORE 0 -1", encoded("ZRANGESTORE", SCRATCH, "board0", "0", "-1"),
                prepare=drop),
        Command("COPY", encoded("COPY", "board0", SCRATCH), prepare=drop),
        Command("ZRANGE 0 -1", encoded("ZRANGE", "board0", "0", "-1")),
        Command("ZRANGE 0 -1 WITHSCORES", encoded("ZRANGE", "board0", "0", "-1", "WITHSCORES")),
        Command("LB.RANGE 0 -1", encoded("LB.RANGE", "board0", "0", "-1"),
                encoded("ZREVRANGE", "board0", "0", "-1", "WITHSCORES"),
                base_title="ZREVRANGE 0 -1 WITHSCORES"),
        Command(f"ZRANDMEMBER -{members}", encoded("ZRANDMEMBER", "board0", str(-members))),
        Command(f"ZRANDMEMBER {some}", encoded("ZRANDMEMBER", "board0", str(some))),
        Command(f"ZRANDMEMBER {few}", encoded("ZRANDMEMBER", "board0", str(few))),
        Command(f"ZSCAN COUNT {members}", encoded("ZSCAN", "board0", "0", "COUNT", str(members))),
        Command(f"SCAN COUNT {members}", encoded("SCAN", "0", "COUNT", str(members))),
        Command("KEYS *", encoded("KEYS", "*")),
        Command(f"ZADD of {many} pairs, updates", encoded("ZADD", SCRATCH, *pairs), prepare=copy),
        Command(f"ZADD of {many} pairs, a new board", encoded("ZADD", SCRATCH, *pairs),
                prepare=drop),
        Command(f"LB.ADD of {many}, updates", encoded("LB.ADD", SCRATCH, *pairs),
                encoded("ZADD", SCRATCH, *pairs), prepare=copy, base_title="ZADD"),
        Command(f"LB.GET of {many}", encoded("LB.GET", "board0", str(many), *names),
                in_one_go([encoded(word, "board0", name) for name in names
                           for word in ("ZREVRANK", "ZSCORE")]),
                base_title="EXEC of ZREVRANK and ZSCORE of each"),
        Command(f"ZMSCORE of {many}", encoded("ZMSCORE", "board0", *names)),
        Command(f"ZREM of {many}", encoded("ZREM", SCRATCH, *names), prepare=copy),
        Command(f"ZPOPMIN {some}", encoded("ZPOPMIN", SCRATCH, str(some)), prepare=copy),
        Command(f"ZREMRANGEBYRANK of {some}",
                encoded("ZREMRANGEBYRANK", SCRATCH, "0", str(some - 1)), prepare=copy),
        Command("ZCOUNT", encoded("ZCOUNT", "board0", "-inf", str(members // 2))),
        Command(f"LB.HIST of {few} edges", encoded("LB.HIST", "board0", *edges),
                in_one_go([encoded("ZCOUNT", "board0", low, "(" + high)
                           for low, high in zip(edges, edges[1:])]),
                base_title="EXEC of ZCOUNTs"),
        Command(f"LB.QUANTILE of {few}", encoded("LB.QUANTILE", "board0", *quantiles),
                in_one_go([encoded("ZRANGE", "board0", place, place, "WITHSCORES")
                           for place in edges]), base_title="EXEC of ZRANGEs of one"),
        Command(f"EXEC of {some} ZADD", in_one_go(zadds), prepare=copy),
        Command(f"EXEC of {some} ZREVRANK", in_one_go(zrevranks)),
        Command("RENAME", encoded("RENAME", SCRATCH, SCRATCH + "2"), prepare=copy),
        Command("DEL", encoded("DEL", SCRATCH), prepare=copy),
        Command("UNLINK", encoded("UNLINK", SCRATCH), prepare=copy),
        Command("SAVE", encoded("SAVE"), prepare=drop),
        Command("FLUSHALL", encoded("FLUSHALL"), prepare=drop),
    ]


def load(part, server, members):
    """Four boards of all members, one of the first half of them, and as many keys."""
    run = part.generator.run
    if server.name == OURS:
        server.ask("CONFIG SET busy-command-limit 0")
    run(server, "ZADD board0 __rand_int__ user:__mixed_int__", members, members)
    for number in range(1, 4):
        server.ask(f"COPY board0 board{number} REPLACE")
    server.ask("ZREMRANGEBYRANK half 0 -1")
    run(server, "ZADD half __rand_int__ user:__seq_int__", members // 2, members // 2)
    run(server, "ZADD keys:__seq_int__ 1 a", members, members)
    time.sleep(SETTLE_S)


def put_first_on_its_core():
    """For the client: pinned, and before all else where that is allowed. It sleeps nearly always."""
    pinned(cores()[1])()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


def measure_once(part, server, command):
    for line in command.prepare:
        server.ask(line)
    time.sleep(0.2)  # what is freed afterwards is not this command's
    with tempfile.NamedTemporaryFile(prefix="leaderboard-bench-") as file:
        file.write(command.request(server.name))
        file.flush()
        words = [part.generator.directory / "stall", "--port", str(server.port), "--sleep",
                 str(PING_SLEEP_US), "--quiet", str(QUIET_MS), "--seconds", str(AFTER_S),
                 "--request", file.name]
        done = subprocess.run(words, capture_output=True, text=True, check=False,
                              preexec_fn=put_first_on_its_core)
    if done.returncode != 0 or done.stderr:
        sys.exit(f"{server.name}: {command.title}: {done.stderr}")
    return json.loads(done.stdout)


def measure_rounds(part, members, rounds):
    """{title: {server: [figures of each round]}}"""
    cells = {}
    wanted = part.options.only
    for turn in range(rounds):
        names = list(part.servers)
        for server in part.servers.values():
            load(part, server, members)
        for command in commands(members):
            if wanted and not any(word in command.title for word in wanted.split(",")):
                continue
            runs = cells.setdefault(command.title, {name: [] for name in names})
            for name in names if turn % 2 == 0 else names[::-1]:
                runs[name].append(measure_once(part, part.servers[name], command))
            say(f"  {turn + 1} {command.title}: " + ", ".join(
                f"{name} {runs[name][-1]['longest_us'] / 1000:.1f} ms" for name in names))
        for server in part.servers.values():
            server.ask("FLUSHALL")
    return cells


def medians(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def measure(part):
    members = part.scaled(MILLION)
    part.start()
    is_first = min(put_first(server) for server in part.servers.values())
    rounds = min(ROUNDS_MAX, part.options.rounds)
    cells = measure_rounds(part, members, rounds)
    names = list(part.versions)
    rows = [{"title": command.title, "base_title": command.base_title,
             "servers": {name: medians(cells[command.title][name]) for name in names}}
            for command in commands(members) if command.title in cells]
    lines = [line_of(row, names) for row in rows]
    head = ["command"] + [f"{name}, {what}, ms" for what in ("longest wait", "the command")
                          for name in names] + ["times less"]
    notes = ["Longest wait: of a PING of another client, from when the command is sent until half"
             " a second after its reply",
             "Each server's loop, and the client, ran before all else on their cores (SCHED_FIFO)" if is_first else
             "The loops were not put first on their core: what else the machine did is in these",
             "SAVE of leaderboard is written by a thread, which was not put first on the core that it"
             " shares with the loop and with whatever else the machine did"]
    subtitle = (f"Boards of {members:,} members of 17 bytes, {members:,} keys; medians of {rounds}"
                " rounds in turns")
    part.write("long", "Long commands", notes, markdown_table(head, lines), plot.of_stalls,
               part.results(subtitle, stalls=rows))


def line_of(row, names):
    cells = [row["servers"][name] for name in names]
    title = row["title"]
    if row["base_title"] != title:
        title += f" ({BASE}: {row['base_title']})"
    ratio = row["servers"][BASE]["longest_us"] / max(1, row["servers"][OURS]["longest_us"])
    return ([title] + [f"{cell['longest_us'] / 1000:.1f}" for cell in cells]
            + [f"{cell['command_us'] / 1000:.1f}" for cell in cells] + [f"{ratio:.1f}"])
