"""full.py's part `players`: one player on a million boards, and how long the commands that visit all
of them hold up everybody else.

Such a command runs in steps between the other clients' commands. PINGs of another client, from the
other core, say how long it was before the server answered again; the longest tick, in CPU time of
the engine's thread, says how long a step takes where nothing else takes the processor. As root,
`chrt -f 10` before the command keeps the machine's other programs away from both cores."""
import json
import subprocess
import time

import plot
from servers import OURS, SETTLE_S, cores, markdown_table, pinned, say

MILLION = 1000000
COMMANDS = ("LB.WHERE nobody", "LB.WHERE kim MATCH board:77*", "LB.BAN leo MATCH board:*",
            "LB.MOVE kim zoe MATCH board:*", "LB.FORGET zoe", "LB.FORGET ann ALL")
# Until one has shrunk: the board's best tenth stays.
CUT = "LB.ALTER large CAP"
QUIET_MS = 2000
AFTER_S = 1


def run_stall(part, server, command):
    program = part.generator.directory / "stall"
    options = ["--port", str(server.port), "--quiet", str(QUIET_MS), "--seconds", str(AFTER_S)]
    done = subprocess.run([program, *options, *command.split()], stdout=subprocess.PIPE, text=True,
                          check=True, preexec_fn=pinned(cores()[1]))
    return json.loads(done.stdout)


def measure_one(part, server, command):
    server.ask("CONFIG RESETSTAT")
    figures = run_stall(part, server, command)
    stats = server.info("stats")
    figures["tick_us"] = int(stats["tick_longest_us"])
    figures["tick_cpu_us"] = int(stats["tick_longest_cpu_us"])
    say(f"  {command:36} {figures['longest_us'] / 1000:8.2f} ms,"
        f" tick {figures['tick_cpu_us'] / 1000:.2f} ms of CPU")
    return figures


def measure(part):
    count = part.scaled(MILLION)
    server = part.start([OURS])[OURS]
    for player in ("kim", "zoe", "ann", "leo"):
        part.generator.run(server, f"ZADD board:__mixed_int__ __rand_int__ {player}", count, count)
    part.generator.run(server, "ZADD large __rand_int__ user:__mixed_int__", count, count)
    time.sleep(SETTLE_S)
    rows = [{"title": command, "servers": {OURS: measure_one(part, server, command)}}
            for command in (*COMMANDS, f"{CUT} {count // 10}")]
    lines = []
    for row in rows:
        cell = row["servers"][OURS]
        lines.append([f"`{row['title']}`"] + [f"{cell[name] / 1000:.2f}" for name in (
            "command_us", "tick_cpu_us", "tick_us", "longest_us", "before_longest_us")])
    head = ["command", "the command, ms", "longest tick, ms of CPU", "longest tick, ms",
            "longest PING, ms", "longest PING before it, ms"]
    subtitle = (f"{count:,} boards with four players each, and one with {count:,} members;"
                " PINGs of another client while a command runs")
    part.write("players", "One player on many boards",
               ["The wait that is the machine's own is in the last column, and counts in the two"
                " before it"],
               markdown_table(head, lines), plot.of_stalls, part.results(subtitle, stalls=rows))
