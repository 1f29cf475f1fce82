"""Tell how fast memory is for all ranks together and for one, all of them on one core."""

import os

from mpi4py import MPI

from pffbench.parallel import machine as copyrate
from pffbench.parallel.topology import Team

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
# Short enough that a rank which has the core copies all of it before another one gets its turn.
copyrate._COPIED = 2**21

together = copyrate.memory_rates(Team.of(MPI.COMM_WORLD), rounds=25).copy
alone = copyrate.memory_rates(Team.of(MPI.COMM_SELF), rounds=25).copy
if MPI.COMM_WORLD.rank == 0:
    print(together, alone)
