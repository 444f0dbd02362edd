"""Process crashes: kill -9 at random moments under load, and what is there after the restart.

Proven by a clean run: every command that was acknowledged (under always also what another client
was shown) is there after the restart; nothing is there that was not sent; a command or MULTI block
is there whole or not at all; ranks, ties, reach times, expiries and options are what they were."""
import random
import shutil
import subprocess
import threading
import time
from collections import Counter, namedtuple
from datetime import datetime, timezone
from pathlib import Path

import dump
import judge
import load
import player
import rolling
import servers
from process import LIMIT_S

WIPE_EVERY = 50  # cycles on one directory

# What was there at a moment at which nothing was written; the minute is that of reading it.
Moment = namedtuple("Moment", "time_s minute seen")


class Trouble(Exception):
    """A promise is broken; the text says which, by lines."""


class Arena:
    """A server, its players, and the twin's side of both. seed repeats the commands."""

    def __init__(self, program, directory, policy, seed, player_count=50):
        self.server = servers.Server(program, directory, policy)
        self.random = random.Random(f"{seed}/arena")
        self.seed, self.player_count = seed, player_count
        self.counts = Counter()
        self.load = None
        self.moments = []  # to go back to, where superseded files are kept
        self.keep = None  # a directory for copies of the files as every crash left them
        self.life = 0
        self.begin_anew()

    def begin_anew(self):
        """An empty directory, and players who know of nothing."""
        shutil.rmtree(self.server.directory, ignore_errors=True)
        self.server.directory.mkdir(parents=True)
        self.server.log.unlink(missing_ok=True)
        self.moments.clear()
        self.life += 1
        self.players = [player.Player(i, f"{self.seed}/{self.life}")
                        for i in range(self.player_count)]
        for one in self.players:
            one.others = [other for other in self.players if other is not one]
        self.shared_base = {}
        self.named_bases = set()

    def keep_copy(self):
        """The files as they are now, for whoever wants to know what went wrong."""
        if self.keep:
            copy = Path(self.keep) / f"{self.server.policy}-{self.seed.replace('/', '-')}"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.server.directory, copy)

    def connect(self):
        self.load = load.Load(self.players, self.server.port)

    def disconnect(self):
        """The load is over: what was answered, and what it was answered."""
        self.load.close()
        self.counts["sent"] += sum(len(one.commands) for one in self.players)
        self.counts["acked"] += sum(len(one.acked_at) for one in self.players)
        if self.load.faults:
            raise Trouble("replies that the twin has told otherwise:\n" +
                          "\n".join(self.load.faults))

    def read(self):
        """All that is there, and when it was read: within one minute, so that no board's day ends
        between the listing of the keys and their reading."""
        while True:
            first_s = time.time()
            seen = dump.take(self.server.port)
            window = judge.Window(first_s, time.time())
            if window.first_ms // rolling.MINUTE_MS == window.last_ms // rolling.MINUTE_MS:
                return seen, window

    def judge(self):
        """What is there now. Raises Trouble at what can never be; what is lost is the caller's."""
        seen, window = self.read()
        judgement = judge.Judgement(self.players, self.shared_base, seen, window,
                                    self.server.policy == "always")
        self.counts["boards"] += len(seen)
        self.counts["members"] += sum(len(board.records) for board in seen.values())
        if judgement.faults:
            raise Trouble("\n".join(judgement.faults))
        return judgement

    def adopt(self, judgement):
        self.shared_base = judgement.shared
        judgement.adopt()

    def judge_and_go_on(self):
        """As after a crash that may lose nothing."""
        judgement = self.judge()
        self.counts["lost"] += judgement.lost
        if judgement.lost:
            raise Trouble("\n".join(judgement.lost_lines()))
        self.adopt(judgement)


def at_some_point(arena, delay_s, words):
    """An operator's command on a connection of its own, after some time; the reply is not waited
    for, and the server may be gone."""
    def run():
        time.sleep(delay_s)
        try:
            client = arena.server.client()
            client.send([words])
            time.sleep(1)
            client.close()
        except OSError:
            pass
    threading.Thread(target=run, daemon=True).start()


def snapshot_command(arena):
    if arena.server.policy == "off" or arena.random.random() < 0.3:
        return ("BGSAVE",)
    return ("BGREWRITEAOF",)


def has_kept_files(arena):
    """Every other life of a server with a journal keeps superseded files, and never stops to."""
    return arena.life % 2 == 1 and arena.server.policy != "off"


def random_settings(arena):
    """Settings of one start: sometimes the journal is rewritten again and again by itself."""
    settings = ("--appendonly-keep-days", "7") if has_kept_files(arena) else ()
    if arena.random.random() < 0.3:
        settings += ("--auto-aof-rewrite-min-size", "64kb", "--auto-aof-rewrite-percentage", "20")
    return settings


