"""Ranking of ways for a purpose: the fastest one, and those not distinguished from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, Decision, decide
from pffbench.summary.rank_test import Ratio, fastest_of
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
    measured = [_measured(candidates, purpose) for candidates, purpose in questions]
    tables = [
        ComparisonTable(times, tuple((a, b) for a in times for b in times if a < b))
        for times in measured
    ]
    decisions = decide(tables, design.looks, margin=design.margin)
    answers = []
    for place, ((candidates, purpose), times) in enumerate(zip(questions, measured, strict=True)):
        found = {(a, b): d for (i, a, b), d in decisions.items() if i == place}
        answers.append(_answer(candidates, purpose, times, found))
    return answers


def _measured(candidates: Sequence[Candidate], purpose: Purpose) -> dict[str, dict[int, float]]:
    """Return the seconds of the measured ways, by their index in the list."""
    return {
        f"{place:06d}": seconds
        for place, candidate in enumerate(candidates)
        if (seconds := candidate.seconds(purpose))
    }


def _answer(
    candidates: Sequence[Candidate],
    purpose: Purpose,
    times: Mapping[str, Mapping[int, float]],
    decisions: Mapping[tuple[str, str], Decision],
) -> Recommendation:
    if not times:
        return Recommendation(purpose, (), "it was not measured")
    ways = {name: candidates[int(name)] for name in times}
    if short := [c for c in ways.values() if c.warned(purpose, "below_resolution")]:
        return Recommendation(
            purpose,
            (),
            f"too short to be told apart from the harness ({short[0].label}); take larger arrays",
        )
    first = fastest_of(times)
    placed = [RankedWay(ways[first], _median(times[first]), None, WayStanding.FIRST)]
    for name in sorted(set(times) - {first}, key=lambda name: (_median(times[name]), name)):
        decision = _beside(name, first, decisions)
        placed.append(
            RankedWay(ways[name], _median(times[name]), decision.ratio, _standing(decision))
        )
    return Recommendation(purpose, tuple(placed))


def _beside(name: str, first: str, decisions: Mapping[tuple[str, str], Decision]) -> Decision:
    """Return the decision on a way and the first one; its ratio is that of their times."""
    if name < first:
        return decisions.get((name, first), Decision(Ratio.unknown()))
    return decisions.get((first, name), Decision(Ratio.unknown())).inverse


def _standing(decision: Decision) -> WayStanding:
    if decision.longer:
        return WayStanding.SLOWER
    return WayStanding.EQUAL if decision.equivalent else WayStanding.OPEN


def _median(seconds: Mapping[int, float]) -> float:
    return float(np.median(list(seconds.values())))
