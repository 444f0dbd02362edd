"""Slots that move key by key, by redis-cli and by hand, under results with ids, leagues, hashes and archives: nothing
counts twice, nothing that was acknowledged is lost, and nothing that exists is answered as if it did not.

The clients follow MOVED, ASK and TRYAGAIN, as clients of clusters do. Replicas take over in the middle of slots, too. RESHARD_S=60: so long, instead of a few seconds."""
import contextlib
import os
import random
import re
import shutil
import subprocess
import threading
import time
import unittest

import redis
from redis.crc import key_slot

from hosts import Host, SHORT, wait_until

SLOTS = 16384
MOVED = 10 if SHORT else 60  # slots, each with all kinds of keys
BY_HAND = 5 if SHORT else 15  # slots at a time
ROUNDS = 1 if SHORT else 2
WRITERS = 2  # of each kind
FILLERS = 60  # other keys in each slot
MEMBERS = 12
LONG_S = float(os.environ.get("RESHARD_S", 0))


def tags(count):
    """A tag for each of the first so many slots."""
    found = {}
    number = 0
    while len(found) < count:
        slot = key_slot(b"%d" % number)
        if slot < count:
            found.setdefault(slot, f"{{{number}}}")
        number += 1
    return [found[slot] for slot in sorted(found)]


class Client:
    """Asks the node that it believes to have the slot, and goes where it is sent. may_repeat: what was not answered is
    sent again. waits(): only what a replica has counts as answered."""

    def __init__(self, ports, stop, waits=lambda: False):
        self.ports, self.stop, self.links, self.owners, self.waits = ports, stop, {}, {}, waits
        self.tried_again, self.turn = 0, threading.Lock()

    def is_kept(self, port):
        return not self.waits() or self.send(port, ["WAIT", 1, 2000]) > 0

    def send(self, port, *commands):
        if port not in self.links:
            self.links[port] = redis.Connection(port=port, socket_timeout=10)
        link = self.links[port]
        try:
            for command in commands:
                link.send_command(*command)
            replies = []
            for _ in commands:
                try:
                    replies.append(link.read_response())
                except redis.ResponseError as error:
                    replies.append(error)
            return replies[-1]
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            link.disconnect()
            del self.links[port]
            raise

    def ask(self, tag, *command, may_repeat=True):
        """The reply; an error that is no redirection is raised."""
        begin, port, asking = time.monotonic(), self.owners.get(tag, self.ports[0]), False
        while time.monotonic() - begin < 120:
            try:
                with self.turn:
                    reply = self.send(port, *[["ASKING"]] * asking, command)
                    if not isinstance(reply, Exception) and not self.is_kept(port):
                        continue
            except (redis.ConnectionError, redis.TimeoutError, OSError):
                if not may_repeat:
                    raise
                time.sleep(0.02)
                port, asking = random.choice(self.ports), False
                continue
            asking = False
            if not isinstance(reply, Exception):
                return reply
            words = str(reply).split()
            if words[0] in ("MOVED", "ASK"):
                port, asking = int(words[2].rsplit(":", 1)[1]), words[0] == "ASK"
                if not asking:
                    self.owners[tag] = port
            elif words[0] in ("TRYAGAIN", "CLUSTERDOWN", "LOADING") or isinstance(reply, redis.BusyLoadingError):
                self.tried_again += 1
                port = self.owners.get(tag, self.ports[0])
                time.sleep(0.002)
            else:
                raise reply
        raise AssertionError(f"{command}: nobody answers")


