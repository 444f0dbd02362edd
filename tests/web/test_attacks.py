"""What strangers may try: many connections, proxies and what they pass on, rights of users, cookies, odd requests."""
import base64
import http.client
import json
import re
import socket
import ssl
import threading
import time
import unittest

import redis
from test_api import LIMIT_S, Api, Case
from process import make_certificate, wait_until
from web_server import ROOT, WebServer, hold_port, let_port_go


def own_address():
    """An address of this machine that is not loopback's. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))
        return one.getsockname()[0]


class Held:
    """A connection to some address of the server, which goes on."""

    def __init__(self, server, address="127.0.0.1"):
        self.connection = http.client.HTTPConnection(address, server.web_port, timeout=LIMIT_S)
        self.reply = None

    def ask(self, path, method="GET", **headers):
        """(status, JSON); None if the connection was closed without a word."""
        try:
            self.connection.request(method, "/api/v1" + path,
                                    headers={name.replace("_", "-"): value for name, value in headers.items()})
            reply = self.connection.getresponse()
            return reply.status, json.loads(reply.read())
        except (http.client.RemoteDisconnected, ConnectionError):
            return None

    def stream(self, path, **headers):
        """The status of a stream that stays open."""
        self.connection.request("GET", "/api/v1" + path,
                                headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.reply = self.connection.getresponse()
        return self.reply.status

    def close(self):
        if self.reply is not None:
            self.reply.close()
        self.connection.close()


class PerAddress(Case):
    LIMIT = 5
    words = ("--web-bind", "*", "--protected-mode", "no", "--web-max-connections-per-address", str(LIMIT))

    @classmethod
    def fill(cls, run):
        run("ZADD", "arena", "1", "ann")
        cls.address = own_address()

    def tearDown(self):
        self.doCleanups()
        wait_until(lambda: Api(self.server).get("/server")["web_connections"] <= 1, "those who leave are seen")

    def hold(self, count, address):
        held = [Held(self.server, address) for _ in range(count)]
        for one in held:
            self.addCleanup(one.close)
            self.assertEqual(one.stream("/boards/arena/events"), 200)
        return held

    def test_an_address_has_so_many_connections_and_this_machine_any_number(self):
        held = self.hold(self.LIMIT, self.address)
        more = Held(self.server, self.address)
        status, reply = more.ask("/boards")
        self.assertEqual((status, reply["code"]), (429, "too_many"))
        self.assertIn("web-max-connections-per-address", reply["error"])
        self.assertIn(self.address, reply["error"])
        more.close()
        self.hold(3 * self.LIMIT, "127.0.0.1")
        held[0].close()
        def status():
            got = Held(self.server, self.address).ask("/boards")[0]
            self.assertIn(got, (200, 429))
            return got == 200
        wait_until(status, "an answer")

    def test_those_beyond_are_told_so_up_to_a_number_and_then_not_accepted(self):
        self.hold(self.LIMIT, self.address)
        silent = [socket.create_connection((self.address, self.server.web_port)) for _ in range(60)]
        for one in silent:
            self.addCleanup(one.close)
        give_up_at = time.monotonic() + LIMIT_S
        while (got := Held(self.server, self.address).ask("/boards")) is not None:
            self.assertEqual(got[0], 429)
            self.assertLess(time.monotonic(), give_up_at)
        connections = Api(self.server).get("/server")["web_connections"]
        self.assertLess(connections, self.LIMIT + 30)

    def test_who_has_left_is_seen_while_requests_follow_each_other(self):
        for one in self.hold(3, "127.0.0.1"):
            one.close()
        asking = Held(self.server)
        self.addCleanup(asking.close)
        give_up_at = time.monotonic() + LIMIT_S
        while asking.ask("/server")[1]["web_connections"] > 1:
            self.assertLess(time.monotonic(), give_up_at)


class Proxies(Case):
    LIMIT = 3
    words = ("--web-proxies", "127.0.0.1 10.0.0.0/8", "--web-max-connections-per-address", str(LIMIT),
             "--web-public", "arena", "--web-hosts", "boards.example.com",
             "--auth-delay", "60000", "--auth-delay-after", "2")

    @classmethod
    def fill(cls, run):
        run("ZADD", "arena", "1", "ann")
        run("ZADD", "hidden", "1", "ann")

    def hold(self, count, client):
        for _ in range(count):
            one = Held(self.server)
            self.addCleanup(one.close)
            self.assertEqual(one.stream("/boards/arena/events", X_Forwarded_For=client), 200)

    def test_each_client_has_the_limit_and_the_proxy_none(self):
        self.hold(self.LIMIT, "203.0.113.7")
        connection = Held(self.server)
        self.addCleanup(connection.close)
        for client in ("203.0.113.7", "203.0.113.7:4000", "198.51.100.1, 203.0.113.7", "198.51.100.1,203.0.113.7 ",
                       "203.0.113.7, 10.1.2.3", "::ffff:203.0.113.7"):
            status, reply = connection.ask("/boards/arena", X_Forwarded_For=client)
            self.assertEqual((status, reply["code"]), (429, "too_many"), client)
            self.assertIn("from 203.0.113.7:", reply["error"])
        for client in ("203.0.113.8", "203.0.113.7, 203.0.113.8", "2001:db8::1", "unknown", ""):
            self.assertEqual(connection.ask("/boards/arena", X_Forwarded_For=client)[0], 200, client)
        self.hold(self.LIMIT, "203.0.113.9")

    def test_a_network_of_ipv6_is_one_client(self):
        for i in range(self.LIMIT):
            self.hold(1, f"2001:db8:1:2::{i}")
        connection = Held(self.server)
        self.addCleanup(connection.close)
        self.assertEqual(connection.ask("/boards/arena", X_Forwarded_For="[2001:db8:1:2:ffff::1]:99")[0], 429)
        self.assertEqual(connection.ask("/boards/arena", X_Forwarded_For="2001:db8:1:3::1")[0], 200)

    def test_the_last_of_several_headers_counts(self):
        """HAProxy adds a header of its own behind the client's."""
        self.hold(self.LIMIT, "203.0.113.17")
        text = ("GET /api/v1/boards/arena HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "X-Forwarded-For: 198.51.100.9\r\nx-forwarded-for: 203.0.113.17\r\n\r\n")
        self.assertIn(b" 429 ", raw(self.server, text.encode()).split(b"\r\n")[0])

    def test_who_comes_through_a_proxy_is_not_of_this_machine(self):
        self.assertEqual(self.api.status("/boards/hidden"), 200)
        self.assertEqual(self.api.status("/boards/hidden", X_Forwarded_For="127.0.0.1"), 200)
        for client in ("203.0.113.30", "127.0.0.1, 203.0.113.30"):
            status, reply, _ = self.api.ask("/api/v1/boards/hidden", X_Forwarded_For=client)
            self.assertEqual((status, reply["code"]), (401, "login_needed"))
            self.assertEqual(self.api.status("/boards/arena", X_Forwarded_For=client), 200)
            self.assertEqual(self.api.status("/server", X_Forwarded_For=client), 401)

    def test_wrong_passwords_of_one_client_do_not_slow_down_others(self):
        self.server.run("ACL", "SETUSER", "ann", "on", ">right", "~*", "+@read")
        statuses = [self.api.log_in("ann", "wrong", X_Forwarded_For="203.0.113.40")[0] for _ in range(4)]
        self.assertEqual((statuses[0], statuses[-1]), (401, 429))
        self.assertEqual(self.api.log_in("ann", "right", X_Forwarded_For="203.0.113.41")[0], 200)
        entry = dict(zip(*[iter(self.server.run("ACL", "LOG")[0])] * 2))
        self.assertIn(b"203.0.113.40", entry[b"client-info"])
        self.server.run("ACL", "DELUSER", "ann")


class Exposed(unittest.TestCase):
    """Logins that were taken without TLS, until protected-mode is on again."""

    def test_a_login_that_was_right_is_judged_anew(self):
        server = WebServer("--web-bind", "*", "--protected-mode", "no", "--web-write", "yes", password="secret")
        self.addCleanup(server.stop)
        address = own_address()
        token = server.run("ACL", "SETUSER", "ann", "on", ">p", "~*", "+@all", "token>").decode()
        server.run("ZADD", "arena", "1", "ann")
        cookie = Api(server).log_in("ann", "p")[2].split(";")[0]
        ways = ({"Authorization": "Basic " + base64.b64encode(b"ann:p").decode()}, {"Authorization": "Bearer " + token},
                {"Cookie": cookie})

        def ask(where, path="/boards/arena", **headers):
            one = Held(server, where)
            self.addCleanup(one.close)
            return one.ask(path, **headers)

        streams = [Held(server, address) for _ in ways]
        for stream, headers in zip(streams, ways):
            self.addCleanup(stream.close)
            self.assertEqual(stream.stream("/boards/arena/events", **headers), 200)
        for is_on in (False, True, False):
            server.run("CONFIG", "SET", "protected-mode", "yes" if is_on else "no")
            for headers in ways:
                for _ in range(2):
                    status, reply = ask(address, **headers)
                    self.assertEqual(status, 403 if is_on else 200, reply)
                    if is_on:
                        self.assertIn(f"no password or token is taken from {address} without TLS", reply["detail"])
                    self.assertEqual(ask("127.0.0.1", **headers)[0], 200)
                user = None if is_on else "ann"
                if "Cookie" in headers:
                    self.assertEqual(ask(address, "/me", **headers)[1]["user"], user)
            if is_on:
                for stream in streams:
                    self.assertIn(b"event: gone", stream.reply.read())


class Forwarded(unittest.TestCase):
    """A proxy on this machine that web-proxies does not name."""

    def test_its_clients_have_no_more_than_strangers(self):
        server = WebServer("--web-public", "open", "--web-max-connections-per-address", "2", "--metrics-port", "0")
        api = Api(server)
        server.run("ZADD", "open", "1", "ann")
        server.run("ZADD", "hidden", "1", "ann")
        self.assertEqual(api.status("/boards/hidden"), 200)
        for name in ("X_Forwarded_For", "Forwarded", "X_Real_IP", "X_Forwarded_Host"):
            for value in ("203.0.113.7", "127.0.0.1", "for=127.0.0.1", ""):
                self.assertEqual(api.status("/boards/hidden", **{name: value}), 401, (name, value))
                self.assertEqual(api.status("/boards/open", **{name: value}), 200, (name, value))
        streams = [api.stream("/boards/open/events", X_Forwarded_For="203.0.113.7") for _ in range(8)]
        self.assertEqual({stream.status for stream in streams}, {200})  # it may be a proxy: nobody is locked out
        for stream in streams:
            stream.close()
        server.stop()

    def test_nor_at_metrics_port(self):
        port = hold_port()
        let_port_go(port)  # libmicrohttpd binds alone
        server = WebServer("--metrics-port", str(port))
        for headers, status in (({}, 200), ({"X-Forwarded-For": "203.0.113.7"}, 403)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
            connection.request("GET", "/metrics", headers=headers)
            reply = connection.getresponse()
            self.assertEqual(reply.status, status)
            if status == 403:
                self.assertIn(b"nobody through a proxy", reply.read())
            connection.close()
        server.stop()

    def test_what_cannot_be_is_told_at_the_start(self):
        for words, why in ((("--web-proxies", "10.0.0.1 proxy.example"), "web-proxies: 'proxy.example' is not a network"),
                           (("--web-proxies", "10.0.0.1/8"), "web-proxies: '10.0.0.1/8' is not a network"),
                           (("--web-proxies", " ".join(["10.0.0.1"] * 17)), "web-proxies: at most 16"),
                           (("--web-max-connections-per-address", "-1"), "web-max-connections-per-address")):
            with self.assertRaises(AssertionError) as caught:
                WebServer(*words)
            self.assertIn(why, str(caught.exception))


class Rights(Case):
    words = ("--web-public", "open:* daily", "--web-data", "user:* name", "--auth-delay", "0")
    password = "secret"

    @classmethod
    def fill(cls, run):
        for board in ("open:1", "hidden", "arena"):
            run("ZADD", board, "5", "bob", "6", "secret:1", "7", "den")
        run("LB.CREATE", "daily", "FIELD", "score", "30", "TIME", "30", "MS", "PERIOD", "DAY", "ARCHIVE", "3")
        run("ZADD", "daily", "1", "ann")
        cls.yesterday = "daily@" + time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86400))
        run("LB.ROLL", "daily", cls.yesterday)
        run("ZADD", "daily", "1", "ann")
        for key in ("user:bob", "secret:1", "hidden:bob"):
            run("HSET", key, "name", "N", "token", "hush")
        setuser = ("ACL", "SETUSER")
        run(*setuser, "few", "on", ">p", "%R~arena", "-@all", "+lb.list", "+lb.info", "+lb.range")
        run(*setuser, "writer", "on", ">p", "%W~*", "+@all", "-info", "-slowlog")
        run(*setuser, "keyless", "on", ">p", "+@all", "-info", "-slowlog")
        run(*setuser, "parts", "on", ">p", "-@all", "(%R~open:* +lb.list +lb.info +lb.range)", "(%R~hidden +lb.info)")

    PATHS = ("", "/page", "/members/bob", "/search?q=b", "/histogram", "/archives", "/events")

    def test_a_board_that_is_not_public_is_like_one_that_is_not_there(self):
        for path in self.PATHS[:-1]:
            hidden = self.api.ask("/api/v1/boards/hidden" + path)[:2]
            nothing = self.api.ask("/api/v1/boards/nothing" + path)[:2]
            self.assertEqual(hidden, nothing)
            self.assertEqual((hidden[0], hidden[1]["code"]), (401, "login_needed"))
        for board in ("hidden", "nothing"):
            status, reply = self.api.stream(f"/boards/{board}/events").refusal()
            self.assertEqual((status, reply["code"]), (401, "login_needed"))

    def test_hashes_are_only_those_that_may_be_read(self):
        for pattern in ("*", "%2A", "secret:*", "hid*", "h*", "%5Bo%5Dpen:*", "?pen:*", "*er:bob", "op*", "%5Copen:*",
                        "hi*:bob"):
            status, reply, _ = self.api.ask(f"/api/v1/boards/open:1/page?data=token&hash={pattern}")
            self.assertEqual((status, reply["code"]), (401, "login_needed"), pattern)
            for path in ("members/bob", "search?q=b", "archives", "events"):
                mark = "&" if "?" in path else "?"
                text = json.dumps(self.api.stream(f"/boards/open:1/{path}{mark}data=token&hash={pattern}").refusal()
                                  if path == "events" else
                                  self.api.ask(f"/api/v1/boards/open:1/{path}{mark}data=token&hash={pattern}")[1])
                self.assertNotIn("hush", text)

    def test_everybody_sees_the_fields_of_web_data_and_no_others(self):
        server = WebServer("--web-public", "open user:*", "--web-data", "user:* name country", password="secret")
        api = Api(server)
        server.run("ZADD", "open", "1", "ann")
        server.run("HSET", "user:ann", "name", "Ann", "country", "NO", "email", "ann@example.com")
        server.run("ZADD", "user:board", "1", "ann")
        for query, data in (("", {"name": "Ann", "country": "NO"}), ("?data=country", {"country": "NO"}),
                            ("?hash=user:*&data=name", {"name": "Ann"}), ("?data=", None)):
            self.assertEqual(api.get(f"/boards/open/page{query}")["rows"][0].get("data"), data, query)
        for query in ("data=email", "data=name,email", "hash=user:*&data=email", "hash=user:**&data=name",
                      "hash=open*&data=name", "data=Name", "data=name%00"):
            for path in ("page", "members/ann", "search?q=a", "archives"):
                status, reply, _ = api.ask(f"/api/v1/boards/open/{path}{'&' if '?' in path else '?'}{query}")
                self.assertEqual((status, reply["code"]), (401, "login_needed"), (path, query))
                self.assertNotIn("example.com", json.dumps(reply))
            self.assertEqual(api.stream(f"/boards/open/events?{query}").refusal()[0], 401, query)
        self.assertEqual(api.get("/boards/open/page?data=email", user="default:secret")["rows"][0]["data"],
                         {"email": "ann@example.com"})
        server.stop()

    def test_hashes_of_web_data_that_may_not_be_read_are_left_out(self):
        for board, options in (("open:1", {}), ("arena", {"user": "few:p"})):
            page = self.api.get(f"/boards/{board}/page", **options)
            self.assertEqual((page["data_fields"], len(page["rows"])), ([], 3))
            self.assertNotIn("data", page["rows"][0])
        self.assertEqual(self.api.get("/boards/open:1/members/bob")["rank"], 2)
        self.assertEqual(self.api.get("/boards/open:1/search?q=b")["rows"][0]["member"], "bob")
        self.assertEqual(self.api.stream("/boards/open:1/events").next()[0], "page")
        page = self.api.get("/boards/open:1/page", user="default:secret")
        self.assertEqual(page["rows"][2]["data"], {"name": "N"})

    def test_the_list_has_what_may_be_read_whatever_the_cursor(self):
        names = {board["name"] for board in self.api.get("/boards")["boards"]}
        self.assertEqual(names, {"open:1", "daily"})
        for query in ("match=hidden", "match=*", "cursor=0.0", "cursor=1.0", "cursor=1.5", "cursor=2.0", "cursor=99.0",
                      "cursor=65534.18446744073709551615", "db=1"):
            status, reply, _ = self.api.ask("/api/v1/boards?" + query)
            self.assertIn(status, (200, 401), query)
            self.assertLessEqual({board["name"] for board in reply.get("boards", [])}, names, query)

    def test_archives_are_for_those_who_may_read_them(self):
        self.assertEqual(self.api.get("/boards/daily/archives")["archives"], [])
        self.assertEqual(self.api.status(f"/boards/{self.yesterday}"), 401)

    def test_users_see_what_their_commands_and_keys_allow(self):
        may = {
            "few:p": {"arena": {"", "/page", "/archives", "/events"}},
            "writer:p": {},
            "keyless:p": {},
            "parts:p": {"open:1": {"", "/page", "/archives", "/events"}, "hidden": {"", "/archives"}},
        }
        for user, boards in may.items():
            for board in ("arena", "hidden", "open:1", "daily", "nothing"):
                for path in self.PATHS:
                    if path == "/events":
                        stream = Held(self.server)
                        self.addCleanup(stream.close)
                        stream.stream(f"/boards/{board}/events", Authorization=basic(user))
                        is_shown = b"event: page" in stream.reply.readline()
                    else:
                        status = self.api.status(f"/boards/{board}{path}", user=user)
                        self.assertIn(status, (200, 403), (user, board, path))
                        is_shown = status == 200
                    self.assertEqual(is_shown, path in boards.get(board, ()), (user, board, path))
            for path in ("/server", "/server/history", "/slowlog"):
                self.assertEqual(self.api.status(path, user=user), 403, (user, path))

    def test_the_user_for_the_page_as_the_docs_have_it(self):
        text = (ROOT / "docs" / "web.md").read_text()
        words = next(line for line in text.splitlines() if line.startswith("ACL SETUSER viewer")).split()
        run = self.server.run
        self.assertEqual(run(*words), b"OK")
        self.addCleanup(run, "ACL", "DELUSER", "viewer")
        for path in (*self.PATHS[:-1], "/members/ann"):
            self.assertEqual(self.api.status(f"/boards/daily{path}".replace("bob", "ann"), user="viewer:secret"), 200, path)
            self.assertEqual(self.api.status(f"/boards/hidden{path}", user="viewer:secret"), 403, path)
        self.assertEqual(sorted(board["name"] for board in self.api.get("/boards", user="viewer:secret")["boards"]),
                         ["daily", self.yesterday])
        self.assertEqual(len(self.api.get("/boards/daily/archives", user="viewer:secret")["archives"]), 1)
        self.assertEqual(self.api.get("/boards/daily/page", user="viewer:secret")["data_fields"], ["name"])
        # The right is there, the tag is not.
        self.assertEqual(self.api.status("/boards/daily/page?where=country:DE", user="viewer:secret"), 400)
        for path in ("/server", "/server/history", "/slowlog"):
            self.assertEqual(self.api.status(path, user="viewer:secret"), 200, path)
        client = self.server.client.__class__(port=self.server.port, username="viewer", password="secret")
        for command in (("ZADD", "daily", "1", "x"), ("HGETALL", "secret:1"), ("CONFIG", "GET", "*"), ("FLUSHALL",)):
            with self.assertRaisesRegex(Exception, "(?i)permission"):
                client.execute_command(*command)

    def test_a_default_user_who_is_off_lets_nobody_in(self):
        server = WebServer("--user", "boss", "on", ">b", "~*", "+@all", "--web-public", "open")
        api = Api(server)
        server.run("ZADD", "open", "1", "ann")
        server.run("ZADD", "hidden", "1", "ann")
        server.run("ACL", "SETUSER", "default", "off")
        self.assertEqual(api.status("/boards/hidden"), 401)
        self.assertEqual(api.status("/boards/open"), 200)
        self.assertEqual(api.status("/boards/hidden", user="boss:b"), 200)
        self.assertEqual(api.status("/boards/hidden", user="default:"), 401)
        server.client = server.client.__class__(port=server.port, username="boss", password="b")
        server.stop()

    def test_who_may_see_nothing_learns_nothing_of_the_server(self):
        server = WebServer("--web-data", "user:* name", password="secret")
        me = Api(server).get("/me")
        self.assertEqual((me["user"], me["version"], me["data"], me["can_login"]), (None, None, None, True))
        server.stop()


