"""`pffbench plan`: cases and cost of an experiment, without running it."""

from __future__ import annotations

import argparse
import gc
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec
import psutil
from rich.console import Console
from rich.table import Table

from pffbench.case import Case, case_names
from pffbench.commands.arguments import add_json, list_experiments, number_of
from pffbench.errors import UserError, explained
from pffbench.experiment.check import extra_cold_reads, make_plan
from pffbench.experiment.estimate import (
    FAST_RATE,
    SLOW_RATE,
    SecondsRange,
    cold_read_warnings,
    estimate_duration,
    slow_seconds,
)
from pffbench.experiment.load import experiment_files, is_folder, load_experiment, to_plain
from pffbench.experiment.plan import Cost, Plan, arrays_of
from pffbench.experiment.schema import Experiment
from pffbench.job.launcher import mpi_unstarted, reason_against_mpi
from pffbench.mpi.topology import Topology
from pffbench.record.ranks import NEEDS_H5PY
from pffbench.run.first_round import left_out_at
from pffbench.run.options import add_experiment
from pffbench.run.output import make_console, print_json
from pffbench.run.scratch_directory import parent_of_node
from pffbench.storage.filesystem import FileSystem, filesystem
from pffbench.storage.page_cache import reason_against_cold_reads
from pffbench.storage.scratch import scratch_parent
from pffbench.text import counted, fits, make_table, one_line, without_digests
from pffbench.units import Size, duration_text

_HEADINGS = ("case", "data", "arrays", "files", "space", "memory/rank")
#: Maximum number of printed lines; a table of 100 000 takes half a minute to format.
_MOST_LINES = 200
#: What is printed at a case that the time budget does not hold on a slow machine.
_NO_TIME = "no time if slow"
#: Columns in a log.
_WIDTH = 160
#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 1


class PlannedRun(msgspec.Struct, frozen=True):
    """A plan with the facts of this machine that it is judged by."""

    #: The experiment.
    file: str
    #: The plan.
    plan: Plan
    #: Directory of the files.
    scratch: str
    #: Its file system.
    there: FileSystem
    #: Estimated seconds.
    duration: SecondsRange
    #: Cases that the time budget does not hold on a slow machine.
    left_out_if_slow: frozenset[str]
    #: Reasons why results would not mean what they are meant to.
    warnings: tuple[str, ...]

    @classmethod
    def of(
        cls, file: str, plan: Plan, scratch: str | None, node_memory: int | None = None
    ) -> PlannedRun:
        """Judge a plan on this machine, or for nodes of so many bytes of memory.

        Raises
        ------
        UserError
            The scratch directory cannot be reached, or writer ranks hold more than a node has.
        """
        parent = _parent(plan.experiment, scratch)
        with explained(f"--scratch {parent}: cannot be reached"):
            there = filesystem(parent)
        nodes = _nodes()
        memory = node_memory or psutil.virtual_memory().total
        large = list(_large_writers(plan, memory))
        if large and node_memory:
            raise UserError(large[0])
        warnings = (
            *_unrecorded(),
            *plan.remarks,
            *_square(plan),
            *large,
            *cold_read_warnings(plan, there, memory, nodes),
        )
        slow = () if plan.experiment.environments else left_out_at(plan, slow_seconds(plan))
        without = frozenset(case.id for case in slow)
        return cls(file, plan, parent, there, estimate_duration(plan), without, warnings)

    @property
    def written(self) -> Size:
        """Bytes that all repetitions write."""
        experiment, nbytes = self.plan.experiment, sum(c.nbytes for c in self.plan.costs.values())
        if not experiment.environments:
            return Size(nbytes * experiment.rounds)
        steps = (experiment.rounds - experiment.warmup) * len(experiment.environments)
        return Size(nbytes * steps * (experiment.warmup + experiment.step_repetitions))

    @property
    def peak(self) -> Size:
        """Bytes on disk at a time."""
        return Size(self.plan.peak_space)


def _parent(experiment: Experiment, scratch: str | None) -> str:
    """Return the directory of the files on this machine."""
    return (parent_of_node if experiment.node_local else scratch_parent)(scratch)[0]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_experiment(parser)
    parser.add_argument(
        "-n",
        "--ranks",
        type=number_of("ranks"),
        metavar="N",
        help="number of ranks (default: the tasks of the Slurm job, otherwise 1) (example: --ranks "
        "64)",
    )
    parser.add_argument(
        "--node-memory",
        type=_size,
        metavar="SIZE",
        help="memory of a node. In some experiments a few ranks collect the data of the others. A "
        "plan is refused if the ranks that collect need more than SIZE on one node. Without this "
        "option SIZE is the memory of this machine, and a plan that needs more gets only a warning "
        "(example: --node-memory 256GiB)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="show all cases, even if there are more than 200",
    )
    add_json(parser)


def _size(text: str) -> int:
    """Return a number of bytes given on the command line."""
    try:
        return int(Size.parse(text))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@mpi_unstarted()
