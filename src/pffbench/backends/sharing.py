"""What one rank makes and the others then find, with libraries that know no MPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pffbench.parallel.agreement import together

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")


def is_root(comm: MPI.Intracomm | None) -> bool:
    """Whether this rank makes what all share; one that is alone makes everything."""
    return comm is None or comm.rank == 0


def made_by_root(comm: MPI.Intracomm | None, make: Callable[[], T], find: Callable[[], T]) -> T:
    """Let rank 0 make something; return what it made, or what another rank finds of it.

    Collective. Where making fails all raise; where finding does, only the ranks that it fails on.

    Parameters
    ----------
    comm : MPI.Intracomm or None
        The ranks; None for one that is alone.
    make, find : callable
        What rank 0 does, and what the others do when it has.
    """
    if comm is None:
        return make()
    if comm.rank == 0:
        return together(comm, make)
    together(comm, _nothing)
    return find()


def _nothing() -> None:
    """Make nothing."""
