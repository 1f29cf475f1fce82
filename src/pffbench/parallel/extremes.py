"""The largest and the least of what all ranks have: no rank hears of more than that.

Gathering everybody's number to look for the largest would take memory and time on every rank that
grow with the number of ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mpi4py import MPI

N = TypeVar("N", int, float)


def largest(comm: MPI.Intracomm, here: N) -> N:
    """Return the largest number of any rank; collective, equal on all."""
    from mpi4py import MPI

    found: N = comm.allreduce(here, op=MPI.MAX)
    return found


def least(comm: MPI.Intracomm, here: N) -> N:
    """Return the least number of any rank; collective, equal on all."""
    from mpi4py import MPI

    found: N = comm.allreduce(here, op=MPI.MIN)
    return found


def any_of(comm: MPI.Intracomm, here: bool) -> bool:
    """Return whether it is so on any rank; collective, equal on all."""
    return bool(largest(comm, int(here)))
