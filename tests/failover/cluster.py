"""Three servers, three Sentinels, HAProxy and sixteen clients, each on a host of its own, and rounds in which
something happens to them."""
import subprocess
import threading
import time
from pathlib import Path

import history
import nodes
from network import Network
from process import end_with_the_test, wait_until

HOSTS = {"n1": 1, "n2": 2, "n3": 3, "s1": 11, "s2": 12, "s3": 13, "proxy": 20, "clients": 30}
HERE = Path(__file__).resolve().parent
# Kind, program, how many clients in it, whom they ask.
CLIENTS = (("redis-py", ["/usr/bin/python3", HERE / "clients/redis_py.py"], 6, "sentinel"),
           ("redis-py", ["/usr/bin/python3", HERE / "clients/redis_py.py"], 2, "address"),
           ("redis-py", ["/usr/bin/python3", HERE / "clients/redis_py.py"], 2, "afresh"),
           ("ioredis", ["node", HERE / "clients/ioredis.js"], 3, "sentinel"),
           ("ioredis", ["node", HERE / "clients/ioredis.js"], 1, "address"),
           ("phpredis", ["php", HERE / "clients/phpredis.php"], 1, "sentinel"),
           ("phpredis", ["php", HERE / "clients/phpredis.php"], 1, "sentinel"))
START_LIMIT_S, HEAL_LIMIT_S, EQUAL_LIMIT_S, STOP_LIMIT_S = 60, 120, 20, 30
BOARDS = ("set", "inc", "tie", "once")
PRELOADED = 100_000
SAMPLE_S = 0.2


class Trouble(Exception):
    """The cluster does not come to what it must come to."""


