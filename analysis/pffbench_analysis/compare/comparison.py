"""Data classes of a comparison of two runs: verdicts, cases and pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pffbench.phases import TOTALS
from pffbench_analysis.compare.estimate import NOTHING, UNKNOWN, MeasuredPhase, RatioEstimate
from pffbench_analysis.runs import Difference, Run

#: Smallest relative difference for a verdict: smaller ones seldom reproduce on another day.
SMALLEST_EFFECT = 0.02
#: Name of the row of all raw transfers, the control of the machine.
RAW = "raw bytes"


class Verdict(StrEnum):
    """Verdict on a case in a phase."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference shown"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class CaseName:
    """A case of the base run, or a row that represents several.

    Parameters
    ----------
    base, new : str
        Its names in both runs; they differ where runs are compared across a parameter.
    label : str
        Readable name that distinguishes it in its run.
    backend, workload, layout, transfer, settings : str
        Parameters of the case.
    control : bool
        Whether it moves raw bytes in a run with formats: it then is the control of the machine.
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
        The case.
    phase : str
        A phase, or a sum of phases.
    verdict : Verdict
        The verdict.
    reason : str
        Reason why it is not comparable, or no difference is shown; empty otherwise.
    base, new : MeasuredPhase
        The counted repetitions, which may be none.
    adjusted_p : float
        The p-value adjusted for the number of pairs of its family (Holm, 1979).
    estimate : RatioEstimate
        The ratio of new over base seconds (above 1: slower); NaN without one.
    too_few : bool
        Whether it is not comparable for no other reason than too few repetitions.
    """

    case: CaseName
    phase: str
    verdict: Verdict
    reason: str = ""
    base: MeasuredPhase = NOTHING
    new: MeasuredPhase = NOTHING
    adjusted_p: float = math.nan
    estimate: RatioEstimate = UNKNOWN
    too_few: bool = False

    @property
    def ratio(self) -> float:
        """New over base median seconds."""
        return self.estimate.ratio

    @property
    def low(self) -> float:
        """Lower bound of the 95 % interval of the ratio."""
        return self.estimate.low

    @property
    def high(self) -> float:
        """Upper bound of the 95 % interval of the ratio."""
        return self.estimate.high

    @property
    def is_total(self) -> bool:
        """Whether it is a sum of phases."""
        return self.phase in TOTALS

    @property
    def comparable(self) -> bool:
        """Whether the runs could be compared in it."""
        return self.verdict is not Verdict.NOT_COMPARABLE

    @property
    def doubt(self) -> str:
        """Reason for no verdict although the interval excludes 1; mostly empty."""
        return self.reason if self.comparable and not self.low <= 1 <= self.high else ""

    @property
    def told(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER)

    def slower_than(self, limit: float) -> bool:
        """Whether it is shown to be slower by more than a limit, in view of all of its family."""
        return self.verdict is Verdict.SLOWER and self.estimate.lower > 1 + limit

    def within(self, limit: float) -> bool:
        """Whether it is shown not to be slower by more than a limit."""
        return self.estimate.upper <= 1 + limit

    def changed(self, limit: float) -> bool:
        """Whether it is shown to differ by more than a limit, in either direction."""
        return self.told and abs(math.log(self.ratio)) > math.log1p(limit)


@dataclass(frozen=True)
class Lone:
    """A case without a counterpart, and its differences from the nearest one."""

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
        Cases and phases of both runs.
    overall : tuple of Pair
        For each backend, and for raw bytes next to formats, the geometric mean over its comparable
        cases of the totals; raw bytes show whether the machine itself has changed.
    only_base, only_new : tuple of Lone
        Cases of one run alone.
    differences : tuple of Difference
        Differences in provenance: possible causes of a difference in time.
    stored : tuple of Difference
        Cases that were stored or transferred differently.
    smallest : float
        The relative difference below which no verdict is given.
    only_raw : bool
        Whether no run has a case of a format, so that raw transfers are compared.
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
        """The pairs that can be compared."""
        return [pair for pair in self.pairs if pair.comparable]

    @property
    def gated(self) -> list[Pair]:
        """The pairs that a gate judges: the sums of phases of the formats.

        Raw transfers next to formats are the control of the machine. Single phases show the
        origin of a difference.
        """
        rows = (*self.overall, *self.comparable)
        return [pair for pair in rows if pair.is_total and not pair.case.control]

    @property
    def not_gated(self) -> list[Pair]:
        """The pairs that a gate would judge if they were comparable."""
        rows = [pair for pair in self.pairs if not pair.comparable]
        return [pair for pair in rows if pair.is_total and not pair.case.control]

    @property
    def controls(self) -> list[Pair]:
        """The sums of phases of raw transfers next to formats, individually and combined."""
        rows = (*self.overall, *self.comparable)
        return [pair for pair in rows if pair.is_total and pair.case.control]

    @property
    def versions(self) -> list[Difference]:
        """The differences in software: libraries, MPI and Python."""
        return [d for d in self.differences if d.is_version]

    @property
    def other_differences(self) -> list[Difference]:
        """All other differences in provenance."""
        return [d for d in self.differences if not d.is_version]

    def shown(self) -> Iterator[Pair]:
        """Yield the pairs of a readable table: all sums of phases, and phases that differ."""
        yield from (pair for pair in self.comparable if pair.is_total or pair.told)
