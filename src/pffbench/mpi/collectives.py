"""MAX, MIN and ANY reductions over all ranks, and decisions of rank 0.

Gathering one number per rank to find the largest would take memory and time on every rank that
grow with the number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pffbench.errors import UserError
from pffbench.mpi.agreement import sleeping_barrier
from pffbench.mpi.single import mpi_of

if TYPE_CHECKING:
    from mpi4py import MPI


N = TypeVar("N", int, float)


def largest(comm: MPI.Intracomm, here: N) -> N:
    """Return the largest number of any rank; collective, equal on all."""
    return _reduced(comm, here, mpi_of(comm).MAX)


def smallest(comm: MPI.Intracomm, here: N) -> N:
    """Return the smallest number of any rank; collective, equal on all."""
    return _reduced(comm, here, mpi_of(comm).MIN)


def _reduced(comm: MPI.Intracomm, here: N, operation: Any) -> N:
    """Reduce one number of each rank, of the same type on all.

    By MPI_Allreduce: for objects mpi4py passes messages in turns, on a communicator that it
    duplicates for them.
    """
    number = np.array(here, dtype=np.int64 if isinstance(here, int | np.integer) else np.float64)
    comm.Allreduce(mpi_of(comm).IN_PLACE, number, operation)
    return type(here)(number.item())


def any_of(comm: MPI.Intracomm, here: bool) -> bool:
    """Return whether the condition holds on any rank; collective, equal on all."""
    return bool(largest(comm, int(here)))


T = TypeVar("T")


def on_root(comm: MPI.Intracomm, decide: Callable[[], T]) -> T:
    """Let rank 0 decide and broadcast its decision, or its reason to refuse; collective."""
    told: tuple[T | None, UserError | None] = (None, None)
    if comm.rank == 0:
        try:
            told = (decide(), None)
        except UserError as error:
            told = (None, error)
        except OSError as error:  # of the machine, not of the program: a path, a limit, a disk
            where = "" if error.filename is None else f"{error.filename}: "
            told = (None, UserError(f"{where}{error.strerror or error}"))
    # Others wait asleep: rank 0 may read a large experiment, and spinning would slow it down.
    sleeping_barrier(comm)
    decision, refusal = comm.bcast(told)
    if refusal is not None:
        raise refusal
    assert decision is not None
    result: T = decision
    return result


def kept_by_root(comm: MPI.Intracomm, make: Callable[[], T]) -> T | None:
    """Call a function on rank 0, which alone keeps the result; collective."""
    kept: list[T] = []

    def make_and_keep() -> bool:
        kept.append(make())
        return True

    on_root(comm, make_and_keep)
    return kept[0] if kept else None
