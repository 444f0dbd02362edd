"""Scores and times as decimal digits of one number."""
import random
from decimal import ROUND_DOWN, Decimal

from moving import DAY, SECOND, Moving, Packed, Recent, few, meant, place_of, ranked, top_with_scores
from servers import CLOCK_MS

MONTH_AGO = CLOCK_MS - 30 * DAY


class TenDigits(Packed):
    page_name = "ten-digits"
    key = "arena"
    not_followed = ("test_above_scores_move_from_redis_and_all_of_it_from_records",)

    @staticmethod
    def pack(score, ms):
        return score * 10**10 + ms // SECOND

    def test_up_to_900718_all_of_it_moves_from_redis(self):
        self.assert_said("Up to 900718 this is exact", "A score above 900718")
        rows = self.begin_with(few(900718))
        self.run_python(0)
        right = ranked(rows, SECOND, by_name=True)
        self.assert_moved("arena", right)
        self.assert_ranked_otherwise_by_redis("arena", right)
        self.check_table(
            ("ZINCRBY arena 5 ann", b"5"), ("ZADD arena 120 ann", 0), ("ZSCORE arena ann", b"120"),
            ("LB.GET arena 1 ann", [[b"ann", place_of(rows, 120), Recent(SECOND), 120]]),
            ("ZREVRANGE arena 0 9 WITHSCORES", top_with_scores(right)))

    def test_redis_reads_the_later_one_first(self):
        rows = self.begin_with(few(0))
        self.assertEqual(self.shown_by_redis("arena")[0],
                         max(rows, key=lambda row: (row.ms // SECOND, row.member)).member)

    def test_above_scores_move_from_redis_and_all_of_it_from_records(self):
        self.assert_redis_keeps_up_to(self.pack(900718, 9999999999000),
                                      self.pack(900720, 1763000001000))
        self.assert_said("(at ten million, within 8 seconds)", "scores go up to 8589934591")
        rows = self.begin_with(few(8589934591))
        self.run_python(0)
        times = {row.member: row.ms // SECOND * SECOND for row in rows}
        moved = self.assert_fields_moved(rows)
        self.assertNotEqual(moved, times)
        self.assertLessEqual(max(abs(moved[row.member] - times[row.member]) for row in rows
                                 if row.fields[0] <= 10**7), 8 * SECOND)
        self.move_records(1, rows)
        self.assert_moved("arena", ranked(rows, SECOND))


class FractionOfTime(Packed):
    page_name = "fraction"
    key = "arena"
    since_ms = 1671000000000
    not_followed = (
        "test_small_scores_move_from_redis_rounded_or_cut_off",
        "test_large_scores_move_from_redis_and_all_of_it_from_records",
        "test_in_redis_a_minute_is_one_time_and_int_takes_the_wrong_score",
    )

    @staticmethod
    def pack(score, ms):
        return round(score + (1 - ms // SECOND / 4102415999), 10)

    @staticmethod
    def pack_cut_off(score, ms):
        number = Decimal(score + (1 - ms // SECOND / 4102415999))
        return float(number.quantize(Decimal("1e-10"), ROUND_DOWN))

    def fill_arena(self, low, high, pack):
        return self.begin_with(lambda: (random.choice([low, high, random.randint(low, high), -5, 0, 1, 2]),), pack=pack)

    def test_small_scores_move_from_redis_rounded_or_cut_off(self):
        for pack in (self.pack, self.pack_cut_off):
            self.assert_said("for scores from -131072 to 131071")
            self.new.flushall()
            self.old.flushall()
            rows = self.fill_arena(-131072, 131071, pack)
            self.run_python(0)
            right = ranked(rows, SECOND, by_name=True)
            self.assert_moved("arena", right)
        self.check_table(
            ("ZINCRBY arena 5 ann", b"5"), ("ZSCORE arena ann", b"5"),
            ("LB.GET arena 1 ann", [[b"ann", place_of(rows, 5), Recent(SECOND), 5]]),
            ("ZREVRANGE arena 0 9 WITHSCORES", top_with_scores(right)))

    def test_large_scores_move_from_redis_and_all_of_it_from_records(self):
        rows = self.fill_arena(-4294967296, 4294967295, self.pack)
        right = ranked(rows, SECOND)
        self.assert_ranked_otherwise_by_redis("arena", right)
        self.run_python(0)
        self.assertNotEqual(self.assert_fields_moved(rows), {record[0]: record[2] for record in right})
        self.move_records(1, rows)
        self.assert_moved("arena", right)

    def test_in_redis_a_minute_is_one_time_and_int_takes_the_wrong_score(self):
        self.assert_said("At a hundred million", "`int()` makes -4 of -5")
        kept = {self.kept_by_redis(self.pack(10**8, CLOCK_MS + second * SECOND))
                for second in range(60)}
        self.assertLessEqual(len(kept), 2)
        self.assertEqual(int(self.kept_by_redis(self.pack(-5, CLOCK_MS))), -4)


class FractionOfEveryCall(Moving):
    page_name = "increments"
    not_followed = (
        "test_points_move_from_redis_in_its_order",
        "test_from_records_equals_stand_as_they_should",
        "test_in_redis_who_was_called_often_is_ahead",
    )

    def setUp(self):
        """Everybody's points come in one to six calls; the time of the last one counts."""
        super().setUp()
        self.run_transcript()
        self.rows = meant(lambda: (random.choice([-3, 0, 10, 20, random.randint(0, 10**9)]),),
                          MONTH_AGO, CLOCK_MS)
        pipe = self.old.pipeline(transaction=False)
        for row in self.rows:
            points, calls = row.fields[0], random.randint(1, 6)
            for call in range(calls):
                part = points // calls if call > 0 else points - points // calls * (calls - 1)
                pipe.zincrby("hot", 1000000 / row.ms + part, row.member)
        pipe.execute()

    def test_points_move_from_redis_in_its_order(self):
        self.run_python(0)
        shown = {member: place for place, member in enumerate(self.shown_by_redis("hot"))}
        rows = sorted(self.rows, key=lambda row: shown[row.member])
        wanted = [[*record[:2], Recent(SECOND), record[3]]
                  for record in ranked(rows, has_time=False)]
        self.assert_moved("hot", wanted)
        self.assertEqual([record[0] for record in wanted], self.shown_by_redis("hot"))

    def test_from_records_equals_stand_as_they_should(self):
        self.run_python(1, [(row.member, *row.fields, row.ms) for row in self.rows])
        right = ranked(self.rows, SECOND)
        self.assert_moved("hot", right)
        self.assert_ranked_otherwise_by_redis("hot", right)
        self.check_table(
            ("ZINCRBY hot 3 ann", b"3"), ("ZSCORE hot ann", b"3"),
            ("ZREVRANGE hot 0 9 WITHSCORES", top_with_scores(right)))
        self.assertEqual(self.new.execute_command("LB.GET", "hot", 1, "ann"),
                         [[b"ann", place_of(self.rows, 3), Recent(SECOND), 3]])

    def test_in_redis_who_was_called_often_is_ahead(self):
        self.old.zincrby("few", 1000000 / MONTH_AGO + 10, "first")
        for _ in range(10):
            self.old.zincrby("few", 1000000 / CLOCK_MS + 1, "often")
        self.assertEqual(self.shown_by_redis("few"), [b"often", b"first"])
        self.assertEqual(round(CLOCK_MS / 1000000 / 1e6, 1), 1.8)
        self.assert_said("After 1.8 million calls of one member they make a point")


class ScoreFlagSeconds(Packed):
    page_name = "decimals"
    key = "sales"
    since_ms = 1571000000000
    not_followed = ("test_large_scores_and_flags_move_from_redis_and_all_of_it_from_records",
                    "test_scores_that_grew_step_by_step_move_too")
    END_S = 1861891200

    def pack(self, score, flag, ms):
        return "%d.%d%09d" % (score, flag, self.END_S - ms // SECOND)

    def test_small_scores_move_from_redis(self):
        self.assert_said("Below 262144 this is exact")
        rows = self.begin_with(few(262143, 1))
        self.run_python(0)
        right = ranked(rows, SECOND, by_name=True)
        self.assert_moved("sales", right)
        place = place_of(rows, 6, 1)
        self.check_table(
            ("LB.ADD sales INCR KEEPTIME 3 * ann", 1), ("LB.ADD sales INCR 3 =1 ann", 1),
            ("LB.GET sales 1 ann", [[b"ann", place, Recent(SECOND), 6, 1]]),
            ("LB.RANGE sales 0 9", right[:10]))

    def test_scores_that_grew_step_by_step_move_too(self):
        self.run_transcript()
        rows = self.meant(few(262143, 1))
        pipe = self.old.pipeline(transaction=False)
        for row in rows:
            first = random.randint(0, row.fields[0])
            second = random.randint(0, row.fields[0] - first)
            pipe.zadd("sales", {row.member: self.pack(first, row.fields[1], row.ms)})
            pipe.zincrby("sales", second, row.member)
            pipe.zincrby("sales", row.fields[0] - first - second, row.member)
        pipe.execute()
        self.run_python(0)
        wanted = {row.member: [row.ms // SECOND * SECOND, *row.fields] for row in rows}
        self.assertEqual({record[0]: record[2:] for record in self.board("sales")}, wanted)

    def test_large_scores_and_flags_move_from_redis_and_all_of_it_from_records(self):
        self.assert_said("at a score of 524288", "scores up to 8589934591")
        neighbours = [self.pack(524288, 1, CLOCK_MS + second * SECOND) for second in range(20)]
        self.assertLess(len({self.kept_by_redis(number) for number in neighbours}), 20)
        rows = self.begin_with(few(8589934591, 1))
        right = ranked(rows, SECOND)
        self.run_python(0)
        self.assertNotEqual(self.assert_fields_moved(rows), {record[0]: record[2] for record in right})
        self.assert_ranked_otherwise_by_redis("sales", right)
        self.move_records(1, rows)
        self.assert_moved("sales", right)

    def test_the_example_of_the_page(self):
        self.assertEqual(self.pack(100, 1, 1571819021259), "100.1290072179")
        self.assert_said("`100.1290072179`")
