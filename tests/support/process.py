"""Programs under test, and what tests wait for: in Python what process.h is in C."""
import atexit
import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import resp

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("LEADERBOARD_SERVER") or ROOT / "build" / "leaderboard-server").absolute()
PEERS = PROGRAM.parent / "peers"
IO_THREADS = os.environ.get("LEADERBOARD_TEST_IO_THREADS")
IS_SHORT = os.environ.get("LEADERBOARD_TEST_SHORT", "") not in ("", "0")
LIMIT_S = 120  # for whatever comes at all
FIRST_PORT, LAST_PORT = 20000, 32000  # below those that the system gives to clients
LIBC = ctypes.CDLL(None)

held_ports = {}


def hold_port():
    """A port that nobody has. A server with SO_REUSEADDR can listen there; no program beside this one can take
    it until let_port_go, or the end."""
    while True:
        held = socket.socket()
        try:
            held.bind(("127.0.0.1", random.SystemRandom().randint(FIRST_PORT, LAST_PORT)))
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        except OSError:
            held.close()
            continue
        port = held.getsockname()[1]
        held_ports[port] = held
        return port


def let_port_go(port):
    if port in held_ports:
        held_ports.pop(port).close()


def new_directory():
    """One that goes when this program ends."""
    path = tempfile.mkdtemp(prefix="leaderboard-test-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)


def together(call, cases):
    """What call(case) returns for each, all at once: those that are refused over HTTP wait a second each."""
    with ThreadPoolExecutor(len(cases)) as pool:
        return list(pool.map(call, cases))


def wait_until(claim, what, limit_s=LIMIT_S, step_s=0.01, passing=OSError):
    """What the claim gives, once it gives something. what: text, or a function that gives it; passing: errors
    that are no answer yet."""
    give_up_at = time.monotonic() + limit_s
    while True:
        try:
            if found := claim():
                return found
        except passing:
            pass
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not within {limit_s} s: {what() if callable(what) else what}")
        time.sleep(step_s)


def end_with_the_test():
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def spawn(command, log, cwd=None, environment=None, **how):
    """A process that ends with this program at the latest; what it prints goes to the end of the log."""
    with open(log, "ab") as out:
        return subprocess.Popen([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out, preexec_fn=end_with_the_test,
                                env={**os.environ, **(environment or {})}, **how)


def make_certificate(name="localhost", alternative="DNS:localhost"):
    """(certificate, key) in files of their own; it has signed itself."""
    certificate, key = (new_directory() / file for file in ("cert.pem", "key.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName={alternative}",
                    "-addext", "keyUsage=critical,digitalSignature,keyCertSign",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def is_ours(program):
    return "redis" not in Path(program).name


class Ended(AssertionError):
    """The server has ended by itself."""


class Server:
    """A server on a port and in a directory of its own; it can be started there again."""

    def __init__(self, *words, program=PROGRAM, config=None, password=None, directory=None, environment=None,
                 bind="127.0.0.1", is_started=True):
        self.program, self.password, self.port = program, password, hold_port()
        self.directory = Path(directory) if directory else new_directory()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = self.directory / "log"
        self.environment = environment
        self.command = [program, *([config] if config else []), "--port", self.port,
                        *(["--bind", bind] if bind else []), "--dir", self.directory, "--save", "", *words]
        if IO_THREADS and is_ours(program):
            self.command += ["--io-threads", IO_THREADS]
        self.process = None
        if is_started:
            self.start()

    def spawn(self, *more):
        """Not waiting for it. more: words of this start alone."""
        self.process = spawn([*self.command, *more], self.log, self.directory, self.environment)

    def start(self, *more):
        self.spawn(*more)
        wait_until(self.is_ready, lambda: f"its start:\n{self.told()}")

    def is_ready(self):
        """Does it answer, and does it not load any more?"""
        self.assert_runs()
        with self.connect() as client:
            if self.password:
                client.ask("AUTH", self.password)
            answer = client.ask("PING")
        return not isinstance(answer, resp.Error) or not answer.text.startswith("LOADING")

    def assert_runs(self):
        if self.process.poll() is not None:
            raise Ended(f"it has ended with {self.process.returncode}:\n{self.told()}")

    def connect(self):
        return resp.Client(self.port)

    def ask(self, *words):
        """The reply, over a connection of its own. OSError: there is none."""
        with self.connect() as client:
            return client.ask(*words)

    def told(self):
        """The log from the report of a crash on, or its end."""
        text = self.log.read_text(errors="replace")
        begin = text.find(" report ")
        return text[max(0, begin - 500):][:8000] if begin >= 0 else text[-5000:]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """SIGTERM, and it ends well."""
        if self.process.poll() is None:
            self.terminate()
        status = self.process.wait(LIMIT_S)
        assert status == 0, f"status {status}\n{self.told()}"
        return status
