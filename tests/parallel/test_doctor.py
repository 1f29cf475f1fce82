"""`pffbench doctor` as its users call it: under mpiexec, alone, and where MPI must not start."""

import json
import os

import pytest

from launch import entries_below, environment, pffbench_cli, run, sampled
from planted import planted

pytestmark = pytest.mark.parallel


def doctor(directory, *arguments, ranks=None, **env):
    return pffbench_cli("doctor", *arguments, ranks=ranks, cwd=directory, env=env)


def hidden(tmp_path, name, when="True"):
    """Return a search path on which a library cannot be imported when a condition holds."""
    stubs = tmp_path / "stubs"
    stubs.mkdir(exist_ok=True)
    (stubs / f"{name}.py").write_text(
        f"if {when}:\n    raise ImportError('{name} is hidden')\n"
        f"import sys\nsys.path.remove({str(stubs)!r})\ndel sys.modules[{name!r}]\nimport {name}\n"
    )
    return os.pathsep.join([str(stubs), environment()["PYTHONPATH"]])


def text_of(finished):
    """Return what was printed, without the line breaks that fit it into 80 columns."""
    return " ".join(finished.stdout.split())


def assert_no_traceback(finished):
    assert "Traceback" not in finished.stdout + finished.stderr, finished.said


@pytest.mark.parametrize("ranks", sampled([None, 1, 3], 3))
def test_parallel_io_is_proved_and_nothing_stays_behind(tmp_path, ranks):
    told = []
    if ranks == 3:  # a directory of the user, which is left as it was
        told = ["--scratch", str(tmp_path / "scratch")]
        (tmp_path / "scratch").mkdir()
    before = entries_below(tmp_path)
    done = doctor(tmp_path, *told, ranks=ranks)
    assert done.status == 0, done.said
    assert "".join(told[1:]) in text_of(done).replace(" ", "")
    who = f"{ranks} ranks" if ranks == 3 else "1 rank"
    for summary in ("HDF5 through h5py", "netCDF-4 through netCDF4-python"):
        works = f"{summary}: {who} wrote and read, all bytes verified: "
        told = text_of(done).partition(works)[2].partition("✓")[0]
        ways = {way.strip() for way in told.split(",")}
        assert ways >= {"one-shared collective", "one-per_rank independent"}
    for kind in ("flock", "fcntl"):
        assert f"locks by {kind} on a file: seen by other processes of this node" in text_of(done)
    assert max(map(len, done.stdout.splitlines())) <= 80
    row = next(line for line in done.stdout.splitlines() if line.startswith("  hdf5 "))
    assert row.split() == ["hdf5", "yes", "yes", "yes"]
    assert done.stdout.splitlines()[-1].startswith("0 problems, ")
    assert done.stdout.count("h5py and netCDF4 share") == 1  # one rank speaks for all
    assert "\x1b" not in done.stdout
    assert_no_traceback(done)
    assert entries_below(tmp_path) == before


def known(done):
    """Return the findings about known corruptions, by report."""
    found = json.loads(done.stdout)["findings"]
    return {f["text"].split(": ")[0]: f for f in found if f["topic"] == "Known corruptions"}


@pytest.mark.full
def test_known_corruptions_are_tried_where_they_are_asked_for(tmp_path):
    asked = known(doctor(tmp_path, "--stack", "--json", ranks=3))
    assert len(asked) >= 4
    assert {one["status"] for one in asked.values()} <= {"ok", "problem"}
    assert all(one["remedy"] for one in asked.values() if one["status"] == "problem")
    assert not known(doctor(tmp_path, "--json", ranks=3))


@pytest.mark.parametrize("ranks", sampled([2, 3], 2))
def test_each_trial_shows_data_that_are_not_read_back(tmp_path, ranks):
    """The system claims that it has read the files of the trials."""
    plant = planted("known-", read="suppress", size=1)
    found = known(doctor(tmp_path, "--stack", "--json", ranks=ranks, **plant))
    of_ranks = found.pop("open-mpi/ompi#10546")
    assert len(found) >= 3
    assert {one["status"] for one in found.values()} == {"problem"}, found
    if ranks == 3:
        assert of_ranks["status"] == "problem"
    else:
        assert of_ranks["status"] == "unknown"
        assert "not tried: needs 3 ranks or more" in of_ranks["text"]


def test_nothing_is_tried_where_libraries_are_not_loaded(tmp_path):
    found = known(doctor(tmp_path, "--stack", "--no-mpi", "--json"))
    assert {one["status"] for one in found.values()} == {"unknown"}


@pytest.mark.parametrize("how", [{"ranks": 2}, {}])
def test_a_scratch_directory_that_is_not_there_is_a_problem(tmp_path, how):
    arguments = [] if how else ["--no-mpi"]
    done = doctor(tmp_path, "--scratch", tmp_path / "missing", *arguments, **how)
    assert done.status == 1, done.said
    assert "missingdoesnotexist" in text_of(done).replace(" ", "")
    assert "name a writable directory with --scratch" in text_of(done)
    assert_no_traceback(done)
    assert entries_below(tmp_path) == []


def test_no_mpi_loads_neither_mpi_nor_the_libraries_bound_to_it(tmp_path):
    program = (
        "import sys; from pffbench.cli import main\n"
        "try: main(['doctor', '--no-mpi'])\n"
        "finally: print('loaded:', *(m for m in ('mpi4py', 'h5py', 'netCDF4') if m in sys.modules))"
    )
    done = run(["-c", program], cwd=tmp_path)
    assert done.status == 0, done.said
    assert done.stdout.splitlines()[-1] == "loaded:"
    assert "built for MPI by the look of its binaries" in text_of(done)
    assert "not looked at with --no-mpi" in text_of(done)
    assert entries_below(tmp_path) == []


