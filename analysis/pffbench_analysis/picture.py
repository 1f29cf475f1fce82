"""Figures: panels with their text, as one SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pffbench.regular_files import replacing
from pffbench_analysis.axes import CHARACTER
from pffbench_analysis.charts import Panel
from pffbench_analysis.style import ALARM
from pffbench_analysis.svg import FONT, INK, escaped, lines_of_text, mark, rule, tag, words

_DARK, _PALE = "#222222", "#666666"
_EDGE, _GAP, _HEADING, _LEAST = 14.0, 24.0, 22.0, 640.0


class Entry(NamedTuple):
    """An entry of a legend: a colour, and the dashes of a line; a mark where it has none."""

    name: str
    colour: str
    dash: str | None = None


class Figure(NamedTuple):
    """A figure."""

    #: The first line.
    heading: str
    #: From the left, then below.
    panels: Sequence[Panel]
    #: What was measured.
    about: str = ""
    #: Above the panels.
    legend: Sequence[Entry] = ()
    #: How to read it.
    notes: Sequence[str] = ()
    #: Problems of the run.
    alarms: Sequence[str] = ()
    #: Source of the data.
    foot: str = ""
    #: Largest number of panels side by side.
    columns: int = 3

    def svg(self) -> str:
        """Return the figure as SVG, the same on every machine."""
        width = max(_LEAST, *(_width(row) for row in self._rows()))
        parts, y = [], _EDGE + 8
        for texts, style, step in (
            ([self.heading], {"font_size": 16, "font_weight": 600}, 20),
            (self._wrapped([self.about], width), {"font_size": 13}, 17),
            (self._wrapped(self.alarms, width), {"font_size": 13, "fill": ALARM}, 17),
        ):
            parts.append(lines_of_text(texts, 0, y, step, **style))
            y += step * len(texts)
        legend, high = _legend(self.legend, width)
        parts.append(_moved(legend, 0, y))
        y += high
        for row in self._rows():
            parts.append(_moved("".join(_placed(row)), 0, y))
            y += max(panel.height + _HEADING for panel in row) + 8
        small = self._wrapped([*self.notes, self.foot], width, 5.6)
        parts.append(lines_of_text(small, 0, y + 10, 15, font_size=11, fill=_PALE))
        y += 15 * len(small) + 10
        return _document("".join(parts), width, y, self.heading)

    def _rows(self) -> Iterator[list[Panel]]:
        for begin in range(0, len(self.panels), self.columns):
            yield list(self.panels[begin : begin + self.columns])

    @staticmethod
    def _wrapped(texts: Sequence[str], width: float, character: float = CHARACTER) -> list[str]:
        most = int(width / character)
        return [line for text in texts for line in textwrap.wrap(text, most)]


def panel_svg(panel: Panel) -> str:
    """Return a panel alone, without its heading, for a page."""
    inside = _moved(panel.names, 0, 0) + _moved(panel.drawing, panel.left, 0)
    return tag(
        "svg",
        tag("title", escaped(panel.heading)) + inside if panel.heading else inside,
        viewBox=f"0 -4 {panel.left + panel.width:.0f} {panel.height + 4:.0f}",
        width=f"{panel.left + panel.width:.0f}",
        role="img",
        font_family=FONT,
        font_size=12,
        fill=INK,
    )


def entry_svg(entry: Entry) -> str:
    """Return what an entry of a legend stands for, for a page."""
    return tag("svg", _sample(entry, 8), width=24, height=16, aria_hidden="true", fill=INK)


def save(figure: Figure, path: Path, *, links: bool = True) -> Path:
    """Write a figure and return its path.

    Parameters
    ----------
    figure : Figure
        What to draw.
    path : Path
        The file.
    links : bool
        Whether its directory may be a symbolic link.
    """
    with replacing(path, links=links) as file:
        file.write(figure.svg())
    return path


def _shares(row: Sequence[Panel]) -> bool:
    """Return whether only the first panel names the rows, which all have."""
    return bool(row[0].rows) and all(panel.rows == row[0].rows for panel in row)


def _width(row: Sequence[Panel]) -> float:
    left = row[0].left if _shares(row) else sum(panel.left for panel in row)
    drawn = left + sum(panel.width for panel in row) + _GAP * (len(row) - 1)
    return max(drawn, 1.1 * CHARACTER * len(row[0].heading))


def _placed(row: Sequence[Panel]) -> Iterator[str]:
    x = 0.0
    for number, panel in enumerate(row):
        if number == 0 or not _shares(row):
            yield _moved(panel.names, x, _HEADING)
            x += panel.left
        yield words(panel.heading, x, 12, font_size=13, font_weight=600)
        yield _moved(panel.drawing, x, _HEADING)
        x += panel.width + _GAP


def _legend(entries: Sequence[Entry], width: float) -> tuple[str, float]:
    """Return a legend and its height."""
    parts, x, y = [], 0.0, 8.0
    for entry in entries:
        needed = 30 + CHARACTER * len(entry.name) + 16
        if x and x + needed > width:
            x, y = 0.0, y + 18
        parts.append(_moved(_sample(entry, y), x, 0))
        parts.append(words(entry.name, x + 28, y + 4))
        x += needed
    return "".join(parts), y + 18 if entries else 4.0


def _sample(entry: Entry, y: float) -> str:
    if entry.dash is None:
        return mark("circle", 8, y, entry.colour)
    style = {"stroke": entry.colour, "stroke_dasharray": entry.dash or None}
    return rule(0, y, 22, y, stroke_width=2.0, **style)


def _moved(content: str, x: float, y: float) -> str:
    return tag("g", content, transform=f"translate({x:g},{y:g})") if content else ""


def _document(content: str, width: float, height: float, about: str) -> str:
    """Return a whole file."""
    across, down = width + 2 * _EDGE, height + _EDGE
    paper = tag("rect", x=-_EDGE, width=across, height=down, fill="white")
    return (
        tag(
            "svg",
            tag("title", escaped(about)) + paper + content,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"{-_EDGE:g} 0 {across:.0f} {down:.0f}",
            width=f"{across:.0f}",
            height=f"{down:.0f}",
            role="img",
            font_family=FONT,
            font_size=12,
            fill=_DARK,
            color=_DARK,
        )
        + "\n"
    )
