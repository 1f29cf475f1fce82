"""Seconds of planning 100 000 cases, and of reporting on a million samples.

    python benchmarks/planning.py [--pairs 3] [--ranks 64] [--place DIRECTORY]

Each is a process of its own, as a person starts it, from its start to its end: `pffbench plan` of a
sweep over parameters of a workload (80 000 cases that can be run and 25 000 that are left out,
roofline included) and over options of a backend (100 000 cases), and `pffbench report` on the run
that `make_run.py` draws. The seconds that the processor worked are told beside: on a busy machine
they are the truer figure.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import make_run
from jobs import python
from rows import Mark, Ratio, Row
from script import Given, main

_PLAN = Mark("at most", 2, " s")
_REPORT = Mark("at most", 20, " s")
#: Cases, repetitions and ranks of a run with a million samples.
_MILLION = (24, 3788, 16)


def workload_sweep() -> dict[str, Any]:
    """Return an experiment of 100 000 combinations of parameters, half of HDF5's impossible."""
    return _experiment(
        workload="hyperslab",
        backend=["hdf5", "zarr"],
        layout=["own", "file_per_process"],
        shape_per_rank=[[8 * (1 + i % 10), 16 * (1 + i // 10)] for i in range(250)],
        dtype=["float32", "float64"],
        codec="gzip",
        level=list(range(10)),
        source=["uniform", "integers", "constant", "smooth", "cris"],
    )


def options_sweep() -> dict[str, Any]:
    """Return an experiment of 100 000 combinations of options."""
    options = {
        "chunk_cache": [1024 * (1 + i) for i in range(100)],
        "chunk_cache_slots": [1 + 2 * i for i in range(100)],
        "alignment": [4096 * (1 + i) for i in range(10)],
    }
    return _experiment(
        workload="hyperslab", backend="hdf5", layout="own", shape_per_rank=[64, 64], hdf5=options
    )


def _experiment(**entry: Any) -> dict[str, Any]:
    return {"name": "planning", "impossible": "skip", "cases": [entry]}


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    rows = []
    with given.directory() as place:
        for what, sweep in (("parameters", workload_sweep()), ("options", options_sweep())):
            path = place / f"{what}.yaml"
            path.write_text(json.dumps(sweep), encoding="utf-8")  # JSON is YAML
            for ranks in given.ranks_or(4, 64):
                plan = ["plan", str(path), "--ranks", str(ranks), "--scratch", str(place)]
                name = f"plan 100 000 cases, sweep over {what}, {ranks} ranks"
                rows.append(_row(name, _PLAN, plan, given.pairs))
        run = place / "million"
        run.mkdir()
        make_run.make(run, *_MILLION)
        rows.append(_row("report on 1 000 000 samples", _REPORT, ["report", str(run)], 1))
    return rows


def _row(what: str, mark: Mark, arguments: Sequence[str], times: int) -> Row:
    found = [_seconds(arguments) for _ in range(times)]
    wall, worked = (statistics.median(column) for column in zip(*found, strict=True))
    ratio = Ratio.of((seconds, 1.0) for seconds, _ in found)
    return Row(what, "a second", mark, ratio, f"{wall:.2f} s", f"{worked:.2f} s of the processor")


def _seconds(arguments: Sequence[str]) -> tuple[float, float]:
    """Return how long a command of pffbench takes, and how long the processor works for it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(python("-m", "pffbench", *arguments), check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, worked


if __name__ == "__main__":
    main(measure, __doc__)
