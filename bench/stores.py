#!/usr/bin/env python3
"""What ZUNIONSTORE and its relatives of boards with many members cost, and how long the ticks are meanwhile, of two versions
of the server side by side.

    python3 bench/stores.py --server build/leaderboard-server [--base OTHER/leaderboard-server] [--members 1500000] [--rounds 3]

Two boards of so many members, a third of which both have. Every round fills new servers, and each command is measured
once, its result's freeing with it. Writes bench/results/<date>-stores.md.
"""
import argparse
import datetime
import os
import statistics
import time
from pathlib import Path

from servers import Generator, Server, machine, markdown_table, say

COMMANDS = ("ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE", "ZRANGESTORE")
FREEING_S = 1


def request(command):
    return "ZRANGESTORE made a 0 -1" if command == "ZRANGESTORE" else f"{command} made 2 a b"


def measure(options, program):
    """(ms of CPU of the busiest tick, s of CPU, members) of each command."""
    generator = Generator(options.server, 20, 32)
    server = Server("leaderboard", program, ["--busy-command-limit", "0", *options.settings.split()], core=None)
    figures = {}
    try:
        generator.run(server, "ZADD a __rand_int__ user:__mixed_int__", options.members, options.members)
        server.ask("ZRANGESTORE b a 0 -1")
        server.ask(f"ZREMRANGEBYRANK b 0 {options.members * 2 // 3 - 1}")
        generator.run(server, "ZADD b __rand_int__ guest:__mixed_int__", options.members * 2 // 3, options.members * 2 // 3)
        for command in COMMANDS:
            time.sleep(FREEING_S)
            server.ask("CONFIG RESETSTAT")
            cpu = server.cpu_ns()
            count = server.ask(request(command))
            time.sleep(FREEING_S)
            figures[command] = int(server.info("stats")["tick_busiest_us"]) / 1000, (server.cpu_ns() - cpu) / 1e9, count
            server.ask("DEL made")
    finally:
        server.stop()
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="build/leaderboard-server")
    parser.add_argument("--base", help="another version of the server")
    parser.add_argument("--members", type=int, default=1500000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--settings", default="", help="of the servers: --appendonly yes")
    options = parser.parse_args()
    programs = [program for program in (options.base, options.server) if program]
    rounds = {program: [] for program in programs}
    for number in range(options.rounds):
        for program in programs:
            rounds[program].append(measure(options, program))
            say(f"round {number + 1}: {program}: {rounds[program][-1]}")
    rows = []
    for command in COMMANDS:
        cells = [[statistics.median(figures[command][i] for figures in rounds[program]) for i in (0, 1)] for program in programs]
        rows.append([command, rounds[options.server][0][command][2],
                     *(f"{cell[i]:.2f}" for i in (0, 1) for cell in cells),
                     *(f"{cells[-1][i] / cells[0][i]:.2f}" for i in (0, 1) if options.base)])
    names = ["base", "this"] if options.base else ["this"]
    table = markdown_table(["", "members", *(f"busiest tick, ms: {name}" for name in names),
                            *(f"CPU, s: {name}" for name in names),
                            *(("tick, ratio", "CPU, ratio") if options.base else ())], rows)
    path = Path(__file__).parent / "results" / f"{datetime.date.today().isoformat()}-stores.md"
    path.write_text(f"""# What is stored of many members: ticks and CPU

- Machine: {machine()} (nothing is pinned here)
- Two boards of {options.members:,} members, a third in both; medians of {options.rounds} rounds; settings: {options.settings or "none"}
- Load of the machine at the end, from other work too: {os.getloadavg()[0]:.1f}: ticks are of CPU, not seconds

{table}
""")
    say(path.read_text())


if __name__ == "__main__":
    main()
