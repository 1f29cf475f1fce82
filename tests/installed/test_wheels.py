"""What users of wheels alone have: serial HDF5 and netCDF, with the MPI of a wheel or with none."""

import os
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from launch import REPOSITORY, Finished, check_results, environment, layer, sampled
from pffbench.storage.page_cache import reason_against_cold_reads
from sharing import word_of

pytestmark = pytest.mark.parallel

SHIPPED = REPOSITORY / "docs" / "results" / "default"
#: Ways of having no MPI; the first hides that of the system from mpi4py, which searches for one.
NO_LIBRARY, NO_MPI4PY = "no MPI library", "no mpi4py"
#: Everything that shares a file by HDF5 or netCDF.
SERIAL = {
    (backend, layout)
    for backend in ("hdf5", "netcdf4")
    for layout in ("one-shared", "one-per_rank")
}
REMEDIES = ("HDF5_MPI=ON pip install --no-binary=h5py h5py", "conda-forge", "modules", "Spack")
EXPERIMENT = {
    "name": "small",
    "repetitions": 2,
    "warmup": 0,
    "unsupported": "skip",
    "common": {"workload": "hyperslab", "shape_per_rank": [2, 64, 64], "chunks": [1, 64, 64]},
    "cases": [
        {
            "backend": ["hdf5", "netcdf4", "zarr"],
            "files": ["one", "per_rank"],
            "arrays": ["shared", "per_rank"],
        }
    ],
}


def pffbench(*arguments, cwd, ranks=None, without=(), mpi=False, env=None):
    """Run the program in a directory: one process, or on ranks of the wheel's MPI.

    ``without`` names modules that cannot be imported, and ``mpi=False`` hides the system's MPI.
    """
    wheels = [f"{name}=={version(name)}" for name in ("h5py", "netCDF4", "mpi4py")]
    folder = layer("wheels", *wheels, "mpich==5.0.2").parent
    hidden = "".join(f"sys.modules[{module!r}] = None; " for module in without)
    program = [folder / "python", "-P", "-c",
               f"import sys; {hidden}from pffbench.cli import main; main()"]  # fmt: skip
    if not without:
        program = [folder / "python", "-P", "-m", "pffbench"]
    launcher = [folder / "mpiexec", "-n", ranks] if ranks else []
    changes = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": None,
        "VIRTUAL_ENV": None, "MPI4PY_LIBMPI": None if mpi else "/nonexistent/libmpi.so",
        # What is compiled stays in the environment: without it each process compiles it anew.
        "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": None, **(env or {}),
    }  # fmt: skip
    done = subprocess.run(
        [str(part) for part in (*launcher, *program, *arguments)], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=120, cwd=cwd, env=environment(**changes),
    )  # fmt: skip
    check_results(Path(cwd) / "out")
    return Finished(done.returncode, done.stdout, done.stderr, Path(cwd) / "out")


def experiment(directory, **changes):
    path = directory / "small.yaml"
    path.write_text(yaml.safe_dump(EXPERIMENT | changes))
    return path


def planned(done):
    """Return backend and files of all cases that ran."""
    parameters = [entry["parameters"] for entry in done.record["cases"].values()]
    return {(p["backend"], word_of(p)) for p in parameters}


def sentences(text):
    return " ".join(text.split())


def test_the_default_comparison_is_valid_on_two_ranks_of_the_wheels_mpi(tmp_path):
    less = ("repetitions=1", "warmup=0", "dtype=int8")  # a quarter of the bytes
    told = [word for change in less for word in ("--set", change)]
    done = pffbench("run", *told, "--out", "out", cwd=tmp_path, ranks=2, mpi=True)
    assert done.status == 0, done.said
    assert "\nVALID: every byte verified, " in done.stdout
    record = done.record
    assert record["ranks"] == 2
    assert record["provenance"]["mpi_io"]["library"] == "MPICH"
    assert planned(done) == {
        *((raw, layout) for raw, layout in (("posix", "per_rank"), ("mpiio", "one-shared"),
                                            ("mpiio", "one-per_rank"))),
        *(("zarr", layout) for layout in ("one-shared", "one-per_rank", "per_rank")),
        ("hdf5", "per_rank"), ("netcdf4", "per_rank"),
    }  # fmt: skip
    said = sentences(done.stdout)
    cold = reason_against_cold_reads(str(tmp_path)) is None
    assert said.count("Limited: ") == (2 if cold else 3)
    for part in ("4 cases of hdf5 left out: ", "4 cases of netcdf4 left out: ", *REMEDIES):
        assert part in said, part


