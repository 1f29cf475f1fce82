"""`pffbench plan`: cases and cost of an experiment, without running it."""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Iterator
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import experiment_files, load_experiment
from pffbench.experiment.plan import Plan
from pffbench.experiment.schema import Experiment
from pffbench.run.output import make_console
from pffbench.storage.filesystem import filesystem
from pffbench.storage.scratch import scratch_parent
from pffbench.text import one_line
from pffbench.units import Size

_HEADINGS = ("case", "data", "arrays", "files", "space", "memory/rank")
#: Maximum number of printed lines; a table of 100 000 takes half a minute to format.
_MOST_LINES = 200


def main(arguments: argparse.Namespace) -> int:
    """Print the cases of an experiment and their cost. Return the exit status."""
    gc.disable()  # objects of planning live to the end, and collecting among them takes long
    _keep_mpi_asleep()
    ranks = arguments.ranks or int(os.environ.get("SLURM_NTASKS", "1"))
    given: str | None = arguments.experiment
    folder = given is not None and Path(given).is_dir()
    most = None if arguments.all else _MOST_LINES
    console = make_console(width=None if os.isatty(1) else 160)
    for experiment in experiment_files(given) if folder and given else [given]:
        plan = make_plan(load_experiment(experiment, arguments.overrides), ranks)
        if folder:
            console.print(one_line(f"experiment {experiment}"))
        _print(plan, console, most, arguments.scratch)
    return 0


def _print(plan: Plan, console: Console, most: int | None, scratch: str | None) -> None:
    console.print(_table(plan, most))
    for name, reason in plan.left_out[:most]:
        why = "see the end" if plan.is_limit(reason) else reason
        console.print(one_line(f"left out: {name}: {why}"))
    limits = (f"limited: {one_line(text)}" for text in plan.limits)
    for line in (*_not_shown(plan, most), *_totals(plan, scratch), *limits):
        console.print(line)


def _keep_mpi_asleep() -> None:
    """Keep MPI from being initialised by a parallel h5py, which reads the user's own file."""
    try:
        import mpi4py
    except ImportError:
        return
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False


def _table(plan: Plan, most: int | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for i, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if i else "left", no_wrap=True)
    for case in plan.cases[:most]:
        cost = plan.costs[case.id]
        note = " (roofline)" if case.roofline else ""
        table.add_row(f"{case.id}{note}", str(Size(cost.nbytes)), str(cost.arrays),
                      str(cost.files), str(Size(cost.space)), str(Size(cost.memory)))  # fmt: skip
    return table


def _not_shown(plan: Plan, most: int | None) -> Iterator[str]:
    """Return a note on the lines that are not printed."""
    for what, found in (("cases", plan.cases), ("cases left out", plan.left_out)):
        if most is not None and len(found) > most:
            yield f"{len(found) - most} more {what} are not shown; --all shows them"


def _totals(plan: Plan, scratch: str | None) -> list[str]:
    experiment = plan.experiment
    blocks = experiment.blocks
    written = sum(cost.nbytes for cost in plan.costs.values()) * blocks
    parent, _ = scratch_parent(scratch)
    try:
        there = filesystem(parent)
    except OSError as error:
        raise UserError(f"--scratch {parent}: cannot be reached: {error.strerror}") from None
    peak = max(cost.space for cost in plan.costs.values())
    return [
        f"{len(plan.cases)} cases on {plan.ranks} ranks, {_times(experiment)} each "
        f"({experiment.warmup} of them to warm up): {Size(written)} written and read in all",
        *_growing(plan),
        f"at most {Size(peak)} at a time in {parent} ({there.type}, {Size(there.free_bytes)} free)",
    ]


def _times(experiment: Experiment) -> str:
    most = f"{experiment.blocks} times"
    return f"at most {most}" if experiment.repetitions == "auto" else most


def _growing(plan: Plan) -> Iterator[str]:
    """Name the cases in which each rank makes calls for the arrays of all ranks."""
    for case in plan.cases:
        p = case.parameters
        if p.layout == "own" and p.transfer == "collective" and plan.ranks > 1:
            arrays = plan.costs[case.id].arrays
            yield (
                f"{case.id}: each rank makes {arrays} calls to write and as many to read, one for "
                f"each array of every rank: {arrays * plan.ranks} in all. That grows with the "
                "square of the ranks; transfer: independent does not"
            )
