"""Scores alone, and two sorted sets side by side."""
import random

from moving import DAY, MEMBERS, SECOND, Moving, Recent, meant, place_of, plain_names, ranked
from servers import CLOCK_MS


class ScoresAlone(Moving):
    page_name = "scores-alone"
    not_followed = ("test_decimals_come_over_with_a_scale",
                    "test_redis_cli_does_so_with_plain_members")

    def setUp(self):
        super().setUp()
        self.run_transcript()

    def fill_arena(self, members=None):
        rows = meant(lambda: (random.choice([-4294967296, -7, 0, 3, 4, 4294967295]),),
                     CLOCK_MS - DAY, CLOCK_MS, members)
        self.fill("arena", ((row.member, row.fields[0]) for row in rows))
        return rows

    def assert_listed_as_in_redis(self, rows):
        wanted = [[record[0], record[1], Recent(SECOND), record[3]]
                  for record in ranked(rows, by_name=True, has_time=False)]
        self.assertEqual([record[0] for record in wanted], self.shown_by_redis("arena"))
        self.assert_moved("arena", wanted)

    def test_python_brings_all_members_in_the_order_of_redis(self):
        rows = self.fill_arena()
        self.run_python(0)
        self.assert_listed_as_in_redis(rows)

    def test_redis_cli_does_so_with_plain_members(self):
        rows = self.fill_arena(plain_names(MEMBERS))
        self.run_shell(0)
        self.assert_listed_as_in_redis(rows)

    def test_without_create_the_board_is_the_same(self):
        self.new.execute_command("ZADD", "first write", 1, "ann")
        with_create = self.new.execute_command("LB.INFO", "arena")
        self.assertEqual(self.new.execute_command("LB.INFO", "first write")[:4], with_create[:4])

    def test_decimals_come_over_with_a_scale(self):
        self.new.delete("arena")
        layout = "FIELD score 40 SIGNED SCALE 2 TIME 24 M"
        self.assert_said(layout, 'f"{score:.2f}"` in place of `int(score)')
        self.new.execute_command("LB.CREATE", "arena", *layout.split())
        self.fill("arena", [(b"ann", 0.1 + 0.2), (b"bob", -12.34), (b"cid", 5497558138.87)])
        line = self.page.block("python", 0).replace("int(score)", 'f"{score:.2f}"')
        self.execute(line, "with a scale")
        self.assertEqual(self.new.zrange("arena", 0, -1, withscores=True),
                         [b"bob", b"-12.34", b"ann", b"0.3", b"cid", b"5497558138.87"])


class TwoSortedSets(Moving):
    page_name = "two-sorted-sets"

    def fill_both(self, most):
        rows = meant(lambda: (random.choice([-4194304, 0, 1, 2, most]),), CLOCK_MS - 30 * DAY,
                     CLOCK_MS)
        self.fill("arena:scores", ((row.member, row.fields[0]) for row in rows))
        self.fill("arena:times", ((row.member, row.ms) for row in rows))
        return rows

    def test_scores_and_times_move_to_the_millisecond(self):
        self.run_transcript()
        rows = self.fill_both(4194303)
        self.run_python(0)
        right = ranked(rows, by_name=True)
        self.assert_moved("arena", right)
        self.assert_ranked_otherwise_by_redis("arena:scores", right)
        used = sum(self.old.memory_usage(key, samples=0) for key in ("arena:scores", "arena:times"))
        self.assertLess(self.new.memory_usage("arena"), used / 2)
        self.assert_said("less than half of the memory")
        self.check_table(
            ("ZADD arena 120 ann", 1), ("ZINCRBY arena 5 ann", b"125"),
            ("LB.RANGE arena 0 9", right[:10]),
            ("LB.GET arena 1 ann", [[b"ann", place_of(rows, 125), Recent(1), 125]]),
            ("ZREM arena ann", 1))
        self.assert_moved("arena", right)

    def test_larger_scores_keep_seconds_and_the_exact_order(self):
        rows = self.fill_both(4294967295)
        self.assert_said("Scores beyond 4194303", "put `rows.sort()` before the last line")
        first, last = self.page.block("python", 0).strip().rsplit("\n", 1)
        self.execute(f"{first}\nrows.sort()\n{last}", "sorted by time")
        right = ranked(rows)
        wanted = {row.member: [row.fields[0], row.ms // SECOND * SECOND] for row in rows}
        board = self.board("arena")
        self.assertEqual({record[0]: [record[3], record[2]] for record in board}, wanted)
        times = {row.member: row.ms for row in rows}
        self.assert_same([[times[record[0]], record[3]] for record in board],
                         [[record[2], record[3]] for record in right])

    def test_in_redis_a_score_gets_the_time_of_another(self):
        """Two writers whose writes come between each other's."""
        first, second = self.redis_server.client(), self.redis_server.client()
        first.zadd("arena:scores", {"ann": 100})
        second.zadd("arena:scores", {"ann": 200})
        second.zadd("arena:times", {"ann": 1795000000002})
        first.zadd("arena:times", {"ann": 1795000000001})
        self.assertEqual((first.zscore("arena:scores", "ann"), first.zscore("arena:times", "ann")),
                         (200, 1795000000001))

    def test_a_member_without_a_time_stops_the_lines_before_anything_is_written(self):
        self.run_transcript()
        self.fill_both(9)
        self.old.zrem("arena:times", self.shown_by_redis("arena:times")[7])
        self.assert_said("stops the second line with a `KeyError`, before anything is written")
        with self.assertRaises(KeyError):
            self.run_python(0)
        self.assertEqual(self.board("arena"), [])
