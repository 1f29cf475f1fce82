"""The rounds of a run of several environments: a job step of each environment, in each round."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pffbench.case import Case
from pffbench.experiment.plan import Plan
from pffbench.job.batch_job import seconds_left
from pffbench.record.repetitions import Done
from pffbench.run.order import ordered_round
from pffbench.run.recorder import Recorder
from pffbench.run.spec import RoundSpec
from pffbench_environments.merge import StepMerger
from pffbench_environments.start import Launch, StartedEnvironment
from pffbench_environments.steps import JobSteps, same_case


class RoundSchedule(Protocol):
    """Selects the cases of each round."""

    def first(self) -> RoundSpec:
        """Return the first round."""

    def after(self, number: int, passed: float, expected: Mapping[str, float]) -> RoundSpec:
        """Return the round that follows another one, as `Schedule.after` does."""


MakesSchedule = Callable[[Plan, Recorder], RoundSchedule]


class Rounds:
    """The rounds of a run of several environments.

    Parameters
    ----------
    plan : Plan
        The cases of all environments.
    environments : sequence of StartedEnvironment
        The environments, in their order.
    recorder : Recorder
        Recorder of the run.
    launch : Launch
        How ranks are started.
    done : Done
        Repetitions that an earlier start of the run recorded.
    schedule : callable
        Makes the schedule of the plan by the records.
    """

    def __init__(
        self,
        plan: Plan,
        environments: Sequence[StartedEnvironment],
        recorder: Recorder,
        launch: Launch,
        done: Done,
        schedule: MakesSchedule,
    ) -> None:
        #: The plan, with the numbers that were found.
        self.plan = plan
        self._environments = environments
        self._recorder = recorder
        self._merger = StepMerger(recorder)
        self._launch = launch
        self._steps = JobSteps(launch, plan.experiment)
        self._done = done
        self._schedule = schedule
        #: Seconds of the last round.
        self._seconds = 0.0
        #: Expected seconds of another repetition of each case, its share of a start included.
        self._expected: dict[str, float] = {}
        asked = launch.options.max_time
        left = seconds_left(os.environ) if asked is None else asked
        self._deadline = math.inf if left is None else time.monotonic() + left

    def run(self) -> bool:
        """Run all rounds; return whether the run completed, without an early stop."""
        experiment = self.plan.experiment
        schedule = self._schedule(self.plan, self._recorder)
        begin = time.monotonic()
        following = schedule.first()
        for number in range(experiment.warmup, experiment.rounds):
            if not following.cases:
                return True
            due = [self.plan.cases[i] for i in following.cases]
            active = [case for case in due if not self._failed(case)]
            if not self._is_done(active, number) and not self._round(active, number):
                return False
            following = schedule.after(number, time.monotonic() - begin, self._expected)
        return True

    def _failed(self, case: Case) -> bool:
        return self._recorder.cases[case.id].failure is not None

    def _is_done(self, active: Sequence[Case], number: int) -> bool:
        """Return whether an earlier start ran a whole round; forget one that it only began."""
        if not self._done:
            return False
        if all((case.id, number) in self._done for case in active):
            return True
        self._merger.forget_round(number)
        self._done = frozenset()  # there are no later ones
        return False

    def _round(self, active: Sequence[Case], number: int) -> bool:
        """Run a step of each environment; return whether all of them ran."""
        if self._out_of_time():
            return False
        experiment = self.plan.experiment
        step = number - experiment.warmup
        order = self._in_order(active, step)
        due = {case.id: case for case in active}
        wanted = []
        for environment in self._environments:
            names = [f"{name}@{environment.name}" for name in order]
            if cases := [due[name] for name in names if name in due]:
                wanted.append((environment, cases))
        begin = time.monotonic()
        results = self._steps.run(wanted, order, step)
        self._seconds = time.monotonic() - begin
        self._expected |= {case.id: self._seconds / len(active) for case in active}
        ran = {environment.name: cases for environment, cases in wanted}
        for place, (name, result) in enumerate(results.items()):
            self._merger.add(name, ran[name], result, number, place * len(order))
            if not self._launch.is_stopped():  # the signal may have ended the step too
                self._merger.note_failures(ran[name], result, number)
        return not self._launch.is_stopped()

    def _in_order(self, active: Sequence[Case], number: int) -> list[str]:
        """Return the cases in the order of a round, which all environments have."""
        experiment = self.plan.experiment
        once = list({same_case(case.id): case for case in active}.values())
        return [same_case(case.id) for case in ordered_round(once, number, experiment.seed)]

    def _out_of_time(self) -> bool:
        left = self._deadline - time.monotonic()
        if left > self._seconds:
            return False
        self._recorder.remark(
            f"stopped before a round, which takes about {self._seconds:.1f} s: {max(left, 0):.1f} "
            "s of the time that the run may take were left"
        )
        return True
