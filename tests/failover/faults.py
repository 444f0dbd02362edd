"""What happens to a cluster in a round: functions of the cluster. What they do not undo, Cluster.heal does."""
import time

import nodes

SWITCH_LIMIT_S = 25     # detection, vote and promotion take about 5 s
TILT_LIMIT_S = 75       # Sentinels that distrust their clock wait for 30 s
RETRY_LIMIT_S = 60      # after a failover without a candidate: twice failover-timeout
DOWN_AFTER_S = 3        # deploy/sentinel.conf
SLOW_BITS = 600_000     # a second, for a copy that takes a while
CLOCK_STEPS_S = (-86400, -3600, -30, -2, 2, 30, 3600, 86400)
# A Sentinel whose clock goes back by a day does not connect to anybody for a day.
SENTINEL_STEPS_S = (-20, 20, 3600, 86400)


def between(cluster, low, high):
    return cluster.randomness.uniform(low, high)


def linger(cluster, low=0.5, high=4):
    """The fault stays while the new master is at work already."""
    time.sleep(between(cluster, low, high))


def expect_switch(cluster, master, limit_s=SWITCH_LIMIT_S):
    new = cluster.wait_switch(master, limit_s)
    cluster.say(f"master is {new.host}" if new else "no failover")
    return new


def hosts_but(cluster, *nodes_apart):
    """Servers and Sentinels, without some servers; never the clients and HAProxy."""
    return [host.host for host in (*cluster.nodes, *cluster.sentinels) if host not in nodes_apart]


def strike(cluster, what, how, low=0.5, high=4, limit_s=SWITCH_LIMIT_S):
    """Something happens to the master, and another one takes its place. what: {} is its host."""
    master = cluster.master()
    cluster.say(what.format(master.host))
    how(master)
    expect_switch(cluster, master, limit_s)
    linger(cluster, low, high)


# ---- processes ----

def kill(cluster):
    """kill -9 of the master, which comes back after the failover"""
    strike(cluster, "kill -9 {}", nodes.Node.kill)


def kill_and_back(cluster):
    """kill -9 of the master, which is back within down-after"""
    master = cluster.master()
    cluster.say(f"kill -9 {master.host}")
    master.kill()
    time.sleep(between(cluster, 0, DOWN_AFTER_S / 2))
    master.start()
    linger(cluster, 3, 6)


def kill_twice(cluster):
    """kill -9 of the master, and of the one that takes over"""
    master = cluster.master()
    cluster.say(f"kill -9 {master.host}")
    master.kill()
    new = expect_switch(cluster, master)
    if new:
        master.start()
        time.sleep(between(cluster, 0, 3))
        cluster.say(f"kill -9 {new.host}")
        new.kill()
        cluster.wait_switch(new, RETRY_LIMIT_S)


def end_well(cluster, node):
    began_at = time.monotonic_ns()
    cluster.say(f"SIGTERM {node.host}")
    node.end()
    cluster.stops.append((began_at, time.monotonic_ns()))


def end(cluster):
    """SIGTERM of the master, which comes back after the failover"""
    master = cluster.master()
    end_well(cluster, master)
    expect_switch(cluster, master)
    linger(cluster)


def restart(cluster):
    """SIGTERM of the master, which is back at once, as by systemctl restart"""
    master = cluster.master()
    for _ in range(cluster.randomness.choice((1, 1, 2))):
        end_well(cluster, master)
        master.start()
        linger(cluster, 1, 3)


def power(cluster):
    """power cut at the master (the journal's last second is gone), which comes back after the failover"""
    strike(cluster, "power cut at {}", nodes.Node.cut_power)


def power_and_back(cluster):
    """power cut at the master, which is back within down-after"""
    master = cluster.master()
    cluster.say(f"power cut at {master.host}")
    master.cut_power()
    time.sleep(between(cluster, 0, DOWN_AFTER_S / 2))
    master.start()
    linger(cluster, 5, 10)


def power_at_replica(cluster):
    """power cut at a replica, which is back at once; then kill -9 of the master"""
    master = cluster.master()
    replica = cluster.randomness.choice(cluster.replicas(master))
    cluster.say(f"power cut at {replica.host}")
    replica.cut_power()
    replica.start()
    time.sleep(between(cluster, 0, 2))
    cluster.say(f"kill -9 {master.host}")
    master.kill()
    expect_switch(cluster, master)
    linger(cluster)


