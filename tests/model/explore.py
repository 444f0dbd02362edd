"""Walks every state of a machine, breadth first, and says which invariant breaks first, and how."""
from collections import deque, namedtuple

# states: how many were seen; whole: whether these are all; broken: None, or what broke;
# path: the labels of the steps that lead there
Result = namedtuple('Result', 'states whole broken path')


def explore(machine, states_max=1_000_000, guide=()):
    """Follows `guide` (labels, one after the other), then explores all that can follow."""
    start, walked = machine.start, []
    for label in guide:
        steps = dict(machine.steps(start))
        if label not in steps:
            raise ValueError('no step %r after %r; there are %s' % (label, walked, sorted(steps)))
        start = steps[label]
        walked.append(label)
    came_from = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        broken = machine.broken(state)
        if broken:
            return Result(len(came_from), False, broken, walked + path_to(came_from, state))
        for label, following in machine.steps(state):
            if following not in came_from:
                came_from[following] = (state, label)
                queue.append(following)
        if len(came_from) >= states_max:
            return Result(len(came_from), False, None, [])
    return Result(len(came_from), True, None, [])


def path_to(came_from, state):
    labels = []
    while came_from[state]:
        state, label = came_from[state]
        labels.append(label)
    return labels[::-1]


def walk(machine, random, walks, steps_max):
    """Random walks, for what lies deeper than all states can be seen. States are counted as often as
    they are met."""
    met = 0
    for _ in range(walks):
        state, labels = machine.start, []
        for _ in range(steps_max):
            steps = list(machine.steps(state))
            if not steps:
                break
            label, state = random.choice(steps)
            labels.append(label)
            met += 1
            broken = machine.broken(state)
            if broken:
                return Result(met, False, broken, labels)
    return Result(met, False, None, [])
