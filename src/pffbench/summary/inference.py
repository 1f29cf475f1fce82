"""Which of two ways is faster: rank tests, repeated looks, many comparisons, dependent repetitions.

Every statement of pffbench that one thing is faster than another comes from this module: the
headline, the table, `recommend`, `compare`, the Pareto front and the report page.

The pieces, each for a property of I/O timings that has been measured (docs/method.md):

* Times have outliers and several modes, so two ways are compared by the Wilcoxon-Mann-Whitney
  test, whose null distribution is exact for any distribution of the times. Its inversion gives
  the interval of the ratio of two times (Hodges and Lehmann, 1963).
* A run looks at its results after 5, 7, 10, 14, … repetitions and stops when all comparisons of
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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
#: Repetitions after which a run may look at its results; from 5 on about a factor of sqrt(2).
LOOKS = (5, 7, 10, 14, 20, 28, 40, 56, 80, 113, 160, 226, 320, 453, 640, 905)
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


def ratio(
    times: Values, others: Values, level: float = ALPHA, inflation: float = 1.0
) -> Ratio:
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
    a, b = np.log(times), np.log(others)
    value = math.exp(float(np.median(a)) - float(np.median(b)))
    low, high = (math.exp(bound) for bound in shift_interval(a, b, level, inflation))
    # The interval is that of the shift between two distributions, which need not hold the
    # difference of two sample medians; a printed interval always holds its estimate.
    p = p_value(a, b, inflation)
    return Ratio(min(a.size, b.size), value, min(low, value), max(high, value), p)


def ratio_of_times(
    times: Times, others: Times, level: float = ALPHA, inflation: float = 1.0
) -> Ratio | None:
    """Compare two ways by the blocks that both have.

    Ways of two runs have no block in common; their repetitions are compared all the same, without
    what blocks have in common cancelling. None where a time is not positive or there are none.
    """
    common = times.keys() & others.keys()
    one, other = (
        np.array([way[block] for block in sorted(common)] if common else list(way.values()))
        for way in (times, others)
    )
    if not one.size or not other.size or min(one.min(), other.min()) <= 0:
        return None
    return ratio(one, other, level, inflation)


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
    """Return the two-sided p-value of the Wilcoxon-Mann-Whitney test; ties count half.

    Parameters
    ----------
    a, b : array of float64, shape (n,), (m,)
        Two samples.
    inflation : float
        The normal score that belongs to the p-value is divided by the root of it.
    """
    greater = np.searchsorted(np.sort(b), a, side="left").sum()
    not_less = np.searchsorted(np.sort(b), a, side="right").sum()
    u = (greater + not_less) / 2
    p = min(1.0, 2 * _tail(min(u, a.size * b.size - u), a.size, b.size))
    return p if inflation == 1.0 else _deflated(p, inflation)


def shift_interval(
    a: Values, b: Values, level: float, inflation: float = 1.0
) -> tuple[float, float]:
    """Return the interval of the shift from `b` to `a` that inverts the rank test.

    Infinite where the samples are too small for the level.
    """
    if inflation > 1.0:
        level = 2 * _NORMAL.cdf(_NORMAL.inv_cdf(level / 2) * math.sqrt(inflation))
    differences = np.sort(np.subtract.outer(a, b).ravel())
    k = _critical(level / 2, a.size, b.size)
    if k < 0:
        return -math.inf, math.inf
    return float(differences[k]), float(differences[-1 - k])


def smallest_p(n: int, m: int) -> float:
    """Return the smallest two-sided p-value that samples of these sizes can give."""
    return min(1.0, 2 * _tail(0.0, n, m))


def _deflated(p: float, inflation: float) -> float:
    """Return the p-value of a normal score whose variance was underestimated."""
    if p >= 1.0:
        return 1.0
    # Far in the tail the normal quantile is that of the smallest float.
    score = _NORMAL.inv_cdf(max(p, 1e-300) / 2)
    return 2 * _NORMAL.cdf(score / math.sqrt(inflation))


def _tail(u: float, n: int, m: int) -> float:
    """Return P(U <= u) of the rank sum statistic of two equal distributions."""
    if n * m <= _EXACT:
        return float(_cumulated(*sorted((n, m)))[math.floor(u)])
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


def variance_inflation(tables: Sequence[Sequence[Times]], n: int) -> float:
    """Estimate by how much dependence of successive repetitions inflates the variance of means.

    The first-order autocorrelation is estimated over all ways together, since a single series of
    ten numbers says next to nothing of it. Times enter as normal scores of their ranks, so that
    outliers do not decide; what all ways of a table share in a block is taken away first, since
    it cancels in their comparison. The estimate is corrected for its bias in short series
    (Kendall, 1954), and correlations under 0 count as none.

    Parameters
    ----------
    tables : sequence of sequence of dict
        Seconds by block of the ways of each table.
    n : int
        Number of repetitions of each of two ways that are to be compared.

    Returns
    -------
    float
        At least 1.
    """
    products = squares = length = 0.0
    for ways in tables:
        scores = _scores(ways)
        if scores is None:
            continue
        products += float((scores[:, 1:] * scores[:, :-1]).sum())
        squares += float((scores**2).sum())
        length += scores.shape[1] * float((scores**2).sum())
    if not squares:
        return 1.0
    mean_length = length / squares
    # A weighted mean of fives is not exactly five, and dividing by what is left over 4 would then
    # make an inflation of noise.
    if mean_length < 5.5:
        return 1.0
    correlation = (mean_length * products / squares + 1) / (mean_length - 4)
    return inflation_of(correlation, n)


def inflation_of(correlation: float, n: int) -> float:
    """Return the variance inflation in the comparison of two series of length n.

    Of a mean of n values with autocorrelations r, r^2, …, it is 1 + 2 * sum((1 - k/n) * r^k). The
    rank test takes the spread from the same values, which dependence makes too small as well.
    """
    r = min(max(correlation, 0.0), 0.95)
    if r == 0.0 or n < 2:
        return 1.0
    lags = np.arange(1, n)
    of_mean = 1 + 2 * float(((1 - lags / n) * r**lags).sum())
    return of_mean * (2 * n - 1) / (2 * n - min(of_mean, n))


def _scores(ways: Sequence[Times]) -> Values | None:
    """Return normal scores of shape (ways, blocks) over common blocks, less the block's mean."""
    if len(ways) < 2:
        return None
    blocks = sorted(set.intersection(*(set(way) for way in ways)))
    n = len(blocks)
    if n < 3:
        return None
    seconds = np.array([[way[block] for block in blocks] for way in ways])
    ranks = seconds.argsort(axis=1, kind="stable").argsort(axis=1)
    quantiles = np.array([_NORMAL.inv_cdf((i + 0.5) / n) for i in range(n)])
    scores: Values = quantiles[ranks]
    scores -= scores.mean(axis=0)
    return scores


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
    different : bool
        Whether the two are shown to differ, in view of all pairs and looks.
    equivalent : bool
        Whether the interval lies within the margin around 1.
    needed : int
        Repetitions that would probably decide it, if it goes on as so far.
    """

    ratio: Ratio
    different: bool = False
    equivalent: bool = False
    needed: int = 0

    @property
    def decided(self) -> bool:
        """Whether either is shown."""
        return self.different or self.equivalent


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
        look that would have come next.
    margin : float
        Difference, as a part, under which two ways count as equally fast.
    alpha : float
        Probability of any false claim of a difference.
    """
    pairs = [(i, a, b) for i, table in enumerate(tables) for a, b in table.pairs]
    common = {(i, a, b): _blocks(tables[i].times[a], tables[i].times[b]) for i, a, b in pairs}
    useful = _useful(looks, alpha / max(1, len(pairs)))
    family = _Family(tables, common, len(pairs), alpha, margin, max(1, len(useful)))
    most = max((blocks.count for blocks in common.values()), default=0)
    for number, n in enumerate(useful):
        # A look at more than there is is none; the last data of a run take its place.
        if n <= most:
            family.look([p for p, blocks in common.items() if blocks.count >= n], n)
        if ended:
            before = useful[number - 1] if number else 0
            rest = [p for p, blocks in common.items() if before < blocks.count < n]
            family.look(rest, None)
    family.report_all()
    return family.decisions


