"""Runs with a fault in them: started, looked at when they have ended, and gone on with."""

import json
import time
from collections import Counter

import psutil

from launch import PROGRAMS, pffbench_cli, start_experiment

#: Two cases, of which the second one is to fail in its third repetition.
REPETITIONS = 4
SLAB = {"workload": "hyperslab", "shape_per_rank": [8, 16]}
TAG = "PFFBENCH_TEST_TAG"


def start_faulty(directory, ranks, *arguments, fault, program=None, env=None, **content):
    """Start an experiment whose backend has a fault, see `programs/faulty.py`."""
    told = {
        "FAULT": json.dumps(fault),
        "FAULT_SCRATCH": str(directory / "scratch"),
        TAG: str(directory),
        **(env or {}),
    }
    content = {"repetitions": REPETITIONS, "warmup": 0, **content}
    how = program or (PROGRAMS / "faulty.py",)
    return start_experiment(directory, ranks, *arguments, program=how, env=told, **content)


def run_faulty(directory, ranks, *arguments, timeout=60, **how):
    """Run it to its end, which must come within the time."""
    return start_faulty(directory, ranks, *arguments, **how).finish(timeout)


def go_on(done, ranks, *arguments):
    """Go on with the run, without the fault."""
    scratch = done.out.parent / "scratch"
    told = ["run", "--resume", done.out, "--scratch", scratch, *arguments]
    return pffbench_cli(*told, ranks=ranks, out=done.out, timeout=60)


def finished(done):
    """Return how often each repetition of each case is recorded as finished."""
    return Counter((r["case"], int(r["repetition"])) for r in done.rows if r["phase"] == "remove")


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


def no_process_is_left(directory, seconds=15):
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


