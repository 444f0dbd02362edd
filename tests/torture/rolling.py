"""Boards with a PERIOD that ends while the torture runs, and what must be there of them.

A day ends at midnight of a TZ, and a TZ may be any minutes away from UTC: so a board's day can be
made to end with the next minute, wherever the clock stands. Commands only add members, each once;
then what the board and its archive hold together is told by the commands alone, and who is in the
archive by the times."""
import time
from datetime import datetime, timezone

from twin import NOW

DAY_MS, MINUTE_MS = 86400000, 60000
AHEAD_MS = 300  # a board is made at least this long before its day ends
BOARDS_MAX, MEMBERS_MAX = 4, 12
LAYOUT = "FIELD points 20 TIME 33 MS"


class Added:
    """A member. time_ms: as it was seen after a restart; None: not yet."""
    __slots__ = ("index", "name", "score", "time_ms")

    def __init__(self, index, name, score, time_ms=None):
        self.index, self.name, self.score, self.time_ms = index, name, score, time_ms


class RollingBoard:
    """A board whose day ends at end_ms. created: the index of its LB.CREATE."""

    def __init__(self, key, end_ms, created):
        self.key, self.end_ms, self.created = key, end_ms, created
        self.added = []

    def zone_minutes(self):
        """East of UTC, so that end_ms is midnight there."""
        west = self.end_ms // MINUTE_MS % 1440
        return -west if west <= 720 else 1440 - west

    def zone(self):
        minutes = self.zone_minutes()
        return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"

    def archive(self):
        """The archive's key: the day's date is that of its beginning."""
        begin_s = (self.end_ms + self.zone_minutes() * MINUTE_MS - DAY_MS) // 1000
        return f"{self.key}@{datetime.fromtimestamp(begin_s, timezone.utc):%Y-%m-%d}"


# ---- commands ----

def create(player):
    if player.database != 0 or len(player.rolling) >= BOARDS_MAX:
        return None
    end_ms = ((time.time_ns() // 1000000 + AHEAD_MS) // MINUTE_MS + 1) * MINUTE_MS
    board = RollingBoard(f"{player.name}:r{player.index}", end_ms, player.index)
    player.rolling[board.key] = board
    request = ("LB.CREATE", board.key, *LAYOUT.split(), "PERIOD", "DAY", "TZ", board.zone(),
               "ARCHIVE", 1)
    return request, b"OK"


def add(player):
    open_boards = [board for board in player.rolling.values() if len(board.added) < MEMBERS_MAX]
    if player.database != 0 or not open_boards:
        return None
    board = player.random.choice(open_boards)
    one = Added(player.index, f"d{len(board.added)}", player.random.randint(0, 5))
    board.added.append(one)
    return ("LB.ADD", board.key, one.score, one.name), 1


# ---- what is there ----

def places(player):
    """All keys that may be there of the player's rolling boards."""
    return {place for board in player.rolling.values()
            for place in ((0, board.key), (0, board.archive()))}


def is_time(player, one, seen_ms, window):
    if one.time_ms is not None:
        return seen_ms == one.time_ms
    return player.is_time(NOW + one.index, "MS", seen_ms, window.last_ms / 1000)


def has_members(player, seen, members, window):
    """Does a key hold these members, in this order of arrival?"""
    records = seen.records if seen else []
    by_name = {record[0].decode(): record for record in records}
    if len(by_name) != len(members) or any(one.name not in by_name for one in members):
        return False
    ranked = sorted(range(len(members)), key=lambda i: (-members[i].score, i))
    return [record[0].decode() for record in records] == [members[i].name for i in ranked] and \
        all(by_name[one.name][3] == one.score and
            is_time(player, one, by_name[one.name][2], window) for one in members)


def is_archive(board, seen):
    """It goes with the end of the day after its own, and is a board like others."""
    return seen.expire_at_ms == board.end_ms + DAY_MS and seen.rules[3:] == (False, None)


def is_split(board, live, archive, window):
    """Is everybody of the day that is over in the archive, and nobody else?"""
    times = [record[2] for record in live.records]
    if archive is not None:
        return window.last_ms >= board.end_ms and is_archive(board, archive) and \
            all(at >= board.end_ms for at in times) and \
            all(record[2] < board.end_ms for record in archive.records)
    return window.first_ms < board.end_ms or all(at >= board.end_ms for at in times)


def length_after(player, index):
    """The length of the prefix whose last command has this index."""
    return max(index - player.first_index + 1, 0)


def lengths(player, board, seen, window):
    """The first and the end of the lengths of prefixes that leave what was seen; None: none do."""
    live, archive = seen.get((0, board.key)), seen.get((0, board.archive()))
    if live is None:
        end = length_after(player, board.created)
        return (0, end) if archive is None and end > 0 else None
    archived = len(archive.records) if archive else 0
    count = archived + len(live.records)
    added = board.added
    if archive is not None and archived == 0 or count > len(added) or \
            not has_members(player, archive, added[:archived], window) or \
            not has_members(player, live, added[archived:count], window) or \
            not is_split(board, live, archive, window):
        return None
    first = length_after(player, added[count - 1].index if count else board.created)
    end = length_after(player, added[count].index) if count < len(added) else \
        len(player.commands) + 1
    return first, end


def adopted(player, seen):
    """The boards as they are there; they go on to be written."""
    boards = {}
    for key, board in player.rolling.items():
        live, archive = seen.get((0, key)), seen.get((0, board.archive()))
        if live is None:
            continue
        kept = RollingBoard(key, board.end_ms, player.index)
        times = {record[0].decode(): record[2] for one in (live, archive) if one
                 for record in one.records}
        kept.added = [Added(player.index, one.name, one.score, times[one.name])
                      for one in board.added if one.name in times]
        boards[key] = kept
    return boards
