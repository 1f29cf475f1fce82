"""How many bytes were moved for each byte that a read wanted, by what was counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pffbench.results.counters import read_counts

if TYPE_CHECKING:
    from pffbench.results.summary import CaseSummary

#: Case → phase and counter → median over the repetitions that count, of all ranks together.
Medians = Mapping[str, Mapping[tuple[str, str], float]]

#: Headings of a table, with what each tells: the pages or chunks that reads lie in, what went
#: through read(2) and its like, and what the kernel fetched from a device meanwhile.
AMPLIFICATIONS = {
    "×touched": "touched_bytes",
    "×called": "read_bytes",
    "×device": "device_read_bytes",
}


def median_counts(directory: str | Path) -> Medians:
    """Return what the repetitions of a run have counted; empty where nothing was.

    Raises
    ------
    ValueError
        `counters.csv` is not a table of counts.
    """
    totals: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_counts(directory):
        if not row.warmup:
            totals[row.case][row.phase, row.counter].append(row.total)
    return {
        case: {what: median(values) for what, values in counted.items()}
        for case, counted in totals.items()
    }


def amplification(case: CaseSummary, counter: str) -> float | None:
    """Return a counter of reading over the bytes that were wanted; None where it was not counted.

    Parameters
    ----------
    case : CaseSummary
        The case.
    counter : str
        Such as ``touched_bytes``.
    """
    counted = case.counts.get(("read", counter))
    return None if counted is None or not case.read_bytes else counted / case.read_bytes
