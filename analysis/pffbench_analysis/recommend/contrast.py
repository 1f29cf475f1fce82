"""Two ways of doing the same work: how many times as long one takes, and is that chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pffbench.results.statistics import interval_of_median, ratio_of_independent

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Contrast:
    """The time of a way over that of another one.

    Parameters
    ----------
    n : int
        Number of blocks that both have; without any, of repetitions of the one that has fewer.
    median, low, high : float
        Within blocks the median of the ratios, else the ratio of the medians, with the 95 %
        bootstrap interval; NaN bounds for one block or repetition.
    within : bool
        Whether blocks are compared. Ways of two runs have none in common: their repetitions are
        independent, and what hits both alike does not cancel.
    score, freedom : float
        Student's t and its degrees of freedom, of the mean of the logarithms: of the ratios, or
        by Welch of the times.
    """

    n: int
    median: float
    low: float
    high: float
    within: bool
    score: float
    freedom: float


def contrast(base: Mapping[int, float], other: Mapping[int, float]) -> Contrast | None:
    """Compare two ways by their positive seconds in each block; None where there are none."""
    a, b = ({block: s for block, s in way.items() if s > 0} for way in (base, other))
    common = sorted(set(a) & set(b))
    if common:
        return _within(np.array([b[block] / a[block] for block in common]))
    return _independent(np.array(list(a.values())), np.array(list(b.values())))


def _within(ratios: Values) -> Contrast:
    low, high = interval_of_median(ratios)
    logarithms = np.log(ratios)
    n = ratios.size
    error = float(logarithms.std(ddof=1)) / n**0.5 if n > 1 else float("nan")
    score = _score(float(logarithms.mean()), error)
    return Contrast(n, float(np.median(ratios)), low, high, True, score, n - 1)


def _independent(a: Values, b: Values) -> Contrast | None:
    ratio = ratio_of_independent(b.tolist(), a.tolist())
    if ratio is None:
        return None
    score, freedom = _welch(np.log(a), np.log(b)) if ratio.n > 1 else (float("nan"), 0.0)
    return Contrast(ratio.n, ratio.median, ratio.low, ratio.high, False, score, freedom)


def _welch(a: Values, b: Values) -> tuple[float, float]:
    """Return t of the difference of the means, and its degrees of freedom (Welch, 1947)."""
    parts = [float(values.var(ddof=1)) / values.size for values in (a, b)]
    score = _score(float(b.mean() - a.mean()), sum(parts) ** 0.5)
    below = sum(p**2 / (v.size - 1) for p, v in zip(parts, (a, b), strict=True))
    return score, sum(parts) ** 2 / below if below else min(a.size, b.size) - 1


def _score(mean: float, error: float) -> float:
    """Return t; of values that never vary a difference is beyond doubt."""
    if error == 0.0:
        return float("inf") if mean else 0.0
    return abs(mean) / error


def p_values(contrasts: Sequence[Contrast | None]) -> list[float]:
    """Return how likely ratios so far from 1 are by chance; 1 where nothing can be said.

    Of all at once: hundreds of calls of `scipy.stats.ttest_1samp` take seconds.
    """
    from scipy.special import stdtr

    scores = np.array([np.nan if c is None else c.score for c in contrasts])
    freedom = np.array([1.0 if c is None else max(c.freedom, 1.0) for c in contrasts])
    p = 2 * stdtr(freedom, -np.where(np.isnan(scores), 0.0, scores))
    return [float(value) for value in p]
