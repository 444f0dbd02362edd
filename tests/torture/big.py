"""Boards of many members, which a snapshot takes many steps to walk, and which change under it.

Keeping such a board after every command would take too long; so the changes are kept, and repeated
when it is judged. Only scores are written: few different ones, so most members are somebody's
equals."""

MEMBERS, FILL, CHANGE = 10000, 2500, 40
SCORES = 60
LARGE_CUT = 4500  # more than a snapshot streams as single removals
KEYS = ("big0", "big1")


class State:
    """Which key has the board (None: there is none), and its members: name -> (score, arrival)."""

    def __init__(self, key=None, members=None):
        self.key, self.members, self.arrival = key, members or {}, 0

    def copy(self):
        state = State(self.key, dict(self.members))
        state.arrival = self.arrival
        return state

    def order(self):
        """The names, best first."""
        members = self.members
        return sorted(members, key=lambda name: (-members[name][0], members[name][1]))

    # Each of these makes one change.

    def put(self, key, pairs):
        self.key = key
        for name, score in pairs:
            self.arrival += 1
            if name not in self.members or self.members[name][0] != score:
                self.members[name] = (score, self.arrival)

    def remove(self, names):
        for name in names:
            self.members.pop(name, None)
        self.end()

    def cut(self, first, count):
        """From a rank on."""
        for name in self.order()[first:first + count]:
            del self.members[name]
        self.end()

    def rename(self, key):
        self.key = key

    def delete(self):
        self.members = {}
        self.end()

    def end(self):
        if not self.members:
            self.key = None


class Big:
    """A player's large board. base: as it was at the beginning, with the times seen then."""

    def __init__(self):
        self.base, self.times = State(), {}
        self.now = State()
        self.changes = []  # (index, method's name, arguments)

    def change(self, index, method, *arguments):
        self.changes.append((index, method, arguments))
        getattr(self.now, method)(*arguments)


# ---- commands ----

def pairs_of(player, names):
    return [(name, player.random.randrange(SCORES)) for name in names]


def zadd(player, key, pairs):
    player.big.change(player.index, "put", key, pairs)
    return ("ZADD", key, *(word for name, score in pairs for word in (score, name))), None


def fill(player):
    now = player.big.now
    key = now.key or f"{player.name}:{KEYS[0]}"
    first = player.random.randrange(10**6)
    return zadd(player, key, pairs_of(player, [f"n{first + i}" for i in range(FILL)]))


def act(player):
    """One command about the board; None in another database than 0."""
    if player.database != 0:
        return None
    now = player.big.now
    if len(now.members) < MEMBERS:
        return fill(player)
    kind = player.random.choices(("put", "remove", "cut", "large", "rename", "delete"),
                                 (60, 20, 2, 0.7, 3, 0.3))[0]
    if kind == "put":
        names = player.random.sample(list(now.members), CHANGE)
        return zadd(player, now.key, pairs_of(player, names))
    if kind == "remove":
        names = player.random.sample(list(now.members), CHANGE)
        player.big.change(player.index, "remove", names)
        return ("ZREM", player_key(player), *names), len(names)
    if kind in ("cut", "large"):
        return cut(player, LARGE_CUT if kind == "large" else player.random.randint(1, 30))
    if kind == "delete":
        key = player_key(player)
        player.big.change(player.index, "delete")
        return ("UNLINK", key), 1
    key, other = player_key(player), f"{player.name}:{player.random.choice(KEYS)}"
    if key == other:
        return None
    player.big.change(player.index, "rename", other)
    return ("RENAME", key, other), b"OK"


def player_key(player):
    return player.big.now.key


def cut(player, count):
    """The best ones go, or some from the middle."""
    key, total = player_key(player), len(player.big.now.members)
    first = player.random.choice((0, player.random.randrange(total - count)))
    player.big.change(player.index, "cut", first, count)
    # Ranks of the command count from the lowest score.
    return ("ZREMRANGEBYRANK", key, total - first - count, total - first - 1), count


# ---- what is there ----

def places(player):
    return {(0, f"{player.name}:{key}") for key in KEYS}


def seen_board(player, seen):
    """(key, records) of what was seen; (None, []): nothing. More than one board: None."""
    found = [(place[1], seen[place].records) for place in places(player) if place in seen]
    return found[0] if len(found) == 1 else None if found else (None, [])


def is_state(state, key, records, names, times):
    """Is this what was seen? names: of the records, as text."""
    return state.key == key and len(state.members) == len(records) and \
        all(name in state.members and state.members[name][0] == record[3]
            for name, record in zip(names, records)) and \
        state.order() == names and \
        all(record[2] == times[name] for name, record in zip(names, records)
            if state.members[name][1] < 0)


def lengths(player, seen):
    """The lengths of prefixes that leave what was seen, as a set of them."""
    found = seen_board(player, seen)
    if found is None:
        return 0
    key, records = found
    names = [record[0].decode() for record in records]
    state, allowed, changes = player.big.base.copy(), 0, player.big.changes
    for number in range(len(changes) + 1):
        first = changes[number - 1][0] - player.first_index + 1 if number else 0
        if number:
            getattr(state, changes[number - 1][1])(*changes[number - 1][2])
        end = changes[number][0] - player.first_index + 1 if number < len(changes) else \
            len(player.commands) + 1
        if is_state(state, key, records, names, player.big.times):
            allowed |= ((1 << (end - first)) - 1) << first
    return allowed


def adopted(player, seen):
    """The board as it is there. An arrival below 0 is one of before: its time is known."""
    key, records = seen_board(player, seen)
    one = Big()
    count = len(records)
    one.base = State(key, {record[0].decode(): (record[3], i - count)
                           for i, record in enumerate(records)})
    one.times = {record[0].decode(): record[2] for record in records}
    one.now = one.base.copy()
    return one
