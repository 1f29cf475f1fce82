"""Each rank says what it got as the largest and the smallest of numbers of several types."""

import json
import sys

import numpy as np
from mpi4py import MPI

from pffbench.mpi.collectives import any_of, largest, smallest

comm = MPI.COMM_WORLD
rank = comm.rank
got = [
    largest(comm, rank),
    smallest(comm, sys.maxsize - rank),  # more digits than a float has
    largest(comm, 0.5 * rank),
    smallest(comm, float("inf") if rank else 2.5),
    largest(comm, np.float32(rank) / 2),
    largest(comm, np.int32(rank)),
    any_of(comm, rank == 1),
    any_of(comm, False),
]
everywhere = comm.gather([(type(one).__name__, one) for one in got])
if everywhere is not None:
    print(json.dumps(everywhere, default=lambda number: number.item()))
