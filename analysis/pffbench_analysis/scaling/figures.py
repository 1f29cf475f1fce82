"""Figures of a scaling series: rate and efficiency over ranks or nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pffbench.summary.statistics import FEWEST_FOR_INTERVAL
from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote
from pffbench_analysis.charts import label, place
from pffbench_analysis.derived_files import slug
from pffbench_analysis.pareto.figure import MARKS
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.scaling.points import PHASES, Curve, Estimate
from pffbench_analysis.scaling.prediction import WIDE, Prediction
from pffbench_analysis.scaling.sentences import case_name, phase_name, work
from pffbench_analysis.scaling.series import Series
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
#: Marks distinguish the cases that share a colour; diamonds are predictions.
_MARKS = [name for name in MARKS if name not in ("cross", "diamond")]
_PANEL_HEIGHT = 240
_EFFICIENCY_HEIGHT = 150
#: Pixels left of a panel, so that those below each other are aligned.
_LABELS = 48
#: Offset between cases, as a part of an octave, so that their intervals stay visible.
_ASIDE = 0.06


def figures(series: Series) -> Iterator[tuple[str, Picture]]:
    """Draw and name a figure for each comparison and phase with two or more sizes."""
    for stem, members in zip(_stems(series.groups), series.groups, strict=True):
        for phase in PHASES:
            these = [curve for curve in members if curve.phase == phase and curve.kind]
            if these:
                yield f"{stem}-{phase}", draw(series, these)


def _stems(groups: Sequence[Sequence[Curve]]) -> list[str]:
    """Name the files of each comparison: workload and layout, numbered where these are equal."""
    stems: list[str] = []
    for members in groups:
        s = members[0].case.sample
        stem = slug(f"{s.workload}-{s.layout}")
        count = sum(other == stem or other.startswith(f"{stem}-") for other in stems)
        stems.append(f"{stem}-{count + 1}" if count else stem)
    return stems


def draw(series: Series, curves: Sequence[Curve]) -> Picture:
    """Return the figure of one comparison in one phase.

    Each transfer has a column: the rate above, the efficiency below.
    """
    ordered = sorted(curves, key=lambda one: place(one.case))
    transfers = sorted({one.case.sample.transfer for one in ordered}, reverse=True)
    marks = _marks(ordered)
    expected = {id(one): _told(series.prediction(one)) for one in ordered}
    x = _sizes(ordered, expected.values(), series.over)
    scale = log_scale(_rates(ordered, expected.values()))
    rates = number_axis("rate of all ranks, MiB/s", scale, minExtent=_LABELS)
    ends = [v for one in ordered for v in _efficiencies(one)]
    top = 1.08 * max(v for v in (*ends, 100.0) if math.isfinite(v))
    parts = number_axis("efficiency, %", {"domain": [0, top], "nice": False}, minExtent=_LABELS)
    above, below = [], []
    for transfer in transfers:
        these = [one for one in ordered if one.case.sample.transfer == transfer]
        placed = [(one, marks[id(one)], _aside(i, len(these))) for i, one in enumerate(these)]
        layers = [
            mark for one in placed for mark in _rate_layers(*one, expected[id(one[0])], x, rates)
        ]
        above.append(PicturePanel(transfer, panel(layers, _PANEL_HEIGHT)))
        layers = [mark for one in placed for mark in _efficiency_layers(*one, x, parts)]
        ideal = {"y": at(parts, "at")}
        layers.append(rules("ideal", [{"at": 100}], ideal, strokeWidth=1, strokeDash=[1, 3]))
        below.append(PicturePanel("", panel(layers, _EFFICIENCY_HEIGHT)))
    phase = phase_name(ordered[0].phase).capitalize()
    return Picture(
        f"{phase}: rate and efficiency over {series.over}",
        figure_words(series, ordered),
        (*above, *below),
        len(transfers),
        tuple(_legend(ordered, marks, any(expected.values()))),
    )


def _aside(number: int, count: int) -> float:
    return float(2 ** (_ASIDE * (number - (count - 1) / 2)))


def _marks(curves: Sequence[Curve]) -> dict[int, str]:
    """Assign different marks to cases of one backend, the same for both transfers."""
    found: dict[str, list[tuple[str, str]]] = {}
    marks = {}
    for one in curves:
        s = one.case.sample
        known = found.setdefault(s.backend, [])
        key = (s.settings, one.case.variant)
        if key not in known:
            known.append(key)
        marks[id(one)] = _MARKS[known.index(key) % len(_MARKS)]
    return marks


def _told(found: Prediction | None) -> Prediction | None:
    """Return a prediction if it is drawn."""
    return None if found is None or found.useless else found


def _looks(curve: Curve) -> dict[str, Any]:
    """Return the looks of lines: the backend's colour, pale for a library's defaults."""
    case = curve.case
    is_pale = case.sample.settings == "defaults" and not case.raw
    opacity = 0.5 if is_pale else 1
    return {"stroke": colour(case.sample.backend), "opacity": opacity, "dash": None}


def _rate_layers(
    curve: Curve, mark: str, aside: float, expected: Prediction | None, x: Spec, y: Spec
) -> list[Spec]:
    own, sizes = _looks(curve), curve.sizes
    rates = [point.rate.scaled(1 / _MIB) for point in curve.points]
    across, upwards = at(x, "size"), at(y, "value")

    def line(name: str, found: Sequence[tuple[float, float]], dash: list[int] | None) -> Spec:
        values = [{"size": a, "value": b, **own, "dash": dash} for a, b in found]
        return lines(name, values, across, upwards, strokeWidth=1 if name == "ideal" else 1.6)

    first = rates[0].value / sizes[0]
    measured = [(float(n), rate.value) for n, rate in zip(sizes, rates, strict=True)]
    drawn = [
        line("ideal", [(n, first * n) for n in (sizes[0], sizes[-1])], [1, 3]),
        line("measured", measured, None),
    ]
    if expected is not None:
        shown = _predicted(expected, own, aside)
        ends = {"x": across, "y": at(y, "low"), "y2": {"field": "high"}, **looks("stroke")}
        drawn += [
            line("continued", [measured[-1], (expected.size, shown["value"])], [6, 4]),
            rules("prediction_interval", [shown], ends, strokeWidth=4, opacity=0.35),
            points("prediction", [shown], across, upwards, 50),
        ]
    return [*drawn, *_points(curve, rates, mark, aside, x, y)]


def _efficiency_layers(curve: Curve, mark: str, aside: float, x: Spec, y: Spec) -> list[Spec]:
    found = [curve.efficiency(point).scaled(100) for point in curve.points]
    values = [
        {"size": size * aside, "value": value.value, **_looks(curve)}
        for size, value in zip(curve.sizes, found, strict=True)
    ]
    joined = lines("measured", values, at(x, "size"), at(y, "value"), strokeWidth=0.8)
    return [joined, *_points(curve, found, mark, aside, x, y)]


def _efficiencies(curve: Curve) -> list[float]:
    found = [curve.efficiency(point).scaled(100) for point in curve.points]
    return [v for estimate in found for v in (estimate.value, estimate.low, estimate.high)]


def _points(
    curve: Curve, found: Sequence[Estimate], mark: str, aside: float, x: Spec, y: Spec
) -> list[Spec]:
    """Return measured points with their intervals; hollow without one."""
    own = _looks(curve)
    values = []
    for size, estimate in zip(curve.sizes, found, strict=True):
        known = not math.isnan(estimate.low)
        values.append({
            "case": plain(label(curve.case)),
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


def _predicted(found: Prediction, own: dict[str, Any], aside: float) -> dict[str, Any]:
    """Return the mark of a prediction."""
    rate = found.rate.scaled(1 / _MIB)
    return {
        "size": found.size * aside,
        "value": rate.value,
        "low": rate.low,
        "high": rate.high,
        **point(own["stroke"], filled=False, shape="diamond"),
    }


def _sizes(curves: Sequence[Curve], expected: Iterable[Prediction | None], over: str) -> Spec:
    sizes = sorted({n for one in curves for n in one.sizes} | {p.size for p in expected if p})
    scale = {"type": "log", "base": 2, "domain": [sizes[0] / 1.2, sizes[-1] * 1.4], "nice": False}
    return number_axis("MPI ranks" if over == "ranks" else "nodes", scale, values=sizes)


def _rates(curves: Sequence[Curve], expected: Iterable[Prediction | None]) -> list[float]:
    """Return all rates that are drawn, in MiB/s."""
    rates = [point.rate for one in curves for point in one.points]
    rates += [p.rate for p in expected if p]
    return [v / _MIB for rate in rates for v in (rate.value, rate.low, rate.high)]


def _legend(
    curves: Sequence[Curve], marks: dict[int, str], predicted: bool
) -> Iterator[LegendEntry]:
    """Yield the cases first, then other elements."""
    named: dict[str, LegendEntry] = {}
    for curve in curves:
        own = _looks(curve)
        name = case_name(curve).replace(f" {curve.case.sample.layout}", "", 1)
        name = plain(name.replace(f" {curve.case.sample.transfer}", "", 1))
        named.setdefault(name, LegendEntry(name, own["stroke"], path=MARKS[marks[id(curve)]]))
    yield from named.values()
    yield LegendEntry("ideal", "none", PALE_INK, path="", dash="1 3")
    if predicted:
        yield LegendEntry("prediction", "white", DARK, MARKS["diamond"])


def figure_words(series: Series, curves: Sequence[Curve]) -> Words:
    """Return the text of the figure of one comparison in one phase."""
    record = series.runs[-1].record
    case = curves[0].case.sample.case
    parameters = record.cases.get(case, {}).get("parameters", {})
    told = ", ".join(
        f"{key} {parameters[key]}" for key in ("decomposition", "cache") if parameters.get(key)
    )
    until = f", written until {parameters['durability']}" if "durability" in parameters else ""
    notes = [
        "Points: bytes of all ranks over the median job time, with its 95 % interval. Dotted: the "
        "ideal, from the smallest job.",
    ]
    if any(point.time.n < FEWEST_FOR_INTERVAL for one in curves for point in one.points):
        notes.append("Hollow: fewer than five repetitions, no interval.")
    if any(_told(series.prediction(one)) for one in curves):
        notes.append(
            "Diamond: the rate expected at a size that was not measured, if nothing saturates; "
            f"pale: its 95 % interval. None is drawn that spans a factor of {WIDE:g}."
        )
    if any(point.below_resolution for one in curves for point in one.points):
        notes.append(
            "Some points are under 100 times what the harness itself takes; see scaling.csv."
        )
    return Words(
        title=f"{record.name}: {work(curves[0])}{', ' + told if told else ''}{until}",
        notes=notes,
        alarms=list(series.alarms),
        footnote=f"{len(series.runs)} runs, the last: {footnote(Summary(record, {}))}",
        stamp="INVALID" if any(a.startswith("INVALID") for a in series.alarms) else "",
    )
