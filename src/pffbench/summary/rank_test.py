"""The ratio of two ways: rank tests, their intervals, and the repetitions that would decide.

Two samples are compared by two rank tests, and differ where both say so. The
Wilcoxon-Mann-Whitney test counts the differences between a value of each that are above a shift.
Its null distribution is exact, for samples of one distribution. The test of Brunner and Munzel
(2000) studentises the same count, so that it keeps its level where the spreads of the two differ;
for few values its distribution is approximate.

Pairs are compared by Wilcoxon's signed-rank test, whose statistic counts the means of two
differences of pairs (Walsh averages) that are above a shift.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist, median
from typing import Any

import msgspec
import numpy as np

from pffbench.summary.student import student_tail

Values = np.ndarray[Any, np.dtype[np.float64]]


#: Seconds of a way in each block of repetitions.
Times = Mapping[int, float]


#: Probability of any false claim in a run.
ALPHA = 0.05


#: Minimum repetitions for showing a difference, and for estimating dependence.
FEWEST = 7


#: Up to so many differences the null distribution of a statistic is counted exactly.
_EXACT = 2500
#: Sizes of two samples, or the number of pairs.
Sizes = tuple[int, int] | tuple[int]


NORMAL = NormalDist()


class Ratio(msgspec.Struct, frozen=True):
    """The ratio of the times of two ways, with its uncertainty.

    Parameters
    ----------
    n : int
        Number of repetitions of the way with fewer.
    value : float
        Ratio of the medians; of pairs the estimate of the signed-rank test, which is the median
        over Walsh averages of their ratios; of several starts the ratio of the geometric means of
        their medians.
    low, high : float
        Interval at the requested level; 0 and infinity if there are too few repetitions.
    p : float
        Two-sided probability of so large a difference between equal ways, including dependence of
        the repetitions.
    """

    n: int
    value: float
    low: float
    high: float
    p: float

    @classmethod
    def unknown(cls) -> Ratio:
        """Return the ratio of two ways that cannot be compared: no information."""
        return cls(0, math.nan, 0.0, math.inf, 1.0)

    @property
    def inverse(self) -> Ratio:
        """The inverse ratio."""
        low = 1 / self.high if self.high else math.inf
        high = 1 / self.low if self.low else math.inf
        return Ratio(self.n, 1 / self.value if self.value else math.inf, low, high, self.p)

    @property
    def is_bounded(self) -> bool:
        """Whether the repetitions are enough for an interval."""
        return self.low > 0 and self.high < math.inf

    def is_equivalent(self, margin: float) -> bool:
        """Return whether the whole interval is nearer to 1 than the margin."""
        return 1 / (1 + margin) < self.low and self.high < 1 + margin


def ratio(
    times: Values,
    others: Values,
    level: float = ALPHA,
    inflation: float = 1.0,
    *,
    paired: bool = False,
) -> Ratio:
    """Compare two samples of positive times.

    Parameters
    ----------
    times, others : array of float64, shape (n,), (m,)
        Seconds of the repetitions of each way; one or more each.
    level : float
        The interval misses the true ratio with at most this probability.
    inflation : float
        Variance inflation by dependent repetitions, see `variance_inflation`.
    paired : bool
        Whether the repetitions are pairs, of the same block each.
    """
    a, b = np.log(times), np.log(others)
    if paired:
        differences = _walsh_averages(a - b)
        value = math.exp(_centre(differences))
        bounds = _interval(differences, level, (a.size,), inflation)
        p = _p_of_none(differences, (a.size,), inflation)
    else:
        # Medians are taken of the times, not of their logarithms, so that the ratio of two rows of
        # a table is that of the medians they show: with an even number of values the two differ.
        # NumPy's median takes twenty times as long for so few values.
        value = median(times.tolist()) / median(others.tolist())
        bounds, p = shift_interval(a, b, level, inflation), p_value(a, b, inflation)
    low, high = map(math.exp, bounds)
    # The interval is that of the shift between two distributions, which need not hold the
    # difference of two sample medians; a printed interval always holds its estimate.
    return Ratio(min(a.size, b.size), value, min(low, value), max(high, value), p)


def ratio_of_times(
    times: Times,
    others: Times,
    level: float = ALPHA,
    inflation: float = 1.0,
    *,
    paired: bool = False,
) -> Ratio | None:
    """Compare two ways by their common blocks, in pairs if they are.

    Ways of two runs have no common block; their repetitions are compared without cancelling the
    common part of a block. None where there are none, or a time is not a positive number.
    """
    common = times.keys() & others.keys()
    one, other = (
        np.array([way[block] for block in sorted(common)] if common else list(way.values()))
        for way in (times, others)
    )
    if not are_times(one, other):
        return None
    return ratio(one, other, level, inflation, paired=paired and bool(common))


def are_times(*samples: Values) -> bool:
    """Return whether there are times, all positive numbers; a broken table can hold others."""
    return all(values.size and values.min() > 0 and values.max() < math.inf for values in samples)


def fastest_of(ways: Mapping[str, Times], *, paired: bool = False) -> str:
    """Return the fastest of several ways.

    Ways can have stopped after different numbers of repetitions, so it is the one whose median no
    other one's is under, over their common blocks; without such a way, the one with the smallest
    median. Ways whose repetitions are pairs are compared by these.
    """
    order = sorted(ways, key=lambda way: (_median(ways[way]), way))
    over = _paired_ratio if paired else _median_ratio
    for way in order:
        if all(over(ways[other], ways[way]) >= 1 for other in order if other != way):
            return way
    return order[0]


def _paired_ratio(times: Times, others: Times) -> float:
    """Return the ratio over common blocks, of the medians if there are none."""
    found = ratio_of_times(times, others, paired=True)
    return math.nan if found is None else found.value


def _median(times: Times) -> float:
    return median(times.values())


def _median_ratio(times: Times, others: Times) -> float:
    """Return the ratio of two medians over common blocks, of all if there are none."""
    common = times.keys() & others.keys()
    if not common or len(common) == len(times) == len(others):
        one, other = _median(times), _median(others)
    else:
        one, other = (median([w[b] for b in common]) for w in (times, others))
    return one / other if other > 0 else math.inf


def p_value(a: Values, b: Values, inflation: float = 1.0) -> float:
    """Return the larger of the two-sided p-values of both rank tests.

    A tie between the samples counts as evidence against a difference, in both directions. The
    exact test then keeps its level for times in coarse steps too.

    Parameters
    ----------
    a, b : array of float64, shape (n,), (m,)
        Two samples.
    inflation : float
        Variance inflation by dependent repetitions. The samples are moved nearer to each other
        by its root before the test: the dual of an interval that is wider by the same factor.
    """
    a, b = np.sort(a), np.sort(b)
    differences = _differences(a, b)
    exact = _p_of_none(differences, (a.size, b.size), inflation)
    if min(a.size, b.size) < 2:
        return exact
    return max(exact, studentised_p(a, b, _nearer(differences, inflation)))


def shift_interval(
    a: Values, b: Values, level: float, inflation: float = 1.0
) -> tuple[float, float]:
    """Return the interval of the shift from `b` to `a` that inverts the rank tests.

    It contains the shifts that not both tests reject. It is infinite if the samples are too small
    for the level.

    Parameters
    ----------
    a, b, inflation
        As for `p_value`; the interval is wider by the root of the inflation.
    level : float
        The interval misses the true shift with at most this probability.
    """
    k = _critical(level / 2, (a.size, b.size))
    if k < 0:
        return -math.inf, math.inf
    a, b = np.sort(a), np.sort(b)
    differences = _differences(a, b)
    low = float(differences[_outermost(a, b, differences, k, level)])
    # The upper bound is the lower one of the samples with the other sign.
    mirrored = -differences[::-1]
    high = -float(mirrored[_outermost(-a[::-1], -b[::-1], mirrored, k, level)])
    return _widened(low, high, _centre(differences), inflation)


def _widened(low: float, high: float, centre: float, inflation: float) -> tuple[float, float]:
    if inflation <= 1.0:
        return low, high
    wider = math.sqrt(inflation)
    return centre - wider * (centre - low), centre + wider * (high - centre)


def _outermost(a: Values, b: Values, differences: Values, k: int, level: float) -> int:
    """Return the index of the lower bound, at most k, below which both tests reject."""

    def rejects(place: int) -> bool:
        if place == 0:
            return True  # all differences are above: the samples are apart
        shift = (differences[place - 1] + differences[place]) / 2
        return studentised_p(a, b, float(shift)) <= level

    if rejects(k):
        return k
    inside, outside = k, 0
    while inside - outside > 1:
        middle = (inside + outside) // 2
        inside, outside = (inside, middle) if rejects(middle) else (middle, outside)
    return outside


def studentised_p(a: Values, b: Values, shift: float) -> float:
    """Return the two-sided p-value of the test of Brunner and Munzel (2000).

    Parameters
    ----------
    a, b : array of float64, shape (n,), (m,)
        Two samples in order, of two values or more each.
    shift : float
        The difference from `b` to `a` that is tested.
    """
    a = a - shift
    above, one = _placements(a, b)
    _, other = _placements(b, a)
    distance, variance = abs(above - 0.5), one + other
    # Without a variance the samples are apart; the exact test says how much that is worth.
    if variance == 0.0:
        return 0.0 if distance else 1.0
    freedom = variance**2 / (one**2 / (a.size - 1) + other**2 / (b.size - 1))
    return min(1.0, 2 * student_tail(distance / math.sqrt(variance), freedom))


def _placements(a: Values, b: Values) -> tuple[float, float]:
    """Return the mean part of `b` below the values of `a`, and the variance of that mean.

    Both are in order; ties count half.
    """
    parts = b.searchsorted(a, "left") + b.searchsorted(a, "right")
    total = int(parts.sum())
    # In whole numbers, so that equal parts have a variance of exactly zero.
    squares = int(parts @ parts) * a.size - total * total
    scale = 2 * b.size * a.size
    return total / scale, squares / (scale * scale * (a.size - 1))


def _differences(a: Values, b: Values) -> Values:
    """Return all differences between a value of `a` and one of `b`, in their order."""
    found: Values = np.sort(np.subtract.outer(a, b).ravel())
    return found


def _walsh_averages(differences: Values) -> Values:
    """Return the mean of each two differences of pairs, and of each with itself, in order."""
    one, other = np.triu_indices(differences.size)
    found: Values = np.sort((differences[one] + differences[other]) / 2)
    return found


def _centre(differences: Values) -> float:
    """Return the estimate of the shift (Hodges and Lehmann, 1963): the median difference."""
    half = differences.size // 2
    return float(differences[half] + differences[-1 - half]) / 2


def _nearer(differences: Values, inflation: float) -> float:
    """Return the shift that brings samples nearer to each other by the root of the inflation."""
    centre = _centre(differences)
    return centre - centre / math.sqrt(inflation)


def _p_of_none(differences: Values, sizes: Sizes, inflation: float) -> float:
    """Return the p-value of no shift."""
    shift = _nearer(differences, inflation)
    not_greater = int(np.searchsorted(differences, shift, side="right"))
    not_less = differences.size - int(np.searchsorted(differences, shift, side="left"))
    return min(1.0, 2 * _tail(min(not_less, not_greater), sizes))


def _interval(
    differences: Values, level: float, sizes: Sizes, inflation: float
) -> tuple[float, float]:
    """Return the interval of the shifts that are not rejected."""
    k = _critical(level / 2, sizes)
    if k < 0:
        return -math.inf, math.inf
    low, high = float(differences[k]), float(differences[-1 - k])
    return _widened(low, high, _centre(differences), inflation)


def smallest_p(n: int, m: int | None = None) -> float:
    """Return the smallest two-sided p-value that two samples, or n pairs, can give."""
    return min(1.0, 2 * _tail(0, (n,) if m is None else (n, m)))


def _tail(u: int, sizes: Sizes) -> float:
    """Return P(U <= u) of the statistic of two equal ways."""
    count, deviation = _moments(sizes)
    if count <= _EXACT:
        return float(_cumulated(sizes)[u])
    return NORMAL.cdf((u + 0.5 - count / 2) / deviation)


def _critical(tail: float, sizes: Sizes) -> int:
    """Return the largest k with P(U <= k) <= tail; -1 where there is none."""
    count, deviation = _moments(sizes)
    if count <= _EXACT:
        return int(np.searchsorted(_cumulated(sizes), tail, side="right")) - 1
    return max(-1, math.floor(count / 2 - 0.5 + NORMAL.inv_cdf(tail) * deviation))


def _moments(sizes: Sizes) -> tuple[int, float]:
    """Return the number of differences that a statistic counts, and its standard deviation."""
    if len(sizes) == 1:
        (n,) = sizes
        return n * (n + 1) // 2, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    n, m = sizes
    return n * m, math.sqrt(n * m * (n + m + 1) / 12)


@lru_cache(maxsize=4096)
def _cumulated(sizes: Sizes) -> Values:
    """Return P(U <= u) for all u, counted."""
    density = _of_signs(*sizes) if len(sizes) == 1 else _of_orders(*sorted(sizes))
    cumulated: Values = np.minimum(np.cumsum(np.maximum(density, 0.0)), 1.0)
    return cumulated


def _of_signs(n: int) -> Values:
    """Count the signs of n ranks by the sum of the positive ones; return probabilities.

    The generating function of the counts is the product over i = 1 … n of (1 + q^i) (Wilcoxon,
    1945).
    """
    density: Values = np.zeros(n * (n + 1) // 2 + 1)
    density[0] = 1.0
    for i in range(1, n + 1):
        density[i:] += density[:-i].copy()
        density /= 2
    return density


def _of_orders(n: int, m: int) -> Values:
    """Count the orders of n + m values by their statistic U; return probabilities.

    The generating function of the counts is the Gaussian binomial coefficient, the product over
    i = 1 … n of (1 - q^(m+i)) / (1 - q^i) (Mann and Whitney, 1947). It is multiplied out one
    factor at a time; each partial product is a polynomial with non-negative coefficients, and
    dividing by the number of orders at each step keeps the numbers small.
    """
    size = n * m + 1
    density: Values = np.zeros(size)
    density[0] = 1.0
    for i in range(1, n + 1):
        shifted = density.copy()
        if m + i < size:
            shifted[m + i :] -= density[: size - m - i]
        for start in range(min(i, size)):
            shifted[start::i] = np.cumsum(shifted[start::i])
        density = shifted * (i / (m + i))
    return density


#: Normal score of the probability, 80 %, with which the reported repetitions would decide.
POWER = 0.84


def unit_error(
    times: Values, others: Values, inflation: float = 1.0, *, paired: bool = False
) -> float:
    """Return the standard error of the logarithm of a ratio, times the root of the repetitions.

    It follows from the spread of both samples, or from that of the ratios of pairs. The rank tests
    have 3/pi of the efficiency of the t test for normal times, and more for times with outliers.
    """
    a, b = np.log(times), np.log(others)
    samples = (a - b,) if paired else (a, b)
    spread = math.hypot(*map(robust_deviation, samples))
    return spread * math.sqrt(inflation * math.pi / 3)


def repetitions_for(distance: float, unit: float, level: float, *, paired: bool = False) -> int:
    """Return the repetitions of each way that show a distance of logarithms with 80 % power.

    Parameters
    ----------
    distance : float
        Logarithm of a ratio; more than 0.
    unit : float
        As `unit_error` gives it.
    level : float
        Two-sided level of the test.
    paired : bool
        Whether the repetitions are pairs.

    Returns
    -------
    int
        No fewer than the test needs to show any difference at this level.
    """
    enough = math.ceil(((POWER - NORMAL.inv_cdf(level / 2)) * unit / distance) ** 2)
    return max(enough, _fewest_for(level, paired))


def enough_for(n: int, level: float, *, paired: bool) -> bool:
    """Return whether n repetitions of two ways, or n pairs, can show a difference at a level."""
    return (smallest_p(n) if paired else smallest_p(n, n)) <= level


@lru_cache(maxsize=256)
def _fewest_for(level: float, paired: bool) -> int:
    """Return the fewest repetitions that can show a difference at a level."""
    return next(n for n in itertools.count(FEWEST) if enough_for(n, level, paired=paired))


def smallest_ratio(n: int, unit: float, level: float, *, paired: bool = False) -> float:
    """Return the ratio that n repetitions of each way show with 80 % power.

    Parameters
    ----------
    n : int
        Number of repetitions.
    unit : float
        As `unit_error` gives it.
    level : float
        Two-sided level of the test.
    paired : bool
        Whether the repetitions are pairs.

    Returns
    -------
    float
        Infinity if so few repetitions show no difference, however large.
    """
    if not enough_for(n, level, paired=paired):
        return math.inf
    return math.exp((POWER - NORMAL.inv_cdf(level / 2)) * unit / math.sqrt(n))


def robust_deviation(values: Values) -> float:
    """Return the standard deviation by the interquartile range, which is robust to outliers."""
    ordered = sorted(values.tolist())
    return (_quantile(ordered, 0.75) - _quantile(ordered, 0.25)) / 1.349


def _quantile(ordered: Sequence[float], part: float) -> float:
    """Return a quantile that is unbiased for normal values (Hyndman and Fan, 1996, type 9).

    NumPy's usual quantiles would be too small for few values; its own of this type
    (``normal_unbiased``) take thirty times as long for these.
    """
    last = len(ordered) - 1
    place = min(max((last + 1.25) * part - 0.625, 0.0), float(last))
    below = min(int(place), last - 1) if last else 0
    step = ordered[min(below + 1, last)] - ordered[below]
    return ordered[below] + (place - below) * step
