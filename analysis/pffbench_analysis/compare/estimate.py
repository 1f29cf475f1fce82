"""The ratio of two runs in a phase: interval, test, and power of more repetitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pffbench.summary.dependence import variance_inflation
from pffbench.summary.rank_test import (
    ALPHA,
    Times,
    Values,
    ratio,
    repetitions_for,
    smallest_ratio,
    unit_error,
)


@dataclass(frozen=True, eq=False)
class MeasuredPhase:
    """One phase, or sum of phases, of a case over the counted repetitions.

    Parameters
    ----------
    seconds : array of float64
        Job time of each repetition.
    repetitions : tuple of int
        Their numbers.
    size : dict of str to int
        Ranks, nodes, bytes and arrays.
    """

    seconds: Values
    repetitions: tuple[int, ...]
    size: Mapping[str, int]

    @property
    def n(self) -> int:
        """Number of repetitions."""
        return self.seconds.size

    @property
    def median(self) -> float:
        """Median seconds; NaN without repetitions."""
        return float(np.median(self.seconds)) if self.n else math.nan


#: A phase that was not measured.
NOTHING = MeasuredPhase(np.empty(0), (), {})


@dataclass(frozen=True)
class RatioEstimate:
    """Ratio of the times of two independent sets of repetitions.

    Parameters
    ----------
    ratio : float
        Median of the new ones over the median of the base.
    low, high : float
        Bounds of the 95 % interval.
    p : float
        Probability of so large a difference where there is none, by the rank test of
        `pffbench.summary.inference`, dependence of repetitions included.
    lower : float
        Lower bound that holds with 95 % for all comparisons of the family together.
    upper : float
        Upper bound that holds with 95 %, for this comparison alone.
    shown : float
        Smallest ratio that these repetitions detect with a probability of 80 %, in view of all
        comparisons of the family; infinite where they detect no difference, however large.
    unit : float
        Standard error of the logarithm of the ratio, times the root of the repetitions, as
        expected of more of them.
    number : int
        Number of comparisons of the family.
    """

    ratio: float
    low: float
    high: float
    p: float
    lower: float
    upper: float
    shown: float
    unit: float
    number: int

    def repetitions_for(self, limit: float) -> int | None:
        """Return the repetitions of each run that show the ratio to be below or above a limit.

        Parameters
        ----------
        limit : float
            A ratio.

        Returns
        -------
        int or None
            None where the ratio equals the limit within precision: no number decides.
        """
        distance = math.log(limit) - math.log(self.ratio)
        # A ratio above the limit has to be shown in view of all comparisons.
        level = 2 * ALPHA / (1 if distance > 0 else self.number)
        return repetitions_for(abs(distance), self.unit, level) if distance else None


_NAN = math.nan
#: Without a ratio.
UNKNOWN = RatioEstimate(_NAN, _NAN, _NAN, _NAN, _NAN, _NAN, _NAN, _NAN, 0)


def estimate(
    base: Values,
    new: Values,
    inflation: float = 1.0,
    number: int = 1,
    expected_inflation: float | None = None,
) -> RatioEstimate:
    """Compare positive times of a base and a new run.

    Parameters
    ----------
    base, new : array of float64
        Seconds of the repetitions, at least `FEWEST` each.
    inflation : float
        Variance inflation by dependent repetitions, see `dependence`.
    number : int
        Number of comparisons of the family.
    expected_inflation : float, optional
        Variance inflation of more repetitions; by default the same.
    """
    both = ratio(new, base, ALPHA, inflation)
    upper = ratio(new, base, 2 * ALPHA, inflation).high
    lower = ratio(new, base, 2 * ALPHA / number, inflation).low
    shown = smallest_ratio(both.n, unit_error(base, new, inflation), ALPHA / number)
    unit = unit_error(base, new, expected_inflation or inflation)
    return RatioEstimate(both.value, both.low, both.high, both.p, lower, upper, shown, unit, number)


def dependence(
    runs: Sequence[Sequence[Mapping[str, Times]]], n: int, *, cautious: bool = True
) -> float:
    """Return the variance inflation in the comparison of two runs: that of the worse one.

    Effects common to all cases of a run, such as the load of its machine, do not cancel here, so
    their dependence counts too.

    Parameters
    ----------
    runs : sequence of sequence of dict
        For each run its tables: the seconds by repetition of all cases of a group in a total.
    n : int
        Number of repetitions of the run with fewer.
    cautious : bool
        See `variance_inflation`.
    """
    return max(
        variance_inflation(
            [list(ways.values()) for ways in tables], n, shared_cancels=False, cautious=cautious
        )
        for tables in runs
    )
