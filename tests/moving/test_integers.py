"""Fields and time packed into the bits of one integer."""
import random
from datetime import datetime, timedelta, timezone

from moving import DAY, SECOND, Packed, Recent, Row, few, place_of, ranked
from moving import top_with_scores
from servers import CLOCK_MS

CHINA = timezone(timedelta(hours=8))


class ScoreAndUnixSeconds(Packed):
    page_name = "score-and-seconds"
    not_followed = ("test_above_scores_move_from_redis_and_all_of_it_from_records",)
    key = "arena"

    def pack(self, score, ms):
        return score << 32 | ms // SECOND

    def test_scores_and_times_move_from_redis(self):
        rows = self.begin_with(few(2097151))
        self.run_python(0)
        right = ranked(rows, SECOND, by_name=True)
        self.assert_moved("arena", right)
        self.assert_ranked_otherwise_by_redis("arena", right)
        self.check_table(
            ("ZINCRBY arena 5 ann", b"5"), ("ZSCORE arena ann", b"5"),
            ("LB.GET arena 1 ann", [[b"ann", place_of(rows, 5), Recent(SECOND), 5]]),
            ("ZREVRANGE arena 0 9 WITHSCORES", top_with_scores(right)))

    def test_reversed_seconds_are_the_keys_of_the_board(self):
        self.run_transcript()
        rows = self.meant(few(2097151))

        def pack(score, ms):
            return score << 32 | 4294967295 - ms // SECOND

        self.fill_packed(rows, pack)
        self.run_python(1)
        right = ranked(rows, SECOND, by_name=True)
        self.assert_moved("arena", right)
        self.assertEqual([record[0] for record in right], self.shown_by_redis("arena"))
        self.assert_keys("arena", rows, pack)

    def test_above_scores_move_from_redis_and_all_of_it_from_records(self):
        self.assert_said("Above 2097151 scores are still exact, and times within 1024 seconds")
        rows = self.begin_with(few(4294967295))
        self.run_python(0)
        self.assert_fields_moved_and_times_within(rows, 1025 * SECOND)
        self.move_records(2, rows)
        right = ranked(rows, SECOND)
        self.assert_moved("arena", right)
        self.assert_ranked_otherwise_by_redis("arena", right)

    def test_redis_makes_one_of_two_seconds(self):
        self.assert_said("above a score of 2097151", "scores up to 4294967295")
        self.assert_redis_keeps_up_to((2097151 << 32) + 4294967295, (2097152 << 32) + 1763000001)
        self.assert_redis_loses_an_addition(lambda number: number + (1 << 32))


class Milliseconds(Packed):
    """Points, and below them the milliseconds up to an end."""

    def pack(self, points, ms):
        return (points << 41) + self.END_MS - ms

    def move_keys(self):
        """Up to 4095 points: from Redis. Rows as they were, and as they rank."""
        rows = self.begin_with(few(4095))
        self.run_python(0)
        return rows, self.assert_moved_as_listed(rows)

    def move_all(self):
        """Above: the points from Redis, and all of it from records."""
        rows = self.begin_with(few(4194303))
        self.run_python(0)
        self.assert_fields_moved_and_times_within(rows, 512)
        self.move_records(1, rows)
        right = ranked(rows)
        self.assert_moved(self.key, right)
        self.assert_keys(self.key, rows, self.pack)
        self.assert_ranked_otherwise_by_redis(self.key, right)


