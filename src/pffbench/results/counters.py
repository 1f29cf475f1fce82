"""`counters.csv`: what was counted in the phases, by the kernel and by the workloads."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pffbench.results.gather import Count
from pffbench.results.samples import append_rows

COLUMNS = ("case", "repetition", "warmup", "phase", "counter", "total", "largest")
NAME = "counters.csv"


@dataclass(frozen=True, slots=True)
class Counted:
    """A row; `docs/results.md` tells of the columns."""

    case: str
    repetition: int
    warmup: bool
    phase: str
    counter: str
    total: float
    largest: float


def append_counts(
    directory: str | Path, case: str, repetition: int, warmup: bool, counts: Sequence[Count]
) -> None:
    """Append what a repetition has counted; the file is made with the first count."""
    path = Path(directory, NAME)
    head: list[Iterable[object]] = [] if path.exists() else [COLUMNS]
    rows = (
        (
            case,
            repetition,
            str(warmup).lower(),
            c.phase,
            c.what,
            f"{c.total:.9g}",
            f"{c.largest:.9g}",
        )
        for c in counts
    )
    append_rows(path, [*head, *rows])


def read_counts(directory: str | Path) -> list[Counted]:
    """Read all whole rows of a run; empty where nothing was counted.

    A repetition that was cut short while it was recorded is there twice in a run that went on:
    its last rows count.

    Raises
    ------
    ValueError
        The file is not a table of counts.
    """
    path = Path(directory, NAME)
    if not path.exists():
        return []
    found: dict[tuple[str, int, str, str], Counted] = {}
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(line for line in file if line.endswith("\n"))
        try:
            if tuple(next(lines, ())) != COLUMNS:
                raise ValueError(f"{path} is not a table of counts of this version of pffbench")
            for cells in lines:
                row = _counted(cells, f"{path} line {lines.line_num}")
                found[row.case, row.repetition, row.phase, row.counter] = row
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a table of counts: {error}") from None
    return list(found.values())


def _counted(cells: Sequence[str], place: str) -> Counted:
    try:
        case, repetition, warmup, phase, counter, total, largest = cells
        return Counted(
            case, int(repetition), warmup == "true", phase, counter, float(total), float(largest)
        )
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