ON_ONE = "__import__('mpi4py.MPI').MPI.COMM_WORLD.rank == 1"


@pytest.mark.parametrize("when", sampled(["True", ON_ONE], ON_ONE), ids=["all", "one"])
def test_a_library_that_does_not_load_is_a_problem_with_a_remedy(tmp_path, when):
    done = doctor(tmp_path, ranks=3, PYTHONPATH=hidden(tmp_path, "netCDF4", when))
    assert done.status == 1, done.said
    cause = text_of(done).partition("✗ problem netCDF4")[2].partition("✓")[0]
    assert "netCDF4 is hidden" in cause
    assert "so: the backend netcdf4 cannot run so: the backend netcdf3 cannot run →" in cause
    assert "make env" in cause.partition("→")[2]
    assert "netCDF-4 through netCDF4-python: " in text_of(done).partition("✗ problem netCDF4")[2]
    row = next(line for line in done.stdout.splitlines() if line.startswith("  netcdf4 "))
    assert row.split() == ["netcdf4", "no", "no", "no"]
    assert "HDF5 through h5py: 3 ranks wrote and read" in text_of(done)
    assert_no_traceback(done)


@pytest.mark.parametrize("name", sampled(["psutil", "msgspec", "yaml"], "msgspec"))
def test_a_library_that_the_doctor_needs_itself_is_named_in_a_sentence(tmp_path, name):
    done = doctor(tmp_path, PYTHONPATH=hidden(tmp_path, name))
    assert (done.status, done.stdout) == (1, ""), done.said
    assert done.stderr.count("\n") == 1
    assert f"{name} is hidden" in done.stderr
    assert "pip install" in done.stderr


def test_without_mpi4py_the_cause_and_what_follows_are_told(tmp_path):
    done = doctor(tmp_path, PYTHONPATH=hidden(tmp_path, "mpi4py"))
    assert done.status == 1, done.said  # h5py is built with MPI here
    assert_no_traceback(done)
    cause = text_of(done).partition("! warning mpi4py")[2].partition("→")[0]
    assert "mpi4py is hidden" in cause
    assert "so: runs have one process so: the backend mpiio cannot run" in cause
    row = next(line for line in done.stdout.splitlines() if line.startswith("  mpiio "))
    assert row.split() == ["mpiio", "no", "no", "no"]


def test_processes_that_cannot_load_mpi_and_are_several_are_a_problem(tmp_path):
    env = {"PYTHONPATH": hidden(tmp_path, "mpi4py"), "PMI_SIZE": "3", "PMI_RANK": "0"}
    done = doctor(tmp_path, **env)
    assert done.status == 1, done.said
    assert "started 3 processes (PMI_SIZE=3), but MPI cannot be used" in text_of(done)


def test_processes_that_do_not_know_of_each_other_are_a_problem(tmp_path):
    first = doctor(tmp_path, MV2_COMM_WORLD_SIZE="3", MV2_COMM_WORLD_RANK="0")
    assert first.status == 1, first.said
    assert "the launcher started 3 processes" in text_of(first)
    assert "use the mpiexec of the same MPI" in text_of(first)
    other = doctor(tmp_path, MV2_COMM_WORLD_SIZE="3", MV2_COMM_WORLD_RANK="1")
    assert other.status == 0, other.said  # the first failure would end all of them under srun
    assert other.stdout == ""


def test_tasks_of_srun_without_contact_are_a_problem_found_before_mpi_starts(tmp_path):
    step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "3"}
    first = doctor(tmp_path, **step, SLURM_PROCID="0")
    assert first.status == 1, first.said
    assert "the launcher started 3 processes" in text_of(first)
    assert "srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)" in text_of(first)
    other = doctor(tmp_path, **step, SLURM_PROCID="1")
    assert (other.status, other.stdout, other.stderr) == (0, "", "")


PLANTED = """
import time
from mpi4py import MPI
from pffbench.backends.hdf5 import Hdf5
from pffbench.cli import main
from pffbench.doctor import trial

create, stores = Hdf5.create, []

def planted(*arguments):
    stores.append(create(*arguments))  # a store that is released is closed, by all ranks together
    {act}

trial.HANG_TIMEOUT = "6 s"
if MPI.COMM_WORLD.rank == 1:
    Hdf5.create = planted
main(["doctor"])
"""


def test_a_rank_that_fails_lets_no_other_wait_and_what_else_runs_is_told(tmp_path):
    program = PLANTED.format(act="raise OSError('it broke')")
    done = run(["-c", program], ranks=3, cwd=tmp_path)
    assert done.status == 1, done.said
    assert "HDF5 through h5py: one-shared independent, one-shared collective," in text_of(done)
    assert "create failed on rank 1" in text_of(done)
    assert "it broke" in text_of(done)
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
    assert rows["hdf5"] == ["no", "no", "no"]
    assert rows["netcdf4"] == ["yes", "yes", "yes"]
    assert done.stdout.splitlines()[-1].startswith("1 problem, ")
    assert_no_traceback(done)
    assert entries_below(tmp_path) == []


@pytest.mark.full
def test_when_a_library_never_returns_the_findings_are_printed_and_the_job_is_ended(tmp_path):
    done = run(["-c", PLANTED.format(act="time.sleep(300)")], ranks=2, cwd=tmp_path)
    assert done.status != 0, done.said
    assert "h5py and netCDF4 share" in text_of(done)
    assert "nothing has come to an end for" in done.stderr
    assert "so the job is ended: hdf5.hyperslab." in done.stderr
