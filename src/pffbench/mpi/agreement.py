"""Agreement on errors: when one rank fails, all ranks leave the step together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

import msgspec
import numpy as np

from pffbench.mpi.single import mpi_of

if TYPE_CHECKING:
    from mpi4py import MPI


T = TypeVar("T")


class Failure(msgspec.Struct, frozen=True):
    """The failure of the lowest rank that failed, and the number of ranks that failed."""

    phase: str
    rank: int
    host: str
    error: str
    traceback: str
    ranks_failed: int

    def __str__(self) -> str:
        others = f" and {self.ranks_failed - 1} more" if self.ranks_failed > 1 else ""
        return f"{self.phase} failed on rank {self.rank} ({self.host}){others}: {self.error}"


class PhaseFailedError(Exception):
    """Raised on every rank when any rank failed in a step; carries the same failure everywhere."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class OtherRankFailedError(Exception):
    """Raised by a rank that did not fail itself; the failing rank reports the cause."""


class Agreement:
    """Collective query for a failed rank; its buffers and handles are allocated once.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks; all methods are collective.
    """

    __slots__ = ("_begin_reducing", "_comm", "_lowest", "_no_one", "_reduce")

    def __init__(self, comm: MPI.Intracomm) -> None:
        constants = mpi_of(comm)
        self._comm = comm
        self._no_one = comm.size
        #: The lowest rank that failed. It is reduced in place: where no rank has failed it holds
        #: afterwards the value that the next query needs.
        self._lowest = np.array(comm.size, dtype=np.int64)
        reduced = (self._lowest, 1, constants.INT64_T)
        how = constants.IN_PLACE, reduced, constants.MIN
        self._reduce = partial(comm.Allreduce, *how)
        self._begin_reducing = partial(comm.Iallreduce, *how)

    def reached(self, error: BaseException | None) -> bool:
        """Return whether no rank reports an error; no rank returns before all have entered."""
        if error is not None:
            self._bring(error)
        self._reduce()
        return self._lowest.item() == self._no_one

    def reached_asleep(self, error: BaseException | None) -> bool:
        """Do the same, sleeping until all ranks have entered."""
        if error is not None:
            self._bring(error)
        wait_asleep(self._begin_reducing(), self._no_one)
        return self._lowest.item() == self._no_one

    def _bring(self, error: BaseException) -> None:
        if not isinstance(error, OtherRankFailedError):
            self._lowest[()] = self._comm.rank

    def fail(self, phase: str, error: BaseException | None) -> NoReturn:
        """Raise the same failure on all ranks; all of them know already that there is one.

        Raises
        ------
        PhaseFailedError
            Always.
        """
        failure, lowest = None, self._lowest.item()
        self._lowest[()] = self._no_one
        if isinstance(error, OtherRankFailedError):
            error = None
        ranks_failed = self._comm.allreduce(int(error is not None))
        if self._comm.rank == lowest:
            import traceback  # no other rank needs it, and none where nothing fails

            assert error is not None
            failure = Failure(
                phase=phase,
                rank=self._comm.rank,
                host=os.uname().nodename,
                error=f"{type(error).__name__}: {error}",
                traceback="".join(traceback.format_exception(error)),
                ranks_failed=ranks_failed,
            )
        failure = self._comm.bcast(failure, root=lowest)
        assert failure is not None
        raise PhaseFailedError(failure) from error


def together(comm: MPI.Intracomm, make: Callable[[], T]) -> T:
    """Return this rank's result once all ranks are done; if any fails, all raise.

    For a backend in which one rank creates a file that the others open: after a bare barrier they
    would continue past a failure, into collective calls that the failing rank never makes.

    Raises
    ------
    Exception
        This rank's call raised it.
    OtherRankFailedError
        Another rank's call raised an error.
    """
    error: Exception | None = None
    try:
        made = make()
    except Exception as caught:  # noqa: BLE001 -- raised again below, when all ranks know
        error = caught
    agreed = Agreement(comm).reached(error)
    if error is not None:
        raise error
    if not agreed:
        raise OtherRankFailedError
    return made


class AgreedStep:
    """An untimed step that all ranks leave together, with or without an error.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks.
    name : str
        The step as failures name it; it may change during the step.
    failed : Exception, optional
        An error of this rank before the step, by which the step fails.

    Examples
    --------
    >>> with AgreedStep(comm, "buffers"):  # doctest: +SKIP
    ...     buffer = make_buffer()
    """

    def __init__(self, comm: MPI.Intracomm, name: str, failed: Exception | None = None) -> None:
        self._comm = comm
        self.name = name
        self._failed = failed

    def __enter__(self) -> AgreedStep:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        if isinstance(error, PhaseFailedError):  # all ranks carry it already
            return False
        known = self._failed or (error if isinstance(error, Exception) else None)
        agreement = Agreement(self._comm)
        if not agreement.reached_asleep(known):
            agreement.fail(self.name, known)
        return False


#: Polls before a rank sleeps; between them it yields its core. Ranks mostly reach the end of a
#: step together, and a rank that sleeps may wait a scheduler time slice for a core: milliseconds
#: where others compute too.
_LOOKS = 100
#: Seconds of the first sleep, and of the longest for each rank that shares a core: a poll takes
#: some 10 µs. An operation between sleepers takes log2(ranks) rounds, each of which may have to
#: wait for a rank to wake up, so sleeps are kept as short as possible.
_FIRST_NAP = 1e-5
_NAP_PER_SHARER = 2e-4
_LONGEST_NAP = 1e-2


def sleeping_barrier(comm: MPI.Intracomm) -> None:
    """Wait for all ranks, asleep between polls.

    A blocking barrier spins. With more ranks than cores the spinning ranks take the cores from
    those that still generate or verify data, so outside timed phases ranks wait like this.
    """
    wait_asleep(comm.Ibarrier(), comm.size)


def wait_asleep(request: MPI.Request, ranks: int) -> None:
    """Wait for a collective operation in progress, asleep between polls.

    Parameters
    ----------
    request : mpi4py.MPI.Request
        The operation.
    ranks : int
        Number of ranks that take part. Those of other nodes share no core with this one: they
        make sleeps longer than necessary, but never more than 10 ms.
    """
    for _ in range(_LOOKS):
        if request.Test():
            return
        os.sched_yield()
    longest = min(_NAP_PER_SHARER * max(1.0, ranks / (os.cpu_count() or 1)), _LONGEST_NAP)
    nap = _FIRST_NAP
    while not request.Test():
        time.sleep(nap)
        # About a fifth of the time waited: more would overshoot the end of the wait.
        nap = min(1.25 * nap, longest)
