"""Compares the decisions of the server (server/replication/term.c), called as they are from a shared object, with those of the model, over random arguments."""
import ctypes
import random

import decisions

COUNTER_MAX = 2 ** 48 - 1
ROUNDS = 20_000


class Term(ctypes.Structure):
    _fields_ = [('text', ctypes.c_char * 41)]


class Position(ctypes.Structure):
    _fields_ = [('term', Term), ('group', ctypes.c_uint64)]


def c_term(term):
    return Term(b'%012x%016x%012x' % (term[0], term[1], 0))


def c_position(position):
    return Position(c_term(position[0]), position[1])


def declare(library):
    boolean, integer, group = ctypes.c_bool, ctypes.c_int64, ctypes.c_uint64
    count, term = ctypes.c_uint32, ctypes.POINTER(Term)
    positions = ctypes.POINTER(Position)
    for name, result, arguments in (
            ('term_compare', ctypes.c_int, (term, term)),
            ('term_next', boolean, (term, group, group, term)),
            ('term_position_compare', ctypes.c_int, (positions, positions)),
            ('term_votes_needed', count, (count, count)),
            ('term_may_vote', boolean, (term, term, boolean, boolean, group, integer, integer)),
            ('term_may_take', boolean, (term, term)),
            ('term_may_ack', boolean, (term, term, boolean)),
            ('term_safe_group', group, (group, ctypes.POINTER(group), count, count, group)),
            ('term_all_count', boolean, (boolean, boolean, count, count, count)),
            ('term_may_open', boolean,
             (positions, positions, count, count, count, boolean, integer, integer)),
            ('term_may_begin', boolean, (group, boolean, count, count, integer, integer)),
            ('term_lease_end', integer, (ctypes.POINTER(integer), count, count, integer)),
            ('term_hold_end', integer, (integer, integer))):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def sign(number):
    return (number > 0) - (number < 0)


def compare(path, seed):
    """Returns how many decisions were compared; raises AssertionError at the first that differs."""
    library = ctypes.CDLL(path)
    declare(library)
    chance = random.Random(seed)
    compared = 0

    def same(what, ours, theirs, *arguments):
        nonlocal compared
        compared += 1
        assert ours == theirs, '%s%r: model %r, server %r' % (what, arguments, ours, theirs)

    # Few values, so that equal ones meet.
    def a_term():
        return (chance.choice((0, 1, 2, 3, 9, 10, COUNTER_MAX)), chance.randrange(3))

    def a_position():
        return (a_term(), chance.randrange(4))

    for _ in range(ROUNDS):
        term, voted, forgot = a_term(), a_term(), chance.random() < 0.3
        released = forgot and chance.random() < 0.5
        now, held = chance.randrange(4), chance.randrange(4)
        group = chance.randrange(3)
        c_one, c_other = c_term(term), c_term(voted)
        same('compare', (term > voted) - (term < voted),
             sign(library.term_compare(c_one, c_other)), term, voted)
        next_term = Term()
        has_next = library.term_next(c_one, 7, chance.getrandbits(64), next_term)
        same('has_next', term[0] < COUNTER_MAX, has_next, term)
        if has_next:
            same('next_term', decisions.next_term(term, 7),
                 (int(next_term.text[:12], 16), int(next_term.text[12:28], 16)), term)
        same('may_vote', decisions.may_vote(term, voted, forgot, released, group, now, held),
             library.term_may_vote(c_one, c_other, forgot, released, group, now, held),
             term, voted, forgot, released, group, now, held)
        same('may_take', decisions.may_take(term, voted),
             library.term_may_take(c_one, c_other), term, voted)
        same('may_ack', decisions.may_ack(term, voted, forgot),
             library.term_may_ack(c_one, c_other, forgot), term, voted, forgot)

        nodes = chance.randint(2, 7)
        replicas = chance.randrange(nodes)
        same('votes_needed', decisions.votes_needed(nodes, replicas),
             library.term_votes_needed(nodes, replicas), nodes, replicas)
        count = chance.randrange(nodes)
        acks = [chance.randrange(5) for _ in range(count)]
        disk = chance.choice((0, 2, 3, 2 ** 64 - 1))
        mark = chance.randrange(6)
        same('safe_group', decisions.safe_group(disk, acks, replicas, mark),
             library.term_safe_group(disk, (ctypes.c_uint64 * count)(*acks), count, replicas,
                                         mark),
             disk, acks, replicas, mark)
        lease = chance.choice((0, 1, 9, 10, 1000, 60000))
        same('lease_end', decisions.lease_end(acks, replicas, lease),
             library.term_lease_end((ctypes.c_int64 * count)(*acks), count, replicas, lease),
             acks, replicas, lease)
        same('hold_end', decisions.hold_end(now, lease), library.term_hold_end(now, lease),
             now, lease)

        position = a_position()
        positions = [a_position() for _ in range(count)]
        c_positions = (Position * count)(*map(c_position, positions))
        for other, c_other_position in zip(positions, c_positions):
            same('compare positions', (other > position) - (other < position),
                 sign(library.term_position_compare(c_other_position, c_position(position))),
                 other, position)
        others = chance.randint(0, count)
        same('all_count', decisions.all_count(forgot, released, others, count, nodes),
             library.term_all_count(forgot, released, others, count, nodes),
             forgot, released, others, count, nodes)
        same('may_open',
             decisions.may_open(position, positions, nodes, replicas, forgot, now, held),
             library.term_may_open(c_position(position), c_positions, count, nodes, replicas,
                                       forgot, now, held),
             position, positions, nodes, replicas, forgot, now, held)
        same('may_begin', decisions.may_begin(group, forgot, count, nodes, now, held),
             library.term_may_begin(group, forgot, count, nodes, now, held),
             group, forgot, count, nodes, now, held)
    return compared
