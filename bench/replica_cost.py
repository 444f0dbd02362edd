"""full.py's part `replica-cost`: what replicas cost their master, counted instead of timed.

    make LTO= B=build/plain build/plain/leaderboard-server build/plain/bench/load
    bench/full.py --server build/plain/leaderboard-server replica-cost

The master runs under callgrind, its replicas do not. The same pipelined ZADDs run with 0, 1 and 2
replicas. The master's instructions are counted, and the processor time that the kernel takes for its
system calls, which is real: valgrind leaves system calls alone. Both are of the functions that work for
replicas alone (STEPS), so a per cent shows where times differ by ten. They must not be inlined into others:
hence LTO=.

An emulated tick is over after some fifty ZADDs, and each tick's group leaves at once as a message to each
replica; so the part counts what a message costs, what a change, and what an acknowledgement, and says what
that is at 500,000 ZADDs a second, with a thousand messages and a hundred acknowledgements."""
import random
import re
import shutil
import socket
import statistics
import subprocess
import time
from pathlib import Path

import plot
from replication import BACKLOG, JOURNAL, MILLION, REPLICAS, ZADD, let_follow
from servers import OURS, Server, cores, markdown_table, say

LOAD = "ZADD board __rand_int__ user:000__mixed_int__"
CHANGES = 250000
PIPELINES = (500, 10)
RATE = 500000           # ZADDs a second
MESSAGES = 1000         # a second, to each replica
ACKS = 100              # a second, of each replica
ACKS_COUNTED = 2000
ACK_EVERY_S = 0.001     # each in a tick of its own
EVENTS = ["instructions", "system calls", "ns waiting", "kernel ns"]  # as callgrind has them
# Functions, and what they do for replicas. connection_flush is for clients, too: the mean of both counts.
STEPS = {"take_group": "a group into the backlog", "feed_step": "a message into outputs",
         "connection_flush": "an output sent", "replconf_run": "an acknowledgement taken"}
NOTES = [
    "Of the whole master: its journal (everysec), too, which all rows have. Replicas are on the other core",
    "An acknowledgement, with the tick that it comes in: a busy master has many in one tick, or requests"
    " beside it",
    "Steps without system calls take none of the kernel's time: what is shown for them is noise",
    "The kernel's time of a whole ZADD is that of small ticks, so no shares are given of it",
    "Instructions without the kernel's; kernel ns: processor time in system calls, of which sending to a"
    " socket of this machine contains receiving",
]


class InlinedError(Exception):
    """A function of STEPS is not to be seen."""


class Counted(Server):
    """A server under callgrind. What it does is counted between two calls of count."""

    def command(self, words):
        out = Path(self.directory) / "callgrind.out"
        return ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-systime=nsec",
                f"--callgrind-out-file={out}", *words]

    def control(self, *words):
        subprocess.run(["callgrind_control", *words, str(self.process.pid)], check=True,
                       capture_output=True)

    def begin(self):
        self.control("--instr=on")
        self.control("--zero")

    def end(self):
        """Returns what has been counted since begin, by event."""
        before = set(Path(self.directory).glob("callgrind.out*"))
        self.control("--dump")
        self.control("--instr=off")
        files = set(Path(self.directory).glob("callgrind.out*")) - before
        sums, steps = [0] * len(EVENTS), {}
        for path in files:
            add_file(path.read_text(), sums, steps)
        return dict(zip(EVENTS, sums)), steps


def add_file(text, sums, steps):
    """Add a file of callgrind's: all events, and those of STEPS with what they call, {"calls": ..}."""
    names, called, calls = {}, None, 0
    for line in text.splitlines():
        kind, _, value = line.partition("=")
        if kind in ("fn", "cfn"):
            number, _, name = value.partition(" ")
            names.setdefault(number, name)
            called = names[number] if kind == "cfn" else None
        elif kind == "calls":
            calls = int(value.split()[0])
        elif calls > 0:  # the line behind calls
            if called in STEPS:
                step = steps.setdefault(called, dict.fromkeys(["calls", *EVENTS], 0))
                step["calls"] += calls
                for event, figure in zip(EVENTS, line.split()[1:]):
                    step[event] += int(figure)
            calls = 0
        elif kind.startswith("totals: "):
            for i, figure in enumerate(kind.split()[1:]):
                sums[i] += int(figure)


