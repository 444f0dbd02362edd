"""Is the judge awake? What a running server holds is read, changed in one place as a bad restart
might change it, and judged: every change must be found."""
import random
import shutil
import time

import crash
import hashes
import judge

CHANGES_EACH = 25
LOAD_S = 0.3
NOBODYS_DATABASE = 5


def changed(board, **changes):
    return board._replace(**changes)


def pick(randomness, seen, wants):
    """The place and the board of some key; wants (place, board) says which will do."""
    places = sorted(place for place, board in seen.items() if wants(place, board))
    return randomness.choice(places) if places else None


def is_player_key(place):
    return ":" in place[1] and place[1].partition(":")[2] in "abcd"


def with_records(place, board):
    return is_player_key(place) and bool(board.records)


def is_hash(place, board):
    return board.rules == hashes.RULES


def change_value(randomness, seen, place):
    records = list(seen[place].records)
    at = randomness.randrange(len(records))
    records[at] = (records[at][0], records[at][1] + b"?")
    seen[place] = changed(seen[place], records=records)


def lose_member(randomness, seen, place):
    records = list(seen[place].records)
    del records[randomness.randrange(len(records))]
    seen[place] = changed(seen[place], records=records)


def add_member(randomness, seen, place):
    records = list(seen[place].records)
    stranger = [b"stranger", *records[-1][1:]]
    seen[place] = changed(seen[place], records=[*records, stranger])


def change_score(randomness, seen, place):
    records = [list(record) for record in seen[place].records]
    record = randomness.choice(records)
    record[-1] = b"%d" % (int(float(record[-1])) + 1) if isinstance(record[-1], bytes) \
        else record[-1] + 1
    seen[place] = changed(seen[place], records=records)


def change_time(randomness, seen, place):
    records = [list(record) for record in seen[place].records]
    record = randomness.choice(records)
    record[2] += 5 * 60000
    seen[place] = changed(seen[place], records=records)


def swap_neighbours(randomness, seen, place):
    records = list(seen[place].records)
    at = randomness.randrange(len(records) - 1)
    records[at], records[at + 1] = records[at + 1], records[at]
    seen[place] = changed(seen[place], records=records)


def change_expiry(randomness, seen, place):
    at = seen[place].expire_at_ms
    seen[place] = changed(seen[place], expire_at_ms=-1 if at != -1 else 1999999999999)


def change_rules(randomness, seen, place):
    layout, cap, is_best, is_created, period = seen[place].rules
    seen[place] = changed(seen[place], rules=(layout, cap + 1, is_best, is_created, period))


def lose_key(randomness, seen, place):
    del seen[place]


def rename_key(randomness, seen, place):
    seen[place[0], "stranger"] = seen.pop(place)


def move_key(randomness, seen, place):
    seen[NOBODYS_DATABASE, place[1]] = seen.pop(place)


# What is changed, on which keys.
CHANGES = (
    (lose_member, with_records), (add_member, with_records),
    (change_score, with_records),
    (change_time, lambda place, board: with_records(place, board) and
     board.records[0][2] is not None),
    (change_expiry, lambda place, board: is_player_key(place)),
    (change_rules, lambda place, board: is_player_key(place)),
    (lose_key, lambda place, board: is_player_key(place) and board.expire_at_ms == -1),
    (rename_key, lambda place, board: is_player_key(place)),
    (move_key, lambda place, board: is_player_key(place)),
    (lose_member, is_hash), (change_value, is_hash), (change_expiry, is_hash),
    (lose_key, lambda place, board: is_hash(place, board) and board.expire_at_ms == -1),
)


def is_found(arena, seen, window):
    found = judge.Judgement(arena.players, arena.shared_base, seen, window)
    return bool(found.faults) or found.lost > 0


def swappable(arena):
    """Two neighbours on a board whose whole order the twin knows."""
    def wants(place, board):
        owner = next((one for one in arena.players if place[1].startswith(one.name + ":")), None)
        told = owner and owner.state.get(place)
        return told is not None and not told.is_loose and len(board.records) > 1
    return wants


def run(program, work, seed, counts):
    """Raises Trouble when a change goes unnoticed."""
    arena = crash.Arena(program, work / "served", "off", seed, 10)
    randomness = random.Random(f"{seed}/selftest")
    changes = [*CHANGES, (swap_neighbours, swappable(arena))]
    try:
        arena.server.start()
        arena.connect()
        arena.load.run(time.monotonic() + LOAD_S)
        arena.disconnect()
        seen, window = arena.read()
        if is_found(arena, dict(seen), window):
            raise crash.Trouble("the judge finds fault with a server that never stopped")
        for change, wants in changes:
            for _ in range(CHANGES_EACH):
                try_change(arena, change, wants, randomness, seen, window, counts)
    finally:
        arena.server.kill()
        shutil.rmtree(work, ignore_errors=True)


def try_change(arena, change, wants, randomness, seen, window, counts):
    copy = dict(seen)
    place = pick(randomness, copy, wants)
    if place is None:
        return
    change(randomness, copy, place)
    if not is_found(arena, copy, window):
        raise crash.Trouble(f"{change.__name__} of {place} goes unnoticed:\n  {seen[place]}\n"
                            f"  {copy.get(place)}")
    counts["changes"] += 1
