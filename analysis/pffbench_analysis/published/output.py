"""A run beside a study: as files in the results directory, and as data for a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pffbench.results.summary import Summary
from pffbench_analysis.published.figure import draw_published
from pffbench_analysis.published.sidebyside import side_by_side
from pffbench_analysis.published.tables import write_csv, write_markdown
from pffbench_analysis.published.words import (
    HEADINGS,
    ORDER_HEADINGS,
    cells,
    order_cells,
    verdict_lines,
)
from pffbench_analysis.saving import save

_NAME = "published"


def write_published(summary: Summary, directory: str | Path) -> Iterator[Path]:
    """Write `published.md`, `published.csv` and the figure into a results directory.

    Files of an earlier report are replaced; a figure that no longer has anything to show is
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
    figure = draw_published(found, summary)
    if figure is not None:
        yield from save(figure, place)
    else:
        for suffix in (".png", ".svg"):
            place.with_suffix(suffix).unlink(missing_ok=True)
    write_markdown(found, f"{_NAME}.png" if figure is not None else "", place.with_suffix(".md"))
    write_csv(found, place.with_suffix(".csv"))
    yield from (place.with_suffix(".md"), place.with_suffix(".csv"))


def page_data(summary: Summary) -> dict[str, Any] | None:
    """Return a run beside its study as plain data, for a page that makes its own tables.

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
