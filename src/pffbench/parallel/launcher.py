"""What the launcher of an MPI program says about it, read before MPI starts.

A program that is started with the wrong launcher becomes many programs of one rank each, all of
which believe that they are the whole job and exit with status 0. The launcher's own count, kept
in the environment, gives that away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI

# In this order: an mpiexec inside a Slurm allocation starts one helper task per node through
# srun, and the ranks inherit that step's variables beside those of their own launcher.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_SIZE", "FLUX_JOB_SIZE")
_LOCAL_SIZES = (
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
)
# Where each launcher tells a process its number.
_RANKS = (
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PMI_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
)
_SLURM_SIZE = "SLURM_STEP_NUM_TASKS"
_SLURM_LOCAL_SIZES = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
# Slurm numbers the batch script, the interactive shell and the like from here upwards.
_FIRST_SPECIAL_STEP = 0xFFFFFFF0
_TASKS_PER_NODE = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?")


def launcher_size(environ: Mapping[str, str]) -> tuple[int, str] | None:
    """Find how many ranks the launcher says it started.

    Parameters
    ----------
    environ : mapping
        The environment of a rank.

    Returns
    -------
    tuple of int and str, or None
        The number and the variable that says so; None when no launcher left a claim, as for a
        program that is started directly or by a batch script without srun.
    """
    in_step = (_SLURM_SIZE,) if _in_slurm_step(environ) else ()
    for name in (*_SIZES, *in_step):
        size = _whole_number(environ.get(name))
        if size is not None:
            return size, name
    return None


def ranks_on_node(environ: Mapping[str, str]) -> int | None:
    """Find how many ranks the launcher started on this node; None when it does not say."""
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
    """Whether this process is the first one of its launcher, as far as the launcher says.

    When launcher and MPI do not fit, every process takes itself for rank 0 of 1; only one of
    them is to speak.
    """
    number = next((environ[name] for name in _RANKS if name in environ), "0")
    return number.strip() in ("", "0")


def needs_yield(environ: Mapping[str, str], cpus: int) -> bool:
    """Whether ranks must give up their core while they wait, because there are more of them.

    Open MPI waits in a busy loop. With more ranks than cores the one that has work then waits
    for those that have none, and a job of 64 ranks on 2 cores stands still. Open MPI sees this
    itself only when its own mpiexec counts the cores.

    Parameters
    ----------
    environ : mapping
        The environment of a rank.
    cpus : int
        Cores that the ranks of this node share.
    """
    ranks = ranks_on_node(environ)
    return ranks is not None and ranks > cpus


def _in_slurm_step(environ: Mapping[str, str]) -> bool:
    step = _whole_number(environ.get("SLURM_STEP_ID"))
    return step is not None and step < _FIRST_SPECIAL_STEP and "SLURM_PROCID" in environ


def _counts_per_node(text: str) -> list[int]:
    """Expand Slurm's shorthand: ``2(x3),1`` means 2, 2, 2 and 1 tasks on four nodes."""
    counts: list[int] = []
    for part in text.split(","):
        match = _TASKS_PER_NODE.fullmatch(part.strip())
        if match is None:
            return []
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]+", text) else None


def start_mpi() -> MPI.Intracomm:
    """Initialise MPI and return all its ranks.

    Open MPI is told to yield the processor when there are more ranks than cores: ranks that spin
    would keep others from running, and 64 ranks on 2 cores would never finish.
    """
    if needs_yield(os.environ, len(os.sched_getaffinity(0))):
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    from mpi4py import MPI

    return MPI.COMM_WORLD
