"""Torn and flipped files: every byte of a small data set.

    base | journal | group | group | group     cut at every byte, a bit flipped at every byte, files
              S0       S1      S2      S3      gone or longer; then a start on each of them

What the server held after each group is known: it was read when the command had been answered,
along with the journal's size. Proven by a clean run: a start on a damaged copy either refuses, and
names the file (and the offset), or has exactly what the whole groups before the damage leave, which
is possible only where the damage may be a torn tail. Never a crash, never anything else."""
import random
import re
import shutil
import time
from collections import Counter, namedtuple
from pathlib import Path

import dump
import faults
import player
import resp
import servers
from crash import Trouble

COMMANDS = 24
# The journal is this long when the server holds this.
State = namedtuple("State", "journal_size seen")


class DataSet:
    """Files by name, and what the server held as they grew. journal: the name of the last one."""

    def __init__(self, program, work, seed):
        self.program, self.work = program, Path(work)
        shutil.rmtree(self.work, ignore_errors=True)
        self.server = servers.Server(program, self.work / "made", "always")
        self.faults = faults.Faults(self.work, self.server.directory)
        self.server.environment = self.faults.environment
        self.player = player.Player(9, seed, self.server.is_redis, is_timeless=True)
        self.states = []
        self.make()

    def folder(self, server):
        """Where the files are: the only directory inside of dir."""
        return next(path for path in server.directory.iterdir() if path.is_dir())

    def run_commands(self, client, count, is_noted):
        done = 0
        while done < count:
            command = self.player.next_command()
            self.player.sent(1, time.time())
            client.socket.sendall(command.wire)
            replies = [client.receive() for _ in range(command.reply_count)]
            if isinstance(replies[-1], resp.Error):
                continue
            done += 1
            if is_noted:
                self.note()

    def journal_size(self):
        return (self.folder(self.server) / self.journal).stat().st_size

    def note(self):
        """Remember what is there now, if the journal has grown."""
        size = self.journal_size()
        if not self.states or size > self.states[-1].journal_size:
            self.states.append(State(size, dump.take(self.server.port, self.server.is_redis)))

    def rewrite(self, client):
        """A base of what is there; the journal begins anew."""
        reply = client.ask("BGREWRITEAOF")
        if isinstance(reply, resp.Error):
            raise Trouble(f"BGREWRITEAOF: {reply.text}")
        while "aof_rewrite_in_progress:0" not in client.ask("INFO", "persistence").decode():
            time.sleep(0.01)

    def die_rewriting(self, client):
        """Killed before the manifest names the new base: so the journal has two files."""
        self.faults.arm(faults.KILL_BEFORE, 2, classes=faults.CLASS_NAME)
        client.send([("BGREWRITEAOF",)])
        self.server.process.wait(servers.START_LIMIT_S)
        self.faults.disarm()

    def make(self):
        self.server.start()
        with self.server.client() as client:
            self.run_commands(client, COMMANDS, False)
            self.rewrite(client)
            self.run_commands(client, COMMANDS // 4, False)
            self.die_rewriting(client)
        self.player.database = 0
        self.server.start()
        folder = self.folder(self.server)
        journals = sorted((path for path in folder.iterdir() if is_journal(path.name)),
                          key=lambda path: path.stat().st_mtime_ns)
        self.journal, self.journal_count = journals[-1].name, len(journals)
        with self.server.client() as client:
            self.note()
            self.run_commands(client, COMMANDS, True)
        self.server.kill()
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.folder_name = folder.name


def is_journal(name):
    return "journal" in name or ".incr." in name


def is_base(name):
    return ".base" in name


# One way to damage: which file, what it holds then (None: it is gone), in words, and where from.
Damage = namedtuple("Damage", "name data words offset")


def flip(data, offset, bit):
    return data[:offset] + bytes([data[offset] ^ (1 << bit)]) + data[offset + 1:]


def all_damages(files, randomness, stride=1, bits=1):
    """Every cut, every flip (bits of each byte), every file gone or longer."""
    for name, data in files.items():
        if name == "lock":
            continue
        yield Damage(name, None, "gone", 0)
        for behind in (b"\0", bytes(100), b"garbage that was not here before" * 9):
            yield Damage(name, data + behind, f"{len(behind)} bytes behind its end", len(data))
        first = randomness.randrange(stride)
        for offset in range(first, len(data), stride):
            yield Damage(name, data[:offset], f"cut at {offset}", offset)
            for bit in randomness.sample(range(8), bits):
                yield Damage(name, flip(data, offset, bit), f"bit {bit} flipped at {offset}",
                             offset)


def allowed_states(data_set, damage):
    """What may be there if the server starts all the same; a list, empty: it must refuse."""
    if damage.name != data_set.journal or damage.data is None:
        return []
    states = data_set.states
    whole = [state for state in states if state.journal_size <= damage.offset]
    is_longer = len(damage.data) > len(data_set.files[damage.name])
    is_cut = len(damage.data) < len(data_set.files[damage.name])
    if is_longer or is_cut:
        return whole[-1:]
    # A flipped bit may be the mark of a torn tail only in the last group: there are whole ones
    # behind all others, written when they were on disk.
    return whole[-1:] if len(whole) == len(states) - 1 else []


def check_refusal(damage, told, status):
    """It has ended: by itself, and with words an operator can act on."""
    if status <= 0:
        raise Trouble(f"ended with status {status}:\n{told}")
    is_place_named = re.search(r"offset|line|byte|change", told) or damage.data is None or \
        not (is_journal(damage.name) or is_base(damage.name))
    if damage.name not in told or not is_place_named:
        raise Trouble(f"does not name the file and the offset:\n{told}")


def check_damage(data_set, damage, work):
    """A start on a damaged copy. "refused" or "cut"; raises Trouble."""
    shutil.rmtree(work, ignore_errors=True)
    server = servers.Server(data_set.program, Path(work) / "damaged", "always")
    folder = server.directory / data_set.folder_name
    folder.mkdir(parents=True)
    for name, data in data_set.files.items():
        if name == damage.name:
            data = damage.data
        if data is not None:
            (folder / name).write_bytes(data)
    server.log.unlink(missing_ok=True)
    try:
        return judge_start(server, damage, allowed_states(data_set, damage))
    except Trouble as trouble:
        raise Trouble(f"{damage.name}, {damage.words}: {trouble}") from None
    finally:
        server.kill()


def judge_start(server, damage, allowed):
    server.spawn()
    give_up_at = time.monotonic() + servers.START_LIMIT_S
    while not server.is_ready():
        if server.process.poll() is not None:
            check_refusal(damage, server.log_tail(), server.process.returncode)
            return "refused"
        if time.monotonic() > give_up_at:
            raise Trouble("neither starts nor ends")
        time.sleep(0.002)
    seen = dump.take(server.port, server.is_redis)
    if not allowed:
        raise Trouble(f"starts, with {len(seen)} keys")
    if seen not in [state.seen for state in allowed]:
        raise Trouble("starts with what no whole groups leave:\n"
                      f"  has     {sorted(seen.items())}\n"
                      f"  allowed {sorted(allowed[0].seen.items())}")
    server.kill()
    server.start()  # on what that start has made of the files
    if dump.take(server.port, server.is_redis) != seen:
        raise Trouble("has something else after another start")
    return "cut"


def run(program, work, seed, stride=1, bits=1, share=(0, 1), until_s=float("inf"),
        progress=lambda done: None):
    """All damages, or a share (number, of how many) of them."""
    data_set = DataSet(program, Path(work) / "set", seed)
    randomness = random.Random(f"{seed}/damage")
    counts = Counter(bytes=sum(map(len, data_set.files.values())), groups=len(data_set.states) - 1,
                     journals=data_set.journal_count)
    for number, damage in enumerate(all_damages(data_set.files, randomness, stride, bits)):
        if number % share[1] != share[0]:
            continue
        if time.monotonic() > until_s:
            break
        counts[check_damage(data_set, damage, Path(work) / "copy")] += 1
        counts["damages"] += 1
        progress(counts["damages"])
    return counts
