"""Which of many ways are shown to be faster than which others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pffbench_analysis.compare.inference import FALSE_DISCOVERIES, FEWEST, adjusted
from pffbench_analysis.compare.model import SMALLEST_EFFECT
from pffbench_analysis.recommend.contrast import Contrast, contrast, p_values

Matrix = np.ndarray[Any, np.dtype[np.bool_]]
Times = Sequence[Mapping[int, float] | None]


def shown_faster(times: Times) -> Matrix:
    """Compare all pairs of ways within the blocks that both have.

    The rule is that of `pffbench recommend`: the 95 % bootstrap interval of the median ratio of
    times excludes 1, a paired t test on the logarithms finds it with a false discovery rate of at
    most 5 % (Benjamini and Hochberg, 1995) in view of all pairs, and the difference is at least
    2 %. With fewer than five blocks nothing is shown. Ways of two runs have no block in common:
    the interval is that of the ratio of the medians of independent repetitions, and the test
    Welch's.

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
    pairs = list(_pairs(times))
    q_values = adjusted(p_values([found for _, _, found in pairs]))
    for (i, j, found), q in zip(pairs, q_values, strict=True):
        if q > FALSE_DISCOVERIES:
            continue
        # `found` is the time of j over that of i.
        if found.low > 1 and found.median >= 1 + SMALLEST_EFFECT:
            shown[i, j] = _median(times[i]) < _median(times[j])
        elif found.high < 1 and 1 / found.median >= 1 + SMALLEST_EFFECT:
            shown[j, i] = _median(times[j]) < _median(times[i])
    return shown


def _pairs(times: Times) -> Iterator[tuple[int, int, Contrast]]:
    """Yield the pairs that can be compared, with the ratio of the second to the first one."""
    for (i, a), (j, b) in combinations(enumerate(times), 2):
        found = None if a is None or b is None else contrast(a, b)
        if found is not None and found.n >= FEWEST:
            yield i, j, found


def _median(by_block: Mapping[int, float] | None) -> float:
    return float(np.median(list((by_block or {}).values())))
