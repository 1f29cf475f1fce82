"""Data through writer ranks against a hand-written loop of mpi4py and os.pwrite.

    python benchmarks/exchange.py [--pairs 7] [--ranks 2 4] [--place /dev/shm]

Each rank has a block of a 64 MiB array of float32, cut along both axes; half of the ranks are
writers, each of equal slabs. Both programs run in turns in one job: exchange and write, each behind
a barrier, of one file that they have created before. The loop packs with NumPy for MPI_Alltoallv,
as such loops do. The second row has the exchanges alone.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jobs import python, run_ranks
from rows import Mark, Ratio, Row
from script import Given, main

SIDE = 4096
#: Of the rate of the hand-written loop.
_MARK = Mark("at least", 0.95)


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    rows = []
    with given.directory() as place:
        for ranks in given.ranks_or(2, 4):
            told = python(__file__, "--on-ranks", str(given.pairs), str(place))
            found = json.loads(run_ranks(ranks, told).splitlines()[-1])
            rows += [_row(part, ranks, pairs) for part, pairs in found.items()]
    return rows


def _row(part: str, ranks: int, pairs: Sequence[tuple[float, float]]) -> Row:
    ours, theirs = (f"{statistics.median(c) * 1e3:.1f} ms" for c in zip(*pairs, strict=True))
    rates = Ratio.of((their, our) for our, their in pairs)
    mark = _MARK if part != "exchange" else None
    return Row(f"posix, {part}, {ranks} ranks", "mpi4py loop", mark, rates, ours, theirs)


def _on_ranks(pairs: int, place: Path) -> dict[str, list[tuple[float, float]]]:
    """Measure pairs on these ranks; the slowest rank counts."""
    from mpi4py import MPI
    from repetition import Repetitions, the_case

    from pffbench.storage.scratch import Scratch

    comm = MPI.COMM_WORLD
    writers = max(1, comm.size // 2)
    case = the_case(
        f"workload: hyperslab, shape: [{SIDE}, {SIDE}], decomposition: block, layout: shared, "
        f"backend: posix, rearrange: box, writers: {{count: {writers}}}"
    )
    path = comm.bcast(Scratch.create(str(place), "one").directory if comm.rank == 0 else None)
    ours, loop = Repetitions(case, Scratch(path, "one")), Loop(writers, Path(path) / "loop")
    found: dict[str, list[tuple[float, float]]] = {"exchange + write": [], "exchange": []}
    for number in range(pairs + 1):  # the first one warms up both
        if number % 2:
            our, their = ours.one(), loop.one()
        else:
            their, our = loop.one(), ours.one()
        both = [[our["exchange"], our["write"]], [their["exchange"], their["write"]]]
        slowest = np.empty((2, 2))
        comm.Allreduce(np.array(both), slowest, op=MPI.MAX)
        if number:
            (e, w), (loop_e, loop_w) = slowest.tolist()
            found["exchange + write"].append((e + w, loop_e + loop_w))
            found["exchange"].append((e, loop_e))
    if comm.rank == 0:
        Scratch(path, "one").destroy()
    return found


class Loop:
    """The hand-written program."""

    def __init__(self, writers: int, path: Path) -> None:
        from mpi4py import MPI

        from pffbench.parallel.decomposition import process_grid

        self.comm: Any = MPI.COMM_WORLD
        self.path = path
        size, rank = self.comm.size, self.comm.rank
        rows, columns = process_grid(size, 2, "block")
        self.blocks = [
            (slice(r * SIDE // rows, (r + 1) * SIDE // rows),
             slice(c * SIDE // columns, (c + 1) * SIDE // columns))
            for r in range(rows) for c in range(columns)
        ]  # fmt: skip
        self.writers = [number * size // writers for number in range(writers)]
        mine = self.blocks[rank]
        shape = tuple(s.stop - s.start for s in mine)
        self.own = np.random.default_rng(rank).random(shape, np.float32)
        self.slabs = {
            w: (i * SIDE // writers, (i + 1) * SIDE // writers) for i, w in enumerate(self.writers)
        }
        begin, end = self.slabs.get(rank, (0, 0))
        self.begin = begin
        self.slab = np.empty((end - begin, SIDE), np.float32)
        self.packed = np.empty(self.own.size, np.float32)
        self.received = np.empty(self.slab.size, np.float32)

    def one(self) -> dict[str, float]:
        """Exchange and write once; return this rank's seconds."""
        self.comm.Barrier()
        begin = time.perf_counter()
        self.exchange()
        exchanged = time.perf_counter() - begin
        if self.comm.rank == 0:
            self.path.touch()
        self.comm.Barrier()
        descriptor = os.open(self.path, os.O_WRONLY) if self.slab.size else -1
        self.comm.Barrier()
        begin = time.perf_counter()
        if self.slab.size:
            os.pwrite(descriptor, memoryview(self.slab).cast("B"), self.begin * SIDE * 4)
        written = time.perf_counter() - begin
        self.comm.Barrier()
        if self.slab.size:
            os.close(descriptor)
        self.comm.Barrier()
        if self.comm.rank == 0:
            self.path.unlink()
        return {"exchange": exchanged, "write": written}

    def exchange(self) -> None:
        """Pack, exchange, and put what was received where it belongs."""
        size = self.comm.size
        rows, columns = self.blocks[self.comm.rank]
        to, at, done = [0] * size, [0] * size, 0
        for writer, (first, last) in self.slabs.items():
            low, high = max(first, rows.start), min(last, rows.stop)
            if low < high:
                part = self.own[low - rows.start : high - rows.start]
                at[writer], to[writer] = done, part.size
                self.packed[done : done + part.size].reshape(part.shape)[...] = part
                done += part.size
        come, from_, boxes, done = [0] * size, [0] * size, [], 0
        for rank, (rows, columns) in enumerate(self.blocks if self.slab.size else ()):
            low = max(self.begin, rows.start)
            high = min(self.begin + len(self.slab), rows.stop)
            if low < high:
                box = self.slab[low - self.begin : high - self.begin, columns]
                from_[rank], come[rank] = done, box.size
                boxes.append((box, done))
                done += box.size
        sent, received = (self.packed, (to, at)), (self.received, (come, from_))
        self.comm.Alltoallv(sent, received)
        for box, start in boxes:
            box[...] = self.received[start : start + box.size].reshape(box.shape)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-ranks"]:
        told = json.dumps(_on_ranks(int(sys.argv[2]), Path(sys.argv[3])))
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 0:
            print(told)
    else:
        main(measure, __doc__)
