"""2 048 datasets of 128 floats against the shortest loop that a user would write.

    python benchmarks/small_datasets.py [--pairs 7] [--place /dev/shm]

Both run in this process in turns, each in new files, off the collector. Compared is the time from
creating the file to having closed it, and from opening it to having closed it: the phases of
pffbench added up. Files are in memory and nothing waits, so the time is that of the processor, by
the same clock on both sides; what other programs take on a shared machine is not in it.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import loops
import numpy as np
from repetition import Repetitions, scratch_below, the_case
from rows import Mark, Ratio, Row, not_measured
from script import Given, main

from pffbench.errors import UserError
from pffbench.parallel.clock import PhaseClock, collector_off

DATASETS, LENGTH = 2048, 128
_MARK = Mark("at most", 1.03)
CASE = f"workload: datasets, datasets: {DATASETS}, shape: [{LENGTH}], layout: file_per_process"
LOOPS: dict[str, tuple[str, loops.Loop]] = {
    "hdf5": ("backend: hdf5, chunks: contiguous", loops.hdf5),
    "hdf5 by slices": (
        "backend: hdf5, chunks: contiguous, hdf5: {api: high_level}",
        loops.hdf5_slices,
    ),
    "netcdf4": ("backend: netcdf4, chunks: contiguous", loops.netcdf4),
    "zarr": ("backend: zarr", loops.zarr),
    "tensorstore": ("backend: tensorstore", loops.tensorstore),
    "posix": ("backend: posix", loops.posix),
    "mpiio": ("backend: mpiio", loops.mpiio),
    "memmap": ("backend: memmap", loops.memmap),
}
_PARTS = {
    "write": ("create", "define", "write", "close"),
    "read": ("open", "open_array", "read", "close_read"),
}


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    rows: list[Row] = []
    with given.directory() as place:
        for name, (keys, loop) in LOOPS.items():
            rows += _rows(name, keys, loop, place, given.pairs)
    return rows


def _rows(name: str, keys: str, loop: loops.Loop, place: Path, count: int) -> Sequence[Row]:
    what = {part: f"{DATASETS} datasets, {name}, {part}" for part in _PARTS}
    try:
        case = the_case(f"{CASE}, {keys}")
    except UserError as error:
        return [not_measured(what[part], "a loop", _MARK, str(error)) for part in _PARTS]
    pairs: dict[str, list[tuple[float, float]]] = {part: [] for part in _PARTS}
    with scratch_below(place) as scratch:
        # As deep as our own files: a longer path takes longer to look up.
        directory = Path(scratch.make_directory(f"loop-{case.id}"))
        ours = Repetitions(case, scratch, partial(PhaseClock, now=time.process_time))
        for number in range(count + 1):  # the first one warms up both
            if number % 2:
                our, their = _phases(ours), _loop(loop, directory)
            else:
                their, our = _loop(loop, directory), _phases(ours)
            if number:
                for part in _PARTS:
                    pairs[part].append((our[part], their[part]))
    return [_row(what[part], pairs[part]) for part in _PARTS]


def _row(what: str, pairs: Sequence[tuple[float, float]]) -> Row:
    ours, theirs = (f"{statistics.median(c) * 1e3:.2f} ms" for c in zip(*pairs, strict=True))
    return Row(what, "the shortest loop", _MARK, Ratio.of(pairs), ours, theirs)


def _phases(repetitions: Repetitions) -> dict[str, float]:
    seconds = repetitions.one()
    return {part: sum(seconds[phase] for phase in phases) for part, phases in _PARTS.items()}


def _loop(loop: loops.Loop, place: Path) -> dict[str, float]:
    """Run a loop once and return its seconds."""
    path = place / "rank-000000"
    rows = np.random.default_rng(1).random((DATASETS, LENGTH), np.float32)
    out = np.full_like(rows, -1)
    with collector_off():
        begin = time.process_time()
        steps = loop(path, rows, out)
        next(steps)
        written = time.process_time()
        next(steps)
        done = time.process_time()
    if not np.array_equal(rows, out):
        sys.exit("a loop read other data than it wrote")
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {"write": written - begin, "read": done - written}


if __name__ == "__main__":
    main(measure, __doc__)
