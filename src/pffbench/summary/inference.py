"""Statistical inference: rank tests, repeated looks, many comparisons, dependent repetitions.

Every statement of pffbench that one way is faster than another comes from this module: the
headline, the table, `recommend`, `compare` and the report page.

The methods, each for a measured property of I/O timings (docs/method.md):

* Times have outliers and several modes, so two ways are compared by rank tests: they differ where
  the Wilcoxon-Mann-Whitney test and the studentised test of Brunner and Munzel both say so. The
  inversion of both gives the interval of the ratio (Hodges and Lehmann, 1963).
* Medians hide a second mode, for which the user pays: ways are equally fast only if the sums of
  their times say so too.
* A start of the program keeps its speed for life. Ways of different starts are compared by
  starts, and a single start of each by the variation between starts that is known beforehand.
* Environments take turns within each block, which has a state of the machine of its own. They are
  compared in pairs, by Wilcoxon's signed-rank test (1945).
* A run tests its results after 10, 14, 20, 28, … repetitions and stops when all comparisons of
  its headline are decided. Each look gets an equal share of the error (Bonferroni), so that the
  probability of any false claim at any look stays bounded whatever the dependence of the looks.
* A run makes many comparisons. Holm's procedure (1979) bounds the probability of *any* false
  claim in a run; with looks it is the group-sequential procedure of Maurer and Bretz (2013).
* Repetitions of one way can depend on each other. The autocorrelation is estimated over all ways
  of the run, and over those of each format; every test and interval is widened by the variance
  inflation that the largest implies.

NumPy and the standard library only: rank 0 decides between two blocks of repetitions while the
other ranks wait, and importing SciPy takes half a second.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.experiment.schema import FIRST_LOOK
from pffbench.summary.dependence import Dependence, dependence
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
    smallest_ratio,
    unit_error,
)
from pffbench.summary.starts import (
    OF_RATIOS,
    OF_TOTALS,
    START,
    BetweenStarts,
    Starts,
    starts_of,
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
    kinds : dict of str to str
        The kind of each way, such as its format: the dependence of repetitions is estimated for
        each kind too. Ways without one only enter the estimate over all.
    between : BetweenStarts
        What is known of the variation of the ways' times between starts of the program.
    """

    times: Mapping[str, Times]
    pairs: tuple[tuple[str, str], ...]
    paired: bool = False
    kinds: Mapping[str, str] = {}
    between: BetweenStarts = OF_TOTALS


class Decision(msgspec.Struct, frozen=True):
    """The decision on a pair of ways.

    Parameters
    ----------
    ratio : Ratio
        Time of the first over that of the second, over their common blocks. Its interval is that
        of the test which decided the pair, or did not, in view of all pairs and looks: a claim
        that barely passes has an interval that barely excludes 1. It is infinite if the
        repetitions are too few for any claim; of ways shown to be equal it is then that of the
        pair alone.
    alone : Ratio
        The same with the interval of this pair alone: it covers the true ratio with 95 % at all
        looks together.
    longer, shorter : bool
        Whether the first is shown to take longer, or less time, than the second, in view of all
        pairs and looks. The look that showed it decides, whatever the ratio over more blocks.
    equivalent : bool
        Whether at a look the interval of the pair alone and the ratio of the sums lay within the
        margin around 1. For a single pair this is wrong with at most 2.5 %; it is not adjusted
        for the number of pairs.
    needed : int
        Repetitions that would probably decide it, if the times stay as they are; of ways of
        different starts of the program: starts of each.
    spent : float
        Ratio of the sums over the common blocks, which the user pays. Far from `ratio` where one
        of the two has a second mode, or outliers.
    shown : float
        The smallest ratio that these repetitions show with a probability of 80 %, in view of all
        pairs; infinity where they show none.
    """

    ratio: Ratio
    alone: Ratio = Ratio.unknown()
    longer: bool = False
    shorter: bool = False
    equivalent: bool = False
    needed: int = 0
    spent: float = math.nan
    shown: float = math.inf

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
        return replace(
            self,
            ratio=self.ratio.inverse,
            alone=self.alone.inverse,
            longer=self.shorter,
            shorter=self.longer,
            spent=1 / self.spent,
        )

    @property
    def differs_in_sum(self) -> bool:
        """Whether the ratio of the sums lies outside of the interval."""
        return self.spent < self.ratio.low or self.spent > self.ratio.high


