"""Tables of a comparison: on a terminal, in `compare.csv` and in `compare.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from pffbench.regular_files import write_replacing
from pffbench.text import escape_markdown, make_table, markdown_table, one_line
from pffbench.units import seconds_text
from pffbench_analysis.compare.comparison import (
    CaseName,
    Comparison,
    Pair,
    Side,
    Verdict,
    typical,
)
from pffbench_analysis.compare.sentences import heading, reasons, verdict_lines
from pffbench_analysis.derived_files import write_csv
from pffbench_analysis.runs import Difference

_HEADINGS = ("case", "phase", "base", "new", "×base", "interval", "verdict")
_STYLES = {
    Verdict.SLOWER: "red", Verdict.FASTER: "green", Verdict.EQUAL: "", Verdict.OPEN: "dim",
}  # fmt: skip
#: Largest width of a fact, such as the options of a mount.
_LONGEST = 200


@dataclass(frozen=True)
class RowChoice:
    """The rows of the table on a terminal, and their order.

    Parameters
    ----------
    all_rows : bool
        Whether to show totals without a difference too.
    only : {"slower", "faster"}, optional
        Show rows with this verdict alone.
    sort : {"ratio", "case", "time"}, optional
        The order: the slowest first, by name, or the longest time of the base first; by default
        that of the run.
    """

    all_rows: bool = False
    only: str | None = None
    sort: str | None = None

    def of(self, found: Comparison) -> list[Pair]:
        """Return the rows of a comparison."""
        pairs = found.shown
        if self.only:
            pairs = [pair for pair in pairs if pair.verdict == self.only]
        elif not self.all_rows:
            pairs = [pair for pair in pairs if pair.different]
        return sorted(pairs, key=_ORDERS[self.sort]) if self.sort else pairs

    def hidden(self, found: Comparison) -> str:
        """Return how many rows are not shown, as a sentence; empty if none."""
        hidden = len(found.shown) - len(self.of(found))
        if not hidden:
            return ""
        if self.only:
            return f"{hidden} rows that are not {self.only} are not shown"
        return f"{hidden} rows without a difference are not shown; --all shows them"


_ORDERS: Mapping[str, Callable[[Pair], Any]] = {
    "ratio": lambda pair: -pair.ratio,
    "case": lambda pair: (pair.case.label, pair.phase),
    "time": lambda pair: -typical(pair.base),
}


def print_comparison(found: Comparison, console: Console, rows: RowChoice) -> None:
    """Print the verdict and the tables."""
    console.print(heading(found), style="bold", markup=False, highlight=False, soft_wrap=True)
    for line in verdict_lines(found):
        console.print(f"• {line}", markup=False, highlight=False)
    shown = rows.of(found)
    if shown:
        table = make_table()
        for name in _HEADINGS:
            table.add_column(name, justify="left" if name in _WORDS else "right", overflow="fold")
        for pair in shown:
            table.add_row(*_cells(pair), style=_STYLES[pair.verdict])
        console.print(table, markup=False)
    for line in filter(None, [rows.hidden(found), *_endings(found)]):
        console.print(line, markup=False, highlight=False)
    console.print()


_WORDS = ("case", "phase", "verdict")


def _cells(pair: Pair) -> list[str]:
    return [
        pair.case.label,
        pair.phase,
        seconds_text(typical(pair.base)),
        seconds_text(typical(pair.new)),
        f"{pair.ratio:.3f}",
        f"{pair.low:.3f}–{pair.high:.3f}",
        str(pair.verdict),
    ]


def _endings(found: Comparison) -> Iterator[str]:
    for reason, count in reasons(found):
        yield f"not comparable ({count}): {reason}"
    for difference in (*found.other_differences, *found.stored):
        yield f"differs: {one_line(str(difference), _LONGEST)}"


def _row(pair: Pair) -> dict[str, object]:
    """Return the row of a pair in `compare.csv`, without the two runs."""
    case, decision = pair.case, pair.decision
    return {
        "case": case.base or case.label,
        "new_case": case.new,
        "backend": case.backend,
        "workload": case.workload,
        "layout": case.layout,
        "transfer": case.transfer,
        "settings": case.settings,
        "phase": pair.phase,
        "base_repetitions": len(pair.base),
        "new_repetitions": len(pair.new),
        "base_median_s": typical(pair.base),
        "new_median_s": typical(pair.new),
        "ratio": pair.ratio,
        "ratio_low": pair.low,
        "ratio_high": pair.high,
        "alone_low": decision.alone.low,
        "alone_high": decision.alone.high,
        "ratio_of_sums": decision.spent,
        "smallest_shown": decision.shown,
        "p": decision.alone.p,
        "verdict": pair.verdict,
        "reason": pair.reason,
    }


#: Of a comparison without a pair the table has its columns too.
_COLUMNS = ("base", "new", *_row(Pair(CaseName("", "", "", ""), "")))


def write_tables(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write a row for each case and phase of each comparison, including unmatched cases."""
    write_csv(path, (row for found in comparisons for row in _rows(found)), _COLUMNS)


