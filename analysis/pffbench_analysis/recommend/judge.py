"""Ranking of ways for a purpose: the fastest one if that is decided, the others relative to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pffbench.summary.conclusions import MANY, TOO_SHORT
from pffbench.summary.crossing import WaysAtSize, WaysCompared, compare_ways
from pffbench.summary.headline import Design
from pffbench.summary.inference import Decision
from pffbench.summary.rank_test import FEWEST, Ratio, Times
from pffbench.summary.starts import START
from pffbench_analysis.recommend.candidates import Candidate, Purpose


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
    over : Decision or None
        The decision on its time over that of the way listed first; None for that one.
    standing : WayStanding
        Its standing.
    """

    number: int
    candidate: Candidate
    median: float
    over: Decision | None
    standing: WayStanding

    @property
    def ratio(self) -> Ratio | None:
        """Its time over that of the way listed first; None for that one."""
        return None if self.over is None else self.over.ratio


@dataclass(frozen=True)
class Recommendation:
    """Ranking of the ways for a purpose.

    Parameters
    ----------
    purpose : Purpose
        The purpose.
    placed : tuple of RankedWay
        The ways, the one with the smallest median first; empty without a conclusion.
    why_not : str
        Reason for the lack of a conclusion; mostly empty.
    remedy : str
        Where the fastest is not decided: what would probably decide it; else empty.
    needed : int
        There the number of repetitions; else 0.
    """

    purpose: Purpose
    placed: tuple[RankedWay, ...]
    why_not: str = ""
    remedy: str = ""
    needed: int = 0

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
    fields = [
        WaysAtSize(number, "", 0, times)
        for number, (ways, purpose) in enumerate(questions)
        if (times := _times(ways, purpose))
    ]
    compared = compare_ways(fields, design)
    times_of = {field.series: field.times for field in fields}
    return [
        _answer(ways, purpose, times_of.get(number, {}), *compared.get(number, ()))
        for number, (ways, purpose) in enumerate(questions)
    ]


def _times(ways: Sequence[Candidate], purpose: Purpose) -> Mapping[str, Times]:
    """Return the seconds of ways by their numbers, of those that were measured long enough."""
    found = {}
    for number, way in enumerate(ways):
        seconds = way.seconds(purpose)
        if seconds and not way.warned(purpose, "below_resolution"):
            found[f"{number:06d}"] = seconds
    return found


def _answer(
    ways: Sequence[Candidate],
    purpose: Purpose,
    times: Mapping[str, Times],
    compared: WaysCompared | None = None,
) -> Recommendation:
    short = [way for way in ways if way.warned(purpose, "below_resolution")]
    if short:
        why = f"{TOO_SHORT} ({short[0].label}); use larger arrays"
        return Recommendation(purpose, (), why)
    if compared is None:
        return Recommendation(purpose, (), "it was not measured")
    first = int(compared.first)
    others = []
    for name, own in times.items():
        if name != compared.first:
            over = compared.decisions.get((name, compared.first), Decision(Ratio.unknown()))
            way = RankedWay(int(name), ways[int(name)], _median(own), over, _standing(over))
            others.append(way)
    open_ = [way.over for way in others if way.over and way.standing is WayStanding.OPEN]
    # The smallest median alone is no reason to name a way.
    standing = WayStanding.FASTEST if others else WayStanding.ONLY
    # An estimate by fewer repetitions than the fewest is not reliable.
    needed = max((d.needed if d.ratio.n >= FEWEST else FEWEST for d in open_), default=0)
    return Recommendation(
        purpose,
        (
            RankedWay(
                first,
                ways[first],
                _median(times[compared.first]),
                None,
                WayStanding.OPEN if open_ else standing,
            ),
            *sorted(others, key=lambda way: (way.median, way.number)),
        ),
        remedy=_remedy(needed, several=any(max(own) >= START for own in times.values())),
        needed=needed,
    )


def _median(times: Times) -> float:
    return float(np.median(list(times.values())))


def _remedy(needed: int, *, several: bool) -> str:
    """Return what would decide open pairs, of several starts of the program or of one."""
    if not needed:
        return ""
    what = "repetitions, or starts of the program" if several else "repetitions"
    if needed > MANY:
        return f"more than {MANY} {what}, or larger arrays"
    return f"about {needed} {what}"


def _standing(decision: Decision) -> WayStanding:
    if decision.longer:
        return WayStanding.SLOWER
    return WayStanding.EQUAL if decision.equivalent else WayStanding.OPEN
