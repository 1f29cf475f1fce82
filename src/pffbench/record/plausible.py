"""Limits of what a row of a table, of any origin, can hold."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from pffbench.text import one_line

if TYPE_CHECKING:
    from pffbench.record.samples import Sample

#: Largest count: programs that read the tables store counts in 64 bits.
LARGEST = 2**63 - 1
Natural = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
#: A count that is -1 where it is unknown.
Count = Annotated[int, msgspec.Meta(ge=-1, le=LARGEST)]


def refuse_implausible(samples: Iterable[Sample], path: str | Path) -> None:
    """Reject rows that no run writes.

    These have impossible seconds, are the second of a phase, or are of another environment than
    their case.

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
    known: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for line, row in enumerate(samples, start=2):
        for name, seconds in (("own_max", row.own_max), ("seconds", row.seconds)):
            if not 0 <= seconds < math.inf and row.valid:
                told = f"{name} is {seconds}, which are no seconds"
                raise ValueError(f"{path} line {line}: {told}")
        if row.environment != (own := row.case.partition("@")[2]):
            other = one_line(row.environment, 40) or "none"
            told = f"environment is {other}, and that of the case is {own or 'none'}"
            raise ValueError(f"{path} line {line}: {told}")
        phases = known[row.case, row.repetition]
        if row.phase in phases:
            told = f"{one_line(row.phase, 40)} of this repetition stands there twice"
            raise ValueError(f"{path} line {line}: {told}")
        phases.add(row.phase)
