"""Which of two ways is faster: rank tests, repeated looks, many comparisons, dependent repetitions.

Every statement of pffbench that one thing is faster than another comes from this module: the
headline, the table, `recommend`, `compare`, the Pareto front and the report page.

The pieces, each for a property of I/O timings that has been measured (docs/method.md):

* Times have outliers and several modes, so two ways are compared by the Wilcoxon-Mann-Whitney
  test, whose null distribution is exact for any distribution of the times. Its inversion gives
  the interval of the ratio of two times (Hodges and Lehmann, 1963).
* A run looks at its results after 10, 14, 20, 28, … repetitions and stops when all comparisons of
  its headline are decided. Each look gets an equal share of the error (Bonferroni), so that the
  probability of any false claim at any look stays bounded whatever the dependence of the looks.
* A run makes many comparisons. Holm's procedure (1979) bounds the probability of *any* false
  claim in a run; with looks it is the group-sequential procedure of Maurer and Bretz (2013).
* Repetitions of one way can depend on each other. The autocorrelation is estimated over all ways
  of the run, and every test and interval is widened by the variance inflation it implies.

NumPy and the standard library only: rank 0 decides between two blocks of repetitions while the
other ranks wait, and importing SciPy takes half a second.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]
#: Seconds of a way in each block of repetitions.
Times = Mapping[int, float]

#: Probability of any false claim in a run.
ALPHA = 0.05
#: Two ways whose ratio is shown to be nearer to 1 than this are called equally fast.
MARGIN = 0.10
#: Repetitions after which a run may look at its results; a factor of about sqrt(2). Looks at
#: fewer show little and would take their share of the error from the later ones.
LOOKS = (10, 14, 20, 28, 40, 56, 80, 113, 160, 226, 320, 453, 640, 905)
#: Repetitions under which nothing is shown, nor dependence estimated.
FEWEST = 7
#: Under this product of sample sizes the null distribution of the rank sum is counted exactly.
_EXACT = 2500
_NORMAL = NormalDist()


def planned_looks(most: int, fewest: int = LOOKS[0]) -> tuple[int, ...]:
    """Return the numbers of repetitions after which a run of at most `most` repetitions looks.

    The last look is always at `most`. A run with a fixed number of repetitions has one look:
    ``planned_looks(n, n)``.
    """
    return (*(n for n in LOOKS if fewest <= n < most), most)


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long one way takes as another, with its uncertainty.

    Parameters
    ----------
    n : int
        Number of repetitions of the way that has fewer.
    value : float
        Ratio of the medians.
    low, high : float
        Interval at the level asked for; 0 and infinity where the repetitions are too few for any.
    p : float
        Two-sided probability of so large a difference between equal ways, dependence of the
        repetitions included.
    """

    n: int
    value: float
    low: float
    high: float
    p: float

    @classmethod
    def unknown(cls) -> Ratio:
        """Return what is known of two ways that cannot be compared: nothing."""
        return cls(0, math.nan, 0.0, math.inf, 1.0)

    @property
    def inverse(self) -> Ratio:
        """The ratio the other way round."""
        low = 1 / self.high if self.high else math.inf
        high = 1 / self.low if self.low else math.inf
        return Ratio(self.n, 1 / self.value if self.value else math.inf, low, high, self.p)

    def is_equivalent(self, margin: float) -> bool:
        """Whether the whole interval is nearer to 1 than the margin."""
        return 1 / (1 + margin) < self.low and self.high < 1 + margin


def ratio(times: Values, others: Values, level: float = ALPHA, inflation: float = 1.0) -> Ratio:
    """Compare two samples of positive times.

    Parameters
    ----------
    times, others : array of float64, shape (n,), (m,)
        Seconds of the repetitions of each way; at least one each.
    level : float
        The interval misses the true ratio with at most this probability.
    inflation : float
        Variance inflation by dependent repetitions, see `variance_inflation`.
    """
    # Medians are taken of the times, not of their logarithms, so that the ratio of two rows of a
    # table is that of the medians they show: with an even number of values the two differ.
    value = float(np.median(times)) / float(np.median(others))
    a, b = np.log(times), np.log(others)
    differences, sizes = _differences(a, b), (a.size, b.size)
    low, high = (math.exp(bound) for bound in _interval(differences, level, sizes, inflation))
    # The interval is that of the shift between two distributions, which need not hold the
    # difference of two sample medians; a printed interval always holds its estimate.
    p = _p_at(differences, 0.0, sizes, inflation)
    return Ratio(min(a.size, b.size), value, min(low, value), max(high, value), p)


