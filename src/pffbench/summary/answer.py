"""The answer of a run: a sentence and a small table, or the reason why there is no answer.

Everything follows from `Summary.answers` and `Summary.cold_answers`, which hold what the judge
decided. The terminal, `summary.md`, `results.json`, `pffbench recommend` and the page show the same
words.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pffbench.summary.again import broken, command_again, larger
from pffbench.summary.cautions import TRACED, busy
from pffbench.summary.conclusions import (
    DECIDE_COLD,
    TOO_SHORT,
    absent,
    cases_of,
    column_heading,
    command_to_decide,
    contender_labels,
    evidence,
    interval,
    listed,
    most_repetitions,
    needed_repetitions,
    open_cold_reads,
    seconds_again,
    span,
    undecided,
    what_would_decide,
)
from pffbench.summary.headline import Answer, Contender
from pffbench.summary.labels import Measured, format_title
from pffbench.summary.measured import measured_times
from pffbench.summary.quantities import part_of_raw
from pffbench.summary.rank_test import FEWEST
from pffbench.summary.summary import Summary, resolution_of
from pffbench.summary.sweep_table import (
    SettingsTable,
    SweepAnswer,
    sweep_answer,
    verb_of,
)
from pffbench.text import counted, one_line
from pffbench.units import duration_text

#: Rows of the table; a sweep over cases of one format may have many more.
_MOST_ROWS = 8
#: Above this number contenders are counted, not named.
_MOST_NAMED = 3
#: Most lines of the answer on the terminal; what has no room is printed before it.
_MOST_LINES = 10


class AnswerTable(msgspec.Struct, frozen=True):
    """The answer of a run.

    Parameters
    ----------
    word : {"ANSWER", "NO ANSWER", "MEASURED"}
        Whether the run has one; ``MEASURED`` where it compares nothing.
    sentence : str
        What is fastest; or why there is no answer, and what to do next; or what was measured.
    evidence : str
        What was verified, repetitions and duration of the run.
    columns : tuple of str
        What was compared: writing, reading and where from.
    rows : tuple of tuple of str
        For each contender its name, and in each column its time over that of the fastest one, or
        its time where nothing is compared. Empty without an answer.
    legend : str
        What the numbers and marks of the table are.
    open : str
        What is open, and how many repetitions would decide it; or what the command is for.
    command : str
        The command that would decide what is open, or that measures again; empty where none helps.
    notes : tuple of str
        What else is to be known.
    facts : tuple of str
        What was measured, the speed of raw I/O, and in a sweep what each key changes.
    settings : tuple of SettingsTable
        Where settings other than the format vary: the times of each, of the first format first.
    brief : tuple of str
        What a terminal prints in place of the facts where settings vary; else empty.
    best : tuple of str
        There the fastest settings of each row; else empty.
    """

    word: Literal["ANSWER", "NO ANSWER", "MEASURED"]
    sentence: str
    evidence: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    legend: str = ""
    open: str = ""
    command: str = ""
    notes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    settings: tuple[SettingsTable, ...] = ()
    brief: tuple[str, ...] = ()
    best: tuple[tuple[str, str], ...] = ()

    def with_best(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Return columns and rows, the last column the best settings where the sentence lacks them.

        Where they differ, they are those of each total, in the order of the columns.
        """
        if not (len(self.best) > 1 or any("?" in best for _, best in self.best)):
            return self.columns, self.rows
        several = self.columns and any(" / " in best for _, best in self.best)
        each = " / ".join(re.split(r"\W", heading)[0] for heading in self.columns)
        rows = self.rows or tuple((name,) for name, _ in self.best)
        heading = f"best settings: {each}" if several else "best settings"
        return (*self.columns, heading), tuple(
            (*row, best) for row, (_, best) in zip(rows, self.best, strict=False)
        )


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

    def open_of(self, name: str) -> int:
        """Return in how many comparisons it is open whether a contender is the fastest."""
        return sum(
            any(o.standing == "undecided" and name in (answer.name, o.name) for o in answer.others)
            for answer in self.answers
        )

    def is_open_among(self, names: Sequence[str]) -> bool:
        """Return whether it is open which of some contenders is the fastest."""
        return any(
            other.standing == "undecided" and {answer.name, other.name} <= set(names)
            for answer in self.answers
            for other in answer.others
        )

    def is_slow(self, name: str) -> bool:
        """Return whether a contender is shown to be slower in a comparison."""
        return any(other.standing == "slower" for other in self.entries(name))

    def leads(self, name: str) -> int:
        """Return in how many comparisons a contender has the smallest median."""
        return sum(answer.name == name for answer in self.answers)