class Load:
    """Writers and readers, each of whom knows what it was told."""

    def __init__(self, ports, tags, seed, may_break=False):
        self.ports, self.tags, self.may_break, self.seed, self.waits = ports, tags, may_break, seed, False
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.counted, self.league, self.best, self.wrong, self.threads = {}, {}, {}, [], []
        self.clients = []

    def begin(self):
        kinds = [self.write_once, self.write_league, self.write_best, self.read]
        for number in range(len(kinds) * WRITERS):
            client = Client(self.ports, self.stop, lambda: self.waits)
            draw = random.Random(f"{self.seed} {number}")
            self.clients.append(client)
            self.threads.append(threading.Thread(
                target=self.run, args=(kinds[number % len(kinds)], client, draw, f"w{number}")))
            self.threads[-1].start()

    @contextlib.contextmanager
    def paused(self):
        """Nothing is sent, and all is answered: be it that it has to be tried again."""
        with contextlib.ExitStack() as stack:
            for client in self.clients:
                stack.enter_context(client.turn)
            yield

    def run(self, kind, client, draw, name):
        number = 0
        while not self.stop.is_set():
            number += 1
            try:
                kind(client, draw, f"{name}:{number}", name)
            except Exception as error:  # pylint: disable=broad-except
                self.wrong.append(f"{kind.__name__}: {type(error).__name__} {error}")
                time.sleep(0.05)

    def note(self, where, key, amount):
        with self.lock:
            where[key] = where.get(key, 0) + amount

    def write_once(self, client, draw, result, _):
        """Sent twice: once it is answered, it has counted, and it counts no more."""
        tag, member = draw.choice(self.tags), f"m{draw.randrange(MEMBERS)}"
        command = ["LB.ADD", f"{tag}points", "ONCE", result, "INCR", 1, member]
        if draw.random() < 0.3:
            command = ["LB.SUBMIT", 2, f"{tag}points", f"{tag}other", *command[2:]]
        first = client.ask(tag, *command)
        self.note(self.counted, (tag, member), 1)
        again = client.ask(tag, *command)
        if command[0] == "LB.ADD" and (again != 0 or (first != 1 and not self.may_break)):
            self.wrong.append(f"{result} is answered {first}, then {again}")

    def write_league(self, client, draw, result, name):
        tag, member = draw.choice(self.tags), f"{name}:{draw.randrange(MEMBERS)}"
        once = ["ONCE", result] if self.may_break or draw.random() < 0.5 else []
        reply = client.ask(tag, "LB.LEAGUE", "ADD", f"{tag}weekly", *once, "INCR", 1, member, may_repeat=bool(once))
        if reply is None:
            self.wrong.append(f"{result} in the league is answered nil")
        self.note(self.league, (tag, member), 1)

    def write_best(self, client, draw, result, name):
        tag, member = draw.choice(self.tags), f"{name}:{draw.randrange(MEMBERS)}"
        value = self.best.get((tag, member), 0) + 1
        client.ask(tag, "LB.ADD", f"{tag}best", "HSET", f"{tag}run:*", 2, "n", value, "id", result, value, member)
        self.best[tag, member] = value

    def read(self, client, draw, _, __):
        known = list(self.best.items())
        if known and draw.random() < 0.6:
            (tag, member), value = draw.choice(known)
            found = client.ask(tag, "LB.GET", f"{tag}best", 1, member, "DATA", f"{tag}run:*", "FIELDS", 1, "n")[0]
            if found is None or found[4] is None or int(found[4][0]) < value:
                self.wrong.append(f"{tag}{member} is {found}, though it was {value} before")
            return
        tag = draw.choice(self.tags)
        found = client.ask(tag, "LB.GET", f"{tag}day", 1, "ann", "SINCE", "LAST")
        if found[0] is None or found[0][4] != 0:
            self.wrong.append(f"{tag}day SINCE LAST is {found}")

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(150)

    def check(self, test):
        """What is there is what was acknowledged."""
        client = Client(self.ports, self.stop)
        score = lambda tag, key, member: float(client.ask(tag, "LB.ZSCORE", f"{tag}{key}", member) or 0)
        off = {"twice": 0, "lost": 0}
        examples = []

        def compare(what, found, wanted):
            if found != wanted:
                off["twice" if found > wanted else "lost"] += abs(int(found - wanted))
                examples.append((what, found, wanted))
        for (tag, member), count in self.counted.items():
            compare(f"points {tag}{member}", score(tag, "points", member), count)
        for (tag, member), count in self.league.items():
            place = client.ask(tag, "LB.LEAGUE", "GET", f"{tag}weekly", member)
            compare(f"league {tag}{member}", int(place[2][-1]) if place and place[2] else 0, count)
        for (tag, member), value in self.best.items():
            compare(f"best {tag}{member}", score(tag, "best", member), value)
            compare(f"hash {tag}{member}", int(client.ask(tag, "HGET", f"{tag}run:{member}", "n") or 0), value)
        again = sum(each.tried_again for each in self.clients)
        print(f"{sum(self.counted.values())}+{sum(self.league.values())}+{sum(self.best.values())} results, "
              f"{again} tried again ", end="", flush=True)
        test.assertEqual((self.wrong[:5], off, examples[:5]), ([], {"twice": 0, "lost": 0}, []))
        for kind in (self.counted, self.league, self.best):
            test.assertGreater(sum(kind.values()), 20)


