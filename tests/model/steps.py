#!/usr/bin/env python3
"""The steps of the server's quorum, as the simulator has seen them, are steps of the model.

    build/simulated/simulate ... --steps | tests/model/steps.py

Each line is what a server has done in a tick. A step must be an action of protocol.py, and its guard,
which is a function of decisions.py, must hold for what the server knew. Other lines are passed on. Exits
with 1 if there is a step that the model does not have, or a schedule has failed."""
import sys
from collections import Counter, namedtuple

import decisions

OFF, REPLICA, CLOSED, PULLING, OPEN = range(5)
# Between two ticks; the model's actions, and those that may follow each other at once.
ROLES = {
    (OFF, REPLICA): 'start', (OFF, CLOSED): 'start', (REPLICA, CLOSED): 'promote',
    (CLOSED, REPLICA): 'follow', (PULLING, REPLICA): 'follow', (OPEN, REPLICA): 'follow',
    (OPEN, CLOSED): 'take_term', (CLOSED, PULLING): 'pull', (PULLING, CLOSED): 'pull',
    (CLOSED, OPEN): 'open', (PULLING, OPEN): 'open',
}
NONE = '0' * 40
FOR_EVER = 1 << 64

# voted: for what it wants to have voted; saved: for what it has, on its disk; forgot: '1', or '2' if it is
# released, too; held: a lease leans on it
State = namedtuple('State', 'role node voted saved term forgot group held')
KEPT, RELEASED = '0', '2'


class Impossible(Exception):
    pass


def demand(condition, what):
    if not condition:
        raise Impossible(what)


def counter(term):
    return int(term[:12], 16)


class Run:
    """One schedule."""

    def __init__(self):
        self.states = {}
        self.asked, self.opened = set(), {}
        self.wanted = {}  # per server: what it has ever wanted to vote for
        self.saved = {}  # per node id: what it has voted for
        self.opening, self.safe = set(), {}

    def begin(self, server):
        """A process begins: it knows what is on its disk."""
        if server in self.states:
            before = self.states[server]
            self.states[server] = before._replace(role=OFF, voted=before.saved)

    def release(self, server):
        """It loses its promise, and comes back as another node."""
        self.states.pop(server, None)
        self.wanted.pop(server, None)

    def state(self, server, *fields):
        role, node, voted, saved, term, forgot, group, held = fields
        now = State(int(role), node, voted, saved, term, forgot, int(group), held == '1')
        before = self.states.get(server, State(OFF, node, voted, saved, NONE, now.forgot, 0, False))
        self.states[server] = now
        action = None
        if now.role != before.role:
            action = ROLES.get((before.role, now.role))
            demand(action, 'no action leads from %d to %d' % (before.role, now.role))
            demand(now.role != OPEN or server in self.opening, 'it is open, and has not opened')
        self.opening.discard(server)
        if now.role == CLOSED:
            self.asked.add(now.term)
        if now.voted != before.voted:
            action = self.vote(before, now)
        self.wanted.setdefault(server, {saved}).add(voted)
        demand(saved in self.wanted[server], 'its disk says what it has not voted for')
        demand(saved >= before.saved, 'its vote goes back')
        self.saved.setdefault(node, set()).add(saved)
        return action

    def vote(self, before, now):
        term = now.voted
        if term[12:28] == now.node:
            demand(counter(term) >= decisions.next_term((counter(before.voted), 0), 0)[0],
                   'its term is not above what it has voted for')
            return 'take_term'
        if term in self.opened:
            demand(decisions.may_take(term, before.voted), 'it takes groups of an older term')
            return 'take'
        demand(term in self.asked, 'nobody asks for votes in this term')
        demand(decisions.may_vote(term, before.voted, before.forgot != KEPT, before.forgot == RELEASED, now.group,
                                  0, int(now.held)), 'it may not vote')
        return 'vote'

    def open(self, server, term, own_term, own_group, nodes, replicas, held, *votes):
        state = self.states[server]
        own, nodes, replicas, held = (own_term, int(own_group)), int(nodes), int(replicas), int(held)
        forgot, released, count = state.forgot != KEPT, votes[5::6].count(RELEASED), len(votes) // 6
        all_count = decisions.all_count(forgot, state.forgot == RELEASED, released, count, nodes)
        kept, positions, empty = [], [], 0
        for at in range(0, len(votes), 6):
            _, node, voted, position, group, peer_forgot = votes[at:at + 6]
            demand(voted == term and term in self.saved.get(node, ()), 'a vote that was not given')
            empty += peer_forgot != KEPT and group == '0'
            positions.append((position, int(group)))
            if peer_forgot == KEPT:
                kept.append(positions[-1])
        demand(len(set(votes[1::6])) == count, 'a vote that counts twice')
        demand(state.saved == term and state.voted == term, 'it has not voted for its own term')
        demand(term not in self.opened, 'this term was opened before')
        # Who is not connected any more does not count among all, and the server knows it.
        demand(decisions.may_open(own, kept, nodes, replicas, forgot, 0, held)
               or all_count and decisions.may_open(own, positions, nodes, replicas, False, 0, held)
               or decisions.may_begin(own[1], forgot, empty, nodes, 0, held), 'it may not open')
        self.opened[term] = server
        self.opening.add(server)
        self.safe[term] = 0

    def safe_now(self, server, term, group, mark, replicas, *acks):
        demand(self.opened.get(term) == server, 'it is not open in this term')
        latest = {acks[at + 1]: int(acks[at + 2]) for at in range(0, len(acks), 3)}
        expected = decisions.safe_group(FOR_EVER, list(latest.values()), int(replicas), int(mark))
        demand(int(group) == max(expected, self.safe[term]),
               'the model has %d safe' % max(expected, self.safe[term]))
        self.safe[term] = int(group)
        return 'count_ack'

    def acknowledge(self, server, term, saved, forgot, _):
        demand(term in self.opened, 'nobody is open in this term')
        demand(decisions.may_ack(term, saved, forgot != KEPT), 'it may not acknowledge')
        return 'take'


def main():
    run, counts, number, has_failed = Run(), Counter(), 0, False
    for line in sys.stdin:
        if not line.startswith(' '):
            print(line, end='')
            has_failed |= line.endswith(' failed\n') and not line.endswith(' 0 failed\n')
            continue
        number += 1
        words = line.split()
        if words == ['schedule']:
            run = Run()
            continue
        if words[0] != 'state' and words.pop() != 'end':
            continue  # the schedule has ended here
        take = {'begin': run.begin, 'release': run.release, 'state': run.state, 'open': run.open, 'safe': run.safe_now,
                'acknowledge': run.acknowledge}[words[0]]
        try:
            counts[take(*words[1:])] += 1
        except Impossible as what:
            print('step %d is none of the model: %s: %s' % (number, what, line.strip()))
            return 1
    del counts[None]
    print('steps of the model: %s' % ', '.join('%d %s' % (n, name) for name, n in sorted(counts.items())))
    return int(has_failed)


if __name__ == '__main__':
    sys.exit(main())
