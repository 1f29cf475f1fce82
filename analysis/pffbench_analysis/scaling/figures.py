"""Figures of a scaling series: rate and efficiency over ranks or nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from pffbench.summary.statistics import FEWEST_FOR_INTERVAL
from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote
from pffbench_analysis.charts import label, place
from pffbench_analysis.derived_files import slug
from pffbench_analysis.figures import log_ticks
from pffbench_analysis.framing import Words, page
from pffbench_analysis.scaling.bootstrap import WIDE, Prediction
from pffbench_analysis.scaling.points import PHASES, Estimate
from pffbench_analysis.scaling.sentences import case_name, phase_name, work
from pffbench_analysis.scaling.series import Series
from pffbench_analysis.scaling.study import Fitted, groups
from pffbench_analysis.style import INK, PALE_INK, RC, colour, pale, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Tint: TypeAlias = str | tuple[float, float, float]
_MIB = 2**20
#: Marks distinguish the cases that share a colour.
_MARKS = ("o", "s", "^", "v", "D", "P", "X", "<", ">", "h")
_PANEL_HEIGHT = 2.5
_EFFICIENCY_HEIGHT = 1.55
_SAMPLES = 64
#: Offset between cases, as a part of an octave, so that their intervals stay visible.
_ASIDE = 0.06
#: Offset of the prediction to the right of the measured points.
_BESIDE = 0.2


def figures(series: Series, fitted: Sequence[Fitted]) -> Iterator[tuple[str, Figure]]:
    """Draw and name a figure for each comparison and phase with two or more sizes."""
    found = groups(fitted)
    stems = _stems(found)
    for group, members in found.items():
        for phase in PHASES:
            these = [one for one in members if one.curve.phase == phase and one.curve.kind]
            if these:
                yield f"{stems[group]}-{phase}", draw(series, these)


def _stems(found: dict[str, list[Fitted]]) -> dict[str, str]:
    """Name the files of each comparison: workload and layout, numbered where these are equal."""
    stems: dict[str, str] = {}
    for group, members in found.items():
        s = members[0].curve.case.sample
        stem = slug(f"{s.workload}-{s.layout}")
        count = sum(other == stem or other.startswith(f"{stem}-") for other in stems.values())
        stems[group] = f"{stem}-{count + 1}" if count else stem
    return stems


def draw(series: Series, fitted: Sequence[Fitted]) -> Figure:
    """Draw one comparison in one phase.

    Each transfer has a column: the rate above (``gid`` ``rate-TRANSFER``), the efficiency below
    (``efficiency-TRANSFER``).
    """
    ordered = sorted(fitted, key=lambda one: place(one.curve.case))
    transfers = sorted({one.curve.case.sample.transfer for one in ordered}, reverse=True)
    marks = _marks(ordered)
    with mpl.rc_context(RC):
        figure = page(
            f"{phase_name(ordered[0].curve.phase).capitalize()}: rate and efficiency over "
            f"{series.over}",
            figure_words(series, ordered),
            _PANEL_HEIGHT + _EFFICIENCY_HEIGHT + 0.55,
        )
        grid = figure.subplots(
            2,
            len(transfers) + 1,
            squeeze=False,
            sharex="col",
            sharey="row",
            width_ratios=[1.0] * len(transfers) + [0.27 * len(transfers)],
            height_ratios=[_PANEL_HEIGHT, _EFFICIENCY_HEIGHT],
        )
        for column, transfer in enumerate(transfers):
            these = [one for one in ordered if one.curve.case.sample.transfer == transfer]
            rate, efficiency = grid[0, column], grid[1, column]
            rate.set_gid(f"rate-{transfer}")
            efficiency.set_gid(f"efficiency-{transfer}")
            rate.set_title(transfer, loc="left", fontsize=8.5, fontweight="bold", pad=4)
            for number, one in enumerate(these):
                aside = 2 ** (_ASIDE * (number - (len(these) - 1) / 2))
                _draw_rate(rate, one, marks[id(one)], aside)
                _draw_efficiency(efficiency, one, marks[id(one)], aside)
            efficiency.axhline(100, color=PALE_INK, linewidth=0.8, linestyle=":", gid="ideal")
            _sizes(efficiency, ordered, series.over)
        _rates(list(grid[0, :-1]), ordered)
        grid[1, 0].set_ylabel("efficiency, %")
        grid[1, 0].set_ylim(bottom=0)
        for ax in grid[:, :-1].flat:
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(color="#E2E2E2", linewidth=0.6)
            ax.set_axisbelow(True)
        for ax in grid[:, -1]:
            ax.set_axis_off()
        _legend(grid[0, -1], ordered, marks)
    return figure


def _marks(fitted: Sequence[Fitted]) -> dict[int, str]:
    """Assign different marks to cases of one backend, the same for both transfers."""
    found: dict[str, list[tuple[str, str]]] = {}
    marks = {}
    for one in fitted:
        s = one.curve.case.sample
        known = found.setdefault(s.backend, [])
        key = (s.settings, one.curve.case.variant)
        if key not in known:
            known.append(key)
        marks[id(one)] = _MARKS[known.index(key) % len(_MARKS)]
    return marks


def _tint(one: Fitted) -> Tint:
    """Return the colour of a case: its backend's, pale for a library's defaults."""
    case = one.curve.case
    own = colour(case.sample.backend)
    return pale(own) if case.sample.settings == "defaults" and not case.raw else own


def _draw_rate(ax: Axes, one: Fitted, mark: str, aside: float) -> None:
    curve, tint = one.curve, _tint(one)
    sizes, rates = curve.sizes, [point.rate for point in curve.points]
    _points(ax, sizes, [_scaled(r, 1 / _MIB) for r in rates], one, mark, aside)
    ends = np.array([sizes[0], sizes[-1]], dtype=np.float64)
    ideal = rates[0].value / _MIB * ends / ends[0]
    ax.plot(ends, ideal, color=tint, linewidth=0.8, linestyle=":", gid="ideal", zorder=1.5)
    fit = one.fits.chosen
    if fit is None:
        ax.plot(sizes, [r.value / _MIB for r in rates], color=tint, linewidth=0.6, zorder=2)
        return
    for low, high, style in _stretches(sizes, _told(fit.predictions)):
        at = np.geomspace(low, high, _SAMPLES)
        ax.plot(at, fit.rate(at) / _MIB, color=tint, linewidth=1.2, linestyle=style, gid="fit")
    for found in _told(fit.held_out):
        _predicted(ax, found, tint, "x", aside * 2**_BESIDE)
    for found in _told(fit.predictions):
        _predicted(ax, found, tint, "D", aside)


def _told(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Return the predictions to draw."""
    return [prediction for prediction in predictions if not prediction.useless]