#: Normal score of the probability, 80 %, with which the repetitions that are named would decide.
_POWER = 0.84


def unit_error(times: Values, others: Values, inflation: float = 1.0) -> float:
    """Return the standard error of the logarithm of a ratio, times the root of the repetitions.

    By the spread of both samples; the rank test has 3/pi of the efficiency of the t test where
    times are normal, and more where they have outliers.
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
    """
    return math.ceil(((_POWER - _NORMAL.inv_cdf(level / 2)) * unit / distance) ** 2)


def smallest_ratio(n: int, unit: float, level: float) -> float:
    """Return the ratio that n repetitions of each way show with 80 % power."""
    return math.exp((_POWER - _NORMAL.inv_cdf(level / 2)) * unit / math.sqrt(n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, 1979): claims up to 0.05 are sure together.

    The probability that any claim of a difference is false is at most 5 % then.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def _robust_deviation(values: Values) -> float:
    """Return the standard deviation by the interquartile range, which outliers do not change."""
    low, high = np.quantile(values, [0.25, 0.75])
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

    def values(self, a: Times, b: Times, n: int | None) -> tuple[Values, Values]:
        """Return the seconds of the first n blocks, or of all."""
        one = np.array([a[block] for block in self.first[:n]])
        return one, np.array([b[block] for block in self.second[:n]])

    def last(self, n: int | None) -> int:
        """Return the last of the first n blocks, or of all."""
        return max(self.first[:n][-1], self.second[:n][-1])


def _blocks(a: Times, b: Times) -> _Blocks:
    common = sorted(a.keys() & b.keys())
    return _Blocks(common or sorted(a), common or sorted(b))


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
        self._inflations: dict[tuple[int, int], float] = {}
        self.decisions: Decisions = {}

    def look(self, pairs: Sequence[tuple[int, str, str]], n: int | None) -> None:
        """Compare pairs by their first n common blocks, or all of them."""
        open_ = [p for p in pairs if p not in self.decisions or not self.decisions[p].decided]
        found = {pair: ratio for pair in self._worth(open_) if (ratio := self._ratio(pair, n))}
        for pair, ratio_ in sorted(found.items(), key=lambda item: item[1].p):
            if ratio_.p > self._alpha / self._left / self._looks:
                break
            self.decisions[pair] = Decision(ratio_, different=True)
            self._left -= 1
        for pair, ratio_ in found.items():
            if pair not in self.decisions or not self.decisions[pair].different:
                same = ratio_.is_equivalent(self._margin)
                self.decisions[pair] = Decision(ratio_, equivalent=same)

    def report_all(self) -> None:
        """Give every pair the ratio over all blocks that it has; a decision stays what it is."""
        for pair in self._common:
            ratio_ = self._ratio(pair, None)
            if ratio_ is None:
                continue
            known = self.decisions.get(pair)
            if known is not None and known.decided:
                self.decisions[pair] = Decision(ratio_, known.different, known.equivalent)
            else:
                self.decisions[pair] = Decision(ratio_, needed=self._needed(pair, ratio_))

    def _worth(self, pairs: Sequence[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
        """Return the pairs to look at: of a very large table those with its fastest way."""
        found = []
        for i, a, b in pairs:
            if len(self._tables[i].pairs) <= _MOST_PAIRS or self._fastest(i) in (a, b):
                found.append((i, a, b))
        return found

    def _fastest(self, table: int) -> str:
        times = self._tables[table].times
        named = {way for pair in self._tables[table].pairs for way in pair}
        return min(named, key=lambda way: float(np.median(list(times[way].values()))))

    def _ratio(self, pair: tuple[int, str, str], n: int | None) -> Ratio | None:
        one, other = self._values(pair, n)
        if not one.size or not other.size or min(one.min(), other.min()) <= 0:
            return None
        inflation = self._inflation(self._common[pair].last(n), min(one.size, other.size))
        return ratio(one, other, self._alpha / self._looks, inflation)

    def _values(self, pair: tuple[int, str, str], n: int | None) -> tuple[Values, Values]:
        i, a, b = pair
        times = self._tables[i].times
        return self._common[pair].values(times[a], times[b], n)

    def _inflation(self, last: int, n: int) -> float:
        """Return the variance inflation by the dependence seen up to a block."""
        key = (last, n)
        if key not in self._inflations:
            cut = [
                [{b: s for b, s in way.items() if b <= last} for way in table.times.values()]
                for table in self._tables
            ]
            self._inflations[key] = variance_inflation(cut, n)
        return self._inflations[key]

    def _needed(self, pair: tuple[int, str, str], ratio_: Ratio) -> int:
        """Return how many repetitions would decide, at the level that is left to the pair."""
        n = ratio_.n
        inflation = self._inflation(self._common[pair].last(None), n)
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
