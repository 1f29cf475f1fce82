"""Figures of a scaling series: rate and efficiency over ranks or nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pffbench.summary.statistics import FEWEST_FOR_INTERVAL
from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote
from pffbench_analysis.charts import label, place
from pffbench_analysis.derived_files import slug
from pffbench_analysis.pareto.figure import MARKS
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.scaling.bootstrap import WIDE, Prediction
from pffbench_analysis.scaling.points import PHASES, Estimate
from pffbench_analysis.scaling.sentences import case_name, phase_name, work
from pffbench_analysis.scaling.series import Series
from pffbench_analysis.scaling.study import Fitted, groups
from pffbench_analysis.specs import (
    Spec,
    at,
    lines,
    log_scale,
    looks,
    number_axis,
    panel,
    point,
    points,
    rules,
)
from pffbench_analysis.style import INK as DARK
from pffbench_analysis.style import PALE_INK, colour, plain

_MIB = 2**20
#: Marks distinguish the cases that share a colour; crosses and diamonds are predictions.
_MARKS = [name for name in MARKS if name not in ("cross", "diamond")]
_PANEL_HEIGHT = 240
_EFFICIENCY_HEIGHT = 150
_SAMPLES = 64
#: Pixels left of a panel, so that those below each other are aligned.
_LABELS = 48
#: Offset between cases, as a part of an octave, so that their intervals stay visible.
_ASIDE = 0.06
#: Offset of the prediction to the right of the measured points.
_BESIDE = 0.2


def figures(series: Series, fitted: Sequence[Fitted]) -> Iterator[tuple[str, Picture]]:
    """Draw and name a figure for each comparison and phase with two or more sizes."""
    found = groups(fitted)
    stems = _stems(found)
    for group, members in found.items():
        for phase in PHASES:
            these = [one for one in members if one.curve.phase == phase and one.curve.kind]
            if these:
                yield f"{stems[group]}-{phase}", draw(series, these)


def _stems(found: dict[str, list[Fitted]]) -> dict[str, str]:
    """Name the files of each comparison: workload and layout, numbered where these are equal."""
    stems: dict[str, str] = {}
    for group, members in found.items():
        s = members[0].curve.case.sample
        stem = slug(f"{s.workload}-{s.layout}")
        count = sum(other == stem or other.startswith(f"{stem}-") for other in stems.values())
        stems[group] = f"{stem}-{count + 1}" if count else stem
    return stems


def draw(series: Series, fitted: Sequence[Fitted]) -> Picture:
    """Return the figure of one comparison in one phase.

    Each transfer has a column: the rate above, the efficiency below.
    """
    ordered = sorted(fitted, key=lambda one: place(one.curve.case))
    transfers = sorted({one.curve.case.sample.transfer for one in ordered}, reverse=True)
    marks = _marks(ordered)
    x = _sizes(ordered, series.over)
    rates = number_axis("rate of all ranks, MiB/s", log_scale(_rates(ordered)), minExtent=_LABELS)
    ends = [v for one in ordered for v in _efficiencies(one)]
    top = 1.08 * max(v for v in (*ends, 100.0) if math.isfinite(v))
    parts = number_axis("efficiency, %", {"domain": [0, top], "nice": False}, minExtent=_LABELS)
    above, below = [], []
    for transfer in transfers:
        these = [one for one in ordered if one.curve.case.sample.transfer == transfer]
        placed = [(one, marks[id(one)], _aside(i, len(these))) for i, one in enumerate(these)]
        layers = [mark for one in placed for mark in _rate_layers(*one, x, rates)]
        above.append(PicturePanel(transfer, panel(layers, _PANEL_HEIGHT)))
        layers = [mark for one in placed for mark in _efficiency_layers(*one, x, parts)]
        ideal = {"y": at(parts, "at")}
        layers.append(rules("ideal", [{"at": 100}], ideal, strokeWidth=1, strokeDash=[1, 3]))
        below.append(PicturePanel("", panel(layers, _EFFICIENCY_HEIGHT)))
    phase = phase_name(ordered[0].curve.phase).capitalize()
    return Picture(
        f"{phase}: rate and efficiency over {series.over}",
        figure_words(series, ordered),
        (*above, *below),
        len(transfers),
        tuple(_legend(ordered, marks)),
    )


def _aside(number: int, count: int) -> float:
    return float(2 ** (_ASIDE * (number - (count - 1) / 2)))


def _marks(fitted: Sequence[Fitted]) -> dict[int, str]:
    """Assign different marks to cases of one backend, the same for both transfers."""
    found: dict[str, list[tuple[str, str]]] = {}
    marks = {}
    for one in fitted:
        s = one.curve.case.sample
        known = found.setdefault(s.backend, [])
        key = (s.settings, one.curve.case.variant)
        if key not in known:
            known.append(key)
        marks[id(one)] = _MARKS[known.index(key) % len(_MARKS)]
    return marks


def _told(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Return the predictions to draw."""
    return [prediction for prediction in predictions if not prediction.useless]


