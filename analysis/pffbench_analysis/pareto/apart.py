"""Which of many ways are shown to be faster than which others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pffbench.results.statistics import interval_of_median
from pffbench_analysis.compare.inference import FALSE_DISCOVERIES, FEWEST, adjusted
from pffbench_analysis.compare.model import SMALLEST_EFFECT

Matrix = np.ndarray[Any, np.dtype[np.bool_]]
Values = np.ndarray[Any, np.dtype[np.float64]]


def shown_faster(times: Sequence[Mapping[int, float] | None]) -> Matrix:
    """Compare all pairs of ways within the blocks that both have.

    The rule is that of `pffbench recommend`: the 95 % bootstrap interval of the median ratio of
    times excludes 1, a paired t test on the logarithms finds it with a false discovery rate of at
    most 5 % (Benjamini and Hochberg, 1995) in view of all pairs, and the difference is at least
    2 %. With fewer than five blocks nothing is shown.

    Parameters
    ----------
    times : sequence of dict or None
        For each way the seconds by block; None for one of which nothing can be said.

    Returns
    -------
    array of bool, shape (n, n)
        True at [i, j] where i is shown to be faster than j.
    """
    shown = np.zeros((len(times), len(times)), dtype=np.bool_)
    pairs, ratios = _pairs(times)
    intervals = [interval_of_median(r) for r in ratios]
    q_values = adjusted(_p_values(ratios))
    for (i, j), ratio, (low, high), q in zip(pairs, ratios, intervals, q_values, strict=True):
        middle = float(np.median(ratio))
        if q > FALSE_DISCOVERIES:
            continue
        # `ratio` is the time of j over that of i.
        if low > 1 and middle >= 1 + SMALLEST_EFFECT:
            shown[i, j] = _median(times[i]) < _median(times[j])
        elif high < 1 and 1 / middle >= 1 + SMALLEST_EFFECT:
            shown[j, i] = _median(times[j]) < _median(times[i])
    return shown


def _pairs(
    times: Sequence[Mapping[int, float] | None],
) -> tuple[list[tuple[int, int]], list[Values]]:
    """Return the pairs with enough blocks, and the ratios of the second to the first one."""
    pairs, ratios = [], []
    for i, j in combinations(range(len(times)), 2):
        a, b = times[i], times[j]
        common = sorted(set(a) & set(b)) if a is not None and b is not None else []
        if a is not None and b is not None and len(common) >= FEWEST:
            pairs.append((i, j))
            ratios.append(np.array([b[block] / a[block] for block in common], dtype=np.float64))
    return pairs, ratios


def _p_values(ratios: Sequence[Values]) -> list[float]:
    """Test whether logarithms of ratios are zero in the mean; ones that never vary are no chance.

    Written out for all pairs at once: hundreds of calls of `scipy.stats.ttest_1samp` take seconds.
    """
    from scipy.special import stdtr

    if not ratios:
        return []
    logarithms = [np.log(ratio) for ratio in ratios]
    sizes = np.array([values.size for values in logarithms])
    means = np.array([values.mean() for values in logarithms])
    errors = np.array([values.std(ddof=1) for values in logarithms]) / np.sqrt(sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.abs(means) / errors
    p = 2 * stdtr(sizes - 1, -np.where(np.isnan(scores), 0.0, scores))
    return [float(value) for value in p]


def _median(by_block: Mapping[int, float] | None) -> float:
    return float(np.median(list((by_block or {}).values())))
