"""The machine's clock is set back while the server is down. Proven by a clean run: who comes after
the restart still ranks behind its equals of before, with a time that is not before theirs."""
import glob
import os
import shutil

import servers
from crash import Trouble

BACK_S = 3600
LIBRARIES = "/usr/lib/*/faketime/libfaketime.so.1"
CREATE = ("LB.CREATE", "ties", "FIELD", "score", 20, "TIME", 41, "MS")


def why_not():
    """Why it cannot be tried here; None: it can."""
    return None if glob.glob(LIBRARIES) else "libfaketime is missing"


def set_back():
    """The environment of a server whose clock is behind."""
    return {"LD_PRELOAD": glob.glob(LIBRARIES)[0], "FAKETIME": f"-{BACK_S}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def kill(server):
    """kill -9, and remove what libfaketime then leaves behind."""
    server.kill()
    if server.process is not None:
        for path in glob.glob(f"/dev/shm/*faketime_*_{server.process.pid}"):
            os.unlink(path)


def check_order(server, names, behind_ms):
    """Who is on the board, in which order, and no time before the latest of the last look."""
    with server.client() as client:
        records = client.ask("LB.RANGE", "ties", 0, -1)
    seen = [record[0].decode() for record in records]
    times = [record[2] for record in records]
    if seen != names or times != sorted(times) or times[-1] < behind_ms:
        raise Trouble(f"a clock set back: {records}, {names} have come in this order, the latest "
                      f"of before at {behind_ms}")
    return times[-1]


def run(program, work, policy, is_rewritten):
    """One server, killed and started with a clock that is behind, three times over."""
    server = servers.Server(program, work / "served", policy)
    names, latest_ms = [], 0
    try:
        for life in range(4):
            server.environment = set_back() if life % 2 else {}
            server.start()
            with server.client() as client:
                requests = [CREATE] * (life == 0) + \
                    [("ZADD", "ties", 7, f"{life}.{i}") for i in range(5)] + \
                    [("BGREWRITEAOF",)] * is_rewritten
                client.ask_all(requests)
            names += [f"{life}.{i}" for i in range(5)]
            latest_ms = check_order(server, names, latest_ms)
            kill(server)
    except servers.StartFailed as failure:
        raise Trouble(f"does not start with a clock set back: {failure}") from None
    finally:
        kill(server)
        shutil.rmtree(work, ignore_errors=True)
