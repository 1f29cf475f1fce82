"""`pffbench compare`: verdict on the terminal, tables in a directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from pffbench.errors import UserError
from pffbench.run.output import make_console, print_json
from pffbench_analysis.compare.comparison import Comparison
from pffbench_analysis.compare.gate import Gate, judge
from pffbench_analysis.compare.judge import compare_runs
from pffbench_analysis.compare.verdict_table import (
    RowChoice,
    comparison_data,
    print_comparison,
    write_markdown,
    write_tables,
)
from pffbench_analysis.derived_files import writing
from pffbench_analysis.runs import Run

#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 2


def compare(
    sides: Sequence[Sequence[str | Path]],
    *,
    out: str | Path | None = None,
    across: Sequence[str] = (),
    gate: Gate | None = None,
    rows: RowChoice | None = None,
    as_json: bool = False,
    console: Console | None = None,
) -> tuple[int, list[Comparison]]:
    """Compare new runs with base runs, print the verdict and write it.

    Parameters
    ----------
    sides : sequence of sequence of str or Path
        Results directories: those of the base, then those of each new side. Runs of one side are
        compared as starts of one program.
    out : str or Path, optional
        Directory for tables; by default nothing is written.
    across : sequence of str
        Parameters or options in which cases may differ: the subject of the comparison.
    gate : Gate, optional
        What makes the status 1.
    rows : RowChoice, optional
        The rows of the table; by default those with a difference.
    as_json : bool
        Whether to print JSON in place of text and table.
    console : Console, optional
        Console to print on.

    Returns
    -------
    status : int
        Only with `gate` other than 0, see `pffbench_analysis.compare.gate.judge`.
    comparisons : list of Comparison
        One for each new side.

    Raises
    ------
    UserError
        A directory holds no run with results, or is given twice, or `out` cannot be written.
    """
    _distinct([run for side in sides for run in side])
    base, *new = ([Run.load(run) for run in side] for side in sides)
    found = [compare_runs(base, other, across) for other in new]
    status, gates = (0, []) if gate is None else judge(found, gate)
    allowed = None if gate is None else gate.limit
    files = [] if out is None else _written(found, gates, Path(out))
    if as_json:
        data = {
            "allowed": allowed,
            "status": status,
            "gate": gates,
            "comparisons": [comparison_data(comparison) for comparison in found],
            "files": [str(path) for path in files],
        }
        print_json({"format": "pffbench compare", "version": _JSON_VERSION, **data})
        return status, found
    terminal = console or make_console()
    for comparison in found:
        print_comparison(comparison, terminal, rows or RowChoice())
    for line in (*files, *gates):
        terminal.print(line, markup=False, highlight=False, soft_wrap=True)
    return status, found


def _distinct(runs: Sequence[str | Path]) -> None:
    places = [os.path.realpath(run) for run in runs]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise UserError(f"{runs[number]} is given twice: a run is not compared with itself")


def _written(found: Sequence[Comparison], gates: Sequence[str], out: Path) -> list[Path]:
    """Write tables, replacing those of an earlier call."""
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        write_tables(found, out / "compare.csv")
        write_markdown(found, gates, out / "compare.md")
    return [out / "compare.md", out / "compare.csv"]
