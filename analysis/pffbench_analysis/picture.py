"""Figures as files: panels that vl-convert draws, with text around them, as one SVG."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from pffbench.commands import to_install_analysis
from pffbench.errors import UserError
from pffbench.regular_files import replacing
from pffbench_analysis.specs import CONFIG, INK, PAPER, Spec
from pffbench_analysis.style import ALARM, PALE_INK, plain
from pffbench_analysis.style import INK as DARK

#: Suffixes of the files of a figure.
SUFFIXES = (".png", ".svg", ".pdf")
_WIDTH, _MARGIN, _GAP, _LINE = 900, 10, 26, 17
#: Pixels of a character of 12 pixels, and of a panel without its labels.
_CHARACTER, _BODY = 6.3, 150


@dataclass(frozen=True)
class Words:
    """The text of a figure.

    Parameters
    ----------
    title : str
        Subject of the comparison.
    notes : list of str
        Reading notes, below the panels.
    alarms : list of str
        Problems of the run, below the panels in another colour.
    footnote : str
        Source of the data.
    stamp : str
        Text stamped over the whole figure; may be empty.
    """

    title: str
    notes: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    footnote: str = ""
    stamp: str = ""

    @property
    def lines(self) -> str:
        """All of the text."""
        return " ".join([self.title, *self.alarms, *self.notes, self.footnote])


@dataclass(frozen=True)
class PicturePanel:
    """A part of a figure with axes of its own.

    Parameters
    ----------
    heading : str
        The line above it; may be empty.
    spec : dict
        Vega-Lite specification without its width.
    """

    heading: str
    spec: Spec

    def values(self, name: str) -> list[dict[str, object]]:
        """Return the data of the layer of that name; none without it."""
        return [
            row
            for layer in self.spec["layer"]
            if layer["name"] == name
            for row in self.spec["datasets"][layer["data"]["name"]]
        ]


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend.

    Parameters
    ----------
    name : str
        What it stands for.
    fill, stroke : str
        Colours of the mark.
    path : str
        Its outline as an SVG path within 6 pixels around 0,0; empty for a line.
    dash : str
        Dashes of the line, as in SVG.
    """

    name: str
    fill: str
    stroke: str = DARK
    path: str = "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0"
    dash: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure.

    Parameters
    ----------
    heading : str
        The first line.
    words : Words
        The rest of its text.
    panels : tuple of PicturePanel
        From the left, then below.
    columns : int
        Largest number of panels side by side.
    legend : tuple of LegendEntry
        Above the panels.
    names : tuple of str
        Longest texts left of panels: of panels side by side they would take all the room.
    """

    heading: str
    words: Words
    panels: tuple[PicturePanel, ...]
    columns: int = 2
    legend: tuple[LegendEntry, ...] = ()
    names: tuple[str, ...] = ()

    def _repr_png_(self) -> bytes:
        """Return the figure for a notebook."""
        return bytes(converter().svg_to_png(self.svg(), scale=1))

    def svg(self) -> str:
        """Return the figure as SVG."""
        y = _LINE + 4.0
        parts = [_text(_MARGIN, y, self.heading, size=16, weight="bold")]
        for line in textwrap.wrap(plain(self.words.title), 125):
            y += _LINE
            parts.append(_text(_MARGIN, y, line, size=13))
        y += _LINE / 2
        if self.legend:
            y, keys = _legend(self.legend, y)
            parts += keys
        y, drawn = self._drawn(y)
        parts += drawn
        for line, ink in _lines_below(self.words):
            y += _LINE - 2
            parts.append(_text(_MARGIN, y, line, size=11, ink=ink))
        height = round(y + _MARGIN)
        if self.words.stamp:
            turned = f"rotate(-20 {_WIDTH / 2} {height / 2})"
            parts.append(
                f'<text x="{_WIDTH / 2}" y="{height / 2 + 30}" transform="{turned}" '
                f'text-anchor="middle" font-size="90" font-weight="bold" opacity="0.35" '
                f'fill="{ALARM}">{escape(self.words.stamp)}</text>'
            )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" font-family="{escape(CONFIG["font"])}">'
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>{"".join(parts)}</svg>'
        )

    def _drawn(self, y: float) -> tuple[float, list[str]]:
        """Draw the panels from a height on; return where they end."""
        wide = max(map(len, self.names), default=0) * _CHARACTER
        rows = [_rows_of(panel.spec) for panel in self.panels]
        # Only the first of panels with the same rows names them.
        once = bool(rows) and rows[0] is not None and all(one == rows[0] for one in rows)
        columns = max(1, min(self.columns, len(self.panels)))
        while columns > 1 and _widths(columns, wide, once=once)[-1] < wide * (not once) + _BODY:
            columns -= 1
        widths = _widths(columns, wide, once=once)
        parts = []
        for start in range(0, len(self.panels), columns):
            row = self.panels[start : start + columns]
            heads = [
                textwrap.wrap(plain(panel.heading), max(8, width // 7))
                for panel, width in zip(row, widths, strict=False)
            ]
            top = y + _LINE * max(map(len, heads))
            ends, x = [top], float(_MARGIN)
            for i, (panel, lines) in enumerate(zip(row, heads, strict=True)):
                for number, line in enumerate(lines, start=1):
                    parts.append(_text(x, y + _LINE * number, line, size=13, weight="bold"))
                spec = _without_names(panel.spec) if once and i else panel.spec
                text, height = _svg_of(spec, widths[i], x, top + 4)
                parts.append(text)
                ends.append(top + 4 + height)
                x += widths[i] + _GAP
            y = max(ends) + _LINE / 2
        return y, parts


def _widths(columns: int, names: float, *, once: bool) -> list[int]:
    """Return the widths of panels side by side, of which all or only the first has names."""
    room = _WIDTH - 2 * _MARGIN - (columns - 1) * _GAP
    if not once:
        return [room // columns] * columns
    each = int((room - names) // columns)
    return [room - (columns - 1) * each, *[each] * (columns - 1)]


def _rows_of(spec: Spec) -> list[str] | None:
    """Return the rows of a panel; None where its vertical axis is a quantity."""
    channels = (layer["encoding"].get("y", {}) for layer in spec["layer"])
    return next((y["scale"]["domain"] for y in channels if y.get("field") == "row"), None)


def _without_names(spec: Spec) -> Spec:
    """Return a panel whose rows have no names."""
    layers = []
    for layer in spec["layer"]:
        y = layer["encoding"].get("y", {})
        hidden = {"y": y | {"axis": None}} if y.get("field") == "row" else {}
        layers.append(layer | {"encoding": layer["encoding"] | hidden})
    return spec | {"layer": layers}


def converter() -> Any:
    """Return vl-convert, which only those who draw need.

    Raises
    ------
    UserError
        It is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise UserError(
            f"figures need vl_convert, which cannot be imported ({error}): {to_install_analysis()}"
        ) from None
    return vl_convert


