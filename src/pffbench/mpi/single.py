"""The communicator of one process that runs without MPI."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class SingleProcess:
    """A communicator of one process, with the operations of mpi4py's that a run calls.

    Over one rank each operation returns its argument and waits for nobody. MPI-IO is not there:
    cases that need it are left out when the run is planned.

    Parameters
    ----------
    reason : str
        Why there is no MPI, for the record and the verdict of the run.
    """

    rank = 0
    size = 1
    #: Stands for the module ``mpi4py.MPI``: the constants that are passed to the operations.
    constants = SimpleNamespace(
        IN_PLACE=None, INT64_T=None, MAX=None, MIN=None, COMM_TYPE_SHARED=None
    )

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def Barrier(self) -> None:
        """Wait for nobody."""

    def Ibarrier(self) -> _Completed:
        """Return a request that is complete."""
        return _Completed()

    def Allreduce(self, here: Any, everywhere: Any, op: Any = None) -> None:
        """Leave the result of the only rank where it is; only in place."""
        assert here is self.constants.IN_PLACE

    def Iallreduce(self, here: Any, everywhere: Any, op: Any = None) -> _Completed:
        """Do the same; the request is complete."""
        self.Allreduce(here, everywhere, op)
        return _Completed()

    def Reduce(self, here: Any, everywhere: Any, op: Any = None, root: int = 0) -> None:
        """Copy the only rank's numbers to the result."""
        np.copyto(everywhere, here)

    def Gather(self, here: Any, everywhere: Any, root: int = 0) -> None:
        """Copy the only rank's numbers to the result, which has any number of axes."""
        np.copyto(everywhere.reshape(-1), here.reshape(-1))

    def allreduce(self, here: T, op: Any = None) -> T:
        """Return the only rank's value."""
        return here

    def reduce(self, here: T, op: Any = None, root: int = 0) -> T:
        """Return the only rank's value."""
        return here

    def bcast(self, here: T, root: int = 0) -> T:
        """Return the only rank's value."""
        return here

    def sendrecv(self, here: T, dest: int, source: int = 0) -> T:
        """Return what the only rank sends to itself."""
        return here

    def gather(self, here: T, root: int = 0) -> list[T]:
        """Return the only rank's value in a list."""
        return [here]

    def allgather(self, here: T) -> list[T]:
        """Return the only rank's value in a list."""
        return [here]

    def Split_type(self, kind: Any, key: int = 0) -> SingleProcess:
        """Return the ranks of this node: this process."""
        return self


class _Completed:
    """A request that is complete."""

    def Test(self) -> bool:
        """Whether it is complete: always."""
        return True


def mpi_of(comm: object) -> Any:
    """Return the module whose constants the operations of a communicator take."""
    if isinstance(comm, SingleProcess):
        return comm.constants
    from mpi4py import MPI

    return MPI


def lack_of_mpi(comm: object) -> str | None:
    """Return why a communicator has no MPI below it; None where it has."""
    return comm.reason if isinstance(comm, SingleProcess) else None
