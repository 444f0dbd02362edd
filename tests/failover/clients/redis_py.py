#!/usr/bin/python3
"""Clients of redis-py that write down what they are answered: FIRST COUNT PACE sentinel|address|afresh HOST,...

FIRST is the first client's number, COUNT how many there are, PACE how many commands a second each sends
at most; afresh: with a new connection to the address for each. The input has lines "go PREFIX" (work on the boards PREFIX:*), "reads" (from now on only read),
"all" (write, too), and "stop", which is answered with the line "stopped" when all have stopped. For each
command a line:

    client operation member argument start end outcome answer

The client is its number; two in three are the users of nodes.py, "1/shared", "3/limited".
Times are nanoseconds of the monotonic clock. The outcome is ok, refused (an error that says that nothing
was done), or unknown. An answer of "-" is nil. The other clients in this directory do the same, but for "once": results with
an id (the argument), each of which is sent again until it is answered.
"""
import random
import sys
import threading
import time

import redis
from redis.exceptions import NoPermissionError
from redis.sentinel import MasterNotFoundError, Sentinel

REGISTERS, COUNTERS = 6, 6
TIMEOUT_S = 1.0
PAUSE_AFTER_ERROR_S = 0.02
REFUSALS = ("READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "MISCONF", "OOM")
# redis-py makes exceptions of these, and leaves their first word out.
REFUSING = (redis.exceptions.BusyLoadingError, redis.exceptions.ReadOnlyError, MasterNotFoundError, NoPermissionError)
USERS = ("limited", "shared", None)  # who share the boards, in turn; None: the default user
OPERATIONS = ("set", "set", "set", "get", "get", "inc", "inc", "read", "read", "tie", "tie", "once", "once")
READS = ("get", "read")


class Shared:
    """What the threads wait for, and where they write."""

    def __init__(self, count):
        self.condition = threading.Condition()
        self.prefix = None
        self.operations = OPERATIONS
        self.working = count

    def wait_for_work(self):
        with self.condition:
            self.working -= 1
            self.condition.notify_all()
            self.condition.wait_for(lambda: self.prefix is not None)
            self.working += 1
            return self.prefix

    def go(self, prefix):
        with self.condition:
            self.prefix = prefix
            self.condition.notify_all()

    def forget(self, operation):
        self.operations = tuple(each for each in self.operations if each != operation)

    def stop(self):
        with self.condition:
            self.prefix = None
            self.condition.wait_for(lambda: self.working == 0)


def connect(kind, hosts, user):
    options = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S,
               **({"username": user, "password": "shared"} if user else {})}
    if kind == "sentinel":
        sentinel = Sentinel([(host, 26379) for host in hosts], socket_timeout=TIMEOUT_S / 2)
        return sentinel.master_for("leaderboard", **options)
    return redis.Redis(hosts[0], 6379, **options)


def zscore_of_master(db, board, member):
    """HAProxy sees up to half a second late that a server has become a replica, and replicas answer readers:
    so who must not read something old asks for the role with the score."""
    with db.pipeline(transaction=True) as pipeline:
        role, score = pipeline.execute_command("ROLE").zscore(board, member).execute()
    if role[0] != b"master":
        raise redis.exceptions.ReadOnlyError("a replica")
    return score


def send(db, prefix, operation, member, argument):
    """The command of an operation; its answer as text."""
    if operation == "set":
        db.zadd(f"{prefix}:set", {member: argument})
        return "-"
    if operation == "inc":
        return str(int(db.zincrby(f"{prefix}:inc", 1, member)))
    if operation == "tie":
        db.zadd(f"{prefix}:tie", {member: 0}, nx=True)
        return "-"
    if operation == "once":
        return str(db.execute_command("LB.ADD", f"{prefix}:once", "ONCE", argument, "INCR", 1, member))
    board = f"{prefix}:{'set' if operation == 'get' else 'inc'}"
    score = db.zscore(board, member) if db.asks_sentinel else zscore_of_master(db, board, member)
    return "-" if score is None else str(int(score))


class Client(threading.Thread):
    def __init__(self, shared, number, pace, kind, hosts):
        super().__init__(daemon=True)
        self.shared, self.number, self.pace = shared, number, pace
        user = USERS[number % len(USERS)]
        self.name = f"{number}/{user}" if user else number
        self.db = connect(kind, hosts, user)
        self.db.asks_sentinel = kind == "sentinel"
        self.is_afresh = kind == "afresh"
        self.count = 0
        self.pending = None  # a result that was not answered: its prefix, its id

    def run(self):
        while True:
            prefix = self.shared.wait_for_work()
            while self.shared.prefix == prefix:
                began_at = time.monotonic()
                if not self.perform(prefix):
                    time.sleep(PAUSE_AFTER_ERROR_S)
                time.sleep(max(0, began_at + 1 / self.pace * random.uniform(0.5, 1.5) -
                               time.monotonic()))

    def perform(self, prefix):
        """One operation and its line; whether it went well."""
        operation = random.choice(self.shared.operations)
        self.count += 1
        argument = self.number * 10_000_000 + self.count  # never set before
        if operation == "once":
            if self.pending is None or self.pending[0] != prefix:
                self.pending = (prefix, argument)
            argument = self.pending[1]
        member = (f"{self.number}:{self.count}" if operation == "tie" else f"c{self.number}" if operation == "once" else
                  f"m{random.randrange(COUNTERS if operation in ('inc', 'read') else REGISTERS)}")
        answer, start = "-", time.monotonic_ns()
        try:
            answer = send(self.db, prefix, operation, member, argument)
            outcome = "ok"
            self.pending = None if operation == "once" else self.pending
        except REFUSING:
            outcome = "refused"
        except redis.ResponseError as error:
            if "unknown command" in str(error):  # a redis-server
                self.shared.forget("once")
                return True
            outcome = "refused" if str(error).startswith(REFUSALS) else "unknown"
        except redis.RedisError:
            outcome = "unknown"
        end = time.monotonic_ns()
        if self.is_afresh:
            self.db.connection_pool.disconnect()
        sys.stdout.write(f"{self.name} {operation} {member} {argument} {start} {end} {outcome} "
                         f"{answer}\n")
        return outcome == "ok"


def main():
    first, count, pace, kind, hosts = sys.argv[1:]
    shared = Shared(int(count))
    for number in range(int(first), int(first) + int(count)):
        Client(shared, number, float(pace), kind, hosts.split(",")).start()
    for line in sys.stdin:
        words = line.split()
        if words[0] == "go":
            shared.go(words[1])
        elif words[0] in ("reads", "all"):
            shared.operations = READS if words[0] == "reads" else OPERATIONS
        else:
            shared.stop()
            sys.stdout.write("stopped\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
