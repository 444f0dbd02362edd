#!/usr/bin/python3
"""What requests over HTTP cost the server, beside the same over RESP and beside libmicrohttpd alone.
bench/web_requests.py [--seconds 2] [--rounds 3] [--password] [--rows WORD,WORD] [--server PATH]

So many connections, kept alive, each have one request on its way. The board has 100,000 members with a hash each, which
has a name; results are random values. Times are those of the kernel for each thread of the server, per request (of a
row with many results, per result). All of the server is on one core, and who asks on the other one; the figures depend
on that, the ratios hardly. With a password, each request has an Authorization header (Basic).

`page while it is written`: a connection of its own writes a result 100 times a second. `pages`: of 5,000 places, each
seldom the one before. `no handler` is build/bench/web_floor, whose reply is as long as a page; `waits`: each of its
requests is suspended and resumed, as those are whose answer the engine gives."""
import argparse
import base64
import json
import os
import random
import selectors
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from servers import cores, free_port, markdown_table, pinned
from web import encode, thread_times

ROOT = Path(__file__).resolve().parents[1]
MEMBERS = 100000
NAMES = 1000  # distinct ones
WRITES_A_SECOND = 100
KINDS = ["HTTP, no handler", "HTTP, no handler, 1 result", "HTTP, no handler, waits, 1 result", "RESP, page", "HTTP, page", "HTTP, page while it is written", "HTTP, pages", "HTTP, search by name",
         "RESP, 1 result", "HTTP, 1 result", "RESP, 100 results", "HTTP, 100 results", "HTTP, 1000 results"]


def result():
    return f"player:{random.randrange(MEMBERS)}", random.randrange(1 << 30)


def count_of(name):
    return int("".join(letter for letter in name if letter.isdigit()) or 1)


