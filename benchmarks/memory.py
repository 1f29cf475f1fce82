"""Peak memory of a rank beside its imports, in blocks; and whether it grows with what a run has.

    python benchmarks/memory.py [--ranks 2] [--place DIRECTORY]

Each row compares two jobs of `python -m pffbench run` by the largest resident memory of any rank in
any repetition, as `samples.csv` has it. First each backend with a block of 64 MiB a rank beside the
same with a few bytes, which is what the imports take. Then the same bytes a rank in more datasets,
cases or repetitions beside few: there the ratio is that of the whole memory.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jobs import python, run_ranks
from rows import Mark, Ratio, Row
from script import Given, main

_BLOCKS = Mark("at most", 2.2)
_FLAT = Mark("at most", 1.05)
_MIB = 2**20
_BLOCK = 64 * _MIB
_BACKENDS = ("posix", "mpiio", "hdf5", "netcdf4", "zarr", "tensorstore")
#: Elements of float32 in a MiB.
_ROW = _MIB // 4


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    ranks = given.ranks_or(2)[0]
    with given.directory() as place:
        jobs = _Jobs(ranks, place)
        return [*_backends(jobs), *_growth(jobs)]


class _Jobs:
    """Runs experiments on some ranks, each with a directory of its own."""

    def __init__(self, ranks: int, place: Path) -> None:
        self._ranks = ranks
        self._place = place
        self._count = 0

    def peak(self, cases: Sequence[dict[str, Any]], repetitions: int = 2) -> int:
        """Return the largest resident memory of any rank, in bytes."""
        self._count += 1
        place = self._place / str(self._count)
        place.mkdir()
        experiment = place / "memory.yaml"
        told = {"name": "memory", "repetitions": repetitions, "warmup": 0, "roofline": False}
        experiment.write_text(json.dumps({**told, "cases": list(cases)}), encoding="utf-8")
        out = place / "results"
        arguments = ["run", str(experiment), "--out", str(out), "--scratch", str(place)]
        run_ranks(self._ranks, python("-m", "pffbench", *arguments, "--progress", "none"))
        with (out / "samples.csv").open(newline="", encoding="utf-8") as file:
            return max(int(row["peak_memory"]) for row in csv.DictReader(file))


def _backends(jobs: _Jobs) -> Iterator[Row]:
    for backend in _BACKENDS:
        if backend == "tensorstore" and find_spec(backend) is None:
            continue
        case = {"workload": "hyperslab", "backend": backend, "layout": "file_per_process"}
        imports = jobs.peak([{**case, "shape_per_rank": [1, 16]}])
        peak = jobs.peak([{**case, "shape_per_rank": [_BLOCK // _MIB, _ROW]}])
        blocks = (peak - imports) / _BLOCK
        yield Row(
            f"peak memory, {backend}, {_BLOCK // _MIB} MiB a rank",
            "the block",
            _BLOCKS,
            Ratio(blocks, blocks, blocks, 1),
            f"{(peak - imports) / _MIB:.1f} MiB beside imports",
            f"imports {imports / _MIB:.1f} MiB",
        )


def _growth(jobs: _Jobs) -> Iterator[Row]:
    """Yield a row for each of what memory must not grow with."""
    small = {"workload": "datasets", "layout": "own"}
    sixteen = {**small, "datasets_per_rank": 16, "shape": [_ROW // 4]}
    many = {**small, "datasets_per_rank": 2048, "shape": [_ROW // 512]}
    for backend, mark in (("null", _FLAT), ("hdf5", None)):  # HDF5 itself keeps 30 kB of each
        peaks = (jobs.peak([{**case, "backend": backend}]) for case in (many, sixteen))
        what = f"2 048 datasets a rank, {backend}"
        yield _flat(what, "16, the same bytes", *peaks, mark)
    few = {**sixteen, "backend": "hdf5"}
    forty, two = ({**few, "hdf5": {"chunk_cache_slots": list(range(1, n + 1))}} for n in (40, 2))
    yield _flat("40 cases", "2 cases", jobs.peak([forty]), jobs.peak([two]))
    yield _flat("40 repetitions", "2 repetitions", jobs.peak([few], 40), jobs.peak([few]))


def _flat(what: str, against: str, more: int, less: int, mark: Mark | None = _FLAT) -> Row:
    ratio = more / less
    figures = (f"{found / _MIB:.1f} MiB" for found in (more, less))
    return Row(f"memory, {what}", against, mark, Ratio(ratio, ratio, ratio, 1), *figures)


if __name__ == "__main__":
    main(measure, __doc__)
