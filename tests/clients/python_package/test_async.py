"""The same methods with redis.asyncio."""
import inspect
import unittest

import redis
import redis.asyncio

import process
from leaderboard_client import AsyncLeaderboard, AsyncLeaderboards, Event, Leaderboard, Leaderboards


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = process.Server("--notify-board-events", "yes")
        self.addCleanup(self.server.stop)
        self.client = await self.enterAsyncContext(redis.asyncio.Redis(port=self.server.port))
        self.board = AsyncLeaderboard(self.client, "arena", retries=2)

    async def test_a_board(self):
        await self.board.create(fields="FIELD coins 64 SIGNED", tag={"country": 8})
        [result] = await self.board.submit("ann", 2**53 + 1, tag={"country": "DE"})
        self.assertEqual((result.record.score, result.counts), (2**53 + 1, True))
        await self.board.add({f"m{number}": number for number in range(700)})
        self.assertEqual(len([record async for record in self.board]), 701)
        self.assertEqual([each.member for each in await self.board.page(1, 2)], ["ann", "m699"])
        self.assertEqual([each.member for each in await self.board.around("ann", 5, within="country")], ["ann"])
        boards = AsyncLeaderboards(self.client)
        self.assertEqual([each["name"] async for each in boards.boards()], ["arena"])
        self.assertEqual(await boards.ban("ann"), 1)
        self.assertEqual([each.member async for each in boards.banned()], ["ann"])
        self.assertEqual(await boards.board("arena").count(), 700)

    async def test_a_match(self):
        await self.board.create(rating="ELO")
        ann, bob = await self.board.match(["ann", "bob"])
        self.assertEqual((ann.after, bob.after, bob.rank_after), (1520, 1480, 1))
        self.assertEqual((await self.board.predict([["ann"], ["bob"]])).chances, [0.56, 0.44])
        [record] = await self.board.get("bob", rating=True)
        self.assertEqual((record.rating.rating, record.rating.lost), (1480, 1))

    async def test_a_lost_answer(self):
        class Loses:
            tries = 0

            async def execute_command(_, *words):
                reply = await self.client.execute_command(*words)
                _.tries += 1
                if _.tries == 1:
                    raise redis.ConnectionError("gone")
                return reply

        await AsyncLeaderboard(Loses(), "arena", retries=1).add({"ann": 5}, operator="INCR")
        self.assertEqual((await self.board.get("ann"))[0].score, 5)

    async def test_events(self):
        async with await self.board.events(members=1) as events:
            await self.board.add({"ann": 5})
            self.assertEqual(await events.get(30), Event("entered", member="ann"))
            await self.board.add({"bob": 6})
            async for event in events:
                self.assertIn(event, (Event("left", member="ann"), Event("entered", member="bob")))
                break

    def test_both_have_the_same_methods(self):
        for own, other in ((Leaderboard, AsyncLeaderboard), (Leaderboards, AsyncLeaderboards)):
            for name, method in inspect.getmembers(own, inspect.isfunction):
                if not name.startswith("_"):
                    self.assertEqual(list(inspect.signature(method).parameters),
                                     list(inspect.signature(getattr(other, name)).parameters), name)
