"""Statistical inference: rank tests, repeated looks, many comparisons, dependent repetitions.

Every statement of pffbench that one way is faster than another comes from this module: the
headline, the table, `recommend`, `compare`, the Pareto front and the report page.

The methods, each for a measured property of I/O timings (docs/method.md):

* Times have outliers and several modes, so two ways are compared by the Wilcoxon-Mann-Whitney
  test, whose null distribution is exact for any distribution of the times. Its inversion gives
  the interval of the ratio of two times (Hodges and Lehmann, 1963).
* Environments take turns within each block, which has a state of the machine of its own. They are
  compared in pairs, by Wilcoxon's signed-rank test (1945).
* A run tests its results after 10, 14, 20, 28, … repetitions and stops when all comparisons of
  its headline are decided. Each look gets an equal share of the error (Bonferroni), so that the
  probability of any false claim at any look stays bounded whatever the dependence of the looks.
* A run makes many comparisons. Holm's procedure (1979) bounds the probability of *any* false
  claim in a run; with looks it is the group-sequential procedure of Maurer and Bretz (2013).
* Repetitions of one way can depend on each other. The autocorrelation is estimated over all ways
  of the run, and every test and interval is widened by the variance inflation it implies.

NumPy and the standard library only: rank 0 decides between two blocks of repetitions while the
other ranks wait, and importing SciPy takes half a second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.experiment.schema import FIRST_LOOK
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.rank_test import (
    ALPHA,
    FEWEST,
    Ratio,
    Times,
    Values,
    are_times,
    enough_for,
    ratio,
    repetitions_for,
    unit_error,
)

#: Two ways whose ratio is shown to be nearer to 1 than this are called equally fast.
MARGIN = 0.10
#: Repetitions after which a run may test its results; a factor of about sqrt(2). Looks at
#: fewer have little power and would take their share of the error from the later ones.
LOOKS = (FIRST_LOOK, 14, 20, 28, 40, 56, 80, 113, 160, 226, 320, 453, 640, 905)


def planned_looks(most: int, fewest: int = LOOKS[0]) -> tuple[int, ...]:
    """Return the looks of a run of at most `most` repetitions, as numbers of repetitions.

    The last look is always at `most`. A run with a fixed number of repetitions has one look:
    ``planned_looks(n, n)``.
    """
    return (*(n for n in LOOKS if fewest <= n < most), most)


class ComparisonTable(msgspec.Struct, frozen=True):
    """Ways that do the same work, and the pairs to be compared.

    Parameters
    ----------
    times : dict of str to dict
        For each way its seconds in each block of repetitions. Ways in no pair, such as raw
        transfers, only help to estimate the dependence of repetitions.
    pairs : tuple of (str, str)
        The comparisons.
    paired : bool
        Whether the ways took turns in each block, and are compared by their ratios in blocks.
    """

    times: Mapping[str, Times]
    pairs: tuple[tuple[str, str], ...]
    paired: bool = False


class Decision(msgspec.Struct, frozen=True):
    """The decision on a pair of ways.

    Parameters
    ----------
    ratio : Ratio
        Time of the first over that of the second, over their common blocks. Its interval
        covers the true ratio with 95 % at all looks together. If the pair is undecided, it is
        that of the test which did not decide, in view of all pairs: it is wider and contains 1,
        and is infinite if the repetitions are too few for any claim.
    longer, shorter : bool
        Whether the first is shown to take longer, or less time, than the second, in view of all
        pairs and looks. The look that showed it decides, whatever the ratio over more blocks.
    equivalent : bool
        Whether the interval lay within the margin around 1 at a look. For a single pair this is
        wrong with at most 2.5 %; it is not adjusted for the number of pairs.
    needed : int
        Repetitions that would probably decide it, if the times stay as they are.
    """

    ratio: Ratio
    longer: bool = False
    shorter: bool = False
    equivalent: bool = False
    needed: int = 0

    @property
    def different(self) -> bool:
        """Whether the two are shown to differ."""
        return self.longer or self.shorter

    @property
    def decided(self) -> bool:
        """Whether a difference or equivalence is shown."""
        return self.different or self.equivalent

    @property
    def inverse(self) -> Decision:
        """The decision on the second over the first."""
        return Decision(self.ratio.inverse, self.shorter, self.longer, self.equivalent, self.needed)


#: Decisions by the index of the table and the pair.
Decisions = dict[tuple[int, str, str], Decision]
#: Pairs of a table above which only those with its fastest way are tested: their number grows
#: with the square of the ways. Holm's procedure counts them all.
_MOST_PAIRS = 1500


def decide(
    tables: Sequence[ComparisonTable],
    looks: Sequence[int],
    *,
    ended: bool = True,
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> Decisions:
    """Decide which ways differ, by all looks up to now.

    A pure function of the times: a run that decides whether to continue, and a later report of
    it, obtain the same result.

    Parameters
    ----------
    tables : sequence of ComparisonTable
        All comparisons of a run.
    looks : sequence of int
        Planned numbers of repetitions after which the run tests; see `planned_looks`.
    ended : bool
        Whether all repetitions are done: they are then tested in place of the next look, or at
        the last one.
    margin : float
        Relative difference under which two ways count as equally fast.
    alpha : float
        Probability of any false claim of a difference.
    """
    pairs = [(i, a, b) for i, table in enumerate(tables) for a, b in table.pairs]
    common = {(i, a, b): _blocks(tables[i].times[a], tables[i].times[b]) for i, a, b in pairs}
    paired = any(table.paired for table in tables)
    useful = _useful(looks, alpha / max(1, len(pairs)), paired=paired)
    family = _Family(tables, common, len(pairs), alpha, margin, max(1, len(useful)))
    counts = {pair: blocks.count for pair, blocks in common.items() if blocks.count >= FEWEST}
    before = 0
    for n in useful:
        last = ended and n == useful[-1]
        family.look([p for p, count in counts.items() if count >= n], None if last else n)
        if ended:
            # The last data of a pair replace its missing look.
            family.look([p for p, count in counts.items() if before < count < n], None)
        before = n
    family.report_all()
    return family.decisions


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, 1979).

    If a difference is claimed for each adjusted p-value up to 0.05, the probability that any of
    the claims is false is at most 5 %.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted


class _Blocks(msgspec.Struct, frozen=True):
    """The blocks by which two ways are compared: their common blocks, each in its order.

    Ways of two runs have no common block; all their repetitions are compared.
    """

    first: Sequence[int]
    second: Sequence[int]

    @property
    def count(self) -> int:
        """Number of repetitions of the way with fewer."""
        return min(len(self.first), len(self.second))

    @property
    def are_shared(self) -> bool:
        """Whether both ways have the same blocks."""
        return self.first is self.second

    def values(self, a: Times, b: Times, n: int | None) -> tuple[Values, Values]:
        """Return the seconds of the first n blocks, or of all."""
        one = np.array([a[block] for block in self.first[:n]])
        return one, np.array([b[block] for block in self.second[:n]])

    def last(self, n: int | None) -> int:
        """Return the last of the first n blocks, or of all."""
        return max(self.first[:n][-1], self.second[:n][-1])


def _blocks(a: Times, b: Times) -> _Blocks:
    common = sorted(a.keys() & b.keys())
    return _Blocks(common, common) if common else _Blocks(sorted(a), sorted(b))


def _useful(looks: Sequence[int], alpha: float, *, paired: bool) -> list[int]:
    """Return the looks with the power to show a difference; no error is spent on others."""
    for first in range(len(looks)):
        left = list(looks[first:])
        if enough_for(left[0], alpha / len(left), paired=paired):
            return left
    return list(looks[-1:])


class _Family:
    """The comparisons of a run, with the decisions so far."""

    def __init__(
        self,
        tables: Sequence[ComparisonTable],
        common: Mapping[tuple[int, str, str], _Blocks],
        count: int,
        alpha: float,
        margin: float,
        looks: int,
    ) -> None:
        self._tables = tables
        self._common = common
        self._left = count
        self._alpha = alpha
        self._margin = margin
        self._looks = looks
        self._inflations: dict[tuple[int, int, bool, bool], float] = {}
        self.decisions: Decisions = {}

    def look(self, pairs: Sequence[tuple[int, str, str]], n: int | None) -> None:
        """Compare pairs by their first n common blocks, or all of them."""
        open_ = [p for p in pairs if p not in self.decisions or not self.decisions[p].decided]
        found = {pair: ratio for pair in self._worth(open_, n) if (ratio := self._ratio(pair, n))}
        different = set()
        for pair, ratio_ in sorted(found.items(), key=lambda item: item[1].p):
            if ratio_.p > self._alpha / self._left / self._looks:
                break
            # The interval holds 1 where the medians are the other way round. Such a pair stays
            # open, and stays in the number of comparisons.
            if ratio_.low > 1 or ratio_.high < 1:
                self.decisions[pair] = Decision(ratio_, ratio_.low > 1, ratio_.high < 1)
                different.add(pair)
                self._left -= 1
        for pair in found.keys() - different:
            same = found[pair].is_equivalent(self._margin)
            self.decisions[pair] = Decision(found[pair], equivalent=same)

    def report_all(self) -> None:
        """Set the ratio of every pair to that over all its blocks; decisions are unchanged."""
        open_level = self._alpha / max(1, self._left) / self._looks
        for pair in self._common:
            ratio_ = self._ratio(pair, None)
            if ratio_ is None:
                continue
            known = self.decisions.get(pair)
            if known is not None and known.decided:
                self.decisions[pair] = replace(known, ratio=ratio_)
                continue
            needed = self._needed(pair, ratio_)
            wide = self._ratio(pair, None, open_level)
            if ratio_.n < FEWEST or wide is None:
                wide = replace(ratio_, low=0.0, high=math.inf)
            self.decisions[pair] = Decision(wide, needed=needed)

    def _worth(
        self, pairs: Sequence[tuple[int, str, str]], n: int | None
    ) -> list[tuple[int, str, str]]:
        """Return the pairs to test: of a very large table those with its fastest way."""
        fastest = {
            i: self._fastest(table, n)
            for i, table in enumerate(self._tables)
            if len(table.pairs) > _MOST_PAIRS
        }
        return [(i, a, b) for i, a, b in pairs if i not in fastest or fastest[i] in (a, b)]

    def _fastest(self, table: ComparisonTable, n: int | None) -> str:
        """Return the way with the smallest median of its first n blocks."""
        named = sorted({way for pair in table.pairs for way in pair})
        first = {way: [table.times[way][b] for b in sorted(table.times[way])[:n]] for way in named}
        return min(named, key=lambda way: float(np.median(first[way])))

    def _ratio(
        self, pair: tuple[int, str, str], n: int | None, level: float | None = None
    ) -> Ratio | None:
        one, other = self._values(pair, n)
        if not are_times(one, other):
            return None
        inflation = self._inflation(pair, n, min(one.size, other.size))
        level = level or self._alpha / self._looks
        return ratio(one, other, level, inflation, paired=self._is_paired(pair))

    def _is_paired(self, pair: tuple[int, str, str]) -> bool:
        return self._tables[pair[0]].paired and self._common[pair].are_shared

    def _values(self, pair: tuple[int, str, str], n: int | None) -> tuple[Values, Values]:
        i, a, b = pair
        times = self._tables[i].times
        return self._common[pair].values(times[a], times[b], n)

    def _inflation(
        self, pair: tuple[int, str, str], n: int | None, size: int, *, cautious: bool = True
    ) -> float:
        """Return the variance inflation by dependence in the first n blocks of a pair."""
        blocks = self._common[pair]
        last = blocks.last(n)
        key = (last, size, blocks.are_shared, cautious)
        if key not in self._inflations:
            cut = [
                [{b: s for b, s in way.items() if b <= last} for way in table.times.values()]
                for table in self._tables
            ]
            self._inflations[key] = variance_inflation(
                cut, size, shared_cancels=blocks.are_shared, cautious=cautious
            )
        return self._inflations[key]

    def _needed(self, pair: tuple[int, str, str], ratio_: Ratio) -> int:
        """Return the repetitions that would decide, at the level left to the pair."""
        n = ratio_.n
        # With more repetitions the cautious term is smaller.
        inflation = self._inflation(pair, None, n, cautious=False)
        paired = self._is_paired(pair)
        unit = unit_error(*self._values(pair, None), inflation, paired=paired)
        distance = abs(math.log(ratio_.value))
        needed = [
            repetitions_for(gap, unit, level, paired=paired)
            for level, gap in (
                (self._alpha / self._left / self._looks, distance),
                (self._alpha / self._looks, math.log1p(self._margin) - distance),
            )
            if gap > 0
        ]
        return max(n + 1, min(needed, default=0))
