"""Let one rank fail in the midst of what all do together; every rank says how it came out."""

import sys

from mpi4py import MPI

from pffbench.mpi.agreement import AgreedStep, PhaseFailedError, together

comm = MPI.COMM_WORLD
failing = int(sys.argv[1])


def make():
    if comm.rank == failing:
        raise OSError("no room")
    return comm.rank


try:
    with AgreedStep(comm, "define"):
        assert together(comm, make) == comm.rank
    found = "all well"
except PhaseFailedError as error:
    told = error.failure
    found = f"{told.ranks_failed} failed, rank {told.rank}: {told.error}"
said = comm.gather(found)
if comm.rank == 0:
    print(" | ".join(said))
