#!/usr/bin/python3
"""Commands at random, right and hostile, against leaderboard.so under ASan and UBSan in redis-server.

    tests/module/fuzz.py [--seconds 15] [--seed N] [--module build/.../leaderboard-test.so]

    commands -> master with an AOF --LB.APPLY--> replica
                   '-- every few thousand: the boards hold together, the replica is equal, and so is what
                       the RDB, the AOF (also rewritten), a copy for a new replica and a kill leave behind

The words come from the table of commands (grammar.py), so a new command is in it at once. Each round is about three
features, which its boards have and most of its commands use, and one of BACKGROUND goes on in it. In between: MULTI,
scripts, waiting clients, damaged payloads for RESTORE and LB.APPLY with right checksums, periods that end, and a user
who may use some keys and commands alone, who must not change others. An error must have changed nothing. The last
commands of a round are printed if it fails; --seed and --first repeat it. The last line is "N commands, M errors in
S s: clean".
"""
import argparse
import fnmatch
import random
import re
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "moving")]
import redis

from connection import Connection
from crc import Crc
from grammar import KEYS, Grammar, features
from hosts import MODULE_TEST, Host, settled, wait_until

ROUND = 1500  # commands between two checks
BOARDS = ["layout", "money", "FIELD", "points", "22", "TIME", "41", "MS", "TAG", "country", "6", "TAG", "clan", "4",
          "board", "daily:{t}*", "default", "TAG", "clan", "4", "PERIOD", "HOUR", "ARCHIVE", "2",
          "board", "daily:*", "default", "TAG", "country", "2", "board", "m:*", "money",
          "board", "b", "default", "CAP", "20"]
NOTICE = r"\d+:[MSC] .{24} \* "  # lines of the log that tell of nothing wrong
RDB_MODULE = 7  # the first byte of a module's value
TIMER_S = 1.1  # the module's timer looks for what is due once a second
BACKGROUND = ["BGSAVE", "BGREWRITEAOF", "a replica that begins anew", "CONFIG SET maxmemory", "changes of ACL",
              "the limited user"]
# Those of a user, who has one kind of right to each of some patterns.
RIGHTS, PATTERNS = ["~", "~", "%R~", "%W~"], [b"daily:*", b"daily:1", b"m:*", b"b", b"*1", b"*p"]
COMMANDS = [["+@all"], ["+@all", "-@dangerous"], ["+@all", "-@write"], ["+@sortedset"], ["+@read", "+@write"]]
NOT_OF_KEYS = {"SELECT", "SWAPDB", "DEBUG", "CONFIG", "FLUSHALL", "FLUSHDB"}
HOUR_US = 3600 * 10 ** 6
DATABASES = 3


def asan_libraries():
    """What a sanitized module needs to be there first."""
    return " ".join(subprocess.run(["gcc", f"-print-file-name=lib{name}.so"], capture_output=True,
                                   text=True, check=True).stdout.strip() for name in ("asan", "ubsan"))


class Waiting:
    """Clients that wait, come and go."""

    def __init__(self, host, draw, grammar):
        self.host, self.draw, self.grammar = host, draw, grammar
        self.clients = []

    def step(self):
        for client in [each for each in self.clients if each.has_reply()]:
            client.read()
            client.close()
            self.clients.remove(client)
        if len(self.clients) > 6 or (self.clients and self.draw.random() < 0.1):
            self.clients.pop(0).close()
        client = Connection(self.host, self.draw.choice([2, 3]))
        name = self.draw.choice(["BZMPOP", "BZPOPMIN", "BZPOPMAX"])
        words = self.grammar.arguments(name)
        if words and self.draw.random() < 0.5:
            at = 0 if name == "BZMPOP" else -1
            words[at] = self.draw.choice([b"0", b"0.2", b"5"])
        number = client.ask("CLIENT", "ID")
        client.send(self.draw.choice([name, "LB." + name]), *words)
        self.clients.append(client)
        # It has run, or it waits: nothing of it comes between two commands of others.
        control = self.host.client()
        wait_until(lambda: client.has_reply() or "b" in control.client_list(client_id=[str(number)])[0]["flags"],
                   "it waits")

    def end(self):
        for client in self.clients:
            client.close()
        self.clients = []


