"""`jobs/nightly.sh`, submitted for real: nights alike, slower ones, and what is no baseline."""

from __future__ import annotations

import csv
import json
import re
import shutil

import pytest

from desk import JOBS, Desk, verdicts
from launch import PROGRAMS, compiled
from planted import planted

pytestmark = pytest.mark.slurm

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
    "null": {{delays: {{write: 0.1, read: 0.1}}}}
"""


#: Real writes with the raw transfers beside them, as large as those of the nightly experiment: in
#: nights of two seconds the disk of a virtual machine differs by more than is planted.
REAL = """
name: real
repetitions: {repetitions}
common: {{workload: hyperslab, shape_per_rank: [24, 1024, 1024], durability: sync}}
cases:
  - {{backend: hdf5, layout: file_per_process, chunks: [1, 1024, 1024]}}
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
    """How a job ended, and the last line of its log."""
    facts = desk.slurm.wait(job, timeout=300)
    return facts["JobState"], facts["ExitCode"], desk.log(job).splitlines()[-1]


def make_faster(run, factor):
    """Make a run one that was faster than it really was: a slowdown since then is planted."""
    path = run / "samples.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for clock in ("own_max", "seconds"):
            row[clock] = repr(float(row[clock]) / factor)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def kept_names(desk, name="-sleeping"):
    return (desk.directory / f"pffbench-results/nightly{name}-1n.baseline").read_text().split()


@pytest.mark.full
def test_nights_alike_become_the_baseline_and_a_slower_one_fails(desk):
    results = desk.directory / "pffbench-results"
    first = night(desk)
    desk.complete(first)
    assert kept_names(desk) == [f"nightly-sleeping-1n-{first}"]
    assert end_of(desk, first)[2].endswith("the first night of a baseline, so nothing was compared")
    assert not list(results.glob("*-compare"))

    same = night(desk)
    state, _, last = end_of(desk, same)
    assert state == "COMPLETED", desk.log(same)
    assert re.search(
        "exit status 0: all well: nothing is shown to be slower than the baseline; a slowdown of "
        r"\d+ % or more would have been$", last
    )  # fmt: skip
    assert (results / f"nightly-sleeping-1n-{same}-compare" / "compare.md").exists()
    both = [f"nightly-sleeping-1n-{job}" for job in (first, same)]
    assert kept_names(desk) == both

    for name in both:
        make_faster(results / name, 3)
    slow = night(desk)
    state, status, last = end_of(desk, slow)
    assert (state, status) == ("FAILED", "1:0"), desk.log(slow)
    compared = results / f"nightly-sleeping-1n-{slow}-compare" / "compare.md"
    said = "exit status 1: shown to be slower than the baseline by more than 20%"
    assert last.endswith(f"{said}, see {compared}")
    (failed,) = [line for line in desk.log(slow).splitlines() if line.startswith("FAILED: ")]
    assert "is slower by more than 20 %" in failed
    assert "write_total takes " in failed
    assert failed in compared.read_text().replace("\\_", "_").replace("\\*", "*")
    # The run itself is a good one, and no part of the baseline.
    assert set(verdicts(desk.records("pffbench-results")).values()) == {("finished", True)}
    assert kept_names(desk) == both


@pytest.mark.full
def test_a_baseline_of_seven_nights_shows_that_a_night_is_not_slower_and_grows_no_further(desk):
    results = desk.directory / "pffbench-results"
    first = night(desk)
    desk.complete(first)
    (one,) = kept_names(desk)
    seven = [one, *(f"copy {number}" for number in range(6))]
    for name in seven[1:]:
        shutil.copytree(results / one, results / name)
    kept = results / "nightly-sleeping-1n.baseline"
    kept.write_text("\n".join(seven))
    eighth = night(desk)
    state, _, last = end_of(desk, eighth)
    assert state == "COMPLETED", desk.log(eighth)
    assert last.endswith(
        "all well: it is shown that nothing is slower than the baseline by more than 20%"
    )
    assert kept.read_text() == "\n".join(seven)

    two = ":".join(str(results / name) for name in seven[:2])
    strict = night(desk, PFFBENCH_BASELINE=two, PFFBENCH_COMPARE="--strict",
                   PFFBENCH_FAIL_IF_SLOWER="1%")  # fmt: skip
    state, status, last = end_of(desk, strict)
    assert (state, status) == ("FAILED", "4:0"), desk.log(strict)
    assert "exit status 4: not shown to be as fast as the baseline; a slowdown of " in last


@pytest.mark.full
def test_a_machine_that_changed_is_no_failure_of_a_format(desk):
    """The case that sleeps is the control where a format is measured too."""
    real = "- {{workload: hyperslab, backend: hdf5, shape_per_rank: [1024, 4096]}}"
    mixed = EXPERIMENT.replace("  - workload", f"  {real}\n  - workload")
    desk.complete(night(desk, text=mixed))
    (one,) = kept_names(desk)
    make_faster(desk.directory / "pffbench-results" / one, 4)
    state, status, last = end_of(desk, night(desk, text=mixed))
    assert (state, status) == ("FAILED", "5:0"), last
    assert "exit status 5: the machine has changed since the baseline: raw transfers" in last
    assert kept_names(desk) == [one]


@pytest.mark.full
def test_a_night_of_too_few_repetitions_is_no_success(desk):
    desk.complete(night(desk, repetitions=3))
    few = night(desk, repetitions=3)
    state, status, last = end_of(desk, few)
    assert (state, status) == ("FAILED", "2:0")
    assert "exit status 2: not comparable with the baseline, see " in last
    assert "too few repetitions: 3 and 3, 7 of each are needed" in desk.log(few)


