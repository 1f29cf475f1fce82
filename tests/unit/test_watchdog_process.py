"""Leases, the process that looks on, and how long a case may take, without MPI."""

import math
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from launch import environment
from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.job import watchdog_process as watchman
from pffbench.job.alarm import PATIENCE
from pffbench.job.heartbeat import Leases, grouped, moved_by, numbers, state_of
from pffbench.job.watchdog import Watchdog
from pffbench.mpi.agreement import OtherRankFailedError
from pffbench.mpi.single import SingleProcess
from pffbench.mpi.topology import Team
from pffbench.run.pace import Pace
from pffbench.workloads.registry import workload

pytestmark = pytest.mark.long

#: What a rank is in these tests: it enters itself, begins a step and does nothing.
RANK = """
import os, sys, time
from pffbench.job.heartbeat import Leases
from pffbench.job.heartbeat import write_stacks_when_asked
file, place, count = map(int, sys.argv[1:4])
seconds = float(sys.argv[4])
holder = Leases(file, count).holder(place, place, os.getpid(), write_stacks_when_asked())
holder.about("case, repetition 7")
holder.step("write", seconds)
print("entered", flush=True)
sys.stdin.readline()
holder.leave()
"""


@pytest.fixture
def node():
    """Start ranks with leases of so many seconds, and the process that looks on."""
    started = []
    file = os.memfd_create("leases")

    def start(*seconds):
        how = {"pass_fds": [file], "env": environment(), "stdin": subprocess.PIPE, "text": True}
        for place, limit in enumerate(seconds):
            told = map(str, (file, place, len(seconds), limit))
            rank = subprocess.Popen([sys.executable, "-c", RANK, *told], stdout=subprocess.PIPE,
                                    **how)  # fmt: skip
            started.append(rank)
            assert rank.stdout.readline() == "entered\n"
        told = map(str, (file, len(seconds), "2 s"))
        command = [sys.executable, "-m", "pffbench.job.watchdog_process", *told]
        watchman = subprocess.Popen(command, stderr=subprocess.PIPE, **how)
        started.append(watchman)
        return started[:-1], watchman

    yield start
    for process in started:
        process.kill()
        process.wait()
    os.close(file)


def test_a_lease_is_read_as_it_was_written():
    file = os.memfd_create("leases")
    writing, reading = Leases(file, 3), Leases(file, 3)
    holder = writing.holder(1, 17, 4711, 9)
    holder.about("ä" * 500)
    before = time.monotonic()
    holder.step("open_array", 600)
    _, lease, _ = reading
    assert (lease.rank, lease.pid, lease.stacks, lease.step) == (17, 4711, 9, "open_array")
    assert lease.about == "ä" * 200
    assert lease.until - lease.since == pytest.approx(600)
    assert before <= lease.since <= time.monotonic()
    assert not lease.left
    holder.leave()
    assert list(reading)[1].left
    os.close(file)


def test_a_step_writes_to_memory_and_does_nothing_else():
    """Steps begin between timed phases."""
    holder = Leases(file := os.memfd_create("leases"), 1).holder(0, 0, 1, 2)
    called = []
    sys.setprofile(lambda _, event, what: called.append(what) if event == "c_call" else None)
    holder.step("write", 600.0)
    sys.setprofile(None)
    allowed = {"monotonic", "encode", "pack_into", "setprofile"}
    assert {what.__name__ for what in called} <= allowed
    assert len(called) <= len(allowed)
    os.close(file)


def test_who_has_left_is_not_watched(node):
    ranks, watchman = node(math.inf, math.inf)
    for rank in ranks:
        rank.stdin.close()
    assert watchman.wait(300) == 0
    assert watchman.stderr.read() == ""


def test_a_step_that_takes_too_long_ends_all_ranks(node):
    ranks, watchman = node(1.0, math.inf)
    assert watchman.wait(300) == 0
    told = watchman.stderr.read()
    assert "case, repetition 7, write; rank 0." in told
    assert "ranks 0-1: process in state S\nCurrent thread" in told
    assert [rank.wait(300) for rank in ranks] == [-9, -9]


def test_ranks_that_wait_for_one_that_is_gone_are_ended(node):
    ranks, watchman = node(math.inf, math.inf, math.inf)
    ranks[1].kill()
    ranks[1].wait()
    assert watchman.wait(300) == 0
    told = watchman.stderr.read()
    assert "rank 1 ended in the midst of the run (case, repetition 7, write)" in told
    assert "ranks 0, 2: process in state" in told
    assert [rank.wait(300) for rank in ranks] == [-9, -9, -9]


def test_it_ends_in_silence_when_all_are_gone(node):
    ranks, watchman = node(math.inf, math.inf)
    for rank in ranks:
        rank.kill()
        rank.wait()
    assert watchman.wait(300) == 0
    assert watchman.stderr.read() == ""


