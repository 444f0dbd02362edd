"""What people see: boards, their places as they change, members, distributions, periods, the server."""
import datetime
import http.server
import json
import os
import re
import subprocess
import threading
import time
import unittest

from browser import Browser
from web_server import ROOT, WebServer, encoded

SHORT = bool(os.environ.get("LEADERBOARD_TEST_SHORT"))
NAMES = "#main tbody .who a"
SCORES = "#main .content tbody td.score"


def setUpModule():
    global browser, server
    server = WebServer("--web-public", "*", "--slowlog-log-slower-than", "0")
    try:
        browser = Browser()
    except Exception:
        server.stop()
        raise


def tearDownModule():
    browser.close()
    server.stop()


class PageTest(unittest.TestCase):
    def setUp(self):
        server.run("FLUSHALL")
        self.page = None

    def tearDown(self):
        if self.page:
            errors = list(self.page.errors)
            self.page.close()
            self.assertEqual(errors, [])

    def open(self, url, **how):
        if self.page:
            self.page.close()
        self.page = browser.open(url, **how)
        return self.page

    def open_board(self, board, query="", rows=1, **how):
        page = self.open(server.board_url(board, query), **how)
        page.wait(f"document.querySelectorAll('.content tbody tr').length >= {rows}")
        return page

    def names(self):
        return self.page.texts(".content tbody .who a")


class Boards(PageTest):
    def test_boards_are_listed_with_members_and_found_as_one_types(self):
        server.run("ZADD", "arena", "5", "ann", "6", "bob")
        server.run("ZADD", "lap*times", "1", "ann")
        server.run("LB.CREATE", "votes", "FIELD", "agree", "20", "FIELD", "comment", "20")
        page = self.open(server.url())
        page.wait("document.querySelectorAll('.card').length === 3")
        self.assertEqual(page.texts(".card h2"), ["arena", "lap*times", "votes"])
        self.assertEqual(page.texts(".card-count b"), ["2", "1", "0"])
        self.assertEqual(page.texts(".card .layout"), ["Highest score first · of equals the earlier one"] * 2
                         + ["Highest agree, then highest comment first"])
        page.type("input[type=search]", "p*t")
        page.wait("document.querySelectorAll('.card').length === 1")
        self.assertEqual(page.texts(".card h2"), ["lap*times"])
        self.assertIn("match=p*t", page.value("location.search"))
        page.click(".card h2 a")
        page.wait("document.querySelector('h1')?.innerText === 'lap*times'")

    def test_a_board_whose_name_is_no_utf_8_or_has_slashes_is_opened_from_the_list(self):
        for name, shown in ((b"\xffb", "\\xffb"), ("a/b?c#d%41+", "a/b?c#d%41+"), ("...", "...")):
            server.run("FLUSHALL")
            server.run("ZADD", name, "5", "ann")
            page = self.open(server.url())
            page.click(".card h2 a")
            page.wait("document.querySelector('.content tbody .who a')?.innerText === 'ann'")
            self.assertEqual(page.text("h1"), shown)
            page.send("Page.reload")
            page.wait("document.querySelector('.content tbody .who a')?.innerText === 'ann'")

    def test_what_a_board_is_stands_there_in_words(self):
        server.run("LB.CREATE", "laps", "FIELD", "lap", "30", "ASC", "SCALE", "3", "TIME", "20", "S", "LATEST",
                   "TAG", "country", "8", "TAG", "clan", "6")
        page = self.open(server.url())
        page.wait("document.querySelector('.card .layout')")
        self.assertEqual(page.text(".card .layout"), "Lowest lap first · of equals the later one · groups by country, clan")
        self.assertNotRegex(page.text("#main"), "FIELD|TIME|SCALE")
        page = self.open(server.url(), language="zh-CN")
        page.wait("document.querySelector('.card .layout')?.innerText.startsWith('按 lap 从低到高')")

    def test_many_boards_are_in_order_from_the_first_page_on_and_never_fewer(self):
        names = [f"board-{n:04}" for n in range(1150)]
        pipe = server.client.pipeline(transaction=False)
        for name in sorted(names, key=hash):
            pipe.execute_command("ZADD", name, "1", "ann")
        pipe.execute()
        page = self.open(server.url(), hurried=True)
        page.wait("document.querySelector('.card')")
        self.assertEqual(page.texts(".card h2"), names[:60])
        self.assertEqual(page.text("#main [role=status]"), "Boards 1 to 60 of 1,150")
        page.value("window.least = 60; new MutationObserver(() => { window.least = Math.min(window.least,"
                   " document.querySelectorAll('.card').length); })"
                   ".observe(document.querySelector('.boards'), { childList: true }); 0")
        asked = len(page.requested)
        server.run("ZADD", "aaa", "1", "ann")  # shown when the list has been read again
        page.wait("document.querySelector('.card h2').innerText === 'aaa'", limit_s=60)
        self.assertGreater(len(page.requested), asked)
        self.assertEqual(page.value("window.least"), 60)
        self.assertEqual(page.text("#main [role=status]"), "Boards 1 to 60 of 1,151")
        server.run("DEL", "aaa")
        page.key("n", 78, "n")
        page.wait("document.querySelector('#main [role=status]').innerText.startsWith('Boards 61 to 120 of 1,15')")
        self.assertIn("place=61", page.value("location.search"))
        page.go(server.url("/?place=1141"))
        page.wait("document.querySelector('.card')")
        self.assertEqual(page.texts(".card h2"), names[1140:])
        page.type("input[type=search]", "board-07")
        page.wait("document.querySelector('#main [role=status]').innerText === 'Boards 1 to 60 of 100'")
        self.assertEqual(page.texts(".card h2"), names[700:760])

    def test_rooms_are_folded_below_their_league(self):
        server.run("LB.LEAGUE", "CREATE", "weekly", "FIELD", "points", "22", "PERIOD", "WEEK", "ROOM", "2", "TIERS", "2",
                   "UP", "1", "DOWN", "1")
        for n in range(9):
            server.run("LB.LEAGUE", "ADD", "weekly", n, f"m{n}")
        server.run("ZADD", "arena", "1", "ann")
        server.run("ZADD", "{game}:1:2", "1", "ann")  # is no room
        page = self.open(server.url())
        page.wait("document.querySelector('.card')")
        self.assertEqual(sorted(page.texts(".card h2")), ["arena", "weekly", "{game}:1:2"])
        self.assertIn("League: 2 tiers, rooms of 2", page.text(".boards"))
        self.assertEqual(page.value("Array.from(document.querySelectorAll('.card details a'), (it) => it.textContent)"),
                         ["{weekly}:rooms"])
        page.type("input[type=search]", "weekly")
        page.wait("document.querySelectorAll('.card').length === 1")
        self.assertEqual(page.value("Array.from(document.querySelectorAll('.card details a'), (it) => it.textContent)"),
                         [*(f"{{weekly}}:1:{n}" for n in range(1, 6)), "{weekly}:rooms"])
        page.value("document.querySelector('.card details').open = true")
        page.click(".card details a")
        page.wait("document.querySelector('h1')?.innerText === '{weekly}:1:1'")

    def test_past_periods_have_a_tab_where_there_are_some(self):
        server.run("LB.CREATE", "daily", "FIELD", "score", "30", "TIME", "30", "MS", "PERIOD", "DAY", "ARCHIVE", "5")
        server.run("ZADD", "daily", "1", "ann")
        page = self.open_board("daily", hurried=True)
        self.assertEqual(page.texts(".tabs a"), ["Ranking", "Distribution"])
        yesterday = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
        server.run("LB.ROLL", "daily", yesterday.strftime("daily@%Y-%m-%d"))
        page.wait("document.querySelectorAll('.tabs a').length === 3")
        self.assertEqual(page.texts(".tabs a"), ["Ranking", "Distribution", "Past periods"])

    def test_archives_are_folded_under_their_board(self):
        today = datetime.datetime.now(datetime.timezone.utc)
        days = [(today - datetime.timedelta(days=n)).strftime("%Y-%m-%d") for n in (1, 2)]
        server.run("LB.CREATE", "daily", "FIELD", "score", "30", "TIME", "30", "MS", "PERIOD", "DAY")
        server.run("ZADD", "daily", "1", "ann")
        for day in days:
            server.run("ZADD", f"daily@{day}", "7", "ann", "9", "bob")
            server.run("LB.ALTER", f"daily@{day}", "FREEZE")
        page = self.open(server.url())
        page.wait("document.querySelectorAll('.card').length === 1")
        self.assertIn("daily", page.text(".card-facts"))
        self.assertRegex(page.text(".card-facts"), r"rolls over in \d")
        page.value("document.querySelector('.card details').open = true")
        self.assertEqual(page.texts(".card details a"), [f"daily@{day}" for day in days])
        page.go(server.board_url("daily", "view=periods"))
        page.wait("document.querySelectorAll('.period').length === 3")
        self.assertEqual(page.texts(".period h2"), ["Now", *days])
        self.assertEqual(page.texts(".period:nth-child(2) tbody .name"), ["bob", "ann"])


    def test_periods_are_fetched_anew_when_the_board_rolls(self):
        today = datetime.datetime.now(datetime.timezone.utc)
        days = [(today - datetime.timedelta(days=n)).strftime("%Y-%m-%d") for n in (1, 2)]
        server.run("LB.CREATE", "daily", "FIELD", "score", "30", "TIME", "30", "MS", "PERIOD", "DAY", "ARCHIVE", "5")
        server.run("ZADD", "daily", "1", "ann", "2", "bob")
        page = self.open(server.board_url("daily", "view=periods"))
        page.wait("document.querySelector('.inner')?.innerText.includes('There are no past periods')")
        page.wait("document.getElementById('live').innerText === 'Live'")
        server.run("LB.ROLL", "daily", f"daily@{days[0]}")  # by hand
        page.wait("document.querySelectorAll('.period').length === 2")
        self.assertEqual(page.texts(".period h2"), ["Now", days[0]])
        self.assertEqual(page.texts(".period:nth-child(2) tbody .name"), ["bob", "ann"])
        server.run("ZADD", "daily", "7", "cy")
        page.wait("document.querySelector('.period tbody .name')?.innerText === 'cy'")
        page.wait("document.querySelector('.period p').innerText === '1 member'")
        # What a period's end changes: there is another archive, and the next end is another one.
        server.run("ZADD", f"daily@{days[1]}", "5", "dee")
        server.run("LB.ALTER", f"daily@{days[1]}", "FREEZE")
        server.run("LB.ALTER", "daily", "PERIOD", "DAY", "TZ", "+01:00")
        page.wait("document.querySelectorAll('.period').length === 3")
        self.assertEqual(page.texts(".period h2"), ["Now", *days])


