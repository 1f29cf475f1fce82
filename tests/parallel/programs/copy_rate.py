"""Tell how fast memory is for all ranks together and for one, all of them on one core.

Then one rank gets no memory; tell whether each of them went on without a result.
"""

import mmap
import os
from types import SimpleNamespace

from mpi4py import MPI

from pffbench.parallel import machine as copyrate
from pffbench.parallel.topology import Team

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
# Short enough that a rank which has the core copies all of it before another one gets its turn.
copyrate._COPIED = 2**21

together = copyrate.memory_rates(Team.of(MPI.COMM_WORLD), rounds=25).copy
alone = copyrate.memory_rates(Team.of(MPI.COMM_SELF), rounds=25).copy


def refuse(*_, **__):
    """Fail as mmap(2) does without memory."""
    raise OSError("Cannot allocate memory")


if MPI.COMM_WORLD.rank == MPI.COMM_WORLD.size - 1:
    copyrate.mmap = SimpleNamespace(**{**vars(mmap), "mmap": refuse})
without = copyrate.memory_rates(Team.of(MPI.COMM_WORLD)) is None
everywhere = MPI.COMM_WORLD.allreduce(without, op=MPI.LAND)
if MPI.COMM_WORLD.rank == 0:
    print(together, alone, everywhere)
