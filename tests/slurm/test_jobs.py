"""Every job script, submitted for real, to its end."""

from __future__ import annotations

import csv
import json
import re
import socket

import pytest

from desk import JOBS, Desk, repetitions, verdicts
from launch import environment

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]


@pytest.fixture
def desk(slurm, shared):
    """A directory to submit from, and the environment to do it in."""
    return Desk(slurm, shared)


def test_the_comparison_on_two_nodes(desk):
    job = desk.sbatch("-N2", "--ntasks-per-node=2", JOBS / "compare.sh", desk.experiment())
    desk.complete(job)
    records = desk.records("pffbench-results")
    assert verdicts(records) == {f"compare-2n-{job}": ("finished", True)}
    assert records[f"compare-2n-{job}"]["topology"]["ranks_per_node"] == [2, 2]
    log = desk.log(job)
    assert f"job {job} (pffbench-compare), start 1, site generic" in log
    assert "2 nodes (node[1-2]), 2 tasks on each" in log
    assert "command: 'srun' '--mpi=pmix'" in log
    assert log.splitlines()[-2].endswith(
        f"results: {desk.directory}/pffbench-results/compare-2n-{job}"
    )
    assert log.splitlines()[-1].endswith("exit status 0: all well")
    # Nothing of the job is left on the file system under test.
    assert not list(desk.directory.glob("pffbench-job-*"))


def test_a_series_of_one_two_and_four_nodes_with_its_figures(desk):
    jobs = desk.submit("--nodes", "4", "--tasks-per-node", "2", "scaling-weak", desk.experiment())
    assert len(jobs) == 3
    desk.complete(jobs[-1])
    records = desk.records("out")
    assert verdicts(records) == {
        f"scaling-weak-{nodes}n-{job}": ("finished", True)
        for nodes, job in zip((1, 2, 4), jobs, strict=True)
    }
    # One after the other: none began before the one before it had ended.
    ordered = [records[f"scaling-weak-{n}n-{j}"] for n, j in zip((1, 2, 4), jobs, strict=True)]
    assert ordered[0]["finished"] <= ordered[1]["started"]
    assert ordered[1]["finished"] <= ordered[2]["started"]
    assert [record["ranks"] for record in ordered] == [2, 4, 8]
    for name in records:
        assert list((desk.directory / "out" / name / "plots").glob("*.png"))
    with (desk.directory / "out" / "figures-weak" / "scaling.csv").open() as lines:
        points = {(row["backend"], row["nodes"]) for row in csv.DictReader(lines)}
    assert points == {(backend, n) for backend in ("hdf5", "zarr") for n in ("1", "2", "4")}
    assert list((desk.directory / "out" / "figures-weak").glob("*.png"))


@pytest.mark.full
def test_a_series_in_one_allocation_steps_down(desk):
    (job,) = desk.submit(
        "--nodes", "2", "--tasks-per-node", "1", "--one-allocation", "--no-report",
        "scaling-strong", desk.experiment(repetitions="auto"), "--", "--comment=mine",
    )  # fmt: skip
    facts = desk.complete(job)
    assert (facts["Comment"], facts["OverSubscribe"]) == ("mine", "NO")
    assert not (desk.directory / "out" / "figures-strong").exists()
    names = [f"scaling-strong-{nodes}n-{job}" for nodes in (1, 2)]
    records = desk.records("out")
    assert verdicts(records) == dict.fromkeys(names, ("finished", True))
    # The larger size, which is first, may take half of the time of the job, the last one the rest.
    rest, half = (records[name]["experiment"]["time_budget"] for name in names)
    assert 600 < half < 800 < 1200 < rest < 1600


def test_a_refused_partition_submits_nothing(desk):
    done = desk.try_to_submit("--partition", "nosuch", "--nodes", "2", "scaling-weak")
    assert done.returncode == 2
    assert "invalid partition specified: nosuch" in done.stderr
    refusal = "Slurm refused the job: sbatch ended with status 1; nothing was submitted."
    assert refusal in done.stderr
    assert not (desk.directory / "out").exists()


def test_a_series_whose_second_size_is_refused_says_what_it_has_submitted(desk):
    desk.slurm.run("scontrol", "update", "PartitionName=batch", "MaxNodes=1")
    try:
        done = desk.try_to_submit(
            "--partition", "batch", "--nodes", "4", "scaling-weak", desk.experiment()
        )
    finally:
        desk.slurm.run("scontrol", "update", "PartitionName=batch", "MaxNodes=UNLIMITED")
    assert done.returncode == 2
    (first,) = re.findall(r"\] job (\d+):", done.stdout)
    told = f"submitted before, and still in the queue: {first}; cancel with: scancel {first}."
    assert told in done.stderr
    queued = desk.slurm.run("squeue", "--noheader", "--format=%i").stdout.split()
    assert set(queued) <= {first}