class Places(PageTest):
    def test_a_change_of_places_is_seen_within_a_second_and_marked(self):
        server.run("ZADD", "arena", "100", "zoe", "90", "ann", "80", "bob")
        page = self.open_board("arena", rows=3)
        page.wait("document.getElementById('live').innerText === 'Live'")
        self.assertEqual(self.names(), ["zoe", "ann", "bob"])
        waits = []
        for _ in range(3):  # a machine that is busy may be late
            server.run("ZADD", "arena", "100", "zoe", "90", "ann", "80", "bob")
            page.wait("document.querySelector('.content tbody .who a').innerText === 'zoe'")
            server.run("ZINCRBY", "arena", "25", "bob")
            waits.append(page.wait("document.querySelector('.content tbody .who a').innerText === 'bob'"))
        self.assertLess(min(waits), 1)
        self.assertEqual(self.names(), ["bob", "zoe", "ann"])
        self.assertEqual(page.texts(SCORES), ["105", "100", "90"])
        # The mark is a sign, a number, and words for those who do not see either.
        self.assertEqual(page.value("Array.from(document.querySelectorAll('.move'), (it) => it.textContent)"),
                         ["2up 2", "1down 1", "1down 1"])
        self.assertEqual(page.value("document.querySelectorAll('.move svg').length"), 3)
        page.wait("document.getElementById('spoken').textContent === 'bob leads now'")

    def test_places_gained_and_lost_since_the_last_period(self):
        yesterday = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
        server.run("LB.CREATE", "daily", "FIELD", "score", "30", "TIME", "30", "MS", "PERIOD", "DAY")
        archive = f"daily@{yesterday:%Y-%m-%d}"
        server.run("ZADD", archive, "9", "ann", "8", "kim", "7", "bob")
        server.run("LB.ALTER", archive, "FREEZE")
        server.run("ZADD", "daily", "9", "bob", "8", "kim", "7", "ann", "6", "new")
        page = self.open_board("daily", rows=4)
        moves = "Array.from(document.querySelectorAll('.move'), (it) => [it.className, it.textContent].join())"
        since = " since the last period"
        self.assertEqual(page.value(moves), ["move gained,2up 2" + since, "move,", "move lost,2down 2" + since, "move,"])
        # A move that is seen is shown first.
        page.wait("document.getElementById('live').innerText === 'Live'")
        server.run("ZADD", "daily", "10", "kim")
        page.wait("document.querySelector('.content tbody .who a').innerText === 'kim'")
        self.assertEqual(page.value(moves)[:2], ["move rose,1up 1", "move fell,1down 1"])

    def test_rows_glide_unless_less_motion_is_wanted(self):
        for still in (False, True):
            server.run("ZADD", "arena", "100", "zoe", "90", "ann")
            page = self.open_board("arena", rows=2, still=still)
            page.wait("document.getElementById('live').innerText === 'Live'")
            page.value("window.glides = 0; const animate = Element.prototype.animate;"
                       "Element.prototype.animate = function (...all) { window.glides++;"
                       "return animate.apply(this, all); }; 0")
            server.run("ZINCRBY", "arena", "25", "ann")
            page.wait("document.querySelector('.content tbody .who a').innerText === 'ann'")
            self.assertEqual(page.value("window.glides"), 0 if still else 2)
            server.run("DEL", "arena")

    def test_scores_are_exact_beyond_2_53_and_have_their_decimals(self):
        server.run("LB.CREATE", "wide", "FIELD", "score", "64", "SIGNED")
        server.run("ZADD", "wide", "9007199254740993", "a", "9007199254740992", "b",
                   "-9223372036854775808", "c")
        page = self.open_board("wide", "member=a", rows=3)
        self.assertEqual(page.texts(SCORES), ["9,007,199,254,740,993", "9,007,199,254,740,992",
                                              "\u22129,223,372,036,854,775,808"])
        page.wait("document.querySelector('.member dl.facts')?.innerText.includes('9,007,199,254,740,993')")
        server.run("LB.CREATE", "laps", "FIELD", "lap", "33", "ASC", "SCALE", "3", "TIME", "31", "S")
        server.run("ZADD", "laps", "61.5", "ann", "61.499", "bob")
        page = self.open_board("laps", rows=2)
        self.assertEqual(page.texts(SCORES), ["61.499", "61.500"])
        self.assertIn("less is better", page.text(".facts-line"))

    def test_all_fields_and_the_time_in_the_viewers_zone(self):
        server.run("LB.CREATE", "votes", "FIELD", "agree", "20", "FIELD", "comment", "20", "TIME", "20", "S",
                   "START", "2026-01-01T00:00:00Z")
        server.run("LB.ADD", "votes", "AT", "1767225610000", "7", "3", "ann")
        page = self.open_board("votes", timezone="Asia/Tokyo")
        self.assertEqual(page.texts(".content tbody .score"), ["7"])
        self.assertEqual(page.texts(".content tbody .extra"), ["3"])
        self.assertEqual(page.value("document.querySelector('.content td.reached time').dateTime"),
                         "2026-01-01T00:00:10.000Z")
        self.assertIn("09:00:10", page.value("document.querySelector('.content td.reached time').title"))

    def test_ratings_and_who_is_not_ranked_yet(self):
        server.run("LB.CREATE", "blitz", "RATING", "GLICKO2", "MINGAMES", "2")
        for loser in ("bob", "cid"):
            server.run("LB.MATCH", "blitz", "TEAM", "1", "ann", "TEAM", "1", loser)
        page = self.open_board("blitz")
        self.assertIn("rated by Glicko-2 · ranked from 2 games on", page.text(".facts-line"))
        self.assertEqual(page.texts(".content thead .extra"), ["Rating", "Games", "Won, drawn, lost"])
        rating, games, played = page.texts(".content tbody .extra")
        self.assertRegex(rating, r"^1,750\.33 ± 256\.\d\d$")
        self.assertEqual((games, played), ("2", "2 / 0 / 0"))
        page.go(server.board_url("blitz", "member=ann"))
        page.wait("document.querySelectorAll('.member dt').length >= 6")
        self.assertEqual([text for text in page.texts(".member dt") if text not in ("rating", "Reached")],
                         ["Rating", "Deviation", "Games", "Won, drawn, lost", "Last match"])
        self.assertIn("2 / 0 / 0", page.texts(".member dd"))
        page.key("/", 191, "/")  # who is not on the board is found by the whole name
        page.send("Input.insertText", text="bob")
        page.wait("document.querySelectorAll('[role=option]').length === 1")
        page.key("Enter", 13)
        page.wait("document.querySelector('.member .tag')?.innerText === 'Provisional'")
        self.assertIn("0 / 0 / 1", page.texts(".member dd"))
        server.run("LB.MATCH", "blitz", "RANKS", "1", "1", "TEAM", "1", "bob", "TEAM", "1", "cid")
        page.wait("document.querySelector('.member-place b')?.innerText === '3'", 30)
        page.wait("document.querySelectorAll('.content tbody tr').length === 3")
        self.assertIn("0 / 1 / 1", page.texts(".member dd"))
        page.go(server.board_url("blitz", "member=nobody"))
        page.wait("document.querySelector('.member')?.innerText.includes('is not on this board')")
        server.run("LB.CREATE", "elo", "RATING", "ELO")
        server.run("LB.MATCH", "elo", "TEAM", "1", "ann", "TEAM", "1", "bob")
        self.open_board("elo", rows=2)
        self.assertEqual(self.page.texts(".content thead .extra"), ["Games", "Won, drawn, lost"])
        self.assertEqual(self.page.texts(".content tbody .extra"), ["1", "1 / 0 / 0", "1", "0 / 0 / 1"])

    def test_any_page_by_rank_with_buttons_keys_and_address(self):
        server.run("ZADD", "arena", *sum(([str(1000 - n), f"m{n:04}"] for n in range(120)), []))
        page = self.open_board("arena", rows=25)
        self.assertIn("1 to 25 of 120", page.text(".shown"))
        page.key("n", 78, "n")
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'm0025'")
        self.assertEqual(page.value("location.search"), "?place=26")
        page.type("input[name=place]", "101")
        page.click(".goto button")
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'm0100'")
        self.assertEqual(len(self.names()), 20)
        page.value("document.activeElement.blur()")  # a letter would go into the field
        page.key("p", 80, "p")
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'm0075'")
        page.value("history.back()")
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'm0100'")
        self.open_board("arena", "place=51&count=10", rows=10)
        self.assertEqual(self.names()[0], "m0050")
        page = self.open(server.board_url("arena", "place=5000"))
        page.wait("document.body.innerText.includes('This board ends at place 120.')")

    def test_data_of_members_is_beside_their_names(self):
        server.run("ZADD", "arena", "5", "1", "4", "2")
        server.run("HSET", "user:1", "name", "Ann <b>", "land", "FR")
        page = self.open_board("arena", "hash=user:*&data=name,land", rows=2)
        page.wait("document.querySelector('.content tbody .who a').innerText === 'Ann <b>'")
        self.assertEqual(self.names(), ["Ann <b>", "2"])
        self.assertEqual(page.texts(".content tbody .data bdi"), ["1", "FR"])

    def test_a_board_that_is_frozen_goes_and_comes_is_followed(self):
        server.run("LB.CREATE", "arena", "FIELD", "score", "30")
        server.run("ZADD", "arena", "5", "ann")
        page = self.open_board("arena")
        server.run("LB.ALTER", "arena", "FREEZE")
        page.wait("document.querySelector('.facts-line').innerText.includes('Frozen')")
        server.run("DEL", "arena")
        page.wait("document.querySelector('.content').innerText.includes('There is no such board.')")
        server.run("ZADD", "arena", "6", "bob")
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'bob'")
        page = self.open(server.board_url("absent"))
        page.wait("document.querySelector('h1')?.innerText === 'There is no such board.'")


