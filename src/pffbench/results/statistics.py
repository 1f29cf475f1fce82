"""The statistics of a run: spread, intervals, ratios, what spoils them (rule 7 of the method)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int64]]

_RESAMPLES = 2000
#: Numbers that the resampling holds at once: 16 MB.
_BATCH = 2_000_000
_CONFIDENCE = 0.95
#: A modified z-score above this is an outlier (Iglewicz and Hoaglin, 1993).
OUTLIER_SCORE = 3.5
#: A spread above this part of the mean is worth a warning, as pyperf has it.
LARGE_CV = 0.10
#: The first repetition is slow when it takes longer than the median by this factor.
SLOW_FIRST = 1.5
#: A difference to the best format under this is not worth a warning when it is not shown.
SMALL_DIFFERENCE = 0.05


@dataclass(frozen=True)
class Spread:
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
        Bounds of the 95 % bootstrap interval of the median; NaN for a single value.
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
    def relative_interval(self) -> float:
        """Width of the interval as a part of the median."""
        return (self.high - self.low) / self.median if self.median else float("nan")


def spread(values: Sequence[float] | Values) -> Spread:
    """Describe values; the bootstrap is seeded, so the same values give the same interval."""
    v: Values = np.asarray(values, dtype=np.float64)
    median = float(np.median(v))
    low, high = interval_of_median(v)
    mean = float(v.mean())
    cv = float(v.std(ddof=1)) / mean if v.size > 1 and mean > 0 else float("nan")
    mad = float(np.median(np.abs(v - median)))
    return Spread(v.size, float(v.min()), median, float(v.max()), mad, low, high, cv)


def interval_of_median(values: Values) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the median.

    A median is made of the values in the middle, so the resamples are drawn once for each number
    of values, as places in their order. A run of thousands of cases and phases would otherwise
    wait for minutes. The interval is the one that `scipy.stats.bootstrap` gives for the sorted
    values, as a test compares; SciPy itself takes half a second to import, at the end of each run.
    """
    if values.size < 2:
        return float("nan"), float("nan")
    if np.ptp(values) == 0.0:
        return float(values[0]), float(values[0])
    medians, counts = _medians_of(np.sort(values))
    order = np.argsort(medians)
    low, high = _percentiles(medians[order], np.cumsum(counts[order]))
    return low, high


def ratio_of_independent(values: Sequence[float], others: Sequence[float]) -> Spread | None:
    """Describe the ratio of the medians of two sets of repetitions that share no block.

    The interval is the percentile bootstrap of the ratio of both medians, each resampled by itself:
    every resampled median of the one over every one of the other. It is wider than that of ratios
    within blocks, because what hits both alike does not cancel.

    Parameters
    ----------
    values, others : sequence of float
        Seconds of the repetitions of each.

    Returns
    -------
    Spread or None
        ``n`` is the smaller number of repetitions, ``minimum`` and ``maximum`` are the extremes
        of all pairs, ``mad`` and ``cv`` NaN. None where a time to divide by is not positive.
    """
    a, b = (np.sort(np.asarray(v, dtype=np.float64)) for v in (values, others))
    if not a.size or not b.size or b[0] <= 0:
        return None
    low, high = _interval_of_ratio(a, b)
    nan = float("nan")
    return Spread(
        n=min(a.size, b.size),
        minimum=float(a[0] / b[-1]),
        median=float(np.median(a) / np.median(b)),
        maximum=float(a[-1] / b[0]),
        mad=nan,
        low=low,
        high=high,
        cv=nan,
    )


def _interval_of_ratio(a: Values, b: Values) -> tuple[float, float]:
    """Return the interval of the ratio of the medians of sorted values."""
    if min(a.size, b.size) < 2:
        return float("nan"), float("nan")
    (medians_a, times_a), (medians_b, times_b) = (_medians_of(v) for v in (a, b))
    ratios = np.divide.outer(medians_a, medians_b).ravel()
    counts = np.multiply.outer(times_a, times_b).ravel()
    order = np.argsort(ratios)
    return _percentiles(ratios[order], np.cumsum(counts[order]))


def _medians_of(values: Values) -> tuple[Values, Places]:
    """Return the medians of resamples of sorted values, and how often each occurs."""
    lower, upper, counts = _resampled_medians(values.size)
    return (values[lower] + values[upper]) / 2, counts


@lru_cache(maxsize=128)
def _resampled_medians(n: int) -> tuple[Places, Places, Places]:
    """Draw resamples of n values and count where the two values in their middle come from."""
    rng = np.random.default_rng(0)
    middle = [(n - 1) // 2, n // 2]
    codes: list[Places] = []
    at_once = max(1, _BATCH // n)
    for done in range(0, _RESAMPLES, at_once):
        places = rng.integers(0, n, (min(at_once, _RESAMPLES - done), n))
        lower, upper = np.partition(places, middle, axis=1)[:, middle].T
        codes.append(lower * n + upper)
    found, counts = np.unique(np.concatenate(codes), return_counts=True)
    return found // n, found % n, counts


def _percentiles(values: Values, cumulated: Places) -> tuple[float, float]:
    """Return the bounds of the interval of sorted values that occur several times each."""
    tail = (1 - _CONFIDENCE) / 2
    at = np.array([tail, 1 - tail]) * (cumulated[-1] - 1)
    below = values[np.searchsorted(cumulated, np.floor(at), side="right")]
    above = values[np.searchsorted(cumulated, np.ceil(at), side="right")]
    low, high = below + (above - below) * (at - np.floor(at))
    return float(low), float(high)


def geometric_mean(values: Values, axis: int = 0) -> Values:
    """Return the geometric mean along an axis, the mean for ratios."""
    mean: Values = np.exp(np.mean(np.log(values), axis=axis))
    return mean


@dataclass(frozen=True)
class Caveat:
    """Something that makes a number less trustworthy, as a value that is stored with it.

    Parameters
    ----------
    code : str
        Stable name, for programs.
    message : str
        What was seen, for people.
    """

    code: str
    message: str


def warnings_for(
    values: Sequence[float], warmup: Sequence[float], resolution: float
) -> list[Caveat]:
    """Find what spoils the values of one phase of one case.

    Parameters
    ----------
    values : sequence of float
        Seconds of the repetitions that count.
    warmup : sequence of float
        Seconds of the warm-up repetitions.
    resolution : float
        Seconds under which the harness itself shows.
    """
    found: list[Caveat] = []
    v: Values = np.asarray(values, dtype=np.float64)
    median = float(np.median(v))
    if median < resolution:
        return [Caveat("below_resolution", f"{median:.2g} s is under 100 times the floor")]
    if v.size < 3:
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


def doubts_about(ratio: Spread | None) -> list[Caveat]:
    """Find a difference to the best format that the repetitions are too few to show."""
    if ratio is None or not abs(ratio.median - 1) > SMALL_DIFFERENCE:
        return []
    if not ratio.low <= 1 <= ratio.high:
        return []
    text = (
        f"{ratio.median:.2f} times the best is not shown: the interval of {ratio.n} repetitions, "
        f"{ratio.low:.2f}–{ratio.high:.2f}, holds 1"
    )
    return [Caveat("too_few_for_difference", text)]


def modified_z_scores(values: Values) -> Values:
    """Return 0.6745 |x - median| / MAD; zeros where all deviations vanish."""
    deviation = np.abs(values - np.median(values))
    mad = float(np.median(deviation))
    if mad == 0.0:
        return np.zeros_like(values)
    scores: Values = 0.6745 * deviation / mad
    return scores
