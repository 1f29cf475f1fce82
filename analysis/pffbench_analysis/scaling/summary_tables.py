"""The answer of a scaling series: a table for each total of a comparison, a row for each case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pffbench.phases import TOTALS
from pffbench.units import significant
from pffbench_analysis.scaling.points import Curve, Point
from pffbench_analysis.scaling.prediction import WIDE, Prediction
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
    found = [prediction for c in curves if (prediction := series.prediction(c)) is not None]
    if found:
        reasons = " or ".join(dict.fromkeys(p.why_guess for p in found if p.why_guess))
        guess = f"; with ? it is a guess: {reasons}" if reasons else ""
        yield f"Expected: if nothing saturates{guess}."
    if any(point.below_resolution for c in curves for point in c.points):
        yield "†: below resolution, not to be relied on."


def _table(curves: Sequence[Curve], series: Series) -> SummaryTable:
    first, last = series.sizes[0], series.sizes[-1]
    predictions = [series.prediction(curve) for curve in curves]
    sizes = sorted({p.size for p in predictions if p is not None})
    several = len({curve.case.sample.transfer for curve in curves}) > 1
    rows = []
    for curve, prediction in zip(curves, predictions, strict=True):
        name, end = name_in_comparison(curve), curve.points[-1]
        rows.append([
            f"{name} {curve.case.sample.transfer}" if several else name,
            _rate(curve.points[0], first),
            _rate(end, last),
            significant(curve.speedup(end).value),
            efficiency_text(curve.efficiency(end)),
            *(_expected(prediction, size) for size in sizes),
        ])  # fmt: skip
    headings = [
        "case",
        count(first, series.over),
        count(last, series.over),
        "speed-up",
        "efficiency",
        *(f"{count(size, series.over)}, expected" for size in sizes),
    ]
    return SummaryTable(f"{phase_name(curves[0].phase)}, {work(curves[0])}", headings, rows)


def _rate(point: Point, usual: int) -> str:
    """Return a rate; with its size where that is not the one of the heading."""
    size = "" if point.size == usual else f" ({point.size})"
    return f"{significant(point.rate.value / _MIB)}{'†' * point.below_resolution}{size}"


def _expected(found: Prediction | None, size: int) -> str:
    if found is None or found.size != size:
        return ""
    if found.useless:
        return f"interval over {WIDE:g}×"
    return f"{found.rate.scaled(1 / _MIB)}{'?' * bool(found.why_guess)}"
