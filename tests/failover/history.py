"""What the clients wrote down, and whether a sound server can have answered so."""
from collections import Counter
from typing import NamedTuple

from linear import (GET, INC, NEVER, READ, SET, Operation, check_counter, check_register, position)

WRITES = ("set", "inc", "tie", "once")
SHOWN_MAX = 12
CLIENT_LIMIT_NS = 950_000_000  # a client waits for a second: behind that it has given up, and nobody else


class Line(NamedTuple):
    """One command of a client: see clients/redis_py.py."""
    client: str  # its number; of a user who shares the boards, "3/limited"
    operation: str
    member: str
    argument: int
    start: int
    end: int
    outcome: str
    answer: str


def parse(text):
    client, operation, member, argument, start, end, outcome, answer = text.split()
    return Line(client, operation, member, int(argument), int(start), int(end), outcome, answer)


def value_of(answer):
    return None if answer == "-" else int(answer)


class Final:
    """What is there at the end, when all is healed: scores of members by name, and the ties in order of
    ranks; at: when it was read. results: how many of each client count."""

    def __init__(self, registers, counters, ties, at, results=None):
        self.registers, self.counters, self.ties, self.at = registers, counters, ties, at
        self.results = results or {}

    def read(self, kind, member):
        scores = self.registers if kind == GET else self.counters
        return Operation(kind, scores.get(member), self.at, self.at, "the end")


class Judgement:
    """Figures of one round, and what was found wrong, in words."""

    def __init__(self):
        self.figures = Counter()
        self.found = []
        self.unavailable_s = 0.0

    def find(self, text):
        self.figures["violations"] += 1
        if len(self.found) < SHOWN_MAX:
            self.found.append(text)


def judge(lines, final, is_tie_order_kept, withdrawn=(), stops=()):
    """lines of all clients, and what is there at the end; withdrawn: (from, to) when the limited user might not write;
    stops: (from, to) of a SIGTERM of the master."""
    judgement = Judgement()
    figures = judgement.figures
    for line in lines:
        is_write = line.operation in WRITES
        figures["writes " + line.outcome if is_write else "reads " + line.outcome] += 1
    judgement.unavailable_s = longest_without(lines)
    judge_rights(judgement, lines, withdrawn)
    judge_stops(judgement, lines, final, stops)
    judge_ties(judgement, [line for line in lines if line.operation == "tie"], final.ties,
               is_tie_order_kept)
    judge_results(judgement, [line for line in lines if line.operation == "once"], final.results)
    objects = {(is_counter, member): [] for is_counter, scores in
               ((False, final.registers), (True, final.counters)) for member in scores}
    for line in lines:
        operation = operation_of(line)
        if operation is not None:
            objects.setdefault((line.operation in (INC, READ), line.member), []).append(operation)
    for (is_counter, member), operations in sorted(objects.items()):
        name = f"{'counter' if is_counter else 'register'} {member}"
        end = final.read(READ if is_counter else GET, member)
        check = judge_counter if is_counter else judge_register
        check(judgement, name, operations, end)
    return judgement


def operation_of(line):
    """None for what did nothing, or saw nothing."""
    if line.operation in ("tie", "once") or line.outcome == "refused":
        return None
    is_known = line.outcome == "ok"
    if line.operation in (GET, READ):
        return Operation(line.operation, value_of(line.answer), line.start, line.end, line.client) \
            if is_known else None
    value = line.argument if line.operation == SET else value_of(line.answer) if is_known else None
    return Operation(line.operation, value, line.start, line.end if is_known else NEVER, line.client)


def longest_without(lines):
    """The longest time, in seconds, in which no write of anybody was acknowledged."""
    ends = sorted(line.end for line in lines if line.operation in WRITES and line.outcome == "ok")
    if not ends:
        return 0.0
    ends = [min(line.start for line in lines)] + ends + [max(line.end for line in lines)]
    return max(after - before for before, after in zip(ends, ends[1:])) / 1e9


# ---- users ----

def judge_rights(judgement, lines, withdrawn):
    """Nobody writes without the right to."""
    limited = [line for line in lines if line.operation in WRITES and line.client.endswith("/limited")]
    judgement.figures["limited ok"] += sum(line.outcome == "ok" for line in limited)
    judgement.figures["limited refused"] += sum(line.outcome == "refused" for line in limited)
    for line in limited:
        if line.outcome == "ok" and any(begin < line.start and line.end < end for begin, end in withdrawn):
            judgement.figures["without a right"] += 1
            judgement.find(f"{line.client} has written {line.member} without the right to")


# ---- stops ----

def judge_stops(judgement, lines, final, stops):
    """Of writes that were on their way when the master was told to end: those that are there were answered. A client that has
    given up does not count."""
    there = set(final.ties)
    for line in lines:
        if line.operation == "tie" and line.outcome == "unknown" and line.member in there and \
                line.end - line.start < CLIENT_LIMIT_NS and \
                any(line.start < end and begin < line.end for begin, end in stops):
            judgement.figures["unanswered at a stop"] += 1
            judgement.find(f"{line.client} was not answered {line.member} at a stop, and it is there: "
                           f"{line.start / 1e6:.3f} to {line.end / 1e6:.3f} ms")


