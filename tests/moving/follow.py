"""What the tests of following share: every command that changes sorted sets and hashes, at random, and the
comparison of the two servers' keys."""
import random
import socket
import threading
import time

import redis

import process
import servers
from resp import encode

# A score with four binary digits behind the point, so that sums stay exact.
SETTINGS = ["--layout", "money FIELD balance 48 SIGNED SCALE 4 TIME 16 D", "--board",
            "money:* money", "--layout", "times FIELD ms 44 ASC SIGNED", "--board", "time:* times"]
KINDS = ("plain", "money", "time")
BOARDS = 6
MEMBERS = 700
BATCH = 50


def score(kind, choose):
    if kind == "money":
        return choose.randrange(-4000, 4000) / 16
    return choose.choice([0, 1, 1, 2, 3, 3, choose.randrange(-50, 50), choose.randrange(1000000)])


class Writer:
    """Commands for one connection."""

    def __init__(self, seed):
        self.choose = random.Random(seed)
        table = [(name[3:], getattr(self, name)) for name in dir(self) if name.startswith("do_")]
        self.table = sorted(table)
        self.counts = {name: 0 for name, _ in table}

    def member(self):
        number = self.choose.randrange(MEMBERS)
        return self.choose.choice([b"m%d", b"Player %d", b"\xff\x00%d"]) % number

    def key(self, kind=None):
        kind = kind or self.choose.choice(KINDS)
        return f"{kind}:{self.choose.randrange(BOARDS)}"

    def pairs(self, kind, most=8):
        pairs = []
        for _ in range(self.choose.randint(1, most)):
            pairs += [score(kind, self.choose), self.member()]
        return pairs

    def do_zadd(self):
        kind = self.choose.choice(KINDS)
        flags = self.choose.choice([[], [], ["NX"], ["XX"], ["GT"], ["LT"], ["XX", "GT"],
                                    ["XX", "LT", "CH"], ["CH"]])
        return ["ZADD", self.key(kind), *flags, *self.pairs(kind)]

    do_zadd_2 = do_zadd_3 = do_zadd_4 = do_zadd

    def do_zadd_many(self):
        kind = self.choose.choice(KINDS)
        return ["ZADD", self.key(kind), *self.pairs(kind, 60)]

    do_zadd_many_2 = do_zadd_many_3 = do_zadd_many

    def do_zadd_incr(self):
        kind = self.choose.choice(KINDS)
        flags = self.choose.choice([[], ["NX"], ["XX"], ["GT"], ["LT"]])
        return ["ZADD", self.key(kind), *flags, "INCR", score(kind, self.choose), self.member()]

    def do_zincrby(self):
        kind = self.choose.choice(KINDS)
        return ["ZINCRBY", self.key(kind), score(kind, self.choose), self.member()]

    do_zincrby_2 = do_zincrby

    def do_zrem(self):
        return ["ZREM", self.key(), *(self.member() for _ in range(self.choose.randint(1, 9)))]

    def do_zpopmin(self):
        return ["ZPOPMIN", self.key(), *self.choose.choice([[], [1], [3], [7]])]

    def do_zpopmax(self):
        return ["ZPOPMAX", self.key(), *self.choose.choice([[], [2], [5]])]

    def do_bzpopmin(self):
        return [self.choose.choice(["BZPOPMIN", "BZPOPMAX"]), self.key(), self.key(), 0.001]

    def do_zmpop(self):
        return ["ZMPOP", 2, self.key(), self.key(), self.choose.choice(["MIN", "MAX"]), "COUNT",
                self.choose.randint(1, 4)]

    def do_zremrangebyrank(self):
        start = self.choose.randint(-30, 30)
        return ["ZREMRANGEBYRANK", self.key(), start, start + self.choose.randint(0, 9)]

    def do_zremrangebyrank_trim(self):
        return ["ZREMRANGEBYRANK", self.key(), 0, -500]

    def do_zremrangebyscore(self):
        low = self.choose.randrange(-60, 1000)
        return ["ZREMRANGEBYSCORE", self.key(), self.choose.choice([low, f"({low}", "-inf"])
                if self.choose.random() < .9 else -40, self.choose.choice([low, low + 3, f"({low}"])]

    def do_zremrangebylex(self):
        key = f"lex:{self.choose.randrange(3)}"
        if self.choose.random() < 0.6:
            return ["ZADD", key, *sum(([7, self.member()] for _ in range(6)), [])]
        return ["ZREMRANGEBYLEX", key, self.choose.choice([b"-", b"[m1", b"(Player 2"]),
                self.choose.choice([b"[m15", b"(Player 22", b"(m2"])]

    def sources(self, kind):
        return [self.key(kind) for _ in range(self.choose.randint(1, 3))]

    def do_zstore(self):
        kind = self.choose.choice(KINDS)
        keys = self.sources(kind)
        command = [self.choose.choice(["ZUNIONSTORE", "ZINTERSTORE"]), f"{kind}:result",
                   len(keys), *keys]
        if self.choose.random() < 0.5:
            command += ["WEIGHTS", *(self.choose.choice([1, 2, -1, 0]) for _ in keys)]
        if self.choose.random() < 0.7:
            command += ["AGGREGATE", self.choose.choice(["SUM", "MIN", "MAX"])]
        return command

    def do_zdiffstore(self):
        kind = self.choose.choice(KINDS)
        keys = self.sources(kind)
        return ["ZDIFFSTORE", self.choose.choice([f"{kind}:result", keys[0]]), len(keys), *keys]

    def do_zrangestore(self):
        kind = self.choose.choice(KINDS)
        rev = self.choose.choice([[], ["REV"]])
        how = self.choose.randrange(4)
        if how == 0:
            first = self.choose.randint(-40, 40)
            rows = [first, first + self.choose.randint(0, 30), *rev]
        elif how == 1:
            rows = [0, "(900", "BYSCORE"] if not rev else [900, "(0", "BYSCORE", "REV"]
        elif how == 2:
            rows = (["-inf", "+inf", "BYSCORE"] if not rev else ["+inf", "-inf", "BYSCORE", "REV"])
            rows += ["LIMIT", self.choose.randint(0, 20), self.choose.choice([-1, 3, 25])]
        else:
            rows = [0, -1]
        return ["ZRANGESTORE", f"{kind}:range", self.key(kind), *rows]

    def do_combined_with_a_set(self):
        kind = self.choose.choice(["plain", "money"])
        return [self.choose.choice(["ZUNIONSTORE", "ZINTERSTORE"]), f"{kind}:result", 2, self.key(kind),
                self.choose.choice(["set:1", "set:2"]), *self.choose.choice([[], ["AGGREGATE", "MAX"]])]

    def do_place(self):
        key = f"place:{self.choose.randrange(3)}"
        return self.choose.choice([
            ["GEOADD", key, self.choose.randrange(180), self.choose.randrange(80), self.member()],
            ["GEORADIUS", key, 15, 37, 5000, "km", "STORE", "place:near"],
            ["GEOSEARCHSTORE", "place:found", key, "FROMLONLAT", 15, 37, "BYRADIUS", 9000, "km"]])

    def do_newer(self):
        """What this version does not know is an error, and changes nothing."""
        key, other = self.key("plain"), self.key("plain")
        field = f"field {self.choose.randrange(20)}"
        return self.choose.choice([
            ["ZMOVE", key, other, "MIN", "COUNT", 2], ["ZMOVEMEMBER", key, other, "MEMBERS", 1, self.member()],
            ["HSETEX", "hash:1", "EX", 100, "FIELDS", 1, field, 1], ["HGETDEL", "hash:1", "FIELDS", 1, field],
            ["HEXPIRE", "hash:2", 0, "FIELDS", 1, field], ["MSETEX", 1, key, 1, "EX", 100], ["DELEX", key]])

    def do_database(self):
        return self.choose.choice([["SWAPDB", 0, 3], ["FLUSHDB"]] + [["ECHO", "x"]] * 12)

    def do_key(self):
        kind = self.choose.choice(KINDS)
        a, b = self.key(kind), self.key(kind)
        return self.choose.choice([
            ["DEL", a], ["UNLINK", a, b], ["RENAME", a, b], ["RENAMENX", a, f"{kind}:new"],
            ["COPY", a, b, "REPLACE"], ["COPY", a, f"{kind}:copy"], ["COPY", a, a, "DB", 3],
            ["MOVE", a, 3], ["PERSIST", a], ["EXPIRE", a, 1000], ["PEXPIRE", a, 20],
            ["PEXPIREAT", a, int(time.time() * 1000) + 30], ["EXPIREAT", a, 4102444800],
            ["PEXPIRE", a, 5], ["SET", a, "text"], ["SET", b, 1, "EX", 100], ["GETSET", a, 1],
            ["MSET", a, 1, b, 2], ["SETEX", a, 100, "x"], ["SORT", "list", "STORE", a],
            ["SORT", a, "BY", "nosort", "STORE", "list"], ["ZADD", a, 1, "ann"],
            ["SINTERSTORE", f"{kind}:result", "set:1", "set:2"], ["BITOP", "OR", a, "text"], ["DEL", a],
            ["TOUCH", a], ["DEL", f"{kind}:new", f"{kind}:copy"]])

    def do_free(self):
        """What was overwritten with another type is free again."""
        return ["EVAL", "for _, k in ipairs(KEYS) do local t = redis.call('TYPE', k).ok "
                "if t ~= 'zset' and t ~= 'none' then redis.call('DEL', k) end end", BOARDS * 3,
                *(f"{kind}:{i}" for kind in KINDS for i in range(BOARDS))]

    do_free_2 = do_free_3 = do_free

    def do_script(self):
        return ["EVAL", "redis.call('ZADD', KEYS[1], 5, ARGV[1]) "
                "redis.call('ZINCRBY', KEYS[1], 2, ARGV[2]) "
                "return redis.call('ZPOPMIN', KEYS[1], 2)", 1, self.key(), self.member(),
                self.member()]

    def do_hash(self):
        key = f"hash:{self.choose.randrange(4)}"
        field = f"field {self.choose.randrange(20)}"
        number = f"number {self.choose.randrange(20)}"
        return self.choose.choice([
            ["HSET", key, field, self.choose.randrange(1000), "other", "x" * 100],
            ["HMSET", key, field, "text", b"\xff\x00", b"\x00"], ["HSETNX", key, field, "new"],
            ["HINCRBY", key, number, self.choose.randint(-9, 9)],
            ["HINCRBYFLOAT", key, number.replace("number", "float"), 0.5], ["HDEL", key, field],
            ["HDEL", key, number, "other"], ["RENAME", key, "hash:9"]])

    do_hash_2 = do_hash

    def do_other(self):
        return self.choose.choice([
            ["SADD", "set:1", self.member()], ["SADD", "set:2", self.member()], ["SPOP", "set:1"],
            ["RPUSH", "list", self.choose.randrange(9)], ["LPOP", "list"], ["APPEND", "text", "x"],
            ["XADD", "stream", "*", "a", 1], ["PFADD", "count", self.member()],
            ["SETBIT", "bits", 7, 1], ["PUBLISH", "channel", "message"], ["INCR", "number"],
            ["SETRANGE", "text", 3, "abc"], ["SET", "short", 1, "PX", 5]])

    def command(self):
        name, make = self.choose.choice(self.table)
        self.counts[name] += 1
        return make()

    def batch(self):
        """Bytes of some commands, some of them transactions. Replies that are errors are part of it:
        such commands change nothing."""
        commands = [self.command() for _ in range(BATCH)]
        if self.choose.random() < 0.3:
            commands = [["MULTI"], *commands, ["EXEC"]]
        return b"".join(encode(command) for command in commands)