class Two(unittest.TestCase):
    """Two masters; the first has all slots but one."""

    def setUp(self):
        self.seed = random.randrange(1 << 30)
        print(f"seed {self.seed} ", end="", flush=True)
        self.hosts = [Host("--cluster-enabled", "yes", "--appendonly", "yes", "--appendfsync", "always",
                           "--cluster-node-timeout", "60000", is_cluster=True) for _ in range(2)]
        for host in self.hosts:
            self.addCleanup(host.stop)
        self.clients = [host.client() for host in self.hosts]
        self.clients[0].execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 2)
        self.clients[1].execute_command("CLUSTER", "ADDSLOTSRANGE", SLOTS - 1, SLOTS - 1)
        self.clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", self.hosts[1].port, self.hosts[1].bus_port)
        wait_until(lambda: all(b"cluster_state:ok" in self.info(client) and b"cluster_known_nodes:2" in self.info(client)
                               for client in self.clients), "a cluster of two")
        self.ids = [client.execute_command("CLUSTER", "MYID").decode() for client in self.clients]
        self.ports = [host.port for host in self.hosts]

    def info(self, client):
        client.response_callbacks.clear()
        return client.execute_command("CLUSTER", "INFO")

    def set_slot(self, slot, state, source):
        """STABLE, or the beginning or the end of its move from the source."""
        other = 1 - source
        if state == "MOVING":
            self.clients[other].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", self.ids[source])
            self.clients[source].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", self.ids[other])
        else:
            for client in self.clients[other], self.clients[source]:
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", self.ids[other])

    def migrate(self, source, *keys):
        port = self.ports[1 - source]
        self.assertEqual(self.clients[source].execute_command("MIGRATE", "127.0.0.1", port, "", 0, 10000, "KEYS", *keys),
                         b"OK")


