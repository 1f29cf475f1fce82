"""The repetitions of a run, one after the other: which are due, and when the run ends."""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from pffbench.case import Case
from pffbench.job.batch_job import seconds_left
from pffbench.mpi.agreement import sleeping_barrier
from pffbench.mpi.collectives import largest
from pffbench.run.context import RunContext
from pffbench.run.failures import ends_if_lost
from pffbench.run.order import by_importance, ordered_round
from pffbench.run.pace import Pace
from pffbench.run.spec import RoundSpec
from pffbench.run.turns import wait_for_turn

if TYPE_CHECKING:
    from pffbench.run.schedule import Schedule


class Due(NamedTuple):
    """A repetition that is due."""

    #: The case.
    case: Case
    #: Number of the round.
    number: int
    #: Position in the order of the round.
    position: int
    #: Number of times that the data are read.
    reads: int


class _Decision(enum.IntEnum):
    """What happens to the case that is due; if ranks differ, the largest counts."""

    RUN = 0
    LEAVE_OUT = 1
    STOP = 2


class Agenda:
    """Yields the repetitions of a run, which rank 0 selects; every method is collective.

    Parameters
    ----------
    context : RunContext
        Context of the run.
    pace : Pace
        How long repetitions take.

    Attributes
    ----------
    failed : set of str
        Cases that have failed, which are not due again.
    stopped : bool
        Whether the run ends early.
    """

    def __init__(self, context: RunContext, pace: Pace) -> None:
        self._team = context.team
        self._spec = context.spec
        self._recorder = context.recorder
        self._watchdog = context.watchdog
        self._stop = context.stop
        self._pace = pace
        self._begin = 0.0
        #: Seconds that the run may take from the first round on.
        self._seconds: float | None = None
        #: Selects rounds on rank 0; None on the others.
        self._schedule: Schedule | None = None
        if self._recorder is not None:
            from pffbench.run.schedule import Schedule  # needed on rank 0 only

            self._schedule = Schedule(
                self._spec.plan, self._recorder, {case for case, _ in self._spec.done}
            )
        self.failed: set[str] = set()
        self.stopped = False

    def rounds(self) -> Iterator[tuple[int, Iterator[Due]]]:
        """Yield each round: its number, and its repetitions one by one."""
        self._begin = monotonic()
        self._seconds = self._time_limit()
        schedule = self._schedule
        following = self._from_leader(None if schedule is None else schedule.first())
        for number in range(self._spec.plan.experiment.rounds):
            if not following.cases:
                return
            yield number, self._due(number, following)
            following = self._after(number)

    @property
    def _passed(self) -> float:
        return monotonic() - self._begin

    def _due(self, number: int, of_round: RoundSpec) -> Iterator[Due]:
        """Yield the repetitions of a round, until the run stops."""
        cases = self._spec.plan.cases
        reads = {cases[i].id: n for i, n in of_round.reads.items()}
        ordered = self._in_order(number, [cases[i] for i in of_round.cases])
        for position, case in enumerate(ordered):
            if case.id in self.failed or (case.id, number) in self._spec.done:
                continue
            decision = largest(self._team.comm, int(self._decide(case, number)))
            if decision == _Decision.LEAVE_OUT:
                continue
            if decision == _Decision.STOP or not self._has_turn(case, number):
                self.stopped = True
                return
            yield Due(case, number, position, reads[case.id])

    def _in_order(self, number: int, cases: Sequence[Case]) -> Sequence[Case]:
        """Return the cases of a round in the order in which they run."""
        plan = self._spec.plan
        if number == 0 and plan.experiment.time_budget is not None:
            return [case for part in by_importance(plan.cases) for case in part]
        if self._spec.options.environment:  # what started the ranks has ordered them
            return cases
        return list(ordered_round(cases, number, plan.experiment.seed))

    def _decide(self, case: Case, number: int) -> _Decision:
        """Return what this rank knows of the case that is due; rank 0 keeps to the time."""
        if self._stop.asked or self._out_of_time(case):
            return _Decision.STOP
        if self._schedule is None or number > 0 or self._spec.stage != "all":
            return _Decision.RUN
        out = self._schedule.leaves_out(case, self._passed, self._pace.last)
        return _Decision.LEAVE_OUT if out else _Decision.RUN

    def _has_turn(self, case: Case, number: int) -> bool:
        """Wait for the turn of these ranks if others take turns; return whether it came."""
        if not self._spec.options.environment:
            return True
        self._watchdog.begin("waiting for a turn", math.inf)
        return wait_for_turn(self._team.comm, number, case.id, self._pace.patience(case))

    def _after(self, number: int) -> RoundSpec:
        """Return the round that follows another one."""
        following = None
        with ends_if_lost(self._team.comm):
            if self._schedule is not None:
                following = self._schedule.after(number, self._passed, self._pace.last)
        return self._from_leader(following)

    def _from_leader(self, following: RoundSpec | None) -> RoundSpec:
        """Broadcast the decision of rank 0 and return it on all ranks."""
        sleeping_barrier(self._team.comm)  # it may judge all cases before, and need a whole core
        decision: RoundSpec = self._team.comm.bcast(following)
        return decision

    def _time_limit(self) -> float | None:
        """Return the limit asked for, or the time left to the batch job; None without one.

        Only rank 0 asks: from every rank of a large job this would be as many requests to the
        scheduler.
        """
        if self._recorder is None:
            return None
        asked = self._spec.options.max_time
        return seconds_left(os.environ) if asked is None else asked

    def _out_of_time(self, case: Case) -> bool:
        """Return whether a repetition would exceed the time left, by the clock of rank 0."""
        if self._recorder is None or self._seconds is None:
            return False
        left, needed = self._seconds - self._passed, self._pace.expected(case)
        if left > needed:
            return False
        self._recorder.remark(
            f"stopped before {case.id}, which takes about {needed:.1f} s: {max(left, 0):.1f} s of "
            "the time that the run may take were left"
        )
        return True
