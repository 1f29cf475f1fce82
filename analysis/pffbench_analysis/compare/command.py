"""`pffbench compare`: the verdict first, then every row; tables in a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from pffbench.errors import UserError
from pffbench.regular_files import write_replacing
from pffbench.results import words
from pffbench.results.answer import WIDTH, wrap
from pffbench.results.summary import load
from pffbench.results.table import Table
from pffbench.run.output import make_console, print_json
from pffbench.text import escape_markdown, one_line
from pffbench_analysis.compare.comparison import OVER_RAW, Comparison, Row, compare_runs
from pffbench_analysis.compare.gate import MORE_STARTS, Gate, Outcome, judge, worst
from pffbench_analysis.compare.sides import Side
from pffbench_analysis.derived_files import known, write_csv, writing

#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 3
#: Most differences that are named on a terminal, and the most characters of one.
_NAMED, _LONGEST = 12, 160


def compare(
    sides: Sequence[Sequence[str | Path]],
    *,
    out: str | Path | None = None,
    across: Sequence[str] = (),
    gate: Gate | None = None,
    as_json: bool = False,
    console: Console | None = None,
) -> tuple[int, list[Comparison]]:
    """Compare new runs with old ones, print the verdict and write it.

    Parameters
    ----------
    sides : sequence of sequence of str or Path
        Results directories: the old ones, then the ones of each new side. Runs of one side are
        starts of one program.
    out : str or Path, optional
        Directory for tables; by default nothing is written.
    across : sequence of str
        Parameters or options in which cases may differ: the subject of the comparison.
    gate : Gate, optional
        What is allowed; without it the status is 0.
    as_json : bool
        Whether to print JSON in place of text and table.
    console : Console, optional
        Console to print on.

    Returns
    -------
    status : int
        See `pffbench_analysis.compare.gate.judge`; of several new sides the worst.
    comparisons : list of Comparison
        One for each new side.

    Raises
    ------
    UserError
        A directory holds no run with results, or is given twice, or `out` cannot be written.
    """
    _distinct([run for side in sides for run in side])
    old, *new = ([load(run).run for run in side] for side in sides)
    found = [compare_runs(old, other, across) for other in new]
    outcomes = [judge(one, gate) for one in found]
    status = worst(outcomes)
    files = [] if out is None else _written(found, outcomes, Path(out))
    if as_json:
        data = {
            "allowed": None if gate is None else gate.limit,
            "status": status,
            "comparisons": [_data(*both) for both in zip(found, outcomes, strict=True)],
            "files": [str(path) for path in files],
        }
        print_json({"format": "pffbench compare", "version": _JSON_VERSION, **data})
        return status, found
    terminal = console or make_console()
    lines = [line for both in zip(found, outcomes, strict=True) for line in _lines(*both)]
    for line in (*lines, *map(str, files)):
        terminal.print(line, markup=False, highlight=False, soft_wrap=True)
    return status, found


def _distinct(runs: Sequence[str | Path]) -> None:
    places = [os.path.realpath(run) for run in runs]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise UserError(f"{runs[number]} is given twice: a run is not compared with itself")


def _lines(found: Comparison, outcome: Outcome) -> Iterator[str]:
    yield from wrap(outcome.sentence)
    yield ""
    yield from (*wrap(f"old: {found.old.name}"), *wrap(f"new: {found.new.name}"))
    if found.comparable:
        yield from ("", *map(one_line, table_of(found, outcome).lines(WIDTH)), "")
    for note in _notes(found, outcome):
        yield from wrap(note)
    for difference in found.differences[:_NAMED]:
        yield from wrap(one_line(f"differs: {difference}", _LONGEST))
    if len(found.differences) > _NAMED:
        yield f"{len(found.differences) - _NAMED} more differences are in compare.md (--out)"
    yield ""


def table_of(found: Comparison, outcome: Outcome) -> Table:
    """Return every row that is comparable, and the control."""
    rows = [_cells(row, outcome.gate) for row in (*found.comparable, *found.control)]
    bound = ["bound"] if outcome.gate else []
    return Table("", ["", "", "old", "new", "change", "interval", *bound, ""], rows)


def _cells(row: Row, gate: Gate | None) -> list[str]:
    ratio, alone, word = row.verdict.ratio, row.verdict.alone, row.verdict.word
    return [
        row.name,
        row.heading,
        words.seconds(row.old),
        words.seconds(row.new),
        words.times(ratio.value),
        words.interval(ratio),
        *([words.times(alone.high)] if gate else []),
        " in ".join(filter(None, ["~" if word == "open" else word, row.phase]))
        + (f", {OVER_RAW}" if row.verdict.over_raw else ""),
    ]


def _notes(found: Comparison, outcome: Outcome) -> Iterator[str]:
    """Yield what a reader must know of the numbers."""
    yield from found.cautions()
    if found.comparable:
        starts = f"Starts of the program: {found.starts[0]} old, {found.starts[1]} new"
        few = f"; {MORE_STARTS}" if min(found.starts) < 3 else ""
        bound = "Bound: with 95 % for each row alone, for the limit. " if outcome.gate else ""
        yield (
            f"Change: time of new over old. Interval: all of them hold together with 95 %. {bound}"
            f"Same: within 10 %; ~: not decided. {starts}{few}."
        )
    if any(row.verdict.over_raw for row in found.comparable):
        yield (
            f"{OVER_RAW}: before they are compared, the times are divided by the time of raw I/O "
            "in the same rounds, because the starts then differ less."
        )
    for row in found.refused:
        heading = f", {row.heading}" if row.heading else ""
        yield f"not comparable: {row.name}{heading}: {row.reason}"
    for one in found.alone:
        yield f"not comparable: {one.label}, only in the {one.which} run: {one.reason}"


def _data(found: Comparison, outcome: Outcome) -> dict[str, Any]:
    """Return a comparison as plain data; `docs/reference/derived.md` has its keys."""
    return {
        "old": _runs(found.old),
        "new": _runs(found.new),
        "status": outcome.status,
        "sentence": outcome.sentence,
        "starts": list(found.starts),
        "rows": [_row(row) for row in found.rows],
        "control": [_row(row) for row in found.control],
        "alone": [one._asdict() for one in found.alone],
        "cautions": list(found.cautions()),
        "differences": [{"fact": d.key, "old": d.a, "new": d.b} for d in found.differences],
    }


def _runs(side: Side) -> list[dict[str, str]]:
    return [{"directory": str(run.directory), "run_id": run.record.run_id} for run in side.runs]


def _row(row: Row) -> dict[str, object]:
    ratio, alone = row.verdict.ratio, row.verdict.alone
    case = row.cells[0] if len(row.cells) == 1 else None
    return {
        "name": row.name,
        "heading": row.heading,
        "old_case": case[1].case if case else None,
        "new_case": case[0].case if case else None,
        "old_s": known(row.old),
        "new_s": known(row.new),
        "change": known(ratio.value),
        "low": known(ratio.low),
        "high": known(ratio.high),
        "alone_low": known(alone.low),
        "alone_high": known(alone.high),
        "word": "not comparable" if row.reason else row.verdict.word,
        "over_raw": row.verdict.over_raw,
        "mostly_in": row.phase,
        "reason": row.reason,
    }


def _written(found: Sequence[Comparison], outcomes: Sequence[Outcome], out: Path) -> list[Path]:
    """Write tables, replacing those of an earlier call."""
    rows = (
        {"old": one.old.name, "new": one.new.name, **_row(row)}
        for one in found
        for row in (*one.rows, *one.control)
    )
    text = "\n".join(line for both in zip(found, outcomes, strict=True) for line in _section(*both))
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        write_csv(out / "compare.csv", rows, ("old", "new", *_row(Row("", ""))))
        write_replacing(out / "compare.md", f"# Comparison\n\n{text}")
    return [out / "compare.md", out / "compare.csv"]


def _section(found: Comparison, outcome: Outcome) -> Iterator[str]:
    """Yield a comparison in Markdown, the verdict first."""
    yield from (f"**{escape_markdown(outcome.sentence)}**", "")
    yield from (f"## {escape_markdown(f'{found.new.name} compared with {found.old.name}')}", "")
    if found.comparable:
        yield from (*table_of(found, outcome).markdown(), "")
    yield from (f"- {escape_markdown(note)}" for note in _notes(found, outcome))
    facts = [(d.key, one_line(d.a, _LONGEST), one_line(d.b, _LONGEST)) for d in found.differences]
    yield from ("", "### What else differs", "")
    if facts:
        yield from ("A difference in time may be due to any of these.", "")
        yield from Table("", ["fact", "old", "new"], facts).markdown()
    else:
        yield "Nothing that is recorded."
    yield ""
