"""Data classes of a comparison of runs: sides, cases, pairs and verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from statistics import median

import numpy as np
from pffbench.summary.inference import Decision
from pffbench.summary.rank_test import Ratio, Times
from pffbench.summary.starts import of_run, starts_of

from pffbench.phases import TOTALS
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.text import counted
from pffbench_analysis.runs import Difference

#: Name of the row of all raw transfers, the control of the machine.
RAW = "raw bytes"


class Verdict(StrEnum):
    """Verdict on a case in a phase."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"
    OPEN = "not decided"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, eq=False)
class Side:
    """The runs of one side of a comparison: of one experiment, program and machine.

    Parameters
    ----------
    which : {"base", "new"}
        The side.
    runs : tuple of MeasuredRun
        One or more; each is a start of the program of its own, or several.
    first : int
        Number of the first run among those of both sides, which have no start in common.
    """

    which: str
    runs: tuple[MeasuredRun, ...]
    first: int = 0

    @property
    def record(self) -> RunRecord:
        """The record of the first run, which stands for all in what does not vary."""
        return self.runs[0].record

    @property
    def name(self) -> str:
        """The directory, or the number of them."""
        first, *others = (str(run.directory) for run in self.runs)
        return f"{first} and {counted(len(others), 'more run')}" if others else first

    @cached_property
    def invalid(self) -> frozenset[str]:
        """Cases that failed or read wrong data in one of the runs."""
        return frozenset(
            name
            for run in self.runs
            for name, entry in run.record.cases.items()
            if entry.get("failure") or entry.get("invalid")
        )

    @cached_property
    def unproved(self) -> frozenset[str]:
        """Cases with a read whose page-cache state was not verified."""
        return frozenset(
            row.case
            for run in self.runs
            for row in run.kept
            if row.cache == "unproved"
            and not row.warmup
            and run.record.cases[row.case].get("verified", True)
        )

    @property
    def resolution(self) -> float:
        """Seconds below which the overhead of the harness matters."""
        return max(run.resolution for run in self.runs)

    def times(self, case: str, phase: str) -> Times:
        """Return the seconds of a case in a phase or total, each run at starts of its own."""
        found: dict[int, float] = {}
        for number, run in enumerate(self.runs, start=self.first):
            times = run.seconds.get(case, {}).get(phase, {})
            found |= of_run(number, times, restarted=bool(run.record.environments))
        return found

    def sizes(self, case: str, phase: str) -> set[tuple[int, ...]]:
        """Return ranks, nodes, bytes and arrays of a case in each of the runs."""
        found: set[tuple[int, ...]] = set()
        for run in self.runs:
            rows = run.rows.get(case, {})
            parts = [rows[p][0] for p in TOTALS.get(phase, (phase,)) if p in rows]
            if parts:
                first, moved = parts[0], sum(part.bytes for part in parts)
                found.add((first.ranks, first.nodes, moved, first.arrays))
        return found


def typical(times: Times) -> float:
    """Return the median seconds; of several starts the geometric mean of theirs."""
    medians = [median([times[b] for b in blocks]) for blocks in starts_of(times)]
    return math.exp(float(np.mean(np.log(medians)))) if medians else math.nan


