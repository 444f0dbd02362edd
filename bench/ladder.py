#!/usr/bin/env python3
"""A ladder of matches: LB.MATCH beside what a backend does with redis-server, openskill.js and ioredis.

    python3 bench/ladder.py [--players 10000] [--matches 20000] [--rounds 3] [--server PROGRAM] [--redis PROGRAM]

Each player has a hash (mu, sigma, games) and a place in a sorted set. A match is read, rated by openskill.js and written by
`MULTI`: under `WATCH` of its players, and again if one of them was changed meanwhile; and without `WATCH`, where such a match is
lost to one of its players. Here it is one command. All run the same matches from one program in Node, whose clients have a
connection each. What comes out is compared: ordinals to four decimals, when one client plays. npm fetches what it
needs into build/ladder. Writes bench/results/<date>-ladder.md and .json.
"""
import argparse
import datetime
import json
import statistics
import subprocess
from pathlib import Path

from servers import BASE, OURS, Server, cores, machine, markdown_table, pinned, say

HERE = Path(__file__).resolve().parent
PACKAGES = ("openskill@5.0.1", "ioredis@5")
KINDS = {"one against one": (2, 1), "five against five": (2, 5), "ten teams of three": (10, 3)}
WAYS = {"WATCH": BASE, "no WATCH": BASE, "LB.MATCH": OURS}


def play(directory, server, way, options, kind, clients, matches):
    """What a run of ladder.mjs says, and the server's CPU time a match."""
    asked = {"port": server.port, "way": way, "players": options.players, "matches": matches, "clients": clients,
             "teams": KINDS[kind][0], "size": KINDS[kind][1]}
    server.ask("FLUSHALL")
    if way == "LB.MATCH":
        server.ask("LB.CREATE ladder RATING OPENSKILL")
    before = server.cpu_ns()
    done = subprocess.run(["node", directory / "ladder.mjs", json.dumps(asked)], check=True, capture_output=True, text=True,
                          preexec_fn=pinned(cores()[1]))
    return {**json.loads(done.stdout), "server_us": (server.cpu_ns() - before) / 1000 / matches}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--players", type=int, default=10000)
    options.add_argument("--matches", type=int, default=20000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--server", default="build/leaderboard-server")
    options.add_argument("--redis", default="build/peers/redis-server")
    options = options.parse_args()
    directory = HERE.parent / "build/ladder"
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES], cwd=directory, check=True)
    (directory / "ladder.mjs").write_bytes((HERE / "ladder.mjs").read_bytes())  # beside node_modules
    servers = {OURS: Server(OURS, options.server), BASE: Server(BASE, options.redis)}
    try:
        ends = [play(directory, servers[server], way, options, "one against one", 1, 500)["ordinals"]
                for way, server in WAYS.items()]
        apart = max(abs(a - b) for end in ends[1:] for a, b in zip(ends[0], end, strict=True))
        assert apart < 0.0002, apart
        found = {}
        for kind in KINDS:
            for clients in (1, 50):
                runs = {way: [] for way in WAYS}
                for _ in range(options.rounds):
                    for way, server in WAYS.items():
                        runs[way].append(play(directory, servers[server], way, options, kind, clients, options.matches))
                found[f"{kind}, {clients} client{'s' * (clients > 1)}"] = {
                    way: {name: statistics.median(run[name] for run in each)
                          for name in ("server_us", "client_us", "trips", "retries", "lost", "given_up")}
                    for way, each in runs.items()}
                say(f"{kind}, {clients} clients: {list(found.values())[-1]}")
        versions = f"redis-server {servers[BASE].version()}, leaderboard {servers[OURS].version()}"
    finally:
        for server in servers.values():
            server.stop()
    rows = []
    for title, ways in found.items():
        ours = ways["LB.MATCH"]
        for way, each in ways.items():
            rows.append([title, way, *(f"{each[name] / ours[name]:.1f}" for name in ("server_us", "client_us")),
                         f"{each['trips']:.2f}", *(f"{each[name]:.2f}" for name in ("retries", "given_up", "lost"))])
    name = f"{datetime.date.today()}-ladder"
    text = f"""# A ladder of matches, {name}

- Machine: {machine()}
- Servers: {versions}; client: ioredis 5 and openskill.js 5.0.1 in Node
- Command: `python3 bench/ladder.py --players {options.players} --matches {options.matches} --rounds {options.rounds}`
- CPU of the server, and of the program that asks, as multiples of LB.MATCH in the same run; round trips a match
- Of 100 matches: tries that began anew, matches given up after 20 tries, and results that a player has lost. Medians of
  {options.rounds} rounds; {options.players:,} players

{markdown_table(["matches", "way", "server CPU", "client CPU", "trips", "retries", "given up", "lost"], rows)}
"""
    results = HERE / "results"
    (results / f"{name}.md").write_text(text)
    (results / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    say(text)


main()
