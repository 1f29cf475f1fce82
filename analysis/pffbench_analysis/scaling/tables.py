"""Files of a scaling series: `scaling.csv`, `scaling.json` and `scaling.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pffbench
from pffbench.regular_files import write_replacing
from pffbench.text import escape_markdown, markdown_table
from pffbench_analysis.charts import label
from pffbench_analysis.derived_files import known, write_csv
from pffbench_analysis.scaling.bootstrap import Prediction
from pffbench_analysis.scaling.compression import compression_table, per_rank, ratio
from pffbench_analysis.scaling.crossing import Crossing, crossings
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
    summary_lines,
    verdict,
    work,
)
from pffbench_analysis.scaling.series import Series
from pffbench_analysis.scaling.study import Fitted, groups

_MIB = 2**20


def write_points(fitted: Sequence[Fitted], path: Path) -> None:
    """Write the measured points, one row for each case, phase and size."""
    write_csv(path, (_row(one, point) for one in fitted for point in one.curve.points))


def _row(one: Fitted, point: Point) -> dict[str, object]:
    curve, s, fit = one.curve, one.curve.case.sample, one.fits.chosen
    predicted = {p.size: p.rate.scaled(1 / _MIB) for p in (fit.held_out if fit else ())}
    scales, time = curve.kind is not None, point.time
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
        "repetitions": point.time.n,
        "bytes": point.nbytes,
        **_bounded("median_s low_s high_s", Estimate(time.median, time.low, time.high)),
        **_bounded("rate_mib_s rate_low_mib_s rate_high_mib_s", point.rate.scaled(1 / _MIB)),
        "compression_ratio": ratio(point),
        "rate_per_rank_mib_s": _value(per_rank(point)),
        "stored_rate_per_rank_mib_s": _value(per_rank(point, stored=True)),
        **_bounded("speedup speedup_low speedup_high", curve.speedup(point) if scales else None),
        "ideal_speedup": curve.ideal(point) if scales else None,
        **_bounded(
            "efficiency efficiency_low efficiency_high",
            curve.efficiency(point) if scales else None,
        ),
        "imbalance": point.imbalance,
        "below_resolution": point.below_resolution,
        "law": fit.law.name if fit else "",
        "fitted_mib_s": float(fit.rate([point.size])[0]) / _MIB if fit else None,
        "held_out": point.size in predicted,
        **_bounded(
            "predicted_mib_s predicted_low_mib_s predicted_high_mib_s", predicted.get(point.size)
        ),
    }


def _bounded(names: str, found: Estimate | None) -> dict[str, float | None]:
    """Return an estimate as three cells; empty where there is no number."""
    cells = (None, None, None) if found is None else (found.value, found.low, found.high)
    return {name: known(cell) for name, cell in zip(names.split(), cells, strict=True)}


def _value(found: Estimate | None) -> float | None:
    return None if found is None else known(found.value)


def scaling_data(
    series: Series, fitted: Sequence[Fitted], files: Sequence[str]
) -> dict[str, Any]:
    """Return the fits and their data, for `scaling.json` and `--json`."""
    record = series.runs[-1].record
    return {
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
        "crossings": [_crossing(one) for one in crossings(fitted)],
        "sentences": summary_lines(series, fitted),
        "files": list(files),
    }


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


def _crossing(one: Crossing) -> dict[str, Any]:
    return {
        "phase": one.before.phase,
        "before": one.before.case.sample.case,
        "after": one.after.case.sample.case,
        "below": one.below,
        "above": one.above,
        "near": one.near,
        "sentence": str(one),
    }


def _fit(fit: Fit) -> dict[str, Any]:
    values = {name: value.value for name, value in fit.parameters.items()}
    return {
        "law": fit.law.name,
        "title": fit.law.title,
        "formula": fit.law.formula,
        "parameters": {name: _estimate(value) for name, value in fit.parameters.items()},
        "peak": known(peak(values)),
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
    return {name: known(value) for name, value in asdict(found).items()}


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
    yield from (f"- {escape_markdown(str(one))}" for one in crossings(fitted))
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
    headings = ["case", *(count(size, series.over) for size in series.sizes)]
    rows = []
    for one in fitted:
        cells = {point.size: _cell(one, point) for point in one.curve.points}
        rows.append([label(one.curve.case), *(cells.get(size, "") for size in series.sizes)])
    yield from markdown_table(headings, rows, ["case"])


def _cell(one: Fitted, point: Point) -> str:
    rate = interval(point.rate.scaled(1 / _MIB)) + ("†" if point.below_resolution else "")
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
