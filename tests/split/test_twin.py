"""One board against the same split over n keys, on one server: layouts, equal keys, groups, writes."""
import os
import random
import unittest
import zlib

import redis

import process
from leaderboard_client import Leaderboard, split
from leaderboard_client.split import BoardChanged, SplitBoard
from split_twin import Twin

MEMBERS = 400 if process.IS_SHORT else 3000
STEPS = 12 if process.IS_SHORT else 60
TAGS = ["TAG", "country", "4"]
# The words of a layout, and for each field the values of a member.
LAYOUTS = [
    ("FIELD score 20", [(0, 5)]),  # hardly anything but equal keys
    ("FIELD score 20", [(0, 1000000)]),
    ("FIELD ms 24 ASC TIME 30 MS START 1700000000000", [(0, 30)]),
    ("FIELD level 8 FIELD ms 20 ASC", [(0, 9), (0, 40)]),
    ("FIELD score 33 SIGNED TIME 31 S", [(-20, 20)]),
    ("FIELD score 64 SIGNED", [(-9 * 10 ** 18, 9 * 10 ** 18)]),
    ("FIELD score 64", [(0, 18 * 10 ** 18)]),
    ("FIELD wins 10 ASC FIELD score 16 SIGNED TIME 32 S LATEST", [(0, 3), (-2, 2)]),
    ("FIELD score 9 TIME 4 D START 2023-11-01T00:00:00Z LATEST", [(0, 3)]),
]


