"""What runs on the hosts: servers, Sentinels, HAProxy. Configurations are those of deploy/, as they
stand."""
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import uuid
from pathlib import Path

import resp
from process import ROOT, end_with_the_test

DEPLOY = ROOT / "deploy"
PORT, SENTINEL_PORT = 6379, 26379
MASTER_NAME = "leaderboard"
PASSWORD = "shared"
ASK_TIMEOUT_S = 1.0
END_LIMIT_S = 30
BOOT_ID = "/proc/sys/kernel/random/boot_id"
POWER_LOSES_S = 1.0  # appendfsync everysec: what was written earlier is on the disk


class Unreachable(Exception):
    """The server does not answer, or not in time."""


def build_clock_step(work):
    """The library with which clocks are stepped."""
    library = work / "clock_step.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                    Path(__file__).with_name("clock_step.c")], check=True)
    return library


class Process:
    """A program on a host, with a wall clock of its own."""

    def __init__(self, network, host, work, library):
        self.network, self.host = network, host
        self.address = network.address(host)
        self.directory = work / host
        self.directory.mkdir()
        self.log = work / f"{host}.log"
        self.library, self.step_file = library, work / f"{host}.step"
        self.step_clock(0)
        self.process = None
        self.is_stopped = False

    def step_clock(self, seconds):
        """Against the machine's clock."""
        self.step_s = seconds
        with open(self.step_file, "r+b" if self.step_file.exists() else "w+b") as file:
            file.write(struct.pack("=q", round(seconds * 1e6)))

    def spawn(self, command, **environment):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.network.on(self.host, command), cwd=self.directory, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, preexec_fn=end_with_the_test,
                env={**os.environ, "CLOCK_STEP_FILE": str(self.step_file),
                     "LD_PRELOAD": str(self.library), **environment})

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def crash(self):
        """How it has ended without being killed, with the end of its log; None: it has not."""
        if self.process is None or self.process.poll() is None:
            return None
        tail = self.log.read_text(errors="replace").splitlines()[-40:]
        return f"{self.host} has ended with {self.process.returncode}:\n" + "\n".join(tail)

    def kill(self):
        if self.is_running():
            self.process.kill()
            self.process.wait()
            self.process = None
        self.is_stopped = False

    def end(self):
        """SIGTERM, and it ends well."""
        self.process.send_signal(signal.SIGTERM)
        if status := self.process.wait(END_LIMIT_S):
            raise AssertionError(f"{self.host} has ended with {status}")
        self.process = None

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self):
        if self.is_stopped and self.is_running():
            self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False


class Asked:
    """Commands to a port, each over a connection of its own."""
    port = PORT

    def ask(self, *words):
        """The reply. Unreachable when none comes, resp.Error raised as such is returned."""
        return self.ask_all([words])[0]

    def ask_all(self, requests, timeout_s=ASK_TIMEOUT_S):
        try:
            with resp.Client(self.port, timeout_s, self.address) as client:
                return client.ask_all(requests)
        except (OSError, ValueError) as error:
            raise Unreachable(f"{self.host}: {error}") from error

    def info(self, section="replication"):
        """The fields of a section; empty when the server does not answer, or with an error."""
        try:
            text = self.ask("INFO", section)
        except Unreachable:
            return {}
        if not isinstance(text, bytes):
            return {}
        pairs = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
        return {name: value for name, _, value in pairs}


