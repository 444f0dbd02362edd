"""File calls that fail: in run after run of the same scene every call on the data directory, the
first, the second, and so on to the last, gives EIO, ENOSPC, EINTR, a part of what was asked, or is
where the process dies (before it, after it, in the middle of a write); once, or from then on.

    start, commands, a snapshot beside commands, commands; then kill -9, and a start without faults

Proven by a clean run: whatever was acknowledged is there; a command that was refused changed
nothing; a start that fails says why; and where the server lives on, it takes writes again when the
disk is well, without a restart."""
import shutil
import time
from pathlib import Path

import crash
import faults
import resp
import servers
from crash import Trouble

COMMANDS_BEFORE, COMMANDS_DURING, COMMANDS_AFTER = 12, 6, 12
REPLY_LIMIT_S = 30.0  # a reply may wait for the disk, while it is not well
WELL_AFTER_S = 0.25  # a disk that is ill from some call on is well again after this
RECOVERY_LIMIT_S = 60.0
IDLE_WRITE = ("ZREM", "p00:a", "nobody")  # changes nothing
REFUSALS = ("MISCONF", "EXECABORT")


class Gone(Exception):
    """The server has closed the connection."""


class Scene:
    """One server, one player, one command at a time. policy, fault: by name; call: which one, 0:
    none fails; is_lasting: all that follow it, too, for a while."""

    def __init__(self, program, work, policy, fault, call, is_lasting, seed):
        self.arena = crash.Arena(program, Path(work) / "served", policy, seed, 1)
        self.player = self.arena.players[0]
        self.faults = faults.Faults(work, self.arena.server.directory)
        self.arena.server.environment = self.faults.environment
        self.fault, self.call, self.is_lasting = fault, call, is_lasting
        self.refused = self.refused_others = 0
        self.well_at = float("inf")
        self.client = None

    # ---- the disk ----

    def arm(self):
        if self.call == 0:
            self.faults.count()
            return
        self.faults.arm(faults.FAULTS[self.fault], self.call,
                        faults.FOREVER if self.is_lasting else None)

    def let_time_pass(self):
        """A lasting fault ends some time after it began."""
        if self.is_lasting and self.faults.hit_count > 0:
            if self.well_at == float("inf"):
                self.well_at = time.monotonic() + WELL_AFTER_S
            if time.monotonic() > self.well_at:
                self.faults.disarm()

    # ---- commands ----

    def receive(self):
        """The next reply, which may have to wait until the disk is well. Raises Gone."""
        give_up_at = time.monotonic() + REPLY_LIMIT_S
        while True:
            self.let_time_pass()
            try:
                return self.client.receive()
            except TimeoutError:
                self.probe()
                if time.monotonic() > give_up_at:
                    raise Trouble(f"no reply in {REPLY_LIMIT_S} s") from None
            except ConnectionError:
                raise Gone from None

    def probe(self):
        """While this player waits for the disk, another client asks for a write that changes
        nothing: it may be refused, or wait as well."""
        try:
            with resp.Client(self.arena.server.port, 0.05) as other:
                reply = other.ask(*IDLE_WRITE)
        except (ConnectionError, TimeoutError):
            return
        if isinstance(reply, resp.Error):
            if not reply.text.startswith(REFUSALS):
                raise Trouble(f"a write while the disk is ill: {reply}")
            self.refused_others += 1

    def run_command(self):
        """One command of the player's, judged by the twin. True: it was not refused."""
        command = self.player.next_command()
        self.player.sent(1, time.time())
        try:
            self.client.socket.sendall(command.wire)
        except ConnectionError:
            raise Gone from None
        replies = [self.receive() for _ in range(command.reply_count)]
        self.player.acknowledged(command, time.time())
        reply = replies[-1]
        if isinstance(reply, resp.Error) and reply.text.startswith(REFUSALS):
            self.player.undo(command)
            self.refused += 1
            return False
        if not command.is_right(reply):
            raise Trouble(f"{command}\n    answered {reply!r} instead of {command.expected!r}")
        return True

    def run_commands(self, count):
        for _ in range(count):
            self.let_time_pass()
            self.run_command()

    def snapshot(self):
        """Begin one; it may be refused, and it may fail."""
        words = ("BGSAVE",) if self.arena.server.policy == "off" else ("BGREWRITEAOF",)
        self.client.send([words])
        self.receive()

    def wait_for_snapshot(self):
        give_up_at = time.monotonic() + REPLY_LIMIT_S
        while True:
            self.client.send([("INFO", "persistence")])
            told = self.receive().decode()
            if "rdb_bgsave_in_progress:0" in told and "aof_rewrite_in_progress:0" in told:
                return
            if time.monotonic() > give_up_at:
                raise Trouble(f"a snapshot takes more than {REPLY_LIMIT_S} s:\n{told}")
            time.sleep(0.002)

    # ---- the scene ----

    def start(self):
        """False: it did not start, and said why."""
        server = self.arena.server
        self.arm()
        server.spawn()
        give_up_at = time.monotonic() + servers.START_LIMIT_S
        while not server.is_ready():
            self.let_time_pass()
            if server.process.poll() is not None:
                self.check_death_at_start()
                return False
            if time.monotonic() > give_up_at:
                raise Trouble(f"does neither start nor end:\n{server.log_tail()}")
            time.sleep(0.002)
        self.client = resp.Client(server.port, 0.05)
        return True

    def check_death_at_start(self):
        """Killed where it was to be killed, or ended with words about it."""
        if self.fault.startswith("kill"):
            return
        status, told = self.arena.server.process.returncode, self.arena.server.log_tail()
        if status <= 0 or self.arena.server.directory.name not in told:
            raise Trouble(f"ended at its start with status {status} and this log:\n{told}")

    def play(self):
        """Commands with a snapshot among them, until the server is gone or all is done."""
        self.run_commands(COMMANDS_BEFORE)
        self.snapshot()
        self.run_commands(COMMANDS_DURING)
        self.wait_for_snapshot()
        self.run_commands(COMMANDS_AFTER)
        self.recover()

    def recover(self):
        """The disk is well: writes are taken again, without a restart."""
        self.faults.disarm()
        give_up_at = time.monotonic() + RECOVERY_LIMIT_S
        while not self.is_taking_writes():
            if time.monotonic() > give_up_at:
                raise Trouble(f"refuses writes {RECOVERY_LIMIT_S} s after the disk is well:\n"
                              f"{self.arena.server.log_tail()}")
            time.sleep(0.05)

    def is_taking_writes(self):
        """As a write says that changes nothing."""
        self.client.send([IDLE_WRITE])
        return not isinstance(self.receive(), resp.Error)

    def end_and_judge(self):
        """kill -9, a start without faults, and what is there."""
        server = self.arena.server
        server.kill()
        self.faults.disarm()
        try:
            server.start()
        except servers.StartFailed as failure:
            raise Trouble(f"does not start again: {failure}") from None
        if server.policy == "off":
            self.player.promised_index = self.player.first_index - 1
        judgement = self.arena.judge()
        if judgement.lost:
            raise Trouble("\n".join(judgement.lost_lines()))

    def run(self):
        try:
            if self.start():
                try:
                    self.play()
                except Gone:
                    self.check_end()
            self.end_and_judge()
        finally:
            self.arena.server.kill()

    def check_end(self):
        """It ended by itself: killed as it was to be, or stopped because of the disk (always)."""
        status = self.arena.server.process.wait(REPLY_LIMIT_S)
        if self.fault.startswith("kill"):
            return
        if status < 0 or self.arena.server.policy != "always":
            raise Trouble(f"ended with status {status}:\n{self.arena.server.log_tail()}")


def count_calls(program, work, policy, seed):
    """How many file calls the scene has when none fails."""
    scene = Scene(program, work, policy, "none", 0, False, seed)
    scene.run()
    return scene.faults.call_count


def all_scenes(calls, stride=1):
    """(fault, call, is_lasting) of every run."""
    for call in range(1, calls + 1, stride):
        for name in faults.FAULTS:
            yield name, call, False
            if name in ("EIO", "ENOSPC"):
                yield name, call, True


def run_scene(program, work, policy, fault, call, is_lasting, seed):
    """Raises Trouble, with which call it was."""
    shutil.rmtree(work, ignore_errors=True)
    Path(work).mkdir(parents=True)
    scene = Scene(program, work, policy, fault, call, is_lasting, seed)
    try:
        scene.run()
    except Trouble as trouble:
        lasting = " and all later ones" if is_lasting else ""
        raise Trouble(f"appendfsync {policy}, {fault} at call {call}{lasting}, "
                      f"which is {scene.faults.hit_name}: {trouble}") from None
    return scene
