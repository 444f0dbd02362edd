"""The protocol behind sync-replicas as a machine of explicit states.

n nodes. A write is answered when the master and K replicas hold it; a promoted node opens when
n - K nodes, itself included, have voted for its term. The rules have the letters of
docs/internals/replication.md:

  T  each stretch of history has a term; the highest that a node has voted for is on disk, and decides
  G  a write is answered when K replicas have acknowledged it in the master's own term
  P  a promoted node is closed until it has n - K votes and the longest history among them
  F  who has lost durability votes for nothing, acknowledges nothing and opens nothing, until an open
     master has filled it with all that this master has at that moment
  D  what a replica holds beyond its master's history is dropped
  S  a master that opens writes a start mark in its own term; nothing is shown before that is safe
  R  who was released from its promise votes, but such votes count only where all n have voted
  B  nodes that have nothing begin together: one opens when all n say that they have nothing
  L  the lease: readers are answered only while K replicas hold back from voting

What surrounds the nodes is hostile. Messages are a growing set: each is delivered any number of
times, in any order, at any time, so cuts, delays, pauses and duplicates are all in it. Sentinel
promotes any node and points any node at any master at any time. Time is not counted: a probe
expires at any moment, and what holds by the clock is written in terms of it (see `probe`).

Invariants, in every state:
  kept    a node that is open in a term has every entry that was safe in that term or an older one
  fresh   a node that may answer readers has every entry that was ever safe

A state is (nodes, world). Terms are integers here, counter * n + node, which have the order of the
pairs in decisions.py; positions are (term of the last entry, length).
"""
from collections import namedtuple

import decisions

REPLICA, CLOSED, OPEN = 'replica', 'closed', 'open'
NOBODY = -1
START = 's'  # the entry that a master writes when it opens
RELEASED = 'released'  # what `forgot` is where the promise was removed

# role; voted: highest term voted for, on disk; term: in which it is open; log: ((term, entry), ..);
# follows: whom; forgot: has lost durability, or RELEASED; acks: per node, entries acknowledged to it in its term;
# votes: {(node, log, forgot)} given to its term; holds: probes answered, as bits; answers: per node, its
# probes that were answered, as bits
Node = namedtuple('Node', 'role voted term log follows forgot acks votes holds answers')

# messages as bits; what is left of writes, promotions, reopenings, crashes, probes, handovers, releases; alive:
# probes that have not expired, as bits; safe: {(term, place, entry)}
World = namedtuple('World', 'messages writes promotions reopenings crashes probes handovers releases alive safe')

RULES = {
    'T-compare': 'the longest history is found by length alone',
    'T-fence': 'who has voted for a term still follows older ones',
    'T-disk': 'a node that restarts has lost what it has voted for',
    'G-count': 'a write is answered one acknowledgement early',
    'G-own-term': 'acknowledgements of an older term count',
    'G-mark': 'groups of older terms are safe before the start mark is',
    'P-votes': 'a promoted node opens at once',
    'P-pull': 'a promoted node opens with what it has',
    'F-vote': 'who has lost durability votes',
    'F-fill': 'who has lost durability acknowledges, and counts as filled, with any part',
    'F-open': 'a master that has lost its tail goes on in its term',
    'F-promoted': 'who has lost durability opens when promoted',
    'D-drop': 'a replica keeps its tail and appends what is new behind it',
    'S-mark': 'a promoted node shows what it has at once',
    'R-all': 'who was released from its promise counts as any other',
    'R-term': 'a promoted node takes no term above the histories of those that were released',
    'B-all': 'a node that has nothing opens with enough others that have nothing',
    'B-nothing': 'a node that has nothing opens with all others, whatever they have',
    'L-check': 'a master answers readers without a lease',
    'L-hold': 'replicas vote though a lease leans on them',
    'L-open': 'a replica opens though a lease leans on it',
    'L-sending': 'the lease runs from the arrival of the answer',
    'L-restart': 'a replica that restarts votes at once',
    'L-hand-over': 'who is handed over to opens though the lease of another master leans on it',
}


