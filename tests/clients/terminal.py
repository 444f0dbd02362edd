#!/usr/bin/env python3
"""Runs a command on a terminal of its own and types when it sees what it waits for.

    terminal.py SECONDS COMMAND [WAIT TYPE]...

Prints all the terminal showed. WAIT is a regular expression searched for in what was shown since
the last TYPE. After the last TYPE the command may end by itself; after SECONDS it is killed.
"""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

ROWS, COLUMNS = 30, 100
seconds, command, dialogue = float(sys.argv[1]), sys.argv[2], sys.argv[3:]

pid, terminal = pty.fork()
if pid == 0:
    # Before the command looks at it: it would ask a terminal without a size, and none answers here.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execvp("/bin/sh", ["/bin/sh", "-c", "exec " + command])

end = time.monotonic() + seconds
fresh = ""
decoder = codecs.getincrementaldecoder("utf-8")("replace")
while time.monotonic() < end:
    if dialogue and re.search(dialogue[0], fresh):
        os.write(terminal, codecs.decode(dialogue[1], "unicode_escape").encode())
        dialogue, fresh = dialogue[2:], ""
    if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        break
    try:
        shown = os.read(terminal, 65536)
    except OSError:  # the command has closed its side
        break
    if not shown:
        break
    fresh += decoder.decode(shown)
    sys.stdout.buffer.write(shown)

sys.stdout.flush()
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
sys.exit(0 if not dialogue else 1)
