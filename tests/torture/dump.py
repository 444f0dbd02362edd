"""Everything that a server holds, as its clients can see it."""
from collections import namedtuple

import hashes
import resp

# records: as LB.RANGE answers them, best first; of a hash its fields
# and values, sorted. rules: layout, cap, keep, created. expire_at_ms: -1 for none.
Seen = namedtuple("Seen", "records expire_at_ms rules")
DATABASE_COUNT = 16


def keys_of(client, database):
    """The names of a database's keys."""
    names, cursor = [], b"0"
    while True:
        cursor, found = client.ask("SCAN", cursor, "COUNT", 1000)
        names += found
        if cursor == b"0":
            return sorted({name.decode() for name in names})


def used_databases(client):
    """The databases that INFO knows of."""
    lines = client.ask("INFO", "keyspace").decode().splitlines()
    return [int(line[2:line.index(":")]) for line in lines if line.startswith("db")]


def seen_rules(answer):
    """What of LB.INFO must survive."""
    if not isinstance(answer, list):
        return None
    told = dict(zip(answer[::2], answer[1::2]))
    period = told[b"period"]
    return (told[b"layout"].decode(), told[b"cap"] or 0, told[b"keep"] == b"best",
            bool(told[b"created"]), tuple(period) if period else None)


def board_requests(key):
    return [("LB.RANGE", key, 0, -1), ("PEXPIRETIME", key), ("LB.INFO", key)]


def read_board(replies):
    """The Seen of one key, by the replies to board_requests. None: it has gone meanwhile."""
    records, expire_at_ms = replies[:2]
    if isinstance(records, resp.Error) or expire_at_ms == -2:
        return None
    rules = seen_rules(replies[2])
    return Seen(records, expire_at_ms, rules) if rules else None


def read_hash(replies):
    """The same by the replies to hashes.requests."""
    found = hashes.seen_of(replies)
    return found and Seen(*found)


def take(port):
    """All boards and hashes: (database, key) -> Seen."""
    seen = {}
    with resp.Client(port) as client:
        for database in used_databases(client):
            client.ask("SELECT", database)
            names = keys_of(client, database)
            asked = [hashes.requests(name) if hashes.is_key(name) else
                     board_requests(name) for name in names]
            replies = iter(client.ask_all([one for requests in asked for one in requests]))
            for name, requests in zip(names, asked):
                of_key = [next(replies) for _ in requests]
                found = read_hash(of_key) if hashes.is_key(name) else read_board(of_key)
                if found is not None:
                    seen[database, name] = found
    return seen
