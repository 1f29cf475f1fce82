"""`pffbench report`: rebuild summary, tables and plots of results directories."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pffbench.commands import needing_analysis
from pffbench.errors import UserError
from pffbench.run.output import make_console

#: Columns where the width is unknown, such as in a log.
_WIDTH = 140


def main(arguments: argparse.Namespace) -> int:
    """Report on results directories and print the written files. Return the exit status."""
    if reason := _refuse(arguments):
        raise UserError(reason)
    if arguments.fom:
        for line in list(_figures_of_merit(arguments.runs)):
            print(line)
        return 0
    with needing_analysis("report"):
        if arguments.published:
            _print_published(arguments.runs, join=arguments.join)
            return 0
        for path in _written(arguments):
            print(path)
    return 0


def _refuse(arguments: argparse.Namespace) -> str | None:
    """Return which options exclude each other, or None."""
    if arguments.out is not None and not arguments.join:
        return "report --out: only a joined report goes elsewhere (--join)"
    if arguments.join and (arguments.fom or arguments.published_csv):
        return "report --join: --fom and --published-csv are of one run; give them without --join"
    if arguments.out is not None and arguments.published:
        return "report --published: it writes nothing, so there is no --out"
    return None


def _written(arguments: argparse.Namespace) -> Iterator[object]:
    """Write the requested files and yield each one."""
    from pffbench_analysis.report import report, report_joined

    if arguments.join:
        first = Path(arguments.runs[0])
        name = Path(os.path.realpath(first)).name
        out = arguments.out or first.with_name(f"{name}-joined")
        yield from report_joined(arguments.runs, out)
        return
    if not arguments.published_csv:
        yield from report(arguments.runs)
        return
    from pffbench_analysis.published.csvlayout import write_study_csv
    from pffbench_analysis.runs import readable

    for run in arguments.runs:
        yield from write_study_csv(readable(run), run)


def _print_published(runs: Sequence[str], *, join: bool) -> None:
    """Print runs, or the run that they are joined to, next to the studies that they repeat."""
    from pffbench_analysis.published import STUDIES, side_by_side
    from pffbench_analysis.published.terminal import print_side_by_side
    from pffbench_analysis.runs import readable, readable_joined

    console = make_console(_WIDTH)
    summaries = (
        {", ".join(runs): readable_joined(runs)} if join else {run: readable(run) for run in runs}
    )
    for run, summary in summaries.items():
        found = side_by_side(summary)
        if found is None:
            raise UserError(
                f"{run}: its experiment names no study (key study: one of {', '.join(STUDIES)})"
            )
        print_side_by_side(found, console)


def _figures_of_merit(runs: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a run; this needs none of the libraries that draw."""
    if len(runs) > 1:
        raise UserError(
            f"report --fom: {len(runs)} runs were given, whose lines would have the same names; "
            "give one"
        )
    from pffbench.summary.export import fom_lines
    from pffbench.summary.summary import summarise

    try:
        yield from fom_lines(summarise(runs[0]))
    except ValueError as error:
        raise UserError(str(error)) from None