class Members(PageTest):
    def test_a_member_is_found_as_one_types_with_place_percentile_and_neighbours(self):
        server.run("ZADD", "arena", *sum(([str(1000 - n), f"m{n:04}"] for n in range(201)), []))
        page = self.open_board("arena", rows=25)
        page.key("/", 191, "/")
        page.send("Input.insertText", text="m015")
        page.wait("document.querySelectorAll('[role=option]').length === 10")
        page.key("ArrowDown", 40)
        page.key("Enter", 13)
        page.wait("document.querySelector('.member h2')?.innerText === 'm0151'")
        self.assertIn("member=m0151", page.value("location.search"))
        self.assertEqual(page.text(".member-place b"), "152")
        self.assertEqual(page.text(".standing").replace("\u202f", " "), "ahead of 24.5 %")
        page.wait("document.querySelectorAll('.member tbody tr').length === 11")
        around = page.texts(".member tbody .who a")
        self.assertIn("m0151", around)
        self.assertEqual(around, [f"m{int(around[0][1:]) + n:04}" for n in range(11)])
        self.assertEqual(page.text(".member tr[aria-current] .who"), "m0151")
        page.click(".member p a.button")
        page.wait("document.querySelector('.content tr[aria-current] .who')?.innerText === 'm0151'")
        self.assertEqual(page.value("location.search"), "?place=151&member=m0151")
        server.run("ZADD", "arena", "900", "..")
        page.go(server.board_url("arena", "member=.."))  # no path can have this name
        page.wait("document.querySelector('.member tr[aria-current] .who')?.innerText === '..'")
        self.assertEqual(page.text(".member-place b"), "102")
        page.go(server.board_url("arena", "member=nobody"))
        page.wait("document.querySelector('.member')?.innerText.includes('is not on this board')")

    def test_names_are_shown_whatever_they_are(self):
        long = "n" * 65536
        names = ["<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "עדן", "👩‍👩‍👧", "1", " ", "a/b?c&d=e#f%41+"]
        binary = b"\xff\xfe<b>"
        for score, name in enumerate([*names, binary, long]):
            server.run("ZADD", "<img src=x onerror=alert(3)>", str(100 - score), name)
        server.run("HSET", "user:1", "name", "<img src=x onerror=alert(4)>")
        page = self.open_board("<img src=x onerror=alert(3)>", "hash=user:*&data=name", rows=9)
        shown = page.value("Array.from(document.querySelectorAll('.content tbody .who'),"
                           " (it) => it.querySelector('a, span').textContent)")
        self.assertEqual(shown[:4], names[:4])
        self.assertEqual(shown[4:8], ["<img src=x onerror=alert(4)>", "␣", names[6], "\\xff\\xfe<b>"])
        self.assertLess(len(shown[8]), 200)
        self.assertEqual(page.text("h1"), "<img src=x onerror=alert(3)>")
        # Links of what is no UTF-8, of slashes and the like lead to that member.
        for name in (binary, names[6]):
            page.go(server.board_url("<img src=x onerror=alert(3)>", f"member={encoded(name)}"))
            page.wait("document.querySelector('.content tr[aria-current]')")
            page.wait("document.querySelector('.member-place b')")
        self.assertTrue(page.value("getComputedStyle(document.querySelector('bdi')).unicodeBidi"
                                   " === 'isolate'"))
        page.click(".content .who button")
        self.assertEqual(page.value("document.querySelector('dialog textarea').value.length"), len(long))
        self.assertIn("65,536 bytes", page.text("dialog"))
        self.assertEqual(page.dialogs, [])
        self.assertEqual(page.value("document.querySelectorAll('#main img, #main script').length"), 0)
        self.assertEqual([url for url in page.requested if not url.startswith((server.url(), "data:", "about:"))], [])

    def test_names_that_would_read_alike_are_told_apart(self):
        names = {"admin": "admin", "\u202eadmin": "U+202Eadmin", "ad\u200bmin": "adU+200Bmin", " admin": "␣admin",
                 "admin ": "admin␣", "\u00a0admin": "U+00A0admin", "\u0430dmin": "\u0430dminCyrillic letters",
                 "admin\u2066\u2069": "adminU+2066U+2069", "a\tdmin": "aU+0009dmin", "ad\u3164min": "adU+3164min",
                 "ad  min": "ad␣␣min", "\ufeffadmin": "U+FEFFadmin", "admi\u0301n": "admi\u0301nunusual accents",
                 "\u0430\u0441\u0435": "\u0430\u0441\u0435Cyrillic letters", "\u03b1dmin": "\u03b1dminGreek letters",
                 "a\u2063dmin\U000e0041": "aU+2063dminU+E0041"}
        # What people are called stays as it is.
        plain = ["Лариса", "Ελένη", "ann bob", "👩‍👩‍👧", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "می‌روم", "क्‍ष", "さくらABC", "小明 Li", "Łucja-Noël", "דניאל"]
        names.update({name: name for name in plain})
        for score, name in enumerate(names):
            server.run("ZADD", "arena", str(1000 - score), name)
        page = self.open_board("arena", "count=50", rows=len(names))
        shown = page.value("Array.from(document.querySelectorAll('.content tbody .who > a'), (it) => it.textContent)")
        self.assertEqual(shown, list(names.values()))
        self.assertEqual(len(set(shown)), len(names))
        self.assertEqual(page.value("document.querySelector('.sign').title"), "A character that shows nothing by itself")
        self.assertGreater(page.value("document.querySelector('.sign').getBoundingClientRect().width"), 8)
        # So are boards, what members are called, values of tags, and texts without elements.
        server.run("ZADD", "\u202eboard", "5", "ann")
        server.run("HSET", "user:ann", "name", "\u200badmin")
        page = self.open_board("\u202eboard", "hash=user:*&data=name")
        self.assertEqual((page.value("document.title"), page.text("h1")), ("‹U+202E›board · leaderboard", "U+202Eboard"))
        self.assertEqual(page.value("document.querySelector('.content .who > a').textContent"), "U+200Badmin")
        page.go(server.url("/?match=board"))
        page.wait("document.querySelector('.card h2')?.textContent === 'U+202Eboard'")

    def test_a_name_takes_two_lines_on_a_phone_at_the_most(self):
        name = "The-Most-Honourable-Order-Of-The-Quite-Long-Names-Of-64-Bytes-99"
        self.assertEqual(len(name), 64)
        server.run("ZADD", name, "1234567890", name, "5", "ann")
        page = self.open_board(name, rows=2, width=390, height=800)
        lines = ("(() => { const it = document.querySelector('%s'); const style = getComputedStyle(it);"
                 " return it.getBoundingClientRect().height / parseFloat(style.lineHeight); })()")
        self.assertLess(page.value(lines % ".content tbody .who > a"), 2.2)
        self.assertEqual(page.value("document.querySelector('.content tbody .who > a bdi').title"), name)
        page.click(".content tbody .who > a")  # its card has all of it
        page.wait(f"document.querySelector('.member h2')?.innerText === '{name}'")
        page.go(server.url())
        page.wait("document.querySelector('.card h2 a')")
        self.assertLess(page.value(lines % ".card h2 > a"), 2.2)

    def test_what_strangers_write_is_text_in_every_view(self):
        bad = "<img/src=x/onerror=alert(1)>"
        today = datetime.datetime.now(datetime.timezone.utc)
        day = (today - datetime.timedelta(days=1)).strftime("%Y-%m-%d")
        server.run("LB.CREATE", bad, "FIELD", "score", "30", "TIME", "30", "MS", "TAG", "kind", "8", "PERIOD", "DAY")
        for board in (bad, f"{bad}@{day}"):
            for score, member in enumerate((bad, "</script><script>alert(2)</script>", "javascript:alert(3)", "{{7*7}}")):
                server.run("ZADD", board, score, member)
                server.run(*(["LB.TAG", bad, member, "kind", member] if board == bad else ["PING"]))
        server.run("HSET", f"user:{bad}", bad, bad)
        server.run("CLIENT", "SETNAME", bad)
        server.run("ZADD", bad, "XX", "1", bad)
        name, quoted = encoded(bad), encoded(f"'\">{bad}")
        for path in (f"/?match={name}", f"/?match={quoted}", f"/boards/{name}?member={name}&hash=user:*&data={name}",
                     f"/boards/{name}?view=spread&member={name}", f"/boards/{name}?view=periods", "/server",
                     f"/boards/{quoted}", f"/login?to={quoted}", f"/{quoted}", f"/boards/{name}?view={quoted}&place={quoted}",
                     f"/embed/{name}?title={quoted}&theme={quoted}&lang={quoted}", f"/boards/{name}@{day}",
                     f"/boards/{name}?where=kind:{name}&member={name}", f"/boards/{name}?where={quoted}:{quoted}",
                     f"/boards/{name}?where=kind:{name}&view=periods", f"/embed/{name}?where=kind:{name}",
                     f"/embed/{name}?where={quoted}:{quoted}"):
            page = self.open(server.url(path))
            page.wait("document.querySelector('h1, [role=alert]')")
            page.wait("document.querySelector('#main')")
            page.settle()
            self.assertEqual(page.value("document.querySelectorAll('#main img, #main script, #main [onerror]').length"), 0)
            self.assertEqual(page.value("Array.from(document.querySelectorAll('a[href]')).filter((it) =>"
                                        " !['http:', 'https:'].includes(it.protocol) || it.origin !== location.origin).length"), 0)
            self.assertEqual((page.dialogs, page.errors), ([], []), path)
        server.run("CLIENT", "SETNAME", "")

    def test_a_million_members_on_one_score(self):
        members = 50000 if SHORT else 1000000
        pipe = server.client.pipeline(transaction=False)
        for first in range(0, members, 1000):
            pipe.execute_command("ZADD", "ties", *sum((["7", f"m{n}"] for n in range(first, first + 1000)), []))
            if first % 50000 == 49000:
                pipe.execute()
        page = self.open_board("ties", f"place={members - 9}&member=m{members // 2}", rows=10)
        self.assertEqual(self.names()[-1], f"m{members - 1}")
        page.wait(f"document.querySelector('.member-place b')?.innerText === '{members // 2 + 1:,}'")
        page.click(".tabs a:nth-child(2)")
        page.wait(f"document.querySelector('.inner').innerText.includes('All {members:,} members')")



class Leagues(PageTest):
    def setUp(self):
        super().setUp()
        server.run("LB.LEAGUE", "CREATE", "weekly", "FIELD", "points", "22", "PERIOD", "WEEK", "ROOM", "3", "TIERS", "4",
                   "UP", "1", "DOWN", "1")
        server.run("LB.LEAGUE", "SET", "weekly", "2", "leo")
        for name, points in (("ann", 30), ("bob", 20), ("cid", 10), ("dan", 5), ("leo", 7)):
            server.run("LB.LEAGUE", "ADD", "weekly", str(points), name)

    def test_a_league_leads_to_its_rooms_and_a_room_to_its_league(self):
        page = self.open_board("weekly", rows=5)
        self.assertIn("League: 4 tiers, rooms of 3, 1 go up, 1 go down", page.text(".facts-line"))
        self.assertEqual(self.names()[0], "leo")
        page.click(".tier:last-of-type .room a")
        page.wait("document.querySelector('h1').innerText === '{weekly}:1:1'")
        page.wait("document.querySelectorAll('.content tbody tr').length === 3")
        self.assertEqual(self.names(), ["ann", "bob", "cid"])
        self.assertIn("Room 1 of tier 1 in weekly", page.text(".facts-line").replace("\n", " "))
        page.click(".facts-line a.tag")
        page.wait("document.querySelectorAll('.content tbody tr').length === 5")

    def test_a_league_is_a_page_of_tiers_and_rooms_with_who_goes_up_or_down(self):
        for name in ("kim", "lea"):
            server.run("LB.LEAGUE", "SET", "weekly", "2", name)
            server.run("LB.LEAGUE", "ADD", "weekly", "3" if name == "kim" else "1", name)
        page = self.open_board("weekly", rows=7, hurried=True)
        self.assertEqual(page.texts(".tier h2"), ["Tier 2", "Tier 1"])
        self.assertEqual(page.texts(".tier .tag"), ["3 members", "1 room", "4 members", "2 rooms"])
        self.assertEqual(page.texts(".tier-head > .faint"),
                         ["the best of a room goes up, the last one goes down", "the best of a room goes up"])
        self.assertEqual(page.texts(".room h3 a"), ["Room 1", "Room 1", "Room 2"])
        rows = page.value("Array.from(document.querySelectorAll('.room tbody tr'), (line) => [line.querySelector('.who a').innerText,"
                          " line.querySelector('.way').textContent, line.querySelector('td.score').innerText])")
        up, down = "goes one tier up", "goes one tier down"
        self.assertEqual(rows, [["leo", up, "7"], ["kim", "", "3"], ["lea", down, "1"], ["ann", up, "30"], ["bob", "", "20"],
                                ["cid", "", "10"], ["dan", up, "5"]])
        self.assertEqual(page.value("document.querySelectorAll('.medal').length"), 0)
        # The period is a date, and how long it goes on.
        monday = datetime.datetime.now(datetime.timezone.utc)
        monday -= datetime.timedelta(days=monday.weekday())
        dates = [f"{day:%b} {day.day}" for day in (monday, monday + datetime.timedelta(days=7))]
        self.assertRegex(page.text(".league-period"), rf"{dates[0]}(, \d+)? to {dates[1]}")
        self.assertRegex(page.text(".facts-line"), r"\d.(d|h|min) .*left")
        self.assertEqual(page.texts(".tabs a"), ["Tiers and rooms", "All members"])
        server.run("LB.LEAGUE", "ADD", "weekly", "INCR", "50", "cid")  # it is followed
        page.wait("document.querySelector('.tier:last-of-type .room tbody .who a').innerText === 'cid'", limit_s=30)
        # Nor does a member's card, the list of members or a frame say "period 60,432".
        hours = int((monday.replace(hour=0, minute=0, second=0, microsecond=0)
                     - datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)).total_seconds() // 3600)
        page.go(server.board_url("weekly", "view=members&member=ann"))
        page.wait("document.querySelectorAll('.content tbody tr').length === 7 && document.querySelector('.member dl.facts')")
        self.assertEqual(page.texts(".member dl.facts dd")[:2], ["1", "1"])
        self.assertIn(dates[0], page.texts(".member dl.facts dd")[2])
        self.assertEqual(page.value("document.querySelectorAll('.medal').length"), 0)
        self.assertIn(dates[0], page.text(".content tbody td.extra"))
        self.assertNotIn(f"{hours:,}", page.text())
        page.click(".member p a")
        page.wait("document.querySelector('h1').innerText === '{weekly}:1:1'")
        page.go(server.url("/embed/weekly"))
        page.wait("document.querySelectorAll('tbody tr').length === 7")
        self.assertNotIn(f"{hours:,}", page.text())
        self.assertEqual(page.value("document.querySelectorAll('.medal').length"), 0)

    def test_a_league_of_many_tiers_reads_few_rooms_at_first(self):
        server.run("LB.LEAGUE", "CREATE", "tall", "FIELD", "points", "22", "PERIOD", "WEEK", "ROOM", "1", "TIERS", "200", "UP", "1",
                   "DOWN", "0")
        for n in range(200):
            server.run("LB.LEAGUE", "SET", "tall", 1 + n // 5 * 5, f"m{n}")
            server.run("LB.LEAGUE", "ADD", "tall", "1", f"m{n}")
        page = self.open_board("tall")
        self.assertEqual(len(page.texts(".tier h2")), 40)
        self.assertEqual(page.value("document.querySelectorAll('.room').length"), 15)
        self.assertIn("Nobody is in 160 more tiers.", page.text(".league"))
        page.click(".tier[data-tier='1'] [data-key='rooms 1']")
        page.wait("document.querySelectorAll(\".tier[data-tier='1'] .room\").length === 5")
        page.click(".tier[data-tier='1'] [data-key='rooms 1']")
        page.wait("document.querySelectorAll('.room').length === 15")

    def test_a_period_is_a_date_in_the_leagues_zone(self):
        server.run("LB.LEAGUE", "CREATE", "far", "FIELD", "points", "22", "PERIOD", "WEEK", "TZ", "+09:00", "ROOM", "3", "TIERS", "4",
                   "UP", "1", "DOWN", "1")
        server.run("LB.LEAGUE", "ADD", "far", "1", "ann")
        page = self.open_board("far", timezone="America/New_York")
        monday = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=9)))
        monday -= datetime.timedelta(days=monday.weekday())
        self.assertIn(f"{monday:%b} {monday.day}", page.text(".league-period"))
        self.assertIn("weekly", page.text(".facts-line"))

    def test_a_visitor_without_the_right_to_its_tiers_sees_the_members_of_a_league(self):
        own = WebServer("--web-public", "weekly", password="secret")
        try:
            own.run("LB.LEAGUE", "CREATE", "weekly", "FIELD", "points", "22", "PERIOD", "WEEK", "ROOM", "3", "TIERS", "4",
                    "UP", "1", "DOWN", "1")
            own.run("LB.LEAGUE", "ADD", "weekly", "1", "ann")
            page = self.open(own.board_url("weekly"))
            page.wait("document.querySelector('.content tbody .who a')?.innerText === 'ann'")
            self.assertEqual(page.value("location.pathname"), "/boards/weekly")
            self.assertEqual(page.value("document.querySelectorAll('.medal').length"), 0)
        finally:
            own.stop()

    def test_a_league_of_many_rooms_shows_some_at_a_time(self):
        for n in range(30):
            server.run("LB.LEAGUE", "ADD", "weekly", "1", f"m{n:02}")
        page = self.open_board("weekly", rows=19)
        lowest = ".tier[data-tier='1'] "
        self.assertEqual(page.texts(f"{lowest}.room h3 a"), [f"Room {n}" for n in range(1, 7)])
        page.click(f"{lowest}[data-key='next 1']")
        page.wait(f"document.querySelector(\"{lowest}.room h3 a\").innerText === 'Room 7'")
        self.assertEqual(page.texts(f"{lowest}.room h3 a"), [f"Room {n}" for n in range(7, 13)])
        self.assertEqual(page.value("document.activeElement.dataset.key"), "previous 1")

    def test_who_goes_up_and_down_is_marked(self):
        page = self.open_board("{weekly}:2:1")
        ways = lambda: page.value("Array.from(document.querySelectorAll('.content tbody tr'), (line) =>"
                                  " line.classList.contains('goes-up') ? 1 :"
                                  " line.classList.contains('goes-down') ? -1 : 0)")
        self.assertEqual(ways(), [1])
        self.open_board("{weekly}:1:1", rows=3)
        page = self.page
        self.assertEqual(ways(), [1, 0, 0])  # the lowest tier
        server.run("LB.LEAGUE", "SET", "weekly", "2", "ann")
        server.run("LB.LEAGUE", "ADD", "weekly", "1", "ann")
        self.open_board("{weekly}:2:1", rows=2)
        page = self.page
        self.assertEqual(ways(), [1, -1])
        self.assertEqual(page.value("document.querySelector('.goes-down td.rank').title"), "goes one tier down")


