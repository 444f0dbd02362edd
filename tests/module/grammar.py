"""Random commands from tests/support/grammar.h, by the program beside this one.

    Grammar(draw, ["cap", "tags", "once"], b"b").arguments("ZMPOP")  ->  [b"2", b"daily:1", b"m:1", b"MIN"]

With a focus, which is some of the features, most of what is drawn is about these.
"""
import subprocess

from hosts import ROOT

PROGRAM = ROOT / "build" / "tests" / "module" / "draw"
KEYS = [b"daily:1", b"daily:2", b"daily:3", b"m:1", b"m:2", b"b", b"daily:p", b"daily:{t}p", b"other", b"text",
        b"daily:1@2026-11-22T10", b"h:ann"]


def features():
    return subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.split()


class Grammar:
    """features: at most three; favourite: every second key."""

    def __init__(self, draw, features, favourite):
        self.draw, self.favourite, self.has_hostile = draw, favourite, True
        self.process = subprocess.Popen([PROGRAM, str(draw.randrange(1 << 32)), b",".join(KEYS), favourite, *features],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, verb, name):
        self.process.stdin.write(b"%s %s\n" % (verb, name.encode()))
        self.process.stdin.flush()
        return self.process.stdout.readline()[:-1]

    def end(self):
        self.process.communicate()

    def is_about(self, name):
        """Is a word, or a command, in the focus?"""
        return self.ask(b"about", name) == b"1"

    def concerns(self, name):
        return self.ask(b"concerns", name) == b"1"

    def knows(self, name):
        return self.ask(b"concerns", name) != b"-"

    def key(self):
        return self.draw.choice([self.favourite, self.draw.choice(KEYS)])

    def arguments(self, name):
        """Those of the command: right nine times of ten."""
        read = self.process.stdout.read
        count = int(self.ask(b"any" if self.has_hostile else b"tame", name))
        words = [read(int(self.process.stdout.readline())) for _ in range(count)]
        return words[1 + name.startswith("LB.LEAGUE "):]
