#!/usr/bin/env python3
"""Random matches and what they do to ratings, by decimals of 60 digits: what codec/rating.c is compared with.

    tests/codec/rating_twin.py matches SEED COUNT     lines of integers, which tests/codec/test_rating.c reads
    tests/codec/rating_twin.py powers SEED COUNT      x and the double nearest to e^x, both as hexadecimal

The formulas are written as the papers have them: sums over pairs, and the volatility by the paper's own iteration, which
goes on until it moves by less than 10^-30.
"""

import random
import sys
from decimal import ROUND_HALF_UP, Decimal, getcontext

getcontext().prec = 60
ELO, GLICKO2, OPENSKILL = range(3)
PLACKETT_LUCE, BRADLEY_TERRY = range(2)
NAMES = (
    "START MIN MAX MOVE_MAX Z FACTOR OFFSET START_DEV DEV_MIN DEV_MAX TAU K_NEW K K_TOP NEW_GAMES TOP GAP_MAX GAP_FREE "
    "START_VOL VOL_MIN VOL_MAX PERIOD_MS MODEL BETA KAPPA LIMIT_SIGMA KEEP_MATCHES KEEP_HOURS RESET "
    "EVERY_HOURS MAXDEV MINGAMES"
).split()
MICRO, NANO = 10**6, 10**9
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
SCALE = Decimal("173.7178")
# FIDE, 8.1.2
TABLE = [3, 10, 17, 25, 32, 39, 46, 53, 61, 68, 76, 83, 91, 98, 106, 113, 121, 129, 137, 145, 153, 162, 170, 179, 188,
         197, 206, 215, 225, 235, 245, 256, 267, 278, 290, 302, 315, 328, 344, 357, 374, 391, 411, 432, 456, 484, 517,
         559, 619, 735]


def nearest(number):
    return int(Decimal(number).to_integral_value(rounding=ROUND_HALF_UP))


def clamp(number, least, most):
    return max(least, min(most, number))


def result(rank, other_rank):
    return Decimal(1) if rank < other_rank else Decimal(0) if rank > other_rank else Decimal("0.5")


class Player:
    def __init__(self, value, deviation, volatility, games, last_ms):
        self.value, self.deviation, self.volatility = value, deviation, volatility
        self.games, self.last_ms = games, last_ms

    def line(self):
        return [self.value, self.deviation, self.volatility, self.games, self.last_ms]


def moved(rule, value, change):
    change = nearest(change)
    if rule["MOVE_MAX"]:
        change = clamp(change, -rule["MOVE_MAX"], rule["MOVE_MAX"])
    return clamp(value + change, rule["MIN"], rule["MAX"])


# ---- Elo ----


def expected_of_table(difference):
    steps = sum(abs(difference) > bound for bound in TABLE)
    return Decimal(50 + steps if difference >= 0 else 50 - steps) / 100


def elo(rule, teams, ranks):
    means = [sum(Decimal(p.value) for p in team) / len(team) / MICRO for team in teams]
    after = []
    for i, team in enumerate(teams):
        total = Decimal(0)
        for q in range(len(teams)):
            if q != i:
                difference = nearest(means[i] - means[q])
                if rule["GAP_MAX"] and means[i] < Decimal(rule["GAP_FREE"]) / MICRO:
                    most = rule["GAP_MAX"] // MICRO
                    difference = clamp(difference, -most, most)
                total += result(ranks[i], ranks[q]) - expected_of_table(difference)
        for p in team:
            k = rule["K_NEW"] if p.games < rule["NEW_GAMES"] else rule["K_TOP"] if p.value >= rule["TOP"] else rule["K"]
            after.append((moved(rule, p.value, k * total * MICRO / (len(teams) - 1)), 0, 0))
    return after


# ---- Glicko-2 ----


def glicko_volatility(sigma, phi, delta, v, tau):
    a = (sigma * sigma).ln()

    def f(x):
        e = x.exp()
        return e * (delta * delta - phi * phi - v - e) / (2 * (phi * phi + v + e) ** 2) - (x - a) / (tau * tau)

    low = a
    if delta * delta > phi * phi + v:
        high = (delta * delta - phi * phi - v).ln()
    else:
        k = 1
        while f(a - k * tau) < 0:
            k += 1
        high = a - k * tau
    f_low, f_high = f(low), f(high)
    while abs(high - low) > Decimal("1e-30"):
        middle = low + (low - high) * f_low / (f_high - f_low)
        f_middle = f(middle)
        if f_middle * f_high <= 0:
            low, f_low = high, f_high
        else:
            f_low /= 2
        high, f_high = middle, f_middle
    return (low / 2).exp()