def request(name, password):
    kind, count = name[:4], count_of(name)
    results = [result() for _ in range(count)]
    login = f"Authorization: Basic {base64.b64encode(b'default:' + password.encode()).decode()}\r\n" if password else ""
    head = f"HTTP/1.1\r\nHost: localhost\r\n{login}"
    if name == "RESP, page":
        return encode("LB.RANGE", "hot", 0, 9)
    if name == "HTTP, search by name":
        path = f"search?by=name&count=10&q=name{random.randrange(1, 10)}"
        return f"GET /api/v1/boards/hot/{path} {head}\r\n".encode()
    if "result" not in name:
        begin = random.randrange(5000) if name == "HTTP, pages" else 0
        return f"GET /api/v1/boards/hot/page?from={begin}&count=10&data= {head}\r\n".encode()
    if kind == "RESP":
        return encode("LB.ADD", "hot", *(word for member, value in results for word in (value, member)))
    body = json.dumps([{"member": member, "value": value} for member, value in results] if count > 1 else
                      {"member": results[0][0], "value": results[0][1]}).encode()
    return (f"POST /api/v1/boards/hot/results {head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def is_whole(kind, reply):
    """As far as the replies of these requests go: a list's end is not looked for."""
    if kind == "RESP":
        return reply.endswith(b"\r\n")
    end = reply.find(b"\r\n\r\n")
    begin = reply.find(b"Content-Length: ")
    return 0 < begin < end and len(reply) == end + 4 + int(reply[begin + 16:reply.index(b"\r", begin)])


def run(name, port, connections, seconds, password, writer=None):
    """Requests answered, or results written."""
    kind, count = name[:4], count_of(name)
    requests = [request(name, password) for _ in range(2000 if count == 1 else 50)]
    good = (b":", b"*") if kind == "RESP" else b"HTTP/1.1 200"
    selector = selectors.DefaultSelector()
    written, at = 0, 0
    parts = {}
    end = time.monotonic() + seconds
    due = time.monotonic()
    for _ in range(connections):
        peer = socket.create_connection(("127.0.0.1", port))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kind == "RESP" and password:
            peer.sendall(encode("AUTH", password))
            peer.recv(100)
        peer.sendall(requests[at % len(requests)])
        at += 1
        selector.register(peer, selectors.EVENT_READ)
    left = connections
    while left:
        for key, _ in selector.select():
            peer = key.fileobj
            reply = parts.pop(key.fd, b"") + peer.recv(1 << 16)
            if not reply.startswith(good):
                raise SystemExit(f"{name}: {reply.decode()}")
            if not is_whole(kind, reply):
                parts[key.fd] = reply
                continue
            written += count
            if time.monotonic() < end:
                peer.sendall(requests[at % len(requests)])
                at += 1
            else:
                selector.unregister(peer)
                peer.close()
                left -= 1
        if writer is not None and time.monotonic() >= due:
            due += 1 / WRITES_A_SECOND
            writer.sendall(encode("ZINCRBY", "hot", 1, f"player:{random.randrange(MEMBERS)}"))
            writer.recv(100)
    return written


def fill(port, password):
    peer = socket.create_connection(("127.0.0.1", port))
    if password:
        peer.sendall(encode("AUTH", password))
        peer.recv(100)
    for begin in range(0, MEMBERS, 500):
        numbers = range(begin, begin + 500)
        peer.sendall(encode("LB.ADD", "hot", *(word for i in numbers for word in (random.randrange(1 << 30), f"player:{i}"))) +
                     b"".join(encode("HSET", f"user:player:{i}", "name", f"name{random.randrange(NAMES)} of {i}") for i in numbers))
        left = 501
        while left:
            left -= peer.recv(1 << 16).count(b"\r\n")
    return peer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default=str(ROOT / "build" / "leaderboard-server"))
    parser.add_argument("--floor", default=str(ROOT / "build" / "bench" / "web_floor"))
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--password", default="")
    parser.add_argument("--rows", default="", help="words, of which a row has one")
    options = parser.parse_args()
    server_core, client_core = cores()
    if server_core is not None:
        os.sched_setaffinity(0, {client_core})
    ports = {name: free_port() for name in ("RESP", "HTTP", "floor", "waits", "short")}
    rows = {name: [] for name in KINDS if any(word in name for word in options.rows.split(","))}
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            [options.server, "--port", str(ports["RESP"]), "--web-port", str(ports["HTTP"]), "--web-write", "yes", "--save", "",
             "--dir", directory, "--web-data", "user:* name", *(["--requirepass", options.password] if options.password else [])],
            stdout=subprocess.DEVNULL, preexec_fn=pinned(server_core))
        floors = {name: subprocess.Popen([options.floor, str(ports[name]), size, *more], preexec_fn=pinned(server_core))
                  for name, size, more in (("floor", "1400", []), ("waits", "60", ["waits"]), ("short", "60", []))}
        try:
            time.sleep(1)
            writer = fill(ports["RESP"], options.password)
            for _ in range(options.rounds):
                for name, measured in rows.items():
                    place = (name[:4] if "no handler" not in name else "waits" if "waits" in name else
                             "short" if "result" in name else "floor")
                    pid = floors[place].pid if place in floors else server.pid
                    before, began = thread_times(pid), time.monotonic()
                    written = run(name, ports[place], options.connections, options.seconds,
                                  options.password, writer if "while" in name else None)
                    seconds, after = time.monotonic() - began, thread_times(pid)
                    of_thread = {thread: (after[thread] - before.get(thread, 0)) / written for thread in after}
                    measured.append((written / seconds, of_thread["engine"], of_thread.get("leaderboard-web", 0),
                                     of_thread["engine"] + of_thread.get("leaderboard-web", 0)))
        finally:
            for process in (server, *floors.values()):
                process.terminate()
                process.wait()
    table = [[name, *(f"{statistics.median(row[i] for row in measured):.0f}" for i in range(4))]
             for name, measured in rows.items()]
    print(markdown_table(["requests", "a second", "engine, ns each", "HTTP thread, ns each", "both, ns each"], table))


if __name__ == "__main__":
    main()
