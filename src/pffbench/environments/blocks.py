"""The blocks of a run of several environments: a job step of each environment, in each block."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from pffbench.case import Case
from pffbench.environments.calibrate import calibrated_plan
from pffbench.environments.merge import MergingRecorder, is_complete
from pffbench.environments.start import StartedEnvironment
from pffbench.environments.step import JobSteps, StepResult, step_experiment
from pffbench.experiment.plan import Plan
from pffbench.parallel.agreement import Failure
from pffbench.parallel.batch_job import StopSignals, seconds_left
from pffbench.record.samples import Repetitions
from pffbench.run.calibration import open_groups
from pffbench.run.options import RunOptions
from pffbench.run.order import ordered_block
from pffbench.run.schedule import Schedule
from pffbench.run.spec import BlockSpec
from pffbench.text import one_line


class BlockSchedule(Protocol):
    """Selects the cases of each block."""

    def first(self) -> BlockSpec:
        """Return the first block."""

    def after(self, block: int, passed: float, expected: Mapping[str, float]) -> BlockSpec:
        """Return the block that follows another one, as `Schedule.after` does."""


MakesSchedule = Callable[[Plan, MergingRecorder], BlockSchedule]


class Blocks:
    """The blocks of a run of several environments.

    Parameters
    ----------
    plan : Plan
        The cases of all environments.
    environments : sequence of StartedEnvironment
        The environments, in their order.
    recorder : MergingRecorder
        Receives the records of the steps.
    steps : JobSteps
        Starts their ranks.
    options : RunOptions
        Options of the command line.
    stop : StopSignals
        Whether a signal asks the run to end.
    done : Repetitions
        Repetitions that an earlier start of the run recorded.
    schedule : callable
        Makes the schedule of the plan by the records.
    """

    def __init__(
        self,
        plan: Plan,
        environments: Sequence[StartedEnvironment],
        recorder: MergingRecorder,
        steps: JobSteps,
        options: RunOptions,
        stop: StopSignals,
        done: Repetitions,
        schedule: MakesSchedule = Schedule,
    ) -> None:
        self._done = done
        self._schedule = schedule
        #: The plan, with the numbers that were found.
        self.plan = plan
        self._environments = environments
        self._recorder = recorder
        self._steps = steps
        self._options = options
        self._stop = stop
        #: Seconds of the last block.
        self._seconds = 0.0
        #: Expected seconds of another repetition of each case, its share of a start included.
        self._expected: dict[str, float] = {}
        self._deadline = time.monotonic() + self._time_left()

    def _time_left(self) -> float:
        asked = self._options.max_time
        left = seconds_left(os.environ) if asked is None else asked
        return math.inf if left is None else left

    def run(self) -> bool:
        """Run all blocks; return whether the run completed, without an early stop."""
        experiment = self.plan.experiment
        if open_groups(self.plan.cases):
            self.plan = calibrated_plan(
                self.plan, self._environments, self._steps, self._recorder
            )
            if self._stop.asked:
                return False
        schedule = self._schedule(self.plan, self._recorder)
        begin = time.monotonic()
        following = schedule.first()
        for block in range(experiment.blocks - experiment.warmup):
            if not following.cases:
                return True
            number = block + experiment.warmup
            due = [self.plan.cases[i] for i in following.cases]
            active = [case for case in due if not self._failed(case)]
            if not self._is_done(active, number):
                if not self._block(active, block):
                    return False
                if self._options.fail_fast and any(map(self._failed, self.plan.cases)):
                    return True
            following = schedule.after(number, time.monotonic() - begin, self._expected)
        return True

    def _failed(self, case: Case) -> bool:
        return "failure" in self._recorder.cases[case.id]

    def _is_done(self, active: Sequence[Case], number: int) -> bool:
        """Return whether an earlier start ran a whole block; forget one that it only began."""
        if not self._done:
            return False
        if all((case.id, number) in self._done for case in active):
            return True
        self._recorder.forget_block(number)
        self._done = frozenset()  # there are no later ones
        return False

    def _block(self, active: Sequence[Case], block: int) -> bool:
        """Run a step of each environment; return whether all of them ran."""
        if self._out_of_time():
            return False
        experiment = self.plan.experiment
        plain = self._in_order(active, block)
        wanted = {
            each.name: [
                there for case in plain if (there := replace(case, environment=each.name)) in active
            ]
            for each in self._environments
        }
        taking_part = [each for each in self._environments if wanted[each.name]]
        begin = time.monotonic()
        results = self._steps.run(
            taking_part,
            {
                name: step_experiment(experiment, [replace(c, environment="") for c in own], block)
                for name, own in wanted.items()
                if own
            },
            [case.id for case in plain],
            block,
        )
        self._seconds = time.monotonic() - begin
        self._expected |= {case.id: self._seconds / len(active) for case in active}
        number = block + experiment.warmup
        for place, (name, result) in enumerate(results.items()):
            cases = wanted[name]
            self._recorder.add(cases, result, number, place * len(plain))
            if result.record is not None:
                self._recorder.note_step(name, result.record)
            self._note_failures(cases, result, number)
        return not self._stop.asked

    def _in_order(self, active: Sequence[Case], block: int) -> Sequence[Case]:
        """Return each case once, in the order of a block, which all environments have."""
        experiment = self.plan.experiment
        once = {case.id: case for case in (replace(case, environment="") for case in active)}
        if experiment.order == "listed":
            return list(once.values())
        return list(ordered_block(list(once.values()), block, experiment.seed))

    def _out_of_time(self) -> bool:
        left = self._deadline - time.monotonic()
        if left > self._seconds:
            return False
        self._recorder.remark(
            f"stopped before a block, which takes about {self._seconds:.1f} s: {max(left, 0):.1f} "
            "s of the time that the run may take were left"
        )
        return True

    def _note_failures(self, cases: Sequence[Case], result: StepResult, number: int) -> None:
        """Record the cases that failed, and the case during which a step died."""
        warmup, often = self.plan.experiment.warmup, self.plan.experiment.step_repetitions
        rows = {
            case.id: result.samples.get(replace(case, environment="").id, ()) for case in cases
        }
        lost = [
            case
            for case in cases
            if not self._recorder.note_failure(case, result, number)
            and not is_complete(rows[case.id], warmup, often)
        ]
        if self._stop.asked:  # the signal may have ended the step too
            return
        if not lost and result.trouble:
            self._recorder.remark(f"{cases[0].environment}, block {number}: {result.trouble}")
        # Before any case had begun none of them can be named. Cases run in turns, so that later the
        # first one of those that ran least often was at hand; the others may go on.
        died = lost
        if result.record is not None and lost:
            died = [min(lost, key=lambda case: len({row.repetition for row in rows[case.id]}))]
        for case in died:
            why = one_line(result.trouble or "the job step did not run it", 400)
            host = self._recorder.run_record.topology["hosts"][0]
            self._recorder.fail(case, number, Failure("job step", 0, host, why, "", 1))
