"""One board over 16 keys in a cluster of six redis-servers with the module: it reads as one board does, and what was
acknowledged is there after slots have moved and a master was killed."""
import logging
import random
import sys
import threading
import time
import unittest

import redis

from hosts import ROOT, SHORT, SixNodes

sys.path[:0] = [str(ROOT / "clients/python"), str(ROOT / "tests/split")]

from leaderboard_client.split import SplitBoard, shard_of  # noqa: E402
from split_twin import Twin  # noqa: E402

logging.getLogger("redis.cluster").setLevel(logging.CRITICAL + 1)  # every error that it gets over

SHARDS = 16
MEMBERS = 5000 if SHORT else 100000
LAYOUT = "FIELD points 20 TIME 42 MS START 1700000000000"
WRITERS = 3
WINDOW_S = 2  # before the kill: what a master acknowledged and had no time to send


class SplitOverNodes(SixNodes):
    def setUp(self):
        super().setUp()
        self.seed = random.randrange(1 << 30)
        self.draw = random.Random(self.seed)
        print(f"seed {self.seed} ", end="", flush=True)
        self.board = SplitBoard(self.client(), "daily:arena", SHARDS)

    def compare(self, board, twin):
        """Ranks, pages and quantiles."""
        count = len(twin.records)
        self.assertEqual(board.count(), count)
        for place in (0, 1000, count // 2, count - 30, self.draw.randrange(count)):
            self.assertEqual(board.range(place, place + 49), twin.range(place, 50), place)
        members = [record.member for record in self.draw.sample(twin.records, 50)]
        self.assertEqual(board.ranks(*members), [twin.rank(member) for member in members])
        for member in members[:10]:
            self.assertEqual(board.around(member, 7), twin.around(member, 7), member)
        self.assertEqual(board.quantile(["0", "0.5", "0.99", "1"]), [twin.quantile(q) for q in (0, 500, 990, 1000)])

    def test_it_reads_as_one_board(self):
        client, one = self.client(), "{b}one"
        self.board.create(fields=LAYOUT)
        client.execute_command("LB.CREATE", one, *LAYOUT.split())
        for begin in range(0, MEMBERS, 5000):
            at = 1700000000000 + begin
            results = [(f"user:{i}", self.draw.randrange(3000)) for i in range(begin, begin + 5000)]
            self.board.submit_many(results, "AT", at)
            client.execute_command("LB.ADD", one, "AT", at, *[word for name, points in results for word in (points, name)])
        self.assertGreater(len({str(client.get_node_from_key(board.name)) for board in self.board.boards}), 2)
        twin = Twin(client, one, SHARDS)
        self.compare(self.board, twin)
        edges = [100, 1000, 2500]
        self.assertEqual(self.board.hist(edges), client.execute_command("LB.HIST", one, *edges))
        rounds = self.board.rounds
        self.board.range(MEMBERS // 2, MEMBERS // 2 + 49)
        self.assertLessEqual(self.board.rounds - rounds, 3)

    def test_periods_end_in_all_shards_by_the_calendar(self):
        self.board.create(fields="FIELD points 20 TIME 42 MS", period="DAY")
        for i in range(100):
            self.board.submit(f"user:{i}", i)
        ends = {board.info()["period"]["end"] for board in self.board.boards}
        starts = {board.info()["layout"] for board in self.board.boards}
        self.assertEqual((len(ends), len(starts)), (1, 1))

    def write(self, stop, name, acknowledged):
        """Results of members of its own, each better than the one before."""
        board, number = SplitBoard(self.client(), "daily:arena", SHARDS), 0
        while not stop.is_set():
            member = f"{name}:{number % 200}"
            try:
                board.submit(member, number, operator="BEST")
                acknowledged.append((member, number, time.monotonic()))
                number += 1
            except (redis.RedisError, OSError, KeyError, ValueError, IndexError, AttributeError):
                time.sleep(0.05)
            time.sleep(0.002)

    def read(self, stop, pages):
        """What is read is in order, whatever happens."""
        board, draw = SplitBoard(self.client(), "daily:arena", SHARDS), random.Random(self.seed)
        while not stop.is_set():
            place = draw.randrange(MEMBERS // 2)
            try:
                page = board.range(place, place + 19)
            except (redis.RedisError, OSError, KeyError, ValueError, IndexError, AttributeError):
                time.sleep(0.05)
                continue
            order = [(-record.key, shard_of(record.member, SHARDS)) for record in page]
            pages.append(order == sorted(order) and [record.rank for record in page] == list(range(place, place + 20)))

    def check(self, acknowledged, killed_at):
        """Nothing from before the window is lost, neither in the shards that moved nor in those of the killed one."""
        lost = 0
        for records in acknowledged:
            self.assertGreater(len([at for _, _, at in records if at > killed_at + 1]), 10, "nothing after the failover")
            best = {}
            for member, number, at in records:
                best.setdefault(member, [-1, -1])[at >= killed_at - WINDOW_S] = number
            for (member, (safe, late)), record in zip(best.items(), self.board.ranks(*best)):
                self.assertIsNotNone(record, member)
                self.assertGreaterEqual(record.score, safe, member)
                lost += record.score < late
        print(f"{sum(map(len, acknowledged))} acknowledged, {lost} of the last {WINDOW_S} s lost ", end="", flush=True)

    @unittest.skipIf(SHORT, "test_cluster.py kills one, too")
    def test_slots_move_and_a_master_is_killed(self):
        self.board.create(fields=LAYOUT)
        self.board.submit_many([(f"user:{i}", self.draw.randrange(100000)) for i in range(MEMBERS)])
        stop, acknowledged, pages = threading.Event(), [[] for _ in range(WRITERS)], []
        threads = [threading.Thread(target=self.write, args=(stop, f"w{i}", acknowledged[i]), daemon=True)
                   for i in range(WRITERS)] + [threading.Thread(target=self.read, args=(stop, pages), daemon=True)]
        for thread in threads:
            thread.start()
        time.sleep(WINDOW_S)
        self.reshard(5000)
        time.sleep(2 * WINDOW_S)
        killed_at = self.kill_master()
        time.sleep(3 * WINDOW_S)
        stop.set()
        for thread in threads:
            thread.join(60)
        self.board = SplitBoard(self.client(), "daily:arena", SHARDS)
        self.check(acknowledged, killed_at)
        self.assertGreater(len(pages), 10)
        self.assertTrue(all(pages))
        everything = sorted((-record.key, shard, record.rank, record.member) for shard, board in
                            enumerate(self.board.boards) for record in board.range(0, -1, withkey=True))
        self.assertEqual([record.member for record in self.board], [member for *_, member in everything])
