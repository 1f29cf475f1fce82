"""Schedule of a run: the cases of the next block of repetitions, and the stopping rule.

With a fixed number of repetitions each case runs equally often. Otherwise the run tests its results
after 10, 14, 20, 28, … repetitions (`pffbench.summary.inference.LOOKS`): cases whose comparisons in
the headline are decided stop, and the time is spent on the others.

In the first block cases run in the order of their importance. Those whose repetitions until the
first that counts would pass the time budget are left out, so that a slow machine gives the answers
that the budget holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from pffbench.case import Case
from pffbench.experiment.plan import Plan
from pffbench.run.order import by_importance
from pffbench.run.spec import BlockSpec
from pffbench.summary.headline import Design, TotalTimes, answers, undecided_cases
from pffbench.units import Duration

#: Shorter reads are repeated within a repetition, at most so often.
READ_SECONDS = 0.1
MOST_READS = 8
#: States of the page cache in which repeated reads do the same work as a single one.
_REPEATABLE = frozenset({"warm", "shifted", "copied"})


class Record(Protocol):
    """The records on rank 0 that the schedule needs."""

    @property
    def resolution(self) -> float:
        """Resolution of the harness in seconds."""

    @property
    def cases(self) -> Mapping[str, Mapping[str, object]]:
        """Entries of the cases in `run.json`."""

    def totals(self, last: int) -> TotalTimes:
        """Return seconds of the repetitions that count, up to a block."""

    def read_seconds(self, case: str) -> float | None:
        """Return the read time of the first repetition, including warm-up."""

    def stop(self, cases: Sequence[str], repetitions: int, why: str) -> None:
        """Record that cases have enough repetitions."""

    def leave_out(self, cases: Sequence[str], why: str, limit: str) -> None:
        """Record that cases do not run, with the reason and a sentence for the verdict."""


class Schedule:
    """Selects the next block on rank 0.

    Parameters
    ----------
    plan : Plan
        Plan of the run.
    record : Record
        Records of the run.
    begun : collection of str
        Cases with repetitions of an earlier start, which are never left out.
    """

    def __init__(self, plan: Plan, record: Record, begun: Collection[str] = ()) -> None:
        self._plan = plan
        self._record = record
        experiment = plan.experiment
        self._auto = experiment.repetitions == "auto"
        self._design = Design.of_experiment(
            {
                "repetitions": experiment.repetitions,
                "max_repetitions": experiment.max_repetitions,
                "margin": experiment.margin,
                "cold_reads": experiment.cold_reads,
                "environments": experiment.environments,
            }
        )
        self._active = list(range(len(plan.cases)))
        self._reads: dict[str, int] = {}
        self._parts = by_importance(plan.cases)
        #: Whether each case that has been asked about is left out.
        self._without = {
            case.id: False
            for part in self._parts
            for case in part
            if any(member.id in begun for member in part)
        }
        #: Comparisons whose main part is left out.
        self._groups_without: set[str] = set()

    def leaves_out(self, case: Case, passed: float, seconds: Mapping[str, float]) -> bool:
        """Return whether a case of the first block does not run, to keep to the time budget.

        Decided for each part of `by_importance` when its first case is due. The first part always
        runs, and a case only where the part of its comparison does.

        Parameters
        ----------
        case : Case
            The case that is due.
        passed : float
            Seconds since the first block of this start began.
        seconds : dict of str to float
            Seconds of the repetition of each case that has run.
        """
        budget = self._plan.experiment.time_budget
        if case.id not in self._without:
            part = next(part for part in self._parts if case in part)
            out = case.group in self._groups_without
            if budget is not None and seconds and not out:
                more = self._estimate(part, seconds)
                again = self._plan.experiment.warmup * (sum(seconds.values()) + more)
                out = passed + more + again > budget
                if out and len(part) > 1:
                    self._groups_without.add(case.group)
            self._without |= dict.fromkeys((c.id for c in part), out)
        return self._without[case.id]

    def _estimate(self, cases: Sequence[Case], seconds: Mapping[str, float]) -> float:
        """Estimate a repetition of cases that have not run from the bytes of those that have."""
        costs = self._plan.costs
        moved = sum(costs[name].nbytes for name in seconds)
        if not moved:
            return len(cases) * sum(seconds.values()) / len(seconds)
        return sum(costs[case.id].nbytes for case in cases) * sum(seconds.values()) / moved

    def first(self) -> BlockSpec:
        """Return the first block: every case, each of which is read once."""
        return BlockSpec(tuple(self._active), dict.fromkeys(self._active, 1))

    def after(self, block: int, passed: float, expected: Mapping[str, float]) -> BlockSpec:
        """Return the block that follows another one.

        Parameters
        ----------
        block : int
            Number of the completed block.
        passed : float
            Seconds since the first block of this start began.
        expected : dict of str to float
            Expected seconds of another repetition of each case.
        """
        experiment = self._plan.experiment
        counted = block + 1 - experiment.warmup
        if block == 0:
            self._drop_left_out(expected)
        self._drop_failed()
        if counted >= 1:
            if block + 1 >= experiment.blocks:
                self._active = []
            elif self._auto:
                self._look(counted, block)
            self._keep_to_budget(counted, passed, expected)
        return self._block()

    def _block(self) -> BlockSpec:
        return BlockSpec(
            tuple(self._active),
            {i: self._reads_of(self._case(i).group) for i in self._active},
        )

    def _case(self, place: int) -> Case:
        return self._plan.cases[place]

    def _drop_left_out(self, seconds: Mapping[str, float]) -> None:
        """Record the cases that the first block has left out."""
        cases = [self._case(i) for i in self._active]
        out = [case for case in cases if self._without.get(case.id)]
        if not out:
            return
        experiment = self._plan.experiment
        assert experiment.time_budget is not None
        budget = f"the time budget of {Duration(experiment.time_budget):g} s"
        all_of_them = sum(seconds.values()) + self._estimate(out, seconds)
        enough = 10 * math.ceil((experiment.warmup + 1) * all_of_them / 10)
        once = "a warm-up and a repetition" if experiment.warmup else "a repetition"
        self._record.leave_out(
            [case.id for case in out],
            f"{budget} does not hold {once} of it",
            f"{len(out)} of {len(cases)} cases left out: {budget} does not hold {once} of each on "
            f"this machine; about {enough} s would (--set time_budget={enough})",
        )
        gone = {case.id for case in out}
        self._active = [i for i in self._active if self._case(i).id not in gone]

    def _drop_failed(self) -> None:
        cases = self._record.cases
        self._active = [i for i in self._active if "failure" not in cases[self._case(i).id]]

    def _look(self, counted: int, block: int) -> None:
        """Stop cases that the headline no longer needs."""
        if counted not in self._design.looks:
            return
        found = answers(
            self._record.cases,
            self._record.totals(block),
            self._design,
            self._record.resolution,
            ended=False,
        )
        open_ = undecided_cases(found)
        # Raw transfers continue next to the formats they bound, to detect machine changes.
        groups = {case.group for case in self._plan.cases if case.id in open_}
        goes_on = [
            i for i in self._active if self._case(i).id in open_ or self._is_raw(i, groups)
        ]
        stopping = [self._case(i).id for i in self._active if i not in set(goes_on)]
        if stopping:
            self._record.stop(stopping, counted, "nothing in the headline depends on more")
        self._active = goes_on

    def _is_raw(self, place: int, groups: set[str]) -> bool:
        case = self._case(place)
        return bool(self._record.cases[case.id].get("raw")) and case.group in groups

    def _keep_to_budget(
        self, counted: int, passed: float, expected: Mapping[str, float]
    ) -> None:
        """End the run if another block would exceed its time budget."""
        budget = self._plan.experiment.time_budget
        if budget is None or not self._active:
            return
        needed = sum(expected.get(self._case(i).id, 0.0) for i in self._active)
        if passed + needed > budget:
            why = f"the time budget of {Duration(budget):g} s would have been passed"
            self._record.stop([self._case(i).id for i in self._active], counted, why)
            self._active = []

    def _reads_of(self, group: str) -> int:
        """Return the reads per repetition, the same for all cases of a comparison.

        The slowest case determines the number when the first block has been read. A number that
        differed between the cases would let one of them profit more from reading again.
        """
        if group not in self._reads:
            cases = [case for case in self._plan.cases if case.group == group]
            known = [self._record.read_seconds(case.id) for case in cases]
            slowest = max((seconds for seconds in known if seconds), default=None)
            if slowest is None:
                return 1
            repeatable = all(case.parameters.cache in _REPEATABLE for case in cases)
            most = MOST_READS if self._auto and repeatable else 1
            self._reads[group] = min(most, math.ceil(READ_SECONDS / slowest))
        return self._reads[group]
