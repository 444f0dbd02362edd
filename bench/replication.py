"""full.py's part `replication`: what replicas cost their master and themselves, and how far behind they
are.

    stream  pipelined ZADDs at a steady rate; 0, 1 and 2 replicas follow in turn, a second each: CPU of the
            master and of a replica per ZADD. A replica that is not to follow is stopped and its link closed,
            so that all figures are of one master, seconds apart: nothing else of the machine drifts so fast
    copy    a full copy of a large board to a new replica: seconds, MB/s, the master's longest tick
    lag     beside a steady stream of other ZADDs: how long after the answer to a ZADD a replica shows it
            (it is asked again and again); and a ZADD with WAIT 1 behind it, until that answers

All servers have journals (everysec). The master has one core; replicas and the client share the other,
and CPU per operation is what counts."""
import signal
import socket
import statistics
import subprocess
import time

import plot
from servers import OURS, SETTLE_S, Server, cores, markdown_table, pinned, say

MILLION = 1000000
ZADD = f"--score-range {MILLION} ZADD board __score_int__ user:000__rand_int__"
JOURNAL = ["--appendonly", "yes", "--appendfsync", "everysec"]
BACKLOG = ["--repl-backlog-size", "512mb"]  # stopped replicas go on where they were
REPLICAS = (0, 1, 2)
STREAM_RATE = 500000
SLICES = 8  # of each number of replicas, in a round
SLICE_S = 1.0
BEHIND = 300  # groups that are not acknowledged, of one that has caught up
LAG_RATE = 50000
LAG_ASKED = 2000
POLL_S = 0.0002
WAIT_LIMIT_S = 300
NOTES = [
    "CPU, user and system, of the whole server per ZADD of the client: the master's holds requests and"
    " replies, a replica's only the change. The master is on one core, replicas and client on the other."
    " Replicas come and go while the ZADDs go on: each row is the median of its seconds",
    "A replica is asked every 0.2 ms whether it shows the write, so that much is in the first lag",
]


class Cluster:
    """A master and its replicas."""

    def __init__(self, part, replicas, settings=()):
        self.program = part.programs[OURS]
        self.master = Server("master", self.program, [*JOURNAL, *settings])
        self.replicas = [self.follow() for _ in range(replicas)]

    def follow(self):
        return Server("replica", self.program,
                      JOURNAL + ["--replicaof", f"127.0.0.1 {self.master.port}"], core=cores()[1])

    def wait_in_sync(self):
        give_up_at = time.monotonic() + WAIT_LIMIT_S
        for replica in self.replicas:
            while True:
                info = replica.info("replication")
                offset = self.master.info("replication")["master_repl_offset"]
                if info["master_link_status"] == "up" and info["slave_repl_offset"] == offset:
                    break
                if time.monotonic() > give_up_at:
                    raise SystemExit(f"a replica does not get in sync: {info}")
                time.sleep(0.01)

    def stop(self):
        for replica in self.replicas:
            replica.process.send_signal(signal.SIGCONT)
        for server in [self.master, *self.replicas]:
            server.stop()


def wait_until_followed(cluster, count):
    give_up_at = time.monotonic() + WAIT_LIMIT_S
    while True:
        info = cluster.master.info("replication")
        lines = [info.get(f"slave{i}", "") for i in range(int(info["connected_slaves"]))]
        behind = [int(info["master_repl_offset"]) - int(line.split("offset=")[1].split(",")[0])
                  for line in lines if "state=online" in line]
        if len(lines) == count == len(behind) and all(groups <= BEHIND for groups in behind):
            return
        if time.monotonic() > give_up_at:
            raise SystemExit(f"{count} replicas do not follow: {info}")
        time.sleep(0.02)


def let_follow(cluster, count):
    """The first of the replicas, and no others."""
    for replica in cluster.replicas[count:]:
        replica.process.send_signal(signal.SIGSTOP)
    cluster.master.ask("CLIENT KILL TYPE replica")
    for replica in cluster.replicas[:count]:
        replica.process.send_signal(signal.SIGCONT)
    wait_until_followed(cluster, count)
    time.sleep(SLICE_S / 4)


