"""Cells and rows of `samples.csv`, of any origin: conversion and plausibility."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.text import one_line

if TYPE_CHECKING:
    from pffbench.record.samples import Sample

#: Largest count: programs that read the tables store counts in 64 bits.
LARGEST = 2**63 - 1
#: Counts that are known in every row.
_AT_LEAST_ONE = ("ranks", "reads")


def converter(name: str, kind: Any) -> Callable[[str], Any]:
    """Return what converts the cells of a column, by its name and the type of its values."""
    if kind is bool:
        return truth
    if kind is str:
        return str
    if kind is int:
        return partial(whole_number, lowest=1 if name in _AT_LEAST_ONE else -1)
    number = partial(whole_number, lowest=0) if kind == (int | None) else plain_float
    return lambda text: None if text == "" else number(text)


def refuse_odd_digits(text: str) -> None:
    """Reject numbers as only Python reads them: ``1_0``, digits of other scripts.

    Raises
    ------
    ValueError
        The text has such characters.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{one_line(text, 40)} is no number: digits 0 to 9 are allowed")


def truth(text: str) -> bool:
    """Return the truth value in a cell."""
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def plain_float(text: str) -> float:
    """Return the number in a cell; `refuse_odd_digits` says which are refused."""
    refuse_odd_digits(text)
    return float(text)


def whole_number(text: str, lowest: int = -1) -> int:
    """Return the count in a cell.

    Parameters
    ----------
    text : str
        The cell.
    lowest : int
        The least value; -1 stands for unknown.

    Raises
    ------
    ValueError
        The text is not a whole number, is less than ``lowest``, or is too large.
    """
    refuse_odd_digits(text)
    number = int(text)
    if not lowest <= number <= LARGEST:
        raise ValueError(f"{one_line(text, 40)} is no count")
    return number


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
    known: dict[tuple[str, int], set[str]] = {}
    line = 2
    for key, rows in groupby(samples, attrgetter("case", "repetition")):
        repetition = list(rows)
        phases = {row.phase for row in repetition}
        seconds = [row.own_max for row in repetition]
        seconds += [row.job for row in repetition]
        environments = {row.environment for row in repetition}
        elsewhere = environments != {key[0].partition("@")[2]}
        twice = len(phases) < len(repetition) or not phases.isdisjoint(known.get(key, ()))
        if elsewhere or twice or min(seconds) < 0 or not sum(seconds) < math.inf:
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
        if row.environment != (own := row.case.partition("@")[2]):
            other = one_line(row.environment, 40) or "none"
            raise ValueError(
                f"{place} {line}: environment is {other}, and that of the case is {own or 'none'}"
            )
        if row.phase in seen:
            phase = one_line(row.phase, 40)
            raise ValueError(f"{place} {line}: {phase} of this repetition stands there twice")
        seen.add(row.phase)
