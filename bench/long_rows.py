"""long_commands.py's rows: every command of the table, in one form or several, and what happens in the background.

Texts are requests, with ';' between them. N is the number of members of the large boards, and of 10 keys, fields and the like there is
one. {member} is one at random, {pair:N/1000} so many scores and members, {=N/2} the number itself. The boards:

    board, other   N members, the same       half   the worse half of them      tags   N members with tags
    hash           N/10 fields               key:0 ... and hash:0 ...           N/10 keys of one member, and of three fields
    league, window, rolling                  N/100 members                      s      what a row changes: a copy
    ladder         N players with ratings
"""
import re
import socket
import subprocess
import time
from dataclasses import dataclass

from servers import Server

SHORT = 500  # calls of what takes some microseconds
LIMIT_S = 600


@dataclass
class Row:
    command: str
    text: str  # what is sent and measured
    calls: int = 1  # several: pipelined
    before: tuple = ()  # each time, on another connection, not measured
    after: tuple = ()  # once, behind the last time
    opening: str = ""  # first on the same connection, not measured
    ends: bool = False  # the reply is the end of the connection
    stops: bool = False  # the server ends, and is started again
    is_followed: bool = False  # what it leaves to do afterwards is measured with it
    is_once: bool = False
    allowed: str = ""  # an error that is its answer here
    run: object = None  # instead of text: a function of the lab

    @property
    def is_estimated(self):
        return self.calls == 1 and not self.ends

    def shown(self):
        if self.run:
            return self.text
        text = re.sub(r"\{(key|hash)\}", r"\1:1", re.sub(r"\{=([\w/]+)\}", r"\1", self.text))
        return "`" + re.sub(r"\{(\w+)\}", r"\1", re.sub(r"\{(\w+):([\w/]+)\}", r"<\2 \1s>", text)) + "`"


def row(text, calls=1, command=None, **how):
    """A row of a command, which is named by the first word or two of its text."""
    words = text.split()
    if command is None:
        command = " ".join(words[:2]) if words[0] in CONTAINERS and len(words) > 1 else words[0]
    return Row(command, text, calls, **how)


CONTAINERS = {"ACL", "CLIENT", "COMMAND", "CONFIG", "LATENCY", "LB.LEAGUE", "MEMORY", "MODULE", "OBJECT", "PUBSUB", "SLOWLOG"}
COPY = {"before": ("COPY board s REPLACE",)}
COPY_TAGS = {"before": ("COPY tags s REPLACE",)}
DROP = {"before": ("DEL s",)}


def in_multi(text, **how):
    """A command in a transaction, where it cannot go in steps."""
    return row(f"MULTI ; {text} ; EXEC", command=text.split()[0], **how)


# ---- replication: rows that need another server ----

class Replica(Server):
    def command(self, words):
        return [*words, "--busy-command-limit", "0"]


def wait_for(claim, what):
    give_up_at = time.monotonic() + LIMIT_S
    while not claim():
        if time.monotonic() > give_up_at:
            raise SystemExit(f"{what} does not happen")
        time.sleep(0.01)


def follow(lab):
    """A new replica, until it has a full copy."""
    lab.replica = Replica("replica", lab.program, ["--replicaof", f"127.0.0.1 {lab.server.port}"], core=None)
    wait_for(lambda: lab.replica.info("replication")["master_link_status"] == "up", "the full copy")


def fail_over(lab):
    """To the replica, and back."""
    for old, new in ((lab.server, lab.replica), (lab.replica, lab.server)):
        old.ask(f"FAILOVER TO 127.0.0.1 {new.port} TIMEOUT 60000")
        wait_for(lambda: new.info("replication")["role"] == "master", "the failover")
        wait_for(lambda: old.info("replication").get("master_link_status") == "up", "the link")
    lab.replica.stop()


