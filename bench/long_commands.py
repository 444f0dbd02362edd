#!/usr/bin/env python3
"""What every command of the table costs on large boards, how long the longest tick is meanwhile, and how far the estimate of
busy-command-limit is off.

    python3 bench/long_commands.py --server build/leaderboard-server --members 10000000 --write
    python3 bench/long_commands.py --members 100000 --only ZADD,LB.COUNT

A row is one form of a command. The list of commands is the running server's (COMMAND LIST): one without a row is an error, and so is
an error reply. --write puts the table into docs/reference/long-commands.md. The engine is the thread that runs the commands: its
processor time is the kernel's figure, so that what else the machine does does not count.
"""
import argparse
import datetime
import os
import random
import re
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))
import resp
from long_rows import ROWS
from servers import Server, machine, markdown_table, say

PAGE = ROOT / "docs/reference/long-commands.md"
HEADING = "## Every command, measured"
PARSED_MAX = 1 << 22  # larger replies are looked at only at their beginning
TICK_CALLS = 20
QUIET_NS = 300000
LIMIT_S = 600
ESTIMATE_MS_MIN = 5  # the estimate is told in whole milliseconds, rounded up
REFUSED = re.compile(rb"TOOLONG .* about (\d+) ms")


def name_of(number):
    return f"user:{number:012}"


class LabServer(Server):
    """With a configuration file, which CONFIG REWRITE needs."""

    def command(self, words):
        return [words[0], str(Path(self.directory) / "server.conf"), *words[1:]]


