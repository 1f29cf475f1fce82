"""Tables of a run compared with a study: `published.csv` and `published.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pffbench.regular_files import write_replacing
from pffbench.text import escape_markdown, markdown_table
from pffbench_analysis.derived_files import write_csv
from pffbench_analysis.published.counterparts import Match, PublishedValue
from pffbench_analysis.published.order import Order
from pffbench_analysis.published.sidebyside import SideBySide
from pffbench_analysis.published.wording import (
    HEADINGS,
    ORDER_HEADINGS,
    cells,
    order_cells,
    verdict_lines,
)

_CSV_COLUMNS = (
    "study", "subject", "variant", "nearest", "operation", "alternative", "quantity", "unit",
    "published", "published_low", "published_high", "published_sd", "published_alike",
    "published_as", "approximate", "reading",
    "statistic", "source", "url", "note", "parameters", "case", "phase", "repetitions", "here",
    "here_low", "here_high", "ratio", "ratio_low", "ratio_high", "order", "pairs_same",
    "pairs_other", "pairs_undecided", "warning_codes",
)  # fmt: skip
_HOW_TO_READ = (
    "Published: as printed there, ± standard deviation where it is told; ≈ rounded or told as "
    "about. Here: median over the repetitions "
    "that count, with its 95 % interval (of fewer than five none); † under 100 "
    "times what the harness itself takes, not to be relied on. × published: here over published.",
    "An order is that of the medians; ~ stands between neighbours that are not told apart. "
    "Published numbers within each other's standard deviation, or called alike by their authors, "
    "are no pair. A pair is decided by the test of the headline, in view of all pairs; none is "
    "with fewer than seven repetitions, or where one of the two is below resolution.",
)


def write_numbers(found: SideBySide, path: Path) -> None:
    """Write a row for each number with a counterpart; without any, all published numbers."""
    orders = {id(match): order for order in found.orders for match in order.matches}
    rows = [_row(match, orders.get(id(match))) for match in found.matches]
    write_csv(path, rows or map(_published, found.values), _CSV_COLUMNS)


def _published(value: PublishedValue) -> dict[str, Any]:
    p = value.parameters
    return {
        "study": value.study,
        "operation": p.get("operation", ""),
        "alternative": p.get("format") or p.get("library") or p.get("file", ""),
        "quantity": value.quantity,
        "unit": value.unit,
        "published": value.value,
        "published_low": value.low,
        "published_high": value.high,
        "published_sd": value.sd,
        "published_alike": value.alike,
        "approximate": value.approximate,
        "reading": value.reading,
        "statistic": value.statistic,
        "source": value.source,
        "url": value.url,
        "note": value.note,
        "parameters": "; ".join(f"{key} {text}" for key, text in p.items() if text),
    }


def _row(match: Match, order: Order | None) -> dict[str, Any]:
    low, high = match.interval
    known = match.published.value
    row = _published(match.published) | {
        "subject": match.subject,
        "variant": match.variant,
        "nearest": match.nearest,
        "operation": match.operation,
        "alternative": match.alternative,
        "published_as": match.published_as,
        "case": match.case.sample.case,
        "phase": match.phase.phase,
        "repetitions": match.phase.seconds.n,
        "here": match.here,
        "here_low": low,
        "here_high": high,
        "ratio": match.ratio,
        "ratio_low": low / known,
        "ratio_high": high / known,
        "warning_codes": " ".join(caveat.code for caveat in match.phase.warnings),
    }
    if order is not None:
        row |= {
            "order": str(order.verdict),
            "pairs_same": order.agreeing,
            "pairs_other": order.disagreeing,
            "pairs_undecided": order.undecided,
        }
    return row


def write_markdown(found: SideBySide, figures: Sequence[str], path: Path) -> None:
    """Write `published.md`, the verdict first.

    Parameters
    ----------
    found : SideBySide
        Comparison to write.
    figures : sequence of str
        File names of the figures.
    path : Path
        The file.
    """
    write_replacing(path, "\n".join(_markdown(found, figures)) + "\n")


def _markdown(found: SideBySide, figures: Sequence[str]) -> Iterator[str]:
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
        rows = ((r.about, r.there, r.here, r.bears_on) for r in found.reasons)
        yield from markdown_table(("what", "there", "here", "bears on"), rows)
        sources = dict.fromkeys(f"{m.published.source} ({m.published.url})" for m in found.matches)
        yield from ("", f"Published numbers: {'; '.join(sources)}.")
    if found.claims:
        yield from ("", "## The study's text and its own numbers", "")
        yield from (f"- {escape_markdown(line)}" for line in found.claims)
