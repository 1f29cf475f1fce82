"""Write every second element through views of MPI-IO again and again; say how memory grew, MiB."""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import define_arrays
from pffbench.backends.registry import backend_class
from pffbench.geometry.box import Box

N, ROUNDS = 2**15, 50
comm = MPI.COMM_WORLD
kind = backend_class("mpiio")
spec = ArraySpec(
    "a", (2 * N,), "int32", 0, (0,), (2 * N,), 0, None, "contiguous", "none", 0, "none"
)
box, data = Box((0,), (N,), (2,)), np.arange(N, dtype="i4")


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


store = kind(kind.options_type(), "matched").create(sys.argv[1], comm)
(array,) = define_arrays(store, [spec]).values()
for number in range(ROUNDS):
    if number == ROUNDS // 10:
        before = resident()
    call = array.writer(box, data, False)
    call()
    assert array.missing(call, data.nbytes) == 0
grown = max(comm.allgather(resident() - before))
store.close()
if comm.rank == 0:
    print(round(grown))