def basic(user):
    return "Basic " + base64.b64encode(user.encode()).decode()


class Cookies(Case):
    words = ("--web-hosts", "boards.example.com")
    password = "secret"

    @classmethod
    def fill(cls, run):
        run("ZADD", "arena", "1", "ann")

    def log_in(self, **headers):
        status, reply, cookie = self.api.log_in("default", "secret", **headers)
        self.assertEqual(status, 200, reply)
        return cookie

    def test_behind_a_proxy_with_tls_the_cookie_is_for_tls_alone(self):
        cookie = self.log_in(Host="boards.example.com", Origin="https://boards.example.com")
        port = self.server.web_port
        self.assertRegex(cookie, rf"^__Host-leaderboard-{port}=[0-9a-f]{{48}}; Path=/; HttpOnly; SameSite=Strict; Secure$")
        name, token = cookie.split(";")[0].split("=")
        self.assertEqual(self.api.get("/me", cookie=f"{name}={token}")["user"], "default")
        other = self.log_in().split(";")[0]
        # What another name of the site has set does not come before it.
        _, reply, headers = self.api.ask("/api/v1/logout", "POST", cookie=f"{other}; {name}={token}")
        self.assertTrue(headers["Set-Cookie"].startswith(f"{name}=;"))
        self.assertEqual(self.api.get("/me", cookie=f"{name}={token}")["user"], None)
        self.assertEqual(self.api.get("/me", cookie=other)["user"], "default")

    def test_a_login_takes_the_place_of_the_one_before(self):
        first = self.log_in().split(";")[0]
        second = self.log_in(Cookie=first).split(";")[0]
        self.assertNotEqual(first, second)
        self.assertEqual(self.api.get("/me", cookie=first)["user"], None)
        self.assertEqual(self.api.get("/me", cookie=second)["user"], "default")

    def test_a_token_that_the_server_has_not_made_is_no_login(self):
        chosen = f"leaderboard-{self.server.web_port}=" + "a" * 48
        cookie = self.log_in(Cookie=chosen).split(";")[0]
        self.assertNotEqual(cookie, chosen)
        self.assertEqual(self.api.get("/me", cookie=chosen)["user"], None)

    def test_logging_out_ends_the_streams_of_that_login_alone(self):
        cookies = [self.log_in().split(";")[0] for _ in range(2)]
        streams = [self.api.stream("/boards/arena/events", Cookie=cookie) for cookie in cookies]
        for stream in streams:
            self.assertEqual(stream.next()[0], "page")
        self.api.ask("/api/v1/logout", "POST", cookie=cookies[0])
        self.server.run("ZINCRBY", "arena", "1", "ann")
        self.assertEqual(streams[1].next()[0], "page")
        try:
            self.assertIsNone(streams[0].next())
        except http.client.IncompleteRead:
            pass
        for stream in streams:
            stream.close()

    def test_other_ports_and_names_of_this_site_are_other_sites(self):
        for mode in ("no-cors", "cors"):
            self.assertEqual(self.api.status("/boards", Sec_Fetch_Site="same-site", Sec_Fetch_Mode=mode), 403)
            self.assertEqual(self.api.status("/boards/arena/events", Sec_Fetch_Site="same-site", Sec_Fetch_Mode=mode), 403)
        for origin in (f"http://localhost:{self.server.web_port}1", "http://127.0.0.1"):
            for path in ("login", "logout"):
                self.assertEqual(self.api.ask(f"/api/v1/{path}", "POST", "{}", Content_Type="application/json",
                                              Origin=origin)[0], 403)


