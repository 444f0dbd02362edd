"""The pages of docs/migrate/, taken apart: their fenced blocks, their tables of commands.

What a test runs is noted, so that a block or a table that nobody ran is found.
"""
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "migrate"
CHOOSER = "README"
TABLE_HEAD = "| today | here |"


class Page:
    def __init__(self, path):
        self.name = path.name
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.used = set()

    def blocks(self, language):
        """The fenced blocks of a language, "" for transcripts."""
        found, inside = [], None
        for line in self.lines:
            if line.startswith("```") and inside is None:
                inside = (line[3:], [])
            elif line.startswith("```"):
                if inside[0] == language:
                    found.append("\n".join(inside[1]) + "\n")
                inside = None
            elif inside is not None:
                inside[1].append(line)
        return found

    def block(self, language, index):
        self.used.add((language, index))
        return self.blocks(language)[index]

    def transcript(self, index):
        """(command, the lines of its answer) of a transcript."""
        steps = []
        for line in self.block("", index).splitlines():
            if line.startswith("> "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        return steps

    def commands(self):
        """What stands in backticks in the right column of the table."""
        self.used.add("table")
        return [command for line in self.table()
                for command in re.findall("`([^`]*)`", line.split(" | ")[-1])]

    def table(self):
        if TABLE_HEAD not in self.lines:
            return []
        rows = self.lines[self.lines.index(TABLE_HEAD) + 2:]
        return rows[:next((i for i, line in enumerate(rows) if not line.startswith("|")), len(rows))]

    def layouts(self):
        """The layouts of the page's boards."""
        return [line.split(" ", 3)[3] for block in self.blocks("") for line in block.splitlines()
                if line.startswith("> LB.CREATE ")]

    def prose(self):
        """All of it on one line."""
        return " ".join(" ".join(self.lines).split())

    def has_clock(self):
        return any(re.match(r"# \d{4}-", line) for line in self.lines)

    def unused(self):
        there = {(language, i) for language in ("", "python", "sh")
                 for i in range(len(self.blocks(language)))}
        there |= {"table"} if self.table() else set()
        if self.has_clock():
            there -= {("", i) for i in range(len(self.blocks("")))}  # tests/integration/docs.c replays them
        return sorted(map(str, there - self.used))


def read():
    """The English pages by their names."""
    return {path.stem: Page(path) for path in sorted(FOLDER.glob("*.md")) if not path.stem.endswith(".zh-CN")}
