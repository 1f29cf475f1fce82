"""The main loop: for each repetition that is due, prepare, run, gather and record."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from pffbench.backends.base import Store
from pffbench.mpi.agreement import AgreedStep, PhaseFailedError
from pffbench.observe.allocator import Allocator
from pffbench.observe.clock import measure_floor, objects_kept
from pffbench.observe.machine import BEYOND_CACHES, memory_rates
from pffbench.observe.process_counters import Meter
from pffbench.record.gather import Conditions, gather
from pffbench.run.agenda import Agenda, Due
from pffbench.run.context import RunContext
from pffbench.run.failures import Failures, ends_if_lost
from pffbench.run.pace import Pace
from pffbench.run.preparation import Preparation
from pffbench.run.surroundings import Surroundings
from pffbench.storage.scratch import Scratch
from pffbench.text import without_digests
from pffbench.workloads.repetition import Repetition

if TYPE_CHECKING:
    from pffbench.experiment.schema import Experiment


class Runner:
    """Runs a plan on all ranks; every method is collective.

    Parameters
    ----------
    context : RunContext
        Context of the run.
    """

    def __init__(self, context: RunContext) -> None:
        self._team = context.team
        self._spec = context.spec
        self._recorder = context.recorder
        self._watchdog = context.watchdog
        self._stop = context.stop
        experiment = context.spec.plan.experiment
        self._meter = _meter_of(experiment, context.scratch)
        self._allocator = Allocator()
        self._pace = Pace(self._team.size, int(experiment.memory), experiment.hang_timeout)
        self._agenda = Agenda(context, self._pace)
        self._preparation = Preparation(context, self._meter, self._allocator)
        self._surroundings = Surroundings(context, self._meter)
        self._failures = Failures(context)
        if self._recorder is not None:
            self._watchdog.between_steps = self._note_stop

    @property
    def abandoned(self) -> list[Store]:
        """Stores that failures have left open, which must not be released."""
        return self._failures.abandoned

    def run(self) -> bool:
        """Run all rounds; return whether the run completed, without an early stop."""
        self._allocator.agree(self._team.comm)
        if self._recorder is not None:
            kinds = {case.parameters.settings for case in self._spec.plan.cases}
            self._recorder.run_record.allocator = self._allocator.states(kinds)
        with objects_kept():
            for number, repetitions in self._agenda.rounds():
                for due in repetitions:
                    begin = monotonic()
                    once = self._run(due)
                    self._pace.note(due.case, monotonic() - begin, once)
                if self._agenda.stopped:
                    return False
                self._measure_machine(number)
        return True

    def _run(self, due: Due) -> float:
        """Run a repetition and record it, or end its case if it fails.

        Returns
        -------
        float
            Seconds of work that no other repetition of the case needs.
        """
        case, number = due.case, due.number
        about = f"{without_digests(case.id)}, repetition {number}"
        self._watchdog.begin(about, self._pace.patience(case), case.id, number)
        started = datetime.now(UTC)
        repetition: Repetition | None = None
        try:
            self._watchdog.step("settling")
            settled = self._surroundings.settle()
            repetition = self._preparation.repetition(due)
            conditions = self._surroundings.run(repetition, settled)
            if self._spec.stage != "write":
                self._remove_files(repetition)
            self._record(repetition, due, started, conditions)
        except PhaseFailedError as error:
            self._watchdog.step("ending a case that failed")
            self._agenda.failed.add(case.id)
            self._failures.end(case, number, error.failure, repetition)
            return 0.0
        return repetition.observed.once

    def _remove_files(self, repetition: Repetition) -> None:
        """Remove the files of a repetition."""
        place = repetition.place
        self._watchdog.step("cleaning")
        with AgreedStep(self._team.comm, "cleaning"):
            if place.keeps_directory:
                place.scratch.remove(place.path)

    def _record(
        self, repetition: Repetition, due: Due, started: datetime, conditions: Conditions
    ) -> None:
        self._watchdog.step("recording")
        gathered = gather(repetition, due.number, due.position, started, conditions)
        with ends_if_lost(self._team.comm):
            if self._recorder is not None:
                assert gathered is not None
                self._recorder.record(gathered)

    def _note_stop(self) -> None:
        """Record, off the timer, that the run is to end: it may be killed first.

        Launchers and batch systems may allow less time after a signal than a repetition takes.
        """
        if self._stop.asked and self._recorder is not None:
            self._recorder.stopping()

    def _measure_machine(self, number: int) -> None:
        """Measure the floor again, since one measurement is unreliable on a busy machine.

        After the first round also how fast all ranks together copy in memory, and get new memory:
        not before it, because a copy larger than caches needs as long as the start.
        """
        self._watchdog.begin("the floor", self._pace.patience())
        floor, rates = measure_floor(self._team.comm, self._meter), None
        if number == 0 and self._memory_bounds:
            self._watchdog.begin("the speed of memory", self._pace.patience())
            rates = memory_rates(self._team)
        if self._recorder is not None:
            self._recorder.note_floor(floor, rates)

    @property
    def _memory_bounds(self) -> bool:
        """Whether a rank moves more in some case than caches hold."""
        most = max(cost.nbytes for cost in self._spec.plan.costs.values())
        return most >= BEYOND_CACHES * self._team.size


def _meter_of(experiment: Experiment, scratch: Scratch) -> Meter:
    if experiment.counters == "calls":
        from pffbench.observe.system_calls import TracingMeter  # few runs count calls

        return TracingMeter(scratch.directory)
    return Meter(io=experiment.counters)
