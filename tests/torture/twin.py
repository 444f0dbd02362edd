"""The twin: what boards must hold, in Python, as docs/leaderboards.md and docs/layouts.md say it.

A Board never changes; a command makes another one. So the state after every command can be kept,
which is what a crash is judged by (judge.py).

Times. The server stamps what is written "now" by its own clock, which the twin does not know. It
knows the order: clocks do not run backwards. So a time is an integer either way:

    below NOW     unix milliseconds, as given (AT) or as seen on the server after a restart
    NOW + index   stamped while the command with this index of this player ran
"""
from collections import namedtuple

NOW = 1 << 60
UNIT_MS = {"MS": 1, "S": 1000, "M": 60000, "H": 3600000, "D": 86400000}

Field = namedtuple("Field", "name bits is_ascending is_signed scale")
# What decides a member's place: fields are the stored integers (a SCALE multiplied in).
Entry = namedtuple("Entry", "fields time arrival")
# A point in time or, of a relative EXPIRE, an index and the milliseconds added to when it ran.
Expiry = namedtuple("Expiry", "at_ms index")


class Rules(namedtuple("Rules", "layout fields unit is_latest cap is_best is_created",
                       defaults=(0, False, False))):
    """A board's layout and options."""
    __slots__ = ()

    def lowest(self, i):
        """The lowest value of the field with index i."""
        return -(1 << (self.fields[i].bits - 1)) if self.fields[i].is_signed else 0

    def highest(self, i):
        return (1 << (self.fields[i].bits - self.fields[i].is_signed)) - 1

    def cut(self, time):
        """A time as this layout keeps it: whole units, nothing (0) without a TIME."""
        if self.unit is None:
            return 0
        return time if time >= NOW else time - time % UNIT_MS[self.unit]

    def place(self, entry):
        """Sorts the best first."""
        ranks = tuple(value if field.is_ascending else -value
                      for field, value in zip(self.fields, entry.fields))
        time, arrival = (0 if self.unit is None else entry.time), entry.arrival
        return ranks + ((-time, -arrival) if self.is_latest else (time, arrival))

    def is_better(self, fields, before):
        """KEEP BEST and LB.ADD BEST: strictly better, the time not counted."""
        for field, value, old in zip(self.fields, fields, before):
            if value != old:
                return (value < old) == field.is_ascending
        return False


class Board:
    """The members of a key, its rules and its expiry.

    is_loose: the twin does not know the order of equal scores here (unions), only who has which."""
    __slots__ = ("rules", "members", "expiry", "is_loose", "order_cache")

    def __init__(self, rules, members, expiry=None, is_loose=False):
        self.rules = rules
        self.members = members
        self.expiry = expiry
        self.is_loose = is_loose
        self.order_cache = None

    def but(self, **changes):
        """A board that differs in some attributes."""
        kept = {name: getattr(self, name) for name in ("rules", "members", "expiry", "is_loose")}
        return Board(**{**kept, **changes})

    def order(self):
        """The names, best first."""
        if self.order_cache is None:
            place, members = self.rules.place, self.members
            self.order_cache = sorted(members, key=lambda name: place(members[name]))
        return self.order_cache

    def ascending(self):
        """The names as ZRANGE walks them: from the lowest score."""
        order = self.order()
        return order if self.rules.fields[0].is_ascending else order[::-1]

    def score(self, name):
        return self.members[name].fields[0]

    def cut_to_cap(self):
        """The board after a whole command: who is behind the CAP is gone."""
        if not self.rules.cap or len(self.members) <= self.rules.cap:
            return self
        return self.but(members={name: self.members[name]
                                 for name in self.order()[:self.rules.cap]})

    def remains(self):
        """None when its last member has gone and it does not stay without."""
        return self if self.members or self.rules.is_created else None


class Writing:
    """Members written by one command: begin with a board, put, and take the board at the end."""

    def __init__(self, board, now, arrival):
        self.board, self.rules, self.now = board, board.rules, now
        self.members = dict(board.members)
        self.arrival = arrival
        self.added = self.changed = 0

    def put(self, name, fields, time=None, is_increment=False, is_forced=False):
        """Write a member as every command does: KEEP BEST, and no change where nothing differs.
        is_forced: TOUCH, which lets it come anew. False: left as it was."""
        before = self.members.get(name)
        if before is not None:
            if self.rules.is_best and not is_increment and \
                    not self.rules.is_better(fields, before.fields):
                return False
            same = fields == before.fields
            if same and not is_forced and time in (None, before.time):
                return False
        time = self.rules.cut(self.now if time is None else time)
        if before is None:
            self.added += 1
        else:
            self.changed += 1
        self.arrival += 1
        self.members[name] = Entry(fields, time, self.arrival)
        return True

    def end(self):
        """The board as it is now, its CAP kept; None: there is nothing."""
        return self.board.but(members=self.members).cut_to_cap().remains()


def field(text):
    """FIELD's words behind the word itself."""
    name, bits, *rest = text.split()
    return Field(name, int(bits), "ASC" in rest, "SIGNED" in rest,
                 int(rest[rest.index("SCALE") + 1]) if "SCALE" in rest else 0)


def rules_of(layout, **options):
    """Rules by a layout's text."""
    head, _, time = layout.partition(" TIME ")
    fields = tuple(field(part) for part in head.split("FIELD ")[1:])
    words = time.split()
    return Rules(layout, fields, words[1] if words else None, "LATEST" in words, **options)


DEFAULT = rules_of("FIELD score 33 SIGNED TIME 31 S")

# What LB.CREATE is asked for; all of them hold scores of 0..1000 and more.
CREATED = [rules_of(layout, is_created=True, **options) for layout, options in (
    ("FIELD score 33 SIGNED TIME 31 S", {}),
    ("FIELD score 33 SIGNED TIME 31 S", {"cap": 5}),
    ("FIELD score 33 SIGNED TIME 31 S", {"cap": 8, "is_best": True}),
    ("FIELD points 20 TIME 41 MS", {"is_best": True}),
    ("FIELD points 20 TIME 41 MS LATEST", {}),
    ("FIELD points 12 FIELD ms 20 ASC TIME 32 S", {}),
    ("FIELD points 12 FIELD ms 20 ASC TIME 32 S LATEST", {"cap": 6}),
    ("FIELD lap 30 ASC TIME 34 S", {"is_best": True, "cap": 10}),
    ("FIELD balance 40 SCALE 2 TIME 24 M", {}),
    ("FIELD laps 16 FIELD ms 24 ASC", {"is_best": True}),
    ("FIELD score 64 SIGNED", {}),
    ("FIELD a 12 FIELD b 12 ASC FIELD c 12 TIME 28 M LATEST", {"cap": 12, "is_best": True}),
)]
