"""From results directories to a scaling series: runs that belong together, matched by case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pffbench.errors import UserError
from pffbench.results.summary import TOTALS, CaseSummary, Summary, summarise
from pffbench_analysis.charts import place
from pffbench_analysis.runs import Difference, Run, differences, load_run
from pffbench_analysis.scaling.points import PHASES, Curve, Over, Point, kind_of

#: Facts in which the runs of a series must not differ. Others, such as a kernel or the time that
#: was asked for, are told.
_MUST_AGREE = (
    "experiment.name",
    "experiment.seed",
    "experiment.memory",
    "software.libraries.",
    "software.loaded.",
    "software.pffbench.version",
    "mpi_io.library",
    "mpi_io.component",
    "filesystem.type",
    "filesystem.device",
    "filesystem.mount_point",
    "slurm.cluster_name",
)
#: How many differing facts a message lists.
_LISTED = 8


@dataclass(frozen=True, eq=False)
class Series:
    """Runs of one experiment at several sizes of the job.

    Parameters
    ----------
    runs : tuple of Run
        The smallest first.
    over : {"ranks", "nodes"}
        What the sizes are.
    curves : tuple of Curve
        Every case in every phase that moves data: by comparison, then phase, raw bytes last.
    notes : tuple of str
        What should be known, such as facts in which runs differ.
    alarms : tuple of str
        What is wrong with a run.
    """

    runs: tuple[Run, ...]
    over: Over
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]
    alarms: tuple[str, ...]

    @property
    def sizes(self) -> list[int]:
        """All sizes that occur."""
        return sorted({size for curve in self.curves for size in curve.sizes})

    @property
    def kinds(self) -> list[str]:
        """The kinds of scaling that occur."""
        return sorted({curve.kind for curve in self.curves if curve.kind})

    def size(self, run: Run) -> int:
        """Return the size of a run."""
        return size_of(run, self.over)


def load_series(directories: Sequence[str | Path], over: Over | None = None) -> Series:
    """Read the runs of a scaling series.

    Parameters
    ----------
    directories : sequence of str or Path
        Results directories, in any order. Runs of equal size are taken together.
    over : {"ranks", "nodes"}, optional
        What the sizes are; nodes when their number varies and each has the same number of ranks,
        else ranks.

    Raises
    ------
    UserError
        One cannot be read, they do not belong to one series, or no case is in all sizes.
    """
    read = [load_run(directory) for directory in dict.fromkeys(map(Path, directories))]
    runs = sorted(read, key=lambda run: (run.ranks, run.nodes, run.record.started))
    over = over or _natural(runs)
    _check_sizes(runs, over)
    notes = [*_agreeing(runs), *_pooled(runs, over)]
    by_case: dict[str, list[tuple[Run, CaseSummary]]] = defaultdict(list)
    for run in runs:
        for case in _summary(run).cases:
            by_case[case.sample.case].append((run, case))
    curves = []
    for found in by_case.values():
        curves += _curves(found, over)
    sizes = {size_of(run, over) for run in runs}
    if len(sizes) > 1 and all(len(curve.points) == 1 for curve in curves):
        raise UserError(_nothing_common(runs))
    groups = list(dict.fromkeys(curve.case.sample.group for curve in curves))
    curves.sort(
        key=lambda c: (groups.index(c.case.sample.group), PHASES.index(c.phase), place(c.case))
    )
    notes += [*_odd_ones(curves, sizes), *_transfers(runs)]
    return Series(tuple(runs), over, tuple(curves), tuple(notes), tuple(_alarms(runs)))


def size_of(run: Run, over: Over) -> int:
    """Return the number of ranks or nodes of a run."""
    return run.ranks if over == "ranks" else run.nodes


def _summary(run: Run) -> Summary:
    try:
        return summarise(run.directory)
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"{run.directory} cannot be summarised: {error}") from None


def _ranks_per_node(runs: Sequence[Run]) -> set[float]:
    return {run.ranks / run.nodes for run in runs}


def _natural(runs: Sequence[Run]) -> Over:
    vary = len({run.nodes for run in runs}) > 1
    return "nodes" if vary and len(_ranks_per_node(runs)) == 1 else "ranks"


def _check_sizes(runs: Sequence[Run], over: Over) -> None:
    """Refuse sizes that stand for different jobs."""
    for run in runs:
        for other in runs:
            if size_of(run, over) == size_of(other, over) and (run.ranks, run.nodes) != (
                other.ranks,
                other.nodes,
            ):
                raise UserError(
                    f"over {over}, {run.directory} ({run.ranks} ranks, {run.nodes} nodes) and "
                    f"{other.directory} ({other.ranks} ranks, {other.nodes} nodes) would be one "
                    "point; leave one out, or choose the other of --over ranks|nodes"
                )
    if over == "nodes" and len(_ranks_per_node(runs)) > 1 and len({r.ranks for r in runs}) > 1:
        told = ", ".join(f"{run.directory}: {run.ranks} on {run.nodes}" for run in runs)
        raise UserError(
            f"--over nodes needs the same number of ranks on each node ({told}); use --over ranks"
        )


def _agreeing(runs: Sequence[Run]) -> list[str]:
    """Compare the provenance of all runs with the first one's; refuse or note what differs."""
    first = runs[0]
    notes: dict[str, list[str]] = defaultdict(list)
    for run in runs[1:]:
        found = [d for d in differences(first, run) if d.area != "size"]
        wrong = [d for d in found if d.key.startswith(_MUST_AGREE)]
        if wrong:
            raise UserError(
                f"{first.directory} and {run.directory} are not of one series; they differ in "
                f"{_listed(wrong)}"
            )
        for d in found:
            notes[f"{d.key}: {d.a} at first, then {d.b}"].append(run.directory.name)
    return [f"differs: {text} ({', '.join(names)})" for text, names in notes.items()]


