"""Random commands from the syntax that docs/commands.md shows, right or damaged.

    "ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]"  ->  [b"ZMPOP", b"2", b"daily:1", b"m:1", b"MIN"]

With a focus, which is some of FEATURES, most of what is drawn is about these.
"""
import fnmatch
import re
import string

from hosts import ROOT

KEYS = [b"daily:1", b"daily:2", b"daily:3", b"m:1", b"m:2", b"b", b"daily:p", b"daily:{t}p", b"other", b"text",
        b"daily:1@2026-11-22T10", b"h:ann"]
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
SCORES = [b"0", b"1", b"2", b"3", b"7", b"10", b"40", b"99", b"12.25", b"-1"]
DATES = [b"2026-11-22T10:00:00Z", b"1795176000000", b"1795262400000", b"NONE"]
WORDS = {  # by what the syntax calls the argument, or also what is before it
    "member": MEMBERS, "to": MEMBERS, "from": MEMBERS, "field": SCORES, "score": SCORES, "n field": FIELDS,
    "value field": FIELDS, "FIELD name": FIELDS, "LAYOUT name": [b"default", b"money"], "TAG name": TAGS,
    "WHERE name": TAGS, "WHERENOT name": TAGS, "BY name": TAGS, "name": FIELDS + [b"default", b"money"] + 5 * TAGS,
    "value": VALUES, "id": [b"%d" % i for i in range(30)], "time": TIMES, "OPENS time": DATES, "CLOSES time": DATES,
    "start": TIMES + NUMBERS, "end": TIMES, "date": TIMES, "FROM date": [b"2026-11-22", b"2025-12-30"],
    "unix-time-milliseconds": [b"1795176000000", b"0"], "scale": [b"0", b"2", b"9"],
    "bits": [b"1", b"8", b"20", b"22", b"32", b"40", b"41", b"64"], "STALE count": [b"1", b"2", b"10"],
    "cap": [b"1", b"5", b"50"], "limit": [b"1", b"5", b"50"], "q": [b"0", b"0.5", b"1", b"0.999"],
    "weekday": [b"MON", b"SUN"], "hour": [b"0", b"23", b"24"], "zone": [b"UTC", b"Europe/Berlin", b"+02:00"],
    "pattern": [b"*", b"user:*", b"daily:*", b"h:{member}", b"{player}"], "cursor": [b"0"],
    "HSET pattern": [b"h:*", b"h:*", b"*"], "DATA pattern": [b"h:*"], "data": [b"h:*", b"h:*", b"*"],
    "timeout": [b"0.001", b"0.01"], "ttl": [b"0", b"5", b"100000"], "units": [b"1", b"2"],
    "tiers": [b"1", b"2", b"3"], "tier": [b"0", b"1", b"2"], "members": [b"1", b"2", b"5"],
    "half-life": [b"1", b"30", b"1000"], "window": [b"2", b"3", b"NONE"], "weight": [b"1", b"2", b"0.5"],
    "periods": [b"0", b"1", b"3"], "seconds": [b"1", b"1000"], "operator": [b"INCR"],
    "min": NUMBERS + [b"-inf", b"(2", b"-", b"[a"], "max": NUMBERS + [b"+inf", b"(2", b"+", b"[z"],
}
# By the words of the syntax and the commands that are about them.
FEATURES = {
    "cap": ["CAP", "LIMIT"],
    "keep-best": ["KEEP", "BEST", "LAST"],
    "tags": ["TAG", "WHERE", "WHERENOT", "WITHIN", "TAGS", "BY", "LB.TAG", "LB.TAGS", "LB.COUNT"],
    "stale": ["STALE", "TOUCH"],
    "settle": ["SETTLE", "UNSETTLED", "LB.SETTLE", "ARCHIVE"],
    "period": ["PERIOD", "ARCHIVE", "EVERY", "ON", "FROM", "TZ"],
    "copied-period": ["COPY", "ARCHIVED", "PERIOD", "FROZEN", "WRITABLE"],
    "window": ["WINDOW", "SUM", "PERIOD"],
    "closed": ["FREEZE", "THAW", "OPENS", "CLOSES"],
    "decay": ["DECAY", "LB.HIST"],
    "fields": ["FIELD", "TIME", "LATEST", "ASC", "DESC", "SIGNED", "SCALE", "LAYOUT", "START", "END"],
    "league": ["LB.LEAGUE *", "ROOM", "TIERS", "UP", "DOWN", "IDLE"],
    "once": ["ONCE"],
    "member-data": ["HSET", "DATA", "FIELDS", "HSET*", "HDEL", "HMSET", "HINCR*"],
    "since": ["SINCE", "LB.GET", "LB.RANGE", "LB.AROUND"],
    "times": ["AT", "KEEPTIME", "TOUCH"],
    "packed": ["PACKED", "WITHKEY", "LB.CUTS", "LB.ABOVE", "LB.QUANTILE"],
    "forget": ["LB.FORGET", "LB.WHERE"],
    "ban": ["LB.BAN", "LB.UNBAN", "LB.BANS"],
    "move": ["LB.MOVE"],
    "alter": ["LB.ALTER", "LB.INFO", "LB.LIST"],
    "roll": ["LB.ROLL"],
    "submit": ["LB.SUBMIT", "INCR", "SET"],
    "combine": ["ZUNION*", "ZINTER*", "ZDIFF*", "ZRANGESTORE", "AGGREGATE", "WEIGHTS"],
    "pop": ["ZPOP*", "ZMPOP", "BZ*"],
    "remove": ["ZREM*", "LB.LEAGUE REMOVE", "DEL", "UNLINK"],
    "keys": ["COPY", "RENAME", "RENAMENX", "MOVE", "SWAPDB", "DUMP", "RESTORE"],
    "expiry": ["EXPIRE*", "PEXPIRE*", "PERSIST", "EX"],
    "transaction": ["MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"],
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
            for found in re.finditer(r"^### (.+)\n(?:    \1 (.*)\n)?", page, re.M)}


