"""Tables of a comparison: on a terminal, in `compare.csv` and in `compare.md`."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from pffbench.regular_files import replacing, write_replacing
from pffbench.text import escape_markdown, markdown_row
from pffbench_analysis.compare.comparison import Comparison, Pair, Verdict
from pffbench_analysis.compare.sentences import heading, reasons, seconds, verdict_lines
from pffbench_analysis.runs import Difference

_HEADINGS = ("case", "phase", "base", "new", "×base", "95 % interval", "verdict")
_STYLES = {Verdict.SLOWER: "red", Verdict.FASTER: "green", Verdict.SAME: "dim"}
_CSV_COLUMNS = (
    "base", "new", "case", "new_case", "backend", "workload", "layout", "transfer", "settings",
    "phase", "base_repetitions", "new_repetitions", "base_median_s", "new_median_s", "ratio",
    "ratio_low", "ratio_high", "upper", "smallest_shown", "p", "adjusted_p", "verdict", "reason",
)  # fmt: skip
#: Largest width of a fact, such as the options of a mount.
_LONGEST = 200


def print_comparison(found: Comparison, console: Console) -> None:
    """Print the verdict and the tables."""
    console.print(heading(found), style="bold", markup=False, highlight=False, soft_wrap=True)
    for line in verdict_lines(found):
        console.print(f"• {line}", markup=False, highlight=False)
    shown = [*found.overall, *found.shown()]
    if shown:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in _HEADINGS:
            table.add_column(name, justify="left" if name in _WORDS else "right")
        for pair in shown:
            table.add_row(*_cells(pair), style=_STYLES[pair.verdict])
        console.print(table, markup=False)
    for line in _endings(found):
        console.print(line, markup=False, highlight=False)
    console.print()


_WORDS = ("case", "phase", "verdict")


def _cells(pair: Pair) -> list[str]:
    return [
        pair.case.label,
        pair.phase,
        seconds(pair.base_median),
        seconds(pair.new_median),
        f"{pair.ratio:.3f}",
        f"{pair.low:.3f}–{pair.high:.3f}",
        f"{pair.verdict}: {pair.doubt}" if pair.doubt else str(pair.verdict),
    ]


def _endings(found: Comparison) -> Iterator[str]:
    for reason, count in reasons(found):
        yield f"not comparable ({count}): {reason}"
    for difference in (*found.differences, *found.stored):
        yield f"differs: {_short(difference)}"


def _short(difference: Difference) -> str:
    text = str(difference)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]} …"


def write_csv(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write a row for each case and phase of each comparison, including unmatched cases."""
    with replacing(path) as file:
        writer = csv.DictWriter(file, _CSV_COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for found in comparisons:
            writer.writerows(_rows(found))


def _rows(found: Comparison) -> Iterator[dict[str, Any]]:
    runs = {"base": str(found.base.directory), "new": str(found.new.directory)}
    for pair in (*found.overall, *found.pairs):
        case = pair.case
        yield runs | {
            "case": case.base or case.label,
            "new_case": case.new,
            "backend": case.backend,
            "workload": case.workload,
            "layout": case.layout,
            "transfer": case.transfer,
            "settings": case.settings,
            "phase": pair.phase,
            "base_repetitions": pair.base_n,
            "new_repetitions": pair.new_n,
            "base_median_s": _number(pair.base_median),
            "new_median_s": _number(pair.new_median),
            "ratio": _number(pair.ratio),
            "ratio_low": _number(pair.low),
            "ratio_high": _number(pair.high),
            "upper": _number(pair.upper),
            "smallest_shown": _number(pair.shown),
            "p": _number(pair.p),
            "adjusted_p": _number(pair.adjusted_p),
            "verdict": str(pair.verdict),
            "reason": pair.reason,
        }
    refused = str(Verdict.NOT_COMPARABLE)
    for lone in found.only_base:
        yield runs | {"case": lone.case, "verdict": refused, "reason": lone.reason}
    for lone in found.only_new:
        yield runs | {"new_case": lone.case, "verdict": refused, "reason": lone.reason}


def _number(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def write_markdown(
    comparisons: Sequence[Comparison],
    gates: Sequence[str],
    figures: Sequence[str],
    path: Path,
) -> None:
    """Write `compare.md`, the verdict first.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One for each new run.
    gates : sequence of str
        Lines of the gate's decision; may be empty.
    figures : sequence of str
        File name of the figure of each comparison; may be empty.
    path : Path
        The file.
    """
    lines = ["# Comparison", ""]
    lines += [f"- **{escape_markdown(line)}**" for line in gates] + [""] * bool(gates)
    for found, figure in zip(comparisons, figures, strict=True):
        lines += [*_section(found, figure), ""]
    write_replacing(path, "\n".join(lines))


def _section(found: Comparison, figure: str) -> Iterator[str]:
    yield from (f"## {escape_markdown(heading(found))}", "")
    yield from (f"- {escape_markdown(line)}" for line in verdict_lines(found))
    if figure:
        yield from ("", f"![Ratios of the medians with their intervals]({figure})")
    shown = [*found.overall, *found.shown()]
    if shown:
        yield from ("", *_table(_HEADINGS, (_cells(pair) for pair in shown)))
    lone = [(c.label, w, c.reason) for w, cases in _sides(found) for c in cases]
    counted = [(f"{count} cases × phases", "both", reason) for reason, count in reasons(found)]
    if lone or counted:
        yield from ("", "### Not comparable", "")
        yield from _table(("what", "run", "reason"), [*counted, *lone])
    rows = [(d.key, d.a[:_LONGEST], d.b[:_LONGEST]) for d in (*found.differences, *found.stored)]
    yield from ("", "### What else differs", "")
    if rows:
        yield from ("A difference in time may be due to any of these.", "")
        yield from _table(("fact", "base", "new"), rows)
    else:
        yield "Nothing that is recorded."


def _sides(found: Comparison) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return ("base", found.only_base), ("new", found.only_new)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{' --- |' * len(headings)}"
    yield from map(markdown_row, rows)
