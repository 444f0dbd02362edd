"""Figures of many rounds as lines and tables."""
from collections import Counter

import faults

ORDER = [fault.__name__ for fault in faults.WEIGHTS]
WORDS = {fault.__name__: " ".join(fault.__doc__.split()) for fault in faults.WEIGHTS}


def acknowledged(figures):
    return figures.get("writes ok", 0)


def line(row):
    """One round, for people."""
    figures = row["figures"]
    told = (f"  {row['kind']:17} {figures.get('failovers', 0)} failovers, "
            f"{row['unavailable_s']:6.2f} s without, {acknowledged(figures):6} acknowledged, "
            f"{figures.get('lost', 0)} lost, {figures.get('stale', 0)} stale, "
            f"{figures.get('out of order', 0)} out of order, "
            f"{figures.get('sent again', 0)} sent again and counted, {figures.get('twice', 0)} twice, "
            f"{figures.get('unanswered', 0)} done without an answer, "
            f"{figures.get('unanswered in time', 0)} behind the client's time limit, "
            f"limited user {figures.get('limited ok', 0)} ok {figures.get('limited refused', 0)} refused "
            f"{figures.get('without a right', 0)} without a right, {row.get('seconds', 0):.0f} s")
    if row["trouble"] or row["found"] or figures.get("diverged"):
        told += "".join(f"\n      {event}" for event in row["events"])
    told += "".join(f"\n      ! {text}" for text in row["found"])
    if row["trouble"]:
        told += "\n      ! " + row["trouble"].strip().replace("\n", "\n        ")
    return told


def cells(name, rows):
    figures = Counter()
    for row in rows:
        figures.update(row["figures"])
    gaps = sorted(row["unavailable_s"] for row in rows)
    wrong = sum(bool(row["trouble"] or row["figures"].get("diverged")) for row in rows)
    return (name, f"{len(rows)}", f"{figures['failovers']}", f"{gaps[len(gaps) // 2]:.1f}",
            f"{gaps[-1]:.1f}", f"{acknowledged(figures):,}", f"{figures['lost']:,}",
            f"{figures['stale']:,}", f"{figures['out of order']:,}", f"{wrong}")


def markdown(rows):
    """A row for each kind, and one for all."""
    lines = [("what happens", "rounds", "failovers", "s without writes, median", "longest",
              "writes acknowledged", "lost", "stale reads", "out of order", "not healed")]
    for kind in ORDER:
        of_kind = [row for row in rows if row["kind"] == kind]
        if of_kind:
            lines.append(cells(WORDS[kind], of_kind))
    if rows:
        lines.append(cells("all", rows))
    shown = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([shown[0], "|---|" + "---:|" * (len(lines[0]) - 1), *shown[1:]])


def summary(rows):
    figures = Counter()
    for row in rows:
        figures.update(row["figures"])
    return (f"{acknowledged(figures)} commands, acknowledged writes in {len(rows)} rounds with "
            f"{figures['failovers']} failovers: {figures['lost']} lost, {figures['stale']} stale reads")
