#!/usr/bin/python3
"""What players' tokens cost: so many players who each come once with a token of their own, and players who stay; and
what LIMITS cost on a board of a million.

    python3 bench/tokens.py [--players 100000] [--members 1000000] [--rounds 3] [--only limits] [--server PROGRAM] [--results]

RESP: each player connects, logs in, writes one result and leaves. HTTP: a result a request, on connections that stay;
"each with its own" shows another token every time, none of which has been seen before, and "the same" one token a
connection. Beside them a user's password, and a user's token. CPU microseconds of the server a result: the engine's thread,
the HTTP thread, the others (one of them verifies for RESP). Bytes: what is in use more than before once the board has gone, a
player.

LIMITS: LB.ADD of all members in random order to a new board, and once more; microseconds of the engine's thread a
command, beside those of a board without limits in the same round; bytes in use a member after the first result, and above
that board's.

Only ratios count. Debian's python3-cryptography signs. Writes bench/results/<date>-tokens.md with --results.
"""
import argparse
import base64
import datetime
import hashlib
import hmac
import json
import os
import random
import resource
import selectors
import socket
import statistics
import time
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from servers import OURS, Server, commit, cores, free_port, machine, markdown_table, say
from web import encode, thread_times

ROOT = Path(__file__).resolve().parents[1]
SECRET = "0a9c8e3b7d6f5a4b3c2d1e0f9a8b7c6d"
PAIR = Ed25519PrivateKey.generate()
PASSWORD = "a-users-password-of-32-characters"
CONNECTIONS = 50
SIGNERS = {"hs256": ("HS256", lambda text: hmac.new(SECRET.encode(), text, hashlib.sha256).digest()),
           "ed25519": ("EdDSA", PAIR.sign)}


def coded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(kind, player, until):
    algorithm, sign = SIGNERS[kind]
    text = b".".join(coded(json.dumps(part).encode()) for part in (
        {"alg": algorithm, "typ": "JWT", "kid": kind}, {"sub": player, "exp": until}))
    return (text + b"." + coded(sign(text))).decode()


