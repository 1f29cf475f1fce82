"""What rows of `samples.csv` must be like to be believed, whoever wrote them."""

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

#: No count is larger: programs that read the tables keep them in 64 bits.
LARGEST = 2**63 - 1


def whole_number(text: str) -> int:
    """Return a count that a cell holds.

    Raises
    ------
    ValueError
        It is no whole number, less than -1, which says that it is not known, or too large.
    """
    number = int(text)
    if not -1 <= number <= LARGEST:
        raise ValueError(f"{one_line(text, 40)} is no count")
    return number


def refuse_implausible(samples: Iterable[Sample], path: str | Path) -> None:
    """Refuse rows that no run writes: seconds that are none, or two rows of the same phase.

    A row that was recorded as not valid may hold what a clock told that ran backwards.

    Parameters
    ----------
    samples : iterable of Sample
        All rows of a table, in their order.
    path : str or Path
        The table, for messages.

    Raises
    ------
    ValueError
        With the first such row.
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
    """Refuse the row of a repetition that cannot be, if there is one."""
    seen = set(known)
    for line, row in enumerate(rows, start=first):
        for name, seconds in (("own_max", row.own_max), ("seconds", row.job)):
            if row.valid and not 0 <= seconds < math.inf:
                raise ValueError(f"{place} {line}: {name} is {seconds}, which are no seconds")
        if row.phase in seen:
            phase = one_line(row.phase, 40)
            raise ValueError(f"{place} {line}: {phase} of this repetition stands there twice")
        seen.add(row.phase)
