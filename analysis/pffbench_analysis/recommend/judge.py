"""Ranking of ways for a purpose: the fastest one if that is decided, the others relative to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np

from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, Decision, decide
from pffbench.summary.rank_test import FEWEST, Ratio, Times, fastest_of
from pffbench.summary.starts import START
from pffbench_analysis.recommend.candidates import Candidate, Purpose

#: Above this number, missing repetitions are not reported.
_MANY = 1000
#: Decisions on pairs of ways by their numbers, the smaller first.
Pairs = Mapping[tuple[int, int], Decision]


class WayStanding(StrEnum):
    """Standing of a way for a purpose."""

    FASTEST = "fastest"
    ONLY = "the only way measured"
    SLOWER = "slower"
    EQUAL = "equally fast"
    OPEN = "not decided"


@dataclass(frozen=True)
class RankedWay:
    """A way with its time and its standing.

    Parameters
    ----------
    number : int
        Its number among the compared ways.
    candidate : Candidate
        The way.
    median : float
        Seconds of the purpose, the median over repetitions.
    ratio : Ratio or None
        Its time over that of the way listed first; None for that one.
    standing : WayStanding
        Its standing.
    """

    number: int
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
        The ways, the one with the smallest median first; empty without a conclusion.
    decisions : dict
        The decisions on all pairs.
    why_not : str
        Reason for the lack of a conclusion; mostly empty.
    remedy : str
        Where the fastest is not decided: what would probably decide it; else empty.
    """

    purpose: Purpose
    placed: tuple[RankedWay, ...]
    decisions: Pairs
    why_not: str = ""
    remedy: str = ""

    @property
    def taken(self) -> RankedWay | None:
        """The way that all others are shown to be slower than or equal to; or the only one."""
        first = self.placed[0] if self.placed else None
        return None if first is None or first.standing is WayStanding.OPEN else first

    @property
    def best(self) -> list[RankedWay]:
        """The ways that are not shown to be slower; each may be the fastest if none is taken."""
        return [placed for placed in self.placed if placed.standing is not WayStanding.SLOWER]

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
    times = [[_seconds(way, purpose) for way in ways] for ways, purpose in questions]
    return [
        _answer(ways, purpose, own, decisions, paired=design.paired)
        for (ways, purpose), own, decisions in zip(
            questions, times, compared(times, design), strict=True
        )
    ]


def _seconds(way: Candidate, purpose: Purpose) -> Times | None:
    """Return the seconds of a way by block; None where they are too short or were not measured."""
    return None if way.warned(purpose, "below_resolution") else way.seconds(purpose) or None


def compared(questions: Sequence[Sequence[Times | None]], design: Design) -> Sequence[Pairs]:
    """Compare all pairs of ways of some questions at once.

    Parameters
    ----------
    questions : sequence of sequence of dict or None
        For each question the seconds by block of each way; None for a way without usable times.
    design : Design
        Plan of the repetitions.

    Returns
    -------
    sequence of dict
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
    decisions: Pairs,
    *,
    paired: bool,
) -> Recommendation:
    short = [way for way in candidates if way.warned(purpose, "below_resolution")]
    named = {f"{n:06d}": own for n, own in enumerate(times) if own}
    if short or not named:
        why = (
            f"too short to be told apart from the harness ({short[0].label}); take larger arrays"
            if short
            else "it was not measured"
        )
        return Recommendation(purpose, (), decisions, why)
    medians = {int(name): float(np.median(list(own.values()))) for name, own in named.items()}
    first = int(fastest_of(named, paired=paired))
    against = {n: _over(n, first, decisions) for n in medians if n != first}
    standings = {n: _standing(decision) for n, decision in against.items()}
    open_ = [against[n] for n, standing in standings.items() if standing is WayStanding.OPEN]
    # The smallest median alone is no reason to name a way.
    own = WayStanding.OPEN if open_ else WayStanding.FASTEST if against else WayStanding.ONLY
    order = sorted(against, key=lambda n: (medians[n], n))
    return Recommendation(
        purpose,
        (
            RankedWay(first, candidates[first], medians[first], None, own),
            *(
                RankedWay(n, candidates[n], medians[n], against[n].ratio, standings[n])
                for n in order
            ),
        ),
        decisions,
        remedy=_remedy(open_, several=any(max(own) >= START for own in named.values())),
    )


def _remedy(open_: Sequence[Decision], *, several: bool) -> str:
    """Return what would decide open pairs, of several starts of the program or of one."""
    if not open_:
        return ""
    # An estimate by fewer repetitions than the fewest is not reliable.
    needed = max(d.needed if d.ratio.n >= FEWEST else FEWEST for d in open_)
    what = "repetitions, or starts of the program" if several else "repetitions"
    if needed > _MANY:
        return f"more than {_MANY} {what}, or larger arrays"
    return f"about {needed} {what}"


def _over(number: int, first: int, decisions: Pairs) -> Decision:
    """Return the decision on a way over the first one."""
    unknown = Decision(Ratio.unknown())
    if number < first:
        return decisions.get((number, first), unknown)
    return decisions.get((first, number), unknown).inverse


def _standing(decision: Decision) -> WayStanding:
    if decision.longer:
        return WayStanding.SLOWER
    return WayStanding.EQUAL if decision.equivalent else WayStanding.OPEN
