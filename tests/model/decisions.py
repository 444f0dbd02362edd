"""The decisions of the protocol: pure functions, each also in C (server/replication/term.h).

The model (protocol.py) asks these, the server asks their twins in C, and twins.py compares the two
over random arguments. So what the model proves is what the server decides.

A term is a pair (counter, node id), a position is (term of the last group, its number): both are
ordered as Python orders tuples. Times are in milliseconds.
"""


def votes_needed(nodes, replicas):
    """How many nodes, the promoted one included, must have voted for a term before it opens.

    A write is answered when `replicas` and the master hold it: any so many votes include one of
    them."""
    return nodes - replicas


def next_term(highest, node):
    """The term that `node` takes: above every term that it knows, and no other node's."""
    return (highest[0] + 1, node)


def may_vote(term, voted, forgot, released, group, now, held_until):
    """Whether a node votes for `term`: only upwards (or once more what it has voted for), and not while
    a master's lease may lean on it. Who has lost durability does not, unless it is released or has nothing
    at all (`group` 0): such votes count where all do (all_count, may_begin)."""
    return (not forgot or released or group == 0) and term >= voted and now >= held_until


def may_take(term, voted):
    """Whether groups, or a probe, of a master that is open in `term` are taken: nobody older than
    what was voted for."""
    return term >= voted


def may_ack(term, voted, forgot):
    """Whether a node acknowledges a group, or answers a probe, of a master that is open in `term`."""
    return term == voted and not forgot


def kth_greatest(values, k):
    """The k-th greatest of `values`, k from 1; 0 if there are fewer."""
    return sorted(values, reverse=True)[k - 1] if len(values) >= k else 0


def safe_group(disk, acks, replicas, mark):
    """The last group that is safe: on the master's own disk, and acknowledged by `replicas` others
    in the master's own term. `acks` holds one group for each of them. None is (0) before that reaches
    the start mark of its own term: groups of older terms may be replaced, however many have them, until
    one of this term is behind them."""
    group = min(disk, kth_greatest(acks, replicas)) if replicas else disk
    return group if group >= mark else 0


def all_count(forgot, released, others_released, votes, nodes):
    """Whether the votes of those that have lost durability count, as any of them may have been the only one
    to acknowledge a write: all others have voted (`votes` of them), and somebody was told to make do with
    what is left, by taking its promise away: the promoted node itself, or `others_released` of the others."""
    return 1 + votes >= nodes and (released or (not forgot and others_released > 0))


def may_open(position, voted_positions, nodes, replicas, forgot, now, held_until):
    """Whether a promoted node opens: votes enough, itself one of them; nobody among those has
    more than it has; it has not lost durability; and no master's lease leans on it."""
    return (not forgot and now >= held_until
            and 1 + len(voted_positions) >= votes_needed(nodes, replicas)
            and all(other <= position for other in voted_positions))


def may_begin(group, forgot, empty_voted, nodes, now, held_until):
    """Whether a node that has nothing opens, as the first: all others have voted for it, and have nothing
    either. So a node that has lost its disk does not begin anew beside those that remember."""
    return forgot and group == 0 and 1 + empty_voted >= nodes and now >= held_until


def lease_end(sent, replicas, lease):
    """When a master stops answering readers: `lease` after the sending of the newest probe that
    `replicas` others have answered. `sent` holds for each of them when the newest probe that it has
    answered was sent (0: none)."""
    newest = kth_greatest(sent, replicas) if replicas else 0
    return newest + lease if newest else 0


def hold_end(answered, lease):
    """Until when a node that has answered a probe at `answered` votes and opens nothing: longer
    than the lease, as its clock may run faster than the master's."""
    return answered + lease + lease // 10 + 1
