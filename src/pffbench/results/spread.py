"""The distribution of one quantity over repetitions, and its caveats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np

from pffbench.median import median_of
from pffbench.units import Estimate

Values = np.ndarray[Any, np.dtype[np.float64]]
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
    """The distribution of one quantity over repetitions."""

    #: Number of repetitions.
    n: int
    #: Of the values.
    minimum: float
    median: float
    maximum: float
    #: Median absolute deviation from the median, not scaled.
    mad: float
    #: Bounds of the 95 % interval of the median; NaN for fewer than five values.
    low: float
    high: float
    #: Standard deviation over mean; NaN for a single value.
    cv: float

    @property
    def estimate(self) -> Estimate:
        """The median with its interval."""
        return Estimate(self.median, self.low, self.high)

    def rate(self, amount: float) -> Estimate:
        """Return an amount over the median, and over the bounds of its interval."""
        return Estimate(amount / self.median, amount / self.high, amount / self.low)


def spread(values: Sequence[float] | Values) -> Spread:
    """Describe one value or more."""
    v: Values = np.asarray(values, dtype=np.float64)
    median = median_of(v)
    low, high = interval_of_median(v)
    mean = float(v.mean())
    cv = float(v.std(ddof=1)) / mean if v.size > 1 and mean > 0 else float("nan")
    mad = median_of(np.abs(v - median))
    return Spread(v.size, float(v.min()), median, float(v.max()), mad, low, high, cv)


def interval_of_median(values: Values) -> tuple[float, float]:
    """Return the 95 % interval of a median by order statistics, whatever the distribution.

    It is interpolated between two order statistics as by Hettmansperger and Sheather (1986), which
    brings the coverage close to 95 % for any n. The range of five values covers their median with
    94 %; fewer values give no interval.
    """
    n = values.size
    if n < FEWEST_FOR_INTERVAL:
        return float("nan"), float("nan")
    depth, weight = _depth(n)
    x = np.sort(values)
    # Rounding must not bring a bound to the other side of the median, nor out of the values.
    low = min(x[depth - 1] + weight * (x[depth] - x[depth - 1]), x[depth])
    high = max(x[n - depth] - weight * (x[n - depth] - x[n - depth - 1]), x[n - depth - 1])
    return float(low), float(high)


@lru_cache(maxsize=4096)
def _depth(n: int) -> tuple[int, float]:
    """Return the depth in the order of n values at which the interval begins, and its fraction."""
    score = _NORMAL.inv_cdf((1 + _CONFIDENCE) / 2)
    if n > _MOST_EXACT:
        return max(1, math.floor((n - score * math.sqrt(n)) / 2)), 0.0
    tail, depth = 0.5**n, 1  # P(B <= depth - 1) of a binomial distribution with p = 1/2
    if 1 - 2 * tail < _CONFIDENCE:
        return 1, 0.0
    while depth < n // 2:
        following = tail + math.comb(n, depth) * 0.5**n
        if 1 - 2 * following < _CONFIDENCE:
            part = (1 - 2 * tail - _CONFIDENCE) / (2 * (following - tail))
            return depth, (n - depth) * part / (depth + (n - 2 * depth) * part)
        tail, depth = following, depth + 1
    return depth, 0.0


class Caveat(msgspec.Struct, frozen=True):
    """A caveat about a number, as a value that is stored with it."""

    #: Stable name, for programs.
    code: str
    #: Observation, for people.
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
    median = median_of(v)
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
    deviation = np.abs(values - median_of(values))
    mad = median_of(deviation)
    if mad == 0.0:
        return np.zeros_like(values)
    scores: Values = 0.6745 * deviation / mad
    return scores
