"""2 048 datasets of 128 floats against the shortest loop that a user would write.

    python benchmarks/small_datasets.py [--pairs 7] [--place /dev/shm]

Both run in turns in one process, each in new files, off the collector; each library has a process
of its own, since what others have left in memory would lie between what is prepared here. Compared
is the time from creating the file to having closed it, and from opening it to having closed it: the
phases of pffbench added up. Files are in memory and nothing waits, so the time is that of the
processor, by the same clock on both sides; what other programs take on a shared machine is not in.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import loops
import numpy as np
from jobs import python, run_ranks
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
        for name in LOOPS:
            told = [name, str(given.pairs), str(place)]
            said = run_ranks(1, python(__file__, "--on-a-rank", *told)).splitlines()[-1]
            rows += _rows(name, json.loads(said))
    return rows


def _rows(name: str, found: dict[str, Any]) -> Iterator[Row]:
    for part in _PARTS:
        what = f"{DATASETS} datasets, {name}, {part}"
        if "missing" in found:
            yield not_measured(what, "a loop", _MARK, found["missing"])
        else:
            yield _row(what, found[part])


def _on_a_rank(name: str, count: int, place: Path) -> dict[str, Any]:
    """Measure pairs of one library: ours and the loop's seconds, by part."""
    keys, loop = LOOPS[name]
    try:
        case = the_case(f"{CASE}, {keys}")
    except UserError as error:
        return {"missing": str(error)}
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
    return pairs


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
    if sys.argv[1:2] == ["--on-a-rank"]:
        print(json.dumps(_on_a_rank(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))))
    else:
        main(measure, __doc__)