class PointsAndMilliseconds(Milliseconds):
    page_name = "points-and-milliseconds"
    key = "week:47"
    END_MS = 1795363200000

    def test_up_to_4095_points_the_keys_move_from_redis(self):
        self.check_commands(*self.move_keys())

    def check_commands(self, rows, right):
        place = place_of(rows, 5)
        self.check_table(
            ("ZINCRBY week:47 5 ann", b"5"), ("ZSCORE week:47 ann", b"5"),
            ("ZREVRANK week:47 ann", place),
            ("LB.GET week:47 1 ann", [[b"ann", place, Recent(1), 5]]),
            ("ZREVRANGE week:47 0 9 WITHSCORES", top_with_scores(right)))

    def test_above_points_move_from_redis_and_all_of_it_from_records(self):
        self.assert_said("Up to 4095 points this is exact", "within 512 milliseconds")
        self.move_all()

    def test_redis_makes_one_of_two_milliseconds_and_loses_an_addition(self):
        self.assert_said("It breaks at 4096 points")
        self.assert_redis_keeps_up_to((4096 << 41) - 1, self.pack(4096, self.END_MS - 1))
        self.assert_redis_loses_an_addition(lambda number: number + (1 << 41))
        self.run_transcript()
        self.new.zadd(self.key, {"ann": 0})
        for client in (self.leaderboard.client(), self.leaderboard.client()):
            client.zincrby(self.key, 1, "ann")
        self.assertEqual(self.new.zscore(self.key, "ann"), b"2")

    def test_a_write_after_the_end_spoils_points_in_redis_and_is_refused_here(self):
        self.assert_said("the points are no longer what they were",
                         "is an error that changes nothing")
        late_ms = self.END_MS + 1
        for key in (self.pack(7, late_ms), 7 << 41 | self.END_MS - late_ms):
            self.assertNotEqual(int(self.kept_by_redis(key)) >> 41, 7)
        self.run_transcript()
        last = ("LB.ADD", self.key, "AT", self.END_MS, 7, "ann")
        self.assertEqual(self.new.execute_command(*last), 1)
        self.assert_refused("LB.ADD", self.key, "AT", late_ms, 7, "bob")
        over = "FIELD points 22 TIME 41 MS END 2026-11-16T00:00:00+08:00"
        self.new.execute_command("LB.CREATE", "over", *over.split())
        self.assert_refused("ZINCRBY", "over", 7, "bob")

    def test_the_game_goes_on_while_it_moves(self):
        """Loaded once, changed in the meantime, loaded again: the page's lines for that."""
        rows = self.begin_with(few(4095))
        self.run_python(0)
        random.shuffle(rows)
        gone, changed, same = rows[:500], rows[500:1000], rows[1000:]
        changed = [Row(row.member, (row.fields[0] ^ 1,), CLOCK_MS) for row in changed]
        new = [Row(b"new:%d" % i, (i,), CLOCK_MS) for i in range(500)]
        self.old.zrem(self.key, *(row.member for row in gone))
        self.fill_packed(changed + new)
        before = {record[0]: record for record in self.board(self.key, "WITHKEY")}
        self.run_python(0)
        self.run_python(1, page=self.pages["loading"])
        board = self.board(self.key, "WITHKEY")
        self.assertEqual(sorted(record[2:5] for record in board),
                         sorted([row.ms, *row.fields, b"%d" % self.pack(*row.fields, row.ms)]
                                for row in same + changed + new))
        self.assert_keys(self.key, same + changed + new, self.pack)
        stayed = {row.member for row in same}
        self.assertEqual([record[0] for record in board if record[0] in stayed],
                         [member for member in before if member in stayed])


class FarEnd(Milliseconds):
    page_name = "far-end"
    key = "scores"
    END_MS = 3250454399000

    def test_up_to_4095_points_the_keys_move_from_redis(self):
        rows, right = self.move_keys()
        self.check_table(
            ("ZINCRBY scores 5 ann", b"5"), ("ZSCORE scores ann", b"5"),
            ("LB.GET scores 1 ann", [[b"ann", place_of(rows, 5), Recent(1), 5]]),
            ("ZREVRANGE scores 0 9 WITHSCORES", top_with_scores(right)))

    def test_above_from_records(self):
        self.assert_said("Above 4095 points")
        self.assert_redis_keeps_up_to((4096 << 41) - 1, self.pack(4096, CLOCK_MS + 1))
        self.assert_redis_loses_an_addition(lambda number: number + (1 << 41))
        self.move_all()


