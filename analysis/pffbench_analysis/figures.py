"""Drawing of charts with matplotlib objects, without windows or global state."""

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

from pffbench_analysis.charts import CaseMedian, Chart, Panel, dots_each, kept
from pffbench_analysis.framing import Words, page
from pffbench_analysis.style import INK, RC, colour, pale, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PITCH = 0.19


def draw(chart: Chart, words: Words) -> Figure:
    """Draw a chart; each axes is a panel, with its phase as ``gid``."""
    with mpl.rc_context(RC):
        columns = _columns(len(chart.panels))
        rows = math.ceil(len(chart.panels) / columns)
        places = row_places(chart)
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


def row_places(chart: Chart) -> list[float]:
    """Return the row of each case, from the top, with a gap between backends."""
    names = [_backend_at(chart, i) for i in range(len(chart.labels))]
    gaps = np.cumsum([0.0] + [0.35 * (a != b) for a, b in pairwise(names)])
    return [float(i + gap) for i, gap in enumerate(gaps)]


def _backend_at(chart: Chart, place: int) -> str:
    found = (panel.medians[place] for panel in chart.panels)
    return next((median.backend for median in found if median is not None), "")


def _draw_panel(ax: Axes, panel: Panel, chart: Chart, places: Sequence[float]) -> None:
    prepare_rows(ax, panel.heading, [plain(label) for label in chart.labels], places)
    rows = list(zip(panel.medians, places, strict=True))
    there = [(median, place) for median, place in rows if median is not None]
    _draw_repetitions(ax, there, dots_each(sum(len(panel.drawn) for panel in chart.panels)))
    _draw_whiskers(ax, there)
    for square in (False, True):
        alike = [one for one in there if (one[0].transfer == "collective") == square]
        _draw_medians(ax, alike, "s" if square else "o")
    for median, place in rows:
        mark = "" if median is None else "†" * median.below_resolution
        say(ax, place, "–" if median is None else short(median.value) + mark)
    if panel.limit is not None:
        line = ax.axvline(panel.limit, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
        line.set_gid("roofline")


def prepare_rows(ax: Axes, heading: str, labels: Sequence[str], places: Sequence[float]) -> None:
    """Set up axes with a heading and a labelled row for each case, from the top."""
    ax.set_gid(heading)
    ax.set_title(heading, loc="left", fontsize=8.5, fontweight="bold", pad=4)
    ax.set_yticks(list(places), list(labels))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(places[-1] + 0.7, -0.7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="#E2E2E2", linewidth=0.6)
    ax.set_axisbelow(True)


#: Medians and their rows. One call draws all of a panel: hundreds would take seconds.
Placed = Sequence[tuple[CaseMedian, float]]


def _draw_medians(ax: Axes, placed: Placed, marker: str) -> None:
    """Draw medians; hollow for a single repetition, which shows no noise."""
    if not placed:
        return
    ax.scatter(
        [median.value for median, _ in placed],
        [place for _, place in placed],
        s=34,
        marker=marker,
        color=[_face(median) for median, _ in placed],
        edgecolors=[
            INK if len(median.repetitions) > 1 else colour(median.backend) for median, _ in placed
        ],
        linewidths=[0.7 if len(median.repetitions) > 1 else 1.5 for median, _ in placed],
        zorder=5,
        gid="medians",
    )


def _face(median: CaseMedian) -> str | tuple[float, float, float]:
    own = colour(median.backend)
    if len(median.repetitions) == 1:
        return "white"
    return pale(own) if median.settings == "defaults" and not median.raw else own


def _draw_whiskers(ax: Axes, placed: Placed) -> None:
    """Draw intervals with caps, and thin lines for the range where there is no interval."""
    sure = [(median, place) for median, place in placed if median.has_interval]
    if sure:
        drawn = ax.errorbar(
            [median.value for median, _ in sure],
            [place for _, place in sure],
            xerr=np.transpose([(e.value - e.low, e.high - e.value) for e, _ in sure]),
            ecolor=INK,
            elinewidth=1.2,
            capsize=3,
            capthick=1.2,
            fmt="none",
            zorder=4,
        )
        drawn[2][0].set_gid("intervals")
    few = [(e, place) for e, place in placed if not e.has_interval and len(e.repetitions) > 1]
    if few:
        ax.hlines(
            [place for _, place in few],
            [median.low for median, _ in few],
            [median.high for median, _ in few],
            colors=INK,
            linewidths=0.7,
            zorder=4,
            gid="ranges",
        )


def _draw_repetitions(ax: Axes, placed: Placed, most: int) -> None:
    """Draw at most a given number of repetitions of each median, the first one uppermost."""
    several = [(median, place) for median, place in placed if len(median.repetitions) > 1]
    if not several:
        return
    across, down, faces = [], [], []
    for median, place in several:
        points = [median.repetitions[i] for i in kept(median.repetitions, most)]
        across.append(np.array(points))
        down.append(place + np.linspace(-0.3, 0.3, len(points)))
        faces += [colour(median.backend)] * len(points)
    ax.scatter(
        np.concatenate(across),
        np.concatenate(down),
        s=5,
        color=faces,
        alpha=0.6,
        linewidths=0,
        zorder=3,
        gid="repetitions",
    )


def say(ax: Axes, place: float, text: str) -> None:
    """Write the value of a row in the margin on the right."""
    right = ax.get_yaxis_transform() + ScaledTranslation(3 / 72, 0, ax.figure.dpi_scale_trans)
    ax.text(1.0, place, text, transform=right, va="center", fontsize=7, color=INK)


def _scale(chart: Chart, axes: Sequence[Axes], columns: int) -> None:
    """Give all panels one logarithmic axis of values."""
    drawn = [median for panel in chart.panels for median in panel.drawn]
    limits = [panel.limit for panel in chart.panels if panel.limit is not None]
    values = [v for e in drawn for v in (e.value, e.low, e.high, *e.repetitions)]
    marks = [v for v in (*values, *limits) if 0 < v < math.inf]
    shared = axes[0]  # the axis is shared: a setting of one holds for all
    if marks:
        for ax in axes:
            ax.set_xscale("log", nonpositive="clip")
        low, high = min(marks), max(marks)
        room = max((high / low) ** 0.04, 1.04)
        show_ticks(shared, low / room, high * room, 5)
    else:  # a clock that moves in steps longer than every phase
        shared.set_xlim(0, 1)
        shared.xaxis.set_major_locator(MaxNLocator(5))
    for i, ax in enumerate(axes[: len(chart.panels)]):
        if i + columns >= len(chart.panels):
            ax.set_xlabel(f"{chart.unit}, logarithmic axis" if marks else chart.unit, fontsize=8)
            ax.tick_params(axis="x", labelbottom=True)


def show_ticks(ax: Axes, low: float, high: float, most: int) -> None:
    """Bound the logarithmic axis of values and mark round numbers on it."""
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(FixedLocator(log_ticks(low, high, most)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between two bounds, to fit.

    They are 1-2-5, 1-3, decades or fewer; multiples of one step where the bounds are too close to
    have three of these between them.
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**e for e in exponents for f in factors if low <= f * 10.0**e <= high]
        if len(ticks) <= most:
            break
    ticks = ticks[:: math.ceil(len(ticks) / most) or 1]
    return ticks if len(ticks) > 2 or low >= high else _steps(low, high, most)


def _steps(low: float, high: float, most: int) -> list[float]:
    """Return the multiples of the smallest round step that are few enough."""
    exponent = math.floor(math.log10(high - low)) - 1
    for step in (f * 10.0**e for e in range(exponent, exponent + 3) for f in (1, 2, 5)):
        numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
        if len(numbers) <= most:
            break
    return [n * step for n in numbers]