def measure_slice(cluster, count):
    servers = [cluster.master, *cluster.replicas[:count]]

    def figures():
        done = cluster.master.info("stats")["total_commands_processed"]
        return [int(done), *(server.cpu_ns() for server in servers)]
    before = figures()
    begun_at = time.monotonic()
    time.sleep(SLICE_S)
    after = figures()
    seconds = time.monotonic() - begun_at
    requests, *used = [b - a for a, b in zip(before, after)]
    us = [ns / 1000 / requests for ns in used]
    return {"us": us[0], "replica_us": statistics.mean(us[1:]) if count else 0.0,
            "per_second": requests / seconds, "busy": used[0] / 1e9 / seconds}


def stream(part, members):
    rate = part.scaled(STREAM_RATE)
    slices = SLICES if part.options.scale >= 1 else 1
    cells = {count: [] for count in REPLICAS}
    for _ in range(part.options.rounds):
        cluster = Cluster(part, max(REPLICAS), BACKLOG)
        part.versions[OURS] = cluster.master.version()
        part.generator.run(cluster.master, ZADD, members, members)
        cluster.wait_in_sync()
        words = part.generator.words(cluster.master, f"--rate {rate} {ZADD}", rate * 3600, members)
        words.remove("--wait")
        words.remove("1")
        with subprocess.Popen(words, stdout=subprocess.DEVNULL,
                              preexec_fn=pinned(cores()[1])) as load:
            for _ in range(slices):
                for count in REPLICAS:
                    let_follow(cluster, count)
                    cells[count].append(measure_slice(cluster, count))
            load.terminate()
        cluster.stop()
    result = []
    for count in REPLICAS:
        cell = {name: statistics.median(cell[name] for cell in cells[count])
                for name in cells[count][0]}
        result.append({"replicas": count, **cell})
        say(f"  {count} replicas: master {cell['us']:.3f} us, replica {cell['replica_us']:.3f} us,"
            f" {cell['per_second']:,.0f} ZADDs/s")
    return result


def copy(part, members):
    """To a new replica; of so many members."""
    cluster = Cluster(part, 0)
    part.generator.run(cluster.master, f"--score-range {MILLION} ZADD board __score_int__ "
                       "user:000__mixed_int__", members, members)
    time.sleep(SETTLE_S)
    cluster.master.ask("CONFIG RESETSTAT")
    begun_at = time.monotonic()
    cluster.replicas = [cluster.follow()]
    while cluster.replicas[0].info("replication")["master_link_status"] != "up":
        time.sleep(0.005)
    seconds = time.monotonic() - begun_at
    master, replica = cluster.master.info("everything"), cluster.replicas[0].info("everything")
    size = int(master["total_net_repl_output_bytes"])
    result = {"members": members, "seconds": seconds, "bytes": size,
              "mb_per_second": size / 1e6 / seconds,
              "tick_longest_us": int(master["tick_longest_us"]),
              "tick_longest_cpu_us": int(master.get("tick_longest_cpu_us", 0)),
              "replica_tick_longest_us": int(replica["tick_longest_us"])}
    cluster.stop()
    say(f"  copy of {members:,}: {seconds:.2f} s, {size / 1e6:.0f} MB, longest tick"
        f" {result['tick_longest_us']} us")
    return result