def go_back(arena):
    """Restore one of the moments from current and kept files, and compare what is there."""
    moment = arena.random.choice(arena.moments)
    target = arena.server.directory.parent / (arena.server.directory.name + ".restored")
    shutil.rmtree(target, ignore_errors=True)
    until = datetime.fromtimestamp(moment.time_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    done = subprocess.run([arena.server.program, "--restore", arena.server.directory, target,
                           "--until", until], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Trouble(f"--restore --until {until}: {done.stderr}")
    restored = servers.Server(arena.server.program, target, arena.server.policy)
    restored.start()
    try:
        compare_dumps(moment.seen, dump.take(restored.port), moment.minute)
    except Trouble as trouble:
        raise Trouble(f"back to {until}: {trouble}") from None
    finally:
        restored.kill()
        shutil.rmtree(target)
    arena.counts["restored"] += 1


def kill_under_load(arena):
    """Load for a moment, perhaps a snapshot just before the end, and kill -9."""
    moment_s = arena.random.uniform(0.01, 0.35)
    if arena.random.random() < 0.5:
        ahead_s = arena.random.choice((0.01, 0.02, 0.05)) * arena.random.random()
        at_some_point(arena, max(0, moment_s - ahead_s), snapshot_command(arena))
        arena.counts["snapshots"] += 1
    killer = threading.Timer(moment_s, arena.server.kill)
    killer.start()
    arena.load.run()
    killer.join()


def note_files(arena):
    """Count what a crash has come upon: a new base since the last one, and one half written (it is
    there, and the manifest does not name it)."""
    manifests = [path.read_text(errors="replace")
                 for path in arena.server.directory.rglob("*.manifest") if "temp" not in path.name]
    bases = {path.name for path in arena.server.directory.rglob("*base*")}
    named = {name for name in bases if any(name in text for text in manifests)}
    arena.counts["new bases"] += bool(named - arena.named_bases)
    arena.counts["half bases"] += bool(bases - named)
    arena.named_bases = named


def kill_at_start(arena):
    """Start it again and kill it at once, while it loads or just after."""
    for _ in range(arena.random.randint(1, 3)):
        arena.server.spawn(*random_settings(arena))
        time.sleep(arena.random.uniform(0, 0.04))
        arena.server.kill()
        arena.counts["kills at start"] += 1


def crash_cycle(arena):
    """Kill, restart, judge."""
    arena.connect()
    kill_under_load(arena)
    arena.disconnect()
    note_files(arena)
    if arena.random.random() < 0.2:
        kill_at_start(arena)
    arena.keep_copy()
    arena.server.start(*random_settings(arena))
    arena.judge_and_go_on()


def still_cycle(arena):
    """Stop the load, read everything, kill -9, restart: everything reads the same again."""
    arena.connect()
    if arena.random.random() < 0.5:
        at_some_point(arena, arena.random.uniform(0, 0.2), snapshot_command(arena))
    arena.load.run(time.monotonic() + arena.random.uniform(0.05, 0.2))
    arena.disconnect()
    before, window = arena.read()
    if has_kept_files(arena):
        arena.moments.append(Moment(time.time(), window.first_ms // rolling.MINUTE_MS, before))
    arena.server.kill()
    arena.keep_copy()
    if arena.moments:
        go_back(arena)
    arena.server.start(*random_settings(arena))
    after, _ = arena.read()
    compare_dumps(before, after, window.first_ms // rolling.MINUTE_MS)
    arena.counts["still"] += 1
    arena.judge_and_go_on()


def has_rolled(place, minute):
    """A board whose day ends with a minute (rolling.py), and one has ended since."""
    return ":r" in place[1] and player.now_ms() // rolling.MINUTE_MS != minute


def compare_dumps(before, after, minute):
    """Equal, but for keys whose time has come since the first, which was of this minute."""
    lines = []
    for place in set(before) | set(after):
        old, new = before.get(place), after.get(place)
        is_over = new is None and old.expire_at_ms != -1 and \
            old.expire_at_ms <= player.now_ms()
        if old != new and not is_over and not has_rolled(place, minute):
            lines.append(f"{place}\n    before {old}\n    after  {new}")
    if lines:
        raise Trouble("a restart has changed what is there:\n" + "\n".join(lines[:10]))


def shutdown_cycle(arena):
    """SIGTERM under load: what was acknowledged is there, and the server has ended well."""
    arena.connect()
    ender = threading.Timer(arena.random.uniform(0.02, 0.2), arena.server.process.terminate)
    ender.start()
    arena.load.run()
    ender.join()
    arena.disconnect()
    if arena.server.process.wait(LIMIT_S) != 0:
        raise Trouble("SIGTERM: exit status "
                      f"{arena.server.process.returncode}\n{arena.server.told()}")
    arena.server.start(*random_settings(arena))
    arena.counts["shutdowns"] += 1
    arena.judge_and_go_on()


def run_cycles(arena, cycles, until_s=float("inf"), progress=lambda done: None):
    """So many cycles, or until the time (time.monotonic) has come. Raises Trouble."""
    arena.server.start(*random_settings(arena))
    try:
        for done in range(cycles):
            if time.monotonic() > until_s:
                break
            if done > 0 and done % WIPE_EVERY == 0:
                arena.server.kill()
                arena.begin_anew()
                arena.server.start(*random_settings(arena))
            cycle = arena.random.choices((crash_cycle, still_cycle, shutdown_cycle),
                                         (90, 7, 3))[0]
            try:
                cycle(arena)
            except servers.StartFailed as failure:
                raise Trouble(f"the server does not start again: {failure}") from None
            except Trouble as trouble:
                raise Trouble(f"{cycle.__name__} {done}: {trouble}") from None
            arena.counts["cycles"] += 1
            progress(done + 1)
    finally:
        arena.server.kill()
    return arena.counts
