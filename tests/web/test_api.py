"""The JSON API of the page, and what strangers may try with it: no browser."""
import base64
import gzip
import http.client
import json
import random
import re
import select
import socket
import ssl
import subprocess
import threading
import time
import unittest

import redis
from process import IS_SHORT as SHORT, make_certificate, together, wait_until
from web_server import PROGRAM, ROOT, WebServer, encoded, end_with_the_test

LIMIT_S = 60


class Api:
    """HTTP to a server's web-port."""

    def __init__(self, server, tls=None):
        self.server, self.tls = server, tls

    def connection(self, timeout=LIMIT_S):
        if self.tls:
            return http.client.HTTPSConnection("localhost", self.server.web_port, timeout=timeout,
                                               context=ssl.create_default_context(cafile=self.tls))
        return http.client.HTTPConnection("127.0.0.1", self.server.web_port, timeout=timeout)

    def ask(self, path, method="GET", body=None, user=None, cookie=None, **headers):
        """(status, JSON or text, headers)"""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        if cookie:
            headers["Cookie"] = cookie
        give_up_at = time.monotonic() + LIMIT_S
        while True:
            connection = self.connection()
            connection.request(method, path, body=body, headers=headers)
            reply = connection.getresponse()
            text = reply.read()
            connection.close()
            if reply.status != 503 or time.monotonic() > give_up_at:
                break
        if re.match(r"application/(problem\+)?json", reply.headers.get("Content-Type", "")) and text:
            return reply.status, json.loads(text), reply.headers
        return reply.status, text, reply.headers

    def get(self, path, **options):
        status, reply, _ = self.ask("/api/v1" + path, **options)
        assert status == 200, (path, status, reply)
        return reply

    def status(self, path, **options):
        return self.ask("/api/v1" + path, **options)[0]

    def log_in(self, user, password, **headers):
        status, reply, got = self.ask(
            "/api/v1/login", "POST", json.dumps({"user": user, "password": password}),
            Content_Type="application/json", **headers)
        return status, reply, got.get("Set-Cookie")

    def stream(self, path, **headers):
        return Stream(self, path, headers)


class Stream:
    """Server-sent events, one after another."""

    def __init__(self, api, path, headers):
        self.connection = api.connection(timeout=LIMIT_S)
        self.connection.request("GET", "/api/v1" + path, headers=headers)
        self.reply = self.connection.getresponse()
        self.status = self.reply.status
        self.count = 0

    def next(self):
        """(event, data); None at the end."""
        event, give_up_at = None, time.monotonic() + LIMIT_S
        while True:
            line = self.reply.readline()
            if not line:
                return None
            assert time.monotonic() < give_up_at, "nothing but comments"
            line = line.decode().rstrip("\n")
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                self.count += 1
                return event, json.loads(line[6:])

    def refusal(self):
        """(status, JSON) of a request that became no stream: a browser does not ask again by itself."""
        assert self.reply.headers["Content-Type"] == "application/problem+json", self.status
        return self.status, json.loads(self.reply.read())

    def close(self):
        self.reply.close()  # which has the socket, as the reply ends with its connection
        self.connection.close()


class Case(unittest.TestCase):
    """A server for all tests of the class, and what it holds."""
    words, password, client = (), None, Api

    @classmethod
    def setUpClass(cls):
        cls.server = WebServer(*cls.words, password=cls.password)
        cls.api = cls.client(cls.server)
        cls.fill(cls.server.run)

    @classmethod
    def fill(cls, run):
        pass

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()


