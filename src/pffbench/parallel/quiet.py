"""Waiting that costs no processor time, for the stretches that nobody times."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI


def quiet_barrier(comm: MPI.Intracomm, longest_nap: float = 0.01) -> None:
    """Wait for all ranks, asleep between looks.

    A blocking barrier spins. With more ranks than cores the spinning ranks take the cores from
    those that still generate or verify data, so outside timed phases ranks wait like this.
    """
    request = comm.Ibarrier()
    nap = 1e-5
    while not request.Test():
        time.sleep(nap)
        # About a fifth of what has been waited: more would be slept beyond the end of the wait.
        nap = min(1.25 * nap, longest_nap)
