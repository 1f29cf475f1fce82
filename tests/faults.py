"""Runs with a fault in them: started, looked at when they have ended, and gone on with."""

import json
import shutil
import subprocess
import sys
import time
from collections import Counter

import psutil

from launch import PROGRAMS, Finished, cannot_run, environment, pffbench_cli, start_experiment

#: Two cases, of which the second one is to fail in its third repetition.
REPETITIONS = 4
SLAB = {"workload": "hyperslab", "shape_per_rank": [8, 16]}
TAG = "PFFBENCH_TEST_TAG"


def start_faulty(directory, ranks, *arguments, fault, program=None, env=None, **content):
    """Start an experiment whose backend has a fault, see `programs/faulty.py`."""
    told = {
        "FAULT": json.dumps(fault),
        "FAULT_PLACE": str(directory / "scratch"),
        TAG: str(directory),
        **(env or {}),
    }
    content = {"repetitions": REPETITIONS, "warmup": 0, **content}
    how = program or (PROGRAMS / "faulty.py",)
    return start_experiment(directory, ranks, *arguments, program=how, env=told, **content)


def run_faulty(directory, ranks, *arguments, **how):
    """Run it to its end, which must come by itself."""
    return start_faulty(directory, ranks, *arguments, **how).finish()


def go_on(done, ranks, *arguments):
    """Go on with the run, without the fault."""
    scratch = done.out.parent / "scratch"
    told = ["run", "--resume", done.out, "--scratch", scratch, *arguments]
    return pffbench_cli(*told, ranks=ranks, out=done.out)


def finished(done):
    """Return how often each repetition of each case is recorded as finished."""
    return Counter((r["case"], int(r["repetition"])) for r in done.rows if r["phase"] == "remove")


def goes_on_without(done, ranks, case, repetitions=REPETITIONS):
    """See that a run whose job ended in a case leaves that case out, and completes the others."""
    before = finished(done)
    rest = go_on(done, ranks)
    assert rest.status == 1, rest.said
    assert (rest.record["status"], rest.record["valid"]) == ("finished", False), rest.record
    entries = rest.record["cases"]
    assert [name for name, entry in entries.items() if entry["failure"]] == [case]
    assert sum(reason.startswith(case) for reason in rest.record["reasons"]) == 1
    after = finished(rest)
    assert before.keys() <= after.keys()
    others = Counter((c, i) for c in entries if c != case for i in range(repetitions))
    assert after == others + Counter(key for key in before.elements() if key[0] == case)
    assert not list((done.out.parent / "scratch").iterdir())
    return rest


def completes(done, ranks, repetitions=REPETITIONS):
    """See that a run that ended before its time loses nothing and is whole and VALID at the end."""
    before = finished(done)
    rest = go_on(done, ranks)
    assert rest.status == 0, rest.said
    assert (rest.record["status"], rest.record["valid"]) == ("finished", True), rest.record
    after = finished(rest)
    assert before.keys() <= after.keys()
    assert after == Counter((c, i) for c in rest.record["cases"] for i in range(repetitions))
    assert not list((done.out.parent / "scratch").iterdir())
    assert sorted(p.name for p in done.out.parent.iterdir()) == [
        "experiment.yaml", "results", "scratch",
    ]  # fmt: skip
    return rest


def in_own_mounts(command):
    """Return the command as it is run where what is mounted is seen by nobody else."""
    for how in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        if shutil.which("unshare") and not subprocess.run([*how, "true"], stderr=-3).returncode:
            return [*how, *map(str, command)]
    cannot_run("file systems cannot be mounted here, also not in a user's own namespace")
    return None


def run_on_small_disks(directory, places, *steps):
    """Run commands one after the other with small file systems in memory in these places.

    Parameters
    ----------
    directory : Path
        Gets `kept`, a copy of every place as it is at the end of each step.
    places : dict of Path to str
        Where, and how large.
    steps : list of (list, dict, dict)
        A command, what the environment has beside the usual, and places that are made larger (or
        writable again) before it, with files in them to remove.
    """
    told = {
        "places": {str(place): size for place, size in places.items()},
        "kept": str(directory / "kept"),
        "steps": [
            {"command": list(map(str, command)), "environment": env, "before": before}
            for command, env, before in steps
        ],
    }  # fmt: skip
    program = [sys.executable, PROGRAMS / "small_disks.py", json.dumps(told)]
    done = subprocess.run(in_own_mounts(program), env=environment(), capture_output=True, text=True,
                          timeout=500, check=False, stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    answers = json.loads(done.stdout)
    return [Finished(answer["status"], answer["stdout"], answer["stderr"]) for answer in answers]


def no_process_is_left(directory, seconds=120):
    """See that no process of a run lives on, waiting a little for the last ones to end."""
    end = time.monotonic() + seconds
    while left := [p for p in psutil.process_iter() if _tag(p) == str(directory)]:
        assert time.monotonic() < end, [p.cmdline() for p in left]
        time.sleep(0.1)


def _tag(process):
    try:
        return process.environ().get(TAG) if process.status() != "zombie" else None
    except (psutil.Error, OSError):
        return None