#: Index of a table, and a pair of its ways.
Key = tuple[int, str, str]
Decisions = dict[Key, Decision]
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
    pairs = {
        (i, one, other): _Pair(table, one, other)
        for i, table in enumerate(tables)
        for one, other in table.pairs
    }
    paired = any(table.paired for table in tables)
    useful = _useful(looks, alpha / max(1, len(pairs)), paired=paired)
    family = _Family(tables, pairs, alpha, margin, max(1, len(useful)))
    counts = {key: pair.count for key, pair in pairs.items() if pair.count >= FEWEST}
    before = 0
    for n in useful:
        last = ended and n == useful[-1]
        family.look([key for key, count in counts.items() if count >= n], None if last else n)
        if ended:
            # The last data of a pair replace its missing look.
            family.look([key for key, count in counts.items() if before < count < n], None)
        before = n
    family.report_all()
    return family.decisions


class _Pair:
    """Two ways, compared by their common blocks, each in its order.

    Ways of two runs have no common block; all their repetitions are compared.
    """

    def __init__(self, table: ComparisonTable, one: str, other: str) -> None:
        ways = table.times[one], table.times[other]
        common = sorted(ways[0].keys() & ways[1].keys())
        #: Whether both ways have the same blocks.
        self.shared = bool(common)
        #: The seconds of each way, and its blocks.
        self.both = [(times, common or sorted(times)) for times in ways]
        self.paired = table.paired and self.shared
        self.kinds = [table.kinds[way] for way in (one, other) if way in table.kinds]
        self.between = table.between

    @property
    def count(self) -> int:
        """Number of repetitions of the way with fewer."""
        return min(len(blocks) for _, blocks in self.both)

    def times(self, n: int | None) -> list[dict[int, float]]:
        """Return the seconds of the first n blocks of each way, or of all."""
        return [{block: times[block] for block in blocks[:n]} for times, blocks in self.both]

    def values(self, n: int | None) -> tuple[Values, Values]:
        """Return the same without the blocks."""
        one, other = (np.array([*times.values()]) for times in self.times(n))
        return one, other

    def last(self, n: int | None) -> int:
        """Return the last of the first n blocks, or of all."""
        return max(blocks[:n][-1] for _, blocks in self.both)

    def spent(self, n: int | None) -> float:
        """Return the ratio of the mean times."""
        one, other = self.values(n)
        return float(one.mean() / other.mean())


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
        pairs: Mapping[Key, _Pair],
        alpha: float,
        margin: float,
        looks: int,
    ) -> None:
        self._tables = tables
        self._pairs = pairs
        self._left = len(pairs)
        self._levels: dict[Key, float] = {}
        self._alpha = alpha
        self._margin = margin
        self._looks = looks
        self._dependence: dict[tuple[int, bool], Dependence] = {}
        self.decisions: Decisions = {}

    def look(self, keys: Sequence[Key], n: int | None) -> None:
        """Compare pairs by their first n common blocks, or all of them."""
        open_ = [k for k in keys if k not in self.decisions or not self.decisions[k].decided]
        found = {
            key: ratio
            for key in self._worth(open_, n)
            if (ratio := self._ratio(self._pairs[key], n))
        }
        different = set()
        for key, ratio_ in sorted(found.items(), key=lambda item: item[1].p):
            if ratio_.p > self._open_level:
                break
            # The interval holds 1 where the medians are the other way round. Such a pair stays
            # open, and stays in the number of comparisons.
            if ratio_.low > 1 or ratio_.high < 1:
                longer = ratio_.low > 1
                self.decisions[key] = Decision(ratio_, ratio_, longer, not longer)
                different.add(key)
                self._levels[key] = self._open_level
                self._left -= 1
        for key in found.keys() - different:
            pays_alike = abs(math.log(self._pairs[key].spent(n))) < math.log1p(self._margin)
            same = found[key].is_equivalent(self._margin) and pays_alike
            self.decisions[key] = Decision(found[key], found[key], equivalent=same)

    @property
    def _open_level(self) -> float:
        """Level of the test of a pair that is open yet (Holm)."""
        return self._alpha / max(1, self._left) / self._looks

    def report_all(self) -> None:
        """Set the numbers of every pair to those over all its blocks; decisions are unchanged."""
        for key, pair in self._pairs.items():
            alone = self._ratio(pair, None)
            if alone is None:
                continue
            level = self._levels.get(key, self._open_level)
            ratio_ = self._ratio(pair, None, level)
            if alone.n < FEWEST or ratio_ is None:
                ratio_ = replace(alone, low=0.0, high=math.inf)
            decision = self.decisions.get(key, Decision(ratio_))
            # Equality is shown by the interval of the pair alone; in view of all pairs there may be
            # none.
            if decision.decided and not ratio_.is_bounded:
                ratio_ = alone
            needed = 0 if decision.decided else self._needed(pair, alone)
            self.decisions[key] = replace(
                decision,
                ratio=ratio_,
                alone=alone,
                needed=needed,
                spent=pair.spent(None),
                shown=self._shown(pair, alone.n, level),
            )

    def _worth(self, keys: Sequence[Key], n: int | None) -> list[Key]:
        """Return the pairs to test: of a very large table those with its fastest way."""
        fastest = {
            i: self._fastest(table, n)
            for i, table in enumerate(self._tables)
            if len(table.pairs) > _MOST_PAIRS
        }
        return [(i, a, b) for i, a, b in keys if i not in fastest or fastest[i] in (a, b)]

    def _fastest(self, table: ComparisonTable, n: int | None) -> str:
        """Return the way with the smallest median of its first n blocks."""
        named = sorted({way for pair in table.pairs for way in pair})
        first = {way: [table.times[way][b] for b in sorted(table.times[way])[:n]] for way in named}
        return min(named, key=lambda way: float(np.median(first[way])))

    def _ratio(self, pair: _Pair, n: int | None, level: float | None = None) -> Ratio | None:
        one, other = pair.values(n)
        if not are_times(one, other):
            return None
        level = level or self._alpha / self._looks
        if (starts := self._starts(pair, n)) is not None:
            return starts.ratio(level)
        inflation = self._inflation(pair, n, min(one.size, other.size))
        return ratio(one, other, level, inflation, paired=pair.paired)

    def _starts(self, pair: _Pair, n: int | None) -> Starts | None:
        """Return the starts of the program of a pair; None within a single one.

        Ways without a common block were measured at different starts. Ways of common blocks that
        belong to several starts are compared by their ratios in each.
        """
        if pair.shared and pair.last(n) < START:
            return None
        ways, known = pair.times(n), pair.between
        if pair.shared:
            one, other = ways
            ways, known = [{block: one[block] / other[block] for block in one}], OF_RATIOS
        split = [[np.array([way[b] for b in blocks]) for blocks in starts_of(way)] for way in ways]
        size = min(start.size for way in split for start in way)
        return Starts.of(split, known, self._inflation(pair, n, size))

    def _inflation(self, pair: _Pair, n: int | None, size: int, *, cautious: bool = True) -> float:
        """Return the variance inflation by dependence in the first n blocks of a pair."""
        key = (pair.last(n), pair.shared)
        if key not in self._dependence:
            self._dependence[key] = self._estimate(*key)
        return self._dependence[key].inflation(size, pair.kinds, cautious=cautious)

    def _estimate(self, last: int, shared: bool) -> Dependence:
        """Estimate the dependence up to a block; each start of the program is a table."""
        tables: list[dict[str, Times]] = []
        kinds: dict[str, str] = {}
        for i, table in enumerate(self._tables):
            by_start: dict[int, dict[str, Times]] = defaultdict(dict)
            for way, times in table.times.items():
                name = f"{i} {way}"
                if way in table.kinds:
                    kinds[name] = table.kinds[way]
                for blocks in starts_of(times):
                    known = {block: times[block] for block in blocks if block <= last}
                    by_start[blocks[0] // START][name] = known
            tables += by_start.values()
        return dependence(tables, kinds, shared_cancels=shared)

    def _shown(self, pair: _Pair, n: int, level: float) -> float:
        """Return the smallest ratio that so many repetitions, or starts, show."""
        if (starts := self._starts(pair, None)) is not None:
            return starts.shown(level)
        return smallest_ratio(n, self._unit(pair, n), level, paired=pair.paired)

    def _needed(self, pair: _Pair, ratio_: Ratio) -> int:
        """Return the repetitions, or starts, that would decide at the level left to the pair."""
        distance = abs(math.log(ratio_.value))
        gaps = [
            (self._open_level, distance),
            (self._alpha / self._looks, math.log1p(self._margin) - distance),
        ]
        if (starts := self._starts(pair, None)) is not None:
            done = max(starts.sizes)
            needed = [starts.needed(gap, level) for level, gap in gaps if gap > 0]
        else:
            done, unit = ratio_.n, self._unit(pair, ratio_.n)
            needed = [
                repetitions_for(gap, unit, level, paired=pair.paired)
                for level, gap in gaps
                if gap > 0
            ]
        return max(done + 1, min(needed, default=0))

    def _unit(self, pair: _Pair, n: int) -> float:
        """Return `unit_error` of more repetitions, with which the cautious term is smaller."""
        inflation = self._inflation(pair, None, n, cautious=False)
        return unit_error(*pair.values(None), inflation, paired=pair.paired)
