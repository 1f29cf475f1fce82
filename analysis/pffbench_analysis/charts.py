"""The three charts of which all figures are made: dots with intervals, lines, and scatter."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pffbench_analysis.axes import CHARACTER, LINE, Axis
from pffbench_analysis.svg import (
    INK,
    SIZE,
    Shape,
    escaped,
    lines_of_text,
    mark,
    polyline,
    rule,
    specks,
    tag,
    words,
)

#: Pixels of the part of a panel that has marks, and of the labels below and left of it.
_WIDE, _PLOT, _HIGH, _BELOW, _LEFT = 300.0, 160.0, 190.0, 40.0, 64.0
#: Characters of a line of a name.
_NAME = 22
_ROW = 25.0
_GRID = "0.15"
_NOTHING = float("nan")


class Panel(NamedTuple):
    """A part of a figure with axes of its own."""

    #: The line above it; may be empty.
    heading: str
    #: Pixels of its drawing, without heading and names.
    width: float
    height: float
    #: Elements of SVG.
    drawing: str
    #: Names of its rows; empty where its vertical axis is a quantity.
    rows: tuple[str, ...] = ()
    #: Elements of SVG that name the rows, left of the drawing.
    names: str = ""
    #: Pixels of the names.
    left: float = 0.0


class Mark(NamedTuple):
    """A number in a row of a chart of dots."""

    #: The name of the row.
    row: str
    #: The number.
    value: float
    #: Its interval; NaN if it has none.
    low: float = _NOTHING
    high: float = _NOTHING
    #: Of the mark.
    colour: str = INK
    #: What stands right of the row.
    text: str = ""
    #: Of the mark.
    shape: Shape = "circle"
    #: Whether it is filled; hollow is for what is not sure.
    filled: bool = True
    #: Single values, drawn as small dots, the first uppermost.
    rounds: Sequence[float] = ()
    #: What pointing at it shows.
    about: str = ""


def dots(
    heading: str,
    rows: Sequence[str],
    marks: Sequence[Mark],
    x: Axis,
    *,
    margin: float | None = None,
) -> Panel:
    """Return marks with intervals, each in its row.

    Parameters
    ----------
    heading : str
        The line above.
    rows : sequence of str
        The rows from the top.
    marks : sequence of Mark
        Marks of one row are drawn below each other.
    x : Axis
        The axis of the numbers.
    margin : float, optional
        Of ratios: half the width of the band around 1 in which they count as equal.
    """
    names = {row: textwrap.wrap(row, _NAME) or [""] for row in rows}
    heights = [max(_ROW, LINE * len(lines) + 6) for lines in names.values()]
    tops = [sum(heights[:n]) for n in range(len(heights) + 1)]
    behind = list(_grid_across(x, _PLOT, tops[-1]))
    if margin is not None:
        ends = [_PLOT * x.place(end) for end in (1 / (1 + margin), 1 + margin)]
        band = tag("rect", x=ends[0], y=0, width=ends[1] - ends[0], height=tops[-1], opacity="0.1")
        behind += [band, rule(_PLOT * x.place(1), 0, _PLOT * x.place(1), tops[-1])]
    named, drawn = [], []
    left = max((CHARACTER * len(line) for lines in names.values() for line in lines), default=0.0)
    for (row, lines), top, height in zip(names.items(), tops, heights, strict=False):
        middle = top + height / 2
        first = middle - LINE * (len(lines) - 1) / 2 + 4
        named.append(lines_of_text(lines, left, first, LINE, text_anchor="end"))
        own = [one for one in marks if one.row == row]
        for number, one in enumerate(own):
            drawn.append(_dot(one, x, middle + 9 * (number - (len(own) - 1) / 2), height))
        if texts := [one.text for one in own if one.text]:
            drawn.append(words(", ".join(texts), _PLOT + 8, middle + 4))
    right = max((CHARACTER * len(one.text) + 14 for one in marks), default=8.0)
    content = "".join([*behind, *drawn])
    width, height = _PLOT + right, tops[-1] + _BELOW
    return Panel(heading, width, height, content, tuple(rows), "".join(named), left + 10)


def _dot(one: Mark, x: Axis, y: float, height: float) -> str:
    """Return a mark with its interval and its single values; nothing of no number."""
    if not math.isfinite(one.value):
        return ""
    place = _PLOT * x.place(one.value)
    found = []
    if one.rounds:
        step = (height - 4) / (len(one.rounds) + 1)
        top = y - height / 2 + 2
        spots = ((_PLOT * x.place(v), top + step * (n + 1)) for n, v in enumerate(one.rounds))
        found.append(specks(spots, one.colour))
    if math.isfinite(one.low) and math.isfinite(one.high):
        ends = [_PLOT * x.place(end) for end in (one.low, one.high)]
        pale = None if one.filled else "0.55"
        # A hollow mark shows what is below it, so its line ends at the edge.
        gap = 0.0 if one.filled else SIZE
        for end, edge in ((ends[0], place - gap), (ends[1], place + gap)):
            if abs(end - place) > gap:
                found.append(rule(end, y, edge, y, stroke_width=1.8, opacity=pale))
            found.append(rule(end, y - 4, end, y + 4, stroke_width=1.8, opacity=pale))
    found.append(mark(one.shape, place, y, one.colour, filled=one.filled, about=one.about))
    return "".join(found)


class Line(NamedTuple):
    """A line of a chart of lines."""

    #: What it is.
    name: str
    #: Its places.
    x: Sequence[float]
    y: Sequence[float]
    #: Intervals at its places; empty if it has none.
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    #: Its colour.
    colour: str = INK
    #: Its dashes, as in SVG; empty for a whole line.
    dash: str = ""
    #: Whether its places have marks, which are hollow on a dashed line.
    marked: bool = True


def lines(heading: str, curves: Iterable[Line], x: Axis, y: Axis) -> Panel:
    """Return lines over a quantity, such as the rounds or the ranks."""

    def place(across: float, upwards: float) -> tuple[float, float]:
        return _LEFT + _WIDE * x.place(across), _HIGH * (1 - y.place(upwards))

    drawn = []
    for one in curves:
        known = [n for n, value in enumerate(one.y) if math.isfinite(value)]
        places = {n: place(one.x[n], one.y[n]) for n in known}
        if len(places) > 1:
            dash = one.dash or None
            style = {"stroke": one.colour, "stroke_width": 1.6, "stroke_dasharray": dash}
            about = tag("title", escaped(one.name))
            drawn.append(tag("g", about + polyline(places.values(), **style)))
        for n in known if one.low else ():
            if math.isfinite(one.low[n]) and math.isfinite(one.high[n]):
                ends = place(one.x[n], one.low[n]), place(one.x[n], one.high[n])
                drawn.append(polyline(ends, stroke=one.colour, stroke_width=1.2))
        for n, (across, down) in places.items() if one.marked else ():
            about = f"{one.name}: {x.write(one.x[n])}, {y.write(one.y[n])}"
            whole = not one.dash
            drawn.append(mark("circle", across, down, one.colour, filled=whole, about=about))
    return _framed(heading, drawn, x, y)


class Point(NamedTuple):
    """A point of a scatter: two numbers, the second one with its interval."""

    #: What it is.
    name: str
    #: The numbers.
    x: float
    y: float
    #: Interval of `y`; NaN if it has none.
    low: float = _NOTHING
    high: float = _NOTHING
    #: Its colour.
    colour: str = INK


def scatter(heading: str, points: Iterable[Point], x: Axis, y: Axis) -> Panel:
    """Return points with their names, as far as these do not cover each other."""
    drawn, taken = [], list[tuple[float, float, float]]()
    for one in points:
        across, down = _LEFT + _WIDE * x.place(one.x), _HIGH * (1 - y.place(one.y))
        if math.isfinite(one.low) and math.isfinite(one.high):
            ends = [(across, _HIGH * (1 - y.place(end))) for end in (one.low, one.high)]
            drawn.append(polyline(ends, stroke=one.colour, stroke_width=1.4))
        about = f"{one.name}: {x.write(one.x)}, {y.write(one.y)}"
        drawn.append(mark("circle", across, down, one.colour, about=about))
        begin, end = across + 9, across + 9 + CHARACTER * len(one.name)
        covers = any(begin < e and b < end and abs(down - d) < LINE for b, e, d in taken)
        if end < _LEFT + _WIDE + 20 and not covers:
            taken.append((begin, end, down))
            drawn.append(words(one.name, begin, down + 4, font_size="11"))
    return _framed(heading, drawn, x, y)


def _framed(heading: str, drawn: Iterable[str], x: Axis, y: Axis) -> Panel:
    """Return a panel with an axis below and one on the left."""
    frame = [tag("g", "".join(_grid_across(x, _WIDE, _HIGH)), transform=f"translate({_LEFT:g},0)")]
    for place, text in y.labels(_HIGH, upwards=True):
        down = _HIGH * (1 - place)
        frame.append(rule(_LEFT, down, _LEFT + _WIDE, down, opacity=_GRID))
        frame.append(words(text, _LEFT - 6, down + 4, text_anchor="end"))
    above = f"{heading}: {y.title}" if heading and y.title else heading or y.title
    return Panel(above, _LEFT + _WIDE + 20, _HIGH + _BELOW, "".join([*frame, *drawn]))


def _grid_across(x: Axis, width: float, height: float) -> Iterator[str]:
    """Yield the lines, labels and title of a horizontal axis."""
    for place, text in x.labels(width):
        yield rule(width * place, 0, width * place, height, opacity=_GRID)
        yield words(text, width * place, height + 15, text_anchor="middle")
    yield words(x.title, width / 2, height + 32, text_anchor="middle", font_weight="500")
