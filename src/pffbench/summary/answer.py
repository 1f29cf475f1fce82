"""The answer of a run: a sentence and a small table, or the reason why there is no answer.

Everything follows from `Summary.answers` and `Summary.cold_answers`, which hold what the judge
decided. The terminal, `summary.md`, `results.json`, `pffbench recommend` and the page show the same
words.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pffbench.summary.cautions import TRACED, busy
from pffbench.summary.conclusions import (
    absent,
    cases_of,
    column_heading,
    contender_labels,
    interval,
    listed,
    number,
    undecided,
    validity,
    what_would_decide,
)
from pffbench.summary.headline import Answer, Contender
from pffbench.summary.labels import Measured
from pffbench.summary.quantities import part_of_raw
from pffbench.summary.rank_test import FEWEST
from pffbench.summary.summary import Summary
from pffbench.summary.sweep_table import (
    SettingsTable,
    SweepAnswer,
    format_title,
    sweep_answer,
    verb_of,
)
from pffbench.text import counted, one_line

#: Rows of the table; a sweep over cases of one format may have many more.
_MOST_ROWS = 8
#: Most lines of the answer of a sweep on the terminal; `--tables` and `summary.md` have the rest.
_MOST_LINES = 10


class AnswerTable(msgspec.Struct, frozen=True):
    """The answer of a run.

    Parameters
    ----------
    word : {"ANSWER", "NO ANSWER"}
        Whether the run has one.
    sentence : str
        What is fastest; or why there is no answer, and what to do next.
    evidence : str
        Validity, repetitions and duration of the run.
    columns : tuple of str
        What was compared: writing, reading and where from.
    rows : tuple of tuple of str
        For each contender its name, and in each column its time over that of the fastest one.
        Empty without an answer.
    notes : tuple of str
        What the numbers are, what would decide the rest, and the speed of raw I/O.
    settings : tuple of SettingsTable
        Where settings other than the format vary: the times of each, of the first format first.
    brief : tuple of str
        What a terminal prints in place of the notes where settings vary; else empty.
    best : tuple of str
        There the fastest settings of each row; else empty.
    """

    word: Literal["ANSWER", "NO ANSWER"]
    sentence: str
    evidence: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    settings: tuple[SettingsTable, ...]
    brief: tuple[str, ...] = ()
    best: tuple[tuple[str, str], ...] = ()


class AnswerColumn(msgspec.Struct, frozen=True):
    """The comparisons of a column of the table.

    Parameters
    ----------
    heading : str
        What was compared, such as ``write to disk``.
    answers : tuple of Answer
        The comparisons.
    """

    heading: str
    answers: tuple[Answer, ...]

    @property
    def verb(self) -> str:
        """The infinitive, such as ``read from disk``, for the sentence."""
        return verb_of(self.heading)

    def entries(self, name: str) -> list[Contender]:
        """Return how a contender stands in each comparison; the fastest is no contender."""
        return [other for answer in self.answers for other in answer.others if other.name == name]

    def leads(self, name: str) -> int:
        """Return in how many comparisons a contender has the smallest median."""
        return sum(answer.name == name for answer in self.answers)


def answer_of(summary: Summary) -> AnswerTable | None:
    """Return the answer; None where a run compares nothing, or is not valid."""
    compares = summary.answers or summary.absent or summary.sweeps
    if summary.record.valid is not True or not compares:
        return None
    evidence = validity(summary)
    columns = answer_columns(summary)
    names = _ordered(columns)
    sweep = sweep_answer(summary, names)
    if reason := reason_for_none(summary, sweep):
        return AnswerTable("NO ANSWER", reason, evidence, (), (), (), ())
    if sweep and (sweep.single or not columns):
        # The contenders are the settings, which have tables of their own.
        cases = [case.sample.case for case in summary.cases if not case.raw]
        notes = [*sweep.notes, *_amount(summary, cases), *(f"{t}." for t in absent(summary))]
        notes += _raw_lines(summary, columns, names[0], sweep.single) if names else ()
        best = [(format_title(name), text) for name, text in sweep.best.items()]
        return AnswerTable(
            "ANSWER", sweep.sentence, evidence, (), (), tuple(notes), sweep.tables, sweep.brief,
            tuple(best),
        )  # fmt: skip
    label = _labels(summary)
    return AnswerTable(
        "ANSWER",
        " ".join([_sentence(columns, names, label), *([sweep.sentence] if sweep else [])]),
        evidence,
        tuple(column.heading for column in columns),
        tuple(
            (label[name], *(_cell(column, name) for column in columns))
            for name in names[:_MOST_ROWS]
        ),
        (*(sweep.notes if sweep else ()), *_notes(summary, columns, names)),
        sweep.tables if sweep else (),
        sweep.brief if sweep else (),
        tuple((label[name], sweep.best.get(name, "–")) for name in names) if sweep else (),
    )


def settings_lines(summary: Summary) -> list[str]:
    """Return what a sweep says of settings; nothing where nothing can be concluded."""
    if why_none(summary):
        return []
    sweep = sweep_answer(summary, _ordered(answer_columns(summary)))
    return [sweep.sentence, *sweep.notes] if sweep else []


def why_none(summary: Summary) -> str | None:
    """Return the sentence of NO ANSWER; None where there is an answer, or nothing to answer."""
    answer = answer_of(summary)
    return answer.sentence if answer and answer.word == "NO ANSWER" else None


def reason_for_none(summary: Summary, sweep: SweepAnswer | None) -> str | None:
    """Return why a valid run has no answer and what to do, in one line; None if it has one."""
    if not summary.answers and not sweep:
        return f"nothing is compared: {'; '.join(absent(summary))}"
    if why := obstacle(summary):
        return why
    others = [o for answer in summary.answers if not answer.too_short for o in answer.others]
    if all(other.standing == "undecided" for other in others) and not (sweep and sweep.decided):
        return f"nothing is decided: {what_would_decide(summary)}"
    return None


def obstacle(summary: Summary) -> str | None:
    """Return why nothing can be concluded from a run that compares something; None if it can."""
    if not summary.answers and not summary.sweeps:
        return None
    if summary.record.traced:
        return TRACED
    if disturbed := next(busy(summary.load), None):
        return disturbed
    if summary.answers and all(answer.too_short for answer in summary.answers):
        return (
            "the times are too short to measure (under 100 times the harness overhead); use larger "
            "arrays (shape, shape_per_rank)"
        )
    if max(case.repetitions for case in summary.cases) < FEWEST:
        return what_would_decide(summary)
    return None


def answer_columns(summary: Summary) -> list[AnswerColumn]:
    """Return the columns: the totals of the headline, and cold reads beside it."""
    found: dict[str, list[Answer]] = {}
    for answer in summary.all_answers:
        if not answer.too_short:
            heading = column_heading(summary, answer.total, cases_of(summary, [answer]))
            found.setdefault(heading, []).append(answer)
    return [AnswerColumn(heading, tuple(answers)) for heading, answers in found.items()]


def _ordered(columns: Sequence[AnswerColumn]) -> list[str]:
    """Return the contenders: those that are shown to be slower most seldom first."""
    slower: dict[str, int] = {}
    ratios: dict[str, list[float]] = {}
    for column in columns:
        for answer in column.answers:
            slower.setdefault(answer.name, 0)
            ratios.setdefault(answer.name, []).append(1.0)
            for other in answer.others:
                slower[other.name] = slower.get(other.name, 0) + (other.standing == "slower")
                ratios.setdefault(other.name, []).append(other.ratio.value)
    return sorted(slower, key=lambda name: (slower[name], statistics.fmean(ratios[name]), name))


def _labels(summary: Summary) -> dict[str, str]:
    """Return the names of the contenders; formats by the names that their makers write."""
    return {name: format_title(text) for name, text in contender_labels(summary).items()}


def _cell(column: AnswerColumn, name: str) -> str:
    """Return how many times as long as the fastest a contender takes, over all comparisons."""
    others, leads = column.entries(name), column.leads(name)
    slower = [other for other in others if other.standing == "slower"]
    if len(slower) == 1 == len(others) + leads:
        ratio = slower[0].ratio
        return f"{number(ratio.value)} slower ({interval(ratio)})"
    if slower:
        count = len(others) + leads
        some = f" in {len(slower)} of {count}" if len(slower) < count else ""
        return f"{_range(slower)} slower{some}"
    if open_ := [other for other in others if other.standing == "undecided"]:
        return f"same? {_range(open_)}"
    if leads > len(others):
        return "1.00"
    return "same" if others else "–"


def _range(others: Sequence[Contender]) -> str:
    """Return the lowest and the highest end of the intervals of some ratios."""
    low = min(other.ratio.low for other in others)
    high = max(other.ratio.high for other in others)
    if low <= 0 or not math.isfinite(high):
        medians = [other.ratio.value for other in others]
        return "–".join(dict.fromkeys((number(min(medians)), number(max(medians)))))
    return f"{number(low)}–{number(high)}"


def _sentence(columns: Sequence[AnswerColumn], names: Sequence[str], label: dict[str, str]) -> str:
    """Say what is fastest, of what is decided alone."""
    # Of a format that failed somewhere nobody knows whether it is slower there.
    never = [
        name
        for name in names
        if all(
            len(entries := column.entries(name)) + column.leads(name) == len(column.answers)
            and all(other.standing != "slower" for other in entries)
            for column in columns
        )
    ]
    best = {column.verb: name for column in columns if (name := _alone(column))}
    if len(never) == len(names):
        return f"None of {listed([label[n] for n in names])} is shown to be slower."
    if never and set(best.values()) == {never[0]} and len(best) == len(columns):
        return f"{label[never[0]]} is fastest in everything that was compared."
    if never:
        verb = "is" if len(never) == 1 else "are"
        text = f"{listed([label[n] for n in never])} {verb} never shown slower"
        own = [verb for verb, name in best.items() if name in never]
        return f"{text}, and fastest to {listed(own)}." if own else f"{text}."
    if not best:
        return "No format is never slower, and none is fastest in all comparisons of a column."
    told = ", ".join(f"{label[name]} to {verb}" for verb, name in best.items())
    return f"No format is fastest in everything; fastest are {told}."


def _alone(column: AnswerColumn) -> str | None:
    """Return the contender that is fastest in each comparison of a column, if that is decided."""
    first = {answer.name for answer in column.answers}
    slower = all(o.standing == "slower" for answer in column.answers for o in answer.others)
    return first.pop() if len(first) == 1 and slower else None


def _notes(
    summary: Summary, columns: Sequence[AnswerColumn], names: Sequence[str]
) -> Iterator[str]:
    every = [answer for column in columns for answer in column.answers]
    most = max(len(column.answers) for column in columns)
    over = f", {most} comparisons in a column" if most > 1 else ""
    cases = [name for a in every for name in (a.case, *(o.case for o in a.others))]
    yield from _amount(summary, cases, over)
    if short := sum(a.too_short for a in summary.all_answers):
        yield f"{short} comparisons are too short to measure and not in the table."
    yield from (f"{text}." for text in absent(summary))
    if {answer.key.settings for answer in every} == {"defaults"}:
        yield "Each library has its own defaults: they do not do the same work."
    if len(names) > _MOST_ROWS:
        yield f"{len(names) - _MOST_ROWS} more are slower more often; summary.md has them."
    yield from undecided(summary)
    yield from _raw_lines(summary, columns, names[0], _labels(summary)[names[0]])


def _amount(summary: Summary, cases: Sequence[str], over: str = "") -> Iterator[str]:
    """Say what the numbers of the tables are, and what was measured."""
    measured = Measured.of([summary.record.cases[name] for name in cases])
    amount = f"{measured}, " if measured.sizes else ""
    yield (
        f"Times as long as the fastest (medians; same: within {summary.margin:.0%}): "
        f"{amount}{counted(summary.record.ranks, 'rank')}{over}."
    )


def _raw_lines(
    summary: Summary, columns: Sequence[AnswerColumn], name: str, label: str
) -> Iterator[str]:
    """Say how fast raw I/O is, and what part of it a contender reaches."""
    if raw := [found for column in columns if (found := _raw(summary, column, name))]:
        speeds, parts = zip(*raw, strict=True)
        yield f"Raw I/O here: {', '.join(speeds)}; {label} reaches {listed(parts)} of it."


def _raw(summary: Summary, column: AnswerColumn, name: str) -> tuple[str, str] | None:
    """Return the raw speed of a column, and the part of it that a contender reaches.

    Of the comparison that moves most bytes, where the fixed costs of a file weigh least.
    """
    cases = summary.by_name
    largest = max(column.answers, key=lambda answer: cases[answer.case].nbytes)
    ways = {largest.name: largest.case} | {other.name: other.case for other in largest.others}
    found = cases[ways[name]].phases.get(largest.total) if name in ways else None
    if found is None or not found.rate or not found.roofline:
        return None
    speed = found.rate / found.roofline / 1e9
    return f"{column.verb} {speed:.2g} GB/s", part_of_raw(found.roofline)


def answer_lines(answer: AnswerTable, console: Console) -> list[Text | Table]:
    """Return the answer for a terminal; that of a sweep in ten lines."""
    style = "bold green" if answer.word == "ANSWER" else "bold yellow"
    first = Text.assemble((answer.word, style), f"  {one_line(answer.sentence)}")
    notes = [Text(one_line(text), style="dim") for text in answer.brief or answer.notes]
    last = Text(one_line(answer.evidence))
    columns, rows = answer.columns, answer.rows
    if len(answer.best) > 1 or any("?" in best for _, best in answer.best):
        columns = (*columns, "best settings (all: --tables)")
        rows = rows or tuple((name,) for name, _ in answer.best)
        rows = tuple((*row, best) for row, (_, best) in zip(rows, answer.best, strict=False))
    tables = [_table(columns, rows)] if rows else []
    if answer.brief:
        room = _MOST_LINES - sum(len(console.render_lines(one)) for one in (first, *notes, last))
        shown = (_table(columns, rows[:count]) for count in range(len(rows), 0, -1))
        tables = list(islice((t for t in shown if len(console.render_lines(t)) <= room), 1))
    return [first, *tables, *notes, last]


def settings_tables(answer: AnswerTable) -> Iterator[Text | Table]:
    """Yield the tables of settings for a terminal, each after its title."""
    for one in answer.settings:
        yield Text(one_line(one.title), style="bold")
        yield _table(one.columns, one.rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("", *columns):
        table.add_column(one_line(heading))
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return table