def percentiles(waits):
    waits = sorted(waits)
    return {"p50_us": waits[len(waits) // 2], "p99_us": waits[len(waits) * 99 // 100],
            "longest_us": waits[-1]}


class Asker:
    """One connection that asks and waits."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")

    def ask(self, line, lines=1):
        self.socket.sendall(line)
        return [self.reader.readline() for _ in range(lines)][-1]


def ask_wait(master, replica, number):
    """Microseconds from a ZADD to the answer of WAIT."""
    begun_at = time.perf_counter()
    if master.ask(b"ZADD lag %d m\r\nWAIT 1 5000\r\n" % number, 2) != b":1\r\n":
        raise SystemExit("WAIT: not acknowledged")
    return (time.perf_counter() - begun_at) * 1e6


def ask_seen(master, replica, number):
    """Microseconds from the answer to a ZADD until the replica shows it."""
    master.ask(b"ZADD seen %d m\r\n" % number)
    begun_at = time.perf_counter()
    while replica.ask(b"ZCOUNT seen %d %d\r\n" % (number, number)) != b":1\r\n":
        time.sleep(POLL_S)
        if time.perf_counter() - begun_at > WAIT_LIMIT_S:
            raise SystemExit("a write does not arrive")
    return (time.perf_counter() - begun_at) * 1e6


def lag(part, members):
    cluster = Cluster(part, 1)
    part.generator.run(cluster.master, ZADD, members, members)
    cluster.wait_in_sync()
    count = part.scaled(LAG_ASKED)
    words = part.generator.words(cluster.master, f"--rate {LAG_RATE} {ZADD}", LAG_RATE * 3600,
                                 members, 1, 50)
    words.remove("--wait")
    words.remove("1")
    master, replica = Asker(cluster.master.port), Asker(cluster.replicas[0].port)
    result = {"rate": LAG_RATE, "count": count}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, preexec_fn=pinned(cores()[1])) as load:
        time.sleep(1)
        for name, ask in (("wait", ask_wait), ("seen", ask_seen)):
            waits = []
            for number in range(1, count + 1):
                waits.append(ask(master, replica, number))
                time.sleep(0.002)
            result[name] = percentiles(waits)
        load.terminate()
    cluster.stop()
    say(f"  lag at {LAG_RATE:,} ZADDs/s: seen p50 {result['seen']['p50_us']:.0f} us,"
        f" p99 {result['seen']['p99_us']:.0f} us; WAIT p50 {result['wait']['p50_us']:.0f} us,"
        f" p99 {result['wait']['p99_us']:.0f} us")
    return result


def tables(results):
    rows = [[str(row["replicas"]), f"{row['us']:.3f}",
             f"{row['us'] / results['stream'][0]['us']:.2f}",
             f"{row['replica_us']:.3f}" if row["replicas"] else "",
             f"{row['replica_us'] / row['us']:.2f}" if row["replicas"] else "",
             f"{row['per_second']:,.0f}"] for row in results["stream"]]
    copied, lagged = results["copy"], results["lag"]
    return (markdown_table(["replicas", "master, us a ZADD", "times that without", "replica, us",
                            "of the master's", "ZADDs/s"], rows)
            + "\n\n" + markdown_table(
                ["members copied", "MB", "seconds", "MB/s", "members/s", "master's longest tick, us",
                 "of that CPU, us", "replica's longest tick, us"],
                [[f"{copied['members']:,}", f"{copied['bytes'] / 1e6:.0f}",
                  f"{copied['seconds']:.2f}", f"{copied['mb_per_second']:.0f}",
                  f"{copied['members'] / copied['seconds']:,.0f}", f"{copied['tick_longest_us']:,}",
                  f"{copied['tick_longest_cpu_us']:,}", f"{copied['replica_tick_longest_us']:,}"]])
            + "\n\n" + markdown_table(
                [f"beside {lagged['rate']:,} ZADDs/s, {lagged['count']:,} times", "p50, us", "p99, us",
                 "longest, us"],
                [[title] + [f"{lagged[name][figure]:.0f}" for figure in ("p50_us", "p99_us", "longest_us")]
                 for name, title in (("seen", "a ZADD's answer, until the replica shows it"),
                                     ("wait", "a ZADD, until WAIT 1 answers"))]))


def draw(results):
    version = next(iter(results["versions"].values()), "")
    rows = [(f"{row['replicas']} replicas",
             {"master": row["us"], **({"replica": row["replica_us"]} if row["replicas"] else {})})
            for row in results["stream"]]
    return plot.value_bars("CPU per ZADD of the client", results["subtitle"], "master",
                           {"master": version, "replica": version}, rows, " us")


def measure(part):
    members = part.scaled(MILLION)
    measured = {"stream": stream(part, members), "copy": copy(part, part.scaled(10 * MILLION)),
                "lag": lag(part, members)}
    subtitle = f"One board of {members:,} members; median of {part.options.rounds} rounds"
    results = part.results(subtitle, **measured)
    part.write("replication", "Replication", NOTES, tables(results), draw, results)