def raw(server, data, certificate=None):
    """All that comes, until the server closes or says nothing for two seconds. With a certificate, over TLS."""
    with socket.create_connection(("127.0.0.1", server.web_port)) as one:
        one.settimeout(2)
        if certificate:
            one = ssl.create_default_context(cafile=certificate).wrap_socket(one, server_hostname="localhost")
        one.sendall(data)
        got = b""
        try:
            while part := one.recv(65536):
                got += part
        except OSError:
            pass
        return got


class Changing(Case):
    """What is asked in several rounds, while the boards are others in each."""
    ROUNDS = 60
    words = ("--web-data", "user:* name")

    def test_a_list_is_whole_or_refused(self):
        names = [f"long:{i:03}:" + "x" * 60000 for i in range(100)]
        for name in names:
            self.server.run("ZADD", name, "1", "ann")
        status, reply, _ = self.api.ask("/api/v1/boards?match=long:*&count=200")
        self.assertEqual((status, reply.get("code")), (413, "too_large"))
        seen, cursor = set(), "0"
        while True:
            reply = self.api.get(f"/boards?match=long:*&count=10&cursor={cursor}")
            seen |= {board["name"] for board in reply["boards"]}
            cursor = reply["cursor"]
            if cursor == "0":
                break
        self.assertEqual(seen, set(names))
        self.server.run("DEL", *names)

    def change(self, end):
        """The same names, as boards of other layouts, as hashes, and as nothing."""
        client = redis.Redis(port=self.server.port)
        kinds = [
            [("LB.CREATE", "{}", "FIELD", "score", "40", "SIGNED", "SCALE", "2"), ("ZADD", "{}", "1.25", "ann", "9.5", "bob")],
            [("LB.CREATE", "{}", "FIELD", "a", "20", "FIELD", "b", "20"), ("LB.ADD", "{}", "1", "2", "ann")],
            [("ZADD", "{}", *(word for i in range(1000) for word in (str(i * i), f"m{i}")))],
            [("HSET", "{}", "name", "Ann")],
            [("RENAME", "daily", "other"), ("RENAME", "other", "daily@2026-11-21")],
            [("LB.CREATE", "{}", "FIELD", "score", "33", "PERIOD", "DAY", "ARCHIVE", "3"), ("ZADD", "{}", "7", "m5"),
             ("LB.ROLL", "{}")],
            [("LB.CREATE", "{}", "FIELD", "score", "33", "TAG", "country", "8", "TAG", "class", "4"),
             ("LB.ADD", "{}", "TAG", "country", "DE", "7", "ann", "8", "m5"), ("LB.ALTER", "{}", "TAG", "class", "NONE")],
            [("LB.CREATE", "{}", "FIELD", "score", "33", "TAG", "clan", "8", "TAG", "country", "4", "PERIOD", "DAY", "ARCHIVE", "3"),
             ("LB.ADD", "{}", "TAG", "country", "DE", "TAG", "clan", "wolves", "7", "ann"), ("LB.ROLL", "{}")],
            [],
        ]
        while not end.is_set():
            for commands in kinds:
                for key in ("daily", "user:ann"):
                    client.delete(key)
                    for words in commands:
                        try:
                            client.execute_command(*(word.replace("{}", key) for word in words))
                        except redis.ResponseError:
                            pass

    def test_every_answer_is_whole_while_boards_become_others(self):
        end = threading.Event()
        changing = threading.Thread(target=self.change, args=(end,))
        changing.start()
        statuses = set()
        try:
            for _ in range(self.ROUNDS):
                for path in ("/boards", "/boards?match=d*", "/boards/daily", "/boards/daily/page",
                             "/boards/daily/members/ann", "/boards/daily/search?q=m", "/boards/daily/search?q=m5",
                             "/boards/daily/histogram", "/boards/daily/histogram?spacing=log",
                             "/boards/daily/search?q=ann&by=name",
                             "/boards/daily/archives"):
                    for query in ("", "where=country:DE", "where=country:DE&where=country:&tags=1", "where=clan:wolves", "tags=1"):
                        statuses.add(self.api.status(f"{path}{'&' if '?' in path else '?'}{query}"))
        finally:
            end.set()
            changing.join()
        self.assertLessEqual(statuses, {200, 400, 404})
        self.assertTrue(self.server.is_ready())


