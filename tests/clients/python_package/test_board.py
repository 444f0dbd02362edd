"""Each command through the typed client, in both versions of the protocol; what a lost answer does; events."""
import datetime
import inspect
import unittest
from decimal import Decimal

import redis
import redis.asyncio

import process
import resp3
from leaderboard_client.commands import BoardCommands, DatabaseCommands
from leaderboard_client.parse import as_dict
from leaderboard_client.words import decode
from leaderboard_client import (AsyncLeaderboard, Ban, Cut, Event, Leaderboard, Leaderboards, LeaguePlace, Page, Placed,
                                Played, Prediction, Rated, Rating, Record, Result, ValueCount, __version__)

BIG = 2**53 + 1


class OverRedis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = process.Server("--notify-board-events", "yes")
        cls.addClassCleanup(cls.server.stop)
        cls.redis = redis.Redis(port=cls.server.port)

    def connect(self):
        return self.redis

    def setUp(self):
        self.redis.flushall()
        self.client = self.connect()
        self.board = Leaderboard(self.client, "arena")


class Commands(OverRedis):
    def test_numbers_are_exact(self):
        self.board.create(fields="FIELD coins 64 SIGNED")
        self.assertEqual(self.board.add({"ann": BIG, "bob": -BIG}), 2)
        self.assertEqual([record.score for record in self.board], [BIG, -BIG])
        money = Leaderboard(self.client, "money")
        money.create(fields=["FIELD", "euros", 64, "SIGNED", "SCALE", 2])
        money.add({"ann": Decimal("9007199254740993.21"), "bob": 1})
        self.assertEqual([record.score for record in money], [Decimal("9007199254740993.21"), 1])
        self.assertIsInstance(money.get("ann")[0].score, Decimal)

    def test_a_pipeline_is_refused_at_once(self):
        for pipeline in (redis.Redis().pipeline(), redis.Redis().pipeline(transaction=False)):
            for made in (lambda: Leaderboard(pipeline, "arena"), lambda: Leaderboards(pipeline)):
                with self.assertRaisesRegex(TypeError, "a pipeline has no answers before execute"):
                    made()
        async_pipeline = redis.asyncio.Redis().pipeline()
        with self.assertRaisesRegex(TypeError, "a pipeline has no answers"):
            AsyncLeaderboard(async_pipeline, "arena")

    def test_what_every_ranking_needs_has_a_name(self):
        self.board.create(fields="FIELD points 20", tag={"country": 8})
        with self.assertRaisesRegex(redis.ResponseError, "BUSYKEY"):
            self.board.create()
        self.assertIsNone(self.board.create(exist_ok=True))
        with self.assertRaisesRegex(redis.ResponseError, "FIELD"):
            Leaderboard(self.client, "other").create(fields="FIELD", exist_ok=True)
        self.board.add({"ann": 50, "bob": 40, "cid": 30}, tag={"country": "DE"})
        self.board.add({"eve": 45}, tag={"country": "FR"})
        self.assertEqual([record.member for record in self.board.top(2)], ["ann", "eve"])
        self.assertEqual([record.tags for record in self.board.top(1, tags=True)], [{"country": "DE"}])
        self.assertEqual((self.board.rank("bob"), self.board.rank("bob", within="country"), self.board.rank("x")), (2, 1, None))
        self.assertEqual((self.board.score("bob"), self.board.score("x")), (40, None))
        self.assertEqual(self.board.remove("ann", "x", "cid"), 2)
        self.assertEqual([record.member for record in self.board], ["eve", "bob"])
        self.assertIs(self.board.delete(), True)
        self.assertIs(self.board.delete(), False)

    def test_a_league_is_described_as_a_map(self):
        self.board.league_create(fields="FIELD points 22", period="WEEK", room=30, tiers=4, up=5, down=6)
        league = self.board.info()["league"]
        self.assertEqual({name: league[name] for name in ("room", "tiers", "up", "down", "idle")},
                         {"room": 30, "tiers": 4, "up": 5, "down": 6, "idle": "stay"})

    def test_a_record_has_what_is_asked_for(self):
        self.board.create(fields="FIELD points 20 FIELD ms 20 ASC", tag={"country": 8, "class": 4})
        self.redis.hset("profile:ann", mapping={"name": "Ann", "tier": "gold"})
        self.board.add({"ann": [50, 900], "bob": [40, 800]}, tag={"country": "DE"})
        self.redis.copy("arena", "before")
        self.board.add([("eva", (60, 700)), ("kim", (60, 700))], tag={"country": "FR", "class": "mage"})
        [ann] = self.board.get("ann", pct=True, withkey=True, tags=True, data="profile:*", since="before",
                               within=["country"])
        self.assertEqual(ann, Record("ann", 0, None, (50, 900), percent=Decimal(100), key=ann.key,
                                     tags={"country": "DE"}, data={"name": "Ann", "tier": "gold"}, since=0))
        self.assertIsInstance(ann.key, int)
        self.assertEqual(self.board.get(["ann", "eva"], data="profile:*", fields=["tier", "none"], comp=True, sort=True),
                         [Record("eva", 0, None, (60, 700), data=None),
                          Record("ann", 2, None, (50, 900), data={"tier": "gold", "none": None})])
        self.assertEqual(self.board.get(["nobody"]), [None])
        self.assertEqual([each.member for each in self.board.range(0, -1, where={"country": ["DE", "FR"]},
                                                                   wherenot={"class": "mage"})], ["ann", "bob"])
        self.assertEqual([each.member for each in self.board.around("bob", 5, within="country")], ["ann", "bob"])
        self.assertEqual([each.member for each in self.board.around(None, 2, score=55)], ["kim", "ann"])
        self.assertEqual([each.member for each in self.board.range("(40", "inf", byscore=True, rev=True, limit=(0, 1))],
                         ["ann"])
        self.assertEqual([each.member for each in self.board.quantile([1, "0.5", Decimal(0)])], ["eva", "ann", "bob"])
        self.assertEqual(self.board.hist([45, 55]), [1, 1, 2])
        eva, ann, bob = (self.board.get(member, withkey=True)[0].key for member in ("eva", "ann", "bob"))
        self.assertEqual(self.board.cuts(3), [Cut(0, eva), Cut(1, eva), Cut(3, bob)])
        self.assertEqual(self.board.cuts(9, 0, -1, where={"country": "DE"}), [Cut(0, ann), Cut(1, bob)])
        self.assertEqual(Leaderboard(self.client, "none").cuts(2), [])
        self.assertEqual((self.board.count(), self.board.count(0, 1), self.board.count(where={"country": "DE"})), (4, 2, 2))
        self.assertEqual(self.board.count_by(["country", "class"]),
                         [ValueCount(("DE", None), 2), ValueCount(("FR", "mage"), 2)])
        self.assertEqual(self.board.tags(["kim", "nobody"]), [{"country": "FR", "class": "mage"}, None])
        self.assertTrue(self.board.tag("kim", {"class": "rogue"}, if_={"class": "mage", "country": "FR"}))
        self.assertFalse(self.board.tag("kim", {"class": "rogue"}, if_={"class": "mage"}))

    def test_times_are_milliseconds_and_moments(self):
        self.board.create(fields="FIELD points 20 TIME 42 MS")
        moment = datetime.datetime(2026, 11, 26, 12, 0, 0, 250000, tzinfo=datetime.timezone.utc)
        self.board.add({"ann": 5}, at=moment)
        self.board.add({"bob": 5}, at=1795694400251)
        self.assertEqual([each.time for each in self.board], [1795694400250, 1795694400251])
        self.assertEqual(self.board.get("ann")[0].reached, moment)
        with self.assertRaisesRegex(ValueError, "time zone"):
            self.board.add({"ann": 6}, at=datetime.datetime(2026, 1, 1))

    def test_writing_tells_what_it_did(self):
        self.assertEqual(self.board.submit("ann", 500, boards=["arena", "week"], operator="BEST"),
                         [Result(self.board.get("ann")[0], None, True),
                          Result(Leaderboard(self.client, "week").get("ann")[0], None, True)])
        self.assertEqual([each.counts for each in self.board.submit("ann", 400, operator="BEST")], [False])
        self.assertEqual(self.board.add({"ann": 1}, condition="NX"), 0)
        [placed] = self.board.add_withrank({"ann": "=700"}, hset=("run:*", {"replay": "r/1", "car": "9ff"}))
        self.assertEqual((type(placed), placed.record.score, placed.previous_rank), (Placed, 700, 0))
        self.assertEqual(self.redis.hgetall("run:ann"), {b"replay": b"r/1", b"car": b"9ff"})
        packed = Leaderboard(self.client, "packed")
        packed.create(fields="FIELD points 20")
        self.assertEqual(packed.add(packed={"ann": 3, "bob": 4}), 2)

    def test_names_of_any_bytes_come_back_as_they_were(self):
        self.board.add([(b"\xff\x00a", 5), ("zoé", 4), (7, 3)])
        members = [record.member for record in self.board]
        self.assertEqual(members[1:], ["zoé", "7"])
        self.assertEqual(self.board.get(members[0])[0].score, 5)
        self.assertEqual(self.redis.zscore("arena", b"\xff\x00a"), 5)

    def test_what_is_no_word_is_refused(self):
        for values in ({None: 5}, {"ann": None}, {"ann": True}):
            with self.assertRaises(TypeError):
                self.board.add(values)
        for ask in (lambda: self.board.submit(None, 5), lambda: self.board.tag("ann", {"country": None}),
                    lambda: Leaderboard(self.client, None)):
            with self.assertRaises(TypeError):
                ask()
        self.assertEqual(self.redis.dbsize(), 0)

    def test_options_are_those_of_the_server(self):
        self.board.create(fields="FIELD points 30 TIME 30 MS", cap=3, keep="BEST", period="WEEK", on="SUN", at=18,
                          tz="+08:00", archive=2, settle="YES")
        info = self.board.info()
        self.assertEqual((info["cap"], info["keep"], info["settle"]), (3, "best", 1))
        self.assertEqual((info["period"]["unit"], info["period"]["at"]), ("WEEK", 18))
        self.assertEqual([field["name"] for field in info["fields"]], ["points"])
        self.board.alter(cap="NONE", period="DAY", every=2)
        self.assertEqual((self.board.info()["cap"], self.board.info()["period"]["every"]), (None, 2))
        with self.assertRaises(TypeError):
            self.board.alter(cap=1, limit=2)
        with self.assertRaises(TypeError):
            self.board.around(None, 5)
        with self.assertRaises(ValueError):
            self.board.get([])

    def test_leagues(self):
        self.board.league_create(fields="FIELD points 22 TIME 31 S", period="WEEK", room=3, tiers=4, up=1, down=1)
        place = self.board.league_add("ann", 30, operator="INCR")
        self.assertEqual((place.tier, place.room, place.record.score, place.other_tier), (1, 1, 30, None))
        self.assertTrue(self.board.league_set(2, "ann"))
        self.assertEqual(self.board.league_get("ann"), LeaguePlace(2, None, None, None, "stay"))
        self.assertEqual(self.board.league_info()["list"][0]["tier"], 4)
        self.assertTrue(self.board.league_remove("ann"))
        self.assertIsNone(self.board.league_get("ann"))
        self.assertEqual(self.board.league_add("bob", 5, once="r1").outlook, None)
        self.assertEqual(self.board.league_get("bob").outlook, "up")
        self.board.league_remove("bob")
        self.assertIsNone(self.board.league_add("bob", 5, once="r1"))
        self.assertEqual([self.board.league_add("kim", 5, once="r2", withrepeat=True).repeated for _ in range(2)],
                         [False, True])

    def test_a_reply_says_that_a_result_came_before(self):
        told = {"once": "match:1", "withrepeat": True, "operator": "BEST"}
        self.assertEqual([self.board.add({"ann": 5}, **told) for _ in range(2)], [1, -1])
        told["once"] = "match:2"
        self.assertEqual([self.board.add({"ann": 4}, **told) for _ in range(2)], [0, -1])
        results = [self.board.submit("ann", 3, boards=["other"], once="match:3", withrepeat=True)[0] for _ in range(2)]
        self.assertEqual([(each.counts, each.repeated) for each in results], [(True, False), (False, True)])
        self.assertIsNone(self.board.submit("ann", 3, boards=["other"])[0].repeated)

    def test_commands_on_all_boards(self):
        boards = Leaderboards(self.client)
        self.board.submit("ann", 5, boards=["arena", "week"])
        self.assertEqual(sorted(each.board for each in boards.where("ann")), ["arena", "week"])
        self.assertEqual(boards.move("ann", "bob", mode="SUM"), [2, 0])
        self.assertEqual(boards.ban("bob", match="w*"), 1)
        self.assertEqual(boards.bans(), Page(0, [Ban("bob", "w*", None)]))
        self.assertEqual(list(boards.banned(match="b*")), [Ban("bob", "w*", None)])
        self.assertTrue(boards.unban("bob"))
        boards.ban("bob", shadow=True)
        self.assertEqual(list(boards.banned()), [Ban("bob", "*", None, True)])
        self.assertTrue(boards.unban("bob"))
        for number in range(120):
            boards.board(f"room:{number}").add({"eva": number})
        self.assertEqual({each["name"] for each in boards.boards(match="room:*")},
                         {f"room:{number}" for number in range(120)})
        self.assertEqual(boards.forget("eva", data=["profile:*", "run:*"]), 120)
        self.assertEqual(self.board.roll("old"), 1)
        self.assertEqual([each["name"] for each in boards.boards(unsettled=True)], ["old"])
        self.assertEqual((boards.settle("old"), boards.settle("old")), (True, False))

    def test_matches_are_rated(self):
        chess = Leaderboard(self.client, "chess")
        chess.create(rating="GLICKO2 MINGAMES 2")
        moment = datetime.datetime(2026, 11, 26, 12, 0, tzinfo=datetime.timezone.utc)
        told = {"once": "game:1", "at": moment}
        ann, bob = chess.match(["ann", ["bob"]], **told)
        self.assertEqual((ann.member, ann.before, ann.after, ann.games, ann.rank_before, ann.rank_after),
                         ("ann", 1500, Decimal("1662.212001"), 1, None, None))
        self.assertEqual(bob.after, 3000 - ann.after)
        self.assertEqual([each.after for each in chess.match(["ann", ["bob"]], **told)], [ann.after, bob.after])
        chess.match(["bob", "ann"], scores=[0.5, 0.5])
        [record] = chess.top(1, rating=True)
        self.assertEqual((record.member, record.rating.games, record.rating.won, record.rating.drawn, record.rating.lost),
                         ("ann", 2, 1, 1, 0))
        self.assertGreater(record.rating.last, 1795694400000)
        [rated, nobody] = chess.rating(["ann", "nobody"])
        self.assertEqual((type(rated), rated.member, rated.rank, nobody), (Rated, "ann", 0, None))
        self.assertEqual([record.rating], [Rating(*(getattr(rated, name) for name in Rating.__dataclass_fields__))])
        self.assertIsInstance(rated.volatility, Decimal)
        self.assertEqual(chess.predict(["cid", "dan"]), Prediction([0.5, 0.5], chess.predict(["cid", "dan"]).quality))
        eve = chess.rate("eve", Decimal("1750.25"), deviation=60)
        self.assertEqual((eve.rank, eve.rating, eve.deviation, eve.games, eve.last), (None, Decimal("1750.25"), 60, 0, None))
        elo = Leaderboard(self.client, "elo")
        elo.create(rating="ELO")
        self.assertEqual(elo.match([["ann"], ["bob"]], ranks=[2, 1])[1], Played("bob", 1500, 1520, None, 1, None, 0))
        self.assertEqual(elo.get("ann", rating=True)[0].rating.deviation, None)
        self.assertEqual(elo.around("ann", 3, rating=True)[1].rating.rating, 1480)
        skill = Leaderboard(self.client, "skill")
        skill.create(rating=["OPENSKILL", "TAU", 0])
        won = skill.match([["ann", "bob"], ["cid"]], weights=[1, "0.5", 1])
        self.assertEqual([each.member for each in won], ["ann", "bob", "cid"])
        with self.assertRaisesRegex(TypeError, "a list of teams"):
            skill.match("ann")
        with self.assertRaisesRegex(redis.ResponseError, "twice"):
            skill.match(["ann", "ann"])
        with self.assertRaisesRegex(redis.ResponseError, "no RATING"):
            self.board.add({"ann": 1})
            self.board.match(["ann", "bob"])

    def test_when_tokens_of_a_player_were_revoked(self):
        boards = Leaderboards(self.client)
        self.assertIsNone(boards.revoked("ann"))

    def test_pages_and_iterating(self):
        self.board.add({f"m{number}": number for number in range(1203)})
        self.assertEqual([each.score for each in self.board.page(2, 3)], [1199, 1198, 1197])
        self.assertEqual([each.score for each in self.board], list(range(1202, -1, -1)))
        self.assertEqual(len(list(self.board.records(page_size=401, byscore=False))), 1203)
        self.assertEqual((len(self.board), "m5" in self.board, "x" in self.board, bool(self.board)),
                         (1203, True, False, True))


