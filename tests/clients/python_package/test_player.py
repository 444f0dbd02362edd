"""Players with tokens of their own."""
import base64
import hashlib
import hmac
import json
import time
import unittest

import redis
import redis.asyncio

import process
from leaderboard_client import AsyncPlayer, Leaderboard, Player, Sent

SECRET = "0a9c8e3b7d6f5a4b3c2d1e0f9a8b7c6d"


def token(player, **claims):
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "web"}, {"sub": player, "exp": int(time.time()) + 600, **claims}]
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = hmac.new(SECRET.encode(), text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


class Players(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.server = process.Server("--player-key", "web", "hs256", SECRET)
        self.addCleanup(self.server.stop)
        owner = redis.Redis(port=self.server.port)
        self.addCleanup(owner.close)
        owner.acl_setuser("player:web", enabled=True, keys=["*"], commands=["-@all", "+@read", "+lb.add", "+lb.ticket", "+lb.held"])
        self.high = Leaderboard(owner, "high")

    def create(self, **options):
        self.high.create(fields="FIELD score 32", keep="BEST", **options)
        self.high.add({"zoe": 900, "kim": 100})

    def connect(self, name, **options):
        client = redis.Redis(port=self.server.port, username="player", password=token(name))
        self.addCleanup(client.close)
        return Player(client, "high", **options)

    def test_a_player_writes_the_own_results_and_reads_the_board(self):
        self.create()
        ann = self.connect("ann", retries=3)
        self.assertEqual(ann.member, "ann")
        self.assertEqual(ann.own().records, [None])
        self.assertEqual(ann.end_run(500), Sent(counts=True, is_held=False))
        self.assertEqual(ann.end_run(400), Sent(counts=False, is_held=False))
        self.assertEqual([record.score for record in ann.own().records], [500])
        self.assertEqual([record.member for record in ann.near(3)], ["zoe", "ann", "kim"])
        self.assertEqual([record.member for record in ann.top(1)], ["zoe"])
        with self.assertRaisesRegex(redis.ResponseError, "writes of its own member alone"):
            ann.add({"zoe": 1})

    def test_a_ticket_goes_with_the_next_result_and_stays_if_it_is_refused(self):
        self.create(tickets="YES", limits="PLAYERS", max=10000, results=(50, "DAY"), gain=(20000, "HOUR"), hold="PLAYERS", over=5000)
        ann = self.connect("ann")
        with self.assertRaisesRegex(redis.ResponseError, "TICKET"):
            ann.end_run(500)
        ticket = ann.begin_run(for_=60)
        with self.assertRaisesRegex(redis.ResponseError, "LIMIT MAX"):
            ann.end_run(10001)
        self.assertEqual(ann.run_ticket, ticket)
        self.assertEqual(ann.end_run(500), Sent(True, False))
        self.assertIsNone(ann.run_ticket)
        with self.assertRaisesRegex(redis.ResponseError, "TICKET"):
            ann.end_run(600, ticket=ticket)
        ann.begin_run()
        self.assertEqual(ann.end_run(6000), Sent(False, True))
        self.assertEqual(self.high.info()["limits"], "PLAYERS MAX 10000 RESULTS 50 PER DAY GAIN 20000 PER HOUR")
        own = ann.own()
        self.assertEqual(([record.score for record in own.records], [each.values for each in own.held]), ([500], [[6000]]))
        self.assertEqual(self.connect("bob").own().held, [])

    async def test_with_asyncio(self):
        self.create(tickets="YES")
        async with redis.asyncio.Redis(port=self.server.port, username="player", password=token("ann")) as client:
            ann = AsyncPlayer(client, "high")
            self.assertEqual(await ann.begin_run(), ann.run_ticket)
            self.assertEqual(await ann.end_run(500), Sent(True, False))
            self.assertEqual((await ann.near(1))[0].member, "ann")

    def test_what_is_no_token_is_said_at_once(self):
        client = redis.Redis(port=self.server.port)
        self.addCleanup(client.close)
        no_player = token("ann").split(".")[0] + "." + base64.urlsafe_b64encode(b'{"sub": 1}').decode() + ".x"
        for options in ({}, {"token": ""}, {"token": "secret"}, {"token": "a.b.c"}, {"token": no_player}):
            with self.assertRaisesRegex(ValueError, "not a player's token: header.claims.signature is expected"):
                Player(client, "high", **options)
        self.assertEqual(Player(client, "high", token=token('zoë "q"')).member, 'zoë "q"')
