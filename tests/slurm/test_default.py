"""The default experiment, as `srun -N 4 -n 64 python -m pffbench` runs it, and on MooseFS.

64 ranks on a machine of two cores wait for each other most of the time, so the whole of it is
marked `slow`: `make test ARGS="-m slow"`. `make test-all` has smaller arrays.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from desk import read_elsewhere, watching
from launch import check_results, environment, write_experiment
from sharing import word_of

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]

HOUR = 3600
#: As outside of a job, whose whole time the run would take.
TWO_MINUTES = "time_budget=120 s"
#: Nodes of one's own, as big centres lend them: srun then spreads the ranks evenly by itself.
FOUR_BY_SIXTEEN = ["srun", "-p", "batch", "-t", "120", "-N", "4", "-n", "64"]
FOUR_BY_TWO = ["srun", "-p", "batch", "-t", "120", "-N", "4", "-n", "8"]


def pffbench(cluster, launch, *arguments, cwd, timeout, **variables):
    """Run the program to its end, which must be a good one; return what run.json says."""
    ours = {k: v for k, v in environment().items() if k.startswith(("OMP_", "OPENBLAS"))}
    ours |= {"PYTHONPATH": environment()["PYTHONPATH"]} | variables
    command = [*launch, sys.executable, "-m", "pffbench", *arguments]
    done = cluster.run(*command, cwd=cwd, timeout=timeout, check=False, **ours)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = Path(cwd).glob("pffbench-results/*/run.json")
    check_results(file.parent)
    return json.loads(file.read_text())


def assert_default_is_valid(record, ranks_per_node):
    assert (record["name"], record["status"], record["valid"]) == ("default", "finished", True)
    topology = record["topology"]
    assert topology["ranks_per_node"] == ranks_per_node
    assert Counter(topology["hosts"]) == {f"node{i + 1}": n for i, n in enumerate(ranks_per_node)}
    formats = {entry["parameters"]["backend"] for entry in record["cases"].values()}
    assert {"hdf5", "netcdf4", "zarr"} <= formats
    assert not [case for case, entry in record["cases"].items() if entry["failure"]]


@pytest.mark.slow
@pytest.mark.timeout(HOUR)
def test_the_default_experiment_on_64_ranks_is_valid(slurm, shared):
    told = ("run", "--set", TWO_MINUTES)
    record = pffbench(slurm, FOUR_BY_SIXTEEN, *told, cwd=shared, timeout=HOUR - 60)
    assert_default_is_valid(record, [16, 16, 16, 16])
    assert not (shared / "pffbench-scratch").exists()


@pytest.mark.slow
@pytest.mark.timeout(HOUR)
def test_the_default_experiment_on_a_distributed_file_system_is_valid(moosefs_cluster):
    assert_valid_on_moosefs(moosefs_cluster, "whole", TWO_MINUTES, timeout=HOUR - 60)


@pytest.mark.slow
def test_the_default_with_small_arrays_on_a_distributed_file_system_is_valid(moosefs_cluster):
    small = ("shape_per_rank=[4, 64, 64]", "chunks=[2, 64, 64]", "repetitions=1", "warmup=0")
    assert_valid_on_moosefs(moosefs_cluster, "small", *small, timeout=900)


def assert_valid_on_moosefs(cluster, name, *settings, timeout):
    (place := cluster.path / "shared" / name).mkdir()
    scratch = cluster.settings.moosefs_mount / name
    cluster.run("mkdir", scratch)
    changes = [word for setting in settings for word in ("--set", setting)]
    record = pffbench(
        cluster, FOUR_BY_TWO, "run", *changes, "--scratch", scratch, cwd=place, timeout=timeout
    )
    assert_default_is_valid(record, [2, 2, 2, 2])
    assert record["provenance"]["filesystem"]["type"] == "moosefs"
    assert cluster.run("ls", scratch, on="node4").stdout == "", "everything is removed again"


@pytest.mark.full
def test_each_of_four_nodes_keeps_the_files_of_its_ranks(slurm, shared):
    for name in slurm.settings.names:
        (shared / f"local-{name}").mkdir()
    changes = ("node_local=true", "shape_per_rank=[4, 64, 64]", "chunks=[2, 64, 64]",
               "repetitions=1", "warmup=0")  # fmt: skip
    told = [word for change in changes for word in ("--set", change)]
    scratch = shared / "local-$SLURMD_NODENAME"
    record = pffbench(
        slurm, FOUR_BY_TWO, "run", *told, "--scratch", scratch, cwd=shared, timeout=250
    )
    assert record["valid"] is True
    paths = {host["scratch"]["path"] for host in record["provenance"]["hosts"]}
    assert len(paths) == 4
    layouts = {word_of(entry["parameters"]) for entry in record["cases"].values()}
    assert layouts == {"per_rank"}
    assert not list(shared.glob("local-*/*"))


@pytest.mark.slow
def test_64_ranks_read_what_another_node_wrote(slurm, shared):
    (scratch := shared / "scratch").mkdir()
    case = {"backend": "posix", "files": "per_rank", "cache": "shifted"}
    file = write_experiment(
        shared, common={"workload": "hyperslab", "shape_per_rank": [4, 16, 16]}, cases=[case]
    )
    record = pffbench(
        slurm, FOUR_BY_SIXTEEN, "run", file, "--scratch", scratch, cwd=shared, timeout=900,
        **watching(shared, scratch),
    )  # fmt: skip
    assert record["valid"] is True
    assert Counter(record["topology"]["nodes"]) == {0: 16, 1: 16, 2: 16, 3: 16}
    elsewhere = read_elsewhere(shared)
    assert len(elsewhere) == 64
    assert Counter(host for hosts in elsewhere.values() for host in hosts) == dict.fromkeys(
        slurm.settings.names, 16
    )