def pause(cluster):
    """SIGSTOP of the master, which goes on after the failover"""
    strike(cluster, "SIGSTOP {}", nodes.Node.stop)


def pause_briefly(cluster):
    """SIGSTOP of the master for less than down-after"""
    master = cluster.master()
    cluster.say(f"SIGSTOP {master.host}")
    master.stop()
    time.sleep(between(cluster, 0.5, DOWN_AFTER_S - 0.5))
    master.go_on()
    linger(cluster)


# ---- networks ----

def unplug(cluster):
    """the master's host loses its network"""
    strike(cluster, "unplug {}", lambda master: cluster.network.unplug(master.host))


def cut_both(cluster):
    """the master is cut off from servers and Sentinels; clients reach it"""
    strike(cluster, "cut {} from all",
           lambda master: cluster.network.separate([master.host], hosts_but(cluster, master)), 2, 6)


def cut_out(cluster):
    """nothing that the master sends reaches servers and Sentinels"""
    strike(cluster, "cut {} to all", lambda master: cluster.network.cut([master.host], hosts_but(cluster, master)), 2, 6)


def cut_in(cluster):
    """nothing that servers and Sentinels send reaches the master"""
    strike(cluster, "cut all to {}", lambda master: cluster.network.cut(hosts_but(cluster, master), [master.host]), 2, 6)


def cut_with_replica(cluster):
    """master and one replica on one side, the other replica and the Sentinels on the other"""
    master = cluster.master()
    friend = cluster.randomness.choice(cluster.replicas(master))
    cluster.say(f"cut {master.host} and {friend.host} from all")
    cluster.network.separate([master.host, friend.host], hosts_but(cluster, master, friend))
    expect_switch(cluster, master)
    linger(cluster, 2, 6)


def cut_among_readers(cluster):
    """nobody writes when the master is cut off, and then only those who have gone to the new one"""
    master = cluster.master()
    cluster.tell_clients("reads")
    time.sleep(1)
    cluster.say(f"cut {master.host} from all")
    cluster.network.separate([master.host], hosts_but(cluster, master))
    expect_switch(cluster, master)
    time.sleep(1)
    # Told by Sentinel, ioredis goes at once. The others read where they are, as long as they are answered.
    cluster.tell_clients("all", lambda name, asked: (name, asked) == ("ioredis", "sentinel"))
    linger(cluster, 3, 6)
    cluster.tell_clients("all")


def cut_at_random(cluster):
    """each direction between two hosts is cut with a probability of 0.3"""
    hosts = hosts_but(cluster)
    for source in hosts:
        for target in hosts:
            if cluster.randomness.random() < 0.3:
                cluster.network.cut([source], [target])
    cluster.say("cut " + " ".join(f"{source}>{target}" for source, target in sorted(cluster.network.cuts)))
    time.sleep(between(cluster, 4, 12))


# ---- by hand, disks ----

def order_failover(cluster, master, *words):
    for _ in range(20):
        if cluster.randomness.choice(cluster.sentinels).ask(
                "SENTINEL", "FAILOVER", nodes.MASTER_NAME, *words) == b"OK":
            cluster.say(" ".join(("SENTINEL FAILOVER", *words)))
            return expect_switch(cluster, master)
        time.sleep(0.5)
    cluster.say("no Sentinel took SENTINEL FAILOVER")
    return None


def switch_over(cluster):
    """SENTINEL FAILOVER"""
    order_failover(cluster, cluster.master())
    linger(cluster)


def coordinate(cluster):
    """SENTINEL FAILOVER, with COORDINATED where Sentinel knows that (Valkey 9)"""
    answer = cluster.sentinels[0].ask("SENTINEL", "FAILOVER", "nobody", "COORDINATED")
    order_failover(cluster, cluster.master(), *["COORDINATED"] * ("No such" in answer.text))
    linger(cluster)


def fill_disk(cluster):
    """the master's disk is full, and SENTINEL FAILOVER follows"""
    master = cluster.master()
    cluster.say(f"fill the disk of {master.host}")
    master.fill_disk()
    time.sleep(between(cluster, 1, 3))
    order_failover(cluster, master)
    linger(cluster)


# ---- copies ----

