"""The answer of a scaling series: sentences, tables, a figure, and plain data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pffbench
from pffbench.grouping import grouped
from pffbench.results import words
from pffbench.results.cells import starts_of
from pffbench.results.table import Table
from pffbench.text import counted
from pffbench.units import Size, percent
from pffbench_analysis.axes import axis_of
from pffbench_analysis.captions import place_of
from pffbench_analysis.charts import Line, lines
from pffbench_analysis.derived_files import known
from pffbench_analysis.picture import Entry, Figure
from pffbench_analysis.scaling.series import Curve, Point, Series
from pffbench_analysis.style import colour

#: Phases whose times Extra-P gets.
_PHASES = ("write_total", "update_total", "read_total", "write", "update", "read")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_NOTE = (
    "Rate: bytes of all ranks over the median time. Efficiency: the growth of the rate since the "
    "smallest size, divided by the growth of the job. All intervals hold together with 95 %. Same: "
    "within 10 % of the ideal; ~: not decided."
)


def sentences(series: Series) -> Iterator[str]:
    """Yield how well the work scales, for each total the formats in a sentence."""
    sizes = series.sizes
    if len(sizes) == 1:
        yield (
            f"One size only: rates, but no efficiency. Add runs of the same experiment with other "
            f"numbers of {series.over}."
        )
    for (heading, kind), curves in _scaling(series).items():
        known_ = [(curve, curve.points[-1].efficiency) for curve in curves if not curve.raw]
        parts = [
            f"{curve.label} {percent(found.value)} ({percent(found.low)} to {percent(found.high)})"
            for curve, found in known_
            if found
        ]
        unit = series.over[:-1] if sizes[-1] == 1 else series.over
        if parts:
            yield (
                f"{kind.capitalize()} scaling from {sizes[0]} to {sizes[-1]} {unit}, {heading}: "
                f"efficiency {words.listed(parts)}."
            )
        elif known_:
            yield (
                f"{kind.capitalize()} scaling, {heading}: too few rounds for an efficiency (7 at "
                "each size are needed)."
            )


def _scaling(series: Series) -> dict[tuple[str, str], list[Curve]]:
    """Return the curves that scale, by total and kind."""
    return grouped(((c.heading, c.kind), c) for c in series.curves if c.kind)


def tables(series: Series) -> Iterator[Table]:
    """Yield a table for each total and kind, with a column for each size."""
    unit = series.over
    first, *others = series.sizes
    columns = [counted(first, unit[:-1]), *map(str, others)]
    for (heading, kind), curves in grouped(
        ((c.heading, c.kind or ""), c) for c in series.curves
    ).items():
        amounts = {_amount(curve) for curve in curves}
        about = f", {amounts.pop()}" if len(amounts) == 1 else ""
        title = f"{heading}{f', {kind} scaling' if kind else ''}{about}"
        last = ["efficiency", ""] if kind else []
        rows = [_row(curve, series.sizes, bool(kind)) for curve in curves]
        yield Table(title, ["", *columns, *last], rows)


def _amount(curve: Curve) -> str:
    point = curve.points[0]
    if curve.kind == "weak":
        return f"{Size(point.cell.nbytes // point.ranks)} per rank"
    return f"{Size(point.cell.nbytes)} in all"


def _row(curve: Curve, sizes: Sequence[int], scales: bool) -> list[str]:
    at = {point.size: _cell(point) for point in curve.points}
    row = [curve.label, *(at.get(size, "") for size in sizes)]
    if not scales:
        return row
    end = curve.points[-1]
    found, verdict = end.efficiency, end.verdict
    if found is None or verdict is None:
        return [*row, "too few rounds", ""]
    word = {"same": "same", "open": "~", "slower": "", "faster": ""}[verdict.word]
    return [*row, f"{percent(found.value)} ({percent(found.low)} to {percent(found.high)})", word]


def _cell(point: Point) -> str:
    rate = f"{words.rate(point.cell.nbytes, point.cell.median)}{'†' * point.below_resolution}"
    return f"{rate} {percent(point.efficiency.value)}" if point.efficiency else rate


def notes(series: Series) -> Iterator[str]:
    """Yield what a reader must know of the numbers."""
    if any(curve.kind for curve in series.curves):
        yield _NOTE
        starts = min(starts_of([p.cell]) for c in series.curves if c.kind for p in c.points)
        if starts == 1:
            yield "Each size has one run. Three runs of each size show smaller differences."
    if any(point.below_resolution for curve in series.curves for point in curve.points):
        yield "†: below resolution, not to be relied on."
    yield from series.notes


def rows_of(series: Series) -> Iterator[dict[str, object]]:
    """Yield the rows of `scaling.csv`: one for each case, total and size."""
    for curve in series.curves:
        for point in curve.points:
            yield _data(curve, point, series)


def _data(curve: Curve, point: Point, series: Series) -> dict[str, object]:
    keys, found = point.cell.keys, point.efficiency
    scales = curve.kind is not None
    return {
        "case": curve.case,
        "label": curve.label,
        "backend": keys["backend"],
        "total": keys["total"],
        "heading": curve.heading,
        "kind": curve.kind,
        "over": series.over,
        "size": point.size,
        "ranks": point.ranks,
        "nodes": point.runs[0].nodes,
        "runs": " ".join(run.directory.name for run in point.runs),
        "rounds": len(point.cell.seconds),
        "bytes": point.cell.nbytes,
        "median_s": point.cell.median,
        "bytes_per_second": point.rate,
        "speedup": curve.speedup(point) if scales else None,
        "ideal_speedup": curve.ideal(point) if scales else None,
        "efficiency": known(found.value) if found else None,
        "efficiency_low": known(found.low) if found else None,
        "efficiency_high": known(found.high) if found else None,
        "word": point.verdict.word if point.verdict else None,
        "imbalance": known(point.imbalance),
        "below_resolution": point.below_resolution,
    }


def data(series: Series, files: Sequence[str] = ()) -> dict[str, Any]:
    """Return a series as plain data, for `scaling.json` and `--json`."""
    return {
        "made_by": "pffbench scaling",
        "pffbench": pffbench.__version__,
        "experiment": series.record.name,
        "over": series.over,
        "kinds": series.kinds,
        "runs": [
            {
                "directory": run.directory.name,
                "run_id": run.record.run_id,
                "ranks": run.ranks,
                "nodes": run.nodes,
                "valid": run.record.valid,
            }
            for run in series.runs
        ],
        "sentences": list(sentences(series)),
        "alarms": list(series.alarms),
        "notes": list(series.notes),
        "points": list(rows_of(series)),
        "files": list(files),
    }


def times_of(series: Series) -> Iterator[str]:
    """Yield the seconds of all rounds as JSON Lines, which Extra-P reads.

    It fits its own models to them. All curves must have all sizes there.
    """
    for case in dict.fromkeys(curve.case for curve in series.curves):
        for phase in _PHASES:
            by_size: dict[int, list[float]] = {}
            for curve in (c for c in series.curves if c.case == case):
                for point in curve.points:
                    by_size[point.size] = [
                        seconds
                        for run in point.runs
                        for seconds in run.seconds.get(case, {}).get(phase, {}).values()
                    ]
            if [size for size in by_size if by_size[size]] != series.sizes:
                continue
            for size, seconds in by_size.items():
                yield json.dumps(
                    {
                        "params": {series.over: size},
                        "callpath": f"{case}->{phase}",
                        "metric": "seconds",
                        "value": seconds,
                    }
                )


def figure(series: Series) -> Figure:
    """Return the figure: above the rate of each total over the sizes, below its efficiency."""
    totals = [c for c in series.curves if c.kind]
    x = axis_of(series.sizes, series.over, "{:.0f}".format, numbers=series.sizes)
    rates = axis_of(
        [p.rate / 1e6 for c in totals for p in c.points], "MB/s of all ranks", "{:g}".format
    )
    parts = [100 * e.value for c in totals for p in c.points if (e := p.efficiency)]
    y = axis_of([0.0, 100.0, *parts], "efficiency, %", "{:.0f}".format, log=False)
    style = _styles(totals)
    by_heading = grouped((c.heading, c) for c in totals)
    above = [
        lines(h, [_line(c, style, False) for c in some], x, rates) for h, some in by_heading.items()
    ]
    below = [lines("", [_line(c, style, True) for c in some], x, y) for some in by_heading.values()]
    return Figure(
        f"{series.record.name}: {' and '.join(series.kinds)} scaling over {series.over}",
        [*above, *below],
        about=place_of(series.record),
        legend=[Entry(label, *look) for label, look in style.items()],
        notes=[_NOTE],
        alarms=series.alarms,
        foot=f"{len(series.runs)} runs, the last: {series.record.run_id}",
        columns=max(1, len(by_heading)),
    )


def _styles(curves: Sequence[Curve]) -> dict[str, tuple[str, str]]:
    """Return colour and dashes of each case."""
    found: dict[str, tuple[str, str]] = {}
    for curve in curves:
        tint = colour(curve.points[0].cell.keys["backend"])
        number = sum(other == tint for name, (other, _) in found.items() if name != curve.label)
        found.setdefault(curve.label, (tint, _DASHES[number % len(_DASHES)]))
    return found


def _line(curve: Curve, style: dict[str, tuple[str, str]], parts: bool) -> Line:
    sizes = [float(point.size) for point in curve.points]
    if not parts:
        return Line(
            curve.label, sizes, [p.rate / 1e6 for p in curve.points], (), (), *style[curve.label]
        )
    points = [(p.size, e) for p in curve.points if (e := p.efficiency)]
    return Line(
        curve.label,
        [sizes[0], *(float(size) for size, _ in points)],
        [100.0, *(100 * e.value for _, e in points)],
        [100.0, *(100 * e.low for _, e in points)],
        [100.0, *(100 * e.high for _, e in points)],
        *style[curve.label],
    )