class Cluster:
    """As let_follow wants it."""

    def __init__(self, part):
        program = part.programs[OURS]
        self.master = Counted("master", program, [*JOURNAL, *BACKLOG])
        self.replicas = [Server("replica", program,
                                JOURNAL + ["--replicaof", f"127.0.0.1 {self.master.port}"],
                                core=cores()[1]) for _ in range(max(REPLICAS))]

    def stop(self):
        for server in [*self.replicas, self.master]:
            server.stop()


def counters(master):
    replication, commands = master.info("replication"), master.info("commandstats")
    calls = re.search(r"calls=(\d+)", commands.get("cmdstat_replconf", "calls=0"))
    return {"groups": int(replication["master_repl_offset"]), "acks": int(calls.group(1)),
            "bytes": int(master.info("stats")["total_net_repl_output_bytes"])}


class Client:
    """Sends pipelines of ZADDs of random members, each in one piece."""

    def __init__(self, master, members, pipeline, seed):
        self.socket = socket.create_connection(("127.0.0.1", master.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.members, self.pipeline, self.random = members, pipeline, random.Random(seed)

    def send(self, changes):
        for _ in range(changes // self.pipeline):
            requests = "".join(
                f"*4\r\n$4\r\nZADD\r\n$5\r\nboard\r\n${len(score)}\r\n{score}\r\n"
                f"$20\r\nuser:000{self.random.randrange(self.members):012}\r\n"
                for score in (str(self.random.randrange(MILLION)) for _ in range(self.pipeline)))
            self.socket.sendall(requests.encode())
            left = len(":0\r\n") * self.pipeline
            while left > 0:
                replies = self.socket.recv(left)
                if replies[:1] not in b":0\r\n":
                    raise SystemExit(f"the master replies {replies}")
                left -= len(replies)


def run_once(cluster, replicas, pipeline, changes, members):
    """Figures per change."""
    master = cluster.master
    let_follow(cluster, replicas)
    # Buffers have grown before anything is counted.
    client = Client(master, members, pipeline, replicas)
    client.send(pipeline * 4)
    before = counters(master)
    master.begin()
    client.send(changes)
    counted, steps = master.end()
    client.socket.close()
    counted.update({name: figure - before[name] for name, figure in counters(master).items()})
    for function, step in steps.items():
        for event in EVENTS:
            counted[f"{event} of {function}"] = step[event]
        counted[f"calls of {function}"] = step["calls"]
    if replicas > 0 and not set(steps) >= set(STEPS):
        raise InlinedError(f"{', '.join(sorted(set(STEPS) - set(steps)))} did not run: is the server"
                           " built with LTO= ?")
    return {"replicas": replicas, "pipeline": pipeline,
            **{name: figure / changes for name, figure in counted.items()}}


def count_ack(cluster):
    """What the master does for an acknowledgement, a tick for itself included."""
    let_follow(cluster, 0)
    with socket.create_connection(("127.0.0.1", cluster.master.port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        cluster.master.begin()
        for _ in range(ACKS_COUNTED):
            client.sendall(b"*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$7\r\n1000000\r\n")
            time.sleep(ACK_EVERY_S)
        return {name: figure / ACKS_COUNTED for name, figure in cluster.master.end()[0].items()}


def cell_of(rows, pipeline, replicas):
    return next(row for row in rows if (row["pipeline"], row["replicas"]) == (pipeline, replicas))


def a_call(row, event, function):
    return row[f"{event} of {function}"] / row[f"calls of {function}"]


def costs_of(rows, ack, event):
    """Of this event, by what is done; and what replicas add to a ZADD at RATE."""
    large, small = (cell_of(rows, pipeline, 1) for pipeline in PIPELINES)
    base = cell_of(rows, PIPELINES[0], 0)[event]
    # A group into the backlog: so much, and so much more for each change of it.
    groups = [a_call(row, event, "take_group") for row in (large, small)]
    sizes = [1 / row["calls of take_group"] for row in (large, small)]
    a_change = (groups[0] - groups[1]) / (sizes[0] - sizes[1])
    a_group = groups[0] - sizes[0] * a_change
    fed = {row["replicas"]: row[f"{event} of feed_step"] / row["groups"]
           for row in rows if row["pipeline"] == PIPELINES[0]}
    flushed = a_call(large, event, "connection_flush")
    steps = {"a change into the backlog": a_change, "a group into the backlog": a_group,
             "a message into an output": fed[2] - fed[1], "the same, sent": flushed,
             "an acknowledgement": ack[event]}
    alone = a_change + a_group * MESSAGES / RATE
    each = ((fed[2] - fed[1] + flushed) * MESSAGES + ack[event] * ACKS) / RATE
    return {"steps": steps, "base": base, "first": alone + each, "next": each}


def medians(runs):
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def tables(results):
    lines = []
    for row in results["rows"]:
        lines.append([f"{row['replicas']} replicas", f"{1 / row['groups']:.0f}",
                      f"{row['instructions']:,.0f}", f"{row['system calls']:.3f}",
                      f"{row['kernel ns']:,.0f}", f"{row['bytes']:.1f}", f"{row['acks'] * 1000:.1f}"])
    costs = results["costs"]
    steps = [[step, *(f"{cost['steps'][step]:,.0f}" for cost in costs.values())]
             for step in costs["instructions"]["steps"]]
    for title, which in (("the first replica", "first"), ("each further one", "next")):
        steps.append([f"{title}, a ZADD of {RATE:,} a second"]
                     + [f"{cost[which]:,.1f}" for cost in costs.values()])
        share = 100 * costs["instructions"][which] / costs["instructions"]["base"]
        steps.append([f"{title}, of a ZADD with none", f"{share:.1f}%", ""])
    return (markdown_table(["what the master does for a replica", *costs], steps)
            + "\n\n" + markdown_table(["the whole master, a ZADD", "changes a group", "instructions",
                                       "system calls", "kernel, ns", "bytes to replicas",
                                       "acknowledgements a thousand"], lines))


def draw(results):
    rows = [(f"pipelines of {row['pipeline']}, {row['replicas']} replicas",
             {"master": row["instructions"]}) for row in results["rows"]]
    return plot.value_bars("Instructions per ZADD", results["subtitle"], "master",
                           {"master": next(iter(results["versions"].values()), "")}, rows, "")


def run_all(part, cluster, changes, members):
    """Rows by number of replicas and pipeline, and an acknowledgement."""
    part.generator.run(cluster.master, LOAD, members, members)
    part.generator.run(cluster.master, ZADD, members * 5, members)  # blocks as they are later on
    runs, acks = {}, []
    for turn in range(part.options.rounds):
        acks.append(count_ack(cluster))
        for replicas in REPLICAS if turn % 2 == 0 else REPLICAS[::-1]:
            for pipeline in PIPELINES:
                run = run_once(cluster, replicas, pipeline,
                               changes if pipeline == PIPELINES[0] else changes // 5, members)
                runs.setdefault((replicas, pipeline), []).append(run)
    return [medians(cells) for cells in runs.values()], medians(acks)


def measure(part):
    if shutil.which("valgrind") is None:
        say("  valgrind is missing: this part is left out")
        return
    members, changes = part.scaled(MILLION // 10), part.scaled(CHANGES)
    cluster = Cluster(part)
    part.versions[OURS] = cluster.master.version()
    try:
        rows, ack = run_all(part, cluster, changes, members)
    except InlinedError as error:
        say(f"  {error} This part is left out")
        return
    finally:
        cluster.stop()
    for row in rows:
        say(f"  pipelines of {row['pipeline']}, {row['replicas']} replicas:"
            f" {row['instructions']:,.0f} instructions, {row['system calls']:.3f} system calls,"
            f" {row['kernel ns']:.0f} ns in the kernel a ZADD")
    costs = {event: costs_of(rows, ack, event) for event in ("instructions", "kernel ns")}
    subtitle = f"One board of {members:,} members; median of {part.options.rounds} rounds"
    results = part.results(subtitle, rows=rows, ack=ack, costs=costs)
    part.write("replica-cost", "What a replica costs its master", NOTES, tables(results), draw, results)
