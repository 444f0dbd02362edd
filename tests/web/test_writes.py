"""Writing over HTTP: results, tags, leagues; whose they are, and what hostile requests get."""
import base64
import http.client
import json
import re
import socket
import threading
import time
import unittest

import redis
import test_api
from process import wait_until
from test_api import Api
from web_server import WebServer, hold_port, let_port_go

JSON = {"Content_Type": "application/json"}


class Writer(Api):
    def post(self, path, body, method="POST", **options):
        """(status, JSON, headers)"""
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        return self.once(path, method, body=text, **{**JSON, **options})

    def once(self, path, method="GET", body=None, user=None, creates=True, **headers):
        """Without trying again where the server is busy. creates: boards that are not there are made."""
        connection = self.connection()
        if creates and method == "POST" and path.split("?")[0].endswith("/results") and not path.startswith("/leagues"):
            path += ("&" if "?" in path else "?") + "create=1"
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if user:
            headers["Authorization"] = self.basic(user)
        connection.request(method, "/api/v1" + path, body=body, headers=headers)
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        return reply.status, json.loads(text) if text else None, reply.headers

    @staticmethod
    def basic(user):
        return "Basic " + base64.b64encode(user.encode()).decode()


class Case(test_api.Case):
    words, client = ("--web-write", "yes"), Writer

    def written(self, path, body, **options):
        status, reply, _ = self.api.post(path, body, **options)
        self.assertEqual(status, 200, reply)
        return reply

    def refused(self, status, path, body, **options):
        got, reply, headers = self.api.post(path, body, **options)
        self.assertEqual((got, reply.get("status")), (status, status), reply)
        self.assertEqual(headers["Content-Type"], "application/problem+json")
        self.assertLessEqual({"type", "title", "status", "detail", "code"}, set(reply))
        return reply


