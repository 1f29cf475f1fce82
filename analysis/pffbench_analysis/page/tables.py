"""Tables of a page: one per comparison, each number with its interval and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pffbench.summary.columns import (
    Column,
    columns_of,
    ignored_lines,
    ordered,
    stored_lines,
    stretch_lines,
)
from pffbench.summary.quantities import Cell
from pffbench.summary.shards import ShardCost, shard_lines
from pffbench.summary.statistics import Caveat
from pffbench.summary.summary import CaseSummary, Summary

from pffbench_analysis.captions import heading
from pffbench_analysis.style import colour

#: Mark and meaning of each warning, the gravest first.
MARKS = {
    "below_resolution": ("r", "below resolution: under 100 times what the harness itself takes"),
    "few_repetitions": ("n", "fewer than five repetitions"),
    "large_spread": ("s", "spread: standard deviation over 10 % of the mean"),
    "outliers": ("o", "outliers: repetitions with a modified z-score over 3.5"),
    "slow_first": ("f", "the first repetition (warm-up, not counted) was slow"),
    "page_faults": ("m", "memory mapped anew for half of the bytes: the allocator is in the time"),
    "cache_unproved": ("c", "state of the page cache before reading not proved"),
}


@dataclass(frozen=True)
class Mark:
    """The warnings of a number: the letter of the gravest one, and all their reasons."""

    letter: str
    message: str


@dataclass(frozen=True)
class MarkedCell:
    """A number, its interval and its mark; empty text where there is none."""

    text: str
    interval: str
    mark: Mark | None


@dataclass(frozen=True)
class Row:
    """A case.

    Parameters
    ----------
    case : CaseSummary
        The case.
    colour : str
        The colour of its backend.
    cells : list of MarkedCell
        Its numbers; an INVALID case has none.
    """

    case: CaseSummary
    colour: str
    cells: list[MarkedCell]


@dataclass(frozen=True)
class Table:
    """The cases of a comparison.

    Parameters
    ----------
    title : str
        Subject of the comparison.
    headings : list of (str, str)
        For each column of numbers: its part, ``write``, ``update`` or ``read``, and its text.
    has_variants : bool
        Whether cases differ in more than format, settings and transfer.
    rows : list of Row
        The cases, raw bytes last.
    stored : list of str
        Storage of the arrays on disk, and what shards cost.
    legend : list of (str, str)
        Marks that occur, and their meaning.
    ignored : list of str
        Hints and stripes that were asked for and are not in force.
    """

    title: str
    headings: list[tuple[str, str]]
    has_variants: bool
    rows: list[Row]
    stored: list[str]
    legend: list[tuple[str, str]]
    ignored: list[str]


def table_of(
    cases: Sequence[CaseSummary],
    summary: Summary,
    differs: dict[str, str],
    costs: Sequence[ShardCost] = (),
) -> Table:
    """Make the table of a comparison."""
    columns = [column for column in columns_of(cases, "page") if not column.is_text]
    rows = [_row(case, columns) for case in ordered(cases)]
    letters = {cell.mark.letter for row in rows for cell in row.cells if cell.mark}
    return Table(
        heading(cases, summary, differs),
        [(column.part, column.heading) for column in columns],
        any(case.variant for case in cases),
        rows,
        [
            *stored_lines(cases),
            *shard_lines(costs, cases[0].sample.group),
            *stretch_lines(cases),
        ],
        [(letter, text) for letter, text in MARKS.values() if letter in letters],
        list(ignored_lines(cases)),
    )


def _row(case: CaseSummary, columns: Sequence[Column]) -> Row:
    cells = [] if case.invalid else [_marked(column.cell(case)) for column in columns]
    return Row(case, colour(case.sample.backend), cells)


def _marked(cell: Cell) -> MarkedCell:
    return MarkedCell(cell.text, cell.interval, mark_of(cell.warnings))


def mark_of(warnings: Sequence[Caveat]) -> Mark | None:
    """Return the one mark of some warnings."""
    if not warnings:
        return None
    order = list(MARKS)
    codes = [w.code for w in warnings if w.code in MARKS]
    letter = MARKS[min(codes, key=order.index)][0] if codes else "!"
    return Mark(letter, "; ".join(w.message for w in warnings))
