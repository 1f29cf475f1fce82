"""Output of a run compared with a study: files, and a section of the page."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pffbench.regular_files import write_replacing
from pffbench.results.summary import Summary
from pffbench.text import escape_markdown, markdown_table
from pffbench_analysis.derived_files import bounded, write_csv
from pffbench_analysis.page.build import page_environment
from pffbench_analysis.picture import save
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.figure import draw_curves, draw_published
from pffbench_studies.published.order import Order
from pffbench_studies.published.sidebyside import SideBySide, side_by_side
from pffbench_studies.published.values import PublishedValue
from pffbench_studies.published.wording import (
    HEADINGS,
    ORDER_HEADINGS,
    cells,
    order_cells,
    verdict_lines,
)

#: The figure of all numbers, and those over a parameter that a study varied.
_FIGURES = (
    "published", "published-chunk-size", "published-shuffle", "published-versions",
    "published-history",
)  # fmt: skip
_MIME = {".svg": "image/svg+xml", ".csv": "text/csv"}


def write_published(summary: Summary, directory: Path) -> Iterator[Path]:
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
    drawn = {c.axis.name: draw_curves(c, found.study, summary) for c in found.curves}
    if (numbers := draw_published(found, summary)) is not None:
        drawn = {_FIGURES[0]: numbers, **drawn}
    text, table = directory / "published.md", directory / "published.csv"
    lines = _markdown(found, [f"{name}.svg" for name in drawn])
    write_replacing(text, "\n".join(lines) + "\n")
    # Without any number that has a counterpart, all published ones.
    rows = [_row(match, found.order_of(match)) for match in found.matches]
    write_csv(table, rows or map(_published, found.values), _CSV_COLUMNS)
    yield from (text, table)
    for name in _FIGURES:
        place = directory / f"{name}.svg"
        if name in drawn:
            yield save(drawn[name], place)
        else:
            place.unlink(missing_ok=True)


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
        "study": found.study._asdict(),
        "verdict": verdict_lines(found),
        "numbers": {"headings": HEADINGS, "rows": [*map(cells, found.matches)]},
        "orders": {"headings": ORDER_HEADINGS, "rows": [*map(order_cells, found.orders)]},
        "reasons": [reason._asdict() for reason in found.reasons],
        "claims": found.claims,
    }


def section(summary: Summary, directory: Path) -> str:
    """Return the section of the page as HTML; empty where the experiment names no study.

    Figures and `published.csv`, which `write_published` has left in the directory, are part of it.
    """
    data = page_data(summary)
    if data is None:
        return ""
    template = page_environment("pffbench_studies.published").get_template("published.html")
    figures = (_uri(directory / f"{name}.svg") for name in _FIGURES)
    return template.render(
        published=data,
        figures=[*filter(None, figures)],
        csv=_uri(directory / "published.csv"),
    )


def _uri(path: Path) -> str:
    """Return a file as an address that holds it; empty if there is none."""
    if not path.exists():
        return ""
    content = base64.b64encode(path.read_bytes()).decode()
    return f"data:{_MIME[path.suffix]};base64,{content}"


_CSV_COLUMNS = (
    "study", "subject", "variant", "nearest", "operation", "alternative", "quantity", "unit",
    "published", "published_low", "published_high", "published_sd", "published_alike",
    "published_as", "approximate", "reading",
    "statistic", "source", "url", "note", "parameters", "case", "phase", "repetitions", "here",
    "here_low", "here_high", "ratio", "ratio_low", "ratio_high", "order", "pairs_same",
    "pairs_other", "pairs_undecided", "warning_codes",
)  # fmt: skip
#: Columns of a number that are called otherwise in the table of its study.
_RENAMED = {
    "value": "published", "low": "published_low", "high": "published_high", "sd": "published_sd",
    "alike": "published_alike",
}  # fmt: skip
#: Columns that are attributes of a match.
_OF_A_MATCH = ("subject", "variant", "nearest", "operation", "alternative", "published_as")
_HOW_TO_READ = (
    "Published: as printed there, ± standard deviation where it is told; ≈ rounded or told as "
    "about. Here: median over the repetitions "
    "that count, with its 95 % interval (of fewer than five none); † under 100 "
    "times what the harness itself takes, not to be relied on. × published: here over published.",
    "An order is that of the medians; ~ stands between neighbours that are not distinguishable. "
    "Published numbers within each other's standard deviation, or called alike by their authors, "
    "are no pair. A pair is decided by the judge of the answer, in view of all pairs; none is "
    "with fewer than seven repetitions, or where one of the two is below resolution.",
)


def _published(value: PublishedValue) -> dict[str, Any]:
    p = value.parameters
    row = {_RENAMED.get(name, name): cell for name, cell in msgspec.structs.asdict(value).items()}
    return row | {
        "operation": p.get("operation", ""),
        "alternative": p.get("format") or p.get("library") or p.get("file", ""),
        "parameters": "; ".join(f"{key} {text}" for key, text in p.items() if text),
    }


def _row(match: Match, order: Order | None) -> dict[str, Any]:
    row = _published(match.published) | {name: getattr(match, name) for name in _OF_A_MATCH}
    row |= {
        "case": match.case.name,
        "phase": match.phase.phase,
        "repetitions": match.phase.seconds.n,
        "warning_codes": " ".join(caveat.code for caveat in match.phase.warnings),
    }
    row |= bounded("here here_low here_high", match.estimate)
    row |= bounded("ratio ratio_low ratio_high", match.estimate, 1 / match.published.value)
    if order is not None:
        row |= {
            "order": str(order.verdict),
            "pairs_same": order.agreeing,
            "pairs_other": order.disagreeing,
            "pairs_undecided": order.undecided,
        }
    return row


def _markdown(found: SideBySide, figures: Sequence[str]) -> Iterator[str]:
    """Yield the lines of `published.md`, the verdict first."""
    yield from (f"# Published and here: {found.study.name}", "")
    yield from (f"{found.study.title}: <{found.study.url}>", "")
    yield from (f"- {escape_markdown(line)}" for line in verdict_lines(found))
    for figure in figures:
        yield from ("", f"![Published numbers and those measured here]({figure})")
    if found.matches:
        yield from ("", "## Numbers", "", _HOW_TO_READ[0], "")
        yield from markdown_table(HEADINGS, map(cells, found.matches))
        yield from ("", "## Orders", "", _HOW_TO_READ[1], "")
        yield from markdown_table(ORDER_HEADINGS, map(order_cells, found.orders))
        yield from ("", "## Why they may differ", "")
        yield from markdown_table(("what", "there", "here", "bears on"), found.reasons)
        sources = dict.fromkeys(f"{m.published.source} ({m.published.url})" for m in found.matches)
        yield from ("", f"Published numbers: {'; '.join(sources)}.")
    if found.claims:
        yield from ("", "## The study's text and its own numbers", "")
        yield from (f"- {escape_markdown(line)}" for line in found.claims)
