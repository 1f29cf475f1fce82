"""The answer of a scaling series: a table for each total of a comparison, a row for each case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pffbench.phases import TOTALS
from pffbench.units import significant
from pffbench_analysis.scaling.points import Curve, Point
from pffbench_analysis.scaling.sentences import (
    count,
    efficiency_text,
    name_in_comparison,
    phase_name,
    work,
)
from pffbench_analysis.scaling.series import Series

_MIB = 2**20


@dataclass(frozen=True)
class SummaryTable:
    """A total of a comparison.

    Parameters
    ----------
    title : str
        The work and the total.
    headings : list of str
        Of the columns; the first names the cases.
    rows : list of list of str
        A row for each case.
    """

    title: str
    headings: list[str]
    rows: list[list[str]]


def summary_tables(series: Series) -> list[SummaryTable]:
    """Return the tables of the cases that have two sizes or more."""
    found = []
    for members in series.groups:
        for phase in TOTALS:
            if curves := [c for c in members if c.phase == phase and c.kind]:
                found.append(_table(curves, series))
    return found


def footnotes(series: Series) -> Iterator[str]:
    """Yield what the tables mean."""
    curves = [c for c in series.curves if c.phase in TOTALS and c.kind]
    if not curves:
        return
    yield "Rates: MiB/s, bytes of all ranks over the median time. In brackets: 95 % intervals."
    if any(point.below_resolution for c in curves for point in c.points):
        yield "†: below resolution, not to be relied on."


def _table(curves: Sequence[Curve], series: Series) -> SummaryTable:
    first, last = series.sizes[0], series.sizes[-1]
    several = len({curve.case.sample.transfer for curve in curves}) > 1
    rows = []
    for curve in curves:
        name, end = name_in_comparison(curve), curve.points[-1]
        rows.append([
            f"{name} {curve.case.sample.transfer}" if several else name,
            _rate(curve.points[0], first),
            _rate(end, last),
            significant(curve.speedup(end).value),
            efficiency_text(curve.efficiency(end)),
        ])  # fmt: skip
    headings = [
        "case",
        count(first, series.over),
        count(last, series.over),
        "speed-up",
        "efficiency",
    ]
    return SummaryTable(f"{phase_name(curves[0].phase)}, {work(curves[0])}", headings, rows)


def _rate(point: Point, usual: int) -> str:
    """Return a rate; with its size where that is not the one of the heading."""
    size = "" if point.size == usual else f" ({point.size})"
    return f"{significant(point.rate.value / _MIB)}{'†' * point.below_resolution}{size}"