class Expiring(unittest.TestCase):
    """What a look-up ends, another one of the same command may hold: with the address sanitizer."""
    ROUNDS = 30

    def test_archives_periods_and_hashes_expire_while_they_are_read_and_watched(self):
        server = WebServer("--web-data", "user:* name")
        api, names = Api(server), [f"m{i}" for i in range(30)]
        server.run("LB.CREATE", "race", *"FIELD points 33 TIME 31 S PERIOD DAY ARCHIVE 7".split())
        server.run("LB.CREATE", "w", *"FIELD points 33 SIGNED TIME 31 S PERIOD HOUR WINDOW 3 SUM ARCHIVE 5".split())
        server.run("ZADD", "race", 1, "m1")
        streams = [api.stream(f"/boards/{board}/events?since=LAST") for board in ("race", "w")]
        watching = redis.Redis(port=server.port)
        for turn in range(self.ROUNDS):
            for i, name in enumerate(names):
                server.run("ZADD", "race", turn * 30 + i, name)
                server.run("ZINCRBY", "w", i, name)
                server.run("HSET", f"user:{name}", "name", f"{name} {turn}")
                server.run("PEXPIRE", f"user:{name}", 1 + i * 3)
            server.run("LB.ROLL", "race", f"race@{turn}")
            server.run("ZADD", "race", 1, "m1")
            ends = [key.decode() for key in server.run("KEYS", "*@*")]
            for i, key in enumerate(ends):
                server.run("PEXPIRE", key, 20 + 7 * i)
            with watching.pipeline() as pipe:
                pipe.watch("race", "w", "user:m1", *ends)
                time.sleep(0.02)
                pipe.multi()
                pipe.zcard("race")
                try:
                    pipe.execute()
                except redis.WatchError:
                    pass
            for path in ("race/page?since=LAST", "race/archives", "w/page?since=LAST", "w/archives", "race/members/m1?since=LAST",
                         "race/search?q=m1&by=name", "w/histogram", "race"):
                self.assertEqual(api.status("/boards/" + path), 200, path)
        for stream in streams:
            self.assertEqual(stream.next()[0], "page")
            stream.close()
        watching.close()
        self.assertTrue(server.client.ping())
        server.stop()