def ratio_of_times(
    times: Times, others: Times, level: float = ALPHA, inflation: float = 1.0
) -> Ratio | None:
    """Compare two ways by the blocks that both have.

    Ways of two runs have no block in common; their repetitions are compared all the same, without
    what blocks have in common cancelling. None where there are none, or a time is no positive
    number.
    """
    common = times.keys() & others.keys()
    one, other = (
        np.array([way[block] for block in sorted(common)] if common else list(way.values()))
        for way in (times, others)
    )
    return ratio(one, other, level, inflation) if _are_times(one, other) else None


def _are_times(*samples: Values) -> bool:
    """Whether there are times, all of them positive numbers; a broken table can hold others."""
    return all(values.size and values.min() > 0 and values.max() < math.inf for values in samples)


def fastest_of(ways: Mapping[str, Times]) -> str:
    """Return the fastest of several ways.

    Ways can have stopped after different numbers of repetitions, so it is the one whose median
    no other one's is under, over the blocks that both have; where there is none, the one with the
    smallest median.
    """
    order = sorted(ways, key=lambda way: (_median(ways[way]), way))
    for way in order:
        if all(_median_ratio(ways[other], ways[way]) >= 1 for other in order if other != way):
            return way
    return order[0]


def _median(times: Times) -> float:
    return float(np.median(list(times.values())))


def _median_ratio(times: Times, others: Times) -> float:
    """Return the ratio of two medians over common blocks, of all where there are none."""
    common = times.keys() & others.keys()
    if not common or len(common) == len(times) == len(others):
        one, other = _median(times), _median(others)
    else:
        one, other = (float(np.median([w[b] for b in common])) for w in (times, others))
    return one / other if other > 0 else math.inf


def p_value(a: Values, b: Values, inflation: float = 1.0) -> float:
    """Return the two-sided p-value of the Wilcoxon-Mann-Whitney test.

    A tie between the samples counts as evidence against a difference, in both directions. The
    test then keeps its level for times in coarse steps too.

    Parameters
    ----------
    a, b : array of float64, shape (n,), (m,)
        Two samples.
    inflation : float
        Variance inflation by dependent repetitions. The samples are brought nearer to each other
        by the root of it before they are tested: the dual of an interval that is as much wider.
    """
    return _p_at(_differences(a, b), 0.0, (a.size, b.size), inflation)


def shift_interval(
    a: Values, b: Values, level: float, inflation: float = 1.0
) -> tuple[float, float]:
    """Return the interval of the shift from `b` to `a` that inverts the rank test.

    It holds the shifts that the test does not reject: `p_value` exceeds the level exactly where
    the interval holds 0. It is infinite where the samples are too small for the level.

    Parameters
    ----------
    a, b, inflation
        As for `p_value`; the interval is wider by the root of the inflation.
    level : float
        The interval misses the true shift with at most this probability.
    """
    return _interval(_differences(a, b), level, (a.size, b.size), inflation)


def _differences(a: Values, b: Values) -> Values:
    """Return all differences between a value of `a` and one of `b`, in their order."""
    found: Values = np.sort(np.subtract.outer(a, b).ravel())
    return found


def _centre(differences: Values) -> float:
    """Return the estimate of the shift (Hodges and Lehmann, 1963): the median difference."""
    half = differences.size // 2
    return float(differences[half] + differences[-1 - half]) / 2


def _p_at(differences: Values, shift: float, sizes: tuple[int, int], inflation: float) -> float:
    """Return the p-value of a shift."""
    if inflation > 1.0:
        centre = _centre(differences)
        shift = centre - (centre - shift) / math.sqrt(inflation)
    not_greater = int(np.searchsorted(differences, shift, side="right"))
    not_less = differences.size - int(np.searchsorted(differences, shift, side="left"))
    return min(1.0, 2 * _tail(min(not_less, not_greater), *sizes))


def _interval(
    differences: Values, level: float, sizes: tuple[int, int], inflation: float
) -> tuple[float, float]:
    """Return the interval of the shifts that are not rejected."""
    k = _critical(level / 2, *sizes)
    if k < 0:
        return -math.inf, math.inf
    low, high = float(differences[k]), float(differences[-1 - k])
    if inflation > 1.0:
        centre, wider = _centre(differences), math.sqrt(inflation)
        low, high = centre - wider * (centre - low), centre + wider * (high - centre)
    return low, high


