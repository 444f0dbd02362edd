"""Members whose names hold the time."""
import random
from datetime import datetime, timedelta, timezone

from moving import DAY, MEMBERS, SECOND, Moving, Recent, Row, few, meant, place_of, ranked
from moving import top_with_scores
from servers import CLOCK_MS

CHINA = timezone(timedelta(hours=8))


def dated(row):
    """2022-12-15 13:30:30_user1"""
    when = datetime.fromtimestamp(row.ms // SECOND, CHINA)
    return when.strftime("%Y-%m-%d %H:%M:%S_").encode() + row.member


class TimeInFront(Moving):
    page_name = "time-in-name"

    def setUp(self):
        super().setUp()
        self.run_transcript()
        self.rows = meant(lambda: (random.choice([-4294967296, 0, 1, 2, 3, 4294967295]),),
                          1671000000000, CLOCK_MS)
        self.fill("arena", ((dated(row), row.fields[0]) for row in self.rows))
        self.old.hset("arena:members", mapping={row.member: dated(row) for row in self.rows})

    def test_users_scores_and_times_move(self):
        self.run_python(0)
        right = ranked(self.rows, SECOND, by_name=True)
        self.assert_moved("arena", right)
        self.check_table(
            ("ZADD arena 120 user1", 1), ("ZINCRBY arena 5 user1", b"125"),
            ("ZREVRANK arena user1", place_of(self.rows, 125)),
            ("ZREVRANGE arena 0 9 WITHSCORES",
             top_with_scores(right)),
            ("LB.GET arena 1 user1", [[b"user1", place_of(self.rows, 125), Recent(SECOND), 125]]),
            ("ZREM arena user1", 1))
        self.assert_moved("arena", right)

    def test_redis_reads_the_later_one_first(self):
        self.assert_said("of equal scores the *later* one comes first")
        best = [member for member in self.shown_by_redis("arena")
                if self.old.zscore("arena", member) == 4294967295]
        self.assertGreater(best[0][:19], best[-1][:19])
        self.run_python(0)
        record = self.new.execute_command("LB.RANGE", "arena", 0, 0)[0]
        earliest = min(row.ms for row in self.rows if row.fields[0] == 4294967295)
        self.assertEqual(record[2], earliest // SECOND * SECOND)

    def test_a_user_who_is_there_twice_keeps_the_later_entry(self):
        """The old member was not taken away: the program ended in between."""
        later = [Row(row.member, (5,), CLOCK_MS - SECOND) for row in random.sample(self.rows, 100)]
        self.assert_said("loaded twice, and keeps the later entry")
        self.fill("arena", ((dated(row), 5) for row in later))
        self.assertEqual(self.old.zcard("arena"), MEMBERS + 100)
        self.run_python(0)
        mended = {row.member: row for row in self.rows}
        mended.update({row.member: row for row in later})
        self.assert_moved("arena", ranked(mended.values(), SECOND, by_name=True))


class TimeBehind(Moving):
    page_name = "flag-in-name"

    @staticmethod
    def member(row):
        return row.member + b"-%d-%d" % (row.fields[1], 9999999999999 - row.ms)

    def fill_orders(self, rows):
        self.fill("orders", ((self.member(row), row.fields[0]) for row in rows))

    def test_scores_flags_and_times_move_to_the_millisecond(self):
        self.run_transcript()
        rows = meant(few(4194303, 1), 1571000000000, CLOCK_MS)
        self.fill_orders(rows)
        self.run_python(0)
        right = ranked(rows, by_name=True)
        self.assert_moved("orders", right)
        seen = [member.rsplit(b"-", 2)[0] for member in self.shown_by_redis("orders")]
        self.assertEqual(sorted(seen), sorted(record[0] for record in right))
        self.assertNotEqual(seen, [record[0] for record in right])
        self.check_table(
            ("LB.ADD orders INCR 5 * ann", 1), ("LB.ADD orders KEEPTIME * 1 ann", 1),
            ("ZREVRANK orders ann", place_of(rows, 5, 1)),
            ("LB.RANGE orders 0 9", right[:10]))
        self.assertEqual(self.new.execute_command("LB.GET", "orders", 1, "ann"),
                         [[b"ann", place_of(rows, 5, 1), Recent(1), 5, 1]])

    def test_a_user_who_is_there_twice_keeps_the_later_entry(self):
        self.run_transcript()
        rows = meant(few(4194303, 1), 1571000000000, CLOCK_MS - 1)
        later = [Row(row.member, (7, 1), CLOCK_MS) for row in random.sample(rows, 100)]
        self.assert_said("A user who is there twice keeps the later entry")
        self.fill_orders(rows + later)
        self.run_python(0)
        mended = {row.member: row for row in rows}
        mended.update({row.member: row for row in later})
        self.assert_moved("orders", ranked(mended.values(), by_name=True))

    def test_larger_scores_keep_seconds_and_the_exact_order(self):
        layout = "FIELD score 33 FIELD paid 1 TIME 30 S"
        self.assert_said(f"Scores beyond 4194303 need `{layout}`")
        self.new.execute_command("LB.CREATE", "orders", *layout.split())
        rows = meant(few(8589934591, 1), CLOCK_MS - 60 * DAY, CLOCK_MS)
        self.fill_orders(rows)
        self.run_python(0)
        times = {row.member: row.ms for row in rows}
        self.assert_same([[times[record[0]], *record[3:]] for record in self.board("orders")],
                         [record[2:] for record in ranked(rows)])

    def test_the_example_of_five(self):
        self.run_transcript()
        at, earlier = 1571819021259, 1571810001259
        rows = [Row(b"A", (100, 0), at), Row(b"B", (200, 0), at), Row(b"C", (200, 1), at),
                Row(b"D", (400, 0), at), Row(b"E", (200, 1), earlier)]
        self.fill_orders(rows)
        self.run_python(0)
        self.assertEqual(self.board("orders"), ranked(rows))
        self.assertEqual(b"".join(record[0] for record in self.board("orders")), b"DECBA")
