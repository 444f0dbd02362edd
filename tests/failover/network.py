"""Hosts as network namespaces on one bridge, which are cut from each other in one direction or in both.

The harness itself runs in namespaces of its own (enter), as root or not: nothing of it is seen outside,
several can run side by side with the same addresses, and all its processes end with it.

A cut from one host to another is an entry in the first one's table of neighbours: the frames go to an
address that nobody has, silently, as on a broken line. That needs no filter of the kernel."""
import os
import subprocess
import sys

from process import end_with_the_test

PREFIX = "10.0.0."  # as in deploy/sentinel.conf and deploy/haproxy-sentinel.cfg
NOBODY = "02:00:00:00:00:fe"
BRIDGE_HOST = 254
INSIDE = "LEADERBOARD_FAILOVER_INSIDE"
UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
if os.getuid() != 0:
    UNSHARE += ["--user", "--map-root-user"]


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def why_not():
    """Why this machine cannot have such networks; None: it can."""
    try:
        tried = subprocess.run([*UNSHARE, "sh", "-c", "mount -t tmpfs tmpfs /run && ip netns add host && "
                                "ip link add bridge type bridge && "
                                "ip link add to-host type veth peer name eth0 netns host"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        return str(error)
    return None if tried.returncode == 0 else tried.stdout.strip() or "unshare fails"


def spawn_inside(words, **how):
    """This program once more, with these arguments, in namespaces of its own."""
    return subprocess.Popen([*UNSHARE, sys.executable, sys.argv[0], *words],
                            env={**os.environ, INSIDE: "1"}, preexec_fn=end_with_the_test, **how)


def is_inside():
    return os.environ.get(INSIDE) == "1"


class Network:
    """hosts: name -> last number of the address."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.cuts = set()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge", "type", "bridge")
        ip("addr", "add", f"{PREFIX}{BRIDGE_HOST}/24", "dev", "bridge")
        ip("link", "set", "bridge", "up")
        for name, number in hosts.items():
            ip("netns", "add", name)
            ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"to-{name}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"{PREFIX}{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "eth0", "up")

    def address(self, name):
        return f"{PREFIX}{self.hosts[name]}"

    def name_of(self, address):
        return next((name for name in self.hosts if self.address(name) == address), address)

    def on(self, name, command):
        """The command line that runs a command on a host."""
        return ["nsenter", f"--net=/run/netns/{name}", *map(str, command)]

    def cut(self, sources, targets):
        """What sources send to targets is lost."""
        for source in sources:
            for target in targets:
                if source != target and (source, target) not in self.cuts:
                    ip("-n", source, "neigh", "replace", self.address(target), "lladdr", NOBODY, "dev",
                       "eth0", "nud", "permanent")
                    self.cuts.add((source, target))

    def separate(self, some, others):
        """Both directions."""
        self.cut(some, others)
        self.cut(others, some)

    def unplug(self, name):
        ip("link", "set", f"to-{name}", "down")

    def slow(self, name, bits):
        """What comes to a host comes with so many bits a second at most; None: as fast as it goes."""
        device = f"to-{name}"
        subprocess.run(["tc", "qdisc", "del", "dev", device, "root"], stderr=subprocess.DEVNULL,
                       check=False)
        if bits is not None:
            subprocess.run(["tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{bits}bit",
                            "burst", "32kbit", "latency", "200ms"], check=True)

    def heal(self):
        for source, target in self.cuts:
            ip("-n", source, "neigh", "del", self.address(target), "dev", "eth0")
        self.cuts.clear()
        for name in self.hosts:
            ip("link", "set", f"to-{name}", "up")
