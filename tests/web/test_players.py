"""Players' tokens over HTTP and RESP, as a login makes them: with whatever it says, for whoever it is, until it ends."""
import base64
import contextlib
import functools
import hashlib
import hmac
import json
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import resp
from process import together, wait_until
from test_writes import Writer
from web_server import WebServer

SECRET = b"0123456789abcdef0123456789abcdef"


def coded(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@functools.cache
def key_pair(number):
    """The path of a private key, and the public one as a line of the settings has it."""
    path = Path(tempfile.mkdtemp()) / f"{number}.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True)
    public = subprocess.run(["openssl", "pkey", "-in", path, "-pubout"], check=True, capture_output=True, text=True)
    return path, public.stdout.splitlines()[1]


@functools.cache
def signed_by(path, text):
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        made = subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", path, "-rawin", "-in", file.name],
                              check=True, capture_output=True)
    return made.stdout


def token(player, kid="back", number=0, algorithm=None, **claims):
    """A claim or a member of the header of None is left out."""
    algorithm = algorithm or ("HS256" if kid == "back" else "EdDSA")
    claims = {"sub": player, "exp": int(time.time()) + 3000, **claims}
    text = ".".join((coded({"alg": algorithm, "typ": "JWT", "kid": kid}),
                     coded({name: value for name, value in claims.items() if value is not None})))
    signature = hmac.new(SECRET, text.encode(), hashlib.sha256).digest() if algorithm == "HS256" else signed_by(
        key_pair(number)[0], text)
    return f"{text}.{coded(signature)}"


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


