"""Vega-Lite specifications: the parts that all figures are made of, on the page and in files.

Each layer has data of its own, whose rows say how their marks look: ``fill``, ``stroke``,
``shape``, ``weight`` (of the stroke) and ``opacity``; ``told`` is what a mark says when it is
pointed at. Where text and lists are expected, a template has names that begin with ``$``, which
the page's scripts replace (`pffbench_analysis.page.templates`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from pffbench.grouping import grouped

Spec = dict[str, Any]
#: Rows of data, or the name of a template's.
Values = list[dict[str, Any]] | str

#: Ink and paper, which the page's style decides; `pffbench_analysis.picture` has those of files.
INK, PAPER = "currentColor", "var(--page)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', 'DejaVu Sans', sans-serif"
CONFIG: Spec = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "domainColor": INK, "tickColor": INK,
        "gridColor": INK, "gridOpacity": 0.13, "domainOpacity": 0.5, "tickOpacity": 0.5,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500, "labelOverlap": "greedy",
        "labelPadding": 5, "labelSeparation": 4, "labelLineHeight": 12,
    },
    "text": {"color": INK, "fontSize": 11.5},
}  # fmt: skip
_LOOKS = {
    "fill": ("fill", "nominal"), "stroke": ("stroke", "nominal"), "shape": ("shape", "nominal"),
    "strokeWidth": ("weight", "quantitative"), "opacity": ("opacity", "quantitative"),
    "strokeDash": ("dash", "nominal"),
}  # fmt: skip
#: What ends a line of the name of a row.
LINE_END = "¦"
#: The distance of rows, in pixels.
ROW = 25
#: How a round number is written on an axis.
_NUMBER = ",~r"
#: Of a logarithmic axis only numbers that are written have a line.
_WHERE_NAMED = {"condition": {"test": "datum.label", "value": 1}, "value": 0}


def panel(layers: Sequence[Spec], height: int | str, description: str = "", top: int = 4) -> Spec:
    """Return the specification of a panel, whose width is still to be set.

    Layers of one name become one; what they draw as a line stays a line of its own. Data that
    several layers share are held once.
    """
    merged = _merged(layers)
    values = {id(one["data"]["values"]): one["data"]["values"] for one in merged}
    names = {number: f"rows_{i}" for i, number in enumerate(values)}
    drawn = [one | {"data": {"name": names[id(one["data"]["values"])]}} for one in merged]
    return {
        "description": description,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 0, "right": 8, "top": top, "bottom": 0},
        "config": CONFIG,
        "datasets": {names[number]: rows for number, rows in values.items()},
        "layer": drawn,
    }


def _merged(layers: Sequence[Spec]) -> list[Spec]:
    named = grouped((one["name"], one) for one in layers).values()
    return [alike[0] if len(alike) == 1 else _joined(alike) for alike in named]


def _joined(layers: Sequence[Spec]) -> Spec:
    found = enumerate(one["data"]["values"] for one in layers)
    values = [row | {"line": i} for i, rows in found for row in rows]
    return layers[0] | {"data": {"values": values}}


def log_scale(values: Iterable[float], room: float = 0.05) -> Spec:
    """Return a logarithmic scale that holds all positive values, or a linear one without any.

    Parameters
    ----------
    values : iterable of float
        What is drawn.
    room : float
        Space at both ends, as a part of the axis.
    """
    found = [v for v in values if 0 < v < math.inf]
    if not found:
        return {"domain": [0, 1], "nice": False}
    low, high = min(found), max(found)
    more = max((high / low) ** room, 1.04)
    return {"type": "log", "domain": [low / more, high * more], "nice": False, "clamp": True}


def number_axis(title: str | None, scale: Spec | str, **axis: Any) -> Spec:
    """Return the channel of a quantity; `layer` adds the field."""
    return {
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"tickCount": 6, "format": _NUMBER, "gridOpacity": _WHERE_NAMED, **axis},
    }


def row_axis(rows: Sequence[str] | str, **axis: Any) -> Spec:
    """Return the vertical channel of named rows, from the top.

    A row is called ``NUMBER NAME``, so that rows of the same name are told apart; the number is
    not shown. A name may have several lines.
    """
    name = f"split(slice(datum.label, indexof(datum.label, ' ') + 1), '{LINE_END}')"
    return {
        "field": "row",
        "type": "nominal",
        "sort": rows,
        "title": None,
        "axis": {
            "labelExpr": name,
            "labelLimit": 640,
            "labelOverlap": False,
            "ticks": False,
            "domain": False,
            **axis,
        },
        "scale": {"domain": rows, "paddingInner": 0.3, "paddingOuter": 0.2},
    }


def layer(name: str, mark: Spec, values: Values, encoding: Spec, *, keep: str = "") -> Spec:
    """Return a layer of marks.

    Parameters
    ----------
    name : str
        What the marks stand for.
    mark : dict
        The mark and all properties that its rows share.
    values : list of dict or str
        Rows of data.
    encoding : dict
        Channels.
    keep : str
        Condition of rows that are drawn, as a Vega expression; empty for all.
    """
    only = {"transform": [{"filter": keep}]} if keep else {}
    shown = {"tooltip": {"signal": "datum.told"}, "opacity": 1, **mark}
    return {"name": name, "data": {"values": values}, **only, "mark": shown, "encoding": encoding}


def at(channel: Spec, field: str) -> Spec:
    """Return a channel with its field."""
    return {**channel, "field": field}


def looks(*channels: str) -> Spec:
    """Return the channels that rows decide themselves."""
    return {
        name: {"field": _LOOKS[name][0], "type": _LOOKS[name][1], "scale": None, "legend": None}
        for name in channels
    }


def points(name: str, values: Values, x: Spec, y: Spec, size: int = 110, keep: str = "") -> Spec:
    """Return a layer of points."""
    encoding = {"x": x, "y": y, **looks("fill", "stroke", "shape", "strokeWidth", "opacity")}
    return layer(name, {"type": "point", "size": size}, values, encoding, keep=keep)


def rules(name: str, values: Values, ends: Spec, keep: str = "", **mark: Any) -> Spec:
    """Return a layer of straight lines between the ends that the channels name."""
    drawn = {"type": "rule", "strokeWidth": 1.6, "color": INK, **mark}
    return layer(name, drawn, values, ends, keep=keep)


def intervals(values: Values, x: Spec, y: Spec) -> list[Spec]:
    """Return horizontal intervals: with caps where they are ``sure``, otherwise ranges.

    An arrow stands in place of a cap where one goes on, by ``low_open`` or ``high_open``; what is
    ``faint`` is pale.
    """
    ends = {"x": at(x, "low"), "x2": {"field": "high"}, "y": y}
    cap = {"type": "tick", "thickness": 1.8, "size": 10, "color": INK}
    arrow = {"type": "point", "shape": "triangle-right", "size": 60, "filled": True, "color": INK}
    drawn = [
        rules("ranges", values, ends, "!datum.sure && isValid(datum.low)", strokeWidth=0.9),
        rules("intervals", values, ends, "datum.sure", strokeWidth=1.8),
    ]
    for end, angle in (("low", 180), ("high", 0)):
        place, is_open = {"x": at(x, end), "y": y}, f"datum.{end}_open"
        drawn += [
            layer(f"caps_{end}", cap, values, place, keep=f"datum.sure && !{is_open}"),
            layer(f"arrows_{end}", {**arrow, "angle": angle}, values, place, keep=is_open),
        ]
    pale = {"opacity": {"condition": {"test": "datum.faint", "value": 0.3}, "value": 1}}
    return [one | {"encoding": one["encoding"] | pale} for one in drawn]


def lines(name: str, values: Values, x: Spec, y: Spec, **mark: Any) -> Spec:
    """Return a layer of lines, one for each value of the field ``line``."""
    detail = {"field": "line", "type": "nominal"}
    encoding = {"x": x, "y": y, "detail": detail, **looks("stroke", "opacity", "strokeDash")}
    return layer(name, {"type": "line", "strokeWidth": 1.6, **mark}, values, encoding)


def texts(name: str, values: Values, x: Spec, y: Spec, *, halo: bool = False, **mark: Any) -> Spec:
    """Return a layer with the field ``text``; with a halo, over what lies below."""
    around = {"stroke": PAPER, "strokeWidth": 4, "strokeJoin": "round"} if halo else {}
    encoding = {"x": x, "y": y, "text": {"field": "text"}}
    drawn = {"type": "text", "align": "left", "dx": 6, "color": INK, **around, **mark}
    return layer(name, drawn, values, encoding)


#: The place of a mark within its row, from the top.
IN_ROW: Spec = {"field": "order", "type": "quantitative", "scale": {"domain": [0, 1]}}


def written(values: Values, y: Spec) -> Spec:
    """Return the text of each row, right of it."""
    return texts("written", values, {"value": "width"}, y)


def headings(values: Values, y: Spec) -> list[Spec]:
    """Return lines above rows, each in a row of its own."""
    style: Spec = {"fontWeight": 650, "dx": 4}
    return [
        texts("halo", values, {"value": 0}, y, halo=True, **style),
        texts("headings", values, {"value": 0}, y, **style),
    ]


def marks(
    rows: Sequence[str], values: Values, x: Spec, *, shared: bool = False, extent: float = 0
) -> list[Spec]:
    """Return layers of marks with intervals and texts, each in its row.

    Parameters
    ----------
    rows : list of str
        All rows.
    values : list of dict
        ``row``, ``value``, which may be None, ``text``, looks, and what `intervals` needs.
    x : dict
        The axis of values.
    shared : bool
        Whether ``order`` (0 to 1, from the top) is the place of a value within its row.
    extent : float
        Least width of the names of rows in pixels, by which panels are aligned.
    """
    y = row_axis(rows, minExtent=extent)
    size, cap = (50, {"size": 6}) if shared else (130, {})
    of_rows = [
        *(one | {"mark": one["mark"] | (cap if one["mark"]["type"] == "tick" else {})}
          for one in intervals(values, x, y)),
        points("marks", values, at(x, "value"), y, size, "isValid(datum.value)"),
        written(values, y),
    ]  # fmt: skip
    place = {"yOffset": IN_ROW} if shared else {}
    return [one | {"encoding": one["encoding"] | place} for one in of_rows]


def equality(margin: float, x: Spec) -> list[Spec]:
    """Return the layers behind ratios: the band of those that count as equal, and a line at 1.

    Parameters
    ----------
    margin : float
        Half-width of the band, as a part.
    x : dict
        The axis of ratios.
    """
    span = [{"from": 1 / (1 + margin), "to": 1 + margin}]
    ends = {"x": at(x, "from"), "x2": {"field": "to"}}
    return [
        layer("band", {"type": "rect", "color": INK, "opacity": 0.1}, span, ends),
        rules("one", [{"at": 1}], {"x": at(x, "at")}, strokeWidth=1),
    ]


def point(
    fill: str, *, filled: bool = True, shape: str = "circle", opacity: float = 1.0
) -> dict[str, Any]:
    """Return the looks of a point: of its colour with an edge, or hollow."""
    return {
        "fill": fill if filled else PAPER,
        "stroke": INK if filled else fill,
        "shape": shape,
        "weight": 0.8 if filled else 2,
        "opacity": opacity,
    }