def as_result(login, player, value):
    body = json.dumps({"member": player, "value": value}).encode()
    return (f"POST /api/v1/boards/high/results HTTP/1.1\r\nHost: localhost\r\nAuthorization: {login}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def is_http_whole(reply):
    end = reply.find(b"\r\n\r\n")
    begin = reply.find(b"Content-Length: ")
    return 0 < begin < end and len(reply) == end + 4 + int(reply[begin + 16:reply.index(b"\r", begin)])


def drive(port, requests, stays, is_whole, good):
    """Send all of the requests by so many connections, a reply awaited before the next one."""
    selector = selectors.DefaultSelector()
    at, parts = 0, {}

    def go_on(peer):
        nonlocal at
        if at == len(requests):
            if peer is not None:
                peer.close()
            return
        if peer is None:
            peer = socket.create_connection(("127.0.0.1", port))
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.sendall(requests[at])
        at += 1
        selector.register(peer, selectors.EVENT_READ)

    for _ in range(CONNECTIONS):
        go_on(None)
    while selector.get_map():
        for key, _ in selector.select():
            peer = key.fileobj
            reply = parts.pop(key.fd, b"") + peer.recv(1 << 16)
            if not is_whole(reply):
                parts[key.fd] = reply
                continue
            if not reply.startswith(good):
                raise SystemExit(reply.decode())
            selector.unregister(peer)
            if stays:
                go_on(peer)
            else:
                peer.close()
                go_on(None)


def requests_of(way, players, until):
    """The requests of one round."""
    protocol, kind = way[:2]
    names = [f"player:{i}" for i in range(players)]
    if protocol == "RESP":
        login = {"password": lambda name: encode("AUTH", "backend", PASSWORD)}.get(
            kind, lambda name: encode("AUTH", token(kind, name, until)))
        return [login(name) + encode("LB.ADD", "high", i % 1000 + 1, name) for i, name in enumerate(names)]
    if kind == "token":
        return [as_result(f"Bearer {PASSWORD}", name, i + 1) for i, name in enumerate(names)]
    if way[2] == "the same":
        some = [(name, token(kind, name, until)) for name in names[:CONNECTIONS]]
        return [as_result(f"Bearer {some[i % CONNECTIONS][1]}", some[i % CONNECTIONS][0], i + 1) for i in range(players)]
    return [as_result(f"Bearer {token(kind, name, until)}", name, i + 1) for i, name in enumerate(names)]


WAYS = [("RESP", "password", "each player once"), ("RESP", "hs256", "each player once"), ("RESP", "ed25519", "each player once"),
        ("HTTP", "token", "a user's, the same"), ("HTTP", "hs256", "the same"), ("HTTP", "ed25519", "the same"),
        ("HTTP", "hs256", "each with its own"), ("HTTP", "ed25519", "each with its own")]


def measure(server, web_port, way, players):
    requests = requests_of(way, players, int(time.time()) + 3600)
    server.ask("DEL high")
    server.ask("LB.CREATE high FIELD score 32 TIME 31 S")
    time.sleep(0.5)
    bytes_before, before = int(server.info("memory")["used_memory"]), thread_times(server.process.pid)
    if way[0] == "RESP":
        drive(server.port, requests, False, lambda reply: reply.count(b"\r\n") == 2, b"+OK\r\n:1\r\n")
    else:
        drive(web_port, requests, True, is_http_whole, b"HTTP/1.1 200")
    after = thread_times(server.process.pid)
    server.ask("DEL high")
    time.sleep(0.5)
    row = {name: (after.get(name, 0) - before.get(name, 0)) / 1000 / players for name in after}
    row["all"] = sum(row.values())
    row["bytes"] = (int(server.info("memory")["used_memory"]) - bytes_before) / players
    return row


# By title: the option, and whether a second result may follow at once.
LIMITS = {"no LIMITS": ("", True), "EVERY": ("LIMITS ALL EVERY 1 H", False),
          "RESULTS": ("LIMITS ALL RESULTS 50 PER DAY", True),
          "EVERY, RESULTS and GAIN": ("LIMITS ALL EVERY 1 S RESULTS 50 PER DAY GAIN 5000 PER HOUR", True)}
PIPELINE = 100


def add_all(server, order, more):
    """Each of them has a better result than before. Returns microseconds a command."""
    requests = [b"".join(encode("LB.ADD", "high", i % 4000 + more, f"player:{i}") for i in order[at:at + PIPELINE])
                for at in range(0, len(order), PIPELINE)]
    before = thread_times(server.process.pid)["engine"]
    drive(server.port, requests, True, lambda reply: reply.count(b"\r\n") == PIPELINE and b"-" not in reply, b":1\r\n")
    return (thread_times(server.process.pid)["engine"] - before) / 1000 / len(order)


def measure_limits(server, options):
    """Rows of the table."""
    order = list(range(options.members // PIPELINE * PIPELINE))
    random.Random(1).shuffle(order)
    rows = {title: [] for title in LIMITS}
    server.ask("LB.CREATE high FIELD score 32 TIME 31 S")
    add_all(server, order, 1)  # what connections take is there
    for _ in range(options.rounds):
        for title, (limits, may_follow) in LIMITS.items():
            server.ask("DEL high")
            while int(server.info("memory")["lazyfree_pending_objects"]) > 0:
                time.sleep(0.1)
            time.sleep(1.5)
            bytes_before = int(server.info("memory")["used_memory"])
            server.ask(f"LB.CREATE high FIELD score 32 TIME 31 S {limits}")
            row = [add_all(server, order, 1)]
            time.sleep(1.5)
            size = (int(server.info("memory")["used_memory"]) - bytes_before) / len(order)
            row += [add_all(server, order, 500) if may_follow else None, size]
            rows[title].append(row)
            say(f"{title}: {row}")
    median = {title: [None if cells[0] is None else statistics.median(cells) for cells in zip(*measured)]
              for title, measured in rows.items()}
    base = median["no LIMITS"]
    return [[title, *(cell for i in range(2) for cell in
                      (("", "") if row[i] is None else (f"{row[i]:.2f}", f"{row[i] / base[i]:.2f}"))),
             f"{row[2]:.1f}", f"{row[2] - base[2]:.1f}"] for title, row in median.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=str(ROOT / "build" / "leaderboard-server"))
    parser.add_argument("--players", type=int, default=100000)
    parser.add_argument("--members", type=int, default=1000000)
    parser.add_argument("--only", choices=["tokens", "limits"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", action="store_true")
    options = parser.parse_args()
    where = machine()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    if cores()[1] is not None:
        os.sched_setaffinity(0, {cores()[1]})
    web_port = free_port()
    public = base64.b64encode(PAIR.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)).decode()
    server = Server(OURS, options.server, ("--web-port", str(web_port), "--web-write", "yes", "--web-write-rate", "0",
                                           "--player-key", "hs256", "hs256", SECRET, "--player-key", "ed25519", "ed25519", public))
    rows = {way: [] for way in WAYS if options.only != "limits"}
    limits = []
    try:
        for rule in (f"backend on >{PASSWORD} token#{hashlib.sha256(PASSWORD.encode()).hexdigest()} ~* +@all",
                     "player:hs256 on ~* +lb.add", "player:ed25519 on ~* +lb.add"):
            server.ask(f"ACL SETUSER {rule}")
        for _ in range(options.rounds):
            for way, measured in rows.items():
                measured.append(measure(server, web_port, way, options.players))
                say(f"{', '.join(way)}: " + ", ".join(f"{name} {value:.2f}" for name, value in measured[-1].items() if value >= 0.05))
        if options.only != "tokens":
            limits = measure_limits(server, options)
    finally:
        server.stop()
    median = {way: {name: statistics.median(row.get(name, 0) for row in measured) for name in measured[0]}
              for way, measured in rows.items()}
    table = []
    for way, row in median.items():
        base = median[WAYS[0] if way[0] == "RESP" else WAYS[3]]
        others = row["all"] - row["engine"] - row.get("leaderboard-web", 0)
        table.append([", ".join(way), *(f"{value:.2f}" for value in (row["engine"], row.get("leaderboard-web", 0), others, row["all"])),
                      f"{row['all'] / base['all']:.2f}", f"{row['bytes']:.0f}"])
    body = markdown_table(["how", "engine, us", "HTTP thread, us", "others, us", "all, us", "times the first", "bytes a player"], table)
    body = body if rows else ""
    if limits:
        body += f"\n\n{options.members:,} members:\n\n" + markdown_table(
            ["board with", "first result, us", "times", "another, us", "times", "bytes a member", "above"], limits)
    print(body)
    if options.results:
        path = ROOT / "bench" / "results" / f"{datetime.date.today()}-tokens.md"
        path.write_text(f"# Players' tokens\n\n{__doc__.strip()}\n\n{body}\n\n{options.players:,} players, medians of "
                        f"{options.rounds} rounds. {where}, commit {commit()}\n")
        print(path)


if __name__ == "__main__":
    main()