class Players(unittest.TestCase):
    def begin(self, *words, keys=None, **options):
        keys = keys or [f"back hs256 {SECRET.decode()}", f"web ed25519 {key_pair(0)[1]} BOARDS game*"]
        self.server = WebServer("--web-write", "yes", "--web-write-rate", "0", "--auth-delay", "0",
                                *(word for key in keys for word in ("--player-key", *key.split())), *words, **options)
        self.addCleanup(self.server.kill)
        self.api = Writer(self.server)
        run = self.server.run
        for kid in ("back", "web"):
            run("ACL", "SETUSER", f"player:{kid}", "on", "~game*", "~hall", "~name:*", "+@read", "-@dangerous",
                "+lb.add", "+zadd", "+lb.tag", "+lb.submit", "+acl|whoami", "+@connection", "allchannels", "+subscribe")
        run("LB.CREATE", "game", "FIELD", "score", "32", "TIME", "31", "S", "TAG", "clan", "8")
        run("LB.CREATE", "hall", "FIELD", "score", "32", "TIME", "31", "S")
        run("ZADD", "game", "5", "bob")

    def client(self, text=None):
        client = self.server.connect()
        self.addCleanup(client.close)
        if text:
            self.assertEqual(client.ask("AUTH", text), b"OK")
        return client

    def refused(self, client, *words):
        answer = client.ask(*words)
        self.assertIsInstance(answer, resp.Error, words)
        return answer.text

    def write(self, text, member, score=7, board="game", **headers):
        return self.api.post(f"/boards/{board}/results", {"member": member, "value": score}, creates=False,
                             **bearer(text), **headers)

    def problem(self, text, path="/boards/game/me"):
        """(status, detail) of a refused read."""
        status, reply, _ = self.api.ask("/api/v1" + path, **bearer(text))
        return status, reply["detail"] if isinstance(reply, dict) else reply.decode()

    def test_the_keys_of_the_file_are_read_again(self):
        file = Path(tempfile.mkdtemp()) / "server.conf"
        file.write_text(f"player-key back hs256 {SECRET.decode()}\n")
        self.begin(keys=[f"web ed25519 {key_pair(0)[1]}"], config=file)
        back, web = self.client(token("ann")), self.client(token("bob", "web"))
        file.write_text("player-key back hs256 short\n")
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "player-key lines cannot be read again" in self.server.told(), "the refusal")
        self.assertEqual(back.ask("LB.ADD", "game", "1", "ann"), 1)
        file.write_text(f"player-key next hs256 {SECRET.decode()}\n")
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "player-key lines read again count=2" in self.server.told(), "the new keys")
        self.assertTrue(self.refused(back, "LB.ADD", "game", "2", "ann").startswith("NOAUTH"))
        self.assertEqual(web.ask("LB.ADD", "game", "2", "bob"), 1)  # of the command line
        self.server.run("CONFIG", "SET", "player-key", f"next hs256 {SECRET.decode()}")
        lines = self.server.told().count("log reopened")
        self.server.process.send_signal(signal.SIGHUP)  # the file is as it was: logrotate changes no key
        wait_until(lambda: self.server.told().count("log reopened") > lines, "the log")
        self.assertTrue(self.refused(web, "LB.ADD", "game", "3", "bob").startswith("NOAUTH"))
        self.server.run("ACL", "SETUSER", "player:next", "on", "~game", "+lb.add")
        self.assertEqual(self.client(token("ann", "next", algorithm="HS256")).ask("LB.ADD", "game", "3", "ann"), 1)

    def test_who_is_hidden_sees_the_own_place_and_nobody_else_does(self):
        self.begin()
        ann, bob = token("ann"), token("bob")
        self.assertEqual(self.write(ann, "ann")[0], 200)
        self.assertEqual(self.server.run("LB.BAN", "ann", "SHADOW", "EX", "100000"), 1)
        for score in (7, 3, 9):
            self.assertEqual(self.write(ann, "ann", score)[0], 200)
            rank = 1 if score < 5 else 0
            me = self.api.get("/boards/game/me", **bearer(ann))
            self.assertEqual((me["rank"], me["count"], me["row"]["score"]), (rank, 2, str(score)))
            page = self.api.get("/boards/game/page", **bearer(ann))
            self.assertEqual(sorted(row["member"] for row in page["rows"]), ["ann", "bob"])
            for headers in (bearer(bob), {}):
                page = self.api.get("/boards/game/page", **headers)
                self.assertEqual([row["member"] for row in page["rows"]], ["bob"])
                self.assertEqual(self.api.status("/boards/game/members/ann", **headers), 404)
            self.assertEqual(self.api.get("/boards/game/me", **bearer(bob))["rank"], 0)
        client = self.client(ann)
        self.assertEqual(client.ask("ZREVRANGE", "game", "0", "-1"), [b"ann", b"bob"])
        self.assertEqual(self.server.run("ZREVRANGE", "game", "0", "-1"), [b"bob"])
        self.server.run("LB.UNBAN", "ann")
        wait_until(lambda: self.server.run("ZSCORE", "game", "ann") == b"9", "the entry")
        self.assertEqual(self.api.get("/boards/game/me", **bearer(bob))["rank"], 1)

    def test_a_ban_over_http_holds_at_once_and_goes_on_by_itself(self):
        self.begin("--appendonly", "yes")
        run, api = self.server.run, self.api
        run("ACL", "SETUSER", "judge", "on", ">p", "allkeys", "+@all")
        run("ACL", "SETUSER", "clerk", "on", ">p", "~game", "+@all")

        def ask(method, path, **options):
            return api.ask(f"/api/v1/bans/{path}", method, **options)[:2]
        self.assertEqual(ask("PUT", "bob", user="judge:p"), (200, {"member": "bob", "db": 0, "banned": True}))
        self.assertIn("BANNED", self.refused(self.client(), "ZADD", "game", "7", "bob"))
        wait_until(lambda: run("ZCARD", "game") == 0, "the end of the ban's pass")
        self.assertEqual(run("LB.BANS"), [b"0", [[b"bob", b"*", None, 0]]])
        self.assertEqual(ask("DELETE", "bob", user="judge:p"), (200, {"member": "bob", "db": 0, "unbanned": True}))
        self.assertEqual(ask("DELETE", "bob", user="judge:p"), (200, {"member": "bob", "db": 0, "unbanned": False}))
        # Many boards, by steps, over a crash: nobody waits.
        run("ZADD", "game", "7", "a/b")
        many = self.server.connect()
        self.addCleanup(many.close)
        for first in range(0, 6000, 500):
            many.send([("ZADD", f"many:{i}", "1", "a/b") for i in range(first, first + 500)])
            for _ in range(500):
                many.receive()
        path = "a%2Fb?shadow=1&seconds=1000&match=*"
        self.assertEqual(ask("PUT", path, user="judge:p"), (200, {"member": "a/b", "db": 0, "banned": True}))
        self.restart()
        wait_until(lambda: run("DBSIZE") == 6002 and all(run("ZCARD", f"many:{i}") == 0 for i in range(0, 6000, 7)), "the ban")
        member, pattern, until, is_shadow = run("LB.BANS")[1][0]
        self.assertEqual((member, pattern, is_shadow), (b"a/b", b"*", 1))
        self.assertTrue(0 < until / 1000 - time.time() < 1001)
        self.assertEqual(api.get("/boards/game/me", **bearer(token("a/b")))["rank"], 0)
        run("ACL", "SETUSER", "clerk", "on", ">p", "~game", "+@all")
        for options in ({"user": "clerk:p"}, bearer(token("ann"))):
            for method in ("PUT", "DELETE"):
                status, problem = ask(method, "a%2Fb", **options)
                self.assertEqual((status, problem["redis"]), (403, "NOPERM"))
        for wrong in ("bob?seconds=0", "bob?seconds=x", "bob?shadow=2", "bob?db=99", "bob?match=", "bob?match"):
            self.assertIn(ask("PUT", wrong)[0], (400, 422), wrong)
        self.assertEqual(ask("GET", "bob")[0], 405)
        # What nobody reads would make another ban of it.
        bans = run("LB.BANS")
        for method, path, body in (
                ("PUT", "bans/new?ex=1", None), ("PUT", "bans/new?Shadow=1", None), ("DELETE", "bans/a%2Fb?match=a", None),
                ("PUT", "boards/game/held/new?ids=1", None), ("DELETE", "boards/game/members/a?id=1", None),
                ("PUT", "bans/new", '{"shadow": 1}'), ("PUT", "boards/game/held/new", '{"id": 1}')):
            status, problem = api.ask(f"/api/v1/{path}", method, body, Content_Type="application/json")[:2]
            self.assertEqual(status, 400, path)
            self.assertIn("takes no body" if body else "there is no such word", problem["detail"])
        self.assertEqual(run("LB.BANS"), bans)

    def test_a_player_writes_the_own_results_alone(self):
        self.begin()
        for kid in ("back", "web"):
            ann = token("ann", kid)
            self.assertEqual(self.write(ann, "ann")[0], 200)
            self.assertEqual(self.write(ann, "bob")[0], 403)
            self.assertEqual(self.write(ann, "ann", board="gamenew")[0], 404)
            made = self.api.post("/boards/gamenew/results", {"member": "ann", "value": 1}, **bearer(ann))
            self.assertEqual(made[0], 403, made)
            self.assertEqual(self.write(ann, "ann", board="hall")[0], 200 if kid == "back" else 403)
            both = [{"member": "ann", "value": 100}, {"member": "bob", "value": 100}]
            self.assertEqual(self.api.post("/boards/game/results", both, creates=False, **bearer(ann))[0], 403)
            for method, path in (("DELETE", "/boards/game/members/ann"), ("DELETE", "/boards/game"),
                                 ("PUT", "/boards/game/members/bob/tags"), ("POST", "/boards/game/roll")):
                self.assertIn(self.api.post(path, {}, method=method, **bearer(ann))[0], (400, 403, 404, 405, 413), path)
            client = self.client(ann)
            self.assertIn("NOPERM", self.refused(client, "ZADD", "game", "9", "bob"))
            self.assertIn("NOPERM", self.refused(client, "DEL", "game"))
        self.assertEqual(self.server.run("ZRANGE", "game", "0", "-1", "WITHSCORES"), [b"bob", b"5", b"ann", b"7"])

    def test_no_player_writes_a_match_but_may_ask_for_chances(self):
        self.begin()
        self.server.run("LB.CREATE", "gameladder", "RATING", "ELO")
        self.server.run("ACL", "SETUSER", "player:back", "+lb.match", "+lb.rate", "+lb.predict")
        ann = token("ann")
        match = {"teams": [["ann"], ["bob"]]}
        status, reply, _ = self.api.post("/boards/gameladder/matches", match, **bearer(ann))
        self.assertEqual((status, reply["detail"]),
                         (403, "NOPERM players write results and tags of their own: not by 'lb.match'"))
        self.assertIn("NOPERM players write", self.refused(self.client(ann), "LB.RATE", "gameladder", "ann", "2000"))
        status, reply, _ = self.api.post("/boards/gameladder/predictions", match, **bearer(ann))
        self.assertEqual(status, 200, reply)
        self.assertEqual(self.server.run("ZCARD", "gameladder"), 0)

    def test_me_is_who_the_token_says(self):
        self.begin()
        names = ["ann", "Zoë", "a/b", "x" * 255, "مرحبا", "a\u0000b", "../bob", "bob?x=1", '"', "bob%00"]
        for name in names:
            text = token(name)
            self.assertEqual(self.write(text, name)[0], 200, name)
            reply = self.api.get("/boards/game/me", **bearer(text))
            self.assertEqual(reply["member"]["member"] if isinstance(reply["member"], dict) else reply["member"], name)
        self.assertEqual(self.server.run("ZSCORE", "game", "bob"), b"5")
        self.assertEqual(self.problem("", "/boards/game/me")[0], 401)
        self.assertEqual(self.api.ask("/api/v1/boards/game/me")[0], 401)  # of nobody who has not come as a player
        self.assertEqual(self.problem(token("nobody"), "/boards/game/me")[0], 404)

    def test_answers_that_are_kept_are_ones_own(self):
        self.begin()
        texts = {name: token(name) for name in ("ann", "bea", "cyd")}
        for name, text in texts.items():
            self.write(text, name, len(name) + ord(name[0]))
        for _ in range(5):
            for name, text in texts.items():
                for kid_text in (text, token(name, "web")):
                    reply = self.api.get("/boards/game/me", **bearer(kid_text))
                    found = reply["member"]["member"] if isinstance(reply["member"], dict) else reply["member"]
                    self.assertEqual(found, name)
                    self.assertEqual(self.api.get("/me", **bearer(kid_text))["user"][:7], "player:")
            self.assertEqual(self.api.ask("/api/v1/boards/game/me")[0], 401)

    def test_what_is_wrong_is_said_and_nothing_is_let_in(self):
        self.begin()
        now = int(time.time())
        right = token("ann")
        head, claims, signature = right.split(".")
        none = coded({"alg": "none", "kid": "back"})
        public = key_pair(0)[1]
        confused = f'{coded({"alg": "HS256", "kid": "web"})}.{claims}'
        confused += "." + coded(hmac.new(base64.b64decode(public)[12:], confused.encode(), hashlib.sha256).digest())
        cases = [(token("ann", exp=now - 61), "expired"), (token("ann", exp=None), "no end"),
                 (token("ann", nbf=now + 1000), "not hold yet"), (token("ann", iat=now + 1000), "not hold yet"),
                 (token("ann", aud="other"), "audience"), (token(""), "no player"), (token("x" * 256), "no player"),
                 (token(7), "understood"), (token("ann", "web", number=1), "signature"),
                 (f"{none}.{claims}.", "algorithm"), (f"{none}.{claims}.{signature}", "algorithm"),
                 (f"{head}.{claims}.", "signature"), (f"{head}.{coded({'sub': 'bob', 'exp': now + 99})}.{signature}",
                                                      "signature"),
                 (confused, "algorithm"), (right[:-1] + ("A" if right[-1] != "A" else "B"), "signature")]
        for kid in ("other", "", None):
            cases.append((f'{coded({"alg": "HS256", **({"kid": kid} if kid is not None else {})})}.{claims}.{signature}', ""))

        def refused(case):
            text, why = case
            status, detail = self.problem(text)
            self.assertEqual(status, 401, (why, detail))
            self.assertIn(why, detail)
            self.assertEqual(self.write(text, "ann")[0], 401)

        together(refused, cases)
        for text, why in cases:
            self.assertIn(why, self.refused(self.client(), "AUTH", text))
            self.assertIn(why, self.refused(self.client(), "HELLO", "3", "AUTH", "player", text))
        self.assertEqual(self.server.run("ZSCORE", "game", "ann"), None)

    def test_tokens_of_up_to_4096_bytes(self):
        self.begin()
        for size in (4095, 4096, 4097, 4098):
            text = next(text for pad in range(2950, 3100) for text in [token("ann", p="x" * pad)] if len(text) >= size)
            is_right = len(text) <= 4096
            self.assertEqual(self.write(text, "ann")[0] == 200, is_right, len(text))
            answer = self.client().ask("AUTH", text)
            self.assertEqual(answer == b"OK", is_right, len(text))

    def test_users_of_players_log_in_by_nothing_else(self):
        self.begin()
        self.server.run("ACL", "SETUSER", "player:back", ">secret")
        made = self.server.run("ACL", "SETUSER", "player:back", "token>game")
        self.assertEqual(self.api.status("/me", user="player:back:secret"), 401)

        def refused(case):
            self.assertEqual(self.api.status("/me", user=":".join(case)), 401)
            self.assertEqual(self.api.log_in(*case)[0], 401)

        together(refused, [(name, word) for name in ("player:back", "player") for word in ("secret", token("ann"))])
        if isinstance(made, bytes) and made.startswith(b"lbt_"):
            self.assertEqual(self.api.status("/boards/game", **bearer(made.decode())), 401)
        self.assertIn("WRONGPASS", self.refused(self.client(), "AUTH", "player:back", "secret"))

    def test_it_ends_between_two_requests_of_one_connection(self):
        self.begin()
        end = int(time.time()) - 57  # 60 s more are allowed
        text = token("ann", exp=end)
        connection = self.api.connection()
        self.addCleanup(connection.close)
        client = self.client(text)
        seen = set()

        def is_over():
            connection.request("GET", "/api/v1/boards/game", headers=bearer(text))
            reply = connection.getresponse()
            reply.read()
            answer = client.ask("ZCARD", "game")
            seen.add((reply.status, isinstance(answer, resp.Error)))
            return reply.status == 401 and isinstance(answer, resp.Error)
        wait_until(is_over, "the token's end")
        self.assertLessEqual(seen, {(200, False), (200, True), (401, False), (401, True)})
        self.assertEqual(self.write(text, "ann")[0], 401)
        self.assertEqual(client.ask("AUTH", token("ann")), b"OK")

    def test_the_first_answer_says_already_why_a_token_counts_no_more(self):
        self.begin()
        run = self.server.run
        ends = {"it was revoked": ("LB.REVOKE", "ann"),
                "there is no user player:KID of its kid, or it is off": ("ACL", "SETUSER", "player:back", "off"),
                "no player-key has its kid": ("CONFIG", "SET", "player-key", f"web hs256 {SECRET.decode()}")}
        for number, (why, words) in enumerate(ends.items()):
            reads, writes = (token("ann", iat=int(time.time()) - each) for each in (2 * number + 1, 2 * number + 2))
            self.assertEqual(self.api.status("/boards/game/me", **bearer(reads)), 200 if number else 404)
            self.assertEqual(self.write(writes, "ann")[0], 200)
            run(*words)
            said = (401, f"the player's token was refused: {why}")
            self.assertEqual(self.problem(reads), said)
            status, reply = self.write(writes, "ann")[:2]
            self.assertEqual((status, reply["detail"]), said)
            run("LB.REVOKE", "ann", "BEFORE", "0")
            run("ACL", "SETUSER", "player:back", "on")

    def test_a_key_that_goes_or_changes_ends_all_that_it_let_in(self):
        self.begin()
        ann, zoe = token("ann"), token("zoe", "web")
        resp_ann, resp_zoe = self.client(ann), self.client(zoe)
        stream = self.api.stream("/boards/game/events", **bearer(ann))
        self.assertEqual(stream.next()[0], "page")
        for path in ("/boards/game", "/boards/game"):
            self.assertEqual(self.api.status(path, **bearer(ann)), 200)
        web = f"web ed25519 {key_pair(0)[1]} BOARDS game*"
        for keys in (f"{web}\nback hs256 {SECRET.decode()[::-1]}", web):
            self.server.run("CONFIG", "SET", "player-key", keys)
            self.assertEqual(self.api.status("/boards/game", **bearer(ann)), 401)
            self.assertEqual(self.write(ann, "ann")[0], 401)
            self.assertIn("NOAUTH", self.refused(resp_ann, "ZCARD", "game"))
            self.assertEqual(resp_zoe.ask("ZCARD", "game"), 1)
            self.assertEqual(self.api.status("/boards/game", **bearer(zoe)), 200)
        self.server.run("ZINCRBY", "game", "1", "bob")
        self.assertEqual(stream.next()[0], "gone")
        self.server.run("ACL", "SETUSER", "player:web", "off")
        self.assertEqual(self.api.status("/boards/game", **bearer(zoe)), 401)

    def test_a_key_of_streams_is_its_players(self):
        self.begin()
        status, made, _ = self.api.ask("/api/v1/stream-key", "POST", **bearer(token("ann")))
        self.assertEqual(status, 200)
        stream = self.api.stream(f"/boards/game/events?key={made['key']}")
        self.assertEqual(stream.next()[0], "page")
        self.assertEqual(self.api.stream(f"/boards/game/events?key={made['key']}").refusal()[0], 401)
        made = self.api.ask("/api/v1/stream-key", "POST", **bearer(token("ann", "web")))[1]
        self.assertEqual(self.api.stream(f"/boards/hall/events?key={made['key']}").refusal()[0], 403)
        self.server.run("LB.REVOKE", "ann")
        self.server.run("ZINCRBY", "game", "1", "bob")
        self.assertEqual(stream.next()[0], "gone")

    def test_guests_are_players_of_their_own_and_an_address_makes_so_many(self):
        self.begin("--web-guests", "back", "--web-guests-per-hour", "3", "--web-proxies", "127.0.0.1", "--protected-mode", "no",
                   "--web-allow-origin", "https://game.example.com")

        def make(address="192.0.2.1", **headers):
            return self.api.once("/players", "POST", X_Forwarded_For=address, **headers)

        made = [make()[1] for _ in range(3)]
        self.assertEqual(len({each["player"] for each in made} | {each["token"] for each in made}), 6)
        status, reply, headers = make()
        self.assertEqual((status, reply["detail"]), (429, "this address has made too many players: see web-guests-per-hour"))
        self.assertIn(int(headers["Retry-After"]), range(1, 1201))
        self.assertEqual([make("2001:db8::1")[0] for _ in range(2)] + [make(f"2001:db8::{i}")[0] for i in (2, 3)], [200] * 3 + [429])
        status, reply, headers = make("192.0.2.2", Origin="https://game.example.com")
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, "https://game.example.com"))
        self.assertEqual(make("192.0.2.2", Origin="https://other.example.com")[0], 403)
        self.assertEqual([self.api.once("/players", "POST")[0] for _ in range(9)], [200] * 9)  # this machine has no limit
        one, other = made[:2]
        self.assertRegex(one["player"], "^guest:[0-9a-f]{16}$")
        self.assertEqual(self.write(one["token"], one["player"])[0], 200)
        self.assertEqual(self.write(one["token"], other["player"])[0], 403)
        self.assertEqual(self.api.get("/boards/game/me", **bearer(one["token"]))["member"], one["player"])
        self.assertEqual(self.client(other["token"]).ask("LB.ADD", "game", "9", other["player"]), 1)
        self.server.run("LB.REVOKE", one["player"], "BEFORE", str(int(time.time() * 1000) + 60000))
        self.assertEqual(self.problem(one["token"]), (401, "the player's token was refused: it was revoked"))
        self.server.run("CONFIG", "SET", "player-key", f"web ed25519 {key_pair(0)[1]}")
        status, reply, _ = make("192.0.2.3")
        self.assertEqual((status, reply["detail"]), (403, "web-guests is 'back': there is no hs256 player-key of this name"))

    def test_nobody_is_made_a_guest_whom_nobody_asked_for(self):
        self.begin()
        self.assertEqual(self.api.once("/players", "POST")[0], 403)

    def test_players_take_no_keys_of_a_user_who_is_called_like_them(self):
        self.begin()
        self.server.run("ACL", "SETUSER", "boss", "on", ">p", "~game", "+@read")
        key = self.api.ask("/api/v1/stream-key", "POST", user="boss:p")[1]["key"]
        for _ in range(70):
            self.assertEqual(self.api.ask("/api/v1/stream-key", "POST", **bearer(token("boss")))[0], 200)
        self.assertEqual(self.api.stream(f"/boards/game/events?key={key}").next()[0], "page")

    def test_other_sites_are_let_in_as_the_setting_says(self):
        self.begin("--web-allow-origin", "https://game.example")
        for origin, allowed in (("https://game.example", "https://game.example"), ("https://evil.example", None)):
            site = {"Origin": origin, "Sec_Fetch_Site": "cross-site"}
            status, _, headers = self.write(token("ann"), "ann", **site)
            self.assertEqual((status == 200, headers["Access-Control-Allow-Origin"]), (allowed is not None, allowed))
            headers = self.api.ask("/api/v1/boards/game/results", "OPTIONS", Access_Control_Request_Method="POST",
                                   Access_Control_Request_Headers="authorization,content-type", **site)[2]
            self.assertEqual(headers["Access-Control-Allow-Origin"], allowed)

    def test_ids_are_ones_own_also_over_a_crash(self):
        self.begin("--appendonly", "yes", "--appendfsync", "always")
        ann, zoe = token("ann"), token("zoe", "web")

        def write_all():
            return [self.write(text, name, 5, Idempotency_Key="k1")[1].get("changed")
                    for text, name in ((ann, "ann"), (zoe, "zoe"))]
        self.assertEqual(write_all(), [1, 1])
        for name, text in (("ann", ann), ("zoe", zoe)):
            self.assertEqual(self.client(text).ask("LB.ADD", "game", "INCR", "ONCE", "k2", "1", name), 1)
        self.server.run("LB.REVOKE", "cyd")
        users = self.server.run("ACL", "LIST")
        before = self.server.run("ZRANGE", "game", "0", "-1", "WITHSCORES")
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()
        self.server.start()
        for line in users:
            if line.startswith(b"user player:"):
                self.server.run("ACL", "SETUSER", *line.split()[1:])
        self.assertEqual(self.server.run("ZRANGE", "game", "0", "-1", "WITHSCORES"), before)
        for name, text in (("ann", ann), ("zoe", zoe)):
            self.assertEqual(self.client(text).ask("LB.ADD", "game", "INCR", "ONCE", "k2", "1", name), 0)
        for text, name in ((ann, "ann"), (zoe, "zoe")):
            self.assertEqual(self.write(text, name, 5, Idempotency_Key="k1")[0], 200)
        self.assertEqual(self.server.run("ZRANGE", "game", "0", "-1", "WITHSCORES"), before)
        self.assertIn("revoked", self.refused(self.client(), "AUTH", token("cyd", iat=int(time.time()) - 100)))

    def test_what_is_held_is_seen_by_its_player_and_decided_by_others(self):
        self.begin("--appendonly", "yes", "--appendfsync", "always")
        run = self.server.run
        run("LB.ALTER", "game", "KEEP", "BEST", "HOLD", "PLAYERS", "OVER", "1000")
        run("ACL", "SETUSER", "player:back", "+lb.held")
        ann, bob = token("ann"), token("bob")
        run("ACL", "SETUSER", "judge", "on", ">p", "~game", "+@read", "+lb.held", "+lb.reject")
        run("ACL", "SETUSER", "guard", "on", ">p", "~game", "+@read", "-lb.held")
        streams = {who: self.api.stream("/boards/game/events", **headers) for who, headers in (
            ("judge", {"Authorization": self.api.basic("judge:p")}), ("guard", {"Authorization": self.api.basic("guard:p")}),
            ("bob", bearer(bob)))}
        self.assertEqual({who: stream.next()[1].get("held") for who, stream in streams.items()}, {"judge": 0, "guard": None, "bob": None})
        status, reply, _ = self.write(ann, "ann", 5000)
        self.assertEqual((status, reply["changed"], reply["held"]), (200, 0, 1))
        event, page = streams["judge"].next()
        self.assertEqual((event, page["held"], [row["member"] for row in page["rows"]]), ("page", 1, ["bob"]))
        status, reply, _ = self.write(ann, "ann", 7)
        self.assertEqual((status, reply["changed"], "held" in reply), (200, 1, False))
        self.assertEqual(self.problem(bob, "/boards/game/held/ann")[0], 405)
        for nothing in ("?id=", "?id"):  # is not all of them
            self.assertEqual(self.api.ask(f"/api/v1/boards/game/held/ann{nothing}", "DELETE", user="judge:p")[0], 400)
        me = self.api.get("/boards/game/me", **bearer(ann))
        self.assertEqual((me["rank"], me["row"]["score"]), (0, "7"))
        self.assertEqual([(each["id"], each["values"]) for each in me["held"]], [(1, ["5000"])])
        self.assertNotIn("held", self.api.get("/boards/game/members/ann", **bearer(bob)))
        liz = token("liz")
        self.assertEqual(self.problem(liz)[0], 404)
        self.assertEqual(self.write(liz, "liz", 1001)[1]["held"], 1)
        self.assertEqual(self.write(liz, "liz", 1002)[1]["held"], 1)
        me = self.api.get("/boards/game/me", **bearer(liz))
        self.assertEqual((me["member"], me["rank"], me["row"], me["percentile"], me["around"]),
                         ("liz", None, None, None, []))
        self.assertEqual([(each["id"], each["values"]) for each in me["held"]], [(3, ["1002"]), (2, ["1001"])])
        self.assertEqual(run("LB.REJECT", "game", "liz"), 2)
        self.assertEqual(self.problem(liz)[0], 404)
        status, reply, _ = self.api.ask("/api/v1/boards/game/held", **bearer(bob))
        self.assertEqual((status, reply["held"]), (200, []))
        status, reply, _ = self.api.ask("/api/v1/boards/game/held", **bearer(ann))
        self.assertEqual([(each["id"], each["member"], each["values"], each["reason"]) for each in reply["held"]],
                         [(1, "ann", ["5000"], "OVER")])
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()
        self.server.start()
        self.assertEqual(run("LB.APPROVE", "game", "ann", "1"), 1)
        self.assertEqual(run("LB.APPROVE", "game", "ann", "1"), 0)
        self.assertEqual(run("ZSCORE", "game", "ann"), b"5000")

    def test_limits_are_those_of_a_player_also_over_a_crash(self):
        self.begin("--appendonly", "yes", "--appendfsync", "always")
        self.server.run("LB.ALTER", "game", "LIMITS", "PLAYERS", "MAX", "1000", "RESULTS", "3", "PER", "DAY")
        ann = token("ann")
        status, problem, headers = self.write(ann, "ann", 1001)
        self.assertEqual((status, problem["redis"], problem["detail"]), (422, "LIMIT", "LIMIT MAX 1000: 1001 is above"))
        self.assertNotIn("Retry-After", headers)
        self.assertEqual(self.write(ann, "ann", 1000)[0], 200)
        self.assertEqual(self.client(ann).ask("ZADD", "game", "7", "ann"), 0)
        racing = [self.client(ann) for _ in range(8)]
        for i, client in enumerate(racing):
            client.send([("LB.ADD", "game", str(100 + i), "ann")])
        answers = [client.receive() for client in racing]
        self.assertEqual(sum(answer == 1 for answer in answers), 1, answers)
        self.assertEqual(sum("TOOSOON RESULTS 3 PER DAY" in getattr(answer, "text", "") for answer in answers), 7)
        # Made in steps, as a board without limits, and then put in the place of one that has some.
        self.server.run("LB.CREATE", "stored", "FIELD", "score", "32", "LIMITS", "ALL", "EVERY", "1", "D")
        self.server.run("ZADD", "many", *(word for i in range(6000) for word in (str(i), f"m{i}")))
        self.assertEqual(self.server.run("ZUNIONSTORE", "stored", "1", "many"), 6000)
        users = self.server.run("ACL", "LIST")
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()
        self.server.start()
        for line in users:
            if line.startswith(b"user player:"):
                self.server.run("ACL", "SETUSER", *line.split()[1:])
        status, problem, headers = self.write(ann, "ann", 5)
        self.assertEqual((status, problem["redis"]), (429, "TOOSOON"))
        self.assertTrue(86000 < int(headers["Retry-After"]) <= 86400, headers)
        self.assertEqual(self.write(token("kim"), "kim", 5)[0], 200)
        self.assertEqual(self.server.run("ZCARD", "stored"), 6000)
        self.server.run("ZADD", "stored", "7", "new")
        self.assertIn("TOOSOON EVERY 1 D", self.refused(self.client(), "ZADD", "stored", "8", "new"))
        self.server.run("ZADD", "game", "5000", "ann")

    def ticket(self, text, board="game", **asked):
        status, reply, _ = self.api.post(f"/boards/{board}/tickets", asked, creates=False, **bearer(text))
        self.assertEqual(status, 200, reply)
        return reply["ticket"]

    def result(self, text, member, ticket, score=7):
        return self.api.post("/boards/game/results", {"member": member, "value": score, "ticket": ticket}, creates=False,
                             **bearer(text))[:2]

    def restart(self, server=None):
        """Killed, and with the users of before."""
        users = self.server.run("ACL", "LIST")
        server = server or self.server
        if server is self.server:
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            server.start()
        for line in users:
            if line.startswith(b"user player:"):
                server.run("ACL", "SETUSER", *line.split()[1:])

    def test_tickets_count_once_also_over_a_crash_and_a_failover(self):
        self.begin("--appendonly", "yes", "--appendfsync", "always")
        for kid in ("back", "web"):
            self.server.run("ACL", "SETUSER", f"player:{kid}", "+lb.ticket", "+multi", "+exec")
        self.server.run("LB.ALTER", "game", "TICKETS", "YES", "LIMITS", "PLAYERS", "MINTIME", "1", "H")
        ann, kim = token("ann"), token("kim", "web")
        status, problem, _ = self.write(ann, "ann")
        self.assertEqual((status, problem["redis"]), (403, "TICKET"))
        status, problem, headers = self.api.post("/boards/game/results", {
            "member": "ann", "value": 7, "ticket": self.ticket(ann)}, creates=False, **bearer(ann))
        self.assertEqual((status, problem["redis"]), (429, "TOOSOON"))
        self.assertTrue(3590 < int(headers["Retry-After"]) <= 3600, headers)
        self.server.run("LB.ALTER", "game", "LIMITS", "NONE")
        used = self.ticket(ann)
        self.assertEqual(self.result(ann, "ann", used)[0], 200)
        self.assertEqual(self.result(ann, "ann", used)[0], 403)
        self.assertEqual(self.result(kim, "kim", used)[0], 403)
        self.assertEqual(self.api.post("/boards/game/tickets", {"member": "bob"}, creates=False, **bearer(ann))[0], 403)
        self.assertEqual(self.api.post("/boards/hall/tickets", {}, creates=False, **bearer(ann))[0], 422)
        for wrong in ({"seconds": 0}, {"seconds": "60"}, {"member": 5}, {"name": "ann"}, [], {"seconds": 1.5}):
            self.assertIn(self.api.post("/boards/game/tickets", wrong, creates=False, **bearer(ann))[0], (400, 422), wrong)
        open_one = self.ticket(ann, seconds=86400)
        racing = [self.client(ann) for _ in range(8)]
        first = self.ticket(ann)
        for i, client in enumerate(racing):
            client.send([("LB.ADD", "game", "TICKET", first, str(100 + i), "ann")])
        answers = [client.receive() for client in racing]
        self.assertEqual(sum(answer == 1 for answer in answers), 1, answers)
        self.assertIn("TICKET", self.refused(self.client(ann), "LB.ADD", "game", "TICKET", open_one, "5", "ann"))
        open_one = self.ticket(ann, seconds=86400)
        self.restart()
        for each in (used, first):
            self.assertEqual(self.result(ann, "ann", each)[0], 403)
        copy = WebServer("--replicaof", "127.0.0.1", self.server.port, "--player-key", "back", "hs256", SECRET.decode())
        self.addCleanup(copy.kill)
        wait_until(lambda: copy.run("ZCARD", "game") == 2, "the copy")
        late = self.ticket(ann)
        self.assertEqual(self.result(ann, "ann", late, 300)[0], 200)
        open_one = self.ticket(ann)
        wait_until(lambda: copy.run("ZSCORE", "game", "ann") == b"300", "the result on the replica")
        self.restart(copy)
        self.server.kill()
        copy.run("REPLICAOF", "NO", "ONE")
        client = copy.connect()
        self.addCleanup(client.close)
        self.assertEqual(client.ask("AUTH", ann), b"OK")
        for each in (used, first, late):
            self.assertIn("it was used", self.refused(client, "LB.ADD", "game", "TICKET", each, "5", "ann"))
        self.assertEqual(client.ask("LB.ADD", "game", "TICKET", open_one, "5", "ann"), 1)
        self.assertIn("it was used", self.refused(client, "LB.ADD", "game", "TICKET", open_one, "5", "ann"))

    def test_a_ticket_that_was_given_outlives_a_kill(self):
        for policy in ("always", "everysec"):
            self.begin("--appendonly", "yes", "--appendfsync", policy)
            run = self.server.run
            run("LB.ALTER", "game", "TICKETS", "YES")
            clients = [self.server.connect() for _ in range(8)]
            for i, client in enumerate(clients):
                client.send([("LB.TICKET", "game", f"m{i}")])
            given = {i: clients[i].receive() for i in (random.randrange(8),)}
            self.server.process.send_signal(signal.SIGKILL)
            self.server.process.wait()
            for i, client in enumerate(clients):
                with contextlib.suppress(OSError):
                    given.setdefault(i, client.receive())
                client.close()
            self.server.start()
            for i, text in given.items():
                self.assertEqual(run("LB.ADD", "game", "TICKET", text, "5", f"m{i}"), 1, policy)
            self.server.stop()

    def signed(self, player, start, boards="game", kid="web", typ="ticket+jwt"):
        text = ".".join((coded({"alg": "EdDSA" if kid == "web" else "HS256", "typ": typ, "kid": kid}),
                         coded({"sub": player, "boards": boards, "iat": start, "exp": start + 600})))
        signature = hmac.new(SECRET, text.encode(), hashlib.sha256).digest() if kid == "back" else signed_by(
            key_pair(0)[0], text)
        return f"{text}.{coded(signature)}"

    def test_a_studio_signs_tickets_which_other_threads_look_at(self):
        for threads in ("1", "2"):
            self.begin("--io-threads", threads)
            self.server.run("LB.ALTER", "game", "TICKETS", "YES")
            self.server.run("LB.CREATE", "game2", "FIELD", "score", "32", "TICKETS", "YES")
            self.server.run("ACL", "SETUSER", "player:web", "+multi", "+exec", "+lb.submit")
            now = int(time.time()) - 30
            ann = token("ann", "web")
            made = [self.signed("ann", now + i) for i in range(8)]
            forged = made[6][:-4] + ("AAAA" if made[6][-4:] != "AAAA" else "BBBB")
            self.assertEqual(self.result(ann, "ann", forged)[0], 403)
            self.assertEqual(self.result(ann, "ann", made[0])[0], 200)
            self.assertEqual(self.result(ann, "ann", made[0])[0], 403)
            client = self.client(ann)
            self.assertIn("signature", self.refused(client, "LB.ADD", "game", "TICKET", forged, "5", "ann"))
            self.assertEqual(client.ask("LB.ADD", "game", "TICKET", made[1], "5", "ann"), 1)
            self.assertIn("it was used", self.refused(client, "LB.ADD", "game", "TICKET", made[1], "6", "ann"))
            others = [self.signed("ann", now + i, ["game2", "x"]) for i in range(3)]
            answer = client.ask("LB.SUBMIT", "2", "game", "game2", "TICKET", made[2], "TICKET", others[0], "9", "ann")
            self.assertEqual(len(answer), 2)
            client.send([("MULTI",), ("LB.ADD", "game", "TICKET", made[3], "11", "ann"),
                         ("LB.ADD", "game2", "TICKET", others[1], "12", "ann"),
                         ("LB.ADD", "game", "TICKET", made[3], "13", "ann"), ("EXEC",)])
            answers = [client.receive() for _ in range(5)][-1]
            self.assertEqual(answers[:2], [1, 1])
            self.assertIsInstance(answers[2], resp.Error)
            body = {"member": "ann", "value": 20, "ticket": [made[4], others[2]], "boards": ["game", "game2"]}
            self.assertEqual(self.api.post("/results", body, creates=False, **bearer(ann))[0], 200)
            self.assertIn("WRONGPASS", self.refused(self.client(), "AUTH", self.signed("ann", now + 9)))
            self.assertIn("WRONGPASS", self.refused(self.client(), "AUTH", self.signed("ann", now + 9, kid="back")))
            self.assertIn("typ", self.refused(client, "LB.ADD", "game", "TICKET", ann, "5", "ann"))
            self.assertIn("typ", self.refused(client, "LB.ADD", "game", "TICKET", token("ann"), "5", "ann"))
            self.server.stop()

    def test_what_somebody_makes_of_a_ticket_is_none(self):
        self.begin()
        for kid in ("back", "web"):
            self.server.run("ACL", "SETUSER", f"player:{kid}", "+lb.ticket", "+select")
        self.server.run("LB.CREATE", "game2", "FIELD", "score", "32", "TICKETS", "YES")
        self.server.run("LB.ALTER", "game", "TICKETS", "YES")
        now, ann = int(time.time()), token("ann")
        client = self.client(ann)

        def with_parts(head=None, claims=None, secret=SECRET, **more):
            head = coded({"alg": "HS256", "typ": "ticket+jwt", "kid": "back", **(head or {})})
            text = f"{head}.{coded({'sub': 'ann', 'boards': 'game', 'iat': now - 5, 'exp': now + 600, **(claims or {}), **more})}"
            return f"{text}.{coded(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"
        own, signed = self.ticket(ann), with_parts()
        public = base64.b64decode(key_pair(0)[1])
        wrong = [text for right in (own, signed) for text in (
            right.rpartition(".")[0], right.rpartition(".")[0] + ".", right.partition(".")[2], right + ".x", right[:-1],
            ".".join((coded({"alg": "none", "typ": "ticket+jwt"}), right.split(".")[1], "")),
            ".".join((coded({"alg": "none", "typ": "ticket+jwt", "kid": "back"}), *right.split(".")[1:])),
            ".".join((right.split(".")[0], coded({"sub": "ann", "boards": "game", "iat": now, "exp": now + 9}),
                      right.split(".")[2])))]
        wrong += [with_parts({"kid": "web"}, secret=secret) for secret in (
            public, public[12:], key_pair(0)[1].encode(), b"")]  # a key for signatures, taken for a secret
        wrong += [with_parts({"kid": None}, secret=b""), with_parts(secret=b""), with_parts({"alg": "EdDSA"}),
                  with_parts({"typ": "JWT"}), with_parts(exp=now - 61), with_parts(iat=now + 100), with_parts(exp=now + 90000),
                  with_parts(sub="bob"), with_parts(sub="ANN"), with_parts(boards="game2"), with_parts(boards=["game2", "gam"]),
                  with_parts(db=1), with_parts(iat=None), with_parts(exp=None), with_parts({"crit": ["x"]})]
        for text in wrong:
            status, problem = self.result(ann, "ann", text, 9)
            self.assertEqual((status, problem["redis"]), (403, "TICKET"), text)
            self.assertTrue(self.refused(client, "LB.ADD", "game", "TICKET", text, "9", "ann").startswith("TICKET"), text)
        self.assertEqual(self.server.run("ZSCORE", "game", "ann"), None)
        # What was refused has used nothing up.
        self.assertEqual(self.result(ann, "ann", own)[0], 200)
        self.assertEqual(client.ask("LB.ADD", "game", "TICKET", self.ticket(ann), "8", "ann"), 1)

    def test_of_all_who_send_one_ticket_at_a_time_one_has_a_result(self):
        for threads in ("1", "2"):
            self.begin("--io-threads", threads)
            self.server.run("ACL", "SETUSER", "player:back", "+lb.ticket")
            self.server.run("LB.ALTER", "game", "TICKETS", "YES")
            ann, answers = token("ann"), []
            clients = [self.client(ann) for _ in range(6)]
            text = self.ticket(ann)
            web = [threading.Thread(target=lambda i=i: answers.append(self.result(ann, "ann", text, 50 + i)[0] == 200))
                   for i in range(6)]
            for i, client in enumerate(clients):
                web[i].start()
                client.send([("LB.ADD", "game", "TICKET", text, str(100 + i), "ann")])
            answers += [client.receive() == 1 for client in clients]
            for thread in web:
                thread.join()
            self.assertEqual(sum(answers), 1, answers)
            self.server.stop()

    def test_a_request_has_few_signatures_looked_at_and_a_stranger_none(self):
        self.begin()
        self.server.run("LB.ALTER", "game", "TICKETS", "YES")
        ann = token("ann", "web")
        made = [self.signed("ann", int(time.time()) - 30 + i) for i in range(9)]
        body = [{"member": "ann", "value": 7 + i, "ticket": made[i]} for i in range(9)]
        for headers in ({}, bearer(ann)):
            status, problem, _ = self.api.post("/boards/game/results", body, creates=False, **headers)
            self.assertEqual(status, 413, problem)
            self.assertIn("at most 8 tickets", problem["detail"])
        self.assertEqual(self.api.post("/boards/game/results", body[:8], creates=False, **headers)[0], 200)
        self.assertEqual(self.server.run("ZSCORE", "game", "ann"), b"14")

    def test_what_the_page_signs_is_a_ticket(self):
        page = (Path(__file__).resolve().parents[2] / "docs/reference/tickets.md").read_text()
        secret = re.search(r"hs256 (\w+) BOARDS", page)[1]
        self.begin(keys=[f"web hs256 {secret}"])
        self.server.run("ACL", "SETUSER", "player:web", "~runner")
        self.server.run("LB.CREATE", "runner", "FIELD", "score", "32", "TICKETS", "YES")
        text = ".".join((coded({"alg": "HS256"}), coded({"sub": "ann", "exp": int(time.time()) + 3000})))
        client = self.client(f"{text}.{coded(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest())}")
        programs = {"python": ["/usr/bin/python3", "-"], "js": ["node", "-"], "php": ["php"]}
        count = 0
        for language, command in programs.items():
            program = re.search(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
            if not shutil.which(command[0]):
                continue
            made = subprocess.run(command, input=program, check=True, capture_output=True, text=True).stdout.strip()
            self.assertEqual(client.ask("LB.ADD", "runner", "INCR", "TICKET", made, "7", "ann"), 1, language)
            self.assertIn("it was used", self.refused(client, "LB.ADD", "runner", "INCR", "TICKET", made, "7", "ann"))
            count += 1
        self.assertEqual(self.server.run("ZSCORE", "runner", "ann"), str(7 * count).encode())

    def test_two_thousand_come_at_once(self):
        for threads in ("1", "2"):
            self.begin("--io-threads", threads)
            text = token("ann", "web")
            wrong = text[:-4] + ("AAAA" if text[-4:] != "AAAA" else "BBBB")
            clients = [self.server.connect() for _ in range(2000)]
            for i, client in enumerate(clients):
                given = wrong if i % 10 == 0 else text
                client.send([("AUTH", given), ("ZADD", "game", i, "ann"), ("ZADD", "game", "1", "bob")])
                if i % 7 == 0:
                    client.close()
            for i, client in enumerate(clients):
                if i % 7 == 0:
                    continue
                first, _, third = (client.receive() for _ in range(3))
                self.assertEqual(first == b"OK", i % 10 > 0, first)
                self.assertIsInstance(third, int if i % 10 == 0 else resp.Error)
                client.close()
            self.server.stop()

    def test_a_server_that_stops_meanwhile_ends_well(self):
        self.begin("--io-threads", "2")
        text = token("ann", "web")
        clients = [self.server.connect() for _ in range(300)]
        for client in clients:
            client.send([("AUTH", text)])
        self.server.stop()
        for client in clients:
            client.close()

    def test_a_replica_lets_the_same_players_read(self):
        self.begin()
        copy = WebServer("--replicaof", "127.0.0.1", self.server.port, "--player-key", "back", "hs256", SECRET.decode())
        self.addCleanup(copy.kill)
        copy.run("ACL", "SETUSER", "player:back", "on", "~game", "+@read", "+zadd")
        wait_until(lambda: copy.run("ZCARD", "game") == 1, "the copy")
        client = copy.connect()
        self.addCleanup(client.close)
        self.assertEqual(client.ask("AUTH", token("ann")), b"OK")
        self.assertEqual(client.ask("ZCARD", "game"), 1)
        self.assertIn("READONLY", self.refused(client, "ZADD", "game", "1", "ann"))
        self.assertIn("NOPERM", self.refused(client, "DEL", "game"))
        self.server.run("LB.REVOKE", "ann")
        wait_until(lambda: isinstance(client.ask("ZCARD", "game"), resp.Error), "the revocation on the replica")
