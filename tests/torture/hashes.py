"""Hashes of a player: its keys "h0" to "h2", the twin's side of them, and how they are read."""
import resp
from twin import Expiry

SLOTS = ("h0", "h1", "h2")
FIELDS = [f"f{i}" for i in range(30)]
COUNTER = "count"  # the only field that HINCRBY is used on
RULES = "hash"  # in the place of a board's rules
LONG = 3000  # bytes: a hash with some of these values is no longer packed
FAR_MS = 86400000


class Hash:
    """fields: name -> value, bytes. It never changes; a command makes another one."""
    is_loose = True
    rules = RULES

    def __init__(self, fields, expiry=None):
        self.fields, self.expiry = fields, expiry

    @property
    def members(self):
        return {name: (value[:20],) for name, value in self.fields.items()}

    def order(self):
        return sorted(self.fields)


def is_key(key):
    return key.partition(":")[2] in SLOTS


# ---- commands ----

def any_key(player):
    return player.key(player.random.choice(SLOTS))


def pick(player):
    """A hash that is there, and its key; else (None, None)."""
    keys = [key for key in map(player.key, SLOTS) if player.board(key) is not None]
    if not keys:
        return None, None
    key = player.random.choice(keys)
    return key, player.board(key)


def put_fields(player, key, changed, removed=()):
    """Set and remove fields of the twin's hash."""
    old = player.board(key)
    fields = dict(old.fields) if old else {}
    fields.update(changed)
    for name in removed:
        fields.pop(name, None)
    player.put(key, Hash(fields, old.expiry if old else None) if fields else None)


def value(player):
    kind = player.random.random()
    if kind < 0.05:
        return b"v%d" % player.index * player.random.randrange(LONG // 8)
    return b"" if kind < 0.1 else b"v%d" % player.random.randrange(10**6)


def put(player):
    """HSET of one to five fields, which may repeat."""
    key = any_key(player)
    old = player.board(key)
    pairs = [(player.random.choice(FIELDS), value(player))
             for _ in range(player.random.choice((1, 1, 2, 3, 5)))]
    added = {name for name, _ in pairs} - set(old.fields if old else ())
    put_fields(player, key, dict(pairs))
    words = [word for pair in pairs for word in pair]
    return ("HSET", key, *words), len(added)


def put_new(player):
    key, name, text = any_key(player), player.random.choice(FIELDS), value(player)
    old = player.board(key)
    is_new = old is None or name not in old.fields
    if is_new:
        put_fields(player, key, {name: text})
    return ("HSETNX", key, name, text), int(is_new)


def increment(player):
    key, delta = any_key(player), player.random.randint(-5, 20)
    old = player.board(key)
    total = int(old.fields.get(COUNTER, b"0") if old else 0) + delta
    put_fields(player, key, {COUNTER: b"%d" % total})
    return ("HINCRBY", key, COUNTER, delta), total


def remove(player):
    key, old = pick(player)
    if key is None:
        return None
    names = player.random.sample(FIELDS, player.random.randint(1, 8))
    gone = [name for name in names if name in old.fields]
    if gone:
        put_fields(player, key, {}, gone)
    return ("HDEL", key, *names), len(gone)


def rename(player):
    key, old = pick(player)
    other = any_key(player)
    if key is None or key == other:
        return None
    player.put(key, None)
    player.put(other, old)
    return ("RENAME", key, other), b"OK"


def copy(player):
    key, old = pick(player)
    other, database = any_key(player), player.random.choice(player.databases())
    if key is None or (key == other and database == player.database):
        return None
    player.put(other, old, database)
    return ("COPY", key, other, "DB", database, "REPLACE"), 1


def expire(player):
    key, old = pick(player)
    if key is None:
        return None
    if player.random.random() < 0.4:
        player.put(key, Hash(old.fields))
        return ("PERSIST", key), int(old.expiry is not None)
    seconds = (FAR_MS + player.random.randrange(10**9)) // 1000
    player.put(key, Hash(old.fields, Expiry(seconds * 1000, player.index)))
    return ("EXPIRE", key, seconds), 1


def delete(player):
    key, _ = pick(player)
    if key is None:
        return None
    player.put(key, None)
    return (player.random.choice(("DEL", "UNLINK")), key), 1


def read(player):
    key, old = pick(player)
    if key is None:
        return None
    return ("HGETALL", key), lambda reply: sorted(zip(reply[::2], reply[1::2])) == records(old)


# What is asked for, and how often (player.py).
OPERATIONS = ((put, 14), (put_new, 3), (increment, 5), (remove, 5), (rename, 1), (copy, 1), (expire, 1.5),
              (delete, 0.7), (read, 2))


# ---- what a server holds ----

def records(told):
    return sorted((name.encode(), text) for name, text in told.fields.items())


def requests(key):
    return [("HGETALL", key), ("PEXPIRETIME", key)]


def seen_of(replies):
    """Records, expiry and RULES of a key by the replies to its requests. None: there is no such
    key."""
    answer, expire_at_ms = replies[:2]
    if isinstance(answer, resp.Error) or not answer or expire_at_ms == -2:
        return None
    return sorted(zip(answer[::2], answer[1::2])), expire_at_ms, RULES


def adopted(seen):
    """The twin's hash of what was seen."""
    expiry = None if seen.expire_at_ms == -1 else Expiry(seen.expire_at_ms, None)
    return Hash({name.decode(): text for name, text in seen.records}, expiry)