class Lab:
    """A server with boards of so many members, and what rows are made of."""

    def __init__(self, program, members, seed=1):
        self.members, self.serial, self.random = members, 0, random.Random(seed)
        self.program, self.directory = program, tempfile.mkdtemp(prefix="leaderboard-bench-")
        directory = Path(self.directory)
        (directory / "users.acl").write_text("")
        (directory / "server.conf").write_text(f"aclfile {directory}/users.acl\n")
        self.values = {"member": lambda: [self.member()],
                       "pair": lambda: [self.score(), self.member()],
                       "new": lambda: [self.fresh("new")],
                       "newpair": lambda: [self.score(), self.fresh("new")],
                       "field": lambda: [f"field:{self.random.randrange(max(1, members // 10))}"],
                       "fieldvalue": lambda: [f"field:{self.random.randrange(max(1, members // 10))}", self.score()],
                       "key": lambda: [f"key:{self.random.randrange(max(1, members // 10))}"],
                       "hash": lambda: [f"hash:{self.random.randrange(max(1, members // 10))}"],
                       "channel": lambda: [self.fresh("channel")],
                       "score": lambda: [self.score()],
                       "packed": lambda: [str(self.random.randrange(1 << 33))],
                       "quantile": lambda: [f"{self.random.random():.6f}"],
                       "edge": lambda: [self.score()],
                       "ns": lambda: [self.fresh("none")],
                       "dump": lambda: [self.dump]}
        self.start()

    def start(self):
        self.server = LabServer("leaderboard", self.program, ["--busy-command-limit", "0", "--slowlog-log-slower-than", "-1"],
                             self.directory, core=None)

    def member(self):
        return name_of(self.random.randrange(self.members))

    def score(self):
        return str(self.random.randrange(1000000000))

    def fresh(self, what):
        self.serial += 1
        return f"{what}:{self.serial}"

    def number(self, text):
        """N, N/10 or a number: members of the large boards."""
        base, _, divisor = text.partition("/")
        return max(1, (self.members if base == "N" else int(base)) // int(divisor or 1))

    def words(self, text):
        """The words of one request. {member} is one at random, {pair:N/1000} so many scores and members, {=N/2} the number."""
        words = []
        for word in text.split():
            found = re.fullmatch(r"\{(\w+)(?::([\w/]+))?\}", word)
            if found:
                made = [word for _ in range(self.number(found[2] or "1")) for word in self.values[found[1]]()]
                words += sorted(set(made), key=int) if found[1] == "edge" else made
            else:
                words.append(re.sub(r"\{=([\w/]+)\}", lambda number: str(self.number(number[1])), word))
        return words

    def requests(self, text):
        """'MULTI ; N/1000 * ZADD s {pair} ; EXEC' as requests."""
        requests = []
        for part in text.split(" ; "):
            count, star, rest = part.partition(" * ")
            requests += [self.words(rest if star else part) for _ in range(self.number(count) if star else 1)]
        return requests

    def connect(self):
        return resp.Client(self.server.port, timeout_s=LIMIT_S)

    def do(self, *texts):
        """Requests of preparation, which must not fail."""
        with self.connect() as client:
            for text in texts:
                for reply in client.ask_all(self.requests(text)):
                    if isinstance(reply, resp.Error):
                        sys.exit(f"{text}: {reply.text}")

    def fill(self, command, per_member, count, at_once=1000):
        """count entries by requests of at_once each. command: words, per_member(i): words."""
        with self.connect() as client:
            for first in range(0, count, at_once * 20):
                chunk = [command(begin) + [word for i in range(begin, min(count, begin + at_once)) for word in per_member(i)]
                         for begin in range(first, min(count, first + at_once * 20), at_once)]
                for reply in client.ask_all(chunk):
                    if isinstance(reply, resp.Error):
                        sys.exit(f"{chunk[0][:4]}: {reply.text}")

    def load(self):
        members, few = self.members, max(1, self.members // 10)
        order = list(range(members))
        self.random.shuffle(order)
        score = self.random.randrange
        self.fill(lambda _: ["ZADD", "board"], lambda i: [str(score(1000000000)), name_of(order[i])], members)
        self.do("LB.CREATE tags FIELD score 33 TAG country 8 TAG device 8 TAG clan 16")
        self.fill(lambda begin: ["LB.ADD", "tags", "TAG", "country", f"c{begin // 100 % 200}", "TAG", "device",
                                 f"d{begin // 100 % 190}", "TAG", "clan", f"clan{begin // 100 % 30000}"],
                  lambda i: [str(score(1000000000)), name_of(order[i])], members, 100)
        self.fill(lambda _: ["HSET", "hash"], lambda i: [f"field:{i}", str(i)], few)
        for form in ("ZADD key:{0} 1 a", "HSET hash:{0} name ann country DE level 7"):
            self.fill(lambda i, form=form: form.format(i).split(), lambda _: [], few, 1)
        self.do("COPY board other", "ZRANGESTORE half board 0 {=N/2}",
                "LB.LEAGUE CREATE league FIELD points 33 PERIOD WEEK ROOM 50 TIERS 5 UP 5 DOWN 5",
                "LB.CREATE window FIELD points 33 PERIOD HOUR WINDOW 24 SUM",
                "LB.CREATE rolling FIELD points 33 PERIOD HOUR ARCHIVE 2",
                "LB.CREATE decays FIELD points 33")
        self.fill(lambda i: ["LB.LEAGUE", "ADD", "league", str(score(1000000)), name_of(i)], lambda _: [], max(1, members // 100), 1)
        self.fill(lambda _: ["LB.ADD", "window"], lambda i: [str(score(1000000)), name_of(i)], max(1, members // 100))
        self.settle()

        with self.connect() as client:
            client.socket.settimeout(LIMIT_S)
            self.do("ZRANGESTORE s board 0 {=N/10}")
            self.dump = client.ask("DUMP", "s")

    def prepared(self, prepare):
        """Of a task: what is not measured."""
        prepare()
        self.do("CONFIG RESETSTAT")
        self.begin_ns = self.engine_ns()

    def engine_ns(self):
        """Processor time of the thread that runs the commands: it is the process's first."""
        pid = self.server.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])

    def settle(self):
        """Until the engine has nothing to do any more: what is freed afterwards is not the next command's."""
        give_up_at, quiet = time.monotonic() + LIMIT_S, 0
        while quiet < 3:
            before = self.engine_ns()
            time.sleep(0.02)
            quiet = quiet + 1 if self.engine_ns() - before < QUIET_NS else 0
            if time.monotonic() > give_up_at:
                sys.exit("the server does not come to rest")

    def stats(self):
        return self.server.info("stats")


class Reply:
    """What a connection gets, up to the reply of a PING with a word of its own, or to its end."""

    def __init__(self):
        self.head, self.size = b"", 0

    def read(self, sock, until):
        tail = b""
        while True:
            data = sock.recv(1 << 20)
            if not data:
                if until is not None:
                    raise ConnectionResetError("the server closed the connection")
                return self
            if len(self.head) < PARSED_MAX:
                self.head += data
            self.size += len(data)
            tail = (tail + data)[-256:]
            if until is not None and until in tail:
                return self

    def entries(self):
        """Entries of the last reply but the marker's."""
        heads = re.findall(rb"(?:^|\n)[*%~>](\d+)\r", self.head[:64] if self.size > PARSED_MAX else self.head)
        counts = [int(count) for count in heads]
        return max(counts, default=1)

    def error(self):
        found = re.search(rb"(?:^|\n)-([A-Z]{2,} [ -~]*)\r", self.head)
        return found[1] if found else None


def send(client, requests, ends):
    """Send them, and read all replies."""
    marker = b"" if ends else f"mark{random.randrange(1 << 60)}".encode()
    data = b"".join(map(resp.encode, requests)) + (b"" if ends else resp.encode(["PING", marker]))
    client.socket.sendall(data)
    return Reply().read(client.socket, None if ends else marker + b"\r\n")


class Figures:
    """Of a row: medians of its rounds."""

    def __init__(self, row):
        self.row, self.rounds, self.estimate_ms = row, [], None

    def add(self, cpu_us, tick_us, entries, arguments):
        self.rounds.append((cpu_us, tick_us, entries, arguments))

    def median(self, index):
        return statistics.median(each[index] for each in self.rounds)

    cpu_us = property(lambda self: self.median(0))
    tick_us = property(lambda self: self.median(1))
    entries = property(lambda self: int(self.median(2)))
    arguments = property(lambda self: int(self.median(3)))

    def ratio(self):
        """Measured by estimated; None: nothing was estimated, or too little to tell."""
        return self.cpu_us / 1000 / self.estimate_ms if (self.estimate_ms or 0) >= ESTIMATE_MS_MIN else None


def opened(lab, row):
    client = lab.connect()
    if row.opening:
        send(client, lab.requests(row.opening), False)
    return client


def estimated_ms(lab, row):
    """What the server says that it would take: the error of a limit of a millisecond."""
    if row.before:
        lab.do(*row.before)
    with opened(lab, row) as client:
        lab.do("CONFIG SET busy-command-limit 1")
        found = REFUSED.search(send(client, lab.requests(row.text), False).head)
    lab.do("CONFIG SET busy-command-limit 0")
    return int(found[1]) if found else None


def measure_once(lab, row, figures):
    if row.before:
        lab.do(*row.before)
    requests = [lab.requests(row.text) for _ in range(row.calls)]
    lab.settle()
    with opened(lab, row) as client:
        lab.do("CONFIG RESETSTAT")
        begin = lab.engine_ns()
        reply = send(client, [request for each in requests for request in each], row.ends)
        if not row.ends:
            lab.settle() if row.is_followed else None
            cpu_us = (lab.engine_ns() - begin) / 1000 / row.calls
    if row.ends:
        cpu_us = 0.0 if row.stops else (lab.engine_ns() - begin) / 1000
    error = reply.error()
    if error and not (row.allowed and row.allowed.encode() in error):
        sys.exit(f"{row.command}: {row.text}: {error.decode()}")
    tick_us = 0 if row.stops else longest_tick(lab, row)
    figures.add(cpu_us, tick_us, reply.entries(), max(map(len, requests[0])) - 1)


def longest_tick(lab, row):
    """Of one command at a time: several are one tick."""
    if row.calls > 1:
        lab.do("CONFIG RESETSTAT")
        with opened(lab, row) as client:
            for _ in range(min(row.calls, TICK_CALLS)):
                send(client, lab.requests(row.text), False)
    return int(lab.stats()["tick_busiest_us"])


def measure_task(lab, task, figures):
    if task.before:
        lab.do(*task.before)
    lab.settle()
    lab.prepared(lambda: None)
    task.run(lab)
    lab.settle()
    figures.add((lab.engine_ns() - lab.begin_ns) / 1000, int(lab.stats()["tick_busiest_us"]), 1, 0)


def check_complete(lab):
    """Every command that runs has a row, and every row a command."""
    with lab.connect() as client:
        listed = {name.decode().upper().replace("|", " ") for name in client.ask("COMMAND", "LIST")}
    containers = {name.split(" ")[0] for name in listed if " " in name} - {"COMMAND"}
    rows = {row.command for row in ROWS} - {""}
    for text, names in (("has no row", listed - containers - rows), ("is no command", rows - listed)):
        if names:
            sys.exit(f"{text} in bench/long_rows.py: {', '.join(sorted(names))}")


def measure_row(lab, row, rounds):
    figures = Figures(row)
    if row.run is None and row.is_estimated:
        figures.estimate_ms = estimated_ms(lab, row)
    for _ in range(1 if row.stops or row.is_once else rounds):
        if row.run is None:
            measure_once(lab, row, figures)
        else:
            measure_task(lab, row, figures)
    if row.after:
        lab.do(*row.after)
    ratio = figures.ratio()
    say(f"  {row.command:20} {figures.cpu_us:12.1f} us  tick {figures.tick_us / 1000:8.2f} ms  {figures.entries:8} entries"
        f"  {figures.arguments:7} arguments" + (f"  estimate {figures.estimate_ms} ms" if figures.estimate_ms else "")
        + (f"  {ratio:.2f}" if ratio else "") + f"  {row.shown()}")
    if row.stops:
        lab.server.stop()
        lab.start()
    return figures


def measure(lab, rounds, only):
    """Figures of each row, in their order, and what failed."""
    found, failed = [], []
    for row in ROWS:
        if only and row.command not in only:
            continue
        try:
            found.append(measure_row(lab, row, rounds))
        except (SystemExit, OSError) as error:
            say(f"  {row.shown()} FAILED: {error}")
            failed.append(row)
    return found, failed


def told_us(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def line_of(figures):
    row = figures.row
    ratio = figures.ratio()
    return [row.shown(), told_us(figures.cpu_us),
            f"{figures.cpu_us / figures.entries:.2f}" if figures.entries > 1 else "",
            f"{figures.cpu_us / figures.arguments:.2f}" if figures.arguments > 10 else "",
            f"{figures.tick_us / 1000:,.1f}" if figures.tick_us >= 1000 else "< 1",
            f"{figures.estimate_ms:,}" if figures.estimate_ms else "", f"{ratio:.2f}" if ratio else ""]


def write_page(found, members, rounds):
    head = ["Command", "Engine, µs", "An entry", "An argument", "Longest tick, ms", "Estimate, ms", "Measured / estimate"]
    tasks = [figures for figures in found if not figures.row.command]
    commands = [figures for figures in found if figures.row.command]
    text = f"""{HEADING}

`python3 bench/long_commands.py --members {members} --write` measured these rows on {datetime.date.today().isoformat()}: {machine().split(';')[0]}, boards of
{members:,} members, medians of {rounds} rounds, with `busy-command-limit 0`. Engine is the processor time of the thread that runs the
commands, parsing and reply included; it is also divided by the entries of the reply and by the arguments. The longest tick is in processor
time, of one command at a time. The estimate is what `busy-command-limit` compares with its limit.

{markdown_table(head, [line_of(figures) for figures in commands])}

And what happens in the background:

{markdown_table(["Task", "Engine, µs", "Longest tick, ms"], [[f.row.shown(), told_us(f.cpu_us), line_of(f)[4]] for f in tasks])}
"""
    page = PAGE.read_text(encoding="utf-8").partition(f"\n{HEADING}\n")[0]
    PAGE.write_text(f"{page.rstrip()}\n\n{text}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="build/leaderboard-server")
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="commands, or tasks, separated by commas")
    parser.add_argument("--write", action="store_true", help="the page")
    options = parser.parse_args()
    lab = Lab(options.server, options.members)
    try:
        check_complete(lab)
        begin = time.monotonic()
        lab.load()
        say(f"loaded in {time.monotonic() - begin:.0f} s, {lab.server.resident_bytes() >> 20} MiB")
        found, failed = measure(lab, options.rounds, options.only.split(",") if options.only else None)
        off = [figures for figures in found if figures.ratio() and not 0.5 <= figures.ratio() <= 2]
        say(f"{len(found)} rows, {time.monotonic() - begin:.0f} s; estimates off by more than a factor of two: "
            + (", ".join(f"{figures.row.command} {figures.ratio():.2f}" for figures in off) or "none"))
        if failed:
            sys.exit(f"{len(failed)} rows failed")
        if options.write:
            write_page(found, options.members, options.rounds)
    finally:
        lab.server.stop()


if __name__ == "__main__":
    main()