# ---- registers ----

def judge_register(judgement, name, operations, end):
    found = check_register(operations + [end])
    if found is None:
        return
    writes = {operation.value: operation for operation in operations if operation.kind == SET}
    lost = lost_sets(writes, end)
    stale = stale_reads(writes, operations + [end])
    judgement.figures["lost"] += lost
    judgement.figures["stale"] += stale
    judgement.find(f"{name}: {found} ({lost} lost, {stale} stale)")


def lost_sets(writes, end):
    """Acknowledged writes that began when the write that is there at the end had ended."""
    after = writes[end.value].end if end.value in writes else -NEVER
    return sum(write.end != NEVER and write.start > after for write in writes.values())


def is_written_before(writes, one, other):
    """Whether one value was acknowledged before the other's write began."""
    if one == other or other not in writes:
        return False
    return one is None or (one in writes and writes[one].end < writes[other].start)


def stale_reads(writes, operations):
    """Reads of what another operation had shown to be over, and which was there again afterwards: so it
    was not lost, but the reader was told something old. Looks at pairs: for histories that failed."""
    seen = sorted((operation for operation in operations if operation.end != NEVER),
                  key=lambda operation: operation.end)
    count = 0
    for read in operations:
        if read.kind != GET:
            continue
        newer = {other.value for other in seen
                 if other.end < read.start and is_written_before(writes, read.value, other.value)}
        count += any(other.value in newer and other.start > read.end and other.kind == GET
                     for other in seen)
    return count


# ---- counters ----

def judge_counter(judgement, name, operations, end):
    found = check_counter(operations + [end])
    if found is None:
        return
    acked = [operation for operation in operations if operation.kind == INC and operation.end != NEVER]
    twice = len(acked) - len({operation.value for operation in acked})
    lost = max(twice, len(acked) - (end.value or 0), 0)
    stale = 0 if lost else count_going_back(operations + [end])
    judgement.figures["lost"] += lost
    judgement.figures["stale"] += stale
    judgement.find(f"{name}: {found} ({lost} lost, {stale} stale)")


def count_going_back(operations):
    """Reads of a value below one that was answered before they began."""
    ends = sorted((operation for operation in operations if operation.end != NEVER),
                  key=lambda operation: operation.end)
    reads = sorted((operation for operation in operations if operation.kind == READ),
                   key=lambda operation: operation.start)
    count, highest, at = 0, 0, 0
    for read in reads:
        while at < len(ends) and ends[at].end < read.start:
            highest = max(highest, position(ends[at])[0])
            at += 1
        count += position(read)[0] < highest
    return count


# ---- results that are sent again ----

def judge_results(judgement, lines, results):
    """Each that was answered counts once, however often it was sent, and of the others each at most once."""
    for member in sorted({line.member for line in lines} | set(results)):
        own, count = [line for line in lines if line.member == member], results.get(member, 0)
        answered = {line.argument for line in own if line.outcome == "ok"}
        sent = {line.argument for line in own if line.outcome != "refused"}
        judgement.figures["sent again"] += sum(line.outcome == "ok" and line.answer == "0" for line in own)
        if count < len(answered):
            judgement.figures["lost"] += len(answered) - count
            judgement.find(f"results: {count} of {member} count, and {len(answered)} were acknowledged")
        if count > len(sent):
            judgement.figures["twice"] += count - len(sent)
            judgement.find(f"results: {count} of {member} count, and only {len(sent)} were sent")


# ---- ties ----

def judge_ties(judgement, lines, board, is_order_kept):
    """Members with one score: who was acknowledged is there, and before those who were sent later."""
    added = {line.member: line for line in lines if line.outcome != "refused"}
    there = set(board)
    for line in added.values():
        if line.outcome == "unknown" and line.member in there:
            has_given_up = line.end - line.start >= CLIENT_LIMIT_NS
            judgement.figures["unanswered in time" if has_given_up else "unanswered"] += 1
    lost = [line for line in added.values() if line.outcome == "ok" and line.member not in there]
    judgement.figures["lost"] += len(lost)
    if lost:
        first, last = min(line.start for line in lost), max(line.end for line in lost)
        judgement.find(f"ties: {len(lost)} acknowledged members are not there, written within "
                       f"{(last - first) / 1e9:.3f} s, the first {lost[0].member} at {first / 1e6:.3f} ms")
    for member in there - set(added):
        judgement.find(f"ties: nobody has added {member}, or it was refused")
    if not is_order_kept:
        return
    earliest, ended = NEVER, None
    for member in reversed(board):
        line = added.get(member)
        if line is None:
            continue
        if earliest < line.start:
            judgement.figures["out of order"] += 1
            judgement.find(f"ties: {ended} was acknowledged before {member} was sent, and ranks behind it")
        if line.outcome == "ok" and line.end < earliest:
            earliest, ended = line.end, member
