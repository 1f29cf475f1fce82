"""The figure of a run and a study: each published number and its measured counterpart."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.picture import Picture, PicturePanel, Words
from pffbench_analysis.published.counterparts import Match
from pffbench_analysis.published.sidebyside import SideBySide
from pffbench_analysis.specs import (
    ROW,
    Spec,
    at,
    headings,
    intervals,
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
from pffbench_analysis.style import colour, plain

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
    ends = [v for m in matches for v in (m.published.value, m.here, *m.interval)]
    first = matches[0].published
    title = f"{first.quantity}, {first.unit}, logarithmic"
    x = number_axis(title, log_scale(ends, 0.08))
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
        for i, text in enumerate(textwrap.wrap(plain(", ".join(told)), _HEADING)):
            rows["", "", f"{number}.{i}"] = f"{number}.{i} "
            titles.append({"row": f"{number}.{i} ", "text": text})
        rows |= {line: f"{number} {plain(line[2])}" for line in own}
    return rows, titles


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
    low, high = match.interval
    there, sd = match.published.value, match.published.sd
    has_sd = not (match.beyond or math.isnan(sd))
    return {
        "alternative": match.alternative,
        "here": match.here,
        "there": None if match.beyond else there,
        "sd_low": max(there - sd, 0.01 * there) if has_sd else None,
        "sd_high": there + sd if has_sd else None,
        "low": None if math.isnan(low) else low,
        "high": None if math.isnan(low) else high,
        "sure": not math.isnan(low),
        "text": f"×{match.ratio:.2g}{'†' if match.below_resolution else ''}",
        "stroke": colour(match.case.sample.backend),
    }
