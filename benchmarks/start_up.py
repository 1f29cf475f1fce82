"""From the start of the job to the first phase, against a program that imports mpi4py and numpy.

    python benchmarks/start_up.py [--pairs 7] [--ranks 1 16 64]

Both are started by the same launcher in turns; seconds from the start of the launcher until the
last rank is there. With the `null` backend that is what pffbench itself takes; with `hdf5` it holds
the library too, which is told without a mark. The last row counts what a run with `hdf5` alone has
imported that it does not need.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs import python, run_ranks
from rows import Mark, Ratio, Row
from script import Given, main

_MARK = Mark("at most", 1.5)
#: Packages that a run with hdf5 alone has no use for.
NEEDLESS = (
    "zarr", "numcodecs", "netCDF4", "tensorstore", "pffbench_analysis", "pandas", "vl_convert",
    "altair", "jinja2", "scipy", "xarray",
)  # fmt: skip
#: Says when a rank is there in a file of its own: what ranks print gets mixed up.
_BARE = """\
from mpi4py import MPI
import numpy
import os, time
with open(f"{os.environ['THERE']}/{MPI.COMM_WORLD.rank}", "w") as file:
    file.write(str(time.time()))
"""
#: The command line of pffbench, which writes down when the first phase of a repetition begins. A
#: text for Python's -c: as a part of this file, the imports of this file would count as ours.
_FIRST_PHASE = f"""\
import sys
from pffbench.__main__ import main
from pffbench.parallel.clock import PhaseClock

phase = PhaseClock.phase

def first(clock, name, *told, **more):
    if name == "create":
        import os, time
        from mpi4py import MPI
        with open(f"{{os.environ['THERE']}}/{{MPI.COMM_WORLD.rank}}", "w") as file:
            file.write(str(time.time()))
    return phase(clock, name, *told, **more)

PhaseClock.phase = first
try:
    main(sys.argv[1:])
finally:
    print("needless", *(name for name in {NEEDLESS} if name in sys.modules), flush=True)
"""
_EXPERIMENT = """\
name: start-up
repetitions: 1
warmup: 0
roofline: false
cases: [{{workload: hyperslab, shape_per_rank: [16], backend: "{backend}"}}]
"""
_BACKENDS = ("null", "hdf5")


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    with given.directory() as place:
        for backend in _BACKENDS:
            _seconds(1, _run(backend, place), place)
        rows = [row for ranks in given.ranks_or(1, 16, 64) for row in _rows(given, ranks, place)]
        return [*rows, _imports(place)]


def _rows(given: Given, ranks: int, place: Path) -> Iterator[Row]:
    pairs: dict[str, list[tuple[float, float]]] = {backend: [] for backend in _BACKENDS}
    for number in range(given.pairs):
        bare = _seconds(ranks, python("-c", _BARE), place)
        for backend in list(pairs)[:: 1 if number % 2 else -1]:
            pairs[backend].append((_seconds(ranks, _run(backend, place), place), bare))
    for backend, found in pairs.items():
        ours, theirs = (f"{statistics.median(c):.2f} s" for c in zip(*found, strict=True))
        yield Row(
            f"start to first phase, {backend}, {ranks} rank{'s' if ranks > 1 else ''}",
            "from mpi4py import MPI; import numpy",
            _MARK if backend == "null" else None,
            Ratio.of(found),
            ours,
            theirs,
        )


def _imports(place: Path) -> Row:
    said = run_ranks(1, _run("hdf5", place), THERE=str(place)).splitlines()
    (line,) = (line for line in said if line.startswith("needless"))
    names = line.split()[1:]
    count = float(len(names))
    return Row(
        "needless imports of a run with hdf5 alone",
        "none of " + ", ".join(NEEDLESS),
        Mark("at most", 0),
        Ratio(count, count, count, 1),
        ", ".join(names) or "none",
    )


def _run(backend: str, place: Path) -> list[str]:
    """Return the command that runs the experiment with a backend, anew each time."""
    file = place / f"{backend}.yaml"
    file.write_text(_EXPERIMENT.format(backend=backend), encoding="utf-8")
    out = place / f"out-{time.time_ns()}"
    told = ["run", str(file), "--out", str(out), "--scratch", str(place), "--progress", "none"]
    return python("-c", _FIRST_PHASE, *told)


def _seconds(ranks: int, command: Sequence[str], place: Path) -> float:
    """Return the seconds until the last rank was there."""
    there = place / f"there-{time.time_ns()}"
    there.mkdir()
    begin = time.time()
    # Compiled modules are kept, wherever this is run: a package is compiled once, not in each job.
    kept = str(place / "compiled")
    run_ranks(
        ranks, command, THERE=str(there), PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=kept
    )
    times = [float(file.read_text()) for file in there.iterdir()]
    if len(times) != ranks:
        raise RuntimeError(f"{len(times)} of {ranks} ranks were there")
    return max(times) - begin


if __name__ == "__main__":
    main(measure, __doc__)
