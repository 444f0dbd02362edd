"""The classes of agoragames' package: what its own tests ask for, in our words."""
import time
import unittest

from redis import ConnectionPool, Redis

import process
from leaderboard_client.agoragames import CompetitionRankingLeaderboard, Leaderboard, TieRankingLeaderboard

TIED = [("member_1", 50), ("member_2", 50), ("member_3", 30), ("member_4", 30), ("member_5", 10)]
MORE = TIED + [("member_6", 50), ("member_7", 50), ("member_8", 30), ("member_9", 30), ("member_10", 10)]


def ranks(rows):
    return [row["rank"] for row in rows]


def members(rows):
    return [row["member"] for row in rows]


class OnServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = process.Server("--layout", "decimals FIELD score 53 SIGNED SCALE 2", "--board", "* decimals")
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        Redis(port=self.server.port).flushall()
        self.lb = self.make("name")

    def make(self, name, kind=Leaderboard, **options):
        return kind(name, port=self.server.port, **options)

    def rank(self, count, leaderboard=None):
        for index in range(1, count + 1):
            (leaderboard or self.lb).rank_member(f"member_{index}", index, {"member_name": f"Member {index}"})


class Plain(OnServer):
    def test_connections(self):
        self.assertEqual(list(self.lb.options), ["connection_pool"])
        self.assertIsInstance(self.lb.options["connection_pool"], ConnectionPool)
        self.assertEqual((self.lb.leaderboard_name, self.lb.page_size), ("name", Leaderboard.DEFAULT_PAGE_SIZE))
        self.assertEqual(self.make("x", page_size=0).page_size, Leaderboard.DEFAULT_PAGE_SIZE)
        pool = self.lb.redis_connection.connection_pool
        self.assertIs(self.make("b").redis_connection.connection_pool, pool)
        self.assertIsNot(self.make("b", db=1).redis_connection.connection_pool, pool)
        own = Redis(port=self.server.port, db=1)
        self.assertIs(Leaderboard("b", connection=own).redis_connection.connection_pool, own.connection_pool)
        self.assertIs(Leaderboard("b", redis_connection=own).redis_connection, own)
        with self.assertRaises(ValueError):
            self.make("b", order="up")

    def test_members_and_their_data(self):
        self.rank(5)
        self.assertEqual((self.lb.total_members(), self.lb.total_pages(), self.lb.total_pages(2)), (5, 1, 3))
        self.assertEqual(self.lb.member_data_for("member_1"), str({"member_name": "Member 1"}))
        self.assertEqual(self.lb.members_data_for(["member_1", "x"]), [str({"member_name": "Member 1"}), None])
        self.lb.update_member_data("member_1", {"member_name": "other"})
        self.assertEqual(self.lb.member_data_for("member_1"), str({"member_name": "other"}))
        self.lb.remove_member_data("member_1")
        self.assertIsNone(self.lb.member_data_for("member_1"))
        self.lb.remove_member("member_2")
        self.assertEqual(self.lb.total_members(), 4)
        self.assertEqual(self.lb.redis_connection.hlen("name:member_data"), 3)
        self.lb.delete_leaderboard()
        self.assertEqual(self.lb.redis_connection.exists("name", "name:member_data"), 0)
        self.make("name", member_data_namespace="md").rank_member("a", 1, "x")
        self.assertEqual(self.lb.redis_connection.exists("name:md"), 1)

    def test_scores_and_ranks(self):
        self.rank(5)
        self.assertEqual((self.lb.score_for("member_5"), self.lb.score_for("jones")), (5.0, None))
        self.assertEqual((self.lb.check_member("member_3"), self.lb.check_member("member_6")), (True, False))
        self.assertEqual((self.lb.rank_for("member_5"), self.lb.rank_for("jones")), (1, None))
        self.assertEqual(self.lb.score_and_rank_for("member_3"), {"member": "member_3", "score": 3.0, "rank": 3})
        self.assertEqual(self.lb.score_and_rank_for("jones"), {"member": "jones", "score": None, "rank": None})
        self.assertEqual((self.lb.total_members_in_score_range(2, 4), self.lb.total_scores()), (3, 15))
        self.lb.change_score_for("member_1", 99)
        self.assertEqual((self.lb.rank_for("member_1"), self.lb.score_for("member_1")), (1, 100.0))
        self.lb.rank_member("david", 50.1)
        self.assertEqual(self.lb.score_for("david"), 50.1)
        self.lb.change_score_for("new", 10, "optional-data")
        self.assertEqual(self.lb.member_data_for("new"), "optional-data")

    def test_removing(self):
        self.rank(5)
        self.lb.remove_members_in_score_range(2, 4)
        self.assertEqual(self.lb.total_members(), 2)
        self.rank(5)
        self.assertEqual(self.lb.remove_members_outside_rank(3), 2)
        self.assertEqual(members(self.lb.leaders(1)), ["member_5", "member_4", "member_3"])
        self.lb.order = Leaderboard.ASC
        self.rank(5)
        self.assertEqual(self.lb.remove_members_outside_rank(3), 2)
        self.assertEqual(members(self.lb.leaders(1)), ["member_1", "member_2", "member_3"])

    def test_pages(self):
        self.assertEqual((self.lb.page_for("jones"), self.lb.leaders(1)), (0, []))
        self.rank(26)
        self.assertEqual((len(self.lb.leaders(1)), self.lb.leaders(1)[24]["member"]), (25, "member_2"))
        self.assertEqual(self.lb.leaders(2), [{"member": "member_1", "score": 1.0, "rank": 26}])
        self.assertEqual((len(self.lb.leaders(1, page_size=5)), self.lb.leaders(0)), (5, self.lb.leaders(1)))
        self.assertEqual([self.lb.page_for(f"member_{n}", 10) for n in (26, 17, 16, 1)], [1, 1, 2, 3])
        self.assertEqual(self.lb.leaders(1, with_member_data=True)[0]["member_data"], str({"member_name": "Member 26"}))
        self.assertEqual(members(self.lb.all_leaders()), [f"member_{n}" for n in range(26, 0, -1)])
        self.lb.order = Leaderboard.ASC
        self.assertEqual([self.lb.page_for(f"member_{n}", 10) for n in (10, 1, 17, 26)], [1, 1, 2, 3])

    def test_ranges(self):
        self.rank(25)
        rows = self.lb.members_from_score_range(10, 15)
        self.assertEqual((rows[0], rows[5]), ({"member": "member_15", "score": 15.0, "rank": 11},
                                              {"member": "member_10", "score": 10.0, "rank": 16}))
        self.assertEqual(members(self.lb.members_from_rank_range(5, 9)), [f"member_{n}" for n in range(21, 16, -1)])
        self.assertEqual(len(self.lb.members_from_rank_range(1, 26)), 25)
        self.assertEqual((members(self.lb.top(1)), len(self.lb.top(26))), (["member_25"], 25))
        self.assertEqual(self.lb.member_at(1)["score"], 25.0)
        self.assertEqual((self.lb.member_at(25)["rank"], self.lb.member_at(26), self.lb.member_at(0)), (25, None, None))
        self.assertEqual(self.lb.member_at(2, with_member_data=True)["member_data"], str({"member_name": "Member 24"}))
        only = self.lb.members_from_rank_range(5, 6, members_only=True)
        self.assertEqual(only, [{"member": "member_21"}, {"member": "member_20"}])

    def test_around_me(self):
        self.rank(76)
        self.assertEqual(len(self.lb.around_me("member_30")), 25)
        self.assertEqual(len(self.lb.around_me("member_1")), 13)
        self.assertEqual(members(self.lb.around_me("member_76", page_size=3)), ["member_76", "member_75", "member_74"])
        self.assertEqual(self.lb.around_me("jones"), [])

    def test_ranked_in_list(self):
        self.rank(25)
        asked = ["member_25", "member_1", "member_200", "member_15"]
        self.assertEqual(members(self.lb.ranked_in_list(asked)), asked)
        self.assertEqual(members(self.lb.ranked_in_list(asked, include_missing=False)),
                         ["member_25", "member_1", "member_15"])
        self.assertEqual(self.lb.ranked_in_list(["x"], include_missing=False, with_member_data=True), [])
        self.assertEqual(members(self.lb.ranked_in_list(asked, sort_by="score")),
                         ["member_1", "member_15", "member_25", "member_200"])
        self.assertEqual(members(self.lb.ranked_in_list(asked, sort_by="rank")),
                         ["member_25", "member_15", "member_1", "member_200"])
        data = self.lb.ranked_in_list(asked, include_missing=False, with_member_data=True)[2]
        self.assertEqual(data["member_data"], str({"member_name": "Member 15"}))

    def test_percentiles(self):
        self.rank(12)
        self.assertEqual([self.lb.percentile_for(f"member_{n}") for n in (1, 2, 3, 4, 12)], [0, 9, 17, 25, 92])
        self.assertIsNone(self.lb.percentile_for("jones"))
        self.lb.delete_leaderboard()
        self.rank(5)
        asked = (0, 75, 87.5, 93.75, 100, 101, -1)
        self.assertEqual([self.lb.score_for_percentile(each) for each in asked], [1, 4, 4.5, 4.75, 5, None, None])
        self.lb.order = Leaderboard.ASC
        self.assertEqual([self.lb.score_for_percentile(each) for each in asked], [5, 2, 1.5, 1.25, 1, None, None])
        self.assertIsNone(self.make("none").score_for_percentile(5))

    def test_expiry(self):
        for kind in (Leaderboard, TieRankingLeaderboard):
            board = self.make("soon", kind)
            self.rank(3, board)
            board.expire_leaderboard(100)
            keys = ["soon", "soon:member_data"] + ["soon:ties"] * (kind is TieRankingLeaderboard)
            self.assertTrue(all(90 < self.lb.redis_connection.ttl(key) <= 100 for key in keys))
            board.expire_leaderboard_at(int(time.time()) + 1000)
            self.assertTrue(all(900 < self.lb.redis_connection.ttl(key) <= 1000 for key in keys))
            board.delete_leaderboard()
            self.assertEqual(self.lb.redis_connection.exists(*keys), 0)

    def test_merging(self):
        self.lb.rank_members(["a", 1, "b", 2, "both", 6])
        other = self.make("other")
        other.rank_members(["c", 1, "a", 4, "both", 5])
        keys = ["other"]
        self.lb.merge_leaderboards("sum", keys)
        self.assertEqual((members(self.make("sum").leaders(1))[0], self.make("sum").total_members()), ("both", 4))
        self.lb.intersect_leaderboards("least", keys, aggregate="MIN")
        self.assertEqual([(row["member"], row["score"]) for row in self.make("least").leaders(1)],
                         [("both", 5.0), ("a", 1.0)])
        self.assertEqual(keys, ["other"])

    def test_conditions_and_several_boards(self):
        def is_better(board, member, present, score, data, options):
            self.assertEqual((board, member, data, options), (self.lb, "david", None, {"reverse": "desc"}))
            return present is None or score > present

        for score in (1337, 1336, 1338):
            self.lb.rank_member_if(is_better, "david", score)
            self.assertEqual(self.lb.score_for("david"), max(score, 1337))
        self.lb.rank_member_across(["one", "two"], "david", 50000, {"member_name": "david"})
        self.assertEqual([len(self.lb.leaders_in(name, 1)) for name in ("one", "two")], [1, 1])

    def test_other_keys_of_rows(self):
        class Own(Leaderboard):
            MEMBER_KEY, SCORE_KEY, RANK_KEY, MEMBER_DATA_KEY = "m", "s", "r", "d"

        board = self.make("name", Own)
        self.rank(2, board)
        self.assertEqual(board.leaders(1, with_member_data=True)[0],
                         {"m": "member_2", "s": 2.0, "r": 1, "d": str({"member_name": "Member 2"})})


