"""Files of a scaling series: `scaling.csv`, `scaling.json`, `scaling.jsonl` and `scaling.md`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pffbench
from pffbench.regular_files import write_replacing
from pffbench.text import escape_markdown, markdown_table
from pffbench.units import percent
from pffbench_analysis.charts import label
from pffbench_analysis.derived_files import bounded, write_csv
from pffbench_analysis.scaling.crossing import Crossing
from pffbench_analysis.scaling.points import Curve, Point
from pffbench_analysis.scaling.sentences import (
    HOW_TO_READ,
    can_tell,
    case_name,
    count,
    phase_name,
    summary_lines,
    unscaled,
    verdict,
    work,
)
from pffbench_analysis.scaling.series import Series
from pffbench_analysis.scaling.summary_tables import footnotes, summary_tables

_MIB = 2**20


def write_points(series: Series, path: Path) -> None:
    """Write the measured points, one row for each case, phase and size."""
    write_csv(path, (_row(curve, point) for curve in series.curves for point in curve.points))


def write_times(series: Series, path: Path) -> None:
    """Write the seconds of all repetitions as JSON Lines, which Extra-P reads.

    It fits its own models to them. All curves must have all sizes there.
    """
    lines = [
        json.dumps({
            "params": {series.over: point.size},
            "callpath": f"{curve.case.sample.case}->{curve.phase}",
            "metric": "seconds",
            "value": point.seconds.tolist(),
        })
        for curve in series.curves if curve.sizes == series.sizes
        for point in curve.points
    ]  # fmt: skip
    write_replacing(path, "".join(f"{line}\n" for line in lines))


def _row(curve: Curve, point: Point) -> dict[str, object]:
    s, scales, time = curve.case.sample, curve.kind is not None, point.time
    ratio, each = point.compression_ratio, 1 / _MIB / point.ranks
    stored = None if ratio is None else point.rate.scaled(1 / ratio)
    return {
        "case": s.case,
        "group": s.group,
        "kind": curve.kind,
        "over": curve.over,
        "backend": s.backend,
        "workload": s.workload,
        "layout": s.layout,
        "transfer": s.transfer,
        "settings": s.settings,
        "variant": curve.case.variant,
        "phase": curve.phase,
        "size": point.size,
        "ranks": point.ranks,
        "nodes": point.nodes,
        "runs": " ".join(point.runs),
        "repetitions": time.n,
        "bytes": point.nbytes,
        **bounded("median_s low_s high_s", time.estimate),
        **bounded("rate_mib_s rate_low_mib_s rate_high_mib_s", point.rate, 1 / _MIB),
        "compression_ratio": ratio,
        **bounded("rate_per_rank_mib_s", point.rate, each),
        **bounded("stored_rate_per_rank_mib_s", stored, each),
        **bounded("speedup speedup_low speedup_high", curve.speedup(point) if scales else None),
        "ideal_speedup": curve.ideal(point) if scales else None,
        **bounded(
            "efficiency efficiency_low efficiency_high",
            curve.efficiency(point) if scales else None,
        ),
        "imbalance": point.imbalance,
        "below_resolution": point.below_resolution,
    }


def scaling_data(
    series: Series, crossed: Sequence[Crossing], files: Sequence[str]
) -> dict[str, Any]:
    """Return the curves and crossings, for `scaling.json` and `--json`."""
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
        "alarms": series.alarms,
        "notes": series.notes,
        "curves": [_curve(curve) for curve in series.curves],
        "crossings": [
            {
                "phase": one.before.phase,
                "before": one.before.case.sample.case,
                "after": one.after.case.sample.case,
                "below": one.at.below,
                "above": one.at.above,
                "near": one.at.near,
                "sentence": str(one),
            }
            for one in crossed
        ],
        "sentences": summary_lines(series),
        "files": list(files),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "case": curve.case.sample.case,
        "label": case_name(curve),
        "phase": curve.phase,
        "kind": curve.kind,
        "sizes": curve.sizes,
        "verdict": verdict(curve),
    }


def write_markdown(
    series: Series, crossed: Sequence[Crossing], figures: Sequence[str], path: Path
) -> None:
    """Write the verdict, then a table for each comparison and phase."""
    write_replacing(path, "\n".join(_markdown(series, crossed, figures)) + "\n")


def _markdown(series: Series, crossed: Sequence[Crossing], figures: Sequence[str]) -> Iterator[str]:
    kinds = " and ".join(series.kinds) or "no"
    sizes = [*map(str, series.sizes[:-1]), count(series.sizes[-1], series.over)]
    yield f"# {series.record.name}: {kinds} scaling, {', '.join(sizes)}"
    if series.record.question:
        yield from ("", escape_markdown(series.record.question))
    yield ""
    yield from (f"- **{escape_markdown(text)}**" for text in (*series.alarms, *can_tell(series)))
    for text in (*unscaled(series), *map(str, crossed), *series.noted):
        yield f"- {escape_markdown(text)}"
    for found in summary_tables(series):
        yield from ("", f"**{escape_markdown(found.title)}**", "")
        yield from markdown_table(found.headings, found.rows, ["case"])
    yield ""
    yield from (f"- {escape_markdown(text)}" for text in footnotes(series))
    for members in series.groups:
        yield from ("", f"## {escape_markdown(work(members[0]))}")
        for phase in dict.fromkeys(curve.phase for curve in members):
            yield from ("", f"### {phase_name(phase)}", "")
            yield from _points_table([c for c in members if c.phase == phase], series)
    if figures:
        yield from ("", "## Figures", "")
        yield from (f"![{name}]({name})" for name in figures if name.endswith(".png"))
    yield from ("", "## How to read it", "")
    yield from (f"- {text}" for text in HOW_TO_READ)


def _points_table(curves: Sequence[Curve], series: Series) -> Iterator[str]:
    yield "MiB/s (95 % interval), efficiency, slowest over median rank; †: below resolution:"
    yield ""
    headings = ["case", *(count(size, series.over) for size in series.sizes)]
    rows = []
    for curve in curves:
        cells = {point.size: _cell(curve, point) for point in curve.points}
        rows.append([label(curve.case), *(cells.get(size, "") for size in series.sizes)])
    yield from markdown_table(headings, rows, ["case"])


def _cell(curve: Curve, point: Point) -> str:
    rate = f"{point.rate.scaled(1 / _MIB)}{'†' * point.below_resolution}"
    part = "" if curve.kind is None else f", {percent(curve.efficiency(point).value)}"
    return f"{rate}{part}, {point.imbalance:.2f}×"
