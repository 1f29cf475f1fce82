"""Check the cutting of accesses into batches and calls on all ranks, with made-up accesses."""

import random

import numpy as np
from mpi4py import MPI

from pffbench.backends.array_spec import ArraySpec
from pffbench.data import make_source
from pffbench.geometry.box import Box
from pffbench.observe.allocator import TransferBuffer
from pffbench.workloads.buffers import calls_of, cut_to_fit, one_after_the_other
from pffbench.workloads.transfer_phase import amount
from pffbench.workloads.transfers import Access

COMM = MPI.COMM_WORLD
ROOM = TransferBuffer()
SOURCE = make_source("integers", "int32")


def spec_of(shape):
    return ArraySpec(
        "a", shape, "int32", 0, (0, 0), shape, 0, None, "contiguous", "none", 0, "none"
    )


def accesses_of(draw, rank, shape, count):
    """Each rank its rows; a rank whose number is drawn holds nothing."""
    spec, empty = spec_of(shape), draw.randrange(-1, COMM.size)
    rows = shape[0] // COMM.size
    box = Box((rank * rows, 0), (0 if rank == empty else rows, shape[1]))
    return [Access(spec, box)] * count


def check(seed):
    draw = random.Random(seed)  # the same on all ranks
    shape = (COMM.size * draw.randrange(1, 9), draw.randrange(1, 60))
    accesses = accesses_of(draw, COMM.rank, shape, draw.randrange(1, 12))
    memory, limit = draw.choice([1, 500, 2000, 10**6]), draw.choice([None, 4, 100, 1000])
    collective = draw.random() < 0.5
    cut = list(cut_to_fit(COMM, accesses, memory))
    assert [a for batch in cut for a in batch] == accesses
    assert len(set(COMM.allgather(len(cut)))) == 1
    for batch in cut:
        buffer = ROOM.take(sum(access.nbytes for access in batch))
        assert buffer.nbytes <= max(memory, max((a.nbytes for a in batch), default=0))
        transfers = one_after_the_other(calls_of(COMM, batch, limit, collective), buffer)
        check_transfers(transfers, batch, buffer, limit)
        if collective:
            assert len(set(COMM.allgather(len(transfers)))) == 1
    return len(cut)


def check_transfers(transfers, batch, buffer, limit):
    moved = [transfer for transfer in transfers if transfer.box.size]
    assert sum(transfer.memory.nbytes for transfer in moved) == buffer.nbytes
    assert amount(transfers) == (buffer.nbytes, len(moved))
    if limit is not None:
        assert all(transfer.memory.nbytes <= limit for transfer in moved)
    for transfer in moved:
        transfer.fill(SOURCE)
    done = 0
    for access in batch:  # what the transfers filled is what the whole boxes hold
        whole = np.empty(access.box.shape, "int32")
        SOURCE.fill(whole, 0, access.box.start, access.spec.shape)
        assert buffer[done : done + whole.nbytes].tobytes() == whole.tobytes()
        done += whole.nbytes


counts = [check(seed) for seed in range(200)]
if COMM.rank == 0:
    print(f"checked {len(counts)}, at most {max(counts)} batches")