class Writers:
    """So many connections that write at about a rate, until they are stopped."""

    def __init__(self, port, seed, count=4, rate=20000, writer=Writer):
        self.is_stopped = threading.Event()
        self.total = 0
        self.rate = rate / count
        self.threads = [threading.Thread(target=self.run, args=(port, writer(f"{seed} {i}"), i))
                        for i in range(count)]
        self.begin = time.monotonic()
        for thread in self.threads:
            thread.start()

    def run(self, port, writer, number):
        """Without replies: the commands are what counts. The last one says that all have run."""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
            link.sendall(encode(["CLIENT", "REPLY", "OFF"]) +
                         encode(["SELECT", 3 if number == 3 else 0]))
            done = 0
            while not self.is_stopped.is_set():
                link.sendall(writer.batch())
                done += BATCH
                self.total += BATCH
                ahead = done / self.rate - (time.monotonic() - self.begin)
                if ahead > 0:
                    self.is_stopped.wait(ahead)
            link.sendall(encode(["CLIENT", "REPLY", "ON"]) + encode(["ECHO", "the end"]))
            heard = b""
            while not heard.endswith(b"the end\r\n"):
                heard += link.recv(65536) or b"the end\r\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.is_stopped.set()
        for thread in self.threads:
            thread.join()
        print(f"{self.total / (time.monotonic() - self.begin):.0f} commands a second", end=" ")


