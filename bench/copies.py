#!/usr/bin/env python3
"""How long the ticks are in which a large board is copied: as an archive at the end of its period (PERIOD ... COPY), and by
the command COPY.

    python3 bench/copies.py --server build/leaderboard-server [--members 10000000] [--rounds 3]

A client reads ranks and writes scores meanwhile. Besides, the same clients without a copy, and while the same number of
members is added by commands: what the machine and fresh memory add by themselves. Each round fills a new server.
Writes bench/results/<date>-copies.md.
"""
import argparse
import contextlib
import datetime
import os
import subprocess
import time
from pathlib import Path

from servers import Generator, Server, machine, markdown_table, say

QUIET_S = 8
ALONE_S = 20  # what is left of the minute, if the copy is to begin in it
LIMIT_S = 600
FIELDS = ("tick_longest_us", "tick_longest_cpu_us", "tick_busiest_us", "tick_busy_count", "tick_long_count",
          "eventloop_cycles")


@contextlib.contextmanager
def clients(server):
    """One reads and one writes, a few thousand requests a second."""
    words = [["ZREVRANK", "board", "member:__rand_int__"], ["ZINCRBY", "board", "1", "member:__rand_int__"]]
    running = [subprocess.Popen(["redis-benchmark", "-p", str(server.port), "-c", "1", "-n", "1000000000", "-r", "1000000",
                                 "-q", *word], stdout=subprocess.DEVNULL) for word in words]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
            process.wait()


def stolen_s():
    """For how long the virtual machine's host had its processors elsewhere. The kernel may count it as processor time, too."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def observed(server, title, members, run):
    """A row: what the ticks took while run() ran."""
    server.ask("CONFIG RESETSTAT")
    begin, cpu, stolen = time.monotonic(), server.cpu_ns(), stolen_s()
    run()
    seconds, cpu, stolen = time.monotonic() - begin, server.cpu_ns() - cpu, stolen_s() - stolen
    stats = server.info("stats")
    figures = {name: int(stats[name]) for name in FIELDS}
    say(f"  {title}: {seconds:.1f} s, {stolen:.2f} s stolen {figures}")
    return [title, f"{seconds:.1f}", f"{stolen:.2f}", f"{cpu / members:,.0f}" if members else "", f"{figures['eventloop_cycles']:,}",
            f"{figures['tick_longest_us'] / 1000:.2f}", f"{figures['tick_long_count']}",
            f"{figures['tick_busiest_us'] / 1000:.2f}", f"{figures['tick_busy_count']}"]


def wait_for(is_there):
    give_up_at = time.monotonic() + LIMIT_S
    while not is_there():
        if time.monotonic() > give_up_at:
            raise SystemExit("the copy does not come")
        time.sleep(0.05)


def archives(server):
    return int(server.info("stats")["rolled_boards"])


def begin_period(server):
    """The board's period ends with this minute, or the next one: hours begin at this minute in its zone."""
    left = 60 - time.time() % 60
    if left < 3:
        time.sleep(left)
    minute = (int(time.time()) // 60 + 1) % 60
    server.ask(f"LB.ALTER board PERIOD HOUR TZ -00:{minute:02d} ARCHIVE 1 COPY")
    before = archives(server)
    time.sleep(max(0, 59.5 - time.time() % 60))
    return before


def measure(options, settings):
    generator = Generator(options.server, 20, 32)
    server = Server("leaderboard", options.server, settings, core=None)
    rows = []

    def fill(board):
        generator.run(server, f"ZADD {board} __rand_int__ member:__mixed_int__", options.members, options.members)

    try:
        rows.append(observed(server, "members added by ZADD", options.members, lambda: fill("board")))
        with clients(server):
            rows.append(observed(server, "no copy", 0, lambda: time.sleep(QUIET_S)))
            before = begin_period(server)
            rows.append(observed(server, "archive, a copy", options.members,
                                 lambda: wait_for(lambda: archives(server) > before)))
            server.ask("LB.ALTER board PERIOD NONE")
            rows.append(observed(server, "COPY", options.members, lambda: server.ask("COPY board other")))
    finally:
        server.stop()
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="build/leaderboard-server")
    parser.add_argument("--members", type=int, default=10000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--journal", action="store_true", help="with appendonly yes")
    options = parser.parse_args()
    rows = []
    for number in range(options.rounds):
        say(f"round {number + 1}")
        rows += measure(options, ["--appendonly", "yes"] if options.journal else [])
    rows.sort(key=lambda row: row[0])  # stable: rounds in their order
    table = markdown_table(["", "s", "s stolen", "ns of CPU a member", "ticks", "longest, ms", "of 1 ms and more", "longest, ms of CPU",
                            "of 1 ms of CPU and more"], rows)
    path = Path(__file__).parent / "results" / f"{datetime.date.today().isoformat()}-copies.md"
    path.write_text(f"""# Ticks while a board of {options.members:,} members is copied

- Machine: {machine()} (nothing is pinned here)
- Command: `python3 bench/copies.py --members {options.members} --rounds {options.rounds}`
- Load of the machine at the end, from other work too: {os.getloadavg()[0]:.1f}: trust CPU, not seconds

{table}
""")
    say(path.read_text())


if __name__ == "__main__":
    main()