def test_an_array_runs_each_experiment_once(desk):
    (desk.directory / "several").mkdir()
    for name in ("one", "two"):
        desk.experiment(f"several/{name}")
        path = desk.directory / "several" / f"{name}.yaml"
        path.write_text(path.read_text().replace("several/", ""))
    (job,) = desk.submit("--tasks-per-node", "2", "array", "several")
    for element in (0, 1):
        desk.complete(f"{job}_{element}")
    assert verdicts(desk.records("out")) == {
        f"one-1n-{job}_0": ("finished", True), f"two-1n-{job}_1": ("finished", True)
    }  # fmt: skip


def test_staged_ranks_import_from_their_own_node_and_clean_up(desk):
    job = desk.sbatch(
        "-N2", "--ntasks-per-node=2", JOBS / "compare.sh", desk.experiment(), PFFBENCH_STAGE="1"
    )
    desk.complete(job)
    (record,) = desk.records("pffbench-results").values()
    assert (record["status"], record["valid"]) == ("finished", True)
    assert record["startup"]["seconds_to_main"] > 0
    loaded = json.dumps(record["provenance"]["software"])
    assert f"/tmp/pffbench-{job}/" in loaded
    seen = desk.slurm.run("srun", "-N4", "--ntasks-per-node=1", "ls", "/tmp").stdout
    assert "pffbench-" not in seen


@pytest.mark.full
def test_the_number_of_restarts_is_limited(desk):
    job = desk.sbatch(JOBS / "compare.sh", desk.experiment(repetitions=200), PFFBENCH_RESTARTS="0")
    run = f"pffbench-results/compare-1n-{job}"
    desk.wait_for_repetitions(run)
    desk.slurm.run("scancel", "--signal=USR1", job)
    facts = desk.slurm.wait(job)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "3:0")
    assert "not queued again: restarted 0 times (PFFBENCH_RESTARTS=0)" in desk.log(job)
    (record,) = desk.records("pffbench-results").values()
    assert record["status"] == "interrupted"


def test_a_cancelled_job_saves_says_so_and_is_not_queued_again(desk):
    job = desk.sbatch(JOBS / "compare.sh", desk.experiment(repetitions=200))
    run = f"pffbench-results/compare-1n-{job}"
    desk.wait_for_repetitions(run)
    desk.slurm.run("scancel", job)
    facts = desk.slurm.wait(job)
    assert (facts["JobState"], facts["Restarts"]) == ("CANCELLED", "0")
    assert repetitions(desk.directory / run / "samples.csv")
    assert "ended by Slurm: cancelled" in desk.log(job)


# Python runs this at its start: the first so many processes of each rank end there.
DIE = """
import os, signal
if rank := os.environ.get("PMIX_RANK"):
    for start in range(int(os.environ["DEATHS"])):
        try:
            open(f"{os.environ['PLACE']}/died-{rank}-{start}", "x").close()
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
"""


def die_at_the_start(desk, deaths):
    (place := desk.directory / "python").mkdir()
    (place / "sitecustomize.py").write_text(DIE)
    path = f"{place}:{environment()['PYTHONPATH']}"
    return desk.sbatch("-N2", "--ntasks-per-node=1", JOBS / "compare.sh", desk.experiment(),
                       PYTHONPATH=path, DEATHS=str(deaths), PLACE=str(place))  # fmt: skip


ONCE_MORE = (
    "the run did not begin: srun ended with 137 before any rank had recorded a start; "
    "once more in 5 s"
)


@pytest.mark.full
def test_a_step_that_never_began_is_tried_once_more(desk):
    job = die_at_the_start(desk, deaths=1)
    desk.complete(job)
    assert desk.log(job).count(ONCE_MORE) == 1
    assert verdicts(desk.records("pffbench-results")) == {
        f"compare-2n-{job}": ("finished", True)
    }  # fmt: skip


@pytest.mark.full
def test_a_node_whose_disk_kept_what_a_power_cut_left_is_tried_once_more(desk):
    job = desk.sbatch("--hold", "--nodelist=node1", JOBS / "compare.sh", desk.experiment())
    # What the step 0 of a former start of this job leaves on a disk: a socket that nobody serves.
    spool = desk.slurm.settings.path / "spool" / "node1" / f"stepd.slurm.pmix.{job}.0"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(spool))
    desk.slurm.run("scontrol", "release", job)
    desk.complete(job)
    assert "the run did not begin: srun ended with " in desk.log(job)
    assert verdicts(desk.records("pffbench-results")) == {
        f"compare-1n-{job}": ("finished", True)
    }  # fmt: skip


@pytest.mark.full
def test_a_step_that_never_begins_is_not_tried_a_third_time(desk):
    job = die_at_the_start(desk, deaths=5)
    facts = desk.slurm.wait(job)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "137:0")
    log = desk.log(job)
    assert log.count(ONCE_MORE) == 1
    assert f"the run did not come to its end; go on by hand with: scontrol requeue {job}" in log
    assert len(list((desk.directory / "python").glob("died-*"))) == 2 * 2


def test_a_wrong_experiment_ends_the_job_with_status_2(desk):
    (desk.directory / "wrong.yaml").write_text("name: wrong\ncolour: red\ncases: []\n")
    job = desk.sbatch(JOBS / "compare.sh", "wrong.yaml")
    facts = desk.slurm.wait(job)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "2:0")
    assert "colour" in desk.log(job)
