"""File calls that fail, lie or kill: faults.c, built and steered."""
import ctypes
import errno
import mmap
import os
import subprocess
from pathlib import Path

FOREVER = (1 << 64) - 1
SHORT, KILL_BEFORE, KILL_AFTER, KILL_TORN = 1000, 1001, 1002, 1003
FAULTS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR, "short": SHORT,
          "kill before": KILL_BEFORE, "kill after": KILL_AFTER, "kill torn": KILL_TORN}
LIE_FILE_SYNC, LIE_DIRECTORY_SYNC = 1, 2
CLASS_WRITE, CLASS_SYNC, CLASS_NAME, CLASS_OPEN, CLASS_READ = 1, 2, 4, 8, 16
ALL_CLASSES = 31
SOURCE = Path(__file__).with_name("faults.c")


class Control(ctypes.Structure):
    """As faults.c has it."""
    _fields_ = [("call_count", ctypes.c_uint64), ("first_call", ctypes.c_uint64),
                ("last_call", ctypes.c_uint64), ("hit_count", ctypes.c_uint64),
                ("lie_count", ctypes.c_uint64), ("fault", ctypes.c_uint32),
                ("classes", ctypes.c_uint32), ("lies", ctypes.c_uint32),
                ("filler", ctypes.c_uint32), ("hit_name", ctypes.c_char * 128)]


def build(directory):
    """The path of the shared object, made if it is not there."""
    library = Path(directory) / "faults.so"
    if not library.exists():
        own = library.with_suffix(f".{os.getpid()}")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O1", "-shared",
                        "-fPIC", str(SOURCE), "-o", str(own), "-ldl"], check=True)
        own.rename(library)
    return library


class Faults:
    """What file calls on a directory come to, for a server started with this environment."""

    def __init__(self, work_directory, inside):
        work = Path(work_directory)
        library = build(work)
        path = work / f"faults.{os.getpid()}.{id(self)}"
        path.write_bytes(bytes(ctypes.sizeof(Control)))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), ctypes.sizeof(Control))
        self.control = Control.from_buffer(self.memory)
        self.environment = {"LD_PRELOAD": str(library), "TORTURE_FAULTS": str(path),
                            "TORTURE_DIRECTORY": os.path.realpath(inside)}

    def count(self, classes=ALL_CLASSES):
        """Count calls from now on, and let none fail."""
        control = self.control
        control.first_call = control.last_call = control.fault = control.classes = 0
        control.call_count = control.hit_count = control.lie_count = 0
        control.hit_name = b""
        control.classes = classes

    def arm(self, fault, first_call, last_call=None, classes=ALL_CLASSES):
        """Count from now on; the calls from first_call to last_call (none: first_call) fail."""
        self.count(0)
        self.control.fault = fault
        self.control.first_call = first_call
        self.control.last_call = first_call if last_call is None else last_call
        self.control.classes = classes

    def disarm(self):
        """The disk is well again."""
        self.control.classes = 0

    def lie(self, lies):
        """From now on these syncs are answered and not done."""
        self.control.lies = lies

    @property
    def hit_count(self):
        return self.control.hit_count

    @property
    def call_count(self):
        return self.control.call_count

    @property
    def hit_name(self):
        return self.control.hit_name.decode(errors="replace")
