"""`jobs/nightly.sh`, submitted for real: nights alike, slower ones, and what is no baseline."""

from __future__ import annotations

import re
import shutil

import pytest
from msgspec.structs import replace

from desk import JOBS, Desk, verdicts
from drawn_runs import edit
from launch import PROGRAMS, compiled
from planted import planted

pytestmark = pytest.mark.slurm

#: Directories of the runs of a night.
STARTS = ("1", "2", "3")
#: Delays that no noise of a busy machine comes near to; the truth is known.
EXPERIMENT = """
name: sleeping
repetitions: {repetitions}
warmup: 0
roofline: false
cases:
  - workload: hyperslab
    backend: "null"
    shape_per_rank: [4, 8]
    "null": {{delays: {{write: 0.5, read: 0.5}}}}
"""


#: Real writes with the raw transfers beside them, as large as those of the nightly experiment: in
#: nights of two seconds the disk of a virtual machine differs by more than is planted.
REAL = """
name: real
repetitions: {repetitions}
common: {{workload: hyperslab, shape_per_rank: [24, 1024, 1024], durability: sync}}
cases:
  - {{backend: hdf5, files: per_rank, chunks: [1, 1024, 1024]}}
"""


@pytest.fixture
def desk(slurm, shared):
    return Desk(slurm, shared)


def night(desk, *options, repetitions=10, tasks=1, text=EXPERIMENT, **variables):
    """Submit one night; return the number of its job."""
    (desk.directory / "sleeping.yaml").write_text(text.format(repetitions=repetitions))
    return desk.sbatch(
        f"--ntasks-per-node={tasks}", JOBS / "nightly.sh", "sleeping.yaml", *options, **variables
    )


def end_of(desk, job):
    """How a job ended, and its log."""
    facts = desk.slurm.wait(job, timeout=300)
    return facts["JobState"], facts["ExitCode"], desk.log(job)


def make_faster(night, factor):
    """Make a night one that was faster than it really was: a slowdown since then is planted."""
    for run in STARTS:
        edit(night / run, lambda one: replace(
            one, totals={total: seconds / factor for total, seconds in one.totals.items()},
            phases=tuple(replace(t, seconds=t.seconds / factor) for t in one.phases),
        ))  # fmt: skip


def nights(desk):
    return desk.directory / "pffbench-results" / "nightly-1n"


def links(*jobs):
    """The names that the starts of nights have in a baseline."""
    return [f"{job}-{start}" for job in jobs for start in STARTS]


def baseline(desk):
    """The names of the runs of the baseline."""
    place = nights(desk) / "baseline"
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


@pytest.mark.full
def test_nights_alike_become_the_baseline_and_a_slower_one_fails(desk):
    first = night(desk)
    desk.complete(first)
    assert baseline(desk) == links(first)
    assert "the first night of a baseline is compared with nothing" in desk.log(first)

    same = night(desk)
    state, _, log = end_of(desk, same)
    assert state == "COMPLETED", log
    assert "PASSED: " in log
    assert (nights(desk) / same / "compare" / "compare.md").exists()
    assert baseline(desk) == links(first, same)

    for name in (first, same):
        make_faster(nights(desk) / name, 3)
    slow = night(desk)
    state, status, log = end_of(desk, slow)
    assert (state, status) == ("FAILED", "1:0"), log
    failed = " ".join(re.search(r"^FAILED: (?s:.*?)\n\n", log, re.MULTILINE)[0].split())
    assert "slower by more than 20 %: " in failed
    compared = (nights(desk) / slow / "compare" / "compare.md").read_text()
    assert failed in compared.replace("\\_", "_").replace("\\*", "*")
    # The run itself is a good one, and no part of the baseline.
    runs = verdicts(desk.records(nights(desk) / slow))
    assert runs == dict.fromkeys(STARTS, ("finished", True))
    assert baseline(desk) == links(first, same)


@pytest.mark.full
def test_a_machine_that_changed_is_no_failure_of_a_format(desk):
    """Raw transfers are the control where a format is measured too."""
    real = "- {{workload: hyperslab, backend: [hdf5, posix], shape_per_rank: [1024, 4096]}}"
    mixed = EXPERIMENT.replace("  - workload", f"  {real}\n  - workload")
    first = night(desk, text=mixed)
    desk.complete(first)
    make_faster(nights(desk) / first, 40)  # by more than the disk of a busy machine varies
    state, status, log = end_of(desk, night(desk, text=mixed))
    assert (state, status) == ("FAILED", "5:0"), log
    assert "MACHINE CHANGED: " in log
    assert baseline(desk) == links(first)


@pytest.mark.full
def test_a_run_that_is_not_valid_is_no_baseline(desk):
    job = night(desk, "--set", "null.fail=read")
    assert end_of(desk, job)[:2] == ("FAILED", "1:0")
    assert not baseline(desk)


@pytest.mark.full
def test_a_warned_night_goes_on_and_becomes_the_baseline_when_it_is_whole(desk):
    job = night(desk, repetitions=15)
    desk.wait_for_repetitions(nights(desk) / job / "2")
    desk.slurm.run("scancel", "--signal=USR1", job)
    facts = desk.complete(job)
    assert facts["Restarts"] == "1"
    assert verdicts(desk.records(nights(desk) / job)) == dict.fromkeys(STARTS, ("finished", True))
    assert baseline(desk) == links(job)


def test_without_an_experiment_it_runs_the_one_made_for_nights_in_the_time_of_the_job(desk):
    small = [f"--set={key}" for key in ("shape_per_rank=[4,32,32]", "chunks=[1,32,32]")]
    job = desk.sbatch(
        "--ntasks-per-node=1", "--time=20", JOBS / "nightly.sh", "nightly", *small,
        "--set=repetitions=1", "--set=warmup=0",
    )  # fmt: skip
    desk.complete(job)
    for record in desk.records(nights(desk) / job).values():
        assert (record["name"], record["valid"]) == ("nightly", True)
        assert float(record["experiment"]["time_budget"]) == pytest.approx(0.9 * 540, abs=1)
    assert baseline(desk) == links(job)


@pytest.mark.slow  # and for a machine that does nothing else: these times are real
@pytest.mark.timeout(3600)  # 15 to 45 minutes, as the disk
def test_ten_real_nights_are_not_red_and_each_with_slower_writes_is_not_green(desk):
    """The baseline, then nights alike and slower ones alternately: the disk drifts for both.

    A disk that is slower than in the baseline may decide nothing (status 5), in a few nights.
    """
    first = [real_night(desk) for _ in range(3)]
    assert set(first) <= {"0:0", "4:0"}
    preloaded = shutil.copy(compiled(PROGRAMS / "planted.c"), desk.directory)
    slow = planted("hdf5.hyperslab", factor=1.5, factor_of="write") | {"LD_PRELOAD": str(preloaded)}
    pairs = [(real_night(desk, **slow), real_night(desk)) for _ in range(10)]
    late, alike = zip(*pairs, strict=True)
    assert set(late) <= {"1:0", "5:0"}
    assert set(alike) <= {"0:0", "4:0", "5:0"}
    assert late.count("1:0") >= 8, late
    assert alike.count("0:0") >= 8, alike


def real_night(desk, **variables):
    """Run a real night; return its exit status. A red one must be red for the writes of HDF5."""
    job = night(desk, repetitions=20, tasks=2, text=REAL, **variables)
    _, status, log = end_of(desk, job)
    print(job, status)
    assert status != "1:0" or re.search(r"FAILED: .*HDF5.*, write", " ".join(log.split())), log
    return status
