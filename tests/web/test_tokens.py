"""Tokens of users over HTTP: made, kept, taken away; whatever else is sent as one."""
import hashlib
import http.client
import re
import unittest
from concurrent.futures import ThreadPoolExecutor

import redis
from process import Server, hold_port, let_port_go, together, wait_until
from test_api import Api
from web_server import WebServer

PATTERN = re.compile(rb"lbt_[0-9a-f]{64}")


def bearer(token):
    return {"Authorization": "Bearer " + (token.decode() if isinstance(token, bytes) else token)}


class Tokens(unittest.TestCase):
    def begin(self, *words, **options):
        # Wrong tokens are tried; when these are slowed down is another test's.
        self.server = WebServer("--auth-delay", "0", *words, password="secret", **options)
        self.addCleanup(self.server.stop)
        self.api = Api(self.server)
        if self.server.process:
            self.server.run("ZADD", "arena", "5", "bob")

    def make(self, user="ann", label=""):
        token = self.server.run("ACL", "SETUSER", user, "on", "%R~arena", "+@read", f"token>{label}")
        self.assertRegex(token, PATTERN)
        return token

    def status(self, token, path="/boards/arena"):
        return self.api.status(path, **bearer(token))

    def test_rights_are_those_of_the_user_and_end_with_the_token(self):
        self.begin()
        token, other = self.make(label="game"), self.make()
        self.assertEqual(self.api.get("/me", **bearer(token))["user"], "ann")
        self.assertEqual(self.status(token), 200)
        self.assertEqual(self.status(token, "/boards/hidden"), 403)
        self.assertEqual(self.status(token, "/slowlog"), 403)
        self.assertEqual(self.api.status("/boards/arena", user=f"ann:{token.decode()}"), 401)  # no password
        self.assertEqual(self.api.log_in("ann", token.decode())[0], 401)
        with self.assertRaisesRegex(redis.RedisError, "WRONGPASS"):
            redis.Redis(port=self.server.port, username="ann", password=token).ping()
        stream = self.api.stream("/boards/arena/events", **bearer(token))
        self.assertEqual(stream.next()[0], "page")
        self.server.run("ACL", "SETUSER", "ann", "token<game")
        self.assertEqual((self.status(token), self.status(other)), (401, 200))
        self.server.run("ZINCRBY", "arena", "1", "bob")
        self.assertEqual(stream.next()[0], "gone")
        self.server.run("ACL", "SETUSER", "ann", "nopass")  # that is of passwords
        self.assertEqual((self.status(token), self.status(other)), (401, 200))
        self.server.run("ACL", "SETUSER", "ann", "off")
        self.assertEqual(self.status(other), 401)
        self.server.run("ACL", "SETUSER", "ann", "on")
        self.assertEqual(self.status(other), 200)
        self.server.run("ACL", "DELUSER", "ann")
        self.assertEqual(self.status(other), 401)

    def test_a_token_that_was_taken_away_is_refused_everywhere(self):
        self.begin()
        token = self.make(label="game")
        for path in ("/me", "/boards/arena"):
            self.assertEqual(self.status(token, path), 200)
        self.server.run("ACL", "SETUSER", "ann", "token<game")
        for status, reply, _ in together(lambda path: self.api.ask("/api/v1" + path, **bearer(token)),
                                         2 * ["/me", "/boards/arena"]):
            self.assertEqual((status, reply["code"]), (401, "login_needed"))
        self.assertEqual(self.api.get("/me")["user"], None)  # nobody is asked for a login there
        self.server.run("ACL", "SETUSER", "eve", "on", ">p", "%R~arena", "+@read")
        self.assertEqual(self.api.get("/me", user="eve:p")["user"], "eve")
        self.server.run("ACL", "SETUSER", "eve", "off")
        self.assertEqual(self.api.status("/me", user="eve:p"), 401)

    def key(self, **headers):
        """(status, JSON) of a key for one stream."""
        return self.api.ask("/api/v1/stream-key", "POST", **headers)[:2]

    def stream(self, key, path="/boards/arena/events", **headers):
        return self.api.stream(f"{path}{'&' if '?' in path else '?'}key={key}", **headers)

    def test_a_key_begins_one_stream(self):
        self.begin()
        token = self.make(label="game")
        status, made = self.key(**bearer(token))
        self.assertEqual((status, made["expires_in"]), (200, 30))
        self.assertRegex(made["key"], r"^[0-9a-f]{48}$")
        for path in ("/boards/arena/page", "/boards/arena", "/me", "/boards/arena/results"):
            self.assertNotEqual(self.api.ask(f"/api/v1{path}?key={made['key']}")[1].get("user"), "ann")  # for streams alone
        stream = self.stream(made["key"])
        self.assertEqual((stream.status, stream.next()[0]), (200, "page"))
        status, problem = self.stream(made["key"]).refusal()
        self.assertEqual((status, problem["code"]), (401, "login_needed"))
        self.assertIn("stream-key", problem["detail"])
        self.server.run("ZINCRBY", "arena", "1", "bob")
        self.assertEqual(stream.next()[0], "page")
        self.server.run("ACL", "SETUSER", "ann", "token<game")  # the stream ends with the token
        self.server.run("ZINCRBY", "arena", "1", "bob")
        self.assertEqual(stream.next()[0], "gone")
        self.assertEqual(self.key(**bearer(token))[0], 401)

    def test_a_key_is_no_more_than_its_user(self):
        self.begin()
        token = self.make(label="game")
        refused = self.stream(self.key(**bearer(token))[1]["key"], "/boards/hidden/events").refusal()
        self.assertEqual(refused[0], 403)
        key = self.key(**bearer(token))[1]["key"]
        self.server.run("ACL", "SETUSER", "ann", "token<game")
        self.assertEqual(self.stream(key).refusal()[0], 401)
        self.server.run("ACL", "SETUSER", "eve", "on", ">p", "%R~arena", "+@read")
        key = self.key(user="eve:p")[1]["key"]
        self.assertEqual(self.stream(key).next()[0], "page")
        for headers in ({}, {"Cookie": self.api.log_in("eve", "p")[2].split(";")[0]}, {"Authorization": "Bearer x"}):
            self.assertEqual(self.key(**headers)[0], 401, headers)
        self.assertEqual(self.key(Sec_Fetch_Site="cross-site", **bearer(token))[0], 403)

    def test_hostile_keys(self):
        self.begin()
        token = self.make()
        key = self.key(**bearer(token))[1]["key"]
        for wrong in ("", "x", key[:-1], key + "0", key.upper(), "0" * 48, key + "%00", "%00" + key, "%ff" * 16):
            self.assertEqual(self.stream(wrong).refusal()[0], 401, wrong)
        self.assertEqual(self.stream(key).next()[0], "page")

    def test_viewers_with_keys_share_a_view(self):
        self.begin()
        token = self.make()
        paths = ("/boards/arena/events?key={}&count=5", "/boards/arena/events?count=5&key={}")
        self.server.run("CONFIG", "RESETSTAT")
        streams = [self.api.stream(paths[i % 2].format(self.key(**bearer(token))[1]["key"])) for i in range(20)]
        for stream in streams:
            self.assertEqual(stream.next()[0], "page")
        calls = int(re.search(rb"cmdstat_lb.range:calls=(\d+)", self.server.run("INFO", "commandstats"))[1])
        self.assertLess(calls, 10)
        self.assertEqual({stream.next()[1]["count"] for stream in streams if self.bump()}, {1})

    def test_who_comes_to_a_view_has_the_rights_of_then(self):
        self.begin()
        for rule, status in (("resetkeys", 403), ("-@all", 403), ("token<late", 401)):
            watching, coming = self.make(), self.make(label="late")
            stream = self.api.stream("/boards/arena/events", **bearer(watching))
            self.assertEqual(stream.next()[0], "page")
            key = self.key(**bearer(coming))[1]["key"]
            self.server.run("ACL", "SETUSER", "ann", rule)
            self.assertEqual(self.api.stream("/boards/arena/events", **bearer(watching)).status,
                             200 if status == 401 else 403)
            self.assertEqual(self.stream(key).refusal()[0], status)
            stream.close()
            self.server.run("ACL", "DELUSER", "ann")

    def bump(self):
        self.server.run("ZINCRBY", "arena", "1", "bob")
        return True

    def test_keys_are_bounded_and_in_no_log(self):
        self.begin("--loglevel", "debug")
        token, other = self.make(), self.make("eve")
        first = self.key(**bearer(other))[1]["key"]
        keys = [self.key(**bearer(token))[1]["key"] for _ in range(100)]
        self.assertEqual(len(set(keys)), 100)
        self.assertEqual(self.stream(keys[0]).refusal()[0], 401)  # the oldest of the user has made room
        self.assertEqual(self.stream(keys[-1]).next()[0], "page")
        self.assertEqual(self.stream(first).next()[0], "page")  # nobody else's
        log = self.server.log.read_text() + str(self.server.run("SLOWLOG", "GET", "100")) + str(self.server.run("ACL", "LOG"))
        for key in (first, *keys):
            self.assertNotIn(key, log)

    def test_hostile_tokens(self):
        self.begin()
        token = self.make().decode()
        hostile = ["", " ", "x", token[:-1], token + "0", token.upper(), token + " ", f"{token}, {token}",
                   f"{token} x", hashlib.sha256(token.encode()).hexdigest(), "x" * 1023, "x" * 1024, "x" * 6000,
                   "\xff" * 70, '"' + token + '"', token + "\t", "secret", "default:secret", "=" * 68, "%s%n" * 17]
        with ThreadPoolExecutor(len(hostile)) as pool:  # each waits a second
            for each, status in zip(hostile, pool.map(self.status, hostile)):
                self.assertIn(status, (401,) if each.strip() != token else (200, 401), each)
        self.assertEqual(self.status(token), 200)
        self.assertEqual(self.api.status("/me", Authorization="Bearer"), 401)
        log = self.server.log.read_text()
        self.assertIn('auth failed user="(token)"', log)
        self.assertNotIn(token, log)
        entries = [dict(zip(*[iter(entry)] * 2)) for entry in self.server.run("ACL", "LOG", "100")]
        self.assertIn((b"auth", b"HTTP", b"(token)"),
                      [(each[b"reason"], each[b"object"], each[b"username"]) for each in entries])
        self.assertNotIn(token.encode(), b"".join(b"%s" % value for each in entries for value in each.values()
                                                  if isinstance(value, bytes)))

    def test_the_file_keeps_what_it_needs_and_no_token(self):
        self.begin("--aclfile", "users.acl", is_started=False)
        users = self.server.directory / "users.acl"
        users.write_text("user default on >secret ~* &* +@all\n")
        self.server.start()
        self.server.run("ZADD", "arena", "5", "bob")
        token = self.make(label="game")
        self.server.run("ACL", "SAVE")
        kept = users.read_text()
        self.assertNotIn(token.decode(), kept)
        self.assertIn(f" token#{hashlib.sha256(token).hexdigest()}:game ", kept)
        self.server.stop()
        self.server.start()
        self.server.run("ZADD", "arena", "5", "bob")
        self.assertEqual(self.status(token), 200)
        # An operator's own, and what a file may not say.
        mine = "aSecretOfMyOwn.0123456789"
        line = f"user eve on ~* +@read token#{hashlib.sha256(mine.encode()).hexdigest()}\n"
        users.write_text(kept + line)
        self.server.run("ACL", "LOAD")
        self.assertEqual((self.status(token), self.status(mine)), (200, 200))
        for wrong, why in (("user eve on token>\n", "Only ACL SETUSER makes tokens"),
                           ("user eve on token#12\n", "A token is kept as"),
                           (line.replace("eve", "ann2") + line, "Another user has one")):
            users.write_text(kept + wrong)
            with self.assertRaisesRegex(redis.ResponseError, why):
                self.server.run("ACL", "LOAD")
            self.assertEqual((self.status(token), self.status(mine)), (200, 200))
        users.write_text(line.replace("eve", "ann") + "user default on >secret ~* &* +@all\n")
        self.server.run("ACL", "LOAD")  # it is another's now
        self.assertEqual(self.api.get("/me", **bearer(mine))["user"], "ann")
        self.assertEqual(self.status(token), 401)

    def test_the_settings_file_keeps_them(self):
        self.begin(is_started=False)
        config = self.server.directory / "leaderboard.conf"
        config.write_text("")
        self.server.command.insert(1, config)
        self.server.start()
        token = self.make(label="game")
        self.server.run("CONFIG", "REWRITE")
        self.assertIn(f"token#{hashlib.sha256(token).hexdigest()}:game", config.read_text())
        self.assertNotIn(token.decode(), config.read_text())
        self.server.stop()
        self.server.start()
        self.server.run("ZADD", "arena", "5", "bob")
        self.assertEqual(self.status(token), 200)

    def test_a_replica_has_users_of_its_own(self):
        self.begin()
        token = self.make()
        replica = WebServer("--auth-delay", "0", "--replicaof", f"127.0.0.1 {self.server.port}", "--masterauth", "secret",
                            password="secret")
        self.addCleanup(replica.stop)
        api = Api(replica)
        wait_until(lambda: replica.run("EXISTS", "arena"), "the copy")
        self.assertEqual(api.status("/boards/arena", **bearer(token)), 401)
        replica.run("ACL", "SETUSER", "ann", "on", "~*", "+@read", f"token#{hashlib.sha256(token).hexdigest()}")
        self.assertEqual(api.status("/boards/arena", **bearer(token)), 200)

    def test_metrics_take_them(self):
        port = hold_port()
        let_port_go(port)
        server = Server("--metrics-port", port, "--auth-delay", "0")
        self.addCleanup(server.stop)

        def status(token):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/metrics", headers=bearer(token))
            return connection.getresponse().status
        token = server.ask("ACL", "SETUSER", "scrape", "on", "+info", "token>")
        other = server.ask("ACL", "SETUSER", "ann", "on", "+get", "token>")
        for _ in range(2):  # without and with a password of the default user
            self.assertEqual((status(token), status(other), status("x")), (200, 403, 401))
            server.ask("CONFIG", "SET", "requirepass", "secret")

    def test_guessing_is_slowed_down_but_not_for_those_who_have_one(self):
        server = WebServer("--auth-delay", "60000", "--auth-delay-after", "3", password="secret")
        self.addCleanup(server.stop)
        api = Api(server)
        tokens = [server.run("ACL", "SETUSER", name, "on", "~*", "+@read", "token>") for name in ("ann", "bob")]
        server.run("ACL", "SETUSER", "cid", "off", "token>")

        def ask(token):
            return api.ask("/api/v1/me", **bearer(token))[0]
        self.assertEqual([ask("guess1"), ask(tokens[0]), ask("guess2"), ask(tokens[0]), ask("guess3")],
                         [401, 200, 401, 200, 401])
        self.assertEqual((ask("guess4"), ask(tokens[1])), (429, 429))  # not looked at
        self.assertEqual(ask(tokens[0]), 200)  # was right before
        self.assertEqual(api.log_in("default", "secret")[0], 429)
