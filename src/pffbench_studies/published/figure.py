"""Figures of a run and a study: each number and its counterpart, and numbers over a parameter."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from pffbench.results.summary import Summary
from pffbench_analysis.axes import Axis, axis_of
from pffbench_analysis.captions import alarms, footnote
from pffbench_analysis.charts import Line, Mark, dots, lines
from pffbench_analysis.picture import Entry, Figure
from pffbench_analysis.style import colour
from pffbench_analysis.svg import INK
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.curves import (
    Curves,
    PublishedCurve,
    PublishedPanel,
    PublishedPoint,
)
from pffbench_studies.published.sidebyside import SideBySide
from pffbench_studies.published.values import Study

#: Largest number of rows; beyond it, only the nearest variant is drawn.
_MOST = 60

Row = tuple[str, str, str]


def draw_published(found: SideBySide, summary: Summary) -> Figure | None:
    """Return a panel for each operation: diamonds are published, dots and intervals measured.

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
    matches, rows, left_out = _choose_rows([m for m in found.matches if m.measured is None])
    if not matches:
        return None
    ends = [v for m in matches for v in (m.published.value, *m.estimate)]
    first = matches[0].published
    unit = f"{first.quantity}, {first.unit}"
    operations = list(dict.fromkeys(match.operation for match in matches))
    several = [len({row[i] for row in rows}) > 1 for i in (0, 1)]
    panels = []
    for group in dict.fromkeys(row[:2] for row in rows):
        heading = ", ".join(text for text, shown in zip(group, several, strict=True) if shown)
        names = [row[2] for row in rows if row[:2] == group]
        for operation in operations:
            own = [m for m in matches if m.operation == operation and _row(m)[:2] == group]
            marks = [mark for match in own for mark in _marks(match)]
            marks += [_nothing(name) for name in names if name not in {m.row for m in marks}]
            panels.append(dots(heading, names, marks, axis_of(ends, f"{operation}: {unit}")))
            heading = ""
    variants = {variant for _, variant, _ in rows}
    about, notes = _about(found, variants), _notes(left_out)
    return Figure(
        "Published and here (less is better)", panels, about, (), notes,
        alarms(summary.record), _source(found.study, summary), len(operations),
    )  # fmt: skip


def _choose_rows(matches: Sequence[Match]) -> tuple[list[Match], list[Row], int]:
    """Return the drawn matches, the rows, and the number of rows left out."""
    chosen, rows = matches, _rows(matches)
    if len(rows) > _MOST:
        chosen = [match for match in matches if match.nearest] or matches
    kept = _rows(chosen)[:_MOST]
    return [m for m in chosen if _row(m) in kept], kept, len(rows) - len(kept)


def _rows(matches: Sequence[Match]) -> list[Row]:
    """Return the rows, by subject, then variant (the nearest first), then alternative."""
    found = {_row(match): not match.nearest for match in matches}
    subjects = list(dict.fromkeys(row[0] for row in found))
    return sorted(
        found, key=lambda row: (subjects.index(row[0]), found[row], row[1], row[2].casefold())
    )


def _row(match: Match) -> Row:
    return match.subject, match.variant, match.alternative


def _marks(match: Match) -> list[Mark]:
    """Return the marks of a number: the published one, if it is, above that measured here."""
    name, tint, there = match.alternative, colour(match.case.backend), match.published
    if match.estimate.value <= 0:
        return []
    ratio = f"{match.ratio:.2g}" if match.ratio < 100 else f"{match.ratio:.0f}"
    text = f"×{ratio}{'†' * match.below_resolution}"
    value, low, high = match.estimate
    here = Mark(name, value, low, high, tint, text, about=f"{name}, here: {value:.3g}")
    if match.beyond:
        return [here]
    # A deviation may be larger than the number, which a logarithmic axis cannot show.
    ends = max(there.value - there.sd, 0.01 * there.value), there.value + there.sd
    low, high = (math.nan, math.nan) if math.isnan(there.sd) else ends
    about = f"{name}, published: {there.value:.3g}"
    published = Mark(name, there.value, low, high, tint, shape="diamond", filled=False, about=about)
    return [published, here]


