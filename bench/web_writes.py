#!/usr/bin/python3
"""What results over HTTP cost, beside the same over RESP: bench/web_writes.py [--seconds 3] [--rounds 3] [--password]

So many connections each have one request on its way. Results are LB.ADD with random values of 100,000 members on one
board. Times are those of the kernel for each thread of the server, per result: the engine's is what counts. All of the
server is on one core, and who asks on the other one; the figures depend on that, the ratios hardly. With a password,
each request has an Authorization header (Basic)."""
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
KINDS = ["RESP, one by one", "HTTP, one by one", "RESP, 100 in a command", "HTTP, 100 in a request", "HTTP, 1000 in a request"]


def result():
    return f"player:{random.randrange(MEMBERS)}", random.randrange(1 << 30)


def request(kind, count, password):
    results = [result() for _ in range(count)]
    if kind == "RESP":
        return encode("LB.ADD", "hot", *(word for member, value in results for word in (value, member)))
    body = json.dumps([{"member": member, "value": value} for member, value in results] if count > 1 else
                      {"member": results[0][0], "value": results[0][1]}).encode()
    login = f"Authorization: Basic {base64.b64encode(b'default:' + password.encode()).decode()}\r\n" if password else ""
    return (f"POST /api/v1/boards/hot/results HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{login}"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def run(name, port, connections, seconds, password):
    """Results written. Every reply is one read, as it is one short write of the server."""
    kind, count = name[:4], int("".join(letter for letter in name if letter.isdigit()) or 1)
    requests = [request(kind, count, password) for _ in range(2000 if count == 1 else 50)]
    good = b":" if kind == "RESP" else b"HTTP/1.1 200"
    selector = selectors.DefaultSelector()
    written, at = 0, 0
    end = time.monotonic() + seconds
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
            reply = peer.recv(4096)
            if not reply.startswith(good):
                raise SystemExit(f"{name}: {reply.decode()}")
            if kind == "HTTP" and not reply.endswith(b"}"):
                reply += peer.recv(4096)
            written += count
            if time.monotonic() < end:
                peer.sendall(requests[at % len(requests)])
                at += 1
            else:
                selector.unregister(peer)
                peer.close()
                left -= 1
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default=str(ROOT / "build" / "leaderboard-server"))
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--password", default="")
    options = parser.parse_args()
    server_core, client_core = cores()
    if server_core is not None:
        os.sched_setaffinity(0, {client_core})
    port, web_port = free_port(), free_port()
    rows = {name: [] for name in KINDS}
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            [options.server, "--port", str(port), "--web-port", str(web_port), "--web-write", "yes", "--save", "", "--dir",
             directory, *(["--requirepass", options.password] if options.password else [])],
            stdout=subprocess.DEVNULL, preexec_fn=pinned(server_core))
        try:
            time.sleep(1)
            run(KINDS[2], port, 1, 0, options.password)  # the board is made: HTTP writes only to those that are there
            run(KINDS[4], web_port, 8, 1, options.password)
            for _ in range(options.rounds):
                for name, measured in rows.items():
                    before, began = thread_times(server.pid), time.monotonic()
                    written = run(name, port if name.startswith("RESP") else web_port, options.connections, options.seconds,
                                  options.password)
                    seconds, after = time.monotonic() - began, thread_times(server.pid)
                    measured.append((written / seconds, *((after[thread] - before[thread]) / written
                                                          for thread in ("engine", "leaderboard-web"))))
        finally:
            server.terminate()
            server.wait()
    table = [[name, *(f"{statistics.median(row[i] for row in measured):.0f}" for i in range(3))]
             for name, measured in rows.items()]
    print(markdown_table(["results", "a second", "engine, ns a result", "HTTP thread, ns a result"], table))


if __name__ == "__main__":
    main()
