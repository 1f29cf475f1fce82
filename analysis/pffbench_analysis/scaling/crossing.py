"""Crossings: the size of the job from which on another way of doing the same work is faster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from pffbench.summary.statistics import crossing_of
from pffbench_analysis.scaling.points import Curve, Point
from pffbench_analysis.scaling.sentences import case_name, count, number, phase_name
from pffbench_analysis.scaling.study import Fitted


@dataclass(frozen=True)
class Crossing:
    """Two ways of which one is shown to be faster at a size, and the other at a larger one.

    Parameters
    ----------
    before, after : Curve
        The way that is faster at the smaller size, and the one at the larger size.
    below, above : int
        The two sizes, both measured; between them neither is shown to be faster.
    near : float
        Where the times, straight lines on double logarithmic axes between them, cross.
    """

    before: Curve
    after: Curve
    below: int
    above: int
    near: float

    def __str__(self) -> str:
        over = self.before.over
        return (
            f"{phase_name(self.before.phase)}: {case_name(self.before)} is faster with "
            f"{count(self.below, over)}, {case_name(self.after)} with {count(self.above, over)}; "
            f"they cross near {number(self.near, 2)}"
        )


def crossings(fitted: Sequence[Fitted]) -> list[Crossing]:
    """Return the crossings of each comparison, backend and total.

    Of each backend the ways are looked at that are the fastest at some size.
    """
    alike: dict[tuple[str, str, str], list[Curve]] = defaultdict(list)
    for one in fitted:
        sample, phase = one.curve.case.sample, one.curve.phase
        if phase.endswith("_total"):
            alike[sample.group, sample.backend, phase].append(one.curve)
    return [
        crossing
        for curves in alike.values()
        for pair in permutations(_leading(curves), 2)
        for crossing in _between(*pair)
    ]


def _leading(curves: Sequence[Curve]) -> list[Curve]:
    """Return the curves that are the fastest at some size that all have."""
    found = [{point.size: point.time.median for point in curve.points} for curve in curves]
    common = set.intersection(*(set(times) for times in found))
    first = [min(range(len(curves)), key=lambda i: found[i][size]) for size in sorted(common)]
    return [curves[i] for i in dict.fromkeys(first)]


def _between(before: Curve, after: Curve) -> Iterator[Crossing]:
    """Yield where one way, shown to be faster at a size, is shown to be slower at the next."""
    others = {point.size: point for point in after.points}
    pairs = [(point, others[point.size]) for point in before.points if point.size in others]
    shown = [(one, other) for one, other in pairs if _apart(one, other) or _apart(other, one)]
    for (one, other), (then, other_then) in pairwise(shown):
        if _apart(one, other) and _apart(other_then, then):
            at, later = (a.time.median / b.time.median
                         for a, b in ((one, other), (then, other_then)))  # fmt: skip
            near = crossing_of((one.size, then.size), (at, later))
            yield Crossing(before, after, one.size, then.size, near)


def _apart(faster: Point, slower: Point) -> bool:
    """Whether the 95 % intervals are apart; false where there are none."""
    return faster.time.high < slower.time.low
