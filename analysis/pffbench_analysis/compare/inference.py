"""The ratio of two runs in a phase, how sure it is, and what more repetitions would show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pffbench.summary.inference import (
    ALPHA,
    Times,
    Values,
    holm,
    ratio,
    repetitions_for,
    smallest_ratio,
    unit_error,
    variance_inflation,
)

#: Repetitions of each run under which nothing is compared: a rank test of four shows nothing.
FEWEST = 5


@dataclass(frozen=True)
class Estimate:
    """How many times as long one of two independent sets of repetitions takes.

    Parameters
    ----------
    ratio : float
        Median of the new ones over the median of the base.
    low, high : float
        Bounds of the 95 % interval.
    p : float
        Probability of so large a difference where there is none, by the rank test of
        `pffbench.summary.inference`, dependence of repetitions included.
    upper : float
        Upper bound that holds with 95 %.
    shown : float
        The ratio that so many repetitions show with a probability of 80 %.
    unit : float
        Standard error of the logarithm of the ratio, times the root of the repetitions.
    """

    ratio: float
    low: float
    high: float
    p: float
    upper: float
    shown: float
    unit: float

    def repetitions_for(self, distance: float) -> int:
        """Return the repetitions of each run that show a distance of logarithms."""
        return repetitions_for(distance, self.unit, 2 * ALPHA)


def estimate(base: Values, new: Values, inflation: float) -> Estimate:
    """Compare positive times of a base and a new run.

    Parameters
    ----------
    base, new : array of float64
        Seconds of the repetitions, at least `FEWEST` each.
    inflation : float
        Variance inflation by dependent repetitions, see `dependence`.
    """
    both = ratio(new, base, ALPHA, inflation)
    one_sided = ratio(new, base, 2 * ALPHA, inflation)
    unit = unit_error(base, new, inflation)
    shown = smallest_ratio(both.n, unit, 2 * ALPHA)
    return Estimate(both.value, both.low, both.high, both.p, one_sided.high, shown, unit)


def dependence(runs: Sequence[Sequence[Mapping[str, Times]]], n: int) -> float:
    """Return the variance inflation in the comparison of two runs: that of the worse one.

    Parameters
    ----------
    runs : sequence of sequence of dict
        For each run its tables: the seconds by repetition of all cases of a group in a total.
    n : int
        Number of repetitions of the run that has fewer.
    """
    return max(variance_inflation([list(t.values()) for t in tables], n) for tables in runs)


__all__ = ["ALPHA", "FEWEST", "Estimate", "Values", "dependence", "estimate", "holm"]