class Boards(Case):
    words = ("--web-data", "user:* name country")

    @classmethod
    def fill(cls, run):
        run("LB.CREATE", "race", "FIELD", "score", "20", "SIGNED", "SCALE", "2", "FIELD", "ms", "24", "ASC",
            "TIME", "20", "H", "START", "2020-01-01T00:00:00Z")
        for member, score, ms in (("ann", "10.25", 7), ("bob", "20.5", 8), ("cy", "30", 9), ("dd", "-5", 1)):
            run("LB.ADD", "race", score, ms, member)
        run("HSET", "user:ann", "name", "Ann", "country", "de")
        run("ZADD", "odd/näme", "3", b"a\xff\x00b", "2", "<img src=x onerror=alert(1)>", "1", "مرحبا 👋🏽")

    def test_a_list(self):
        reply = self.api.get("/boards")
        self.assertEqual(reply["cursor"], "0")
        boards = {board["name"]: board for board in reply["boards"]}
        self.assertEqual(set(boards), {"race", "odd/näme"})
        race = boards["race"]
        self.assertEqual((race["count"], race["db"], race["period"], race["archives"]), (4, 0, None, []))
        self.assertTrue(race["layout"].startswith("FIELD score 20 SIGNED SCALE 2"))
        self.assertEqual([each["name"] for each in self.api.get("/boards?match=r*")["boards"]], ["race"])
        self.assertEqual(self.api.get("/boards?db=3")["boards"], [])

    def test_a_list_in_pages_names_every_board_once(self):
        for i in range(230):
            self.server.run("ZADD", f"many:{i}", "1", "a")
            self.server.run("HSET", f"filler:{i}", "a", "1")
        seen, cursor = [], "0"
        while True:
            reply = self.api.get(f"/boards?match=many:*&count=50&cursor={cursor}")
            seen += [board["name"] for board in reply["boards"]]
            cursor = reply["cursor"]
            if cursor == "0":
                break
        self.assertEqual(sorted(set(seen)), sorted(f"many:{i}" for i in range(230)))
        self.server.run("DEL", *(f"many:{i}" for i in range(230)), *(f"filler:{i}" for i in range(230)))

    def test_rooms_of_leagues_are_left_out_and_a_league_has_its_tiers(self):
        run = self.server.run
        run("LB.LEAGUE", "CREATE", "weekly", "FIELD", "points", "22", "PERIOD", "WEEK", "ROOM", "2", "TIERS", "3",
            "UP", "1", "DOWN", "1", "IDLE", "DOWN")
        run("LB.LEAGUE", "SET", "weekly", "3", "zoe")
        for name in "abc":
            run("LB.LEAGUE", "ADD", "weekly", "1", name)
        run("ZADD", "{weekly}:1:7", "1", "a")  # by its name alone it is no room
        names = lambda query: {board["name"] for board in self.api.get(f"/boards?match=*weekly*&{query}")["boards"]}
        self.assertEqual(names("rooms=0"), {"weekly", "{weekly}:rooms", "{weekly}:1:7"})
        self.assertEqual(names("rooms=1"), names(""))
        self.assertEqual(names(""), {"weekly", "{weekly}:rooms", "{weekly}:1:7", "{weekly}:1:1", "{weekly}:1:2"})
        self.assertEqual(self.api.status("/boards?rooms=2"), 400)
        reply = self.api.get("/leagues/weekly")
        starts, ends = reply.pop("starts_at"), reply.pop("ends_at")
        self.assertEqual((ends > starts, starts[10:]), (True, "T00:00:00Z"))
        self.assertEqual(reply, {"league": "weekly", "db": 0, "members": 4, "room": 2, "tiers": 3, "up": 1, "down": 1,
                                 "idle": "down", "list": [
                                     {"tier": tier, "members": members, "open_room": room, "open_room_members": inside}
                                     for tier, members, room, inside in ((3, 1, 0, 0), (2, 0, 0, 0), (1, 3, 2, 1))]})
        self.assertEqual([self.api.status(f"/leagues/{name}") for name in ("nothing", "race")], [404, 400])
        self.assertEqual(self.api.get("/leagues/weekly/members/a?rating=1&tags=1&since=LAST&data=name&where=class:mage"),
                         self.api.get("/leagues/weekly/members/a"))  # it has none of these parameters
        run("DEL", "weekly", "{weekly}:rooms", *(f"{{weekly}}:1:{n}" for n in (1, 2, 7)))

    def test_one_board(self):
        board = self.api.get("/boards/race")
        self.assertEqual([field["name"] for field in board["fields"]], ["score", "ms"])
        self.assertEqual(board["fields"][0]["scale"], 2)
        self.assertEqual(board["fields"][0]["lowest"], "-5242.88")
        self.assertEqual(board["fields"][1]["order"], "asc")
        self.assertEqual(board["time"]["unit"], "H")
        self.assertEqual(self.api.status("/boards/nothing"), 404)
        self.assertEqual(self.api.status("/boards/user%3Aann"), 404)

    def test_a_page(self):
        page = self.api.get("/boards/race/page?from=1&count=2")
        self.assertEqual((page["count"], page["from"], page["data_fields"]), (4, 1, ["name", "country"]))
        self.assertEqual([(row["rank"], row["member"], row["score"], row["fields"]) for row in page["rows"]],
                         [(1, "bob", "20.5", ["20.5", "8"]), (2, "ann", "10.25", ["10.25", "7"])])
        self.assertEqual(page["rows"][1]["data"], {"name": "Ann", "country": "de"})
        self.assertEqual(page["rows"][0]["data"], {"name": None, "country": None})
        self.assertRegex(page["rows"][0]["reached_at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertNotIn("data", self.api.get("/boards/race/page?data=")["rows"][0])
        other = self.api.get("/boards/race/page?hash=user:*&data=country")["rows"]
        self.assertEqual(other[2]["data"], {"country": "de"})
        self.assertEqual(self.api.get("/boards/race/page?from=100")["rows"], [])

    def test_names_of_any_bytes(self):
        page = self.api.get("/boards/odd%2Fn%C3%A4me/page")
        self.assertEqual(page["board"], "odd/näme")
        self.assertEqual([row["member"] for row in page["rows"]],
                         ["a\\xff\x00b", "<img src=x onerror=alert(1)>", "مرحبا 👋🏽"])
        self.assertEqual(base64.b64decode(page["rows"][0]["member_base64"]), b"a\xff\x00b")
        self.assertNotIn("member_base64", page["rows"][1])
        self.assertEqual(self.api.get("/boards/odd%2Fn%C3%A4me/members/a%FF%00b")["rank"], 0)
        text = self.api.ask("/api/v1/boards/odd%2Fn%C3%A4me/page")[1]
        self.assertNotIn("<img", json.dumps(text, ensure_ascii=True).replace("<img", "", 1))
        connection = self.api.connection()
        connection.request("GET", "/api/v1/boards/odd%2Fn%C3%A4me/page")
        self.assertNotIn(b"<", connection.getresponse().read())

    def test_long_names(self):
        names = [chr(ord("a") + i) * 65536 for i in range(4)]
        self.server.run("ZADD", "long", *(word for i, name in enumerate(names) for word in (i, name)))
        page = self.api.get("/boards/long/page")
        self.assertEqual([row["member"] for row in page["rows"]], names[::-1])
        self.server.run("ZADD", "long", *(word for i in range(100) for word in (i, f"{i:03}" + "x" * 65533)))
        status, reply, _ = self.api.ask("/api/v1/boards/long/page?count=100")
        self.assertEqual((status, reply["code"]), (413, "too_large"))
        self.assertEqual(len(self.api.get("/boards/long/page?count=40")["rows"]), 40)
        self.server.run("DEL", "long")

    def test_a_member(self):
        reply = self.api.get("/boards/race/members/ann")
        self.assertEqual((reply["rank"], reply["percentile"], reply["count"]), (2, "50", 4))
        self.assertEqual(reply["row"]["data"]["name"], "Ann")
        self.assertEqual([row["member"] for row in reply["around"]], ["cy", "bob", "ann", "dd"])
        self.assertEqual(self.api.status("/boards/race/members/nobody"), 404)
        self.assertEqual(self.api.status("/boards/nothing/members/ann"), 404)

    def test_searching(self):
        run = self.server.run
        pipeline = self.server.client.pipeline(transaction=False)
        for i in range(3000):
            pipeline.execute_command("ZADD", "crowd", i, f"player:{i}")
        pipeline.execute()
        run("ZADD", "crowd", "5", "pl*yer", "6", "pl[a]yer", "7", "player")
        reply = self.api.get("/boards/crowd/search?q=player")
        self.assertEqual(reply["rows"][0]["member"], "player")
        self.assertGreaterEqual(len(reply["rows"]), 25)
        self.assertEqual([row["member"] for row in self.api.get("/boards/crowd/search?q=pl*")["rows"]], ["pl*yer"])
        self.assertEqual([row["member"] for row in self.api.get("/boards/crowd/search?q=pl%5B")["rows"]],
                         ["pl[a]yer"])
        self.assertEqual(self.api.get("/boards/crowd/search?q=zzz")["rows"], [])
        seen, cursor = [], "0"
        while True:
            reply = self.api.get(f"/boards/crowd/search?q=player:1&count=20&cursor={cursor}")
            seen += [row["member"] for row in reply["rows"]]
            cursor = reply["cursor"]
            if cursor == "0":
                break
        wanted = [f"player:{i}" for i in range(3000) if str(i).startswith("1")]
        self.assertEqual(sorted(set(seen)), sorted(wanted))
        for wrong in ("", "?q=", "?q=" + "x" * 501, "?q=a&cursor=x", "?q=a&cursor=1.x", "?q=a&count=0"):
            self.assertEqual(self.api.status("/boards/crowd/search" + wrong), 400, wrong)
        run("DEL", "crowd")

    def test_searching_by_the_names_that_are_shown(self):
        pipeline = self.server.client.pipeline(transaction=False)
        for i in range(1000):
            pipeline.execute_command("ZADD", "crowd", 1000 - i, f"id:{i}")
            pipeline.execute_command("HSET", f"user:id:{i}", "name", f"{'Zoe' if i % 100 == 99 else 'Ann'} Smith {i}")
        pipeline.execute()

        def found(query):
            return [row["member"] for row in self.api.get(f"/boards/crowd/search?by=name&{query}")["rows"]]
        zoes = [f"id:{i}" for i in range(99, 1000, 100)]
        self.assertEqual(found("q=zO"), zoes)
        self.assertEqual(found("q=zoe%20smith%2099"), ["id:99", "id:999"])
        self.assertEqual(found("q=smith%20999"), ["id:999"])  # a word within
        self.assertEqual(found("q=mith"), [])
        self.assertEqual(found("q=id:1"), [])
        self.assertEqual(found("q=zo&data="), [])  # nothing is shown
        self.assertEqual(found("q=zo&cursor=0.9223372036854775807"), [])  # behind all places
        seen, cursor = [], "0"
        while True:
            reply = self.api.get(f"/boards/crowd/search?by=name&q=zoe&count=3&cursor={cursor}")
            self.assertLessEqual(len(reply["rows"]), 3)
            seen += [row["member"] for row in reply["rows"]]
            cursor = reply["cursor"]
            if cursor == "0":
                break
        self.assertEqual(seen, zoes)
        row = self.api.get("/boards/crowd/search?by=name&q=smith%2099&count=1")["rows"][0]
        self.assertEqual((row["rank"], row["score"], row["data"]["name"]), (99, "901", "Zoe Smith 99"))
        self.assertEqual(self.api.status("/boards/crowd/search?by=age&q=a"), 400)
        self.assertEqual(self.api.status("/boards/nothing/search?by=name&q=a"), 404)
        self.server.run("DEL", "crowd", *(f"user:id:{i}" for i in range(1000)))

    def test_bins_by_decades_count_everybody(self):
        draw = random.Random(5)
        for scale, scores, by_itself in ((0, [int(draw.paretovariate(0.7)) for _ in range(500)], "log"),
                                         (2, [draw.randint(-10**6, 10**9) for _ in range(500)], "even"),
                                         (0, [-2, -1, 0, 1] * 5 + [10**12], "log"), (0, [7, 8], "even"), (0, [7], "even")):
            self.server.run("DEL", "hist")
            self.server.run("LB.CREATE", "hist", "FIELD", "score", "45", "SIGNED", "SCALE", scale)
            for i, units in enumerate(scores):
                self.server.run("ZADD", "hist", self.text(units, scale), f"m{i}")
            for buckets in (1, 15, 40, 100):
                reply = self.api.get(f"/boards/hist/histogram?buckets={buckets}&spacing=log")
                bins = [(self.units(bin["from"], scale), self.units(bin["to"], scale), bin["count"])
                        for bin in reply["bins"]]
                self.assertLessEqual(len(bins), buckets)
                for i, (low, high, count) in enumerate(bins):
                    is_last = i + 1 == len(bins)
                    self.assertEqual(count, sum(low <= units and (units < high or is_last and units == high)
                                                for units in scores), (scale, scores[:9], bins))
                    if reply["spacing"] == "log" and i > 0:
                        self.assertRegex(str(low), "^-?[125]?0*$")
                self.assertEqual(sum(count for *_, count in bins), len(scores))
            reply = self.api.get("/boards/hist/histogram?buckets=100&spacing=auto")
            self.assertEqual(reply["spacing"], by_itself, scores[:9])
            self.assertEqual(self.api.get("/boards/hist/histogram")["spacing"], "even")
        self.assertEqual(self.api.status("/boards/hist/histogram?spacing=odd"), 400)
        self.server.run("DEL", "hist")

    @staticmethod
    def units(text, scale):
        return int(round(float(text) * 10**scale))

    def test_a_histogram_counts_everybody(self):
        seed = random.randrange(1 << 30)
        draw = random.Random(seed)
        with self.subTest(seed=seed):
            for scale, low, high in ((2, -500000, 500000), (2, 7, 9), (2, 5, 5), (0, -10, 10**9)):
                self.server.run("DEL", "hist")
                self.server.run("LB.CREATE", "hist", "FIELD", "score", "40", "SIGNED", "SCALE", scale)
                scores = {f"m{i}": draw.randint(low, high) for i in range(200)}
                for member, units in scores.items():
                    self.server.run("ZADD", "hist", self.text(units, scale), member)
                for buckets in (1, 2, 7, 100):
                    reply = self.api.get(f"/boards/hist/histogram?buckets={buckets}")
                    self.assertEqual(sum(bin["count"] for bin in reply["bins"]), 200)
                    for i, bin in enumerate(reply["bins"]):
                        begin, end = (self.units(bin[key], scale) for key in ("from", "to"))
                        is_last = i == len(reply["bins"]) - 1
                        self.assertEqual(bin["count"], sum(
                            begin <= units < end or (is_last and units == end) for units in scores.values()))
                    self.assertEqual(self.units(reply["quantiles"][0]["score"], scale), min(scores.values()))
                    self.assertEqual(self.units(reply["quantiles"][-1]["score"], scale), max(scores.values()))
        self.server.run("LB.CREATE", "empty")
        reply = self.api.get("/boards/empty/histogram")
        self.assertEqual((reply["bins"], reply["quantiles"], reply["count"]), ([], [], 0))
        self.server.run("DEL", "empty", "hist")

    @staticmethod
    def text(units, scale):
        return f"{'-' if units < 0 else ''}{abs(units) // 10**scale}" + (
            f".{abs(units) % 10**scale:0{scale}}" if scale else "")

    @staticmethod
    def units(text, scale):
        whole, _, rest = text.lstrip("-").partition(".")
        return (-1 if text.startswith("-") else 1) * int(whole + rest.ljust(scale, "0"))

    def test_the_last_periods(self):
        run = self.server.run
        run("LB.CREATE", "hourly", "FIELD", "score", "30", "TIME", "30", "S", "PERIOD", "HOUR", "ARCHIVE", "3")
        run("ZADD", "hourly", "1", "ann")
        info = run("LB.INFO", "hourly")
        self.assertEqual(info[info.index(b"archives") + 1], [])
        reply = self.api.get("/boards/hourly/archives")
        self.assertEqual(reply["archives"], [])
        start_ms = dict(zip(*[iter(info[info.index(b"period") + 1])] * 2))[b"start"]
        before = time.gmtime(start_ms / 1000 - 3600)
        name = time.strftime("hourly@%Y-%m-%dT%H", before)
        run("ZADD", name, "9", "old", "8", "older")
        run("LB.ALTER", name, "FREEZE")
        reply = self.api.get("/boards/hourly/archives?count=1")
        self.assertEqual([(each["name"], each["count"], [row["member"] for row in each["rows"]])
                          for each in reply["archives"]], [(name, 2, ["old"])])
        listed = {board["name"]: board for board in self.api.get("/boards?match=hourly*")["boards"]}
        self.assertEqual(listed["hourly"]["archives"], [{"name": name}])
        self.assertEqual(listed[name]["archive_of"], "hourly")
        self.assertIsNotNone(listed["hourly"]["rolls_at"])
        run("DEL", "hourly", name)

    def test_what_contests_add_to_a_board(self):
        run = self.server.run
        run("LB.CREATE", "paid", "FIELD", "score", "30", "TIME", "30", "S", "STALE", "2", "DAY", "SETTLE", "YES", "PERIOD", "DAY")
        run("ZADD", "paid", "1", "ann")
        run("LB.ROLL", "paid", "paid:then")

        def shown(name):
            board = self.api.get(f"/boards/{name}")
            return [board[each] for each in ("stale", "settle", "settled")]
        self.assertEqual([shown("paid"), shown("paid:then")], [[172800000, True, None], [None, False, False]])
        run("LB.SETTLE", "paid:then")
        self.assertEqual(shown("paid:then"), [None, False, True])
        run("DEL", "paid", "paid:then")

    def test_the_server(self):
        reply = self.api.get("/server")
        info = self.server.client.execute_command("INFO", "server").decode()
        self.assertIn("leaderboard_version:" + reply["version"], info)
        self.assertGreaterEqual(reply["members"], 7)
        self.assertTrue(reply["writable"])
        self.assertTrue(any(each["name"] == "zadd" for each in reply["commands"]))
        self.assertEqual({name: reply["replication"][name] for name in ("role", "master", "replicas", "sync")},
                         {"role": "master", "master": None, "replicas": [], "sync": None})
        self.assertEqual(self.api.get("/server/history")["interval_ms"], 10000)
        self.server.run("CONFIG", "SET", "slowlog-log-slower-than", "0")
        self.server.run("ZADD", "race", "XX", "1", "nobody")
        entries = self.api.get("/slowlog?count=50")["entries"]
        self.server.run("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        self.assertIn(["ZADD", "race", "XX", "1", "nobody"], [entry["command"] for entry in entries])
        me = self.api.get("/me")
        self.assertEqual((me["user"], me["can_see_server"], me["data"]["pattern"]), ("default", True, "user:*"))

    def test_openapi_names_every_path(self):
        status, reply, _ = self.api.ask("/api/v1/openapi.json")
        self.assertEqual(status, 200)
        docs = (ROOT / "docs" / "web.md").read_text().split("## API")[1]
        named = set(re.findall(r"^\| `(/[^`?]*)", docs, re.M))
        paths = {re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), path) for path in reply["paths"]}
        self.assertEqual(paths, named)
        self.assertGreater(len(paths), 12)
        outlook = reply["components"]["schemas"]["LeagueMember"]["properties"]["outlook"]
        self.assertEqual((outlook["type"], outlook["enum"]), (["string", "null"], ["up", "stay", "down", None]))

    def test_what_is_wrong_is_said(self):
        for path in ("/boards/race/page?from=-1", "/boards/race/page?from=x", "/boards/race/page?count=0",
                     "/boards/race/page?count=201", "/boards/race/page?db=16", "/boards/race/page?db=",
                     "/boards/race/page?data=name&hash=nostar", "/boards/race/page?hash=user:*",
                     "/boards/race/page?hash=user:*&data=" + ",".join("abcdefghi"),
                     "/boards/race/histogram?buckets=101", "/boards?cursor=abc", "/boards?match=" + "x" * 1025,
                     "/boards/race/page?a=%", "/boards/race/page?a=%4", "/boards/%zz", "/boards/race/page?"
                     + "&".join(f"a{i}=1" for i in range(49)), "/a/b/c/d/e/f/g/h/i"):
            status, reply, _ = self.api.ask("/api/v1" + path)
            self.assertEqual(status, 400, path)
            self.assertEqual(reply["code"], "bad_request", path)
        for path in ("", "/", "/nothing", "/boards/race/nothing", "/boards/race/member", "/boards/race/members/a/b",
                     "/server/nothing", "/me/x", "/events"):
            self.assertEqual(self.api.status(path), 404, path)


class Groups(Case):
    """Boards with tags, and what is read inside a group of their members."""
    COUNTRIES = ("DE", "FR", b"\xff<", "a:b&c=d%41+ \"\n", "x" * 64, "")
    CLASSES = ("mage", "rogue")
    words = ("--web-data", "user:* name", "--web-public", "race*")

    @classmethod
    def fill(cls, run):
        run("LB.CREATE", "race", "FIELD", "score", "33", "TIME", "31", "S", "TAG", "country", "8",
            "TAG", "class", "4", "TAG", "claimed", "1")
        cls.members = []  # (member, score, country, class), best first
        for i in range(60):
            member = (f"m{i:02}", 1000 - i, cls.COUNTRIES[i % 7 % 6], cls.CLASSES[i % 2])
            cls.members.append(member)
            run("LB.ADD", "race", "TAG", "country", member[2], "TAG", "class", member[3], member[1], member[0])
            run("HSET", f"user:{member[0]}", "name", f"Player {i}")
        run("ZADD", "plain", "1", "ann")

    @staticmethod
    def query(*pairs, rest=""):
        return "?" + "&".join(f"where={encoded(tag)}:{encoded(value)}" for tag, value in pairs) + rest

    def group(self, *pairs):
        """Members with these values: of the same tag any, of different tags all."""
        wanted = {}
        for tag, value in pairs:
            wanted.setdefault(tag.lower(), []).append(value)
        place = {"country": 2, "class": 3}
        return [member for member in self.members
                if all(member[place[tag]] in values for tag, values in wanted.items())]

    GROUPS = [(("country", country),) for country in COUNTRIES] + [
        (("country", "DE"), ("country", "FR")), (("country", "DE"), ("class", "mage")),
        (("country", "FR"), ("country", "DE"), ("class", "rogue"), ("class", "mage")), (("COUNTRY", "DE"),),
        (("country", "nobody"),)]

    def test_a_page_is_that_of_a_board_with_only_the_group(self):
        for pairs in self.GROUPS:
            group = self.group(*pairs)
            page = self.api.get("/boards/race/page" + self.query(*pairs, rest="&from=1&count=7"))
            self.assertEqual((page["count"], page["from"]), (len(group), 1), pairs)
            self.assertEqual([(row["rank"], row["member"], row["score"], row["data"]["name"]) for row in page["rows"]],
                             [(rank, member[0], str(member[1]), f"Player {int(member[0][1:])}")
                              for rank, member in list(enumerate(group))[1:8]], pairs)

    def test_a_members_place_and_neighbours_are_those_in_the_group(self):
        for pairs in self.GROUPS:
            group = self.group(*pairs)
            for member in self.members[::7]:
                path = f"/boards/race/members/{member[0]}" + self.query(*pairs)
                if member not in group:
                    status, error, _ = self.api.ask("/api/v1" + path)
                    self.assertEqual((status, error["error"]), (404, "this member is not in this group of the board"))
                    continue
                reply = self.api.get(path)
                rank = group.index(member)
                self.assertEqual((reply["rank"], reply["row"]["rank"], reply["count"]), (rank, rank, len(group)))
                self.assertAlmostEqual(float(reply["percentile"]), 100 * (len(group) - rank) / len(group), 6)
                first = max(0, min(rank - 5, len(group) - 11))
                around = [row["member"] for row in reply["around"]]
                self.assertEqual(around, [each[0] for each in group][first:first + 11])

    def test_a_distribution_counts_the_group(self):
        for pairs in self.GROUPS:
            group = self.group(*pairs)
            reply = self.api.get("/boards/race/histogram" + self.query(*pairs, rest="&buckets=5"))
            self.assertEqual((reply["count"], sum(each["count"] for each in reply["bins"])), (len(group), len(group)))
            self.assertEqual([(each["member"], each["rank"]) for each in reply["quantiles"][::10]],
                             [(group[-1][0], len(group) - 1), (group[0][0], 0)] if group else [])
            for each in reply["bins"]:
                self.assertEqual(each["count"], sum(
                    float(each["from"]) <= member[1] and (member[1] < float(each["to"])
                                                          or each is reply["bins"][-1]) for member in group))

    def test_searching_finds_members_of_the_group(self):
        for pairs in self.GROUPS:
            names = [member[0] for member in self.group(*pairs)]
            for q, by, found in (("m", "id", names), ("Player 1", "name", [
                    name for name in names if name == "m01" or name.startswith("m1")])):
                reply = self.api.get("/boards/race/search" + self.query(*pairs, rest=f"&q={encoded(q)}&by={by}&count=50"))
                self.assertEqual(reply["cursor"], "0")
                self.assertEqual(sorted(row["member"] for row in reply["rows"]), found, (pairs, by))
                self.assertTrue(all(names[row["rank"]] == row["member"] for row in reply["rows"]))
                self.assertEqual(reply["count"], len(names))

    def test_records_have_their_tags_when_asked(self):
        paths = ("/boards/race/page?count=60", "/boards/race/search?q=m&count=50", "/boards/race/search?q=Pl&by=name&count=50",
                 "/boards/race/members/m07")
        for path in paths:
            reply = self.api.get(path + ("&" if "?" in path else "?") + "tags=1")
            rows = reply.get("rows") or [reply["row"], *reply["around"]]
            for row in rows:
                member = self.members[int(row["member"][1:])]
                tags = dict(row["tags"])
                base64_ = tags.pop("country_base64", None)
                country = member[2]
                if isinstance(country, bytes):
                    self.assertEqual((tags["country"], base64.b64decode(base64_)), ("\\xff<", country))
                    tags["country"] = country
                self.assertEqual(tags, {"class": member[3], **({"country": country} if country else {})})
                self.assertEqual(row["data"]["name"], f"Player {int(member[0][1:])}")
            plain = self.api.get(path)
            self.assertNotIn("tags", (plain.get("rows") or [plain["row"]])[0])
            self.assertNotIn("tags", (self.api.get(path + ("&" if "?" in path else "?") + "tags=0").get("rows")
                                      or [plain["row"]])[0])
        self.assertEqual(self.api.get("/boards/plain/page?tags=1")["rows"][0]["tags"], {})
        connection = self.api.connection()
        connection.request("GET", "/api/v1/boards/race/page?tags=1&count=60")
        self.assertNotRegex(connection.getresponse().read(), b"[<>&]")

    def test_a_board_tells_its_tags_and_their_most_frequent_values(self):
        for pairs in ((), (("country", "DE"),), (("class", "mage"),), (("country", "FR"), ("Class", "rogue"))):
            board = self.api.get("/boards/race" + self.query(*pairs))
            self.assertEqual(board["count"], 60)
            self.assertEqual([(tag["name"], tag["bits"], tag["values"], tag["values_max"], tag["places"])
                              for tag in board["tags"]],
                             [("country", 8, 5, 255, None), ("class", 4, 2, 15, None), ("claimed", 1, 0, 1, None)])
            for place, tag in enumerate(board["tags"][:2], 2):
                # What one would see with another value of this tag.
                group = self.group(*(pair for pair in pairs if pair[0].lower() != tag["name"]))
                counts = {}
                for member in group:
                    counts[member[place]] = counts.get(member[place], 0) + 1
                self.assertEqual(tag["without"], counts.pop("", 0))
                found = [(base64.b64decode(each["value_base64"]) if "value_base64" in each else each["value"],
                          each["count"]) for each in tag["top"]]
                self.assertEqual(dict(found), counts)
                self.assertEqual([count for _, count in found], sorted(counts.values(), reverse=True))
            self.assertEqual((board["tags"][2]["top"], board["tags"][2]["without"]), ([], len(self.group(*pairs))))
        self.assertEqual(self.api.get("/boards/plain")["tags"], [])

    def test_of_many_values_a_bounded_number_is_named(self):
        run, client = self.server.run, self.server.client
        run("LB.CREATE", "race:clans", "FIELD", "score", "33", "TAG", "clan", "14", "TAG", "rest", "8")
        for values in (1000, 1001):
            pipeline = client.pipeline(transaction=False)
            for i in range(values):
                # The clans of the last places have the most members.
                pipeline.execute_command("LB.ADD", "race:clans", "TAG", "clan", f"c{i}", 2 * i, f"a{i}", 5 * i + 1, f"b{i}")
            for i in range(7):
                pipeline.execute_command("LB.ADD", "race:clans", "TAG", "clan", "c1", 0, f"more{i}")
            pipeline.execute()
            clan, rest = self.api.get("/boards/race:clans")["tags"]
            self.assertEqual((clan["values"], len(clan["top"])), (values, 100))
            self.assertEqual((rest["values"], rest["places"], rest["without"]), (0, None, 2 * values + 7))
            if values <= 1000:
                self.assertEqual((clan["places"], clan["top"][0]), (None, {"value": "c1", "count": 9}))
            else:
                self.assertEqual(clan["places"], 1000)
                first = [record[0] for record in run("LB.RANGE", "race:clans", "0", "999")]
                counts = {}
                for member in first:
                    counts[member.decode()[1:]] = counts.get(member.decode()[1:], 0) + 1
                self.assertEqual({each["value"][1:]: each["count"] for each in clan["top"]},
                                 {each["value"][1:]: counts[each["value"][1:]] for each in clan["top"]})
        run("DEL", "race:clans")

    def test_the_last_periods_of_a_group(self):
        run = self.server.run
        run("LB.CREATE", "race:hour", "FIELD", "score", "30", "TIME", "30", "S", "PERIOD", "HOUR", "ARCHIVE", "16",
            "TAG", "country", "8")
        info = run("LB.INFO", "race:hour")
        start_ms = dict(zip(*[iter(info[info.index(b"period") + 1])] * 2))[b"start"]
        names = [time.strftime("race:hour@%Y-%m-%dT%H", time.gmtime(start_ms / 1000 - 3600 * (n + 1))) for n in range(16)]
        for n, name in enumerate(names):
            if n == 5:  # one from before the board had tags
                run("LB.CREATE", name, "FIELD", "score", "30", "TIME", "30", "S")
                run("ZADD", name, "1", "old")
                run("LB.ALTER", name, "FREEZE")
                continue
            run("LB.CREATE", name, "FIELD", "score", "30", "TIME", "30", "S", "TAG", "country", "8")
            run("LB.ADD", name, "TAG", "country", "DE", n + 1, "ann")
            run("LB.ADD", name, "TAG", "country", "FR", n + 2, "eva")
            run("LB.ALTER", name, "FREEZE")
        for pairs, count in (((), 2), ((("country", "DE"),), 1), ((("country", "x"),), 0),
                             ((("country", "DE"),) * 31 + (("country", "FR"),), 2)):
            reply = self.api.get("/boards/race:hour/archives" + self.query(*pairs, rest="&tags=1"))
            self.assertEqual([each["name"] for each in reply["archives"]], names)
            self.assertEqual([each["count"] for each in reply["archives"]],
                             [count if n != 5 else 0 if pairs else 1 for n in range(16)])
            for each in reply["archives"]:
                self.assertEqual(len(each["rows"]), each["count"])
        for groups, fields in ((8, 4), (6, 5), (32, 8)):  # as many words as a round's commands take
            reply = self.api.get("/boards/race:hour/archives" + self.query(*(("country", "DE"),) * groups,
                                                                           rest=f"&tags=1&rating=1&data={','.join('a' * fields)}"))
            self.assertEqual([each["name"] for each in reply["archives"]], names)
        self.assertEqual(self.api.status("/boards/race:hour/archives?where=clan:x"), 400)
        run("DEL", "race:hour", *names)

    def test_rows_have_the_rank_on_another_board(self):
        run = self.server.run
        run("LB.CREATE", "race:then", "FIELD", "score", "30", "TAG", "country", "8")
        group = self.group(("country", "DE"))
        run("LB.ADD", "race:then", "TAG", "country", "FR", "9", group[0][0])
        run("LB.ADD", "race:then", "TAG", "country", "DE", "8", group[2][0], "7", group[1][0])
        since = lambda reply: [row["since"] for row in reply["rows"]]
        self.assertEqual(since(self.api.get("/boards/race/page?count=4&since=race:then&where=country:DE")),
                         [None, 1, 0, None])
        member = self.api.get(f"/boards/race/members/{group[1][0]}?since=race:then&where=country:DE&tags=1")
        self.assertEqual((member["row"]["since"], member["around"][0]["since"], member["around"][2]["since"]), (1, None, 0))
        self.assertEqual(since(self.api.get("/boards/race/page?count=2&since=LAST")), [None, None])
        stream = self.api.stream("/boards/race:then/events?since=race:then")
        self.assertEqual([row["since"] for row in stream.next()[1]["rows"]], [0, 1, 2])
        stream.close()
        # Without it, where the user may not read that board or it has not the tags; the rest is as ever.
        self.server.run("ACL", "SETUSER", "racer", "on", ">look", "%R~race", "-@all", "+lb.info", "+lb.range", "+lb.count")
        for path, user in (("/boards/race/page?since=race:then", "racer:look"),
                           ("/boards/race/page?since=plain&where=country:DE", None), ("/boards/race/page?since=", None)):
            self.assertNotIn("since", self.api.get(path, user=user)["rows"][0])
        self.assertEqual(self.api.status("/boards/race/page?since=race:then&where=clan:x"), 400)
        run("DEL", "race:then")
        run("ACL", "DELUSER", "racer")

    def test_a_group_is_followed(self):
        stream = self.api.stream("/boards/race/events?count=3&tags=1&where=country:DE&where=class:mage")
        group = self.group(("country", "DE"), ("class", "mage"))
        event, page = stream.next()
        self.assertEqual((event, page["count"], [row["member"] for row in page["rows"]]),
                         ("page", len(group), [member[0] for member in group[:3]]))
        self.server.run("LB.TAG", "race", group[0][0], "country", "FR")
        event, page = stream.next()
        self.assertEqual((page["count"], page["rows"][0]["member"]), (len(group) - 1, group[1][0]))
        self.server.run("LB.TAG", "race", group[0][0], "country", "DE")
        event, page = stream.next()
        self.assertEqual((page["rows"][0]["member"], page["rows"][0]["tags"]), (group[0][0], {"country": "DE", "class": "mage"}))
        stream.close()
        stream = self.api.stream("/boards/race/events?where=clan:x")
        status, error = stream.refusal()
        self.assertEqual((status, error["code"]), (400, "bad_request"))
        stream.close()

    def test_what_is_wrong_is_said(self):
        for query, word in (("where=country", "where"), ("where=", "where"), ("where=:", "no tag ''"), ("where=clan:x", "'clan'"),
                            ("where=country:" + "x" * 65, "country"), ("where=" + "x" * 99 + ":1", "xxx"),
                            ("where=%3Cb%3E:1", "<b>"), ("where=%FF:1", "no tag"),
                            ("&".join(["where=country:DE"] * 33), "where"), ("tags=2", "tags"), ("tags=", "tags"),
                            ("where=country:DE&where=clan:x", "'clan'")):
            for path in ("", "/page", "/members/m00", "/histogram", "/search?q=m", "/search?q=P&by=name", "/archives"):
                status, error, _ = self.api.ask(f"/api/v1/boards/race{path}{'&' if '?' in path else '?'}{query}")
                self.assertEqual((status, error["code"]), (400, "bad_request"), (path, query))
                self.assertIn(word, error["error"], path)
        self.assertEqual(self.api.status("/boards/plain/page?where=country:DE"), 400)
        self.assertEqual(self.api.status("/boards/nothing/page?where=country:DE"), 404)
        self.assertEqual(self.api.status("/boards/race/page" + self.query(*[("country", "DE")] * 32)), 200)
        self.assertEqual(self.api.status("/boards/race/search" + self.query(*[("country", "DE")] * 32, rest="&q=m&data=name")), 200)

    def test_who_may_not_count_reads_boards_without_groups(self):
        self.server.run("ACL", "SETUSER", "plain", "on", ">look", "%R~*", "-@all", "+lb.list", "+lb.info", "+lb.range")
        board = self.api.get("/boards/race", user="plain:look")
        self.assertEqual([(tag["name"], tag["top"]) for tag in board["tags"]], [("country", []), ("class", []), ("claimed", [])])
        self.assertEqual(self.api.status("/boards/race/page", user="plain:look"), 200)
        self.assertEqual(self.api.status("/boards/race/page?where=country:DE", user="plain:look"), 403)


class Live(Case):
    @classmethod
    def fill(cls, run):
        run("ZADD", "hot", "1", "ann", "2", "bob")

    def test_a_change_is_told(self):
        stream = self.api.stream("/boards/hot/events?count=5")
        event, page = stream.next()
        self.assertEqual((event, page["rows"][0]["member"]), ("page", "bob"))
        self.server.run("ZINCRBY", "hot", "10", "ann")
        began = time.monotonic()
        event, page = stream.next()
        self.assertEqual((event, page["rows"][0]["member"], page["rows"][0]["score"]), ("page", "ann", "11"))
        if not SHORT:
            self.assertLess(time.monotonic() - began, 5)
        self.server.run("ZINCRBY", "hot", "-10", "ann")
        stream.next()
        stream.close()

    def test_many_changes_are_four_a_second(self):
        stream = self.api.stream("/boards/hot/events?count=3")
        stream.next()
        stop = threading.Event()

        def write():
            client = self.server.client
            while not stop.is_set():
                pipeline = client.pipeline(transaction=False)
                for _ in range(100):
                    pipeline.execute_command("ZINCRBY", "hot", "1", "ann")
                pipeline.execute()
        writer = threading.Thread(target=write)
        began, count = time.monotonic(), 0
        writer.start()
        while count < 2 or time.monotonic() - began < 3:
            event = stream.next()
            self.assertIsNotNone(event)
            count += 1
        seconds = time.monotonic() - began
        stop.set()
        writer.join()
        self.assertLessEqual(count, 4 * seconds + 2)
        last = self.server.run("ZSCORE", "hot", "ann").decode()
        while event[1]["rows"][0]["score"] != last:  # the newest state comes, or has come already
            event = stream.next()
        stream.close()
        self.server.run("ZADD", "hot", "1", "ann")

    def test_of_a_crowd_each_sees_the_last_state_and_the_end(self):
        run = self.server.run
        run("ZADD", "crowd", "0", "ann")
        streams = [self.api.stream("/boards/crowd/events?count=1") for _ in range(40 if SHORT else 350)]
        for stream in streams:
            self.assertEqual(stream.next()[0], "page")
        for i in range(1, 40):
            run("ZADD", "crowd", i, "ann")
            time.sleep(0.01)
        for stream in streams:
            while stream.next()[1]["rows"][0]["score"] != "39":
                pass
        run("DEL", "crowd")
        for stream in streams:
            self.assertEqual(stream.next()[0], "gone")
            stream.close()

    def test_nothing_new_is_not_told(self):
        stream = self.api.stream("/boards/hot/events")
        stream.next()
        self.server.run("ZADD", "other", "1", "x")
        self.server.run("ZADD", "hot", "5", "marker")
        event, page = stream.next()
        self.assertIn("marker", [row["member"] for row in page["rows"]])
        self.server.run("ZREM", "hot", "marker")
        stream.next()
        stream.close()

    def test_a_viewer_who_does_not_read_gets_the_newest(self):
        for i in range(200):
            self.server.run("ZADD", "wide", i, f"{i:03}" + "x" * 5000)
        slow = self.api.stream("/boards/wide/events?count=200")
        slow.next()
        for i in range(20):
            self.server.run("ZADD", "wide", 1000 + i, "000" + "x" * 5000)
            time.sleep(0.1)
        seen = []
        while not seen or seen[-1] != "1019":
            seen.append(slow.next()[1]["rows"][0]["score"])
        self.assertEqual(seen, sorted(seen, key=int))
        self.assertLess(len(seen), 20)
        slow.close()
        self.server.run("DEL", "wide")

    def test_a_board_that_goes(self):
        self.server.run("ZADD", "brief", "1", "a")
        stream = self.api.stream("/boards/brief/events")
        stream.next()
        self.server.run("DEL", "brief")
        event, error = stream.next()
        self.assertEqual((event, error["code"]), ("gone", "not_found"))
        self.assertIsNone(stream.next())
        stream.close()
        self.assertEqual(self.api.stream("/boards/nowhere/events").refusal()[0], 404)
        self.assertEqual(self.api.stream("/boards/brief/events").refusal()[0], 404)  # whoever comes back

    def test_the_server_is_told_every_second(self):
        stream = self.api.stream("/server/events")
        event, first = stream.next()
        second = stream.next()[1]
        self.assertEqual(event, "server")
        self.assertGreater(second["uptime_ms"], first["uptime_ms"])
        stream.close()

    def test_viewers_who_leave_are_gone(self):
        count = 100 if SHORT else 400
        streams = [self.api.stream("/boards/hot/events") for _ in range(count)]
        for stream in streams:
            self.assertEqual(stream.next()[0], "page")
        self.assertGreaterEqual(self.api.get("/server")["web_connections"], count)
        for stream in streams:
            stream.close()
        wait_until(lambda: self.api.get("/server")["web_connections"] <= count // 2, "they are gone")


class Users(Case):
    words = ("--web-public", "open:* user:*", "--web-data", "user:* name", "--auth-delay", "0")
    password = "secret"

    @classmethod
    def fill(cls, run):
        run("ACL", "SETUSER", "viewer", "on", ">look", "%R~arena*", "%R~user:*", "+@read", "+ping")
        run("ACL", "SETUSER", "ops", "on", ">figures", "+info", "+slowlog|get")
        run("ACL", "SETUSER", "zoë", "on", ">pä\"ss", "~*", "+@read")
        run("ACL", "SETUSER", "off", ">gone", "~*", "+@all")
        for board in ("arena:1", "hidden", "open:1"):
            run("ZADD", board, "5", "bob")
        run("HSET", "user:bob", "name", "Bob")

    def test_what_is_public(self):
        self.assertEqual([board["name"] for board in self.api.get("/boards")["boards"]], ["open:1"])
        page = self.api.get("/boards/open:1/page")
        self.assertEqual(page["rows"][0]["data"], {"name": "Bob"})
        self.assertEqual(self.api.get("/boards/open:1/members/bob")["rank"], 0)
        self.assertEqual(self.api.get("/boards/open:1/search?q=b")["rows"][0]["member"], "bob")
        for path in ("/boards/hidden", "/boards/hidden/page", "/boards/nothing/page", "/server",
                     "/server/history", "/slowlog", "/boards/open:1/page?hash=secret:*&data=a"):
            status, reply, headers = self.api.ask("/api/v1" + path)
            self.assertEqual((status, reply["code"]), (401, "login_needed"), path)
            self.assertNotIn("WWW-Authenticate", headers)
        me = self.api.get("/me")
        self.assertEqual((me["user"], me["is_public"], me["can_login"]), (None, True, True))
        self.assertEqual(self.api.stream("/boards/hidden/events").refusal()[0], 401)

    def test_groups_of_what_is_public(self):
        self.server.run("LB.CREATE", "open:tags", "FIELD", "score", "30", "TAG", "country", "8")
        self.server.run("LB.ADD", "open:tags", "TAG", "country", "DE", "5", "ann", "6", "bob")
        self.assertEqual(self.api.get("/boards/open:tags")["tags"][0]["top"], [{"value": "DE", "count": 2}])
        for path in ("page?", "members/ann?", "histogram?", "search?q=a&", "archives?"):
            self.api.get(f"/boards/open:tags/{path}tags=1&where=country:DE")
            self.assertEqual(self.api.status(f"/boards/hidden/{path}where=country:DE"), 401)
        self.server.run("DEL", "open:tags")

    def test_a_user_sees_what_the_rights_say(self):
        for options in ({"user": "viewer:look"}, {"cookie": self.cookie("viewer", "look")}):
            self.assertEqual([board["name"] for board in self.api.get("/boards", **options)["boards"]],
                             ["arena:1"])
            self.assertEqual(self.api.get("/boards/arena:1/page", **options)["rows"][0]["member"], "bob")
            for path in ("/boards/hidden/page", "/boards/open:1/page", "/server", "/slowlog"):
                self.assertEqual(self.api.status(path, **options), 403, path)
            self.assertEqual(self.api.get("/me", **options)["user"], "viewer")
        self.assertGreater(self.api.get("/server", user="ops:figures")["uptime_ms"], 0)
        self.assertEqual(self.api.status("/slowlog", user="ops:figures"), 200)
        self.assertEqual(self.api.status("/boards/arena:1", user="ops:figures"), 403)
        self.assertEqual(self.api.get("/me", user="default:secret")["can_see_slowlog"], True)

    def cookie(self, user, password):
        status, reply, cookie = self.api.log_in(user, password)
        self.assertEqual(status, 200, reply)
        return cookie.split(";")[0]

    def test_a_login(self):
        status, reply, cookie = self.api.log_in("viewer", "look")
        self.assertEqual((status, reply["user"]), (200, "viewer"))
        self.assertRegex(cookie, rf"^leaderboard-{self.server.web_port}=[0-9a-f]{{48}}; Path=/; HttpOnly;"
                         " SameSite=Strict$")
        self.assertNotEqual(cookie, self.api.log_in("viewer", "look")[2])
        cookie = cookie.split(";")[0]
        self.assertEqual(self.api.get("/me", cookie=f"a=b; {cookie}; c=d")["user"], "viewer")
        status, reply, headers = self.api.ask("/api/v1/logout", "POST", cookie=cookie)
        self.assertEqual((status, reply["user"]), (200, None))
        self.assertIn("Max-Age=0", headers["Set-Cookie"])
        self.assertEqual(self.api.get("/me", cookie=cookie)["user"], None)
        self.assertEqual(self.api.get("/me", cookie=self.cookie("zoë", "pä\"ss"))["user"], "zoë")

    def test_wrong_passwords(self):
        def refused(case):
            status, reply, cookie = self.api.log_in(*case)
            self.assertEqual((status, reply["code"], cookie), (401, "login_needed", None))
            status, _, headers = self.api.ask("/api/v1/boards", user=":".join(case))
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, 'Basic realm="leaderboard"'))

        together(refused, [("viewer", "wrong"), ("nobody", "look"), ("off", "gone"), ("viewer", ""), ("", ""),
                           ("default", "secret2")])
        self.assertGreater(len(self.server.run("ACL", "LOG")), 0)
        self.assertIn(b"HTTP", [dict(zip(*[iter(entry)] * 2))[b"object"] for entry in self.server.run("ACL", "LOG")])
        for wrong in (b"", b"{}", b"[]", b'{"user": "a"}', b'{"user": 1, "password": "x"}', b"null",
                      b'{"user": "a", "password": "b"} x', b'{"user": "a", "password": "b\\u0000"}', b"\xff" * 100,
                      b'{"user": "' + b"a" * 300 + b'", "password": "b"}', b'{"user": "a", "password": "b"', b"{" * 4000):
            self.assertEqual(self.api.ask("/api/v1/login", "POST", wrong, Content_Type="application/json")[0], 400,
                             wrong)
        self.assertEqual(self.api.ask("/api/v1/login", "POST", b"x" * 5000, Content_Type="application/json")[0], 413)
        self.assertEqual(self.api.ask("/api/v1/login", "POST", '{"user": "viewer", "password": "look"}',
                                      Content_Type="text/plain")[0], 400)
        name = f"leaderboard-{self.server.web_port}"
        for cookie in (f"{name}=", f"{name}=" + "0" * 48, f"{name}=" + "x" * 5000, "=;=;;;", name):
            self.assertEqual(self.api.get("/me", cookie=cookie)["user"], None)

    def test_a_login_ends_with_the_password_and_with_the_user(self):
        self.server.run("ACL", "SETUSER", "brief", "on", ">one", "~*", "+@read")
        cookie = self.cookie("brief", "one")
        stream = self.api.stream("/boards/hidden/events", Cookie=cookie)
        self.assertEqual(stream.next()[0], "page")
        self.server.run("ACL", "SETUSER", "brief", "-@all")
        self.assertEqual(self.api.status("/boards/hidden", cookie=cookie), 403)
        self.server.run("ACL", "SETUSER", "brief", "+@read", "<one", ">two")
        self.assertEqual(self.api.status("/boards/hidden", cookie=cookie), 401)
        self.server.run("ZINCRBY", "hidden", "1", "bob")
        event = stream.next()
        self.assertEqual((event[0], event[1]["code"]), ("gone", "login_needed"))
        cookie = self.cookie("brief", "two")
        self.assertEqual(self.api.status("/boards/hidden", cookie=cookie), 200)
        self.server.run("ACL", "DELUSER", "brief")
        self.assertEqual(self.api.status("/boards/hidden", cookie=cookie), 401)
        self.server.run("ACL", "SETUSER", "brief", "on", ">three", "~*", "+@read")
        self.assertEqual(self.api.status("/boards/hidden", cookie=cookie), 401)

    def test_logins_are_bounded(self):
        cookies = [self.cookie("viewer", "look") for _ in range(70)]
        self.assertEqual(self.api.get("/me", cookie=cookies[0])["user"], None)
        self.assertEqual(self.api.get("/me", cookie=cookies[-1])["user"], "viewer")

    def test_the_page_only_reads(self):
        before = self.server.run("ZRANGE", "hidden", 0, -1, "WITHSCORES")
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            status = self.api.ask("/api/v1/boards/hidden/page", method, user="default:secret")[0]
            self.assertEqual(status, 405, method)
        self.assertEqual(self.server.run("ZRANGE", "hidden", 0, -1, "WITHSCORES"), before)