class Results(Case):
    def setUp(self):
        self.server.run("FLUSHALL")

    def rows(self, board):
        return self.server.run("ZRANGE", board, 0, -1, "REV", "WITHSCORES")

    def test_one_result_or_many(self):
        self.assertEqual(self.written("/boards/arena/results", {"member": "ann", "value": 5}),
                         {"board": "arena", "db": 0, "results": 1, "changed": 1})
        reply = self.written("/boards/arena/results?db=3&rank=1",
                             [{"member": "ann", "value": 5}, {"member": "kim", "value": "7"}])
        self.assertEqual([(row["row"]["rank"], row["row"]["member"], row["row"]["score"], row["before"])
                          for row in reply["rows"]], [(1, "ann", "5", None), (0, "kim", "7", None)])
        many = [{"member": f"m{i}", "values": [i]} for i in range(1000)]
        self.assertEqual(self.written("/boards/big/results", many)["changed"], 1000)
        self.assertEqual(self.server.run("ZCARD", "big"), 1000)
        self.refused(413, "/boards/big/results", many + [{"member": "x", "value": 1}])
        self.assertIsNone(self.server.run("ZSCORE", "big", "x"))

    def test_numbers_are_exact(self):
        self.server.run("LB.CREATE", "exact", "FIELD", "n", "54", "FIELD", "d", "10", "SIGNED", "SCALE", "1")
        self.written("/boards/exact/results", '[{"member":"a","values":[18014398509481983,-0.5]},'
                     '{"member":"b","values":["9007199254740993","1.5e1"]},{"member":"c","values":[0.1e1, 0]}]')
        self.written("/boards/exact/results", '{"member":"b","values":[null,2]}')
        self.assertEqual(self.server.run("LB.RANGE", "exact", 0, 9, "STRINGS")[0][3:], [b"18014398509481983", b"-0.5"])
        self.assertEqual([row["fields"] for row in self.api.get("/boards/exact/page")["rows"]],
                         [["18014398509481983", "-0.5"], ["9007199254740993", "2"], ["1", "0"]])

    def test_names_that_are_numbers_are_no_values(self):
        self.server.run("LB.CREATE", "three", "FIELD", "a", "20", "FIELD", "b", "20", "FIELD", "c", "20")
        numbered = [{"member": "1", "value": 5}, {"member": "2", "value": 6}]
        reply = self.refused(422, "/boards/three/results", numbered)
        self.assertIn("this board takes 3 values before each member: a b c", reply["detail"])
        self.refused(422, "/boards/three/results?rank=1", numbered, Idempotency_Key="1")
        self.assertEqual(self.server.run("ZCARD", "three"), 0)
        for board in ("one", "two"):  # one that is there, and one that is made
            self.written("/boards/one/results", {"member": "kim", "value": 1})
            self.refused(422, f"/boards/{board}/results", {"member": "ann", "values": [10, 20, 30]})
            self.assertIsNone(self.server.run("ZSCORE", board, "20"))
        self.written("/boards/three/results", {"member": "7", "values": [1, None, 3]})

    def test_a_member_may_have_the_name_of_a_path(self):
        self.written("/boards/a/results", {"member": "events", "value": 1})
        self.assertEqual(self.api.get("/boards/a/members/events")["member"], "events")
        self.assertTrue(self.api.once("/boards/a/members/events", "DELETE")[1]["removed"])
        self.written("/boards/events/results", {"member": "ann", "value": 1})
        self.assertEqual(self.api.get("/boards/events")["count"], 1)

    def test_operators_are_those_of_the_command(self):
        for body, score in (({"value": 5}, 5), ({"value": 3, "operator": "incr"}, 8), ({"value": 2, "operator": "best"}, 8),
                            ({"value": 9, "operator": "best"}, 9), ({"value": 1, "only": "new"}, 9),
                            ({"value": 4, "operator": "touch", "only": "existing"}, 4), ({"value": 2, "operator": "set"}, 2)):
            self.written("/boards/a/results", {"member": "ann", **body})
            self.assertEqual(self.server.run("ZSCORE", "a", "ann"), b"%d" % score, body)

    def test_neighbours_are_one_command_and_the_order_stays(self):
        self.server.run("CONFIG", "RESETSTAT")
        self.written("/boards/a/results", [{"member": "a", "value": 1}, {"member": "b", "value": 1},
                                           {"member": "a", "value": 2, "operator": "incr"}, {"member": "c", "value": 1}])
        self.assertIn(b"cmdstat_lb.add:calls=3,", self.server.run("INFO", "commandstats"))
        self.assertEqual(self.rows("a"), [b"a", b"3", b"b", b"1", b"c", b"1"])

    def test_the_first_refusal_ends_the_request(self):
        reply = self.refused(422, "/boards/a/results", [
            {"member": "a", "value": 1}, {"member": "b", "value": 1}, {"member": "c", "value": "1.5", "operator": "incr"},
            {"member": "d", "value": 1}])
        self.assertEqual((reply["written"], reply["redis"]), (2, "ERR"))
        self.assertEqual(self.rows("a"), [b"a", b"1", b"b", b"1"])

    def test_several_boards_at_once(self):
        reply = self.written("/results", [{"member": "ann", "value": 5, "boards": ["day", "week"], "operator": "best"},
                                          {"member": "kim", "value": 6, "boards": ["day"]}])
        self.assertEqual([[(board["board"], board["row"]["rank"], board["changed"]) for board in result]
                          for result in reply["results"]], [[("day", 0, True), ("week", 0, True)], [("day", 0, True)]])
        self.server.run("LB.CREATE", "two", "FIELD", "a", "8", "FIELD", "b", "8")
        self.refused(422, "/results", {"member": "zoe", "value": 5, "boards": ["day", "two"]})
        self.assertIsNone(self.server.run("ZSCORE", "day", "zoe"))
        self.refused(413, "/results", [{"member": "a", "value": 1, "boards": [f"b{i}" for i in range(64)]}] * 16)

    def test_a_reply_that_would_be_too_long_is_refused_before(self):
        body = {"member": "<" * 65000, "value": 1, "boards": [f"b{i}" for i in range(60)]}
        self.assertEqual(self.refused(413, "/results", body)["written"], 0)
        self.assertIsNone(self.server.run("ZSCORE", "b0", body["member"]))
        body["boards"] = body["boards"][:35]
        self.assertEqual(len(self.written("/results", body)["results"][0]), 35)

    def test_what_comes_again_counts_once(self):
        once = {"Idempotency_Key": '"match:1"'}
        for changed in (1, 0, 0):
            self.assertEqual(self.written("/boards/a/results", {"member": "ann", "value": 5, "operator": "incr"}, **once)["changed"],
                             changed)
            once = {"Idempotency_Key": "match:1"}
        results = [{"member": "ann", "value": 1, "operator": "incr", "id": "1"}, {"member": "kim", "value": 1, "id": "2"}]
        written = [self.written("/boards/a/results", results) for _ in range(2)]
        self.assertEqual([(each["changed"], each.get("repeated")) for each in written], [(2, 0), (0, 2)])
        self.assertEqual([row["repeated"] for row in self.written("/boards/a/results?rank=1", results)["rows"]], [True, True])
        both = [{"boards": ["a", "b"], "member": "ann", "value": 1, "operator": "best", "id": "3"}]
        for repeated in (False, True):
            reply = self.written("/results", both)["results"][0]
            self.assertEqual([each["repeated"] for each in reply], [repeated] * 2)
        self.assertEqual(self.server.run("ZSCORE", "a", "ann"), b"6")
        self.refused(422, "/boards/a/results", results, **once)
        self.refused(422, "/boards/a/results", results[0], Idempotency_Key="x" * 65)

    def test_tags_data_and_removal(self):
        self.server.run("LB.CREATE", "race", "FIELD", "p", "32", "TAG", "country", "8", "TAG", "clan", "8")
        self.written("/boards/race/results?hash=user:*", {"member": "zoë", "value": 1, "tags": {"country": "DE", "clan": "w"},
                                                          "data": {"name": "Zoë", "age": 7}})
        self.assertEqual(self.server.run("HGETALL", "user:zoë"), [b"name", "Zoë".encode(), b"age", b"7"])
        path = "/boards/race/members/zo%C3%AB"
        for method, tags, expected in (("PATCH", {"country": "FR"}, {b"country": b"FR", b"clan": b"w"}),
                                       ("PATCH", {"clan": None}, {b"country": b"FR"}),
                                       ("PUT", {"clan": "z"}, {b"clan": b"z"}), ("PUT", {}, {})):
            self.assertTrue(self.written(path + "/tags", tags, method=method)["changed"])
            flat = self.server.run("LB.TAGS", "race", "zoë")[0]
            self.assertEqual(dict(zip(flat[::2], flat[1::2])), expected)
        self.refused(422, path + "/tags", {"nothing": "x"}, method="PATCH")
        self.refused(422, path + "/tags", {}, method="PATCH")
        self.refused(422, "/boards/race/results", {"member": "a", "value": 1, "data": {"a": "b"}})
        for removed in (True, False):
            status, reply, _ = self.api.once(path, "DELETE")
            self.assertEqual((status, reply["removed"]), (200, removed))

    def test_leagues(self):
        self.server.run(*"LB.LEAGUE CREATE weekly FIELD points 22 PERIOD WEEK ROOM 3 TIERS 4 UP 1 DOWN 1".split())
        reply = self.written("/leagues/weekly/results", [{"member": m, "value": 9, "operator": "incr"} for m in "abcd"])
        self.assertEqual([(place["tier"], place["room"], place["row"]["rank"]) for place in reply["results"]],
                         [(1, 1, 0), (1, 1, 1), (1, 1, 2), (1, 2, 0)])
        self.assertEqual(self.api.get("/leagues/weekly/members/d")["room"], 2)
        self.assertEqual([self.api.get(f"/leagues/weekly/members/{m}")["outlook"] for m in "abcd"], ["up", "stay", "stay", "up"])
        self.assertTrue(self.api.once("/leagues/weekly/members/d", "DELETE")[1]["removed"])
        self.assertEqual(self.api.once("/leagues/weekly/members/d")[0], 404)
        self.refused(422, "/boards/weekly/results", {"member": "a", "value": 1})

    def test_boards_that_take_no_writes(self):
        self.server.run("LB.CREATE", "frozen", "FIELD", "p", "32")
        self.server.run("LB.ALTER", "frozen", "FREEZE")
        self.server.run("HSET", "hash", "a", "b")
        self.server.run("LB.BAN", "cheat")
        self.assertEqual(self.refused(409, "/boards/frozen/results", {"member": "a", "value": 1})["redis"], "FROZEN")
        self.assertEqual(self.refused(409, "/boards/hash/results", {"member": "a", "value": 1})["redis"], "WRONGTYPE")
        self.assertEqual(self.refused(403, "/boards/b/results", {"member": "cheat", "value": 1})["redis"], "BANNED")

    def test_a_board_refuses_over_http_what_it_refuses_by_commands(self):
        run, make = self.server.run, "LB.CREATE {} FIELD p 32 TIME 31 S PERIOD HOUR"
        run(*make.format("of:w").split(), "WINDOW", "3", "SUM")
        run(*"LB.LEAGUE CREATE of:l FIELD p 22 PERIOD WEEK ROOM 3 TIERS 4 UP 1 DOWN 1".split())
        for name, option in (("of:shut", "FREEZE"), ("of:later", "OPENS 2100-01-01T00:00:00Z"),
                             ("of:over", "CLOSES 2000-01-01T00:00:00Z"), ("of:full", "LIMIT 1")):
            run(*make.format(name).split())
            run("ZADD", name, 1, "zoe")
            run("LB.ALTER", name, *option.split())
        run("ZADD", "of:w", 1, "zoe")
        boards = [name.decode() for name in run("KEYS", "of:*")]
        self.assertEqual(len(boards), 7, boards)
        refusals = set()
        for name in boards:
            code = self.refusal("LB.SUBMIT", 1, name, "INCR", 0, "kim")
            http = self.api.post(f"/boards/{name}/results", {"member": "kim", "value": 0, "operator": "incr"})
            self.assertEqual((http[0] == 200, http[1].get("redis")), (code is None, code), name)
            refusals.add(code)
            http = self.api.once(f"/boards/{name}/members/none", "DELETE")
            self.assertEqual(http[0] == 200, self.refusal("ZREM", name, "none") is None, name)
        self.assertEqual(refusals, {None, "ERR", "FROZEN", "CLOSED", "FULL"})

    def refusal(self, *words):
        """The word with which the error begins."""
        try:
            self.server.run(*words)
        except redis.ResponseError as error:
            return re.match("(FROZEN|CLOSED|FULL|)", str(error)).group() or "ERR"

    def test_hostile_bodies_change_nothing(self):
        good = '{"member":"a","value":1}'
        bodies = {
            400: ("", " ", "[", "[]", "{}x", "{", '{"member":"a","value":1', good + good, good + "]", "[" + good + ",]",
                  "[" * 1000, '{"member":"a","value":' + "[" * 500, '{"member":"a","value":01}', '{"member":"a","value":1.}',
                  '{"member":"a","value":.5}', '{"member":"a","value":+1}', '{"member":"a","value":1e}', "nul", "null", "1",
                  '{"member":"a","value":--1}', '{"member":"a","value":NaN}', '{"member":"a","value":true}', "'a'",
                  '{"member":"\\ud800","value":1}', '{"member":"a\nb","value":1}', b'{"member":"\xff","value":1}',
                  '{"member":1,"value":1}', '{"member":"a","value":{}}', '{"member":"a","values":[]}', "\ufeff" + good,
                  '{"member":"a","value":1,"tags":[]}', '{"member":"a","value":1,"tags":{"a":{}}}', good + "\0"),
            422: ('{"member":"a"}', '{"value":1}', '{"member":"a","value":1,"values":[1]}', '{"member":"a","value":1,"x":1}',
                  '{"member":"a","value":1,"member":"b"}', '{"member":"a","value":1,"tags":{"a":"1","a":"2"}}',
                  '{"member":"a","value":1,"operator":"SET"}', '{"member":"a","value":"NX"}', '{"member":"a","value":"KEEPTIME"}',
                  '{"member":"a","values":["TAG","c","d",1]}', '{"member":"a","value":""}', '{"member":"a","value":"e5"}',
                  '{"member":"a","value":"' + "1" * 65 + '"}', '{"member":"a","value":1,"at":1.5}', '{"member":"a","value":1e999999999}',
                  '{"member":"a","value":1,"boards":["a"]}', '{"member":"a","values":[' + "1," * 64 + "1]}",
                  '{"member":"a","value":1,"id":""}', '{"member":"a","value":1,"only":"NX"}', '{"member":"","value":"0x10"}',
                  '{"member":"a","value":1,"tags":{' + ",".join(f'"t{i}":"1"' for i in range(9)) + "}}"),
        }
        for status, texts in bodies.items():
            for text in texts:
                with self.subTest(text=text[:60]):
                    self.refused(status, "/boards/a/results", text if isinstance(text, bytes) else text.encode())
        self.assertEqual(self.server.run("DBSIZE"), 0)
        reply = self.refused(422, "/boards/a/results", "[" + good + ',{"member":"b","value":1,"operator":"more"}]')
        self.assertEqual(reply["detail"], "results[1].operator: set, incr, best or touch")
        self.refused(415, "/boards/a/results", good, Content_Type="text/plain")
        self.refused(415, "/boards/a/results", good, Content_Type="application/jsonp")
        self.written("/boards/b/results", good, Content_Type="Application/JSON; charset=utf-8")
        self.refused(413, "/boards/a/results", " " * (256 * 1024) + good)
        self.refused(413, "/results", [{"member": "m" * 200, "value": 1, "boards": ["b"]}] * 1001)
        for path, method in (("/boards/a/page", "POST"), ("/boards/a", "DELETE"), ("/boards/a/results", "PUT")):
            self.assertEqual(self.api.once(path, method)[0], 405, path)
        self.assertEqual(self.api.once("/nothing", "PUT")[0], 404)
        self.assertEqual(self.server.run("EXISTS", "a"), 0)

    def test_writes_wait_for_the_end_of_a_pause(self):
        self.server.run("CLIENT", "PAUSE", "60000", "WRITE")
        replies = []
        thread = threading.Thread(target=lambda: replies.append(self.api.post("/boards/a/results", {"member": "a", "value": 1})[0]))
        thread.start()
        self.assertEqual(self.api.get("/boards")["boards"], [])  # readers do not wait
        self.server.run("CLIENT", "UNPAUSE")
        thread.join()
        self.assertEqual(replies, [200])

    def test_they_are_commands_of_a_client(self):
        self.server.run("CONFIG", "SET", "slowlog-log-slower-than", "0")
        self.written("/boards/seen/results", {"member": "a", "value": 1})
        entries = self.server.run("SLOWLOG", "GET", 10)
        self.server.run("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        self.assertIn([b"LB.ADD", b"seen", b"1", b"a"], [entry[3] for entry in entries])
        popped = []
        client = self.server.client.__class__(port=self.server.port)
        thread = threading.Thread(target=lambda: popped.append(client.execute_command("BZPOPMIN", "queue", 30)))
        thread.start()
        wait_until(lambda: b"blocked_clients:1" in self.server.run("INFO", "clients"), "a client that waits")
        self.written("/boards/queue/results", {"member": "job", "value": 1})
        thread.join()
        self.assertEqual(popped[0][1], b"job")


class Refused(unittest.TestCase):
    def test_without_web_write_each_route_says_so(self):
        server = WebServer()
        self.addCleanup(server.kill)
        api = Writer(server)
        count = 0
        for path, operations in api.get("/openapi.json")["paths"].items():
            for method in set(operations) - {"get"}:
                if path in ("/login", "/logout", "/stream-key", "/players"):  # the last one is for web-guests to say
                    continue
                body = {"member": "a", "value": 1} if method != "delete" else ""
                status, reply, _ = api.post(re.sub(r"\{\w+\}", "x", path), body, method.upper())
                self.assertEqual((status, reply["code"]), (403, "forbidden"), path)
                self.assertIn("web-write", reply["detail"])
                count += 1
        self.assertEqual(count, 14)
        self.assertEqual(server.run("DBSIZE"), 0)

    def test_a_replica_says_where_writes_go(self):
        master = WebServer("--web-write", "yes")
        self.addCleanup(master.kill)
        replica = WebServer("--web-write", "yes", "--replicaof", f"127.0.0.1 {master.port}")
        self.addCleanup(replica.kill)
        self.assertEqual(Writer(master).post("/boards/a/results", {"member": "a", "value": 1})[0], 200)
        wait_until(lambda: replica.run("ZSCORE", "a", "a") == b"1", "the replica has it")
        status, reply, headers = Writer(replica).post("/boards/a/results", {"member": "b", "value": 1})
        self.assertEqual((status, reply["redis"], reply["written"]), (503, "READONLY", 0))
        self.assertEqual(headers["Retry-After"], "1")

    def begin_paused(self, count, *words):
        """A server, and so many requests whose writes wait."""
        server = WebServer("--web-write", "yes", "--appendonly", "yes", *words)
        self.addCleanup(server.kill)
        api = Writer(server)
        server.run("CLIENT", "PAUSE", "1000000", "WRITE")
        waiting = [api.connection() for _ in range(count)]
        for i, one in enumerate(waiting):
            one.request("POST", "/api/v1/boards/a/results?create=1", json.dumps({"member": f"m{i}", "value": i}),
                        {"Content-Type": "application/json"})
        for _ in range(3):  # what came before is read before
            self.assertEqual(api.get("/boards")["boards"], [])
        return server, waiting

    def read(self, connection):
        reply = connection.getresponse()
        got = reply.status, json.loads(reply.read()), reply.headers
        connection.close()
        return got

    def test_what_waits_for_a_pause_runs_when_the_server_ends(self):
        """As with RESP: a pause ends with the server, and what was sent before is answered."""
        for words in (), ("--appendfsync", "always"):
            server, waiting = self.begin_paused(20, *words)
            server.client.connection_pool.disconnect()  # so nobody else is waited for
            server.stop()
            self.assertEqual([self.read(one)[0] for one in waiting], [200] * 20)
            server.start()
            self.assertEqual(server.run("ZCARD", "a"), 20)

    def test_what_is_not_done_when_the_server_ends_at_once_gets_a_503(self):
        server, waiting = self.begin_paused(20)
        with self.assertRaises(redis.ConnectionError):
            server.run("SHUTDOWN", "NOW")
        server.process.wait(60)
        for one in waiting:
            status, reply, headers = self.read(one)
            self.assertEqual((status, reply["status"], headers["Content-Type"], headers["Retry-After"]),
                             (503, 503, "application/problem+json", "1"))
            self.assertIn("the server ends", reply["detail"])
        server.start()
        self.assertEqual(server.run("DBSIZE"), 0)

    def test_no_write_begins_while_the_server_drains(self):
        server = WebServer("--web-write", "yes", "--appendonly", "yes")
        self.addCleanup(server.kill)
        api = Writer(server)
        server.run("ZADD", "long", *(word for i in range(16) for word in (i, "x" * 60000 + str(i))))
        slow = socket.create_connection(("127.0.0.1", server.port))  # reads no reply: the server waits for it
        self.addCleanup(slow.close)
        slow.sendall(b"ZRANGE long 0 -1\r\n" * 100)
        wait_until(lambda: re.search(rb" omem=[1-9]", server.run("CLIENT", "LIST")), "replies that nobody reads")
        server.terminate()
        wait_until(lambda: "shutdown: clients=" in server.log.read_text(), "that it drains")
        status, reply, _ = api.post("/boards/a/results", {"member": "ann", "value": 1})
        self.assertEqual((status, reply["detail"]), (503, "the server ends: this was not done"))
        self.assertEqual(api.get("/boards/long")["count"], 16)  # reading goes on
        slow.close()
        server.stop()
        server.start()
        self.assertIsNone(server.run("ZSCORE", "a", "ann"))

    def test_an_answer_outlives_the_server(self):
        server = WebServer("--web-write", "yes", "--appendonly", "yes", "--appendfsync", "always")
        self.addCleanup(server.kill)
        api, acknowledged, is_over = Writer(server), [], threading.Event()

        def write(name):
            for i in range(100000):
                try:
                    status = api.post("/boards/a/results", {"member": f"{name}:{i}", "value": i})[0]
                except OSError:
                    return
                except Exception:  # cut off in the middle of its answer
                    return
                if status == 200:
                    acknowledged.append(f"{name}:{i}")
                if is_over.is_set():
                    return

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) > 200, "200 answers")
        server.kill()
        is_over.set()
        for thread in threads:
            thread.join()
        server.start()
        for member in acknowledged:
            self.assertIsNotNone(server.run("ZSCORE", "a", member), member)

    def test_an_address_writes_so_many(self):
        server = WebServer("--web-write", "yes", "--web-write-rate", "10", "--web-proxies", "127.0.0.1", "--protected-mode", "no")
        self.addCleanup(server.kill)
        api, results = Writer(server), [{"member": "a", "value": 1}] * 50

        def status(client):
            return api.post("/boards/a/results", results, X_Forwarded_For=client)

        self.assertEqual(status("192.0.2.1")[0], 200)  # as a whole
        got, reply, headers = status("192.0.2.1")
        self.assertEqual((got, reply["code"]), (429, "too_many"))
        self.assertIn(int(headers["Retry-After"]), range(1, 6))
        self.assertEqual(status("192.0.2.2")[0], 200)
        many = {"member": "a", "value": 1, "boards": [f"b{i}" for i in range(64)]}
        statuses = [api.post("/results", many, X_Forwarded_For="192.0.2.3")[0] for _ in range(2)]
        self.assertEqual(statuses, [200, 429])  # each board counts
        ends = time.monotonic() + 30
        while status("192.0.2.1")[0] == 429:  # asking again and again wins nothing, and loses nothing
            self.assertLess(time.monotonic(), ends)
            time.sleep(0.02)
        self.assertEqual(api.post("/boards/a/results", results)[0], 200)  # this machine has no limit
        self.assertEqual(api.post("/boards/a/results", results)[0], 200)


