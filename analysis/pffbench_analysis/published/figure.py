"""The figure of a run and a study: each published number and its measured counterpart."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.figures import log_ticks
from pffbench_analysis.framing import Words, page
from pffbench_analysis.published.counterparts import Match
from pffbench_analysis.published.sidebyside import SideBySide
from pffbench_analysis.style import INK, PALE_INK, RC, colour, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PITCH = 0.19
#: Largest number of lines of a panel; beyond it, only the nearest variant is drawn.
_MOST = 60
_COLUMNS = 2
#: Longest line name, in characters, for two panels side by side, and width of a heading.
_SHORT_NAME, _HEADING = 26, 64
#: Number of ticks of an axis, by the number of columns.
_TICKS = {1: 8, 2: 5}

Line = tuple[str, str, str]


@dataclass(frozen=True)
class _Rows:
    """Rows of the lines of a panel, from the top, under a heading for each subject and variant.

    Parameters
    ----------
    places : dict of Line to int
        The row of each line.
    headings : list of (int, str)
        Rows and text of headings; none where all lines have the same one.
    count : int
        Number of rows.
    """

    places: dict[Line, int]
    headings: list[tuple[int, str]]
    count: int

    @classmethod
    def of(cls, lines: Sequence[Line]) -> _Rows:
        """Lay out lines, sorted by heading."""
        subjects, variants = ({line[i] for line in lines} for i in (0, 1))
        places: dict[Line, int] = {}
        headings: list[tuple[int, str]] = []
        row = 0
        for (subject, variant), own in groupby(lines, key=lambda line: line[:2]):
            told = [subject] * (len(subjects) > 1) + [variant] * (len(variants) > 1)
            for text in textwrap.wrap(plain(", ".join(told)), _HEADING):
                headings.append((row, text))
                row += 1
            for line in own:
                places[line] = row
                row += 1
        return cls(places, headings, row)


def draw_published(found: SideBySide, summary: Summary) -> Figure | None:
    """Draw a panel for each operation: diamonds are published, dots and intervals measured.

    Parameters
    ----------
    found : SideBySide
        Data of the figure.
    summary : Summary
        The run, for the line that names it.

    Returns
    -------
    Figure or None
        None where no number of the run has a published counterpart.
    """
    matches, lines, left_out = _drawn([m for m in found.matches if m.measured is None])
    if not matches:
        return None
    operations = list(dict.fromkeys(match.operation for match in matches))
    short = max(len(alternative) for _, _, alternative in lines) <= _SHORT_NAME
    columns = min(_COLUMNS if short else 1, len(operations))
    rows = math.ceil(len(operations) / columns)
    laid = _Rows.of(lines)
    with mpl.rc_context(RC):
        words = _words(found, summary, left_out, {variant for _, variant, _ in lines})
        body = rows * (_PITCH * (laid.count + 1.4) + 0.4) + 0.35
        figure = page("Published and here (less is better)", words, body)
        axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
        for number, (ax, operation) in enumerate(zip(axes, operations, strict=False)):
            own = {_line(m): m for m in matches if m.operation == operation}
            _panel(ax, operation, laid, own, headed=number % columns == 0)
        for ax in axes[len(operations) :]:
            ax.set_visible(False)
        _scale(axes[: len(operations)], matches, columns)
    return figure


def _drawn(matches: Sequence[Match]) -> tuple[list[Match], list[Line], int]:
    """Return the drawn matches, the lines of each panel, and the number of lines left out."""
    chosen = list(matches)
    lines = _lines(chosen)
    if len(lines) > _MOST and any(match.nearest for match in matches):
        chosen = [match for match in matches if match.nearest]
    kept = _lines(chosen)[:_MOST]
    shown = set(kept)
    return [m for m in chosen if _line(m) in shown], kept, len(lines) - len(kept)


def _lines(matches: Sequence[Match]) -> list[Line]:
    """Return the lines, by subject, then variant (the nearest first), then alternative."""
    found = {_line(match): not match.nearest for match in matches}
    subjects = list(dict.fromkeys(line[0] for line in found))
    return sorted(
        found,
        key=lambda line: (subjects.index(line[0]), found[line], line[1], line[2].casefold()),
    )


def _line(match: Match) -> Line:
    return match.subject, match.variant, match.alternative


def _words(found: SideBySide, summary: Summary, left_out: int, variants: Collection[str]) -> Words:
    subjects = list(dict.fromkeys(match.subject for match in found.matches))
    named = ", ".join(subjects) if len(subjects) <= 3 else f"{len(subjects)} cases"
    if len(variants) == 1:
        named = ", ".join(filter(None, (named, *variants)))
    notes = [
        "Hollow diamonds: published, with their standard deviation where it is told. Dots and "
        "whiskers: median here and its 95 % interval. The line between them is what they "
        "differ by. A dot alone was not published. †: below resolution, not to be relied on.",
        "Other machine, versions and method: see published.md for why numbers may differ. Compare "
        "the order of the formats first.",
    ]
    if left_out:
        notes.append(f"{left_out} lines are not drawn; all are in published.csv.")
    return Words(
        title=f"{found.study.title}; {named}",
        notes=notes,
        footnote=f"{footnote(summary)}; published: {found.study.url}",
        stamp=stamp(summary),
    )


def _panel(ax: Axes, operation: str, laid: _Rows, own: dict[Line, Match], *, headed: bool) -> None:
    ax.set_gid(operation)
    ax.set_title(operation, loc="left", fontsize=8.5, fontweight="bold", pad=4)
    ax.set_yticks(list(laid.places.values()), [plain(line[2]) for line in laid.places])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(laid.count - 0.4, -0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="#E2E2E2", linewidth=0.6)
    ax.set_axisbelow(True)
    for line, place in laid.places.items():
        if line in own:
            _mark(ax, place, own[line])
        else:
            ax.annotate("–", (1.0, place), xycoords=ax.get_yaxis_transform(), va="center")
    for place, text in laid.headings if headed else ():
        ax.text(
            0.01, place, text, transform=ax.get_yaxis_transform(), va="center", fontsize=7.2,
            fontweight="bold", color=PALE_INK, zorder=6, gid="heading",
        )  # fmt: skip


def _mark(ax: Axes, place: int, match: Match) -> None:
    own = colour(match.case.sample.backend)
    there, here = match.published.value, match.here
    if here <= 0:
        return
    if not match.beyond:
        ax.plot([there, here], [place, place], color=own, linewidth=0.8, alpha=0.5, zorder=2)
        if not math.isnan(match.published.sd):
            sd = [[min(match.published.sd, 0.99 * there)], [match.published.sd]]
            ax.errorbar(there, place, xerr=sd, fmt="none", ecolor=own, elinewidth=2.2, alpha=0.35,
                        zorder=2.5)  # fmt: skip
        ax.plot(
            there, place, "D", markersize=4.6, markerfacecolor="white", markeredgecolor=own,
            markeredgewidth=1.1, zorder=3, gid="published", label=match.alternative,
        )  # fmt: skip
    low, high = match.interval
    if not math.isnan(low):
        reach = [[here - low], [high - here]]
        ax.errorbar(here, place, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2,
                    zorder=4)  # fmt: skip
    ax.plot(here, place, "o", markersize=4.2, color=own, markeredgecolor=INK,
            markeredgewidth=0.5, zorder=5, gid="here", label=match.alternative)  # fmt: skip
    ax.annotate(
        f"×{match.ratio:.2g}{'†' if match.below_resolution else ''}",
        (1.0, place),
        xycoords=ax.get_yaxis_transform(),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
        color=PALE_INK if match.below_resolution else INK,
        annotation_clip=False,
    )


def _scale(axes: Sequence[Axes], matches: Sequence[Match], columns: int) -> None:
    marks = [v for m in matches for v in (m.published.value, m.here, *m.interval) if v > 0]
    low, high = min(marks) / 1.6, max(marks) * 1.6
    shared = axes[0]
    for ax in axes:
        ax.set_xscale("log", nonpositive="clip")
    shared.set_xlim(low, high)
    shared.xaxis.set_major_locator(FixedLocator(log_ticks(low, high, _TICKS[columns])))
    shared.xaxis.set_minor_locator(NullLocator())
    shared.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    first = matches[0].published
    for place, ax in enumerate(axes):
        if place + columns >= len(axes):
            ax.set_xlabel(f"{first.quantity}, {first.unit}, logarithmic axis", fontsize=8)
            ax.tick_params(axis="x", labelbottom=True)
