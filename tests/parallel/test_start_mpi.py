"""MPI libraries that find the other tasks of srun in their own way are started all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

from launch import environment, mpiexec

pytestmark = pytest.mark.parallel

# Under mpiexec, since the ranks need someone who tells them of each other; but what start_mpi looks
# at says that srun started them and left no word, and that the library is not Open MPI.
OTHER_LIBRARY = """
import builtins, os, sys
for name in (b"OMPI_COMM_WORLD_SIZE", b"PMIX_RANK", b"PMI_RANK", b"PMI_SIZE", b"PMI_FD"):
    os.environ._data.pop(name, None)  # for Python alone: MPI itself still needs them
os.environ.update(SLURM_STEP_ID="0", SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="2")
plain_import = builtins.__import__
def import_and_rename(*arguments, **named):
    module = plain_import(*arguments, **named)
    if "mpi4py.MPI" in sys.modules:
        sys.modules["mpi4py.MPI"].Get_library_version = lambda: "Another MPI"
    return module
builtins.__import__ = import_and_rename
from pffbench.job.launcher import start_mpi, without_contact
assert without_contact(os.environ) is not None
comm = start_mpi()
from mpi4py import MPI
assert MPI.Get_library_version() == "Another MPI"
assert MPI.Query_thread() == WANTED
print(comm.allreduce(1), flush=True)
"""


def test_another_library_is_initialised_as_ever_and_finalised_at_exit():
    plain = "from mpi4py import MPI; print(int(MPI.Query_thread()))"
    wanted = _run(plain, 1).stdout.strip()
    done = _run(OTHER_LIBRARY.replace("WANTED", wanted), 2)
    # Open MPI's mpiexec fails when a rank ends without having finalised MPI.
    assert done.returncode == 0, done.stdout + done.stderr
    assert "".join(done.stdout.split()) == "22"  # lines of two ranks can meet


def test_a_parallel_h5py_without_its_mpi_is_refused_in_one_sentence(tmp_path):
    code = "import sys; sys.modules['mpi4py.MPI'] = None; from pffbench.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "--out", tmp_path / "out"], cwd=tmp_path,
        env=environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "h5py, which the run is recorded with, is built with MPI" in done.stderr
    assert not list(tmp_path.iterdir())


def _run(code, ranks):
    return subprocess.run(
        [*mpiexec(ranks), sys.executable, "-c", code],
        env=environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
