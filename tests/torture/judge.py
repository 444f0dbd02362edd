"""What a server holds after a crash, judged: is it what some prefix of every player's commands
left, and is the prefix long enough?

A prefix is told by its length, and a set of lengths is an integer: bit n stands for length n. Every
key of a player allows some lengths; the player's prefix must be allowed by all of its keys."""
from collections import namedtuple

import big
import hashes
import rolling
from player import CLOCK_SLACK_MS, SHARED_BOARD, stored
from twin import Board, Entry, Expiry, Rules, rules_of

# candidates: a set of lengths; needed: the shortest that loses nothing acknowledged.
Verdict = namedtuple("Verdict", "player candidates needed faults")


class Window:
    """From when to when the server was asked, in milliseconds."""

    def __init__(self, first_s, last_s):
        self.first_ms, self.last_ms = int(first_s * 1000), int(last_s * 1000)


def longest(candidates):
    """The longest length of a set; -1: there is none."""
    return candidates.bit_length() - 1


def shortest(candidates):
    return (candidates & -candidates).bit_length() - 1


def span(first, end):
    """The lengths from first up to, without, end."""
    return ((1 << max(end - first, 0)) - 1) << first


# ---- boards ----

def expiry_bounds(player, expiry, window):
    """The earliest and the latest time at which the key can go, in milliseconds."""
    if expiry.index is None:
        return expiry.at_ms, expiry.at_ms
    answered = player.acked_seconds(expiry.index)
    earliest = int(player.sent_seconds(expiry.index) * 1000) - CLOCK_SLACK_MS
    latest = window.last_ms if answered is None else int(answered * 1000)
    return earliest + expiry.at_ms, latest + expiry.at_ms


def is_expiry(player, expiry, seen_ms, window):
    if expiry is None or seen_ms == -1:
        return expiry is None and seen_ms == -1
    earliest, latest = expiry_bounds(player, expiry, window)
    return earliest <= seen_ms <= latest and window.first_ms - CLOCK_SLACK_MS < latest


def has_rules(board, seen):
    rules = board.rules
    return seen.rules == (rules.layout, rules.cap, rules.is_best, rules.is_created, None)


def is_board(player, board, seen, window):
    """Does what was seen show this board? None: no key."""
    if board is None:
        return seen is None
    if seen is None:
        return board.expiry is not None and \
            expiry_bounds(player, board.expiry, window)[0] <= window.last_ms
    if len(seen.records) != len(board.members) or \
            not is_expiry(player, board.expiry, seen.expire_at_ms, window):
        return False
    if isinstance(board, hashes.Hash):
        return seen.rules == hashes.RULES and seen.records == hashes.records(board)
    if not has_rules(board, seen):
        return False
    names = [record[0].decode() for record in seen.records]
    is_ordered = set(names) == set(board.members) if board.is_loose else names == board.order()
    return is_ordered and all(player.is_record(board, record, window.last_ms / 1000)
                              for record in seen.records)


# ---- players ----

def lengths_of_key(player, history, seen, window):
    """The lengths of prefixes that leave the key as it was seen."""
    allowed, end = 0, len(player.commands) + 1
    for index, board in reversed(history):
        first = max(index - player.first_index + 1, 0)
        if first < end and is_board(player, board, seen, window):
            allowed |= span(first, end)
        end = min(end, first)
    return allowed


def lengths_of_counter(player, seen):
    """The same of the player's counter."""
    value = int(seen.records[0][3]) if seen else 0
    allowed, end = 0, len(player.commands) + 1
    history = [(player.first_index - 1, player.counter_base), *player.counter_history]
    for index, counted in reversed(history):
        first = index - player.first_index + 1
        if counted == value:
            allowed |= span(first, end)
        end = first
    return allowed


def needed_length(player, holds_readers):
    """The shortest prefix with all that was acknowledged to it and, if readers too are held until
    the disk has what they are shown, all that others have read; or with what is promised (SAVE)."""
    if player.promised_index is not None:
        return player.promised_index - player.first_index + 1
    needed = player.acked_index - player.first_index + 1
    for index, value in player.counter_history:
        if value == player.seen_counter and holds_readers:
            needed = max(needed, index - player.first_index + 1)
    return needed


