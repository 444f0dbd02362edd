"""What is explored: cases that must hold, and for each rule a case that must break without it."""
import random
from collections import namedtuple

from explore import explore, walk
from protocol import RULES, Protocol

# Explored until all states are seen or `states_max` are; whole: all must be seen within that.
Safe = namedtuple('Safe', 'name settings states_max whole')

# The first promotion, undisturbed: 1 opens in term 7 with the vote of 2.
FIRST = ('promote 1', 'follow 2 1', 'prepare 1', 'vote 2 7', 'keep_vote 1 2', 'open 1 7')

ONE = dict(promotions=1)
TWO = dict(promotions=2)
SAFE = (
    Safe('n=3 K=1, one promotion, two writes', dict(ONE, writes=2), 200_000, True),
    Safe('n=3 K=1, one promotion, one machine fails', dict(ONE, crashes=1), 200_000, True),
    Safe('n=3 K=1, one promotion, two machines fail', dict(ONE, crashes=2), 200_000, True),
    Safe('n=3 K=1, one promotion, a tail is lost', dict(ONE, crashes=1, crash='tail'), 200_000, True),
    Safe('n=3 K=1, one promotion, the lease', dict(ONE, probes=1), 300_000, True),
    Safe('n=2 K=1, two promotions, two writes, a machine fails',
         dict(TWO, nodes=2, writes=2, crashes=1), 200_000, True),
    Safe('n=2 K=1, two promotions, the lease', dict(TWO, nodes=2, probes=1), 200_000, True),
    Safe('n=3 K=2, one promotion, two writes', dict(ONE, replicas=2, writes=2), 200_000, True),
    Safe('n=3 K=2, one promotion, a machine fails', dict(ONE, replicas=2, crashes=1), 200_000, True),
    Safe('n=2 K=1, empty disks, a machine fails',
         dict(ONE, nodes=2, empty=True, crashes=1), 200_000, True),
    Safe('n=3 K=1, a hand-over, the lease', dict(promotions=0, handovers=1, probes=2), 60_000, False),
    Safe('n=3 K=2, a hand-over, the lease', dict(promotions=0, replicas=2, handovers=1, probes=1), 200_000,
         True),
    Safe('n=3 K=1, a hand-over, a promotion, the lease', dict(ONE, handovers=1, probes=2), 60_000, False),
    Safe('n=3 K=1, a machine fails, all are released, one promotion',
         dict(ONE, crashes=1, releases=1), 200_000, True),
    Safe('n=3 K=1, a tail is lost, all are released, two promotions',
         dict(TWO, crashes=1, crash='tail', releases=1), 100_000, False),
    Safe('n=2 K=1, a tail is lost, all are released, two promotions',
         dict(TWO, nodes=2, crashes=1, crash='tail', releases=1), 200_000, True),
    Safe('n=3 K=1, empty disks, a machine fails',
         dict(ONE, empty=True, crashes=1, writes=0), 60_000, False),
    Safe('n=2 K=1, one promotion, one reopening, two writes',
         dict(ONE, nodes=2, reopenings=1, writes=2, crashes=1), 200_000, True),
    Safe('n=3 K=1, one promotion, one reopening', dict(ONE, reopenings=1), 60_000, False),
    Safe('n=3 K=1, two promotions, two writes', dict(TWO, writes=2), 100_000, False),
    Safe('n=3 K=1, two promotions, parts of a history', dict(TWO, parts=True), 100_000, False),
    Safe('n=3 K=1, two promotions, a machine fails', dict(TWO, crashes=1), 100_000, False),
    Safe('n=3 K=1, two promotions, the lease', dict(TWO, probes=2), 100_000, False),
)

# Random walks where states are too many: deeper, but not all.
WALKS = (
    Safe('n=3 K=1, promotions, reopenings, crashes, the lease, walked',
         dict(promotions=3, reopenings=2, writes=3, crashes=2, probes=2, handovers=2), 3000, False),
    Safe('n=3 K=1, a tail is lost, all are released twice, walked',
         dict(promotions=4, reopenings=1, writes=3, crashes=1, crash='tail', probes=1, releases=2), 1500, False),
    Safe('n=5 K=2, three promotions, two fail, walked',
         dict(nodes=5, replicas=2, promotions=3, writes=2, crashes=2), 1500, False),
)
WALK_STEPS = 60

