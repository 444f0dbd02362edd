"""Players who write, and the judgement of what is there of it after a crash.

Each player has a connection, and its nth command is a transaction of five writes: "NAME:n" arrives on the board, at
the score that all have; NAME's sum grows by 1; NAME's field of the hash is n + 1; and "NAME:n" is tagged as the last
one of its player, which "NAME:n-1" no longer is. So what is there must be the first commands of each player, whole, in
the order of arrival, and of one moment."""
import random
import shutil
import threading
import time
from pathlib import Path

import process
import resp

PLAYERS = 8
# Who sends results; they share the boards. The second one may write to few keys, and not always.
USERS = {"game": "~* &* +@all", "guest": "~once ~last:* -@all +@connection +lb.add +zadd"}
RIGHT = "lb.add"  # which the second one loses, and is given again
RIGHT_S = (0.002, 0.04)  # for so long, each
BATCHES = (1, 1, 2, 4, 8, 32)  # commands sent at once
REPLIES = 7                    # to MULTI, five writes and EXEC
STEPS = 7                      # values of a tag; every so manyth member has none
TAGS = "TAG player 4 TAG step 3 TAG last 1"


def step_of(number):
    return str(number % STEPS or "")


class Trouble(Exception):
    """A promise is broken; the text says which."""


class Player:
    """count: of its commands that are there. sent_at, acked_at: seconds, of those behind them."""

    def __init__(self, name, seed):
        self.name, self.random = name, random.Random(f"{seed}/{name}")
        self.begin(0)

    def begin(self, count):
        self.count, self.sent_at, self.acked_at = count, [], []

    def requests(self, number):
        """Half of the members come with their tags, the others get them at once."""
        member, own = f"{self.name}:{number}", ("player", self.name, "step", step_of(number))
        write = ("LB.ADD", "board", "TAG", *own[:2], "TAG", *own[2:], 7, member) if number % 2 else \
            ("ZADD", "board", 7, member)
        return (("MULTI",), write, ("ZINCRBY", "sums", 1, self.name), ("HSET", "hash", self.name, number + 1),
                ("LB.TAG", "board", member, *(() if number % 2 else own), "last", 1),
                ("LB.TAG", "board", f"{self.name}:{number - 1}", "last", "", "IF", "player", self.name), ("EXEC",))

    def run(self, arena):
        """Until the connection breaks or the arena says so."""
        try:
            with resp.Client(arena.server.port) as client:
                while not arena.is_over.is_set():
                    self.send_batch(client, arena)
        except OSError:
            pass

    def send_batch(self, client, arena):
        first, size = self.count + len(self.sent_at), self.random.choice(BATCHES)
        self.sent_at += [time.time()] * size
        client.send([words for i in range(first, first + size) for words in self.requests(i)])
        for number in range(first, first + size):
            answer = [client.receive() for _ in range(REPLIES)][-1]
            now = time.time()
            if now >= arena.cut_at:  # not held against the server
                raise ConnectionError
            if answer != [1, b"%d" % (number + 1), int(number == 0), 1, int(number > 0)]:
                arena.faults.append(f"{self.name}:{number} was answered {answer!r}")
            self.acked_at.append(now)