class KeysApart(Two):
    """A board on one node, and what belongs to it on the other: the reply is that of the host for keys that are named."""

    def setUp(self):
        super().setUp()
        self.stop = threading.Event()
        self.source, self.destination = (Client([port], self.stop) for port in self.ports)

    def at_source(self, *command):
        return self.source.send(self.ports[0], command)

    def at_destination(self, *command):
        return self.destination.send(self.ports[1], ["ASKING"], command)

    def assert_try_again(self, ask, *command):
        reply = ask(*command)
        self.assertIsInstance(reply, redis.ResponseError, command)
        self.assertTrue(str(reply).startswith("TRYAGAIN"), f"{command}: {reply}")

    def assert_apart(self, make, board, others, commands):
        """Where the others go first, and where the board does: all commands are refused on the way, and change nothing."""
        for tag, is_first in (("{a}", False), ("{b}", True)):
            named = lambda words, tag=tag: [str(word).replace("{a}", tag) for word in words]
            for command in make:
                self.assertNotIsInstance(self.at_source(*named(command)), redis.ResponseError)
            slot, keys = key_slot(tag[1].encode()), [named([board]), named(others)]
            before = sorted((key, self.at_source("DEBUG", "DIGEST-VALUE", key)) for key in keys[0] + keys[1])
            self.set_slot(slot, "MOVING", 0)
            self.migrate(0, *keys[not is_first])
            for command in commands:
                self.assert_try_again(self.at_destination if is_first else self.at_source, *named(command))
            self.migrate(0, *keys[is_first])
            self.assertEqual(self.clients[0].execute_command("CLUSTER", "COUNTKEYSINSLOT", slot), 0)
            self.assertEqual(sorted((key, self.at_destination("DEBUG", "DIGEST-VALUE", key))
                                    for key in keys[0] + keys[1]), before)
            self.set_slot(slot, "THERE", 0)
            for command in commands:
                reply = self.destination.send(self.ports[1], named(command))
                self.assertNotIsInstance(reply, redis.ResponseError, f"{command}: {reply}")

    def test_hashes(self):
        self.assert_apart([["LB.ADD", "{a}b", "HSET", "{a}h:*", 1, "f", "v", 5, "ann"]], "{a}b", ["{a}h:ann"],
                          [["LB.ADD", "{a}b", "HSET", "{a}h:*", 1, "f", "w", 6, "ann"],
                           ["LB.SUBMIT", 1, "{a}b", "HSET", "{a}h:*", 1, "f", "w", 7, "ann"],
                           ["LB.GET", "{a}b", 1, "ann", "DATA", "{a}h:*"],
                           ["LB.RANGE", "{a}b", 0, -1, "DATA", "{a}h:*", "FIELDS", 1, "f"]])

    def test_archives(self):
        year = f"{time.gmtime().tm_year - 2}-01-01"
        self.assert_apart([["LB.CREATE", "{a}b", "FIELD", "n", 32, "PERIOD", "YEAR"], ["LB.ADD", "{a}b", 5, "ann"],
                           ["LB.ROLL", "{a}b", f"{{a}}b@{year}"], ["LB.ADD", "{a}b", 5, "ann"]],
                          "{a}b", [f"{{a}}b@{year}"],
                          [["LB.GET", "{a}b", 1, "ann", "SINCE", "LAST"], ["LB.INFO", "{a}b"]])

    def test_leagues(self):
        self.assert_apart([["LB.LEAGUE", "CREATE", "{a}l", *"FIELD points 20 PERIOD YEAR ROOM 5 TIERS 3 UP 1 DOWN 1".split()],
                           ["LB.LEAGUE", "ADD", "{a}l", 7, "ann"]], "{a}l", ["{a}l:rooms", "{a}l:1:1"],
                          [["LB.LEAGUE", "ADD", "{a}l", "INCR", 1, "ann"], ["LB.LEAGUE", "ADD", "{a}l", 1, "bob"],
                           ["LB.LEAGUE", "GET", "{a}l", "ann"], ["LB.LEAGUE", "SET", "{a}l", 2, "ann"]])

    def test_what_is_nowhere(self):
        """It may be on the other node, as far as each of them knows."""
        self.at_source("LB.ADD", "{a}b", 5, "ann")
        command = ["LB.GET", "{a}b", 1, "ann", "DATA", "{a}h:*"]
        self.set_slot(key_slot(b"a"), "MOVING", 0)
        self.assert_try_again(self.at_source, *command)
        self.assertEqual(self.at_source("LB.GET", "{a}b", 1, "ann")[0][3], 5)
        pipe = self.clients[0].pipeline(transaction=True)
        pipe.execute_command("LB.ADD", "{a}b", "INCR", 1, "ann")
        pipe.execute_command(*command)
        replies = pipe.execute(raise_on_error=False)
        self.assertTrue(replies[0] == 1 and "TRYAGAIN" in str(replies[1]), replies)
        self.migrate(0, "{a}b")
        self.assertTrue(str(self.at_source(*command)).startswith("ASK"))
        self.assert_try_again(self.at_destination, *command)
        self.set_slot(key_slot(b"a"), "THERE", 0)
        self.assertEqual(self.destination.send(self.ports[1], command)[0][4], None)

    def test_ids_need_nothing_but_their_board(self):
        add = ["LB.ADD", "{a}b", "ONCE", "x", "INCR", 5, "ann"]
        self.assertEqual(self.at_source(*add), 1)
        self.set_slot(key_slot(b"a"), "MOVING", 0)
        self.assertEqual(self.at_source(*add), 0)
        self.migrate(0, "{a}b")
        self.assertTrue(str(self.at_source(*add)).startswith("ASK"))
        self.assertEqual([self.at_destination(*add), self.at_destination("LB.ZSCORE", "{a}b", "ann")], [0, b"5"])
        self.assertEqual(self.at_destination("LB.ZREM", "{a}b", "ann"), 1)
        self.assertEqual([self.at_destination(*add), self.at_destination("LB.ZCARD", "{a}b")], [0, 0])
        self.set_slot(key_slot(b"a"), "THERE", 0)
        self.assertEqual(self.destination.send(self.ports[1], add), 0)

    def test_who_is_erased_is_so_where_the_slot_is_still_to_come(self):
        self.at_source("LB.ADD", "{a}b", "HSET", "{a}h:*", 1, "f", "v", 5, "ann")
        self.set_slot(key_slot(b"a"), "MOVING", 0)
        self.migrate(0, "{a}b", "{a}h:ann")
        self.assertEqual(self.clients[1].execute_command("LB.FORGET", "ann", "DATA", "{a}h:*"), 1)
        self.assertEqual(self.clients[1].execute_command("CLUSTER", "COUNTKEYSINSLOT", key_slot(b"a")), 0)


