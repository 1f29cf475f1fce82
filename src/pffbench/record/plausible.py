"""Plausibility checks of the rows of `samples.csv`, of any origin."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from pffbench.text import one_line

if TYPE_CHECKING:
    from pffbench.record.samples import Sample

#: Largest count: programs that read the tables store counts in 64 bits.
LARGEST = 2**63 - 1


def whole_number(text: str) -> int:
    """Return the count in a cell.

    Raises
    ------
    ValueError
        The text is not a whole number, is less than -1 (unknown), or is too large.
    """
    number = int(text)
    if not -1 <= number <= LARGEST:
        raise ValueError(f"{one_line(text, 40)} is no count")
    return number


def refuse_implausible(samples: Iterable[Sample], path: str | Path) -> None:
    """Reject rows that no run writes: impossible seconds, or two rows of the same phase.

    A row that was recorded as not valid may hold the times of a clock that ran backwards.

    Parameters
    ----------
    samples : iterable of Sample
        All rows of a table, in order.
    path : str or Path
        The table, for messages.

    Raises
    ------
    ValueError
        Names the first such row.
    """
    known: dict[tuple[str, int], set[str]] = {}
    line = 2
    for key, rows in groupby(samples, attrgetter("case", "repetition")):
        repetition = list(rows)
        phases = {row.phase for row in repetition}
        seconds = [row.own_max for row in repetition]
        seconds += [row.job for row in repetition]
        twice = len(phases) < len(repetition) or not phases.isdisjoint(known.get(key, ()))
        if twice or min(seconds) < 0 or not sum(seconds) < math.inf:
            _look_closely(repetition, known.get(key, set()), f"{path} line", line)
        known[key] = phases | known[key] if key in known else phases
        line += len(repetition)


def _look_closely(rows: Iterable[Sample], known: set[str], place: str, first: int) -> None:
    """Reject the first implausible row of a repetition, if any."""
    seen = set(known)
    for line, row in enumerate(rows, start=first):
        for name, seconds in (("own_max", row.own_max), ("seconds", row.job)):
            if row.valid and not 0 <= seconds < math.inf:
                raise ValueError(f"{place} {line}: {name} is {seconds}, which are no seconds")
        if row.phase in seen:
            phase = one_line(row.phase, 40)
            raise ValueError(f"{place} {line}: {phase} of this repetition stands there twice")
        seen.add(row.phase)
