"""Figures of a run and a study: each number and its counterpart, and numbers over a parameter."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any

from pffbench.results.summary import Summary
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.derived_files import bounded
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.specs import (
    ROW,
    Spec,
    at,
    headings,
    intervals,
    lines,
    log_scale,
    looks,
    number_axis,
    panel,
    point,
    points,
    row_axis,
    rules,
    written,
)
from pffbench_analysis.style import INK, colour
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.curves import (
    Curves,
    PublishedCurve,
    PublishedPanel,
    PublishedPoint,
)
from pffbench_studies.published.sidebyside import SideBySide
from pffbench_studies.published.values import Study

#: Largest number of lines of a panel; beyond it, only the nearest variant is drawn.
_MOST = 60
#: Longest heading of rows, in characters, and of rows of panels side by side.
_HEADING, _SHORT = 120, 48

Line = tuple[str, str, str]


def draw_published(found: SideBySide, summary: Summary) -> Picture | None:
    """Return a panel for each operation: diamonds are published, dots and intervals measured.

    Parameters
    ----------
    found : SideBySide
        Data of the figure.
    summary : Summary
        The run, for the line that names it.

    Returns
    -------
    Picture or None
        None where no number of the run has a published counterpart.
    """
    matches, lines, left_out = _drawn([m for m in found.matches if m.measured is None])
    if not matches:
        return None
    ends = [v for m in matches for v in (m.published.value, *m.estimate)]
    first = matches[0].published
    x = number_axis(f"{first.quantity}, {first.unit}, logarithmic", log_scale(ends, 0.08))
    rows, titles = _rows(lines)
    panels = []
    for operation in dict.fromkeys(match.operation for match in matches):
        own = {_line(m): m for m in matches if m.operation == operation}
        panels.append(PicturePanel(operation, _panel(rows, titles, own, x)))
    words = _words(found, summary, left_out, {variant for _, variant, _ in lines})
    columns = 2 if all(len(title["text"]) <= _SHORT for title in titles) else 1
    heading = "Published and here (less is better)"
    return Picture(heading, words, tuple(panels), columns)


def _rows(lines: Sequence[Line]) -> tuple[dict[Line, str], list[dict[str, Any]]]:
    """Return the row of each line, and the headings of subjects and variants with their rows."""
    subjects, variants = ({line[i] for line in lines} for i in (0, 1))
    rows: dict[Line, str] = {}
    titles = []
    for number, (group, own) in enumerate(groupby(lines, key=lambda line: line[:2])):
        told = [group[0]] * (len(subjects) > 1) + [group[1]] * (len(variants) > 1)
        for i, text in enumerate(textwrap.wrap(", ".join(told), _HEADING)):
            rows["", "", f"{number}.{i}"] = f"{number}.{i} "
            titles.append({"row": f"{number}.{i} ", "text": text})
        rows |= {line: f"{number} {line[2]}" for line in own}
    return rows, titles


def _drawn(matches: Sequence[Match]) -> tuple[list[Match], list[Line], int]:
    """Return the drawn matches, the lines of each panel, and the number of lines left out."""
    chosen, lines = matches, _lines(matches)
    if len(lines) > _MOST:
        chosen = [match for match in matches if match.nearest] or matches
    kept = _lines(chosen)[:_MOST]
    return [m for m in chosen if _line(m) in kept], kept, len(lines) - len(kept)


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
    named = subjects if len(subjects) <= 3 else [f"{len(subjects)} cases"]
    named += variants if len(variants) == 1 else ()
    notes = [
        "Hollow diamonds: published, with their standard deviation where it is told. Dots and "
        "whiskers: median here and its 95 % interval. The line between them is what they "
        "differ by. A dot alone was not published. †: below resolution, not to be relied on.",
        "Other machine, versions and method: see published.md for why numbers may differ. Compare "
        "the order of the formats first.",
    ]
    if left_out:
        notes.append(f"{left_out} lines are not drawn; all are in published.csv.")
    title = f"{found.study.title}; {', '.join(filter(None, named))}"
    return words_of(found.study, title, notes, summary)


def words_of(study: Study, title: str, notes: list[str], summary: Summary) -> Words:
    """Return the words around a figure of published numbers and those of a run."""
    source = f"{footnote(summary)}; published: {study.url}"
    return Words(title=title, notes=notes, footnote=source, stamp=stamp(summary))


def _panel(
    rows: dict[Line, str], titles: list[dict[str, Any]], own: dict[Line, Match], x: Spec
) -> Spec:
    y = row_axis(list(rows.values()))
    values = [{"row": rows[line], **_values(match)} for line, match in own.items()]
    values = [value for value in values if value["here"] > 0]
    there = [value for value in values if value["there"] is not None]
    missing = [
        {"row": row, "text": "–"} for line, row in rows.items() if line[0] and line not in own
    ]
    between = {"x": at(x, "there"), "x2": {"field": "here"}, "y": y, **looks("stroke")}
    spread = {"x": at(x, "sd_low"), "x2": {"field": "sd_high"}, "y": y, **looks("stroke")}
    hollow = [value | point(value["stroke"], filled=False, shape="diamond") for value in there]
    filled = [value | point(value["stroke"]) for value in values]
    layers = [
        rules("between", there, between, strokeWidth=1, opacity=0.5),
        rules("sd", there, spread, "isValid(datum.sd_low)", strokeWidth=4, opacity=0.35),
        points("published", hollow, at(x, "there"), y, 60),
        *intervals(values, x, y),
        points("here", filled, at(x, "here"), y, 55),
        written([*values, *missing], y),
        *headings(titles, y),
    ]
    return panel(layers, ROW * len(rows))


def _values(match: Match) -> dict[str, Any]:
    here = bounded("here low high", match.estimate)
    there, sd = match.published.value, match.published.sd
    has_sd = not (match.beyond or math.isnan(sd))
    return {
        "alternative": match.alternative,
        **here,
        "there": None if match.beyond else there,
        "sd_low": max(there - sd, 0.01 * there) if has_sd else None,
        "sd_high": there + sd if has_sd else None,
        "sure": here["low"] is not None,
        "text": f"×{match.ratio:.2g}{'†' if match.below_resolution else ''}",
        "stroke": colour(match.case.backend),
    }


_HEIGHT = 150
#: Number of panels side by side where each row has one.
_COLUMNS = 3
#: For alternatives of one backend: the first has the backend's colour.
_MORE_COLOURS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#0072B2", "#E69F00")
_NOTE = (
    "Hollow and dashed: published, with the standard deviation where it is told. Filled: median "
    "here and its 95 % interval. Axes of numbers are logarithmic."
)


def draw_curves(curves: Curves, study: Study, summary: Summary) -> Picture:
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
        upwards = number_axis(one.quantity, log_scale(ends, 0.1), tickCount=4)
        layers = [mark for c in one.curves for mark in _marks(c, colours, across, upwards)]
        heading = one.row if alone or one.quantity == quantities[0] else ""
        panels.append(PicturePanel(heading, panel(layers, _HEIGHT)))
    legend = [LegendEntry(name, tint) for name, tint in colours.items()]
    legend.append(LegendEntry("published", shape="stroke", dash=(4, 3)))
    notes = [_NOTE, *filter(None, [curves.note])]
    if curves.left_out:
        notes.append(f"Not drawn for want of room: {curves.left_out} more; see published.csv.")
    return Picture(
        curves.axis.heading,
        words_of(study, study.title, notes, summary),
        tuple(panels),
        _COLUMNS if alone else len(quantities),
        tuple(legend),
    )


def _points(panels: Iterable[PublishedPanel]) -> list[PublishedPoint]:
    return [p for panel in panels for c in panel.curves for p in (*c.published, *c.here)]


def _colours(curves: Sequence[PublishedCurve]) -> dict[str, str]:
    """Assign a colour to each alternative, its backend's where unused."""
    found: dict[str, str] = {}
    for curve in curves:
        unused = (c for c in (colour(curve.backend), *_MORE_COLOURS) if c not in found.values())
        found.setdefault(curve.alternative, next(unused, INK))
    return found


