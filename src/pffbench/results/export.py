"""The derived files of a results directory, and the summary on the terminal."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from pffbench.record.run_json import RunRecord
from pffbench.regular_files import replacing, write_replacing
from pffbench.results.answer import Answer, lines_of
from pffbench.results.columns import (
    Column,
    columns_of,
    details,
    legends,
    notes,
    ordered,
    title,
)
from pffbench.results.counts import counts_table
from pffbench.results.frames import SAMPLES, samples_of
from pffbench.results.grid import ways_table
from pffbench.results.phases import PhaseSummary
from pffbench.results.quantities import CASE_QUANTITIES, PHASE_QUANTITIES
from pffbench.results.summary import CaseSummary, Summary
from pffbench.results.table import Table
from pffbench.text import escape_markdown, one_line


def write_summary(summary: Summary, directory: str | Path) -> list[Path]:
    """Write `summary.csv`, `samples.csv` and `summary.md` into a results directory."""
    names = ("summary.csv", "samples.csv", "summary.md")
    phases, samples, text = (Path(directory) / name for name in names)
    with replacing(phases) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(quantity.name for quantity in (*CASE_QUANTITIES, *PHASE_QUANTITIES))
        for case in summary.cases:
            facts = [quantity.of(case) for quantity in CASE_QUANTITIES]
            for phase in case.phases.values():
                values = (quantity.of(phase) for quantity in PHASE_QUANTITIES)
                writer.writerow(
                    [*facts, *("; ".join(v) if isinstance(v, tuple) else v for v in values)]
                )
    with replacing(samples) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SAMPLES)
        for repetition in summary.run.repetitions:
            writer.writerows(map(_texts, samples_of(repetition)))
    write_replacing(text, "\n".join(_markdown(summary)) + "\n")
    return [phases, samples, text]


def _texts(row: Iterable[object]) -> list[object]:
    """Return a row as a table has it: truth in lower case, as in JSON."""
    return [str(value).lower() if isinstance(value, bool) else value for value in row]


def tables_of(summary: Summary) -> Iterator[Table]:
    """Yield the tables in addition to the answer: all ways, then each group of cases."""
    if summary.compared is not None:
        yield ways_table(summary.compared)
    if summary.record.traced:
        yield counts_table(summary.run)
    for cases in summary.timed_groups.values():
        yield from group_tables(cases, summary)


def group_tables(cases: Sequence[CaseSummary], summary: Summary) -> Iterator[Table]:
    """Yield the tables of a group: one for each part of the work."""
    columns = columns_of(cases)
    subject = [c for c in columns if c.part == "case"]
    parts = list(dict.fromkeys(c.part for c in columns if c.part != "case"))
    for part in parts:
        shown = [*subject, *(c for c in columns if c.part == part)]
        heading = title(cases, summary) if part == parts[0] else ""
        below = tuple(notes(cases)) if part == parts[-1] else ()
        yield Table(heading, [c.heading for c in shown], _rows(shown, cases), below)


def _rows(columns: Sequence[Column], cases: Sequence[CaseSummary]) -> list[list[str]]:
    return [[column.cell(case).text for column in columns] for case in ordered(cases)]


def _markdown(summary: Summary) -> Iterator[str]:
    record = summary.record
    yield f"# {record.name}"
    if record.question:
        yield from ("", escape_markdown(record.question))
    started = escape_markdown(record.started)
    yield from ("", f"{record.ranks} ranks{_nodes(record)}, {started}.", "")
    if summary.answer is not None:
        yield from _answer(summary.answer)
    for table in tables_of(summary):
        yield from ("", *table.markdown())
    for cases in summary.timed_groups.values():
        yield from ("", *_phase_table(ordered(cases), title(cases, summary)).markdown())
    yield from ("", "## Details", "", *_items([*details(summary), *legends(summary)]))
    warned = [(c, p) for c in summary.cases for p in c.phases.values() if p.warnings]
    if warned:
        yield from ("", "## Notes on single phases", "")
        yield from _items(
            f"{case.name} {p.phase}: {'; '.join(w.message for w in p.warnings)}"
            for case, p in warned
        )


def _items(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts as the items of a list in Markdown."""
    return (f"- {escape_markdown(text)}" for text in texts)


def _answer(answer: Answer) -> Iterator[str]:
    """Yield the answer in Markdown."""
    yield f"**{escape_markdown(answer.sentence)}**"
    if answer.rows:
        yield from ("", *answer.table.markdown())
    yield from ("", *_items(answer.below))
    if answer.command:
        yield from ("", escape_markdown(answer.why_command), "", f"    {one_line(answer.command)}")


def _nodes(record: RunRecord) -> str:
    """Return the number of nodes of a job, if known."""
    nodes = len(set(record.topology.nodes))
    return f" on {nodes} node(s)" if nodes else ""


def _phase_table(cases: Sequence[CaseSummary], subject: str) -> Table:
    names = list(dict.fromkeys(name for case in cases for name in case.phases))
    rows = [
        [case.name, *(_with_interval(case.phases.get(name)) for name in names)] for case in cases
    ]
    heading = f"Every phase of {subject}: median seconds (95 % interval)"
    return Table(heading, ["case", *names], rows)


def _with_interval(found: PhaseSummary | None) -> str:
    if found is None:
        return ""
    s = found.seconds
    interval = "" if math.isnan(s.low) else f" ({s.low:.3g}–{s.high:.3g})"
    return f"{s.median:.3g}{interval}"


def print_summary(summary: Summary, console: Console, *, tables: bool = False) -> None:
    """Print the tables, if they are asked for, and the answer."""
    if tables:
        for table in tables_of(summary):
            _print(console, table.lines())
            console.print()
        _print(console, legends(summary))
        console.print()
    if summary.answer is not None:
        _print(console, lines_of(summary.answer))


def _print(console: Console, lines: Iterable[str]) -> None:
    """Print lines as they are, whatever the width: commands are copied, and numbers read."""
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