def dump(*words):
    """What a replica of Redis asks for: until the dump file has come whole."""
    def run(lab):
        with socket.create_connection(("127.0.0.1", lab.server.port), timeout=LIMIT_S) as sock:
            sock.sendall(b" ".join(words) + b"\r\n")
            head = b""
            while not (found := re.search(rb"\$(EOF:([^\r]{40})|(\d+))\r\n", head)):
                head += received(sock)
            tail = head[found.end():]
            left = int(found[3]) - len(tail) if found[3] else None
            while left > 0 if left is not None else found[2] not in tail:
                data = received(sock)
                left = left - len(data) if left is not None else None
                tail = (tail + data)[-128:]
    return run


def received(sock):
    data = sock.recv(1 << 20)
    if not data:
        raise SystemExit("the server closed the connection")
    return data


# ---- the background ----

def saved(command, figure):
    """BGSAVE and its like, until the file is there."""
    def is_done(lab):
        return lab.server.info("persistence")[figure] == "0"

    def run(lab):
        lab.prepared(lambda: wait_for(lambda: is_done(lab), "an end"))
        lab.server.ask(command)
        wait_for(lambda: is_done(lab), command)
    return run


def temporary(lab, count):
    """Keys that expire at one moment, which is now."""
    at = int(time.time() * 1000) + 5000 + count // 5
    lab.fill(f"{what}\r\n" for i in range(count) for what in (f"ZADD temporary:{i} 1 a", f"PEXPIREAT temporary:{i} {at}"))
    time.sleep(max(0.0, at / 1000 - time.time() - 0.05))


