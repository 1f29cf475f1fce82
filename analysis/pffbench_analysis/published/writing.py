"""Output of a run compared with a study: files in the results directory, and data for a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pffbench.summary.summary import Summary
from pffbench_analysis.picture import remove, save
from pffbench_analysis.published.comparison_tables import write_markdown, write_numbers
from pffbench_analysis.published.curves import Curves, DrawsCurves
from pffbench_analysis.published.curvesfigure import draw_curves
from pffbench_analysis.published.figure import draw_published
from pffbench_analysis.published.matchers import matcher_of
from pffbench_analysis.published.sidebyside import SideBySide, side_by_side
from pffbench_analysis.published.wording import (
    HEADINGS,
    ORDER_HEADINGS,
    cells,
    order_cells,
    verdict_lines,
)

_NAME = "published"
#: Figures over a parameter that a study varied.
CURVES = ("published-chunk-size", "published-shuffle", "published-versions", "published-history")


def write_published(summary: Summary, directory: str | Path) -> Iterator[Path]:
    """Write `published.md`, `published.csv` and the figures into a results directory.

    Files of an earlier report are replaced; a figure without data is
    removed. Nothing is written for an experiment that names no study.

    Yields
    ------
    Path
        Each file that was written.
    """
    found = side_by_side(summary)
    if found is None:
        return
    place = Path(directory) / _NAME
    figures = {_NAME: draw_published(found, summary)}
    figures |= {c.name: draw_curves(c, found.study, summary) for c in curves_of(found)}
    for name in (_NAME, *CURVES):
        figure = figures.get(name)
        if figure is not None:
            yield from save(figure, place.with_name(name))
        else:
            remove(place.with_name(name))
    drawn = [f"{name}.png" for name, figure in figures.items() if figure is not None]
    write_markdown(found, drawn, place.with_suffix(".md"))
    write_numbers(found, place.with_suffix(".csv"))
    yield from (place.with_suffix(".md"), place.with_suffix(".csv"))


def curves_of(found: SideBySide) -> list[Curves]:
    """Return the data of figures over a parameter; none where the study varied no parameter."""
    matcher = matcher_of(found.study.name)
    return matcher.curves(found.matches, found.values) if isinstance(matcher, DrawsCurves) else []


def page_data(summary: Summary) -> dict[str, Any] | None:
    """Return the comparison of a run with its study as plain data, for the tables of a page.

    Returns
    -------
    dict or None
        None where the experiment names no study. Otherwise ``study`` (name, title, url),
        ``verdict`` (sentences), ``numbers`` and ``orders`` (each with ``headings`` and ``rows`` of
        text), ``reasons`` (dicts of about, there, here, bears_on) and ``claims`` (sentences).
    """
    found = side_by_side(summary)
    if found is None:
        return None
    return {
        "study": asdict(found.study),
        "verdict": verdict_lines(found),
        "numbers": {"headings": HEADINGS, "rows": [cells(match) for match in found.matches]},
        "orders": {
            "headings": ORDER_HEADINGS,
            "rows": [order_cells(order) for order in found.orders],
        },
        "reasons": [asdict(reason) for reason in found.reasons],
        "claims": list(found.claims),
    }