class Held(PageTest):
    def test_what_is_held_is_a_list_with_the_line_that_approves_it(self):
        names = ("bob", "\u202eadmin \"x\"", b"\xff")
        server.run("LB.CREATE", "b c", "FIELD", "score", "32")
        server.run("ZADD", "b c", "7", "ann")
        server.run("LB.ALTER", "b c", "HOLD", "ALL", "OVER", "1000", "TOP", "1")
        page = self.open_board("b c")
        page.wait("document.querySelectorAll('.tabs a').length === 3")
        page.click(".tabs a:last-child")
        page.wait("document.querySelector('.held p[role=status]')?.innerText === 'Nothing is held.'")
        server.run("ZADD", "b c", "9", "carl")
        for n, name in enumerate(names):
            server.run("ZADD", "b c", 5000 + n, name)
        page.wait("document.querySelectorAll('.held tbody tr').length === 4")
        page.wait("document.querySelector('.tabs a:last-child').innerText === 'Held results (4)'")
        self.assertEqual(page.texts(".held td.values"), ["9", "5,000", "5,001", "5,002"])
        self.assertEqual(page.texts(".held td:nth-child(3)"), ["among the first"] + ["beyond the bound"] * 3)
        self.assertEqual(page.texts(".held td:nth-child(5)"), ["default"] * 4)
        lines = page.texts(".held code")
        self.assertEqual(lines, ['LB.APPROVE "b c" carl 1', 'LB.APPROVE "b c" bob 2',
                                 'LB.APPROVE "b c" "\\xe2\\x80\\xaeadmin \\"x\\"" 3', 'LB.APPROVE "b c" "\\xff" 4'])
        page.click(".held button.small")
        self.assertEqual(page.value("getSelection().toString()"), lines[0])
        for line in lines[1:]:  # as it is copied
            told = subprocess.run(["redis-cli", "-p", str(server.port)], input=line, capture_output=True, text=True)
            self.assertEqual(told.stdout.strip(), "1", told)
        page.wait("document.querySelectorAll('.held tbody tr').length === 1")
        self.assertEqual(server.run("ZCARD", "b c"), 4)

    def test_a_part_is_shown_and_more_on_demand(self):
        server.run("LB.CREATE", "many", "FIELD", "score", "32", "HOLD", "ALL", "OVER", "1000")
        server.run("LB.ADD", "many", *sum(([5000 + n, f"m{n}"] for n in range(250)), []))
        page = self.open(server.board_url("many", "view=held"))
        for shown in (100, 200, 250):
            page.wait(f"document.querySelectorAll('.held tbody tr').length === {shown}")
            self.assertEqual(page.value("document.querySelector('.held > button').hidden"), shown == 250)
            page.value("document.querySelector('.held > button').click()")

    def test_who_may_not_see_it_has_no_list(self):
        own = WebServer("--web-public", "*", password="secret")
        try:
            own.run("LB.CREATE", "arena", "FIELD", "score", "32", "HOLD", "ALL", "OVER", "1000")
            own.run("ZADD", "arena", "7", "ann", "5000", "bob")
            own.run("ACL", "SETUSER", "viewer", "on", ">own", "%R~*", "-@all", "+lb.list", "+lb.info", "+lb.range", "+lb.get")
            own.run("ACL", "SETUSER", "judge", "on", ">own", "%R~*", "-@all", "+lb.list", "+lb.info", "+lb.range", "+lb.get",
                    "+lb.held")
            page = self.open_board_of(own)
            self.assertEqual(page.texts(".tabs a"), ["Ranking", "Distribution"])
            page.go(own.board_url("arena", "view=held"))
            page.wait("document.querySelector('#user')")
            for user, heading in (("viewer", "Your user may not see this."), ("judge", "arena")):
                page.go(own.url("/login?to=/boards/arena%3Fview%3Dheld"))
                page.wait("document.querySelector('#user')")
                page.type("#user", user)
                page.type("#password", "own")
                page.click(".login button")
                page.wait(f"document.querySelector('h1')?.innerText === '{heading}'")
                self.assertEqual("5,000" in page.text("#main"), user == "judge")
                page.click(".tools button:last-child")
                page.wait("document.querySelector('.tools a')")
        finally:
            own.stop()

    def open_board_of(self, own):
        page = self.open(own.board_url("arena"))
        page.wait("document.querySelector('.content tbody .who a')?.innerText === 'ann'")
        return page


