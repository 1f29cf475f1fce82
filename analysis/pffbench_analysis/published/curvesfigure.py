"""The figure of published and measured numbers over one parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pffbench.summary.summary import Summary
from pffbench_analysis.captions import footnote, stamp
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.published.counterparts import Study
from pffbench_analysis.published.curves import (
    Curves,
    PublishedCurve,
    PublishedPanel,
    PublishedPoint,
)
from pffbench_analysis.specs import (
    Spec,
    at,
    lines,
    log_scale,
    looks,
    number_axis,
    panel,
    point,
    points,
    rules,
)
from pffbench_analysis.style import INK, colour, plain

_HEIGHT = 150
#: Number of panels side by side where each row has one.
_COLUMNS = 3
#: For alternatives of one backend: the first has the backend's colour.
_MORE_COLOURS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#0072B2", "#E69F00")
_NOTE = (
    "Hollow and dashed: published, with the standard deviation where it is told. Filled: median "
    "here and its 95 % bootstrap interval. Axes of numbers are logarithmic."
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
        shown = curves.panels if alone else [one]
        upwards = number_axis(plain(one.quantity), _upwards(shown), tickCount=4)
        layers = [mark for c in one.curves for mark in _marks(c, colours, across, upwards)]
        heading = one.row if alone or one.quantity == quantities[0] else ""
        panels.append(PicturePanel(heading, panel(layers, _HEIGHT)))
    columns = _COLUMNS if alone else len(quantities)
    legend = [LegendEntry(plain(name), tint) for name, tint in colours.items()]
    legend.append(LegendEntry("published", shape="stroke", dash=(4, 3)))
    words = _words(curves, study, summary)
    return Picture(curves.heading, words, tuple(panels), columns, tuple(legend))


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


def _across(curves: Curves) -> Spec:
    """Return the horizontal axis that all panels share."""
    found = [p for panel in curves.panels for c in panel.curves for p in (*c.published, *c.here)]
    title = plain(curves.over)
    if not curves.names:
        values = sorted({p.x for p in found})
        return number_axis(title, log_scale(values), values=values)
    names = ", ".join(f"'{name}'" for name in curves.names)
    scale = {"domain": [-0.4, len(curves.names) - 0.6], "nice": False, "zero": False}
    places = list(range(len(curves.names)))
    return number_axis(title, scale, values=places, labelExpr=f"[{names}][datum.value]")


def _upwards(panels: Sequence[PublishedPanel]) -> Spec:
    """Return the scale that panels share."""
    found = [p for panel in panels for c in panel.curves for p in (*c.published, *c.here)]
    return log_scale([y for p in found for y in (p.y, p.low, p.high)], 0.1)


def _marks(
    curve: PublishedCurve, colours: dict[str, str], across: Spec, upwards: Spec
) -> list[Spec]:
    tint = colours[curve.alternative]
    published = _rows(curve.published, tint, [4, 3])
    here = _rows(curve.here, tint, None)
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


def _rows(
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
