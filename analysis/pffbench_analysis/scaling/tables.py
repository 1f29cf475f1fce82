"""Files of a scaling series: `scaling.csv`, `scaling.json` and `scaling.md`."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pffbench
from pffbench.regular_files import replacing, write_replacing
from pffbench.text import escape_markdown, markdown_row
from pffbench_analysis.charts import label
from pffbench_analysis.scaling.bootstrap import Prediction
from pffbench_analysis.scaling.compression import compression_table, per_rank, ratio
from pffbench_analysis.scaling.fits import Fit
from pffbench_analysis.scaling.laws import peak
from pffbench_analysis.scaling.points import Estimate, Point
from pffbench_analysis.scaling.sentences import (
    HOW_TO_READ,
    can_tell,
    case_name,
    count,
    held_out_text,
    interval,
    law_text,
    phase_name,
    prediction_text,
    verdict,
    work,
)
from pffbench_analysis.scaling.series import Series
from pffbench_analysis.scaling.study import Fitted, groups

_MIB = 2**20
COLUMNS = (
    "case", "group", "kind", "over", "backend", "workload", "layout", "transfer", "settings",
    "variant", "phase", "size", "ranks", "nodes", "runs", "repetitions", "bytes",
    "median_s", "low_s", "high_s", "rate_mib_s", "rate_low_mib_s", "rate_high_mib_s",
    "compression_ratio", "rate_per_rank_mib_s", "stored_rate_per_rank_mib_s",
    "speedup", "speedup_low", "speedup_high", "ideal_speedup",
    "efficiency", "efficiency_low", "efficiency_high", "imbalance", "below_resolution",
    "law", "fitted_mib_s", "held_out", "predicted_mib_s", "predicted_low_mib_s",
    "predicted_high_mib_s",
)  # fmt: skip


def write_csv(fitted: Sequence[Fitted], path: Path) -> None:
    """Write the measured points, one row for each case, phase and size."""
    with replacing(path) as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_row(one, point) for one in fitted for point in one.curve.points)


def _row(one: Fitted, point: Point) -> dict[str, Any]:
    curve, s, fit = one.curve, one.curve.case.sample, one.fits.chosen
    out = _held_out_at(fit, point.size)
    row = {
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
        "repetitions": point.time.n,
        "bytes": point.nbytes,
        **_bounded(
            "", "_s", Estimate(point.time.median, point.time.low, point.time.high), "median"
        ),
        **_bounded("rate_", "_mib_s", _in_mib(point.rate), ""),
        "compression_ratio": ratio(point),
        "rate_per_rank_mib_s": _value(per_rank(point)),
        "stored_rate_per_rank_mib_s": _value(per_rank(point, stored=True)),
        "imbalance": point.imbalance,
        "below_resolution": str(point.below_resolution).lower(),
        "law": "" if fit is None else fit.law.name,
        "fitted_mib_s": None if fit is None else float(fit.rate([point.size])[0]) / _MIB,
        "held_out": str(out is not None).lower(),
    }
    if curve.kind is not None:
        row |= _bounded("speedup_", "", curve.speedup(point), "")
        row["ideal_speedup"] = curve.ideal(point)
        row |= _bounded("efficiency_", "", curve.efficiency(point), "")
    if out is not None:
        row |= _bounded("predicted_", "_mib_s", _in_mib(out.rate), "")
    return row


def _bounded(before: str, after: str, found: Estimate, middle: str) -> dict[str, float | None]:
    """Return an estimate as three cells; empty where there is no number."""
    names = (f"{before}{middle}".rstrip("_") + after, f"{before}low{after}", f"{before}high{after}")
    return {name: _known(v) for name, v in zip(names, asdict(found).values(), strict=True)}


def _value(found: Estimate | None) -> float | None:
    return None if found is None else _known(found.value)


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _in_mib(rate: Estimate) -> Estimate:
    return Estimate(rate.value / _MIB, rate.low / _MIB, rate.high / _MIB)


def _held_out_at(fit: Fit | None, size: int) -> Prediction | None:
    found = () if fit is None else fit.held_out
    return next((prediction for prediction in found if prediction.size == size), None)


def write_json(series: Series, fitted: Sequence[Fitted], files: Sequence[str], path: Path) -> None:
    """Write the fits and their data."""
    record = series.runs[-1].record
    told = {
        "made_by": "pffbench scaling",
        "pffbench": pffbench.__version__,
        "experiment": record.name,
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
        "curves": [_curve(one) for one in fitted],
        "files": list(files),
    }
    write_replacing(path, json.dumps(told, indent=1, allow_nan=False) + "\n")


def _curve(one: Fitted) -> dict[str, Any]:
    curve, chosen = one.curve, one.fits.chosen
    return {
        "case": curve.case.sample.case,
        "label": case_name(curve),
        "phase": curve.phase,
        "kind": curve.kind,
        "sizes": curve.sizes,
        "law": None if chosen is None else chosen.law.name,
        "reason": one.fits.reason,
        "verdict": verdict(one),
        # The chosen law has wider intervals here than among those tried: see docs/scaling.md.
        "held_out": [] if chosen is None else [_prediction(p) for p in chosen.held_out],
        "predictions": [] if chosen is None else [_prediction(p) for p in chosen.predictions],
        "tried": [_fit(fit) for fit in one.fits.tried],
    }


def _fit(fit: Fit) -> dict[str, Any]:
    values = {name: value.value for name, value in fit.parameters.items()}
    return {
        "law": fit.law.name,
        "title": fit.law.title,
        "formula": fit.law.formula,
        "parameters": {name: _estimate(value) for name, value in fit.parameters.items()},
        "peak": _known(peak(values)),
        "residual": fit.residual,
        "held_out_error": fit.held_out_error,
        "held_out": [_prediction(p) for p in fit.held_out],
        "predictions": [_prediction(p) for p in fit.predictions],
    }


def _prediction(found: Prediction) -> dict[str, Any]:
    return {
        "size": found.size,
        "bytes_per_second": _estimate(found.rate),
        "stretch": found.stretch,
        "far": found.far,
        "measured": found.measured,
        "covers": found.covers,
    }


def _estimate(found: Estimate) -> dict[str, float | None]:
    return {name: _known(value) for name, value in asdict(found).items()}


def write_markdown(
    series: Series, fitted: Sequence[Fitted], figures: Sequence[str], path: Path
) -> None:
    """Write the verdict, then a table for each comparison and phase."""
    write_replacing(path, "\n".join(_markdown(series, fitted, figures)) + "\n")


def _markdown(series: Series, fitted: Sequence[Fitted], figures: Sequence[str]) -> Iterator[str]:
    record = series.runs[-1].record
    kinds = " and ".join(series.kinds) or "no"
    sizes = [*map(str, series.sizes[:-1]), count(series.sizes[-1], series.over)]
    yield f"# {record.name}: {kinds} scaling, {', '.join(sizes)}"
    if record.question:
        yield from ("", escape_markdown(record.question))
    yield ""
    alarms = [*series.alarms, *can_tell(series)]
    verdicts = [verdict(one) for one in fitted if one.curve.phase.endswith("_total")]
    yield from (f"- **{escape_markdown(text)}**" for text in alarms)
    yield from (f"- {escape_markdown(text)}" for text in verdicts)
    yield from (f"- note: {escape_markdown(note)}" for note in series.notes)
    for members in groups(fitted).values():
        yield from ("", f"## {escape_markdown(work(members[0].curve))}")
        for phase in dict.fromkeys(one.curve.phase for one in members):
            these = [one for one in members if one.curve.phase == phase]
            yield from ("", f"### {phase_name(phase)}", "")
            yield from _points_table(these, series)
            yield ""
            yield from _laws_table(these, series)
        yield from compression_table(members, series)
    if figures:
        yield from ("", "## Figures", "")
        yield from (f"![{name}]({name})" for name in figures if name.endswith(".png"))
    yield from ("", "## How to read it", "")
    yield from (f"- {text}" for text in HOW_TO_READ)


def _points_table(fitted: Sequence[Fitted], series: Series) -> Iterator[str]:
    yield "MiB/s (95 % interval), efficiency, slowest over median rank; †: below resolution:"
    yield ""
    sizes = series.sizes
    yield f"| case | {' | '.join(count(size, series.over) for size in sizes)} |"
    yield f"| --- | {' | '.join('---:' for _ in sizes)} |"
    for one in fitted:
        points = {point.size: point for point in one.curve.points}
        cells = (_cell(one, points[size]) if size in points else "" for size in sizes)
        yield markdown_row([label(one.curve.case), *cells])


def _cell(one: Fitted, point: Point) -> str:
    rate = interval(_in_mib(point.rate)) + ("†" if point.below_resolution else "")
    if one.curve.kind is None:
        return f"{rate}, {point.imbalance:.2f}×"
    part = one.curve.efficiency(point).value
    return f"{rate}, {part:.0%}, {point.imbalance:.2f}×"


def _laws_table(fitted: Sequence[Fitted], series: Series) -> Iterator[str]:
    for one in fitted:
        fit = one.fits.chosen
        yield f"- {escape_markdown(label(one.curve.case))}: {law_text(one)}"
        if fit is not None:
            yield f"  - {one.fits.reason}; off by {fit.residual:.1%} where it was fitted"
            yield from (f"  - held out: {held_out_text(p, series.over)}" for p in fit.held_out)
            yield from (f"  - {prediction_text(p, series.over)}" for p in fit.predictions)
