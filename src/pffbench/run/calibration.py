"""Calibration: the numbers that an experiment leaves open, such as `datasets: auto`.

Before the first block the cases of a comparison run with one dataset for each rank, two, four, …
until the shortest of their phases lasts long enough to be resolved. All of them then have that
number: they do the same work. Nothing of these trials is recorded but the number and why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict, replace

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.errors import UserError
from pffbench.experiment.plan import Plan, cost_of
from pffbench.parallel.collectives import largest
from pffbench.phases import PHASES
from pffbench.run.scratch_directory import check_scratch, part_of_node
from pffbench.text import without_digests
from pffbench.units import duration_text
from pffbench.workloads.registry import workload

if TYPE_CHECKING:
    from pffbench.run.recorder import Recorder
    from pffbench.run.runner import Runner

#: The shortest phase lasts at least this many seconds, and this many resolutions of the clock; the
#: resolution of the harness is 100 floors, so that it is 1000 of them.
SECONDS, RESOLUTIONS = 0.1, 10
#: Part of a case's time, in phases that grow with the number, below which a phase does not count:
#: the library does nothing there for a dataset.
SHARE = 0.05
#: Longest trial of a case, as a multiple of the wanted seconds.
LONGEST = 100
#: Most datasets, as an experiment may ask for.
MOST = 1_000_000
#: Phases that take longer with more datasets.
_GROWING = frozenset(phase.name for phase in PHASES if phase.does in ("arrays", "data"))

#: Seconds by phase, by case.
TrialTimes = Mapping[str, Mapping[str, float]]


class Calibration(msgspec.Struct, frozen=True):
    """The number that was found for the cases of a comparison, and why.

    Parameters
    ----------
    number : int
        The number, for all ranks together.
    wanted_seconds : float
        Seconds that the shortest phase was to last.
    seconds : float
        Seconds that it lasted with this number.
    case, phase : str
        The case and the phase; empty where no case ran.
    limit : str
        Why the number is smaller than wanted; else empty.
    """

    number: int
    wanted_seconds: float
    seconds: float
    case: str
    phase: str
    limit: str = ""

    def sentence(self, group: str) -> str:
        """Return the result in words."""
        told = f"datasets: auto is {self.number} in {without_digests(group)}"
        if self.case:
            backend, phase = self.case.partition(".")[0], self.phase
            told += f": the shortest phase, {phase} of {backend}, took {self.seconds:.2g} s"
        wanted = duration_text(self.wanted_seconds)
        return f"{told}, less than the wanted {wanted}, since {self.limit}" if self.limit else told


def open_groups(cases: Iterable[Case]) -> list[str]:
    """Return the comparisons whose cases have a number that is still open, in their order."""
    return list(dict.fromkeys(case.group for case in cases if is_open(case)))


def is_open(case: Case) -> bool:
    """Whether a number of a case is still to be found."""
    return workload(case.parameters.workload).is_open(case.parameters)


def with_numbers(plan: Plan, numbers: Mapping[str, int]) -> Plan:
    """Return a plan with the numbers of some comparisons, where they are open.

    Parameters
    ----------
    plan : Plan
        The plan.
    numbers : dict of str to int
        Number of each comparison, by its name.
    """
    memory, costs = int(plan.experiment.memory), dict(plan.costs)
    cases = []
    for case in plan.cases:
        if case.group in numbers and is_open(case):
            pattern = workload(case.parameters.workload)
            chosen = pattern.with_number(case.parameters, numbers[case.group])
            case = replace(case, parameters=chosen)
            costs[case.id] = cost_of(case, plan.ranks, memory)
        cases.append(case)
    return replace(plan, cases=tuple(cases), costs=costs)


def recorded_numbers(plan: Plan, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the numbers that an earlier start of a run has found, by comparison.

    Parameters
    ----------
    plan : Plan
        The plan.
    entries : dict of str to dict
        Entries of the cases in `run.json`.
    """
    found = {}
    for case in plan.cases:
        if not is_open(case):
            continue
        told = entries.get(case.id, {}).get("parameters", {})
        for name in case.parameters.calibrated:
            if told.get(name) is not None:
                found[case.group] = int(told[name])
    return found


def calibrate(
    cases: Collection[str],
    ranks: int,
    wanted: float,
    measure: Callable[[int], TrialTimes | None],
    beyond: Callable[[int], str],
) -> Calibration | None:
    """Find the number of a comparison.

    Parameters
    ----------
    cases : collection of str
        The cases whose phases count.
    ranks : int
        Number of ranks: each has equally many.
    wanted : float
        Seconds that the shortest phase is to last.
    measure : callable
        Runs all cases with a number; returns the seconds of their phases, None when the run ends.
    beyond : callable
        Returns why a number is too large, or nothing.

    Returns
    -------
    Calibration or None
        None when the run ends.
    """
    number = ranks
    measure(number)  # the first call of a library takes longer
    while True:
        times = measure(number)
        if times is None:
            return None
        case, phase, seconds = _shortest({c: t for c, t in times.items() if c in cases} or times)
        found = Calibration(number, wanted, seconds, case, phase)
        if seconds >= wanted or not case:
            return found
        longest = max(sum(of_case.values()) for of_case in times.values())
        if longest >= LONGEST * wanted:
            return replace(found, limit=f"a repetition takes {longest:.2g} s already")
        if why := beyond(2 * number):
            return replace(found, limit=why)
        number *= 2