def save(picture: Picture, path: Path, *, links: bool = True) -> Iterator[Path]:
    """Write a figure as PNG, SVG and PDF; the same figure gives the same PNG and SVG.

    Parameters
    ----------
    picture : Picture
        What to draw.
    path : Path
        Output path without the suffix.
    links : bool
        Whether its directory may be a symbolic link.

    Yields
    ------
    Path
        Each file that was written.
    """
    svg = picture.svg()
    png, pdf = converter().svg_to_png(svg, scale=2), converter().svg_to_pdf(svg)
    made = (png, svg.encode(), pdf)
    for suffix, content in zip(SUFFIXES, made, strict=True):
        file = path.with_name(path.name + suffix)
        with replacing(file, "wb", links=links) as stream:
            stream.write(content)
        yield file


def remove(path: Path) -> None:
    """Remove the files of a figure, given without a suffix."""
    for suffix in SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _svg_of(spec: Spec, width: int, x: float, y: float) -> tuple[str, float]:
    """Draw a panel; return it as an SVG element at a position, and its height."""
    made = spec | {"width": width, "config": CONFIG | {"aria": False}}
    text = json.dumps(made, allow_nan=False).replace(INK, DARK).replace(PAPER, "white")
    svg = converter().vegalite_to_svg(text)
    height = re.search(r'height="([\d.]+)"', svg)
    assert height is not None
    return svg.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" overflow="visible" ', 1), float(
        height[1]
    )


def _text(
    x: float, y: float, text: str, *, size: int, ink: str = DARK, weight: str = "normal"
) -> str:
    shown = escape(plain(text))
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" '
        f'fill="{ink}">{shown}</text>'
    )


def _legend(keys: Sequence[LegendEntry], y: float) -> tuple[float, list[str]]:
    x, parts = float(_MARGIN), []
    y += _LINE
    for key in keys:
        wide = 34 + _CHARACTER * len(key.name)
        if x > _MARGIN and x + wide > _WIDTH - _MARGIN:
            x, y = float(_MARGIN), y + _LINE
        if key.path:
            mark = f'<path d="{key.path}" fill="{key.fill}" stroke="{key.stroke}"/>'
        else:
            mark = f'<path d="M-9,0h18" stroke="{key.stroke}" stroke-width="2" fill="none"'
            mark += f' stroke-dasharray="{key.dash}"/>' if key.dash else "/>"
        parts.append(f'<g transform="translate({x + 9:g},{y - 4:g})">{mark}</g>')
        parts.append(_text(x + 22, y, key.name, size=12))
        x += wide
    return y + _LINE / 2, parts


def _lines_below(words: Words) -> list[tuple[str, str]]:
    texts = [(text, ALARM) for text in words.alarms]
    texts += [(text, DARK) for text in words.notes]
    texts += [(words.footnote, PALE_INK)] if words.footnote else []
    return [
        (line, ink)
        for text, ink in texts
        for line in textwrap.wrap(
            plain(text), 155, max_lines=4, placeholder=" …", break_on_hyphens=False
        )
    ]
