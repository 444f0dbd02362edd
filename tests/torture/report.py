"""What is printed: a line for each part while it runs, troubles, and the table of figures."""
import sys
import time

TROUBLE_LINES_MAX = 60
PROGRESS_EVERY_S = 15


class Row:
    """One part's figures. lost: None where the part does not count it."""

    def __init__(self, name, policy, runs, acked, lost, note, trouble=None):
        self.name, self.policy, self.runs, self.acked = name, policy, runs, acked
        self.lost, self.note, self.trouble = lost, note, trouble

    def cells(self):
        return (self.name, self.policy, f"{self.runs:,}", f"{self.acked:,}" if self.acked else "",
                "" if self.lost is None else f"{self.lost:,}",
                "FAILED" if self.trouble else "clean", self.note)


def table(rows):
    """The figures, as a table of Markdown."""
    head = ("test", "policy", "runs", "acknowledged", "lost", "found", "")
    lines = [head] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    shown = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
             for line in lines]
    return "\n".join([shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|",
                      *shown[1:]])


def shorten(text):
    lines = text.splitlines()
    if len(lines) > TROUBLE_LINES_MAX:
        lines = lines[:TROUBLE_LINES_MAX] + [f"... and {len(lines) - TROUBLE_LINES_MAX} lines"]
    return "\n".join(line[:1000] for line in lines)


def say(text):
    print(text, flush=True)


class Progress:
    """A line now and then."""

    def __init__(self, words, total):
        self.words, self.total = words, total
        self.next_at = time.monotonic() + PROGRESS_EVERY_S

    def show(self, done):
        if time.monotonic() >= self.next_at:
            self.next_at += PROGRESS_EVERY_S
            of_all = f" of {self.total}" if self.total >= done else ""
            print(f"  {self.words}: {done}{of_all}", file=sys.stderr, flush=True)
