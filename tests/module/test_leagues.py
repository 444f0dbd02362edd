"""Leagues in redis-server: their boards are keys of the host, on every copy, and in one slot."""

import redis
from redis.cluster import ClusterNode, RedisCluster

from hosts import MODULE_TEST, Hosted, settled, wait_until

NOON_US = 1795176000 * 10 ** 6  # 2026-11-20 12:00:00Z
HOUR_US = 3600 * 10 ** 6
CREATE = "LB.LEAGUE CREATE weekly FIELD points 20 PERIOD HOUR ROOM 5 TIERS 4 UP 2 DOWN 1".split()


class Leagues(Hosted):
    def told(self, client):
        return [client.execute_command("LB.LEAGUE", "GET", "weekly", f"m{i}") for i in range(30)] + \
               [client.execute_command("LB.LEAGUE", "INFO", "weekly"), sorted(client.keys("*"))]

    def play(self, host, hours):
        client = host.client()
        for hour in range(hours):
            client.execute_command("LB.TESTCLOCK", NOON_US + hour * HOUR_US, 1000 + hour)
            for _ in range(40):
                client.execute_command("LB.LEAGUE", "ADD", "weekly", "INCR", self.draw.randrange(9),
                                       f"m{self.draw.randrange(30)}")
            client.execute_command("LB.LEAGUE", "SET", "weekly", 1 + self.draw.randrange(4), f"m{hour}")
            client.execute_command("LB.LEAGUE", "REMOVE", "weekly", f"m{self.draw.randrange(30)}")
        for room in client.keys("{weekly}:*"):  # a timer rolls over those that nobody asks for
            client.execute_command("LB.ZCARD", room)

    def test_replicas_and_files_have_them(self):
        master = self.host("--appendonly", "yes", "--appendfsync", "always", module=MODULE_TEST)
        replica = self.host("--replicaof", f"127.0.0.1 {master.port}", module=MODULE_TEST)
        client = master.client()
        for host in (master, replica):
            host.client().execute_command("LB.TESTCLOCK", NOON_US, 1000)
        self.assertEqual(client.execute_command(*CREATE), b"OK")
        self.play(master, 6)
        settled(master, replica)
        self.assertEqual(self.told(replica.client()), self.told(client))
        self.assertEqual(replica.digest(), master.digest())
        before = self.told(client)
        for what in ("RELOAD", "LOADAOF"):
            client.execute_command("DEBUG", what)
            self.assertEqual(self.told(client), before, what)
        master.kill()
        replica.client().replicaof("NO", "ONE")
        self.assertEqual(self.told(replica.client()), before)
        self.play(replica, 8)
        with self.assertRaises(redis.exceptions.ResponseError):
            replica.client().execute_command("LB.ZADD", "weekly", 1, "ann")

    def test_results_in_two_rooms_are_not_put_together(self):
        for league in ("weekly", "a@2", "a@2027-05-03", "{x}a@2027-05-03"):
            with self.subTest(league):
                client = self.host().client()
                self.assertEqual(client.execute_command(*CREATE[:2], league, *CREATE[3:]), b"OK")
                for i in range(6):
                    client.execute_command("LB.LEAGUE", "ADD", league, 1 + i, f"m{i}")
                self.assertEqual(client.execute_command("LB.MOVE", "m0", "m5", "SUM"), [0, 2])
                self.assertEqual(client.execute_command("LB.MOVE", "m0", "m1", "SUM"), [2, 0])
                self.assertEqual(client.execute_command("LB.LEAGUE", "GET", league, "m1")[2][3], 3)

    def test_a_result_in_a_room_outdates_what_was_read_of_the_league(self):
        client = self.host().client()
        self.assertEqual(client.execute_command(*CREATE), b"OK")
        self.assertEqual(client.execute_command("LB.LEAGUE", "ADD", "weekly", 1, "ann")[:2], [1, 1])
        with client.pipeline() as reader:
            reader.watch("weekly")
            reader.execute_command("LB.LEAGUE", "GET", "weekly", "ann")
            client.execute_command("LB.LEAGUE", "ADD", "weekly", "INCR", 1, "ann")
            reader.multi()
            reader.ping()
            with self.assertRaises(redis.exceptions.WatchError):
                reader.execute()

    def test_users_need_the_rights_on_rooms(self):
        host = self.host()
        client = host.client()
        self.assertEqual(client.execute_command(*CREATE), b"OK")
        for name, keys in (("half", ["~weekly"]), ("whole", ["~weekly", "~{weekly}:*"])):
            client.execute_command("ACL", "SETUSER", name, "on", "nopass", "+@all", *keys)
        half, whole = (host.client(username=name, password="x") for name in ("half", "whole"))
        with self.assertRaises(redis.exceptions.NoPermissionError):
            half.execute_command("LB.LEAGUE", "ADD", "weekly", 1, "ann")
        self.assertEqual(whole.execute_command("LB.LEAGUE", "ADD", "weekly", 1, "ann")[:2], [1, 1])

    def test_all_keys_are_in_one_slot_of_a_cluster(self):
        host = self.host("--cluster-enabled", "yes", is_cluster=True)
        client = host.client()
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", "a cluster")
        for key in ("weekly", "{eu}:weekly"):
            client.execute_command("LB.LEAGUE", "CREATE", key, *CREATE[3:])
            self.assertEqual(client.execute_command("LB.LEAGUE", "ADD", key, "ONCE", "r1", 7, "ann")[:2], [1, 1])
            self.assertEqual(client.execute_command("LB.LEAGUE", "GET", key, "ann")[0], 1)
        slots = {key: client.execute_command("CLUSTER", "KEYSLOT", key) for key in client.keys("*")}
        self.assertEqual(len(slots), 6)
        self.assertEqual(len(set(slots.values())), 2)

    def test_subcommands_are_shown_as_the_hosts_own(self):
        """So that a cluster client that reads COMMAND finds their keys, and rules of users hold in any case of letters."""
        host = self.host("--cluster-enabled", "yes", is_cluster=True)
        client = host.client()
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", "a cluster")
        names = [name.decode() for name in client.execute_command("COMMAND LIST")]
        self.assertIn("config|get", names)
        self.assertIn("lb.league|add", names)
        self.assertEqual([name for name in names if name.startswith("LB.")], [])
        cluster = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", host.port)])
        self.addCleanup(cluster.close)
        self.assertEqual(cluster.execute_command("LB.LEAGUE", "CREATE", *CREATE[2:]), b"OK")
        self.assertEqual(cluster.execute_command("LB.LEAGUE", "ADD", "weekly", 1, "ann")[:2], [1, 1])
        self.assertEqual(cluster.execute_command("lb.league", "get", "weekly", "ann")[0], 1)
        for rules, may_add in ((["+lb.league", "-LB.LEAGUE|ADD"], False), (["+LB.LEAGUE|GET", "+lb.league|add"], True),
                               (["+lb.league|get"], False)):
            client.execute_command("ACL", "SETUSER", "player", "reset", "on", "nopass", "~*", *rules)
            player = host.client(username="player", password="x")
            self.assertEqual(player.execute_command("LB.LEAGUE", "GET", "weekly", "ann")[0], 1)
            if may_add:
                self.assertEqual(player.execute_command("LB.LEAGUE", "ADD", "weekly", 1, "ann")[0], 1)
            else:
                with self.assertRaises(redis.exceptions.NoPermissionError):
                    player.execute_command("LB.LEAGUE", "ADD", "weekly", 1, "ann")

    def test_archives_that_expire_are_refused(self):
        client = self.host().client()
        with self.assertRaisesRegex(redis.exceptions.ResponseError, "ARCHIVE ALL"):
            client.execute_command(*CREATE, "ARCHIVE", 3)
