"""How far the ranks of a job lie apart in one phase: who is slowest, where, and by how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pffbench.results.samples import Sample
from pffbench.results.statistics import Caveat

#: Seconds until all ranks were done over those of the slowest one, above which that is told.
APART = 1.25


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


def ranks_apart(rows: Sequence[Sample]) -> list[Caveat]:
    """Find that much more time passed until all ranks were done than any of them took.

    A rank's time begins when it gets behind the barrier. Ranks that share a core get there one
    after the other, and their largest own time is less than what they take together: the rate that
    is made of it is too high.

    Parameters
    ----------
    rows : sequence of Sample
        Samples of one phase in which data move, one for each repetition; at least one.
    """
    own = float(np.median([row.own_max for row in rows]))
    synced = float(np.median([row.synced_max for row in rows]))  # nan of other programs' numbers
    if not own or not synced > APART * own:
        return []
    least, most = (rows[0].bytes / seconds / 2**20 for seconds in (synced, own))
    text = (
        f"until all ranks were done {synced / own:.1f} times as long passed ({synced:.2g} s), as "
        f"where ranks share a core: together they moved between {least:.0f} and {most:.0f} MiB/s"
    )
    return [Caveat("ranks_apart", text)]