class Matches(Case):
    """LB.MATCH, LB.PREDICT and LB.RATING over HTTP, and ratings of rows."""
    password = "secret"
    GAME = {"teams": [["ann"], ["bob"]]}

    def setUp(self):
        run = self.server.run
        run("FLUSHALL")
        run("ACL", "SETUSER", "game", "on", ">p", "~*", "-@all", "+@read", "+lb.match")
        run("LB.CREATE", "chess", "RATING", "ELO")
        run("LB.CREATE", "skill", "RATING", "OPENSKILL", "TAU", "0")
        run("LB.CREATE", "blitz", "RATING", "GLICKO2", "MINGAMES", "2", "TAG", "country", "8")

    def play(self, body, board="chess", status=200, **options):
        got, reply, headers = self.api.post(f"/boards/{board}/matches", body, user="game:p", **options)
        self.assertEqual(got, status, reply)
        return reply, headers["Idempotent-Replayed"]

    def test_a_match_changes_all_its_players(self):
        reply, _ = self.play(self.GAME)
        self.assertEqual(reply, {"board": "chess", "db": 0, "matches": [[
            {"member": "ann", "before": "1500", "after": "1520", "deviation": None, "games": 1, "rank_before": None, "rank_after": 0},
            {"member": "bob", "before": "1500", "after": "1480", "deviation": None, "games": 1, "rank_before": None, "rank_after": 1}]]})
        twin = {"teams": [["x\"y", "\u00e4\n"], ["cid"]], "ranks": [2, "1"], "weights": [1, "0.5", 0.25], "at": 1795694400000}
        self.play(twin, "skill")
        names = [b"x\"y", "\u00e4\n".encode(), b"cid"]
        self.server.run("LB.CREATE", "same", "RATING", "OPENSKILL", "TAU", "0")
        self.server.run("LB.MATCH", "same", "AT", 1795694400000, "RANKS", 2, 1, "WEIGHTS", 1, "0.5", "0.25", "TEAM", 2, *names[:2],
                        "TEAM", 1, names[2])
        self.assertEqual(self.server.run("LB.RATING", "same", *names), self.server.run("LB.RATING", "skill", *names))

    def test_scores_and_many_players(self):
        teams = [[f"{team}:{i}" for i in range(30 * (team + 1))] for team in range(8)]  # 30, 60 ... 240: 1,080
        self.assertIn("at most 999 players", self.play({"teams": teams}, "skill", 413)[0]["detail"])
        reply, _ = self.play({"teams": teams[:7], "scores": [5, 6, 7, 7, 1, 0, -2.5]}, "skill")
        self.assertEqual([player["member"] for player in reply["matches"][0]], sum(teams[:7], []))
        self.assertEqual(self.server.run("ZCARD", "skill"), 840)
        self.assertEqual(self.server.run("LB.RATING", "skill", "2:5")[0][6:9], [0, 1, 0])  # level with the best: drawn

    def test_several_are_played_one_after_the_other(self):
        reply, _ = self.play([self.GAME, {"teams": [["bob"], ["ann"]]}])
        self.assertEqual([[player["games"] for player in players] for players in reply["matches"]], [[1, 1], [2, 2]])
        reply, _ = self.play([self.GAME, {"teams": [["ann"], ["ann"]]}, self.GAME], status=422)
        self.assertEqual((reply["written"], self.server.run("LB.RATING", "chess", "ann")[0][5]), (1, 3))

    def test_a_match_that_comes_again_counts_once(self):
        for replayed in (None, "true"):
            reply, got = self.play(self.GAME, Idempotency_Key="one")
            self.assertEqual((reply["repeated"], got, reply["matches"][0][0]["after"]), (int(bool(replayed)), replayed, "1520"))
        self.assertEqual(self.play(' {"teams": [ ["\\u0061nn"], ["bob"] ]}', Idempotency_Key="one")[1], "true")
        for other in ({"teams": [["bob"], ["ann"]]}, {**self.GAME, "ranks": [1, 1]}, {"teams": [["ann", "bob"], ["cid"]]}):
            self.assertIn("another result", self.play(other, status=422, Idempotency_Key="one")[0]["detail"])
        both = [{**self.GAME, "id": "two"}, {**self.GAME, "id": "three"}]
        self.assertEqual([self.play(both)[0]["repeated"] for _ in range(2)], [0, 2])
        self.play([self.GAME, self.GAME], status=422, Idempotency_Key="four")
        self.play({**self.GAME, "id": "5"}, status=422, Idempotency_Key="five")
        self.play({"teams": [["ann"], ["ann"]]}, status=422, Idempotency_Key="six")
        self.assertEqual(self.play(self.GAME, Idempotency_Key="six")[0]["repeated"], 0)
        self.assertEqual(self.server.run("LB.RATING", "chess", "ann")[0][5], 4)

    def test_what_is_refused_changes_nothing(self):
        for status, why, body in (
                (400, "body", "{"), (400, "body", {}), (422, "two or more", {"teams": [["ann"]]}), (400, "teams", {"teams": [[], []]}),
                (400, "teams", {"teams": ["ann", "bob"]}), (400, "teams", {"teams": [["ann"], [5]]}),
                (422, "no such field", {**self.GAME, "winner": "ann"}), (422, "twice", '{"teams": [["a"], ["b"]], "teams": [["a"], ["b"]]}'),
                (422, "ranks or scores", {**self.GAME, "ranks": [1, 2], "scores": [1, 2]}), (400, "ranks", {**self.GAME, "ranks": ["TEAM"]}),
                (422, "each team", {**self.GAME, "ranks": [1]}), (422, "WEIGHTS", {**self.GAME, "weights": [1, 1]}),
                (422, "out of range", {**self.GAME, "ranks": [-1, 1]}), (422, "integer", {**self.GAME, "at": 1.5}),
                (422, "twice", {"teams": [["ann", "bob"], ["bob"]]}), (422, "128 teams", {"teams": [[str(i)] for i in range(129)]}),
                (413, "1000 players", [self.GAME] * 501), (422, "matches[1].at", [self.GAME, {**self.GAME, "at": -0.5}])):
            reply, _ = self.play(body, status=status)
            self.assertIn(why, reply["detail"], body)
        self.assertEqual(self.server.run("ZCARD", "chess"), 0)
        self.assertEqual(self.play(self.GAME, "none", 404)[0]["detail"], "there is no such board: LB.CREATE makes one")
        self.server.run("ZADD", "plain", 1, "ann")
        self.assertIn("no RATING", self.play(self.GAME, "plain", 422)[0]["detail"])
        self.server.run("LB.BAN", "bob")
        self.play(self.GAME, status=403)
        self.server.run("LB.ALTER", "chess", "FREEZE")
        self.play({"teams": [["ann"], ["cid"]]}, status=409)
        self.assertEqual(self.server.run("LB.RATING", "chess", "ann"), [None])

    def test_rights(self):
        self.server.run("ACL", "SETUSER", "reader", "on", ">p", "~*", "-@all", "+@read")
        self.assertEqual(self.api.post("/boards/chess/matches", self.GAME, user="reader:p")[0], 403)
        self.assertEqual(self.api.post("/boards/chess/matches", self.GAME)[0], 401)
        self.assertEqual(self.api.post("/boards/chess/predictions", self.GAME, user="reader:p")[0], 200)
        self.assertEqual(self.server.run("ZCARD", "chess"), 0)

    def test_predictions(self):
        def predict(body, board="skill", status=200):
            got, reply, _ = self.api.post(f"/boards/{board}/predictions", body, user="game:p")
            self.assertEqual(got, status, reply)
            return reply
        self.play({"teams": [["ann"], ["bob"]]}, "skill")
        reply = predict([{"teams": [["ann"], ["bob"]]}, {"teams": [["new"], ["also new"], ["x"]]}])
        self.assertEqual(list(reply), ["board", "db", "predictions"])
        first, second = reply["predictions"]
        self.assertGreater(float(first["chances"][0]), 0.6)
        self.assertEqual(sum(map(float, first["chances"])), 1)
        self.assertEqual(len(second["chances"]), 3)
        self.assertIn("no such field", predict({**self.GAME, "ranks": [1, 2]}, status=422)["detail"])
        predict(self.GAME, "none", 404)
        self.assertEqual(self.server.run("LB.RATING", "skill", "new"), [None])

    def get(self, path):
        return self.api.get(path, user="game:p")

    def test_ratings_of_rows_and_of_those_who_are_not_ranked(self):
        self.server.run("ZADD", "plain", 1, "ann")
        plain = self.get("/boards/plain/page")["rows"][0]
        self.assertNotIn("rating", plain)
        self.assertEqual(self.api.status("/boards/plain/page?rating=1", user="game:p"), 400)
        self.assertEqual((self.get("/boards/plain")["rating"], self.get("/boards/blitz")["rating"]), (None, "GLICKO2 MINGAMES 2"))
        self.play(self.GAME, "blitz")
        self.assertEqual(self.get("/boards/blitz/page?rating=1")["rows"], [])
        rating = self.get("/boards/blitz/members/ann/rating")
        self.assertEqual({name: rating[name] for name in ("board", "member", "rank", "rating", "games", "won", "drawn", "lost")},
                         {"board": "blitz", "member": "ann", "rank": None, "rating": "1662.212001", "games": 1, "won": 1, "drawn": 0,
                          "lost": 0})
        self.assertRegex(rating["last_at"], r"^20\d\d-.*Z$")
        self.assertEqual(self.api.status("/boards/blitz/members/ann", user="game:p"), 404)
        self.assertEqual(self.api.status("/boards/blitz/members/nobody/rating", user="game:p"), 404)
        self.assertEqual(self.api.status("/boards/plain/members/ann/rating", user="game:p"), 400)
        self.assertEqual(self.api.status("/boards/none/members/ann/rating", user="game:p"), 404)
        self.play({"teams": [["ann"], ["cid"]]}, "blitz")
        self.server.run("LB.TAG", "blitz", "ann", "country", "DE")
        self.server.run("LB.ROLL", "chess", "old")
        self.server.run("COPY", "blitz", "before")
        for path in ("page?rating=1", "page?rating=1&tags=1&since=before&where=country:DE", "search?q=a&rating=1"):
            [row] = self.get("/boards/blitz/" + path)["rows"]
            self.assertEqual((row["member"], row["rating"]["games"], row["rating"]["won"]), ("ann", 2, 2), path)
            self.assertEqual(set(row["rating"]), set(rating) - {"board", "db", "member", "rank"})
        self.assertEqual((row.get("since"), row.get("tags")), (None, None))
        member = self.get("/boards/blitz/members/ann?rating=1&since=before&tags=1")
        self.assertEqual((member["row"]["since"], member["row"]["tags"], member["row"]["rating"]["games"], member["percentile"]),
                         (0, {"country": "DE"}, 2, "100"))
        self.assertEqual(member["around"][0]["rating"]["lost"], 0)


