"""pffbench on the cluster: started by srun, on four nodes that share nothing but a directory."""

from __future__ import annotations

import json
import re
import sys

import pytest

from desk import read_elsewhere, watching
from launch import environment, lines_of, write_experiment

pytestmark = [pytest.mark.slurm, pytest.mark.full]

FOUR_BY_FOUR = ["srun", "--mpi=pmix", "-N4", "--ntasks-per-node=4"]
#: A shared file of each library, read by another rank than the one that wrote it.
SMALL = {
    "common": {"workload": "hyperslab", "shape_per_rank": [4, 16, 16]},
    "cases": [{"backend": ["hdf5", "netcdf4", "zarr"], "files": "one", "cache": "shifted"}],
    "repetitions": 2,
}


def pffbench(cluster, launch, *arguments, timeout=300, **how):
    """Run the program under a launcher; its status, output and errors."""
    wanted = environment()
    ours = {k: v for k, v in wanted.items() if k.startswith(("OMP_", "OPENBLAS", "PYTHONPATH"))}
    command = [*launch, sys.executable, "-m", "pffbench", *arguments]
    return cluster.run(*command, timeout=timeout, check=False, **(ours | how))


def run_small(cluster, shared, launch, *arguments, scratch=None, cases=None, **variables):
    """Run a small experiment with its results in the shared directory."""
    if scratch is None:
        (scratch := shared / "scratch").mkdir()
    file = write_experiment(shared, **(SMALL | ({"cases": cases} if cases else {})))
    told = ["--out", shared / "out", "--scratch", scratch, *arguments]
    return pffbench(cluster, launch, "run", file, *told, **variables)


def test_a_run_on_four_nodes_is_valid_and_records_them(slurm, shared):
    done = run_small(slurm, shared, FOUR_BY_FOUR)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VALID: every byte verified, " in done.stdout
    record = json.loads((shared / "out" / "run.json").read_text())
    assert record["valid"] is True
    topology = record["topology"]
    assert topology["hosts"] == [node for node in slurm.settings.names for _ in range(4)]
    assert topology["nodes"] == [number for number in range(4) for _ in range(4)]
    source = topology["shifted_reads_from"]
    assert sorted(source) == list(range(16)), "each part is read once"
    assert all(topology["nodes"][a] != topology["nodes"][b] for a, b in enumerate(source))
    job = record["provenance"]["slurm"]
    assert (job["step_num_tasks"], job["step_tasks_per_node"]) == ("16", "4(x4)")
    assert job["scontrol"]["NumNodes"] == "4"
    assert job["scontrol"]["TimeLimit"]
    who = re.compile(r"account|user|_uid|group", re.IGNORECASE)
    assert not [name for name in (*job, *job["scontrol"]) if who.search(name)]
    environment = record["provenance"]["environment"]
    assert environment["SLURM_JOB_USER"] == environment["SLURM_JOB_UID"] == "<hidden>"
    assert not list((shared / "scratch").iterdir()), "the scratch directory is empty again"


def test_the_ranks_of_each_node_share_a_file(slurm, shared):
    """One file and two files a node, read where they were written and by the next node."""
    grouped = {"backend": ["hdf5", "zarr"], "cache": ["warm", "shifted"],
               "files": [{"per_node": 1}, {"per_node": 2}],
               "arrays": ["shared", "per_rank"]}  # fmt: skip
    done = run_small(slurm, shared, FOUR_BY_FOUR, cases=[grouped])
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((shared / "out" / "run.json").read_text())
    assert record["valid"] is True
    assert len(record["cases"]) == 16
    for entry in record["cases"].values():
        if entry["parameters"]["backend"] == "hdf5":
            assert entry["disk"]["files"] == 4 * entry["parameters"]["files"]["per_node"]


def test_environments_take_turns_in_one_allocation(slurm, shared):
    pytest.importorskip("pffbench_environments")
    environments = [{"name": name, "python": sys.executable} for name in ("one", "other")]
    told = SMALL | {"environments": environments, "launcher": "srun --mpi=pmix"}
    file = write_experiment(shared, **told)
    (shared / "scratch").mkdir()
    launch = ["salloc", "-N2", "--ntasks-per-node=2"]
    where = ["--out", shared / "out", "--scratch", shared / "scratch"]
    done = pffbench(slurm, launch, "run", file, "--trust", *where)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VALID: every byte verified, " in done.stdout
    record = json.loads((shared / "out" / "run.json").read_text())
    assert len(record["topology"]["hosts"]) == 4
    assert len(record["cases"]) == 2 * 3
    assert not list((shared / "scratch").iterdir())


def test_shifted_reads_are_made_on_another_node_than_the_one_that_wrote(slurm, shared):
    case = {"backend": "posix", "files": "per_rank", "cache": "shifted"}
    watched = watching(shared, shared / "scratch")
    done = run_small(slurm, shared, FOUR_BY_FOUR, cases=[case], **watched)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(read_elsewhere(shared)) >= 16


