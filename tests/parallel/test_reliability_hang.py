"""A collective call that never returns ends the job in time, and tells where every rank is."""

import contextlib
import re

import psutil
import pytest

from faults import (
    SLAB,
    TAG,
    finished,
    goes_on_without,
    no_process_is_left,
    run_faulty,
    start_faulty,
)
from launch import lines_of, run_experiment, start_experiment, wait_until
from pffbench.text import without_digests

pytestmark = pytest.mark.parallel

RANKS = 3
TIMEOUT = ("--set", "hang_timeout=5 s")
CASES = [SLAB | {"backend": "null"}, SLAB | {"backend": "hdf5", "transfer": "collective"}]


@pytest.fixture(scope="module")
def hung(tmp_path_factory):
    """A rank hangs with Python's lock in the third collective write; the others wait for it."""
    directory = tmp_path_factory.mktemp("hung")
    fault = {"verb": "write", "kind": "hang", "rank": 1, "after": 2}
    return run_faulty(directory, RANKS, *TIMEOUT, fault=fault, cases=CASES)


def test_a_job_that_hangs_is_ended(hung):
    assert hung.status not in (0, 2, 3), hung.said
    assert hung.record["status"] == "running"
    no_process_is_left(hung.out.parent)


def test_case_repetition_phase_and_ranks_are_told(hung):
    name = without_digests(hung.case(backend="hdf5"))
    told = re.search(r"pffbench: .*: nothing has come to an end for (\d+) s \(hang_timeout 5 s\)"
                     r", so the job is ended: (\S+), repetition (\d), (\w+); ranks 0-2\. What is "
                     r"recorded is kept, and this case is not tried again; go on with: mpiexec "
                     r"-n 3 python -m pffbench run --resume (\S+)$", hung.stderr,
                     re.MULTILINE)  # fmt: skip
    assert told, hung.said
    assert int(told[1]) >= 5
    assert (told[2], told[3], told[4], told[5]) == (name, "2", "write", str(hung.out))


def test_the_case_is_recorded_as_failed(hung):
    entries = hung.record["cases"]
    failure = entries[hung.case(backend="hdf5")]["failure"]
    assert (failure["phase"], failure["repetition"]) == ("write", 2)
    assert failure["error"].startswith("TimeoutError: not ended after ")
    assert "Current thread" in failure["traceback"]
    assert entries[hung.case(backend="null")]["failure"] is None


def test_the_stack_of_every_rank_is_told(hung):
    stacks = re.findall(r"^ranks? ([\d, -]+): process in state (\w)\n(.*?)(?=\n\S|\Z)",
                        hung.stderr, re.MULTILINE | re.DOTALL)  # fmt: skip
    by_rank = {ranks: stack for ranks, _, stack in stacks}
    assert set(by_rank) in ({"0, 2", "1"}, {"0", "1", "2"}), hung.said
    assert "faulty.py" in by_rank["1"]
    assert "in hang" in by_rank["1"]
    others = by_rank.get("0, 2") or by_rank["0"] + by_rank["2"]
    assert "in hang" not in others
    assert "in _write_arrays" in others or "in write_read_cycle" in others


def test_finished_repetitions_are_kept_and_the_run_goes_on_without_the_case(hung):
    assert len(finished(hung)) >= 4
    rest = goes_on_without(hung, RANKS, hung.case(backend="hdf5"))
    assert "write failed on rank" in " ".join(rest.stdout.split())


@pytest.mark.full  # as a rank that hangs, above
def test_a_stopped_rank_hangs_the_job_and_says_nothing(tmp_path):
    fault = {"verb": "close", "kind": "stop", "rank": 0, "after": 1}
    done = run_faulty(tmp_path, 2, *TIMEOUT, fault=fault, cases=CASES)
    assert done.status not in (0, 2, 3)
    assert re.search(r"rank 0: process in state T\n\(it wrote none\)", done.stderr), done.said
    no_process_is_left(tmp_path)


@pytest.mark.full
def test_a_rank_that_is_ten_times_slower_is_no_alarm(tmp_path):
    """All steps together take far longer than the limit, each of them less."""
    case = SLAB | {"backend": "null"}
    slow = [case | {"null": {"delays": {"write": 0.2, "read": 0.2}}},
            case | {"null": {"delays": {"write": 2.0, "read": 2.0}, "delay_rank": 1}}]  # fmt: skip
    done = run_experiment(tmp_path, 2, hang_timeout="20 s", repetitions=6, cases=slow)
    assert done.status == 0, done.said
    assert "nothing has come to an end" not in done.stderr


