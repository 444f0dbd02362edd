"""sync-replicas in the metrics, and in INFO: of a master that is closed, open, and without its replicas."""
import socket
import unittest

from server import Server

SYNC = ("--appendonly", "yes", "--sync-replicas", "1", "--replication-nodes", "3",
        "--sync-replicas-lease", "0")
STATE = 'leaderboard_sync_state{state="%s"}'


def follower(master):
    return Server(*SYNC, "--replicaof", "127.0.0.1", master.port)


class Sync(unittest.TestCase):
    def setUp(self):
        self.servers = []
        self.addCleanup(lambda: [server.stop() for server in self.servers])

    def start(self, *servers):
        self.servers += servers
        return servers

    def shows(self, server, **values):
        """Until the server's metrics are that."""
        def is_so():
            shown = server.metrics()
            return all(shown["leaderboard_sync_" + name] == value for name, value in values.items())
        server.wait(is_so)

    def is_in_state(self, server, wanted):
        server.wait(lambda: server.metrics()[STATE % wanted] == 1)
        shown = server.metrics()
        self.assertEqual(sum(shown[STATE % state] for state in
                             ("off", "replica", "closed", "pulling", "open")), 1)

    def test_without_it_the_state_is_off(self):
        server, = self.start(Server())
        self.is_in_state(server, "off")
        self.shows(server, replicas=0, counted_replicas=0, held_seconds=0, votes_needed=0,
                   lost_durability=0)

    def test_a_master_opens_and_loses_its_replicas(self):
        master, = self.start(Server(*SYNC, wait=False))
        self.is_in_state(master, "closed")
        self.shows(master, replicas=1, counted_replicas=0, votes=0, votes_needed=2,
                   lost_durability=1, held_seconds=0)
        first, second = self.start(follower(master), follower(master))
        self.is_in_state(master, "open")
        self.is_in_state(first, "replica")
        self.shows(master, counted_replicas=2, votes=0, votes_needed=0, lost_durability=0)
        self.assertEqual(master.client().zadd("arena", {"ann": 1}), 1)
        self.shows(master, unsafe_groups=0, held_seconds=0)
        self.shows(first, lost_durability=0, counted_replicas=0)
        for server in (first, second):
            server.stop()
            self.servers.remove(server)
        self.shows(master, counted_replicas=0)
        with socket.create_connection(("127.0.0.1", master.port)) as client:
            client.sendall(b"ZADD arena 2 bob\r\n")
            master.wait(lambda: master.metrics()["leaderboard_sync_held_seconds"] > 1)
            self.assertGreaterEqual(master.metrics()["leaderboard_sync_unsafe_groups"], 1)
            info = master.client().info("replication")
            self.assertEqual(info["sync_counted_replicas"], 0)
            self.assertGreaterEqual(info["sync_held_seconds"], 1)
            self.assertEqual(info["sync_state"], "open")
            self.start(follower(master))
            self.assertEqual(client.makefile("rb").readline(), b":1\r\n")
        self.shows(master, unsafe_groups=0, held_seconds=0, counted_replicas=1)


if __name__ == "__main__":
    unittest.main()
