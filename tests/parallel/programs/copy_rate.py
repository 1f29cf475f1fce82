"""Tell how fast memory is for all ranks together, and how fast one is while it has the only core.

Then one rank gets no memory; tell whether each of them went on without a result.
"""

import fcntl
import mmap
import os
import tempfile
import time
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI

from pffbench.mpi.topology import Team
from pffbench.observe import machine

world = MPI.COMM_WORLD
COPIED, SECONDS = 2**21, 0.1
core = world.bcast(tempfile.mkstemp()[1] if world.rank == 0 else None)


def copy_in_turn(target, source):
    """Take so long to copy while no other rank does, as on a machine of one core."""
    with open(core) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(SECONDS)


machine._COPIED = COPIED
machine.np = SimpleNamespace(**{**vars(np), "copyto": copy_in_turn})
together = machine.memory_rates(Team.of(world), rounds=3).copy


def refuse(*_, **__):
    """Fail as mmap(2) does without memory."""
    raise OSError("Cannot allocate memory")


if world.rank == world.size - 1:
    machine.mmap = SimpleNamespace(**{**vars(mmap), "mmap": refuse})
without = machine.memory_rates(Team.of(world), rounds=3) is None
everywhere = world.allreduce(without, op=MPI.LAND)
if world.rank == 0:
    os.unlink(core)
    print(together, COPIED / SECONDS, everywhere)