class Sender:
    """Sends a result again until it is answered, over kills and failovers: LB.ADD ONCE. It counts once. The nth one has
    n as its id, and leaves that in the hash of its sender.

    number: of the result that is sent; is_in_doubt: it was, and not answered; counted: how often results count; last:
    the number of the newest one that is known to be there. asked: (sent, answered, is it refused) of each, in seconds,
    since the players began."""

    def __init__(self, name, user):
        self.name, self.user, self.number, self.counted, self.last = name, user, 1, 0, 0
        self.is_in_doubt = self.is_known = False
        self.asked = []

    def run(self, arena):
        try:
            with resp.Client(arena.server.port) as client:
                client.ask("AUTH", self.user, "any")
                client.ask("SELECT", 1)
                while not arena.is_over.is_set():
                    self.send(client, arena)
        except OSError:
            pass

    def words(self):
        return "ONCE", f"{self.name}:{self.number}"

    def send(self, client, arena):
        was_in_doubt, self.is_in_doubt = self.is_in_doubt, True
        if self.user == "guest" and not is_denied(answer := client.ask("ZADD", "not-yours", 1, self.name)):
            arena.faults.append(f"{self.name} may write where it must not: {answer!r}")
        sent_at = time.monotonic()
        answer = client.ask("LB.ADD", "once", *self.words(), "HSET", "last:*", 1, "id", self.number, "INCR", 1,
                            self.name)
        if time.time() >= arena.cut_at:
            raise ConnectionError
        self.asked.append((sent_at, time.monotonic(), is_denied(answer)))
        if is_denied(answer) and self.user == "guest":  # it was not applied: it is sent again
            self.is_in_doubt = was_in_doubt
            return
        if answer not in ((0,) if self.is_known else (0, 1) if was_in_doubt else (1,)):
            arena.faults.append(f"{self.name}:{self.number} was answered {answer!r}")
        self.counted += 1
        self.last = self.number
        self.number += 1
        self.is_in_doubt = self.is_known = False

    def judge(self, client, is_kept):
        """After a restart. is_kept: what was answered must be there."""
        value, last = (int(answer or 0) for answer in client.ask_all([
            ("ZSCORE", "once", self.name), ("HGET", f"last:{self.name}", "id")]))
        if (value == 0) != (last == 0) or last < value or last > self.number:
            raise Trouble(f"{self.name} has {value}, the last of them {last}, and {self.number} is sent now")
        if value > self.counted + self.is_in_doubt:
            raise Trouble(f"{self.name} has {value}: more than the {self.counted} that were answered")
        if is_kept and (value < self.counted or last != (self.last if value == self.counted else self.number)):
            raise Trouble(f"{self.name} has {value}, the last of them {last}, and {self.counted} were answered")
        self.is_known, self.last = self.is_in_doubt and last == self.number, last
        self.counted = value - self.is_known


class Forgetful(Sender):
    """Sends no id, as to a server that forgets them."""

    def words(self):
        return ()


def is_denied(answer):
    return isinstance(answer, resp.Error) and answer.text.startswith("NOPERM")


class Rights:
    """Withdraws the guest's right under way, and gives it again.

    periods: when it had none, as [withdrawal sent, answered, giving sent, answered]; infinity: not yet."""

    def __init__(self, seed):
        self.periods, self.random = [], random.Random(seed)

    def run(self, arena):
        """It ends with the right given, unless the server goes."""
        try:
            with resp.Client(arena.server.port) as client:
                while not arena.is_over.is_set():
                    self.periods.append([time.monotonic(), *[float("inf")] * 3])
                    self.tell(arena, client, "-" + RIGHT, 1)
                    self.periods[-1][2] = time.monotonic()
                    self.tell(arena, client, "+" + RIGHT, 3)
        except OSError:
            pass

    def tell(self, arena, client, rule, at):
        answer = client.ask("ACL", "SETUSER", "guest", rule)
        if answer != b"OK":
            arena.faults.append(f"{rule} of the guest was answered {answer!r}")
        self.periods[-1][at] = time.monotonic()
        time.sleep(self.random.uniform(*RIGHT_S))

    def judge(self, asked):
        """Raises Trouble: what was sent after the withdrawal was answered, and answered before the right was given,
        is refused; and what is refused was under way while the right was lacking."""
        for sent_at, answered_at, is_refused in asked:
            if not is_refused and any(period[1] <= sent_at and answered_at <= period[2] for period in self.periods):
                raise Trouble("a result was taken from a user who had no right")
            if is_refused and not any(period[0] <= answered_at and sent_at <= period[3] for period in self.periods):
                raise Trouble("a result was refused from a user who had the right")


class Seen:
    """All that is there."""

    def __init__(self, port):
        with resp.Client(port) as client:
            records, sums, fields, groups = client.ask_all([
                ("LB.RANGE", "board", 0, -1, "TAGS"), ("ZRANGE", "sums", 0, -1, "WITHSCORES"), ("HGETALL", "hash"),
                ("LB.COUNT", "board", "BY", "player")])
            self.key_count = client.ask("DBSIZE")
        texts = lambda row: [word.decode() for word in row]
        pairs = lambda row: dict(zip(row[::2], row[1::2]))
        self.arrivals = [(record[0].decode(), record[2]) for record in records or []]  # with their times
        self.tags = [pairs(texts(record[-1])) for record in records or []]
        self.groups = {player.decode(): count for player, count in groups}
        self.sums, self.fields = ({name: int(value) for name, value in pairs(texts(row)).items()}
                                  for row in (sums, fields))


