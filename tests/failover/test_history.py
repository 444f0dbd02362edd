"""The judge: what a cluster may do wrong, each with the figure that must tell it."""
import unittest

from history import Final, Line, judge


def line(client, operation, member, argument, start, end, answer="-", outcome="ok"):
    return Line(str(client), operation, member, argument, start, end, outcome, answer)


class Judge(unittest.TestCase):
    def judge(self, *lines, registers=None, counters=None, ties=(), results=None, is_tie_order_kept=True,
              withdrawn=(), stops=()):
        return judge(list(lines), Final(registers or {}, counters or {}, list(ties), 1000, results),
                     is_tie_order_kept, withdrawn, stops)

    def figures(self, *lines, **final):
        figures = self.judge(*lines, **final).figures
        return {name: figures[name] for name in ("lost", "stale", "out of order", "twice", "without a right", "unanswered at a stop",
                                                     "violations")
                if figures[name]}

    def test_all_is_well(self):
        self.assertEqual(self.figures(
            line(1, "set", "m", 5, 0, 10), line(2, "get", "m", 6, 11, 12, "5"),
            line(1, "inc", "m", 7, 13, 14, "1"), line(2, "read", "m", 8, 15, 16, "1"),
            line(1, "tie", "1:9", 9, 17, 18), line(2, "tie", "2:9", 9, 19, 20),
            registers={"m": 5}, counters={"m": 1}, ties=["1:9", "2:9"]), {})

    def test_a_register_that_went_back_has_lost_writes(self):
        self.assertEqual(self.figures(
            line(1, "set", "m", 5, 0, 10), line(1, "set", "m", 6, 11, 12), line(1, "set", "m", 7, 13, 14),
            registers={"m": 5}), {"lost": 2, "violations": 1})

    def test_a_register_that_is_gone_has_lost_all(self):
        self.assertEqual(self.figures(line(1, "set", "m", 5, 0, 10)), {"lost": 1, "violations": 1})

    def test_an_old_value_between_two_new_ones_is_a_stale_read(self):
        self.assertEqual(self.figures(
            line(1, "set", "m", 5, 0, 10), line(1, "set", "m", 6, 11, 12),
            line(2, "get", "m", 1, 13, 14, "5"), line(2, "get", "m", 2, 15, 16, "6"),
            registers={"m": 6}), {"stale": 1, "violations": 1})

    def test_a_refused_write_that_is_there_is_found(self):
        self.assertEqual(self.figures(
            line(1, "set", "m", 5, 0, 10, outcome="refused"), registers={"m": 5}), {"violations": 1})
        self.assertEqual(self.figures(
            line(1, "tie", "1:9", 9, 0, 10, outcome="refused"), ties=["1:9"]), {"violations": 1})

    def test_a_write_without_the_right_to_is_found(self):
        lines = (line("3/limited", "inc", "m", 1, 0, 10, "1"), line("3/limited", "inc", "m", 2, 20, 30, "2"))
        self.assertEqual(self.figures(*lines, counters={"m": 2}, withdrawn=[(5, 15), (25, 40)]), {})
        self.assertEqual(self.figures(*lines, counters={"m": 2}, withdrawn=[(15, 40)]),
                         {"without a right": 1, "violations": 1})
        others = (line("3/shared", "inc", "m", 1, 0, 10, "1"), line(3, "inc", "m", 2, 20, 30, "2"))
        self.assertEqual(self.figures(*others, counters={"m": 2}, withdrawn=[(0, 40)]), {})

    def test_a_write_that_a_stop_has_done_without_an_answer_is_found(self):
        unknown = line(1, "tie", "1:9", 9, 10, 20, outcome="unknown")
        self.assertEqual(self.figures(unknown, ties=["1:9"], stops=[(15, 30)]),
                         {"unanswered at a stop": 1, "violations": 1})
        self.assertEqual(self.figures(unknown, stops=[(15, 30)]), {})
        self.assertEqual(self.figures(unknown, ties=["1:9"], stops=[(21, 30)]), {})
        given_up = line(1, "tie", "1:9", 9, 10, 10**9, outcome="unknown")
        self.assertEqual(self.figures(given_up, ties=["1:9"], stops=[(15, 30)]), {})

    def test_an_unknown_write_may_be_there_or_not(self):
        unknown = (line(1, "set", "m", 5, 0, 10, outcome="unknown"),
                   line(1, "inc", "m", 5, 0, 10, outcome="unknown"),
                   line(1, "tie", "1:9", 9, 0, 10, outcome="unknown"))
        self.assertEqual(self.figures(*unknown), {})
        self.assertEqual(self.figures(*unknown, registers={"m": 5}, counters={"m": 1}, ties=["1:9"]), {})

    def test_increments_that_are_not_in_the_sum_are_lost(self):
        self.assertEqual(self.figures(
            line(1, "inc", "m", 1, 0, 10, "1"), line(1, "inc", "m", 2, 11, 12, "2"),
            counters={"m": 1}), {"lost": 1, "violations": 1})

    def test_an_increment_done_twice_is_found(self):
        self.assertEqual(self.figures(
            line(1, "inc", "m", 1, 0, 10, "1"), counters={"m": 2}), {"violations": 1})

    def test_a_result_counts_once_however_often_it_was_sent(self):
        lines = (line(1, "once", "c1", 1, 0, 10, "1"), line(1, "once", "c1", 2, 11, 12, outcome="unknown"),
                 line(1, "once", "c1", 2, 13, 14, "0"), line(1, "once", "c1", 3, 15, 16, outcome="refused"))
        self.assertEqual(self.figures(*lines, results={"c1": 2}), {})
        self.assertEqual(self.figures(*lines, results={"c1": 3}), {"twice": 1, "violations": 1})
        self.assertEqual(self.figures(*lines, results={"c1": 1}), {"lost": 1, "violations": 1})
        unknown = line(1, "once", "c1", 4, 17, 18, outcome="unknown")
        for count in (2, 3):
            self.assertEqual(self.figures(*lines, unknown, results={"c1": count}), {})

    def test_a_counter_that_reads_old_for_a_moment_is_stale(self):
        self.assertEqual(self.figures(
            line(1, "inc", "m", 1, 0, 10, "1"), line(1, "inc", "m", 2, 11, 12, "2"),
            line(2, "read", "m", 1, 13, 14, "1"), counters={"m": 2}), {"stale": 1, "violations": 1})

    def test_a_member_that_was_acknowledged_and_is_not_there_is_lost(self):
        self.assertEqual(self.figures(
            line(1, "tie", "1:1", 1, 0, 10), line(1, "tie", "1:2", 2, 11, 12), ties=["1:2"]),
            {"lost": 1, "violations": 1})

    def test_ties_in_another_order_than_acknowledged_are_found(self):
        lines = (line(1, "tie", "1:1", 1, 0, 10), line(1, "tie", "1:2", 2, 11, 12))
        self.assertEqual(self.figures(*lines, ties=["1:2", "1:1"]), {"out of order": 1, "violations": 1})
        self.assertEqual(self.figures(*lines, ties=["1:2", "1:1"], is_tie_order_kept=False), {})
        at_once = (line(1, "tie", "1:1", 1, 0, 10), line(2, "tie", "2:1", 2, 5, 12))
        self.assertEqual(self.figures(*at_once, ties=["2:1", "1:1"]), {})

    def test_the_longest_time_without_an_acknowledged_write(self):
        second = 10**9
        judgement = self.judge(line(1, "tie", "a", 1, 0, second // 10), line(1, "get", "m", 2, second, second),
                               line(1, "tie", "b", 3, 2 * second, 2 * second, outcome="unknown"),
                               line(1, "tie", "c", 3, 2 * second, 3 * second), ties=["a", "b", "c"])
        self.assertAlmostEqual(judgement.unavailable_s, 2.9)


if __name__ == "__main__":
    unittest.main()
