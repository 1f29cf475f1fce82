"""How the definition of datasets in one parallel HDF5 file grows with ranks and with datasets.

    python benchmarks/define.py [--ranks 1 4 16 64] [--place DIRECTORY]

Parallel HDF5 defines collectively: every rank makes every dataset in its own copy of the metadata.
So what a rank's processor works for it is what it would work in a job of that many ranks, however
many share a core here; the time that passes is not, with more ranks than cores.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs import python, run_ranks
from rows import Ratio, Row
from script import Given, main

_DATASETS = 2048
_COUNTED = "cpu_seconds"


def measure(given: Given) -> Sequence[Row]:
    """Return the rows, none of which has a mark."""
    with given.directory() as place:
        return list(_rows(given, place))


def _rows(given: Given, place: Path) -> Iterator[Row]:
    first: float | None = None
    for ranks in given.ranks_or(1, 4, 16, 64):
        passed, worked = _define(ranks, place / str(ranks))
        first = first or worked
        yield Row(
            f"define {_DATASETS} datasets in one HDF5 file, {ranks} ranks",
            "the processor of a rank of the first row",
            None,
            Ratio.of([(worked, first)]),
            f"{1e6 * worked / _DATASETS:.0f} µs of a rank's processor for each",
            f"{passed:.2f} s passed",
        )


def _define(ranks: int, place: Path) -> tuple[float, float]:
    """Return the seconds that passed, and those that the busiest rank's processor worked."""
    place.mkdir()
    experiment = place / "define.yaml"
    case = {"workload": "datasets", "backend": "hdf5", "layout": "own", "shape": [128]}
    told = {"name": "define", "counters": True, "roofline": False, "repetitions": 1, "warmup": 0}
    cases = [{**case, "datasets": _DATASETS}]
    experiment.write_text(json.dumps({**told, "cases": cases}), encoding="utf-8")
    out = place / "results"
    arguments = ["run", str(experiment), "--out", str(out), "--scratch", str(place)]
    run_ranks(ranks, python("-m", "pffbench", *arguments, "--progress", "none"))
    (passed,) = (row["seconds"] for row in _of_define(out / "samples.csv"))
    counted = _of_define(out / "counters.csv")
    worked = sum(float(row["largest"]) for row in counted if row["counter"] == _COUNTED)
    return float(passed), worked


def _of_define(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["phase"] == "define"]


if __name__ == "__main__":
    main(measure, __doc__)
