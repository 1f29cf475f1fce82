"""The figure of the answer of a run: ratios with intervals, a panel per total."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from pffbench.summary.conclusions import interval, number
from pffbench_analysis.answer import AnswerPanel, AnswerRow
from pffbench_analysis.figures import prepare_rows, say, show_ticks
from pffbench_analysis.framing import Words, page
from pffbench_analysis.style import INK, RC, colour, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PITCH = 0.21
#: Markers by standing.
_MARKERS = {"fastest": "D", "ahead": "D", "slower": "o", "equal": "s", "undecided": "o"}


def draw_answer(panels: Sequence[AnswerPanel], margin: float, words: Words) -> Figure:
    """Draw the answer; each axes is a panel, with its total as ``gid``.

    Parameters
    ----------
    panels : sequence of AnswerPanel
        One or more.
    margin : float
        Half-width, as a part, of the band in which contenders count as equally fast.
    words : Words
        Text around the panels.
    """
    rows = {row.key: row for panel in panels for row in panel.rows}
    places = _places(rows.values())
    bounds = _bounds(panels, margin)
    with mpl.rc_context(RC):
        lines = math.ceil(len(panels) / 2)
        height = _PITCH * (max(places.values()) + 1.6) + 0.3
        figure = page("How many times as long as the fastest", words, lines * height + 0.5)
        grid = figure.subplots(lines, min(2, len(panels)), sharex=True, sharey=True, squeeze=False)
        for panel, ax in zip(panels, grid.flat, strict=False):
            prepare_rows(ax, panel.heading, [rows[k].name for k in places], [*places.values()])
            _draw_panel(ax, panel, places, margin, bounds)
            _name_comparisons(ax, rows, places)
        for ax in grid.flat[len(panels) :]:
            ax.set_visible(False)
        grid.flat[0].set_xscale("log")
        show_ticks(grid.flat[0], *bounds, 6)
        for ax in grid.flat[max(0, len(panels) - 2) : len(panels)]:
            ax.set_xlabel("time over the smallest median, logarithmic axis", fontsize=8)
            ax.tick_params(axis="x", labelbottom=True)
    return figure


def _places(rows: Iterable[AnswerRow]) -> dict[tuple[int, str], float]:
    """Return the row of each contender, from the top; named comparisons have a line above."""
    places: dict[tuple[int, str], float] = {}
    at, before = 0.0, -1
    for row in sorted({row.key: row for row in rows}.values(), key=lambda row: row.key):
        if row.key[0] != before:
            at += (1.0 if row.comparison else 0.0) + (0.3 if places else 0.0)
            before = row.key[0]
        places[row.key] = at
        at += 1
    return places


def _bounds(panels: Sequence[AnswerPanel], margin: float) -> tuple[float, float]:
    """Return the ends of the axis, which hold the band and all finite values."""
    ratios = [row.ratio for panel in panels for row in panel.rows]
    values = [v for r in ratios for v in (r.low, r.value, r.high) if 0 < v < math.inf]
    low, high = min(*values, 1 / (1 + margin)), max(*values, 1 + margin)
    room = (high / low) ** 0.06
    return low / room, high * room


def _draw_panel(
    ax: Axes,
    panel: AnswerPanel,
    places: Mapping[tuple[int, str], float],
    margin: float,
    bounds: tuple[float, float],
) -> None:
    ax.set_gid(panel.total)
    ax.axvspan(1 / (1 + margin), 1 + margin, color="#E6E6E6", linewidth=0, zorder=0, gid="band")
    ax.axvline(1, color=INK, linewidth=0.8, zorder=1, gid="one")
    there = [(row, places[row.key]) for row in panel.rows]
    _draw_intervals(ax, there, bounds)
    for row, place in there:
        if math.isfinite(row.ratio.value):
            _draw_mark(ax, row, place)
        say(ax, place, _value(row))


def _name_comparisons(
    ax: Axes, rows: Mapping[tuple[int, str], AnswerRow], places: Mapping[tuple[int, str], float]
) -> None:
    first: dict[int, tuple[int, str]] = {}
    for key in places:
        first.setdefault(key[0], key)
    for key in first.values():
        ax.text(
            0.01, places[key] - 0.9, rows[key].comparison, transform=ax.get_yaxis_transform(),
            fontsize=7.2, fontweight="bold", va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip


def _draw_intervals(
    ax: Axes, placed: Sequence[tuple[AnswerRow, float]], bounds: tuple[float, float]
) -> None:
    """Draw intervals with caps; one without a bound ends with an arrow at the end of the axis."""
    found = [(row.ratio, place) for row, place in placed if not row.is_first]
    if not found:
        return
    ends = [(max(r.low, bounds[0]), min(r.high, bounds[1]), place) for r, place in found]
    lows, highs, at = zip(*ends, strict=True)
    ax.hlines(at, lows, highs, colors=INK, linewidths=1.2, zorder=3, gid="intervals")
    for marker, edge, values in (("<", bounds[0], lows), (">", bounds[1], highs)):
        for value, place in zip(values, at, strict=True):
            goes_on = value == edge
            ax.plot(
                value, place, marker=marker if goes_on else "|", markersize=4.5 if goes_on else 6,
                color=INK, markeredgewidth=1.1, zorder=3, clip_on=not goes_on,
            )  # fmt: skip


def _draw_mark(ax: Axes, row: AnswerRow, place: float) -> None:
    own = colour(row.backend)
    is_open = row.standing in ("ahead", "undecided")
    ax.scatter(
        [row.ratio.value], [place], s=36, marker=_MARKERS[row.standing],
        color="white" if is_open else own, edgecolors=own if is_open else INK,
        linewidths=1.6 if is_open else 0.7, zorder=4, gid=row.standing, label=row.name,
    )  # fmt: skip


def _value(row: AnswerRow) -> str:
    if not row.is_first:
        return f"{number(row.ratio.value)} ({interval(row.ratio)})"
    long = row.seconds >= 1
    seconds = f"{short(row.seconds)} s" if long else f"{short(1e3 * row.seconds)} ms"
    return f"{'fastest' if row.standing == 'fastest' else 'ahead'}, {seconds}"
