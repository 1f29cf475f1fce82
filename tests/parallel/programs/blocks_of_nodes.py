"""pffbench on two nodes that are one machine: the first half of the ranks is on the first one.

NODE is the number of the node of each rank.
"""

import os
import sys

from pffbench.__main__ import main
from pffbench.mpi.topology import Team, Topology


def _of(_cls, comm):
    topology = Topology.even(comm.size, 2)
    os.environ["NODE"] = str(topology.nodes[comm.rank])
    return Team(comm, comm.Split(topology.nodes[comm.rank], comm.rank), topology)


if __name__ == "__main__":
    Team.of = classmethod(_of)
    sys.exit(main())