class Windows(PageTest):
    def test_a_window_is_shown_beside_the_period(self):
        server.run("LB.CREATE", "day", "FIELD", "points", "22", "PERIOD", "HOUR", "WINDOW", "24", "BEST")
        server.run("LB.ADD", "day", "5", "ann")
        self.open_board("day", rows=1)
        self.assertIn("best of the last 24 periods", self.page.text(".facts-line"))


class Groups(PageTest):
    """Boards with tags: the selectors, and what is read inside a group."""
    SELECT = "document.querySelector('.groups select[data-key=\"tag {}\"]')"

    def race(self, *more):
        server.run("LB.CREATE", "race", "FIELD", "score", "33", "TAG", "country", "8", "TAG", "class", "4", *more)
        for score, member, country, kind in ((900, "ann", "DE", "mage"), (850, "eva", "FR", "mage"), (800, "bob", "DE", "mage"),
                                             (700, "kim", "DE", "rogue"), (600, "zoe", "", "rogue")):
            server.run("LB.ADD", "race", "TAG", "country", country, "TAG", "class", kind, score, member)

    def select(self, tag):
        return self.SELECT.format(tag)

    def options(self, tag):
        return self.page.value(f"Array.from({self.select(tag)}.options, (it) => it.text)")

    def choose(self, tag, text):
        self.page.wait(f"Array.from({self.select(tag)}.options).some((it) => it.text === {json.dumps(text)})")
        self.page.value(f"{self.select(tag)}.value = Array.from({self.select(tag)}.options).find((it) =>"
                        f" it.text === {json.dumps(text)}).value; {self.select(tag)}.dispatchEvent(new Event('change'))")

    def wait_names(self, *names):
        names = json.dumps(names, separators=(",", ":"))
        self.page.wait("JSON.stringify(Array.from(document.querySelectorAll('.content tbody .who a'),"
                       f" (it) => it.innerText)) === {json.dumps(names)}")

    def test_a_selector_for_each_tag_reads_inside_the_group(self):
        self.race()
        page = self.open_board("race", rows=5)
        self.assertEqual(page.texts(".groups label bdi"), ["country", "class"])
        self.assertEqual(self.options("country"), ["All", "DE (3)", "FR (1)", "(none) (1)"])
        self.assertEqual(self.options("class"), ["All", "mage (3)", "rogue (2)"])
        self.assertFalse(page.value("document.querySelector('.groups a').checkVisibility()"))
        self.choose("country", "DE (3)")
        self.wait_names("ann", "bob", "kim")
        self.assertEqual(page.value("location.search"), "?where=country:DE")
        self.assertEqual(page.texts(".content tbody .place"), ["1", "2", "3"])
        self.assertIn("1 to 3 of 3", page.text(".shown"))
        page.wait("document.getElementById('spoken').textContent === '3 members'")
        # What there would be with another class, or with another country.
        page.wait(f"{self.select('class')}.options[1].text === 'mage (2)'")
        self.choose("class", "mage (2)")
        self.wait_names("ann", "bob")
        self.assertEqual(page.value("location.search"), "?where=country:DE&where=class:mage")
        page.wait(f"{self.select('country')}.options[1].text === 'DE (2)'")
        page.send("Page.reload")
        self.wait_names("ann", "bob")
        self.assertEqual(page.value(f"[{self.select('country')}.value, {self.select('class')}.value]"), ["=DE", "=mage"])
        page.value("history.back()")
        self.wait_names("ann", "bob", "kim")
        self.assertEqual(page.value(f"[{self.select('country')}.value, {self.select('class')}.value]"), ["=DE", ""])
        page.click(".groups a")  # everybody
        self.wait_names("ann", "eva", "bob", "kim", "zoe")
        self.assertEqual(page.value("location.search"), "")
        self.choose("country", "(none) (1)")
        self.wait_names("zoe")
        self.assertEqual(page.value("location.search"), "?where=country:")
        self.choose("country", "All")
        self.wait_names("ann", "eva", "bob", "kim", "zoe")

    def test_a_board_without_tags_has_no_selectors(self):
        server.run("ZADD", "arena", "5", "ann")
        page = self.open_board("arena")
        self.assertFalse(page.value("document.querySelector('.groups').checkVisibility()"))
        self.assertEqual(page.value("document.querySelectorAll('.groups select, .groups input').length"), 0)

    def test_a_group_is_followed(self):
        self.race()
        page = self.open_board("race", "where=country:DE", rows=3, hurried=True)
        page.wait("document.getElementById('live').innerText === 'Live'")
        server.run("LB.TAG", "race", "eva", "country", "DE")
        self.wait_names("ann", "eva", "bob", "kim")
        server.run("LB.ADD", "race", "TAG", "country", "FR", "950", "ann")
        self.wait_names("eva", "bob", "kim")
        server.run("ZADD", "race", "860", "kim")
        self.wait_names("kim", "eva", "bob")
        self.assertEqual(page.texts(".content tbody .place"), ["1", "2", "3"])
        # The values come by themselves, too.
        server.run("LB.TAG", "race", "zoe", "country", "NL")
        page.wait(f"Array.from({self.select('country')}.options).some((it) => it.text === 'NL (1)')")
        self.assertEqual(page.value(f"{self.select('country')}.value"), "=DE")

    def test_selectors_are_used_by_keys_and_keep_the_focus(self):
        self.race()
        page = self.open_board("race", rows=5)
        page.value(f"{self.select('country')}.focus()")
        for key, code, names in (("f", 70, ("eva",)), ("d", 68, ("ann", "bob", "kim"))):
            page.key(key, code, key)
            self.wait_names(*names)
            page.settle()
            self.assertTrue(page.value(f"document.activeElement === {self.select('country')}"))
            time.sleep(1.2)  # letters in quick succession are one word
        self.assertEqual(page.value("location.search"), "?where=country:DE")

    def test_an_address_may_name_several_values_and_what_is_not_there(self):
        self.race()
        page = self.open_board("race", "where=country:FR&where=COUNTRY%3aDE&where=class:mage", rows=3)
        self.wait_names("ann", "eva", "bob")
        self.assertEqual(self.options("country")[:2], ["All", "FR, DE"])
        self.assertEqual(page.value(f"{self.select('country')}.selectedOptions[0].text"), "FR, DE")
        self.choose("class", "rogue (1)")
        self.wait_names("kim")
        page = self.open(server.board_url("race", "where=country:NL"))
        page.wait("document.querySelector('.content')?.innerText.includes('Nobody is in this group.')")
        self.assertEqual(page.value(f"{self.select('country')}.selectedOptions[0].text"), "NL")
        for query, word in (("where=clan:x", "'clan'"), ("where=country", "TAG:VALUE"), ("where=%3Cb%3E:%3Ci%3E", "'<b>'"),
                            ("where=country:" + "x" * 65, "64 bytes")):
            page = self.open(server.board_url("race", query + "&member=ann"))
            page.wait("document.querySelector('h1')?.innerText === 'This board has no such group.'")
            self.assertIn(word, page.text("#main"))
            page.click("#main a.button")
            self.wait_names("ann", "eva", "bob", "kim", "zoe")
            self.assertEqual(page.value("location.search"), "?member=ann")

    def test_a_tag_that_goes_is_told(self):
        self.race()
        page = self.open_board("race", "where=country:DE", rows=3, hurried=True)
        page.wait("document.getElementById('live').innerText === 'Live'")
        server.run("LB.ALTER", "race", "TAG", "country", "NONE")
        page.wait("document.querySelector('.content').innerText.includes('This board has no such group.')")
        page.click(".groups a")
        self.wait_names("ann", "eva", "bob", "kim", "zoe")
        page.wait("document.querySelectorAll('.groups select').length === 1")

    def test_a_member_has_its_place_in_the_group(self):
        self.race()
        page = self.open_board("race", "where=country:DE&member=kim", rows=3)
        page.wait("document.querySelector('.member-place b')?.innerText === '3'")
        self.assertIn("of 3", page.text(".member-place"))
        self.assertEqual(page.texts(".member tbody .who"), ["ann", "bob", "kim"])
        facts = page.value("Array.from(document.querySelectorAll('.member dl.facts dt'), (it) =>"
                           " [it.innerText, it.nextSibling.innerText])")
        self.assertEqual(facts[1:], [["country", "DE"], ["class", "rogue"]])
        page.value("Array.from(document.querySelectorAll('.member dl.facts a')).find((it) => it.innerText === 'rogue').click()")
        self.wait_names("kim", "zoe")
        page.wait("document.querySelector('.member-place b')?.innerText === '1'")
        self.assertEqual(page.value("location.search"), "?member=kim&where=class:rogue")
        self.choose("class", "mage (3)")
        page.wait("document.querySelector('.member').innerText.includes('is not in this group')")
        page.type("input[type=search]", "e")
        page.wait("document.querySelectorAll('[role=option]').length === 1")
        self.assertEqual(page.text("[role=option] .found-place"), "2")
        page.key("Enter", 13)
        page.wait("document.querySelector('.member h2')?.innerText === 'eva'")
        page.wait("document.querySelector('.member-place b')?.innerText === '2'")

    def test_the_distribution_and_the_past_periods_are_those_of_the_group(self):
        today = datetime.datetime.now(datetime.timezone.utc)
        before = (today - datetime.timedelta(days=1)).strftime("race@%Y-%m-%d")
        self.race("PERIOD", "DAY")
        server.run("LB.CREATE", before, "FIELD", "score", "33", "TAG", "country", "8")
        server.run("LB.ADD", before, "TAG", "country", "DE", "9", "uwe")
        server.run("LB.ADD", before, "TAG", "country", "FR", "8", "luc")
        server.run("LB.ALTER", before, "FREEZE")
        page = self.open(server.board_url("race", "view=spread&where=country:DE"))
        page.wait("document.querySelectorAll('.spread rect.bar').length > 2")
        counts = ("Array.from(document.querySelectorAll('.inner table tbody tr'), (line) =>"
                  " Number(line.cells[2].textContent)).reduce((a, b) => a + b)")
        self.assertEqual(page.value(counts), 3)
        self.choose("country", "FR (1)")
        page.wait("document.querySelector('.inner').innerText.includes('All 1 member')")
        page.click(".tabs a:nth-child(3)")
        page.wait("document.querySelectorAll('.period').length === 2")
        self.assertEqual(page.texts(".period tbody .who"), ["eva", "luc"])
        self.choose("country", "DE (3)")
        page.wait("document.querySelector('.period:nth-child(2) tbody .who')?.innerText === 'uwe'")
        self.assertEqual(page.texts(".period tbody .who"), ["ann", "bob", "kim", "uwe"])
        page.click(".period:nth-child(2) h2 a")
        self.wait_names("uwe")
        self.assertEqual(page.value("location.search"), "?where=country:DE")

    def test_a_value_that_is_not_listed_is_typed(self):
        server.run("LB.CREATE", "clans", "FIELD", "score", "33", "TAG", "clan", "12")
        pipe = server.client.pipeline(transaction=False)
        for n in range(150):
            pipe.execute_command("LB.ADD", "clans", "TAG", "clan", f"clan {n:03}", 1000 - n, f"m{n}", 100 - n // 2, f"other{n}")
        pipe.execute()
        page = self.open_board("clans", rows=25)
        self.assertEqual((len(self.options("clan")), self.options("clan")[-1]), (102, "Another one…"))
        self.choose("clan", "Another one…")
        page.wait("document.activeElement === document.querySelector('.groups input')")
        page.send("Input.insertText", text="clan 149")
        page.key("Enter", 13, "\r")
        self.wait_names("m149", "other149")
        self.assertEqual(page.value("location.search"), "?where=clan:clan%20149")
        self.assertEqual(page.value(f"{self.select('clan')}.selectedOptions[0].text"), "clan 149")
        self.choose("clan", "Another one…")
        page.key("Escape", 27)
        self.assertTrue(page.value(f"document.activeElement === {self.select('clan')}"))
        self.assertEqual(page.value(f"[{self.select('clan')}.value, document.querySelector('.groups input').checkVisibility()]"),
                         ["=clan%20149", False])

    def test_values_are_text_whatever_they_are(self):
        values = ["<img src=x onerror=alert(1)>", b"\xff\xfe<b>", "a:b&where=c:d#%41+", "עדן", " ", "x" * 64, "\"'</option></select>"]
        server.run("LB.CREATE", "odd", "FIELD", "score", "33", "TAG", "constructor", "8", "TAG", "toString", "4")
        for n, value in enumerate(values):
            server.run("LB.ADD", "odd", "TAG", "constructor", value, 100 - n, f"m{n}", *(w for i in range(n) for w in (50, f"x{n}-{i}")))
        page = self.open_board("odd", "member=m0", rows=7)
        shown = self.options("constructor")
        self.assertEqual(shown, ["All", *(f"{text} ({n + 1})" for n, text in reversed(list(enumerate(
            [values[0], "\\xff\\xfe<b>", values[2], "\u2068עדן\u2069", "␣", "x" * 40 + "…", values[6]]))))])
        for n, text in enumerate(reversed(shown[1:])):
            self.choose("constructor", text)
            self.wait_names(f"m{n}", *(f"x{n}-{i}" for i in range(n)))
            page.send("Page.reload")
            self.wait_names(f"m{n}", *(f"x{n}-{i}" for i in range(n)))
            self.assertEqual(page.value(f"{self.select('constructor')}.selectedOptions[0].text"), text)
            page.go(server.board_url("odd", f"member=m{n}"))
            page.wait("document.querySelector('.member dl.facts a')")
            page.click(".member dl.facts a")
            self.wait_names(f"m{n}", *(f"x{n}-{i}" for i in range(n)))
            page.go(server.url(f"/embed/odd?where=constructor:{encoded(values[n])}"))
            page.wait(f"document.querySelectorAll('tbody tr').length === {n + 1}")
            page.go(server.board_url("odd"))
            self.page.wait("document.querySelectorAll('.content tbody tr').length >= 25")
        self.assertEqual(page.dialogs, [])
        self.assertEqual(page.value("document.querySelectorAll('#main img, #main script').length"), 0)


class Spread(PageTest):
    def test_the_histograms_numbers_are_those_of_the_board(self):
        scores = [n * n for n in range(500)]
        server.run("ZADD", "arena", *sum(([str(score), f"m{score}"] for score in scores), []))
        page = self.open(server.board_url("arena", "view=spread&member=m10000"))
        page.wait("document.querySelectorAll('.spread rect.bar').length > 8")
        rows = page.value("Array.from(document.querySelectorAll('.inner table tbody tr'), (line) =>"
                          " Array.from(line.cells, (cell) => Number(cell.textContent.replaceAll(',', ''))))")
        self.assertEqual(sum(row[2] for row in rows), 500)
        for index, (low, high, members) in enumerate(rows):
            is_last = index == len(rows) - 1
            self.assertEqual(members, sum(low <= score and (score < high or is_last and score == high)
                                          for score in scores), rows[index])
        mine = page.value("Array.from(document.querySelectorAll('.spread rect.bar'))"
                          ".findIndex((bar) => bar.classList.contains('you'))")
        self.assertLessEqual(rows[mine][0], 10000)
        self.assertGreater(rows[mine][1], 10000)
        median = server.run("LB.QUANTILE", "arena", "0.5")[0][0].decode()
        text = page.value("Array.from(document.querySelectorAll('.quantiles > div'))"
                          ".find((it) => it.innerText.includes('Median')).innerText")
        self.assertIn(median, text)
        self.assertIn(f"{int(median[1:]):,}", text)


    def test_the_axes_and_the_marks_have_labels(self):
        server.run("ZADD", "arena", *sum(([str(n), f"m{n}"] for n in range(1000)), []))
        page = self.open(server.board_url("arena", "view=spread&member=m500"))
        page.wait("document.querySelectorAll('.spread rect.bar.you').length === 1")
        self.assertEqual(page.texts(".content .axis-title"), ["Members", "Score"])
        ticks = [int(text.replace(",", "")) for text in page.texts(".content .y-axis span")]
        self.assertEqual((ticks[0], len(ticks) >= 3), (0, True))
        rules = page.value("Array.from(document.querySelectorAll('.content line.rule'), (it) => it.getBoundingClientRect().top)")
        self.assertEqual(len(rules), len(ticks))
        # A bar is as high as its axis says.
        bar, height = page.value("(() => { const bars = Array.from(document.querySelectorAll('.content rect.bar'));"
                                 " const index = bars.findIndex((it) => it.classList.contains('you'));"
                                 " return [Number(document.querySelectorAll('.inner table tbody tr')[index].cells[2].textContent),"
                                 " bars[index].getBoundingClientRect().height]; })()")
        self.assertAlmostEqual(height, (rules[0] - rules[1]) / (ticks[1] - ticks[0]) * bar, delta=2)
        self.assertEqual(sorted(page.texts(".content .mark-label")), ["Median", "Top 10\u202f%", "Top 90\u202f%", "m500"])
        page.click(".spacings [data-key=log]")
        page.wait("document.querySelectorAll('.content .axis-title')[1].innerText.includes('by decades')")
        self.assertIn("wider ranges", page.texts(".content .axis-title")[1])

    def test_a_skewed_board_has_more_than_one_bar(self):
        members = 20000 if SHORT else 1000000
        pipe = server.client.pipeline(transaction=False)
        for first in range(0, members, 1000):
            # As games have them: a few are far ahead of all others.
            pipe.execute_command("ZADD", "arena", *sum(([str(int(50 * (members / (n + 1)) ** 1.2)), f"m{n}"]
                                                        for n in range(first, first + 1000)), []))
            if first % 50000 == 0:
                pipe.execute()
        pipe.execute()
        shares = ("Array.from(document.querySelectorAll('.inner table tbody tr'), (line) =>"
                  f" Number(line.cells[2].textContent.replaceAll(',', '')) / {members})")
        page = self.open(server.board_url("arena", "view=spread"))
        page.wait("document.querySelectorAll('.spread rect.bar').length > 12")
        self.assertEqual(page.texts(".spacings [aria-pressed=true]"), ["By decades"])
        self.assertLess(max(page.value(shares)), 0.5)
        self.assertAlmostEqual(sum(page.value(shares)), 1)
        page.click(".spacings [data-key=even]")
        page.wait("document.querySelector('.spacings [data-key=even]').getAttribute('aria-pressed') === 'true'")
        page.wait(f"Math.max(...{shares}) > 0.9")
        page.click(".spacings [data-key=log]")
        page.wait(f"Math.max(...{shares}) < 0.5")


class Named(PageTest):
    """Members are called by what their hashes say."""
    DATA = "hash=user:*&data=name,country"

    def people(self, board, count):
        pipe = server.client.pipeline(transaction=False)
        for n in range(count):
            pipe.execute_command("ZADD", board, count - n, f"id{n:05}")
            pipe.execute_command("HSET", f"user:id{n:05}", "name", f"Player {n}", "country", "DE")
        pipe.execute_command("HSET", "user:id00003", "name", "Zoë Łuc", "country", "NL")
        pipe.execute_command("HSET", f"user:id{count - 1:05}", "name", "Zora the last")
        pipe.execute()

    def test_members_are_found_by_what_they_are_called(self):
        self.people("arena", 3000)
        page = self.open_board("arena", self.DATA, rows=25)
        page.type("input[type=search]", "zo")
        page.wait("document.querySelectorAll('[role=option]').length === 2")
        names = page.texts("[role=option] .found-name")
        self.assertEqual([name.split("id")[0].strip() for name in names], ["Zoë Łuc", "Zora the last"])
        page.key("ArrowDown", 40)
        page.key("Enter", 13)
        page.wait("document.querySelector('.member h2')?.innerText === 'Zora the last'")
        self.assertEqual(page.text(".member .data").split("\n")[0], "id02999")
        self.assertIn("member=id02999", page.value("location.search"))
        page.type("input[type=search]", "id0000")  # and by their ids, as before
        page.wait("document.querySelectorAll('[role=option] .found-place').length === 10")  # and perhaps "Look up exactly"
        page.value("document.querySelector('input[type=search]').value = ''")
        page.type("input[type=search]", "łuc")
        page.wait("document.querySelector('.found').innerText.includes('No name')")  # letters beyond ASCII have their case

    def test_quantiles_and_the_distribution_say_what_members_are_called(self):
        self.people("arena", 201)
        page = self.open(server.board_url("arena", f"view=spread&member=id00003&{self.DATA}"))
        page.wait("document.querySelector('.quantiles')")
        self.assertEqual(page.text(".quantiles dd a"), "Player 0")
        self.assertIn("Zoë Łuc is here", page.text(".you-here"))

    def test_what_is_beside_the_board_is_filled(self):
        self.people("arena", 201)
        page = self.open_board("arena", self.DATA, rows=25, width=1440, height=900)
        page.wait("document.querySelectorAll('aside .bars .bar').length > 8")
        self.assertIn("Median", page.text("aside .facts"))
        page.click("aside .glance [data-key=spread]")
        page.wait("document.querySelectorAll('aside .glance tbody tr').length === 10")
        self.assertEqual(page.texts("aside .glance .who a")[3], "Zoë Łuc")
        page.click("aside .glance .who a")
        page.wait("document.querySelector('.member h2')?.innerText === 'Player 0'")
        self.assertEqual(page.value("document.querySelectorAll('.glance').length"), 0)
        page.click(".member-head a")
        page.wait("document.querySelector('.glance')")
        page = self.open_board("arena", self.DATA, rows=25, width=390, height=800)
        self.assertEqual(page.value("document.querySelectorAll('.glance').length"), 0)


class Pictures(unittest.TestCase):
    """Members' pictures: those of the page's own host and of web-avatars, and no others."""

    class Images(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "image/svg+xml")
            self.end_headers()
            self.wfile.write(b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')

        def log_message(self, *_):
            pass

    def setUp(self):
        images = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.Images)
        threading.Thread(target=images.serve_forever, daemon=True).start()
        self.addCleanup(images.server_close)
        self.addCleanup(images.shutdown)
        self.images_port = images.server_address[1]
        self.server = WebServer("--web-data", "user:* face name", "--web-avatars",
                                f"face http://localhost:{self.images_port}", password="sesame")
        self.addCleanup(self.server.stop)

    def test_pictures_come_from_where_they_may(self):
        allowed = f"http://localhost:{self.images_port}/ann.svg"
        faces = {"own": "/icon.svg", "allowed": allowed, "none": "", "absent": "/absent.png",
                 "api": "/api/v1/boards", "other": f"http://127.0.0.1:{self.images_port}/ann.svg",
                 "script": "javascript:alert(1)", "odd": "http://[", "data": "data:image/svg+xml,<svg/>"}
        for score, (name, face) in enumerate(faces.items()):
            self.server.run("ZADD", "arena", 100 - score, name)
            self.server.run("HSET", f"user:{name}", "face", face, "name", name.upper())
        page = browser.open(self.server.url("/login?to=/boards/arena%3Fmember%3Down"))
        page.wait("document.querySelector('#user')")
        # Nobody has to know what the user of a lone password is called.
        self.assertIn("default", page.text("#user-hint"))
        page.type("#password", "sesame")
        page.click(".login button")
        page.wait("document.querySelectorAll('.content tbody tr').length === 9")
        self.assertEqual(page.texts(".content tbody .who"), [name.upper() for name in faces])
        page.wait("document.querySelector('.member h2').innerText === 'OWN'")
        seen = ("Array.from(document.querySelectorAll('.content tbody tr'), (line) => [line.querySelector('.who').innerText,"
                " line.querySelector('.face img')?.src]).filter(([, src]) => src)")
        own = self.server.url("/icon.svg")
        # The absent one has gone.
        page.wait(f"JSON.stringify({seen}) === {json.dumps(json.dumps([['OWN', own], ['ALLOWED', allowed]], separators=(',', ':')))}")
        self.assertEqual(page.value("Array.from(document.querySelectorAll('.content .face'), (it) => it.innerText)"),
                         [name[0].upper() for name in faces])
        self.assertEqual(page.value("document.querySelector('.member-head .face img').src"), own)
        asked = {url for url in page.requested if not url.startswith(self.server.url())}
        self.assertEqual({url for url in asked if url.startswith("http")}, {allowed})
        self.assertEqual(page.errors, [])
        page.close()

    def test_what_is_no_field_or_origin_is_refused_at_start(self):
        for wrong in ("image", "face https://a.example/x", "face 'unsafe-inline'", "face https://a;script-src *", "face a.example"):
            with self.assertRaises(AssertionError) as told:
                WebServer("--web-data", "user:* face name", "--web-avatars", wrong).stop()
            self.assertIn("web-avatars: a field of web-data", str(told.exception))


class Server(PageTest):
    def test_figures_plots_and_slow_commands(self):
        server.run("ZADD", "arena", "5", "a slow one")
        page = self.open(server.url("/server"))
        page.wait("document.querySelectorAll('.tile').length >= 8")
        self.assertNotRegex(page.text("#main"), "undefined|NaN|null")
        page.wait("document.querySelector('.plain')?.innerText.includes('a slow one')")
        self.assertGreaterEqual(page.value("document.querySelectorAll('.plot').length"), 5)
        page.wait("document.getElementById('live').innerText === 'Live'")

    def test_words_of_slow_commands_keep_their_order(self):
        server.run("ZADD", "ליגה", "1", "ann")
        server.run("LB.QUANTILE", "ליגה", "1", "0.5", "0.25")
        page = self.open(server.url("/server"), width=1280)
        line = "Array.from(document.querySelectorAll('.command code')).find((it) => it.innerText.includes('QUANTILE'))"
        page.wait(line)
        self.assertEqual(page.value(f"{line}.innerText"), "LB.QUANTILE ליגה 1 0.5 0.25")
        places = page.value(f"Array.from({line}.querySelectorAll('bdi'), (it) => it.getBoundingClientRect().x)")
        self.assertEqual((len(places), places), (5, sorted(places)))
        server.run("ZINCRBY", "ליגה", "1", "\u202eadmin")  # what shows nothing is seen here, too
        page.wait("Array.from(document.querySelectorAll('.command code')).some((it) => it.innerText.includes('U+202Eadmin'))")

    def test_the_role_the_master_and_the_replicas(self):
        page = self.open(server.url("/server"))
        tile = "Array.from(document.querySelectorAll('.tile')).find((it) => it.innerText.startsWith('Replication'))"
        page.wait(f"{tile}?.innerText.includes('Master')")
        page.wait(f"{tile}.innerText.includes('no replicas')")
        self.assertFalse(page.value("Array.from(document.querySelectorAll('h2')).some((it) =>"
                                    " it.innerText === 'Replicas' && it.checkVisibility())"))
        replica = WebServer("--replicaof", "127.0.0.1", str(server.port))
        try:
            page.wait(f"{tile}.innerText.includes('1 replica')", limit_s=60)
            page.wait(f"Array.from(document.querySelectorAll('.plain tr')).some((it) => it.innerText.includes("
                      f"'127.0.0.1:{replica.port}') && it.innerText.includes('online'))", limit_s=60)
            page.go(replica.url("/server"))
            page.wait(f"{tile}?.innerText.includes('Replica')", limit_s=60)
            page.wait(f"{tile}.innerText.includes('of 127.0.0.1:{server.port}')")
            page.wait(f"{tile}.innerText.includes('connected')", limit_s=60)
            self.assertNotRegex(page.text("#main"), "undefined|NaN|null")
            page.click(".tools button[lang=zh]")
            page.wait("document.querySelector('.tiles')?.innerText.includes('主服务器 127.0.0.1')")
        finally:
            replica.stop()

    def test_a_lost_connection_is_shown_and_found_again(self):
        server.run("ZADD", "arena", "5", "ann")
        page = self.open_board("arena")
        page.wait("document.getElementById('live').innerText === 'Live'")
        server.stop()
        page.wait("document.getElementById('live').innerText === 'Reconnecting'")
        server.start()
        server.run("ZADD", "arena", "5", "ann", "6", "bob")
        page.wait("document.getElementById('live').innerText === 'Live'", limit_s=60)
        page.wait("document.querySelector('.content tbody .who a').innerText === 'bob'")


class People(PageTest):
    def test_chinese_by_the_browsers_language_and_by_choice(self):
        server.run("ZADD", "arena", "5", "ann")
        page = self.open_board("arena", language="zh-CN,zh;q=0.9,en;q=0.8")
        self.assertEqual(page.value("document.documentElement.lang"), "zh-CN")
        self.assertEqual(page.texts(".tabs a"), ["排名", "分布"])
        page.click(".tools button[lang=en]")
        page.wait("document.querySelector('.tabs a')?.innerText === 'Ranking'")
        page.wait("document.querySelector('thead th.name')?.innerText === 'Member'")
        page.wait("document.getElementById('live').innerText === 'Live'")
        for theme in ("light", "dark", "system"):
            page.value("document.querySelectorAll('.tools button')[1].click()")
            self.assertEqual(page.value("document.documentElement.dataset.theme"), theme)
        self.assertEqual(page.text("#live"), "Live")
        page.go(server.url())
        page.wait("document.querySelector('h1')?.innerText === 'Boards'")

    def test_both_languages_say_the_same_things(self):
        page = self.open(server.url("/login"))
        texts = page.value("import('/text.js').then(({ languages }) => Object.values(languages).map((texts) =>"
                           " Object.entries(texts).map(([key, text]) => [key, typeof text, text.length > 0])))")
        english, chinese = ({key: kind for key, kind, _ in each} for each in texts)
        self.assertEqual(english, chinese)
        self.assertGreater(len(english), 100)

    def test_every_width_holds_without_scrolling_sideways(self):
        self.fill()
        page = self.open(server.url(), width=320, height=800)
        for path in [*self.views(), "/login", "/server/nothing"]:
            page.go(server.url(path))
            page.wait("document.querySelector('h1')")
            for width in (320, 390, 768, 1280, 3840):
                page.size(width, 800)
                page.settle()
                self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width,
                                     f"{path} at {width}")

    def test_axe_finds_no_violations_in_any_view_and_theme(self):
        self.fill()
        with open(os.path.join(os.path.dirname(__file__), "node_modules/axe-core/axe.min.js"),
                  encoding="utf-8") as file:
            axe = file.read()
        page = self.open(server.url(), still=True)
        for path in [*self.views(), "/login", "/server/nothing"]:
            page.go(server.url(path))
            page.wait("document.querySelector('h1')")
            page.value(axe + "; 0")
            if "theme=clear" in path:  # is shown over a picture: here it is one colour
                page.value("document.documentElement.style.background = '#20242c'; 0")
            for dark in (False, True):
                page.media(dark, still=True)
                page.size(320 if dark else 1280, 800)
                page.settle()
                found, passes = page.value(
                    "axe.run({ resultTypes: ['violations'] }).then((result) => [result.violations.map((it) =>"
                    " [it.id, it.nodes.map((node) => node.html)]), result.passes.length])")
                self.assertEqual(found, [], f"{path}, {'dark' if dark else 'light'}:\n{json.dumps(found, indent=1)}")
                self.assertGreater(passes, 10)

    def fill(self):
        server.run("LB.CREATE", "daily", "FIELD", "score", "30", "TIME", "30", "MS", "PERIOD", "DAY")
        server.run("ZADD", "daily", *sum(([str(n * n), f"member {n}"] for n in range(60)), []), "7", "m" * 300,
                   "8", "עדן", "9", b"\xff")
        yesterday = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
        server.run("ZADD", yesterday.strftime("daily@%Y-%m-%d"), "7", "ann", "9", "bob")
        server.run("ZADD", "daily", "3599", "\u202eadmin", "3598", "\u0430dmin ")
        server.run("LB.LEAGUE", "CREATE", "weekly", "FIELD", "points", "22", "PERIOD", "WEEK", "ROOM", "3", "TIERS", "3", "UP", "1",
                   "DOWN", "1")
        server.run("LB.LEAGUE", "SET", "weekly", "2", "m" * 64)
        for n, name in enumerate(("m" * 64, *(f"member {n}" for n in range(20)))):
            server.run("LB.LEAGUE", "ADD", "weekly", n, name)
        server.run("LB.CREATE", "ladder", "RATING", "OPENSKILL", "MINGAMES", "2")
        for n in range(10):
            server.run("LB.MATCH", "ladder", "TEAM", "2", f"member {n}", "m" * 64, "TEAM", "2", f"member {n + 1}", f"member {n + 2}")
        server.run("LB.RATE", "ladder", "new", "30", "2.5")
        server.run("LB.CREATE", "judged", "FIELD", "score", "30", "HOLD", "ALL", "OVER", "9")
        server.run("LB.ADD", "judged", "10", "m" * 300, "11", "עדן", "12", b"\xff")
        server.run("LB.CREATE", "race", "FIELD", "score", "30", "TAG", "country", "8", "TAG", "c" * 32, "4", "TAG", "clan", "10")
        for n in range(120):
            server.run("LB.ADD", "race", "TAG", "country", ("DE", "עדן", b"\xff", "")[n % 4], "TAG", "c" * 32, "x" * 64,
                       "TAG", "clan", f"clan {n}", str(n), f"member {n}")

    def views(self):
        return ["/", "/boards/weekly?member=member%205", "/boards/weekly?view=members", "/boards/daily?member=member%205", "/boards/daily?view=spread&member=member%205",
                "/boards/daily?view=periods", "/server", "/embed/daily", "/embed/daily?theme=clear",
                f"/boards/race?member=member%204&where=country:DE&where={'c' * 32}:{'x' * 64}", "/embed/race?where=country:DE",
                "/boards/race?where=clan:clan%207&where=clan:clan%208", "/boards/race?where=nothing:1",
                "/boards/ladder?member=member%203", "/boards/ladder?member=new", "/boards/judged?view=held"]


    def test_every_view_is_used_by_keys_on_a_narrow_screen(self):
        """Tab leads through all there is, each with a name and a mark that is seen, and never stays."""
        self.fill()
        server.run("ZADD", "daily", "3600", "דניאל (לוס אנג'לס)")
        look = """(() => {
            const it = document.activeElement;
            if (!it || it === document.body) { return null; }
            const box = it.getBoundingClientRect();
            const style = getComputedStyle(it);
            const name = it.getAttribute("aria-label") || it.innerText || it.labels?.[0]?.innerText || it.title;
            const x = Math.max(0, box.left) + Math.min(box.width, 8) / 2;
            const y = Math.max(0, box.top) + Math.min(box.height, 8) / 2;
            const top = document.elementFromPoint(x, y);
            return { what: it.outerHTML.slice(0, 200), name: Boolean(name?.trim()),
                marked: style.outlineStyle !== "none" || style.boxShadow !== "none",
                inside: box.left < innerWidth && box.right > 0 && box.top < innerHeight && box.bottom > 0,
                seen: Boolean(top) && (it.contains(top) || top.contains(it)) }; })()"""
        for path in [*self.views(), "/login"]:
            page = self.open(server.url(path), width=320, height=640, language="zh-CN", still=True)
            page.wait("document.querySelector('h1')")
            wanted, before = -1, -2
            while wanted != before:  # until all is there
                time.sleep(0.7)
                before, wanted = wanted, page.value(
                    "Array.from(document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]'))"
                    ".filter((it) => it.checkVisibility() && !it.disabled).length")
            count = 0
            while count <= wanted + 20:
                page.key("Tab", 9)
                found = page.value(look)
                if found is None:
                    break
                count += 1
                self.assertEqual({key: found[key] for key in ("name", "marked", "inside", "seen")},
                                 {"name": True, "marked": True, "inside": True, "seen": True}, (path, found))
            # What scrolls is stopped at as well; of radio buttons and the like only one is.
            self.assertTrue(wanted <= count <= wanted + 10, (path, wanted, count))


