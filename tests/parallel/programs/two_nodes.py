"""pffbench on two nodes that are one machine: NODE is the number of the node of each rank."""

import os
import sys

from pffbench.__main__ import main
from pffbench.mpi.topology import Team, Topology


def _of(_cls, comm):
    number = comm.rank % 2
    os.environ["NODE"] = str(number)
    numbers = tuple(comm.allgather(number))
    topology = Topology(tuple(f"node{n}" for n in numbers), numbers)
    return Team(comm, comm.Split(number, comm.rank), topology)


if __name__ == "__main__":
    Team.of = classmethod(_of)
    sys.exit(main())
