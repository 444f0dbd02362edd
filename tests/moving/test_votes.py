"""Votes: points and milliseconds left, changed by a loop under WATCH."""
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import redis

from moving import DAY, Packed, Recent, few, place_of, ranked
from servers import CLOCK_MS

END_MS = 1804262399000
VOTERS = 8
VOTES = 25


def vote(server, poll, candidate):
    """The loop, as the page has it in Java."""
    with server.pipeline() as pipe:
        for _ in range(15):
            try:
                pipe.watch(poll)
                points = int(pipe.zscore(poll, candidate) or 0) >> 34
                pipe.multi()
                pipe.zadd(poll, {candidate: pack(points + 1, int(time.time() * 1000))})
                pipe.execute()
                return True
            except redis.WatchError:
                continue
    return False


def pack(points, ms):
    return (points << 34) + END_MS - ms


class Votes(Packed):
    page_name = "votes"
    key = "poll"
    since_ms = CLOCK_MS - 60 * DAY
    not_followed = ("test_above_points_move_from_redis_and_all_of_it_from_records",
                    "test_the_loop_runs_unchanged_and_one_command_replaces_it",)

    def pack(self, points, ms):
        return pack(points, ms)

    def test_below_524288_the_keys_move_from_redis(self):
        rows = self.begin_with(few(524287))
        self.run_python(0)
        right = self.assert_moved_as_listed(rows)
        place = place_of(rows, 1)
        self.check_table(
            ("ZINCRBY poll 1 ann", b"1"), ("ZSCORE poll ann", b"1"),
            ("LB.GET poll 1 ann", [[b"ann", place, Recent(1), 1]]),
            ("ZREVRANK poll ann", place), ("LB.RANGE poll 0 9", right[:10]))

    def test_above_points_move_from_redis_and_all_of_it_from_records(self):
        rows = self.begin_with(few(2**30 - 1))
        self.run_python(0)
        self.assert_fields_moved_and_times_within(rows, 1024)
        self.assert_said("From 524288 points on", "the times within 1024 ms")
        self.move_records(1, rows)
        right = ranked(rows)
        self.assert_moved("poll", right)
        self.assert_keys("poll", rows, pack)
        self.assert_ranked_otherwise_by_redis("poll", right)

    def test_redis_makes_one_of_two_milliseconds_and_a_point_too_many_outside_the_window(self):
        self.assert_redis_keeps_up_to((524287 << 34) + (1 << 34) - 1, (524288 << 34) + 1)
        early_ms = END_MS - 200 * DAY
        self.assertEqual(int(self.kept_by_redis(pack(5, early_ms))) >> 34, 6)
        self.run_transcript(0)
        first_ms = END_MS - (1 << 34) + 1
        self.assertEqual(self.new.execute_command("LB.ADD", "poll", "AT", first_ms, 5, "ann"), 1)
        self.assert_refused("LB.ADD", "poll", "AT", first_ms - 1, 5, "bob")
        self.assert_said("34 bits hold 198.8 days", "(A month in milliseconds takes 32 bits.)")
        self.assertEqual(round((1 << 34) / DAY, 1), 198.8)
        self.assertTrue(1 << 31 < 31 * DAY < 1 << 32)

    def test_every_writer_is_in_the_way_of_every_other(self):
        error = self.names["redis"].WatchError
        for server in (self.redis_server, self.leaderboard):
            client = server.client()
            with client.pipeline() as pipe:
                pipe.watch("poll")
                client.zadd("poll", {"somebody else": 1})
                pipe.multi()
                pipe.zadd("poll", {"ann": 1})
                with self.assertRaises(error):
                    pipe.execute()

    def test_the_loop_gives_up_after_fifteen_tries(self):
        self.assert_said("gives up after 15 tries")
        module, tries = self.names["redis"], []

        def lose(pipe):
            tries.append(pipe)
            pipe.reset()
            raise module.WatchError

        with mock.patch.object(module.client.Pipeline, "execute", lose):
            self.assertFalse(vote(self.names["old"], "poll", b"ann"))
        self.assertEqual(len(tries), 15)

    def test_the_loop_runs_unchanged_and_one_command_replaces_it(self):
        self.assert_said("the loop runs here unchanged")
        self.new.execute_command("LB.CREATE", "poll:packed", "LAYOUT", "int64")
        with self.clock(), ThreadPoolExecutor(VOTERS) as voters:
            for server, poll in (("old", "poll"), ("new", "poll:packed")):
                ballots = [voters.submit(vote, self.names[server], poll, b"ann")
                           for _ in range(VOTERS * VOTES)]
                counted = sum(ballot.result() for ballot in ballots)
                key = int(self.names[server].zscore(poll, b"ann"))
                self.assertGreater(counted, 0)
                self.assertEqual(key >> 34, counted)
                self.assertEqual(END_MS - key % (1 << 34), Recent(1))
            self.run_transcript(0)
            for ballot in [voters.submit(self.names["new"].zincrby, "poll", 1, b"ann")
                           for _ in range(VOTERS * VOTES)]:
                ballot.result()
        self.assertEqual(self.new.zscore("poll", "ann"), b"%d" % (VOTERS * VOTES))
