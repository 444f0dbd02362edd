"""A player: one connection of the load, its random commands, and what they must come to.

Keys carry the player's name, so that the order of its own commands decides what they hold. The twin
runs a command when it is made; history keeps every key's boards by the index of the command that
left them so. A command (a MULTI block is one) is all or nothing."""
import random
import time
from decimal import Decimal

import big
import hashes
import resp
import rolling
import twin
from twin import NOW, Board, Expiry, Writing

SLOTS = "abcd"
DATABASES = (0, 1)
FIRST_PRIVATE_DATABASE = 8  # one for each of the first eight players, to be flushed
BIG_PLAYERS = (1,)
SHARED_BOARD, SHARED_MEMBERS = "shared", 8
NAMES = [f"m{i}" for i in range(24)]
AT_FIRST_MS, AT_SPAN_MS = 1622505600000, 90 * 86400000  # June to August 2021
FAR_MS = 86400000
CLOCK_SLACK_MS = 10000  # a tick's time is older than the requests that arrive while it runs
SCORE_LIMIT = 10**8
SECONDS_FIRST_START = "2021-01-01T00:00:00Z"


def now_ms():
    return time.time_ns() // 1000000


class Command:
    """What is sent, how many replies it has, and what the last one must be (None: anything that
    is no error; a function decides)."""
    __slots__ = ("index", "words", "wire", "reply_count", "expected")

    def __init__(self, index, requests, expected):
        self.index = index
        self.words = requests
        self.wire = b"".join(map(resp.encode, requests))
        self.reply_count = len(requests)
        self.expected = expected

    def is_right(self, reply):
        """Is this the reply that the twin has told?"""
        if callable(self.expected):
            try:
                return self.expected(reply)
            except (TypeError, ValueError, AttributeError, KeyError):
                return False  # it is of another shape altogether
        if self.expected is None:
            return not isinstance(reply, resp.Error)
        return reply == self.expected

    def __str__(self):
        return " ; ".join(" ".join(map(str, words)) for words in self.words)


def stored(field, value):
    """A field's integer from a reply."""
    return int(Decimal(value.decode()).scaleb(field.scale)) if field.scale else int(value)


def shown(field, value):
    """A field's integer as a request has it."""
    return str(Decimal(value).scaleb(-field.scale)) if field.scale else value


