"""Waiting that costs little processor time, for the stretches that nobody times."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI

#: A rank looks so many times before it sleeps, and offers its core to others in between. Ranks
#: mostly come to the end of a step together, and who sleeps may have to wait for a core for a
#: turn of the scheduler, which is milliseconds where others work too.
_LOOKS = 100
#: Seconds of the first nap, and of the longest for each rank that shares a core: a look takes some
#: 10 µs. An operation between sleepers takes log2(ranks) rounds, in each of which somebody may
#: have to wake up first, so naps should be no longer than they must.
_FIRST_NAP = 1e-5
_NAP_PER_SHARER = 2e-4
_LONGEST_NAP = 1e-2


def quiet_barrier(comm: MPI.Intracomm) -> None:
    """Wait for all ranks, asleep between looks.

    A blocking barrier spins. With more ranks than cores the spinning ranks take the cores from
    those that still generate or verify data, so outside timed phases ranks wait like this.
    """
    wait_asleep(comm.Ibarrier(), comm.size)


def wait_asleep(request: MPI.Request, ranks: int) -> None:
    """Wait for a collective operation that has been begun, asleep between looks.

    Parameters
    ----------
    request : mpi4py.MPI.Request
        The operation.
    ranks : int
        How many take part. Those of other nodes share no core with this one: with them naps are
        longer than they must be, but never more than 10 ms.
    """
    for _ in range(_LOOKS):
        if request.Test():
            return
        os.sched_yield()
    longest = min(_NAP_PER_SHARER * max(1.0, ranks / (os.cpu_count() or 1)), _LONGEST_NAP)
    nap = _FIRST_NAP
    while not request.Test():
        time.sleep(nap)
        # About a fifth of what has been waited: more would be slept beyond the end of the wait.
        nap = min(1.25 * nap, longest)
