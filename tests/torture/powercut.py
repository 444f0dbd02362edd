"""Power cuts: an ext4 of its own, shut down under load so that it drops what was not fsynced.

    image file -- loop device -- ext4 -- the server's directory
                                   ^ FS_IOC_SHUTDOWN, no flush of the journal: from this moment
                                     nothing more reaches the disk, as if the power had gone

Then the server is killed, and the disk is mounted again, as after the power came back. kill -9
alone cannot show a missing fsync: the kernel still writes what it was given.

Proven by a clean run: under always, nothing that was acknowledged is lost; under everysec what is
lost is what came last, as of one point in time, and how many milliseconds of it is counted; with
the journal off, what SAVE or BGSAVE said is saved is there."""
import fcntl
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import crash
import servers
from crash import Trouble

SHUTDOWN_IOCTL, NO_LOG_FLUSH = 0x8004587D, 2
LIE_FILE_SYNC, LIE_DIRECTORY_SYNC = 1, 2  # as lies.c has it
IMAGE_SIZE = 96 << 20
SAVE_LIMIT_S = 60
WIPE_EVERY = 50


def why_not():
    """Why power cuts cannot be tried here; None: they can."""
    if os.geteuid() != 0:
        return "not root: an ext4 image has to be mounted"
    if not os.path.exists("/dev/loop-control"):
        return "no loop devices"
    for tool in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            return f"{tool} is missing"
    try:
        with tempfile.TemporaryDirectory(prefix="torture-probe-") as directory:
            disk = Disk(directory)
            disk.mount()
            disk.unmount()
    except (subprocess.CalledProcessError, OSError) as error:
        return f"mounting does not work here: {error}"
    return None


def call(*words):
    """Run a tool; its output is shown when it fails."""
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


class Disk:
    """An ext4 in an image file. It is best kept in memory: /dev/shm."""

    def __init__(self, directory):
        self.image = Path(directory) / "image"
        self.root = Path(directory) / "mounted"
        self.root.mkdir(parents=True, exist_ok=True)
        self.is_mounted = False
        self.make()

    def make(self):
        """An empty file system."""
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_SIZE)
        call("mkfs.ext4", "-q", "-F", str(self.image))

    def mount(self):
        call("mount", "-o", "loop", str(self.image), str(self.root))
        self.is_mounted = True

    def unmount(self):
        """Whoever was killed just now may hold it for a moment."""
        for attempt in range(100):
            try:
                call("umount", str(self.root))
                break
            except subprocess.CalledProcessError:
                if attempt == 99:
                    raise
                time.sleep(0.01)
        self.is_mounted = False

    def cut(self):
        """The power goes."""
        fd = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN_IOCTL, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def come_back(self):
        """The power is back: the file system replays its own journal."""
        self.unmount()
        self.mount()
        if not self.is_well():
            # Somebody's mount namespace still has it as it was. A copy of the image is a disk that
            # nobody knows.
            self.unmount()
            copy = self.image.with_name(f"image.{time.monotonic_ns()}")
            call("cp", "--sparse=always", str(self.image), str(copy))
            self.image.unlink()
            self.image = copy
            self.mount()

    def is_well(self):
        """Can it be read?"""
        try:
            os.listdir(self.root)
            with open(self.root / "probe", "wb"):
                pass
            os.unlink(self.root / "probe")
        except OSError:
            return False
        return True


class Rig:
    """A disk, a server on it, and its players. lies: syncs that are answered and not done once
    the server has started."""

    def __init__(self, program, work_directory, policy, seed, player_count=50, lies=0):
        self.work = Path(work_directory)
        self.work.mkdir(parents=True, exist_ok=True)
        self.disk = Disk(self.work)
        self.disk.mount()
        directory = self.disk.root / "served"
        self.arena = crash.Arena(program, directory, policy, seed, player_count)
        self.arena.server.log = self.work / "log"
        self.lost_ms = []
        self.cut_at = None
        self.lies = lies
        if lies:
            library, told = self.work / "lies.so", self.work / "lies"
            subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC",
                            Path(__file__).with_name("lies.c"), "-o", library], check=True)
            told.write_bytes(bytes(1))
            with open(told, "r+b") as file:
                self.told_lies = mmap.mmap(file.fileno(), 1)
            self.arena.server.environment = {"LD_PRELOAD": str(library), "TORTURE_LIES": str(told)}

    def close(self):
        self.arena.server.kill()
        if self.disk.is_mounted:
            self.disk.unmount()
        shutil.rmtree(self.work, ignore_errors=True)

    def begin_anew(self):
        """An empty disk."""
        self.arena.server.kill()
        self.disk.unmount()
        self.disk.make()
        self.disk.mount()
        self.arena.begin_anew()

    def cut(self):
        """What was answered until now is promised. Not what is answered from now on: an fsync that
        is under way while ext4 is shut down can succeed without being done, as no disk's would."""
        self.cut_at = self.arena.load.cut_at = time.time()
        self.disk.cut()

    def promise(self):
        """Hold the server to what had been answered when the power went."""
        for one in self.arena.players:
            answered = sum(at < self.cut_at for at in one.acked_at)
            one.promised_index = one.first_index + answered - 1

    def start(self):
        """Start the server; from then on its syncs lie, if they do."""
        if self.lies:
            self.told_lies[0] = 0
        self.arena.server.start(*crash.random_settings(self.arena))
        if self.lies:
            self.told_lies[0] = self.lies

    def restart(self):
        self.arena.server.kill()
        self.disk.come_back()
        try:
            self.start()
        except servers.StartFailed as failure:
            self.arena.keep_copy()
            raise Trouble(f"the server does not start after a power cut: {failure}") from None


