#!/usr/bin/env python3
"""Does any file below DIRECTORY hold these bytes, as they are or inside a zstd frame?

files_hold.py DIRECTORY TEXT prints yes or no.
"""
import ctypes
import pathlib
import sys

MAGIC = b"\x28\xb5\x2f\xfd"  # of a zstd frame: RFC 8878
ROOM = 1 << 24  # larger than a block of a snapshot
zstd = ctypes.CDLL("libzstd.so.1")
for function in (zstd.ZSTD_findFrameCompressedSize, zstd.ZSTD_decompress):
    function.restype = ctypes.c_size_t


def frames(stored):
    """The frames of a file, decompressed."""
    room = ctypes.create_string_buffer(ROOM)
    at = stored.find(MAGIC)
    while at >= 0:
        rest = stored[at:]
        size = zstd.ZSTD_findFrameCompressedSize(rest, ctypes.c_size_t(len(rest)))
        if not zstd.ZSTD_isError(ctypes.c_size_t(size)):
            raw = zstd.ZSTD_decompress(room, ctypes.c_size_t(ROOM), rest, ctypes.c_size_t(size))
            if not zstd.ZSTD_isError(ctypes.c_size_t(raw)):
                yield room.raw[:raw]
        at = stored.find(MAGIC, at + 1)


def holds(path, text):
    stored = path.read_bytes()
    return text in stored or any(text in raw for raw in frames(stored))


def any_holds(directory, text):
    while True:
        files = [path for path in pathlib.Path(directory).rglob("*") if path.is_file()]
        try:
            return any(holds(path, text) for path in files)
        except FileNotFoundError:  # a server may have given it another name meanwhile: look again
            pass


print("yes" if any_holds(sys.argv[1], sys.argv[2].encode()) else "no")
