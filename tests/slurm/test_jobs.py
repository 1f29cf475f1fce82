"""`jobs/run.sh`, submitted for real, to its end."""

from __future__ import annotations

import csv
import json
import socket
import time

import pytest

from desk import JOBS, Desk, repetitions, verdicts
from launch import REPOSITORY, pffbench_cli, write_experiment

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

RUN = JOBS / "run.sh"


@pytest.fixture
def desk(slurm, shared):
    """A directory to submit from."""
    return Desk(slurm, shared)


def test_jobs_of_one_name_run_one_after_another_and_are_a_series(desk):
    experiment = desk.experiment()
    jobs = [
        desk.sbatch(f"-N{nodes}", "--ntasks-per-node=2", "--job-name=weak", RUN, experiment)
        for nodes in (1, 2)
    ]
    for job in jobs:
        desk.complete(job)
    records = desk.records("pffbench-results")
    names = [f"weak-{job}" for job in jobs]
    assert verdicts(records) == dict.fromkeys(names, ("finished", True))
    ordered = [records[name] for name in names]
    assert ordered[0]["finished"] <= ordered[1]["started"]
    assert [record["topology"]["ranks_per_node"] for record in ordered] == [[2], [2, 2]]
    runs = [desk.directory / "pffbench-results" / name for name in names]
    assert all((run / "report.html").exists() for run in runs)
    # Nothing of the jobs is left on the file system under test.
    assert not (desk.directory / "pffbench-scratch").exists()
    done = pffbench_cli("scaling", *runs, "--out", desk.directory / "figures")
    assert done.status == 0, done.said
    with (desk.directory / "figures" / "scaling.csv").open() as lines:
        points = {(row["backend"], row["nodes"]) for row in csv.DictReader(lines)}
    assert points == {(backend, n) for backend in ("hdf5", "npy") for n in ("1", "2")}


@pytest.mark.full
def test_a_node_runs_from_its_own_copy_of_the_environment(desk):
    """The recipe of the documents takes the place of the lines for the environment."""
    recipe = (REPOSITORY / "docs" / "slurm.md").read_text().partition("## Staging")[2]
    recipe = recipe.partition("```bash\n")[2].partition("```")[0]
    script = RUN.read_text()
    line = next(line for line in script.splitlines() if ". .build/env.sh" in line)
    (desk.directory / "staged.sh").write_text(script.replace(line, recipe))
    (desk.directory / ".build").symlink_to(REPOSITORY / ".build")
    job = desk.sbatch("-N2", "--ntasks-per-node=2", "staged.sh", desk.experiment())
    desk.complete(job)
    (record,) = desk.records("pffbench-results").values()
    assert (record["status"], record["valid"]) == ("finished", True)
    assert f"/tmp/env-{job}/" in json.dumps(record["provenance"]["software"])


@pytest.mark.full
def test_a_cancelled_job_is_not_queued_again(desk):
    job = desk.sbatch(RUN, desk.experiment(repetitions=200))
    run = f"pffbench-results/pffbench-{job}"
    desk.wait_for_repetitions(run)
    desk.slurm.run("scancel", job)
    facts = desk.slurm.wait(job)
    assert (facts["JobState"], facts["Restarts"]) == ("CANCELLED", "0")
    assert repetitions(desk.directory / run)


@pytest.mark.full
def test_a_warned_job_that_slurm_does_not_queue_again_is_resumed_by_another_one(desk):
    experiment = desk.experiment(repetitions=30)
    job = desk.sbatch("--no-requeue", RUN, experiment)
    run = f"pffbench-results/pffbench-{job}"
    desk.wait_for_repetitions(run)
    desk.slurm.run("scancel", "--signal=USR1", job)
    facts = desk.slurm.wait(job)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "3:0")
    log = desk.log(job)
    assert "the job is not queued again: scontrol failed: " in log
    assert f"to resume, submit the same job again with PFFBENCH_OUT={run}" in log
    desk.complete(desk.sbatch(RUN, experiment, PFFBENCH_OUT=run))
    assert verdicts(desk.records("pffbench-results")) == {f"pffbench-{job}": ("finished", True)}


@pytest.fixture(params=[0, 30])
def grace(slurm, request):
    """Seconds in which a preempted job may save."""
    slurm.run("scontrol", "update", "PartitionName=main", f"GraceTime={request.param}")
    yield request.param
    slurm.run("scontrol", "update", "PartitionName=main", "GraceTime=0")


@pytest.mark.full
def test_a_preempted_job_goes_on_when_slurm_starts_it_again(desk, grace):
    job = desk.sbatch("-w", "node1", RUN, desk.experiment(repetitions=30))
    run = f"pffbench-results/pffbench-{job}"
    desk.wait_for_repetitions(run)
    urgent = desk.sbatch("-w", "node1", "--partition=urgent", "--exclusive", "--wrap", "sleep 1")
    desk.slurm.wait(job, {"PENDING"})
    said = "interrupted; queueing the job again" if grace else "DUE TO PREEMPTION"
    assert said in desk.log(job)
    desk.slurm.wait(urgent, {"COMPLETED"})
    assert desk.complete(job)["Restarts"] == "1"
    assert verdicts(desk.records("pffbench-results")) == {f"pffbench-{job}": ("finished", True)}
    done = repetitions(desk.directory / run)
    assert len(done) == len(set(done)) == 2 * 30


@pytest.mark.full
def test_a_node_whose_disk_kept_the_socket_of_a_lost_step_is_no_hindrance(desk):
    job = desk.sbatch("-w", "node1", RUN, desk.experiment(repetitions=30))
    desk.wait_for_repetitions(f"pffbench-results/pffbench-{job}")
    desk.slurm.run("scontrol", "requeuehold", job)
    # What the step 0 of the first start would have left if the node had lost its power: a socket
    # that nobody serves.
    spool = desk.slurm.settings.path / "spool" / "node1" / f"stepd.slurm.pmix.{job}.0"
    end = time.monotonic() + 60
    while spool.exists():
        assert time.monotonic() < end
        time.sleep(0.1)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(spool))
    desk.slurm.run("scontrol", "release", job)
    desk.complete(job)
    assert verdicts(desk.records("pffbench-results")) == {f"pffbench-{job}": ("finished", True)}


def test_a_wrong_experiment_ends_the_job_with_status_2(desk):
    (desk.directory / "wrong.yaml").write_text("name: wrong\ncolour: red\ncases: []\n")
    job = desk.sbatch(RUN, "wrong.yaml")
    facts = desk.slurm.wait(job)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "2:0")
    assert "colour" in desk.log(job)


@pytest.mark.full
def test_a_run_that_hangs_ends_the_job_and_tells_where_every_rank_is(desk):
    delays = {"backend": "null", "null": {"delays": {"write": 3600}}}
    write_experiment(
        desk.directory, common={"workload": "hyperslab", "shape_per_rank": [4, 8]}, cases=[delays]
    )
    job = desk.sbatch("--ntasks-per-node=2", RUN, "experiment.yaml", "--set", "hang_timeout=3 s")
    facts = desk.slurm.wait(job, timeout=120)
    assert facts["JobState"] == "FAILED"
    log = desk.log(job)
    assert "so the job is ended: null.hyperslab" in log
    assert "ranks 0-1" in log, log
    assert "the run did not come to its end; to resume, submit the same job again with" in log