def main(arguments: argparse.Namespace) -> int:
    """Print the cases of an experiment and their cost. Return the exit status.

    Without an experiment, and without an option that would go with the default one, the experiments
    of the package are listed.
    """
    alone = {"command", "list"}
    if arguments.list or not any(v for k, v in vars(arguments).items() if k not in alone):
        return list_experiments(as_json=arguments.json)
    gc.disable()  # objects of planning live to the end, and collecting among them takes long
    no_mpi = reason_against_mpi()
    ranks = arguments.ranks or int(os.environ.get("SLURM_NTASKS", "1"))
    given: str | None = arguments.experiment
    folder = given is not None and is_folder(given)
    most = None if arguments.all else _MOST_LINES
    console = make_console(_WIDTH)
    planned = []
    for file in experiment_files(given) if folder and given else [given]:
        loaded = load_experiment(file, arguments.overrides)
        no_cold_reads = (
            reason_against_cold_reads(_parent(loaded.experiment, arguments.scratch))
            if extra_cold_reads(loaded)
            else None
        )
        plan = make_plan(loaded, ranks, no_mpi, no_cold_reads, Topology.even(ranks, _nodes()))
        run = PlannedRun.of(loaded.path, plan, arguments.scratch, arguments.node_memory)
        if arguments.json:
            planned.append(_as_data(run))
            continue
        if folder:
            console.print(one_line(f"experiment {file}"))
        _print(run, console, most)
    if arguments.json:
        print_json({"format": "pffbench plan", "version": _JSON_VERSION, "plans": planned})
    return 0


