"""Figures as files: panels, legend and text are one Vega-Lite specification for vl-convert."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pffbench.commands import to_install_analysis
from pffbench.errors import UserError
from pffbench.regular_files import replacing
from pffbench_analysis.specs import CONFIG, INK, LINE_END, PAPER, Spec, layer
from pffbench_analysis.style import ALARM, PALE_INK, drawable
from pffbench_analysis.style import INK as DARK

#: Suffixes of the files of a figure.
SUFFIXES = (".png", ".svg", ".pdf")
_WIDTH, _GAP = 880, 26
#: Pixels of a character, of an axis with numbers, and of the narrowest panel.
_CHARACTER, _AXIS, _BODY = 6.3, 60, 150
#: Scales that panels must not share.
_OWN_SCALES: Spec = {"scale": {"yOffset": "independent"}}
_TITLES = {"anchor": "start", "frame": "bounds", "color": INK, "subtitleColor": INK, "offset": 8}


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
        Text stamped over each panel; may be empty.
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

    def values(self, name: str) -> list[dict[str, Any]]:
        """Return the data of the layer of that name; none without it."""
        return [
            row
            for one in self.spec["layer"]
            if one["name"] == name
            for row in self.spec["datasets"][one["data"]["name"]]
        ]

    @property
    def rows(self) -> list[str] | None:
        """The rows; None where the vertical axis is a quantity."""
        channels = (one["encoding"].get("y", {}) for one in self.spec["layer"])
        return next((y["scale"]["domain"] for y in channels if y.get("field") == "row"), None)


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend.

    Parameters
    ----------
    name : str
        What it stands for.
    fill : str
        Colour of the mark; a line has none.
    shape : str
        Vega's name of the mark; ``stroke`` is a line.
    dash : tuple of int
        Dashes of the line.
    """

    name: str
    fill: str = "none"
    shape: str = "circle"
    dash: tuple[int, ...] = ()


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
    """

    heading: str
    words: Words
    panels: tuple[PicturePanel, ...]
    columns: int = 2
    legend: tuple[LegendEntry, ...] = ()

    def _repr_png_(self) -> bytes:
        """Return the figure for a notebook."""
        return bytes(converter().svg_to_png(self.svg(), scale=1))

    def svg(self) -> str:
        """Return the figure as SVG."""
        text = json.dumps(drawable(self.spec()), allow_nan=False)
        text = text.replace(INK, DARK).replace(PAPER, "white")
        return str(converter().vegalite_to_svg(text))

    def spec(self) -> Spec:
        """Return the figure as a Vega-Lite specification."""
        return {
            "title": {
                "text": self.heading,
                "subtitle": textwrap.wrap(self.words.title, 125),
                "fontSize": 16,
                "subtitleFontSize": 13,
            },
            "vconcat": [
                *([_legend(self.legend, self._names)] if self.legend else []),
                *([self._panels()] if self.panels else []),
                *(
                    _text(text, self._names, ink)
                    for ink, texts in (
                        (ALARM, self.words.alarms),
                        (INK, self.words.notes),
                        (PALE_INK, [self.words.footnote]),
                    )
                    for text in texts
                    if text
                ),
            ],
            "spacing": 5,
            "resolve": _OWN_SCALES,
            "background": "white",
            "padding": 10,
            "config": CONFIG | {"aria": False, "title": _TITLES},
        }

    def _panels(self) -> Spec:
        # Only the first of panels with the same rows names them.
        once = self.panels[0].rows is not None and all(
            panel.rows == self.panels[0].rows for panel in self.panels
        )
        columns, width = self._widths(once=once)
        drawn = []
        for number, panel in enumerate(self.panels):
            spec = {key: panel.spec[key] for key in ("height", "description")} | {"width": width}
            layers = [_alone(one, panel.spec["datasets"]) for one in panel.spec["layer"]]
            if once and number % columns:
                layers = [_without_names(one) for one in layers]
            if self.words.stamp:
                layers.append(_stamped(self.words.stamp, width, spec["height"]))
            if panel.heading:
                lines = textwrap.wrap(panel.heading, max(8, width // 7))
                spec["title"] = {"text": lines, "fontSize": 13, "frame": "group", "offset": 20}
            drawn.append(spec | {"layer": layers})
        layout = {"columns": columns, "align": "each", "spacing": _GAP}
        return {"concat": drawn, "resolve": _OWN_SCALES, **layout}

    @property
    def _names(self) -> float:
        """About how wide the names of rows are, or the axes of quantities."""
        names = (row.partition(" ")[2] for panel in self.panels for row in panel.rows or ())
        return max([_AXIS, *(_pixels(line) for name in names for line in name.split(LINE_END))])

    def _widths(self, *, once: bool) -> tuple[int, int]:
        """Return the number of panels side by side, and the width of each without its names."""
        written = (row for panel in self.panels for row in panel.values("written"))
        right = max([0.0, *(_pixels(row["text"]) for row in written)])
        for columns in range(min(self.columns, len(self.panels)), 0, -1):
            room = _WIDTH - (columns - 1) * _GAP - self._names * (1 if once else columns)
            width = int(room / columns - right)
            if width >= _BODY:
                return columns, width
        return 1, _BODY


def _alone(one: Spec, datasets: Spec) -> Spec:
    """Return a layer with its data, and without its name, which other panels have too."""
    rest = {key: value for key, value in one.items() if key != "name"}
    return rest | {"data": {"values": datasets[one["data"]["name"]]}}


def _pixels(text: str) -> float:
    return _CHARACTER * len(text)


def _without_names(one: Spec) -> Spec:
    """Return a layer whose rows have no names."""
    y = one["encoding"].get("y", {})
    hidden = {"y": y | {"axis": None}} if y.get("field") == "row" else {}
    return one | {"encoding": one["encoding"] | hidden}


def _stamped(text: str, width: int, height: int) -> Spec:
    """Return a layer with a text over a panel."""
    mark = {"type": "text", "text": text, "angle": -20, "fontSize": 40, "fontWeight": "bold"}
    middle = {"x": {"value": width / 2}, "y": {"value": height / 2}}
    return layer("stamp", {**mark, "color": ALARM, "opacity": 0.35}, [{}], middle)


def _legend(entries: Sequence[LegendEntry], left: float) -> Spec:
    """Return the legend, which begins that far left of the panels."""
    names = [entry.name for entry in entries]
    columns = max(1, int(_WIDTH // (34 + max(map(_pixels, names)))))
    ranges = {
        "fill": [entry.fill for entry in entries],
        "shape": [entry.shape for entry in entries],
        "strokeDash": [list(entry.dash) for entry in entries],
    }
    legend = {
        "title": None,
        "orient": "none",
        "legendX": -left,
        "legendY": 0,
        "direction": "horizontal",
        "columns": columns,
        "symbolOpacity": 1,
        "labelColor": DARK,
        "labelFontSize": 12,
        "labelLimit": _WIDTH,
    }
    encoding = {
        channel: {
            "field": "name",
            "type": "nominal",
            "scale": {"domain": names, "range": values},
            "legend": legend,
        }
        for channel, values in ranges.items()
    }
    encoding["stroke"] = {"value": DARK}
    height = 18 * math.ceil(len(names) / columns)
    return {**_NOTHING, "height": height, "encoding": encoding}


def _text(text: str, left: float, ink: str) -> Spec:
    """Return lines below the panels, which begin that far left of them."""
    lines = textwrap.wrap(text, 155, max_lines=4, placeholder=" …", break_on_hyphens=False)
    style = {"fontSize": 11, "fontWeight": "normal", "color": ink, "dx": -left, "offset": 0}
    return {**_NOTHING, "title": {"text": lines, **style}}


#: A view without data, which only has a legend or a title.
_NOTHING: Spec = {"data": {"values": []}, "mark": "point", "width": 1, "height": 1}


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
