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
import array
import datetime
import itertools
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))
import resp
from long_rows import ROWS, TASKS, wait_for
from servers import Server, machine, markdown_table, say

PAGE = ROOT / "docs/reference/long-commands.md"
HEADING = "## Every command, measured"
PARSED_MAX = 1 << 22  # larger replies are looked at only at their beginning
TICK_CALLS = 20
LOOK_S, QUIET_NS = 0.02, 300000
LIMIT_S = 1200
SCORES = 1000000000
FILL_LINES = 2000
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

    def __init__(self, program, members, kept=None, quiet_looks=3):
        """kept: a directory whose snapshot is used by later runs, too. quiet_looks: so often in turn the engine must be found
        idle before a row is measured."""
        self.quiet_looks = quiet_looks
        self.members, self.serial, self.random = members, 0, random.Random(1)
        self.program, self.is_kept = program, kept is not None
        self.directory = kept or tempfile.mkdtemp(prefix="leaderboard-bench-")
        directory = Path(self.directory)
        directory.mkdir(exist_ok=True)
        (directory / "users.acl").write_text("")
        (directory / "server.conf").write_text(f"aclfile {directory}/users.acl\n")
        self.values = {"member": lambda: [self.member()],
                       "pair": lambda: [self.score(), self.member()],
                       "new": lambda: [self.fresh("new")],
                       "newpair": lambda: [self.score(), self.fresh("new")],
                       "field": lambda: [f"field:{self.random.randrange(max(1, members // 10))}"],
                       "value": lambda: [f"field:{self.random.randrange(max(1, members // 10))}", self.score()],
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

    replica = None  # of some rows

    def start(self):
        self.server = LabServer("leaderboard", self.program, ["--busy-command-limit", "0", "--slowlog-log-slower-than", "-1"],
                             self.directory, core=None)
        wait_for(lambda: self.server.ask("PING") == "PONG", "the end of loading")

    def stop(self):
        self.server.stop()
        if self.replica is not None:
            self.replica.stop()
        if not self.is_kept:
            shutil.rmtree(self.directory, ignore_errors=True)

    def member(self):
        return name_of(self.random.randrange(self.members))

    def score(self):
        return str(self.random.randrange(SCORES))

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

    def fill(self, lines):
        """Inline requests whose replies have a line each."""
        with self.connect() as client:
            while batch := list(itertools.islice(lines, FILL_LINES)):
                client.socket.sendall("".join(batch).encode())
                count = 0
                while count < len(batch):
                    data = client.socket.recv(1 << 18)
                    if not data or b"-" in data:
                        sys.exit(f"{batch[0]}: {data.decode()}")
                    count += data.count(b"\n")

    def load(self):
        """Fill, or take what an earlier run has kept."""
        if int(self.server.ask("DBSIZE")) == 0:
            self.fill_all()
            if self.is_kept:
                self.do("SAVE")
        self.do("ZRANGESTORE s board 0 {=N/10}")
        with self.connect() as client:
            self.dump = client.ask("DUMP", "s")
        self.settle()

    def fill_all(self):
        members, few, some = self.members, max(1, self.members // 10), max(1, self.members // 100)
        order = array.array("I", range(members))
        self.random.shuffle(order)
        draw = self.random.random
        self.fill("ZADD board " + " ".join(f"{int(draw() * SCORES)} user:{order[i]:012}"
                                           for i in range(begin, min(members, begin + 500))) + "\r\n"
                  for begin in range(0, members, 500))
        self.do("LB.CREATE tags FIELD score 33 TAG country 8 TAG device 8 TAG clan 16",
                "LB.LEAGUE CREATE league FIELD points 33 PERIOD WEEK ROOM 50 TIERS 5 UP 5 DOWN 5",
                "LB.CREATE ladder RATING GLICKO2",
                "LB.CREATE window FIELD points 33 PERIOD HOUR WINDOW 24 SUM",
                "LB.CREATE rolling FIELD points 33 PERIOD HOUR ARCHIVE 2")
        self.fill(f"LB.ADD tags TAG country c{int(draw() * 200)} TAG device d{int(draw() * 190)} TAG clan clan{int(draw() * 30000)}"
                  f" {int(draw() * SCORES)} user:{i:012}\r\n" for i in order)
        self.fill(f"ZADD key:{i} 1 a\r\n" for i in range(few))
        self.fill(f"HSET hash:{i} name ann country DE level 7\r\n" for i in range(few))
        self.fill(f"HSET hash field:{i} {i}\r\n" for i in range(few))
        for board in ("window", "rolling"):
            self.fill(f"LB.ADD {board} {int(draw() * SCORES)} user:{i:012}\r\n" for i in range(some))
        with self.connect() as client:
            for begin in range(0, members, FILL_LINES):
                client.ask_all([["LB.RATE", "ladder", name_of(i), str(1000 + i % 997), "80"]
                                for i in order[begin:begin + FILL_LINES]])
            client.ask_all([["LB.LEAGUE", "ADD", "league", self.score(), name_of(i)] for i in range(some)])
        self.do("COPY board other", "ZRANGESTORE half board 0 {=N/2}")

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
        while quiet < self.quiet_looks:
            before = self.engine_ns()
            time.sleep(LOOK_S)
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
    tick_us = property(lambda self: min(each[1] for each in self.rounds))  # what else the machine does only adds to it
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


def incomplete(lab):
    """Commands that run and have no row, and rows that are no command's."""
    with lab.connect() as client:
        listed = {name.decode().upper().replace("|", " ") for name in client.ask("COMMAND", "LIST")}
    containers = {name.split(" ")[0] for name in listed if " " in name} - {"COMMAND"}
    return sorted((listed - containers) ^ ({row.command for row in ROWS} - {""}))


def measure_row(lab, row, rounds):
    figures = Figures(row)
    if row.run is None and row.is_estimated:
        figures.estimate_ms = estimated_ms(lab, row)
    for _ in range(1 if row.stops or row.is_once else rounds):
        if row.run is None:
            measure_once(lab, row, figures)
        else:
            measure_task(lab, row, figures)
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
        if row.after:
            lab.do(*row.after)
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
    """The tables anew. Rows that were not measured now (--only) stay as they are on the page."""
    page, _, before = PAGE.read_text(encoding="utf-8").partition(f"\n{HEADING}\n")
    lines = {line[2:].split(" | ")[0]: line[2:-2].split(" | ") for line in before.splitlines() if line.startswith("| ")}
    lines.update({figures.row.shown(): line_of(figures) for figures in found})
    commands = [lines[row.shown()] for row in ROWS if row.command and row.shown() in lines]
    tasks = [lines[row.shown()] for row in TASKS if row.shown() in lines]
    head = ["Command", "Engine, µs", "An entry", "An argument", "Longest tick, ms", "Estimate, ms", "Measured / estimate"]
    text = f"""{HEADING}

`python3 bench/long_commands.py --members {members} --write` measured these rows on {datetime.date.today().isoformat()}: {machine().split(';')[0]}, boards of
N = {members:,} members, medians of up to {rounds} rounds, with `busy-command-limit 0`, beside other work. Engine is the processor time of the thread
that runs the commands, parsing and reply included; then the same divided by the entries of the reply and by the arguments. The longest
tick is in processor time, of one command at a time, in the quietest round. The estimate is what `busy-command-limit` compares with its limit.

{markdown_table(head, commands)}

And what happens in the background:

{markdown_table(["Task", *head[1:5]], [cells[:5] for cells in tasks])}
"""
    PAGE.write_text(f"{page.rstrip()}\n\n{text}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="build/leaderboard-server")
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="commands, or tasks, separated by commas")
    parser.add_argument("--data", help="a directory for the boards, which the next run finds there")
    parser.add_argument("--write", action="store_true", help="the page")
    options = parser.parse_args()
    lab = Lab(options.server, options.members, options.data)
    try:
        if names := incomplete(lab):
            sys.exit(f"bench/long_rows.py and COMMAND LIST differ: {', '.join(names)}")
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
        lab.stop()


if __name__ == "__main__":
    main()
