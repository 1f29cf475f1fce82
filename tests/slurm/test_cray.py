"""From the login node of a Cray to a valid run: the set-up, `jobs/submit compare`, run.json."""

from __future__ import annotations

import json
import re

import pytest

from cray import MODULES, Cray, lacking
from launch import cannot_run

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(1800)]

LOAD = "module load " + " ".join(MODULES)


@pytest.fixture(scope="module")
def cray(slurm_cluster):
    """The stand-in, with the environment that is made on its login node."""
    if missing := lacking():
        cannot_run(missing)
    (directory := slurm_cluster.path / "shared" / "cray").mkdir()
    made = Cray(directory)
    done = made.login(f"{LOAD}; setup/bootstrap --login")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{directory}/bin/cc, HDF5 " in done.stdout
    yield made
    slurm_cluster.settle()


def test_the_environment_is_cray_and_nothing_else_before_any_program_of_mpi_ran(cray):
    watched = (cray.checkout / ".build" / "watch").read_text().splitlines()
    assert {
        f"{cray.lib}/libhdf5_parallel_gnu_123.so.310", f"{cray.lib}/libmpi_gnu_123.so.12",
        f"{cray.lib}/libnetcdf_parallel_gnu_123.so.19",
    } == {file for file in watched if "/lib" in file and "python" not in file}  # fmt: skip
    done = cray.login(f"{LOAD}; setup/run pffbench doctor --no-mpi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 problems" in done.stdout


def test_the_comparison_is_valid_in_a_job(cray, slurm_cluster):
    out = cray.here / "out"
    size = "--nodes 2 --tasks-per-node 2"
    submitted = slurm_cluster.run(
        *cray.shell(
            f"jobs/submit --site {cray.profile} {size} --out {out} compare "
            "--set 'time_budget=2 min'",
            SLURM_CONF=str(slurm_cluster.settings.slurm_conf), PMIX_MCA_psec="native",
            OMPI_MCA_mpi_yield_when_idle="1",
        ),
        cwd=cray.checkout,
    )  # fmt: skip
    (job,) = re.findall(r"\] job (\d+):", submitted.stdout)
    facts = slurm_cluster.wait(job, timeout=1200)
    (log,) = out.glob(f"*-{job}.out")
    assert facts["JobState"] == "COMPLETED", log.read_text()
    record = json.loads((out / f"compare-2n-{job}" / "run.json").read_text())
    assert (record["name"], record["status"], record["valid"]) == ("default", "finished", True)
    assert record["topology"]["ranks_per_node"] == [2, 2]
    loaded = record["provenance"]["software"]["loaded"]
    assert loaded["libmpi"] == [f"{cray.lib}/libmpi_gnu_123.so.12"]
    assert f"{cray.lib}/libhdf5_parallel_gnu_123.so.310" in loaded["libhdf5"]
    assert f"{cray.lib}/libnetcdf_parallel_gnu_123.so.19" in loaded["libnetcdf"]
    assert not list(cray.here.glob("pffbench-job-*"))
