"""Choices for a kind of data: the smallest, the fastest, and a balance of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pffbench.record.run_json import RunRecord
from pffbench_analysis.pareto.points import CompressionPoint, DataKind

SMALLEST, WRITTEN, READ, BALANCED = (
    "smallest files", "fastest writing", "fastest reading", "balance",
)  # fmt: skip
#: Definition of the balance.
RULE = (
    "balance: the least product of stored bytes and of the time for writing and reading once, so "
    "that half the bytes are worth twice the time"
)


@dataclass(frozen=True)
class Choice:
    """The way chosen for a purpose.

    Parameters
    ----------
    purpose : str
        The purpose.
    point : CompressionPoint or None
        The way; None where nothing is decided.
    ties : tuple of CompressionPoint
        Other ways that are as small, or equally fast; where nothing is decided, all ways that may
        be the fastest.
    why_not : str
        Why nothing is decided; mostly empty.
    """

    purpose: str
    point: CompressionPoint | None
    ties: tuple[CompressionPoint, ...] = ()
    why_not: str = ""


def choices(kind: DataKind) -> tuple[Choice, ...]:
    """Choose for the smallest files, the fastest writing, the fastest reading, and the balance.

    Times are judged as `pffbench recommend` judges them. Ratios are compared with the three digits
    that are shown.
    """
    return (_smallest(kind), *_judged(kind))


def barred(record: RunRecord) -> str:
    """Return the reason why a run allows no recommendation; empty if it does."""
    if record.objection:
        return f"nothing is recommended: the run is INVALID: {record.objection}"
    if record.valid is None:
        return "nothing is recommended: the run has no verdict, so nobody has verified its data"
    return ""


def _smallest(kind: DataKind) -> Choice:
    best = max(point.shown_ratio for point in kind.points)
    first, *equal = (point for point in kind.points if point.shown_ratio == best)
    return Choice(SMALLEST, first, tuple(equal))


def _judged(kind: DataKind) -> Iterator[Choice]:
    for name, answer in zip((WRITTEN, READ, BALANCED), kind.answers.values(), strict=True):
        best = tuple(kind.points[placed.number] for placed in answer.best)
        if len(answer.placed) == 1:
            yield Choice(name, None, (), f"only {best[0].name} was measured")
        elif answer.taken is not None:
            yield Choice(name, best[0], best[1:])
        else:
            yield Choice(name, None, best, answer.why_not or f"{answer.remedy} would decide it")