@dataclass(frozen=True)
class CaseName:
    """A case of the base side, or a row that represents several.

    Parameters
    ----------
    base, new : str
        Its names on both sides; they differ where runs are compared across a parameter.
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


#: Before anything is decided.
_NONE = Decision(Ratio.unknown())


@dataclass(frozen=True)
class Pair:
    """A case in a phase, on both sides.

    Parameters
    ----------
    case : CaseName
        The case.
    phase : str
        A phase, or a sum of phases.
    base, new : dict of int to float
        Seconds of the counted repetitions, which may be none.
    reason : str
        Reason why it is not comparable; empty if it is.
    decision : Decision
        The decision of `pffbench.summary.inference` on new over base.
    missing : bool
        Whether it is not comparable for a reason that hides a slowdown: other work, a failure,
        too few repetitions. What is below resolution hides none.
    """

    case: CaseName
    phase: str
    base: Times = field(default_factory=dict)
    new: Times = field(default_factory=dict)
    reason: str = ""
    decision: Decision = _NONE
    missing: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        if self.reason:
            return Verdict.NOT_COMPARABLE
        if self.decision.different:
            return Verdict.SLOWER if self.decision.longer else Verdict.FASTER
        return Verdict.EQUAL if self.decision.equivalent else Verdict.OPEN

    @property
    def ratio(self) -> float:
        """New over base seconds."""
        return self.decision.ratio.value

    @property
    def low(self) -> float:
        """Lower bound of the interval of the ratio, in view of all comparisons."""
        return self.decision.ratio.low

    @property
    def high(self) -> float:
        """Upper bound of the interval of the ratio, in view of all comparisons."""
        return self.decision.ratio.high

    @property
    def is_total(self) -> bool:
        """Whether it is a sum of phases."""
        return self.phase in TOTALS

    @property
    def comparable(self) -> bool:
        """Whether the sides could be compared in it."""
        return not self.reason

    @property
    def different(self) -> bool:
        """Whether a difference is shown."""
        return self.decision.different

    def slower_than(self, limit: float) -> bool:
        """Whether it is shown to be slower, and measured to be so by more than a limit."""
        return self.decision.longer and self.ratio > 1 + limit

    def within(self, limit: float) -> bool:
        """Whether it is shown not to be slower by more than a limit."""
        return self.decision.shorter or self.decision.alone.high <= 1 + limit

    def changed(self, limit: float) -> bool:
        """Whether it is shown to differ, and by more than a limit, in either direction."""
        return self.different and abs(math.log(self.ratio)) > math.log1p(limit)


@dataclass(frozen=True)
class Lone:
    """A case without a counterpart, and its differences from the nearest one."""

    case: str
    label: str
    reason: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sides, compared.

    Parameters
    ----------
    base, new : Side
        The sides.
    pairs : tuple of Pair
        Cases and phases of both.
    overall : tuple of Pair
        For each backend, and for raw bytes next to formats, the geometric mean over its comparable
        cases of the totals; raw bytes show whether the machine itself has changed.
    only_base, only_new : tuple of Lone
        Cases of one side alone.
    differences : tuple of Difference
        Differences in provenance: possible causes of a difference in time.
    stored : tuple of Difference
        Cases that were stored or transferred differently.
    only_raw : bool
        Whether no run has a case of a format, so that raw transfers are compared.
    """

    base: Side
    new: Side
    pairs: tuple[Pair, ...]
    overall: tuple[Pair, ...]
    only_base: tuple[Lone, ...]
    only_new: tuple[Lone, ...]
    differences: tuple[Difference, ...]
    stored: tuple[Difference, ...]
    only_raw: bool = False

    @property
    def starts(self) -> tuple[int, int]:
        """Number of starts of the program on each side."""
        one, other = (
            max((len(starts_of(t)) for t in times if t), default=0)
            for times in ([p.base for p in self.pairs], [p.new for p in self.pairs])
        )
        return one, other

    @property
    def comparable(self) -> list[Pair]:
        """The pairs that can be compared."""
        return [pair for pair in self.pairs if pair.comparable]

    @property
    def rows(self) -> list[Pair]:
        """What can be compared: rows of several cases first."""
        return [*self.overall, *self.comparable]

    @property
    def shown(self) -> list[Pair]:
        """The rows of a readable table: all sums of phases, and phases that differ."""
        return [pair for pair in self.rows if pair.is_total or pair.different]

    @property
    def gated(self) -> list[Pair]:
        """The rows that a gate judges: the sums of phases of the formats.

        Raw transfers next to formats are the control of the machine. Single phases show the
        origin of a difference.
        """
        return [pair for pair in self.rows if pair.is_total and not pair.case.control]

    @property
    def not_gated(self) -> list[Pair]:
        """The pairs that a gate would judge if they were comparable."""
        judged = (pair for pair in self.pairs if pair.is_total and not pair.case.control)
        return [pair for pair in judged if not pair.comparable]

    @property
    def controls(self) -> list[Pair]:
        """The sums of phases of raw transfers next to formats, individually and combined."""
        return [pair for pair in self.rows if pair.is_total and pair.case.control]

    @property
    def machine(self) -> list[Pair]:
        """The rows of all raw transfers next to formats."""
        return [pair for pair in self.overall if pair.case.control]

    @property
    def versions(self) -> list[Difference]:
        """The differences in software: libraries, MPI and Python."""
        return [d for d in self.differences if d.is_version]

    @property
    def other_differences(self) -> list[Difference]:
        """All other differences in provenance."""
        return [d for d in self.differences if not d.is_version]