def cut_under_load(rig, moment_s, settle_s):
    """Load; the power goes at the moment; a little later the server is killed."""
    arena = rig.arena
    arena.connect()
    if arena.random.random() < 0.4 and not rig.lies:
        ahead_s = arena.random.uniform(0, 0.08)
        crash.at_some_point(arena, max(0, moment_s - ahead_s), crash.snapshot_command(arena))

    def end():
        time.sleep(moment_s)
        rig.cut()
        time.sleep(settle_s)
        arena.server.kill()
    thread = threading.Thread(target=end)
    thread.start()
    arena.load.run()
    thread.join()
    arena.disconnect()


def always_cycle(rig):
    """Whatever was answered must be there."""
    random = rig.arena.random
    cut_under_load(rig, random.uniform(0.02, 0.4), random.choice((0, 0, random.uniform(0, 0.03))))
    rig.restart()
    rig.promise()
    rig.arena.judge_and_go_on()


def everysec_cycle(rig):
    """What is lost is counted in time: from the first acknowledgement of it to the cut."""
    arena = rig.arena
    cut_under_load(rig, arena.random.uniform(0.1, 3.0), 0)
    rig.restart()
    judgement = arena.judge()
    first_lost_at = judgement.first_lost_at()
    is_lost = first_lost_at is not None and first_lost_at < rig.cut_at
    rig.lost_ms.append((rig.cut_at - first_lost_at) * 1000 if is_lost else 0.0)
    arena.adopt(judgement)


def wait_for_snapshot(client):
    """Until BGSAVE is over. Raises Trouble when it has failed."""
    give_up_at = time.monotonic() + SAVE_LIMIT_S
    while True:
        told = client.ask("INFO", "persistence").decode()
        if "rdb_bgsave_in_progress:0" in told and "aof_rewrite_in_progress:0" in told:
            break
        if time.monotonic() > give_up_at:
            raise Trouble(f"BGSAVE takes more than {SAVE_LIMIT_S} s:\n{told}")
        time.sleep(0.002)
    if "rdb_last_bgsave_status:ok" not in told:
        raise Trouble(f"BGSAVE has failed:\n{told}")


def save(arena):
    """SAVE or BGSAVE, and wait until it says that all is on disk."""
    with arena.server.client() as client:
        if arena.random.random() < 0.7:
            reply = client.ask("SAVE")
            if reply != b"OK":
                raise Trouble(f"SAVE: {reply}")
            return
        reply = client.ask("BGSAVE")
        if not isinstance(reply, bytes):
            raise Trouble(f"BGSAVE: {reply}")
        wait_for_snapshot(client)


def save_cycle(rig):
    """The journal is off: what was there at the last SAVE must be there after the cut."""
    arena = rig.arena
    arena.connect()
    for _ in range(arena.random.choice((1, 1, 2, 3))):
        arena.load.run(time.monotonic() + arena.random.uniform(0.02, 0.15))
        promised = [one.acked_index for one in arena.players]
        save(arena)
        for one, index in zip(arena.players, promised):
            one.promised_index = index
    if arena.random.random() < 0.5:
        arena.load.run(time.monotonic() + arena.random.uniform(0.01, 0.1))
    rig.cut()
    arena.server.kill()
    arena.disconnect()
    rig.restart()
    arena.judge_and_go_on()


CYCLES = {"always": always_cycle, "everysec": everysec_cycle, "off": save_cycle}


def run_cycles(rig, cycles, until_s=float("inf"), progress=lambda done: None):
    """So many power cuts, or until the time has come. Raises Trouble."""
    arena = rig.arena
    rig.start()
    for done in range(cycles):
        if time.monotonic() > until_s:
            break
        if done > 0 and done % WIPE_EVERY == 0:
            rig.begin_anew()
            rig.start()
        CYCLES[arena.server.policy](rig)
        arena.counts["cuts"] += 1
        progress(done + 1)
    return arena.counts