class CommandsResp3(Commands):
    def connect(self):
        client = resp3.Client(self.server.port)
        self.addCleanup(client.close)
        return client


class LosesAnswers:
    """Every write is sent, and the answer to the first try of each is lost."""

    def __init__(self, client, error):
        self.client, self.error, self.seen, self.tries = client, error, set(), 0

    def execute_command(self, *words):
        reply = self.client.execute_command(*words)
        self.tries += 1
        if words in self.seen:
            return reply
        self.seen.add(words)
        raise self.error


class Retries(OverRedis):
    def test_a_result_whose_answer_is_lost_counts_once(self):
        for error in (redis.ConnectionError("gone"), redis.TimeoutError("late"), redis.ResponseError("LOADING x")):
            client = LosesAnswers(self.client, error)
            board = Leaderboard(client, "arena", retries=3)
            self.board.add({"ann": 0})
            self.assertEqual(board.add({"ann": 5}, operator="INCR"), 0)
            [result] = board.submit("ann", 7, operator="INCR")
            self.assertEqual((result.record.score, result.counts, client.tries), (12, False, 4))
            [record] = board.get("ann")
            self.assertEqual((record.score, client.tries), (12, 6))

    def test_an_id_of_the_caller_stays(self):
        board = Leaderboard(self.client, "arena", retries=1)
        self.assertEqual([board.add({"ann": 5}, operator="INCR", once="match:1") for _ in range(3)], [1, 0, 0])

    def test_a_match_whose_answer_is_lost_counts_once(self):
        Leaderboard(self.client, "chess").create(rating="ELO")
        client = LosesAnswers(self.client, redis.ConnectionError("gone"))
        ann, bob = Leaderboard(client, "chess", retries=3).match(["ann", "bob"])
        self.assertEqual((ann.after, bob.after, ann.games, client.tries), (1520, 1480, 1, 2))

    def test_what_cannot_be_known_is_not_sent_again(self):
        client = LosesAnswers(self.client, redis.ConnectionError("gone"))
        with self.assertRaises(redis.ConnectionError):
            Leaderboard(client, "arena").add({"ann": 5}, operator="INCR")
        with self.assertRaises(redis.ConnectionError):
            Leaderboard(client, "arena", retries=3).roll("old")
        self.assertEqual(client.tries, 2)
        client = LosesAnswers(self.client, redis.ResponseError("ERR no"))
        with self.assertRaises(redis.ResponseError):
            Leaderboard(client, "arena", retries=3).add({"ann": 5})

    def test_it_gives_up(self):
        class Gone:
            tries = 0

            def execute_command(self, *words):
                self.tries += 1
                raise redis.ConnectionError("gone")

        gone = Gone()
        with self.assertRaises(redis.ConnectionError):
            Leaderboard(gone, "arena", retries=2).count()
        self.assertEqual(gone.tries, 3)


