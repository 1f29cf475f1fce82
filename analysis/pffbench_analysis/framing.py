"""A figure with text above and below, and room for axes between."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pffbench_analysis.style import ALARM, INK, PALE_INK, plain

#: Inches; with 100 dots per inch the figure is as wide as a README shows it.
WIDTH = 9.0
_LINE = 0.155
_MARGIN = 0.08


@dataclass(frozen=True)
class Words:
    """The text of a figure.

    Parameters
    ----------
    title : str
        Subject of the comparison.
    notes : list of str
        Reading notes, below the axes.
    alarms : list of str
        Problems of the run, below the notes in another colour.
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


def page(heading: str, words: Words, body: float) -> Figure:
    """Create a figure with its text and room for axes.

    Parameters
    ----------
    heading : str
        The first line.
    words : Words
        The rest of the text.
    body : float
        Inches of height for the axes.
    """
    top, bottom = _lines_above(heading, words), _lines_below(words)
    above = _MARGIN + sum(_LINE * size / 8 for _, size in top)
    below = _MARGIN + _LINE * len(bottom)
    height = above + below + body
    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    figure.set_layout_engine(
        "constrained", rect=(0, below / height, 1, body / height), h_pad=0.04, w_pad=0.05
    )
    _write(figure, top, bottom, height, words)
    return figure


Line = tuple[str, float]


def _lines_above(heading: str, words: Words) -> list[Line]:
    wrapped = textwrap.wrap(plain(words.title), 122) or [""]
    return [(heading, 11.0), *((line, 8.5) for line in wrapped)]


def _lines_below(words: Words) -> list[tuple[str, str]]:
    texts = [(text, ALARM) for text in words.alarms]
    texts += [(text, INK) for text in words.notes]
    texts += [(words.footnote, PALE_INK)] if words.footnote else []
    return [
        (line, ink)
        for text, ink in texts
        for line in textwrap.wrap(
            plain(text), 162, max_lines=4, placeholder=" …", break_on_hyphens=False
        )
    ]


def _write(
    figure: Figure,
    top: Sequence[Line],
    bottom: Sequence[tuple[str, str]],
    height: float,
    words: Words,
) -> None:
    left = 0.09 / WIDTH
    y = height - _MARGIN
    for text, size in top:
        weight = "bold" if size > 10 else "normal"
        figure.text(left, y / height, text, fontsize=size, fontweight=weight, va="top")
        y -= _LINE * size / 8
    y = _LINE * len(bottom)
    for text, ink in bottom:
        figure.text(left, y / height, text, fontsize=7.2, color=ink, va="top")
        y -= _LINE
    if words.stamp:
        figure.text(
            0.5,
            0.5,
            words.stamp,
            fontsize=64,
            fontweight="bold",
            color=ALARM,
            alpha=0.35,
            rotation=20,
            ha="center",
            va="center",
            zorder=10,
            gid="stamp",
        )
