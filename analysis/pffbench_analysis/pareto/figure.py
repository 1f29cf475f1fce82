"""The figure of a kind of data: ratio on x, rate on y, the front as a staircase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.pareto.advice import front_of, headline, ranks_of
from pffbench_analysis.pareto.front import FrontPosition, FrontStanding
from pffbench_analysis.pareto.points import (
    DIRECTIONS,
    CompressionPoint,
    DataKind,
    Direction,
    family,
    mark_of,
)
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.specs import (
    INK,
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
    texts,
)
from pffbench_analysis.style import INK as DARK
from pffbench_analysis.style import PALE_INK, colour, plain

_MIB = 2**20
#: One mark per codec, and its outline in a legend; those on the front are named.
MARKS = {
    "cross": "M-5,0h10M0,-5v10", "triangle-up": "M0,-5L5,4L-5,4Z", "square": "M-4,-4h8v8h-8Z",
    "circle": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0", "diamond": "M0,-6L5,0L0,6L-5,0Z",
    "triangle-down": "M0,5L5,-4L-5,-4Z", "triangle-left": "M-5,0L4,5L4,-5Z",
    "triangle-right": "M5,0L-4,5L-4,-5Z", "arrow": "M0,-6L4,0H1V6H-1V0H-4Z",
    "wedge": "M0,-6L2,5H-2Z",
}  # fmt: skip
_HEIGHT, _LINE = 340, 14
#: Margins of an axis beyond its data, as a part of its length; the wider one on the right has
#: room for names.
_ROOM, _ROOM_FOR_NAMES = 0.08, 0.42
#: Offset between backends at the same ratio, as a part of the axis.
_ASIDE = 0.013
#: Range of ratios above which the axis is logarithmic.
_LARGE_RANGE = 30.0


def draw_kind(kind: DataKind, summary: Summary) -> Picture:
    """Return the figure: a panel for writing and one for reading."""
    words = Words(
        title=f"{kind.name}, {ranks_of(kind)}",
        notes=[
            plain(headline(kind, summary).replace("**", "")),
            "Line: the front of the medians; right of and above it there is nothing. Filled: on "
            "it. Hollow: not told apart from it. Pale: shown to be off it. Whiskers: 95 % interval "
            "of the median. Rates are of the bytes of the arrays, from creating until durable and "
            "from opening to closing. †: below resolution.",
        ],
        footnote=footnote(summary),
        stamp=stamp(summary),
    )
    panels = []
    for direction in DIRECTIONS:
        marks = [
            ParetoMark.of(p, own, direction)
            for p, own in front_of(kind, direction)
            if p.speed(direction)
        ]
        if marks:
            spec = pareto_spec(kind, marks, "MiB/s of all ranks, logarithmic", has_line=True)
            panels.append(PicturePanel(direction, spec))
    heading = "Compression against speed (more of both is better)"
    return Picture(heading, words, tuple(panels), legend=tuple(_legend(kind)))


@dataclass(frozen=True)
class ParetoMark:
    """A way of storing the data, as it is drawn.

    Parameters
    ----------
    point : CompressionPoint
        The way.
    standing : FrontStanding
        Its place by the front.
    rate, low, high : float
        Median and interval, in the unit of the axis; NaN where there is none.
    unsure : bool
        Whether it is below resolution.
    told : dict of str to str
        What it says when it is pointed at.
    """

    point: CompressionPoint
    standing: FrontStanding
    rate: float
    low: float
    high: float
    unsure: bool
    told: dict[str, str] | None = None

    @classmethod
    def of(cls, point: CompressionPoint, own: FrontPosition, direction: Direction) -> ParetoMark:
        """Return the mark in MiB/s of the bytes of the arrays."""
        speed = point.speed(direction)
        rate = None if speed is None else speed.rate()
        value, low, high = (math.nan,) * 3 if rate is None else (v / _MIB for v in rate)
        unsure = speed is not None and speed.below_resolution
        return cls(point, own.standing, value, low, high, unsure)


def pareto_spec(
    kind: DataKind,
    marks: Sequence[ParetoMark],
    title: str,
    *,
    has_line: bool,
    description: str = "",
) -> Spec:
    """Return the specification of a panel.

    Parameters
    ----------
    kind : DataKind
        The data, for the order of its backends.
    marks : sequence of ParetoMark
        One or more.
    title : str
        Of the vertical axis.
    has_line : bool
        Whether the front is a line in this panel, and is named.
    description : str
        What the panel shows.
    """
    ratios = [mark.point.shown_ratio for mark in marks]
    wide = max(ratios) > _LARGE_RANGE * min(ratios)
    x_scale = _ratio_scale(min(ratios), max(ratios), wide=wide)
    y_scale = log_scale([v for m in marks for v in (m.rate, m.low, m.high)], 0.1)
    x = number_axis("compression ratio" + ", logarithmic" * wide, x_scale)
    y = number_axis(title, y_scale)
    order = list(dict.fromkeys(point.backend for point in kind.points))
    values = [_value(mark, order, x_scale) for mark in marks]
    ends = {"x": at(x, "x"), "y": at(y, "low"), "y2": {"field": "high"}}
    layers = [
        rules("intervals", values, ends | looks("opacity"), "isValid(datum.low)"),
        points("off_front", values, at(x, "x"), at(y, "value"), 95, "!datum.on_front"),
        points("on_front", values, at(x, "x"), at(y, "value"), 120, "datum.on_front"),
    ]
    front = sorted((m for m in marks if m.standing.on_front), key=lambda m: m.point.shown_ratio)
    if has_line and front:
        layers.insert(0, _staircase(front, x_scale["domain"], y_scale["domain"], x, y))
        layers += _names(front, y_scale["domain"], x, y)
    return panel(layers, _HEIGHT, description)


def _ratio_scale(low: float, high: float, *, wide: bool) -> Spec:
    if wide:
        factor = high / low
        domain = [low / factor**_ROOM, high * factor**_ROOM_FOR_NAMES]
        return {"type": "log", "domain": domain, "nice": False}
    span = high - low or 1.0
    domain = [low - _ROOM * span, high + _ROOM_FOR_NAMES * span]
    return {"domain": domain, "nice": False, "zero": False}


def _value(mark: ParetoMark, order: Sequence[str], scale: Spec) -> Spec:
    own, (low, high) = mark.point, scale["domain"]
    aside = _ASIDE * (order.index(own.backend) - (len(order) - 1) / 2)
    is_log = scale.get("type") == "log"
    ratio = own.shown_ratio
    shown = point(
        colour(own.backend),
        filled=mark.standing.on_front,
        shape=list(MARKS)[mark_of(family(own.codec), len(MARKS))],
        opacity=0.4 if mark.standing is FrontStanding.OFF else 1.0,
    )
    return {
        "x": ratio * (high / low) ** aside if is_log else ratio + aside * (high - low),
        "value": mark.rate,
        "low": None if math.isnan(mark.low) else mark.low,
        "high": None if math.isnan(mark.high) else mark.high,
        "on_front": mark.standing.on_front,
        "told": mark.told,
        **shown,
    }


def _staircase(
    front: Sequence[ParetoMark], across: Sequence[float], upwards: Sequence[float], x: Spec, y: Spec
) -> Spec:
    """Return the front as a staircase up to the edges of the panel."""
    corners = [(mark.point.shown_ratio, mark.rate) for mark in front]
    steps = [(across[0], corners[0][1]), *corners, (corners[-1][0], upwards[0])]
    values = [
        {"x": ratio, "value": rate, "stroke": INK, "opacity": 0.55, "order": i, "dash": None}
        for i, (ratio, rate) in enumerate(steps)
    ]
    drawn = lines("front", values, at(x, "x"), at(y, "value"), interpolate="step-before")
    drawn["encoding"]["order"] = {"field": "order", "type": "quantitative"}
    return drawn


def _names(front: Sequence[ParetoMark], bounds: Sequence[float], x: Spec, y: Spec) -> list[Spec]:
    """Return the codecs of the front, each above its point and clear of the one below it."""
    low, high = bounds
    lowest, values = -math.inf, []
    for mark in sorted(front, key=lambda mark: mark.rate):
        pixels = _HEIGHT * math.log(mark.rate / low) / math.log(high / low)
        lowest = max(pixels + 5, lowest + _LINE)
        text = plain(mark.point.codec) + "†" * mark.unsure
        height = low * (high / low) ** (lowest / _HEIGHT)
        values.append({"x": mark.point.shown_ratio, "value": height, "text": text})
    style: Spec = {"baseline": "bottom", "dx": 12}
    return [
        texts("halo", values, at(x, "x"), at(y, "value"), halo=True, **style),
        texts("names", values, at(x, "x"), at(y, "value"), **style),
    ]


def _legend(kind: DataKind) -> list[LegendEntry]:
    backends = dict.fromkeys(point.backend for point in kind.points)
    codecs = dict.fromkeys(family(point.codec) for point in kind.points)
    outlines = list(MARKS.values())
    return [
        *(LegendEntry(name, colour(name), path=MARKS["square"]) for name in backends),
        *(LegendEntry(c, "white", DARK, outlines[mark_of(c, len(MARKS))]) for c in codecs),
        LegendEntry("front", "none", PALE_INK, path=""),
    ]