def smallest_p(n: int, m: int) -> float:
    """Return the smallest two-sided p-value that samples of these sizes can give."""
    return min(1.0, 2 * _tail(0, n, m))


def _tail(u: int, n: int, m: int) -> float:
    """Return P(U <= u) of the rank sum statistic of two equal distributions."""
    if n * m <= _EXACT:
        return float(_cumulated(*sorted((n, m)))[u])
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    return _NORMAL.cdf((u + 0.5 - n * m / 2) / deviation)


def _critical(tail: float, n: int, m: int) -> int:
    """Return the largest k with P(U <= k) <= tail; -1 where there is none."""
    if n * m <= _EXACT:
        return int(np.searchsorted(_cumulated(*sorted((n, m))), tail, side="right")) - 1
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    return max(-1, math.floor(n * m / 2 - 0.5 + _NORMAL.inv_cdf(tail) * deviation))


@lru_cache(maxsize=4096)
def _cumulated(n: int, m: int) -> Values:
    """Count the orders of n + m values by their statistic U; return P(U <= u) for all u.

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
    cumulated: Values = np.minimum(np.cumsum(np.maximum(density, 0.0)), 1.0)
    return cumulated


#: With this, simulated false claims stay under 10 % from two ways on where the correlation is 0.5.
_CAUTION = 1.5
#: Few repetitions cannot tell larger correlations from a trend.
_LARGEST_CORRELATION = 0.8


def variance_inflation(
    tables: Sequence[Sequence[Times]],
    n: int,
    *,
    shared_cancels: bool = True,
    cautious: bool = True,
) -> float:
    """Estimate by how much dependence of successive repetitions inflates the variance of means.

    The first-order autocorrelation is estimated over all ways together, since a single series of
    ten numbers says next to nothing of it. Times enter as normal scores of their ranks, so that
    outliers do not decide. The estimate is corrected for its bias in short series (Kendall, 1954).
    Correlations under 0 count as none, those over 0.8 as 0.8.

    Parameters
    ----------
    tables : sequence of sequence of dict
        Seconds by block of the ways of each table.
    n : int
        Number of repetitions of each of two ways that are to be compared.
    shared_cancels : bool
        Whether what the ways of a table have in common in a block, such as the load of the
        machine, cancels in what is compared and is left out of the estimate. So it does between
        ways of a run; it does not between two runs, nor in the median of a single way.
    cautious : bool
        Whether one and a half times the square of its standard error is added to the correlation:
        one that is underestimated makes more false claims than one that is overestimated
        prevents. It is next to nothing with many ways, and becomes so with many repetitions.

    Returns
    -------
    float
        At least 1; 1 where no two ways (no way, if nothing cancels) have `FEWEST` blocks.
    """
    products = squares = lengths = series = 0.0
    for ways in tables:
        scores = _residuals(ways) if shared_cancels else _scores(ways)
        if not scores:
            continue
        own = sum(float((row**2).sum()) for row in scores.values())
        products += sum(float((row[1:] * row[:-1]).sum()) for row in scores.values())
        squares += own
        lengths += sum(row.size * float((row**2).sum()) for row in scores.values())
        series += len(scores) - 1 if shared_cancels else _independent(ways, scores)
    if not squares:
        return 1.0
    length = lengths / squares
    # The expectation of the observed correlation is about -1/length + slope * correlation.
    slope = 1 - 4 / length
    correlation = (products / squares + 1 / length) / slope
    squared_error = 1 / (series * length * slope**2)
    return inflation_of(correlation + cautious * _CAUTION * squared_error, n)


def inflation_of(correlation: float, n: int) -> float:
    """Return the variance inflation in the comparison of two series of length n.

    Of a mean of n values with autocorrelations r, r^2, …, it is 1 + 2 * sum((1 - k/n) * r^k). The
    test takes the spread from the same values, in which dependence makes it too small as well.
    """
    r = min(max(correlation, 0.0), _LARGEST_CORRELATION)
    if r == 0.0 or n < 2:
        return 1.0
    lags = np.arange(1, n)
    of_mean = 1 + 2 * float(((1 - lags / n) * r**lags).sum())
    return of_mean * (n - 1) / (n - of_mean)


def _scores(ways: Sequence[Times]) -> dict[int, Values]:
    """Return normal scores of the repetitions of each way that has enough of them."""
    return {
        place: _normal_scores([way[block] for block in sorted(way)])
        for place, way in enumerate(ways)
        if len(way) >= FEWEST
    }


def _residuals(ways: Sequence[Times]) -> dict[int, Values]:
    """Return normal scores over common blocks, less what the ways have in common in each block.

    Ways that stopped early would leave few blocks that all have, so those with the most blocks are
    taken, as many as give the most values.
    """
    ordered = sorted(ways, key=len, reverse=True)
    common, chosen, most = set(ordered[0]) if ordered else set(), set(), 0
    for others, way in enumerate(ordered[1:], start=1):
        common = common & way.keys()
        if others * len(common) > most and len(common) >= FEWEST:
            chosen, count, most = common, others + 1, others * len(common)
    if not most:
        return {}
    blocks = sorted(chosen)
    scores = np.array([_normal_scores([way[b] for b in blocks]) for way in ordered[:count]])
    return dict(enumerate(scores - scores.mean(axis=0)))


def _normal_scores(seconds: Sequence[float]) -> Values:
    """Return the normal scores of the ranks of some values."""
    n = len(seconds)
    ranks = np.argsort(np.argsort(seconds, kind="stable"), kind="stable")
    scores: Values = _quantiles(n)[ranks]
    return scores


@lru_cache(maxsize=256)
def _quantiles(n: int) -> Values:
    return np.array([_NORMAL.inv_cdf((i + 0.5) / n) for i in range(n)])


def _independent(ways: Sequence[Times], scores: Mapping[int, Values]) -> float:
    """Return to how many independent series some series amount, by what they share in a block."""
    by_block: dict[int, float] = defaultdict(float)
    for place, row in scores.items():
        for block, score in zip(sorted(ways[place]), row, strict=True):
            by_block[block] += float(score)
    together = sum(total**2 for total in by_block.values())
    apart = sum(float((row**2).sum()) for row in scores.values())
    count = len(scores)
    return min(float(count), max(1.0, count * apart / together)) if together else float(count)


@dataclass(frozen=True)
class Table:
    """Ways that do the same work, and the pairs of them that are compared.

    Parameters
    ----------
    times : dict of str to dict
        For each way its seconds in each block of repetitions. Ways that are in no pair, such as
        raw transfers, only help to estimate how far repetitions depend on each other.
    pairs : tuple of (str, str)
        The comparisons.
    """

    times: Mapping[str, Times]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What is known of a pair of ways.

    Parameters
    ----------
    ratio : Ratio
        Time of the first over that of the second, over the blocks that both have. Its interval
        covers the true ratio with 95 % at all looks together.
    longer, shorter : bool
        Whether the first is shown to take longer, or less time, than the second, in view of all
        pairs and looks. The look that showed it decides, whatever the ratio over more blocks.
    equivalent : bool
        Whether the interval lay within the margin around 1 at a look. Each pair by itself is
        called equivalent wrongly with at most 2.5 %: this is not adjusted for the number of pairs.
    needed : int
        Repetitions that would probably decide it, if it goes on as so far.
    """

    ratio: Ratio
    longer: bool = False
    shorter: bool = False
    equivalent: bool = False
    needed: int = 0

    @property
    def different(self) -> bool:
        """Whether the two are shown to differ."""
        return self.longer or self.shorter

    @property
    def decided(self) -> bool:
        """Whether either is shown."""
        return self.different or self.equivalent

    @property
    def inverse(self) -> Decision:
        """The same of the second over the first."""
        return Decision(self.ratio.inverse, self.shorter, self.longer, self.equivalent, self.needed)


