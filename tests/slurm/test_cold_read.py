"""Two jobs on different nodes: one writes, the other one reads what no node of its own holds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from desk import Desk, verdicts

pytestmark = [pytest.mark.slurm, pytest.mark.full, pytest.mark.timeout(900)]


def place_of(record):
    return Path(record["scratch"]).parent


def test_both_jobs_fill_one_directory_from_different_nodes(slurm, shared):
    desk = Desk(slurm, shared)
    writer, reader = desk.submit(
        "--nodes", "2", "--tasks-per-node", "2", "cold-read", desk.experiment(repetitions=2)
    )
    desk.complete(reader, timeout=240)
    assert f"job {reader} will read, not on node1,node2" in desk.log(writer)
    records = desk.records("out")
    name = f"cold-read-2n-{writer}"
    assert verdicts(records) == {name: ("finished", True)}
    record = records[name]
    assert set(record["topology"]["hosts"]) == {"node1", "node2"} == set(record["wrote_on"])
    assert set(record["reading"]["topology"]["hosts"]) == {"node3", "node4"}
    assert record["reading"]["provenance"]["slurm"]["job_id"] == reader
    assert list((desk.directory / "out" / name / "plots").glob("*.png"))
    assert not place_of(record).exists(), "the jobs' own directory is gone again"


def test_reads_from_other_nodes_of_a_distributed_file_system_are_cold(moosefs_cluster):
    mount = moosefs_cluster.settings.moosefs_mount
    directory = Path(tempfile.mkdtemp(dir=moosefs_cluster.path / "shared"))
    desk = Desk(moosefs_cluster, directory)
    _, reader = desk.submit(
        "--nodes", "2", "--tasks-per-node", "1", "cold-read", desk.experiment(),
        PFFBENCH_SCRATCH=str(mount),
    )  # fmt: skip
    desk.complete(reader, timeout=240)
    (run,) = (directory / "out").glob("cold-read-*")
    (record,) = desk.records("out").values()
    assert (record["status"], record["valid"]) == ("finished", True)
    lines = (run / "samples.csv").read_text().splitlines()
    header = lines[0].split(",")
    rows = [dict(zip(header, line.split(","), strict=True)) for line in lines[1:]]
    reads = [row for row in rows if row["phase"] == "read"]
    assert reads
    assert {(row["cache"], float(row["resident"])) for row in reads} == {("separate", 0.0)}


def test_a_writer_that_is_warned_goes_on_and_then_the_reader_runs(slurm, shared):
    desk = Desk(slurm, shared)
    writer, reader = desk.submit(
        "--tasks-per-node", "1", "cold-read", desk.experiment(repetitions=30)
    )
    run = f"out/cold-read-1n-{writer}"
    desk.wait_for_repetitions(run, last="close")
    slurm.run("scancel", "--signal=USR1", writer)
    desk.complete(reader, timeout=300)
    assert "the job is queued again (restart 1 of at most 3)" in desk.log(writer)
    assert verdicts(desk.records("out")) == {Path(run).name: ("finished", True)}


def test_without_a_writer_nothing_is_read(slurm, shared):
    desk = Desk(slurm, shared)
    writer, reader = desk.submit("cold-read", desk.experiment(), PFFBENCH_STRIPES="2")
    assert slurm.wait(writer, timeout=60)["JobState"] == "FAILED"  # there is no lfs here
    assert slurm.wait(reader, timeout=60)["JobState"] == "CANCELLED"
    assert not desk.records("out")