class CountersAndDay(Packed):
    page_name = "counters-and-day"
    not_followed = ("test_above_all_of_it_moves_from_records",
                    "test_of_large_counters_the_day_alone_is_lost",)
    key = "posts"
    since_ms = CLOCK_MS - 1500 * DAY
    BEGIN_MS = 1577808000000  # 2020-01-01T00:00:00+08:00

    def pack(self, agree, comment, ms):
        day = datetime.fromtimestamp(ms // SECOND, CHINA).strftime("%y%m%d")
        return agree << 42 | comment << 20 | int(day)

    def ranked(self, rows, **how):
        return ranked(rows, DAY, self.BEGIN_MS, is_latest=True, **how)

    def test_below_2048_all_of_it_moves_from_redis(self):
        rows = self.begin_with(few(2047, 4194303))
        self.run_python(0)
        right = self.ranked(rows, by_name=True)
        self.assert_moved("posts", right)
        self.assertEqual([record[0] for record in right], self.shown_by_redis("posts"))
        behind = sum(row.fields > (1, 1) for row in rows)
        ahead = sum(row.fields == (1, 1) and row.ms // DAY * DAY > CLOCK_MS + DAY for row in rows)
        self.check_table(
            ("LB.ADD posts INCR 1 0 post:7", 1), ("LB.ADD posts INCR 0 1 post:7", 1),
            ("LB.GET posts 1 post:7", [[b"post:7", behind + ahead, Recent(DAY), 1, 1]]),
            ("LB.RANGE posts 0 9", right[:10]))

    def test_above_all_of_it_moves_from_records(self):
        rows = self.begin_with(few(4194303, 4194303))
        self.assert_said("stops the lines before anything is written", "up to 4194303")
        with self.assertRaises(ValueError):
            self.run_python(0)
        self.assertEqual(self.board("posts"), [])
        self.run_python(1, [(row.member, *row.fields, row.ms) for row in rows])
        right = self.ranked(rows)
        self.assert_moved("posts", right)
        self.assert_ranked_otherwise_by_redis("posts", right)

    def test_redis_makes_one_of_two_days_and_loses_an_addition(self):
        self.assert_said("It breaks at 2048 of the first counter", "all `agree` are below 2048")
        self.assert_redis_keeps_up_to(2047 << 42 | 4194303 << 20 | 991231, 2048 << 42 | 261121)
        self.assert_redis_loses_an_addition(lambda number: number + (1 << 42))

    def test_the_day_as_a_field_is_the_key_as_it_is(self):
        rows = self.begin_with(few(2047, 4194303), transcript=1)
        by_hand = "LB.ADD posts:days INCR 1 0 =261120 post:7"
        self.assert_said(f"`{by_hand}` sets it")
        self.new.execute_command(*by_hand.split())
        self.assertEqual(self.board("posts:days"), [[b"post:7", 0, None, 1, 0, 261120]])
        self.new.zrem("posts:days", "post:7")
        self.run_python(2)
        rows = [row._replace(fields=(*row.fields, self.pack(0, 0, row.ms))) for row in rows]
        right = ranked(rows, by_name=True, has_time=False)
        self.assert_moved("posts:days", right)

    def test_of_large_counters_the_day_alone_is_lost(self):
        rows = self.begin_with(few(4194303, 4194303), transcript=1)
        self.run_python(2)
        board = self.board("posts:days")
        self.assertEqual({record[0]: tuple(record[3:5]) for record in board},
                         {row.member: row.fields for row in rows})
        self.assertNotEqual({record[0]: record[5] for record in board},
                            {row.member: self.pack(0, 0, row.ms) for row in rows})


class ScoreFlagSeconds(Packed):
    page_name = "score-flag-seconds"
    key = "contest"
    since_ms = 1571000000000
    END_S = 1861891200

    def pack(self, score, flag, ms):
        return score << 30 | flag << 29 | (self.END_S - ms // SECOND)

    def test_up_to_8388607_the_keys_move_from_redis(self):
        rows = self.begin_with(few(8388607, 1))
        self.run_python(0)
        self.assert_moved_as_listed(rows, SECOND)

    def test_above_scores_and_flags_move_from_redis_and_all_of_it_from_records(self):
        rows = self.begin_with(few(8589934591, 1))
        self.run_python(0)
        self.assert_fields_moved_and_times_within(rows, 513 * SECOND)
        self.assert_said("Up to 8388607 this is exact", "within 512 seconds")
        self.move_records(1, rows)
        right = ranked(rows, SECOND)
        self.assert_moved("contest", right)
        self.assert_keys("contest", rows, self.pack)
        self.assert_ranked_otherwise_by_redis("contest", right)

    def test_every_command_of_the_table(self):
        rows = self.begin_with(few(8388607, 1))
        self.run_python(0)
        set_ms = 1794830400000
        self.new.execute_command("LB.ADD", "contest", "AT", 1571810001259, 100, 0, "ann")
        seen = []
        for command in self.page.commands()[:5]:
            self.assertEqual(self.new.execute_command(*command.split()), 1)
            seen.append(self.new.execute_command("LB.GET", "contest", 1, "ann")[0][2:])
        self.assertEqual(seen, [[1571810001000, 103, 0], [Recent(SECOND), 106, 0],
                                [Recent(SECOND), 106, 1], [set_ms, 106, 1], [set_ms, 120, 1]])
        place = sum(row.fields > (120, 1) or row.fields == (120, 1) and row.ms < set_ms + SECOND
                    for row in rows)
        self.new.zrem("contest", "ann")
        self.check_table(
            ("LB.ADD contest INCR KEEPTIME 3 * ann", 1), ("LB.ADD contest INCR 3 * ann", 1),
            ("LB.ADD contest KEEPTIME * 1 ann", 1), (f"LB.ADD contest AT {set_ms} * * ann", 1),
            (f"LB.ADD contest AT {set_ms} 120 1 ann", 1),
            ("LB.GET contest 1 ann", [[b"ann", place, set_ms, 120, 1]]))

    def test_redis_makes_one_of_two_seconds_and_answers_in_another_form(self):
        self.assert_redis_keeps_up_to((8388607 << 30) + (1 << 30) - 1,
                                      self.pack(8388608, 1, (self.END_S - 1) * SECOND))
        self.assert_redis_loses_an_addition(lambda number: number + (1 << 30))
        answer = b"1.3094266712875436e+18"
        key = int(float(answer)) + 1
        self.old.zadd("one", {"ann": key})
        self.old.response_callbacks.clear()
        # Redis 7.2 and later write all digits, those of the double.
        self.assertIn(self.old.zscore("one", "ann"), (answer, b"%d" % int(float(answer))))
        self.assertNotEqual(int(float(answer)), key)
        self.assert_said("above a score of 8388607", f"`{answer.decode()}`")

    def test_the_example_of_five(self):
        """The board that the page loads in both ways, key by key."""
        keys = {b"A": 107664254579, b"B": 215038436979, b"C": 215575307891, b"D": 429786801779,
                b"E": 215575316911}
        at, earlier = 1571819021259, 1571810001259
        rows = [Row(b"A", (100, 0), at), Row(b"B", (200, 0), at), Row(b"C", (200, 1), at),
                Row(b"D", (400, 0), at), Row(b"E", (200, 1), earlier)]
        self.assertEqual({row.member: self.pack(*row.fields, row.ms) for row in rows}, keys)
        layout = self.page.layouts()[0].split()
        self.new.execute_command("LB.CREATE", "packed", *layout)
        self.new.execute_command("LB.ADD", "packed", "PACKED", *(part for member, key in keys.items()
                                                                  for part in (key, member)))
        self.new.execute_command("LB.CREATE", "times", *layout)
        for row in rows:
            self.new.execute_command("LB.ADD", "times", "AT", row.ms, *row.fields, row.member)
        for board in ("packed", "times"):
            self.assertEqual(self.board(board), ranked(rows, SECOND))
            self.assert_keys(board, rows, self.pack)
            self.assertEqual([record[0] for record in self.board(board)],
                             [b"D", b"E", b"C", b"B", b"A"])


class AnyInteger(Packed):
    page_name = "any-integer"
    key = "packed"

    def pack(self, number, _):
        return number

    @staticmethod
    def any_integer():
        near = random.choice([-2**63, -2**53, 0, 2**53, 2**62])
        anywhere = random.randint(-2**63, 2**63 - 1024)
        return (random.choice([near + random.randint(0, 200), anywhere]),)

    def test_what_redis_has_moves_as_it_is(self):
        rows = self.begin_with(self.any_integer)
        self.run_python(0)
        rounded = [row._replace(fields=(int(float(row.fields[0])),)) for row in rows]
        self.assert_moved("packed", ranked(rounded, by_name=True, has_time=False))
        self.assertEqual([record[0] for record in self.board("packed")],
                         self.shown_by_redis("packed"))

    def test_from_records_every_bit_moves(self):
        rows = self.begin_with(self.any_integer)
        rows += [Row(b"last", (2**63 - 1,), 0), Row(b"equal", (2**63 - 1,), 0)]
        self.run_python(1, [(row.member, *row.fields) for row in rows])
        right = ranked(rows, has_time=False)
        self.assert_moved("packed", right)
        self.fill("packed", ((row.member, *row.fields) for row in rows))
        self.assert_ranked_otherwise_by_redis("packed", right)
        place = place_of(rows, 4611686022722355201)
        self.check_table(
            ("ZADD packed 4611686018427387905 ann", 1),
            ("ZINCRBY packed 4294967296 ann", b"4611686022722355201"),
            ("LB.GET packed 1 ann", [[b"ann", place, None, 4611686022722355201]]),
            ("LB.RANGE packed 0 9", right[:10]),
            ("ZREVRANK packed ann", place))

    def test_redis_makes_one_of_two_integers(self):
        self.fill("packed", [(b"ann", 2**53 + 1), (b"zoe", 2**53)])
        self.assertEqual(self.shown_by_redis("packed"), [b"zoe", b"ann"])
        self.run_transcript()
        self.run_python(1, [(b"zoe", 2**53), (b"ann", 2**53 + 1)])
        self.assertEqual(self.new.zrevrange("packed", 0, -1), [b"ann", b"zoe"])