def _nodes() -> int:
    """Return the number of nodes of the job; 1 outside one."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))


def _as_data(run: PlannedRun) -> dict[str, Any]:
    """Return a plan as plain data."""
    plan = run.plan
    return {
        "experiment_file": run.file,
        "experiment": to_plain(plan.experiment),
        "ranks": plan.ranks,
        "cases": [
            {
                "case": case.id,
                "group": case.group,
                "roofline": case.roofline,
                "workload": case.parameters.workload,
                "parameters": msgspec.to_builtins(case.parameters, enc_hook=int),
                "options": msgspec.to_builtins(case.options, enc_hook=int),
                "cost": msgspec.structs.asdict(plan.costs[case.id]),
            }
            for case in plan.cases
        ],
        "left_out": [{"case": name, "reason": reason} for name, reason in plan.left_out],
        "limits": plan.limits,
        "rounds": plan.experiment.rounds,
        "written_bytes": run.written,
        "peak_bytes": run.peak,
        "scratch": {"directory": run.scratch, "file_system": run.there.type,
                    "free_bytes": run.there.free_bytes},
        "seconds": {"low": run.duration.low, "high": run.duration.high},
        "left_out_if_slow": sorted(run.left_out_if_slow),
        "warnings": run.warnings,
    }  # fmt: skip


def _print(run: PlannedRun, console: Console, most: int | None) -> None:
    for line in _cases(run, console, run.plan.cases[:most]):
        console.print(line)
    for text in _list_left_out(run.plan)[:most]:
        console.print(one_line(text))
    limits = (f"limited: {text}" for text in run.plan.limits)
    for text in (*_not_shown(run.plan, most), *_totals(run), *limits):
        console.print(one_line(text))


def _list_left_out(plan: Plan) -> list[str]:
    """Return a line for all cases of one name that are left out for the same reason."""
    alike = Counter((name.rpartition(".")[0], reason) for name, reason in plan.left_out)
    return [
        f"left out: {name}{f' ({count} cases)' if count > 1 else ''}: "
        f"{'see the end' if plan.is_limit(reason) else reason}"
        for (name, reason), count in alike.items()
    ]


def _cases(run: PlannedRun, console: Console, cases: Sequence[Case]) -> list[Table | str]:
    """Return a table of the cases, or two lines for each where it would be too wide."""
    plan, names = run.plan, case_names(cases)
    table = make_table()
    writers = any(plan.costs[case.id].writer_memory for case in cases)
    for i, heading in enumerate((*_HEADINGS, *["memory/writer"] * writers)):
        table.add_column(heading, justify="right" if i else "left", no_wrap=True)
    lines: list[Table | str] = []
    for case in cases:
        cost = plan.costs[case.id]
        name = f"{names[case.id]}{_remarks(run, case)}"
        data, space, memory = (str(Size(n)) for n in (cost.nbytes, cost.space, cost.memory))
        of_writer = _of_writer(cost)
        cells = (name, data, str(cost.arrays), str(cost.files), space, memory)
        table.add_row(*cells, *[of_writer] * writers)
        memory += f", memory/writer {of_writer}" if of_writer else ""
        plural = "s" if cost.arrays != 1 else ""
        second = (
            f"    {data} in {cost.arrays} array{plural}, files {cost.files}, space {space}, "
            f"memory/rank {memory}"
        )
        lines += [name, second]
    return [table] if fits(table, console) else lines


def _remarks(run: PlannedRun, case: Case) -> str:
    """Return what is printed after the name of a case, empty for most."""
    slow = case.id in run.left_out_if_slow
    texts = ["roofline"] * case.roofline + [_NO_TIME] * slow
    return f" ({', '.join(texts)})" if texts else ""


def _of_writer(cost: Cost) -> str:
    """Return the memory of a writer rank; empty without writer ranks."""
    if not cost.writer_memory:
        return ""
    each = f" + {Size(cost.writer_memory_of_rank)} × ranks/node"
    return f"{Size(cost.writer_memory)}{each if cost.writer_memory_of_rank else ''}"


def _not_shown(plan: Plan, most: int | None) -> Iterator[str]:
    """Return a note on the lines that are not printed."""
    for what, found in (("cases", plan.cases), ("lines of cases left out", _list_left_out(plan))):
        if most is not None and len(found) > most:
            yield f"{len(found) - most} more {what} are not shown; --all shows them"


def _totals(run: PlannedRun) -> Iterator[str]:
    plan, experiment = run.plan, run.plan.experiment
    warmup = f"{experiment.warmup} of them to warm up"
    if count := len(experiment.environments):
        warmup = (
            f"each in {count} environments, {experiment.warmup} time(s) to warm up and then "
            f"{experiment.step_repetitions}"
        )
    yield (
        f"{counted(len(plan.cases), 'case')} on {counted(plan.ranks, 'rank')}, "
        f"{_times(experiment)} each "
        f"({warmup}): {run.written} written and read in all"
    )
    of_maps = (_map_text(case, plan.ranks) for case in plan.cases)
    yield from dict.fromkeys(f"map {text}" for text in of_maps if text)
    yield from (f"warning: {text}" for text in run.warnings)
    yield _time(run)
    yield from _short_of_time(run)
    yield (
        f"at most {run.peak} at a time in {run.scratch} ({run.there.type}, "
        f"{Size(run.there.free_bytes)} free)"
    )


def _map_text(case: Case, ranks: int) -> str | None:
    p = case.parameters
    return arrays_of(p, ranks).maps


def _time(run: PlannedRun) -> str:
    low, high = (duration_text(seconds) for seconds in run.duration)
    budget = run.plan.experiment.time_budget
    ends = f" and time_budget {duration_text(budget)}" if budget is not None else ""
    return (
        f"takes about {low if low == high else f'{low} to {high}'}, assuming {Size(FAST_RATE)} "
        f"to {Size(SLOW_RATE)} per second and 0.1 to 2 ms a file{ends}; nothing was measured"
    )


def _short_of_time(run: PlannedRun) -> Iterator[str]:
    """Say how many cases a slow machine leaves out, which are marked."""
    if run.left_out_if_slow:
        assert run.plan.experiment.time_budget is not None
        out, count = len(run.left_out_if_slow), len(run.plan.cases)
        yield (
            f"at {Size(SLOW_RATE)} per second, time_budget "
            f"{duration_text(run.plan.experiment.time_budget)} holds {count - out} of {count} "
            f"cases; the others, marked ({_NO_TIME}), are left out"
        )


def _times(experiment: Experiment) -> str:
    rounds = experiment.rounds - experiment.warmup * bool(experiment.environments)
    most = f"{rounds} times"
    return f"at most {most}" if experiment.repetitions == "auto" else most


def _unrecorded() -> Iterator[str]:
    """Say that no run can be recorded without h5py."""
    if find_spec("h5py") is None:
        yield f"nothing can run here: {NEEDS_H5PY.format('not installed')}"


def _large_writers(plan: Plan, memory: int) -> Iterator[str]:
    """Name the cases whose writer ranks hold more than a node's memory."""
    nodes = os.environ.get("SLURM_JOB_NUM_NODES")
    ranks = -(-plan.ranks // int(nodes)) if nodes else 1  # at least
    for case in plan.cases:
        needed = plan.costs[case.id].memory_of_writer(ranks)
        if needed > memory:
            yield (
                f"{without_digests(case.id)}: a writer rank holds {Size(needed)}, and a node has "
                f"{Size(memory)} of memory; name more writers"
            )


def _square(plan: Plan) -> Iterator[str]:
    """Name the cases in which each rank makes calls for the arrays of all ranks."""
    for case in plan.cases:
        p, groups = case.parameters, case.parameters.groups(plan.ranks)
        if p.arrays == "per_rank" and p.transfer == "collective" and groups.largest > 1:
            calls = plan.costs[case.id].arrays * groups.largest
            yield (
                f"{without_digests(case.id)}: each rank makes {calls // plan.ranks} calls to write "
                f"and as many to read, one for each array of every rank: {calls} in all. "
                "That grows with the square of the ranks; transfer: independent does not"
            )