#: Decisions by the place of the table and the pair.
Decisions = dict[tuple[int, str, str], Decision]
#: Pairs of a table above which only those with its fastest way are looked at: their number grows
#: with the square of the ways. Holm's procedure counts them all.
_MOST_PAIRS = 1500


def decide(
    tables: Sequence[Table],
    looks: Sequence[int],
    *,
    ended: bool = True,
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> Decisions:
    """Decide which ways differ, by all looks up to now.

    A pure function of the times: a run that decides whether to go on, and a report that is made
    of it later, come to the same result.

    Parameters
    ----------
    tables : sequence of Table
        All comparisons of a run.
    looks : sequence of int
        Numbers of repetitions after which the run looks, as it was planned; see `planned_looks`.
    ended : bool
        Whether no more repetitions come: all that there are are then looked at, in place of the
        look that would have come next, or at the last one.
    margin : float
        Difference, as a part, under which two ways count as equally fast.
    alpha : float
        Probability of any false claim of a difference.
    """
    pairs = [(i, a, b) for i, table in enumerate(tables) for a, b in table.pairs]
    common = {(i, a, b): _blocks(tables[i].times[a], tables[i].times[b]) for i, a, b in pairs}
    useful = _useful(looks, alpha / max(1, len(pairs)))
    family = _Family(tables, common, len(pairs), alpha, margin, max(1, len(useful)))
    counts = {pair: blocks.count for pair, blocks in common.items() if blocks.count >= FEWEST}
    before = 0
    for n in useful:
        last = ended and n == useful[-1]
        family.look([p for p, count in counts.items() if count >= n], None if last else n)
        if ended:
            # The last data of a pair take the place of the look that did not come about.
            family.look([p for p, count in counts.items() if before < count < n], None)
        before = n
    family.report_all()
    return family.decisions


#: Normal score of the probability, 80 %, with which the repetitions that are named would decide.
_POWER = 0.84


def unit_error(times: Values, others: Values, inflation: float = 1.0) -> float:
    """Return the standard error of the logarithm of a ratio, times the root of the repetitions.

    It follows from the spread of both samples. The rank test has 3/pi of the efficiency of the t
    test where times are normal, and more where they have outliers.
    """
    spread = math.hypot(*(_robust_deviation(np.log(values)) for values in (times, others)))
    return spread * math.sqrt(inflation * math.pi / 3)


def repetitions_for(distance: float, unit: float, level: float) -> int:
    """Return the repetitions of each way that show a distance of logarithms with 80 % power.

    Parameters
    ----------
    distance : float
        Logarithm of a ratio; more than 0.
    unit : float
        As `unit_error` gives it.
    level : float
        Two-sided level of the test.

    Returns
    -------
    int
        Never fewer than the test needs to show any difference at this level.
    """
    enough = math.ceil(((_POWER - _NORMAL.inv_cdf(level / 2)) * unit / distance) ** 2)
    return max(enough, _fewest_for(level))


@lru_cache(maxsize=256)
def _fewest_for(level: float) -> int:
    """Return the smallest equal sizes of two samples that can show a difference at a level."""
    return next(n for n in itertools.count(FEWEST) if smallest_p(n, n) <= level)


def smallest_ratio(n: int, unit: float, level: float) -> float:
    """Return the ratio that n repetitions of each way show with 80 % power.

    Parameters
    ----------
    n : int
        Number of repetitions.
    unit : float
        As `unit_error` gives it.
    level : float
        Two-sided level of the test.

    Returns
    -------
    float
        Infinity where so few repetitions show no difference, however large.
    """
    if smallest_p(n, n) > level:
        return math.inf
    return math.exp((_POWER - _NORMAL.inv_cdf(level / 2)) * unit / math.sqrt(n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, 1979).

    Where a difference is claimed of each adjusted p-value up to 0.05, the probability that any of
    the claims is false is at most 5 %.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def _robust_deviation(values: Values) -> float:
    """Return the standard deviation by the interquartile range, which outliers do not change."""
    # NumPy's usual quantiles would give too little of a few values.
    low, high = np.quantile(values, [0.25, 0.75], method="normal_unbiased")
    return float(high - low) / 1.349


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The blocks by which two ways are compared: those that both have, each in its order.

    Ways of two runs have no block in common, and all their repetitions are compared.
    """

    first: Sequence[int]
    second: Sequence[int]

    @property
    def count(self) -> int:
        """Number of repetitions of the way that has fewer."""
        return min(len(self.first), len(self.second))

    @property
    def are_shared(self) -> bool:
        """Whether both ways have the same blocks."""
        return self.first is self.second

    def values(self, a: Times, b: Times, n: int | None) -> tuple[Values, Values]:
        """Return the seconds of the first n blocks, or of all."""
        one = np.array([a[block] for block in self.first[:n]])
        return one, np.array([b[block] for block in self.second[:n]])

    def last(self, n: int | None) -> int:
        """Return the last of the first n blocks, or of all."""
        return max(self.first[:n][-1], self.second[:n][-1])


def _blocks(a: Times, b: Times) -> _Blocks:
    common = sorted(a.keys() & b.keys())
    return _Blocks(common, common) if common else _Blocks(sorted(a), sorted(b))


def _useful(looks: Sequence[int], alpha: float) -> list[int]:
    """Return the looks at which a difference could be shown at all; no error is spent on others."""
    for first in range(len(looks)):
        left = list(looks[first:])
        if smallest_p(left[0], left[0]) <= alpha / len(left):
            return left
    return list(looks[-1:])


class _Family:
    """The comparisons of a run, with what has been decided so far."""

    def __init__(
        self,
        tables: Sequence[Table],
        common: Mapping[tuple[int, str, str], _Blocks],
        count: int,
        alpha: float,
        margin: float,
        looks: int,
    ) -> None:
        self._tables = tables
        self._common = common
        self._left = count
        self._alpha = alpha
        self._margin = margin
        self._looks = looks
        self._inflations: dict[tuple[int, int, bool, bool], float] = {}
        self.decisions: Decisions = {}

    def look(self, pairs: Sequence[tuple[int, str, str]], n: int | None) -> None:
        """Compare pairs by their first n common blocks, or all of them."""
        open_ = [p for p in pairs if p not in self.decisions or not self.decisions[p].decided]
        found = {pair: ratio for pair in self._worth(open_, n) if (ratio := self._ratio(pair, n))}
        different = set()
        for pair, ratio_ in sorted(found.items(), key=lambda item: item[1].p):
            if ratio_.p > self._alpha / self._left / self._looks:
                break
            # The interval holds 1 all the same where the medians are the other way round.
            if ratio_.low > 1 or ratio_.high < 1:
                self.decisions[pair] = Decision(ratio_, ratio_.low > 1, ratio_.high < 1)
                different.add(pair)
            self._left -= 1
        for pair in found.keys() - different:
            same = found[pair].is_equivalent(self._margin)
            self.decisions[pair] = Decision(found[pair], equivalent=same)

    def report_all(self) -> None:
        """Give every pair the ratio over all blocks that it has; a decision stays what it is."""
        for pair in self._common:
            ratio_ = self._ratio(pair, None)
            if ratio_ is None:
                continue
            known = self.decisions.get(pair)
            if known is not None and known.decided:
                self.decisions[pair] = replace(known, ratio=ratio_)
            else:
                self.decisions[pair] = Decision(ratio_, needed=self._needed(pair, ratio_))

    def _worth(
        self, pairs: Sequence[tuple[int, str, str]], n: int | None
    ) -> list[tuple[int, str, str]]:
        """Return the pairs to look at: of a very large table those with its fastest way."""
        fastest = {
            i: self._fastest(table, n)
            for i, table in enumerate(self._tables)
            if len(table.pairs) > _MOST_PAIRS
        }
        return [(i, a, b) for i, a, b in pairs if i not in fastest or fastest[i] in (a, b)]

    def _fastest(self, table: Table, n: int | None) -> str:
        """Return the way with the smallest median of its first n blocks."""
        named = sorted({way for pair in table.pairs for way in pair})
        first = {way: [table.times[way][b] for b in sorted(table.times[way])[:n]] for way in named}
        return min(named, key=lambda way: float(np.median(first[way])))

    def _ratio(self, pair: tuple[int, str, str], n: int | None) -> Ratio | None:
        one, other = self._values(pair, n)
        if not _are_times(one, other):
            return None
        inflation = self._inflation(pair, n, min(one.size, other.size))
        return ratio(one, other, self._alpha / self._looks, inflation)

    def _values(self, pair: tuple[int, str, str], n: int | None) -> tuple[Values, Values]:
        i, a, b = pair
        times = self._tables[i].times
        return self._common[pair].values(times[a], times[b], n)

    def _inflation(
        self, pair: tuple[int, str, str], n: int | None, size: int, *, cautious: bool = True
    ) -> float:
        """Return the variance inflation by the dependence seen in the first n blocks of a pair."""
        blocks = self._common[pair]
        last = blocks.last(n)
        key = (last, size, blocks.are_shared, cautious)
        if key not in self._inflations:
            cut = [
                [{b: s for b, s in way.items() if b <= last} for way in table.times.values()]
                for table in self._tables
            ]
            self._inflations[key] = variance_inflation(
                cut, size, shared_cancels=blocks.are_shared, cautious=cautious
            )
        return self._inflations[key]

    def _needed(self, pair: tuple[int, str, str], ratio_: Ratio) -> int:
        """Return how many repetitions would decide, at the level that is left to the pair."""
        n = ratio_.n
        # More repetitions leave less to be cautious about.
        inflation = self._inflation(pair, None, n, cautious=False)
        unit = unit_error(*self._values(pair, None), inflation)
        distance = abs(math.log(ratio_.value))
        needed = [
            repetitions_for(gap, unit, level)
            for level, gap in (
                (self._alpha / self._left / self._looks, distance),
                (self._alpha / self._looks, math.log1p(self._margin) - distance),
            )
            if gap > 0
        ]
        return max(n + 1, min(needed, default=0))
