"""Figures of a scaling series: rate and efficiency over ranks or nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pffbench.summary.statistics import FEWEST_FOR_INTERVAL
from pffbench.summary.summary import Summary

from pffbench.grouping import grouped
from pffbench.units import Estimate
from pffbench_analysis.captions import footnote
from pffbench_analysis.charts import label, place
from pffbench_analysis.derived_files import bounded, slug
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.scaling.points import PHASES, Curve
from pffbench_analysis.scaling.sentences import name_in_comparison, phase_name, work
from pffbench_analysis.scaling.series import Series
from pffbench_analysis.specs import (
    Spec,
    at,
    lines,
    log_scale,
    number_axis,
    panel,
    point,
    points,
    rules,
)
from pffbench_analysis.style import colour

_MIB = 2**20
#: Marks distinguish the cases that share a colour.
_MARKS = (
    "triangle-up", "square", "circle", "diamond", "triangle-down", "triangle-left",
    "triangle-right", "arrow", "wedge",
)  # fmt: skip
_PANEL_HEIGHT = 240
_EFFICIENCY_HEIGHT = 150
#: Pixels left of a panel, so that those below each other are aligned.
_LABELS = 48
#: Offset between cases, as a part of an octave, so that their intervals stay visible.
_ASIDE = 0.06


@dataclass(frozen=True)
class DrawnCurve:
    """A curve as it is drawn.

    Parameters
    ----------
    curve : Curve
        The curve.
    mark : str
        Shape of its points.
    aside : float
        Factor of its places on the axis of sizes, so that cases do not cover each other.
    rates, parts : list of Estimate
        Rates in MiB/s, and efficiencies in percent, at its sizes.
    """

    curve: Curve
    mark: str
    aside: float
    rates: list[Estimate]
    parts: list[Estimate]

    def row(self, size: float, value: Estimate, **more: Any) -> dict[str, Any]:
        """Return a place of the curve: pale for a library's defaults, hollow without interval."""
        case = self.curve.case
        is_pale = case.sample.settings == "defaults" and not case.raw
        tint, opacity = colour(case.sample.backend), 0.5 if is_pale else 1.0
        return {
            "case": label(case),
            "size": size * self.aside,
            **bounded("value low high", value),
            **point(tint, filled=value.has_interval, shape=self.mark, opacity=opacity),
            "edge": tint,
            "dash": None,
            **more,
        }

    def layers(self, x: Spec, y: Spec, *, parts: bool) -> list[Spec]:
        """Return rates with the ideal, or efficiencies."""
        found = self.parts if parts else self.rates
        sizes = self.curve.sizes
        places = [self.row(*place) for place in zip(sizes, found, strict=True)]
        drawn = [_line("measured", places, x, y), *_marked(places, x, y)]
        if parts:
            return drawn
        first, last = found[0], found[0].scaled(sizes[-1] / sizes[0])
        ends = ((sizes[0], first), (sizes[-1], last))
        ideal = [self.row(size, rate, dash=[1, 3]) for size, rate in ends]
        drawn.append(_line("ideal", ideal, x, y))
        return drawn


def _line(name: str, rows: list[dict[str, Any]], x: Spec, y: Spec) -> Spec:
    """Return a line through some places."""
    coloured = [row | {"stroke": row["edge"]} for row in rows]
    return lines(name, coloured, at(x, "size"), at(y, "value"))


def _marked(rows: list[dict[str, Any]], x: Spec, y: Spec) -> list[Spec]:
    """Return points with their intervals."""
    across = at(x, "size")
    ends = {"x": across, "y": at(y, "low"), "y2": {"field": "high"}}
    ends["stroke"] = {"field": "edge", "type": "nominal", "scale": None}
    return [
        rules("intervals", rows, ends, "isValid(datum.low)"),
        points("points", rows, across, at(y, "value"), 60),
    ]


def figure_names(series: Series) -> dict[str, list[Curve]]:
    """Name the figure of each comparison and phase with two or more sizes."""
    named: dict[str, list[Curve]] = {}
    stems: list[str] = []
    for members in series.groups:
        s = members[0].case.sample
        stem = slug(f"{s.workload}-{s.layout}")
        stems.append(stem)
        number = f"-{stems.count(stem)}" if stems.count(stem) > 1 else ""
        for phase in PHASES:
            these = [curve for curve in members if curve.phase == phase and curve.kind]
            if these:
                named[f"{stem}{number}-{phase}"] = these
    return named


