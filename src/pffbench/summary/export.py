"""The summary as `summary.csv`, `summary.md` and on the terminal."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pffbench.record.run_json import RunRecord
from pffbench.regular_files import replacing, write_replacing
from pffbench.summary.answer import AnswerTable, answer_of, printed, settings_tables
from pffbench.summary.best_number import best_number_lines
from pffbench.summary.cautions import cautions
from pffbench.summary.columns import (
    Column,
    columns_of,
    details,
    ignored_lines,
    invalid_lines,
    ordered,
    stored_lines,
    stretch_lines,
    title,
)
from pffbench.summary.conclusions import sentences, verdict_lines
from pffbench.summary.legend import legend_lines
from pffbench.summary.levers import lever_lines
from pffbench.summary.phases import PhaseSummary
from pffbench.summary.quantities import CASE_QUANTITIES, PHASE_QUANTITIES
from pffbench.summary.shards import shard_costs, shard_lines
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.text import escape_markdown, fits, make_table, markdown_table, one_line

#: Columns from which on the terminal has room for the tables.
_WIDE = 100


def write_summary(summary: Summary, directory: str | Path) -> None:
    """Write `summary.csv` and `summary.md` into a results directory."""
    place = Path(directory)
    with replacing(place / "summary.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(quantity.name for quantity in (*CASE_QUANTITIES, *PHASE_QUANTITIES))
        for case in summary.cases:
            facts = [quantity.of(case) for quantity in CASE_QUANTITIES]
            for phase in case.phases.values():
                values = (quantity.of(phase) for quantity in PHASE_QUANTITIES)
                writer.writerow(
                    [*facts, *("; ".join(v) if isinstance(v, tuple) else v for v in values)]
                )
    write_replacing(place / "summary.md", "\n".join(_markdown(summary)) + "\n")


def _markdown(summary: Summary) -> Iterable[str]:
    record = summary.record
    yield f"# {record.name}"
    if record.question:
        yield from ("", escape_markdown(record.question))
    yield from (
        "",
        f"{record.ranks} ranks{_nodes(record)}, {escape_markdown(record.started)}.",
        "",
    )
    answer = answer_of(summary)
    yield from _answer(answer)
    texts = [*_verdict_beside(answer, summary), *cautions(summary), *_levers(summary)]
    yield from _items(texts)
    for cases in summary.groups.values():
        yield from ("", f"## {escape_markdown(title(cases, summary))}", "")
        columns = columns_of(cases)
        yield from markdown_table(
            [c.heading for c in columns],
            ([c.cell(case).text for c in columns] for case in ordered(cases)),
            [c.heading for c in columns if c.is_text],
        )
        yield ""
        yield from _items(text for text, _ in _notes(cases))
        yield from ("", "Every phase, median seconds (95 % interval):", "")
        yield from _phase_table(ordered(cases))
    yield from ("", "## Details", "")
    yield from _items(details(summary))
    warned = [(c, p) for c in summary.cases for p in c.phases.values() if p.warnings]
    if warned:
        yield from ("", "## Notes on single phases", "")
        yield from _items(
            f"{case.sample.case} {p.phase}: {'; '.join(w.message for w in p.warnings)}"
            for case, p in warned
        )


def _items(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts as the items of a list in Markdown."""
    return (f"- {escape_markdown(text)}" for text in texts)


def _notes(cases: Sequence[CaseSummary]) -> Iterator[tuple[str, str]]:
    """Yield the lines below the table of a comparison, each with its style on a terminal."""
    yield from ((text, "dim") for text in stored_lines(cases))
    yield from ((text, "dim") for text in stretch_lines(cases))
    yield from ((text, "yellow") for text in ignored_lines(cases))
    yield from ((text, "red") for text in invalid_lines(cases))


def _verdict_beside(answer: AnswerTable | None, summary: Summary) -> list[str]:
    """Return the verdict; of a run with an answer, which says what is open, the sentences alone."""
    return verdict_lines(summary) if answer is None else sentences(summary)


def _answer(answer: AnswerTable | None) -> Iterator[str]:
    """Yield the answer in Markdown."""
    if answer is None:
        return
    yield from (f"**{answer.word}** {escape_markdown(answer.sentence)}", "")
    if answer.rows:
        yield from markdown_table(["", *answer.columns], answer.rows, ["", *answer.columns])
        yield ""
    if answer.legend:
        yield from (escape_markdown(answer.legend), "")
    for one in answer.settings:
        yield from (f"{escape_markdown(one.title)}:", "")
        yield from markdown_table(["", *one.columns], one.rows, ["", *one.columns])
        yield ""
    if answer.open:
        yield from (escape_markdown(answer.open), "")
    if answer.command:
        yield from (f"    {one_line(answer.command)}", "")
    yield from _items((*answer.notes, *answer.facts, answer.evidence))


