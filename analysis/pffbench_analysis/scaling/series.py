"""Scaling series: runs of one experiment at several sizes, and efficiencies by the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import msgspec

from pffbench.errors import UserError
from pffbench.phases import TOTALS
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.results.cells import Cell, cells_of_starts, keys_of, starts_of
from pffbench.results.compare import Question, compare
from pffbench.results.judge import Ratio, Verdict
from pffbench.results.names import labels
from pffbench.results.purposes import heading_of
from pffbench.results.summary import EmptyRunError, load
from pffbench_analysis.scaling.belonging import (
    Over,
    agreeing,
    alarms,
    check_sizes,
    natural,
    nothing_common,
    remarks,
    size_of,
)

Kind = Literal["weak", "strong"]


class Point(NamedTuple):
    """A total of a case at one size of the job."""

    #: Ranks or nodes, whichever the series varies.
    size: int
    #: The runs of this size, each a start of the program.
    runs: tuple[MeasuredRun, ...]
    #: Their times.
    cell: Cell
    #: What is shown of the ideal time over the measured one, which is the efficiency: *slower*
    #: where it is below 1. None at the smallest size, and where bytes do not scale.
    verdict: Verdict | None = None

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.runs[0].ranks

    @property
    def rate(self) -> float:
        """Bytes of all ranks over the median time."""
        return self.cell.nbytes / self.cell.median

    @property
    def efficiency(self) -> Ratio | None:
        """The growth of the rate since the smallest size, divided by the growth of the job."""
        known = self.verdict is not None and self.verdict.rounds
        return self.verdict.ratio.inverse if self.verdict is not None and known else None

    @property
    def below_resolution(self) -> bool:
        """Whether the overhead of the harness shows in the time."""
        return self.cell.median < max(run.resolution for run in self.runs)

    @property
    def imbalance(self) -> float:
        """Seconds of the slowest rank over those of the median rank, the median over rounds."""
        parts = TOTALS[f"{self.cell.keys['total']}_total"]
        ratios = []
        for run in self.runs:
            for one in run.by_case[self.cell.case]:
                own = [phase for phase in one.phases if phase.phase in parts]
                middle = sum(phase.own_median for phase in own)
                if middle and not one.warmup:
                    ratios.append(sum(phase.own_max for phase in own) / middle)
        return median(ratios) if ratios else math.nan


class Curve(NamedTuple):
    """A total of a case over all sizes of the job, the smallest first."""

    #: Name of the case, and what sets it apart from the others.
    case: str
    label: str
    #: What is measured.
    heading: str
    #: Whether bytes grow with the ranks or stay; None for a single size.
    kind: Kind | None
    #: One or more.
    points: tuple[Point, ...]

    @property
    def raw(self) -> bool:
        """Whether it moves raw bytes."""
        return self.points[0].cell.raw

    def speedup(self, point: Point) -> float:
        """Return the rate over that at the smallest size."""
        return point.rate / self.points[0].rate

    def ideal(self, point: Point) -> float:
        """Return the speed-up for added ranks or nodes as fast as the first ones."""
        return point.size / self.points[0].size


class Series(msgspec.Struct, frozen=True):
    """Runs of one experiment at several sizes of the job."""

    #: The smallest first.
    runs: tuple[MeasuredRun, ...]
    #: Unit of the sizes.
    over: Over
    #: Every total of every case, raw transfers last.
    curves: tuple[Curve, ...]
    #: Why times may show something else than how the work scales.
    alarms: tuple[str, ...]
    #: Remarks, such as facts in which runs differ.
    notes: tuple[str, ...]

    @property
    def record(self) -> RunRecord:
        """The record of the largest run."""
        return self.runs[-1].record

    @property
    def sizes(self) -> list[int]:
        """All sizes that occur."""
        return sorted({point.size for curve in self.curves for point in curve.points})

    @property
    def kinds(self) -> list[str]:
        """The kinds of scaling that occur."""
        return sorted({curve.kind for curve in self.curves if curve.kind})


def load_series(directories: Sequence[str | Path], over: Over | None = None) -> Series:
    """Read the runs of a scaling series.

    Parameters
    ----------
    directories : sequence of str or Path
        Results directories, in any order. Runs of equal size are starts of one program.
    over : {"ranks", "nodes"}, optional
        Unit of the sizes; by default nodes if their number varies and each has the same number of
        ranks, else ranks.

    Raises
    ------
    UserError
        One cannot be read, they do not belong to one series, or no case is at two sizes.
    """
    read, empty = _read(directories)
    runs = sorted(read, key=lambda run: (run.ranks, run.nodes, run.record.started))
    over = over or natural(runs)
    check_sizes(runs, over)
    notes = agreeing(runs)
    by_size: dict[int, list[MeasuredRun]] = {}
    for run in runs:
        by_size.setdefault(size_of(run, over), []).append(run)
    curves = _curves(by_size)
    if len(by_size) > 1 and all(len(curve.points) == 1 for curve in curves):
        raise UserError(nothing_common(runs))
    notes += [*_pooled(by_size, over), *remarks(runs), *_odd_ones(curves, [*by_size], over)]
    return Series(tuple(runs), over, tuple(curves), (*empty, *alarms(runs)), tuple(notes))


def _read(directories: Sequence[str | Path]) -> tuple[list[MeasuredRun], list[str]]:
    """Read runs; an early failure in a chain of jobs must not hide the other runs."""
    runs, empty = [], []
    for directory in dict.fromkeys(map(Path, directories)):
        try:
            runs.append(load(directory).run)
        except EmptyRunError as error:
            empty.append(f"left out: {error}")
    if not runs:
        raise UserError(f"no run has results: {'; '.join(empty)}")
    return runs, empty


def _curves(by_size: Mapping[int, Sequence[MeasuredRun]]) -> list[Curve]:
    """Return the totals of all cases, with their efficiencies, which are one family."""
    points: dict[tuple[str, str], list[Point]] = {}
    first = 0
    for size, runs in by_size.items():
        cells = cells_of_starts(runs, first)
        first += starts_of(cells.values())
        for key, cell in cells.items():
            if cell.nbytes and cell.seconds and min(cell.seconds.values()) > 0:
                points.setdefault(key, []).append(Point(size, tuple(runs), cell))
    names = labels(
        {name: keys_of(e) for name, e in [*by_size.values()][-1][0].record.cases.items()}
    )
    curves = [
        Curve(case, names.get(case, case), heading_of(own[0].cell), kind_of(own), tuple(own))
        for (case, _), own in points.items()
    ]
    curves = _judged(curves)
    return sorted(curves, key=lambda curve: curve.raw)


def _judged(curves: Sequence[Curve]) -> list[Curve]:
    """Compare each time with the ideal one, from the smallest size."""
    last: list[Cell] = []
    between: list[Cell] = []
    for number, curve in enumerate(curves):
        for first, point, cell in _against_ideal(curve) if curve.kind else ():
            keys = {"place": str(number), "size": str(point.size), "first": first}
            (last if point is curve.points[-1] else between).append(cell.with_keys(**keys))
    question = Question("first", within=("place", "size"), base="yes")
    # What is concluded is of the largest size.
    found = compare([(last, question._replace(share=4.0)), (between, question)])
    verdicts = {
        (int(one.cells[0][0].keys["place"]), int(one.cells[0][0].keys["size"])): one.verdict
        for some in found
        for one in some
    }
    return [
        curve._replace(
            points=tuple(
                point._replace(verdict=verdicts.get((number, point.size))) for point in curve.points
            )
        )
        for number, curve in enumerate(curves)
    ]


def _against_ideal(curve: Curve) -> Iterator[tuple[str, Point, Cell]]:
    """Yield for each larger size the time there, and the ideal one, for equal work of a rank."""
    base = curve.points[0]
    for point in curve.points[1:]:
        factor = point.cell.nbytes / base.cell.nbytes / curve.ideal(point)
        ideal = {r: factor * seconds for r, seconds in base.cell.seconds.items()}
        yield "yes", point, base.cell._replace(seconds=ideal)
        yield "no", point, point.cell


def kind_of(points: Sequence[Point]) -> Kind | None:
    """Distinguish weak from strong scaling by the bytes.

    Returns
    -------
    {"weak", "strong"} or None
        None for a single size, or when bytes neither stay nor grow with the ranks.
    """
    if len({point.size for point in points}) < 2:
        return None
    if len({point.cell.nbytes for point in points}) == 1:
        return "strong"
    # An uneven distribution still moves all bytes, so this is exact.
    if len({point.cell.nbytes * points[0].ranks / point.ranks for point in points}) == 1:
        return "weak"
    return None


def _pooled(by_size: Mapping[int, Sequence[MeasuredRun]], over: Over) -> Iterator[str]:
    """Yield which runs are starts of one size."""
    for size, runs in by_size.items():
        if len(runs) > 1:
            names = " and ".join(run.directory.name for run in runs)
            yield f"{size} {over}: {names} are starts of one program"


def _odd_ones(curves: Sequence[Curve], sizes: Sequence[int], over: Over) -> Iterator[str]:
    """Yield the cases that lack some sizes, or whose work varies with size."""
    found: dict[str, None] = {}
    for curve in curves:
        there = [point.size for point in curve.points]
        if missing := [str(size) for size in sizes if size not in there]:
            found[f"{curve.label} has no result at {', '.join(missing)} {over}"] = None
        if curve.kind is None and len(there) > 1:
            found[
                f"{curve.label}: its bytes neither stay nor grow with the ranks: no efficiency"
            ] = None
    yield from found