class Player:
    """state: (database, key) -> Board. history: (database, key) -> [(index, Board or None)], the
    first being what was there at the beginning. acked_count of the commands are answered."""

    def __init__(self, number, seed):
        self.number = number
        self.name = f"p{number:02}"
        self.random = random.Random(f"{seed}/{number}")
        self.arrival = 0
        self.doomed_count = 0
        self.index = -1
        self.known_times = {}  # (symbolic time, unit) -> unix milliseconds, as the server said
        self.others = []
        self.rolling = {}  # key -> RollingBoard
        self.big = big.Big()
        self.operations, self.weights = zip(*(
            (operation, weight) for operation, weight in OPERATIONS
            if number in BIG_PLAYERS or operation is not big.act))
        self.begin({}, {}, 0)

    def begin(self, state, shared, counter):
        """Go on from what a server holds: state, and the values of the shared board."""
        self.known_times.clear()
        self.state = dict(state)
        self.history = {key: [(-1, board)] for key, board in state.items()}
        self.first_index = self.index + 1
        self.acked_index = self.index
        self.promised_index = None  # where not all that was answered is promised to survive
        self.sent_at, self.acked_at = [], []  # seconds, by index - first_index
        self.commands = []
        self.database = 0
        self.shared_base = shared
        self.shared_added = []  # (index, member)
        self.counter_base = counter
        self.counter_history = []  # (index, value)
        self.seen_counter = counter  # the highest value that another player has been shown

    # ---- the twin's side ----

    def key(self, slot):
        return f"{self.name}:{slot}"

    def board(self, key, database=None):
        return self.state.get((self.database if database is None else database, key))

    def put(self, key, board, database=None):
        """The key's board is this from the command on that is being made."""
        place = (self.database if database is None else database, key)
        self.history.setdefault(place, [(-1, None)]).append((self.index, board))
        if board is None:
            self.state.pop(place, None)
        else:
            self.state[place] = board

    def writing(self, key):
        board = self.board(key) or Board(twin.DEFAULT, {})
        return Writing(board, NOW + self.index, self.arrival)

    def finish(self, key, writing):
        self.arrival = writing.arrival
        if writing.added or writing.changed:
            self.put(key, writing.end())

    def pick(self, wants=lambda board: True):
        """A key of this database whose board fits, and the board; else (None, None)."""
        slots = [slot for slot in SLOTS if self.board(self.key(slot)) is not None and
                 wants(self.board(self.key(slot)))]
        if not slots:
            return None, None
        key = self.key(self.random.choice(slots))
        return key, self.board(key)

    def any_key(self):
        return self.key(self.random.choice(SLOTS))

    # ---- what is sent ----

    def next_command(self):
        """Make a command; the twin has run it when this returns."""
        self.index += 1
        made = None
        while made is None:
            operation = self.random.choices(self.operations, self.weights)[0]
            made = operation(self)
        requests, expected = made
        if not isinstance(requests[0], (list, tuple)):
            requests = [requests]
        command = Command(self.index, requests, expected)
        self.commands.append(command)
        return command

    def sent(self, count, at):
        """The latest commands have been sent, all at this time."""
        self.sent_at += [at] * count

    def acknowledged(self, command, at):
        self.acked_index = command.index
        self.acked_at.append(at)

    def sent_seconds(self, index):
        return self.sent_at[index - self.first_index]

    def acked_seconds(self, index):
        """When it was answered; None: it was not."""
        place = index - self.first_index
        return self.acked_at[place] if place < len(self.acked_at) else None

    # ---- times ----

    def is_time(self, entry_time, unit, seen_ms, latest_s):
        """Can a member that the twin stamped so show this time? What was seen once must stay."""
        if unit is None:
            return seen_ms is None
        if entry_time < NOW:
            return seen_ms == entry_time
        known = self.known_times.get((entry_time, unit))
        if known is not None:
            return seen_ms == known
        index = entry_time - NOW
        unit_ms = twin.UNIT_MS[unit]
        earliest = int(self.sent_seconds(index) * 1000) - CLOCK_SLACK_MS
        answered = self.acked_seconds(index)
        latest = int((latest_s if answered is None else answered) * 1000)
        return earliest - earliest % unit_ms <= seen_ms <= latest

    def note_times(self, board, records):
        """These times were shown: from now on no other will do."""
        for record in records:
            entry = board.members[record[0].decode()]
            if entry.time >= NOW:
                self.known_times[entry.time, board.rules.unit] = record[2]

    def is_record(self, board, record, latest_s):
        """Is this the member's record of LB.RANGE (its rank is not looked at)?"""
        entry = board.members.get(record[0].decode())
        return entry is not None and \
            tuple(map(stored, board.rules.fields, record[3:])) == entry.fields and \
            self.is_time(entry.time, board.rules.unit, record[2], latest_s)


def usable(board):
    """May the order of its equals matter?"""
    return not board.is_loose


def is_plain(board):
    return board.rules.layout == twin.DEFAULT.layout


# ---- writes by score ----

def member(player):
    return player.random.choice(NAMES)


def score_in(player, rules):
    low = -50 if rules.fields[0].is_signed else 0
    return player.random.randint(low, 50)  # few values: many ties


def put_score(writing, name, score, is_increment=False):
    before = writing.members.get(name)
    rest = before.fields[1:] if before else (0,) * (len(writing.rules.fields) - 1)
    if before is not None and before.fields[0] == score:
        return False
    return writing.put(name, (score,) + rest, is_increment=is_increment)