class Embedded(PageTest):
    def test_only_the_members_of_a_group(self):
        server.run("LB.CREATE", "race", "FIELD", "score", "33", "TAG", "country", "8", "TAG", "class", "4")
        for score, member, country, kind in ((900, "ann", "DE", "mage"), (850, "eva", "FR", "mage"), (800, "bob", "DE", "rogue")):
            server.run("LB.ADD", "race", "TAG", "country", country, "TAG", "class", kind, score, member)
        for query, names, heading in (
                ("where=country:DE", ["ann", "bob"], "race · DE"), ("where=country:DE&where=country:FR&where=class:mage", ["ann", "eva"],
                                                                     "race · DE · FR · mage"),
                ("where=country:DE&place=2&title=Germany", ["bob"], "Germany")):
            page = self.open(server.url(f"/embed/race?{query}"), width=400, height=400)
            page.wait(f"document.querySelectorAll('tbody tr').length === {len(names)}")
            self.assertEqual(page.texts("tbody .who"), names)
            self.assertEqual(page.text("h1").strip().split("\n")[0], heading)
            self.assertEqual(page.value("document.querySelectorAll('nav, header, a, button, select').length"), 0)
        server.run("LB.TAG", "race", "eva", "country", "DE")
        page = self.open(server.url("/embed/race?where=country:DE"), width=400, height=400)
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        server.run("LB.TAG", "race", "ann", "country", "FR")
        page.wait("document.querySelector('tbody .who').innerText === 'eva'")
        page = self.open(server.url("/embed/race?where=country:NL&lang=zh"), width=400, height=400)
        page.wait("document.querySelector('main')?.innerText.includes('此分组中没有成员')")
        for query, word in (("where=clan:%3Cb%3E", "no tag 'clan'"), ("where=country", "where is TAG:VALUE")):
            page = self.open(server.url(f"/embed/race?{query}"), width=400, height=400)
            page.wait(f"document.querySelector('main')?.innerText.includes({json.dumps(word)})")

    def test_only_the_rows_as_they_move(self):
        server.run("ZADD", "arena", "100", "zoe", "90", "ann", "80", "bob")
        page = self.open(server.url("/embed/arena?count=2&title=Final%20%3Cb%3E&lang=zh"), width=400, height=400)
        page.wait("document.querySelectorAll('tbody tr').length === 2")
        self.assertEqual(page.text("h1").strip().split("\n")[0], "Final <b>")
        self.assertEqual(page.value("document.querySelectorAll('nav, header, a, button').length"), 0)
        server.run("ZINCRBY", "arena", "100", "bob")
        page.wait("document.querySelector('tbody .who').innerText === 'bob'", limit_s=2)


    def test_it_fits_the_frame_that_the_documentation_gives_it(self):
        pipe = server.client.pipeline(transaction=False)
        for n in range(60):
            pipe.execute_command("ZADD", "daily", n, f"id{n:05}")
            pipe.execute_command("HSET", f"user:id{n:05}", "name", f"Player {n}", "country", "DE")
        pipe.execute()
        text = (ROOT / "docs" / "web.md").read_text()
        path, width, height = re.search(r'<iframe src="https://[^/]+([^"]+)" width="(\d+)" height="(\d+)">', text).groups()
        last = "Array.from(document.querySelectorAll('tbody tr')).at(-1).getBoundingClientRect().bottom"
        for data in ("", "&hash=user:*&data=name,country"):
            page = self.open(server.url(path + data), width=int(width), height=int(height))
            page.wait("document.querySelectorAll('tbody tr').length === 10")
            page.wait(f"{last} <= {height}")
            self.assertLessEqual(page.value("document.documentElement.scrollHeight"), int(height))
            self.assertGreater(page.value("parseFloat(getComputedStyle(document.documentElement).fontSize)"), 10)
        page.size(1920, 1080)
        page.wait(f"{last} <= 1080 && {last} > 1000")


