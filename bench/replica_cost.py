"""full.py's part `replica-cost`: what replicas cost their master, counted instead of timed.

The master runs under callgrind, its replicas do not. The same pipelined ZADDs run with 0, 1 and 2
replicas, and the master's instructions are counted, its system calls, and the processor time that the
kernel takes for them, which is real: valgrind leaves system calls alone. So a per cent shows where times
differ by five.

One client sends a pipeline at once, and waits for the replies. An emulated tick is over after some fifty
ZADDs, and each tick's group leaves at once as a message to each replica. Longer and shorter pipelines
make groups of two sizes, so what is due to a message and to a change in it can be told apart. A master
that takes 500,000 ZADDs a second sends a thousand messages. Acknowledgements come a hundred times a second, and so far too often for a
master that is emulated. What one costs is counted, too, and the last table has as many of them as a
master at that rate gets."""
import random
import re
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
NOTES = [
    "Of the whole master: its journal (everysec), too, which all rows have. Replicas are on the other core",
    "Instructions without the kernel's; kernel ns: processor time in system calls, of which sending to a"
    " socket of this machine contains receiving",
]


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
        sums = [0] * len(EVENTS)
        for path in files:
            totals = re.search(r"^totals: (.*)$", path.read_text(), re.MULTILINE)
            for i, figure in enumerate(totals.group(1).split() if totals else []):
                sums[i] += int(figure)
        return dict(zip(EVENTS, sums))


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
    counted = master.end()
    client.socket.close()
    counted.update({name: figure - before[name] for name, figure in counters(master).items()})
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
        return {name: figure / ACKS_COUNTED for name, figure in cluster.master.end().items()}


def cell_of(rows, pipeline, replicas):
    return next(row for row in rows if (row["pipeline"], row["replicas"]) == (pipeline, replicas))


def fit(rows, replicas, event, ack):
    """Of the event, without acknowledgements: per group, and per change."""
    many, few = (cell_of(rows, pipeline, replicas) for pipeline in PIPELINES)
    figures = [row[event] - row["acks"] * ack[event] for row in (many, few)]
    a_group = (figures[1] - figures[0]) / (few["groups"] - many["groups"])
    return a_group, figures[0] - a_group * many["groups"]


def costs_of(rows, ack, event):
    """What so many replicas cost of this event: a message and a change in it, to all of them; and of a
    ZADD without replicas, with the messages and acknowledgements of RATE."""
    base_group, base_change = fit(rows, 0, event, ack)
    groups = MESSAGES / RATE
    result = []
    for replicas in REPLICAS[1:]:
        group, change = fit(rows, replicas, event, ack)
        message, change = group - base_group, change - base_change
        extra = change + groups * message + replicas * ACKS / RATE * ack[event]
        result.append({"replicas": replicas, "message": message, "change": change,
                       "ack": ack[event], "all": extra,
                       "share": extra / (base_change + groups * base_group)})
    return result


def medians(runs):
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def tables(results):
    lines = []
    for row in results["rows"]:
        base = cell_of(results["rows"], row["pipeline"], 0)
        lines.append([f"pipelines of {row['pipeline']}, {row['replicas']} replicas",
                      f"{1 / row['groups']:.0f}", f"{row['instructions']:,.0f}",
                      f"{row['instructions'] / base['instructions']:.3f}",
                      f"{row['system calls']:.3f}", f"{row['kernel ns']:,.0f}",
                      f"{row['kernel ns'] / base['kernel ns']:.3f}", f"{row['bytes']:.1f}",
                      f"{row['acks'] * 1000:.1f}"])
    costs = [[f"{event}, {cost['replicas']} replicas", f"{cost['message']:,.0f}",
              f"{cost['change']:,.1f}", f"{cost['ack']:,.0f}", f"{cost['all']:,.1f}",
              f"{100 * cost['share']:.1f}%"]
             for event, cells in results["costs"].items() for cost in cells]
    return (markdown_table(["one client", "changes a group", "instructions a ZADD",
                            "times that without", "system calls", "kernel, ns", "times that without",
                            "bytes to replicas", "acknowledgements a thousand"], lines)
            + "\n\n" + markdown_table(
                ["what replicas cost", "a message to all", "a change in it", "an acknowledgement",
                 f"a ZADD, at {RATE:,} a second", "of one without replicas"], costs))


def draw(results):
    rows = [(f"pipelines of {row['pipeline']}, {row['replicas']} replicas",
             {"master": row["instructions"]}) for row in results["rows"]]
    return plot.value_bars("Instructions per ZADD", results["subtitle"], "master",
                           {"master": next(iter(results["versions"].values()), "")}, rows, "")


def measure(part):
    members, changes = part.scaled(MILLION // 10), part.scaled(CHANGES)
    cluster = Cluster(part)
    part.versions[OURS] = cluster.master.version()
    part.generator.run(cluster.master, LOAD, members, members)
    part.generator.run(cluster.master, ZADD, members * 5, members)  # blocks as they are later on
    runs, acks = {}, []
    for turn in range(part.options.rounds):
        acks.append(count_ack(cluster))
        for replicas in REPLICAS if turn % 2 == 0 else REPLICAS[::-1]:
            for pipeline in PIPELINES:
                run = run_once(cluster, replicas, pipeline,
                               changes if pipeline == PIPELINES[0] else changes // 5, members)
                runs.setdefault((pipeline, replicas), []).append(run)
    rows, ack = [medians(cells) for cells in runs.values()], medians(acks)
    cluster.stop()
    for row in rows:
        say(f"  pipelines of {row['pipeline']}, {row['replicas']} replicas:"
            f" {row['instructions']:,.0f} instructions, {row['system calls']:.3f} system calls,"
            f" {row['kernel ns']:.0f} ns in the kernel a ZADD")
    costs = {event: costs_of(rows, ack, event) for event in ("instructions", "kernel ns")}
    subtitle = f"One board of {members:,} members; median of {part.options.rounds} rounds"
    results = part.results(subtitle, rows=rows, ack=ack, costs=costs)
    part.write("replica-cost", "What a replica costs its master", NOTES, tables(results), draw, results)