def zadd(player):
    key = player.any_key()
    writing = player.writing(key)
    pairs = []
    for _ in range(player.random.choice((1, 1, 1, 2, 3, 6))):
        score, name = score_in(player, writing.rules), member(player)
        pairs += [shown(writing.rules.fields[0], score), name]
        put_score(writing, name, score)
    player.finish(key, writing)
    return ("ZADD", key, *pairs), None if writing.rules.cap else writing.added


def zadd_options(player):
    key = player.any_key()
    writing = player.writing(key)
    option = player.random.choice(("NX", "XX", "GT", "LT"))
    score, name = score_in(player, writing.rules), member(player)
    before = writing.members.get(name)
    old = before.fields[0] if before else None
    if {"NX": before is None, "XX": before is not None, "GT": before is None or score > old,
            "LT": before is None or score < old}[option]:
        put_score(writing, name, score)
    player.finish(key, writing)
    request = ("ZADD", key, option, "CH", shown(writing.rules.fields[0], score), name)
    return request, None if writing.rules.cap else writing.added + writing.changed


def zincrby(player):
    key = player.any_key()
    writing = player.writing(key)
    delta, name = player.random.randint(-3, 3), member(player)
    before = writing.members.get(name)
    total = (before.fields[0] if before else 0) + delta
    if not writing.rules.lowest(0) <= total <= writing.rules.highest(0):
        return None
    # An increment of nothing changes no member, but makes one.
    if before is None or delta != 0:
        rest = before.fields[1:] if before else (0,) * (len(writing.rules.fields) - 1)
        writing.put(name, (total,) + rest, is_increment=True)
    player.finish(key, writing)
    is_shown = writing.rules.fields[0].scale == 0
    request = ("ZINCRBY", key, shown(writing.rules.fields[0], delta), name)
    return request, b"%d" % total if is_shown else None


def count_up(player):
    """The player's own counter, which others read: what they were shown must survive."""
    if player.database != 0:
        return None
    value = player.counter_history[-1][1] if player.counter_history else player.counter_base
    player.counter_history.append((player.index, value + 1))
    return ("ZINCRBY", f"{player.name}:n", 1, "n"), b"%d" % (value + 1)


def look_at_another(player):
    if player.database != 0 or not player.others:
        return None
    other = player.random.choice(player.others)

    def note(reply):
        if isinstance(reply, resp.Error):
            return False
        other.seen_counter = max(other.seen_counter, int(reply or 0))
        return True
    return ("ZSCORE", f"{other.name}:n", "n"), note


def share(player):
    """A board that all write; additions commute."""
    if player.database != 0:
        return None
    name = f"s{player.random.randrange(SHARED_MEMBERS)}"
    player.shared_added.append((player.index, name))
    return ("ZINCRBY", SHARED_BOARD, 1, name), None


# ---- removals ----

def without(board, names):
    gone = set(names)
    return board.but(members={name: entry for name, entry in board.members.items()
                              if name not in gone}).remains()


def zrem(player):
    key, board = player.pick()
    if key is None:
        return None
    names = player.random.sample(NAMES, player.random.randint(1, 4))
    gone = [name for name in names if name in board.members]
    if gone:
        player.put(key, without(board, gone))
    return ("ZREM", key, *names), len(gone)


def zremrangebyrank(player):
    key, board = player.pick(usable)
    if key is None:
        return None
    first = player.random.randint(0, 6)
    last = first + player.random.randint(0, 3)
    gone = board.ascending()[first:last + 1]
    if gone:
        player.put(key, without(board, gone))
    return ("ZREMRANGEBYRANK", key, first, last), len(gone)


def zremrangebyscore(player):
    key, board = player.pick()
    if key is None:
        return None
    low = score_in(player, board.rules)
    gone = [name for name in board.members if low <= board.score(name) <= low + 10]
    if gone:
        player.put(key, without(board, gone))
    field = board.rules.fields[0]
    return ("ZREMRANGEBYSCORE", key, shown(field, low), shown(field, low + 10)), len(gone)


