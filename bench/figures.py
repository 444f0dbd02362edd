#!/usr/bin/env python3
"""Puts tables of results into docs/internals/benchmarks.md, so that each figure there is one of a run.

    bench/figures.py bench/results/2026-11-26-side.json bench/results/2026-11-26-memory.json

A result's part (side, memory, churn) is the place: what is between `<!-- figures: side -->` and
`<!-- end of figures -->` is replaced. Prints how many times less CPU our server takes than the best of
the others, which that page and the READMEs tell.
"""
import json
import re
import sys
import textwrap
from pathlib import Path

from servers import BASE, OURS, markdown_table

WIDTH = 110
PAGE = Path(__file__).resolve().parent.parent / "docs" / "internals" / "benchmarks.md"
SHOWN = ("ping", "zadd", "zincrby", "zrevrank", "zscore", "top100", "page300", "deep10", "byscore",
         "ping-1", "plain-zadd", "plain-zincrby", "plain-zrevrank", "plain-zscore", "plain-top10",
         "plain-top100", "plain-deep10", "plain-byscore")
WORDS = {
    "side": "One board of {members:,} members, {clients} clients, pipeline {pipeline}: {servers},"
            " in turns in one run of {date}. `us` is the server's CPU time per command in"
            " microseconds; only the ratios carry over to other machines. `make bench` repeats the"
            " measurement ([all rows]({link})).",
    "memory": "Resident memory of one board of {members} members unless said, {servers}, {date}"
              " ([how]({link})):",
    "churn": "Nine tenths of {members} members removed at random and put back, {cycles} times:"
             " {servers}, {date} ([how]({link})):",
    "head": ("command", "{title}, us", "times less than the best of the others"),
    "memory_head": "bytes a member, with its name",
}


def titles_of(results):
    """The others first, ours last."""
    names = [name for name in results["versions"] if name != OURS] + [OURS]
    return {name: f"{name} {results['versions'][name]}" for name in names}


def quoted(title):
    """The command as code."""
    command, comma, rest = title.partition(", ")
    return f"`{command}`{comma}{rest}"


def first_words(rows):
    """Rows in which another server has the lowest figure. rows: (title, {server: figure})."""
    lost = []
    for title, cells in rows:
        best = min(cells, key=cells.get)
        if best != OURS:
            lost.append(f"{title} ({best} {cells[best]:.2f}, {OURS} {cells[OURS]:.2f})")
    return f"Not first: {'; '.join(lost)}" if lost else ""


def best_other(cells):
    return min(figure for name, figure in cells.items() if name != OURS)


def cells_of(row):
    return {name: cell["us"] for name, cell in row["servers"].items()}


def side_table(results):
    titles = titles_of(results)
    rows = {row["name"]: row for row in results["rows"]}
    rows = [rows[name] for name in SHOWN if name in rows]
    command, figure, ratio = WORDS["head"]
    lines = []
    for row in rows:
        cells = cells_of(row)
        lines.append([quoted(row["title"])] + [f"{cells[name]:.2f}" for name in titles]
                     + [f"**{best_other(cells) / cells[OURS]:.2f}**"])
    table = markdown_table([command, *(figure.format(title=title) for title in titles.values()),
                            ratio], lines)
    return table, first_words([(quoted(row["title"]), cells_of(row)) for row in rows])


def bytes_table(results):
    titles = titles_of(results)
    rows = list(results["memory"].items())
    table = markdown_table([WORDS["memory_head"], *titles.values()],
                           [[title] + [f"{cells[name]:.1f}" for name in titles]
                            for title, cells in rows])
    return table, first_words(rows)


def facts(results, path):
    others = [title for name, title in titles_of(results).items() if name != OURS]
    members = re.search(r"([\d,]+) members", results.get("subtitle", ""))
    members = results.get("members", members.group(1) if members else "")
    counts = {len(points) - 1 for points in results.get("churn", {BASE: []}).values()}
    cycles = str(max(counts)) if len(counts) == 1 else f"{min(counts)}–{max(counts)}"
    return {"members": members, "clients": results.get("clients"), "cycles": cycles,
            "pipeline": results.get("pipeline"), "servers": ", ".join([*others, titles_of(results)[OURS]]),
            "date": path.stem[:10], "link": f"../../bench/results/{path.stem}.md"}


def block(part, results, path):
    table, first = (side_table if part == "side" else bytes_table)(results)
    texts = [WORDS[part].format(**facts(results, path)), table, first]
    return "\n\n".join(text if text.startswith("|") else textwrap.fill(text, WIDTH) for text in texts if text)


def replace(part, text, stem):
    place = re.compile(rf"(<!-- figures: {part} -->\n).*?(<!-- end of figures -->)", re.DOTALL)
    old = PAGE.read_text(encoding="utf-8")
    if not place.search(old):
        sys.exit(f"{PAGE.name} has no place for {part}")
    new = place.sub(lambda found: f"{found.group(1)}{text}\n{found.group(2)}", old)
    if part == "side":  # its rows and its plot
        new = re.sub(r"bench/results/[\d-]{10}-side(?=\.)", f"bench/results/{stem}", new)
    PAGE.write_text(new, encoding="utf-8")


def say_ratios(results):
    for is_plain in (False, True):
        ratios = {row["name"]: best_other(cells_of(row)) / cells_of(row)[OURS]
                  for row in results["rows"] if row["name"] in SHOWN
                  and not row["name"].startswith("ping")
                  and row["name"].startswith("plain-") == is_plain}
        if ratios:
            least, most = min(ratios, key=ratios.get), max(ratios, key=ratios.get)
            print(f"{'no pipeline' if is_plain else 'pipelined'}: {ratios[least]:.2f} ({least}) to"
                  f" {ratios[most]:.2f} ({most}) times less CPU than the best of the others")


def main():
    paths = [Path(argument) for argument in sys.argv[1:]]
    if not paths:
        sys.exit(__doc__)
    for path in paths:
        part = path.stem[11:]
        results = json.loads(path.read_text(encoding="utf-8"))
        if part not in ("side", "memory", "churn"):
            sys.exit(f"{path}: not a result of side, memory or churn")
        replace(part, block(part, results, path), path.stem)
        if part == "side":
            say_ratios(results)


if __name__ == "__main__":
    main()
