"""`counters.csv`: counters of the kernel and of the workloads, by phase."""

from __future__ import annotations

import csv
import io
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import msgspec

from pffbench.errors import explained
from pffbench.parallel.process_counters import COUNTERS
from pffbench.record.gather import Count
from pffbench.record.plausible import Natural
from pffbench.record.samples import append_rows, whole_lines
from pffbench.regular_files import open_regular
from pffbench.text import one_line

COLUMNS = ("case", "repetition", "warmup", "phase", "counter", "total", "largest")
NAME = "counters.csv"
#: Counters that the state of the machine changes; all others are the same in every repetition of a
#: case. Those of a process have what MPI reads and writes, and others follow from them. Libraries
#: with threads close files after a call has returned, within its phase or not.
VARIABLE = frozenset(
    {
        *COUNTERS, "threads", "memory_added", "writing_ranks", "reading_ranks", "decodes_counted",
        "call_close",
    }
)  # fmt: skip


class Counted(msgspec.Struct, frozen=True, array_like=True):
    """One count of a phase: a row of `counters.csv`.

    Parameters
    ----------
    case : str
        Name of the case.
    repetition : int
        Number of the repetition, warm-ups included.
    warmup : bool
        ``true`` for a warm-up.
    phase : str
        Phase in which it was counted.
    counter : str
        Name of the counter.
    total : float
        Sum over all ranks.
    largest : float
        Largest value of any rank.
    """

    case: str
    repetition: Natural
    warmup: bool
    phase: str
    counter: str
    total: float
    largest: float


def append_counts(
    directory: str | Path, case: str, repetition: int, warmup: bool, counts: Sequence[Count]
) -> None:
    """Append the counters of a repetition; the first call with any creates the file."""
    path = Path(directory, NAME)
    head: list[Iterable[object]] = [] if path.exists() else [COLUMNS]
    rows = (
        (
            case,
            repetition,
            str(warmup).lower(),
            c.phase,
            c.what,
            _digits(c.total),
            _digits(c.largest),
        )
        for c in counts
    )
    append_rows(path, [*head, *rows])


def _digits(value: float) -> str:
    """Return a number as it is written: a whole one with all its digits, as bytes have ten."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.9g}"


def read_counts(directory: str | Path) -> list[Counted]:
    """Read all complete rows of a run; empty if nothing was counted.

    A repetition that was interrupted while it was recorded occurs twice in a resumed run; its last
    rows are used.

    Raises
    ------
    ValueError
        The file is not a table of counts.
    """
    path = Path(directory, NAME)
    if not os.path.lexists(path):
        return []
    found: dict[tuple[str, int, str, str], Counted] = {}
    with explained(f"{path} cannot be read", ValueError):
        data = open_regular(path)
    with io.TextIOWrapper(data, encoding="utf-8", newline="") as file:
        lines = csv.reader(whole_lines(file))
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
        row = msgspec.convert(cells, Counted, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"{place}: {one_line(str(error), 200)}") from None
    if len(cells) != len(COLUMNS) or not math.isfinite(row.total + row.largest):
        raise ValueError(f"{place}: these are no amounts")
    return row


def median_counts(directory: str | Path) -> dict[str, dict[tuple[str, str], float]]:
    """Return the counters of a run's repetitions; empty if nothing was counted.

    By case, then by phase and counter: the median over the repetitions that count, of all ranks
    together. Of a counter that only warm-ups have (``memory_added``) these are taken.

    Raises
    ------
    ValueError
        `counters.csv` is not a table of counts.
    """
    totals: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    warmups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in read_counts(directory):
        if row.warmup:
            warmups[row.case, row.phase, row.counter].append(row.total)
        else:
            totals[row.case][row.phase, row.counter].append(row.total)
    for (case, *what), values in warmups.items():
        if case in totals:
            totals[case].setdefault((what[0], what[1]), values)
    return {
        case: {what: median(values) for what, values in counted.items()}
        for case, counted in totals.items()
    }
