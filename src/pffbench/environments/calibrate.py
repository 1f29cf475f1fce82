"""Calibration in a run of several environments: one of them finds a number, and all have it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from pffbench.environments.start import StartedEnvironment
from pffbench.environments.step import JobSteps, step_experiment
from pffbench.experiment.plan import Plan
from pffbench.run.calibration import (
    SECONDS,
    Calibration,
    calibrations_of,
    note_calibrations,
    open_groups,
    with_numbers,
)
from pffbench.run.recorder import Recorder


def calibrated_plan(
    plan: Plan, environments: Sequence[StartedEnvironment], steps: JobSteps, recorder: Recorder
) -> Plan:
    """Find the numbers that are open and record them; return the plan with them.

    The first environment in which a case of a comparison runs finds its number.

    Parameters
    ----------
    plan : Plan
        The cases of all environments.
    environments : sequence of StartedEnvironment
        The environments, in their order.
    steps : JobSteps
        Starts their ranks.
    recorder : Recorder
        Receives the numbers.
    """
    wanted = open_groups(plan.cases)
    found: dict[str, Calibration] = {}
    for environment in environments:
        own = [
            replace(case, environment="")
            for case in plan.cases
            if case.environment == environment.name
            and case.group in wanted
            and case.group not in found
        ]
        if own:
            record = steps.calibrate(environment, step_experiment(plan.experiment, own, 0))
            told = calibrations_of({} if record is None else record.calibrations)
            found |= {group: one for group, one in told.items() if one.case}
    for group in wanted:
        none = Calibration(plan.ranks, SECONDS, 0.0, "", "", "no case of it could be calibrated")
        found.setdefault(group, none)
    numbers = {group: one.number for group, one in found.items()}
    complete = with_numbers(plan, numbers)
    note_calibrations(recorder, complete, found)
    return complete
