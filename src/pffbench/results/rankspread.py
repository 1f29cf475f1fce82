"""How far the ranks of a job lie apart in one phase: who is slowest, where, and by how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pffbench.results.samples import Sample


@dataclass(frozen=True)
class RankSpread:
    """The ranks of one phase of one case, over the repetitions that count.

    Parameters
    ----------
    first, middle, last : float
        Seconds of the fastest, the middle and the slowest rank: medians over the repetitions.
    imbalance : float
        Seconds of the slowest over those of the middle rank, the median over the repetitions.
        1 means that all ranks take equally long; NaN where the middle one takes no time.
    slowest_rank : int
        The rank that was the slowest most often.
    slowest_share : float
        Part of the repetitions in which it was; of R equal ranks each has about 1 / R.
    slowest_host : str
        The host that had the slowest rank most often.
    host_share : float
        Part of the repetitions in which it had.
    """

    first: float
    middle: float
    last: float
    imbalance: float
    slowest_rank: int
    slowest_share: float
    slowest_host: str
    host_share: float


def rank_spread(rows: Sequence[Sample]) -> RankSpread | None:
    """Describe the ranks by the samples of one phase, one for each repetition; at least one.

    None where only the slowest rank is known, as in what other programs measured.
    """
    middle = np.array([row.own_median for row in rows])
    if np.isnan(middle).any():
        return None
    last = np.array([row.own_max for row in rows])
    ratios = last[middle > 0] / middle[middle > 0]
    rank, times = Counter([row.slowest_rank for row in rows]).most_common(1)[0]
    host, visits = Counter([row.slowest_host for row in rows]).most_common(1)[0]
    return RankSpread(
        first=float(np.median([row.own_min for row in rows])),
        middle=float(np.median(middle)),
        last=float(np.median(last)),
        imbalance=float(np.median(ratios)) if ratios.size else float("nan"),
        slowest_rank=rank,
        slowest_share=times / len(rows),
        slowest_host=host,
        host_share=visits / len(rows),
    )