def lengths_of_rolling(player, board, seen, window):
    """The same of a board whose period ends."""
    found = rolling.lengths(player, board, seen, window)
    return span(*found) if found else 0


def describe_big(player, seen):
    """How a large board differs from what the last command left."""
    found, now = big.seen_board(player, seen), player.big.now
    if found is None:
        return "it is there under two keys"
    scores = {record[0].decode(): record[3] for record in found[1]}
    lacking = [name for name in now.members if name not in scores]
    strange = [name for name in scores if name not in now.members]
    other = [name for name in scores if name in now.members and
             now.members[name][0] != scores[name]]
    return (f"key {found[0]}, told {now.key} after all commands; {len(lacking)} members lacking "
            f"{lacking[:5]}, {len(strange)} strange {strange[:5]}, {len(other)} with another score "
            f"{other[:5]}")


def describe(player, place, allowed, player_seen, needed):
    """Lines about a key that does not fit."""
    seen = player_seen.get(place)
    if place[1] in player.rolling:
        board = player.rolling[place[1]]
        added = [(one.name, one.score, one.time_ms) for one in board.added]
        return (f"  {place}: a day that ends at {board.end_ms}; added {added}\n    seen {seen}\n"
                f"    archive {player_seen.get((0, board.archive()))}")
    if place in big.places(player):
        return (f"  {place}: a board of many members; fits lengths {shortest(allowed)}.."
                f"{longest(allowed)}; {describe_big(player, player_seen)}")
    history = player.history.get(place, [(-1, None)])
    told = None
    for index, board in history:
        if index - player.first_index + 1 <= max(needed, 0):
            told = board
    wanted = told and [(name, *told.members[name]) for name in told.order()]
    return (f"  {place}: fits lengths {shortest(allowed)}..{longest(allowed)}\n"
            f"    seen {seen}\n"
            f"    told at {needed}: {wanted} expiry {told and told.expiry} {told and told.rules}")


def judge_player(player, seen, window, holds_readers):
    """seen: the player's keys. The verdict's faults say what cannot be."""
    counter = (0, f"{player.name}:n")
    everything = span(0, len(player.commands) + 1)
    needed = needed_length(player, holds_readers)
    by_key = {counter: lengths_of_counter(player, seen.get(counter))}
    others = rolling.places(player) | big.places(player) | {counter}
    by_key[0, f"{player.name}:{big.KEYS[0]}"] = big.lengths(player, seen)
    for board in player.rolling.values():
        by_key[0, board.key] = lengths_of_rolling(player, board, seen, window)
    for place in set(player.history) | set(seen) - others:
        history = player.history.get(place, [(-1, None)])
        by_key[place] = lengths_of_key(player, history, seen.get(place), window)
    candidates = everything
    for allowed in by_key.values():
        candidates &= allowed
    faults = []
    if candidates == 0:
        faults.append(f"{player.name}: what is there is what no prefix of {len(player.commands)} "
                      f"commands left ({needed} are acknowledged or were shown):")
        whole = span(needed, len(player.commands) + 1)
        faults += [describe(player, place, allowed, seen, needed)
                   for place, allowed in by_key.items() if not allowed & whole]
    return Verdict(player, candidates, needed, faults)


def lost_commands(verdict):
    """How many acknowledged commands are gone."""
    if verdict.candidates == 0:
        return 0
    return max(0, verdict.needed - longest(verdict.candidates))


def name_lost(verdict, limit=3):
    """Lines that name the first commands that are gone."""
    player, first = verdict.player, longest(verdict.candidates)
    lost = player.commands[first:verdict.needed]
    lines = [f"{player.name}: LOST {len(lost)} acknowledged commands, the first of them:"]
    for command in lost[:limit]:
        at = player.acked_seconds(command.index)
        lines.append(f"  {command}   acknowledged at {at:.6f}" if at else f"  {command}   (shown)")
    return lines


