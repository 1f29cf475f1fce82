"""Cells and rows of `samples.csv`, of any origin: conversion and plausibility."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
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
    known: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for line, row in enumerate(samples, start=2):
        for name, seconds in (("own_max", row.own_max), ("seconds", row.job)):
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