def expire_many(lab):
    before = int(lab.server.ask("DBSIZE"))
    count = max(1, lab.members // 10)
    lab.prepared(lambda: temporary(lab, count))
    wait_for(lambda: int(lab.server.ask("DBSIZE")) <= before, "the expiry")


def expire_one(lab):
    lab.server.ask("PEXPIRE s 1")
    wait_for(lambda: lab.server.ask("EXISTS s") == "0", "the expiry")


def end_period(lab):
    """The hour of a time zone ends with this minute, or the next one."""
    def rolled(lab):
        return int(lab.stats()["rolled_boards"])

    def begin():
        left = 60 - time.time() % 60
        if left < 3:
            time.sleep(left)
        minute = (int(time.time()) // 60 + 1) % 60
        before.append(rolled(lab))
        lab.do(f"LB.ALTER s PERIOD HOUR TZ -00:{minute:02d} ARCHIVE 1 COPY",
               f"LB.ALTER rolling PERIOD HOUR TZ -00:{minute:02d} ARCHIVE 1")
        time.sleep(max(0, 59.8 - time.time() % 60))
    before = []
    lab.prepared(begin)
    wait_for(lambda: rolled(lab) >= before[0] + 2, "the end of the period")
    lab.settle()
    lab.do("LB.ALTER s PERIOD NONE", "LB.ALTER rolling PERIOD NONE")


TASKS = [
    Row("", "a board of N members that expires", run=expire_one, **COPY),
    Row("", "N/10 keys that expire at one moment", run=expire_many, is_once=True),
    Row("", "the end of a period: a board of N members with `COPY`, one without", run=end_period, is_once=True, **COPY),
]

ROWS = [
    # connection
    row("AUTH default x", SHORT), row("ECHO hello", SHORT), row("HELLO 3", SHORT), row("PING", SHORT), row("SELECT 0", SHORT),
    row("READONLY", SHORT, allowed="cluster support"),
    row("READWRITE", SHORT, allowed="cluster support"), row("RESET", SHORT), row("QUIT", ends=True),
    row("CLIENT CACHING YES", SHORT, opening="HELLO 3 ; CLIENT TRACKING ON OPTIN"), row("CLIENT GETNAME", SHORT),
    row("CLIENT GETREDIR", SHORT), row("CLIENT HELP", SHORT), row("CLIENT ID", SHORT), row("CLIENT INFO", SHORT),
    row("CLIENT KILL ID 99999999", SHORT), row("CLIENT LIST", SHORT), row("CLIENT NO-EVICT OFF", SHORT),
    row("CLIENT NO-TOUCH OFF", SHORT), row("CLIENT NUMBERS STRINGS", SHORT), row("CLIENT PAUSE 0 WRITE", SHORT),
    row("CLIENT REPLY ON", SHORT), row("CLIENT SETINFO LIB-NAME bench", SHORT), row("CLIENT SETNAME bench", SHORT),
    row("CLIENT TRACKING ON", SHORT, opening="HELLO 3"), row("CLIENT TRACKINGINFO", SHORT),
    row("CLIENT UNBLOCK 99999999", SHORT), row("CLIENT UNPAUSE", SHORT),
    # keys
    row("COPY board s", **DROP), in_multi("COPY board s", **DROP), in_multi("COPY hash s", **DROP),
    row("DEL {key:N/1000}"), row("DEL s", is_followed=True, **COPY), row("UNLINK {hash:N/1000}"),
    row("DUMP half"), row("DUMP hash"), row("RESTORE s 0 {dump}", **DROP), row("EXISTS {key:N/1000}"), row("TOUCH {key:N/1000}"),
    row("EXPIRE {key} 10000", SHORT), row("EXPIREAT {key} 4000000000", SHORT), row("EXPIRETIME {key}", SHORT),
    row("PEXPIRE {key} 10000000", SHORT), row("PEXPIREAT {key} 4000000000000", SHORT), row("PEXPIRETIME {key}", SHORT),
    row("PERSIST {key}", SHORT), row("PTTL {key}", SHORT), row("TTL {key}", SHORT), row("TYPE {key}", SHORT),
    row("KEYS *"), row("KEYS nothing*"), row("OBJECT ENCODING {key}", SHORT), row("OBJECT FREQ {key}", SHORT, allowed="ERR"),
    row("OBJECT IDLETIME {key}", SHORT, allowed="ERR"), row("OBJECT REFCOUNT {key}", SHORT), row("OBJECT HELP", SHORT), row("RANDOMKEY", SHORT),
    row("RENAME s s2", after=("DEL s2",), **COPY), row("RENAMENX s s2", before=("DEL s2", "COPY board s REPLACE"), after=("DEL s2",)),
    row("SCAN 0 COUNT 1000", 10), row("WAIT 0 10", SHORT),
    # hashes
    row("HSET {hash} level {score}", SHORT), row("HSET hash {value:N/1000}"), row("HMSET hash {value:N/1000}"),
    row("HDEL hash {field:N/1000}"), row("HEXISTS {hash} name", SHORT), row("HGET {hash} name", SHORT),
    row("HGETALL {hash}", SHORT), row("HGETALL hash"), row("HKEYS hash"), row("HVALS hash"), row("HLEN hash", SHORT),
    row("HMGET {hash} name country level", SHORT), row("HMGET hash {field:N/1000}"), row("HINCRBY {hash} level 1", SHORT),
    row("HINCRBYFLOAT {hash} level 1.5", SHORT), row("HRANDFIELD hash -{=N/100}"), row("HRANDFIELD hash {=N/100} WITHVALUES"),
    row("HSCAN hash 0 COUNT 1000", 10), row("HSETNX {hash} name eva", SHORT), row("HSTRLEN {hash} name", SHORT),
    # leaderboards
    row("LB.ABOVE tags {packed:N/1000}"), row("LB.ABOVE tags {packed:100} WHERE country c1 WHERE clan clan1"),
    row("LB.ABOVE tags {packed:100} WHERE country c1 WHERE device d1"),
    row("LB.ADD board {pair}", SHORT), row("LB.ADD board {pair:N/1000}"),
    row("LB.ADD tags TAG country c1 TAG clan clan2 {pair:1000}"), row("LB.ADD window INCR {pair:1000}"),
    row("LB.ALTER s CAP {=N/2}", is_followed=True, **COPY_TAGS), row("LB.ALTER s TAG clan 15", is_followed=True, **COPY_TAGS),
    row("LB.AROUND tags MEMBER {member} 5", SHORT), row("LB.AROUND tags MEMBER {member} 5 WITHIN country TAGS", SHORT),
    row("LB.AROUND tags SCORE {score} {=N/100}"), row("LB.BAN {new}"), row("LB.BANS", SHORT), row("LB.COUNT tags", SHORT),
    row("LB.COUNT tags BY country"), row("LB.COUNT tags BY clan"), row("LB.COUNT tags BY country BY clan"),
    row("LB.COUNT tags 0 {=N/2} BY country BY device"), row("LB.COUNT tags WHERE country c1 WHERE device d1"),
    row("LB.CREATE {ns} FIELD score 33", SHORT), row("LB.CUTS tags 100", 10), row("LB.CUTS tags {=N/1000}"),
    row("LB.CUTS tags 100 WHERE country c1 WHERE device d1"), row("LB.FORGET {member}"),
    row("LB.GET tags 1 {member}", SHORT), row("LB.GET tags {=N/1000} {member:N/1000}"),
    row("LB.GET tags {=N/1000} {member:N/1000} SORT TAGS"), row("LB.GET tags {=N/1000} {member:N/1000} WITHIN country"),
    row("LB.GET tags 100 {member:100} WHERENOT country c1 WHERENOT device d1"),
    row("LB.GET tags 1000 {member:1000} WITHIN clan"), row("LB.GET board {=N/1000} {member:N/1000} SINCE other"),
    row("LB.HIST tags {edge:N/1000}"), row("LB.HIST tags {edge:100} WHERE country c1 WHERE device d1"),
    row("LB.HELD held COUNT 500", before=("DEL held", "LB.CREATE held FIELD points 32 HOLD ALL OVER 0", "LB.ADD held {newpair:500}")),
    row("LB.APPROVE held ann", before=("DEL held", "LB.CREATE held FIELD points 32 HOLD ALL OVER 5", "LB.ADD held 9 ann"), is_once=True),
    row("LB.REJECT held ann", before=("DEL held", "LB.CREATE held FIELD points 32 HOLD ALL OVER 5", "LB.ADD held 9 ann"), is_once=True),
    row("LB.INFO tags", SHORT), row("LB.LEAGUE ADD league INCR 1 {new}", SHORT),
    row("LB.LEAGUE CREATE {ns} FIELD points 33 PERIOD WEEK ROOM 50 TIERS 5 UP 5 DOWN 5", SHORT), row("LB.LEAGUE GET league {member}", SHORT),
    row("LB.LEAGUE INFO league", SHORT), row("LB.LEAGUE REMOVE league {member}", SHORT), row("LB.LEAGUE SET league 2 user:000000000000", SHORT),
    row("LB.LEAGUE HELP", SHORT), row("LB.LIST"), row("LB.MATCH ladder TEAM 1 {member} TEAM 1 {new}", SHORT),
    row("LB.MOVE {member} {new}"), row("LB.PREDICT ladder TEAM 1 {member} TEAM 1 {new}", SHORT), row("LB.QUANTILE tags {quantile:N/1000}"),
    row("LB.QUANTILE tags {quantile:101} WHERE country c1", 10), row("LB.QUANTILE tags {quantile:101} WHERE country c1 WHERE device d1"),
    row("LB.RANGE tags 0 99", SHORT), row("LB.RANGE tags 0 {=N/10}"), row("LB.RANGE tags 0 99 WHERE country c1 WHERE device d1"),
    row("LB.RANGE tags 0 {=N/1000} TAGS"), row("LB.RANGE ladder 0 {=N/1000} RATING"), row("LB.RANGE board 0 {=N/1000} SINCE other"),
    row("LB.RATE ladder {member} 1500 80", SHORT), row("LB.RATING ladder {member:N/1000}"),
    row("LB.REFUND ladder cheater SINCE 0", before=("LB.BAN cheater",)),
    row("LB.ROLL s archive", before=("DEL archive", "COPY tags s REPLACE")), row("LB.SETTLE archive", SHORT, after=("DEL archive",)),
    row("LB.SUBMIT 3 board other tags {pair}", SHORT), row("LB.TAG tags {member} country c2", SHORT), row("LB.TAGS tags {member:N/1000}"),
    row("LB.REVOKE {new}", SHORT), row("LB.REVOKED {new}", SHORT), row("LB.TICKET league {new}", SHORT), row("LB.UNBAN {member}", SHORT),
    row("LB.UNMATCH ladder m1", before=("LB.ALTER ladder RATING GLICKO2 KEEP-MATCHES 9", "LB.MATCH ladder ONCE m1 TEAM 1 {member} TEAM 1 {new}"), is_once=True),
    row("LB.WHERE {member}"),
    # messages
    row("SUBSCRIBE {channel:N/1000}"), row("PSUBSCRIBE {channel:N/1000}"), row("SSUBSCRIBE {channel:N/1000}"),
    row("UNSUBSCRIBE", opening="SUBSCRIBE {channel:N/1000}"), row("PUNSUBSCRIBE", opening="PSUBSCRIBE {channel:N/1000}"),
    row("SUNSUBSCRIBE", opening="SSUBSCRIBE {channel:N/1000}"),
    row("PUBLISH channel hello", opening="HELLO 3 ; PSUBSCRIBE {channel:N/100}"), row("SPUBLISH channel hello", SHORT),
    row("PUBSUB CHANNELS", opening="HELLO 3 ; SUBSCRIBE {channel:N/100}"),
    row("PUBSUB SHARDCHANNELS", opening="HELLO 3 ; SSUBSCRIBE {channel:N/100}"), row("PUBSUB HELP", SHORT), row("PUBSUB NUMPAT", SHORT),
    row("PUBSUB NUMSUB {channel:N/100}"), row("PUBSUB SHARDNUMSUB {channel:N/100}"),
    # the server
    *(row(text, SHORT) for text in (
        "ACL CAT", "ACL DELUSER bob", "ACL DRYRUN default ZADD a 1 b", "ACL GENPASS", "ACL GETUSER default", "ACL HELP", "ACL LIST",
        "ACL LOG", "ACL SETUSER eva on nopass ~* +@all", "ACL USERS", "ACL WHOAMI", "COMMAND COUNT", "COMMAND GETKEYS ZADD a 1 b",
        "COMMAND HELP", "COMMAND INFO ZADD", "CONFIG GET maxmemory", "CONFIG HELP", "CONFIG RESETSTAT", "CONFIG SET slowlog-max-len 128",
        "DBSIZE", "LASTSAVE", "LATENCY HELP", "LATENCY HISTORY tick", "LATENCY LATEST", "LATENCY RESET", "MEMORY HELP",
        "MEMORY USAGE board", "MODULE HELP", "MODULE LIST", "ROLE", "SLOWLOG GET", "SLOWLOG HELP", "SLOWLOG LEN", "SLOWLOG RESET", "TIME",
        "REPLCONF listening-port 1", "REPLICAOF NO ONE", "SLAVEOF NO ONE", "UNWATCH")),
    row("ACL SAVE", 10), row("ACL LOAD", 10), row("COMMAND", 10, command="COMMAND"), row("COMMAND DOCS", 10), row("COMMAND LIST", 10),
    row("CONFIG GET *", 10), row("CONFIG REWRITE", 10), row("INFO", 10), row("INFO everything", 10), row("LATENCY HISTOGRAM", 10), row("MEMORY STATS", 10),
    row("MONITOR"), row("SAVE", is_once=True),
    Row("BGSAVE", "`BGSAVE`, to its end", run=saved("BGSAVE", "rdb_bgsave_in_progress")),
    # sorted sets
    row("BZMOVE board moved MIN 0 COUNT {=N/1000}"), row("BZMPOP 0 2 none board MIN COUNT {=N/1000}"),
    row("BZPOPMAX {ns:N/1000} board 0"), row("BZPOPMIN {ns:N/1000} board 0"),
    row("ZADD board {pair}", SHORT), row("ZADD board {pair:N/1000}"), row("ZADD board {newpair:N/1000}"),
    row("ZCARD board", SHORT), row("ZCOUNT board {score} +inf", SHORT), row("ZINCRBY board 1 {member}", SHORT),
    row("ZDIFF 2 board half"), in_multi("ZDIFF 2 board half"), row("ZDIFFSTORE s 2 board half", **DROP), in_multi("ZDIFFSTORE s 2 board half", **DROP),
    row("ZINTER 2 board half"), in_multi("ZINTER 2 board half"), row("ZINTERCARD 2 board half"), in_multi("ZINTERCARD 2 board half"),
    row("ZINTERSTORE s 2 board half", **DROP), in_multi("ZINTERSTORE s 2 board half", **DROP),
    row("ZUNION 2 board half"), in_multi("ZUNION 2 board half"), row("ZUNIONSTORE s 2 board half", **DROP), in_multi("ZUNIONSTORE s 2 board half", **DROP),
    *(row(text, SHORT, allowed="not supported") for text in (
        "ZLEXCOUNT key:0 - +", "ZRANGEBYLEX key:0 - +", "ZREVRANGEBYLEX key:0 + -", "ZREMRANGEBYLEX key:0 - (a")),
    row("ZMOVE board moved MIN COUNT {=N/1000}"),
    row("ZMOVEMEMBER board moved MEMBERS {=N/1000} {member:N/1000}", after=("DEL moved",)),
    row("ZMPOP 1 board MIN COUNT {=N/100}"), row("ZMSCORE board {member:N/1000}"), row("ZPOPMAX board {=N/100}"),
    row("ZPOPMIN board {=N/100}"), row("ZRANDMEMBER board 100", 10), row("ZRANDMEMBER board {=N/100}"),
    row("ZRANDMEMBER board -{=N/100}"), row("ZRANGE board 0 99", SHORT), row("ZRANGE board 0 {=N/10}"),
    row("ZRANGE board 0 {=N/10} WITHSCORES"), row("ZRANGEBYSCORE board 0 100000000"), row("ZREVRANGE board 0 {=N/10}"),
    row("ZREVRANGEBYSCORE board 100000000 0 WITHSCORES"), row("ZRANGESTORE s board 0 {=N/2}", **DROP),
    in_multi("ZRANGESTORE s board 0 {=N/2}", **DROP), row("ZRANK board {member}", SHORT), row("ZREVRANK board {member}", SHORT),
    row("ZREM board {member:N/1000}"), row("ZREMRANGEBYRANK s 0 {=N/2}", is_followed=True, **COPY),
    row("ZREMRANGEBYSCORE s 0 500000000", is_followed=True, **COPY), row("ZSCAN board 0 COUNT 1000", 10), row("ZSCORE board {member}", SHORT),
    # transactions
    row("MULTI ; DISCARD", SHORT, command="DISCARD"), row("MULTI ; PING ; EXEC", SHORT, command="MULTI"),
    row("MULTI ; N/1000 * ZREVRANK board {member} ; EXEC", command="EXEC"), row("MULTI ; N/1000 * ZADD board {pair} ; EXEC", command="EXEC"),
    row("WATCH {key:N/1000}"),
    # a full copy leaves blocks that are full, so that the writes behind it take longer
    Row("BGREWRITEAOF", "`BGREWRITEAOF`, to its end", run=saved("BGREWRITEAOF", "aof_rewrite_in_progress"),
        before=("CONFIG SET appendonly yes",), after=("CONFIG SET appendonly no",), is_once=True),
    row("LB.SNAPSHOT", is_once=True), Row("LB.SYNC", "`LB.SYNC`, a full copy to a new replica", run=follow, is_once=True),
    Row("FAILOVER", "`FAILOVER` to that replica, and back", run=fail_over, is_once=True),
    Row("PSYNC", "`PSYNC ? -1`, a full copy for a Redis", run=dump(b"PSYNC", b"?", b"-1"), is_once=True),
    Row("SYNC", "`SYNC`, the same", run=dump(b"SYNC"), is_once=True),
    *TASKS,
    # nothing is left behind these
    row("FLUSHDB", is_followed=True, is_once=True), row("FLUSHALL", is_followed=True, is_once=True, before=("N/100 * ZADD {ns} 1 a",)),
    row("SHUTDOWN NOSAVE", ends=True, stops=True),
]
