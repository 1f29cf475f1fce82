"""Tables of a page: one per comparison, each number with its interval and warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pffbench.summary.columns import (
    Column,
    Part,
    Unit,
    footprint_columns,
    ignored_lines,
    ordered,
    part_of_raw,
    significant,
    stored_lines,
    stretch_lines,
    unit_of,
)
from pffbench.summary.conclusions import interval, number
from pffbench.summary.shards import ShardCost, shard_lines
from pffbench.summary.statistics import FEWEST_FOR_INTERVAL, Caveat, Spread
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary
from pffbench_analysis.captions import heading
from pffbench_analysis.charts import reach
from pffbench_analysis.style import colour, plain

_MIB = 2**20
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
class Cell:
    """A number, its interval and its mark; empty text where there is none."""

    text: str = ""
    interval: str = ""
    mark: Mark | None = None


@dataclass(frozen=True)
class Row:
    """A case.

    Parameters
    ----------
    backend, colour, settings, transfer, variant : str
        Identity of the case.
    raw : bool
        Whether it moves raw bytes.
    n : int
        Number of counted repetitions.
    invalid : str
        Reason for exclusion; such a row has no numbers.
    cells : list of Cell
        Its numbers.
    """

    backend: str
    colour: str
    settings: str
    transfer: str
    variant: str
    raw: bool
    n: int
    invalid: str
    cells: list[Cell]


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
    legend: list[tuple[str, str]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: its part, its heading, and the function that gives a case's number."""

    part: str
    heading: str
    cell: Callable[[CaseSummary], Cell]


def table_of(
    cases: Sequence[CaseSummary],
    summary: Summary,
    differs: dict[str, str],
    costs: Sequence[ShardCost] = (),
) -> Table:
    """Make the table of a comparison."""
    columns = _columns(cases)
    rows = [_row(case, columns) for case in ordered(cases)]
    letters = {cell.mark.letter for row in rows for cell in row.cells if cell.mark}
    return Table(
        heading(cases, summary, differs),
        [(column.part, column.heading) for column in columns],
        any(case.variant for case in cases),
        rows,
        [
            plain(line)
            for line in (
                *stored_lines(cases),
                *shard_lines(costs, cases[0].sample.group),
                *stretch_lines(cases, summary),
            )
        ],
        [(letter, text) for letter, text in MARKS.values() if letter in letters],
        [plain(line) for line in ignored_lines(cases, summary)],
    )


#: First phase of a part, the phase that creates or opens its arrays, and the end of the part.
_PARTS: dict[Part, tuple[str, str, str]] = {
    "write": ("create", "define", ""),
    "update": ("reopen", "reopen_array", ""),
    "read": ("open", "open_array", "close"),
}


def _columns(cases: Sequence[CaseSummary]) -> list[NumberColumn]:
    """Return the columns of writing, updating (if measured) and reading."""
    durable = "sync" if any("sync" in case.phases for case in cases) else "close"
    found = []
    for part, (first, opening, last) in _PARTS.items():
        total = f"{part}_total"
        if part == "update" and not any(part in case.phases for case in cases):
            continue
        # With many arrays the time of one matters, not the rate.
        if cases[0].sample.workload == "datasets":
            name = opening.partition("_")[0]
            found += [
                NumberColumn(part, f"{name} µs/dataset", partial(_of, opening, _per_array)),
                NumberColumn(part, f"{part} µs/dataset", partial(_of, part, _per_array)),
            ]
        else:
            found.append(NumberColumn(part, "data only MiB/s", partial(_of, part, _rate)))
        unit = unit_of(cases, total)
        found += [
            NumberColumn(
                part, f"{first} to {last or durable} MiB/s", partial(_of, total, _rate_of_total)
            ),
            NumberColumn(part, f"total {unit.name}", partial(_of, total, partial(_time, unit))),
            NumberColumn(part, "×best", partial(_of, total, _ratio)),
            NumberColumn(part, "of raw", partial(_of, total, _roof)),
        ]
        if any(t.cpu_seconds is not None for case in cases if (t := case.phases.get(total))):
            cpu = partial(_of, total, partial(_cpu, unit))
            found.append(NumberColumn(part, f"cpu {unit.name}", cpu))
        found += [
            NumberColumn(part, column.heading, partial(_text, column))
            for column in footprint_columns(cases, part)
        ]
    return found


def _text(column: Column, case: CaseSummary) -> Cell:
    return Cell(column.cell(case))


def _of(phase: str, tell: Callable[[PhaseSummary], Cell], case: CaseSummary) -> Cell:
    found = case.phases.get(phase)
    return Cell() if found is None else tell(found)


def _row(case: CaseSummary, columns: Sequence[NumberColumn]) -> Row:
    s = case.sample
    return Row(
        plain(s.backend),
        colour(s.backend),
        "raw" if case.raw else plain(s.settings),
        plain(s.transfer),
        plain(case.variant),
        case.raw,
        case.repetitions,
        plain(case.invalid),
        [] if case.invalid else [column.cell(case) for column in columns],
    )


def mark_of(warnings: Sequence[Caveat]) -> Mark | None:
    """Return the one mark of some warnings."""
    if not warnings:
        return None
    order = list(MARKS)
    codes = [w.code for w in warnings if w.code in MARKS]
    letter = MARKS[min(codes, key=order.index)][0] if codes else "!"
    return Mark(letter, plain("; ".join(w.message for w in warnings)))


def _rate(found: PhaseSummary) -> Cell:
    if found.rate is None:
        return Cell()
    amount = found.rate * found.seconds.median / _MIB
    between = _between(found.seconds, lambda s: amount / s)
    return Cell(significant(found.rate / _MIB), between, mark_of(found.warnings))


def _rate_of_total(found: PhaseSummary) -> Cell:
    """Return a rate without marks: the time next to it has them."""
    return replace(_rate(found), mark=None)


def _time(unit: Unit, found: PhaseSummary) -> Cell:
    between = _between(found.seconds, lambda s: s * unit.per_second)
    return Cell(unit.seconds(found), between, mark_of(found.warnings))


def _cpu(unit: Unit, found: PhaseSummary) -> Cell:
    return Cell(unit.cpu(found))


def _per_array(found: PhaseSummary) -> Cell:
    s = found.seconds
    factor = 1e6 * found.per_array / s.median if s.median else float("nan")
    between = _between(s, lambda x: factor * x)
    return Cell(significant(1e6 * found.per_array), between, mark_of(found.warnings))


def _ratio(found: PhaseSummary) -> Cell:
    r = found.ratio
    if r is None:
        return Cell()
    return Cell(number(r.value), interval(r) if r.low != r.high else "")


def _roof(found: PhaseSummary) -> Cell:
    if found.roofline is None:
        return Cell()
    limit = 100 * found.roofline * found.seconds.median
    between = _between(found.seconds, lambda x: limit / x, "{:.0f}".format)
    text = part_of_raw(found.roofline)
    beyond = text.startswith(">")
    return Cell(text.replace("%", " %"), f"{between} %" if between and not beyond else "")


def _between(
    found: Spread, convert: Callable[[float], float], write: Callable[[float], str] = significant
) -> str:
    """Return the interval of a derived quantity; for few repetitions the range, in brackets."""
    seconds = reach(found)
    if found.n == 1 or min(seconds) <= 0:
        return ""
    low, high = sorted(map(convert, seconds))
    text = f"{write(low)}–{write(high)}"
    return text if found.n >= FEWEST_FOR_INTERVAL else f"({text})"
