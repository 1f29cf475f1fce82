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
    idlest_rank : int or None
        The rank that took the least processor time most often; None where that is not recorded. In
        a collective call all ranks take equally long, and those that wait for another one poll:
        that one is idle in the system, or does not get a processor.
    idlest_share : float
        Part of the repetitions in which it did.
    idle : float
        How much less it took than the median rank, over the time of the phase; the median.
    """

    first: float
    middle: float
    last: float
    imbalance: float
    slowest_rank: int
    slowest_share: float
    slowest_host: str
    host_share: float
    idlest_rank: int | None = None
    idlest_share: float = 0.0
    idle: float = 0.0


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
    idlest, idle_times, idle = _idlest(rows)
    return RankSpread(
        first=float(np.median([row.own_min for row in rows])),
        middle=float(np.median(middle)),
        last=float(np.median(last)),
        imbalance=float(np.median(ratios)) if ratios.size else float("nan"),
        slowest_rank=rank,
        slowest_share=times / len(rows),
        slowest_host=host,
        host_share=visits / len(rows),
        idlest_rank=idlest,
        idlest_share=idle_times / len(rows),
        idle=idle,
    )


def _idlest(rows: Sequence[Sample]) -> tuple[int | None, int, float]:
    """Return who took the least processor time, how often, and how much less than the median."""
    known = [row for row in rows if row.idlest_rank is not None and row.job > 0]
    if not known:
        return None, 0, 0.0
    rank, times = Counter(row.idlest_rank for row in known).most_common(1)[0]
    return rank, times, float(np.median([row.idle_seconds / row.job for row in known]))