def test_a_scratch_directory_of_each_node_is_refused(slurm, shared):
    done = run_small(slurm, shared, FOUR_BY_FOUR, scratch="/tmp")
    assert done.returncode == 2, done.stdout + done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("pffbench:")]
    assert len(told) == 1
    assert "node2, node3, node4" in told[0]
    assert "choose one that all nodes share" in told[0]
    assert not (shared / "out").exists()
    for node in slurm.settings.names:
        assert "pffbench" not in slurm.run("ls", "/tmp", on=node).stdout


def refused_at_once(slurm, shared, launch):
    """Run where processes cannot find each other: one of them says so, and nobody waits."""
    done = run_small(slurm, shared, launch)
    assert done.returncode == 2, done.stdout + done.stderr
    # Open MPI 5 says for each process what it makes of it.
    others = ("srun:", "No PMIx server was reachable", "If srun is being used to launch")
    said = done.stderr.splitlines()
    assert [line for line in said if not line.startswith(others)] == [
        line for line in said if line.startswith("pffbench:")
    ], "nothing but our own sentence"
    assert done.stderr.count("pffbench:") == 1
    assert "8 processes" in done.stderr
    assert "--mpi=pmix" in done.stderr
    assert not (shared / "out").exists()
    assert not list((shared / "scratch").iterdir())
    return done.stderr


def test_tasks_that_srun_tells_nothing_of_each_other_are_refused_before_mpi_starts(slurm, shared):
    told = refused_at_once(slurm, shared, ["srun", "--mpi=none", "-N4", "-n8"])
    assert "Open MPI was not told" in told


#: A contact that leads nowhere, and no Slurm that MPI could see: every process takes itself for the
#: whole job, as with the wrong kind of contact.
ALONE = ["env", "-u", "SLURM_NODELIST", "PMI_FD=0"]


def test_processes_that_do_not_know_of_each_other_are_refused_at_once(slurm, shared):
    told = refused_at_once(slurm, shared, ["srun", "--mpi=none", "-N4", "-n8", *ALONE])
    assert "MPI knows of 1" in told


def test_the_doctor_tells_why_tasks_do_not_find_each_other(slurm, shared):
    launch = ["srun", "--mpi=none", "-N4", "-n8"]
    done = pffbench(slurm, launch, "doctor", "--scratch", shared)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("the launcher started 8 processes") == 1
    assert "srun --mpi=pmix" in " ".join(done.stdout.split())
    assert "Traceback" not in done.stderr


def test_the_doctor_tells_that_other_nodes_see_locks(slurm, shared):
    launch = ["srun", "--mpi=pmix", "-N2", "--ntasks-per-node=2"]
    told = " ".join(pffbench(slurm, launch, "doctor", "--scratch", shared).stdout.split())
    for kind in ("flock", "fcntl"):
        assert f"locks by {kind} on a file: seen by other nodes" in told


def test_a_run_on_a_distributed_file_system_is_valid_and_names_it(moosefs_cluster):
    mount = moosefs_cluster.settings.moosefs_mount
    moosefs_cluster.run("touch", mount / "written", on="node1")
    assert moosefs_cluster.run("ls", mount, on="node4").stdout == "written\n"
    (shared := moosefs_cluster.path / "shared" / "moosefs").mkdir()
    done = run_small(moosefs_cluster, shared, FOUR_BY_FOUR, scratch=mount)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((shared / "out" / "run.json").read_text())
    assert record["valid"] is True
    filesystem = record["provenance"]["filesystem"]
    assert filesystem["type"] == "moosefs"
    assert filesystem["mount_point"] == str(mount)
    assert filesystem["device"].startswith("mfs#")


def test_at_the_start_of_a_job_one_rank_of_each_node_reads_for_its_node(slurm, shared):
    (scratch := shared / "scratch").mkdir()
    file = write_experiment(shared, counters=True, cases=[
        {"workload": "startup", "backend": "posix", "shape": [32], "datasets": 8,
         "strategy": ["node_leader_bcast", "node_leader_shared"]}
    ])  # fmt: skip
    told = ["--out", shared / "out", "--scratch", scratch]
    done = pffbench(slurm, FOUR_BY_FOUR, "run", file, *told, **watching(shared, scratch))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((shared / "out" / "run.json").read_text())["valid"] is True
    counts = [count for one in lines_of(shared / "out") for count in one["counts"]]
    held = [count for count in counts if count["name"] == "descriptors"]
    assert [(count["total"], count["largest"]) for count in held] == [(4, 1)] * 2
    readers = {
        (line.split()[0], log.name)
        for log in (shared / "seen").iterdir()
        for line in log.read_text().splitlines()
        if line.endswith(".raw") and line.split()[1] == "r"
    }
    assert readers == {(f"node{n + 1}", str(4 * n)) for n in range(4)}
