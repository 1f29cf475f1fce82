"""What a comparison of two runs is made of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pffbench.phases import TOTALS
from pffbench_analysis.compare.estimate import RatioEstimate
from pffbench_analysis.runs import Difference, Run

#: A verdict needs at least this difference: less is seldom found again on another day.
SMALLEST_EFFECT = 0.02
#: What stands for all cases that move raw bytes: they tell of the machine.
RAW = "raw bytes"


class Verdict(StrEnum):
    """What is said of a case in a phase."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference shown"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class CaseName:
    """A case of the base run, or what stands for several.

    Parameters
    ----------
    base, new : str
        Its names in both runs; they differ where runs are compared across a parameter.
    label : str
        For people: what it is and what sets it apart in its run.
    backend, workload, layout, transfer, settings : str
        Of the case.
    control : bool
        Whether it moves raw bytes and formats are there beside it: it then tells of the machine.
    """

    base: str
    new: str
    label: str
    backend: str
    workload: str = ""
    layout: str = ""
    transfer: str = ""
    settings: str = ""
    control: bool = False


@dataclass(frozen=True)
class Pair:
    """A case in a phase, in both runs.

    Parameters
    ----------
    case : CaseName
        Which case.
    phase : str
        A phase, or a sum of phases.
    verdict : Verdict
        What is said of it.
    reason : str
        Why it is not comparable, or why no difference is shown; empty otherwise.
    base_n, new_n : int
        Repetitions that count.
    base_median, new_median : float
        Seconds; NaN where there are none.
    ratio, low, high : float
        New over base median seconds (above 1: slower) and its 95 % interval.
    p : float
        See `RatioEstimate`.
    adjusted_p : float
        The p-value adjusted for the number of pairs of its family (Holm, 1979).
    estimate : Estimate or None
        All that is known of the ratio; None where nothing is.
    too_few : bool
        Whether it is not comparable for no other reason than too few repetitions.
    """

    case: CaseName
    phase: str
    verdict: Verdict
    reason: str = ""
    base_n: int = 0
    new_n: int = 0
    base_median: float = math.nan
    new_median: float = math.nan
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    adjusted_p: float = math.nan
    estimate: RatioEstimate | None = None
    too_few: bool = False

    @property
    def is_total(self) -> bool:
        """Whether it is a sum of phases."""
        return self.phase in TOTALS

    @property
    def comparable(self) -> bool:
        """Whether anything could be said of it."""
        return self.verdict is not Verdict.NOT_COMPARABLE

    @property
    def doubt(self) -> str:
        """Why no difference is shown although the interval excludes 1; mostly empty."""
        return self.reason if self.comparable and not self.low <= 1 <= self.high else ""

    @property
    def told(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER)

    @property
    def upper(self) -> float:
        """Upper bound of the ratio that holds with 95 %; NaN where nothing is known."""
        return math.nan if self.estimate is None else self.estimate.upper

    @property
    def shown(self) -> float:
        """The ratio that the repetitions would have shown; NaN where nothing is known."""
        return math.nan if self.estimate is None else self.estimate.shown

    def slower_than(self, limit: float) -> bool:
        """Whether it is shown to be slower by more than a limit, in view of all of its family."""
        lower = math.nan if self.estimate is None else self.estimate.lower
        return self.verdict is Verdict.SLOWER and lower > 1 + limit

    def within(self, limit: float) -> bool:
        """Whether it is shown not to be slower by more than a limit."""
        return self.upper <= 1 + limit

    def changed(self, limit: float) -> bool:
        """Whether it is shown to differ, and by more than a limit, whichever way."""
        return self.told and abs(math.log(self.ratio)) > math.log1p(limit)


@dataclass(frozen=True)
class Lone:
    """A case without a counterpart, and what the nearest one has instead."""

    case: str
    label: str
    reason: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs, compared.

    Parameters
    ----------
    base, new : Run
        The runs.
    pairs : tuple of Pair
        Cases and phases that both have.
    overall : tuple of Pair
        For each backend, and for raw bytes beside formats, the geometric mean over its comparable
        cases of the totals; raw bytes tell whether the machine itself has changed.
    only_base, only_new : tuple of Lone
        Cases of one run alone.
    differences : tuple of Difference
        Provenance in which the runs differ: what a difference may be due to.
    stored : tuple of Difference
        Cases that were stored or transferred in another way.
    smallest : float
        The difference under which no verdict is given.
    only_raw : bool
        Whether no run has a case of a format, so that raw transfers are what is compared.
    """

    base: Run
    new: Run
    pairs: tuple[Pair, ...]
    overall: tuple[Pair, ...]
    only_base: tuple[Lone, ...]
    only_new: tuple[Lone, ...]
    differences: tuple[Difference, ...]
    stored: tuple[Difference, ...]
    smallest: float
    only_raw: bool = False

    @property
    def comparable(self) -> list[Pair]:
        """The pairs of which something can be said."""
        return [pair for pair in self.pairs if pair.comparable]

    @property
    def gated(self) -> list[Pair]:
        """What a gate judges by: the sums of phases of the formats.

        Raw transfers beside formats are the control: they tell of the machine. Single phases tell
        where a difference comes from.
        """
        rows = (*self.overall, *self.comparable)
        return [pair for pair in rows if pair.is_total and not pair.case.control]

    @property
    def not_gated(self) -> list[Pair]:
        """What a gate would judge by if it were comparable."""
        rows = [pair for pair in self.pairs if not pair.comparable]
        return [pair for pair in rows if pair.is_total and not pair.case.control]

    @property
    def controls(self) -> list[Pair]:
        """The sums of phases of raw transfers beside formats, and of all of them together."""
        rows = (*self.overall, *self.comparable)
        return [pair for pair in rows if pair.is_total and pair.case.control]

    def shown(self) -> Iterator[Pair]:
        """Yield what a table for people holds: all sums of phases, and phases that differ."""
        yield from (pair for pair in self.comparable if pair.is_total or pair.told)