class Split(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = process.Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = redis.Redis(port=cls.server.port, decode_responses=True)

    def setUp(self):
        seed = int(os.environ.get("LEADERBOARD_TEST_SEED") or random.randrange(1 << 30))
        print(f"seed {seed} ", end="", flush=True)
        self.draw = random.Random(seed)
        self.client.flushall()
        # So small that a few hundred members take all the rounds.
        for name, value in (("CUTS", 40), ("FEW", 5), ("MANY", 10)):
            self.addCleanup(setattr, split, name, getattr(split, name))
            setattr(split, name, value)

    def begin(self, layout, shards):
        board = SplitBoard(self.client, "arena", shards)
        board.create(fields=layout, tag={"country": 4})
        self.client.execute_command("LB.CREATE", "one", *layout.split(), *TAGS)
        return board

    def write(self, board, layout, fields, count):
        """The same to both."""
        for _ in range(count):
            member, at = f"m{self.draw.randrange(MEMBERS)}", None
            if self.draw.random() < 0.1:
                board.remove(member)
                self.client.zrem("one", member)
                continue
            if "TIME" in layout:
                at = 1700000000000 + 1000 * self.draw.randrange(100000)
            values = [self.draw.randint(*field) for field in fields]
            country, options = self.draw.choice(["DE", "FR", ""]), [] if at is None else ["AT", at]
            board.submit(member, values, at=at, tag={"country": country})
            self.client.execute_command("LB.ADD", "one", *options, "TAG", "country", country, *values, member)

    def compare(self, board, group):
        words = [word for name, value in group.items() for word in ("WHERE", name, value)]
        twin = Twin(self.client, "one", board.shards, *words)
        count = len(twin.records)
        places = [0, 3, count // 2, max(0, count - 3), count, count + 7, *[self.draw.randrange(count + 1) for _ in range(3)]]
        for place in places:
            for size in (1, self.draw.randrange(2, 60)):
                self.assertEqual(board.range(place, place + size - 1, where=group), twin.range(place, size))
        self.assertEqual(board.top(7, where=group), twin.range(0, 7))
        self.assertEqual(board.page(3, 9), Twin(self.client, "one", board.shards).range(18, 9))
        members = [f"m{self.draw.randrange(MEMBERS)}" for _ in range(20)] + [
            record.member for record in twin.range(0, 2) + twin.records[-2:]]
        self.assertEqual(board.ranks(*members, where=group), [twin.rank(member) for member in members])
        for member in members[-8:]:
            self.assertEqual(board.rank(member, where=group), twin.rank(member))
            size = self.draw.randrange(1, 12)
            self.assertEqual(board.around(member, size, where=group), twin.around(member, size), (member, size))
            shared = self.client.execute_command("LB.GET", "one", 1, member, "COMP", *words)[0]
            self.assertEqual(getattr(board.rank(member, where=group, comp=True), "rank", None), shared and shared[1])
        quantiles = [0, 1000, *[self.draw.randrange(1001) for _ in range(3)]]
        self.assertEqual(board.quantile([f"{q / 1000:.3f}" for q in quantiles], where=group),
                         [twin.quantile(q) for q in quantiles])
        self.assertEqual(board.count(where=group), count)

    def test_a_split_board_answers_as_one_board(self):
        for layout, fields in LAYOUTS:
            for shards in (1, self.draw.choice([2, 3]), 7):
                with self.subTest(layout=layout, shards=shards):
                    self.client.flushall()
                    board = self.begin(layout, shards)
                    self.compare(board, {})  # empty
                    for _ in range(max(1, STEPS // 6)):
                        self.write(board, layout, fields, MEMBERS // 2)
                        self.compare(board, {})
                        self.compare(board, {"country": self.draw.choice(["DE", "", "nobody"])})
                    edges = sorted(self.draw.sample(range(-10, 50), 4))
                    self.assertEqual(board.hist(edges),
                                     self.client.execute_command("LB.HIST", "one", *edges))
                    self.assertEqual(board.count(edges[0], f"({edges[2]}"),
                                     self.client.execute_command("LB.COUNT", "one", edges[0], f"({edges[2]}", "BYSCORE"))
                    self.assertEqual(board.count_by("country"), Leaderboard(self.client, "one").count_by(by="country"))
                    self.assertEqual(list(board), Twin(self.client, "one", shards).records)

    def test_within_is_the_group_of_the_member(self):
        board = self.begin("FIELD score 8", 3)
        self.write(board, "", [(0, 90)], MEMBERS)
        for member in (f"m{i}" for i in range(20)):
            value = self.client.execute_command("LB.TAGS", "one", member)[0]
            group = {"country": value[1] if value else ""}
            self.assertEqual(board.rank(member, within=["country"]), board.rank(member, where=group))
            self.assertEqual(board.around(member, 3, within=["country"]), board.around(member, 3, where=group))
            one = Leaderboard(self.client, "one").get([member], where={"country": "DE"}, within="Country")[0]
            record = board.rank(member, where={"country": "DE"}, within="Country")
            self.assertEqual(record is None, one is None)
            self.assertEqual(record, record and board.rank(member, where={"country": "DE"}))

    def test_places_and_quantiles_that_are_none_are_refused_at_once(self):
        board = self.begin("FIELD score 8", 3)
        board.submit("ann", 5)
        for start, stop in ((-3, -1), (-1, 5), (0, -1)):
            with self.assertRaises(ValueError):
                board.range(start, stop)
        for quantile in (-0.1, "1.01"):
            with self.assertRaises(ValueError):
                board.quantile([0, quantile])
        self.assertEqual((board.top(0), board.rounds), ([], 0))

    def test_ranks_of_more_members_than_a_command_takes(self):
        board = self.begin("FIELD score 8", 2)
        board.submit("ann", 5)
        self.addCleanup(setattr, split, "KEYS_MAX", split.KEYS_MAX)
        split.KEYS_MAX = 2
        self.assertEqual([record and record.rank for record in board.ranks("ann", "bob", "ann", "ann", "eva")],
                         [0, None, 0, 0, None])

    def test_a_shard_that_is_gone_is_empty(self):
        board = self.begin("FIELD score 64", 2)
        board.submit("ann", 2 ** 64 - 1)
        self.client.delete(board.boards[1 - split.shard_of("ann", 2)].name)
        self.assertEqual((board.rank("ann").rank, len(board.around("ann", 3))), (0, 1))

    def test_results_whose_answers_are_lost_count_once(self):
        client, lost = self.client, []

        class Loses:
            """Every second answer."""
            def pipeline(self, transaction):
                pipe = client.pipeline(transaction=transaction)
                execute = pipe.execute

                def lose(**options):
                    replies = execute(**options)
                    lost.append(len(lost) % 2 == 0)
                    if lost[-1]:
                        raise redis.ConnectionError("gone")
                    return replies
                pipe.execute = lose
                return pipe
        self.begin("FIELD score 20", 3)
        board = SplitBoard(Loses(), "arena", 3, retries=1)
        board.submit_many([(f"m{i}", 5) for i in range(20)], "INCR")
        self.assertEqual(lost, [True, False])
        self.assertEqual([record.score for record in board.top(20)], 20 * [5])
        with self.assertRaises(redis.ConnectionError):
            board.remove("m1")

    def test_shards_are_by_crc32(self):
        """For ever: another order of members would be another board."""
        self.assertEqual([split.shard_of(name, 16) for name in ("ann", b"bob", "zoë", "")],
                         [zlib.crc32(name.encode()) % 16 for name in ("ann", "bob", "zoë", "")])
        self.assertEqual(split.shard_of("123456789", 1 << 32), 0xcbf43926)

    def test_create_completes_what_was_interrupted_and_sees_other_layouts(self):
        self.client.execute_command("LB.CREATE", "arena:{1}", "FIELD", "score", 20)
        board = SplitBoard(self.client, "arena", 4)
        board.create(fields="FIELD score 20")
        self.assertEqual(self.client.exists(*[each.name for each in board.boards]), 4)
        with self.assertRaisesRegex(redis.RedisError, "BUSYKEY"):
            board.create(fields="FIELD score 20")
        self.client.delete("arena:{2}")
        with self.assertRaisesRegex(redis.RedisError, "different layouts"):
            board.create(fields="FIELD score 21")

    def test_a_page_is_right_while_others_write(self):
        """The best of one shard go, or newcomers are better, whenever cuts were read, so that ranks are others when
        the records are read: those that come are right at that moment."""
        board, other = self.begin("FIELD score 20", 5), SplitBoard(self.client, "arena", 5)
        ask = board._ask

        def ask_and_write(asked, again=True):
            replies = ask(asked)
            if asked[0][1][0] == "LB.CUTS":
                key = f"arena:{{{self.draw.randrange(board.shards)}}}"
                for i in range(self.draw.randrange(15)):
                    self.client.zadd(key, {f"n{board.rounds}-{i}": 2000 if is_growing else 0})
                if not is_growing:
                    self.client.zpopmax(key, self.draw.randrange(15))
            return replies
        for is_growing in (True, False):
            self.client.flushall()
            other.submit_many((f"m{i}", self.draw.randrange(1000)) for i in range(2 * MEMBERS))
            for _ in range(20):
                place = self.draw.randrange(MEMBERS)
                board._ask = ask_and_write
                page = board.range(place, place + 19)
                board._ask = ask
                self.assertEqual(page, board.range(place, place + 19))

    def test_a_board_that_changes_all_the_time_is_an_error_after_some_rounds(self):
        board, other = self.begin("FIELD score 20", 5), SplitBoard(self.client, "arena", 5)
        ask, results = board._ask, [(f"m{i}", i) for i in range(MEMBERS)]

        def ask_and_write(asked, again=True):
            other.delete()
            if board.rounds % 2:
                other.submit_many(results)
            return ask(asked)
        board._ask = ask_and_write
        for place in range(1, MEMBERS, MEMBERS // 20):
            try:
                board.range(place, place + 19)
            except BoardChanged:
                pass
            self.assertLess(board.rounds, 60 * MEMBERS)
