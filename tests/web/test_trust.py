"""TICKETS, LIMITS, HOLD and shadow bans together on two boards, and a twin of each in plain Python that keeps what each of them promises.

    a step        a result of a player or of a server, a ticket, an approval, a ban, an hour that passes, a copy, kill -9,
                  a failover
    behind it     what all see, what each player sees, and what is held are what the twin has: on the master, and on its
                  replica

The servers are real, and their clock stands (tests/failover/clock_step.c): it moves when the twin's does.
LEADERBOARD_TEST_SEED repeats a run, LEADERBOARD_TEST_STEPS=n ends each after so many steps."""
import copy
import itertools
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
import unittest
from pathlib import Path

import process
import resp
from process import wait_until
from test_players import SECRET, token

sys.path.append(str(Path(__file__).resolve().parents[1] / "failover"))
import nodes

BEGIN_S = 1_780_000_000
PLAYERS = ("ann", "bob", "cid", "dan", "eve")
HOUR_MS = 3600_000
SEED = int(os.environ.get("LEADERBOARD_TEST_SEED") or random.SystemRandom().randrange(10**9))
ROUNDS = 2 if process.IS_SHORT else 20
STEPS = int(os.environ.get("LEADERBOARD_TEST_STEPS") or (150 if process.IS_SHORT else 400))


class Refused(Exception):
    """The command replies an error that begins so."""


