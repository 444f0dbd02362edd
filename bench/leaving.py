#!/usr/bin/env python3
"""A redis-server with the module follows the server: what its copy and the stream behind it cost the server.

    python3 bench/leaving.py --server build/leaderboard-server --module build/leaderboard.so [--members 2000000]

The copy is made while redis-benchmark writes. Then the same writes once more with nobody, with that Redis, and with a replica
of the server's own kind; CPU is that of all threads, by the kernel's own accounting. Writes
bench/results/<date>-leaving.md.
"""
import argparse
import datetime
import os
import shutil
import subprocess
import time
from pathlib import Path

from module import Host
from servers import Server, machine, markdown_table, say

TICKS = os.sysconf("SC_CLK_TCK")


def ask(port, *words):
    return subprocess.run(["redis-cli", "-p", str(port), *map(str, words)], capture_output=True, text=True,
                          check=True).stdout.strip()


def field(port, section, name):
    return dict(line.split(":", 1) for line in ask(port, "INFO", section).splitlines() if ":" in line)[name]


def cpu_s(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def memory_mb(pid):
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


def fill(port, members):
    lines = (f"ZADD board:{at // 50 % 8} " + " ".join(f"{n * 7919 % members} member:{n:012d}" for n in range(at, at + 50))
             for at in range(0, members, 50))
    subprocess.run(["redis-cli", "-p", str(port), "--pipe"], text=True, input="\n".join(lines) + "\n",
                   stdout=subprocess.DEVNULL, check=True)


def writes(port, count):
    return ["redis-benchmark", "-p", str(port), "-c", "20", "-P", "32", "-n", str(count), "-r", "100000", "-q",
            "ZADD", "board:0", "__rand_int__", "member:__rand_int__"]


def measure_copy(server, redis):
    """Seconds, MB of the process that makes it, MB of the server, ms of CPU of the longest tick."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children")
    load = subprocess.Popen(["redis-benchmark", "-p", str(server.port), "-c", "20", "-n", "100000000", "-r", "100000", "-q",
                             "ZADD", "board:0", "__rand_int__", "member:__rand_int__"], stdout=subprocess.DEVNULL)
    time.sleep(1)
    ask(server.port, "CONFIG", "RESETSTAT")
    begin, used = time.monotonic(), 0
    ask(redis.port, "REPLICAOF", "127.0.0.1", server.port)
    while field(redis.port, "replication", "master_link_status") != "up":
        used = max([used, *map(memory_mb, children.read_text().split())])
        time.sleep(0.02)
    seconds = time.monotonic() - begin
    longest_ms = int(field(server.port, "stats", "tick_longest_cpu_us")) / 1000
    load.terminate()
    load.wait()
    return seconds, used, memory_mb(pid), longest_ms


def measure_writes(server, count, replica_pid=None):
    """Microseconds of CPU a write: the server's, the replica's."""
    pids = [server.process.pid, *([replica_pid] if replica_pid else [])]
    before = [cpu_s(pid) for pid in pids]
    subprocess.run(writes(server.port, count), stdout=subprocess.DEVNULL, check=True)
    time.sleep(2)
    return [f"{(cpu_s(pid) - at) / count * 1e6:.2f}" for pid, at in zip(pids, before)]


def wait_for_link(port):
    while field(port, "replication", "master_link_status") != "up":
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="build/leaderboard-server")
    parser.add_argument("--module", default="build/leaderboard.so")
    parser.add_argument("--members", type=int, default=2000000)
    parser.add_argument("--writes", type=int, default=1000000)
    options = parser.parse_args()
    program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    server = Server("leaderboard", options.server)
    redis = Host(program, Path(options.module).resolve())
    fill(server.port, options.members)
    measure_writes(server, options.writes)  # the members that it writes are there
    alone = measure_writes(server, options.writes)
    seconds, used, own, longest_ms = measure_copy(server, redis)
    with_redis = measure_writes(server, options.writes, redis.process.pid)
    redis.stop()
    replica = Server("replica", options.server, ["--replicaof", f"127.0.0.1 {server.port}"])
    wait_for_link(replica.port)
    with_own = measure_writes(server, options.writes, replica.process.pid)
    replica.stop()
    server.stop()
    table = markdown_table(["microseconds of CPU a write", "server", "replica"],
                           [["nobody follows", *alone, ""], ["a Redis with the module", *with_redis],
                            ["a replica of its own kind", *with_own]])
    stem = f"{datetime.date.today().isoformat()}-leaving"
    path = Path(__file__).parent / "results" / f"{stem}.md"
    path.write_text(f"""# A Redis with the module follows the server, {stem}

- Machine: {machine()}
- Command: `python3 bench/leaving.py --members {options.members}`
- Load of the machine at the end, from other work too: {os.getloadavg()[0]:.1f}: trust CPU, not seconds

The copy of {options.members:,} members, under the writes of 20 clients: {seconds:.1f} seconds, {used:.0f} MB for the process that
makes it beside {own:.0f} MB of the server; the longest tick took {longest_ms:.1f} ms of CPU.

{table}
""")
    say(path.read_text())


if __name__ == "__main__":
    main()
