"""The distribution of one quantity over repetitions, and its caveats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist

import msgspec
import numpy as np

from pffbench.record.samples import Sample
from pffbench.storage.durability import QUIET
from pffbench.summary.rank_test import Values
from pffbench.units import Estimate

_CONFIDENCE = 0.95
#: With fewer values no interval of a median is given: the range of four covers it with 88 %.
FEWEST_FOR_INTERVAL = 5
#: A modified z-score above this is an outlier (Iglewicz and Hoaglin, 1993).
OUTLIER_SCORE = 3.5
#: A spread above this fraction of the mean causes a warning, as in pyperf.
LARGE_CV = 0.10
#: The first repetition is slow if it exceeds the median by this factor.
SLOW_FIRST = 1.5
_NORMAL = NormalDist()
#: Above this number of values the normal approximation of the binomial distribution is used.
_MOST_EXACT = 500


class Spread(msgspec.Struct, frozen=True):
    """The distribution of one quantity over repetitions.

    Parameters
    ----------
    n : int
        Number of repetitions.
    minimum, median, maximum : float
        Of the values.
    mad : float
        Median absolute deviation from the median, not scaled.
    low, high : float
        Bounds of the 95 % interval of the median; NaN for fewer than five values.
    cv : float
        Standard deviation over mean; NaN for a single value.
    """

    n: int
    minimum: float
    median: float
    maximum: float
    mad: float
    low: float
    high: float
    cv: float

    @property
    def estimate(self) -> Estimate:
        """The median with its interval."""
        return Estimate(self.median, self.low, self.high)

    def rate(self, amount: float) -> Estimate:
        """Return an amount over the median, and over the bounds of its interval."""
        return Estimate(amount / self.median, amount / self.high, amount / self.low)


def spread(values: Sequence[float] | Values, inflation: float = 1.0) -> Spread:
    """Describe values.

    Parameters
    ----------
    values : sequence of float
        One value or more.
    inflation : float
        Variance inflation by dependent repetitions; it widens the interval.
    """
    v: Values = np.asarray(values, dtype=np.float64)
    median = float(np.median(v))
    low, high = interval_of_median(v, inflation)
    mean = float(v.mean())
    cv = float(v.std(ddof=1)) / mean if v.size > 1 and mean > 0 else float("nan")
    mad = float(np.median(np.abs(v - median)))
    return Spread(v.size, float(v.min()), median, float(v.max()), mad, low, high, cv)


def interval_of_median(values: Values, inflation: float = 1.0) -> tuple[float, float]:
    """Return the 95 % interval of a median by order statistics, whatever the distribution.

    It is interpolated between two order statistics as by Hettmansperger and Sheather (1986), which
    brings the coverage close to 95 % for any n. The range of five values covers their median with
    94 %; fewer values give no interval.

    Parameters
    ----------
    values : array of float64
        The values.
    inflation : float
        Variance inflation by dependent repetitions.
    """
    n = values.size
    if n < FEWEST_FOR_INTERVAL:
        return float("nan"), float("nan")
    depth, weight = _depth(n, round(inflation, 2))
    x = np.sort(values)
    # Rounding must not bring a bound to the other side of the median, nor out of the values.
    low = min(x[depth - 1] + weight * (x[depth] - x[depth - 1]), x[depth])
    high = max(x[n - depth] - weight * (x[n - depth] - x[n - depth - 1]), x[n - depth - 1])
    return float(low), float(high)


@lru_cache(maxsize=4096)
def _depth(n: int, inflation: float) -> tuple[int, float]:
    """Return the depth in the order of n values at which the interval begins, and its fraction."""
    score = _NORMAL.inv_cdf((1 + _CONFIDENCE) / 2) * math.sqrt(inflation)
    if n > _MOST_EXACT:
        return max(1, math.floor((n - score * math.sqrt(n)) / 2)), 0.0
    confidence = 2 * _NORMAL.cdf(score) - 1
    tail, depth = 0.5**n, 1  # P(B <= depth - 1) of a binomial distribution with p = 1/2
    if 1 - 2 * tail < confidence:
        return 1, 0.0
    while depth < n // 2:
        following = tail + math.comb(n, depth) * 0.5**n
        if 1 - 2 * following < confidence:
            part = (1 - 2 * tail - confidence) / (2 * (following - tail))
            return depth, (n - depth) * part / (depth + (n - 2 * depth) * part)
        tail, depth = following, depth + 1
    return depth, 0.0


class Caveat(msgspec.Struct, frozen=True):
    """A caveat about a number, as a value that is stored with it.

    Parameters
    ----------
    code : str
        Stable name, for programs.
    message : str
        Observation, for people.
    """

    code: str
    message: str


def warnings_for(
    values: Sequence[float], warmup: Sequence[float], resolution: float
) -> list[Caveat]:
    """Return the caveats of the values of one phase of one case.

    Parameters
    ----------
    values : sequence of float
        Seconds of the repetitions that count.
    warmup : sequence of float
        Seconds of the warm-up repetitions.
    resolution : float
        Resolution of the harness in seconds.
    """
    found: list[Caveat] = []
    v: Values = np.asarray(values, dtype=np.float64)
    median = float(np.median(v))
    if median < resolution:
        return [Caveat("below_resolution", f"{median:.2g} s is under 100 times the floor")]
    if v.size < FEWEST_FOR_INTERVAL:
        found.append(Caveat("few_repetitions", f"only {v.size} repetitions"))
    elif float(v.std(ddof=1)) > LARGE_CV * float(v.mean()):
        found.append(Caveat("large_spread", f"CV {v.std(ddof=1) / v.mean():.0%}"))
    if v.size >= 5 and (outliers := int(np.sum(modified_z_scores(v) > OUTLIER_SCORE))):
        found.append(Caveat("outliers", f"{outliers} of {v.size} repetitions are outliers"))
    if warmup and warmup[0] > SLOW_FIRST * median:
        found.append(
            Caveat("slow_first", f"the first one took {warmup[0] / median:.1f} times longer")
        )
    return found


def modified_z_scores(values: Values) -> Values:
    """Return 0.6745 |x - median| / MAD; zeros where all deviations vanish."""
    deviation = np.abs(values - np.median(values))
    mad = float(np.median(deviation))
    if mad == 0.0:
        return np.zeros_like(values)
    scores: Values = 0.6745 * deviation / mad
    return scores


#: Fraction of a node's processors that others, or its host, may take.
BUSY = 0.15
#: Seconds from which on the load of a block is judged: the kernel counts ticks of 10 ms.
_JUDGED = 0.2


class LoadSummary(msgspec.Struct, frozen=True):
    """The state of the machine over the blocks of repetitions that count.

    Parameters
    ----------
    blocks : int
        Number of blocks that were long enough to judge the load in them.
    busy, stolen : int
        Number of blocks in which other processes took more than `BUSY` of the processors, and in
        which the host of a virtual machine did.
    busy_others, steal : float
        Median fraction of the processors taken by them, over these blocks.
    repetitions, unsettled : int
        Number of repetitions, and of those that began while earlier writes were not on their
        device.
    """

    blocks: int = 0
    busy: int = 0
    stolen: int = 0
    busy_others: float = 0.0
    steal: float = 0.0
    repetitions: int = 0
    unsettled: int = 0


def load_summary(samples: Iterable[Sample]) -> LoadSummary:
    """Summarise the state of the machine.

    The processor time of this job's own ranks is not in it. In a block, repetitions count by
    their duration: in a short one the kernel's ticks say little.
    """
    rows: dict[tuple[str, int], Sample] = {}
    seconds: dict[tuple[str, int], float] = defaultdict(float)
    for sample in samples:
        if not sample.warmup and sample.steal == sample.steal:
            key = (sample.case, sample.repetition)
            rows.setdefault(key, sample)
            seconds[key] += sample.seconds * sample.reads
    blocks: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for key, row in rows.items():
        blocks[row.repetition].append((seconds[key], row.busy_others, row.steal))
    tables = [np.array(block) for block in blocks.values()]
    judged = [t for t in tables if _JUDGED <= t[:, 0].sum() < np.inf]
    means = [np.average(t[:, 1:], axis=0, weights=t[:, 0]) for t in judged]
    busy, stolen = ([float(m[i]) for m in means if m[i] > BUSY] for i in (0, 1))
    return LoadSummary(
        blocks=len(judged),
        busy=len(busy),
        stolen=len(stolen),
        busy_others=float(np.median(busy)) if busy else 0.0,
        steal=float(np.median(stolen)) if stolen else 0.0,
        repetitions=len(rows),
        unsettled=sum((s.dirty_bytes or 0) > QUIET for s in rows.values()),
    )
