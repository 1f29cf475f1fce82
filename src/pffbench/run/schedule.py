"""Schedule of a run: the cases of the next round, and the stopping rule.

All cases run equally often, unless the time budget ends some. With ``repetitions: auto`` the run
ends as soon as the price of its answer is at most ``price``, for the whole work and for each
purpose alone; a run that compares nothing ends after the fewest repetitions.

In the first round cases run in the order of their importance. Those with which the repetitions that
a claim needs would pass the time budget are left out, so that a slow machine gives the answers that
the budget holds. Where later repetitions take longer, cases are dropped in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pffbench.case import Case
from pffbench.experiment.plan import Plan
from pffbench.experiment.schema import PLAIN_REPETITIONS
from pffbench.record.run_json import CaseEntry
from pffbench.results.cells import make_cells
from pffbench.results.purposes import decide_work, usable
from pffbench.run.first_round import FirstRound, fewest_rounds
from pffbench.run.spec import RoundSpec
from pffbench.text import counted as counted_words
from pffbench.units import Duration

if TYPE_CHECKING:
    from pffbench.run.recorder import Recorder

#: Repetitions from which on a run may end that has decided: prices are right from seven on, but
#: differences of 10 % are seldom shown by fewer than these (benchmarks/decisions.py).
ENOUGH = 25
#: Shorter reads are repeated within a repetition, at most so often. Each read is verified, which
#: costs more than the read. Another round, which writes again too, narrows more intervals.
READ_SECONDS = 0.05
MOST_READS = 3
#: States of the page cache in which repeated reads do the same work as a single one.
_REPEATABLE = frozenset({"warm", "shifted"})


class Schedule:
    """Selects the next round on rank 0.

    Parameters
    ----------
    plan : Plan
        Plan of the run.
    record : Recorder
        Records of the run.
    begun : collection of str
        Cases with repetitions of an earlier start, which are never left out.
    """

    def __init__(self, plan: Plan, record: Recorder, begun: Collection[str] = ()) -> None:
        self._plan = plan
        self._record = record
        experiment = plan.experiment
        self._auto = experiment.repetitions == "auto"
        #: Repetitions that each case is to have before any has more.
        self._fewest = fewest_rounds(plan)
        self._active = list(range(len(plan.cases)))
        self._reads: dict[str, int] = {}
        self._first = FirstRound(plan, begun)
        #: Decides whether a case of the first round runs.
        self.leaves_out = self._first.leaves_out

    def first(self) -> RoundSpec:
        """Return the first round: every case, each of which is read once."""
        return RoundSpec(tuple(self._active), dict.fromkeys(self._active, 1))

    def after(self, number: int, passed: float, expected: Mapping[str, float]) -> RoundSpec:
        """Return the round that follows another one.

        Parameters
        ----------
        number : int
            Number of the completed round.
        passed : float
            Seconds since the first round of this start began.
        expected : dict of str to float
            Expected seconds of another repetition of each case.
        """
        experiment = self._plan.experiment
        counted = number + 1 - experiment.warmup
        if number == 0:
            self._drop_left_out(expected)
        self._drop_ended(counted)
        if counted >= 1:
            if number + 1 >= experiment.rounds:
                self._active = []
            elif self._auto:
                self._stop_if_decided(counted, number)
            self._keep_to_budget(counted, passed, expected)
        return self._round()

    def _round(self) -> RoundSpec:
        return RoundSpec(
            tuple(self._active),
            {i: self._reads_of(self._case(i).group) for i in self._active},
        )

    def _case(self, place: int) -> Case:
        return self._plan.cases[place]

    def _drop_left_out(self, seconds: Mapping[str, float]) -> None:
        """Record the cases that the first round has left out."""
        cases = [self._case(i) for i in self._active]
        out = self._first.left_out(cases)
        if not out:
            return
        experiment = self._plan.experiment
        assert experiment.time_budget is not None
        budget = _named(experiment.time_budget)
        all_of_them = sum(seconds.values()) + self._first.estimate(out, seconds)
        often = "a warm-up and " * (experiment.warmup > 0) + counted_words(self._fewest, "round")
        self._record.leave_out([case.id for case in out], f"{budget} does not hold {often} of each")
        self._record.need_time(self._enough(all_of_them))
        gone = {case.id for case in out}
        self._active = [i for i in self._active if self._case(i).id not in gone]

    def _drop_ended(self, counted: int) -> None:
        """Drop cases that have failed, or that an earlier start has stopped by now."""

        def goes_on(entry: CaseEntry) -> bool:
            stopped = entry.stopped_after
            return entry.failure is None and (stopped is None or counted < stopped)

        cases = self._record.cases
        self._active = [i for i in self._active if goes_on(cases[self._case(i).id])]

    def _stop_if_decided(self, counted: int, number: int) -> None:
        """End the run when the way to use is cheap enough, or nothing is compared."""
        if counted not in (PLAIN_REPETITIONS, *range(ENOUGH, counted + 1)):
            return
        cases = self._record.cases
        cells = make_cells(
            cases,
            self._record.timings.seconds(number),
            lambda case, _: cases[case].cost.nbytes,
            restarted=bool(self._plan.experiment.environments),
        )
        decided = decide_work(usable(cells, self._record.timings.resolution))
        why = "nothing is compared"
        if decided is not None:
            if counted < ENOUGH or decided.most > 1 + self._plan.experiment.price:
                return
            why = "the way to use is decided"
        self._record.stop([self._case(i).id for i in self._active], counted, why)
        self._active = []

    def _enough(self, each_round: float) -> float:
        """Return the seconds that hold what a claim needs, by the seconds of a round."""
        return (self._plan.experiment.warmup + self._fewest) * each_round

    def _keep_to_budget(self, counted: int, passed: float, expected: Mapping[str, float]) -> None:
        """Drop the cases for which the time budget has no room.

        Up to the repetitions that a claim needs, the least important cases go, so that the others
        have them; after these, the run ends.
        """
        budget = self._plan.experiment.time_budget
        if budget is None or not self._active:
            return
        left = budget - passed
        missing = self._fewest - counted
        if missing <= 0:
            kept = self._active if self._seconds(self._active, expected) <= left else []
        else:
            kept = self._fitting(left / missing, left, expected)
        gone = [i for i in self._active if i not in set(kept)]
        if not gone:
            return
        why = f"{_named(budget)} would have been passed"
        self._record.stop([self._case(i).id for i in gone], counted, why)
        if missing > 0:
            self._record.need_time(self._enough(self._seconds(self._active, expected)))
        self._active = kept

    def _seconds(self, places: Iterable[int], expected: Mapping[str, float]) -> float:
        return sum(expected.get(self._case(i).id, 0.0) for i in places)

    def _fitting(self, each_round: float, left: float, expected: Mapping[str, float]) -> list[int]:
        """Return the most important cases that fit into the seconds of each round.

        The first part goes on for as long as there is time for one more round of it.
        """
        active = {self._case(i).id: i for i in self._active}
        kept: list[int] = []
        #: Whether the main part of each comparison goes on, which is its first.
        goes_on: dict[str, bool] = {}
        for part in self._first.parts:
            here = [active[case.id] for case in part if case.id in active]
            room = each_round if kept else left
            fits = self._seconds([*kept, *here], expected) <= room
            if goes_on.setdefault(part[0].group, fits) and fits:
                kept += here
        return sorted(kept)

    def _reads_of(self, group: str) -> int:
        """Return the reads per repetition, the same for all cases of a comparison.

        The slowest case determines the number when the first round has been read. A number that
        differed between the cases would let one of them profit more from reading again.
        """
        if group not in self._reads:
            cases = [case for case in self._plan.cases if case.group == group]
            known = [self._record.timings.read_seconds(case.id) for case in cases]
            slowest = max((seconds for seconds in known if seconds), default=None)
            if slowest is None:
                return 1
            repeatable = all(case.parameters.cache in _REPEATABLE for case in cases)
            most = MOST_READS if self._auto and repeatable else 1
            self._reads[group] = min(most, math.ceil(READ_SECONDS / slowest))
        return self._reads[group]


def _named(budget: float) -> str:
    return f"the time budget of {Duration(budget):g} s"
