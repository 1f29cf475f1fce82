"""The figure of a comparison: the ratio of each case with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from pffbench_analysis.compare.comparison import Comparison, Pair
from pffbench_analysis.compare.sentences import machine
from pffbench_analysis.figures import log_ticks
from pffbench_analysis.framing import Words, page
from pffbench_analysis.style import INK, PALE_INK, RC, colour, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PITCH = 0.21
#: Largest number of cases in a readable figure.
_MOST = 80
_MOST_TICKS = 9
_PHASES = {
    "write_total": "write total", "update_total": "update total", "read_total": "read total",
}  # fmt: skip


def forest(found: Comparison, allowed: float | None = None) -> Figure | None:
    """Draw the ratio of every comparable case: one panel for writing, one for reading.

    Parameters
    ----------
    found : Comparison
        Comparison to draw.
    allowed : float, optional
        Largest allowed relative slowdown, where the band ends. By default the band is as wide as
        the smallest difference that is reported.

    Returns
    -------
    Figure or None
        None if no sum of phases is comparable.
    """
    pairs = [pair for pair in (*found.overall, *found.comparable) if pair.is_total]
    labels = _labels(pairs)
    if not labels:
        return None
    band = found.smallest if allowed is None else allowed
    with mpl.rc_context(RC):
        body = _PITCH * (len(labels) + 1.5) + 0.75
        words = _text(found, band, pairs, labels)
        figure = page("Time of the new run over that of the base run", words, body)
        there = {pair.phase for pair in pairs}
        panels = {p: name for p, name in _PHASES.items() if p in there or p != "update_total"}
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
        for ax, (phase, name) in zip(axes, panels.items(), strict=True):
            _panel(ax, name, labels, [pair for pair in pairs if pair.phase == phase], band)
        _scale(axes, pairs)
    return figure


def _labels(pairs: Sequence[Pair]) -> list[str]:
    """Return the rows: all if few, else those with the largest changes."""
    effect: dict[str, float] = {}
    for pair in pairs:
        effect[pair.case.label] = max(effect.get(pair.case.label, 0), abs(math.log(pair.ratio)))
    kept = set(sorted(effect, key=lambda label: -effect[label])[:_MOST])
    return [label for label in effect if label in kept]


def _text(found: Comparison, band: float, pairs: Sequence[Pair], labels: Sequence[str]) -> Words:
    notes = [
        "Dots: ratio of the medians, left of 1 faster, right of 1 slower. Lines: 95 % intervals "
        "of the ratio. Filled: a difference is shown, also in view of the number of comparisons. "
        f"Band: within {100 * band:g} %.",
        machine(found),
    ]
    left_out = len({pair.case.label for pair in pairs}) - len(labels)
    if left_out:
        notes.append(f"{left_out} cases that changed less are not drawn.")
    runs = [f"base {found.base.record.run_id}", f"new {found.new.record.run_id}"]
    differs = ", ".join(map(str, found.differences)) or "nothing that is recorded"
    return Words(
        title=f"{found.new.directory.name} over {found.base.directory.name}",
        notes=notes,
        footnote=f"{'; '.join(runs)}; differs: {differs}",
    )


def _panel(ax: Axes, name: str, labels: Sequence[str], pairs: Sequence[Pair], band: float) -> None:
    ax.set_gid(name)
    ax.set_title(name, loc="left", fontsize=8.5, fontweight="bold", pad=4)
    ax.set_yticks(range(len(labels)), [plain(label) for label in labels])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="#E2E2E2", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.axvspan(1 / (1 + band), 1 + band, color="#EEEEEE", zorder=0, gid="band")
    ax.axvline(1, color=INK, linewidth=0.9, zorder=1, gid="one")
    places = {label: place for place, label in enumerate(labels)}
    drawn = [pair for pair in pairs if pair.case.label in places]
    for pair in drawn:
        _mark(ax, places[pair.case.label], pair)
    for label in set(labels) - {pair.case.label for pair in drawn}:
        ax.text(1, places[label], "–", color=PALE_INK, ha="center", va="center")


def _mark(ax: Axes, place: int, pair: Pair) -> None:
    own = colour(pair.case.backend)
    over_all = not pair.case.base
    ax.errorbar(
        pair.ratio,
        place,
        xerr=[[max(pair.ratio - pair.low, 0)], [max(pair.high - pair.ratio, 0)]],
        fmt="D" if over_all else "o",
        markersize=4.5,
        color=own,
        markerfacecolor=own if pair.told else "white",
        markeredgecolor=INK if pair.told else own,
        markeredgewidth=0.8,
        elinewidth=1.4,
        capsize=2,
        zorder=3,
    )


def _scale(axes: Sequence[Axes], pairs: Sequence[Pair]) -> None:
    """Make both sides of 1 equally wide, on a logarithmic axis with plain numbers."""
    bounds = [math.log(x) for pair in pairs for x in (pair.low, pair.high, pair.ratio) if x > 0]
    reach = math.exp(max(0.06, *(1.08 * abs(bound) for bound in bounds)))
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlim(1 / reach, reach)
        ax.set_xlabel("new / base seconds (log)", fontsize=8)
        ax.xaxis.set_major_locator(FixedLocator(_ticks(reach)))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.3g}"))


def _ticks(reach: float) -> list[float]:
    """Return round ratios between 1 / reach and reach, few enough to be read."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        numbers = range(math.ceil(1 / reach / step), math.floor(reach / step) + 1)
        if len(numbers) <= _MOST_TICKS:
            return [n * step for n in numbers]
    return log_ticks(1 / reach, reach, _MOST_TICKS)
