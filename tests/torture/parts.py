"""The parts of the torture, each cut into jobs that run side by side."""
import json
import multiprocessing
import os
import queue
import random
import shutil
import subprocess
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import crash
import powercut
import report
import selftest
from crash import Trouble

MEMORY = "/dev/shm"
BROKEN_CUTS_MAX = 40
FAILOVER = Path(__file__).resolve().parents[1] / "failover" / "run"


def cut_into_jobs(options, name, total, run_job):
    """run_job(job number, its share of total, progress) in processes of their own; each returns a
    Counter and a list of samples. (sum of the counters, all samples, first trouble or None)."""
    results = multiprocessing.Queue()
    done = [multiprocessing.Value("l", 0) for _ in range(options.jobs)]
    shares = [total // options.jobs + (job < total % options.jobs) for job in range(options.jobs)]
    jobs = [multiprocessing.Process(target=run_one, args=(run_job, job, shares[job], done[job],
                                                          results), daemon=True)
            for job in range(options.jobs) if shares[job] > 0]
    for job in jobs:
        job.start()
    progress = report.Progress(name, total)
    counts, samples, troubles = Counter(), [], []
    for _ in jobs:
        job_counts, job_samples, trouble = next_result(results, jobs, done, progress)
        counts += job_counts
        samples += job_samples
        troubles += [trouble] if trouble else []
    for job in jobs:
        job.join()
    return counts, samples, troubles[0] if troubles else None


def next_result(results, jobs, done, progress):
    """Of the next job that is through."""
    while True:
        try:
            return results.get(timeout=1)
        except queue.Empty:
            progress.show(sum(value.value for value in done))
            if not any(job.is_alive() for job in jobs) and results.empty():
                return Counter(), [], "a job of the harness has died"


def run_one(run_job, job, share, done, results):
    """In a process of its own. A job's counts so far are kept when it meets trouble."""
    def progress(value):
        done.value = value
    counts, samples = Counter(), []
    trouble = None
    try:
        run_job(job, share, progress, counts, samples)
    except Trouble as found:
        trouble = str(found)
    except Exception:  # the harness's own
        trouble = traceback.format_exc()
    results.put((counts, samples, trouble))


def has_memory(options):
    """Is there room in memory for the images of all jobs, and of one more for each at times? A
    container has often 64 MiB."""
    return os.access(MEMORY, os.W_OK) and \
        shutil.disk_usage(MEMORY).free > 2 * options.jobs * powercut.IMAGE_SIZE


def work_directory(options, name, is_in_memory=False):
    """A directory for a job's files."""
    parent = options.work or (MEMORY if is_in_memory and has_memory(options) else None)
    return Path(tempfile.mkdtemp(prefix=f"torture-{name}-", dir=parent))


def until(options):
    return time.monotonic() + options.seconds if options.seconds else float("inf")


def seed_of(options, name, policy, job):
    return f"{options.seed}/{name}/{policy}/{job}"


# ---- the judge ----

def run_selftest(options):
    """Changes of what a server holds must be found."""
    counts, trouble = Counter(), None
    try:
        selftest.run(options.program, work_directory(options, "selftest"), options.seed, counts)
    except Trouble as found:
        trouble = str(found)
    return report.Row("the judge itself", "", counts["changes"], 0, None,
                      "changes in what is there; all found", trouble)


# ---- kill -9 ----

def run_crash(options, policy):
    """Process crashes under one policy."""
    def run_job(job, share, progress, counts, _):
        work = work_directory(options, "crash")
        arena = crash.Arena(options.program, work / "served", policy,
                            seed_of(options, "crash", policy, job), options.players)
        arena.counts, arena.keep = counts, options.keep
        try:
            crash.run_cycles(arena, share, until(options), progress)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    counts, _, trouble = cut_into_jobs(options, f"crash {policy}", options.cycles or 1000, run_job)
    note = (f"{counts['half bases']} within a snapshot, {counts['new bases']} behind one, "
            f"{counts['kills at start']} more at start; {counts['still']} times all read before "
            f"and after; {counts['restored']} times back to a moment; "
            f"{counts['shutdowns']} SIGTERM")
    return report.Row("kill -9", policy, counts["cycles"], counts["acked"], counts["lost"], note,
                      trouble)


# ---- power cuts ----

def run_cut(options, policy):
    """Power cuts under one policy."""
    lies = LIES[options.broken] if options.broken else 0

    def run_job(job, share, progress, counts, samples):
        rig = powercut.Rig(options.program, work_directory(options, "cut", True), policy,
                           seed_of(options, "cut", policy, job), options.players, lies)
        rig.arena.counts, rig.arena.keep, rig.lost_ms = counts, options.keep, samples
        try:
            powercut.run_cycles(rig, share, until(options), progress)
        finally:
            rig.close()
    cycles = options.cycles or {"always": 300}.get(policy, 100)
    counts, lost_ms, trouble = cut_into_jobs(options, f"power cut {policy}", cycles, run_job)
    shown = {"off": "SAVE, BGSAVE"}.get(policy, policy)
    if policy != "everysec":
        return report.Row("power cut", shown, counts["cuts"], counts["acked"], counts["lost"], "",
                          trouble)
    lost_ms.sort()
    note = (f"ms lost: median {lost_ms[len(lost_ms) // 2]:.0f}, most {lost_ms[-1]:.0f}"
            if lost_ms else "")
    return report.Row("power cut", shown, counts["cuts"], counts["acked"], None, note, trouble)


# ---- failovers ----

def run_failovers(options):
    """Three servers that Sentinel fails over, with sync-replicas: tests/failover/run."""
    work = work_directory(options, "failover")
    results, seed = work / "results", random.Random(options.seed).randrange(10**9)
    try:
        done = subprocess.run(
            [FAILOVER, "--failovers", str(options.cycles or 200), "--jobs", str(options.jobs), "--seed",
             str(seed), "--results", results], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, env={**os.environ, "LEADERBOARD_SERVER": options.program})
        rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    finally:
        shutil.rmtree(work, ignore_errors=True)
    figures = Counter()
    for row in rows:
        figures.update(row["figures"])
    longest = max((row["unavailable_s"] for row in rows), default=0)
    note = (f"{figures['failovers']} failovers; {figures['stale']} stale reads; longest without writes "
            f"{longest:.1f} s")
    return report.Row("failovers", "sync", len(rows), figures["writes ok"], figures["lost"], note,
                      done.stdout if done.returncode != 0 or not rows else None)


# ---- broken on purpose ----

LIES = {"reply-before-fsync": powercut.LIE_FILE_SYNC,
        "no-directory-fsync": powercut.LIE_DIRECTORY_SYNC}
BROKEN = (("reply-before-fsync", "always"), ("no-directory-fsync", "off"))


def run_broken(options, name, policy):
    """A server whose syncs lie must be caught: the row is clean when the lost writes were named."""
    rig = powercut.Rig(options.program, work_directory(options, "broken", True), policy,
                       seed_of(options, "broken", policy, 0), options.players, LIES[name])
    caught = None
    try:
        powercut.run_cycles(rig, BROKEN_CUTS_MAX)
    except Trouble as found:
        caught = str(found)
    finally:
        rig.close()
    cuts = rig.arena.counts["cuts"] + 1
    if caught is None or "LOST" not in caught:
        return report.Row(f"broken: {name}", policy, cuts, 0, 0, "",
                          f"no lost writes were named: {caught}")
    report.say(report.shorten("  caught: " + "\n  ".join(caught.splitlines()[:4])))
    return report.Row(f"broken: {name}", policy, cuts, 0, rig.arena.counts["lost"],
                      f"caught by cut {cuts}")
