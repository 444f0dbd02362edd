#!/usr/bin/python3
"""What viewers of the page cost: one hot board at a fixed number of writes a second, in turns without and with
viewers who are told of its changes. bench/web.py [--viewers 500] [--writes 100000] [--rounds 8]

The engine's processor time per write (the kernel's count of its thread), the HTTP thread's time, updates per
viewer and second, and the bytes that they are. All of the server is on one core, the HTTP thread beside the engine;
writer and viewers are on the other one. The writer sends a pipeline every 10 ms; its own time does not count. The
table goes to bench/results/DATE-web.md with --results. As root, and on a machine that does something else as well:
chrt -f 10 bench/web.py."""
import argparse
import datetime
import http.client
import json
import os
import resource
import selectors
import socket
import statistics
import subprocess
import tempfile
import time
from multiprocessing import Process, Value
from pathlib import Path

from servers import commit, cores, free_port, machine, markdown_table, pinned

ROOT = Path(__file__).resolve().parents[1]
STEP_S = 0.01
MEMBERS = 100000
TOP = 25
EVENT = b"event: page"


def encode(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def thread_times(pid):
    """{thread's name: nanoseconds on a processor}; the engine's is the process's first."""
    times = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = "engine" if task.name == str(pid) else (task / "comm").read_text().strip()
            times[name] = times.get(name, 0) + int((task / "schedstat").read_text().split()[0])
        except OSError:
            pass
    return times


def answer_ns(web_port):
    """Nanoseconds that the engine has spent on answers to the page, by its own clock: waiting for a processor counts."""
    connection = http.client.HTTPConnection("127.0.0.1", web_port)
    connection.request("GET", "/api/v1/server")
    return json.loads(connection.getresponse().read())["web_engine_us"] * 1000


class Writer:
    """So many ZINCRBY a second on one board, most of them among its first members."""

    def __init__(self, port, rate):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.count = round(rate * STEP_S)
        self.batches = []
        for batch in range(20):
            words = []
            for i in range(self.count):
                number = i * 7919 + batch * 104729
                is_seen = (batch * self.count + i) % 10 == 0  # 1,000 points at first are the most: fill()
                member = 999 + number % (TOP * 2) * 1000 if is_seen else number % MEMBERS
                words.append(encode("ZINCRBY", "hot", 1 + i % 3, f"player:{member}"))
            self.batches.append(b"".join(words))

    def fill(self):
        for begin in range(0, MEMBERS, 1000):
            self.socket.sendall(b"".join(encode("ZADD", "hot", i % 1000, f"player:{i}")
                                         for i in range(begin, begin + 1000)))
            self.take(1000)

    def take(self, count):
        left = count
        while left > 0:
            left -= self.socket.recv(1 << 20).count(b"\r\n")
        # every reply here is one line, or for ZINCRBY in RESP2 two

    def run(self, seconds):
        """How many were written."""
        written, due = 0, time.monotonic()
        end = due + seconds
        while due < end:
            self.socket.sendall(self.batches[written // self.count % len(self.batches)])
            self.take(2 * self.count)
            written += self.count
            due += STEP_S
            time.sleep(max(0, due - time.monotonic()))
        return written


def view(port, count, updates, most, received, is_over):
    """A process that holds so many streams and reads them. updates: of all; most: of one of them."""
    selector = selectors.DefaultSelector()
    counts, ends = {}, {}
    for _ in range(count):
        stream = socket.create_connection(("127.0.0.1", port))
        stream.sendall(f"GET /api/v1/boards/hot/events?count={TOP} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        stream.setblocking(False)
        selector.register(stream, selectors.EVENT_READ)
    while not is_over.value:
        for key, _ in selector.select(0.1):
            part = key.fileobj.recv(1 << 18)
            text = ends.get(key.fd, b"") + part
            ends[key.fd] = text[-len(EVENT) + 1:]  # an event's name may lie in two parts
            counts[key.fd] = counts.get(key.fd, 0) + text.count(EVENT)
            received.value += len(part)
            updates.value += text.count(EVENT)
            most.value = max(most.value, counts[key.fd])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default=str(ROOT / "build" / "leaderboard-server"))
    parser.add_argument("--viewers", type=int, default=500)
    parser.add_argument("--writes", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--results", action="store_true")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    port, web_port = free_port(), free_port()
    server_core, client_core = cores()
    where = machine()
    if server_core is not None:
        os.sched_setaffinity(0, {client_core})
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            [options.server, "--port", str(port), "--web-port", str(web_port), "--save", "", "--dir", directory,
             "--web-max-connections", str(options.viewers * 2)], stdout=subprocess.DEVNULL,
            preexec_fn=pinned(server_core))
        try:
            time.sleep(1)
            measure(options, server.pid, port, web_port, where)
        finally:
            server.terminate()
            server.wait()


def one_round(options, pid, writer, web_port, viewers):
    updates, most, received, is_over = Value("Q", 0), Value("Q", 0), Value("Q", 0), Value("b", 0)
    process = None
    if viewers:
        process = Process(target=view, args=(web_port, viewers, updates, most, received, is_over))
        process.start()
        while updates.value < viewers:  # everybody has seen the board once
            writer.run(0.1)
    writer.run(0.3)
    before, began = thread_times(pid), time.monotonic()
    updates_before, most_before, received_before = updates.value, most.value, received.value
    answers_before = answer_ns(web_port)
    written = writer.run(options.seconds)
    answers = answer_ns(web_port) - answers_before
    seconds = time.monotonic() - began
    after = thread_times(pid)
    row = {
        "writes": written / seconds,
        "engine_ns": (after["engine"] - before["engine"]) / written,
        "answer_ns": answers / written,
        "http_share": (after["leaderboard-web"] - before["leaderboard-web"]) / 1e9 / seconds,
        "updates": (updates.value - updates_before) / seconds / viewers if viewers else 0,
        "most": (most.value - most_before) / seconds,
        "bytes": (received.value - received_before) / seconds if viewers else 0,
    }
    if process:
        is_over.value = 1
        process.join()
        time.sleep(1.5)  # until they are gone
    return row


def measure(options, pid, port, web_port, where):
    writer = Writer(port, options.writes)
    writer.fill()
    rows = {0: [], options.viewers: []}
    for i in range(options.rounds):
        for viewers in (rows if i % 2 == 0 else reversed(rows)):
            rows[viewers].append(one_round(options, pid, writer, web_port, viewers))
            row = rows[viewers][-1]
            print(f"{viewers} viewers: {row['writes']:.0f} writes/s, engine {row['engine_ns']:.0f} ns a write, "
                  f"of which {row['answer_ns']:.2f} for the page, "
                  f"HTTP thread {row['http_share']:.1%} of a core, {row['updates']:.2f} updates a viewer and "
                  f"second", flush=True)
    table = []
    for viewers, measured in rows.items():
        table.append([str(viewers), *(f(statistics.median(row[key] for row in measured)) for key, f in (
            ("writes", "{:.0f}".format), ("engine_ns", "{:.0f}".format), ("answer_ns", "{:.2f}".format), ("http_share", "{:.1%}".format),
            ("updates", "{:.2f}".format), ("most", "{:.2f}".format), ("bytes", lambda value: f"{value / 1e6:.1f}")))])
    ratios = [b["engine_ns"] / a["engine_ns"] for a, b in zip(rows[0], rows[options.viewers])]
    body = markdown_table(["viewers", "writes/s", "engine, ns a write", "of which answers to the page", "HTTP thread, of a core",
                           "updates a viewer and second", "the most", "MB/s"], table)
    line = (f"The engine's time a write with viewers is {statistics.median(ratios):.3f} times that without: the "
            f"median of {len(ratios)} pairs of rounds, which lie between {min(ratios):.3f} and {max(ratios):.3f}.")
    row = {key: statistics.median(each[key] for each in rows[options.viewers]) for key in ("answer_ns", "engine_ns")}
    line += (f" By the engine's own clock the answers to the page take {row['answer_ns'] / row['engine_ns']:.2%} of it.")
    print(body)
    print(line)
    if options.results:
        path = ROOT / "bench" / "results" / f"{datetime.date.today()}-web.md"
        path.write_text(f"# Viewers of a hot board\n\n{__doc__.strip()}\n\n{body}\n\n{line}\n\n{where}, "
                        f"commit {commit()}\n")
        print(path)


if __name__ == "__main__":
    main()