def _stretches(
    sizes: Sequence[int], predictions: Sequence[Prediction]
) -> Iterator[tuple[float, float, list[int] | None]]:
    """Yield the ranges and dashes of a fit: dashed outside of measured sizes."""
    yield float(sizes[0]), float(sizes[-1]), None
    for found in predictions:
        if found.size > sizes[-1]:
            yield float(sizes[-1]), float(found.size), [6, 4]


def _scaled(found: Estimate, factor: float) -> Estimate:
    return Estimate(found.value * factor, found.low * factor, found.high * factor)


def _looks(one: Fitted) -> dict[str, Any]:
    """Return the looks of lines: the backend's colour, pale for a library's defaults."""
    case = one.curve.case
    is_pale = case.sample.settings == "defaults" and not case.raw
    opacity = 0.5 if is_pale else 1
    return {"stroke": colour(case.sample.backend), "opacity": opacity, "dash": None}


def _rate_layers(one: Fitted, mark: str, aside: float, x: Spec, y: Spec) -> list[Spec]:
    curve, own = one.curve, _looks(one)
    sizes, rates = curve.sizes, [point.rate for point in curve.points]
    across, upwards = at(x, "size"), at(y, "value")

    def line(name: str, found: Sequence[tuple[float, float]], dash: list[int] | None) -> Spec:
        values = [{"size": a, "value": b, **own, "dash": dash} for a, b in found]
        return lines(name, values, across, upwards, strokeWidth=1 if name == "ideal" else 1.6)

    first = rates[0].value / _MIB / sizes[0]
    drawn = [line("ideal", [(n, first * n) for n in (sizes[0], sizes[-1])], [1, 3])]
    fit = one.fits.chosen
    if fit is None:
        measured = zip(sizes, (rate.value / _MIB for rate in rates), strict=True)
        drawn.append(line("measured", list(measured), None))
    else:
        for low, high, dash in _stretches(sizes, _told(fit.predictions)):
            where = np.geomspace(low, high, _SAMPLES)
            found = zip(where.tolist(), (fit.rate(where) / _MIB).tolist(), strict=True)
            drawn.append(line("fit", list(found), dash))
        for name, found_, shape, shift in (
            ("held_out", fit.held_out, "cross", aside * 2**_BESIDE),
            ("prediction", fit.predictions, "diamond", aside),
        ):
            shown = [_predicted(p, own, shape, shift) for p in _told(found_)]
            ends = {"x": across, "y": at(y, "low"), "y2": {"field": "high"}, **looks("stroke")}
            keep = "isValid(datum.low)"
            drawn.append(rules(f"{name}_interval", shown, ends, keep, strokeWidth=4, opacity=0.35))
            drawn.append(points(name, shown, across, upwards, 50))
    return [*drawn, *_points(one, [_scaled(r, 1 / _MIB) for r in rates], mark, aside, x, y)]


def _efficiency_layers(one: Fitted, mark: str, aside: float, x: Spec, y: Spec) -> list[Spec]:
    curve = one.curve
    found = [_scaled(curve.efficiency(point), 100) for point in curve.points]
    values = [
        {"size": size * aside, "value": value.value, **_looks(one)}
        for size, value in zip(curve.sizes, found, strict=True)
    ]
    joined = lines("measured", values, at(x, "size"), at(y, "value"), strokeWidth=0.8)
    return [joined, *_points(one, found, mark, aside, x, y)]


def _efficiencies(one: Fitted) -> list[float]:
    found = [_scaled(one.curve.efficiency(point), 100) for point in one.curve.points]
    return [v for estimate in found for v in (estimate.value, estimate.low, estimate.high)]


def _points(
    one: Fitted, found: Sequence[Estimate], mark: str, aside: float, x: Spec, y: Spec
) -> list[Spec]:
    """Return measured points with their intervals; hollow without one."""
    own = _looks(one)
    values = []
    for size, estimate in zip(one.curve.sizes, found, strict=True):
        known = not math.isnan(estimate.low)
        values.append({
            "case": plain(label(one.curve.case)),
            "size": size * aside,
            "value": estimate.value,
            "low": estimate.low if known else None,
            "high": estimate.high if known else None,
            **point(own["stroke"], filled=known, shape=mark, opacity=own["opacity"]),
        })  # fmt: skip
    lines_ = [value | {"stroke": own["stroke"]} for value in values]
    ends = {"x": at(x, "size"), "y": at(y, "low"), "y2": {"field": "high"}, **looks("stroke")}
    return [
        rules("intervals", lines_, ends, "isValid(datum.low)"),
        points("points", values, at(x, "size"), at(y, "value"), 60),
    ]


