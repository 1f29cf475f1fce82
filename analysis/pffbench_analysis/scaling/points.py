"""The measured points of a scaling series: a case in a phase, over sizes of the job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from pffbench.summary.rank_test import Times, Values, ratio
from pffbench.summary.statistics import Spread, spread
from pffbench.summary.summary import CaseSummary

from pffbench.units import Estimate

Over = Literal["ranks", "nodes"]
Kind = Literal["weak", "strong"]

#: The phases that move data: first the totals, then the transfers alone.
PHASES = ("write_total", "read_total", "write", "read")


@dataclass(frozen=True, eq=False)
class Point:
    """A case in a phase at one size of the job.

    Parameters
    ----------
    ranks, nodes : int
        The size.
    size : int
        Ranks or nodes, whichever the series varies.
    nbytes : int
        Bytes that all ranks move together.
    by_block : dict of int to float
        Job time of each block of repetitions; each of several runs has starts of its own.
    imbalance : float
        Seconds of the slowest over those of the median rank, the median over repetitions.
    runs : tuple of str
        Names of its runs.
    below_resolution : bool
        Whether the overhead of the harness affects the time.
    compression_ratio : float or None
        Bytes of the arrays over those in the files; None if not counted.
    """

    ranks: int
    nodes: int
    size: int
    nbytes: int
    by_block: Times
    imbalance: float
    runs: tuple[str, ...]
    below_resolution: bool
    compression_ratio: float | None = None

    @cached_property
    def seconds(self) -> Values:
        """Job time of each repetition."""
        return np.array(list(self.by_block.values()))

    @cached_property
    def time(self) -> Spread:
        """Seconds over the repetitions."""
        return spread(self.seconds)

    @cached_property
    def rate(self) -> Estimate:
        """Bytes per second of all ranks: bytes over the median time and the bounds of it."""
        return self.time.rate(self.nbytes)


@dataclass(frozen=True, eq=False)
class Curve:
    """A case in a phase over all sizes of the job, the smallest first.

    Parameters
    ----------
    case : CaseSummary
        The case as the largest run has it.
    phase : str
        One of `PHASES`.
    kind : {"weak", "strong"} or None
        Whether bytes grow with the ranks or stay; None for a single size.
    over : {"ranks", "nodes"}
        Unit of `Point.size`.
    points : tuple of Point
        One or more.
    apart : str
        What its comparison differs in from others of the experiment, such as ``cache dropped``.
    """

    case: CaseSummary
    phase: str
    kind: Kind | None
    over: Over
    points: tuple[Point, ...]
    apart: str = ""

    @property
    def sizes(self) -> list[int]:
        """The sizes."""
        return [point.size for point in self.points]

    def speedup(self, point: Point) -> Estimate:
        """Return the rate over that at the smallest size (for strong scaling: time saved).

        For weak scaling this is the scaled speed-up. The interval is that of a comparison of two
        runs, from the rank test; none where there are too few repetitions.
        """
        first = self.points[0]
        if point is first:
            return Estimate(1.0, 1.0, 1.0)
        found = ratio(first.seconds, point.seconds)
        bounds = (found.low, found.high) if found.is_bounded else (math.nan, math.nan)
        return Estimate(found.value, *bounds).scaled(point.nbytes / first.nbytes)

    def ideal(self, point: Point) -> float:
        """Return the speed-up for added ranks or nodes as fast as the first ones."""
        return point.size / self.points[0].size

    def efficiency(self, point: Point) -> Estimate:
        """Return the speed-up as a part of the ideal one."""
        return self.speedup(point).scaled(1 / self.ideal(point))


def kind_of(points: Sequence[Point]) -> Kind | None:
    """Distinguish weak from strong scaling by the bytes.

    Returns
    -------
    {"weak", "strong"} or None
        None for a single size, or when bytes neither stay nor grow with the ranks.
    """
    if len({point.size for point in points}) < 2:
        return None
    if len({point.nbytes for point in points}) == 1:
        return "strong"
    # An uneven distribution still moves all bytes, so this is exact.
    if len({point.nbytes * points[0].ranks / point.ranks for point in points}) == 1:
        return "weak"
    return None
