"""Random commands from the syntax that docs/commands.md shows, right or damaged.

    "ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]"  ->  [b"ZMPOP", b"2", b"daily:1", b"m:1", b"MIN"]
"""
import re
import string

from hosts import ROOT

KEYS = [b"daily:1", b"daily:2", b"daily:3", b"m:1", b"m:2", b"b", b"daily:p", b"daily:{t}p", b"other", b"text",
        b"daily:1@2026-11-22T10"]
MEMBERS = [b"ann", b"bob", b"kim", b"zoe", *(b"user:%d" % i for i in range(40))]
FIELDS = [b"points", b"score", b"cents", b"time", b"a", b"member", b"key"]
TAGS = [b"country", b"clan"]
VALUES = [b"", b"DE", b"FR", *(b"clan %d" % i for i in range(20))]
NUMBERS = [b"0", b"1", b"2", b"3", b"7", b"10", b"99", b"-1", b"-2", b"0.5", b"12.25", b"4294967295"]
HOSTILE = [
    b"", b" ", b"nan", b"inf", b"-inf", b"+inf", b"-nan", b"(1", b"(inf", b"[a", b"(a", b"+", b"-", b"-0", b"+5",
    b"1e400", b"1e18", b"1e-400", b"0x10", b"007", b"1 ", b" 1", b"1.5", b"9223372036854775807",
    b"-9223372036854775808", b"9223372036854775808", b"18446744073709551615", b"18446744073709551616",
    b"4294967296", b"2147483648", b"-2147483649", b"999999999999999999999999999999", b"0." + b"3" * 400,
    b"\x00", b"\xff\xfe", b"a\r\nb", b"*", b"[", b"%s%n", b"@", b"x@", b"@2026", b"x" * 64, b"x" * 255,
    b"x" * 256, b"x" * 4096, b"y" * 65535, b"y" * 65536, b"z" * 70000, b"*3\r\n$1\r\n", b"LAYOUT", b"FIELD",
    b"WITHSCORES", b"LIMIT", b"INCR", b"AT", b"NX", b"GT", b"COUNT", b"WEIGHTS", b"AGGREGATE", b"DATA", b"SINCE", b"LAST",
    b"PACKED", b"-1 -1", b"1970-01-01", b"9999-12-31T23:59:59Z", b"Europe/Berlin", b"../../etc/passwd"]
TIMES = [b"2026-11-22T10:00:00Z", b"2026-11-22", b"+5m", b"NOW", b"1795176000", b"1795176000000", b"0", b"NONE"]
WORDS = {  # by what the syntax calls the argument
    "member": MEMBERS, "field": FIELDS, "name": FIELDS + [b"default", b"money"] + 5 * TAGS, "time": TIMES,
    "value": VALUES, "id": [b"%d" % i for i in range(30)],
    "start": TIMES + NUMBERS, "end": TIMES, "date": TIMES, "unix-time-milliseconds": [b"1795176000000", b"0"],
    "scale": [b"0", b"2", b"9"], "bits": [b"1", b"8", b"20", b"22", b"32", b"40", b"41", b"64"],
    "cap": [b"1", b"5", b"50"], "limit": [b"1", b"5", b"50"], "q": [b"0", b"0.5", b"1", b"0.999"],
    "weekday": [b"MON", b"SUN"], "hour": [b"0", b"23", b"24"], "zone": [b"UTC", b"Europe/Berlin", b"+02:00"],
    "pattern": [b"*", b"user:*", b"daily:*", b"h:{member}", b"{player}"], "cursor": [b"0"],
    "timeout": [b"0.001", b"0.01"], "ttl": [b"0", b"5", b"100000"], "units": [b"1", b"2"],
    "periods": [b"0", b"1", b"3"], "seconds": [b"1", b"1000"], "operator": [b"INCR"],
    "min": NUMBERS + [b"-inf", b"(2", b"-", b"[a"], "max": NUMBERS + [b"+inf", b"(2", b"+", b"[z"],
}
KEY_WORDS = {"key", "destination", "dst", "src", "source", "archive", "newkey"}


def parse(text):
    """A syntax as nested lists: ("all", parts), ("one", parts), ("maybe", part), ("many", part), word."""
    tokens = re.findall(r"\[|\]|<|>|\||\.\.\.|[^\s\[\]<>|]+", text)

    def alternatives(at, closing):
        choices, parts, repeats = [], [], False
        while at < len(tokens) and tokens[at] != closing:
            token = tokens[at]
            at += 1
            if token == "|":
                choices.append(("all", parts))
                parts = []
            elif token == "...":
                repeats = True
            elif token in "[<":
                inner, again, at = alternatives(at, "]" if token == "[" else ">")
                parts.append(inner if token == "<" else ("many" if again else "maybe", inner))
            else:
                parts.append(token)
        choices.append(("all", parts))
        return (choices[0] if len(choices) == 1 else ("one", choices)), repeats, at + 1

    return alternatives(0, None)[0]


def read_page():
    """The syntax of every command, by name."""
    page = (ROOT / "docs" / "commands.md").read_text()
    return {found.group(1): parse(found.group(2) or "")
            for found in re.finditer(r"^### (\S+)\n(?:    \S+ (.*)\n)?", page, re.M)}


class Grammar:
    def __init__(self, draw):
        self.draw, self.syntax = draw, read_page()

    def word(self, name):
        draw = self.draw
        if draw.random() < 0.02:
            return draw.choice(HOSTILE)
        if name in KEY_WORDS:
            return draw.choice(KEYS)
        return draw.choice(WORDS.get(name, NUMBERS))

    def expand(self, part, out):
        draw = self.draw
        if isinstance(part, str):
            is_literal = part == part.upper() and part[0] in string.ascii_uppercase
            out.append((part, part.encode() if is_literal else self.word(part)))
        elif part[0] == "all":
            for each in part[1]:
                self.expand(each, out)
        elif part[0] == "one":
            self.expand(draw.choice(part[1]), out)
        elif draw.random() < (0.3 if part[0] == "maybe" else 0.5):
            for _ in range(1 if part[0] == "maybe" else draw.choice([1, 1, 2, 3, 8, 70])):
                self.expand(part[1], out)

    def count(self, words):
        """Numbers that say how many arguments follow are right, mostly."""
        for i, (name, _) in enumerate(words):
            if name in ("numkeys", "n") and i + 1 < len(words) and self.draw.random() < 0.95:
                same = 1
                while i + 1 + same < len(words) and words[i + 1 + same][0] == words[i + 1][0]:
                    same += 1
                words[i] = (name, b"%d" % same)

    def damage(self, words):
        draw = self.draw
        for _ in range(draw.choice([1, 1, 1, 2, 5])):
            at = draw.randrange(len(words)) if words else 0
            act = draw.randrange(5)
            if act == 0 and words:
                words[at] = draw.choice(HOSTILE)
            elif act == 1 and words:
                del words[at]
            elif act == 2:
                words.insert(at, draw.choice(HOSTILE + NUMBERS + MEMBERS))
            elif act == 3 and words:
                words.insert(at, words[draw.randrange(len(words))])
            elif words:
                other = draw.randrange(len(words))
                words[at], words[other] = words[other], words[at]

    def arguments(self, name):
        """Those of the command: right nine times of ten."""
        expanded = []
        self.expand(self.syntax[name], expanded)
        self.count(expanded)
        words = [word for _, word in expanded]
        if self.draw.random() < 0.1:
            self.damage(words)
        return words
