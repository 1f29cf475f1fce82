"""Turns: the ranks of several environments are there together, and run one at a time.

Before each repetition the ranks wait, asleep, until the process that started them lets them go on.
Rank 0 asks it by a line of its output, and is answered by a line of its input: launchers carry both
between nodes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pffbench.mpi.agreement import sleeping_barrier

if TYPE_CHECKING:
    from mpi4py import MPI

#: Beginning of the line by which rank 0 asks: others may print before it.
ASKS = "pffbench-turn: "


def wait_for_turn(comm: MPI.Intracomm, repetition: int, case: str, seconds: float) -> bool:
    """Wait until the ranks may run a repetition of a case; collective.

    Parameters
    ----------
    comm : MPI.Intracomm
        The ranks.
    repetition, case : int, str
        The repetition.
    seconds : float
        Seconds after which their watchdog ends a step of it; infinite where none does.

    Returns
    -------
    bool
        Whether they may: not when the process that started them is gone, or wants no more.
    """
    may = True
    if comm.rank == 0:
        print(f"{ASKS}{repetition} {seconds:.0f} {case}", flush=True)
        may = bool(sys.stdin.readline())
    sleeping_barrier(comm)
    return bool(comm.bcast(may))