def content(client, is_ours):
    """All keys of a database that are sorted sets or hashes: values, and when they expire."""
    found = {}
    for name in client.scan_iter(count=1000):
        kind = client.type(name)
        if kind == b"zset":
            value = dict(client.zrange(name, 0, -1, withscores=True))
        elif kind == b"hash":
            value = client.hgetall(name)
        else:
            assert not is_ours, (name, kind)
            continue
        found[name] = (kind, value, servers.expire_time(client, name))
    return found


def source_info(ours):
    return ours.info("replication")


def is_following(ours):
    info = source_info(ours)
    return info.get("source_state") == "follows" and info["master_link_status"] == "up"


def wait_until(claim, what="what is waited for", limit_s=60, step_s=0.01):
    process.wait_until(claim, what, limit_s, step_s)


def wait_until_it_follows(ours):
    wait_until(lambda: is_following(ours), lambda: f"it follows: {source_info(ours)}")


def wait_for_offset(old, ours, limit_s=60):
    """Ours has all that the source has."""
    offset = old.info("replication")["master_repl_offset"]

    def is_there():
        info = source_info(ours)
        assert info.get("source_state") != "stopped", info
        return int(info.get("source_applied_offset", -1)) >= offset

    wait_until(is_there, lambda: f"offset {offset}: {source_info(ours)}", limit_s)


def again(seconds, least_s, most_s):
    """For so long, after each pause."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(least_s, most_s))
        yield


def expires_soon(client, soon_ms=1000):
    """Has any key of any database less than this to live?"""
    for name in client.info("keyspace"):
        database = redis.Redis(**{**client.connection_pool.connection_kwargs, "db": int(name[2:])})
        pipeline = database.pipeline(transaction=False)
        for key in database.scan_iter(count=1000):
            pipeline.pttl(key)
        if any(0 <= left_ms < soon_ms for left_ms in pipeline.execute()):
            return True
    return False


def cut_over(old, ours, limit_s=60):
    """As docs/migrate/: pause the source, compare offsets, REPLICAOF NO ONE. Then wait for keys that
    expire soon: one that does so between two reads of a comparison is there in the first one only."""
    try:
        old.execute_command("CLIENT", "PAUSE", 120000, "WRITE")
    except redis.ResponseError:  # before Redis 6.2
        old.config_set("min-replicas-to-write", 1000)
    wait_for_offset(old, ours, limit_s)
    ours.execute_command("REPLICAOF", "NO", "ONE")
    wait_until(lambda: not expires_soon(old), "no key expires any more: the source is paused", limit_s)
