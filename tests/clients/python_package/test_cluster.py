"""The module in a cluster of three redis-servers, through RedisCluster; and the server behind a Sentinel."""
import shutil
import subprocess
import unittest

import redis
import redis.asyncio
from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.cluster import ClusterNode, RedisCluster
from redis.sentinel import Sentinel

import hosts
import process
from leaderboard_client import AsyncLeaderboards, Ban, Leaderboard, Leaderboards


class Cluster(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        if hosts.program() is None:
            raise unittest.SkipTest("there is no redis-server")
        cls.nodes = []
        for _ in range(3):
            node = hosts.Host("--cluster-enabled", "yes", is_cluster=True)
            cls.addClassCleanup(node.stop)
            cls.nodes.append(node)
        done = subprocess.run([shutil.which("redis-cli"), "--cluster", "create",
                               *[f"127.0.0.1:{node.port}" for node in cls.nodes], "--cluster-yes"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        hosts.wait_until(lambda: all(node.client().execute_command("CLUSTER INFO")["cluster_state"] == "ok"
                                     for node in cls.nodes), "a cluster")

    def test_boards_on_all_nodes(self):
        client = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", node.port) for node in self.nodes])
        self.addCleanup(client.close)
        boards = Leaderboards(client, retries=3)
        names = [f"t:{number}" for number in range(30)]
        for name in names:
            board = boards.board(name)
            board.create(fields="FIELD coins 64 SIGNED", tag={"country": 6})
            self.assertEqual(board.submit("ann", 2**53 + 1, tag={"country": "DE"})[0].record.score, 2**53 + 1)
            self.assertEqual([each.member for each in board.around("ann", 3, within="country")], ["ann"])
        self.assertEqual(sorted(each["name"] for each in boards.boards(match="t:*")), sorted(names))
        self.assertEqual(sorted(each.board for each in boards.where("ann", match="t:*")), sorted(names))
        self.assertEqual(boards.ban("ann", match="t:*"), 30)
        self.assertEqual(set(boards.banned()), {Ban("ann", "t:*", None)})
        with self.assertRaisesRegex(ValueError, "cursor"):
            boards.bans()
        self.assertTrue(boards.unban("ann"))
        league = Leaderboard(client, "league")
        league.league_create(fields="FIELD points 22 TIME 31 S", period="WEEK", room=3, tiers=4, up=1, down=1)
        self.assertEqual(league.league_add("ann", 5).tier, 1)

    def test_a_board_that_moves_to_another_node_is_found(self):
        client = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", node.port) for node in self.nodes])
        self.addCleanup(client.close)
        league = Leaderboard(client, "moving")
        league.league_create(fields="FIELD points 22 TIME 31 S", period="WEEK", room=3, tiers=4, up=1, down=1)
        slot = client.keyslot("moving")
        source = next(node for node in self.nodes if node.port == client.get_node_from_key("moving").port)
        target = next(node for node in self.nodes if node is not source)
        ids = {node: node.client().execute_command("CLUSTER MYID").decode() for node in (source, target)}
        target.client().execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        source.client().execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
        keys = source.client().execute_command("CLUSTER GETKEYSINSLOT", slot, 10)
        source.client().execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for node in (target, source):
            node.client().execute_command("CLUSTER SETSLOT", slot, "NODE", ids[target])
        self.assertEqual(league.league_add("ann", 5).tier, 1)
        self.assertEqual(league.count(), 1)

    async def test_asyncio(self):
        client = await self.enterAsyncContext(AsyncRedisCluster(
            startup_nodes=[redis.asyncio.cluster.ClusterNode("127.0.0.1", node.port) for node in self.nodes]))
        boards = AsyncLeaderboards(client)
        for number in range(10):
            await boards.board(f"a:{number}").add({"eva": 5})
        self.assertEqual(len(await boards.where("eva", match="a:*")), 10)
        self.assertEqual(len([each async for each in boards.boards(match="a:*")]), 10)
        self.assertEqual(await boards.forget("eva"), 10)


class BehindSentinel(unittest.TestCase):
    def test_the_master_of_a_sentinel(self):
        program = shutil.which("redis-sentinel") or process.PEERS / "redis-sentinel"
        if not program or not process.Path(program).exists():
            self.skipTest("there is no redis-sentinel")
        server = process.Server()
        self.addCleanup(server.stop)
        directory = process.new_directory()
        config = directory / "sentinel.conf"
        config.write_text(f"sentinel monitor games 127.0.0.1 {server.port} 1\n", encoding="utf-8")
        sentinel = process.Server("--sentinel", program=program, config=config, directory=directory, is_started=False)
        sentinel.command = [program, config, "--port", sentinel.port, "--sentinel"]
        sentinel.start()
        self.addCleanup(sentinel.stop)
        client = Sentinel([("127.0.0.1", sentinel.port)]).master_for("games")
        board = Leaderboard(client, "arena", retries=5)
        board.submit("ann", 500)
        self.assertEqual([(each.member, each.score) for each in board], [("ann", 500)])