class Arena:
    """A server on a directory, and its players. policy: of appendfsync; "off": without a journal."""

    def __init__(self, program, directory, policy, seed):
        self.server = self.make_server(program, directory, policy)
        self.policy, self.seed, self.random = policy, seed, random.Random(f"{seed}/arena")
        self.acked = self.lost = self.lives = self.repeated = self.refused = 0
        self.begin_anew()

    @staticmethod
    def make_server(program, directory, policy):
        words = ("no",) if policy == "off" else ("yes", "--appendfsync", policy)
        users = [word for name, rules in USERS.items() for word in ("--user", name, "on", "nopass", *rules.split())]
        server = process.Server("--appendonly", *words, "--board", f"board default {TAGS}", *users, program=program,
                                directory=directory, is_started=False)
        server.log = Path(directory).parent / (Path(directory).name + ".log")
        return server

    def begin_anew(self):
        """An empty directory."""
        shutil.rmtree(self.server.directory, ignore_errors=True)
        self.server.directory.mkdir(parents=True)
        self.lives += 1
        self.players = [Player(f"p{i}", f"{self.seed}/{self.lives}") for i in range(PLAYERS)]
        self.senders = [Sender(f"s{i}", user) for i, user in enumerate(USERS)]
        self.before = []

    def start(self):
        """Sometimes the journal is rewritten again and again by itself."""
        often = ("--auto-aof-rewrite-min-size", "64kb", "--auto-aof-rewrite-percentage", "20")
        try:
            self.server.start(*(often if self.random.random() < 0.3 else ()))
        except process.Ended as failure:
            raise Trouble(f"the server does not start: {failure}") from None

    def play(self, end):
        """All players write until end(), which returns when their time is over, has done its work."""
        self.is_over, self.cut_at, self.faults = threading.Event(), float("inf"), []
        self.rights = Rights(self.random.random())
        for sender in self.senders:
            sender.asked = []
        threads = [threading.Thread(target=each.run, args=(self,))
                   for each in (*self.players, *self.senders, self.rights)]
        for thread in threads:
            thread.start()
        end()
        self.is_over.set()
        for thread in threads:
            thread.join()
        self.acked += sum(len(player.acked_at) for player in self.players)
        if self.faults:
            raise Trouble("\n".join(self.faults[:20]))
        asked = [each for sender in self.senders if sender.user == "guest" for each in sender.asked]
        self.refused += sum(is_refused for _, _, is_refused in asked)
        self.rights.judge(asked)

    def snapshot(self):
        """Begun, and not waited for; the server may be gone."""
        words = ("BGSAVE",) if self.policy == "off" or self.random.random() < 0.3 else ("BGREWRITEAOF",)
        try:
            self.server.ask(*words)
        except OSError:
            pass

    def judge(self, promised=None, seen=None, is_exact=False):
        """What is there, after a restart: raises Trouble. promised: how many commands of each player must be there;
        None: those that were answered; is_exact: and no others. The players go on behind it."""
        seen = seen or Seen(self.server.port)
        counts = self.counts_of(seen)
        is_kept = promised is None
        if is_kept:
            promised = [player.count + len(player.acked_at) for player in self.players]
        lost = [f"{player.name}: LOST {wanted - count} of {wanted} commands that were acknowledged"
                for player, wanted, count in zip(self.players, promised, counts) if count < wanted]
        self.lost += sum(max(0, wanted - count) for wanted, count in zip(promised, counts))
        if lost:
            raise Trouble("\n".join(lost))
        if is_exact and counts != promised:
            raise Trouble(f"ended well, and ran without an answer: {counts} are there, {promised} were answered")
        self.first_lost_at = self.check_moment(counts)
        self.judge_senders(is_kept)
        self.before = seen.arrivals
        for player, count in zip(self.players, counts):
            player.begin(count)

    def judge_senders(self, is_kept):
        with resp.Client(self.server.port) as client:
            client.ask("SELECT", 1)
            for sender in self.senders:
                sender.judge(client, is_kept)
                self.repeated += sender.is_known

    def counts_of(self, seen):
        """How many commands of each player are there."""
        if seen.arrivals[:len(self.before)] != self.before[:len(seen.arrivals)]:
            raise Trouble("what was there has changed")
        times = [at for _, at in seen.arrivals]
        if times != sorted(times):
            raise Trouble("who came later came earlier")
        arrived = {player.name: 0 for player in self.players}
        for member, _ in seen.arrivals:
            name, _, number = member.partition(":")
            if int(number) != arrived[name]:
                raise Trouble(f"{member} is behind {arrived[name]} others of its player")
            arrived[name] += 1
        self.check_tags(seen, arrived)
        there = {name: count for name, count in arrived.items() if count}
        if seen.sums != there or seen.fields != there or seen.key_count != (3 if there else 0):
            raise Trouble(f"transactions are not whole: {there}, {seen.sums}, {seen.fields}")
        for player in self.players:
            if arrived[player.name] > player.count + len(player.sent_at):
                raise Trouble(f"{player.name} has sent less than is there")
        return list(arrived.values())

    @staticmethod
    def check_tags(seen, arrived):
        """arrived: how many of each player are on the board."""
        for (member, _), tags in zip(seen.arrivals, seen.tags):
            name, _, number = member.partition(":")
            wanted = {"player": name, "step": step_of(int(number)), "last": "1"}
            if int(number) < arrived[name] - 1:
                del wanted["last"]
            if tags != {tag: value for tag, value in wanted.items() if value}:
                raise Trouble(f"{member} of {arrived[name]} has the tags {tags}")
        if seen.groups != {name: count for name, count in arrived.items() if count}:
            raise Trouble(f"players are counted as {seen.groups}, and {arrived} are there")

    def check_moment(self, counts):
        """Nothing is there that was sent after something that is lost had been answered. When the first one of that
        was; infinity: nothing is lost."""
        lost_at = min((at for player, count in zip(self.players, counts)
                       for at in player.acked_at[max(0, count - player.count):]), default=float("inf"))
        for player, count in zip(self.players, counts):
            if any(at > lost_at for at in player.sent_at[:max(0, count - player.count)]):
                raise Trouble(f"what is there of {player.name} is of a later moment than what is lost")
        return lost_at


