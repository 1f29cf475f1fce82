"""The figure of a kind of data: ratio on x, rate on y, the front as a staircase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.figures import log_ticks
from pffbench_analysis.framing import Words, page
from pffbench_analysis.pareto.advice import front_of, headline, ranks_of
from pffbench_analysis.pareto.front import FrontPosition, FrontStanding
from pffbench_analysis.pareto.points import (
    DIRECTIONS,
    CompressionPoint,
    DataKind,
    Direction,
    family,
    mark_of,
)
from pffbench_analysis.style import INK, PALE_INK, RC, colour, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIB = 2**20
#: One mark per codec, as many as in `compression.js`; those on the front are named.
_MARKS = ("P", "^", "s", "o", "D", "v", "<", ">", "X", "h")
_HEIGHT = 3.4
#: Margins of an axis beyond its data, as a part of its length; the wider one on the right has
#: room for names.
_ROOM, _ROOM_FOR_NAMES = 0.08, 0.42
#: Offset between backends at the same ratio, as a part of the axis.
_ASIDE = 0.013
_LINE = 8.0
#: Range of ratios above which the axis is logarithmic.
_LARGE_RANGE = 30.0


def draw_kind(kind: DataKind, summary: Summary) -> Figure:
    """Draw a panel for writing and one for reading, whose ``gid`` is the direction."""
    codecs = list(dict.fromkeys(family(point.codec) for point in kind.points))
    marks = {name: _MARKS[mark_of(name, len(_MARKS))] for name in codecs}
    shown = [d for d in DIRECTIONS if any(point.speed(d) for point in kind.points)]
    words = Words(
        title=f"{kind.name}, {ranks_of(kind)}",
        notes=[
            plain(headline(kind, summary).replace("**", "")),
            "Line: the front of the medians; right of and above it there is nothing. Filled: on "
            "it. Hollow: not told apart from it. Pale: shown to be off it. Whiskers: 95 % interval "
            "of the median. Rates are of the bytes of the arrays, from creating until durable and "
            "from opening to closing. †: below resolution.",
        ],
        footnote=footnote(summary),
        stamp=stamp(summary),
    )
    with mpl.rc_context(RC):
        figure = page("Compression against speed (more of both is better)", words, _HEIGHT)
        columns = max(1, len(shown))
        grid = figure.subplots(
            1, columns + 1, squeeze=False, width_ratios=[1.0] * columns + [0.22 * columns]
        )
        for ax, direction in zip(grid[0], shown, strict=False):
            _panel(ax, kind, direction, marks)
        _legend(grid[0, -1], kind, marks)
    return figure


def _panel(ax: Axes, kind: DataKind, direction: Direction, marks: dict[str, str]) -> None:
    ax.set_gid(direction)
    ax.set_title(direction, loc="left", fontsize=8.5, fontweight="bold", pad=4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#E2E2E2", linewidth=0.6)
    ax.set_axisbelow(True)
    placed = [one for one in front_of(kind, direction) if one[0].speed(direction)]
    _axes(ax, placed, direction)
    _staircase(ax, placed, direction)
    backends = list(dict.fromkeys(point.backend for point in kind.points))
    for point, own in placed:
        aside = _ASIDE * (backends.index(point.backend) - (len(backends) - 1) / 2)
        _mark(ax, _moved(ax, point.shown_ratio, aside), point, own, direction,
              marks[family(point.codec)])  # fmt: skip
    _names(ax, [point for point, own in placed if own.standing.on_front], direction)


def _moved(ax: Axes, ratio: float, by: float) -> float:
    """Return a ratio shifted by a part of the axis."""
    low, high = ax.get_xlim()
    logarithmic = ax.get_xscale() == "log"
    return ratio * (high / low) ** by if logarithmic else ratio + by * (high - low)


def _rate(point: CompressionPoint, direction: Direction) -> tuple[float, float, float]:
    speed = point.speed(direction)
    rate = None if speed is None else speed.rate()
    return (math.nan,) * 3 if rate is None else (rate[0] / _MIB, rate[1] / _MIB, rate[2] / _MIB)


def _axes(
    ax: Axes, placed: Sequence[tuple[CompressionPoint, FrontPosition]], direction: Direction
) -> None:
    ratios = [point.shown_ratio for point, _ in placed]
    rates = [v for point, _ in placed for v in _rate(point, direction) if v > 0]
    wide = max(ratios) > _LARGE_RANGE * min(ratios)
    ax.set_yscale("log")
    low, high = _stretched(min(rates), max(rates))
    ax.set_ylim(low, high)
    ax.yaxis.set_major_locator(FixedLocator(log_ticks(low, high, 7)))
    if wide:
        ax.set_xscale("log")
        low, high = min(ratios), max(ratios)
        low, high = low / (high / low) ** _ROOM, high * (high / low) ** _ROOM_FOR_NAMES
        ax.set_xlim(low, high)
        ax.xaxis.set_major_locator(FixedLocator(log_ticks(low, high, 6)))
    else:
        span = max(ratios) - min(ratios) or 1.0
        ax.set_xlim(min(ratios) - _ROOM * span, max(ratios) + _ROOM_FOR_NAMES * span)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlabel("compression ratio" + (", logarithmic" if wide else ""), fontsize=8)
    ax.set_ylabel("MiB/s of all ranks, logarithmic", fontsize=8)


def _stretched(low: float, high: float) -> tuple[float, float]:
    factor = (high / low) ** _ROOM * 1.06
    return low / factor, high * factor


def _staircase(
    ax: Axes, placed: Sequence[tuple[CompressionPoint, FrontPosition]], direction: Direction
) -> None:
    """Draw the front as a staircase up to the edges of the panel."""
    corners = sorted(
        {
            (point.shown_ratio, _rate(point, direction)[0])
            for point, own in placed
            if own.standing.on_front
        }
    )
    (left, _), (bottom, _) = ax.get_xlim(), ax.get_ylim()
    steps = [(left, corners[0][1]), *corners, (corners[-1][0], bottom)]
    ax.step(
        [x for x, _ in steps], [y for _, y in steps], where="pre", color=PALE_INK, linewidth=1.1,
        zorder=2, gid="front",
    )  # fmt: skip


def _mark(
    ax: Axes,
    at: float,
    point: CompressionPoint,
    own: FrontPosition,
    direction: Direction,
    mark: str,
) -> None:
    tint = colour(point.backend)
    alpha = 0.4 if own.standing is FrontStanding.OFF else 1.0
    value, low, high = _rate(point, direction)
    if not math.isnan(low):
        reach = [[max(0.0, value - low)], [max(0.0, high - value)]]
        ax.errorbar(at, value, yerr=reach, fmt="none", ecolor=tint, elinewidth=1.0, capsize=1.8,
                    alpha=alpha, zorder=3)  # fmt: skip
    filled = own.standing.on_front
    ax.plot(
        at, value, mark, markersize=6, color=tint, label=point.name, alpha=alpha,
        markerfacecolor=tint if filled else "white", markeredgecolor=INK if filled else tint,
        markeredgewidth=0.7 if filled else 1.4, zorder=5 if filled else 4,
        gid=own.standing.value,
    )  # fmt: skip


def _names(ax: Axes, front: Sequence[CompressionPoint], direction: Direction) -> None:
    """Label the codecs of the front above it, without overlap."""
    low, high = ax.get_ylim()
    height = 72 * _HEIGHT * 0.85
    lowest = -math.inf
    for point in sorted(front, key=lambda p: _rate(p, direction)[0]):
        value = _rate(point, direction)[0]
        place = height * math.log(value / low) / math.log(high / low)
        lowest = max(place + 4, lowest + _LINE)
        speed = point.speed(direction)
        text = plain(point.codec) + "†" * (speed is not None and speed.below_resolution)
        ax.annotate(text, (point.shown_ratio, value), xytext=(8, lowest - place),
                    textcoords="offset points", fontsize=6.6, color=INK, zorder=6)  # fmt: skip


def _legend(ax: Axes, kind: DataKind, marks: dict[str, str]) -> None:
    ax.set_axis_off()
    backends = list(dict.fromkeys(point.backend for point in kind.points))
    handles = [
        Line2D([], [], marker="s", linestyle="none", color=colour(name), label=plain(name))
        for name in backends
    ]
    handles += [
        Line2D([], [], marker=mark, linestyle="none", color=INK, markerfacecolor="white",
               label=plain(name))
        for name, mark in marks.items()
    ]  # fmt: skip
    ax.legend(handles=handles, loc="upper left", frameon=False, fontsize=7.5,
              borderaxespad=0, handletextpad=0.4)  # fmt: skip
