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
import time
from pathlib import Path

from load import Arena, Trouble
from process import wait_until

SHUTDOWN_IOCTL, NO_LOG_FLUSH = 0x8004587D, 2
LIE_FILE_SYNC, LIE_DIRECTORY_SYNC = 1, 2  # as lies.c has it
IMAGE_SIZE = 96 << 20
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
        def unmounted():
            call("umount", str(self.root))
            return True
        wait_until(unmounted, "umount", 10, passing=subprocess.CalledProcessError)
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


class Rig(Arena):
    """A server on such a disk, and its players. lies: syncs that are answered and not done once it has started."""

    def __init__(self, program, work, policy, seed, lies=0):
        self.work = Path(work)
        self.disk = Disk(self.work)
        self.disk.mount()
        self.lies, self.lost_ms = lies, []
        super().__init__(program, self.disk.root / "served", policy, seed)
        self.server.log = self.work / "log"
        if lies:
            library, told = self.work / "lies.so", self.work / "lies"
            subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", Path(__file__).with_name("lies.c"),
                            "-o", library], check=True)
            told.write_bytes(bytes(1))
            with open(told, "r+b") as file:
                self.told_lies = mmap.mmap(file.fileno(), 1)
            self.server.environment = {"LD_PRELOAD": str(library), "TORTURE_LIES": str(told)}

    def close(self):
        self.server.kill()
        if self.disk.is_mounted:
            self.disk.unmount()

    def begin_again(self):
        """An empty disk."""
        self.server.kill()
        self.disk.unmount()
        self.disk.make()
        self.disk.mount()
        self.begin_anew()
        self.start()

    def start(self):
        if self.lies:
            self.told_lies[0] = 0
        super().start()
        if self.lies:
            self.told_lies[0] = self.lies

    def cut(self):
        """What was answered until now is promised. Not what is answered from now on: an fsync that is under way while
        ext4 is shut down can succeed without being done, as no disk's would."""
        self.cut_at = time.time()
        self.disk.cut()

    def cut_at_some_time(self, longest_s):
        """Under load, with a snapshot just before it at times."""
        def end():
            time.sleep(self.random.uniform(0.02, longest_s))
            if self.random.random() < 0.4 and not self.lies:
                self.snapshot()
                time.sleep(self.random.uniform(0, 0.08))
            self.cut()
            time.sleep(self.random.choice((0, 0, 0.03)))
            self.server.kill()
        self.play(end)
        self.disk.come_back()
        self.start()

    def always(self):
        """Whatever was answered must be there."""
        self.cut_at_some_time(0.4)
        self.judge()

    def everysec(self):
        """What is lost is counted in time: from the first acknowledgement of it to the cut."""
        self.cut_at_some_time(3)
        cut_at = self.cut_at
        self.judge([0] * len(self.players))
        self.lost_ms.append(max(0.0, (cut_at - self.first_lost_at) * 1000))

    def off(self):
        """The journal is off: what was there at the last SAVE must be there after the cut."""
        promised = None
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self.play(lambda: time.sleep(self.random.uniform(0.02, 0.15)))
            promised = [player.count + len(player.acked_at) for player in self.players]
            self.save()
        if self.random.random() < 0.5:
            self.play(lambda: time.sleep(self.random.uniform(0.01, 0.1)))
        self.cut()
        self.server.kill()
        self.disk.come_back()
        self.start()
        self.judge(promised)

    def save(self):
        """SAVE or BGSAVE, and wait until it says that all is on disk."""
        if self.random.random() < 0.7:
            answer = self.server.ask("SAVE")
            if answer != b"OK":
                raise Trouble(f"SAVE: {answer}")
            return
        self.server.ask("BGSAVE")
        told = wait_until(lambda: self.is_saved(self.server.ask("INFO", "persistence").decode()), "BGSAVE ends")
        if "rdb_last_bgsave_status:ok" not in told:
            raise Trouble(f"BGSAVE has failed:\n{told}")

    @staticmethod
    def is_saved(told):
        return told if "rdb_bgsave_in_progress:0" in told and "aof_rewrite_in_progress:0" in told else None

    def run(self, cycles, until_s=float("inf")):
        """So many power cuts, or until the time has come; how many. Raises Trouble."""
        self.start()
        for done in range(cycles):
            if time.monotonic() > until_s:
                return done
            if done > 0 and done % WIPE_EVERY == 0:
                self.begin_again()
            getattr(self, self.policy)()
        return cycles