@pytest.mark.full
def test_a_baseline_that_is_not_comparable_is_no_success(desk):
    first = night(desk)
    desk.complete(first)
    baseline = desk.directory / "pffbench-results" / f"nightly-sleeping-1n-{first}"
    more = night(desk, tasks=2, PFFBENCH_BASELINE=str(baseline))
    state, status, last = end_of(desk, more)
    assert (state, status) == ("FAILED", "2:0"), desk.log(more)
    assert "exit status 2: not comparable with the baseline, see " in last
    assert "nothing is comparable: 1 and 2 ranks" in desk.log(more)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PFFBENCH_BASELINE": "/nowhere:/2"}, "PFFBENCH_BASELINE=/nowhere: there is no run in it"),
        ({"PFFBENCH_FAIL_IF_SLOWER": "5"}, "PFFBENCH_FAIL_IF_SLOWER=5 is not a percentage"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(desk, variables, message):
    job = night(desk, **variables)
    state, status, _ = end_of(desk, job)
    assert (state, status) == ("FAILED", "2:0")
    assert message in desk.log(job)
    assert not list(desk.directory.rglob("run.json"))


@pytest.mark.full
def test_a_baseline_that_is_gone_is_not_replaced_by_the_run_of_a_slow_night(desk):
    results = desk.directory / "pffbench-results"
    results.mkdir()
    (results / "nightly-sleeping-1n.baseline").write_text("nightly-sleeping-1n-gone\n")
    job = night(desk)
    assert end_of(desk, job)[:2] == ("FAILED", "2:0")
    assert "nightly-sleeping-1n-gone: there is no run in it" in desk.log(job)


@pytest.mark.full
def test_a_run_that_is_not_valid_is_no_baseline(desk):
    job = night(desk, "--set", "null.fail=read")
    assert end_of(desk, job)[:2] == ("FAILED", "1:0")
    assert desk.log(job).splitlines()[-1].endswith("exit status 1: a run is not valid")
    assert not list((desk.directory / "pffbench-results").glob("*.baseline"))


@pytest.mark.full
def test_a_warned_night_goes_on_and_becomes_the_baseline_when_it_is_whole(desk):
    job = night(desk, repetitions=40)
    run = f"pffbench-results/nightly-sleeping-1n-{job}"
    desk.wait_for_repetitions(run)
    desk.slurm.run("scancel", "--signal=USR1", job)
    facts = desk.complete(job)
    assert facts["Restarts"] == "1"
    record = json.loads((desk.directory / run / "run.json").read_text())
    assert (record["status"], record["valid"]) == ("finished", True)
    assert "this run is night 1 of at most 7 in the baseline" in desk.log(job)


@pytest.mark.full
def test_jobs_submit_keeps_the_nights_in_one_place(desk):
    (desk.directory / "sleeping.yaml").write_text(EXPERIMENT.format(repetitions=10))
    told = desk.slurm.run(
        JOBS / "submit", "--dry-run", "nightly", "sleeping.yaml",
        cwd=desk.directory, **desk.environment,
    ).stdout  # fmt: skip
    assert f"--output={desk.directory}/pffbench-results/nightly/%x-%j.out" in told
    (job,) = desk.submit("--tasks-per-node", "1", "nightly", "sleeping.yaml")
    desk.complete(job)
    (baseline,) = (desk.directory / "out").glob("*.baseline")
    assert baseline.read_text().strip() == f"nightly-sleeping-1n-{job}"


@pytest.mark.full
def test_without_an_experiment_it_runs_the_one_made_for_nights_in_the_time_of_the_job(desk):
    small = [f"--set={key}" for key in ("shape_per_rank=[4,32,32]", "chunks=[1,32,32]")]
    job = desk.sbatch(
        "--ntasks-per-node=1", "--time=20", JOBS / "nightly.sh", *small, "--set", "repetitions=1"
    )
    desk.complete(job)
    record = desk.records("pffbench-results")[f"nightly-1n-{job}"]
    assert (record["name"], record["valid"]) == ("nightly", True)
    assert 600 < float(record["experiment"]["time_budget"]) < 1200
    assert kept_names(desk, "") == [f"nightly-1n-{job}"]


@pytest.mark.slow  # and for a machine that does nothing else: these times are real
@pytest.mark.timeout(3600)  # a quarter of an hour
def test_ten_real_nights_are_not_red_and_each_with_slower_writes_is_not_green(desk):
    """The baseline, then nights alike and slower ones alternately: the disk drifts for both.

    A disk that is slower than in the baseline may decide nothing (status 5), in a few nights.
    """
    nights = [real_night(desk) for _ in range(7)]
    assert nights == ["0:0"] * 7
    preloaded = shutil.copy(compiled(PROGRAMS / "planted.c"), desk.directory)
    slow = planted("hdf5.hyperslab", factor=1.5, factor_of="write") | {"LD_PRELOAD": str(preloaded)}
    pairs = [(real_night(desk, **slow), real_night(desk)) for _ in range(10)]
    late, alike = zip(*pairs, strict=True)
    assert set(late) <= {"1:0", "5:0"}
    assert set(alike) <= {"0:0", "5:0"}
    assert min(late.count("1:0"), alike.count("0:0")) >= 8, (late, alike)


def real_night(desk, **variables):
    """Run a real night; return its exit status. A red one must be red for the writes of HDF5."""
    job = night(desk, repetitions=20, tasks=2, text=REAL, **variables)
    _, status, last = end_of(desk, job)
    print(job, last)
    assert status != "1:0" or "slower: hdf5: write_total takes" in desk.log(job), desk.log(job)
    return status
