"""Scaling series from results directories: runs that belong together, matched by case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pffbench.errors import UserError
from pffbench.phases import TOTALS
from pffbench.summary.summary import CaseSummary, compression_ratio
from pffbench_analysis.charts import place
from pffbench_analysis.runs import EmptyRunError, Run, readable
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
    by_case: dict[str, list[tuple[Run, CaseSummary]]] = defaultdict(list)
    for run in runs:
        for case in readable(run.directory).cases:
            by_case[case.sample.case].append((run, case))
    curves = []
    for found in by_case.values():
        curves += _curves(found, over)
    sizes = {size_of(run, over) for run in runs}
    if len(sizes) > 1 and all(len(curve.points) == 1 for curve in curves):
        raise UserError(nothing_common(runs))
    groups = list(dict.fromkeys(curve.case.sample.group for curve in curves))
    curves.sort(
        key=lambda c: (groups.index(c.case.sample.group), PHASES.index(c.phase), place(c.case))
    )
    notes += [*_odd_ones(curves, sizes), *transfers(runs)]
    return Series(tuple(runs), over, tuple(curves), tuple(notes), (*empty, *alarms(runs)))


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
    nbytes = round(part.rate * part.seconds.median)
    ratio = compression_ratio(case)
    return Point(
        ranks=run.ranks,
        nodes=run.nodes,
        size=size,
        nbytes=nbytes,
        seconds=np.array(seconds),
        imbalance=float(np.median([v for r, c in found for v in _imbalances(r, c, phase)])),
        runs=tuple(r.directory.name for r, _ in found),
        below_resolution=any(
            w.code == "below_resolution" for _, c in found for w in c.phases[phase].warnings
        ),
        # The chunks of a partial read are not counted.
        stored=nbytes / ratio if ratio and nbytes == case.nbytes else None,
    )


def _imbalances(run: Run, case: CaseSummary, phase: str) -> list[float]:
    """Return, for each repetition, the slowest rank's time over that of the median rank."""
    rows = run.counted
    parts = TOTALS.get(phase, (phase,))
    mine = rows[(rows["case"] == case.sample.case) & rows["phase"].isin(parts)]
    summed = mine.groupby("repetition")[["own_max", "own_median"]].sum()
    return [float(v) for v in summed["own_max"] / summed["own_median"].clip(lower=1e-12)]


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