class Protocol:
    """The actions of `nodes` nodes with `replicas` acknowledgements. `without` names the rules that
    are taken out; `crash` is None, 'amnesia' (a node's machine fails, and its history is lost), or
    'tail' (the last entry is). `empty`: all nodes begin with empty disks. `parts`: of what a master has
    when it opens, a replica takes the part before the start mark first, and acknowledges that."""

    def __init__(self, nodes=3, replicas=1, writes=1, promotions=1, reopenings=0, crashes=0,
                 probes=0, handovers=0, releases=0, crash='amnesia', empty=False, parts=False, without=()):
        assert not set(without) - set(RULES)
        self.n, self.k = nodes, replicas
        self.needed = 1 if 'P-votes' in without else decisions.votes_needed(nodes, replicas)
        self.acks_needed = replicas - 1 if 'G-count' in without else replicas
        self.without = frozenset(without)
        self.crash_kind, self.parts = crash, parts
        self.leases = probes > 0
        self.message_bits, self.message_list = {}, []
        none = (0,) * nodes
        followers = [Node(REPLICA, nodes, 0, (), 0, False, none, frozenset(), 0, none)
                     for _ in range(nodes)]
        master = Node(OPEN, nodes, nodes, (), NOBODY, False, none, frozenset(), 0, none)
        if empty:
            master = self.closed(master._replace(forgot=True), 0, 0)
            followers = [follower._replace(voted=0, forgot=True) for follower in followers]
        messages = 0
        for y in range(1, nodes if empty else 0):
            messages |= self.bit(('present', y, 0, 0))
        self.start = ((master, *followers[1:]),
                      World(messages, writes, promotions, reopenings, crashes, probes, handovers, releases, 0,
                            frozenset()))

    # ---- parts ------------------------------------------------------------------------------

    def has(self, rule):
        return rule not in self.without

    def bit(self, message):
        if message not in self.message_bits:
            self.message_bits[message] = 1 << len(self.message_list)
            self.message_list.append(message)
        return self.message_bits[message]

    def position(self, log):
        if not self.has('T-compare'):
            return (0, len(log))
        return (log[-1][0] if log else 0, len(log))

    def is_held(self, node, world):
        """Whether some master's lease may lean on this node."""
        return bool(node.holds & world.alive)

    def may_answer_readers(self, node, world):
        if node.role != OPEN or not self.leases:
            return False
        if not self.has('L-check'):
            return True
        alive = world.alive if self.has('L-sending') else -1
        return sum(1 for bits in node.answers if bits & alive) >= self.k

    def broken(self, state):
        """The name of an invariant that does not hold in `state`, with what broke it, or None."""
        nodes, world = state
        for i, node in enumerate(nodes):
            if node.role != OPEN:
                continue
            fresh = self.may_answer_readers(node, world)
            for term, place, entry in world.safe:
                if ((fresh or term <= node.term)
                        and (len(node.log) <= place or node.log[place] != entry)):
                    return '%s: %d is open in %d without %r of %d' % (
                        'kept' if term <= node.term else 'fresh', i, node.term, entry, term)
        return None

    def may_ever_open(self, node):
        return node.forgot is not True or not node.log or not self.has('F-promoted')

    # ---- actions: each yields (label, state) --------------------------------------------------

    def steps(self, state):
        nodes, world = state
        for i, node in enumerate(nodes):
            yield from self.write(state, i, node)
            yield from self.promote(state, i, node)
            yield from self.follow(state, i, node)
            yield from self.open(state, i, node)
            yield from self.crash(state, i, node)
            yield from self.restart(state, i, node)
            yield from self.probe(state, i, node)
            yield from self.hand_over(state, i, node)
        yield from self.release(state)
        yield from self.expire(state)
        left = world.messages
        while left:
            low = left & -left
            left ^= low
            message = self.message_list[low.bit_length() - 1]
            yield from getattr(self, 'get_' + message[0])(state, *message[1:])

    def changed(self, state, i, node, *messages, **world_changes):
        nodes, world = state
        bits = world.messages
        for message in messages:
            bits |= self.bit(message)
        if bits != world.messages or world_changes:
            world = world._replace(messages=bits, **world_changes)
        return (nodes[:i] + (node,) + nodes[i + 1:], world)

    def made_safe(self, safe, node, length):
        return safe | {(node.term, place, entry) for place, entry in enumerate(node.log[:length])}

    def safe_length(self, node, i):
        """How much of an open node's log is safe: what K others have acknowledged, if that reaches
        the start mark of its own term."""
        acks = [count for other, count in enumerate(node.acks) if other != i]
        mark = next((place for place, entry in enumerate(node.log) if entry[0] == node.term), 0) + 1
        return decisions.safe_group(len(node.log), acks, self.acks_needed,
                                    mark if self.has('G-mark') else 0)

    def write(self, state, i, node):
        """A client writes."""
        world = state[1]
        if node.role != OPEN or not world.writes:
            return
        node = node._replace(log=node.log + ((node.term, world.writes),))
        safe = self.made_safe(world.safe, node, self.safe_length(node, i))
        yield ('write %d' % i, self.changed(state, i, node, ('append', i, node.term, node.log),
                                            writes=world.writes - 1, safe=safe))

    def promote(self, state, i, node):
        """SLAVEOF NO ONE; also a master's clean restart. Takes a term, closed. Who has lost durability
        stays as it is: it would never open."""
        world = state[1]
        if not world.promotions or not self.may_ever_open(node):
            return
        if node.role == OPEN:
            return
        yield ('promote %d' % i, self.changed(state, i, self.closed(node, i, self.known(node)),
                                              promotions=world.promotions - 1))

    def known(self, node):
        """The highest term that it knows. Without its promise it may have voted for less than it has."""
        return max(node.voted, node.log[-1][0]) if node.log and self.has('R-term') else node.voted

    def closed(self, node, i, highest):
        counter, owner = decisions.next_term((highest // self.n, highest % self.n), i)
        return node._replace(role=CLOSED, voted=counter * self.n + owner, term=0, follows=NOBODY,
                             acks=(0,) * self.n, votes=frozenset(), answers=(0,) * self.n)

    def follow(self, state, i, node):
        """SLAVEOF x: the node registers there with what it has voted for."""
        nodes, world = state
        for x, master in enumerate(nodes):
            if x == i or node.follows == x or master.role == REPLICA:
                continue
            if node.role == OPEN and master.voted <= self.n:
                continue  # nothing was promoted: there is no reason to
            follower = node._replace(role=REPLICA, term=0, follows=x, acks=(0,) * self.n,
                                     votes=frozenset(), answers=(0,) * self.n)
            yield ('follow %d %d' % (i, x),
                   self.changed(state, i, follower, ('present', i, x, self.known(node))))

    def get_present(self, state, y, x, voted):
        """A closed master hears of a node, and of what it has voted for: asks for its own term, above
        that. So does an open one, if that is above its term: it would follow nobody else."""
        node = state[0][x]
        if node.role == REPLICA or not self.may_ever_open(node):
            return
        reopenings = state[1].reopenings
        if node.role == OPEN and (voted <= node.voted or not reopenings):
            return
        if voted > node.voted:
            reopenings -= node.role == OPEN
            node = self.closed(node, x, voted)
            yield ('take_term %d %d' % (x, node.voted),
                   self.changed(state, x, node, ('prepare', x, node.voted),
                                reopenings=reopenings))
        elif not state[1].messages & self.bit(('prepare', x, node.voted)):
            yield ('prepare %d' % x,
                   self.changed(state, x, node, ('prepare', x, node.voted)))

    def get_prepare(self, state, x, term):
        """Who follows the closed master votes for its term, on disk, and says what it has."""
        for y, node in enumerate(state[0]):
            if node.role != REPLICA or node.follows != x or term <= node.voted:
                continue
            forgot = node.forgot if self.has('F-vote') else False
            if not decisions.may_vote(term, node.voted, bool(forgot), forgot == RELEASED, len(node.log),
                                      0, self.is_held(node, state[1]) and self.has('L-hold')):
                continue
            yield ('vote %d %d' % (y, term),
                   self.changed(state, y, node._replace(voted=term),
                                ('vote', y, x, term, node.log, forgot)))

    def get_vote(self, state, y, x, term, log, forgot):
        """The closed master keeps the vote, and pulls what it lacks of the longest history."""
        node = state[0][x]
        if node.role != CLOSED or node.voted != term or (y, log, forgot) in node.votes:
            return
        node = node._replace(votes=node.votes | {(y, log, forgot)})
        yield ('keep_vote %d %d' % (x, y), self.changed(state, x, node))

    def open(self, state, i, node):
        """Enough votes: with the longest history among them, a master writes its start mark."""
        world = state[1]
        if node.role != CLOSED:
            return
        forgot = node.forgot if self.has('F-promoted') else False
        released = sum(1 for _, _, peer_forgot in node.votes if peer_forgot == RELEASED)
        all_count = decisions.all_count(bool(forgot), forgot == RELEASED, released, len(node.votes), self.n)
        logs = [log for _, log, peer_forgot in node.votes
                if not peer_forgot or all_count or peer_forgot == RELEASED and not self.has('R-all')]
        if all_count or forgot == RELEASED and not self.has('R-all'):
            forgot = False
        empty = sum(1 for _, log, peer_forgot in node.votes if peer_forgot and not log)
        best = max([node.log] + logs, key=self.position) if self.has('P-pull') else node.log
        if best != node.log and 1 + len(logs) >= self.needed and not forgot:
            yield ('pull %d' % i, self.changed(state, i, node._replace(log=best)))
            return
        positions = [self.position(log) for log in logs]
        if not self.has('P-pull'):
            positions = [(0, 0)] * len(positions)
        if not self.has('P-votes'):
            positions += [(0, 0)] * self.n
        if not self.has('B-nothing'):
            empty = len(node.votes)
        held = self.is_held(node, world) and self.has('L-open')
        begins = decisions.may_begin(len(node.log), bool(forgot), empty if self.has('B-all')
                                     else empty + self.n - self.needed, self.n, 0, held)
        if not begins and not decisions.may_open(self.position(node.log), positions, self.n, self.k,
                                                 bool(forgot), 0, held):
            return
        term = node.voted
        node = node._replace(role=OPEN, term=term, log=node.log + ((term, START),),
                             votes=frozenset(), forgot=False)
        safe = world.safe
        if not self.has('S-mark'):
            safe = self.made_safe(safe, node, len(node.log))
        appends = [('append', i, term, node.log)]
        if self.parts and len(node.log) > 1:
            appends.append(('append', i, term, node.log[:-1]))
        yield ('open %d %d' % (i, term), self.changed(state, i, node, *appends, safe=safe))

    def taken(self, node, term, log):
        """What a replica holds when it has taken `log` of a master that is open in `term`."""
        if self.has('D-drop') or node.log == log[:len(node.log)]:
            return log
        return node.log + log[len(node.log):]

    def get_append(self, state, x, term, log):
        """A replica takes history of the master that it follows, up to some entry, and acknowledges
        it; with a newer term, that is voted for first."""
        for y, node in enumerate(state[0]):
            if node.role != REPLICA or node.follows != x:
                continue
            if self.has('T-fence') and not decisions.may_take(term, node.voted):
                continue
            if node.log and node.log[-1][0] == term and len(log) < len(node.log):
                continue  # a link's bytes come in order: not what is behind it
            if self.parts and log[-1][0] != term and node.log != log[:len(node.log)]:
                continue  # who has something else gets a copy, which is whole or not there
            if node.forgot and self.has('F-fill'):
                continue  # see fill, below
            taken = self.taken(node, term, log)
            voted = max(node.voted, term)
            ack = ('ack', y, x, term, len(taken))
            if node.log == taken and voted == node.voted and state[1].messages & self.bit(ack):
                continue
            yield ('take %d %d %d' % (y, x, len(taken)),
                   self.changed(state, y, node._replace(log=taken, voted=voted, forgot=False),
                                ack))
        yield from self.fill(state, x, term, log)

    def fill(self, state, x, term, log):
        """Who has lost durability becomes whole with all that the master has now, not with what
        was on its way before. It has acknowledged nothing to this master that is not in there."""
        master = state[0][x]
        if master.role != OPEN or master.term != term or master.log != log:
            return
        for y, node in enumerate(state[0]):
            if (node.role == REPLICA and node.follows == x and node.forgot and self.has('F-fill')
                    and decisions.may_take(term, node.voted)):
                yield ('fill %d %d' % (y, x),
                       self.changed(state, y, node._replace(log=log, voted=term, forgot=False),
                                    ('ack', y, x, term, len(log))))

    def get_ack(self, state, y, x, term, length):
        """A master counts an acknowledgement in its own term; what K replicas have is safe."""
        node, world = state[0][x], state[1]
        if node.role != OPEN or node.acks[y] >= length:
            return
        if node.term != term and self.has('G-own-term'):
            return
        node = node._replace(acks=node.acks[:y] + (length,) + node.acks[y + 1:])
        safe = self.made_safe(world.safe, node, self.safe_length(node, x))
        yield ('count_ack %d %d %d' % (x, y, length), self.changed(state, x, node, safe=safe))

    def crash(self, state, i, node):
        """A node's machine fails and comes back with a part of its history: it has lost durability.
        A master that comes back so does not go on; what was voted for is on disk."""
        world = state[1]
        if not world.crashes or not node.log:
            return
        log = () if self.crash_kind == 'amnesia' else node.log[:-1]
        if node.role != REPLICA and self.has('F-open'):
            node = node._replace(role=REPLICA, follows=NOBODY)
        if node.role == REPLICA:
            forgot = RELEASED if node.forgot == RELEASED and log else True
            node = node._replace(term=0, answers=(0,) * self.n, forgot=forgot)
        voted = node.voted if self.has('T-disk') else 0
        node = node._replace(log=log, voted=voted, acks=(0,) * self.n, votes=frozenset(),
                             holds=node.holds if self.has('L-restart') else 0)
        messages = [('append', i, node.term, log)] if node.role == OPEN else []
        yield ('crash %d' % i, self.changed(state, i, node, *messages, crashes=world.crashes - 1))

    def release(self, state):
        """All are stopped, lose their promises, and are started again: each has what its disk has."""
        nodes, world = state
        if not world.releases:
            return
        none = (0,) * self.n
        nodes = tuple(Node(REPLICA, 0, 0, node.log, NOBODY, RELEASED if node.log else True, none,
                           frozenset(), 0, none) for node in nodes)
        yield ('release', (nodes, world._replace(messages=0, releases=world.releases - 1)))

    def restart(self, state, i, node):
        """A replica's clean restart: all is there, but when it has answered its last probe is not
        known. It waits as if that were the moment of its start (so `holds` stays)."""
        if self.has('L-restart') and self.has('T-disk'):
            return  # nothing changes
        holds = node.holds if self.has('L-restart') else 0
        voted = node.voted if self.has('T-disk') else 0
        if node.role == REPLICA and (holds, voted) != (node.holds, node.voted):
            yield ('restart %d' % i,
                   self.changed(state, i, node._replace(holds=holds, voted=voted)))

    def hand_over(self, state, i, node):
        """FAILOVER: an open master gives up its term, answers no reader any more, and tells one that follows
        it. (That it waits until that one has everything is for the clients' sake.)"""
        world = state[1]
        if node.role != OPEN or not world.handovers:
            return
        for y, other in enumerate(state[0]):
            if other.role == REPLICA and other.follows == i:
                former = node._replace(role=REPLICA, term=0, follows=y, acks=(0,) * self.n,
                                       votes=frozenset(), answers=(0,) * self.n)
                yield ('hand_over %d %d' % (i, y),
                       self.changed(state, i, former, ('hand_over', y, i, node.term),
                                    ('present', i, y, node.voted), handovers=world.handovers - 1))

    def get_hand_over(self, state, y, i, term):
        """A replica whose history is of that term is promoted. If it follows that master, in that term, no lease
        leans on it any more."""
        node = state[0][y]
        if node.role != REPLICA or not self.may_ever_open(node) or (node.log and node.log[-1][0] != term):
            return
        is_its_own = node.follows == i and node.voted == term or not self.has('L-hand-over')
        promoted = self.closed(node._replace(holds=0 if is_its_own else node.holds), y, node.voted)
        yield ('take_over %d' % y, self.changed(state, y, promoted))

    def probe(self, state, i, node):
        """A master asks its replicas to hold back. The lease runs from this sending: when the probe
        expires, the lease that rests on it has ended. Who answers holds back for longer, from later
        on: its holding ends after the probe has expired. The model lets it end at that moment."""
        world = state[1]
        if node.role != OPEN or not world.probes:
            return
        number = world.probes - 1
        yield ('probe %d %d' % (i, number),
               self.changed(state, i, node, ('probe', i, node.term, number), probes=number,
                            alive=world.alive | 1 << number))

    def get_probe(self, state, x, term, number):
        """A replica answers a probe of the master that it follows, unless it has voted for more."""
        for y, node in enumerate(state[0]):
            if node.role != REPLICA or node.follows != x or node.holds >> number & 1:
                continue
            if decisions.may_ack(term, node.voted, node.forgot):
                yield ('answer %d %d' % (y, number),
                       self.changed(state, y, node._replace(holds=node.holds | 1 << number),
                                    ('answer', y, x, term, number)))

    def get_answer(self, state, y, x, term, number):
        """A master extends its lease."""
        node = state[0][x]
        if node.role != OPEN or node.term != term or node.answers[y] >> number & 1:
            return
        bits = node.answers[y] | 1 << number
        node = node._replace(answers=node.answers[:y] + (bits,) + node.answers[y + 1:])
        yield ('extend_lease %d %d %d' % (x, y, number), self.changed(state, x, node))

    def expire(self, state):
        """Time passes: a probe is as old as the lease is long."""
        nodes, world = state
        left = world.alive
        while left:
            low = left & -left
            left ^= low
            yield ('expire %d' % (low.bit_length() - 1),
                   (nodes, world._replace(alive=world.alive ^ low)))
