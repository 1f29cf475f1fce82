"""Let one rank fail to find an array that has grown, before another one grows; say how it ended."""

import sys

from mpi4py import MPI
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import define_arrays
from pffbench.backends.registry import backend_class
from pffbench.mpi.agreement import AgreedStep, PhaseFailedError

comm = MPI.COMM_WORLD
place, name, failing = sys.argv[1], sys.argv[2], int(sys.argv[3])
one = ArraySpec(
    "a", (6, 2), "int32", 0, (0, 0), (6, 2), 0, None, (2, 2), "none", 0, "none", growth=6
)
specs = [one, replace(one, name="b")]
kind = backend_class(name)
backend = kind(kind.options_type(), "matched")
with AgreedStep(comm, "create"):
    store = backend.create(f"{place}/x.zarr", comm)
with AgreedStep(comm, "define"):
    arrays = define_arrays(store, specs)


def lost(spec):
    def find():
        raise OSError("not found")

    return find


if comm.rank == failing:
    store.open_array = lost
try:
    with AgreedStep(comm, "extend"):
        for spec in specs:
            arrays[spec.name].resizer(12)()
    found = f"{arrays['a']._array.shape} {arrays['b']._array.shape}"
except PhaseFailedError as error:
    told = error.failure
    found = f"{told.ranks_failed} failed, rank {told.rank}: {told.error}"
said = comm.gather(found)
if comm.rank == 0:
    print(" | ".join(said))