def _shortest(times: TrialTimes) -> tuple[str, str, float]:
    """Return the shortest phase that counts, with its case and seconds."""
    found = []
    for case, by_phase in times.items():
        growing = {phase: s for phase, s in by_phase.items() if phase in _GROWING}
        least = SHARE * sum(growing.values())
        found += [(s, case, phase) for phase, s in growing.items() if s >= least]
    seconds, case, phase = min(found, default=(0.0, "", ""))
    return case, phase, seconds


class Calibrator:
    """Finds all open numbers of a run; every method is collective.

    Parameters
    ----------
    runner : Runner
        The run, whose plan has the numbers at the end.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._plan = runner.spec.plan
        self._comm = runner.team.comm

    def run(self) -> bool:
        """Find the numbers and record them; return whether the run goes on."""
        recorder = self._runner.recorder
        here = 0.0 if recorder is None else max(SECONDS, RESOLUTIONS * recorder.resolution)
        wanted = float(self._comm.bcast(here))
        found: dict[str, Calibration] = {}
        for group in open_groups(self._plan.cases):
            numbers = {name: one.number for name, one in found.items()}
            one = calibrate(
                [case.id for case in self._plan.cases if case.group == group and _counts(case)],
                self._runner.team.size,
                wanted,
                partial(self._measured, group, numbers),
                partial(self._beyond, group),
            )
            if one is None:
                return False
            found[group] = one
        numbers = {name: one.number for name, one in found.items()}
        self._use(numbers)
        if recorder is not None:
            note_calibrations(recorder, self._runner.spec.plan, found)
        return True

    def _use(self, numbers: Mapping[str, int]) -> None:
        runner = self._runner
        runner.spec = replace(runner.spec, plan=with_numbers(self._plan, numbers))

    def _measured(self, group: str, others: Mapping[str, int], number: int) -> TrialTimes | None:
        """Run the cases of a comparison once; return the seconds of the slowest rank."""
        self._use({**others, group: number})
        times: dict[str, dict[str, float]] = {}
        for case in self._runner.spec.plan.cases:
            if case.group != group:
                continue
            if not self._runner.goes_on():
                return None
            if (found := self._runner.trial(case)) is not None:
                times[case.id] = {phase: largest(self._comm, s) for phase, s in found.items()}
        return times

    def _beyond(self, group: str, number: int) -> str:
        """Return why a comparison cannot have so many datasets, by rank 0; else nothing."""
        told = ""
        if self._runner.team.is_root:
            told = self._reason(group, number)
        return str(self._comm.bcast(told))

    def _reason(self, group: str, number: int) -> str:
        if number > MOST:
            return f"{MOST} are the most"
        spec, team = self._runner.spec, self._runner.team
        plan = with_numbers(self._plan, {group: number})
        plan = replace(plan, cases=tuple(case for case in plan.cases if case.group == group))
        if plan.experiment.node_local:
            plan = part_of_node(plan, team)
        try:
            keeps = spec.stage == "write"
            check_scratch(plan, self._runner.scratch.directory, spec.memory, keeps=keeps)
        except UserError as error:
            return f"of {number} {without_digests(str(error))}"
        return ""


def _counts(case: Case) -> bool:
    """Whether the phases of a case count: not those of raw transfers, which have no datasets."""
    can = backend_class(case.parameters.backend).capabilities
    return not (can.raw or can.discards)


def note_calibrations(recorder: Recorder, plan: Plan, found: Mapping[str, Calibration]) -> None:
    """Record the numbers, and the cases as they are with them.

    Parameters
    ----------
    recorder : Recorder
        The recorder.
    plan : Plan
        The plan with the numbers.
    found : dict of str to Calibration
        The calibration of each comparison.
    """
    record = recorder.run_record
    memory = int(plan.experiment.memory)
    for case in plan.cases:
        if case.group in found:
            entry = record.cases[case.id]
            entry["parameters"] |= msgspec.to_builtins(case.parameters)
            entry["cost"] = asdict(cost_of(case, plan.ranks, memory))
    record.calibrations |= {group: asdict(one) for group, one in found.items()}
    for group, one in found.items():
        recorder.remark(one.sentence(group))
    record.save(recorder.directory)


def calibrations_of(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Calibration]:
    """Return the calibrations of a record, by comparison."""
    return {group: msgspec.convert(one, Calibration) for group, one in found.items()}