def draw(series: Series, curves: Sequence[Curve]) -> Picture:
    """Return the figure of one comparison in one phase.

    Each transfer has a column: the rate above, the efficiency below.
    """
    by_transfer = _drawn(curves)
    drawn = [one for some in by_transfer.values() for one in some]
    sizes = {n for one in drawn for n in one.curve.sizes}
    title = "MPI ranks" if series.over == "ranks" else "nodes"
    domain = [min(sizes) / 1.2, max(sizes) * 1.4]
    scale = {"type": "log", "base": 2, "domain": domain, "nice": False}
    x = number_axis(title, scale, values=sorted(sizes))
    ends = log_scale([v for one in drawn for rate in one.rates for v in rate])
    rates = number_axis("rate of all ranks, MiB/s", ends, minExtent=_LABELS)
    tops = (v for one in drawn for part in one.parts for v in part if math.isfinite(v))
    top = {"domain": [0, 1.08 * max(100.0, *tops)], "nice": False}
    parts = number_axis("efficiency, %", top, minExtent=_LABELS)
    ideal = rules("ideal", [{"at": 100}], {"y": at(parts, "at")}, strokeWidth=1, strokeDash=[1, 3])
    above, below = [], []
    for transfer, some in by_transfer.items():
        layers = [mark for one in some for mark in one.layers(x, rates, parts=False)]
        above.append(PicturePanel(transfer, panel(layers, _PANEL_HEIGHT)))
        layers = [mark for one in some for mark in one.layers(x, parts, parts=True)]
        below.append(PicturePanel("", panel([*layers, ideal], _EFFICIENCY_HEIGHT)))
    phase = phase_name(curves[0].phase).capitalize()
    return Picture(
        f"{phase}: rate and efficiency over {series.over}",
        _words(series, drawn),
        (*above, *below),
        len(by_transfer),
        tuple(_legend(drawn)),
    )


def _drawn(curves: Sequence[Curve]) -> dict[str, list[DrawnCurve]]:
    """Return the curves as they are drawn, by their transfer.

    Cases of one backend have different marks, the same for both transfers.
    """
    ordered = sorted(curves, key=lambda one: place(one.case))
    ordered.sort(key=lambda one: one.case.sample.transfer, reverse=True)
    kinds = grouped(dict.fromkeys(map(_kind, ordered)))
    found: dict[str, list[DrawnCurve]] = {}
    for transfer, these in grouped((one.case.sample.transfer, one) for one in ordered).items():
        found[transfer] = []
        for number, one in enumerate(these):
            backend, kind = _kind(one)
            mark = _MARKS[kinds[backend].index(kind) % len(_MARKS)]
            aside = 2 ** (_ASIDE * (number - (len(these) - 1) / 2))
            found[transfer].append(
                DrawnCurve(
                    one,
                    mark,
                    float(aside),
                    [point.rate.scaled(1 / _MIB) for point in one.points],
                    [one.efficiency(point).scaled(100) for point in one.points],
                )
            )
    return found


def _kind(curve: Curve) -> tuple[str, tuple[str, str]]:
    """Return the backend of a curve, and what tells cases of a backend and transfer apart."""
    s = curve.case.sample
    return s.backend, (s.settings, curve.case.variant)


def _legend(drawn: Sequence[DrawnCurve]) -> Iterator[LegendEntry]:
    """Yield the cases first, then other elements."""
    named: dict[str, LegendEntry] = {}
    for one in drawn:
        name = name_in_comparison(one.curve)
        named.setdefault(
            name, LegendEntry(name, colour(one.curve.case.sample.backend), shape=one.mark)
        )
    yield from named.values()
    yield LegendEntry("ideal", shape="stroke", dash=(1, 3))


def _words(series: Series, drawn: Sequence[DrawnCurve]) -> Words:
    """Return the text of the figure of one comparison in one phase."""
    record, first = series.record, drawn[0].curve
    parameters = first.case.parameters
    told = "".join(
        f", {key} {parameters[key]}" for key in ("decomposition", "cache") if parameters.get(key)
    )
    until = f", written until {parameters['durability']}" if "durability" in parameters else ""
    measured = [point for one in drawn for point in one.curve.points]
    notes = [
        "Points: bytes of all ranks over the median job time, with its 95 % interval. Dotted: the "
        "ideal, from the smallest job.",
    ]
    if any(point.time.n < FEWEST_FOR_INTERVAL for point in measured):
        notes.append("Hollow: fewer than five repetitions, no interval.")
    if any(point.below_resolution for point in measured):
        notes.append(
            "Some points are under 100 times what the harness itself takes; see scaling.csv."
        )
    return Words(
        title=f"{record.name}: {work(first)}{told}{until}",
        notes=notes,
        alarms=list(series.alarms),
        footnote=f"{len(series.runs)} runs, the last: {footnote(Summary(record, {}))}",
        stamp="INVALID" if any(a.startswith("INVALID") for a in series.alarms) else "",
    )