class Events(OverRedis):
    def test_the_first_ones_and_who_is_overtaken(self):
        self.board.add({"zoé": 5})
        with self.board.events(top=2, changes=3, members=2, overtaken=["zoé", "a:b"]) as events:
            self.board.add({"a:b": 9})
            seen = [events.get(30) for _ in range(4)]
            self.assertIn(Event("top", top=(("a:b", (9,)), ("zoé", (5,)))), seen)
            self.assertIn(Event("changed"), seen)
            self.assertIn(Event("entered", member="a:b"), seen)
            self.assertIn(Event("overtaken", member="zoé", previous_rank=0, rank=1, by="a:b"), seen)
            self.assertIsNone(events.get(0))

    def test_the_board_itself(self):
        with self.board.events() as events:
            self.board.league_create(fields="FIELD points 22 TIME 31 S", period="WEEK", room=3, tiers=4, up=1, down=1)
            self.board.league_add("zoe ann", 5)
            self.assertEqual(next(iter(events)),
                             Event("league", member="zoe ann", tier=1, room=1, previous_tier=0))
        other = Leaderboard(self.client, "other")
        other.create(period="DAY", fields="FIELD points 20 TIME 30 MS")
        with other.events() as events:
            other.alter(opens=4102444800000)
            other.alter(opens="NONE")
            self.assertEqual([events.get(30), events.get(30)], [Event("closed"), Event("opened")])

    def test_who_waits_for_events_that_are_not_told_learns_it_at_once(self):
        self.redis.config_set("notify-board-events", "no")
        self.addCleanup(self.redis.config_set, "notify-board-events", "yes")
        with self.assertRaisesRegex(RuntimeError, "CONFIG SET notify-board-events yes"):
            self.board.events(top=3)