# The smallest settings in which a rule is needed, and the way there where it is long.
Needed = namedtuple('Needed', 'settings guide')
NEEDED = {
    'T-compare': Needed(dict(TWO, writes=2),
                        ('write 0', 'write 0') + FIRST + ('take 2 1 1', 'count_ack 1 2 1')),
    'T-fence': Needed(ONE, ()),
    'T-disk': Needed(dict(ONE, crashes=1), ()),
    'G-count': Needed(ONE, ()),
    'G-own-term': Needed(dict(replicas=2, writes=2, promotions=3),
                         ('write 0', 'write 0', 'take 1 0 2', 'promote 2', 'open 2 8', 'follow 0 2',
                          'take 0 2 1', 'promote 0', 'open 0 9')),
    # Figure 8 of the paper on Raft: an older term's entry is with a majority, and is replaced.
    'G-mark': Needed(dict(promotions=3, parts=True),
                     ('write 0',) + FIRST + ('follow 0 1', 'promote 0', 'follow 2 0', 'take_term 0 9',
                                             'vote 2 9', 'keep_vote 0 2', 'open 0 9', 'take 2 0 1',
                                             'count_ack 0 2 1')),
    'P-votes': Needed(ONE, ()),
    'P-pull': Needed(ONE, ()),
    'F-vote': Needed(dict(ONE, crashes=1), ()),
    'F-fill': Needed(dict(ONE, writes=2, crashes=1),
                     ('write 0', 'write 0', 'take 1 0 2', 'crash 1')),
    'F-open': Needed(dict(ONE, crashes=1, crash='tail'), ()),
    'F-promoted': Needed(dict(ONE, crashes=1), ('write 0', 'take 1 0 1', 'crash 1')),
    'D-drop': Needed(TWO, ('write 0',) + FIRST + ('follow 0 1',)),
    'S-mark': Needed(dict(promotions=3),
                     ('write 0',) + FIRST + ('promote 2', 'follow 0 2', 'prepare 2', 'vote 0 11',
                                             'keep_vote 2 0', 'pull 2', 'open 2 11')),
    'R-all': Needed(dict(ONE, writes=2, crashes=1, crash='tail', releases=1),
                    ('write 0', 'take 2 0 1', 'write 0', 'take 1 0 2', 'count_ack 0 1 2', 'crash 0', 'release')),
    'R-term': Needed(dict(promotions=3, releases=1),
                     ('write 0',) + FIRST + ('take 2 1 1', 'release', 'promote 0', 'follow 1 0', 'follow 2 0')),
    'B-all': Needed(dict(ONE, empty=True, crashes=1, writes=0),
                    ('prepare 0', 'vote 1 3', 'keep_vote 0 1', 'vote 2 3', 'keep_vote 0 2',
                     'open 0 3', 'fill 1 0', 'count_ack 0 1 1', 'crash 1')),
    'B-nothing': Needed(dict(ONE, crashes=1), ()),
    'L-check': Needed(dict(ONE, probes=1), ()),
    'L-hold': Needed(dict(ONE, probes=1), ()),
    'L-open': Needed(dict(ONE, probes=1), ()),
    'L-sending': Needed(dict(ONE, probes=1), ()),
    'L-restart': Needed(dict(ONE, probes=1), ()),
    'L-hand-over': Needed(dict(ONE, handovers=1, probes=1),
                          ('hand_over 0 1', 'promote 2', 'follow 1 2', 'prepare 2', 'vote 1 8',
                           'keep_vote 2 1', 'open 2 8', 'probe 2 0', 'answer 1 0', 'extend_lease 2 1 0')),
}
NEEDED_STATES_MAX = 250_000
assert set(NEEDED) == set(RULES)


def check_safe(name):
    case = next(case for case in SAFE if case.name == name)
    result = explore(Protocol(**case.settings), case.states_max)
    said = '%d states, %s' % (result.states, 'all' if result.whole else 'a bound')
    if result.broken:
        return False, '%s\n    %s' % (result.broken, '; '.join(result.path))
    return result.whole or not case.whole, said


def check_walk(name, seed):
    case = next(case for case in WALKS if case.name == name)
    result = walk(Protocol(**case.settings), random.Random(seed), case.states_max, WALK_STEPS)
    if result.broken:
        return False, '%s\n    %s' % (result.broken, '; '.join(result.path))
    return True, '%d steps, seed %d' % (result.states, seed)


def check_needed(rule):
    """The same machine, on the same way, holds with the rule and breaks without it."""
    case = NEEDED[rule]
    if case.guide:
        with_rule = explore(Protocol(**case.settings), 20_000, case.guide)
        if with_rule.broken:
            return False, 'breaks with the rule, too: ' + '; '.join(with_rule.path)
    result = explore(Protocol(**case.settings, without=(rule,)), NEEDED_STATES_MAX, case.guide)
    if not result.broken:
        return False, 'nothing breaks in %d states' % result.states
    return True, '%s\n    %s' % (result.broken, '; '.join(result.path))
