"""Dependence of successive repetitions, and the resulting variance inflation."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np

from pffbench.summary.rank_test import FEWEST, NORMAL, Times, Values, p_value

#: At this value, simulated false claims stay under 10 % from two ways on, for a correlation of 0.5.
_CAUTION = 1.5


#: Standard deviation of the correlations of kinds, as between formats of one run.
_BETWEEN_KINDS = 0.2


#: Logarithm of the smallest reported change between the halves of a run.
_SHIFT = math.log(1.1)


#: Few repetitions cannot distinguish larger correlations from a trend.
_LARGEST_CORRELATION = 0.8


class Dependence(msgspec.Struct, frozen=True):
    """The dependence of successive repetitions of a run.

    Parameters
    ----------
    correlation : float
        First-order autocorrelation, over all ways.
    squared_error : float
        Square of its standard error; 0 where nothing is known.
    own : dict of str to float
        The same of the ways of each kind alone, such as those of one format. A single one that
        depends would be averaged away. With few repetitions it is drawn towards `correlation`.
    """

    correlation: float = 0.0
    squared_error: float = 0.0
    own: Mapping[str, float] = {}

    def inflation(self, n: int, kinds: Iterable[str] = (), *, cautious: bool = True) -> float:
        """Return the variance inflation of means.

        Parameters
        ----------
        n : int
            Number of repetitions of each of the two ways to be compared.
        kinds : iterable of str
            Their kinds; the largest correlation counts.
        cautious : bool
            Whether one and a half times the square of its standard error is added to the
            correlation: an underestimate causes more false claims than an overestimate prevents.
            The term is negligible with many ways, and becomes so with many repetitions.
        """
        pooled = self.correlation + cautious * _CAUTION * self.squared_error
        return inflation_of(max(pooled, *(self.own.get(k, pooled) for k in kinds), pooled), n)


def dependence(
    tables: Sequence[Mapping[str, Times]],
    kinds: Mapping[str, str] | None = None,
    *,
    shared_cancels: bool = True,
) -> Dependence:
    """Estimate the dependence of successive repetitions.

    The first-order autocorrelation is estimated over all ways together, since a single series of
    ten numbers is almost uninformative. Times enter as normal scores of their ranks, which limits
    the weight of outliers. The estimate is corrected for its bias in short series (Kendall, 1954).

    Parameters
    ----------
    tables : sequence of dict of str to dict
        For each table its ways with their seconds by block.
    kinds : dict of str to str, optional
        Kinds of ways; one that is not named is of none.
    shared_cancels : bool
        Whether the common part of a table's ways in a block, such as the load of the machine,
        cancels in the comparison and is left out of the estimate. It cancels between ways of one
        run, but not between two runs, nor in the median of a single way.

    Returns
    -------
    Dependence
        Of independent repetitions where no two ways (no way, if nothing cancels) have `FEWEST`
        blocks.
    """
    everything = _Sums()
    own: dict[str, _Sums] = defaultdict(_Sums)
    for table in tables:
        names, ways = list(table), list(table.values())
        scores = _residuals(ways) if shared_cancels else _scores(ways)
        if not scores:
            continue
        # The common part takes one series of each table.
        series = len(scores) - 1 if shared_cancels else _independent(ways, scores)
        for place, row in scores.items():
            kind = (kinds or {}).get(names[place])
            for sums in (everything, *([own[kind]] if kind is not None else [])):
                sums.add(row, series / len(scores))
    if not everything.squares:
        return Dependence()
    pooled, squared_error = everything.estimate()
    return Dependence(
        pooled,
        squared_error,
        {kind: _drawn(sums, pooled) for kind, sums in own.items() if sums.squares},
    )


def _drawn(sums: _Sums, pooled: float) -> float:
    """Return the correlation of one kind, drawn towards that of all by its uncertainty."""
    correlation, squared_error = sums.estimate()
    weight = _BETWEEN_KINDS**2 / (_BETWEEN_KINDS**2 + squared_error)
    return pooled + weight * (correlation - pooled)


class _Sums:
    """Sums over series of scores, for their autocorrelation."""

    def __init__(self) -> None:
        self.products = self.squares = self.lengths = self.series = 0.0

    def add(self, row: Values, series: float) -> None:
        """Add a series, which counts as so many independent ones."""
        squares = float((row**2).sum())
        self.products += float((row[1:] * row[:-1]).sum())
        self.squares += squares
        self.lengths += row.size * squares
        self.series += series

    def estimate(self) -> tuple[float, float]:
        """Return the autocorrelation, and the square of its standard error."""
        length = self.lengths / self.squares
        # The expectation of the observed correlation is about -1/length + slope * correlation.
        slope = 1 - 4 / length
        correlation = (self.products / self.squares + 1 / length) / slope
        return correlation, 1 / (self.series * length * slope**2)


def variance_inflation(
    tables: Sequence[Sequence[Times]],
    n: int,
    *,
    shared_cancels: bool = True,
    cautious: bool = True,
) -> float:
    """Return the variance inflation by dependence over all ways together; see `dependence`."""
    named = [{str(place): way for place, way in enumerate(ways)} for ways in tables]
    return dependence(named, shared_cancels=shared_cancels).inflation(n, cautious=cautious)


def shifts(ways: Mapping[str, Times]) -> dict[str, float]:
    """Find ways that became slower or faster than the others during a run.

    The first half of the repetitions is compared with the second, by the time of a way over the
    geometric mean of all in the same block. Repetitions that depend on each other, such as those
    of a state that lasts, show there; claims are false more often than in 5 % of runs then.

    Parameters
    ----------
    ways : dict of str to dict
        Seconds by block.

    Returns
    -------
    dict of str to float
        Time of the second half over that of the first, of ways where it is at least `_SHIFT` and
        chance in one run of a hundred.
    """
    blocks = sorted(set.intersection(*map(set, ways.values()))) if len(ways) > 1 else []
    half = len(blocks) // 2
    if half < FEWEST:
        return {}
    logarithms = np.log([[way[block] for block in blocks] for way in ways.values()])
    apart = logarithms - logarithms.mean(axis=0)
    found = {}
    for name, row in zip(ways, apart, strict=True):
        before, after = row[:half], row[-half:]
        ratio = math.exp(float(np.median(after) - np.median(before)))
        if abs(math.log(ratio)) > _SHIFT and p_value(after, before) < 0.01 / len(ways):
            found[name] = ratio
    return found


def inflation_of(correlation: float, n: int) -> float:
    """Return the variance inflation in the comparison of two series of length n.

    For a mean of n values with autocorrelations r, r^2, …, it is 1 + 2 * sum((1 - k/n) * r^k). The
    test estimates the spread from the same values, which dependence makes too small as well.
    """
    r = min(max(correlation, 0.0), _LARGEST_CORRELATION)
    if r == 0.0 or n < 2:
        return 1.0
    lags = np.arange(1, n)
    of_mean = 1 + 2 * float(((1 - lags / n) * r**lags).sum())
    return of_mean * (n - 1) / (n - of_mean)


def _scores(ways: Sequence[Times]) -> dict[int, Values]:
    """Return normal scores of the repetitions of each way with enough of them."""
    return {
        place: _normal_scores([way[block] for block in sorted(way)])
        for place, way in enumerate(ways)
        if len(way) >= FEWEST
    }


def _residuals(ways: Sequence[Times]) -> dict[int, Values]:
    """Return normal scores over common blocks, less the common part of the ways in each block.

    Ways that stopped early would leave few common blocks, so the ways with the most blocks are
    used: the number of ways that gives the most values.
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
    return np.array([NORMAL.inv_cdf((i + 0.5) / n) for i in range(n)])


def _independent(ways: Sequence[Times], scores: Mapping[int, Values]) -> float:
    """Return the effective number of independent series, given their common part per block."""
    by_block: dict[int, float] = defaultdict(float)
    for place, row in scores.items():
        for block, score in zip(sorted(ways[place]), row, strict=True):
            by_block[block] += float(score)
    together = sum(total**2 for total in by_block.values())
    apart = sum(float((row**2).sum()) for row in scores.values())
    count = len(scores)
    return min(float(count), max(1.0, count * apart / together)) if together else float(count)
