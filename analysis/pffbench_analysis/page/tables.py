"""The tables of a page: one a comparison, each number with its interval and its warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from pffbench.results.statistics import Caveat
from pffbench.results.summary import CaseSummary, PhaseSummary, Summary
from pffbench.results.tables import ordered, part_of_raw, stored_lines
from pffbench_analysis.captions import heading
from pffbench_analysis.style import colour, plain

_MIB = 2**20
#: The mark of each warning, and what it means.
MARKS = {
    "below_resolution": ("r", "below resolution: under 100 times what the harness itself takes"),
    "few_repetitions": ("n", "fewer than three repetitions"),
    "large_spread": ("s", "spread: standard deviation over 10 % of the mean"),
    "outliers": ("o", "outliers: repetitions with a modified z-score over 3.5"),
    "slow_first": ("f", "the first repetition (warm-up, not counted) was slow"),
    "too_few_for_difference": ("d", "difference not shown: too few repetitions, or there is none"),
    "ranks_apart": ("a", "ranks apart: until all were done over 1.25 times as long passed"),
    "cache_unproved": ("c", "state of the page cache before reading not proved"),
}


@dataclass(frozen=True)
class Mark:
    """A warning beside a number: a letter, and what was seen."""

    letter: str
    message: str


@dataclass(frozen=True)
class Cell:
    """A number, its interval and its warnings; empty text where there is none."""

    text: str = ""
    interval: str = ""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Row:
    """A case."""

    backend: str
    colour: str
    settings: str
    transfer: str
    variant: str
    raw: bool
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    """The cases of a comparison.

    Parameters
    ----------
    title : str
        What is compared.
    headings : list of (str, str)
        Of the columns of numbers: the part, ``write``, ``update`` or ``read``, and what it is.
    has_variants : bool
        Whether cases differ in more than format, settings and transfer.
    rows : list of Row
        The cases, raw bytes last.
    stored : list of str
        How the arrays lie on disk.
    legend : list of (str, str)
        The marks that occur, and what they mean.
    """

    title: str
    headings: list[tuple[str, str]]
    has_variants: bool
    rows: list[Row]
    stored: list[str]
    legend: list[tuple[str, str]] = field(default_factory=list)


def table_of(cases: Sequence[CaseSummary], summary: Summary, differs: dict[str, str]) -> Table:
    """Make the table of a comparison."""
    small = cases[0].sample.workload == "datasets"
    parts = _parts(cases)
    rows = [_row(case, parts, small) for case in ordered(cases)]
    letters = {mark.letter for row in rows for cell in row.cells for mark in cell.marks}
    return Table(
        heading(cases, summary, differs),
        [(part, name) for part in parts for name in _headings(part, cases, small)],
        any(case.variant for case in cases),
        rows,
        [plain(line) for line in stored_lines(cases)],
        [(letter, text) for letter, text in MARKS.values() if letter in letters],
    )


def _parts(cases: Sequence[CaseSummary]) -> list[str]:
    """Return what the columns tell of: writing, changing where that was measured, reading."""
    changes = any("update" in case.phases for case in cases)
    return ["write", *(["update"] if changes else []), "read"]


def _headings(part: str, cases: Sequence[CaseSummary], small: bool) -> list[str]:
    """Return the headings of a part; with many arrays the time of one is what matters."""
    durable = "sync" if "sync" in cases[0].phases else "close"
    first, span = {
        "write": ("define", f"create to {durable}"),
        "update": ("reopen", f"reopen to {durable}"),
        "read": ("open", "open to close"),
    }[part]
    moved = [f"{first} ms/dataset", f"{part} ms/dataset"] if small else ["data only MiB/s"]
    return [*moved, f"{span} MiB/s", "total s", "×best", "of raw"]


#: The phase that makes or finds the arrays of a part.
_OPENING = {"write": "define", "update": "reopen_array", "read": "open_array"}


def _row(case: CaseSummary, parts: Sequence[str], small: bool) -> Row:
    s = case.sample
    cells = []
    for part in parts:
        total = case.phases.get(f"{part}_total")
        moving = case.phases.get(part)
        if small:
            cells += [_per_array(case.phases.get(_OPENING[part])), _per_array(moving)]
        else:
            cells.append(_rate(moving))
        cells += [_rate(total, marked=False), _seconds(total), _ratio(total), _roof(total)]
    return Row(
        plain(s.backend),
        colour(s.backend),
        "raw" if case.raw else plain(s.settings),
        plain(s.transfer),
        plain(case.variant),
        case.raw,
        cells,
    )


def marks_of(warnings: Sequence[Caveat], codes: Sequence[str] | None = None) -> tuple[Mark, ...]:
    """Return the marks of some warnings, of given codes only when codes are given."""
    return tuple(
        Mark(MARKS.get(w.code, ("!", ""))[0], plain(w.message))
        for w in warnings
        if codes is None or w.code in codes
    )


#: What concerns times and rates, and what a ratio: each is shown beside that number only.
_OF_RATIOS = ("too_few_for_difference",)
_OF_TIMES = tuple(code for code in MARKS if code not in _OF_RATIOS)


def _rate(found: PhaseSummary | None, marked: bool = True) -> Cell:
    """Return a rate; that of a total is not marked, since the time beside it is."""
    if found is None or found.rate is None:
        return Cell()
    s = found.seconds
    amount = found.rate * s.median / _MIB
    interval = _between(amount / s.high, amount / s.low) if s.low > 0 else ""
    marks = marks_of(found.warnings, _OF_TIMES) if marked else ()
    return Cell(_number(found.rate / _MIB), interval, marks)


def _seconds(found: PhaseSummary | None) -> Cell:
    if found is None:
        return Cell()
    s = found.seconds
    marks = marks_of(found.warnings, _OF_TIMES)
    return Cell(_number(s.median), _between(s.low, s.high), marks)


def _per_array(found: PhaseSummary | None) -> Cell:
    if found is None:
        return Cell()
    s = found.seconds
    factor = 1e3 * found.per_array / s.median if s.median else float("nan")
    interval = _between(factor * s.low, factor * s.high)
    return Cell(_number(1e3 * found.per_array), interval, marks_of(found.warnings, _OF_TIMES))


def _ratio(found: PhaseSummary | None) -> Cell:
    if found is None or found.ratio is None:
        return Cell()
    r = found.ratio
    marks = marks_of(found.warnings, _OF_RATIOS)
    interval = "" if math.isnan(r.low) else f"{r.low:.2f}–{r.high:.2f}"
    return Cell(f"{r.median:.2f}", interval if r.low != r.high else "", marks)


def _roof(found: PhaseSummary | None) -> Cell:
    if found is None or found.roofline is None:
        return Cell()
    s = found.seconds
    least = found.roofline * s.median
    low, high = least / s.high, least / s.low if s.low else float("nan")
    interval = "" if math.isnan(low) or math.isnan(high) else f"{100 * low:.0f}–{100 * high:.0f} %"
    text = part_of_raw(found.roofline)
    return Cell(text.replace("%", " %"), "" if text.startswith(">") else interval)


def _between(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"{_number(low)}–{_number(high)}"


def _number(value: float) -> str:
    """Return three digits, never an exponent where digits will do."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