class Fuzzer:
    def __init__(self, arguments):
        self.arguments = arguments
        environment = {"LD_PRELOAD": asan_libraries(), "UBSAN_OPTIONS": "print_stacktrace=1",
                       "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:allocator_may_return_null=1:"
                                       "detect_odr_violation=0"}
        options = ["--notify-keyspace-events", "KEA", "--appendonly", "yes", "--appendfsync", "no",
                   "--auto-aof-rewrite-percentage", "0", "--crash-log-enabled", "no",
                   "--databases", DATABASES]
        make = lambda *more: Host(*options, *more, boards=BOARDS, module=arguments.module,
                                  environment=environment)
        self.master = make("--io-threads", 1 + arguments.seed % 2)
        self.replica = make("--replicaof", f"127.0.0.1 {self.master.port}")
        self.crc, self.payloads, self.blobs = Crc(), [], []
        self.commands = self.errors = 0
        self.time_us = int(time.time() * 10 ** 6)
        names = Connection(self.master).ask("COMMAND", "LIST", "FILTERBY", "MODULE", "leaderboard")
        self.names = sorted(name.decode().upper().replace("|", " ") for name in names)
        self.grammar = None

    # ---- one command ----

    def damaged(self, payload):
        """Some bytes are others, or gone."""
        draw, out = self.draw, bytearray(payload)
        for _ in range(draw.choice([0, 1, 1, 2, 8])):
            if out:
                at = draw.randrange(len(out))
                act = draw.randrange(4)
                if act == 0:
                    out[at] = draw.randrange(256)
                elif act == 1:
                    out[at] ^= 1 << draw.randrange(8)
                elif act == 2:
                    del out[at:at + draw.randrange(1, 20)]
                else:
                    out[at:at] = out[draw.randrange(len(out)):][:draw.randrange(1, 40)]
        return bytes(out)

    def syntax_of(self, name):
        return name if self.grammar.knows(name) else name.removeprefix("LB.")

    def command_of_module(self):
        concerned = self.draw.random() < 2 / 3 and self.concerned
        name = self.draw.choice(concerned or self.names)
        plain = name[3:] if name.startswith("LB.Z") or name.startswith("LB.BZ") else name
        words = self.grammar.arguments(self.syntax_of(name))
        if "BZ" in name:  # it must not wait here
            words = [b"0.001" if word == b"0" else word for word in words]
            if name == "LB.BZMPOP" and words:
                words[0] = b"0.001"
            elif words:
                words[-1] = b"0.001"
        return [*self.draw.choice([name, plain]).split(), *words]

    def command_of_host(self):
        draw, key, other = self.draw, self.grammar.key(), self.grammar.key()
        number = draw.choice([b"0", b"1", b"2", b"100", b"100000"])
        choices = [
            ["DEL", key, other], ["UNLINK", key], ["RENAME", key, other], ["RENAMENX", key, other],
            ["COPY", key, other, "REPLACE"], ["COPY", key, other, "DB", draw.randrange(DATABASES)],
            ["MOVE", key, draw.randrange(DATABASES)], ["SWAPDB", 0, draw.randrange(DATABASES)],
            ["SELECT", draw.randrange(DATABASES)], ["EXPIRE", key, number], ["PEXPIRE", key, number],
            ["PERSIST", key], ["TYPE", key], ["OBJECT", "ENCODING", key], ["MEMORY", "USAGE", key],
            ["SET", draw.choice([b"text", b"text", key]), "x"],
            ["HSET", draw.choice([b"h:ann", b"h:ann", key]), "points", 1], ["SCAN", 0, "TYPE", "LB-board1"],
            ["DEBUG", "DIGEST-VALUE", key], ["COMMAND", "GETKEYS", *self.command_of_module()],
            ["COMMAND", "GETKEYSANDFLAGS", *self.command_of_module()],
            ["ACL", "DRYRUN", "limited", *self.command_of_module()],
            ["TOUCH", key], ["DUMP", key], ["GETDEL", key], ["SORT", key], ["EXISTS", key],
            ["MEMORY", "DOCTOR"], ["OBJECT", "FREQ", key], ["LB.TYPE", key], ["RANDOMKEY"],
        ]
        if draw.random() < 0.03:
            choices = [["FLUSHALL", "ASYNC"], ["FLUSHDB", "SYNC"], ["FLUSHALL"]]
        concerned = [words for words in choices if self.grammar.is_about(words[0])]
        return draw.choice(concerned if concerned and draw.random() < 2 / 3 else choices)

    def command_of_payload(self):
        draw = self.draw
        if self.blobs and draw.random() < 0.5:
            words = []
            for _ in range(draw.choice([1, 1, 1, 2, 3])):
                name, blob = draw.choice(self.blobs)
                words += [draw.choice([name, name, draw.choice(KEYS)]), self.damaged(blob)]
            return ["LB.APPLY", *words]
        if not self.payloads:
            return ["PING"]
        name, payload = draw.choice(["RESTORE", "LB.RESTORE"]), draw.choice(self.payloads)
        if draw.random() < 0.1:
            payload = self.damaged(payload)
        elif payload[0] == RDB_MODULE or name == "LB.RESTORE":  # the host's own types are its own matter
            payload = payload[:1] + self.damaged(payload[1:-10]) + payload[-10:-8]
            payload += self.crc.of(payload).to_bytes(8, "little")
        return [name, draw.choice(KEYS), draw.choice([0, 0, 100000]), payload,
                *draw.choice([[], ["REPLACE"], ["REPLACE"], ["REPLACE", "ABSTTL"]])]

    def command(self):
        kind = self.draw.random()
        if kind < 0.72:
            return self.command_of_module()
        if kind < 0.92:
            return self.command_of_host()
        return self.command_of_payload()

    def script(self):
        """Some commands in a script; an error ends some of them, and others go on."""
        calls, words = [], []
        for _ in range(self.draw.randrange(1, 5)):
            command = [str(word).encode() if not isinstance(word, bytes) else word
                       for word in self.command()]
            if command[0].decode() in NOT_OF_KEYS:
                continue
            call = self.draw.choice(["redis.call", "redis.pcall"])
            calls.append(f"{call}(unpack(ARGV,{len(words) + 1},{len(words) + len(command)}))")
            words += command
        return ["EVAL", "; ".join(calls) + " return 1", 0, *words]

    # ---- many ----

    def ask(self, connection, *words):
        self.log.append(words)
        reply = connection.ask(*words)
        self.commands += 1
        self.errors += isinstance(reply, redis.RedisError)
        if words[0] == "DUMP" and isinstance(reply, bytes) and len(reply) > 20:
            self.payloads = self.payloads[-63:] + [reply]
        return reply

    def gone(self):
        """How many keys the host has removed by itself."""
        stats = self.control.info("stats")
        return stats["expired_keys"] + stats["evicted_keys"]

    def ask_and_see(self, connection, words):
        """An error has changed nothing, if nothing expired meanwhile, and no period had ended."""
        for database in range(DATABASES):
            asked = Connection(self.master)
            asked.ask("SELECT", database)
            for key in asked.ask("KEYS", "*"):
                asked.ask("LB.ZCARD", key)  # a period that has ended ends now
            asked.close()
        before, gone = self.master.digest(), self.gone()
        reply = self.ask(connection, *words)
        if isinstance(reply, redis.RedisError) and self.master.digest() != before and self.gone() == gone:
            raise AssertionError(f"an error, but something changed: {reply}: {shown(words)}")

    def limit(self):
        """Another user with the name."""
        patterns = self.draw.sample(PATTERNS, self.draw.randrange(1, 4))
        self.ask(self.connections[0], "ACL", "SETUSER", "limited", "reset", "on", "nopass", "&*",
                 *self.draw.choice(COMMANDS),
                 *[self.draw.choice(RIGHTS).encode() + pattern for pattern in patterns])
        self.forbidden = [key for key in KEYS
                          if not any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)]

    def ask_limited(self, has_periods):
        """What the user may not use has not changed."""
        words = self.script() if self.draw.random() < 0.2 else self.command()
        if words[0] in NOT_OF_KEYS:
            return
        client = Connection(self.master, self.draw.choice([2, 3]))
        client.ask("AUTH", "limited", "x")
        digests = lambda: self.control.execute_command("DEBUG", "DIGEST-VALUE", *self.forbidden)
        before, gone = digests(), self.gone()
        self.ask(client, *words)
        if not has_periods and digests() != before and self.gone() == gone:
            raise AssertionError(f"a user has changed one of {self.forbidden}: {shown(words)}")
        client.close()

    def transaction(self, connection):
        if self.draw.random() < 0.3:
            self.ask(connection, "WATCH", self.draw.choice(KEYS))
        self.ask(connection, "MULTI")
        for _ in range(self.draw.randrange(1, 6)):
            self.ask(connection, *self.command())
        self.ask(connection, self.draw.choice(["EXEC", "EXEC", "EXEC", "DISCARD"]))

    def move_clock(self, by_us):
        """Periods end. From then on the clock stands still."""
        self.time_us += by_us
        self.ask(self.connections[0], "LB.TESTCLOCK", self.time_us, self.time_us // 1000)
        self.set_clock(self.replica)

    def set_clock(self, host):
        wait_until(lambda: host.client().execute_command("LB.TESTCLOCK", self.time_us, self.time_us // 1000),
                   "it has its data")

    def begin_replica_anew(self):
        client = self.replica.client()
        for words in (["REPLICAOF", "NO", "ONE"], ["FLUSHALL"], ["REPLICAOF", "127.0.0.1", self.master.port]):
            wait_until(lambda: client.execute_command(*words), "it has its data")

    def make_boards(self):
        """With the options of the round's features."""
        self.grammar.has_hostile = False
        if "league" in self.features:
            self.ask(self.connections[0], "LB.LEAGUE", "CREATE", self.grammar.favourite, "FIELD", "points", 20,
                     "PERIOD", "HOUR", "ROOM", 3, "TIERS", 3, "UP", 1, "DOWN", 1, "ARCHIVE", "ALL")
        for _ in range(20):
            self.ask(self.connections[0], "LB.CREATE", *self.grammar.arguments("LB.CREATE"))
        self.grammar.has_hostile = True

    def begin_round(self, number):
        self.draw = draw = random.Random(f"{self.arguments.seed} {number}")
        self.features, self.background = draw.sample(features(), 3), draw.choice(BACKGROUND)
        about = f"{', '.join(self.features)}; {self.background}"
        print(f"--seed {self.arguments.seed} --first {number}: {about}", flush=True)
        if self.grammar:
            self.grammar.end()
        self.grammar = Grammar(draw, self.features, draw.choice(KEYS))
        self.names = [name for name in self.names if self.grammar.knows(self.syntax_of(name))]
        self.concerned = [name for name in self.names
                          if self.grammar.concerns(self.syntax_of(name)) and not name.endswith("CREATE")]
        self.log, self.control = [], self.master.client(socket_timeout=60)
        self.connections = [Connection(self.master, protocol) for protocol in (2, 3, 2)]
        self.limit()
        self.make_boards()

    def step_background(self):
        """One of what goes on beside the commands."""
        if self.background in ("BGSAVE", "BGREWRITEAOF"):
            self.ask(self.connections[0], *self.background.split())  # refused while one goes on
        elif self.background == "a replica that begins anew":
            self.begin_replica_anew()
        elif self.background == "CONFIG SET maxmemory":
            near = self.control.info("memory")["used_memory"] - 50000
            limit, policy = self.draw.choice([(0, "noeviction"), (0, "noeviction"), (near, "noeviction"),
                                              (near, "allkeys-lru"), (near, "volatile-ttl")])
            self.ask(self.connections[0], "CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", limit)
        elif self.background == "changes of ACL":
            self.limit()

    def round(self, number):
        self.begin_round(number)
        waiting = Waiting(self.master, self.draw, self.grammar)
        has_periods = number % 2 == 1
        if not has_periods:  # what is due rolls over now, and nothing becomes due
            self.move_clock(48 * HOUR_US)
            time.sleep(TIMER_S)
        until = self.commands + ROUND
        transactions = 0.1 if self.grammar.is_about("MULTI") else 0
        while self.commands < until:
            connection, act = self.draw.choice(self.connections), self.draw.random()
            if self.draw.random() < 0.01:
                self.step_background()
            if act < 0.02 or self.draw.random() < transactions:
                self.transaction(connection)
            elif act < 0.05:
                self.ask(connection, *self.script())
            elif act < 0.06:
                waiting.step()
            elif act < 0.063 and has_periods:
                self.move_clock(self.draw.choice([10 ** 6, HOUR_US // 2, HOUR_US, 5 * HOUR_US]))
            elif act < 0.08 and not has_periods:
                self.ask_and_see(connection, self.command())
            elif act < 0.085:
                self.limit()
            elif act < 0.09:
                self.make_boards()
            elif act < (0.4 if self.background == "the limited user" else 0.16):
                self.ask_limited(has_periods)
            else:
                self.ask(connection, *self.command())
        waiting.end()
        for connection in self.connections:
            self.ask(connection, "DISCARD")
            connection.close()
        self.check(number)

    # ---- what must hold ----

    def boards_hold(self):
        for database in range(DATABASES):
            client = self.master.client(db=database)
            for key in client.scan_iter(_type="LB-board1"):
                members = client.execute_command("LB.ZREVRANGE", key, 0, -1)
                assert len(members) == client.execute_command("LB.ZCARD", key), (key, members)
                assert len(members) == len(set(members)), (key, members)
                for rank in {0, len(members) // 2, len(members) - 1} if members else ():
                    got = client.execute_command("LB.ZREVRANK", key, members[rank])
                    assert got == rank, (key, rank, got)

    def copy_is_equal(self, host, what):
        wait_until(lambda: host.digest() == self.master.digest(),
                   lambda: f"{what} is equal: {self.find_differences(host)}", 30)

    def find_differences(self, host):
        """(database, key, and digest, expiry and value of both)"""
        found = [] if host.digest()[1] == self.master.digest()[1] else ["bans"]
        for database in range(DATABASES):
            clients = [each.client(db=database) for each in (self.master, host)]
            for key in {key for client in clients for key in client.keys()}:
                said = [[client.execute_command("DEBUG", "DIGEST-VALUE", key), client.pexpiretime(key),
                         client.dump(key)] for client in clients]
                found += [(database, key, *said)] if said[0][:2] != said[1][:2] else []  # a value has its name
        return found

    def child_is_done(self):
        persistence = self.control.info("persistence")
        return not (persistence["aof_rewrite_in_progress"] or persistence["aof_rewrite_scheduled"]
                    or persistence["rdb_bgsave_in_progress"])

    def check(self, number):
        master = self.master
        self.control.config_set("maxmemory", 0)
        wait_until(self.child_is_done, "it is done")
        for database in range(DATABASES):
            client = master.client(db=database)
            for key in client.scan_iter():
                client.persist(key)
        settled(master, self.replica)
        self.copy_is_equal(self.replica, "the replica")
        self.boards_hold()
        digest = master.digest()
        act = number % 6
        if act == 0:
            self.control.execute_command("DEBUG", "RELOAD")
        elif act == 1:
            self.control.execute_command("DEBUG", "LOADAOF")
        elif act == 2:
            self.control.config_set("aof-use-rdb-preamble", self.draw.choice(["yes", "no"]))
            self.control.bgrewriteaof()
            wait_until(self.child_is_done, "rewritten")
            assert self.control.info("persistence")["aof_last_bgrewrite_status"] == "ok"
            self.control.execute_command("DEBUG", "LOADAOF")
        elif act == 3:
            master.kill()
            master.start()
            # It begins with the machine's time. Bans that end between that and the replica's would be on one of them.
            self.time_us = max(self.time_us, int(time.time() * 10 ** 6))
            for host in (master, self.replica):
                self.set_clock(host)
        elif act == 4:
            self.begin_replica_anew()
        elif act == 5:
            self.control.bgsave()
            wait_until(self.child_is_done, "saved")
            assert self.control.info("persistence")["rdb_last_bgsave_status"] == "ok"
        assert master.digest() == digest, f"after step {act} it is not what it was"
        settled(master, self.replica)
        self.copy_is_equal(self.replica, "the replica")
        self.look_at_logs()
        self.learn_blobs()
        if number % 8 == 7:
            self.control.flushall()
        for database in range(DATABASES):
            client = master.client(db=database)
            for ban in client.execute_command("LB.BANS", "COUNT", 10000)[1]:
                client.execute_command("LB.UNBAN", ban[0])

    def look_at_logs(self):
        for host in (self.master, self.replica):
            assert host.is_ready()
            log = host.log.read_text(errors="replace")
            found = re.search(r"ERROR: \w+Sanitizer|runtime error:|== CRITICAL ==|CHECK|assert", log)
            assert not found, log[max(0, found.start() - 500):][:6000]

    def learn_blobs(self):
        """Effects that were written, to be damaged."""
        files = sorted(Path(self.master.directory, "appendonlydir").glob("*.incr.aof"))
        text = files[-1].read_bytes()[-200000:] if files else b""
        for found in re.finditer(rb"\*3\r\n\$8\r\nLB\.APPLY\r\n\$\d+\r\n(.*?)\r\n\$(\d+)\r\n", text):
            blob = text[found.end():found.end() + int(found.group(2))]
            if self.draw.random() < 0.2 and len(blob) < 20000:
                self.blobs = self.blobs[-255:] + [(found.group(1), blob)]

    # ---- the whole ----

    def run(self):
        began, number = time.monotonic(), self.arguments.first
        while time.monotonic() < began + self.arguments.seconds or number == self.arguments.first:
            try:
                self.round(number)
            except Exception:
                self.tell_failure(number)
                raise
            number += 1
        self.end()
        print(f"{self.commands} commands, {self.errors} errors, {number - self.arguments.first} rounds "
              f"in {time.monotonic() - began:.0f} s: clean", flush=True)

    def end(self):
        """Nothing leaks: the sanitizer looks at the end of the process."""
        for host in (self.replica, self.master):
            try:
                host.client().execute_command("SHUTDOWN", "NOSAVE", "NOW", "FORCE")
            except redis.ConnectionError:
                pass
            host.process.wait(60)
            log = host.log.read_text(errors="replace")
            assert "detected memory leaks" not in log, log[log.find("detected memory leaks") - 200:][:8000]

    def tell_failure(self, number):
        print(f"it failed: --seed {self.arguments.seed} --first {number}", flush=True)
        for words in self.log[-12:]:
            print("   ", shown(words))
        for host in (self.master, self.replica):
            print(f"--- {host.log}:")
            log = host.log.read_text(errors="replace")
            print("".join(line[:1000] for line in log.splitlines(True) if not re.match(NOTICE, line))[-6000:])


def shown(words):
    return " ".join(repr(word)[:120] for word in words)[:1500]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0, help="0: another one every time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    parser.add_argument("--module", default=MODULE_TEST)
    arguments = parser.parse_args()
    arguments.seed = arguments.seed or random.randrange(1, 1 << 30)
    print(f"seed {arguments.seed}", flush=True)
    Fuzzer(arguments).run()


if __name__ == "__main__":
    main()