class Keys(Case):
    """Ids over HTTP: whose they are, and what comes again with them."""
    password = "secret"
    RESULT = {"member": "bob", "value": 5, "operator": "incr"}

    @classmethod
    def setUpClass(cls):
        cls.metrics_port = hold_port()
        let_port_go(cls.metrics_port)
        cls.words = ("--web-write", "yes", "--auth-delay", "0", "--metrics-port", str(cls.metrics_port))
        super().setUpClass()

    def setUp(self):
        run = self.server.run
        run("FLUSHALL")
        for user in ("p1", "game"):
            run("ACL", "SETUSER", user, "on", ">p", "~*", "-@all", "+lb.add", "+lb.submit", "+lb.league|add")
        run("LB.CREATE", "arena", "FIELD", "score", "32")

    def write(self, body, key, user="game:p", path="/boards/arena/results"):
        """(status, JSON, whether it says that it was a repeat)"""
        status, reply, headers = self.api.post(path, body, user=user, creates=False, Idempotency_Key=key)
        return status, reply, headers["Idempotent-Replayed"]

    def score(self, member="bob", board="arena"):
        return self.server.run("ZSCORE", board, member)

    def test_a_key_of_one_user_is_nobody_elses(self):
        key = "of-one-user"
        self.assertEqual(self.write({"member": "ghost", "value": 1, "only": "existing"}, key, "p1:p")[0], 200)
        status, reply, replayed = self.write(self.RESULT, key)
        self.assertEqual((status, reply["changed"], reply["repeated"], replayed), (200, 1, 0, None))
        status, reply, replayed = self.write(self.RESULT, key)
        self.assertEqual((status, reply["changed"], reply["repeated"], replayed), (200, 0, 1, "true"))
        self.assertEqual(self.write({"member": "ghost", "value": 1, "only": "existing"}, key, "p1:p")[2], "true")
        self.assertEqual(self.score(), b"5")

    def test_a_token_and_a_password_are_one_user(self):
        token = self.server.run("ACL", "SETUSER", "game", "token>t").decode()
        self.assertEqual(self.write(self.RESULT, "both")[2], None)
        _, _, headers = self.api.post("/boards/arena/results", self.RESULT, creates=False, Idempotency_Key="both",
                                      Authorization="Bearer " + token)
        self.assertEqual(headers["Idempotent-Replayed"], "true")
        self.server.run("ACL", "SETUSER", "game", "token<t")

    def test_a_key_belongs_to_its_path(self):
        self.server.run("LB.CREATE", "other", "FIELD", "score", "32")
        self.assertEqual(self.write(self.RESULT, "path")[2], None)
        self.assertEqual(self.write(self.RESULT, "path", path="/boards/other/results")[2], None)
        self.assertEqual(self.write(self.RESULT, "path", path="/boards/arena/results?db=0")[2], "true")
        self.assertEqual(self.write(self.RESULT, "path", path="/boards/%61rena/results?rank=1")[2], "true")
        many = {**self.RESULT, "boards": ["arena", "other"]}
        self.assertEqual(self.write(many, "path", path="/results")[2], None)
        self.assertEqual(self.write(many, "path", path="/results")[2], "true")
        self.assertEqual(self.write({**many, "boards": ["other", "arena"]}, "path", path="/results")[0], 422)
        self.assertEqual((self.score(), self.score(board="other")), (b"10", b"10"))

    def test_ids_of_resp_are_others(self):
        game = redis.Redis(port=self.server.port, username="game", password="p")
        self.assertEqual(self.write(self.RESULT, "resp")[2], None)
        self.assertEqual(game.execute_command("LB.ADD", "arena", "ONCE", "resp", "INCR", "5", "bob"), 1)
        self.assertEqual(game.execute_command("LB.ADD", "arena", "ONCE", "resp", "INCR", "7", "bob"), 0)
        self.assertEqual(self.score(), b"10")

    def test_the_same_key_with_another_body_is_refused(self):
        self.assertEqual(self.write(self.RESULT, "body")[0], 200)
        for body in ({**self.RESULT, "value": 6}, {**self.RESULT, "member": "ann"}, {"member": "bob", "value": 5},
                     {**self.RESULT, "at": 5}, {"member": "x", "value": "1.5"}, [self.RESULT, {**self.RESULT, "member": "ann"}]):
            status, reply, replayed = self.write(body, "body")
            self.assertEqual((status, replayed), (422, None), body)
            self.assertIn("this id was sent with another result", reply["detail"])
        again = '{ "operator" : "incr", "value": 5,\n "member": "b\\u006fb" }'  # it is what it says that counts
        self.assertEqual(self.write(again, "body")[2], "true")
        self.assertEqual(self.write([self.RESULT], "body")[2], "true")
        self.assertEqual(self.score(), b"5")

    def test_what_is_refused_burns_no_key(self):
        for body, status in (({"member": "bob", "value": 1.5}, 422), ({"member": "bob"}, 422), ("{", 400),
                             ({"member": 42, "value": 1}, 400), ({"member": "bob", "values": [1, 2]}, 422)):
            self.assertEqual(self.write(body, "burnt")[0], status, body)
        self.assertEqual(self.write(self.RESULT, "burnt", path="/boards/aerna/results")[0], 404)
        self.server.run("LB.ALTER", "arena", "FREEZE")
        self.assertEqual(self.write(self.RESULT, "burnt")[0], 409)
        self.server.run("LB.ALTER", "arena", "THAW")
        status, reply, replayed = self.write(self.RESULT, "burnt")
        self.assertEqual((status, reply["changed"], replayed), (200, 1, None))

    def test_each_result_may_have_its_own(self):
        results = [{**self.RESULT, "id": "1"}, {**self.RESULT, "member": "ann", "id": "2"}]
        path = "/boards/arena/results"
        _, reply, headers = self.api.post(path, results, user="game:p", creates=False)
        self.assertEqual((reply["changed"], reply["repeated"], headers["Idempotent-Replayed"]), (2, 0, None))
        more = results + [{**self.RESULT, "member": "kim", "id": "3"}]
        _, reply, headers = self.api.post(path, more, user="game:p", creates=False)
        self.assertEqual((reply["changed"], reply["repeated"], headers["Idempotent-Replayed"]), (1, 2, None))
        _, reply, headers = self.api.post(path, more, user="game:p", creates=False)
        self.assertEqual((reply["changed"], reply["repeated"], headers["Idempotent-Replayed"]), (0, 3, "true"))
        more[2]["value"] = 6
        status, reply, _ = self.api.post(path, more, user="game:p", creates=False)
        self.assertEqual((status, reply["written"]), (422, 2))
        _, reply, _ = self.api.post(path, [self.RESULT], user="game:p", creates=False)
        self.assertNotIn("repeated", reply)

    def test_leagues_too(self):
        self.server.run(*"LB.LEAGUE CREATE weekly FIELD points 22 PERIOD WEEK ROOM 3 TIERS 4 UP 1 DOWN 1".split())
        for replayed in (None, "true"):
            status, reply, got = self.write(self.RESULT, "league", path="/leagues/weekly/results")
            self.assertEqual((status, got, reply["repeated"]), (200, replayed, int(replayed == "true")), reply)
        self.assertEqual(self.write({**self.RESULT, "value": 6}, "league", path="/leagues/weekly/results")[0], 422)

    def test_ids_outlive_the_server(self):
        server = WebServer("--web-write", "yes", "--appendonly", "yes")
        self.addCleanup(server.kill)
        for status in (200, 200, 422):
            body = {"member": "ann", "value": 5 if status == 200 else 6, "operator": "incr"}
            self.assertEqual(Writer(server).post("/boards/a/results", body, Idempotency_Key="kept")[0], status)
            server.kill()
            server.start()
        self.assertEqual(server.run("ZSCORE", "a", "ann"), b"5")

    def test_one_user_cannot_take_the_room_of_all(self):
        run = self.server.run
        run("CONFIG", "SET", "once-window", "1")
        run("LB.ADD", "arena", "ONCE", "x", "1", "x")
        wait_until(lambda: b"once_ids:0" in run("INFO", "stats"), "no ids")
        run("CONFIG", "SET", "once-window", "30", "once-max", "100")
        self.addCleanup(run, "CONFIG", "SET", "once-window", "600", "once-max", "1000000")
        asked, answered = [], []

        def ask():
            asked.append(time.monotonic())
            got = self.api.post("/boards/arena/results", self.RESULT, user="p1:p", creates=False,
                                Idempotency_Key=f"k{len(asked)}")
            answered.append(time.monotonic())
            return got

        while (got := ask())[0] == 200:
            pass
        taken, (status, reply, headers) = len(asked) - 1, got
        self.assertEqual((status, reply["redis"], taken), (503, "TRYAGAIN", 40))  # each takes the place of two
        self.assertIn("user 'p1' has 80 of the 100 ids (once-max)", reply["detail"])
        # Until the first of them goes, 30 s after it was taken, in whole seconds.
        least, most = 30 - (answered[-1] - asked[0]), 30 - (asked[-1] - answered[0])
        self.assertTrue(least - 1 <= int(headers["Retry-After"]) <= most + 1, (least, headers["Retry-After"], most))
        self.assertEqual(self.write(self.RESULT, "of-game")[0], 200)
        game = redis.Redis(port=self.server.port, username="game", password="p")
        self.assertEqual(game.execute_command("LB.ADD", "arena", "ONCE", "y", "INCR", "1", "bob"), 1)
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=30)
        connection.request("GET", "/metrics", headers={"Authorization": self.api.basic("default:secret")})
        text = connection.getresponse().read().decode()
        connection.close()
        self.assertEqual(re.findall(r'leaderboard_once_user_ids\{user="(.*?)"\} (\d+)', text), [("p1", "80"), ("game", "3")])


