"""Starts of the program, compared: a start keeps its speed for life.

Between two starts of one program, on one machine, medians differ by more than the repetitions of
a start predict: memory, page cache and device are in another state. So the repetitions of a start
say little about the next one, and ways that were measured at different starts are compared by
their starts, however many repetitions each has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from statistics import fmean, median

import msgspec
import numpy as np

from pffbench.summary.rank_test import POWER, Ratio, Times, Values, robust_deviation
from pffbench.summary.student import student_quantile, student_tail

#: Number of the first block of the second start of the program; the third begins at its double.
START = 1_000_000
#: Number of starts that each of several runs has for itself.
_OF_A_RUN = 1000


class BetweenStarts(msgspec.Struct, frozen=True):
    """The variation of a quantity between starts of the same program, before any is measured.

    Parameters
    ----------
    deviation : float
        Standard deviation of the logarithm.
    starts : int
        Degrees of freedom: the number of starts that this knowledge is worth.
    """

    deviation: float
    starts: int = 8


#: Totals of one way at different starts (docs/evidence/starts.md has the measurement).
OF_TOTALS = BetweenStarts(0.06)
#: Single phases, and those shorter than `SHORT` seconds, of which a start can take half or double.
OF_PHASES = BetweenStarts(0.12, starts=4)
OF_SHORT_PHASES = BetweenStarts(0.5, starts=4)
SHORT = 1e-3
#: Ratios of two ways of one start.
OF_RATIOS = BetweenStarts(0.03)


class Starts(msgspec.Struct, frozen=True):
    """Starts of the program, compared each by the median of its repetitions.

    The variance of a start's median is that between starts and that of its repetitions together.
    It is estimated from the starts that there are and from what is known beforehand, each with
    the weight of its degrees of freedom (the moderated t test of Smyth, 2004).

    Parameters
    ----------
    logarithm : float
        Logarithm of the ratio: difference of the means of the starts' medians.
    deviation : float
        Standard deviation of a start's median.
    sizes : tuple of int
        Number of starts of each way; one number where the starts have both ways.
    freedom : int
        Degrees of freedom of the deviation.
    n : int
        Number of repetitions of the way with fewer.
    """

    logarithm: float
    deviation: float
    sizes: tuple[int, ...]
    freedom: int
    n: int

    @classmethod
    def of(
        cls, ways: Sequence[Sequence[Values]], known: BetweenStarts, inflation: float = 1.0
    ) -> Starts:
        """Estimate from the repetitions of each start.

        Parameters
        ----------
        ways : sequence of sequence of array
            The times of each start: of two ways, or the ratios of two ways.
        known : BetweenStarts
            Variation between starts.
        inflation : float
            Variance inflation by dependent repetitions of a start.
        """
        medians = [np.log([median(start.tolist()) for start in way]).tolist() for way in ways]
        means = [fmean(way) for way in medians]
        within = [_error_of_median(np.log(start)) ** 2 for way in ways for start in way]
        seen = sum((m - mean) ** 2 for way, mean in zip(medians, means, strict=True) for m in way)
        freedom = known.starts + sum(len(way) - 1 for way in medians)
        expected = known.deviation**2 + inflation * fmean(within)
        return cls(
            logarithm=means[0] - sum(means[1:]),
            deviation=math.sqrt((known.starts * expected + seen) / freedom),
            sizes=tuple(map(len, medians)),
            freedom=freedom,
            n=min(sum(start.size for start in way) for way in ways),
        )

    @property
    def _error(self) -> float:
        """The standard error of the logarithm."""
        return self.deviation * math.sqrt(sum(1 / size for size in self.sizes))

    def ratio(self, level: float) -> Ratio:
        """Return the ratio with its interval."""
        reach = student_quantile(level / 2, self.freedom) * self._error
        p = 2 * student_tail(abs(self.logarithm) / self._error, self.freedom)
        low, high = (math.exp(self.logarithm + by) for by in (-reach, reach))
        return Ratio(self.n, math.exp(self.logarithm), low, high, p)

    def shown(self, level: float) -> float:
        """Return the smallest ratio that so many starts show with 80 % power."""
        return math.exp((POWER + student_quantile(level / 2, self.freedom)) * self._error)

    def needed(self, distance: float, level: float) -> int:
        """Return the starts of each way that show a distance of logarithms with 80 % power."""
        reach = (POWER + student_quantile(level / 2, self.freedom)) * self.deviation
        return math.ceil(len(self.sizes) * (reach / distance) ** 2)


def _error_of_median(logarithms: Values) -> float:
    """Return the standard error of a median of normal values, by their robust deviation."""
    if logarithms.size < 2:
        return 0.0
    return robust_deviation(logarithms) * math.sqrt(math.pi / 2 / logarithms.size)


def starts_of(times: Times) -> list[list[int]]:
    """Return the blocks of each start of the program, in their order."""
    return [list(blocks) for _, blocks in groupby(sorted(times), key=lambda b: b // START)]


def of_run(number: int, times: Times, *, restarted: bool = False) -> dict[int, float]:
    """Return the times of one of several runs, with block numbers of starts of its own.

    Ways of one run keep their common blocks. Those of the run with number 0 stay as they are,
    unless its ranks were started anew in each block: then each block is a start.
    """
    step = START if restarted else 1
    return {number * _OF_A_RUN * START + block * step: seconds for block, seconds in times.items()}