def glicko(rule, teams, ranks, at_ms):
    most = Decimal(rule["DEV_MAX"]) / MICRO / SCALE

    def periods(p):
        passed = at_ms - p.last_ms
        return Decimal(passed) / rule["PERIOD_MS"] if rule["PERIOD_MS"] and p.last_ms and passed > 0 else Decimal(0)

    def before(p):
        """The deviation where the match's own period begins."""
        phi = Decimal(p.deviation) / MICRO / SCALE
        if periods(p) > 1:
            phi = min(most, (phi * phi + (periods(p) - 1) * (Decimal(p.volatility) / NANO) ** 2).sqrt())
        return phi

    def shown(p):
        return Decimal(nearest(before(p) * SCALE * MICRO)) / MICRO / SCALE

    def g(phi):
        return 1 / (1 + 3 * phi * phi / (PI * PI)).sqrt()

    mus = [sum(Decimal(p.value) for p in team) / len(team) / MICRO / SCALE for team in teams]
    phis = [sum(shown(p) ** 2 for p in team).sqrt() / len(team) for team in teams]
    after = []
    for i, team in enumerate(teams):
        by_v = sums = Decimal(0)
        for q in range(len(teams)):
            if q != i:
                weight = g(phis[q])
                e = 1 / (1 + (-weight * (mus[i] - mus[q])).exp())
                by_v += weight * weight * e * (1 - e)
                sums += weight * (result(ranks[i], ranks[q]) - e)
        # What a player is of its team: the derivative of the mean.
        sums /= len(team)
        v = len(team) ** 2 / by_v
        for p in team:
            phi = before(p)
            sigma = glicko_volatility(Decimal(p.volatility) / NANO, phi, v * sums, v, Decimal(rule["TAU"]) / NANO)
            sigma = clamp(sigma, Decimal(rule["VOL_MIN"]) / NANO, Decimal(rule["VOL_MAX"]) / NANO)
            star = phi * phi + min(Decimal(1), periods(p)) * sigma * sigma
            phi = 1 / (1 / star + 1 / v).sqrt()
            after.append((
                moved(rule, p.value, phi * phi * sums * SCALE * MICRO),
                clamp(nearest(phi * SCALE * MICRO), rule["DEV_MIN"], rule["DEV_MAX"]),
                nearest(sigma * NANO),
            ))
    return after


# ---- OpenSkill ----


def stretched(weights):
    if len(weights) == 1:
        return [Decimal(2)]
    least, spread = min(weights), max(weights) - min(weights)
    return [Decimal(1) + (Decimal(w - least) / spread if spread else 0) for w in weights]


def openskill(rule, teams, ranks, weights):
    beta, tau = Decimal(rule["BETA"]) / NANO, Decimal(rule["TAU"]) / NANO
    kappa = Decimal(rule["KAPPA"]) / NANO
    variances = [[(Decimal(p.deviation) / NANO) ** 2 + tau * tau for p in team] for team in teams]
    mus = [sum(Decimal(p.value) for p in team) / NANO for team in teams]
    sums = [sum(team) for team in variances]
    places = range(len(teams))
    c = sum(s + beta * beta for s in sums).sqrt()
    after = []
    if rule["MODEL"] == PLACKETT_LUCE:
        powers = [(mu / c).exp() for mu in mus]
        rests = [sum(powers[i] for i in places if ranks[i] >= ranks[q]) for q in places]
        ties = [sum(ranks[i] == ranks[q] for i in places) for q in places]
    for i, team in enumerate(teams):
        omega = delta = Decimal(0)
        if rule["MODEL"] == PLACKETT_LUCE:
            for q in places:
                if ranks[q] <= ranks[i]:
                    p = powers[i] / rests[q]
                    omega += ((q == i) - p) / ties[q]
                    delta += p * (1 - p) / ties[q]
            omega *= sums[i] / c
            delta *= sums[i] / (c * c) * sums[i].sqrt() / c
        else:
            for q in places:
                if q != i:
                    c = (sums[i] + sums[q] + 2 * beta * beta).sqrt()
                    p = 1 / (1 + ((mus[q] - mus[i]) / c).exp())
                    omega += sums[i] / c * (result(ranks[i], ranks[q]) - p)
                    delta += sums[i].sqrt() / c * sums[i] / (c * c) * p * (1 - p)
        by = stretched(weights[i]) if weights else [Decimal(1)] * len(team)
        for p, variance, weight in zip(team, variances[i], by):
            factor = variance / sums[i] * (weight if omega >= 0 else 1 / weight)
            deviation = nearest((variance * max(1 - factor * delta, kappa)).sqrt() * NANO)
            if rule["LIMIT_SIGMA"]:
                deviation = min(deviation, p.deviation)
            after.append((moved(rule, p.value, factor * omega * NANO),
                          clamp(deviation, rule["DEV_MIN"], rule["DEV_MAX"]), 0))
    return after


