"""Ranking of ways for a purpose: the fastest one, and those not distinguished from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np

from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, Decision, decide
from pffbench.summary.rank_test import Ratio, Times, fastest_of
from pffbench_analysis.recommend.candidates import Candidate, Purpose


class WayStanding(StrEnum):
    """Standing of a way relative to the fastest one."""

    FIRST = "smallest median"
    SLOWER = "slower"
    EQUAL = "equally fast"
    OPEN = "not decided"


@dataclass(frozen=True)
class RankedWay:
    """A way with its time and its standing.

    Parameters
    ----------
    candidate : Candidate
        The way.
    median : float
        Seconds of the purpose, the median over repetitions.
    ratio : Ratio or None
        Its time over that of the first one; None for the first one.
    standing : WayStanding
        Its standing.
    """

    candidate: Candidate
    median: float
    ratio: Ratio | None
    standing: WayStanding


@dataclass(frozen=True)
class Recommendation:
    """Ranking of the ways for a purpose.

    Parameters
    ----------
    purpose : Purpose
        The purpose.
    placed : tuple of RankedWay
        The ways, the fastest first; empty without a conclusion.
    why_not : str
        Reason for the lack of a conclusion; mostly empty.
    """

    purpose: Purpose
    placed: tuple[RankedWay, ...]
    why_not: str = ""

    @property
    def first(self) -> RankedWay:
        """The way with the smallest median."""
        return self.placed[0]

    @property
    def ties(self) -> list[RankedWay]:
        """The ways that are not shown to be slower than the first one."""
        return [p for p in self.placed if p.standing in (WayStanding.EQUAL, WayStanding.OPEN)]

    @property
    def slower(self) -> list[RankedWay]:
        """The ways that are shown to be slower."""
        return [placed for placed in self.placed if placed.standing is WayStanding.SLOWER]


def judge(
    questions: Sequence[tuple[Sequence[Candidate], Purpose]], design: Design
) -> list[Recommendation]:
    """Compare ways with each other, for some purposes at once.

    The rule is that of the headline (`pffbench.summary.inference.decide`). All pairs of ways of all
    questions are one family of comparisons: the probability that any claim of a difference is
    false is at most 5 %.

    Parameters
    ----------
    questions : sequence of (sequence of Candidate, Purpose)
        Ways, and the purpose that they are judged by.
    design : Design
        Plan of the repetitions.
    """
    times = [[way.seconds(purpose) or None for way in ways] for ways, purpose in questions]
    return [
        _answer(ways, purpose, own, decisions, paired=design.paired)
        for (ways, purpose), own, decisions in zip(
            questions, times, compared(times, design), strict=True
        )
    ]


def compared(
    questions: Sequence[Sequence[Times | None]], design: Design
) -> list[dict[tuple[int, int], Decision]]:
    """Compare all pairs of ways of some questions at once.

    Parameters
    ----------
    questions : sequence of sequence of dict or None
        For each question the seconds by block of each way; None for a way without usable times.
    design : Design
        Plan of the repetitions.

    Returns
    -------
    list of dict
        For each question the decision on each pair, by the indices of the ways, the smaller first.
    """
    tables = []
    for times in questions:
        named = {f"{number:06d}": own for number, own in enumerate(times) if own}
        tables.append(ComparisonTable(named, tuple(combinations(named, 2)), design.paired))
    found: list[dict[tuple[int, int], Decision]] = [{} for _ in questions]
    for (question, a, b), decision in decide(tables, design.looks, margin=design.margin).items():
        found[question][int(a), int(b)] = decision
    return found


def _answer(
    candidates: Sequence[Candidate],
    purpose: Purpose,
    times: Sequence[Times | None],
    decisions: Mapping[tuple[int, int], Decision],
    *,
    paired: bool,
) -> Recommendation:
    medians = {n: float(np.median(list(own.values()))) for n, own in enumerate(times) if own}
    if not medians:
        return Recommendation(purpose, (), "it was not measured")
    ways = [candidates[number] for number in medians]
    if short := [way for way in ways if way.warned(purpose, "below_resolution")]:
        return Recommendation(
            purpose,
            (),
            f"too short to be told apart from the harness ({short[0].label}); take larger arrays",
        )
    named = {f"{n:06d}": own for n, own in enumerate(times) if own}
    first = int(fastest_of(named, paired=paired))
    placed = [RankedWay(candidates[first], medians[first], None, WayStanding.FIRST)]
    for number in sorted(medians.keys() - {first}, key=lambda n: (medians[n], n)):
        decision = _with_first(number, first, decisions)
        placed.append(
            RankedWay(candidates[number], medians[number], decision.ratio, _standing(decision))
        )
    return Recommendation(purpose, tuple(placed))


def _with_first(
    number: int, first: int, decisions: Mapping[tuple[int, int], Decision]
) -> Decision:
    """Return the decision on a way and the first one; its ratio is that of their times."""
    unknown = Decision(Ratio.unknown())
    if number < first:
        return decisions.get((number, first), unknown)
    return decisions.get((first, number), unknown).inverse


def _standing(decision: Decision) -> WayStanding:
    if decision.longer:
        return WayStanding.SLOWER
    return WayStanding.EQUAL if decision.equivalent else WayStanding.OPEN