def answer_of(summary: Summary) -> AnswerTable | None:
    """Return the answer; None where a run has no time that counts, or is not valid."""
    if summary.record.valid is not True:
        return None
    told, columns = evidence(summary), answer_columns(summary)
    names = _ordered(columns)
    sweep = sweep_answer(summary, names)
    if none := reason_for_none(summary, sweep):
        return AnswerTable(
            "NO ANSWER", none.reason, told, open=none.before_command, command=none.command
        )
    if not (summary.answers or sweep):
        times = measured_times(summary)
        if times is None:
            return None
        return AnswerTable("MEASURED", evidence=told, **msgspec.structs.asdict(times))
    command = command_to_decide(summary, needed_repetitions(summary))
    answer = AnswerTable(
        "ANSWER",
        sweep.sentence if sweep else "",
        told,
        open="".join(text.removesuffix(".") + (":" if command else ".")
                     for text in undecided(summary)),
        command=command,
        settings=sweep.tables if sweep else (),
    )  # fmt: skip
    if sweep and (sweep.single or not columns):
        # The contenders are the settings, which have tables of their own.
        cases = [case.sample.case for case in summary.cases if not case.raw]
        raw = _raw_lines(columns, names[0], summary, sweep.single) if names else ()
        notes = tuple(f"{text}." for text in absent(summary))
        return msgspec.structs.replace(
            answer,
            notes=notes,
            facts=(*sweep.notes, _amount(summary, cases), *raw),
            brief=sweep.brief,
            best=tuple((format_title(name), text) for name, text in sweep.best.items()),
        )
    label = contender_labels(summary)
    rows = tuple(
        (label[name], *(_cell(column, name) for column in columns)) for name in names[:_MOST_ROWS]
    )
    every = [answer for column in columns for answer in column.answers]
    cases = [name for a in every for name in (a.case, *(o.case for o in a.others))]
    cold = open_cold_reads(summary) and DECIDE_COLD not in answer.open
    facts = (
        *([f"To decide the rest: {DECIDE_COLD}."] if cold else []),
        _amount(summary, cases),
        *_raw_lines(columns, names[0], summary, label[names[0]]),
    )
    return msgspec.structs.replace(
        answer,
        sentence=" ".join(filter(None, [_sentence(columns, names, label), answer.sentence])),
        columns=tuple(column.heading for column in columns),
        rows=rows,
        legend=_legend(columns, rows, summary.margin, settings=sweep is not None),
        notes=tuple(_notes(summary, every, names)),
        facts=(*(sweep.notes if sweep else ()), *facts),
        brief=sweep.brief if sweep else (),
        best=tuple((label[n], sweep.best.get(n, "–")) for n in names) if sweep else (),
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


def reason_for_none(summary: Summary, sweep: SweepAnswer | None) -> Obstacle | None:
    """Return why a valid run has no answer and what to do; None if it has one."""
    if summary.absent and not summary.answers and not sweep:
        return Obstacle(f"nothing is compared: {'; '.join(absent(summary))}", "")
    if why := obstacle(summary):
        return why
    others = [o for answer in summary.answers if not answer.too_short for o in answer.others]
    if (
        (summary.answers or sweep)
        and all(other.standing == "undecided" for other in others)
        and not (sweep and sweep.decided)
    ):
        reason = f"nothing is decided; {what_would_decide(summary)}"
        if command := command_to_decide(summary, needed_repetitions(summary)):
            return Obstacle(reason, command)  # the reason says how much longer it takes
        command = _command_for_longer(summary, summary.record.cases, _MORE)[1]
        return Obstacle(reason, command, seconds_again(summary, factor=_MORE))
    return None


class Obstacle(NamedTuple):
    """Why nothing can be concluded from the times of a run.

    Parameters
    ----------
    reason : str
        The reason and what to do, in one line.
    command : str
        The command to run instead; empty if none is known.
    seconds : float
        About how long it takes; 0 if that is not known.
    """

    reason: str
    command: str
    seconds: float = 0.0

    @property
    def before_command(self) -> str:
        """What is said of the command; nothing without one."""
        about = f" (about {duration_text(self.seconds)})" if self.seconds else ""
        return f"To measure again{about}:" if self.command else ""


def obstacle(summary: Summary) -> Obstacle | None:
    """Return why nothing can be concluded from the times of a run; None if it can."""
    if disturbed := disturbance(summary):
        return disturbed
    if not summary.answers and not summary.sweeps:
        return None
    if summary.answers and all(answer.too_short for answer in summary.answers):
        return _too_short(summary)
    if most_repetitions(summary) < FEWEST:
        command = command_to_decide(summary, FEWEST)
        return Obstacle(what_would_decide(summary), command, seconds_again(summary, FEWEST))
    return None


def disturbance(summary: Summary) -> Obstacle | None:
    """Return why the times of a run are not those of what it measured; None if they are."""
    record = summary.record
    if record.traced:
        few = {"repetitions": f"{FEWEST}"} if most_repetitions(summary) < FEWEST else {}
        command = command_again(record, {"counters": "false"} | few)
        return Obstacle(TRACED, command)  # how much faster it is without counts is not known
    if disturbed := next(busy(summary.load), None):
        return Obstacle(disturbed, command_again(record), seconds_again(summary))
    return None


def _too_short(summary: Summary) -> Obstacle:
    """Say that all times are too short, and by what they become long enough."""
    found = cases_of(summary, summary.answers)
    shortest = min(
        case.phases[answer.total].seconds.median
        for answer in summary.answers
        for case in found
        if case.sample.case in (answer.case, *(other.case for other in answer.others))
    )
    needed = _SPARE * resolution_of(summary.record) / shortest
    factor = 2 ** math.ceil(math.log2(max(2, needed)))
    words, command = _command_for_longer(summary, [c.sample.case for c in found], factor)
    seconds = seconds_again(summary, factor=factor)
    return Obstacle(f"the times are {TOO_SHORT}; {words}", command, seconds)


#: How much longer than needed times are made, and how many times as long where nothing is decided.
_SPARE, _MORE = 1.5, 4


def _command_for_longer(summary: Summary, names: Iterable[str], factor: int) -> tuple[str, str]:
    """Return how times become longer, in words, and the command; empty where one key cannot."""
    words, changes = larger(summary.record, names, factor)
    return words, command_again(summary.record, changes) if changes else ""


def answer_columns(summary: Summary) -> list[AnswerColumn]:
    """Return the columns: the totals of the headline, and cold reads beside it."""
    found: dict[str, list[Answer]] = {}
    for answer in summary.all_answers:
        if not answer.too_short:
            heading = column_heading(answer.total, cases_of(summary, [answer]))
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


def _cell(column: AnswerColumn, name: str) -> str:
    """Return how many times as long as the fastest a contender takes, over all comparisons."""
    others, leads, open_ = column.entries(name), column.leads(name), column.open_of(name)
    count = len(others) + leads
    slower = sum(other.standing == "slower" for other in others)
    if count and count in (slower, open_):
        text = span([*[1.0] * leads, *(other.ratio.value for other in others)])
        text += " slower" if slower else " ?"
        only = [o.ratio for o in others if o.ratio.is_bounded]
        return f"{text} {interval(only[0])}" if count == 1 == len(only) else text
    mark = f", {open_} open ?" if open_ else ""
    if slower:
        return f"{slower} of {count} slower{mark}"
    equal = any(other.standing == "equal" for other in others)
    return ("same" if equal and leads <= len(others) else "1.00" if count else "–") + mark


def _legend(
    columns: Sequence[AnswerColumn], rows: Sequence[Sequence[str]], margin: float, *, settings: bool
) -> str:
    """Say what the numbers of the table are, and of its marks those that occur."""
    cells = " ".join(cell for row in rows for cell in row[1:])
    most = max(len(column.answers) for column in columns)
    marks = {
        " to ": f"a to b: {most} comparisons",
        "[": "[95% interval]",
        "same": f"same: ±{margin:.0%}",
    }
    told = ", ".join(text for mark, text in marks.items() if mark in cells)
    at_best = ", at best settings" if settings else ""
    return f"Times as long as the fastest{at_best}" + (f" ({told})" if told else "")


def _sentence(columns: Sequence[AnswerColumn], names: Sequence[str], label: dict[str, str]) -> str:
    """Say what is fastest, of what is decided alone."""
    # Of a format that failed somewhere nobody knows whether it is slower there.
    never = [
        name
        for name in names
        if all(
            len(column.entries(name)) + column.leads(name) == len(column.answers)
            and not column.is_slow(name)
            for column in columns
        )
    ]
    best = {column.verb: name for column in columns if (name := _alone(column))}
    if len(never) == len(names) > _MOST_NAMED:
        return f"None of the {len(names)} is shown to be slower."
    if len(never) == len(names):
        told = [label[name] for name in names]
        who = " nor ".join(told) if len(told) == 2 else listed(told)
        return f"{'Neither' if len(told) == 2 else 'None of'} {who} is shown to be slower."
    if never and set(best.values()) == {never[0]} and len(best) == len(columns):
        return f"{label[never[0]]} is fastest in everything that was compared."
    if len(never) > 1 and any(column.is_open_among(never) for column in columns):
        slow = [name for name in names if any(column.is_slow(name) for column in columns)]
        verb, word = "is" if len(slow) == 1 else "are", "faster" if len(never) == 2 else "fastest"
        behind = f"{listed([label[n] for n in slow])} {verb} shown slower. " if slow else ""
        return f"{behind}Whether {listed([label[n] for n in never], 'or')} is {word} is open (?)."
    if never:
        verb = "is" if len(never) == 1 else "are"
        text = f"{listed([label[n] for n in never])} {verb} never shown slower"
        own = [verb for verb, name in best.items() if name in never]
        return f"{text}, and fastest to {listed(own)}." if own else f"{text}."
    if not best:
        return "Each format is slower somewhere, and none is fastest in a whole column."
    won: dict[str, list[str]] = {}
    for verb, name in best.items():
        won.setdefault(label[name], []).append(verb)
    return f"Fastest: {', '.join(f'{name} to {listed(verbs)}' for name, verbs in won.items())}."


def _alone(column: AnswerColumn) -> str | None:
    """Return the contender that is fastest in each comparison of a column, if that is decided."""
    first = {answer.name for answer in column.answers}
    slower = all(o.standing == "slower" for answer in column.answers for o in answer.others)
    return first.pop() if len(first) == 1 and slower else None


def _notes(summary: Summary, every: Sequence[Answer], names: Sequence[str]) -> Iterator[str]:
    if short := sum(a.too_short for a in summary.all_answers):
        yield f"{short} comparisons are too short to measure and not in the table."
    yield from (f"{text}." for text in absent(summary))
    if {answer.key.settings for answer in every} == {"defaults"}:
        yield "Each library has its own defaults: they do not do the same work."
    if len(names) > _MOST_ROWS:
        yield f"{len(names) - _MOST_ROWS} more are slower more often; summary.md has them."


def _amount(summary: Summary, cases: Sequence[str]) -> str:
    """Say what was measured."""
    measured = Measured.of([summary.record.cases[name] for name in cases])
    amount = f"{measured}, " if measured.sizes else ""
    return f"Measured: {amount}{counted(summary.record.ranks, 'rank')}."


def _raw_lines(
    columns: Sequence[AnswerColumn], name: str, summary: Summary, label: str
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


class PrintedAnswer(msgspec.Struct, frozen=True):
    """The answer as a terminal shows it.

    Parameters
    ----------
    before : tuple of Text
        Facts for which the answer has no room.
    lines : tuple of Text or Table
        The answer, in ten lines at most.
    """

    before: tuple[Text, ...]
    lines: tuple[Text | Table, ...]


def printed(answer: AnswerTable, console: Console) -> PrintedAnswer:
    """Return the answer for a terminal."""
    style = "bold green" if answer.word != "NO ANSWER" else "bold yellow"
    first = Text.assemble((answer.word, style), f"  {one_line(answer.sentence)}")
    quiet = [Text(one_line(text), style="dim") for text in (*answer.notes, answer.open) if text]
    command = broken(one_line(answer.command), console.width) if answer.command else []
    last = [*quiet, *map(Text, command), Text(one_line(answer.evidence))]
    legend = [Text(one_line(answer.legend), style="dim")] if answer.legend else []
    facts = [Text(one_line(text), style="dim") for text in answer.brief or answer.facts]
    room = _MOST_LINES - _height([first, *last], console)
    tables = list(_fitting(answer, console, room))
    room -= _height(tables, console)
    count = tables[0].row_count if tables else 0
    shown: list[Text] = []
    before = [Text(one_line(_in_a_line(answer.columns, row))) for row in answer.rows[count:]]
    # In a sweep the heading of a column says what the numbers are.
    for text in [*facts, *legend] if answer.brief else [*legend, *facts]:
        fits = _height([text], console) <= room
        room -= _height([text], console) if fits else 0
        (shown if fits else before).append(text)
    return PrintedAnswer(tuple(before), (first, *tables, *shown, *last))


def _in_a_line(columns: Sequence[str], row: Sequence[str]) -> str:
    """Return a row for which the table has no room."""
    cells = (f"{column} {cell}" for column, cell in zip(columns, row[1:], strict=True))
    return f"{row[0]}: {'; '.join(cells)}"


def _height(parts: Sequence[Text | Table], console: Console) -> int:
    return sum(len(console.render_lines(one)) for one in parts)


#: What cells lose, one after another, where a table is wider than the terminal.
_SHORTER = (r" \[[^]]*\]", r"(?<=\d) of \d+(?= slower)")


def _fitting(answer: AnswerTable, console: Console, room: int) -> Iterator[Table]:
    """Yield the table with as many of its rows as there is room for."""
    columns, rows = answer.with_best()
    wide = console.options.update(width=1000)
    for pattern in _SHORTER:
        if console.measure(_table(columns, rows), options=wide).maximum > console.width:
            rows = tuple((row[0], *(re.sub(pattern, "", c) for c in row[1:])) for row in rows)
    shown = (_table(columns, rows[:count]) for count in range(len(rows), 0, -1))
    yield from [one for one in shown if _height([one], console) <= room][:1]


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
