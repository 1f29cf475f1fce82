"""The figure of published and measured numbers over one parameter."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.figures import log_ticks
from pffbench_analysis.framing import Words, page
from pffbench_analysis.published.counterparts import Study
from pffbench_analysis.published.curves import (
    Curves,
    PublishedCurve,
    PublishedPanel,
    PublishedPoint,
)
from pffbench_analysis.style import INK, PALE_INK, RC, colour, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL_HEIGHT, _LEGEND_HEIGHT = 1.75, 0.28
#: Number of panels side by side where each row has one.
_COLUMNS = 3
#: For alternatives of one backend: the first has the backend's colour.
_MORE_COLOURS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#0072B2", "#E69F00")
_NOTE = (
    "Hollow and dashed: published, with the standard deviation where it is told. Filled: median "
    "here and its 95 % bootstrap interval. Axes of numbers are logarithmic."
)
#: A vertical axis that spans less than this factor has ticks at equal distances.
_NARROW = 5.0
#: Characters of a line above a panel, by the number of columns.
_ROW_NAME = {1: 130, 2: 64, 3: 42}


def draw_curves(curves: Curves, study: Study, summary: Summary) -> Figure:
    """Draw a row of panels for each subject, a line for each alternative.

    Parameters
    ----------
    curves : Curves
        Data of the figure.
    study : Study
        The study, for the title.
    summary : Summary
        The run, for the line that names it.
    """
    quantities = list(dict.fromkeys(panel.quantity for panel in curves.panels))
    alone = len(quantities) == 1
    columns = min(_COLUMNS, len(curves.panels)) if alone else len(quantities)
    rows = math.ceil(len(curves.panels) / columns)
    colours = _colours([curve for panel in curves.panels for curve in panel.curves])
    with mpl.rc_context(RC):
        body = rows * _PANEL_HEIGHT + 0.35 + _LEGEND_HEIGHT
        figure = page(curves.heading, _words(curves, study, summary), body)
        grid = figure.subplots(rows, columns, sharex=True, sharey=alone, squeeze=False)
        axes = list(grid.flat)
        for panel, ax in zip(curves.panels, axes, strict=False):
            ax.set_gid(f"{panel.row}: {panel.quantity}")
            if alone or panel.quantity == quantities[0]:
                room = _ROW_NAME[columns if alone else 1]
                text = textwrap.fill(plain(panel.row), room)
                ax.set_title(text, loc="left", fontsize=7.5, fontweight="bold", pad=4)
            if not alone:
                ax.set_ylabel(plain(panel.quantity), fontsize=7.5)
            for curve in panel.curves:
                _draw(ax, curve, colours[curve.alternative])
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(color="#E2E2E2", linewidth=0.6)
            ax.set_axisbelow(True)
        for ax in axes[len(curves.panels) :]:
            ax.set_visible(False)
        used = axes[: len(curves.panels)]
        _across(used, curves, columns)
        if alone:
            _upwards(used, curves.panels)
            for ax in grid[:, 0]:
                ax.set_ylabel(plain(quantities[0]), fontsize=7.5)
        else:
            for panel, ax in zip(curves.panels, used, strict=True):
                _upwards([ax], [panel])
        _legend(figure, colours)
    return figure


def _colours(curves: Sequence[PublishedCurve]) -> dict[str, str]:
    """Assign a colour to each alternative, its backend's where unused."""
    found: dict[str, str] = {}
    for curve in curves:
        if curve.alternative not in found:
            wanted = (colour(curve.backend), *_MORE_COLOURS, INK)
            taken = set(found.values())
            found[curve.alternative] = next((c for c in wanted if c not in taken), INK)
    return found


def _words(curves: Curves, study: Study, summary: Summary) -> Words:
    notes = [_NOTE, curves.note] if curves.note else [_NOTE]
    if curves.left_out:
        notes.append(f"Not drawn for want of room: {curves.left_out} more; see published.csv.")
    return Words(
        title=study.title,
        notes=notes,
        footnote=f"{footnote(summary)}; published: {study.url}",
        stamp=stamp(summary),
    )


