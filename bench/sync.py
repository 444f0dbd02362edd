"""full.py's part `sync`: what sync-replicas costs: how many ZADDs a second, how long clients wait for their
answers, and CPU per ZADD, beside asynchronous replication.

One master and two replicas, all with journals. With sync-replicas an answer leaves when one of the replicas
has the change: in its journal, or with sync-replicas-fsync on its disk. The master has one core; replicas and
the client share the other: so the rates are those of a busy machine."""
import statistics

import plot
from replication import MILLION, ZADD, Cluster
from servers import OURS, Server, cores, markdown_table, say

SYNC = ["--sync-replicas", "1", "--replication-nodes", "3"]
# Name, appendfsync, settings.
MODES = (("asynchronous, everysec", "everysec", []),
         ("sync-replicas 1, everysec", "everysec", SYNC),
         ("asynchronous, always", "always", []),
         ("sync-replicas 1, fsync yes, always", "always", [*SYNC, "--sync-replicas-fsync", "yes"]))
# Clients, pipeline, ZADDs.
LOADS = ((1, 1, 20_000), (50, 1, 300_000), (50, 32, 2 * MILLION))
NOTES = [
    "Waits: from sending a pipeline to its last answer. CPU, user and system, of the whole server per ZADD of"
    " the client. The master is on one core; two replicas and the client share the other",
    "always: with one client each answer waits for an fsync of the master's disk, and with"
    " sync-replicas-fsync for one of a replica's behind it",
]


class Synced(Cluster):
    """A master and two replicas, of these settings."""

    def __init__(self, part, fsync, settings):
        self.program = part.programs[OURS]
        self.words = ["--appendonly", "yes", "--appendfsync", fsync, *settings]
        # A master without its replicas is closed, and does not answer PING: it becomes one when they are there.
        self.master = Server("master", self.program, [*self.words, "--replicaof", "127.0.0.1 1"])
        self.replicas = [self.follow() for _ in range(2)]
        self.master.ask("REPLICAOF NO ONE")
        self.wait_in_sync()

    def follow(self):
        return Server("replica", self.program,
                      [*self.words, "--replicaof", f"127.0.0.1 {self.master.port}"], core=cores()[1])


def measure_load(part, cluster, members, load):
    clients, pipeline, requests = load
    before = [server.cpu_ns() for server in cluster.replicas]
    told = part.generator.run(cluster.master, ZADD, part.scaled(requests), members, pipeline, clients)
    cluster.wait_in_sync()
    used = [(server.cpu_ns() - ns) / 1000 / told["requests"]
            for server, ns in zip(cluster.replicas, before)]
    return {"us": told["us"], "replica_us": statistics.mean(used), "per_second": told["per_second"],
            "p50_us": told["p50_us"], "p99_us": told["p99_us"]}


def measure(part):
    members = part.scaled(MILLION)
    cells = {(mode[0], load): [] for mode in MODES for load in LOADS}
    for _ in range(part.options.rounds):
        for name, fsync, settings in MODES:
            cluster = Synced(part, fsync, settings)
            part.versions[OURS] = cluster.master.version()
            part.generator.run(cluster.master, ZADD, members, members, 100, 50)
            for load in LOADS:
                cells[name, load].append(measure_load(part, cluster, members, load))
            cluster.stop()
    rows = []
    for (name, load), measured in cells.items():
        row = {"mode": name, "clients": load[0], "pipeline": load[1],
               **{figure: statistics.median(each[figure] for each in measured)
                  for figure in measured[0]}}
        rows.append(row)
        say(f"  {name}, {load[0]} clients, pipelines of {load[1]}: {row['per_second']:,.0f} ZADDs/s,"
            f" p50 {row['p50_us']:.0f} us, p99 {row['p99_us']:.0f} us, master {row['us']:.2f} us,"
            f" replica {row['replica_us']:.2f} us")
    subtitle = f"One board of {members:,} members; median of {part.options.rounds} rounds"
    results = part.results(subtitle, rows=rows)
    part.write("sync", "What sync-replicas costs", NOTES, tables(rows), draw, results)


def tables(rows):
    return markdown_table(
        ["replication", "clients", "pipeline", "ZADDs/s", "p50, us", "p99, us", "master, us a ZADD",
         "replica, us"],
        [[row["mode"], str(row["clients"]), str(row["pipeline"]), f"{row['per_second']:,.0f}",
          f"{row['p50_us']:,.0f}", f"{row['p99_us']:,.0f}", f"{row['us']:.2f}", f"{row['replica_us']:.2f}"]
         for row in rows])


def draw(results):
    version = next(iter(results["versions"].values()), "")
    names = [mode[0] for mode in MODES]
    rows = [(f"{clients} clients, pipeline {pipeline}",
             {row["mode"]: row["p99_us"] for row in results["rows"]
              if (row["clients"], row["pipeline"]) == (clients, pipeline)})
            for clients, pipeline, _ in LOADS]
    return plot.value_bars("99% of answers came within", results["subtitle"], names[0],
                           {name: version for name in names}, rows, " us")
