"""Study 1's way to measure, written down as a program, against the cases "nearest to the study".

    setup/run --zarr2 python benchmarks/study1.py [--pairs 7] [--place /dev/shm]

Both run in turns in one process: a file with 512 datasets of 128 and of 256 floats, copied before
it is read. A clock goes around the one call of each step, as the authors of the study did it; the
times of pffbench are those of the phases that stand beside the published numbers. Zarr is measured
by version 2 of zarr-python, which the study had, and is left out where there is another version.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jobs import python, run_ranks
from repetition import Repetitions, scratch_below, the_case
from rows import Mark, Ratio, Row, not_measured
from script import Given, main

from pffbench.errors import UserError
from pffbench.parallel.clock import collector_off

DATASETS, LENGTHS = 512, (128, 256)
_MARKS = (Mark("at most", 1.5), Mark("at least", 1 / 1.5))
_CASE = (
    "workload: datasets, layout: file_per_process, settings: defaults, order: interleaved, "
    f"read_sink: print, cache: copied, datasets: {DATASETS}"
)
_NEAREST = {
    "hdf5": "backend: hdf5, hdf5: {api: high_level}",
    "netcdf4": "backend: netcdf4, netcdf4: {dimensions: unlimited_shared, enddef: implicit}",
    "zarr2": "backend: zarr2",
}
#: Steps of the study, and our phases.
_STEPS = {"create": "define", "write": "write", "open": "open_array", "read": "read"}


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    rows: list[Row] = []
    with given.directory() as place:
        for name in _NEAREST:
            for length in LENGTHS:
                told = [name, str(length), str(given.pairs), str(place)]
                said = run_ranks(1, python(__file__, "--on-a-rank", *told)).splitlines()[-1]
                rows += _rows(f"{name} [{length}]", json.loads(said))
    return rows


def _rows(what: str, found: dict[str, Any]) -> Iterator[Row]:
    for step in _STEPS:
        name = f"{what}, {step}"
        if "missing" in found:
            yield not_measured(name, "the study's way", _MARKS[0], found["missing"])
            continue
        ratio = Ratio.of(found[step])
        ours, theirs = (
            f"{statistics.median(c) * 1e3:.4f} ms" for c in zip(*found[step], strict=True)
        )
        # The mark that is nearer: a step must be neither slower nor faster by more than half.
        yield Row(name, "the study's way", _MARKS[ratio.middle < 1], ratio, ours, theirs)


def _on_a_rank(name: str, length: int, count: int, place: Path) -> dict[str, Any]:
    """Measure pairs of one library: ours and the other's seconds for a dataset, by step."""
    try:
        case = the_case(f"{_CASE}, shape: [{length}], {_NEAREST[name]}")
    except UserError as error:
        return {"missing": str(error)}
    pairs: dict[str, list[tuple[float, float]]] = {step: [] for step in _STEPS}
    with scratch_below(place) as scratch, Path(os.devnull).open("w") as nowhere:
        directory = Path(scratch.make_directory(f"study-{case.id}"))
        ours = Repetitions(case, scratch)
        for number in range(count + 1):  # the first one warms up both
            if number % 2:
                our, their = _phases(ours), _study(name, length, directory, nowhere)
            else:
                their, our = _study(name, length, directory, nowhere), _phases(ours)
            if number:
                for step in _STEPS:
                    pairs[step].append((our[step], their[step]))
    return pairs


def _phases(repetitions: Repetitions) -> dict[str, float]:
    seconds = repetitions.one()
    return {step: seconds[phase] / DATASETS for step, phase in _STEPS.items()}


def _study(name: str, length: int, place: Path, nowhere: Any) -> dict[str, float]:
    """Do what the study does with one file; return seconds for a dataset, by step."""
    clock, spent = time.perf_counter, dict.fromkeys(_STEPS, 0.0)
    written, copy = place / "some", place / "some_copy"
    with collector_off():
        file = _opened(name, written, "w")
        if name == "netcdf4":
            file.createDimension("x", None)
        for i in range(DATASETS):
            data = np.random.default_rng().random(length, np.float32)
            if name == "netcdf4":
                begin = clock()
                dataset = file.createVariable(f"dataset_{i}", "f", ("x",))
            else:
                begin = clock()
                dataset = file.create_dataset(f"dataset_{i}", shape=[length], dtype="f")
            created = clock()
            dataset[:length] = data
            spent["write"] += clock() - created
            spent["create"] += created - begin
        _close(name, file)
        (shutil.copytree if written.is_dir() else shutil.copy)(written, copy)
        file = _opened(name, copy, "r")
        for i in range(DATASETS):
            if name == "netcdf4":
                begin = clock()
                dataset = file.variables[f"dataset_{i}"]
            else:
                begin = clock()
                dataset = file[f"dataset_{i}"]
            opened = clock()
            print(dataset[:length], file=nowhere)
            spent["read"] += clock() - opened
            spent["open"] += opened - begin
        _close(name, file)
    for path in (written, copy):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {step: seconds / DATASETS for step, seconds in spent.items()}


def _opened(name: str, path: Path, mode: str) -> Any:
    if name == "hdf5":
        import h5py

        return h5py.File(path, mode)
    if name == "netcdf4":
        import netCDF4

        return netCDF4.Dataset(path, mode, format="NETCDF4")
    import zarr

    return zarr.open(str(path), mode)


def _close(name: str, file: Any) -> None:
    if name != "zarr2":
        file.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-a-rank"]:
        name, length, pairs, place = sys.argv[2:]
        print(json.dumps(_on_a_rank(name, int(length), int(pairs), Path(place))))
    else:
        main(measure, __doc__)