@pytest.mark.parametrize("limit", ["0 s", "soon", "5 parsecs"])
def test_a_limit_that_makes_no_sense_is_refused(tmp_path, limit):
    done = run_experiment(tmp_path, None, hang_timeout=limit, cases=CASES)
    assert done.status == 2
    assert "hang_timeout: " in done.stderr
    assert not done.out.exists()


@pytest.mark.full
def test_a_rank_that_failed_and_waits_for_the_others_is_told(tmp_path):
    """It does not make the collective call in which the others wait for it."""
    fault = {"verb": "write", "kind": "fail", "rank": 1, "after": 1}
    done = run_faulty(tmp_path, 2, *TIMEOUT, fault=fault, cases=CASES[1:])
    assert done.status not in (0, 2, 3)
    told = " rank 1: OSError: [Errno 5] told to fail, and waits for the others. What is recorded"
    assert told in done.stderr, done.said
    no_process_is_left(tmp_path)
    assert len(finished(done)) == 1
    rest = goes_on_without(done, 2, done.case(backend="hdf5"))
    (reason,) = rest.record["reasons"]
    assert "write failed on rank 1 " in reason
    assert "OSError: [Errno 5] told to fail; the other ranks waited for it" in reason


def stop_watchdog(run):
    """Stop the process that watches the ranks of a run, once these have begun."""
    wait_until(lambda: (run.out / "repetitions.jsonl").exists() and lines_of(run.out))
    (watchdog,) = [p for p in psutil.process_iter() if watches(p, run.out.parent)]
    watchdog.suspend()
    return watchdog


def watches(process, directory):
    try:
        here = process.environ().get(TAG) == str(directory)
        return here and "pffbench.job.watchdog_process" in process.cmdline()
    except psutil.Error:
        return False


@pytest.mark.full
def test_a_job_that_hangs_ends_without_the_watchdog(tmp_path):
    """The alarm of each rank ends it; the watchdog, which was stopped, ends when it goes on."""
    fault = {"verb": "write", "kind": "hang", "rank": 1, "after": 2}
    run = start_faulty(tmp_path, 2, *TIMEOUT, fault=fault, cases=CASES)
    watchdog = stop_watchdog(run)
    done = run.finish()
    assert done.status not in (0, 2, 3), done.said
    assert "in hang" in done.stderr
    # The end of its process group may have woken it.
    with contextlib.suppress(psutil.NoSuchProcess):
        watchdog.resume()
    no_process_is_left(tmp_path)


@pytest.mark.full
def test_a_run_comes_to_its_end_without_the_watchdog(tmp_path):
    slow = [SLAB | {"backend": "null", "null": {"delays": {"write": 0.4}}}]
    run = start_experiment(tmp_path, 2, repetitions=6, cases=slow, env={TAG: str(tmp_path)})
    stop_watchdog(run)
    done = run.finish()
    assert done.status == 0, done.said
    no_process_is_left(tmp_path)


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_rank_that_is_stopped_before_the_run_begins_ends_the_job(tmp_path):
    """Nothing watches yet, and the others wait for rank 0, which reads the experiment."""
    run = start_experiment(tmp_path, 2, *TIMEOUT, cases=CASES, env={TAG: str(tmp_path)})
    wait_until(lambda: ranks_of(tmp_path))
    first = ranks_of(tmp_path)[0]
    first.suspend()
    done = run.finish()
    assert done.status not in (0, 2, 3), done.said
    no_process_is_left(tmp_path)


#: Steps of rank 0 in which the other ranks wait for it.
STEPS = {
    "planning": "pffbench.run.prepare make_plan",
    "making the scratch directory": "pffbench.run.scratch_directory _made_at",
    "reporting": "pffbench.run.verdict report_result",
}
HANGING = """
import importlib, sys, time
from pffbench.cli import main
module, name = "STEP".split()
def hang(*_, **__):
    while True:
        time.sleep(1)
setattr(importlib.import_module(module), name, hang)
main(sys.argv[1:])
"""


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", STEPS)
def test_the_limit_of_the_experiment_holds_before_the_first_case_and_after_the_last(tmp_path, step):
    """It is a minute at least, and ten minutes without it."""
    run = start_experiment(
        tmp_path, 2, program=("-c", HANGING.replace("STEP", STEPS[step])),
        hang_timeout="5 s", cases=CASES[:1], env={TAG: str(tmp_path)},
    )  # fmt: skip
    done = run.finish(timeout=200)
    assert done.status not in (0, 2, 3), done.said
    assert "Stack (most recent call first)" in done.stderr, done.said  # two, with mixed lines
    no_process_is_left(tmp_path)


def ranks_of(directory):
    """Return the ranks of a run, the first one first."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, KeyError):
            told = process.environ()
            if told.get(TAG) == str(directory):
                found[int(told["OMPI_COMM_WORLD_RANK"])] = process
    return [found[rank] for rank in sorted(found)]
