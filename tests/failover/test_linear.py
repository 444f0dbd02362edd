"""The checkers: histories that must pass, histories that must fail, and small random ones, for which all
orders are tried."""
import os
import random
import unittest

from linear import (GET, INC, NEVER, READ, SET, Operation, check_counter, check_register, search)

SEED = int(os.environ.get("LEADERBOARD_TEST_SEED") or random.SystemRandom().randrange(10**9))
ROUNDS = 20000


def history(*rows):
    return [Operation(*row) for row in rows]


class Register(unittest.TestCase):
    def passes(self, *rows):
        self.assertIsNone(check_register(history(*rows)))
        self.assertTrue(search(history(*rows), False))

    def fails(self, *rows):
        self.assertIsNotNone(check_register(history(*rows)))
        self.assertFalse(search(history(*rows), False))

    def test_nothing_and_one_after_another(self):
        self.passes()
        self.passes((GET, None, 0, 1), (SET, 5, 2, 3), (GET, 5, 4, 5), (SET, 6, 6, 7), (GET, 6, 8, 9))

    def test_a_lost_write_fails(self):
        self.fails((SET, 5, 0, 1), (GET, None, 2, 3))
        self.fails((SET, 5, 0, 1), (SET, 6, 2, 3), (GET, 5, 4, 5))

    def test_a_stale_read_fails(self):
        self.fails((SET, 5, 0, 1), (SET, 6, 2, 3), (GET, 6, 4, 5), (GET, 5, 6, 7), (GET, 6, 8, 9))

    def test_a_read_that_goes_back_while_a_write_runs_fails(self):
        self.fails((SET, 5, 0, 1), (SET, 6, 2, 20), (GET, 6, 3, 4), (GET, 5, 5, 6))
        self.passes((SET, 5, 0, 1), (SET, 6, 2, 20), (GET, 5, 3, 4), (GET, 6, 5, 6))

    def test_what_runs_at_the_same_time_has_any_order(self):
        self.passes((SET, 5, 0, 10), (SET, 6, 0, 10), (GET, 6, 11, 12))
        self.passes((SET, 5, 0, 10), (SET, 6, 0, 10), (GET, 5, 11, 12))
        self.fails((SET, 5, 0, 10), (SET, 6, 0, 10), (GET, 5, 11, 12), (GET, 6, 13, 14))

    def test_a_value_that_nobody_wrote_fails(self):
        self.fails((GET, 5, 0, 1))
        self.fails((GET, 5, 0, 1), (SET, 5, 2, 3))

    def test_an_unknown_write_may_be_and_may_not_be(self):
        self.passes((SET, 5, 0, NEVER), (GET, None, 10, 11), (GET, 5, 12, 13))
        self.passes((SET, 5, 0, NEVER), (GET, None, 10, 11))
        self.fails((SET, 5, 0, NEVER), (GET, 5, 10, 11), (GET, None, 12, 13))


class Counter(unittest.TestCase):
    def passes(self, *rows):
        self.assertIsNone(check_counter(history(*rows)))
        self.assertTrue(search(history(*rows), True))

    def fails(self, *rows):
        self.assertIsNotNone(check_counter(history(*rows)))
        self.assertFalse(search(history(*rows), True))

    def test_one_after_another(self):
        self.passes()
        self.passes((READ, None, 0, 1), (INC, 1, 2, 3), (READ, 1, 4, 5), (INC, 2, 6, 7), (READ, 2, 8, 9))

    def test_a_lost_increment_fails(self):
        self.fails((INC, 1, 0, 1), (INC, 1, 2, 3))
        self.fails((INC, 1, 0, 1), (READ, None, 2, 3))
        self.fails((INC, 1, 0, 1), (INC, 2, 2, 3), (READ, 1, 4, 5))

    def test_an_increment_done_twice_fails(self):
        self.fails((INC, 2, 0, 1))
        self.fails((INC, 1, 0, 1), (READ, 2, 2, 3))

    def test_a_stale_read_fails(self):
        self.fails((INC, 1, 0, 1), (READ, 1, 2, 3), (READ, None, 4, 5), (INC, 2, 6, 7))

    def test_unknown_increments_fill_gaps_in_time_only(self):
        self.passes((INC, None, 0, NEVER), (INC, 2, 5, 6))
        self.passes((INC, None, 0, NEVER), (INC, 1, 5, 6), (READ, 2, 7, 8))
        self.fails((INC, 2, 5, 6), (INC, None, 7, NEVER))
        self.fails((INC, None, 0, NEVER), (INC, 3, 5, 6))


class Random(unittest.TestCase):
    def run_object(self, randomness, is_counter):
        """A history that a sound object could give (each operation takes effect once within its time),
        and by half one answer of it is then changed."""
        operations, value, written = [], None, [None]
        for number in range(randomness.randrange(1, 8)):
            at = 10 * number + randomness.randrange(10)
            start, end = at - randomness.randrange(1, 15), at + randomness.randrange(1, 15)
            kind = randomness.choice((INC, INC, READ) if is_counter else (SET, SET, GET, GET))
            is_unknown = kind in (SET, INC) and randomness.random() < 0.25
            happens = not is_unknown or randomness.random() < 0.5
            if kind == SET:
                answer = number + 1
                value = answer if happens else value
            elif kind == INC:
                answer = (value or 0) + 1
                value = answer if happens else value
            else:
                answer = value
            written.append(value)
            operations.append(Operation(kind, None if is_unknown and kind == INC else answer, start,
                                        NEVER if is_unknown else end))
        if randomness.random() < 0.5:
            i = randomness.randrange(len(operations))
            if operations[i].kind != SET and operations[i].end != NEVER:
                wrong = randomness.choice(written)
                if operations[i].kind != INC or wrong is not None:
                    operations[i] = operations[i]._replace(value=wrong)
        randomness.shuffle(operations)
        return operations

    def compare(self, is_counter, check):
        randomness = random.Random(SEED)
        verdicts = {True: 0, False: 0}
        for _ in range(ROUNDS):
            operations = self.run_object(randomness, is_counter)
            expected = search(operations, is_counter)
            verdicts[expected] += 1
            self.assertEqual(check(operations) is None, expected,
                             f"seed {SEED}: {check(operations)}\n" + "\n".join(map(repr, operations)))
        self.assertGreater(min(verdicts.values()), ROUNDS / 50, verdicts)

    def test_registers_as_all_orders_say(self):
        self.compare(False, check_register)

    def test_counters_as_all_orders_say(self):
        self.compare(True, check_counter)


if __name__ == "__main__":
    unittest.main()
