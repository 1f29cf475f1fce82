"""Elements of SVG, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import Any, Literal

from pffbench_analysis.style import plain

#: The colour of the text around a figure: of the page, or as the file sets it.
INK = "currentColor"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', 'DejaVu Sans', sans-serif"
Shape = Literal["circle", "square", "diamond"]
#: Half the size of a mark in pixels.
SIZE = 5.0


def tag(name: str, content: str = "", /, **given: Any) -> str:
    """Return an element; ``_`` in the name of an attribute is ``-``, and None leaves it out."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in given.items()}
    attributes = "".join(
        f' {key}="{_value(value)}"' for key, value in named.items() if value is not None
    )
    return f"<{name}{attributes}>{content}</{name}>" if content else f"<{name}{attributes}/>"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{round(value, 1):g}"
    return escape(plain(str(value)))


def escaped(text: str) -> str:
    """Return text as the content of an element."""
    return escape(plain(text), quote=False)


def words(text: str, x: float, y: float, **given: Any) -> str:
    """Return a line of text."""
    return tag("text", escaped(text), x=x, y=y, **given)


def lines_of_text(texts: Iterable[str], x: float, y: float, step: float, **given: Any) -> str:
    """Return lines of text below each other."""
    return "".join(words(text, x, y + step * n, **given) for n, text in enumerate(texts))


def rule(x1: float, y1: float, x2: float, y2: float, **given: Any) -> str:
    """Return a straight line."""
    return tag("path", d=_path([(x1, y1), (x2, y2)]), **{"stroke": INK, "fill": "none", **given})


def polyline(places: Iterable[tuple[float, float]], **given: Any) -> str:
    """Return a line through some places."""
    return tag("path", d=_path(places), **{"stroke": INK, "fill": "none", **given})


def specks(places: Iterable[tuple[float, float]], colour: str) -> str:
    """Return small dots."""
    drawn = "".join(f"M{x:.1f},{y:.1f}h0" for x, y in places)
    return tag(
        "path", d=drawn, stroke=colour, stroke_width=3.5, stroke_linecap="round", opacity="0.6"
    )


def mark(
    shape: Shape, x: float, y: float, colour: str, *, filled: bool = True, about: str = ""
) -> str:
    """Return a mark, which shows a text when it is pointed at."""
    size = SIZE * {"circle": 1.0, "square": 0.9, "diamond": 1.3}[shape]
    if shape == "circle":
        outline = f"M{x - size:.1f},{y:.1f}a{size},{size} 0 1 0 {2 * size},0a{size},{size} 0 1 0 {-2 * size},0Z"  # noqa: E501
    else:
        turn = math.pi / 4 if shape == "square" else 0.0
        reach = size * math.sqrt(2) if shape == "square" else size
        corners = (turn + math.pi / 2 * n for n in range(4))
        outline = _path((x + reach * math.cos(a), y + reach * math.sin(a)) for a in corners) + "Z"
    return tag(
        "path",
        tag("title", escaped(about)) if about else "",
        d=outline,
        fill=colour if filled else "none",
        stroke=INK if filled else colour,
        stroke_width=0.8 if filled else 2.0,
        pointer_events="all",
    )


def _path(places: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
