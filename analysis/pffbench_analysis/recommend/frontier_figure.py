"""The figure of a kind of data: ratio on x, rate on y, the front as a staircase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pffbench.summary.summary import Summary
from pffbench.units import Estimate, significant
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.derived_files import bounded
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.recommend.candidates import Candidate
from pffbench_analysis.recommend.frontier import (
    DIRECTIONS,
    DataKind,
    Direction,
    FrontPosition,
    FrontStanding,
    Speed,
    standings,
)
from pffbench_analysis.recommend.frontier_text import headline
from pffbench_analysis.specs import (
    INK,
    PAPER,
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
from pffbench_analysis.style import MARKS, colour, plain

_MIB = 2**20
_HEIGHT, _LINE = 340, 14
#: Margins of an axis beyond its data, as a part of its length; the wider one on the right has
#: room for names.
_ROOM, _ROOM_FOR_NAMES = 0.08, 0.42
#: Offset between backends at the same ratio, as a part of the axis.
_ASIDE = 0.013
#: Range of ratios above which the axis is logarithmic.
_LARGE_RANGE = 30.0
#: Codecs in the order of their marks.
_FAMILIES = (
    "none", "gzip", "zstd", "blosc-zstd", "blosc-lz4", "szip", "lz4", "blosc-lz4hc", "blosc-zlib",
    "blosc-blosclz",
)  # fmt: skip


#: What the words of a standing say of the way that it is due to.
_RELATIONS = {
    FrontStanding.BY_MEDIAN: "not distinguishable from",
    FrontStanding.CLOSE: "median below",
    FrontStanding.OFF: "beaten by",
}


def draw_kind(kind: DataKind, summary: Summary) -> Picture:
    """Return the figure: a panel for writing and one for reading."""
    words = Words(
        title=kind.title,
        notes=[
            plain(headline(kind, summary).replace("**", "")),
            "Line: the front of the medians; right of and above it there is nothing. Filled: on "
            "it. Hollow: not distinguishable from it. Pale: shown to be off it. Whiskers: 95 % "
            "interval of the median. Rates are of the bytes of the arrays, from creating until "
            "durable and from opening to closing. †: below resolution.",
        ],
        footnote=footnote(summary),
        stamp=stamp(summary),
    )
    panels = [
        PicturePanel(direction, pareto_spec(kind, marks, has_line=True))
        for front in DIRECTIONS
        for direction, marks in marks_of(kind, (front,)).items()
    ]
    heading = "Compression against speed (more of both is better)"
    return Picture(heading, words, tuple(panels), legend=tuple(_legend(kind)))


@dataclass(frozen=True)
class ParetoMark:
    """A way of storing the data, as it is drawn.

    Parameters
    ----------
    way : Candidate
        The way.
    own : FrontPosition
        Its place by the front.
    direction : {"write", "read"}
        The direction.
    speed : Speed
        Its speed there.
    rate : Estimate
        Median and interval, in MiB/s.
    """

    way: Candidate
    own: FrontPosition
    direction: Direction
    speed: Speed
    rate: Estimate

    def told(self, kind: DataKind) -> dict[str, str]:
        """Return what it says when it is pointed at."""
        rate, standing, by = self.rate, self.own.standing, self.own.by
        interval = f"{significant(rate.low)} to {significant(rate.high)} MiB/s"
        told = {
            "way": kind.way(self.way),
            "direction": self.direction,
            "ratio": f"{self.way.ratio:g}",
            "in the files": f"{significant(self.way.stored_bytes / _MIB)} MiB",
            "rate": f"{significant(rate.value)}{'†' * self.speed.unsure} MiB/s",
            "95 % interval": interval
            if rate.has_interval
            else "none of fewer than five repetitions",
            "repetitions": f"{self.speed.phase.seconds.n}",
            "standing": standing.value,
        }
        if by is not None and standing in _RELATIONS:
            told[_RELATIONS[standing]] = kind.way(kind.points[by])
        return told


def marks_of(
    kind: DataKind, front: Sequence[Direction], *, stored: bool = False
) -> dict[Direction, list[ParetoMark]]:
    """Return the ways that were measured in the directions of a front, in MiB/s.

    Parameters
    ----------
    kind : DataKind
        The data.
    front : sequence of {"write", "read"}
        Directions whose front is drawn.
    stored : bool
        Count bytes as stored in the files.
    """
    found: dict[Direction, list[ParetoMark]] = {}
    for way, own in zip(kind.points, standings(kind, front), strict=True):
        for direction in front:
            speed = Speed.of(way, direction)
            if speed is not None and (rate := speed.rate(stored=stored)) is not None:
                mark = ParetoMark(way, own, direction, speed, rate.scaled(1 / _MIB))
                found.setdefault(direction, []).append(mark)
    return found


def pareto_spec(kind: DataKind, marks: Sequence[ParetoMark], *, has_line: bool) -> Spec:
    """Return the specification of a panel.

    Parameters
    ----------
    kind : DataKind
        The data, for the order of its backends.
    marks : sequence of ParetoMark
        One or more.
    has_line : bool
        Whether the front is a line in this panel, and is named.
    """
    x_scale = _ratio_scale([mark.way.ratio for mark in marks])
    y_scale = log_scale([value for mark in marks for value in mark.rate], 0.1)
    is_log = x_scale.get("type") == "log"
    x = number_axis("compression ratio" + ", logarithmic" * is_log, x_scale)
    y = number_axis("MiB/s of all ranks, logarithmic", y_scale)
    order = list(dict.fromkeys(point.backend for point in kind.points))
    values = [_value(kind, mark, order, x_scale) for mark in marks]
    ends = {"x": at(x, "x"), "y": at(y, "low"), "y2": {"field": "high"}}
    layers = [
        rules("intervals", values, ends | looks("opacity"), "isValid(datum.low)"),
        points("off_front", values, at(x, "x"), at(y, "value"), 95, "!datum.on_front"),
        points("on_front", values, at(x, "x"), at(y, "value"), 120, "datum.on_front"),
    ]
    front = sorted((m for m in marks if m.own.standing.on_front), key=lambda m: m.way.ratio)
    if has_line and front:
        layers.insert(0, _staircase(front, x_scale["domain"], y_scale["domain"], x, y))
        layers += _names(front, y_scale["domain"], x, y)
    return panel(layers, _HEIGHT)


def _ratio_scale(ratios: Sequence[float]) -> Spec:
    low, high = min(ratios), max(ratios)
    if high > _LARGE_RANGE * low:
        factor = high / low
        domain = [low / factor**_ROOM, high * factor**_ROOM_FOR_NAMES]
        return {"type": "log", "domain": domain, "nice": False}
    span = high - low or 1.0
    domain = [low - _ROOM * span, high + _ROOM_FOR_NAMES * span]
    return {"domain": domain, "nice": False, "zero": False}


def _value(kind: DataKind, mark: ParetoMark, order: Sequence[str], scale: Spec) -> Spec:
    own, (low, high) = mark.way, scale["domain"]
    aside = _ASIDE * (order.index(own.backend) - (len(order) - 1) / 2)
    is_log = scale.get("type") == "log"
    return {
        "x": own.ratio * (high / low) ** aside if is_log else own.ratio + aside * (high - low),
        **bounded("value low high", mark.rate),
        "on_front": mark.own.standing.on_front,
        "told": mark.told(kind),
        **point(
            colour(own.backend),
            filled=mark.own.standing.on_front,
            shape=_mark_of(_family(own)),
            opacity=0.4 if mark.own.standing is FrontStanding.OFF else 1.0,
        ),
    }


def _staircase(
    front: Sequence[ParetoMark], across: Sequence[float], upwards: Sequence[float], x: Spec, y: Spec
) -> Spec:
    """Return the front as a staircase up to the edges of the panel."""
    corners = [(mark.way.ratio, mark.rate.value) for mark in front]
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
    for mark in sorted(front, key=lambda mark: mark.rate.value):
        pixels = _HEIGHT * math.log(mark.rate.value / low) / math.log(high / low)
        lowest = max(pixels + 5, lowest + _LINE)
        text = plain(mark.way.codec) + "†" * mark.speed.unsure
        height = low * (high / low) ** (lowest / _HEIGHT)
        values.append({"x": mark.way.ratio, "value": height, "text": text})
    style: Spec = {"baseline": "bottom", "dx": 12}
    return [
        texts("halo", values, at(x, "x"), at(y, "value"), halo=True, **style),
        texts("names", values, at(x, "x"), at(y, "value"), **style),
    ]


def _legend(kind: DataKind) -> list[LegendEntry]:
    backends = dict.fromkeys(point.backend for point in kind.points)
    codecs = dict.fromkeys(_family(point) for point in kind.points)
    return [
        *(LegendEntry(plain(name), colour(name), shape="square") for name in backends),
        *(LegendEntry(plain(codec), PAPER, shape=_mark_of(codec)) for codec in codecs),
        LegendEntry("front", shape="stroke"),
    ]


def _family(way: Candidate) -> str:
    """Return the name of a way's codec without its level and shuffle."""
    return way.codec.split()[0]


def _mark_of(codec: str) -> str:
    """Return the mark of a codec, the same in every figure of every run."""
    place = _FAMILIES.index(codec) if codec in _FAMILIES else sum(codec.encode())
    return MARKS[place % len(MARKS)]