class Node(Process, Asked):
    """A server under test: subclasses say how it is configured. Its files are on a file system of their
    own, which can be filled."""
    program = journals = None  # journals: the pattern of files that grow with every write
    disk_size = "192m"

    def __init__(self, network, host, work, library, settings):
        super().__init__(network, host, work, library)
        self.settings = [*settings, sentinel_user(), *self.users()]
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.disk_size}", "tmpfs", self.directory],
                       check=True)
        self.sizes = []  # of the files that grow, with the time
        self.boot_file = work / f"{host}.boot"
        self.boot()

    def configure(self, master):
        """Write the configuration. master: a Node, or None."""
        lines = [f"port {PORT}", f"bind 127.0.0.1 {self.address}", "protected-mode no",
                 f"dir {self.directory}", 'save ""', "appendonly yes", *self.lines(), *self.settings]
        if master is not None:
            lines.append(f"replicaof {master.address} {PORT}")
        self.config().write_text("".join(f"{line}\n" for line in lines))

    def users(self):
        """Two who write to the same boards (clients/redis_py.py). What the second one may begins with reading; a server
        that starts knows no more (Rights)."""
        return [f"user shared on >{PASSWORD} ~* &* +@all",
                f"user limited on >{PASSWORD} ~*:set ~*:inc ~*:tie ~*:once -@all +@read +@connection +@transaction +role"]

    def grants(self):
        """What the second one may, too, for a while."""
        return ["+zadd", "+zincrby"]

    def config(self):
        return self.directory / "server.conf"

    def boot(self):
        """The machine's number of this boot, by which a server knows that the power was cut."""
        self.boot_file.write_text(f"{uuid.uuid4()}\n")

    def start(self):
        self.spawn(["unshare", "--mount", "sh", "-c", f'mount --bind {self.boot_file} {BOOT_ID} && exec "$@"',
                    "sh", self.program, self.config()])

    def wipe(self):
        """Forget everything but the configuration. The process is not running."""
        for path in self.directory.iterdir():
            if path != self.config():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def fill_disk(self):
        with open(self.directory / "ballast", "wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
            except OSError:
                return

    def free_disk(self):
        (self.directory / "ballast").unlink(missing_ok=True)

    def growing_files(self):
        return [path for path in self.directory.rglob(self.journals) if path.is_file()]

    def note_sizes(self):
        """How long the journal is now: a power cut goes back to that."""
        now = time.monotonic()
        try:
            self.sizes.append((now, {path: path.stat().st_size for path in self.growing_files()}))
        except FileNotFoundError:
            pass
        while len(self.sizes) > 1 and self.sizes[1][0] < now - POWER_LOSES_S:
            del self.sizes[0]

    def cut_power(self):
        """kill -9, and the journal ends where it ended a second ago: what a power cut may leave under
        appendfsync everysec. Under always, what was acknowledged is on the disk."""
        self.kill()
        self.boot()
        if not self.sizes or "appendfsync always" in self.settings:
            return
        for path, size in self.sizes[0][1].items():
            if path.exists() and path.stat().st_size > size:
                os.truncate(path, size)

    def says_its_role(self):
        return True

    def records(self, board, first=0, last=-1):
        """All that clients can see of a board, in the order of ranks, best first."""
        return self.ask_all([("ZREVRANGE", board, first, last, "WITHSCORES")], 10)[0]

    def scores(self, board):
        """(member, score) in the order of ranks, best first."""
        rows = self.ask_all([("ZREVRANGE", board, 0, -1, "WITHSCORES")], 10)[0]
        return [(member.decode(), int(float(score))) for member, score in zip(rows[::2], rows[1::2])]


class Redis(Node):
    """Debian's redis-server: the harness is tried on it, and it loses writes."""
    program, journals = "redis-server", "*.incr.aof"
    order_of_ties = False  # by name

    def lines(self):
        return ["repl-diskless-sync-delay 0", "enable-debug-command local"]


class Leaderboard(Node):
    """leaderboard-server."""
    program, journals = "leaderboard-server", "*.journal"
    order_of_ties = True

    def lines(self):
        threads = os.environ.get("LEADERBOARD_TEST_IO_THREADS")
        return [f"io-threads {threads}"] if threads else []

    def grants(self):
        return [*super().grants(), "+lb.add"]

    def says_its_role(self):
        """Does its file?"""
        return self.info("server").get("config_rewrite_status") == "ok"

    def spawn(self, command, **environment):
        """Built with sanitizers it ends with the first report, which is in its log."""
        options = {"ASAN_OPTIONS": "verify_asan_link_order=0", "TSAN_OPTIONS": "halt_on_error=1"}
        super().spawn(command, **{name: ":".join(filter(None, (os.environ.get(name), text)))
                                  for name, text in options.items()}, **environment)

    def records(self, board, first=0, last=-1):
        """With times and packed keys: to the last bit."""
        return self.ask_all([("LB.RANGE", board, first, last, "WITHKEY")], 10)[0]


def sentinel_user():
    """The line of deploy/sentinel.conf that gives servers a user for Sentinel."""
    return re.search(r"^# (user sentinel .*)$", (DEPLOY / "sentinel.conf").read_text(), re.M).group(1)


class Sentinel(Process, Asked):
    """$LEADERBOARD_SENTINEL, else Debian's redis-sentinel, with deploy/sentinel.conf; is_user: with the lines by which it is a user with
    few rights, which stand there as a comment."""
    port = SENTINEL_PORT

    def __init__(self, network, host, work, library, is_user):
        super().__init__(network, host, work, library)
        text = (DEPLOY / "sentinel.conf").read_text()
        if is_user:
            text = re.sub(r"^# (sentinel auth-)", r"\1", text, flags=re.M)
        (self.directory / "sentinel.conf").write_text(text)

    def start(self):
        program = os.environ.get("LEADERBOARD_SENTINEL") or "redis-sentinel"
        self.spawn([program, self.directory / "sentinel.conf"])

    def master_address(self):
        """As this one sees it; None when it does not answer."""
        try:
            answer = self.ask("SENTINEL", "get-master-addr-by-name", MASTER_NAME)
        except Unreachable:
            return None
        return answer[0].decode() if isinstance(answer, list) else None

    def master_fields(self):
        return self.fields(self.ask("SENTINEL", "master", MASTER_NAME))

    def replicas(self):
        return [self.fields(row) for row in self.ask("SENTINEL", "replicas", MASTER_NAME)]

    @staticmethod
    def fields(row):
        words = [word.decode() for word in row]
        return dict(zip(words[::2], words[1::2]))


class Haproxy(Process):
    """HAProxy with deploy/haproxy-sentinel.cfg."""

    def start(self):
        self.spawn(["haproxy", "-f", DEPLOY / "haproxy-sentinel.cfg"])
