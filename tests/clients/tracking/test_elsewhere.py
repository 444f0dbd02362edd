"""Who tracks is told of what HTTP writes, on the server and on its replica, and of what the replica's master drops."""
import http.client
import json
import unittest

import process
from speaker import Speaker


class Elsewhere(unittest.TestCase):
    def setUp(self):
        self.web_port = process.hold_port()
        self.addCleanup(process.let_port_go, self.web_port)
        self.master = process.Server("--web-port", self.web_port, "--web-write", "yes")
        self.addCleanup(self.master.stop)
        self.replica = process.Server("--replicaof", f"127.0.0.1 {self.master.port}")
        self.addCleanup(self.replica.stop)
        self.trackers = [self.tracker(server) for server in (self.master, self.replica)]

    def tracker(self, server):
        client = Speaker(server.port)
        self.addCleanup(client.close)
        client.hello(3)
        self.assertEqual(client.ask("CLIENT", "TRACKING", "ON"), "OK")
        return client

    def read(self, client, key, count):
        """Until it has so many members: what is still on its way to a replica outdates the reply before."""
        process.wait_until(lambda: client.ask("ZCARD", key) == count, f"{count} members of {key}")
        client.ask("PING")  # behind all that the reads' tick had to tell
        client.pushed.clear()

    def result(self, board, member, value):
        connection = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=process.LIMIT_S)
        connection.request("POST", f"/api/v1/boards/{board}/results?create=1", json.dumps({"member": member, "value": value}),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        self.assertEqual((reply.status, reply.read() != b""), (200, True))
        connection.close()

    def test_results_over_http_are_told_on_the_server_and_on_its_replica(self):
        self.result("weekly", "ann", 1)
        for client in self.trackers:
            self.read(client, "weekly", 1)
        self.result("other", "ann", 1)
        self.result("weekly", "bob", 2)
        for client in self.trackers:
            self.assertEqual(client.read(), ["invalidate", ["weekly"]])

    def test_a_replica_tells_of_a_key_that_goes_and_of_all_keys_at_a_full_copy(self):
        writer = Speaker(self.master.port)
        self.addCleanup(writer.close)
        for key in ("short", "long"):
            writer.ask("ZADD", key, 1, "ann")
        for client in self.trackers:
            self.read(client, "long", 1)
            self.read(client, "short", 1)
        writer.ask("DEL", "short")
        for client in self.trackers:
            self.assertEqual(client.read(), ["invalidate", ["short"]])
        replica = self.trackers[1]
        self.assertEqual(Speaker(self.replica.port).ask("REPLICAOF", "NO", "ONE"), "OK")
        self.assertEqual(Speaker(self.replica.port).ask("ZADD", "own", 1, "ann"), 1)
        self.assertEqual(Speaker(self.replica.port).ask("REPLICAOF", "127.0.0.1", self.master.port), "OK")
        self.assertEqual(replica.read(), ["invalidate", None])