class Existing(Case):
    def test_a_mistyped_board_does_not_come_into_being(self):
        self.server.run("LB.CREATE", "arena", "FIELD", "score", "32")
        result = {"member": "ann", "value": 1}
        for path, body in (("/boards/aerna/results", result), ("/boards/aerna/results?rank=1", [result]),
                           ("/boards/aerna/results?create=0", result), ("/results", {**result, "boards": ["arena", "aerna"]})):
            reply = self.refused(404, path, body, creates=False)
            self.assertIn("there is no such board", reply["detail"])
            self.assertIn("create=1", reply["detail"])
        self.assertIn("(board 'aerna')", reply["detail"])
        self.assertEqual((self.server.run("EXISTS", "aerna"), self.server.run("ZCARD", "arena")), (0, 0))
        self.written("/boards/arena/results", result, creates=False)
        self.written("/results", {**result, "boards": ["arena"]}, creates=False)
        self.written("/boards/aerna/results?create=1", result, creates=False)
        self.written("/results?create=1", {**result, "boards": ["arena", "third"]}, creates=False)
        self.refused(400, "/boards/arena/results?create=yes", result, creates=False)


class Framing(Case):
    """RFC 9112: where a body ends."""
    GOOD = b'{"member":"ann","value":1,"operator":"incr"}'

    def post(self, headers, body, path="/api/v1/boards/a/results?create=1"):
        """(status, bytes), and that there is one answer."""
        head = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"{headers}\r\nConnection: close\r\n\r\n")
        with socket.create_connection(("127.0.0.1", self.server.web_port)) as one:
            one.settimeout(30)
            got = b""
            try:
                one.sendall(head.encode("latin-1") + body)
                while part := one.recv(65536):
                    got += part
            except ConnectionError:
                pass
        self.assertLessEqual(got.count(b"HTTP/1.1 "), 1, (headers, got))
        return int(got[9:12]) if got else None, got

    def chunks(self, *sizes):
        out, at = b"", 0
        for size in sizes:
            out += b"%x\r\n" % size + self.GOOD[at:at + size] + b"\r\n"
            at += size
        return out + b"%X;a=b\r\n" % (len(self.GOOD) - at) + self.GOOD[at:] + b"\r\n0\r\nX-Trailer: y\r\n\r\n"

    def test_a_body_may_come_in_chunks(self):
        self.server.run("DEL", "a")
        for i, body in enumerate((self.chunks(), self.chunks(1, 2, 3), self.chunks(*[1] * (len(self.GOOD) - 1)))):
            for coding in ("chunked", "Chunked"):
                self.assertEqual(self.post(f"Transfer-Encoding: {coding}", body)[0], 200)
            self.assertEqual(self.server.run("ZSCORE", "a", "ann"), b"%d" % (2 * i + 2))
        self.assertEqual(self.post("Transfer-Encoding: chunked", b"0\r\n\r\n")[0], 400)  # as any empty body

    def test_chunks_have_the_bounds_of_any_body(self):
        long = b" " * 0x40000 + self.GOOD
        self.assertEqual(self.post("Transfer-Encoding: chunked", b"%x\r\n" % len(long) + long + b"\r\n0\r\n\r\n")[0], 413)
        self.assertEqual(self.post("Transfer-Encoding: chunked", (b"1\r\n \r\n" * 300000) + b"0\r\n\r\n")[0], 413)
        fits = b" " * (0x40000 - len(self.GOOD)) + self.GOOD
        self.assertEqual(self.post("Transfer-Encoding: chunked", b"%x\r\n" % len(fits) + fits + b"\r\n0\r\n\r\n")[0], 200)
        # Nobody waits for the end of what is far too long.
        self.assertIn(self.post("Transfer-Encoding: chunked", b"%x\r\n" % (1 << 40) + b" " * (4 << 20))[0], (None, 413))
        plain = WebServer()
        self.addCleanup(plain.kill)
        self.server, kept = plain, self.server
        status = self.post("Transfer-Encoding: chunked", b"2000\r\n" + b" " * 0x2000 + b"\r\n0\r\n\r\n", "/api/v1/login")[0]
        self.server = kept
        self.assertEqual(status, 413)

    def test_what_two_could_read_in_two_ways_is_refused(self):
        before = self.server.run("DBSIZE")
        whole, size = self.chunks(), len(self.GOOD)
        for headers, status in (("Transfer-Encoding: chunked\r\nContent-Length: 5", 400), ("Transfer-Encoding: chunked, chunked", 501),
                                ("Transfer-Encoding: gzip, chunked", 501), ("Transfer-Encoding: xchunked", 501),
                                ("Transfer-Encoding: identity", 501), ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
                                ("Transfer-Encoding:", 501), ("Transfer-Encoding: chunked\0", 400)):
            self.assertEqual(self.post(headers, whole, "/api/v1/boards/new/results?create=1")[0], status, headers)
        for body in (b"zz\r\n", b"-1\r\n", b"+1\r\n", b"0x1\r\n", b"\r\n", b"1\r\nab\r\n0\r\n\r\n", b" 1\r\n", b"%x" % size + self.GOOD):
            self.assertEqual(self.post("Transfer-Encoding: chunked", body, "/api/v1/boards/new/results?create=1")[0], 400, body)
        with socket.create_connection(("127.0.0.1", self.server.web_port)) as one:
            one.sendall(b"POST /api/v1/boards/new/results?create=1 HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + whole)
            self.assertEqual(one.recv(12), b"HTTP/1.1 400")
        self.assertEqual(self.server.run("DBSIZE"), before)

    def test_a_compressed_body_is_of_an_unsupported_type(self):
        size = f"\r\nContent-Length: {len(self.GOOD)}"
        for coding in ("gzip", "br", "x", "identity, gzip"):
            status, got = self.post("Content-Encoding: " + coding + size, self.GOOD)
            self.assertEqual(status, 415, coding)
            self.assertIn(b"Accept-Encoding: identity\r\n", got)
        self.assertEqual(self.post("Content-Encoding: identity" + size, self.GOOD)[0], 200)


class Rights(Case):
    words = ("--web-write", "yes", "--web-public", "arena", "--web-allow-origin", "https://game.example.com", "--auth-delay", "0")
    password = "secret"
    RESULT = {"member": "ann", "value": 1}

    @classmethod
    def fill(cls, run):
        run("ACL", "SETUSER", "game", "on", ">p", "~arena", "-@all", "+lb.add")
        run("ACL", "SETUSER", "viewer", "on", ">p", "%R~*", "-@all", "+@read", "+lb.add")

    def test_whoever_writes_is_a_user_with_the_rights(self):
        self.written("/boards/arena/results", self.RESULT, user="game:p")
        self.assertEqual(self.refused(403, "/boards/other/results", self.RESULT, user="game:p")["redis"], "NOPERM")
        self.refused(403, "/boards/arena/results", self.RESULT, user="viewer:p")
        self.assertEqual(self.api.once("/boards/arena/members/ann", "DELETE", user="game:p")[0], 403)
        self.refused(401, "/boards/arena/results", self.RESULT)
        self.refused(401, "/boards/arena/results", self.RESULT, user="game:wrong")
        self.refused(401, "/boards/arena/results", self.RESULT, Authorization="Bearer lbt_00")
        self.assertEqual(self.server.run("ZCARD", "arena"), 1)

    def test_a_login_that_was_right_ends_with_the_password(self):
        run = self.server.run
        run("ACL", "SETUSER", "short", "on", ">p", "~*", "+lb.add")
        for _ in range(2):
            self.written("/boards/arena/results", self.RESULT, user="short:p")
        run("ACL", "SETUSER", "short", "<p", ">q")
        self.refused(401, "/boards/arena/results", self.RESULT, user="short:p")
        self.written("/boards/arena/results", self.RESULT, user="short:q")
        run("ACL", "DELUSER", "short")
        self.refused(401, "/boards/arena/results", self.RESULT, user="short:q")

    def test_tokens(self):
        reply = self.server.run("ACL", "SETUSER", "game", "token>phone")
        token = re.search(rb"lbt_[0-9a-f]+", b" ".join(reply) if isinstance(reply, list) else reply)[0].decode()
        for _ in range(2):
            self.written("/boards/arena/results", self.RESULT, Authorization="Bearer " + token)
        self.refused(403, "/boards/other/results", self.RESULT, Authorization="Bearer " + token)
        self.server.run("ACL", "SETUSER", "game", "token<phone")
        self.refused(401, "/boards/arena/results", self.RESULT, Authorization="Bearer " + token)

    def test_no_cookie_writes(self):
        cookie = self.api.log_in("default", "secret")[2].split(";")[0]
        self.assertEqual(self.api.get("/me", cookie=cookie)["user"], "default")
        own = f"http://127.0.0.1:{self.server.web_port}"
        for headers in ({}, {"Origin": own}, {"Origin": own, "Sec_Fetch_Site": "same-origin"}):
            self.refused(401, "/boards/arena/results", self.RESULT, Cookie=cookie, **headers)

    def test_pages_of_allowed_sites_alone(self):
        game = {"Origin": "https://game.example.com", "Sec_Fetch_Site": "cross-site"}
        status, _, headers = self.api.once("/boards/arena/results", "OPTIONS", Access_Control_Request_Method="POST", **game)
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (204, "https://game.example.com"))
        self.assertIn("Authorization", headers["Access-Control-Allow-Headers"])
        self.assertNotIn("Access-Control-Allow-Credentials", headers)
        status, _, headers = self.api.post("/boards/arena/results", self.RESULT, user="game:p", **game)
        self.assertEqual((status, headers["Access-Control-Allow-Origin"], headers["Vary"]), (200, "https://game.example.com", "Origin"))
        self.refused(401, "/boards/arena/results", self.RESULT, **game)
        cookie = self.api.log_in("default", "secret")[2].split(";")[0]
        self.assertEqual(self.api.once("/me", Cookie=cookie, **game)[1]["user"], None)
        self.assertEqual(self.api.post("/login", {"user": "default", "password": "secret"}, **game)[0], 403)
        for other in ("https://evil.example.com", "https://game.example.com.evil.com", "http://game.example.com", "null"):
            self.refused(403, "/boards/arena/results", self.RESULT, user="game:p", Origin=other)
            status, _, headers = self.api.once("/boards/arena/results", "OPTIONS", Origin=other, Access_Control_Request_Method="POST")
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (403, None))


