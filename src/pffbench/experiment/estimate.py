"""Estimates of a plan: how long a run takes, and whether its cold reads can be cold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pffbench.experiment.plan import Plan
from pffbench.experiment.schema import PLAIN_REPETITIONS
from pffbench.storage.filesystem import FileSystem
from pffbench.units import Size

#: Bytes per second of a whole repetition: made, written, read and verified by all ranks.
SLOW_RATE, FAST_RATE = 100 * 2**20, 2**30
#: Seconds from the start of the program to the first round, of a repetition without data, of each
#: file, and of each collective call in which a rank moves nothing.
_SLOW, _FAST = (8.0, 0.3, 2e-3, 1e-3), (2.0, 0.05, 1e-4, 2e-5)
#: States of the page cache in which reads are meant to come from the storage.
_COLD = frozenset({"dropped", "separate"})
#: Data of this many times the memory cannot be held by caches of that size.
_TIMES_MEMORY = 2


class SecondsRange(NamedTuple):
    """The duration of a run: on a fast and on a slow machine, in seconds."""

    low: float
    high: float


def estimate_duration(plan: Plan) -> SecondsRange:
    """Estimate how long a run takes.

    Nothing is measured: `SLOW_RATE` and `FAST_RATE`, and seconds for each file and each collective
    call, are assumed, whatever the machine.
    """
    experiment = plan.experiment
    auto = experiment.repetitions == "auto"
    fewest = (
        min(experiment.rounds, experiment.warmup + PLAIN_REPETITIONS) if auto else experiment.rounds
    )
    return SecondsRange(
        _duration(plan, fewest, FAST_RATE, _FAST),
        _duration(plan, experiment.rounds, SLOW_RATE, _SLOW),
    )


def _duration(
    plan: Plan, rounds: int, rate: float, seconds: tuple[float, float, float, float]
) -> float:
    start = seconds[0]
    cases = list(_case_seconds(plan, rate, seconds).values())
    each_round = sum(cases)
    # At least the warm-up and one repetition of a case of each format run; nothing further begins
    # that would pass the budget.
    first = max(cases, default=0.0) * len({case.parameters.backend for case in plan.cases})
    experiment = plan.experiment
    if experiment.environments:  # each starts anew in each round, and runs all of its cases
        steps = len(experiment.environments)
        each_round = steps * (
            start + (experiment.warmup + experiment.step_repetitions) * each_round
        )
        rounds, first = rounds - experiment.warmup, each_round
    budget = experiment.time_budget
    if budget is None:
        return start + rounds * each_round
    return start + min(rounds * each_round, max(budget, (experiment.warmup + 1) * first))


def slow_seconds(plan: Plan) -> dict[str, float]:
    """Return the estimated seconds of a repetition of each case on a slow machine."""
    return _case_seconds(plan, SLOW_RATE, _SLOW)


def _case_seconds(
    plan: Plan, rate: float, seconds: tuple[float, float, float, float]
) -> dict[str, float]:
    _, each, each_file, each_call = seconds
    return {
        name: cost.nbytes / rate
        + each
        + each_file * cost.files
        + each_call * 2 * cost.calls / plan.ranks  # to write and to read, all ranks at once
        for name, cost in plan.costs.items()
    }


def cold_read_warnings(plan: Plan, there: FileSystem, memory: int, nodes: int) -> Iterator[str]:
    """Yield warnings about reads that are meant cold and may not be.

    Parameters
    ----------
    plan : Plan
        The plan.
    there : FileSystem
        File system of the scratch directory.
    memory : int
        Bytes of memory of a node.
    nodes : int
        Number of nodes.
    """
    cold = [case for case in plan.cases if case.parameters.cache in _COLD]
    if not cold:
        return
    if there.in_memory:
        yield f"reads are meant cold, but {there.type} keeps all files in memory: choose a disk"
        return
    smallest = Size(min(plan.costs[case.id].nbytes for case in cold))
    if smallest < _TIMES_MEMORY * memory * nodes:
        yield (
            f"reads are meant cold, but {smallest} are under twice the memory of the "
            f"{'nodes' if nodes > 1 else 'node'} ({Size(memory * nodes)}): the page cache is "
            "dropped and checked, but caches of disks or file servers may hold all of it"
        )
