"""The judge: what a set of times shows about ways to do the same work.

A run is a randomised block design. In each round every way does the work once, so two ways are
compared by the logarithms of their ratios in the rounds that both have: whatever a round has in
common, such as the load of the machine, cancels. The estimate is their mean, in which the smallest
and largest tenth count as the next value, so that a few slow rounds do not decide (the Winsorized
mean). Runs of different starts of the program share no round, and there the unit is the start. What
starts have in common with raw I/O, such as the speed of the disk in that hour, cancels in the times
divided by those of raw I/O in the same rounds. They are used if starts then differ less.

Every statement about faster, slower or same comes from `decide`, and every price from `bounds`.
Both use `estimates`. `benchmarks/decisions.py` simulates how often they are right.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

import numpy as np

Seconds = Mapping[int, float]
Word = Literal["slower", "faster", "same", "open"]
K = TypeVar("K", bound=Hashable)
Way = TypeVar("Way", bound=Hashable)

#: Rounds of a later start of the program are numbered from a multiple of this number.
START = 1_000_000
#: Fewest rounds, or starts, that a statement rests on.
FEWEST = 7
#: Ratios within this distance of 1 are called the same.
MARGIN = 0.10
#: Probability that an end of the interval of one pair alone is wrong.
ALONE = 0.05
#: A difference below this size is never called one.
SMALLEST = 0.05
#: Standard deviation between starts of the program of the logarithm of a ratio of two ways, of one
#: time, and of one time over that of raw I/O (docs/evidence/starts.md).
BETWEEN_RATIOS, BETWEEN_TIMES, BETWEEN_OVER_RAW = 0.025, 0.06, 0.05
#: Number of starts that this knowledge is worth, as degrees of freedom.
KNOWN = 8
#: Correlation of successive differences above which the interval of a pair in a family has twice
#: the width, because a measured correlation is often too small.
MOST_DEPENDENT = 0.15
#: How far the halves of a run differ, in standard errors, if it has drifted.
DRIFTED = 2.0
#: Part of the rounds at each end that counts as the next value.
ENDS = 0.1
#: Number of observations by which a measured correlation is drawn towards 0.
DOUBT = 20


class Ratio(NamedTuple):
    """A ratio of two times, with its interval."""

    value: float
    low: float
    high: float

    @property
    def inverse(self) -> Ratio:
        """The second time over the first."""
        low = 1 / self.low if self.low else math.inf
        return Ratio(1 / self.value, 1 / self.high, low)


class Pair(NamedTuple):
    """Two ways of the same work, in one comparison or in several that are averaged."""

    #: For each comparison the seconds of the one and of the other way, by round.
    times: Sequence[tuple[Seconds, Seconds]]
    #: Pairs of one kind, such as the same two formats in writes of several sizes, are as dependent
    #: on the rounds before.
    kind: Hashable = ""
    #: For each comparison the seconds of raw I/O of the same bytes beside the one and the other, by
    #: round; used of two runs only. Empty: not measured.
    control: Sequence[tuple[Seconds, Seconds]] = ()


class Estimate(NamedTuple):
    """A logarithm of a ratio."""

    #: The logarithm and its standard error.
    centre: float
    error: float
    #: Degrees of freedom of the error.
    freedom: int
    #: Number of rounds, or of starts, that it rests on.
    rounds: int
    #: Correlation of successive rounds, from 0.
    dependence: float
    #: Whether the times are divided by those of raw I/O.
    over_raw: bool = False

    def ratio(self, level: float, wider: float = 1.0) -> Ratio:
        """Return the ratio; each end of its interval is wrong with a probability of `level`.

        The interval of the logarithm is `wider` times as wide.
        """
        reach = wider * quantile(level, self.freedom) * self.error
        ends = (self.centre, self.centre - reach, self.centre + reach)
        return Ratio(*map(math.exp, ends))


class Verdict(NamedTuple):
    """What is shown about a pair."""

    #: What is shown.
    word: Word
    #: The ratio, with an interval that allows for all pairs of the family.
    ratio: Ratio
    #: Number of rounds, or of starts.
    rounds: int
    #: The ratio, with the interval of this pair alone: each end is wrong with `ALONE`, 5 %.
    alone: Ratio = Ratio(math.nan, 0.0, math.inf)
    #: Whether it is the ratio of times divided by those of raw I/O, of two runs.
    over_raw: bool = False

    @property
    def turned(self) -> Verdict:
        """The same of the second time over the first."""
        word = self.word
        if word in ("slower", "faster"):
            word = "faster" if word == "slower" else "slower"
        inverse = self.ratio.inverse
        return Verdict(word, inverse, self.rounds, self.alone.inverse, self.over_raw)


#: Of a pair with too few rounds.
NOTHING = Verdict("open", Ratio(math.nan, 0.0, math.inf), 0)


def decide(
    pairs: Mapping[K, Pair],
    *,
    alpha: float = 0.05,
    between: float = BETWEEN_RATIOS,
    smallest: float = SMALLEST,
) -> dict[K, Verdict]:
    """Decide all pairs of a family.

    Any statement of a difference in the family is false with a probability of at most `alpha`
    (Bonferroni), and each statement of equality with that of one pair.

    Parameters
    ----------
    pairs : mapping of any to Pair
        The family.
    alpha : float
        Probability of a false difference in the family.
    between : float
        Standard deviation between starts of the logarithm of a ratio.
    smallest : float
        Smallest difference that is called one; 0 for a side of a value that is not 1.

    Returns
    -------
    dict of any to Verdict
        The same keys. *slower* and *faster*: the interval excludes 1, and the ratio is at least
        `smallest`, 5 %, from 1. *same*: the interval of the pair alone lies within 10 % of 1.
    """
    level = alpha / 2 / max(1, len(pairs))
    found = estimates(pairs, between)
    return {
        key: _verdict(found[key], level, alpha, 1 + smallest) if key in found else NOTHING
        for key in pairs
    }


def _verdict(known: Estimate, level: float, alpha: float, least: float) -> Verdict:
    dependent = known.dependence > MOST_DEPENDENT
    ratio, alone = known.ratio(level, 2.0 if dependent else 1.0), known.ratio(alpha)
    word: Word = "open"
    if not ratio.low <= 1 <= ratio.high and abs(known.centre) >= math.log(least):
        word = "slower" if known.centre > 0 else "faster"
    elif not dependent and alone.high < 1 + MARGIN and alone.low > 1 / (1 + MARGIN):
        word = "same"
    return Verdict(word, ratio, known.rounds, known.ratio(ALONE), known.over_raw)


def bounds(
    ways: Mapping[Way, Sequence[Seconds]],
    *,
    alpha: float = 0.05,
    between: float = BETWEEN_RATIOS,
) -> dict[Way, float]:
    """Return for each way an upper bound of its time over the shortest time of all ways.

    A bound fails only against the way that is truly fastest, and that is hardly ever one that is
    shown slower than another. So half of `alpha` is divided among the pairs of the fastest with the
    other ways that are not shown slower: the more ways are clearly slower, the smaller are the
    bounds. They are never larger than with `alpha` divided among all ways (Hsu, 1984, comparisons
    with the best, by Bonferroni), which is used for pairs whose rounds depend on each other. The
    smallest bound holds with a probability of about 1 - `alpha` or more, as simulated
    (docs/evidence/decisions.md), and so does each other bound alone.

    Parameters
    ----------
    ways : mapping of any to sequence of Seconds
        For each way its times in each comparison, in the same order; ratios are averaged
        geometrically over the comparisons.
    alpha, between : float
        As in `decide`.

    Returns
    -------
    dict of any to float
        1 at least; infinite where there are fewer than seven rounds.
    """
    names = list(ways)
    pairs = {
        (a, b): Pair(list(zip(ways[a], ways[b], strict=True)), (a, b))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    }
    found = estimates(pairs, between)
    among_all = alpha / max(1, len(names) - 1)
    rivals = len(names) - len(_slower(found, among_all))
    among_rivals = max(among_all, alpha / 2 / max(1, rivals - 1))
    bound = dict.fromkeys(names, 1.0)
    for a, b in pairs:
        ratio = NOTHING.ratio
        if known := found.get((a, b)):
            dependent = known.dependence > MOST_DEPENDENT
            ratio = known.ratio(among_all if dependent else among_rivals)
        bound[a] = max(bound[a], ratio.high)
        bound[b] = max(bound[b], 1 / ratio.low if ratio.low > 0 else math.inf)
    return bound


def _slower(found: Mapping[tuple[Way, Way], Estimate], level: float) -> set[Way]:
    """Return the ways that are shown slower than another one."""
    ratios = {pair: one.ratio(level) for pair, one in found.items()}
    return {a for (a, _), ratio in ratios.items() if ratio.low > 1} | {
        b for (_, b), ratio in ratios.items() if ratio.high < 1
    }


def estimates(pairs: Mapping[K, Pair], between: float = BETWEEN_RATIOS) -> dict[K, Estimate]:
    """Estimate the ratio of each pair that has enough rounds."""
    paired = {key: _differences(pair) for key, pair in pairs.items() if _share_rounds(pair)}
    alike: dict[Hashable, list[np.ndarray]] = defaultdict(list)
    for key in paired:
        alike[pairs[key].kind] += map(_log_ratios, *zip(*pairs[key].times, strict=True))
    correlation = {kind: _correlation(series) for kind, series in alike.items()}
    found = {
        key: _of_starts([starts], between, correlation[pairs[key].kind])
        for key, starts in paired.items()
    }
    for key, pair in pairs.items():
        if key not in paired:
            found[key] = _of_runs(pair)
    return {key: one for key, one in found.items() if one is not None}


def _share_rounds(pair: Pair) -> bool:
    return all(one.keys() & other.keys() for one, other in pair.times)


def _log_ratios(one: Seconds, other: Seconds) -> np.ndarray:
    both = sorted(one.keys() & other.keys())
    return _without_ends(np.log([one[r] / other[r] for r in both]))


def _without_ends(series: np.ndarray) -> np.ndarray:
    """Set the smallest and the largest values to the next ones."""
    if not series.size:
        return series
    ends = _ends(series.size)
    ordered = np.sort(series)
    # Quicker than np.clip.
    within: np.ndarray = np.minimum(np.maximum(series, ordered[ends]), ordered[-1 - ends])
    return within


def _ends(rounds: int) -> int:
    """Return how many values at each end count as the next value."""
    return int(ENDS * rounds)


def _differences(pair: Pair) -> list[np.ndarray]:
    """Return for each start the log ratios of its rounds, averaged over the comparisons."""
    return _logarithms([_quotients(one, other) for one, other in pair.times])


def _of_runs(pair: Pair) -> Estimate | None:
    """Estimate from two runs, whose rounds are not shared."""
    plain = _sides(pair.times)
    over_raw = _sides(
        [
            (_quotients(one, raw), _quotients(other, its_raw))
            for (one, other), (raw, its_raw) in zip(pair.times, pair.control, strict=False)
        ]
    )
    complete = list(map(len, over_raw)) == list(map(len, plain))
    if complete and _between(over_raw) < _between(plain):
        known = _of_starts(over_raw, BETWEEN_OVER_RAW, 0.0)
        if known is not None:
            return known._replace(over_raw=True)
    return _of_starts(plain, BETWEEN_TIMES, 0.0)


def _quotients(one: Seconds, other: Seconds) -> Seconds:
    """Return the ratios of the rounds that both have."""
    return {r: one[r] / other[r] for r in one if r in other}


def _sides(times: Sequence[tuple[Seconds, Seconds]]) -> list[list[np.ndarray]]:
    """Return for each of two runs, for each of its starts, the logarithms of its times."""
    return [_logarithms(side) for side in zip(*times, strict=True)]


def _between(sides: Sequence[Sequence[np.ndarray]]) -> float:
    """Return how much the starts of each side differ: the sum of squares of their means."""
    several = (side for side in sides if len(side) > 1)
    return sum(float(np.var([_mean(start) for start in side])) * len(side) for side in several)


def _mean(series: np.ndarray) -> float:
    """Return the mean as `ndarray.mean` computes it, which takes four times as long for a few."""
    return float(np.add.reduce(series) / series.size)


def _logarithms(times: Sequence[Seconds]) -> list[np.ndarray]:
    """Return for each start the logarithms of its rounds, averaged over the comparisons."""
    common = set.intersection(*map(set, times))
    starts = sorted({r // START for r in common})
    rounds = [[r for r in sorted(common) if r // START == start] for start in starts]
    found = ([_without_ends(np.log([t[r] for r in some])) for t in times] for some in rounds)
    return [each[0] if len(each) == 1 else np.mean(each, axis=0) for each in found]


def _of_starts(
    sides: Sequence[Sequence[np.ndarray]], between: float, dependence: float
) -> Estimate | None:
    """Estimate from the starts of one side, or of two whose difference is wanted.

    With few starts the variance between them is what is known of it, corrected by what is seen.
    From seven starts on it is what is seen. With one start it is added to the variance of the mean
    over the rounds.
    """
    means = [np.array([_mean(start) for start in starts]) for starts in sides]
    counts = [len(starts) for starts in sides]
    rounds = min(sum(start.size for start in starts) for starts in sides)
    if rounds < FEWEST:
        return None
    centre = _mean(means[0]) - (_mean(means[1]) if len(means) > 1 else 0.0)
    seen = sum(float(((m - _mean(m)) ** 2).sum()) for m in means)
    free = sum(counts) - len(counts)
    if min(counts) >= FEWEST:
        variance, rounds = seen / free, min(counts)
    else:
        inside = _mean(np.array([_of_mean(s, dependence) for starts in sides for s in starts]))
        variance = (KNOWN * (between**2 + inside) + seen) / (KNOWN + free)
        free = KNOWN + free if free else _inner(rounds)
    error = math.sqrt(variance * sum(1 / n for n in counts))
    return Estimate(centre, error, free, rounds, dependence)


def _inner(rounds: int) -> int:
    """Return the degrees of freedom of a mean of that many rounds."""
    return rounds - 2 * _ends(rounds) - 1


def _of_mean(series: np.ndarray, dependence: float) -> float:
    """Return the variance of the mean of successive rounds, whose ends count as the next value.

    That of independent rounds (Dixon and Tukey, 1968) is widened by their correlation. Where the
    two halves of the run differ by more than twice what their scatter explains, because of a drift
    or a step, it is what they differ by.
    """
    n = series.size
    if n < 2:
        return 0.0
    half = n // 2
    shift = (_mean(series[:half]) - _mean(series[n - half :])) / 2
    wider = (1 + dependence) / (1 - dependence)
    variance = float(series.var(ddof=1) / n * ((n - 1) / _inner(n)) ** 2 * wider)
    return shift**2 if shift**2 > DRIFTED**2 * variance else variance


def _correlation(family: Iterable[np.ndarray]) -> float:
    """Return the correlation of successive rounds in all series together, from 0 to 0.8.

    Corrected for the bias of short series (Kendall, 1954). Few observations are drawn towards 0.
    """
    centred = [series - series.mean() for series in family if series.size >= FEWEST]
    size = sum(series.size for series in centred)
    squares = sum(float(series @ series) for series in centred)
    if not squares:
        return 0.0
    n = size / len(centred)
    seen = sum(float(series[1:] @ series[:-1]) for series in centred) / squares
    return float(min(max((seen + 1 / n) / (1 - 4 / n) * size / (size + DOUBT), 0.0), 0.8))


def _tail(t: float, free: int) -> float:
    """Return P(T > t) of Student's t for t from 0 (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(free))
    cosine2, odd = math.cos(angle) ** 2, free % 2
    term: float = math.cos(angle) if odd else 1.0
    total = term
    for j in range(1, free // 2):
        term *= cosine2 * (2 * j - 1 + odd) / (2 * j + odd)
        total += term
    if not odd:
        return max(0.0, (1 - math.sin(angle) * total) / 2)
    inside = angle + (math.sin(angle) * total if free > 1 else 0.0)
    return max(0.0, 0.5 - inside / math.pi)


@lru_cache(4096)
def quantile(level: float, free: int) -> float:
    """Return t with P(T > t) = `level` for Student's t with whole degrees of freedom."""
    low, high = 0.0, 1.0
    while _tail(high, free) > level and high < 1e9:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(middle, free) > level else (low, middle)
    return high