class Clients:
    """One process with clients in it; what they write down is gathered by a thread."""

    def __init__(self, network, program, first, count, pace, kind, log):
        hosts = ["s1", "s2", "s3"] if kind == "sentinel" else ["proxy"]
        words = [*program, first, count, pace, kind, ",".join(map(network.address, hosts))]
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(network.on("clients", words), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors, text=True,
                                            preexec_fn=end_with_the_test)
        self.lines, self.stopped = [], threading.Event()
        threading.Thread(target=self.gather, daemon=True).start()

    def gather(self):
        for line in self.process.stdout:
            if line == "stopped\n":
                self.stopped.set()
            else:
                self.lines.append(line)

    def tell(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def take(self):
        """What was written down, once they have stopped."""
        if not self.stopped.wait(STOP_LIMIT_S):
            raise Trouble(f"clients do not stop: {self.process.args}")
        self.stopped.clear()
        lines, self.lines = self.lines, []
        return [history.parse(line) for line in lines]


class Rights:
    """Now and then the limited user may write, and then no longer. ACL SETUSER of one server is not told to others: it is
    said to all, and a server that starts has forgotten it. So from the last answer on nobody lets that user write,
    until the first server is told otherwise; where a server is there and does not answer, nothing is known."""

    def __init__(self, cluster):
        self.cluster, self.withdrawn, self.ended = cluster, [], threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def say(self, sign):
        """To all; whether all have heard it."""
        rules = [sign + rule[1:] for rule in self.cluster.nodes[0].grants()]
        is_known = True
        for node in self.cluster.nodes:
            try:
                is_known &= node.ask("ACL", "SETUSER", "limited", *rules) == b"OK"
            except nodes.Unreachable:
                is_known &= not node.is_running()
        return is_known

    def run(self):
        while not self.ended.is_set():
            self.say("+")
            self.ended.wait(self.cluster.randomness.uniform(0.2, 1))
            is_known, began_at = self.say("-"), time.monotonic_ns()
            self.ended.wait(self.cluster.randomness.uniform(0.2, 1))
            if is_known:
                self.withdrawn.append((began_at, time.monotonic_ns()))

    def end(self):
        """When that user could not write: [(from, to)] in ns."""
        self.ended.set()
        self.thread.join()
        return self.withdrawn


class Cluster:
    def __init__(self, node_class, work, settings, pace, randomness):
        self.work, self.randomness = work, randomness
        work.mkdir(parents=True)
        self.network = Network(HOSTS)
        library = nodes.build_clock_step(work)
        self.nodes = [node_class(self.network, f"n{i}", work, library, settings) for i in (1, 2, 3)]
        is_user = randomness.random() < 0.5
        self.sentinels = [nodes.Sentinel(self.network, f"s{i}", work, library, is_user) for i in (1, 2, 3)]
        self.haproxy = nodes.Haproxy(self.network, "proxy", work, library)
        self.timers = []
        self.events = []
        self.rounds = 0
        self.start()
        self.clients = []
        first = 1
        for i, (_, program, count, kind) in enumerate(CLIENTS):
            self.clients.append(Clients(self.network, program, first, count, pace, kind,
                                        work / f"clients-{i}.log"))
            first += count
        threading.Thread(target=self.sample, daemon=True).start()

    def start(self):
        for node in self.nodes:
            node.configure(None if node is self.nodes[0] else self.nodes[0])
            node.start()
        wait_until(lambda: self.check_crashes() or all(node.info() for node in self.nodes),
                   lambda: "the servers' start: " + self.state(), START_LIMIT_S)
        self.preload(self.nodes[0])
        for sentinel in self.sentinels:
            sentinel.start()
        self.haproxy.start()
        self.wait_healed()

    def preload(self, master):
        """Something to copy for a replica that begins anew."""
        step = 1000
        wait_until(lambda: self.is_open(master), lambda: "the first write: " + self.state(), START_LIMIT_S)
        master.ask_all([("ZADD", "ballast", *(word for i in range(first, first + step)
                                              for word in (i, self.randomness.randbytes(12))))
                        for first in range(0, PRELOADED, step)], 30)

    def sample(self):
        while True:
            for node in self.nodes:
                if node.is_running():
                    node.note_sizes()
            time.sleep(SAMPLE_S)

    # ---- who is who ----

    def master(self):
        """The node that most Sentinels name; None when they do not agree."""
        named = [sentinel.master_address() for sentinel in self.sentinels]
        for node in self.nodes:
            if named.count(node.address) * 2 > len(named):
                return node
        return None

    def replicas(self, master):
        return [node for node in self.nodes if node is not master]

    def epoch(self):
        """Grows by one with each failover."""
        epochs = []
        for sentinel in self.sentinels:
            try:
                epochs.append(int(sentinel.master_fields()["config-epoch"]))
            except (nodes.Unreachable, KeyError, AttributeError):
                continue
        return max(epochs, default=0)

    def wait_switch(self, old, limit_s):
        """Until most Sentinels name another one; whether they do in time."""
        give_up_at = time.monotonic() + limit_s
        while time.monotonic() < give_up_at:
            master = self.master()
            if master not in (None, old):
                return master
            time.sleep(0.05)
        return None

    # ---- healing ----

    def later(self, seconds, action):
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        self.timers.append(timer)
        timer.start()

    def check_crashes(self):
        crashes = [crash for process in (*self.nodes, *self.sentinels, self.haproxy)
                   if (crash := process.crash())]
        if crashes:
            raise Trouble("\n".join(crashes))

    def heal(self):
        for timer in self.timers:
            timer.join()
        self.timers.clear()
        self.check_crashes()
        self.network.heal()
        for node in self.nodes:
            self.network.slow(node.host, None)
            node.go_on()
            node.free_disk()
            if not node.is_running():
                node.start()
        for sentinel in self.sentinels:
            sentinel.go_on()
            if not sentinel.is_running():
                sentinel.start()

    def is_open(self, master):
        """Does it take writes?"""
        try:
            return master.ask("ZADD", "probe", 1, "member") in (0, 1)
        except nodes.Unreachable:
            return False

    def is_whole(self):
        """One master that everybody knows and that takes writes, two replicas that follow it."""
        master = self.master()
        if master is None or master.info().get("role") != "master" or not self.is_open(master):
            return False
        for node in self.replicas(master):
            info = node.info()
            if info.get("role") != "slave" or info.get("master_host") != master.address or \
                    info.get("master_link_status") != "up":
                return False
        return all(self.is_content(sentinel, master) for sentinel in self.sentinels) and \
            all(node.says_its_role() for node in self.nodes)

    @staticmethod
    def is_content(sentinel, master):
        """It names the master, knows two others of its kind, and has no complaint."""
        try:
            fields, replicas = sentinel.master_fields(), sentinel.replicas()
        except nodes.Unreachable:
            return False
        return fields["ip"] == master.address and fields["flags"] == "master" and \
            fields["num-other-sentinels"] == "2" and \
            sentinel.info("sentinel").get("sentinel_tilt") == "0" and \
            [replica["flags"] for replica in replicas] == ["slave"] * 2

    def wait_healed(self):
        wait_until(lambda: self.check_crashes() or self.is_whole(),
                   lambda: "all is well: " + self.state(), HEAL_LIMIT_S, step_s=0.05, passing=())

    def state(self):
        """For people, when something went wrong."""
        told = [f"{node.host}: {'runs' if node.is_running() else 'is gone'} {node.info()}"
                for node in self.nodes]
        for sentinel in self.sentinels:
            try:
                told.append(f"{sentinel.host}: {sentinel.master_fields()} " +
                            str([replica["name"] + " " + replica["flags"]
                                 for replica in sentinel.replicas()]))
            except nodes.Unreachable as error:
                told.append(str(error))
        return "\n  ".join(told)

    # ---- rounds ----

    def tell_clients(self, words, is_told=lambda name, asked: True):
        """A line to all clients, or to those of a library, and of whom they ask."""
        for clients, (name, _, _, asked) in zip(self.clients, CLIENTS):
            if is_told(name, asked):
                clients.tell(words)

    def say(self, text):
        self.events.append(f"{time.monotonic() * 1e3:.0f} ms: {text}")

    def round(self, fault):
        """Load, what the fault does, healing, and judgement of all that was answered: a Judgement."""
        self.rounds += 1
        self.stops = []  # (from, to) in ns of SIGTERM: what is run is answered
        prefix = f"r{self.rounds}"
        self.events = []
        before = self.epoch()
        self.tell_clients(f"go {prefix}")
        rights = Rights(self)
        try:
            time.sleep(self.randomness.uniform(1, 2))
            fault(self)
            self.heal()
            self.say("healed")
            self.wait_healed()
            self.say("whole again")
            time.sleep(0.5)
        finally:
            lines, withdrawn = self.take(), rights.end()
        final, is_equal = self.read(prefix)
        self.check_crashes()
        judgement = history.judge(lines, final, type(self.nodes[0]).order_of_ties, withdrawn,
                                  self.stops)
        judgement.figures["failovers"] = self.epoch() - before
        judgement.figures["diverged"] = 0 if is_equal else 1
        judgement.lines = lines
        self.master().ask_all([("UNLINK", *(f"{prefix}:{board}" for board in BOARDS))])
        return judgement

    def take(self):
        self.tell_clients("stop")
        return sorted((line for clients in self.clients for line in clients.take()),
                      key=lambda line: line.start)

    def read(self, prefix):
        """What the master holds, and whether the replicas come to hold the same."""
        names = [f"{prefix}:{board}" for board in BOARDS]
        master = self.master()
        at = time.monotonic_ns()
        registers, counters, ties, results = (master.scores(name) for name in names)
        final = history.Final(dict(registers), dict(counters), [member for member, _ in ties], at, dict(results))
        first = self.randomness.randrange(PRELOADED)
        parts = [(name, 0, -1) for name in names] + [("ballast", first, first + 1000)]
        held = [master.records(*part) for part in parts]
        give_up_at = time.monotonic() + EQUAL_LIMIT_S
        while True:
            try:
                differing = [f"{node.host}: {part[0]}" for node in self.replicas(master)
                             for part, records in zip(parts, held) if node.records(*part) != records]
            except nodes.Unreachable as error:
                differing = [str(error)]
            if not differing or time.monotonic() > give_up_at:
                break
            time.sleep(0.1)
        if differing:
            self.say(f"not equal to the master {master.host}: {differing}")
        return final, not differing

    def end(self):
        for process in (*self.nodes, *self.sentinels, self.haproxy):
            process.kill()
        for clients in self.clients:
            clients.process.kill()
            clients.process.wait()
