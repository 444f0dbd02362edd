#!/usr/bin/env python3
"""Instructions per operation of the server's own code, and how they differ from the baseline.

    make bench-regress              compare with bench/regress.txt; more than 5% above it fails
    make bench-regress-update       what is counted now is the baseline from here on
    bench/regress.py --stages       where the instructions of an operation go, by callgrind's counts

Callgrind runs build/bench/regress, whose work is the same each time; so the counts are, too, and a
difference comes from the code, the compiler or its flags. Counts of another compiler, or of another
major version, are shown and fail nothing.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BASELINE = Path(__file__).with_name("regress.txt")
COUNTED = "regress_run"
WORSE_MAX = 0.05

CALLERS_KEPT = 12

STAGED_ROWS = ["ZADD, random update", "ZINCRBY 3", "ZREVRANK", "ZSCORE"]
# An instruction belongs to the first of these that is among the functions being run; so what
# fetching ahead looks up is not counted as looking up.
OUTER_STAGES = [
    ("parse", r"resp_parse|command_find_request"),
    ("fetch ahead, in groups of 16", r"lookahead_entries"),
]
# Else to the innermost of these.
INNER_STAGES = [
    ("look up: the board, then its member", r"registry_find\w*|board_find|board_look_up|board_locate"),
    ("locate: a rank, or a key's place", r"board_rank\w*|board_place\w*|skiplist_(rank|place\w*)"),
    ("change: shift, insert, remove", r"board_put\w*|board_move|board_add|board_remove\w*"),
    ("reply", r"reply_integer|reply_decimal"),
]
REST = "the rest: dispatch, arguments, counting"


class Part:
    """One file of callgrind's: the instructions of each function, by the functions around it."""

    def __init__(self, path):
        self.total, self.instructions = 0, {}
        names, function, is_call = {}, None, False
        for line in path.read_text().splitlines():
            kind, _, value = line.partition("=")
            if kind in ("fn", "cfn"):
                number, _, name = value.partition(" ")
                names.setdefault(number, name)
                function = number if kind == "fn" else function
            elif kind == "calls":
                is_call = True  # the next line counts what is called: that has lines of its own
            elif re.match(r"[-+*\d]", line):
                if not is_call:
                    self.instructions[function] = (self.instructions.get(function, 0)
                                                   + int(line.split()[-1]))
                is_call = False
            elif line.startswith("totals: "):
                self.total = int(line.split()[1])
        # "block_find'board_locate'board_rank'..."
        self.instructions = {tuple(names[number].split("'")): count
                             for number, count in self.instructions.items()}


def count(program):
    """Returns the compiler's name, and rows: [(name, operations, Part)]."""
    with tempfile.TemporaryDirectory(prefix="leaderboard-regress-") as directory:
        out = Path(directory) / "out"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={COUNTED}",
             f"--dump-after={COUNTED}", f"--separate-callers={CALLERS_KEPT}",
             f"--callgrind-out-file={out}", program],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{program} under callgrind: {done.stdout}{done.stderr}")
        compiler, *lines = done.stdout.splitlines()
        rows = []
        for index, line in enumerate(lines, 1):
            name, operations = line.split("\t")
            rows.append((name, int(operations), Part(out.with_name(f"out.{index}"))))
    return compiler, rows


def stage_of(functions):
    """functions: the one that runs, its caller, and so on."""
    for title, pattern in OUTER_STAGES:
        if any(re.fullmatch(pattern, function) for function in functions):
            return title
    for function in functions:
        for title, pattern in INNER_STAGES:
            if re.fullmatch(pattern, function):
                return title
    return REST


def stages_of(part, operations):
    """Instructions per operation by stage."""
    sums = {}
    for functions, instructions in part.instructions.items():
        stage = stage_of(functions)
        sums[stage] = sums.get(stage, 0) + instructions / operations
    return sums


def print_stages(rows):
    shown = {name: stages_of(part, operations) for name, operations, part in rows
             if name in STAGED_ROWS}
    print("| instructions per operation | " + " | ".join(shown) + " |")
    print("|---" + "|---:" * len(shown) + "|")
    for title in [title for title, _ in OUTER_STAGES + INNER_STAGES] + [REST]:
        cells = (f"{sums[title]:,.0f}" if title in sums else "" for sums in shown.values())
        print(f"| {title} | " + " | ".join(cells) + " |")
    print("| all | " + " | ".join(f"**{sum(sums.values()):,.0f}**" for sums in shown.values())
          + " |")


def read_baseline():
    compiler, counts = "", {}
    for line in BASELINE.read_text().splitlines() if BASELINE.exists() else []:
        name, _, value = line.partition("\t")
        if name == "compiler":
            compiler = value
        elif value:
            counts[name] = float(value)
    return compiler, counts


def write_baseline(compiler, counts):
    lines = ["# Instructions per operation, written by make bench-regress-update.",
             f"compiler\t{compiler}"]
    lines += [f"{name}\t{value:.1f}" for name, value in counts.items()]
    BASELINE.write_text("\n".join(lines) + "\n")
    print(f"written: {BASELINE}")


def compare(compiler, counts):
    """Print the table; returns the names of the rows that are worse."""
    base_compiler, base = read_baseline()
    worse = []
    print(f"| {'instructions per operation, ' + compiler:42} | baseline |      now |   change |")
    print(f"|{'-' * 44}|---------:|---------:|---------:|")
    for name, value in counts.items():
        if name not in base:
            print(f"| {name:42} |          | {value:8,.0f} |      new |")
            continue
        change = round(value / base[name] - 1, 4) + 0.0  # no -0.0%
        print(f"| {name:42} | {base[name]:8,.0f} | {value:8,.0f} | {change:+8.1%} |")
        if change > WORSE_MAX:
            worse.append(name)
    if compiler != base_compiler:
        print(f"The baseline is {base_compiler or 'missing'}: nothing is held against it.")
        return []
    return worse


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bench/regress")
    parser.add_argument("--update", action="store_true", help="rewrite the baseline")
    parser.add_argument("--stages", action="store_true", help="print the stages as well")
    return parser.parse_args()


def main():
    options = parse_options()
    compiler, rows = count(options.program)
    counts = {name: part.total / operations for name, operations, part in rows}
    worse = compare(compiler, counts)
    if options.stages:
        print()
        print_stages(rows)
    if options.update:
        write_baseline(compiler, counts)
    elif worse:
        sys.exit(f"more than {WORSE_MAX:.0%} above the baseline: " + "; ".join(worse))


if __name__ == "__main__":
    main()