class OddRequests(Case):
    certificate = None

    @classmethod
    def fill(cls, run):
        run("ZADD", "arena", "1", "ann")

    def test_no_request_hides_in_another_one(self):
        inner = b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for head in (b"POST /api/v1/logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 62",
                     b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nContent-Length: 62\r\nContent-Length: 0",
                     b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nContent-Length : 62",
                     b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked",
                     b"POST /api/v1/logout HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked",
                     b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nContent-Length: 62\r\nTransfer-Encoding: chunked",
                     b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nContent-Length: 62",
                     b"POST /api/v1/logout HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n 62",
                     b"POST /api/v1/logout HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\r\n chunked",
                     b"POST /api/v1/boards HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999"):
            got = self.raw(head + b"\r\n\r\n" + inner)
            self.assertEqual(got.count(b"HTTP/1.1 "), 1, head)
            self.assertRegex(got[:12], rb"HTTP/1.1 (400|405|413)", head)

    def raw(self, data):
        return raw(self.server, data, self.certificate)

    def one_answer(self, head, body=b""):
        """The status of all that comes; it is a problem document."""
        got = self.raw(head + b"\r\n\r\n" + body)
        self.assertEqual(got.count(b"HTTP/1.1 "), 1, (head, got))
        self.assertIn(b"application/problem+json", got, head)
        return int(got[9:12])

    def test_the_head_is_lines_and_nothing_else(self):
        get = b"GET /api/v1/me HTTP/1.1\r\nHost: localhost"
        for line in (b"X: a\0b", b"X: \0", b"X:\0a", b"X: a\0", b"X: a\rb", b"X: a\r", b"X: a\r\r", b"X: a\r\n b", b"X: a\r\n\tb",
                     b"X: a\r\n ", b"X\r: a", b"Cookie: a=\0b", b"X: a\rContent-Length: 5"):
            for more in (b"", b"\r\nY: z"):
                self.assertEqual(self.one_answer(get + b"\r\n" + line + more), 400, line)
        for head in (b"GET /api/v1/me\0x HTTP/1.1\r\nHost: localhost", b"GET /api/v1/me\rx HTTP/1.1\r\nHost: localhost",
                     b"GET\0X /api/v1/me HTTP/1.1\r\nHost: localhost"):
            self.assertEqual(self.one_answer(head), 400, head)
        for head in (get, get + b"\r\nX:", get + b"\r\nX: \r\nY:a\r\nZ: \t b c", get + b"\r\nX: " + b"x" * 5000,
                     get.replace(b"/me", b"/me?a=b%00&c=&d"), get.replace(b"\r\n", b"\n"),
                     b"GET /api/v1/me HTTP/1.0", b"\r\n" + get):
            got = self.raw(head + b"\r\nConnection: close\r\n\r\n")
            self.assertEqual(got[:12], b"HTTP/1.1 200", head)

    def test_a_head_that_is_too_long_gets_one_answer(self):
        """Also at those lengths at which the library would have no room for its answer."""
        get, end = b"GET /api/v1/me", b" HTTP/1.1\r\nHost: localhost\r\n"
        last = get + end + b"Connection: close\r\n\r\n"
        kinds = {  # what a byte costs, and the head
            "line": (1, lambda size: get + b"?since=" + b"a" * size + end),
            "parameters": (1 + 64 / 2, lambda size: get + b"?" + b"a&" * (size // 2) + end),
            "header": (1, lambda size: get + end + b"X: " + b"a" * size + b"\r\n"),
            "headers": (1 + 64 / 6, lambda size: get + end + b"X: a\r\n" * (size // 6)),
            "cookie": (2, lambda size: get + end + b"Cookie: a=" + b"a" * size + b"\r\n"),
            "write": (1, lambda size: b"POST /api/v1/logout" + end + b"Content-Length: 2\r\nX: " + b"a" * size + b"\r\n"),
        }
        for name, (cost, head) in kinds.items():
            for size in range(int(12700 / cost), int(16300 / cost), max(int(97 / cost), 2)):
                got = self.raw(head(size) + b"\r\n" + (b"{}" if name == "write" else b"") + last)
                status = int(got[9:12] or 0)
                is_refused = status in (414, 431)
                self.assertIn(status, (414, 431) if size * cost > 13312 else (414, 431, 200, 400, 403), (name, size))
                self.assertEqual(got.count(b"HTTP/1.1 "), 1 if is_refused else 2, (name, size, got))
                if is_refused and size * cost < 14500:  # above it may be the library's own answer
                    self.assertIn(b'"code":"too_large"', got)

    def test_a_request_that_is_wrong_and_too_long_gets_one_answer(self):
        for head in (b"%s / HTTP/1.1", b"%s / HTTP/1.1\r\nHost: localhost\r\nHost: localhost", b"%s / HTTP/1.1\r\nX: a\0b"):
            for size in range(13000, 16300, 41):
                got = self.raw(head % (b"A" * size) + b"\r\n\r\n")
                self.assertIn(int(got[9:12] or 0), (400, 414, 431), (head, size))
                self.assertEqual(got.count(b"\r\nContent-Length: "), 1, (head, size, got))

    def test_lines_that_are_too_long_keep_no_memory(self):
        """The library forgets a request for whose parameters it has no room: each would keep its 17 kB."""
        sizes = range(13000, 16350, 67)
        used = []
        for _ in range(2):
            for i in range(500):
                got = self.raw(b"GET /?" + b"a=b&" * (sizes[i % len(sizes)] // 4) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertIn(int(got[9:12]), (414, 431))
            info = self.server.run("INFO", "memory")
            used.append(int(re.search(rb"used_memory:(\d+)", info).group(1)))
        self.assertLess(used[1] - used[0], 1 << 20)

    def test_many_heads_on_one_connection_are_lines(self):
        get = b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nX: "
        last = get + b"z\r\nConnection: close\r\n\r\n"
        whole = b"".join(get + b"y" * i + b"\r\n\r\n" for i in range(100)) + last
        self.assertEqual(self.raw(whole).count(b"HTTP/1.1 200"), 101)
        got = self.raw(get + b"a\r\n\r\n" + get + b"b\0\r\n\r\n" + last)
        self.assertEqual((got.count(b"HTTP/1.1 200"), got.count(b"HTTP/1.1 400"), got.count(b"HTTP/1.1")), (1, 1, 2))

    def test_a_length_is_digits_and_gets_one_answer(self):
        post = b"POST /api/v1/logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        for length in (b"+1", b"-1", b"0x1", b"1, 1", b"1 1", b"", b"1.0", b"a", b"1\0", b"1\0 9", b"\0001", b"1\r"):
            self.assertEqual(self.one_answer(post + length, b"x"), 400, length)
        self.assertEqual(self.one_answer(post + b"9" * 30, b"x"), 413)
        self.assertEqual(self.one_answer(post + b"99999"), 413)

    def test_a_path_says_which_methods_it_has(self):
        for path, allowed in (("/boards/arena/page", "GET, HEAD"), ("/boards/arena/results", "POST"),
                              ("/boards/arena/members/ann", "GET, HEAD, DELETE"), ("/boards/arena/members/ann/tags", "PUT, PATCH"),
                              ("/me", "GET, HEAD"), ("/login", "POST"), ("/server/events", "GET, HEAD")):
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"):
                if method in allowed.split(", "):
                    continue
                status, _, headers = self.api.ask("/api/v1" + path, method)
                self.assertEqual((status, headers["Allow"]), (405, allowed), (method, path))
        for path in ("/", "/app.js", "/boards/arena"):
            status, _, headers = self.api.ask(path, "POST")
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), path)
        for method in ("GET", "POST", "DELETE"):
            status, _, headers = self.api.ask("/api/v1/nothing", method)
            self.assertEqual((status, headers["Allow"]), (404, None), method)

    def test_what_a_request_has_once_is_not_there_twice_or_missing(self):
        for head, name in ((b"POST /api/v1/boards/arena/results HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                            b"Idempotency-Key: 1\r\nIdempotency-Key: 2", "Idempotency-Key"),
                           (b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                            b"Content-Type: text/plain\r\nContent-Type: application/json", "Content-Type"),
                           (b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic eDp5\r\n"
                            b"Authorization: Basic eDp6", "Authorization"),
                           (b"GET /api/v1/me HTTP/1.1", "Host"), (b"GET / HTTP/1.1\r\nX: y", "Host")):
            got, _, body = self.raw(head + b"\r\n\r\n").partition(b"\r\n\r\n")
            self.assertTrue(got.startswith(b"HTTP/1.1 400 "), got)
            self.assertIn(b"application/problem+json", got)
            problem = json.loads(body)
            self.assertEqual((problem["status"], problem["code"]), (400, "bad_request"))
            self.assertIn(f"the header {name} is ", problem["detail"])
        self.assertIn(b" 200 ", self.raw(b"GET /api/v1/me HTTP/1.0\r\n\r\n").split(b"\r\n")[0])

    def test_a_request_is_for_one_host(self):
        got = self.raw(b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        self.assertIn(b" 400 ", got.split(b"\r\n")[0])
        got = self.raw(b"GET http://evil.example/api/v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertIn(b" 400 ", got.split(b"\r\n")[0])

    def test_heads_of_streams_hold_nothing(self):
        for _ in range(40):
            self.head()
        wait_until(lambda: self.api.get("/server")["web_connections"] <= 1, "nothing is held")

    def head(self):
        connection = self.api.connection()
        connection.request("HEAD", "/api/v1/boards/arena/events")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_nothing_of_the_api_is_kept_by_caches(self):
        for path in ("/boards", "/boards/arena", "/boards/arena/page", "/boards/arena/members/ann", "/me", "/server",
                     "/slowlog", "/boards/nothing", "/boards/arena/search?q=a"):
            self.assertEqual(self.api.ask("/api/v1" + path)[2]["Cache-Control"], "no-store", path)
        stream = self.api.stream("/boards/arena/events")
        self.assertEqual(stream.reply.headers["Cache-Control"], "no-store")
        stream.close()
        self.assertEqual(self.api.ask("/app.js")[2]["Cache-Control"], "no-cache")


class OddRequestsOverTls(OddRequests):
    @classmethod
    def setUpClass(cls):
        cls.certificate, key = make_certificate()
        cls.words = ("--web-tls-cert-file", cls.certificate, "--web-tls-key-file", key)
        cls.client = lambda server: Api(server, tls=cls.certificate)
        super().setUpClass()


if __name__ == "__main__":
    unittest.main()