def pop(player):
    key, board = player.pick(usable)
    if key is None:
        return None
    is_lowest = player.random.random() < 0.6
    count = player.random.randint(1, 3)
    names = board.ascending()[:count] if is_lowest else board.ascending()[::-1][:count]
    if names:
        player.put(key, without(board, names))
    request = ("ZPOPMIN" if is_lowest else "ZPOPMAX", key, count)
    return request, lambda reply: isinstance(reply, list) and \
        reply[::2] == [name.encode() for name in names]


def delete(player):
    keys = [player.key(slot) for slot in player.random.sample(SLOTS, player.random.choice((1, 2)))]
    there = [key for key in keys if player.board(key) is not None]
    for key in there:
        player.put(key, None)
    return (player.random.choice(("DEL", "UNLINK")), *keys), len(there)


def flush(player):
    if player.database < FIRST_PRIVATE_DATABASE:
        return None
    for database, key in list(player.state):
        if database == player.database:
            player.put(key, None)
    return ("FLUSHDB",), b"OK"


# ---- whole keys ----

def rename(player):
    key, board = player.pick()
    other = player.any_key()
    if key is None or key == other:
        return None
    player.put(key, None)
    player.put(other, board)
    return ("RENAME", key, other), b"OK"


def copy(player):
    key, board = player.pick()
    other = player.any_key()
    database = player.random.choice(player.databases())
    if key is None or (key == other and database == player.database):
        return None
    is_free = player.board(other, database) is None
    is_replacing = player.random.random() < 0.7
    if is_free or is_replacing:
        player.put(other, board, database)
    request = ("COPY", key, other, "DB", database) + (("REPLACE",) if is_replacing else ())
    return request, int(is_free or is_replacing)


def expire(player):
    key, board = player.pick()
    if key is None:
        return None
    kind = player.random.randrange(3)
    if kind == 0:
        player.put(key, board.but(expiry=None))
        return ("PERSIST", key), int(board.expiry is not None)
    ahead = FAR_MS + player.random.randrange(10**9)
    if kind == 1:
        at = now_ms() + ahead
        player.put(key, board.but(expiry=Expiry(at, None)))
        return ("PEXPIREAT", key, at), 1
    seconds = ahead // 1000
    player.put(key, board.but(expiry=Expiry(seconds * 1000, player.index)))
    return ("EXPIRE", key, seconds), 1


def doom(player):
    """A key that goes soon, perhaps while the server is down, and whose name is not used again."""
    player.doomed_count += 1
    key = f"{player.name}:x{player.index}"
    writing = player.writing(key)
    put_score(writing, "gone", 1)
    player.finish(key, writing)
    at = now_ms() + player.random.randint(1, 1500)
    player.put(key, player.board(key).but(expiry=Expiry(at, None)))
    return [("MULTI",), ("ZADD", key, 1, "gone"), ("PEXPIREAT", key, at), ("EXEC",)], [1, 1]


# ---- boards made of others ----

def target_of(player):
    """Where a board made of others goes: not onto one that LB.CREATE made, which keeps its layout and
    options, and refuses what does not fit."""
    key = player.any_key()
    board = player.board(key)
    return None if board is not None and board.rules.is_created else key


def zstore(player):
    """ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE of two boards."""
    kind = player.random.choice(("ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"))
    keys = [player.pick(is_plain)[0] for _ in range(2)]
    target = target_of(player)
    if keys[0] is None or target is None:
        return None
    sources = [player.board(key).members for key in keys]
    aggregate = player.random.choice(("SUM", "MIN", "MAX")) if kind != "ZDIFFSTORE" else None
    names = {"ZUNIONSTORE": [*sources[0], *(n for n in sources[1] if n not in sources[0])],
             "ZINTERSTORE": [name for name in sources[0] if name in sources[1]],
             "ZDIFFSTORE": [name for name in sources[0] if name not in sources[1]]}[kind]
    members = {}
    for name in names:
        player.arrival += 1
        parts = [source[name] for source in sources if name in source]
        members[name] = combined(parts, aggregate, player.arrival)
    scores = [entry.fields for entry in members.values()]
    if any(abs(score) > SCORE_LIMIT for (score,) in scores):
        return None
    is_loose = len(set(scores)) < len(scores)
    player.put(target, Board(twin.DEFAULT, members, None, is_loose) if members else None)
    request = (kind, target, 2, *keys) + (("AGGREGATE", aggregate) if aggregate else ())
    return request, len(members)