def _stretches(
    sizes: Sequence[int], predictions: Sequence[Prediction]
) -> Iterator[tuple[float, float, str]]:
    """Yield the ranges and styles of a fit: dashed outside of measured sizes."""
    yield float(sizes[0]), float(sizes[-1]), "-"
    for found in predictions:
        if found.size > sizes[-1]:
            yield float(sizes[-1]), float(found.size), "--"


def _draw_efficiency(ax: Axes, one: Fitted, mark: str, aside: float) -> None:
    curve = one.curve
    found = [_scaled(curve.efficiency(point), 100) for point in curve.points]
    at = np.array(curve.sizes) * aside
    ax.plot(at, [e.value for e in found], color=_tint(one), linewidth=0.6, zorder=2)
    _points(ax, curve.sizes, found, one, mark, aside)


def _scaled(found: Estimate, factor: float) -> Estimate:
    return Estimate(found.value * factor, found.low * factor, found.high * factor)


def _points(
    ax: Axes, sizes: Sequence[int], found: Sequence[Estimate], one: Fitted, mark: str, aside: float
) -> None:
    """Draw measured points with their intervals; hollow without one."""
    for size, value in zip(sizes, found, strict=True):
        known = not math.isnan(value.low)
        reach = [[value.value - value.low], [value.high - value.value]] if known else None
        ax.errorbar(
            [size * aside],
            [value.value],
            yerr=reach,
            fmt=mark,
            color=_tint(one),
            markersize=5.5,
            markerfacecolor=_tint(one) if known else "white",
            markeredgecolor=INK if known else _tint(one),
            markeredgewidth=0.5 if known else 1.2,
            ecolor=_tint(one),
            elinewidth=1.3,
            capsize=2.5,
            label=plain(label(one.curve.case)),
            zorder=4,
        )


def _predicted(ax: Axes, found: Prediction, tint: Tint, mark: str, aside: float) -> None:
    """Draw the prediction of a law for a size."""
    rate = _scaled(found.rate, 1 / _MIB)
    at = found.size * aside
    gid = "prediction" if found.measured is None else "held-out"
    if not math.isnan(rate.low):
        ax.plot([at, at], [rate.low, rate.high], color=tint, linewidth=2.6, alpha=0.35, zorder=3)
    ax.plot(
        [at], [rate.value], mark, color=tint, markerfacecolor="white", markersize=5, gid=gid,
        zorder=3.5,
    )  # fmt: skip