def _across(curves: Curves) -> Spec:
    """Return the horizontal axis that all panels share."""
    title, names = curves.axis.over, curves.axis.names
    if not names:
        values = sorted({p.x for p in _points(curves.panels)})
        return number_axis(title, log_scale(values), values=values)
    scale = {"domain": [-0.4, len(names) - 0.6], "nice": False, "zero": False}
    places = list(range(len(names)))
    return number_axis(title, scale, values=places, labelExpr=f"{list(names)}[datum.value]")


def _marks(
    curve: PublishedCurve, colours: dict[str, str], across: Spec, upwards: Spec
) -> list[Spec]:
    tint = colours[curve.alternative]
    published = _curve_rows(curve.published, tint, [4, 3])
    here = _curve_rows(curve.here, tint, None)
    x, y = at(across, "x"), at(upwards, "y")
    ends = {"x": x, "y": at(upwards, "low"), "y2": {"field": "high"}, **looks("stroke")}
    hollow = [row | point(tint, filled=False, shape="diamond") for row in published]
    return [
        lines("published_line", published, x, y, strokeWidth=1),
        lines("here_line", here, x, y),
        rules("spreads", published + here, ends, "isValid(datum.low)", strokeWidth=1),
        points("published", hollow, x, y, 45),
        points("here", [row | point(tint) for row in here], x, y, 45),
    ]


def _curve_rows(
    found: Sequence[PublishedPoint], tint: str, dash: list[int] | None
) -> list[dict[str, Any]]:
    return [
        {
            "x": p.x,
            "y": p.y,
            "low": None if math.isnan(p.low) else max(p.low, 0.01 * p.y),
            "high": None if math.isnan(p.low) else p.high,
            "stroke": tint,
            "opacity": 1,
            "dash": dash,
        }
        for p in found
    ]
