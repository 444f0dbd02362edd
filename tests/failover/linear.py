"""Is a history linearizable? Decided exactly, in O(n log n), for the two kinds of objects that the
clients use, each member of a board being an object of its own:

register  set(v), every v written once, and get. Gibbons and Korach, "Testing shared memories" (SIAM
          Journal on Computing, 1997): all operations on one value form a cluster, which begins to matter
          at the earliest end of any of them, and matters until the latest start. Two clusters that must
          each come before the other are a violation, and without such a pair there is an order.
counter   inc, which answers with the new value, and read. The values give the order; what remains is to
          compare it with real time, and to find for every value that nobody was given an increment whose
          client does not know what became of it.

An operation whose outcome its client does not know (the connection broke, or time ran out) may have
happened at any time after its start, or never: its end is infinite. `search` decides the same by trying
all orders, for small histories: the tests compare them.
"""
import bisect
from typing import NamedTuple, Optional

NEVER = float("inf")
SET, GET, INC, READ = "set", "get", "inc", "read"


class Operation(NamedTuple):
    """kind, and value: what was set, what was read (None: nothing there), or what inc answered (None:
    unknown). start and end in nanoseconds of the monotonic clock; end is NEVER if unknown."""
    kind: str
    value: Optional[int]
    start: float
    end: float
    client: str = ""

    def __str__(self):
        took = "?" if self.end == NEVER else f"{(self.end - self.start) / 1e6:.3f}"
        return f"{self.kind}({self.value}) by {self.client} at {self.start / 1e6:.3f} ms, {took} ms"


# ---- registers ----

class Cluster:
    """The operations on one value."""

    def __init__(self, value):
        self.value, self.write = value, None
        self.reads = []
        self.earliest_end, self.latest_start = NEVER, -NEVER
        self.ended = self.began = None  # the operations that have these times

    def add(self, operation):
        if operation.end < self.earliest_end or self.ended is None:
            self.earliest_end, self.ended = operation.end, operation
        if operation.start > self.latest_start or self.began is None:
            self.latest_start, self.began = operation.start, operation
        if operation.kind == SET:
            self.write = operation
        else:
            self.reads.append(operation)


def clusters_of(operations):
    """By value. A write of unknown outcome that nobody has read has no cluster: it need not have been."""
    clusters = {None: Cluster(None)}
    clusters[None].add(Operation(SET, None, -NEVER, -NEVER, "the beginning"))
    for operation in operations:
        clusters.setdefault(operation.value, Cluster(operation.value)).add(operation)
    return {value: cluster for value, cluster in clusters.items()
            if cluster.reads or cluster.write is None or cluster.write.end != NEVER}


def check_register(operations):
    """Why it is not linearizable, in words; None: it is."""
    clusters = clusters_of(operations)
    for cluster in clusters.values():
        if cluster.write is None:
            return f"{cluster.reads[0]}: nobody has written that"
        for read in cluster.reads:
            if read.end < cluster.write.start:
                return f"{read} has ended before {cluster.write} began"
    forward = sorted((cluster for cluster in clusters.values()
                      if cluster.earliest_end < cluster.latest_start),
                     key=lambda cluster: cluster.earliest_end)
    for first, second in zip(forward, forward[1:]):
        if second.earliest_end < first.latest_start:
            return explain(first, second)
    begins = [cluster.earliest_end for cluster in forward]
    for cluster in clusters.values():
        at = bisect.bisect_left(begins, cluster.latest_start) - 1
        if at >= 0 and cluster is not forward[at] and \
                cluster.earliest_end < forward[at].latest_start:
            return explain(cluster, forward[at])
    return None


def explain(one, other):
    return (f"{one.ended} has ended before {other.began} began, and {other.ended} before {one.began}: "
            f"each value would have to come before the other")


# ---- counters ----

def position(operation):
    """An increment comes before the reads of its value."""
    return (operation.value or 0, operation.kind == READ)


def check_counter(operations):
    """Why it is not linearizable, in words; None: it is. Increments are by 1."""
    known = sorted((operation for operation in operations if operation.end != NEVER), key=position)
    unknown = sorted(operation.start for operation in operations
                     if operation.kind == INC and operation.end == NEVER)
    created = set()
    for operation in known:
        if operation.kind == INC:
            if operation.value in created:
                return f"{operation}: another increment was given the same"
            created.add(operation.value)
    behind = first_end_behind(known)
    for operation, first in zip(known, behind):
        if first is not None and first.end < operation.start:
            return f"{first} has ended before {operation} began"
    return fill_gaps(known, created, behind, unknown)


def first_end_behind(known):
    """For each operation, in the order of positions: of those at later positions the one that ends
    first, or None."""
    behind, first, held = [None] * len(known), None, None
    for i in range(len(known) - 1, -1, -1):
        if i + 1 < len(known) and position(known[i + 1]) != position(known[i]):
            first = held
        behind[i] = first
        if held is None or known[i].end < held.end:
            held = known[i]
    return behind


def fill_gaps(known, created, behind, unknown):
    """Every value that was seen, and every one below it, was made by somebody: by an increment of unknown
    outcome that began before the first end of what comes later."""
    highest = max((position(operation)[0] for operation in known), default=0)
    ends, earliest = {}, None
    for operation in reversed(known):  # first end at or above each value
        if earliest is None or operation.end < earliest.end:
            earliest = operation
        ends[position(operation)[0]] = earliest
    latest, used = None, 0
    limits = []
    for value in range(highest, 0, -1):
        latest = ends.get(value, latest)
        if value not in created:
            limits.append((value, latest))
    for value, limit in reversed(limits):
        if used == len(unknown) or unknown[used] > limit.end:
            return f"{limit}: no increment can have made {value}"
        used += 1
    return None


# ---- trying all orders ----

def search(operations, is_counter):
    """Whether there is an order: Wing and Gong's search, which remembers where it has been."""
    known = [operation for operation in operations
             if operation.end != NEVER or operation.kind in (SET, INC)]
    visited = set()

    def step(state, operation):
        """The state behind an operation; -1: it would have answered otherwise."""
        if operation.kind == SET:
            return operation.value
        if operation.kind == INC:
            after = (state or 0) + 1
            return after if operation.value in (None, after) else -1
        seen = operation.value or 0 if is_counter else operation.value
        return state if seen == (state or 0 if is_counter else state) else -1

    def go(left, state):
        if all(known[i].end == NEVER for i in left):
            return True
        if (left, state) in visited:
            return False
        visited.add((left, state))
        first_end = min(known[i].end for i in left)
        for i in left:
            if known[i].start <= first_end:
                after = step(state, known[i])
                if after != -1 and go(left - {i}, after):
                    return True
        return False
    return go(frozenset(range(len(known))), None)
