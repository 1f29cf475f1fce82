"""Crossings: the size of the job from which on another way of doing the same work is faster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pffbench.summary.crossing import WaysAtSize, WaysCross, compare_ways
from pffbench.summary.crossing import crossings as crossings_over
from pffbench.summary.headline import Design
from pffbench.summary.rank_test import Times

from pffbench_analysis.scaling.points import Curve
from pffbench_analysis.scaling.sentences import case_name, count, phase_name
from pffbench_analysis.scaling.series import Series


@dataclass(frozen=True, eq=False)
class Crossing:
    """Two curves that cross.

    Parameters
    ----------
    before, after : Curve
        The way that is faster at the smaller size, and the one at the larger size.
    at : WaysCross
        The sizes of the job, and where the curves cross between them.
    """

    before: Curve
    after: Curve
    at: WaysCross

    def __str__(self) -> str:
        over = self.before.over
        return (
            f"{phase_name(self.before.phase)}: {case_name(self.before)} is faster with "
            f"{count(self.at.below, over)}, {case_name(self.after)} with "
            f"{count(self.at.above, over)}; they cross near {self.at.near:.2g}"
        )


def crossings(series: Series) -> list[Crossing]:
    """Return the crossings of each comparison, backend and total, decided as one family."""
    curves = {(curve.case.sample.case, curve.phase): curve for curve in series.curves}
    design = Design.of_experiment(series.record.experiment)
    return [
        Crossing(curves[c.before, phase], curves[c.after, phase], c)
        for (_, _, phase), found in compare_ways(list(_fields(series)), design).items()
        for c in crossings_over(found)
    ]


def _fields(series: Series) -> Iterator[WaysAtSize[tuple[str, str, str]]]:
    """Yield the ways of each backend at each size, in each total, that can be resolved."""
    ways: dict[tuple[str, str, str, int], dict[str, Times]] = defaultdict(dict)
    for curve in series.curves:
        sample = curve.case.sample
        for point in curve.points:
            if curve.phase.endswith("_total") and not point.below_resolution:
                place = (sample.group, sample.backend, curve.phase, point.size)
                ways[place][sample.case] = point.by_block
    for (group, backend, phase, size), times in ways.items():
        if len(times) > 1:
            yield WaysAtSize((group, backend, phase), backend, size, times)
