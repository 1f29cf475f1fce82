"""Draws a chart with matplotlib's objects: no window, no global state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from pffbench_analysis.charts import Bar, Chart, Panel
from pffbench_analysis.framing import Words, page
from pffbench_analysis.style import INK, RC, colour, hatch, pale, plain, short
from pffbench_analysis.thinning import dots_each, kept

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PITCH = 0.19
#: Values that lie further apart than this need a logarithmic axis.
LARGE_RANGE = 30.0
#: Height of a bar as a part of the room that it has.
_THICKNESS = 0.74


def draw(chart: Chart, words: Words) -> Figure:
    """Draw a chart; every axes of the figure is a panel and carries its phase as ``gid``."""
    with mpl.rc_context(RC):
        columns = _columns(len(chart.panels))
        rows = math.ceil(len(chart.panels) / columns)
        places = bar_places(chart)
        panel_height = _PITCH * (places[-1] + 1.6) + 0.3
        figure = page(chart.heading, words, rows * panel_height + 0.45)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
        axes = list(grid)
        for panel, ax in zip(chart.panels, axes, strict=False):
            _draw_panel(ax, panel, chart, places)
        for ax in axes[len(chart.panels) :]:
            ax.set_visible(False)
        _scale(chart, axes, columns)
    return figure


def _columns(panels: int) -> int:
    return min(panels, 2 if panels <= 2 else 3)


def bar_places(chart: Chart) -> list[float]:
    """Return where each case stands, from the top; another backend begins after a gap."""
    names = [_backend_at(chart, i) for i in range(len(chart.labels))]
    gaps = np.cumsum([0.0] + [0.35 * (a != b) for a, b in pairwise(names)])
    return [float(i + gap) for i, gap in enumerate(gaps)]


def _backend_at(chart: Chart, place: int) -> str:
    found = (panel.bars[place] for panel in chart.panels)
    return next((bar.backend for bar in found if bar is not None), "")


def _draw_panel(ax: Axes, panel: Panel, chart: Chart, places: Sequence[float]) -> None:
    ax.set_gid(panel.heading)
    ax.set_title(panel.heading, loc="left", fontsize=8.5, fontweight="bold", pad=4)
    ax.set_yticks(list(places), [plain(label) for label in chart.labels])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="#E2E2E2", linewidth=0.6)
    ax.set_axisbelow(True)
    there = [(bar, place) for bar, place in zip(panel.bars, places, strict=True) if bar is not None]
    sure = [(bar, place) for bar, place in there if not math.isnan(bar.low)]
    _draw_bars(ax, sure)
    _draw_whiskers(ax, sure)
    _draw_dots(ax, sure, dots_each(sum(len(panel.drawn) for panel in chart.panels)))
    for lone in there:
        if lone not in sure:
            _draw_ring(ax, *lone)
    for bar, place in zip(panel.bars, places, strict=True):
        _say(ax, place, "–" if bar is None else short(bar.value) + "†" * bar.below_resolution)
    raw = [point for bar in panel.drawn if bar.roofline for point in bar.points]
    if chart.roofline and raw:
        best = max(raw) if chart.more_is_better else min(raw)
        line = ax.axvline(best, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2.5)
        line.set_gid("roofline")


#: Bars and where they stand. One call draws all of a panel: hundreds would take seconds.
Placed = Sequence[tuple[Bar, float]]


def _draw_bars(ax: Axes, placed: Placed) -> None:
    bars = [bar for bar, _ in placed]
    weak = [bar.settings == "defaults" and not bar.raw for bar in bars]
    own = [colour(bar.backend) for bar in bars]
    ax.barh(
        [place for _, place in placed],
        [bar.value for bar in bars],
        height=_THICKNESS,
        color=[pale(c) if w else c for c, w in zip(own, weak, strict=True)],
        edgecolor=INK,
        linewidth=0.5,
        hatch=[hatch(bar.transfer) for bar in bars],
        label=[bar.label for bar in bars],
        zorder=2,
    )


def _draw_whiskers(ax: Axes, placed: Placed) -> None:
    if not placed:
        return
    ax.errorbar(
        [bar.value for bar, _ in placed],
        [place for _, place in placed],
        xerr=np.transpose([(bar.value - bar.low, bar.high - bar.value) for bar, _ in placed]),
        ecolor="black",
        elinewidth=1.1,
        capsize=2.5,
        capthick=1.1,
        fmt="none",
        zorder=4,
    )


def _draw_ring(ax: Axes, bar: Bar, place: float) -> None:
    """Draw the one repetition that there is: a bar would look as sure as one with an interval."""
    ax.plot(
        bar.value, place, "o", markersize=6.5, markerfacecolor="white",
        markeredgecolor=colour(bar.backend), markeredgewidth=1.6, zorder=3, gid="ring",
        label=bar.label,
    )  # fmt: skip


def _draw_dots(ax: Axes, placed: Placed, most: int) -> None:
    """Draw at most so many repetitions of each bar, the first one uppermost."""
    if not placed:
        return
    across, down = [], []
    for bar, place in placed:
        points = [bar.points[i] for i in kept(bar.points, most)]
        across.append(np.array(points))
        spread = np.linspace(-0.24, 0.24, len(points)) if len(points) > 1 else np.zeros(1)
        down.append(place + spread)
    ax.plot(
        np.concatenate(across),
        np.concatenate(down),
        linestyle="none",
        marker="o",
        markersize=2.9,
        markerfacecolor="white",
        markeredgecolor="black",
        markeredgewidth=0.5,
        zorder=3,
    )


def _say(ax: Axes, place: float, text: str) -> None:
    """Write a bar's value in the margin on the right."""
    right = ax.get_yaxis_transform() + ScaledTranslation(3 / 72, 0, ax.figure.dpi_scale_trans)
    ax.text(1.0, place, text, transform=right, va="center", fontsize=7, color=INK)


def _scale(chart: Chart, axes: Sequence[Axes], columns: int) -> None:
    """Give all panels one axis of values, a logarithmic one where the range demands it."""
    bars = [bar for panel in chart.panels for bar in panel.drawn]
    medians = [bar.value for bar in bars if bar.value > 0]
    marks = [v for b in bars for v in (b.value, b.low, b.high, *b.points) if v > 0]
    logarithmic = bool(medians) and max(medians) > LARGE_RANGE * min(medians)
    high = max(marks, default=1.0)
    for ax in axes:
        if logarithmic:
            ax.set_xscale("log", nonpositive="clip")
    shared = axes[0]  # the axis is shared: what is set on one holds for all
    if logarithmic:
        low = min(marks) / 1.8
        shared.set_xlim(low, high * 1.25)
        shared.xaxis.set_major_locator(FixedLocator(log_ticks(low, high * 1.25, 5)))
        shared.xaxis.set_minor_locator(NullLocator())
    else:
        shared.set_xlim(0, high * 1.05)
        shared.xaxis.set_major_locator(MaxNLocator(5))
    shared.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    note = ", logarithmic axis" if logarithmic else ""
    for i, ax in enumerate(axes[: len(chart.panels)]):
        if i + columns >= len(chart.panels):
            ax.set_xlabel(f"{chart.unit}{note}", fontsize=8)
            ax.tick_params(axis="x", labelbottom=True)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between two bounds: 1-2-5, 1-3, decades or fewer, to fit."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**e for e in exponents for f in factors if low <= f * 10.0**e <= high]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]
