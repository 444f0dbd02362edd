"""Slots that move as a whole, while boards in them change: Valkey 9 and Redis 8.4."""
import threading
import time
import unittest

import redis

from hosts import Host, SHORT, wait_until

BOARDS = 300 if SHORT else 20000
SLOTS = 16384


class Slots(unittest.TestCase):
    def setUp(self):
        self.hosts = [Host("--cluster-enabled", "yes", is_cluster=True) for _ in range(2)]
        for host in self.hosts:
            self.addCleanup(host.stop)
        self.old, self.new = (host.client() for host in self.hosts)
        if not self.knows("CLUSTER|MIGRATESLOTS") and not self.knows("CLUSTER|MIGRATION"):
            self.skipTest("this version moves slots key by key only")
        self.old.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
        self.old.execute_command("CLUSTER", "MEET", "127.0.0.1", self.hosts[1].port, self.hosts[1].bus_port)
        wait_until(lambda: all(self.state(client) == "ok" and self.nodes(client) == 2
                               for client in (self.old, self.new)), "a cluster of two")
        self.ids = [client.execute_command("CLUSTER", "MYID").decode() for client in (self.old, self.new)]

    def knows(self, command):
        client = self.old
        client.response_callbacks.clear()
        return client.execute_command("COMMAND", "INFO", command) not in ([None], [], None)

    def fields(self, client):
        text = client.execute_command("CLUSTER", "INFO").decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def state(self, client):
        return self.fields(client)["cluster_state"]

    def nodes(self, client):
        return int(self.fields(client)["cluster_known_nodes"])

    def owned(self, host_id):
        text = self.old.execute_command("CLUSTER", "NODES").decode()
        return [line for line in text.splitlines() if line.startswith(host_id)][0].split()[8:]

    def move(self, first, last):
        if self.knows("CLUSTER|MIGRATESLOTS"):
            self.old.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", first, last, "NODE", self.ids[1])
        else:
            self.new.execute_command("CLUSTER", "MIGRATION", "IMPORT", first, last)
        wait_until(lambda: self.owned(self.ids[1]) == [f"{first}-{last}"],
                   lambda: "".join(host.log.read_text()[-1500:] for host in self.hosts))

    def board(self, client, name):
        info = client.execute_command("LB.INFO", name)
        del info[info.index(b"memory") + 1]  # as the allocator has room
        return client.execute_command("LB.RANGE", name, 0, -1, "WITHKEY", "TAGS"), info, \
            client.execute_command("PEXPIRETIME", name)

    def test_boards_move_with_their_slots(self):
        pipe = self.old.pipeline(transaction=False)
        names = [f"daily:{i}" for i in range(BOARDS)]
        for i, name in enumerate(names):
            pipe.execute_command("ZADD", name, *[word for j in range(1 + i % 40)
                                                 for word in (j % 3, f"user:{(i + 7 * j) % 50}")])
        pipe.execute()
        self.old.execute_command("LB.CREATE", "{x}made", "FIELD", "points", 64, "SIGNED", "CAP", 9)
        self.old.execute_command("LB.ZADD", "{x}made", "9223372036854775807", "ann")
        self.old.execute_command("PEXPIREAT", "daily:0", 4102444800000)
        self.old.execute_command("LB.ALTER", "{x}made", "TAG", "clan", 4)
        self.old.execute_command("LB.ADD", "{x}made", "TAG", "clan", "wolves", "9223372036854775806", "bob")
        self.old.execute_command("LB.TAG", "{x}made", "ann", "clan", "bears")
        names.append("{x}made")
        before = {name: self.board(self.old, name) for name in names}
        self.move(0, 9999)
        moved = 0
        for name in names:
            is_moved = self.old.execute_command("CLUSTER", "KEYSLOT", name) < 10000
            moved += is_moved
            self.assertEqual(self.board(self.new if is_moved else self.old, name), before[name], name)
        self.assertGreater(moved, BOARDS // 3)
        wait_until(lambda: self.old.dbsize() + self.new.dbsize() == len(names), "the source lets go")
        for client in (self.old, self.new):  # files hold them, too
            keys = sorted(client.keys())
            known = {key: self.board(client, key) for key in keys}
            client.execute_command("DEBUG", "RELOAD")
            self.assertEqual({key: self.board(client, key) for key in sorted(client.keys())}, known)

    def test_changes_meanwhile_are_not_lost(self):
        """A board gets a member for every write that was acknowledged, and its twin beside the slots does, too."""
        tag = next(f"{{{i}}}" for i in range(10000)
                   if self.old.execute_command("CLUSTER", "KEYSLOT", f"{{{i}}}") < 10000)
        self.old.execute_command("ZADD", f"daily:{tag}", *[word for i in range(20000) for word in
                                                           (i % 5, f"user:{i}")])
        is_over, acknowledged, rejected = threading.Event(), [], []

        def write():
            clients, at, number = [host.client() for host in self.hosts], 0, 0
            while not is_over.is_set():
                try:
                    clients[at].execute_command("ZADD", f"daily:{tag}", number, f"late:{number}")
                    acknowledged.append(number)
                    number += 1
                except redis.ResponseError as error:
                    if not str(error).startswith(("MOVED", "TRYAGAIN", "CLUSTERDOWN")):
                        rejected.append(str(error))
                    at = 1 - at
                    time.sleep(0.001)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            time.sleep(0.3)
            self.move(0, 9999)
            wanted = len(acknowledged) + 100
            wait_until(lambda: len(acknowledged) > wanted, "writes at the new node")
        finally:
            is_over.set()
            writer.join()
        self.assertEqual(rejected, [])
        board = self.new.execute_command("ZRANGE", f"daily:{tag}", 0, -1)
        self.assertEqual(len(board), 20000 + len(acknowledged))
        self.assertEqual(self.new.execute_command("ZREVRANGE", f"daily:{tag}", 0, 0),
                         [b"late:%d" % acknowledged[-1]])

    def test_ids_rooms_and_hashes_come_along(self):
        """Each result is sent twice: it counts once, in a league, too, and its fields are in the hash."""
        tag = next(f"{{{i}}}" for i in range(10000)
                   if self.old.execute_command("CLUSTER", "KEYSLOT", f"{{{i}}}") < 10000)
        self.old.execute_command("LB.LEAGUE", "CREATE", f"{tag}l", *(
            "FIELD points 30 PERIOD YEAR ROOM 5 TIERS 3 UP 1 DOWN 1".split()))
        is_over, rejected, counts = threading.Event(), [], [0, 0]

        def ask(clients, *command):
            while True:
                try:
                    return clients[0].execute_command(*command)
                except redis.ResponseError as error:
                    if not str(error).startswith(("MOVED", "TRYAGAIN", "CLUSTERDOWN")):
                        rejected.append(str(error))
                        return None
                    clients.reverse()
                    time.sleep(0.001)

        def write():
            clients = [host.client() for host in self.hosts]
            while not is_over.is_set():
                counts[0] += 1
                add = ["LB.ADD", f"{tag}b", "ONCE", f"r{counts[0]}", "HSET", f"{tag}h:*", 1, "n", counts[0], "INCR", 1, "ann"]
                found = [ask(clients, *add), ask(clients, *add)]
                found += [ask(clients, "LB.GET", f"{tag}b", 1, "ann", "DATA", f"{tag}h:*")[0][4]]
                if found != [1, 0, [b"n", b"%d" % counts[0]]]:
                    rejected.append(found)
                add = ["LB.LEAGUE", "ADD", f"{tag}l", "ONCE", f"r{counts[0]}", "INCR", 1, f"m{counts[0] % 40}"]
                ask(clients, *add)
                ask(clients, *add)
                counts[1] += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            time.sleep(0.3)
            self.move(0, 9999)
            wanted = counts[1] + 100
            wait_until(lambda: counts[1] > wanted, "writes at the new node")
        finally:
            is_over.set()
            writer.join()
        self.assertEqual(rejected[:3], [])
        self.assertEqual(float(self.new.execute_command("LB.ZSCORE", f"{tag}b", "ann")), counts[0])
        rooms = [room for room in self.new.keys(f"{tag}l:1:*")]
        self.assertEqual(len(rooms), 8)
        self.assertEqual(sum(int(record[-1]) for room in rooms
                             for record in self.new.execute_command("LB.RANGE", room, 0, -1)), counts[1])