def _nodes(record: RunRecord) -> str:
    """Return the number of nodes of a job, if known."""
    nodes = len(set(record.topology["nodes"]))
    return f" on {nodes} node(s)" if nodes else ""


def _phase_table(cases: Sequence[CaseSummary]) -> Iterable[str]:
    names = list(dict.fromkeys(name for case in cases for name in case.phases))
    rows = (
        [case.sample.case, *(_with_interval(case.phases.get(name)) for name in names)]
        for case in cases
    )
    return markdown_table(["case", *names], rows, ["case"])


def _with_interval(found: PhaseSummary | None) -> str:
    if found is None:
        return ""
    s = found.seconds
    interval = "" if math.isnan(s.low) else f" ({s.low:.3g}–{s.high:.3g})"
    return f"{s.median:.3g}{interval}"


def print_summary(summary: Summary, console: Console, *, tables: bool | None = None) -> None:
    """Print the caveats, and last the answer; with the tables the sentences of the verdict too.

    Parameters
    ----------
    summary : Summary
        The run.
    console : Console
        Where to.
    tables : bool, optional
        Whether to print the tables; by default where they have room, or nothing is answered.
    """
    answer = answer_of(summary)
    few = answer is None or answer.word == "MEASURED"
    if tables if tables is not None else (few or console.width >= _WIDE):
        _print_tables(summary, answer, console)
        lines = _verdict_beside(answer, summary)
    else:
        lines = []
    for text in (*cautions(summary), *lines):
        if answer is None or text.removeprefix("warning: ") != answer.sentence:
            console.print(Text(one_line(text)))
    for text in _levers(summary):
        console.print(Text(one_line(text)), soft_wrap=True)  # a command is copied as one line
    if answer is not None:
        for part in printed(answer, console).before:
            console.print(part)
        console.print()
    print_answer(summary, console)


def print_answer(summary: Summary, console: Console) -> None:
    """Print the answer, where there is one."""
    if (answer := answer_of(summary)) is not None:
        for part in printed(answer, console).lines:
            console.print(part)


def _print_tables(summary: Summary, answer: AnswerTable | None, console: Console) -> None:
    """Print the tables, with the legend and the storage layouts."""
    for cases in summary.groups.values():
        console.print(Text(one_line(title(cases, summary))), style="bold")
        for table in _tables(cases, console):
            console.print(table)
        for text, style in _notes(cases):
            console.print(_indented(text), style=style)
        console.print()
    if summary.groups:
        for text in legend_lines(summary):
            console.print(_indented(text), style="dim")
        console.print()
    for part in settings_tables(answer) if answer else ():
        console.print(part)


def _levers(summary: Summary) -> Iterator[str]:
    """Yield the sentences on hints, writer ranks and shards."""
    yield from lever_lines(summary)
    yield from best_number_lines(summary)
    costs = shard_costs(summary)
    for group in summary.groups:
        yield from shard_lines(costs, group)


def _indented(text: str) -> Padding:
    return Padding(Text(one_line(text)), (0, 0, 0, 2), expand=False)


def _tables(cases: Sequence[CaseSummary], console: Console) -> list[Table]:
    """Return one table; on a narrow terminal one for each part, and one for what does not fit."""
    columns = columns_of(cases)
    if fits(table := _table(columns, cases), console):
        return [table]
    subject = [c for c in columns if c.part == "case"]
    tables: list[Table] = []
    left: list[Column] = []
    for part in dict.fromkeys(c.part for c in columns if c.part != "case"):
        shown, rest = _fitting(subject, [c for c in columns if c.part == part], cases, console)
        tables.append(_table([*subject, *shown], cases))
        left += [replace(c, heading=f"{part} {c.heading}") for c in rest]
    while left:
        shown, left = _fitting(subject, left, cases, console)
        tables.append(_table([*subject, *shown], cases))
    return tables


def _fitting(
    subject: Sequence[Column],
    columns: Sequence[Column],
    cases: Sequence[CaseSummary],
    console: Console,
) -> tuple[list[Column], list[Column]]:
    """Return the first columns, which fit beside those of the subject, and the others."""
    count = 1
    while count < len(columns) and fits(_table([*subject, *columns[: count + 1]], cases), console):
        count += 1
    return list(columns[:count]), list(columns[count:])


def _table(columns: Sequence[Column], cases: Sequence[CaseSummary]) -> Table:
    table = make_table()
    for column in columns:
        table.add_column(
            column.heading, justify="left" if column.is_text else "right", overflow="fold"
        )
    for case in ordered(cases):
        cells = (Text(one_line(column.cell(case).text)) for column in columns)
        table.add_row(*cells, style=_style(case))
    return table


def _style(case: CaseSummary) -> str | None:
    if case.invalid:
        return "red"
    return "dim" if case.raw else None