def _nothing(name: str) -> Mark:
    return Mark(name, math.nan, text="–")


def _about(found: SideBySide, variants: Collection[str]) -> str:
    subjects = list(dict.fromkeys(match.subject for match in found.matches))
    named = subjects if len(subjects) <= 3 else [f"{len(subjects)} cases"]
    named += variants if len(variants) == 1 else ()
    return f"{found.study.title}; {', '.join(filter(None, named))}"


def _notes(left_out: int) -> list[str]:
    notes = [
        "Hollow diamonds: published, with their standard deviation where it is told. Dots: median "
        "here and its 95 % interval. A dot alone was not published. ×: here over published. †: "
        "below resolution, not to be relied on.",
        "Other machine, versions and method: see published.md for why numbers may differ. Compare "
        "the order of the formats first.",
    ]
    if left_out:
        notes.append(f"{left_out} rows are not drawn; all are in published.csv.")
    return notes


def _source(study: Study, summary: Summary) -> str:
    return f"{footnote(summary)}; published: {study.url}"


#: Number of panels side by side where each subject has one.
_COLUMNS = 3
#: For alternatives of one backend: the first has the backend's colour.
_MORE_COLOURS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#0072B2", "#E69F00")
#: Of lines of published numbers.
_DASHES = "4 3"
_NOTE = (
    "Dashed, hollow: published, with the standard deviation where it is told. Filled: median here "
    "and its 95 % interval. Axes of numbers are logarithmic."
)


def draw_curves(curves: Curves, study: Study, summary: Summary) -> Figure:
    """Return a row of panels for each subject, a line for each alternative.

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
    colours = _colours([curve for panel in curves.panels for curve in panel.curves])
    across = _across(curves)
    panels = []
    for one in curves.panels:
        ends = [y for p in _points(curves.panels if alone else [one]) for y in p[1:]]
        drawn = [line for c in one.curves for line in _lines(c, colours[c.alternative])]
        panels.append(lines(one.row, drawn, across, axis_of(ends, one.quantity)))
    legend = [Entry(name, tint, "") for name, tint in colours.items()]
    legend.append(Entry("published", INK, _DASHES))
    notes = [_NOTE, *filter(None, [curves.note])]
    if curves.left_out:
        notes.append(f"Not drawn for want of room: {curves.left_out} more; see published.csv.")
    return Figure(
        curves.axis.heading, panels, study.title, legend, notes, alarms(summary.record),
        _source(study, summary), _COLUMNS if alone else len(quantities),
    )  # fmt: skip


def _points(panels: Iterable[PublishedPanel]) -> list[PublishedPoint]:
    return [p for panel in panels for c in panel.curves for p in (*c.published, *c.here)]


def _colours(curves: Sequence[PublishedCurve]) -> dict[str, str]:
    """Assign a colour to each alternative, its backend's where unused."""
    found: dict[str, str] = {}
    for curve in curves:
        unused = (c for c in (colour(curve.backend), *_MORE_COLOURS) if c not in found.values())
        found.setdefault(curve.alternative, next(unused, INK))
    return found


def _across(curves: Curves) -> Axis:
    """Return the horizontal axis that all panels share."""
    title, names = curves.axis.over, curves.axis.names
    if not names:
        values = sorted({p.x for p in _points(curves.panels)})
        return axis_of(values, title, numbers=values)
    places = range(len(names))
    return axis_of(places, title, lambda place: names[round(place)], log=False, numbers=places)


def _lines(curve: PublishedCurve, tint: str) -> list[Line]:
    told = ((curve.published, _DASHES, "published"), (curve.here, "", "here"))
    return [
        Line(
            f"{curve.alternative}, {where}",
            [p.x for p in points],
            [p.y for p in points],
            [max(p.low, 0.01 * p.y) for p in points],
            [p.high for p in points],
            tint,
            dash,
        )
        for points, dash, where in told
    ]