def _draw(ax: Axes, curve: PublishedCurve, tint: str) -> None:
    if curve.published:
        _line(ax, curve.published, "D", linestyle="--", color=tint, markerfacecolor="white",
              linewidth=0.8, markersize=4.2, alpha=0.8, gid="published")  # fmt: skip
    _line(ax, curve.here, "o", linestyle="-", color=tint, markeredgecolor=INK, linewidth=1.2,
          markersize=4.2, markeredgewidth=0.5, gid="here")  # fmt: skip


def _line(ax: Axes, points: Sequence[PublishedPoint], mark: str, **style: object) -> None:
    at, values = [p.x for p in points], [p.y for p in points]
    ax.plot(at, values, marker=mark, label="_", **style)  # type: ignore[arg-type]
    for p in points:
        if not math.isnan(p.low):
            low = max(p.low, 0.01 * p.y)
            ax.plot([p.x, p.x], [low, p.high], color=style["color"], linewidth=0.9)


def _across(axes: Sequence[Axes], curves: Curves, columns: int) -> None:
    """Set the x axis that all panels share."""
    points = [p for panel in curves.panels for c in panel.curves for p in (*c.published, *c.here)]
    at = sorted({p.x for p in points})
    shared = axes[0]
    if curves.names:
        shared.set_xlim(-0.4, len(curves.names) - 0.6)
        ticks, texts = [float(i) for i in range(len(curves.names))], list(curves.names)
    else:
        for ax in axes:
            ax.set_xscale("log")
        shared.set_xlim(at[0] / 1.15, at[-1] * 1.15)
        ticks = _apart(at)
        texts = [f"{x:g}" for x in ticks]
    shared.xaxis.set_major_locator(FixedLocator(ticks))
    shared.xaxis.set_minor_locator(NullLocator())
    by_place = dict(zip(ticks, texts, strict=True))
    shared.xaxis.set_major_formatter(FuncFormatter(lambda x, _: by_place.get(x, f"{x:g}")))
    for number, ax in enumerate(axes):
        if number + columns >= len(axes):
            ax.set_xlabel(plain(curves.over), fontsize=7.5)
            ax.tick_params(axis="x", labelbottom=True)


def _apart(at: Sequence[float]) -> list[float]:
    """Return ticks whose labels do not overlap on a logarithmic axis."""
    reach = math.log(at[-1] / at[0]) / 7 if at[-1] > at[0] else 0.0
    kept: list[float] = []
    for x in at:
        if not kept or math.log(x / kept[-1]) >= reach:
            kept.append(x)
    return kept


def _upwards(axes: Sequence[Axes], panels: Sequence[PublishedPanel]) -> None:
    """Set the y axis that panels share."""
    points = [p for panel in panels for c in panel.curves for p in (*c.published, *c.here)]
    shown = [y for p in points for y in (p.y, p.low, p.high) if y > 0]
    if not shown:
        return
    low, high = min(shown) / 1.5, max(shown) * 1.5
    for ax in axes:
        ax.set_yscale("log")
    axes[0].set_ylim(low, high)
    ticks = log_ticks(low, high, 5)
    if high / low < _NARROW:
        ticks = [float(y) for y in MaxNLocator(4).tick_values(low, high) if low <= y <= high]
    axes[0].yaxis.set_major_locator(FixedLocator(ticks))
    axes[0].yaxis.set_minor_locator(NullLocator())
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _legend(figure: Figure, colours: Mapping[str, str]) -> None:
    """Draw the legend above the panels, which make room for it."""
    engine = figure.get_layout_engine()
    assert engine is not None
    left, bottom, width, height = engine.get()["rect"]
    top = bottom + height
    room = _LEGEND_HEIGHT / figure.get_figheight()
    engine.set(rect=(left, bottom, width, height - room))  # type: ignore[call-arg]
    handles = [
        Line2D([], [], color=tint, marker="o", markersize=4.2, markeredgecolor=INK,
               markeredgewidth=0.5, label=plain(name))
        for name, tint in colours.items()
    ]  # fmt: skip
    handles.append(
        Line2D([], [], color=PALE_INK, marker="D", markersize=4.2, linestyle="--",
               markerfacecolor="white", linewidth=0.8, label="published")
    )  # fmt: skip
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.0, top), ncols=len(handles),
        fontsize=7.5, frameon=False, borderpad=0.2,
    )  # fmt: skip