class Keyboard(PageTest):
    def test_the_focus_stays_where_it_is_while_the_page_changes(self):
        server.run("ZADD", "arena", *sum(([str(1000 - n), f"m{n:04}"] for n in range(60)), []))
        focused = "document.activeElement.textContent"
        page = self.open_board("arena", "member=m0003", rows=25)
        page.wait("document.querySelectorAll('.member tbody tr').length === 11")
        # On a name, while it gets another place, in the ranking and on the card.
        for place, score in ((".content", "998"), (".member", "1,001")):
            page.value(f"Array.from(document.querySelectorAll('{place} .who a')).find((it) =>"
                       " it.textContent === 'm0005').focus()")
            server.run("ZINCRBY", "arena", "3", "m0005")
            page.wait(f"Array.from(document.querySelectorAll('{place} tbody tr')).find((it) =>"
                      f" it.innerText.includes('m0005'))?.innerText.includes('{score}')")
            time.sleep(0.5)
            self.assertEqual(page.value(focused), "m0005")
        # On the pager and on the tabs, while what they lead to takes their place.
        page.value("document.querySelector('[data-key=next]').focus()")
        for first in ("m0025", "m0050"):
            page.key("Enter", 13, "\r")
            page.wait(f"document.querySelector('.content tbody .who a')?.innerText === '{first}'")
        self.assertEqual(page.value(focused), "First")  # there is no next page
        page.value("document.querySelector('.tabs a:nth-child(2)').focus()")
        page.key("Enter", 13, "\r")
        page.wait("document.querySelector('.quantiles')")
        self.assertEqual(page.value(focused), "Distribution")
        # The card's links lead to the page that is shown.
        self.assertIn("place=51", page.value("document.querySelector('.member-head a').href"))
