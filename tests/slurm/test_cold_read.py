"""`jobs/cold-read.sh`: half of the nodes write, the others read what they do not have in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from desk import JOBS, Desk, verdicts
from launch import lines_of

pytestmark = [pytest.mark.slurm, pytest.mark.full, pytest.mark.timeout(900)]

COLD_READ = JOBS / "cold-read.sh"


def test_half_of_the_nodes_write_and_the_others_read(slurm, shared):
    desk = Desk(slurm, shared)
    job = desk.sbatch("-N4", "--ntasks-per-node=2", COLD_READ, desk.experiment(repetitions=2))
    desk.complete(job)
    records = desk.records("pffbench-results")
    name = f"cold-read-{job}"
    assert verdicts(records) == {name: ("finished", True)}
    record = records[name]
    assert set(record["topology"]["hosts"]) == {"node1", "node2"} == set(record["wrote_on"])
    assert set(record["reading"]["topology"]["hosts"]) == {"node3", "node4"}
    assert (desk.directory / "pffbench-results" / name / "report.html").exists()
    assert not (desk.directory / "pffbench-scratch").exists()


def test_reads_from_other_nodes_of_a_distributed_file_system_are_cold(moosefs_cluster):
    mount = moosefs_cluster.settings.moosefs_mount
    desk = Desk(moosefs_cluster, Path(tempfile.mkdtemp(dir=moosefs_cluster.path / "shared")))
    job = desk.sbatch(
        "-N4", "--ntasks-per-node=1", COLD_READ, desk.experiment(), PFFBENCH_SCRATCH=str(mount)
    )
    desk.complete(job)
    (record,) = desk.records("pffbench-results").values()
    assert (record["status"], record["valid"]) == ("finished", True)
    run = desk.directory / "pffbench-results" / f"cold-read-{job}"
    reads = [one["read"] for one in lines_of(run) if one["part"] == "read"]
    assert reads
    assert {(read["cache"], read["resident"]) for read in reads} == {("separate", 0.0)}


@pytest.mark.parametrize("last", ["close", "remove"])
def test_a_warned_job_goes_on_with_the_part_that_it_was_in(slurm, shared, last):
    """The last phase of a repetition that is written is `close`, of one that is read `remove`."""
    desk = Desk(slurm, shared)
    job = desk.sbatch("-N2", "--ntasks-per-node=1", COLD_READ, desk.experiment(repetitions=30))
    run = f"pffbench-results/cold-read-{job}"
    desk.wait_for_repetitions(run, last=last)
    slurm.run("scancel", "--signal=USR1", job)
    assert desk.complete(job)["Restarts"] == "1"
    assert "interrupted; queueing the job again" in desk.log(job)
    assert verdicts(desk.records("pffbench-results")) == {Path(run).name: ("finished", True)}


def test_what_was_not_written_is_not_read(slurm, shared):
    desk = Desk(slurm, shared)
    job = desk.sbatch("-N2", COLD_READ, desk.experiment(), "--set", "colour=red")
    facts = slurm.wait(job, timeout=60)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "2:0")
    assert desk.log(job).count("pffbench: ") == 1