class Pair(Arena):
    """A master and its replica, which takes the place of the master when that is killed."""

    def __init__(self, program, directory, policy, seed):
        self.replica = self.make_server(program, directory / "other", policy)
        super().__init__(program, directory / "one", policy, seed)

    def begin_anew(self):
        shutil.rmtree(self.replica.directory, ignore_errors=True)
        self.replica.directory.mkdir(parents=True)
        super().begin_anew()

    def start_replica(self):
        """What it has from another life goes."""
        self.replica.start("--replicaof", "127.0.0.1", self.server.port)
        process.wait_until(lambda: b"master_link_status:up" in self.replica.ask("INFO", "replication"),
                           lambda: f"a replica:\n{self.replica.told()}")

    def take_over(self, is_whole=False):
        """The master is gone. What the players were answered last may be gone, too, but never a part of it; is_whole:
        not even that."""
        if self.replica.ask("REPLICAOF", "NO", "ONE") != b"OK":
            raise Trouble("the replica does not take over")
        self.server, self.replica = self.replica, self.server
        self.judge(None if is_whole else [0] * len(self.players), is_exact=is_whole)

    def end(self):
        for server in (self.server, self.replica):
            if server.process is not None:
                server.kill()


def change_one_thing(seen, randomness):
    """As a bad restart might."""
    kind, at = randomness.randrange(9), randomness.randrange(len(seen.arrivals) - 1)
    member, time_ms = seen.arrivals[at]
    name = member.partition(":")[0]
    if kind == 0:
        del seen.arrivals[at]
    elif kind == 1:
        seen.arrivals[at] = ("p0:1000000", time_ms)
    elif kind == 2:
        seen.arrivals[at] = (member, seen.arrivals[-1][1] + 1)
    elif kind == 3:
        seen.arrivals.insert(0, seen.arrivals.pop())
    elif kind == 4:
        seen.sums[name] += 1
    elif kind == 5:
        seen.tags[at].pop(randomness.choice(list(seen.tags[at])))
    elif kind == 6:
        seen.tags[at]["last"] = "0"
    elif kind == 7:
        seen.groups[name] -= 1
    else:
        del seen.fields[name]