# ---- random matches ----


def random_rule(rng, system):
    rule = dict.fromkeys(NAMES, 0)
    rule.update(Z=1000 * rng.randrange(4), FACTOR=1000)
    if system == ELO:
        rule.update(START=1500 * MICRO, MAX=4000 * MICRO, K_NEW=40, K=20, K_TOP=10, NEW_GAMES=30, TOP=2400 * MICRO,
                    GAP_MAX=rng.choice([0, 400]) * MICRO, GAP_FREE=2650 * MICRO)
    elif system == GLICKO2:
        rule.update(START=1500 * MICRO, MIN=400 * MICRO, MAX=4000 * MICRO, MOVE_MAX=rng.choice([0, 700, 50]) * MICRO,
                    START_DEV=350 * MICRO, DEV_MIN=rng.choice([20, 45]) * MICRO, DEV_MAX=500 * MICRO,
                    START_VOL=60000000, VOL_MIN=1000000, VOL_MAX=100000000, TAU=rng.randrange(300, 1201) * MICRO,
                    PERIOD_MS=rng.choice([0, 86400000, 403060271]))
    else:
        rule.update(START=25 * NANO, MIN=-1000 * NANO, MAX=1000 * NANO, START_DEV=8333333333, DEV_MIN=1000000,
                    DEV_MAX=1000 * NANO, TAU=rng.choice([0, 83333333]), MODEL=rng.randrange(2),
                    BETA=rng.choice([4166666667, NANO, 10 * NANO]), KAPPA=rng.choice([100000, 500000000]),
                    LIMIT_SIGMA=rng.randrange(2))
    return rule


def random_player(rng, system, rule, at_ms):
    games = rng.choice([0, 29, 30, 500])
    if system == ELO:
        return Player(rng.choice([rng.randrange(3000 * MICRO), rng.randrange(3000) * MICRO, 2400 * MICRO]), 0, 0, games, 0)
    if system == GLICKO2:
        last_ms = rng.choice([0, at_ms, at_ms - rng.randrange(rule["PERIOD_MS"] + 1),
                              at_ms - rng.randrange(400 * 86400000), at_ms + 1000])
        return Player(rng.randrange(600 * MICRO, 2800 * MICRO),
                      rng.choice([rng.randrange(rule["DEV_MIN"], 350 * MICRO), rule["DEV_MIN"], 350 * MICRO]),
                      rng.randrange(20000000, 100000001), games, last_ms)
    return Player(rng.randrange(-5 * NANO, 55 * NANO),
                  rng.choice([rng.randrange(NANO // 10, 9 * NANO), 8333333333]), 0, games, 0)


def random_match(rng):
    system = rng.choice([ELO, GLICKO2, OPENSKILL, OPENSKILL])
    rule = random_rule(rng, system)
    at_ms = 1700000000000 + rng.randrange(10**10)
    count = rng.choice([2, 2, 2, 3, 4, 6])
    largest = rng.choice([1, 1, 2, 4])
    teams = [[random_player(rng, system, rule, at_ms) for _ in range(rng.randrange(largest) + 1)] for _ in range(count)]
    ranks = [rng.randrange(rng.choice([1, 2, count, 100])) for _ in teams]
    weights = None
    if system == OPENSKILL and rng.randrange(3) == 0:
        weights = [[rng.randrange(rng.choice([1, 3, 1000])) for _ in team] for team in teams]
    before = [p.line() for team in teams for p in team]
    if system == ELO:
        after = elo(rule, teams, ranks)
    elif system == GLICKO2:
        after = glicko(rule, teams, ranks, at_ms)
    else:
        after = openskill(rule, teams, ranks, weights)
    numbers = [system, *(rule[name] for name in NAMES), at_ms, count, *map(len, teams), *ranks, weights is not None]
    if weights:
        numbers += [w for team in weights for w in team]
    for line, then in zip(before, after):
        numbers += [*line, *then]
    print(*map(int, numbers))


def random_power(rng):
    x = rng.choice([rng.uniform(-700, 700), rng.uniform(-5, 5), rng.uniform(-1, 1), rng.uniform(-1e-9, 1e-9)])
    print(x.hex(), float(Decimal(x).exp()).hex())


if __name__ == "__main__":
    write = {"matches": random_match, "powers": random_power}[sys.argv[1]]
    source = random.Random(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        write(source)