def is_one_moment(verdicts):
    """Do the prefixes fit one point in time? No command that was sent after another's reply may be
    there when that other is gone."""
    first_lost_ack, last_kept_sent = float("inf"), 0.0
    for verdict in verdicts:
        player = verdict.player
        if verdict.candidates == 0:
            continue
        high, low = longest(verdict.candidates), shortest(verdict.candidates)
        if high < len(player.acked_at):
            first_lost_ack = min(first_lost_ack, player.acked_at[high])
        if low > 0:
            last_kept_sent = max(last_kept_sent, player.sent_at[low - 1])
    return last_kept_sent <= first_lost_ack


# ---- the whole ----

def split(seen, players):
    """What was seen, by player; and the places of keys that nobody made."""
    by_player, strange = {player.name: {} for player in players}, []
    for place, board in seen.items():
        owner = place[1].partition(":")[0]
        if owner in by_player:
            by_player[owner][place] = board
        elif place != (0, SHARED_BOARD):
            strange.append(place)
    return by_player, strange


def shared_faults(verdicts, base, seen):
    """The board of all: each member counts what was added, within what is not acknowledged."""
    board = seen.get((0, SHARED_BOARD))
    values = {record[0].decode(): int(record[3]) for record in board.records} if board else {}
    faults = []
    for name in set(values) | set(base):
        lowest = highest = base.get(name, 0)
        for verdict in verdicts:
            player = verdict.player
            low, high = shortest(verdict.candidates), longest(verdict.candidates)
            lengths = [index - player.first_index + 1 for index, added in player.shared_added
                       if added == name]
            lowest += sum(length <= low for length in lengths)
            highest += sum(length <= high for length in lengths)
        if not lowest <= values.get(name, 0) <= highest:
            faults.append(f"shared board: {name} is {values.get(name, 0)}, {lowest}..{highest} "
                          f"was added")
    return faults, values


class Judgement:
    """All verdicts on one dump. faults: what can never be. lost: acknowledged (holds_readers: or
    shown to others) and gone."""

    def __init__(self, players, shared_base, seen, window, holds_readers=False):
        self.by_player, strange = split(seen, players)
        self.verdicts = [judge_player(player, self.by_player[player.name], window, holds_readers)
                         for player in players]
        self.faults = [line for verdict in self.verdicts for line in verdict.faults]
        self.faults += [f"{place}: nobody made this key" for place in strange]
        faults, self.shared = shared_faults(self.verdicts, shared_base, seen)
        if all(verdict.candidates for verdict in self.verdicts):
            self.faults += faults
        if not is_one_moment(self.verdicts):
            self.faults.append("what is kept of different players is of different moments")
        self.lost = sum(map(lost_commands, self.verdicts))

    def lost_lines(self):
        return [line for verdict in self.verdicts if lost_commands(verdict) > 0
                for line in name_lost(verdict)]

    def first_lost_at(self):
        """When the first command that is gone was acknowledged; None: nothing is lost."""
        times = [verdict.player.acked_at[longest(verdict.candidates)]
                 for verdict in self.verdicts
                 if 0 <= longest(verdict.candidates) < len(verdict.player.acked_at)]
        return min(times, default=None)

    def adopt(self):
        """Let every player go on from what is there."""
        for verdict in self.verdicts:
            player = verdict.player
            seen = self.by_player[player.name]
            counter = seen.pop((0, f"{player.name}:n"), None)
            others = rolling.places(player) | big.places(player)
            state = {place: adopted(player, board) for place, board in seen.items()
                     if place not in others}
            player.big = big.adopted(player, seen)
            player.rolling = rolling.adopted(player, seen)
            player.begin(state, self.shared, int(counter.records[0][3]) if counter else 0)


def adopted(player, seen):
    """The twin's board of what was seen, or its hash."""
    if seen.rules == hashes.RULES:
        return hashes.adopted(seen)
    layout, cap, is_best, is_created, _ = seen.rules
    rules = rules_of(layout, cap=cap, is_best=is_best, is_created=is_created)
    records = seen.records[::-1] if rules.is_latest else seen.records
    members = {}
    for record in records:
        player.arrival += 1
        fields = tuple(map(stored, rules.fields, record[3:]))
        members[record[0].decode()] = Entry(fields, record[2] or 0, player.arrival)
    expiry = None if seen.expire_at_ms == -1 else Expiry(seen.expire_at_ms, None)
    return Board(rules, members, expiry)