class Guessing(unittest.TestCase):
    def test_a_login_that_was_right_does_not_make_guessing_faster(self):
        server = WebServer("--web-write", "yes", "--auth-delay", "60000", "--auth-delay-after", "1", password="secret")
        self.addCleanup(server.kill)
        server.run("ACL", "SETUSER", "game", "on", ">p", "~*", "+@all")
        api, result = Writer(server), {"member": "a", "value": 1}
        for _ in range(2):
            self.assertEqual(api.post("/boards/a/results", result, user="game:p")[0], 200)
        self.assertEqual(api.post("/boards/a/results", result, user="game:wrong")[0], 401)
        self.assertEqual(api.post("/boards/a/results", result, user="game:x")[0], 429)
        self.assertEqual(api.post("/boards/a/results", result, user="game:p")[0], 429)  # as for any other password


class OpenApi(Case):
    def test_the_document_is_whole(self):
        document = self.api.get("/openapi.json")
        self.assertEqual(self.api.ask("/api/openapi.json")[1], document)
        self.assertRegex(document["openapi"], r"^3\.1\.\d+$")
        names = set()

        def look(value, at):
            if isinstance(value, dict):
                if "$ref" in value:
                    name = re.fullmatch(r"#/components/schemas/(\w+)", value["$ref"])[1]
                    self.assertIn(name, set(document["components"]["schemas"]), at)
                    names.add(name)
                for key, part in value.items():
                    look(part, f"{at}/{key}")
                if "required" in value and isinstance(value["required"], list):
                    self.assertLessEqual(set(value["required"]), set(value["properties"]), at)
            elif isinstance(value, list):
                for i, part in enumerate(value):
                    look(part, f"{at}/{i}")

        look(document, "")
        self.assertEqual(set(document["components"]["schemas"]) - names, set())
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                self.assertEqual({"summary", "parameters", "responses"} - set(operation), set(), path)
                in_path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
                self.assertEqual(in_path, set(re.findall(r"\{(\w+)\}", path)), path)
                self.assertTrue(all("schema" in p for p in operation["parameters"]), path)
                if "events" not in path:
                    body = "{}" if operation.get("requestBody") else ""
                    status = self.api.post(re.sub(r"\{\w+\}", "x", path), body, method.upper())[0]
                    self.assertNotIn(status, (405, 413), (path, method))
                for schemes in operation.get("security", []):
                    self.assertLessEqual(set(schemes), set(document["components"]["securitySchemes"]))


if __name__ == "__main__":
    unittest.main()