def combined(parts, aggregate, arrival):
    """A member's entry in a union, an intersection (SUM: reached when its last part was) or,
    without aggregate, a difference."""
    scores = [part.fields[0] for part in parts]
    if aggregate == "SUM":
        return twin.Entry((sum(scores),), max(part.time for part in parts), arrival)
    if aggregate is None:
        return twin.Entry(parts[0].fields, parts[0].time, arrival)
    chosen = (min if aggregate == "MIN" else max)(scores)
    reached = min(part.time for part in parts if part.fields[0] == chosen)
    return twin.Entry((chosen,), reached, arrival)


def zrangestore(player):
    key, board = player.pick(lambda board: is_plain(board) and usable(board))
    target, first = target_of(player), player.random.randint(0, 3)
    if key is None or target is None:
        return None
    last = first + player.random.randint(0, 10)
    names = board.ascending()[first:last + 1]
    members = {name: board.members[name] for name in names}
    player.put(target, Board(twin.DEFAULT, members) if members else None)
    return ("ZRANGESTORE", target, key, first, last), len(names)


# ---- the server's own ----

def lb_create(player):
    key = player.any_key()
    if player.board(key) is not None:
        return ("LB.CREATE", key), lambda reply: isinstance(reply, resp.Error) and \
            reply.text.startswith("BUSYKEY")
    rules = player.random.choice(twin.CREATED)
    player.put(key, Board(rules, {}))
    request = ["LB.CREATE", key, *rules.layout.split()]
    request += ["CAP", rules.cap] if rules.cap else []
    request += ["KEEP", "BEST"] if rules.is_best else []
    return tuple(request), b"OK"


def lb_values(player, rules):
    return tuple(score_in(player, rules) if i == 0 else player.random.randint(0, 20)
                 for i in range(len(rules.fields)))


def lb_add(player):
    """LB.ADD, one to three members, with a time of its own, with that of now, or TOUCH."""
    key = player.any_key()
    writing = player.writing(key)
    rules = writing.rules
    kind = player.random.choice(("", "", "BEST", "AT", "AT", "TOUCH"))
    at, options = None, {"": (), "BEST": ("BEST",), "TOUCH": ("TOUCH",), "AT": ()}[kind]
    if kind == "AT" and rules.unit is not None:
        given = AT_FIRST_MS + player.random.randrange(AT_SPAN_MS)
        at, options = rules.cut(given), ("AT", given)
    words = []
    for _ in range(player.random.choice((1, 1, 2, 3))):
        name, fields = member(player), lb_values(player, rules)
        words += [*map(shown, rules.fields, fields), name]
        before = writing.members.get(name)
        if kind == "BEST" and before and not rules.is_better(fields, before.fields):
            continue
        writing.put(name, fields, at, is_forced=kind == "TOUCH")
    player.finish(key, writing)
    is_told = not rules.cap
    return ("LB.ADD", key, *options, *words), writing.added + writing.changed if is_told else None


def lb_increase(player):
    """LB.ADD INCR of the last field, where its sum fits."""
    key, board = player.pick()
    if key is None:
        return None
    writing = player.writing(key)
    rules, name = writing.rules, member(player)
    before = writing.members.get(name)
    fields = before.fields if before else (0,) * len(rules.fields)
    delta, last = player.random.randint(0, 5), len(fields) - 1
    if fields[last] + delta > rules.highest(last):
        return None
    words = ["*"] * last + [shown(rules.fields[last], delta), name]
    after = fields[:-1] + (fields[last] + delta,)
    if before is None or after != fields:
        writing.put(name, after, is_increment=True)
    player.finish(key, writing)
    return ("LB.ADD", key, "INCR", *words), None