@pytest.mark.parametrize("why", sampled([NO_LIBRARY, NO_MPI4PY], NO_LIBRARY))
def test_without_mpi_one_process_runs_and_the_verdict_says_so(why, tmp_path):
    without = ("mpi4py",) if why == NO_MPI4PY else ()
    done = pffbench("run", experiment(tmp_path), "--out", "out", cwd=tmp_path,
                    without=without)  # fmt: skip
    assert done.status == 0, done.said
    verdict = sentences(done.stdout).partition("VALID: every byte verified, ")[2]
    assert "one process without MPI" in verdict
    assert done.record["provenance"]["mpi_io"].keys() == {"missing"}
    assert planned(done) == {
        *(("zarr", layout) for layout in ("one-shared", "one-per_rank", "per_rank")),
        ("hdf5", "per_rank"), ("netcdf4", "per_rank"),
        ("posix", "per_rank"),
    }  # fmt: skip
    # A report of the run says it again.
    assert "one process without MPI" in (tmp_path / "out" / "summary.md").read_text()


def test_processes_without_mpi_do_not_take_themselves_for_the_whole_job(tmp_path):
    done = pffbench("run", experiment(tmp_path), "--out", "out", cwd=tmp_path,
                    env={"PMI_SIZE": "4", "PMI_RANK": "0"})  # fmt: skip
    assert done.status == 2
    assert done.stderr.count("\n") == 1
    assert "started 4 processes (PMI_SIZE=4), but MPI cannot be used" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_plan_names_what_serial_libraries_cannot_do(tmp_path):
    done = pffbench("plan", experiment(tmp_path), cwd=tmp_path)
    assert done.status == 0, done.said
    left_out = [line for line in done.stdout.splitlines() if line.startswith("left out: ")]
    named = {tuple(line.split()[2].split(".")[i] for i in (0, 2)) for line in left_out}
    assert named == SERIAL | {("mpiio", "one-shared"), ("mpiio", "one-per_rank")}
    assert "backend mpiio needs MPI, and this process has none (mpi4py: " in sentences(done.stdout)
    said = sentences(done.stdout)
    assert all(said.count(part) >= 1 for part in REMEDIES)
    assert "built without MPI" in said


@pytest.mark.parametrize(
    ("library", "backend"),
    sampled([("netCDF4", "netcdf4"), ("zarr", "zarr")], ("zarr", "zarr")),
)
def test_a_format_whose_library_is_missing_is_left_out_with_the_reason(library, backend, tmp_path):
    done = pffbench("run", experiment(tmp_path), "--out", "out", cwd=tmp_path,
                    without=(library,))  # fmt: skip
    assert done.status == 0, done.said
    assert backend not in {name for name, _ in planned(done)}
    assert f"backend {backend} needs the Python package {library}" in sentences(done.stdout)


def test_without_h5py_nothing_runs_and_run_and_plan_say_so(tmp_path):
    def say(*arguments):
        return pffbench(*arguments, cwd=tmp_path, without=("h5py",))

    done = say("run", experiment(tmp_path), "--out", "out")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == (
        "pffbench: runs are recorded with h5py, which is not installed; `pffbench doctor` names "
        "the remedy\n"
    )
    assert not (tmp_path / "out").exists()
    assert "nothing can run here: runs are recorded with h5py" in sentences(
        say("plan", experiment(tmp_path)).stdout
    )


def test_an_experiment_that_skips_nothing_is_refused_in_one_sentence(tmp_path):
    done = pffbench("run", experiment(tmp_path, unsupported="refuse"), "--out", "out",
                    cwd=tmp_path)  # fmt: skip
    assert done.status == 2
    assert done.stderr.count("\n") == 1
    assert "files that ranks share need a parallel h5py" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_reading_needs_neither_mpi_nor_the_extra(tmp_path):
    for copy in ("first", "second"):
        shutil.copytree(SHIPPED, tmp_path / copy)
    without = ("mpi4py", "jinja2", "pandas")
    for command in (["recommend", "first"], ["compare", "first", "second"]):
        told = pffbench(*command, cwd=tmp_path, without=without)
        assert told.status == 0, told.said
        assert len(told.stdout.splitlines()) > 5
    told = pffbench("report", "first", cwd=tmp_path, without=without)
    assert told.status == 2, told.said
    assert "first/results.json" in told.stdout.splitlines()
    assert told.stderr.count("\n") == 1
    assert re.search(r"pip install '\S+\[analysis\]'", told.stderr), told.stderr
