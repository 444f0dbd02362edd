#!/usr/bin/env python3
"""What clients with CLIENT TRACKING on one hot board cost the writes to it.

    python3 bench/tracking.py [--server build/leaderboard-server] [--clients 10000] [--writes 200000]

One client writes, 100 requests at a time or one by one. Meanwhile the others read the board again and again, first without
tracking, then with it, and are told when it has changed. CPU is that of the server's process, by the kernel's accounting: the
difference is what tracking costs, the messages' system calls included. It depends on how many reads there are for each
write, since a client is told once per read. Writes bench/results/<date>-tracking.md.
"""
import argparse
import datetime
import os
import resource
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from servers import machine, markdown_table, say

TICKS = os.sysconf("SC_CLK_TCK")
MEMBERS = 100000
COUNTED = b":%d\r\n" % MEMBERS  # what a reader is replied


def request(*words):
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in (str(word).encode() for word in words)]
    return b"*%d\r\n" % len(parts) + b"".join(parts)


READ = request("ZCARD", "hot")


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)

    def ask(self, data, end):
        """Until what has come ends like this."""
        self.socket.sendall(data)
        found = b""
        while not found.endswith(end):
            found += self.socket.recv(65536)
        return found

    def write(self, first, count):
        self.socket.sendall(b"".join(request("ZADD", "hot", number * 7919 % 1000003, f"m{number % MEMBERS}")
                                     for number in range(first, first + count)))
        left = count
        while left > 0:
            left -= self.socket.recv(65536).count(b"\r\n")


class Run:
    def __init__(self, program, directory, clients):
        self.port = 20000 + os.getpid() % 10000
        self.process = subprocess.Popen([program, "--port", str(self.port), "--dir", directory, "--save", "", "--maxclients",
                                         str(clients + 100)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up_at = time.monotonic() + 30
        while True:
            try:
                self.writer = Client(self.port)
                break
            except OSError:
                assert time.monotonic() < give_up_at
                time.sleep(0.05)
        for first in range(0, MEMBERS, 1000):
            self.writer.write(first, 1000)
        self.readers = [Client(self.port) for _ in range(clients)]
        self.next_reader, self.next_write = 0, MEMBERS  # each write is a change

    def cpu_s(self):
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def track(self, how):
        for reader in self.readers:
            reader.ask(request("HELLO", 3), b"*0\r\n")
            reader.ask(request("CLIENT", "TRACKING", how), b"+OK\r\n")

    def tell_all(self):
        """All have read the board, and it changes. CPU us of the server for each message."""
        for reader in self.readers:
            reader.ask(READ, COUNTED)
        begin = self.cpu_s()
        self.writer.write(self.next_write, 1)
        self.next_write += 1
        for reader in self.readers:
            reader.socket.recv(65536)
        return (self.cpu_s() - begin) / len(self.readers) * 1e6

    def work(self, writes, reads, batch):
        """CPU us of the server for each write; reads are spread evenly."""
        begin, owed = self.cpu_s(), 0.0
        for _ in range(0, writes, batch):
            self.writer.write(self.next_write, batch)
            self.next_write += batch
            owed += reads * batch / writes
            while owed >= 1:
                self.readers[self.next_reader % len(self.readers)].ask(READ, COUNTED)
                self.next_reader += 1
                owed -= 1
        return (self.cpu_s() - begin) / writes * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="build/leaderboard-server")
    parser.add_argument("--clients", type=int, default=10000)
    parser.add_argument("--writes", type=int, default=200000)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    head = ["requests at a time", "reads for 100 writes", "write alone us", "with reads us", "with reads that are tracked us",
            "tracking, of a write"]
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        run = Run(options.server, directory, options.clients)
        try:
            for batch, writes in ((1, options.writes // 4), (100, options.writes)):
                alone = run.work(writes, 0, batch)
                for share in (0, 1, 5, 10):
                    reads = writes * share // 100
                    run.track("OFF")
                    plain = run.work(writes, reads, batch)
                    run.track("ON")
                    told_us = run.tell_all()
                    tracked = run.work(writes, reads, batch)
                    rows.append([str(batch), str(share), f"{alone:.2f}", f"{plain:.2f}", f"{tracked:.2f}",
                                 f"{(tracked - plain) / alone * 100:.0f}%"])
                    say("  ".join(rows[-1]))
        finally:
            run.process.terminate()
            run.process.wait()
    text = f"# {options.clients} clients track one board\n\n{machine()}\n\nA message costs {told_us:.1f} us when all "
    text += f"are told at once.\n\n{markdown_table(head, rows)}\n"
    path = Path(__file__).parent / "results" / f"{datetime.date.today()}-tracking.md"
    path.write_text(text, encoding="utf-8")
    say(str(path))


main()