class Rules:
    """The options of the board, drawn."""

    def __init__(self, draw):
        self.is_ascending = draw.random() < 0.2
        self.keeps_best = draw.random() < 0.5
        self.tickets = draw.random() < 0.6
        self.limits = {"MAX": 900, **{name: value for name, value in (
            ("STEP", 300), ("EVERY", 10_000), ("RESULTS", (6, HOUR_MS)), ("GAIN", (1200, HOUR_MS))) if draw.random() < 0.5}}
        self.min_ms = 5000 if self.tickets and draw.random() < 0.6 else 0
        self.are_limits_of_all = draw.random() < 0.3
        self.over = draw.choice((None, 200, 600))
        self.top = draw.choice((0, 0, 1, 2))
        self.holds_limits = draw.random() < 0.5 or (self.over is None and self.top == 0)
        self.holds_of_all = draw.random() < 0.4
        self.cap = draw.choice((0, 0, 0, 2, 4))
        self.auto_ms = draw.choice((0, 1, 1, 2)) * HOUR_MS

    def words(self):
        def per(name):
            count, _ = self.limits[name]
            return (name, count, "PER", "HOUR")
        words = ["FIELD", "score", 32, *(["ASC"] if self.is_ascending else []), "TIME", 31, "S",
                 *(["KEEP", "BEST"] if self.keeps_best else []), *(["CAP", self.cap] if self.cap else []),
                 *(["TICKETS", "YES"] if self.tickets else []),
                 "LIMITS", "ALL" if self.are_limits_of_all else "PLAYERS", "MAX", self.limits["MAX"]]
        words += ["STEP", self.limits["STEP"]] if "STEP" in self.limits else []
        words += ["EVERY", self.limits["EVERY"] // 1000, "S"] if "EVERY" in self.limits else []
        words += [*(per("RESULTS") if "RESULTS" in self.limits else ()), *(per("GAIN") if "GAIN" in self.limits else ())]
        words += ["MINTIME", self.min_ms // 1000, "S"] if self.min_ms else []
        words += ["HOLD", "ALL" if self.holds_of_all else "PLAYERS"]
        words += ["OVER", self.over] if self.over is not None else []
        words += ["TOP", self.top] if self.top else []
        words += ["LIMITS"] if self.holds_limits else []
        return words + (["AUTO", self.auto_ms // HOUR_MS, "H"] if self.auto_ms else [])

    def is_better(self, value, other):
        return value < other if self.is_ascending else value > other

    def gain(self, before, after):
        if before is None and self.is_ascending:
            return 0
        before = before or 0
        return max(0, before - after if self.is_ascending else after - before)


class Record:
    """What LIMITS have counted of a member."""

    def __init__(self):
        self.last_ms = self.results_ms = self.results = self.gain_ms = self.gained = 0


class Held:
    def __init__(self, number, member, word, value, before, shown, reason, at_ms):
        self.id, self.member, self.word, self.value, self.before = number, member, word, value, before
        self.shown, self.reason, self.at_ms = shown, reason, at_ms


class Twin:
    """Of one board. Entries are (value, second); a member is either on the board or hidden. bans: of all boards."""

    def __init__(self, name, rules, bans):
        self.name, self.rules, self.bans = name, rules, bans
        self.now_ms = 0
        self.board, self.hidden, self.records, self.used = {}, {}, {}, {}
        self.held, self.next_id = [], 1

    # ---- who sees what ----

    def order(self, entries):
        sign = 1 if self.rules.is_ascending else -1
        return sorted(entries, key=lambda name: (sign * entries[name][0], entries[name][1]))

    def all_see(self):
        return [word for name in self.order(self.board) for word in (name, self.board[name][0])]

    def entries_for(self, player):
        return {**self.board, **({player: self.hidden[player]} if player in self.hidden else {})}

    def player_sees(self, player):
        entries = self.entries_for(player)
        rows = self.order(entries)
        if player in self.hidden and self.is_below(player, entries):
            rows.remove(player)
        return [word for name in rows for word in (name, entries[name][0])]

    # ---- CAP ----

    def is_below(self, member, entries):
        return self.rules.cap > 0 and self.order(entries).index(member) >= self.rules.cap

    def cut(self):
        for member in self.order(self.board)[self.rules.cap or len(self.board):]:
            del self.board[member]

    def put(self, member, entry):
        """On the board, or where it is hidden. Is it still there?"""
        entries = self.entries_of(member)
        entries[member] = entry
        if entries is self.board:
            self.cut()
        elif self.is_below(member, self.entries_for(member)):
            del entries[member]
        return member in entries

    def own_held(self, player):
        return [[each.id, [each.shown], each.at_ms] for each in reversed(self.held) if each.member == player]

    def all_held(self):
        return [[each.id, each.member, [each.shown], each.reason, each.at_ms] for each in self.held]

    # ---- bans ----

    def is_of(self, pattern):
        return self.name.startswith(pattern[:-1])

    def ban_of(self, member):
        kinds = {is_shadow for pattern, (until_ms, is_shadow) in self.bans.get(member, {}).items()
                 if until_ms > self.now_ms and self.is_of(pattern)}
        return None if not kinds else "full" if False in kinds else "shadow"

    def settle(self):
        """Entries whose ban is over come back."""
        for member in [member for member in self.hidden if self.ban_of(member) is None]:
            self.board[member] = self.hidden.pop(member)
            self.cut()

    def due(self):
        if not self.rules.auto_ms:
            return []
        return [each for each in self.held if each.at_ms <= self.now_ms - self.rules.auto_ms
                and self.ban_of(each.member) is None]

    def settle_auto(self):
        for each in self.due():
            self.write_held(each)

    def entries_of(self, member):
        return self.hidden if self.ban_of(member) == "shadow" else self.board

    def begin_ban(self, member, pattern, is_shadow):
        if self.is_of(pattern) and is_shadow and member in self.board:
            self.hidden[member] = self.board.pop(member)
        elif self.is_of(pattern) and not is_shadow:
            self.board.pop(member, None)
            self.hidden.pop(member, None)
            self.held = [each for each in self.held if each.member != member]
        self.settle()

    def forget(self, member):
        for part in (self.board, self.hidden, self.records):
            part.pop(member, None)
        self.held = [each for each in self.held if each.member != member]

    def move(self, member, to):
        held = [each for each in self.held if each.member == member]
        if (member in self.board or held) and self.ban_of(to) is not None:
            return
        self.records.pop(member, None)
        if member in self.board:
            entries = {name: self.board.pop(name) for name in (member, to) if name in self.board}
            self.board[to] = entries[self.order(entries)[0]]
        for each in held:
            if sum(other.member == to for other in self.held) == 16:
                self.held.remove(each)
            else:
                each.member = to

    def remove(self, member):
        return int(any(part.pop(member, None) is not None for part in (self.entries_of(member),)))

    # ---- tickets ----

    def ticket(self, member, seconds):
        return {"board": self.name, "member": member, "start_ms": self.now_ms, "id": max(self.now_ms, self.used.get(member, 0) + 1),
                "end_s": -(-self.now_ms // 1000) + seconds}

    def check_ticket(self, ticket, member, is_player):
        if ticket is None or ticket["board"] != self.name:
            raise Refused("TICKET")
        if self.now_ms // 1000 >= ticket["end_s"] or ticket["start_ms"] // 1000 > self.now_ms // 1000 + 60:
            raise Refused("TICKET")
        if ticket["member"] != member or ticket["id"] <= self.used.get(member, 0):
            raise Refused("TICKET")
        has_limits = is_player or self.rules.are_limits_of_all
        if self.rules.min_ms and has_limits and ticket["start_ms"] + self.rules.min_ms > self.now_ms:
            raise Refused("TOOSOON")
        return max(self.now_ms, ticket["id"])

    # ---- LIMITS ----

    def left_ms(self, begin_ms, time_ms):
        return max(0, begin_ms + time_ms - self.now_ms) if 0 < begin_ms <= self.now_ms else 0

    def limit_of(self, member, before, after, is_put):
        """(the limit that is broken, the record behind it)."""
        rules, record = self.rules, Record()
        record.__dict__.update(self.records.get(member, record).__dict__)
        limits, gain = rules.limits, rules.gain(before, after) if is_put else 0
        if is_put and after > limits["MAX"]:
            return "MAX", None
        if is_put and "STEP" in limits and before is not None and gain > limits["STEP"]:
            return "STEP", None
        if "EVERY" in limits:
            if self.left_ms(record.last_ms, limits["EVERY"]):
                return "EVERY", None
            record.last_ms = self.now_ms
        if "RESULTS" in limits:
            most, time_ms = limits["RESULTS"]
            left_ms = self.left_ms(record.results_ms, time_ms)
            if left_ms and record.results >= most:
                return "RESULTS", None
            record.results_ms = record.results_ms if left_ms else self.now_ms
            record.results = record.results + 1 if left_ms else 1
        if "GAIN" in limits:
            most, time_ms = limits["GAIN"]
            left_ms = self.left_ms(record.gain_ms, time_ms)
            gained = gain + (record.gained if left_ms else 0)
            if gained > most:
                return "GAIN", None
            record.gain_ms = record.gain_ms if left_ms else self.now_ms if gain else 0
            record.gained = gained
        return None, record

    # ---- results ----

    def mark_of(self, member, is_player, tickets):
        """What a result uses up. tickets: those that come with it; of several the one that names the board counts."""
        if not self.rules.tickets or not (is_player or tickets):
            return None
        own = [each for each in tickets if each["board"] == self.name]
        return self.check_ticket((own or tickets or [None])[0], member, is_player)

    def check_plain(self, is_player):
        """ZADD and ZINCRBY bring no tickets."""
        if self.rules.tickets and is_player:
            raise Refused("TICKET")

    def result(self, member, word, value, is_player, mark=None, is_new_only=False):
        """(how many were changed, how many are held)"""
        rules = self.rules
        if self.ban_of(member) == "full":
            raise Refused("BANNED")
        entries = self.entries_of(member)
        before = entries.get(member)
        after = value + (before[0] if before else 0) if word == "INCR" else value
        if before is not None and is_new_only:
            if mark is not None:
                self.used[member] = mark
            return 0, 0
        stays = before is not None and (
            after == before[0] or (word == "BEST" or (word != "INCR" and rules.keeps_best)) and
            not rules.is_better(after, before[0]))
        # ZADD asks LIMITS about the value that it does not write, too, and says so of the one that it has.
        after = before[0] if stays else after
        held = None
        if is_player or rules.are_limits_of_all:
            held = self.watch(member, before, after, not stays, is_player)
        elif not stays and rules.holds_of_all:
            held = self.judge(member, before, after)
        if held and sum(each.member == member for each in self.held) == 16:
            raise Refused("FULL")
        if mark is not None:
            self.used[member] = mark
        if self.record is not None:
            self.records[member], self.record = self.record, None
        if held:
            self.held.append(Held(self.next_id, member, word, value, before[0] if before else 0, after, held, self.now_ms))
            self.next_id += 1
            return 0, 1
        has_stayed = not stays and self.put(member, (after, self.now_ms // 1000))
        return int(has_stayed or not stays and before is not None), 0

    record = None

    def watch(self, member, before, after, is_put, is_player):
        """LIMITS, and what HOLD makes of them. Leaves the record behind the result."""
        value = before[0] if before else None
        holds = is_put and (is_player or self.rules.holds_of_all)
        limit, self.record = self.limit_of(member, value, after, is_put)
        if limit and holds and self.rules.holds_limits:
            return limit
        if limit:
            raise Refused("LIMIT" if limit in ("MAX", "STEP") or limit == "GAIN" and self.rules.gain(
                value, after) > self.rules.limits["GAIN"][0] else "TOOSOON")
        held = self.judge(member, before, after) if holds else None
        if held:
            _, self.record = self.limit_of(member, value, value or 0, False)
        return held

    def judge(self, member, before, after):
        rules = self.rules
        if rules.over is not None and rules.is_better(after, rules.over):
            return "OVER"
        if rules.top and (before is None or rules.is_better(after, before[0])):
            second = self.now_ms // 1000
            above = sum(rules.is_better(value, after) or value == after and at < second
                        for name, (value, at) in self.entries_for(member).items() if name != member)
            return "TOP" if above < rules.top else None
        return None

    # ---- what was held ----

    def write_held(self, held):
        """As it would have been written when it came."""
        if self.ban_of(held.member) == "full":
            raise Refused("BANNED")
        rules, entries = self.rules, self.entries_of(held.member)
        before, second = entries.get(held.member), min(held.at_ms, self.now_ms) // 1000
        is_late = before is not None and before[1] * 1000 > min(held.at_ms, self.now_ms)
        value = held.value + (before[0] if before else 0) if held.word == "INCR" else held.value
        is_best = held.word == "BEST" or (held.word != "INCR" and rules.keeps_best)
        if is_late and not is_best and held.word != "INCR" and before[0] != held.before:
            value = before[0]
        if before is None or value != before[0] and (not is_best or rules.is_better(value, before[0])):
            self.put(held.member, (value, max(second, before[1]) if is_late and not is_best else second))
        self.held.remove(held)

    def of_member(self, member, number):
        return [each for each in self.held if each.member == member and number in (None, each.id)]

    def approve(self, member, number):
        found = self.of_member(member, number)
        for each in found:
            self.write_held(each)
        return len(found)

    def reject(self, member, number):
        found = self.of_member(member, number)
        self.held = [each for each in self.held if each not in found]
        return len(found)


class Clock:
    """Of all servers: how long they run, and what the wall clock says beside that."""

    def __init__(self, path):
        self.path, self.runs_us, self.wall_us = path, BEGIN_S * 1_000_000, 0
        path.write_bytes(bytes(16))
        self.write()

    def write(self):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=qq", self.wall_us, self.runs_us))

    def pass_s(self, seconds):
        self.runs_us += round(seconds * 1_000_000)
        self.write()


class Pair:
    """A master and its replica, whose parts change."""

    def __init__(self, test):
        directory = Path(tempfile.mkdtemp(prefix="leaderboard-trust-"))
        test.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        self.clock = Clock(directory / "clock")
        config = directory / "server.conf"
        config.write_text(f"player-key back hs256 {SECRET.decode()}\n"
                          "user player:back on ~* -@all +@read +lb.ticket +lb.add +lb.submit +zadd +zincrby +zrem\n")
        environment = {"LD_PRELOAD": str(nodes.build_clock_step(directory)), "CLOCK_STEP_FILE": str(self.clock.path),
                       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        self.servers = [process.Server("--appendonly", "yes", "--appendfsync", "always", "--auth-delay", "0",
                                       "--repl-timeout", "1000000", config=config, environment=environment)
                        for _ in range(2)]
        for server in self.servers:
            test.addCleanup(server.kill)
        self.tokens = {player: token(player, exp=BEGIN_S + 10**8) for player in PLAYERS}
        self.clients = {}
        self.follow()

    def master(self):
        return self.servers[0]

    def client(self, server, player=None):
        """A connection, kept; of a player, or of who may do all."""
        if (server, player) not in self.clients:
            client = server.connect()
            if player:
                answer = client.ask("AUTH", self.tokens[player])
                assert answer == b"OK", answer
            self.clients[server, player] = client
        return self.clients[server, player]

    def ask(self, *words, player=None):
        return self.client(self.master(), player).ask(*words)

    def now_ms(self):
        seconds, microseconds = self.ask("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    def creep(self, claim):
        """Something goes on by the servers' own clock meanwhile."""
        def passing():
            if found := claim():
                return found
            self.clock.pass_s(0.1)
            return None
        return passing

    def follow(self):
        master, replica = self.servers
        replica.ask("REPLICAOF", "127.0.0.1", master.port)
        wait_until(self.creep(lambda: b"master_link_status:up" in replica.ask("INFO", "replication")), "the replica")
        wait_until(self.creep(lambda: self.ask("WAIT", 1, 1) == 1), "the replica's answer")

    def drop_clients(self, server):
        for key in [key for key in self.clients if key[0] is server]:
            self.clients.pop(key).close()

    def kill(self, server):
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        self.drop_clients(server)

    def restart(self):
        """The master is killed, and comes back."""
        self.kill(self.master())
        self.master().start()
        self.follow()

    def fail_over(self):
        """The master is killed, its replica takes over, and it comes back as a replica of that."""
        self.kill(self.master())
        self.servers.reverse()
        assert self.ask("REPLICAOF", "NO", "ONE") == b"OK"
        self.servers[1].start()
        self.follow()

    def wait_for_replica(self):
        wait_until(self.creep(lambda: self.ask("WAIT", 1, 1) == 1), "the replica")


def told(answer):
    """As the twin has it."""
    if isinstance(answer, list):
        return [told(each) for each in answer]
    return answer.decode() if isinstance(answer, bytes) else answer


class Trust(unittest.TestCase):
    maxDiff = None

    def ask(self, *words, player=None):
        self.lines.append(f"{self.pair.now_ms() / 1000:.3f} {player or 'all'}: "
                          f"{' '.join(word if len(str(word)) < 60 else 'TICKET' for word in map(str, words))}")
        answer = self.pair.ask(*words, player=player)
        self.lines[-1] += f"  ->  {answer}"
        return answer

    def expect(self, words, twin, player=None):
        """What the twin replies, or refuses, so does the server."""
        self.read_clock()
        try:
            wanted = twin()
        except Refused as refused:
            wanted = refused
        answer = self.ask(*words, player=player)
        if isinstance(wanted, Refused):
            self.assertIsInstance(answer, resp.Error, self.story(wanted))
            self.assertEqual(answer.text.split()[0], str(wanted), self.story(wanted))
        elif wanted is not None:
            self.assertEqual(told(answer), wanted, self.story(wanted))
        else:
            self.assertNotIsInstance(answer, resp.Error, self.story(wanted))
        return answer

    def read_clock(self):
        now_ms = self.pair.now_ms()
        for twin in self.twins:
            twin.now_ms, twin.record = now_ms, None

    def story(self, wanted=""):
        made = [f"LB.CREATE {twin.name} " + " ".join(map(str, twin.rules.words())) for twin in self.twins]
        return "\n".join([*made, *self.lines[-120:], f"wanted: {wanted}"])

    # ---- what is seen ----

    def seen(self, twin, server, player=None):
        client = self.pair.client(server, player)
        words = "ZRANGE" if twin.rules.is_ascending else "ZREVRANGE"
        rows = told(client.ask(words, twin.name, 0, -1, "WITHSCORES"))
        rows = [int(word) if i % 2 else word for i, word in enumerate(rows)]
        if player:
            records, held = client.ask("LB.GET", twin.name, 1, player, "WITHHELD")
            rank = records[0][1] if records[0] else None
            return rows, rank, told(held)
        held = told(client.ask("LB.HELD", twin.name, "COUNT", 500)[1])
        return rows, [each[:5] for each in held], told(client.ask("ZCARD", twin.name))

    @staticmethod
    def should_be_seen(twin, player=None):
        if player:
            rows = twin.player_sees(player)
            rank = rows[::2].index(player) if player in rows[::2] else None
            return rows, rank, twin.own_held(player)
        return twin.all_see(), twin.all_held(), len(twin.board)

    def agree(self):
        """On both servers; what comes back by itself may take a moment."""
        self.pair.wait_for_replica()
        for server, twin, player in itertools.product(self.pair.servers, self.twins, (None, *PLAYERS)):
            until, wanted = time.monotonic() + 20, self.should_be_seen(twin, player)
            while self.seen(twin, server, player) != wanted and time.monotonic() < until:
                time.sleep(0.005)
            where = "the master" if server is self.pair.master() else "the replica"
            self.assertEqual(self.seen(twin, server, player), wanted, self.story(f"{player} of {twin.name} on {where}"))

    def pass_time(self, seconds):
        """AUTO looks every minute: what is due is approved before anything else happens."""
        self.lines.append(f"passes {seconds} s")
        self.pair.clock.pass_s(seconds)
        self.settle()

    def settle(self):
        self.read_clock()
        for twin in self.twins:
            twin.settle()
        while any(twin.due() for twin in self.twins):
            self.lines.append("passes 61 s")
            self.pair.clock.pass_s(61)
            self.read_clock()
            for twin in self.twins:
                twin.settle()
                twin.settle_auto()
            self.agree()

    # ---- steps ----

    def take_ticket(self, member=None, twin=None):
        member, twin = member or self.draw.choice(PLAYERS), twin or self.draw.choice(self.twins)
        player = self.draw.choice((member, member, None))
        seconds = self.draw.choice((60, 600, 7200))
        if not twin.rules.tickets:
            return
        self.read_clock()
        ticket = twin.ticket(member, seconds)
        ticket["text"] = self.ask("LB.TICKET", twin.name, member, "FOR", seconds, player=player).decode()
        self.tickets = [*self.tickets[-25:], ticket]

    def some_tickets(self, member, twins):
        """Mostly one of the member's for each board, of which the latest may count."""
        wanted = [twin for twin in twins if twin.rules.tickets]
        if wanted and self.draw.random() < 0.5:
            for twin in wanted:
                self.take_ticket(member, twin)
            self.pass_time(self.draw.choice((1, 6, 6)))
        given = []
        for twin in wanted:
            own = [each for each in self.tickets if each["member"] == member and each["board"] == twin.name]
            if self.tickets and self.draw.random() < 0.9:
                given.append(own[-1] if own and self.draw.random() < 0.8 else self.draw.choice(self.tickets))
        return given

    def write(self):
        draw, twin = self.draw, self.draw.choice(self.twins)
        member = draw.choice(PLAYERS)
        player = member if draw.random() < 0.75 else None
        value = draw.choice((draw.randrange(1, 120), draw.randrange(1, 1100)))
        word = draw.choice((None, None, "SET", "INCR", "BEST"))
        if draw.random() < (0.9 if twin.rules.tickets and player else 0.65):
            twins = draw.choice(([twin], [twin], self.twins, self.twins[::-1]))
            tickets = self.some_tickets(member, twins) if player or draw.random() < 0.3 else []
            words = [*(["NX"] if (is_new := draw.random() < 0.1) else []), *([word] if word else []),
                     *(part for each in tickets for part in ("TICKET", each["text"]))]

            def result():
                return self.submit(twins, member, word, value, player is not None, tickets, is_new)
            if len(twins) == 1 and draw.random() < 0.8:
                self.expect(("LB.ADD", twin.name, *words, "WITHHELD", value, member), lambda: list(result()[0]), player)
            else:
                names = [each.name for each in twins]
                self.expect(("LB.SUBMIT", len(names), *names, *words, value, member), lambda: result() and None, player)
        elif draw.random() < 0.5:
            is_best = draw.random() < 0.3
            best = ["LT" if twin.rules.is_ascending else "GT"] if is_best else []
            self.expect(("ZADD", twin.name, *best, "CH", value, member),
                        lambda: self.zadd(twin, member, is_best, value, player), player)
        else:
            self.expect(("ZINCRBY", twin.name, value, member),
                        lambda: self.zincrby(twin, member, value, player), player)

    @staticmethod
    def submit(twins, member, word, value, is_player, tickets, is_new):
        """On all of them, or on none."""
        marks = [twin.mark_of(member, is_player, tickets) for twin in twins]
        before = [copy.deepcopy(vars(twin)) for twin in twins]
        try:
            return [twin.result(member, word, value, is_player, mark, is_new) for twin, mark in zip(twins, marks)]
        except Refused:
            for twin, was in zip(twins, before):
                vars(twin).update(was, bans=twin.bans)
            raise

    @staticmethod
    def zincrby(twin, member, value, player):
        twin.check_plain(player is not None)
        twin.result(member, "INCR", value, player is not None)

    @staticmethod
    def zadd(twin, member, is_best, value, player):
        twin.check_plain(player is not None)
        if twin.ban_of(member) == "full":
            raise Refused("BANNED")
        before = twin.entries_of(member).get(member)
        if is_best and before is not None and not twin.rules.is_better(value, before[0]):
            return 0  # GT leaves it out: no LIMITS look at it
        return twin.result(member, "BEST" if is_best else None, value, player is not None)[0]

    def foreign(self):
        player, member = self.draw.sample(PLAYERS, 2)
        words = self.draw.choice((("LB.ADD", "game", 1, member), ("ZADD", "game", 1, member), ("ZREM", "game", member),
                                  ("LB.TICKET", "game", member), ("LB.APPROVE", "game", player),
                                  ("LB.UNBAN", player), ("LB.BAN", member)))
        answer = self.ask(*words, player=player)
        self.assertIsInstance(answer, resp.Error, words)
        self.assertTrue(answer.text.startswith(("NOPERM", "TICKET")), (words, answer))

    def decide(self):
        draw, twin = self.draw, self.draw.choice(self.twins)
        member = draw.choice([each.member for each in twin.held] or PLAYERS)
        ids = [each.id for each in twin.held if each.member == member]
        number = draw.choice((None, *ids, 10**6))
        words = (twin.name, member, *([number] if number is not None else []))
        if draw.random() < 0.65:
            self.expect(("LB.APPROVE", *words), lambda: twin.approve(member, number))
        else:
            self.expect(("LB.REJECT", *words), lambda: twin.reject(member, number))

    def ban(self, member, pattern, until_ms, is_shadow):
        self.bans.setdefault(member, {})[pattern] = (until_ms, is_shadow)
        for twin in self.twins:
            twin.begin_ban(member, pattern, is_shadow)

    def unban(self, member):
        self.bans.pop(member, None)
        for twin in self.twins:
            twin.settle()

    def forget(self, member):
        for twin in self.twins:
            twin.forget(member)

    def move(self, member, to):
        for twin in self.twins:
            twin.move(member, to)

    def punish(self):
        draw, twin = self.draw, self.draw.choice(self.twins)
        member = draw.choice(PLAYERS)
        kind = draw.random()
        if kind < 0.55:
            is_shadow, pattern = draw.random() < 0.75, draw.choice(("*", "*", "g*", "h*"))
            seconds = draw.choice((None, 30, 600, 5000, 8000))
            words = [*(["SHADOW"] if is_shadow else []), *(["EX", seconds] if seconds else []),
                     *(["MATCH", pattern] if pattern != "*" else [])]
            until_ms = self.pair.now_ms() + seconds * 1000 if seconds else 1 << 62
            self.expect(("LB.BAN", member, *words), lambda: self.ban(member, pattern, until_ms, is_shadow))
        elif kind < 0.8:
            member = draw.choice(list(self.bans) or PLAYERS)
            self.expect(("LB.UNBAN", member), lambda: self.unban(member))
        elif kind < 0.86:
            self.expect(("LB.FORGET", member), lambda: self.forget(member))
        elif kind < 0.92:
            to = draw.choice([player for player in PLAYERS if player != member])
            self.expect(("LB.MOVE", member, to), lambda: self.move(member, to))
        else:
            player = member if draw.random() < 0.3 else None
            self.expect(("ZREM", twin.name, member), lambda: self.remove(twin, member, player), player)
        self.settle()

    @staticmethod
    def remove(twin, member, player):
        if player:
            raise Refused("NOPERM")
        return twin.remove(member)

    def carry(self):
        """The board goes away and comes back: all that it has with it."""
        kind, name = self.draw.randrange(4), self.draw.choice(self.twins).name
        other = f"{name}-other"
        if kind == 0:
            self.ask("RENAME", name, other)
            self.ask("RENAME", other, name)
        elif kind == 1:
            self.ask("COPY", name, other, "REPLACE")
            self.ask("DEL", name)
            self.ask("RENAME", other, name)
        elif kind == 2:
            dumped = self.pair.ask("DUMP", name)
            self.assertIsInstance(dumped, bytes)
            self.lines.append("DUMP, RESTORE")
            self.assertEqual(self.pair.ask("RESTORE", name, 0, dumped, "REPLACE"), b"OK")
        else:
            self.ask("BGREWRITEAOF")
        self.settle()

    def step_wall(self):
        """The machine's clock is set: the server's goes on, and believes it a minute later, or after a restart."""
        self.pair.clock.wall_us += self.draw.choice((-7_200_000_000, -90_000_000, -20_000_000, 20_000_000, 400_000_000))
        self.lines.append(f"the wall clock is {self.pair.clock.wall_us / 1e6} s ahead")
        self.pass_time(1)

    def reach(self):
        """A server that starts may be at the time of its last write: what comes of the time since is to be written first."""
        if self.pair.clock.wall_us < 0 or self.draw.random() < 0.5:
            self.agree()

    def crash(self):
        self.reach()
        self.lines.append("kill -9")
        self.pair.restart()
        self.settle()

    def fail_over(self):
        self.reach()
        self.lines.append("failover")
        self.pair.fail_over()
        self.settle()

    def run_round(self, seed):
        self.draw, self.lines, self.tickets, self.bans = random.Random(seed), [], [], {}
        self.pair = Pair(self)
        self.twins = [Twin(name, Rules(self.draw), self.bans) for name in ("game", "hall")]
        for twin in self.twins:
            self.ask("LB.CREATE", twin.name, *twin.rules.words())
        steps = ((self.write, 52), (self.take_ticket, 12), (self.decide, 9), (self.punish, 9), (self.foreign, 2),
                 (lambda: self.pass_time(self.draw.choice((61, 600, 3600, 7300))), 6), (self.carry, 2),
                 (self.step_wall, 1), (self.crash, 1.5), (self.fail_over, 1))
        for _ in range(STEPS):
            self.pass_time(self.draw.choice((1, 2, 3, 7, 12)))
            self.draw.choices([step for step, _ in steps], [weight for _, weight in steps])[0]()
            self.agree()
        self.crash()
        self.agree()
        for server in self.pair.servers:
            self.pair.drop_clients(server)
            server.stop()

    def test_all_of_it_together_is_what_each_part_says(self):
        print(f"test_trust: LEADERBOARD_TEST_SEED={SEED}", flush=True)
        for number in range(ROUNDS):
            with self.subTest(seed=SEED + number):
                self.run_round(SEED + number)