class Kept(Case):
    """What caches may keep, fewer bytes, and pages of any site."""
    words = ("--web-public", "open", "--web-allow-origin", "https://game.example *", "--web-write", "yes")
    password = "secret"

    @classmethod
    def fill(cls, run):
        run("ZADD", "open", *(word for i in range(150) for word in (i, f"player:{i}")))
        run("ZADD", "hidden", "1", "ann")

    READS = ("/boards", "/boards/open", "/boards/open/page", "/boards/open/members/player:7", "/boards/open/search?q=p",
             "/boards/open/histogram", "/boards/open/archives")

    def test_what_anybody_may_read_is_kept_for_a_moment(self):
        for path in self.READS:
            status, reply, headers = self.api.ask("/api/v1" + path)
            self.assertEqual((status, headers["Cache-Control"]), (200, "public, max-age=1"), path)
            self.assertEqual(", ".join(headers.get_all("Vary")), "Origin, Authorization, Cookie, Accept-Encoding")
            again = self.api.ask("/api/v1" + path, If_None_Match=headers["ETag"])
            self.assertEqual((again[0], again[1], again[2]["ETag"]), (304, b"", headers["ETag"]), path)
            self.assertEqual(self.api.ask("/api/v1" + path, If_None_Match=f'"x", {headers["ETag"]}')[0], 304)
            self.assertEqual(self.api.ask("/api/v1" + path, If_None_Match='W/"0000000000000000"')[:2], (200, reply))
        before = self.api.ask("/api/v1/boards/open/page")[2]["ETag"]
        self.server.run("ZINCRBY", "open", "1000", "player:7")
        status, reply, headers = self.api.ask("/api/v1/boards/open/page", If_None_Match=before)
        self.assertEqual((status, reply["rows"][0]["member"]), (200, "player:7"))
        self.assertNotEqual(headers["ETag"], before)

    def test_what_is_for_one_user_or_an_error_is_not(self):
        for path, options in (("/boards/open/page", {"user": "default:secret"}), ("/boards/hidden/page", {}), ("/me", {}),
                              ("/boards/open/page?count=0", {}), ("/boards/open/members/nobody", {}), ("/openapi.json", {})):
            headers = self.api.ask("/api/v1" + path, **options)[2]
            self.assertEqual((headers["Cache-Control"], headers["ETag"]), ("no-store", None), path)
        cookie = self.api.log_in("default", "secret")[2].split(";")[0]
        self.assertEqual(self.api.ask("/api/v1/boards/open/page", cookie=cookie)[2]["Cache-Control"], "no-store")

    def test_answers_are_compressed_for_those_who_take_that(self):
        paths = ["/api/v1/boards/open/page?count=100", "/api/v1/openapi.json", "/app.js", "/style.css"]
        for path in paths:
            plain = self.api.ask(path)
            text = plain[1] if isinstance(plain[1], bytes) else None
            for accepted in ("gzip", "br, gzip;q=0.5", "GZIP"):
                status, packed, headers = self.raw(path, accepted)
                self.assertEqual((status, headers["Content-Encoding"]), (200, "gzip"), (path, accepted))
                if headers["Cache-Control"] != "no-store":
                    self.assertIn("Accept-Encoding", ", ".join(headers.get_all("Vary")), path)
                whole = gzip.decompress(packed)
                self.assertEqual(whole if text is not None else json.loads(whole), plain[1], path)
                self.assertLess(len(packed), len(whole) // 2, path)
                self.assertEqual(int(headers["Content-Length"]), len(packed))
            for accepted in (None, "identity", "gzip;q=0", "br", "*;q=0", "xgzip"):
                self.assertIsNone(self.raw(path, accepted)[2]["Content-Encoding"], (path, accepted))
        self.assertIsNone(self.raw("/api/v1/me", "gzip")[2]["Content-Encoding"])  # it is short
        tag = self.raw(paths[0], "gzip")[2]["ETag"]
        self.assertEqual(self.api.ask(paths[0])[2]["ETag"], tag)
        self.assertEqual(self.api.ask(paths[0], If_None_Match=tag, Accept_Encoding="gzip")[0], 304)
        tag = self.raw("/app.js", "gzip")[2]["ETag"]
        self.assertEqual(self.api.ask("/app.js", If_None_Match=tag, Accept_Encoding="gzip")[0], 304)

    def raw(self, path, accepted):
        connection = self.api.connection()
        connection.putrequest("GET", path, skip_accept_encoding=True)
        if accepted is not None:
            connection.putheader("Accept-Encoding", accepted)
        connection.endheaders()
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, body, reply.headers

    def test_pages_of_any_site_read_what_anybody_may(self):
        for origin in ("https://any.example", "http://any.example:8080", "null"):
            site = {"Origin": origin, "Sec_Fetch_Site": "cross-site"}
            for path in self.READS:
                status, _, headers = self.api.ask("/api/v1" + path, **site)
                self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, "*"), path)
                self.assertNotIn("Access-Control-Allow-Credentials", headers)
            stream = self.api.stream("/boards/open/events", **{"Origin": origin, "Sec-Fetch-Site": "cross-site"})
            self.assertEqual((stream.next()[0], stream.reply.headers["Access-Control-Allow-Origin"]), ("page", "*"))
            stream.close()
            self.assertEqual(self.api.status("/boards/hidden/page", **site), 401)
            cookie = self.api.log_in("default", "secret")[2].split(";")[0]
            self.assertEqual(self.api.status("/boards/hidden/page", cookie=cookie, **site), 401)  # the cookie is not for them
            for options in ({"user": "default:secret"}, {"method": "POST", "body": "{}"}):
                for path in ("/boards/open/results", "/login", "/stream-key", "/me"):
                    status, _, headers = self.api.ask("/api/v1" + path, Content_Type="application/json", **options, **site)
                    self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (403, None), (path, options))
            status, _, headers = self.api.ask("/api/v1/boards/open/page", "OPTIONS", Access_Control_Request_Method="GET", **site)
            self.assertEqual((status, headers["Access-Control-Allow-Origin"], headers["Access-Control-Allow-Methods"],
                              headers["Access-Control-Allow-Headers"]), (204, "*", "GET, HEAD", None))
            status = self.api.ask("/api/v1/boards/open/results", "OPTIONS", Access_Control_Request_Method="POST", **site)[0]
            self.assertEqual(status, 403)
        headers = self.api.ask("/api/v1/boards/hidden/page", Origin="https://game.example", Sec_Fetch_Site="cross-site",
                               user="default:secret")[2]
        self.assertEqual(headers["Access-Control-Allow-Origin"], "https://game.example")
        self.assertEqual(self.api.status("/boards/open", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors"), 403)

    def test_every_operation_has_a_name_of_its_own(self):
        operations = [operation for path in self.api.get("/openapi.json")["paths"].values() for operation in path.values()]
        names = [operation["operationId"] for operation in operations]
        self.assertEqual(len(set(names)), len(operations))
        self.assertTrue(all(re.fullmatch(r"[a-z][A-Za-z]+", name) for name in names), names)

    def test_one_path_reads_a_member_and_writes_it(self):
        paths = self.api.get("/openapi.json")["paths"]
        self.assertEqual({path for path in paths if "MEMBER" in path and path.startswith("/boards")},
                         {"/boards/{NAME}/members/{MEMBER}", "/boards/{NAME}/members/{MEMBER}/tags",
                          "/boards/{NAME}/members/{MEMBER}/rating", "/boards/{NAME}/held/{MEMBER}"})
        self.assertEqual(set(paths["/boards/{NAME}/members/{MEMBER}"]), {"get", "delete"})


class Guessing(unittest.TestCase):
    def test_guessing_is_slowed_down(self):
        server = WebServer("--auth-delay", "2000", "--auth-delay-after", "3", "--metrics-port", "0", password="secret")
        api = Api(server)
        statuses = [api.log_in("default", f"guess{i}")[0] for i in range(5)]
        self.assertEqual(statuses[:3], [401] * 3)
        self.assertIn(429, statuses[3:])
        self.assertEqual(api.log_in("default", "secret")[0], 429)  # it was not looked at
        self.assertEqual(api.status("/boards", user="default:secret"), 429)
        wait_until(lambda: api.log_in("default", "secret")[0] == 200, "a login", step_s=0.2)
        self.assertEqual(api.log_in("default", "secret")[0], 200)  # the address is forgiven
        self.assertIn("by=http", server.log.read_text())
        server.stop()

    def test_metrics_and_page_and_redis_count_together(self):
        server = WebServer("--auth-delay", "2000", "--auth-delay-after", "2", password="secret")
        api = Api(server)
        self.assertEqual(api.log_in("default", "wrong")[0], 401)
        with self.assertRaises(redis.RedisError):
            redis.Redis(port=server.port, password="wrong").ping()
        self.assertEqual(api.log_in("default", "wrong")[0], 429)
        server.stop()


class Strangers(Case):
    words = ("--web-max-connections", "64", "--web-hosts", "boards.example.com")

    @classmethod
    def fill(cls, run):
        run("ZADD", "arena", "1", "ann")

    def test_hosts(self):
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1", "boards.example.com.evil"):
            for path in ("/", "/api/v1/boards", "/app.js"):
                status, reply, _ = self.api.ask(path, Host=host)
                self.assertIn(status, (421, 400), (host, path))
        for host in ("localhost", "127.0.0.1:80", "[::1]:80", "boards.example.com", "BOARDS.example.com:8080"):
            self.assertEqual(self.api.ask("/api/v1/boards", Host=host)[0], 200, host)

    def test_other_sites(self):
        port = self.server.web_port
        for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
                        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://127.0.0.1:{port}1"}):
            self.assertEqual(self.api.status("/boards", **headers), 403, headers)
            self.assertEqual(self.api.log_in("a", "b", **headers)[0], 403, headers)
        self.assertEqual(self.api.status("/boards", Origin=f"http://127.0.0.1:{port}"), 200)
        self.assertEqual(self.api.status("/boards", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate"), 200)
        self.assertNotIn("Access-Control-Allow-Origin", self.api.ask("/api/v1/boards")[2])

    def test_headers(self):
        for path in ("/", "/boards/arena", "/app.js", "/api/v1/boards", "/api/v1/nothing", "/nothing"):
            headers = self.api.ask(path)[2]
            policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
            self.assertEqual((policy["default-src"], policy["script-src"], policy["frame-ancestors"]),
                             ("'none'", "'self'", "'none'"), path)
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["X-Frame-Options"], "DENY")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        headers = self.api.ask("/embed/arena")[2]
        self.assertIn("frame-ancestors *", headers["Content-Security-Policy"])
        self.assertNotIn("X-Frame-Options", headers)

    def test_files(self):
        status, text, headers = self.api.ask("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        for path in ("/boards/arena?from=5", "/server", "/login", "/embed/arena", "/index.html"):
            self.assertEqual(self.api.ask(path)[1], text)
        status, empty, _ = self.api.ask("/", If_None_Match=headers["ETag"])
        self.assertEqual((status, empty), (304, b""))
        for name in (ROOT / "server" / "web" / "page").iterdir():
            status, body, _ = self.api.ask("/" + name.name)
            self.assertEqual((status, body), (200, name.read_bytes()))
        for path in ("/../Makefile", "/%2e%2e/Makefile", "/..%2f..%2fetc/passwd", "/page/app.js",
                     "/app.js/x", "/.git/config", "/%00", "/openapi.json"):
            self.assertEqual(self.api.ask(path)[0], 404, path)
            self.assertEqual(self.api.ask(path, Accept="text/html,*/*;q=0.8")[:2], (404, text), path)
        self.assertEqual(self.api.ask("/api/v2/boards", Accept="text/html")[0], 404)
        self.assertNotEqual(self.api.ask("/api/v2/boards", Accept="text/html")[1], text)
        self.assertNotIn("<script>", text.decode())
        self.assertNotRegex(text.decode(), r"(?i)\son\w+=|style=|https?://")

    def raw(self, data, shut=True):
        with socket.create_connection(("127.0.0.1", self.server.web_port)) as one:
            one.settimeout(LIMIT_S)
            got = b""
            try:
                one.sendall(data)
                if shut:
                    one.shutdown(socket.SHUT_WR)
                while True:
                    part = one.recv(65536)
                    if not part:
                        return got
                    got += part
            except OSError:
                return got

    def test_nonsense(self):
        seed = random.randrange(1 << 30)
        draw = random.Random(seed)
        with self.subTest(seed=seed):
            for text in (b"GET /api/v1/boards HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100000,
                         b"GET /" + b"y" * 100000 + b" HTTP/1.1\r\n\r\n", b"\r\n" * 10000, b"PING\r\n",
                         b"GET /api/v1/boards/%00%ff/page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                         b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n",
                         b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
                         b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                         b"GET /api/v1/boards HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
                         b"GET http://evil.example/api/v1/boards HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
                self.raw(text)
            letters = b"/%?&=+;.\\\0\xff" + b"boardspagemembersearchapiv1" + b"0123456789abcdef"
            for _ in range(200 if SHORT else 3000):
                path = bytes(draw.choice(letters) for _ in range(draw.randrange(60)))
                path = path.replace(b"\0", b"")
                got = self.raw(b"GET /api/v1/boards/" + path + b" HTTP/1.1\r\nHost: localhost\r\nCookie: " +
                               path + b"\r\nConnection: close\r\n\r\n")
                self.assertRegex(got[:40], rb"^(HTTP/1\.1 (200|400|401|404|413|503)|$)")
        self.assertEqual(self.api.status("/boards"), 200)
        self.assertTrue(self.server.client.ping())

    def test_those_who_say_nothing_keep_nobody_out(self):
        held = []
        for i in range(300):
            held.append(socket.socket())
            held[-1].setblocking(False)
            held[-1].connect_ex(("127.0.0.1", self.server.web_port))
            if i % 3 == 0:
                try:
                    held[-1].send(b"GET /api/v1/boards HTTP/1.1\r\nHost: lo")
                except OSError:
                    pass
        self.assertEqual(self.api.status("/boards"), 200)
        for one in held:
            one.close()

    def test_those_who_ask_for_much_and_read_nothing(self):
        for begin in range(0, 50, 10):
            self.server.run("ZADD", "long", *(word for i in range(begin, begin + 10)
                                              for word in (i, f"{i:03}" + "x" * 65533)))
        held = []
        for _ in range(40):
            held.append(socket.socket())
            held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            held[-1].connect(("127.0.0.1", self.server.web_port))
            held[-1].sendall(b"GET /api/v1/boards/long/page?count=50 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # Each is answered in its turn, or told that the server is busy; others are, too.
        waiting, most, give_up_at = list(held), 0, time.monotonic() + LIMIT_S
        while waiting and time.monotonic() < give_up_at:
            answered = select.select(waiting, [], [], 0.05)[0]
            waiting = [one for one in waiting if one not in answered]
            most = max(most, int(re.search(rb"used_memory:(\d+)", self.server.run("INFO", "memory"))[1]))
        self.assertEqual(waiting, [])
        self.assertEqual(self.api.status("/boards/arena/page"), 200)
        self.assertLess(most, 250 << 20)
        for one in held:
            one.close()
        stream = self.api.stream("/boards/long/events?count=50")
        status, error = stream.refusal()
        self.assertEqual((status, error["code"]), (413, "too_large"))
        stream.close()
        self.server.run("DEL", "long")

    def test_heads(self):
        for path in ("/", "/api/v1/boards", "/api/v1/boards/arena/events", "/api/v1/nothing"):
            connection = self.api.connection()
            connection.request("HEAD", path)
            reply = connection.getresponse()
            self.assertIn(reply.status, (200, 404))
            self.assertEqual(reply.read(), b"")
            connection.close()

    def test_viewers_leave_room_for_requests(self):
        streams = []
        for _ in range(60):
            stream = self.api.stream("/boards/arena/events")
            if stream.status != 200:
                break
            streams.append(stream)
        self.assertEqual(len(streams), 48)
        self.assertEqual(stream.status, 503)
        self.assertEqual(self.api.status("/boards/arena"), 200)
        for each in streams:
            each.close()

    def test_pages_of_many_kinds_do_not_stop_the_engine(self):
        """Expensive requests wait for their turn: of the engine's time they have a part, however slow the machine is."""
        pipeline = self.server.client.pipeline(transaction=False)
        for i in range(20000):
            pipeline.execute_command("ZADD", "crowd", i, f"player:{i}")
        pipeline.execute()
        before, begin = self.api.get("/server")["web_engine_us"], time.monotonic()
        statuses, errors = [], []

        def ask(i):
            connection = self.api.connection()
            try:
                connection.request("GET", f"/api/v1/boards/crowd/search?q=zz{i}")
                statuses.append(connection.getresponse().status)
            except OSError as error:
                errors.append(error)
            connection.close()
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(30)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.assertTrue(self.server.client.ping())
        for thread in threads:
            thread.join()
        used_us = self.api.get("/server")["web_engine_us"] - before
        self.assertEqual((len(statuses), errors), (30, []))
        self.assertLessEqual(set(statuses), {200, 503})  # busy: its turn has not come in time
        self.assertGreater(used_us, 0)
        # A tenth, and what was saved before: half a second's tenth.
        self.assertLess(used_us / 1e6, (time.monotonic() - begin) / 2 + 0.1)
        self.assertEqual(self.api.get("/boards/crowd/search?q=player:7&count=1")["rows"][0]["member"], "player:7")
        self.server.run("DEL", "crowd")


class Following(unittest.TestCase):
    def follow(self, api, wanted):
        """The server's replication, once it is as wanted."""
        def reply():
            told = api.get("/server")["replication"]
            return told if wanted(told) else None
        return wait_until(reply, lambda: api.get("/server")["replication"])


class Replicas(Following):
    def test_both_ends_are_told(self):
        master = WebServer()
        replica = WebServer("--replicaof", "127.0.0.1", str(master.port))
        for i in range(10):
            master.run("ZADD", "arena", i, f"member {i}")
        follow = self.follow(Api(replica), lambda it: it["master"]["link"] == "connected")
        self.assertEqual(follow["role"], "replica")
        self.assertEqual((follow["master"]["address"], follow["master"]["error"], follow["master"]["down_ms"]),
                         (f"127.0.0.1:{master.port}", None, 0))
        self.assertGreaterEqual(follow["master"]["heard_ms"], 0)
        lead = self.follow(Api(master), lambda it: [each["state"] for each in it["replicas"]] == ["online"]
                           and it["replicas"][0]["lag_groups"] == 0)
        self.assertEqual((lead["role"], lead["master"], lead["replica_count"], lead["failing_over"]),
                         ("master", None, 1, False))
        self.assertEqual(lead["replicas"][0]["address"], f"127.0.0.1:{replica.port}")
        self.follow(Api(replica), lambda it: it["group"] == lead["group"] and it["master"]["unapplied_groups"] == 0)
        stream = Api(replica).stream("/boards/arena/events")
        self.assertEqual(stream.next()[1]["count"], 10)
        master.run("ZADD", "arena", 99, "newest")
        self.assertEqual(stream.next()[1]["rows"][0]["member"], "newest")  # a replica's page is live, too
        stream.close()
        master.stop()
        lost = self.follow(Api(replica), lambda it: it["master"]["link"] != "connected")
        self.assertEqual((lost["role"], lost["master"]["heard_ms"]), ("replica", -1))
        self.follow(Api(replica), lambda it: it["master"]["down_ms"] > 0)
        replica.run("REPLICAOF", "NO", "ONE")
        self.assertEqual(Api(replica).get("/server")["replication"]["role"], "master")
        replica.stop()


class Promises(Following):
    def test_sync_replicas_are_told(self):
        wanted = ("--sync-replicas", "1", "--replication-nodes", "2", "--appendonly", "yes")
        master = WebServer(*wanted)
        api = Api(master)
        sync = api.get("/server")["replication"]["sync"]
        self.assertEqual((sync["state"], sync["replicas_counted"]), ("closed", 0), sync)
        replica = WebServer(*wanted, "--replicaof", "127.0.0.1", str(master.port))
        sync = self.follow(api, lambda it: it["sync"]["state"] == "open" and it["sync"]["replicas_counted"] == 1)["sync"]
        self.assertEqual((sync["replicas_wanted"], sync["votes_needed"]), (1, 0))
        master.run("ZADD", "arena", "1", "ann")
        self.follow(api, lambda it: it["sync"]["unacknowledged_groups"] == 0 and it["sync"]["held_ms"] == 0)
        self.assertEqual(Api(replica).get("/server")["replication"]["sync"]["state"], "replica")
        replica.stop()
        master.stop()


class Starts(unittest.TestCase):
    def refused(self, *words):
        with self.assertRaises(AssertionError) as caught:
            WebServer(*words)
        return str(caught.exception)

    def test_what_cannot_be_is_told_at_the_start(self):
        self.assertIn("go together", self.refused("--web-tls-cert-file", "/dev/null"))
        self.assertIn("cannot read /no/such", self.refused("--web-tls-cert-file", "/no/such", "--web-tls-key-file",
                                                           "/no/such"))
        self.assertIn("web-bind: cannot listen on address 192.0.2.1", self.refused("--web-bind", "192.0.2.1")
                      .replace("web-port", "web-bind"))
        self.assertIn("web-data: a pattern with one *", self.refused("--web-data", "user name"))
        self.assertIn("web-public", self.refused("--web-public", "x" * 1100))

    def test_tls(self):
        certificate, key = make_certificate()
        server = WebServer("--web-tls-cert-file", certificate, "--web-tls-key-file", key, password="secret")
        api = Api(server, tls=certificate)
        status, _, cookie = api.log_in("default", "secret")
        self.assertEqual(status, 200)
        self.assertIn("; Secure", cookie)
        server.run("ZADD", "arena", "1", "ann")
        self.assertEqual(api.get("/boards/arena/page", cookie=cookie.split(";")[0])["rows"][0]["member"], "ann")
        stream = api.stream("/boards/arena/events", Cookie=cookie.split(";")[0])
        stream.next()
        server.run("ZINCRBY", "arena", "1", "ann")
        self.assertEqual(stream.next()[1]["rows"][0]["score"], "2")
        stream.close()
        server.stop()

    def test_what_is_shown_is_on_disk(self):
        server = WebServer("--appendonly", "yes", "--appendfsync", "always")
        api = Api(server)
        for i in range(20):
            server.run("ZADD", "arena", i, "ann")
            self.assertEqual(api.get("/boards/arena/page")["rows"][0]["score"], str(i))
        server.stop()

    def test_the_demo(self):
        process = subprocess.Popen([ROOT / "deploy" / "demo", PROGRAM, "18080"], stdout=subprocess.PIPE, text=True,
                                   preexec_fn=end_with_the_test)
        try:
            line = process.stdout.readline()
            host, path = re.match(r"Watch the contest:  http://([^/]+)(/\S+)", line).groups()
            connection = http.client.HTTPConnection(host, timeout=LIMIT_S)
            connection.request("GET", f"/api/v1{path}/page?count=3")
            page = json.loads(connection.getresponse().read())
            self.assertEqual(len(page["rows"]), 3)
            self.assertTrue(all(row["data"]["name"] for row in page["rows"]))
        finally:
            process.terminate()
            process.stdout.close()
            self.assertEqual(process.wait(LIMIT_S), 0)

    def test_it_ends_while_it_is_asked(self):
        for _ in range(8):
            server = WebServer()
            api = Api(server)
            server.run("ZADD", "arena", "1", "ann")
            is_over = threading.Event()

            def ask():
                while not is_over.is_set():
                    try:
                        api.ask("/api/v1/boards/arena/page")
                        Stream(api, "/boards/arena/events", {}).close()
                    except (OSError, http.client.HTTPException):
                        pass

            threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(0.2)
            try:
                server.stop()
            finally:
                is_over.set()
                for thread in threads:
                    thread.join()

    def test_it_ends_with_viewers(self):
        server = WebServer()
        api = Api(server)
        server.run("ZADD", "arena", "1", "ann")
        streams = [api.stream("/boards/arena/events") for _ in range(5)]
        for stream in streams:
            stream.next()
        server.stop()
        for stream in streams:
            try:
                self.assertIsNone(stream.next())
            except http.client.IncompleteRead:
                pass


if __name__ == "__main__":
    unittest.main()
