"""Prediction of the rate of a larger job: a curve continued, and how far it may bend.

No law is fitted. Which one holds beyond the largest job cannot be known from smaller ones: a link
or a server that is full only there leaves no trace before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pffbench.summary.starts import OF_TOTALS, BetweenStarts, Starts, starts_of
from pffbench.summary.student import student_quantile
from pffbench.units import Estimate
from pffbench_analysis.scaling.points import Point

#: Number of sizes that a prediction continues.
FEWEST = 3
#: Ratio to the largest size above which a prediction is a guess.
FAR = 2.0
#: Ratio of the bounds above which a prediction is useless.
WIDE = 10.0


@dataclass(frozen=True)
class Prediction:
    """The rate expected at a size that was not measured, if nothing saturates.

    Parameters
    ----------
    size : int
        Ranks or nodes.
    rate : Estimate
        Bytes per second with the 95 % interval.
    stretch : float
        The size over the largest one that was measured.
    new_node : bool
        Whether the job needs more nodes than the largest one that was measured.
    """

    size: int
    rate: Estimate
    stretch: float
    new_node: bool

    @property
    def why_guess(self) -> str:
        """Why it is only a guess; empty if it is more than that."""
        if self.new_node:
            return "more nodes than were measured"
        if self.stretch > FAR:
            return f"{self.stretch:.3g} times the largest size, over {FAR:g}"
        return ""

    @property
    def useless(self) -> bool:
        """Whether the interval is too wide to be informative."""
        return self.rate.high > WIDE * self.rate.low


def predict(
    points: Sequence[Point],
    size: int,
    *,
    new_node: bool = False,
    between: BetweenStarts = OF_TOTALS,
) -> Prediction | None:
    """Continue the curve of the three largest sizes.

    On double logarithmic axes the rate goes on with their mean slope. The interval begins with that
    of the rate at the largest size. Its slopes reach, each with its error, to that of the parabola
    through the three, which goes on bending as they do; to 0, since from any size on a rate can
    stay as it is; and to 1 at most, since added ranks are not faster than the first ones.
    Each size is a start of the program of its own, so errors hold the variation between starts.

    Parameters
    ----------
    points : sequence of Point
        The measured sizes, the smallest first.
    size : int
        Ranks or nodes, more than the largest.
    new_node : bool
        See `Prediction`.
    between : BetweenStarts
        What is known of the variation of the times between starts of the program.

    Returns
    -------
    Prediction or None
        None for fewer than three sizes, or a size that is not larger.
    """
    if len(points) < FEWEST or size <= points[-1].size:
        return None
    last = points[-FEWEST:]
    x = np.log([point.size for point in last])
    y = np.log([point.rate.value for point in last])
    stretch = size / last[-1].size
    errors = np.array([_error(point, between) for point in last])
    early, late = np.diff(y) / np.diff(x)
    mean = (y[2] - y[0]) / (x[2] - x[0])
    bent = late + (late - early) * (math.log(size) - x[1]) / (x[2] - x[0])
    reach = math.hypot(errors[0], errors[2]) / (x[2] - x[0])
    reach_of_late = math.hypot(errors[1], errors[2]) / (x[2] - x[1])
    low = min(0.0, mean - reach, bent - reach_of_late)
    high = min(1.0, max(0.0, mean, bent) + reach)
    middle = min(max(mean, low), high)
    rate, sure = last[-1].rate.value, math.exp(errors[-1])
    found = Estimate(*(
        rate * by * stretch**slope for by, slope in ((1, middle), (1 / sure, low), (sure, high))
    ))  # fmt: skip
    return Prediction(size, found, stretch, new_node)


def _error(point: Point, between: BetweenStarts) -> float:
    """Return the half-width of the 95 % interval of the logarithm of a rate."""
    ways = [[np.array([point.by_block[b] for b in start]) for start in starts_of(point.by_block)]]
    starts = Starts.of(ways, between)
    error = starts.deviation / math.sqrt(starts.sizes[0])
    return student_quantile(0.025, starts.freedom) * error