def _predicted(found: Prediction, own: dict[str, Any], shape: str, aside: float) -> dict[str, Any]:
    """Return the prediction of a law for a size."""
    rate = _scaled(found.rate, 1 / _MIB)
    known = not math.isnan(rate.low)
    return {
        "size": found.size * aside,
        "value": rate.value,
        "low": rate.low if known else None,
        "high": rate.high if known else None,
        **point(own["stroke"], filled=False, shape=shape),
    }


def _sizes(fitted: Sequence[Fitted], over: str) -> Spec:
    chosen = [one.fits.chosen for one in fitted if one.fits.chosen]
    predicted = {p.size for fit in chosen for p in _told(fit.predictions)}
    sizes = sorted({size for one in fitted for size in one.curve.sizes} | predicted)
    scale = {"type": "log", "base": 2, "domain": [sizes[0] / 1.2, sizes[-1] * 1.4], "nice": False}
    return number_axis("MPI ranks" if over == "ranks" else "nodes", scale, values=sizes)


def _rates(fitted: Sequence[Fitted]) -> list[float]:
    """Return all rates that are drawn, in MiB/s."""
    rates = [point.rate for one in fitted for point in one.curve.points]
    chosen = [one.fits.chosen for one in fitted if one.fits.chosen]
    rates += [p.rate for fit in chosen for p in _told([*fit.predictions, *fit.held_out])]
    return [v / _MIB for rate in rates for v in (rate.value, rate.low, rate.high)]


def _legend(fitted: Sequence[Fitted], marks: dict[int, str]) -> Iterator[LegendEntry]:
    """Yield the cases first, then other elements."""
    named: dict[str, LegendEntry] = {}
    for one in fitted:
        curve, own = one.curve, _looks(one)
        name = case_name(curve).replace(f" {curve.case.sample.layout}", "", 1)
        name = plain(name.replace(f" {curve.case.sample.transfer}", "", 1))
        named.setdefault(name, LegendEntry(name, own["stroke"], path=MARKS[marks[id(one)]]))
    yield from named.values()
    yield LegendEntry("ideal", "none", PALE_INK, path="", dash="1 3")
    chosen = [one.fits.chosen for one in fitted if one.fits.chosen]
    if chosen:
        yield LegendEntry("fitted law", "none", PALE_INK, path="")
    if any(_told(fit.held_out) for fit in chosen):
        yield LegendEntry("held out: predicted", "none", DARK, MARKS["cross"])
    if any(_told(fit.predictions) for fit in chosen):
        yield LegendEntry("prediction", "white", DARK, MARKS["diamond"])


def figure_words(series: Series, fitted: Sequence[Fitted]) -> Words:
    """Return the text of the figure of one comparison in one phase."""
    record = series.runs[-1].record
    case = fitted[0].curve.case.sample.case
    parameters = record.cases.get(case, {}).get("parameters", {})
    told = ", ".join(
        f"{key} {parameters[key]}" for key in ("decomposition", "cache") if parameters.get(key)
    )
    until = f", written until {parameters['durability']}" if "durability" in parameters else ""
    notes = [
        "Points: bytes of all ranks over the median job time, with its 95 % interval. Dotted: the "
        "ideal, from the smallest job.",
    ]
    if any(point.time.n < FEWEST_FOR_INTERVAL for one in fitted for point in one.curve.points):
        notes.append("Hollow: fewer than five repetitions, no interval.")
    if any(one.fits.chosen for one in fitted):
        notes.append(
            "Line: the law that predicts the largest size best from the others; the cross is that "
            "prediction, to the right of what was measured. Diamond: a size that was not measured. "
            f"Pale lines: their 95 % intervals; none is drawn that spans a factor of {WIDE:g}."
        )
    elif len(series.sizes) > 1:
        notes.append(f"No law: {fitted[0].fits.reason}.")
    if any(point.below_resolution for one in fitted for point in one.curve.points):
        notes.append(
            "Some points are under 100 times what the harness itself takes; see scaling.csv."
        )
    return Words(
        title=f"{record.name}: {work(fitted[0].curve)}{', ' + told if told else ''}{until}",
        notes=notes,
        alarms=list(series.alarms),
        footnote=f"{len(series.runs)} runs, the last: {footnote(Summary(record, {}))}",
        stamp="INVALID" if any(a.startswith("INVALID") for a in series.alarms) else "",
    )