class Reshard(Two):
    def setUp(self):
        super().setUp()
        self.tags = tags(MOVED)
        self.fill()

    def fill(self):
        pipe = self.clients[0].pipeline(transaction=False)
        year = f"{time.gmtime().tm_year - 2}-01-01"  # no period ends while it runs
        for tag in self.tags:
            pipe.execute_command("LB.LEAGUE", "CREATE", f"{tag}weekly", *(
                "FIELD points 20 PERIOD YEAR ROOM 5 TIERS 3 UP 1 DOWN 1".split()))
            for name in "points", "other", "best":
                pipe.execute_command("LB.CREATE", f"{tag}{name}", "FIELD", "n", 32)
                pipe.execute_command("LB.ADD", f"{tag}{name}", 0, "nobody")
            pipe.execute_command("LB.CREATE", f"{tag}day", "FIELD", "n", 32, "PERIOD", "YEAR")
            pipe.execute_command("LB.ADD", f"{tag}day", 5, "ann")
            pipe.execute_command("LB.ROLL", f"{tag}day", f"{tag}day@{year}")
            pipe.execute_command("LB.ADD", f"{tag}day", 5, "ann")
            for i in range(FILLERS):
                pipe.execute_command("SET", f"{tag}filler:{i}", "x" * 50)
        for reply in pipe.execute(raise_on_error=False):
            self.assertNotIsInstance(reply, Exception)

    def reshard(self, source, *options):
        """So many slots to the other node."""
        done = subprocess.run(
            [shutil.which("redis-cli"), "--cluster", "reshard", f"127.0.0.1:{self.ports[source]}",
             "--cluster-from", self.ids[source], "--cluster-to", self.ids[1 - source], "--cluster-slots", str(MOVED),
             "--cluster-yes", *options], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)

    def move_keys(self, slot, source, draw, *options, count_max=SLOTS):
        """One by one, in any order. Returns how many are left."""
        client = self.clients[source]
        keys = client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10000)
        draw.shuffle(keys)
        for key in keys[:count_max]:
            client.execute_command("MIGRATE", "127.0.0.1", self.ports[1 - source], key, 0, 10000, *options)
            time.sleep(0.002)
        return client.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot)

    def load(self, **options):
        load = Load(self.ports, self.tags, self.seed, **options)
        self.addCleanup(load.end)
        load.begin()
        time.sleep(0.5)
        return load

    def go_on(self, begin, rounds):
        return rounds < ROUNDS or time.monotonic() - begin < LONG_S

    def run_reshards(self, *options):
        load, begin, rounds = self.load(), time.monotonic(), 0
        while self.go_on(begin, rounds):
            self.reshard(0, *options)
            time.sleep(0.2)
            self.reshard(1, *options)
            rounds += 1
        time.sleep(0.3)
        load.end()
        load.check(self)

    def test_by_redis_cli_key_by_key(self):
        self.run_reshards("--cluster-pipeline", "1")

    def test_by_redis_cli_fifty_keys_at_once_in_the_place_of_others(self):
        self.run_reshards("--cluster-pipeline", "50", "--cluster-replace")

    def test_by_hand_in_any_order(self):
        draw, load = random.Random(self.seed), self.load()
        begin, rounds = time.monotonic(), 0
        while self.go_on(begin, rounds):
            for source in (0, 1):
                owned = self.slots_of(source)
                for slot in draw.sample(owned, min(BY_HAND, len(owned))):
                    self.set_slot(slot, "MOVING", source)
                    while self.move_keys(slot, source, draw) > 0:
                        pass
                    self.set_slot(slot, "THERE", source)
            rounds += 1
        load.end()
        load.check(self)

    def slots_of(self, node):
        return [slot for slot in range(MOVED)
                if self.clients[node].execute_command("CLUSTER", "COUNTKEYSINSLOT", slot) > 0]

    def test_a_master_is_killed_in_the_middle(self):
        """Source or destination, with a part of the keys on each side; when it is back, the move goes on."""
        draw, load = random.Random(self.seed), self.load(may_break=True)
        for which in (0, 1):
            slots = draw.sample(self.slots_of(0), 4)
            for slot in slots:
                self.set_slot(slot, "MOVING", 0)
                keys = self.clients[0].execute_command("CLUSTER", "COUNTKEYSINSLOT", slot)
                self.assertGreater(self.move_keys(slot, 0, draw, count_max=keys // 2), 0)
            self.hosts[which].kill()
            time.sleep(0.2)
            self.hosts[which].start()
            self.clients[which] = self.hosts[which].client()
            wait_until(lambda: all(b"cluster_state:ok" in self.info(client) for client in self.clients), "a cluster")
            time.sleep(0.3)
            for slot in slots:
                while self.move_keys(slot, 0, draw, "REPLACE") > 0:
                    pass
                self.set_slot(slot, "THERE", 0)
        time.sleep(0.3)
        load.end()
        load.check(self)


class TakeOver(Reshard):
    """Each of the two masters has a replica. A replica of Redis does not know which slots move: whoever lets it take over
    says so to it, and to the other master. One of Valkey 8 and later knows."""

    def setUp(self):
        super().setUp()
        for master in (0, 1):
            replica = Host("--cluster-enabled", "yes", "--appendonly", "yes", "--cluster-node-timeout", "60000",
                           "--repl-ping-replica-period", "1", is_cluster=True)
            self.addCleanup(replica.stop)
            self.hosts.append(replica)
            client = replica.client()
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.hosts[0].port, self.hosts[0].bus_port)
            wait_until(lambda: self.ids[master] in str(client.execute_command("CLUSTER", "NODES")), "the cluster")
            client.execute_command("CLUSTER", "REPLICATE", self.ids[master])
            wait_until(lambda: client.info("replication").get("master_link_status") == "up", "a replica")
        # Who does not know whose replica one is does not vote for it; and a refused request is not sent again for minutes.
        for master, replica in zip((0, 1), self.hosts[2:]):
            own_id = replica.client().execute_command("CLUSTER", "MYID").decode()
            known = rf"{own_id} \S+ slave {self.ids[master]} "
            wait_until(lambda: all(re.search(known, str(client.execute_command("CLUSTER", "NODES")))
                                   for client in self.clients), "both masters know the replica")
        self.ports = [host.port for host in self.hosts]
        version = self.hosts[0].client().info("server").get("valkey_version")
        self.knows_moves = version is not None and int(version.split(".")[0]) >= 8

    def move_half(self, load):
        """Of some slots, whose other half stays. The replicas know."""
        draw = random.Random(self.seed)
        slots = draw.sample(self.slots_of(0), 4)
        for slot in slots:
            self.set_slot(slot, "MOVING", 0)
            keys = self.clients[0].execute_command("CLUSTER", "COUNTKEYSINSLOT", slot)
            self.assertGreater(self.move_keys(slot, 0, draw, count_max=keys // 2), 0)
        own = next(f"{{{i}}}" for i in range(1 << 20) if key_slot(b"%d" % i) == SLOTS - 1)
        for client, tag in zip(self.clients, (next(each for each in self.tags if key_slot(each[1:-1].encode())
                                                   not in slots), own)):
            client.execute_command("SET", f"{tag}filler:0", "moved")
            self.assertEqual(client.execute_command("WAIT", 1, 20000), 1)
        return slots

    def use_replica(self, which):
        """As a master from now on."""
        self.hosts[which], self.hosts[2 + which] = self.hosts[2 + which], self.hosts[which]
        self.clients[which] = self.hosts[which].client()
        self.ids[which] = self.clients[which].execute_command("CLUSTER", "MYID").decode()
        self.ports = [host.port for host in self.hosts]
        wait_until(lambda: all(
            self.ids[which] in [node[2].decode() for span in client.execute_command("CLUSTER", "SLOTS") for node in span[2:3]]
            for client in self.clients), "both know the new master")

    def say_move(self, slots):
        """Anew. Where a slot is to come, no news of its owner is taken (Redis)."""
        for slot in slots:
            self.clients[1].execute_command("CLUSTER", "SETSLOT", slot, "NODE", self.ids[0])
            self.set_slot(slot, "MOVING", 0)

    def end_move(self, load, slots):
        draw = random.Random(self.seed + 1)
        for slot in slots:
            while self.move_keys(slot, 0, draw) > 0:
                pass
            self.set_slot(slot, "THERE", 0)
        time.sleep(0.3)
        load.end()
        load.check(self)

    def ask_for_failover(self, replica):
        """Again, where it was not done within the five seconds that a host gives it."""
        for _ in range(6):
            replica.execute_command("CLUSTER", "FAILOVER")
            with contextlib.suppress(AssertionError):
                wait_until(lambda: replica.info("replication")["role"] == "master", "a new master", limit_s=10)
                return
        self.fail(f"no new master: {replica.execute_command('CLUSTER', 'NODES')}")

    def hand_over(self, which):
        """CLUSTER FAILOVER, which loses nothing."""
        load = self.load(may_break=True)
        slots = self.move_half(load)
        with contextlib.nullcontext() if self.knows_moves else load.paused():
            replica = self.hosts[2 + which].client()
            self.ask_for_failover(replica)
            self.use_replica(which)
            if not self.knows_moves:
                self.say_move(slots)
        time.sleep(0.5)
        self.end_move(load, slots)

    def test_the_source_is_handed_over(self):
        self.hand_over(0)

    def test_the_destination_is_handed_over(self):
        self.hand_over(1)

    def kill(self, which):
        """What a replica has acknowledged (WAIT) is there; what was not acknowledged is sent again."""
        load = self.load(may_break=True)
        load.waits = True
        slots = self.move_half(load)
        time.sleep(0.5)
        self.hosts[which].kill()
        replica = self.hosts[2 + which].client()
        pipe = replica.pipeline(transaction=True)
        pipe.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
        for slot in slots:
            pipe.execute_command("CLUSTER", "SETSLOT", slot, *(("IMPORTING", self.ids[0]) if which == 1 else
                                                               ("MIGRATING", self.ids[1])))
        replies = pipe.execute(raise_on_error=False)
        load.waits = False
        self.assertNotIsInstance(replies[0], Exception, replies)
        self.use_replica(which)
        self.say_move(slots)
        time.sleep(0.5)
        self.end_move(load, slots)

    def test_the_source_is_killed_and_its_replica_takes_over(self):
        self.kill(0)

    def test_the_destination_is_killed_and_its_replica_takes_over(self):
        self.kill(1)


# What it inherits is run once.
for inherited in [name for name in dir(Reshard) if name.startswith("test_")]:
    setattr(TakeOver, inherited, None)


if __name__ == "__main__":
    unittest.main()
