"""Choices for a kind of data: the smallest, the fastest, and a balance of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pffbench.record.run_json import RunRecord
from pffbench_analysis.pareto.points import CompressionPoint, DataKind
from pffbench_analysis.recommend.candidates import READING, WRITING, Candidate, Purpose
from pffbench_analysis.recommend.judge import Recommendation, judge

BOTH = Purpose("writing and reading once", {"write_total": 1.0, "read_total": 1.0})
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
        The way; None without a conclusion.
    ties : tuple of CompressionPoint
        Other ways that are not distinguished from it.
    why_not : str
        Reason for the lack of a conclusion or of a claimed difference; mostly empty.
    """

    purpose: str
    point: CompressionPoint | None
    ties: tuple[CompressionPoint, ...] = ()
    why_not: str = ""

    @property
    def sure(self) -> bool:
        """Whether it is shown to be better than every other way."""
        return self.point is not None and not self.ties and not self.why_not


@dataclass(frozen=True)
class _TimesBytes(Candidate):
    """A way whose seconds are multiplied by its stored bytes."""

    stored_bytes: float = 1.0

    def seconds(self, purpose: Purpose) -> dict[int, float]:
        return {b: s * self.stored_bytes for b, s in super().seconds(purpose).items()}


def choices(kind: DataKind) -> tuple[Choice, ...]:
    """Choose for the smallest files, the fastest writing, the fastest reading, and the balance.

    Times are judged as `pffbench recommend` judges them. Ratios are compared with the three digits
    that are shown; of equal ones the fastest written is taken.
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
    equal = [point for point in kind.points if point.shown_ratio == best]
    equal.sort(key=lambda p: float("inf") if p.write is None else p.write.seconds.median)
    return Choice(SMALLEST, equal[0], tuple(equal[1:]))


def _judged(kind: DataKind) -> Iterator[Choice]:
    own = [point.candidate for point in kind.points]
    held = [
        _TimesBytes(**vars(point.candidate), stored_bytes=point.stored) for point in kind.points
    ]
    questions: list[tuple[Sequence[Candidate], Purpose]] = [
        (own, WRITING), (own, READING), (held, BOTH),
    ]  # fmt: skip
    answers = judge(questions, kind.work.design)
    for name, (candidates, _), answer in zip(
        (WRITTEN, READ, BALANCED), questions, answers, strict=True
    ):
        points = dict(zip(map(id, candidates), kind.points, strict=True))
        yield _choice(name, answer, points)


def _choice(name: str, answer: Recommendation, points: dict[int, CompressionPoint]) -> Choice:
    if not answer.placed:
        return Choice(name, None, (), answer.why_not)
    ties = tuple(points[id(placed.candidate)] for placed in answer.ties)
    return Choice(name, points[id(answer.first.candidate)], ties, answer.why_not)