def lb_roll(player):
    key, board = player.pick()
    free = [slot for slot in SLOTS if player.board(player.key(slot)) is None]
    if key is None or not free:
        return None
    archive = player.key(player.random.choice(free))
    rules, options = board.rules, []
    if rules.unit is not None and player.random.random() < 0.3:
        options += ["START", SECONDS_FIRST_START]
        rules = with_start(rules)._replace(is_created=True)
    expiry = None
    if player.random.random() < 0.5:
        options += ["EX", FAR_MS // 1000]
        expiry = Expiry(FAR_MS, player.index)
    if board.members:
        player.put(archive, board.but(rules=board.rules._replace(is_created=False), expiry=expiry))
    player.put(key, board.but(rules=rules, members={}).remains())
    return ("LB.ROLL", key, archive, *options), len(board.members)


def with_start(rules):
    """Rules whose times begin in 2021, as LB.INFO shows them."""
    words = rules.layout.split()
    if "START" in words:
        return rules
    at = words.index("TIME") + 3
    layout = " ".join(words[:at] + ["START", SECONDS_FIRST_START] + words[at:])
    return rules._replace(layout=layout)


# ---- reads ----

def read_score(player):
    key = player.any_key()
    board, name = player.board(key), member(player)
    if board is None or name not in board.members:
        return ("ZSCORE", key, name), lambda reply: reply is None
    field = board.rules.fields[0]
    return ("ZSCORE", key, name), lambda reply: stored(field, reply) == board.score(name)


def read_order(player):
    key, board = player.pick(usable)
    if key is None:
        return None
    return ("ZRANGE", key, 0, -1), [name.encode() for name in board.ascending()]


def read_records(player):
    """Ranks, fields and times; the times that are shown must be there after the next crash."""
    key, board = player.pick(usable)
    if key is None:
        return None
    order = board.order()

    def is_right(reply):
        if not isinstance(reply, list) or [record[0].decode() for record in reply] != order or \
                not all(player.is_record(board, record, time.time()) for record in reply):
            return False
        player.note_times(board, reply)
        return True
    return ("LB.RANGE", key, 0, -1), is_right


def select(player):
    player.database = player.random.choice(player.databases())
    return ("SELECT", player.database), b"OK"


def databases(player):
    return DATABASES + ((FIRST_PRIVATE_DATABASE + player.number,) if player.number < 8 else ())


Player.databases = databases


def block(player):
    """MULTI, some writes, EXEC: all of them or nothing."""
    requests, expected = [("MULTI",)], []
    for _ in range(player.random.randint(2, 6)):
        made = player.random.choice((zadd, zadd, zincrby, zrem, rename, copy, delete, pop,
                                     hashes.put, hashes.put, hashes.remove))(player)
        if made is not None:
            requests.append(made[0])
            expected.append(made[1])
    requests.append(("EXEC",))

    def is_right(replies):
        return isinstance(replies, list) and len(replies) == len(expected) and \
            all(Command(0, [()], told).is_right(reply)
                for told, reply in zip(expected, replies))
    return requests, is_right


# What is asked for, and how often.
OPERATIONS = (
    (zadd, 24), (zadd_options, 9), (zincrby, 12), (count_up, 8),
    (look_at_another, 4), (share, 4), (zrem, 4), (zremrangebyrank, 2),
    (zremrangebyscore, 1.5), (pop, 3), (delete, 1.5), (flush, 0.3),
    (rename, 2), (copy, 2), (expire, 3), (doom, 0.7),
    (zstore, 2), (zrangestore, 1.5), (select, 1.5), (block, 3),
    (read_score, 3), (read_order, 2), (lb_create, 3), (lb_add, 12),
    (lb_increase, 3), (lb_roll, 0.8), (read_records, 3),
    (rolling.create, 0.3), (rolling.add, 1.5), (big.act, 25),
    *hashes.OPERATIONS,
)
