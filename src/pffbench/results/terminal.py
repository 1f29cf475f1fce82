"""The summary on a terminal or in a log."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pffbench.results.conclusions import cautions, verdict_lines
from pffbench.results.summary import CaseSummary, Summary
from pffbench.results.tables import Column, columns_of, invalid_lines, ordered, stored_lines, title
from pffbench.text import one_line


def print_summary(summary: Summary, console: Console) -> None:
    """Print the tables, how arrays lie on disk, warnings, and last the verdict."""
    for cases in summary.groups.values():
        console.print(Text(one_line(title(cases, summary))), style="bold")
        for table in _tables(cases, console):
            console.print(table)
        for text in stored_lines(cases):
            console.print(Text(f"  {one_line(text)}"), style="dim")
        for text in invalid_lines(cases):
            console.print(Text(f"  {one_line(text)}"), style="red")
        console.print()
    for text in cautions(summary):
        console.print(Text(one_line(text)))
    for text in verdict_lines(summary):
        console.print(Text(one_line(text)))


def _tables(cases: Sequence[CaseSummary], console: Console) -> list[Table]:
    """Return one table, or one for writing and one for reading where the terminal is narrow."""
    columns = columns_of(cases)
    whole = _table(columns, cases)
    if console.measure(whole, options=console.options.update(width=1000)).maximum <= console.width:
        return [whole]
    parts = dict.fromkeys(c.part for c in columns if c.part != "case")
    return [_table([c for c in columns if c.part in ("case", part)], cases) for part in parts]


def _table(columns: Sequence[Column], cases: Sequence[CaseSummary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column.heading, justify="left" if column.is_text else "right")
    for case in ordered(cases):
        cells = (Text(one_line(column.cell(case))) for column in columns)
        table.add_row(*cells, style=_style(case))
    return table


def _style(case: CaseSummary) -> str | None:
    if case.invalid:
        return "red"
    return "dim" if case.raw else None