class Tied(OnServer):
    def fill(self, kind, rows, order="desc"):
        board = self.make("ties", kind, order=order)
        board.rank_members([each for row in rows for each in row])
        return board

    def test_pages_and_ranks(self):
        for kind, order, expected in ((CompetitionRankingLeaderboard, "desc", [1, 1, 3, 3, 5]),
                                      (CompetitionRankingLeaderboard, "asc", [1, 2, 2, 4, 4]),
                                      (TieRankingLeaderboard, "desc", [1, 1, 2, 2, 3]),
                                      (TieRankingLeaderboard, "asc", [1, 2, 2, 3, 3])):
            with self.subTest(kind=kind.__name__, order=order):
                board = self.fill(kind, TIED, order)
                self.assertEqual(ranks(board.leaders(1)), expected)
                self.assertEqual(sorted(board.rank_for(member) for member, _ in TIED), expected)
                self.assertEqual(board.score_and_rank_for("member_1")["rank"], expected[0 if order == "desc" else 3])
                self.assertIsNone(board.rank_for("nobody"))
                self.assertEqual(ranks(board.ranked_in_list(["nobody", "member_5"])),
                                 [None, expected[4 if order == "desc" else 0]])
                board.delete_leaderboard()

    def test_pages_of_another_size(self):
        board = self.fill(CompetitionRankingLeaderboard, MORE)
        self.assertEqual([ranks(board.leaders(page, page_size=3)) for page in (1, 2)], [[1, 1, 1], [1, 5, 5]])
        self.assertEqual(ranks(board.around_me("member_4")), [1, 1, 1, 1, 5, 5, 5, 5, 9, 9])
        board.delete_leaderboard()
        board = self.fill(TieRankingLeaderboard, MORE)
        self.assertEqual([ranks(board.leaders(page, page_size=3)) for page in (1, 2)], [[1, 1, 1], [1, 2, 2]])

    def test_scores_that_change(self):
        for kind, rank in ((CompetitionRankingLeaderboard, (3, 4)), (TieRankingLeaderboard, (2, 3))):
            board = self.fill(kind, TIED)
            board.change_score_for("member_3", 10)
            self.assertEqual((board.rank_for("member_3"), board.rank_for("member_4")), rank)
            self.assertEqual(board.score_for("member_3"), 40.0)
            board.delete_leaderboard()
        board = self.fill(TieRankingLeaderboard, [("a", 5), ("b", 4), ("c", 3), ("d", 2)])
        board.change_score_for("c", 0.5, "data")
        self.assertEqual((board.rank_for("c"), board.rank_for("d"), board.score_for("c")), (3, 4, 3.5))
        self.assertEqual((board.total_members_in("ties:ties"), board.member_data_for("c")), (4, "data"))

    def test_the_board_of_different_scores(self):
        board = self.fill(TieRankingLeaderboard, TIED)
        for member, left in (("member_1", 3), ("member_2", 2), ("member_5", 1)):
            board.remove_member(member)
            self.assertEqual(board.total_members_in("ties:ties"), left)
        board.rank_members(["a", 100, "b", 101, "c", 102])
        board.remove_members_in_score_range(101, 102)
        self.assertEqual((board.total_members(), board.total_members_in("ties:ties")), (3, 2))
        self.assertEqual((board.remove_members_outside_rank(1), board.total_members_in("ties:ties")), (2, 1))
        board.remove_members_outside_rank(0)
        self.assertEqual(board.total_members_in("ties:ties"), 0)
        own = self.make("ties", TieRankingLeaderboard, ties_namespace="scores")
        own.rank_member("a", 1)
        self.assertEqual(own.total_members_in("ties:scores"), 1)

    def test_a_score_of_0_that_is_tied_later(self):
        board = self.make("ties", TieRankingLeaderboard)
        for rows, expected in (([0, 0], [1, 1]), ([0, 0], [1, 1]), ([1, 1], [1, 1])):
            board.rank_members(["a", rows[0], "b", rows[1]])
            self.assertEqual([board.rank_for("a"), board.rank_for("b")], expected)
        board.rank_member("c", 4)
        self.assertEqual([board.rank_for(member) for member in "cab"], [1, 2, 2])
