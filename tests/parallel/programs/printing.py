"""The command line of pffbench; what a rank prints of the data that it reads is kept in a file."""

import sys

from mpi4py import MPI

from pffbench.cli import main
from pffbench_studies.workloads import datasets as sink

sink.DEVICE = f"printed-{MPI.COMM_WORLD.rank}.txt"
main(sys.argv[1:])
