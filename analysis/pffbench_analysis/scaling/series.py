"""Scaling series from results directories: runs that belong together, matched by case."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pffbench.summary.labels import parameters_apart
from pffbench.summary.starts import of_run
from pffbench.summary.summary import CaseSummary, compression_ratio

from pffbench.errors import UserError
from pffbench.grouping import grouped
from pffbench.phases import TOTALS
from pffbench.record.run_json import RunRecord
from pffbench_analysis.charts import place
from pffbench_analysis.runs import EmptyRunError, Run
from pffbench_analysis.scaling.belonging import (
    agreeing,
    alarms,
    check_sizes,
    natural,
    nothing_common,
    pooled,
    size_of,
    transfers,
)
from pffbench_analysis.scaling.points import PHASES, Curve, Over, Point, kind_of


@dataclass(frozen=True, eq=False)
class Series:
    """Runs of one experiment at several sizes of the job.

    Parameters
    ----------
    runs : tuple of Run
        The smallest first.
    over : {"ranks", "nodes"}
        Unit of the sizes.
    curves : tuple of Curve
        Every case in every phase that moves data: by comparison, then phase, raw bytes last.
    notes : tuple of str
        Remarks, such as facts in which runs differ.
    alarms : tuple of str
        Problems of a run.
    """

    runs: tuple[Run, ...]
    over: Over
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]
    alarms: tuple[str, ...]

    @property
    def record(self) -> RunRecord:
        """The record of the largest run."""
        return self.runs[-1].record

    @property
    def noted(self) -> list[str]:
        """The remarks as lines."""
        return [f"note: {note}" for note in self.notes]

    @property
    def sizes(self) -> list[int]:
        """All sizes that occur."""
        return sorted({size for curve in self.curves for size in curve.sizes})

    @property
    def kinds(self) -> list[str]:
        """The kinds of scaling that occur."""
        return sorted({curve.kind for curve in self.curves if curve.kind})

    @property
    def groups(self) -> list[list[Curve]]:
        """The curves of each comparison: the same work, done in several ways."""
        return list(grouped((curve.case.sample.group, curve) for curve in self.curves).values())


def load_series(directories: Sequence[str | Path], over: Over | None = None) -> Series:
    """Read the runs of a scaling series.

    Parameters
    ----------
    directories : sequence of str or Path
        Results directories, in any order. Runs of equal size are pooled.
    over : {"ranks", "nodes"}, optional
        Unit of the sizes; by default nodes if their number varies and each has the same number of
        ranks, else ranks.

    Raises
    ------
    UserError
        One cannot be read, they do not belong to one series, or no case is in all sizes.
    """
    read, empty = _read(directories)
    runs = sorted(read, key=lambda run: (run.ranks, run.nodes, run.record.started))
    over = over or natural(runs)
    check_sizes(runs, over)
    notes = [*agreeing(runs), *pooled(runs, over)]
    every = [(run, case) for run in runs for case in run.summary().cases]
    notes += [
        f"left out: {case.sample.case} of {run.directory.name}: {case.invalid}"
        for run, case in every
        if case.invalid
    ]
    by_case = grouped((case.sample.case, (run, case)) for run, case in every if not case.invalid)
    numbers = _numbers(runs, over)
    apart = parameters_apart(runs[-1].record)
    curves = [
        replace(curve, apart=apart.get(curve.case.sample.group, ""))
        for found in by_case.values()
        for curve in _curves(found, over, numbers)
    ]
    sizes = {size_of(run, over) for run in runs}
    if len(sizes) > 1 and all(len(curve.points) == 1 for curve in curves):
        raise UserError(nothing_common(runs))
    groups = list(dict.fromkeys(curve.case.sample.group for curve in curves))
    curves.sort(
        key=lambda c: (groups.index(c.case.sample.group), PHASES.index(c.phase), place(c.case))
    )
    notes += [*_odd_ones(curves, sizes), *transfers(runs)]
    alarms_ = (*empty, *alarms(runs))
    return Series(tuple(runs), over, tuple(curves), tuple(notes), alarms_)


def _read(directories: Sequence[str | Path]) -> tuple[list[Run], list[str]]:
    """Read runs; an early failure in a chain of jobs must not hide the other runs."""
    runs, empty = [], []
    for directory in dict.fromkeys(map(Path, directories)):
        try:
            runs.append(Run.load(directory))
        except EmptyRunError as error:
            empty.append(f"left out: {error}")
    if not runs:
        raise UserError(f"nothing to tell: {'; '.join(empty)}")
    return runs, empty


def _curves(
    found: Sequence[tuple[Run, CaseSummary]], over: Over, numbers: Mapping[Path, int]
) -> list[Curve]:
    """Return the curves of one case."""
    curves = []
    for phase in PHASES:
        by_size = grouped(
            (size_of(run, over), (run, case))
            for run, case in found
            if (seconds := case.phases.get(phase))
            and seconds.rate
            and min(seconds.by_block.values()) > 0
        )
        points = tuple(_point(by_size[size], phase, size, numbers) for size in sorted(by_size))
        if points:
            curves.append(Curve(found[-1][1], phase, kind_of(points), over, points))
    return curves


def _numbers(runs: Sequence[Run], over: Over) -> dict[Path, int]:
    """Return the place of each run among those of its size: each is a start of the program."""
    seen: Counter[int] = Counter()
    numbers = {}
    for run in runs:
        numbers[run.directory] = seen[size_of(run, over)]
        seen[size_of(run, over)] += 1
    return numbers


def _point(
    found: Sequence[tuple[Run, CaseSummary]], phase: str, size: int, numbers: Mapping[Path, int]
) -> Point:
    run, case = found[0]
    by_block: dict[int, float] = {}
    for r, c in found:
        by_block |= of_run(numbers[r.directory], c.phases[phase].by_block)
    part = case.phases[phase]
    assert part.rate is not None
    nbytes = round(part.rate * part.seconds.median)
    return Point(
        ranks=run.ranks,
        nodes=run.nodes,
        size=size,
        nbytes=nbytes,
        by_block=by_block,
        imbalance=float(np.median([v for r, c in found for v in _imbalances(r, c, phase)])),
        runs=tuple(r.directory.name for r, _ in found),
        below_resolution=any(c.phases[phase].warned("below_resolution") for _, c in found),
        # The chunks of a partial read are not counted.
        compression_ratio=compression_ratio(case) if nbytes == case.nbytes else None,
    )


def _imbalances(run: Run, case: CaseSummary, phase: str) -> list[float]:
    """Return, for each repetition, the slowest rank's time over that of the median rank."""
    slowest: dict[int, float] = defaultdict(float)
    median: dict[int, float] = defaultdict(float)
    for part in TOTALS.get(phase, (phase,)):
        for row in run.rows[case.sample.case].get(part, ()):
            if not row.warmup:
                slowest[row.repetition] += row.own_max
                median[row.repetition] += row.own_median
    return [seconds / max(median[number], 1e-12) for number, seconds in slowest.items()]


def _odd_ones(curves: Sequence[Curve], sizes: set[int]) -> list[str]:
    """Report cases that lack some sizes, or whose work varies with size."""
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