class Grammar:
    """features: some of FEATURES; favourite: every second key."""

    def __init__(self, draw, features, favourite):
        self.draw, self.syntax, self.favourite = draw, read_page(), favourite
        self.focus = [word for feature in features for word in FEATURES[feature]]
        self.has_hostile = True
        self.literals = {}  # of the parts of a syntax, by their id

    def is_about(self, name):
        """Is a word, or a command, in the focus?"""
        return any(fnmatch.fnmatchcase(name, word) for word in self.focus)

    def concerns(self, name):
        return self.is_about(name) or any(map(self.is_about, self.literals_of(self.syntax[name])))

    def literals_of(self, part):
        if isinstance(part, str):
            return {part} & {part.upper()} if part[0] in string.ascii_uppercase else set()
        if id(part) not in self.literals:
            inner = [part[1]] if part[0] in ("maybe", "many") else part[1]
            self.literals[id(part)] = set().union(*map(self.literals_of, inner))
        return self.literals[id(part)]

    def has_focus(self, part):
        return any(map(self.is_about, self.literals_of(part)))

    def key(self):
        return self.draw.choice([self.favourite, self.draw.choice(KEYS)])

    def word(self, name, before):
        draw = self.draw
        if self.has_hostile and draw.random() < 0.02:
            return draw.choice(HOSTILE)
        if name in KEY_WORDS:
            return self.key()
        return draw.choice(WORDS.get(f"{before} {name}", WORDS.get(name, NUMBERS)))

    def expand(self, part, out):
        draw = self.draw
        if isinstance(part, str):
            before = out[-1][0] if out else ""
            out.append((part, part.encode() if self.literals_of(part) else self.word(part, before)))
        elif part[0] == "all":
            for each in part[1]:
                self.expand(each, out)
        elif part[0] == "one":
            focused = [each for each in part[1] if self.has_focus(each)]
            self.expand(draw.choice(focused if focused and draw.random() < 0.75 else part[1]), out)
        elif draw.random() < (0.7 if self.has_focus(part) else 0.3 if not self.literals_of(part) else 0.08):
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
        if self.has_hostile and self.draw.random() < 0.1:
            self.damage(words)
        return words