def _sizes(ax: Axes, fitted: Sequence[Fitted], over: str) -> None:
    chosen = [one.fits.chosen for one in fitted if one.fits.chosen]
    predicted = {p.size for fit in chosen for p in _told(fit.predictions)}
    sizes = sorted({size for one in fitted for size in one.curve.sizes} | predicted)
    ax.set_xscale("log", base=2)
    ax.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.4)
    ax.xaxis.set_major_locator(FixedLocator(sizes))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("MPI ranks" if over == "ranks" else "nodes")


def _rates(axes: Sequence[Axes], fitted: Sequence[Fitted]) -> None:
    rates = [point.rate for one in fitted for point in one.curve.points]
    chosen = [one.fits.chosen for one in fitted if one.fits.chosen]
    rates += [p.rate for fit in chosen for p in _told([*fit.predictions, *fit.held_out])]
    ends = [v / _MIB for rate in rates for v in (rate.value, rate.low, rate.high)]
    shown = [v for v in ends if math.isfinite(v)]
    low, high = min(shown) / 1.3, max(shown) * 1.3
    for ax in axes:
        ax.set_yscale("log")
    axes[0].set_ylim(low, high)
    axes[0].yaxis.set_major_locator(FixedLocator(log_ticks(low, high, 7)))
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes[0].yaxis.set_minor_formatter(NullFormatter())
    axes[0].yaxis.set_minor_locator(NullLocator())
    axes[0].set_ylabel("rate of all ranks, MiB/s")


def _legend(ax: Axes, fitted: Sequence[Fitted], marks: dict[int, str]) -> None:
    """Draw the legend: cases first, then other elements."""
    cases: dict[str, Line2D] = {}
    for one in fitted:
        curve = one.curve
        name = case_name(curve).replace(f" {curve.case.sample.layout}", "", 1)
        name = name.replace(f" {curve.case.sample.transfer}", "", 1)
        cases.setdefault(
            plain(name),
            Line2D([], [], color=_tint(one), marker=marks[id(one)], markeredgecolor=INK,
                   markeredgewidth=0.5, linewidth=1.2),
        )  # fmt: skip
    cases["ideal"] = Line2D([], [], color=PALE_INK, linewidth=0.8, linestyle=":")
    chosen = [one.fits.chosen for one in fitted if one.fits.chosen]
    if chosen:
        cases["fitted law"] = Line2D([], [], color=PALE_INK, linewidth=1.2)
        for name, mark, drawn in (
            ("held out: predicted", "x", [p for fit in chosen for p in _told(fit.held_out)]),
            ("prediction", "D", [p for fit in chosen for p in _told(fit.predictions)]),
        ):
            if not drawn:
                continue
            cases[name] = Line2D(
                [], [], color=PALE_INK, markerfacecolor="white", markersize=5, marker=mark,
                linestyle="--" if mark == "D" else "none",
            )  # fmt: skip
    ax.legend(
        cases.values(), cases.keys(), loc="upper left", frameon=False, fontsize=7.5,
        borderaxespad=0.0, handlelength=2.2,
    )  # fmt: skip


def figure_words(series: Series, fitted: Sequence[Fitted]) -> Words:
    """Return the text of the figure of one comparison in one phase."""
    record = series.runs[-1].record
    case = fitted[0].curve.case.sample.case
    parameters = record.cases.get(case, {}).get("parameters", {})
    told = ", ".join(
        f"{key} {parameters[key]}" for key in ("decomposition", "cache") if parameters.get(key)
    )
    until = f", written until {parameters['durability']}" if "durability" in parameters else ""
    notes = [
        "Points: bytes of all ranks over the median job time, with its 95 % interval. Dotted: the "
        "ideal, from the smallest job.",
    ]
    if any(point.time.n < FEWEST_FOR_INTERVAL for one in fitted for point in one.curve.points):
        notes.append("Hollow: fewer than five repetitions, no interval.")
    if any(one.fits.chosen for one in fitted):
        notes.append(
            "Line: the law that predicts the largest size best from the others; × is that "
            "prediction, to the right of what was measured. Diamond: a size that was not measured. "
            f"Pale lines: their 95 % intervals; none is drawn that spans a factor of {WIDE:g}."
        )
    elif len(series.sizes) > 1:
        notes.append(f"No law: {fitted[0].fits.reason}.")
    if any(point.below_resolution for one in fitted for point in one.curve.points):
        notes.append(
            "Some points are under 100 times what the harness itself takes; see scaling.csv."
        )
    return Words(
        title=f"{record.name}: {work(fitted[0].curve)}{', ' + told if told else ''}{until}",
        notes=notes,
        alarms=list(series.alarms),
        footnote=f"{len(series.runs)} runs, the last: {footnote(Summary(record, {}))}",
        stamp="INVALID" if any(a.startswith("INVALID") for a in series.alarms) else "",
    )