def _rows(found: Comparison) -> Iterator[dict[str, object]]:
    runs: dict[str, object] = {"base": found.base.name, "new": found.new.name}
    yield from (runs | _row(pair) for pair in (*found.overall, *found.pairs))
    refused = {"verdict": Verdict.NOT_COMPARABLE}
    yield from (runs | refused | {"case": c.case, "reason": c.reason} for c in found.only_base)
    yield from (runs | refused | {"new_case": c.case, "reason": c.reason} for c in found.only_new)


def comparison_data(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data, for `--json`; `docs/reference/derived.md` has its keys."""
    pairs = (*found.overall, *found.pairs)
    return {
        "base": _runs(found.base),
        "new": _runs(found.new),
        "sentences": verdict_lines(found),
        "machine_changed": any(pair.different for pair in found.machine),
        "rows": [_row(pair) | {"control": pair.case.control} for pair in pairs],
        "only_base": [{"case": c.case, "reason": c.reason} for c in found.only_base],
        "only_new": [{"case": c.case, "reason": c.reason} for c in found.only_new],
        "versions": _facts(found.versions),
        "differences": _facts([*found.other_differences, *found.stored]),
    }


def _runs(side: Side) -> list[dict[str, str]]:
    return [{"directory": str(run.directory), "run_id": run.record.run_id} for run in side.runs]


def _facts(found: Sequence[Difference]) -> list[dict[str, str]]:
    return [{"fact": one.key, "base": one.a, "new": one.b} for one in found]


def write_markdown(
    comparisons: Sequence[Comparison],
    gates: Sequence[str],
    path: Path,
) -> None:
    """Write `compare.md`, the verdict first.

    Parameters
    ----------
    comparisons : sequence of Comparison
        One for each new run.
    gates : sequence of str
        Lines of the gate's decision; may be empty.
    path : Path
        The file.
    """
    lines = ["# Comparison", ""]
    lines += [f"- **{escape_markdown(line)}**" for line in gates] + [""] * bool(gates)
    for found in comparisons:
        lines += [*_section(found), ""]
    write_replacing(path, "\n".join(lines))


def _section(found: Comparison) -> Iterator[str]:
    yield from (f"## {escape_markdown(heading(found))}", "")
    yield from (f"- {escape_markdown(line)}" for line in verdict_lines(found))
    if found.shown:
        yield from ("", *markdown_table(_HEADINGS, map(_cells, found.shown)))
    sides = (("base", found.only_base), ("new", found.only_new))
    lone = [(c.label, which, c.reason) for which, cases in sides for c in cases]
    counted = [(f"{count} cases × phases", "both", reason) for reason, count in reasons(found)]
    if lone or counted:
        yield from ("", "### Not comparable", "")
        yield from markdown_table(("what", "run", "reason"), [*counted, *lone])
    rows = [(d.key, d.a[:_LONGEST], d.b[:_LONGEST]) for d in (*found.differences, *found.stored)]
    yield from ("", "### What else differs", "")
    if rows:
        yield from ("A difference in time may be due to any of these.", "")
        yield from markdown_table(("fact", "base", "new"), rows)
    else:
        yield "Nothing that is recorded."
