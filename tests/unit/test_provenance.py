"""What is recorded about a run, and that recording it costs little and never fails."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import pffbench
from pffbench.proc import number_ranges
from pffbench.provenance.binding import (
    cpu_quota,
    job_clock,
    memory_limit,
    rank_facts,
    shared_quota,
    tasks_left,
)
from pffbench.provenance.facts import environment_facts
from pffbench.provenance.node import host_facts
from pffbench.provenance.software import software_facts, spack_hash


def in_new_process(code, **environ):
    """Run code in a process of its own, which has imported nothing; return what it prints."""
    source = str(Path(pffbench.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": source, **environ},
    )
    return json.loads(done.stdout)


# Ranks and hosts


def test_rank_facts_are_those_of_this_process():
    facts = rank_facts()
    assert facts["host"] == socket.gethostname()
    assert facts["pid"] == os.getpid()
    assert facts["cpus"] == len(os.sched_getaffinity(0))
    assert facts["affinity"] == number_ranges(os.sched_getaffinity(0))


def test_binding_shows(tmp_path):
    core = max(os.sched_getaffinity(0))
    facts = in_new_process(
        "import json, os; from pffbench.provenance.binding import rank_facts;"
        f"os.sched_setaffinity(0, [{core}]); print(json.dumps(rank_facts()))"
    )
    assert (facts["affinity"], facts["cpus"]) == (str(core), 1)


def test_facts_can_be_written():
    everything = [rank_facts(), host_facts(), software_facts(["h5py"]), environment_facts({})]
    assert json.loads(json.dumps(everything)) == everything


def test_facts_of_every_rank_start_no_process(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    assert rank_facts()["pid"] == os.getpid()


def test_host_facts():
    facts = host_facts()
    assert facts["threads"] >= 1
    assert 0 < facts["memory_available_bytes"] <= facts["memory_bytes"]
    assert len(facts["load_average"]) == 3
    assert facts["kernel"] == os.uname().release
    assert facts["vm"]["dirty_ratio"] is None or 0 <= facts["vm"]["dirty_ratio"] <= 100


@pytest.mark.parametrize(
    ("numbers", "expected"), [(set(), ""), ({5}, "5"), ({0, 1, 2, 3, 8, 10, 11}, "0-3,8,10-11")]
)
def test_ranges(numbers, expected):
    assert number_ranges(numbers) == expected


def test_the_tightest_limit_above_a_process_counts_version_2(tmp_path):
    step = tmp_path / "system.slice" / "job_7" / "step_0"
    step.mkdir(parents=True)
    (step / "memory.max").write_text("max\n")
    (step.parent / "memory.max").write_text("1073741824\n")
    (step.parent.parent / "memory.max").write_text("4294967296\n")
    assert memory_limit("0::/system.slice/job_7/step_0\n", tmp_path) == 2**30


def test_the_tightest_limit_above_a_process_counts_version_1(tmp_path):
    job = tmp_path / "memory" / "slurm" / "job_7"
    job.mkdir(parents=True)
    (job / "memory.limit_in_bytes").write_text("2147483648\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    text = "4:memory:/slurm/job_7\n2:cpu,cpuacct:/\n1:name=systemd:/a:b\n0::/\n"
    assert memory_limit(text, tmp_path) == 2**31


def test_no_limit(tmp_path):
    assert memory_limit("0::/\n", tmp_path) is None
    assert memory_limit("", tmp_path) is None
    assert cpu_quota("0::/\n1:cpu:/\n", tmp_path) is None
    assert tasks_left("0::/\n1:pids:/\n", tmp_path) is None


VERSION_1 = "4:memory:/a\n3:pids:/docker/a/b\n2:cpu,cpuacct:/docker/a/b\n0::/\n"
VERSION_2 = "0::/docker/a/b\n"


def limited(root, group, **files):
    """Write the files of a control group, in whose names a dot is an underscore."""
    (root / group).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / group / name.replace("_", ".", 1)).write_text(f"{text}\n")


def test_the_quota_of_processors_is_read_in_both_versions(tmp_path):
    limited(tmp_path, "docker/a/b", cpu_max="max 100000")
    limited(tmp_path, "docker/a", cpu_max="150000 100000")
    limited(tmp_path, "cpu/docker/a/b", cpu_cfs_quota_us=-1, cpu_cfs_period_us=100000)
    limited(tmp_path, "cpu/docker/a", cpu_cfs_quota_us=50000, cpu_cfs_period_us=100000)
    assert cpu_quota(VERSION_2, tmp_path) == 1.5
    assert cpu_quota(VERSION_1, tmp_path) == 0.5


def test_a_container_sees_its_own_control_group_as_the_root(tmp_path):
    limited(tmp_path, "cpu", cpu_cfs_quota_us=250000, cpu_cfs_period_us=100000)
    limited(tmp_path, "pids", pids_max=100, pids_current=30)
    assert cpu_quota(VERSION_1, tmp_path) == 2.5
    assert tasks_left(VERSION_1, tmp_path) == 70


def test_ranks_with_less_than_a_processor_each_share_a_clock():
    alone = {"affinity": "0-3", "cpu_quota": None}
    assert job_clock([0, 0], [alone] * 2) == "own"
    assert job_clock([0, 0], [alone | {"cpu_quota": 0.5}] * 2) == "synced"


def test_a_quota_that_ranks_share_is_told():
    assert shared_quota([{"cpu_quota": None}] * 4) is None
    assert shared_quota([{"cpu_quota": 2.0}] * 2) is None
    assert str(shared_quota([{"cpu_quota": 1.5}] * 2)).startswith("2 ranks share 1.5 processors")


def test_the_processes_that_may_still_start_are_those_of_the_tightest_group(tmp_path):
    limited(tmp_path, "docker/a/b", pids_max="max", pids_current=3)
    limited(tmp_path, "docker/a", pids_max=20, pids_current=12)
    limited(tmp_path, "docker", pids_max=10, pids_current=12)
    assert tasks_left(VERSION_2, tmp_path) == 0
    limited(tmp_path, "docker", pids_max=50, pids_current=12)
    assert tasks_left(VERSION_2, tmp_path) == 8


# Software


def test_no_library_is_imported_to_be_described():
    facts = in_new_process(
        "import json, sys; from pffbench.provenance.software import software_facts;"
        "facts = software_facts(['h5py', 'zarr', 'netCDF4', 'mpi4py', 'no_such_thing']);"
        "names = ['h5py', 'zarr', 'netCDF4', 'mpi4py', 'numpy'];"
        "print(json.dumps([facts, [name for name in names if name in sys.modules]]))"
    )
    described, imported = facts
    assert imported == []
    assert described["libraries"]["no_such_thing"] == {"version": None, "imported": False}
    assert described["libraries"]["numpy"]["version"]
    assert not described["libraries"]["numpy"]["imported"]


def test_an_imported_hdf5_is_described():
    pytest.importorskip("h5py")
    facts = in_new_process(
        "import json, h5py; from pffbench.provenance.software import software_facts;"
        "print(json.dumps(software_facts(['h5py'])))"
    )
    h5py = facts["libraries"]["h5py"]
    assert h5py["imported"]
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", h5py["hdf5"])
    assert isinstance(h5py["mpi"], bool)
    assert len(facts["loaded"]["libhdf5"]) == 1


def test_zarr_and_netcdf4_are_described():
    pytest.importorskip("zarr")
    pytest.importorskip("netCDF4")
    facts = in_new_process(
        "import json, zarr, numcodecs, netCDF4; from pffbench.provenance.software import *;"
        "print(json.dumps(software_facts(['zarr', 'numcodecs', 'netCDF4'])))"
    )["libraries"]
    assert facts["zarr"]["concurrency"] >= 1
    assert facts["netCDF4"]["netcdf_c"]
    assert facts["netCDF4"]["parallel4"] in (True, False)
    assert not any("error" in library for library in facts.values())


def test_the_spack_hash_is_found_through_a_view(tmp_path):
    digest = "abcdefghijklmnopqrstuvwxyz234567"
    prefix = tmp_path / f"py-h5py-3.12.1-{digest}"
    module = prefix / "lib" / "h5py" / "__init__.py"
    module.parent.mkdir(parents=True)
    module.touch()
    view = tmp_path / "view.py"
    view.symlink_to(module)
    assert spack_hash(view) is None
    (prefix / ".spack").mkdir()
    assert spack_hash(view) == digest


# MPI-IO


MPI_IO = """
import json
from mpi4py import MPI
from pffbench.mpi.open_file import hints_in_force
from pffbench.provenance.mpiio import mpi_io_facts
facts = mpi_io_facts(MPI.COMM_SELF, {directory!r})
info = MPI.Info.Create()
info.Set("cb_nodes", "1")
mode = MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE
file = MPI.File.Open(MPI.COMM_SELF, {file!r}, mode, info)
facts["in force"] = hints_in_force(file)
file.Close()
print(json.dumps(facts))
"""


@pytest.mark.parametrize(
    ("requested", "expected"), [("", "ompio|romio.*"), ("ompio", "ompio"), ("^ompio", "romio.*")]
)
def test_the_mpi_io_component_is_the_one_that_serves_the_file(requested, expected, tmp_path):
    pytest.importorskip("mpi4py")
    code = MPI_IO.format(directory=str(tmp_path), file=str(tmp_path / "file"))
    facts = in_new_process(code, OMPI_MCA_io=requested)
    if facts["library"] != "Open MPI":
        expected = "romio"
    assert re.fullmatch(expected, facts["component"])
    assert facts["found_by"] in ("open file", "library")
    if facts["component"] == "ompio":  # which reports none, and repeats what it was given
        assert facts["in force"] is None
    else:
        assert facts["in force"]["cb_nodes"] == "1"
    assert list(tmp_path.iterdir()) == []


def test_a_probe_that_cannot_be_opened_is_recorded(tmp_path):
    pytest.importorskip("mpi4py")
    code = MPI_IO.format(directory=str(tmp_path / "missing"), file=str(tmp_path / "file"))
    facts = in_new_process(code)
    assert "could not be opened" in facts["error"]


# Environment and Slurm


def test_only_variables_that_matter_are_kept_and_no_secret():
    kept = environment_facts(
        {
            "OMPI_MCA_io": "romio321",
            "HDF5_USE_FILE_LOCKING": "FALSE",
            "LOADEDMODULES": "hdf5",
            "PYTHONPATH": "/x",
            "SLURM_JWT": "abc",
            "OMPI_TOKEN": "abc",
            "PMIX_SERVER_URI2": "1.0;tcp4://127.0.0.1:44219",
            "OMPI_MCA_orte_num_nodes": "1",
            "PFFBENCH_API_KEY": "abc",
            "SLURM_password": "abc",
            "HOME": "/home/x",
            "AWS_SECRET_ACCESS_KEY": "abc",
            "EDITOR": "vi",
        }
    )
    assert kept["OMPI_MCA_io"] == "romio321"
    assert set(kept) == {
        "OMPI_MCA_io",
        "HDF5_USE_FILE_LOCKING",
        "LOADEDMODULES",
        "PYTHONPATH",
        "SLURM_JWT",
        "OMPI_TOKEN",
        "PFFBENCH_API_KEY",
        "SLURM_password",
    }
    assert "abc" not in kept.values()
    assert kept["SLURM_JWT"] == "<hidden>"


WHO = {
    "SLURM_JOB_ACCOUNT": "astro",
    "SLURM_JOB_USER": "ada",
    "SLURM_JOB_UID": "815",
    "SLURM_JOB_GID": "815",
    "SLURM_SUBMIT_DIR": "/home/ada",
    "PBS_ACCOUNT": "astro",
    "PBS_O_LOGNAME": "ada",
    "PBS_O_HOME": "/home/ada",
}


def test_account_and_user_of_a_batch_job_are_not_recorded():
    assert set(environment_facts(WHO).values()) == {"<hidden>"}
    others = {"SLURM_JOB_NAME": "x", "SLURM_CPU_BIND": "cores", "SLURMD_NODENAME": "node1"}
    assert environment_facts(others) == others