@pytest.mark.parametrize(
    ("ranks", "words"),
    [([3], "rank 3"), ([0, 1], "ranks 0-1"), ([5, 0, 2, 1], "ranks 0-2, 5")],
)
def test_ranks_are_told_in_few_words(ranks, words):
    assert numbers(ranks) == words


def test_equal_stacks_are_told_once():
    assert grouped([(0, "a"), (2, "b"), (1, "a")]) == ["ranks 0-1: a", "rank 2: b"]


def test_a_process_that_is_no_more_is_gone():
    assert state_of(os.getpid()) == "R"
    assert state_of(2**22 + 1) == "gone"


def case(**parameters):
    kind = workload("hyperslab").parameters_type
    made = kind(**({"backend": "hdf5", "shape_per_rank": (10**4, 10**4)} | parameters))
    return Case(made, backend_class(made.backend).options_type())


def test_patience_grows_with_what_a_case_moves():
    pace = Pace(4, 2**26)
    small, large = pace.patience(case(shape_per_rank=(4, 4))), pace.patience(case())
    assert PATIENCE <= small < PATIENCE + 1
    assert large == pytest.approx(PATIENCE + 4e8 / 1e5, rel=0.01)


def test_patience_of_many_files_is_longer():
    chunky = case(backend="zarr", chunks=(10, 10))
    assert Pace(4, 2**26).patience(chunky) > 10_000


def test_patience_of_a_case_that_has_run_is_ten_times_its_longest_repetition():
    pace = Pace(4, 2**26)
    for seconds in (100.0, 1.0):
        pace.note(case(), seconds, 0.0)
    assert pace.patience(case()) == 1000


@pytest.fixture
def looking(monkeypatch):
    """A rank, which is this process, that writes to a full file system, and who looks on."""
    monkeypatch.setattr(watchman, "LOOK", 0.0)
    monkeypatch.setattr(watchman, "_is_full", lambda _: True)
    monkeypatch.setattr(watchman, "moved_by", lambda _: "as before")
    file = os.memfd_create("leases")
    holder = Leases(file, 1).holder(0, 0, os.getpid(), 0)
    holder.step("define", 600)
    looker = watchman.NodeWatchdog(Leases(file, 1), "10 min", "/scratch", ["define", "write"])
    yield holder, lambda: looker._is_stuck(list(looker._leases))
    os.close(file)


def test_writing_to_a_full_file_system_without_moving_is_seen(looking):
    _, is_stuck = looking
    assert [is_stuck(), is_stuck()] == [False, True]


def test_a_step_that_has_ended_since_is_not_stuck(looking):
    holder, is_stuck = looking
    assert not is_stuck()
    holder.step("write", 600)
    assert not is_stuck()


def test_what_moves_is_not_stuck(looking, monkeypatch):
    _, is_stuck = looking
    counted = iter("abc")
    monkeypatch.setattr(watchman, "moved_by", lambda _: next(counted))
    assert [is_stuck() for _ in "abc"] == [False] * 3


def test_a_step_that_does_not_write_may_take_its_time(looking):
    holder, is_stuck = looking
    holder.step("verification", 600)
    assert [is_stuck(), is_stuck()] == [False, False]


def test_a_file_system_that_is_not_full_is_no_reason(looking, monkeypatch):
    _, is_stuck = looking
    monkeypatch.setattr(watchman, "_is_full", lambda _: False)
    assert [is_stuck(), is_stuck()] == [False, False]


def test_how_much_a_process_has_moved_is_counted(tmp_path):
    before = moved_by(os.getpid())
    assert "wchar" in before
    (tmp_path / "file").write_bytes(b"x" * 2**20)
    assert moved_by(os.getpid()) != before
    assert moved_by(2**22 + 1) == ""


def test_a_failure_is_told_until_the_next_step():
    file = os.memfd_create("leases")
    holder = Leases(file, 1).holder(0, 0, 1, 2)
    holder.step("write", 600)
    holder.failed("OSError: " + "ü" * 500)
    (lease,) = Leases(file, 1)
    assert lease.failed.startswith("OSError: üüü")
    holder.step("close", 600)
    (lease,) = Leases(file, 1)
    assert lease.failed == ""
    os.close(file)


def test_a_rank_that_waits_for_a_failed_one_is_not_called_failed():
    watchdog = Watchdog(Team.of(SingleProcess("a test")), 4.0)
    told = []
    watchdog._holder = SimpleNamespace(failed=told.append)
    watchdog.failed(OtherRankFailedError())
    assert told == []
    watchdog.failed(OSError("no room"))
    assert told == ["OSError: no room"]
