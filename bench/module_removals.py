#!/usr/bin/env python3
"""How long large removals hold up everybody in redis-server: boards of the module, and the host's own sorted sets.

    python3 bench/module_removals.py --module build/leaderboard.so [--members 1000000] [--rounds 3]
        [--host build/hosts/valkey-9.1.2/bin/redis-server]

Of each removal the time until its reply, and the longest that another client waited for a PING meanwhile and in the
second after it; the least of the rounds, as other work on the machine only adds to it. Prints a table.
"""
import argparse
import os
import shutil
import socket
import threading
import time
from pathlib import Path

from module import Host
from servers import markdown_table

AFTER_S = 1
ROWS = [  # title, kind, the removal from key t
    ("nothing", "native", "PING"),
    ("LB.ALTER t CAP 10", "module", "LB.ALTER t CAP 10"),
    ("ZREMRANGEBYRANK, all but 100", "module", "LB.ZREMRANGEBYRANK t 0 -101"),
    ("ZREMRANGEBYSCORE, all but 100", "module", "LB.ZREMRANGEBYSCORE t -inf {most}"),
    ("ZREMRANGEBYRANK, all", "module", "LB.ZREMRANGEBYRANK t 0 -1"),
    ("ZUNIONSTORE over it", "module", "LB.ZUNIONSTORE t 1 one"),
    ("DEL", "module", "DEL t"),
    ("UNLINK", "module", "UNLINK t"),
    ("own: ZREMRANGEBYRANK, all but 100", "native", "ZREMRANGEBYRANK t 0 -101"),
    ("own: DEL", "native", "DEL t"),
    ("own: UNLINK", "native", "UNLINK t"),
]


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.input = self.socket.makefile("rb")

    def ask(self, line):
        """Seconds until the reply, which is one line."""
        begin = time.monotonic()
        self.socket.sendall(line.encode() + b"\r\n")
        reply = self.input.readline()
        assert not reply.startswith(b"-"), (line, reply)
        return time.monotonic() - begin


def longest_wait(port, command):
    """(seconds of the command, seconds of the longest PING)"""
    longest, is_done = [0.0], threading.Event()

    def ping():
        client = Client(port)
        while not is_done.is_set():
            longest[0] = max(longest[0], client.ask("PING"))

    thread = threading.Thread(target=ping)
    thread.start()
    took = Client(port).ask(command)
    time.sleep(AFTER_S)
    is_done.set()
    thread.join()
    return took, longest[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="build/leaderboard.so")
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--host")
    options = parser.parse_args()
    module = Path(options.module).resolve()
    program = str(Path(options.host).resolve()) if options.host else shutil.which("redis-server")
    host = Host(program, module)
    for kind in "native", "module":
        host.load(kind, options.members)
    client = Client(host.port)
    client.ask("LB.ZADD one 1 ann")
    table = []
    for title, kind, command in ROWS:
        found = []
        for _ in range(options.rounds):
            client.ask(f"COPY {'sorted' if kind == 'native' else 'board'} t REPLACE")
            time.sleep(AFTER_S)
            found.append(longest_wait(host.port, command.format(most=options.members - 100)))
        took, waited = (min(times) * 1000 for times in zip(*found))
        table.append([title, f"{took:.2f}", f"{waited:.2f}"])
    host.stop()
    print(markdown_table(["", "until its reply, ms", "longest PING, ms"], table))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