def tokens(arguments, source):
    """The words of COMMAND DOCS that a method has to send; within words that the caller gives it sends these."""
    for argument in map(as_dict, arguments):
        token = decode(argument.get("token", b""))
        name = (token or decode(argument["name"])).lower().replace("-", "_")
        yield from [token] if token else []
        if f"split({name})" not in source and f" {name}: Optional[Word]" not in source:
            yield from tokens(argument.get("arguments", []), source)


class Package(unittest.TestCase):
    def test_every_option_of_every_command_is_there(self):
        server = process.Server()
        self.addCleanup(server.stop)
        with server.connect() as client:
            docs = as_dict(client.ask("COMMAND", "DOCS"))
        docs = {name: as_dict(each) for name, each in docs.items() if name.startswith("lb.")}
        for name in [name for name, each in docs.items() if "subcommands" in each]:
            docs.update({sub: as_dict(each) for sub, each in as_dict(docs.pop(name)["subcommands"]).items()})
        docs = {name: each for name, each in docs.items()
                if decode(each["group"]) == "leaderboard" and not name.endswith("|help")}
        self.assertGreater(len(docs), 25)
        for name, each in docs.items():
            method = name[len("lb."):].replace("|", "_")
            source = "".join(inspect.getsource(function)
                             for kind in (BoardCommands, DatabaseCommands) for own, function in vars(kind).items()
                             if own == method or own.startswith(method + "_"))
            self.assertTrue(source, name)
            for token in tokens(each.get("arguments", []), source):
                self.assertIn(f'"{token}"', source, name)

    def test_the_version_is_the_servers(self):
        header = (process.ROOT / "server/system/version.h").read_text(encoding="utf-8")
        self.assertIn(f'#define SERVER_VERSION "{__version__}"', header)

    def test_the_readme_runs(self):
        readme = (process.ROOT / "clients/python/README.md").read_text(encoding="utf-8")
        blocks = [block.split("```")[0] for block in readme.split("```python\n")[1:]]
        self.assertGreaterEqual(len(blocks), 3)
        server = process.Server("--layout", "decimals FIELD score 53 SIGNED SCALE 2", "--board", "scores:* decimals",
                                "--notify-board-events", "yes")
        self.addCleanup(server.stop)
        for block in blocks:
            exec(compile(block.replace("6379", str(server.port)), "README.md", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    unittest.main()