def _listed(found: Sequence[Difference]) -> str:
    more = len(found) - _LISTED
    told = "; ".join(map(str, found[:_LISTED]))
    return told + (f"; and {more} more" if more > 0 else "")


def _nothing_common(runs: Sequence[Run]) -> str:
    """Say in which parameters runs without any common case differ."""
    first, last = runs[0], runs[-1]
    a, b = _swept(first), _swept(last)
    keys = [key for key in {**a, **b} if a.get(key) != b.get(key)]
    told = "; ".join(f"{key}: {a.get(key, '–')} / {b.get(key, '–')}" for key in keys[:_LISTED])
    return (
        f"no case occurs at two sizes; the cases of {first.directory} and {last.directory} differ "
        f"in {told or 'their options'} (for strong scaling keep `shape`, for weak scaling "
        "`shape_per_rank`)"
    )


def _swept(run: Run) -> dict[str, str]:
    values: dict[str, set[str]] = defaultdict(set)
    for entry in run.record.cases.values():
        for key, value in {**entry["parameters"], **entry["options"]}.items():
            values[key].add(_word(value))
    return {key: ", ".join(sorted(found)) for key, found in values.items()}


def _word(value: Any) -> str:
    return "×".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _pooled(runs: Sequence[Run], over: Over) -> list[str]:
    by_size: dict[int, list[str]] = defaultdict(list)
    for run in runs:
        by_size[size_of(run, over)].append(run.directory.name)
    return [
        f"{size} {over}: the repetitions of {' and '.join(names)} are taken together"
        for size, names in by_size.items()
        if len(names) > 1
    ]


def _curves(found: Sequence[tuple[Run, CaseSummary]], over: Over) -> list[Curve]:
    """Return the curves of one case."""
    curves = []
    for phase in PHASES:
        by_size: dict[int, list[tuple[Run, CaseSummary]]] = defaultdict(list)
        for run, case in found:
            seconds = case.phases.get(phase)
            if seconds and seconds.rate and min(seconds.by_block.values()) > 0:
                by_size[size_of(run, over)].append((run, case))
        points = tuple(_point(by_size[size], phase, size) for size in sorted(by_size))
        if points:
            curves.append(Curve(found[-1][1], phase, kind_of(points), over, points))
    return curves


def _point(found: Sequence[tuple[Run, CaseSummary]], phase: str, size: int) -> Point:
    run, case = found[0]
    seconds = [s for _, c in found for s in c.phases[phase].by_block.values()]
    part = case.phases[phase]
    assert part.rate is not None
    return Point(
        ranks=run.ranks,
        nodes=run.nodes,
        size=size,
        nbytes=round(part.rate * part.seconds.median),
        seconds=np.array(seconds),
        imbalance=float(np.median([v for r, c in found for v in _imbalances(r, c, phase)])),
        runs=tuple(r.directory.name for r, _ in found),
        below_resolution=any(
            w.code == "below_resolution" for _, c in found for w in c.phases[phase].warnings
        ),
    )


def _imbalances(run: Run, case: CaseSummary, phase: str) -> list[float]:
    """Return, for each repetition, the slowest rank's time over that of the median rank."""
    rows = run.counted
    parts = TOTALS.get(phase, (phase,))
    mine = rows[(rows["case"] == case.sample.case) & rows["phase"].isin(parts)]
    summed = mine.groupby("repetition")[["own_max", "own_median"]].sum()
    return [float(v) for v in summed["own_max"] / summed["own_median"].clip(lower=1e-12)]


def _odd_ones(curves: Sequence[Curve], sizes: set[int]) -> list[str]:
    """Tell of cases that are not at all sizes, or that do other work at each size."""
    found: dict[str, None] = {}
    for curve in curves:
        name = curve.case.sample.case
        missing = sorted(sizes - set(curve.sizes))
        if missing:
            found[f"{name} has no result at {', '.join(map(str, missing))} {curve.over}"] = None
        if curve.kind is None and len(curve.points) > 1:
            found[
                f"{name}: its bytes neither stay nor grow with the ranks, so it shows no scaling"
            ] = None
    return list(found)


def _transfers(runs: Sequence[Run]) -> list[str]:
    """Tell of cases whose transfer, as the library really did it, is not the same in all runs."""
    texts = []
    names = dict.fromkeys(name for run in runs for name in run.record.cases)
    for name in names:
        told: dict[str, list[str]] = defaultdict(list)
        for run in runs:
            facts = run.record.cases.get(name, {}).get("transfer_facts")
            if isinstance(facts, Mapping):
                told[", ".join(f"{k} {v}" for k, v in facts.items())].append(run.directory.name)
        if len(told) > 1:
            parts = (f"{fact} ({', '.join(where)})" for fact, where in told.items())
            texts.append(f"{name}: the library's transfers differ: {'; '.join(parts)}")
    return texts


def _alarms(runs: Sequence[Run]) -> list[str]:
    texts = []
    for run in runs:
        name, record = run.directory.name, run.record
        if record.valid is False or record.reasons:
            reason = record.reasons[0] if record.reasons else "see run.json"
            texts.append(f"INVALID: {name}: {reason}")
        if record.status != "finished":
            texts.append(f"{name} is not finished ({record.status}): repetitions are missing")
    return texts