def start_copy(cluster, master):
    """A replica begins anew, slowly; it and the other one, once its copy is under way."""
    copying, whole = cluster.randomness.sample(cluster.replicas(master), 2)
    copying.kill()
    copying.wipe()
    cluster.network.slow(copying.host, SLOW_BITS)
    copying.configure(master)
    copying.start()
    for _ in range(1000):
        if is_copying(copying):
            break
        time.sleep(0.01)
    return copying, whole


def is_copying(node):
    info = node.info()
    return info.get("role") == "slave" and info.get("master_sync_in_progress") == "1"


def kill_during_copy(cluster, master, copying):
    """kill -9 of the master, and whether the copy was still under way."""
    is_under_way = is_copying(copying)
    master.kill()
    cluster.say(f"kill -9 {master.host}; {copying.host} " +
                ("was copying" if is_under_way else "HAD ITS COPY ALREADY"))


def copy(cluster):
    """kill -9 of the master while one replica receives its first copy"""
    master = cluster.master()
    copying, _ = start_copy(cluster, master)
    kill_during_copy(cluster, master, copying)
    expect_switch(cluster, master)
    linger(cluster)


def copy_alone(cluster):
    """the same, and the other replica is paused: the unfinished one is the only candidate"""
    master = cluster.master()
    copying, whole = start_copy(cluster, master)
    cluster.say(f"SIGSTOP {whole.host}")
    whole.stop()
    time.sleep(DOWN_AFTER_S + 1)
    kill_during_copy(cluster, master, copying)
    cluster.later(DOWN_AFTER_S + 4, whole.go_on)
    if expect_switch(cluster, master, RETRY_LIMIT_S) is copying:
        cluster.say(f"{copying.host} was chosen, which has no whole copy")
    linger(cluster)


# ---- clocks ----

def step_clocks(cluster):
    """the clocks of all servers are stepped, and the master is killed"""
    for node in cluster.nodes:
        step = cluster.randomness.choice(CLOCK_STEPS_S)
        node.step_clock(step)
        cluster.say(f"clock of {node.host}: {step:+} s")
    time.sleep(between(cluster, 0, 2))
    kill(cluster)


def tilt(cluster):
    """the clocks of two Sentinels are stepped (TILT), and the master is killed"""
    for sentinel in cluster.randomness.sample(cluster.sentinels, 2):
        step = cluster.randomness.choice(SENTINEL_STEPS_S)
        sentinel.step_clock(sentinel.step_s + step)
        cluster.say(f"clock of {sentinel.host} by {step:+} s")
    strike(cluster, "kill -9 {}", nodes.Node.kill, limit_s=TILT_LIMIT_S)


# How often each comes in a mix.
WEIGHTS = {
    kill: 3, kill_and_back: 2, kill_twice: 1, end: 2, restart: 2, power: 2, power_and_back: 2, power_at_replica: 2, pause: 3,
    pause_briefly: 1, unplug: 2, cut_both: 3, cut_out: 3, cut_in: 3, cut_with_replica: 3, cut_among_readers: 2,
    cut_at_random: 2, switch_over: 3, coordinate: 1, fill_disk: 1, copy: 2, copy_alone: 1, step_clocks: 2, tilt: 1}
SHORT = (kill, cut_both, end)
# Nothing happens beside these, and nothing may be lost with any promise. A write that was done and not answered is a
# fault, too: it is done once more when its client tries again.
PLANNED = (coordinate,)


def disturb(cluster):
    """Beside the fault itself, now and then: a clock that is stepped, a replica that pauses."""
    if cluster.randomness.random() < 0.3:
        node, step = cluster.randomness.choice(cluster.nodes), cluster.randomness.choice(CLOCK_STEPS_S)
        node.step_clock(step)
        cluster.say(f"clock of {node.host}: {step:+} s")
    if cluster.randomness.random() < 0.2:
        node = cluster.randomness.choice(cluster.replicas(cluster.master()))
        if node.is_running():
            cluster.say(f"SIGSTOP {node.host} for a moment")
            node.stop()
            cluster.later(between(cluster, 0.2, DOWN_AFTER_S - 1), node.go_on)


def mixed(fault):
    """A fault, with disturbances now and then."""
    def run(cluster):
        disturb(cluster)
        fault(cluster)
    return run
