"""Checks that runs belong to one series, and remarks on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pffbench.errors import UserError
from pffbench.grouping import grouped
from pffbench.record.run import MeasuredRun
from pffbench.results.cells import keys_of
from pffbench.results.load import busy, summarise_load, unsettled
from pffbench.text import abridged
from pffbench_analysis.differences import ABSENT, differences

#: Facts, by section of the provenance, in which the runs of a series must not differ; a name
#: that ends with a dot covers all below it. Differences in others, such as a kernel or the
#: requested time, are reported.
_MUST_AGREE = {
    "experiment": ("name", "seed", "memory"),
    "software": ("libraries.", "loaded.", "pffbench.version"),
    "mpi_io": ("library", "library_version", "component"),
    "filesystem": ("type", "device", "mount_point"),
    "slurm": ("cluster_name",),
}
#: Unit of the sizes.
Over = Literal["ranks", "nodes"]
#: Largest number of differing facts in a message.
_LISTED = 8


def size_of(run: MeasuredRun, over: Over) -> int:
    """Return the number of ranks or nodes of a run."""
    return run.ranks if over == "ranks" else run.nodes


def _ranks_per_node(runs: Sequence[MeasuredRun]) -> set[float]:
    return {run.ranks / run.nodes for run in runs}


def natural(runs: Sequence[MeasuredRun]) -> Over:
    """Return nodes if their number varies and each has equally many ranks, else ranks."""
    vary = len({run.nodes for run in runs}) > 1
    return "nodes" if vary and len(_ranks_per_node(runs)) == 1 else "ranks"


def check_sizes(runs: Sequence[MeasuredRun], over: Over) -> None:
    """Refuse sizes that mix different jobs, and runs whose times mean nothing."""
    first: dict[int, MeasuredRun] = {}
    for run in runs:
        if run.record.traced:
            raise UserError(
                f"{run.directory}: system calls were counted (counters: calls), which slows them, "
                "so its times show nothing; leave it out"
            )
        if run.record.unsafe:
            raise UserError(f"{run.directory}: {run.record.objection}; leave it out")
        other = first.setdefault(size_of(run, over), run)
        if (run.ranks, run.nodes) != (other.ranks, other.nodes):
            raise UserError(
                f"over {over}, {other.directory} ({other.ranks} ranks, {other.nodes} nodes) and "
                f"{run.directory} ({run.ranks} ranks, {run.nodes} nodes) would be one "
                "point; leave one out, or choose the other of --over ranks|nodes"
            )
    if over == "nodes" and len(_ranks_per_node(runs)) > 1 and len({r.ranks for r in runs}) > 1:
        told = ", ".join(f"{run.directory}: {run.ranks} on {run.nodes}" for run in runs)
        raise UserError(
            f"--over nodes needs the same number of ranks on each node ({told}); use --over ranks"
        )


def agreeing(runs: Sequence[MeasuredRun]) -> list[str]:
    """Compare the provenance of all runs with the first one's; refuse or note differences."""
    first = runs[0]
    notes: list[tuple[str, str]] = []
    for run in runs[1:]:
        found = [d for d in differences(first, run) if d.area != "size"]
        wrong = [d for d in found if _must_agree(d.key)]
        if wrong:
            raise UserError(
                f"{first.directory} and {run.directory} are not of one series; they differ in "
                f"{abridged(list(map(str, wrong)), _LISTED)}"
            )
        notes += [(f"{d.key}: {d.a} at first, then {d.b}", run.directory.name) for d in found]
    return [f"differs: {text} ({', '.join(names)})" for text, names in grouped(notes).items()]


def _must_agree(key: str) -> bool:
    section, _, name = key.partition(".")
    names = _MUST_AGREE.get(section, ())
    return any(name.startswith(n) if n.endswith(".") else name == n for n in names)


def nothing_common(runs: Sequence[MeasuredRun]) -> str:
    """List the parameters in which runs without a common case differ."""
    first, last = runs[0], runs[-1]
    a, b = _swept(first), _swept(last)
    told = [
        f"{key}: {a.get(key, ABSENT)} / {b.get(key, ABSENT)}"
        for key in {**a, **b}
        if a.get(key) != b.get(key)
    ]
    return (
        f"no case occurs at two sizes; the cases of {first.directory} and {last.directory} differ "
        f"in {abridged(told, _LISTED) or 'their options'} (for strong scaling keep `shape`, for "
        "weak scaling `shape_per_rank`)"
    )


def _swept(run: MeasuredRun) -> dict[str, str]:
    values = grouped(item for entry in run.record.cases.values() for item in keys_of(entry).items())
    return {key: ", ".join(sorted({*found})) for key, found in values.items()}


def remarks(runs: Sequence[MeasuredRun]) -> Iterator[str]:
    """Yield what a reader must know of the runs: the library's transfers, and cases left out."""
    for name in dict.fromkeys(name for run in runs for name in run.record.cases):
        entries = [(run, run.record.cases[name]) for run in runs if name in run.record.cases]
        told = grouped(
            (", ".join(f"{k} {v}" for k, v in entry.transfer_facts.items()), run.directory.name)
            for run, entry in entries
            if entry.transfer_facts
        )
        if len(told) > 1:
            parts = (f"{fact} ({', '.join(where)})" for fact, where in told.items())
            yield f"{name}: the library's transfers differ: {'; '.join(parts)}"
        for run, entry in entries:
            if entry.excluded:
                yield f"left out: {name} of {run.directory.name}: {entry.excluded}"


def alarms(runs: Sequence[MeasuredRun]) -> Iterator[str]:
    """Yield why the times of runs may show something else than how the work scales."""
    for run in runs:
        name, record = run.directory.name, run.record
        if record.objection:
            yield f"INVALID: {name}: {record.objection}"
        if record.status != "finished":
            yield f"{name} is not finished ({record.status}): rounds are missing"
        load = summarise_load(run.repetitions)
        yield from (f"{name}: {text}" for text in (*busy(load), *unsettled(load)))
    if shared := [run.directory.name for run in runs if run.record.clock == "synced"]:
        yield (
            f"more ranks than cores: {', '.join(shared)}; ranks wait for a core, so larger jobs "
            "may scale differently"
        )
    if len({run.ranks for run in runs}) > 1 and all(run.nodes == 1 for run in runs):
        yield (
            "one node: all ranks share its memory and its link to the disks, so several nodes may "
            "scale differently"
        )
