"""How fast memory is, with all ranks at it at once."""

from __future__ import annotations

import os
import time

import numpy as np

from pffbench.parallel.topology import Team

#: Bytes that each rank copies, the ranks of a node at most, and those that share a core: more
#: than caches hold, not more than there is, and no more than it takes.
_COPIED = 32 * 2**20
_COPIED_ON_A_NODE = 2**30
_COPIED_ON_A_CORE = 2 * _COPIED


def memory_copy_rate(team: Team, rounds: int = 5) -> float:
    """Time a copy in memory on all ranks at once and return bytes per second together.

    Collective; the result is the same on all ranks. It bounds every transfer from above: a page
    cache cannot take data faster than memory does.

    The time is that of a phase, from barrier to barrier, on the rank that saw most of it: with
    fewer cores than ranks each copies when it has a core, and the sum of what they reach by
    themselves is many times what memory moves.
    """
    from mpi4py import MPI

    on_node, cores = int(team.node.size), os.cpu_count() or 1
    copied = min(_COPIED, _COPIED_ON_A_NODE // on_node, _COPIED_ON_A_CORE * cores // on_node)
    source = np.ones(copied, dtype=np.uint8)
    target = np.empty_like(source)
    seconds = np.zeros(rounds)
    team.comm.Barrier()
    for place in range(rounds):
        begin = time.perf_counter()
        np.copyto(target, source)
        team.comm.Barrier()  # the one before the next round, too
        seconds[place] = time.perf_counter() - begin
    team.comm.Allreduce(MPI.IN_PLACE, seconds, op=MPI.MAX)
    return float(team.comm.allreduce(copied) / np.median(seconds))
