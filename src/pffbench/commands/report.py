"""`pffbench report`: rebuild summary, tables and plots of results directories."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from pffbench.commands import needing_analysis
from pffbench.errors import UserError
from pffbench.run.output import make_console

#: Columns where the width is unknown, such as in a log.
_WIDTH = 140


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories (example: pffbench-results/default-20260101-120000)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--fom",
        action="store_true",
        help="print the figures of merit, one per line, for ReFrame and Ramble, and write nothing "
        "(example: --fom results/first)",
    )
    shown.add_argument(
        "--published",
        action="store_true",
        help="print the results beside the published ones of the study that the run redoes, and "
        "write nothing (example: --published results/first)",
    )
    shown.add_argument(
        "--published-csv",
        action="store_true",
        help="write only published-csv/ in the results directory: the times in the layout of the "
        "study's own files; for file-format-testing (example: --published-csv results/first)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Report on results directories and print the written files. Return the exit status."""
    if arguments.fom:
        for line in list(_figures_of_merit(arguments.runs)):
            print(line)
        return 0
    with needing_analysis("report"):
        if arguments.published:
            _print_published(arguments.runs)
            return 0
        for path in _written(arguments):
            print(path)
    return 0


def _written(arguments: argparse.Namespace) -> Iterator[object]:
    """Write the requested files and yield each one."""
    from pffbench_analysis.report import report

    if not arguments.published_csv:
        yield from report(arguments.runs)
        return
    from pffbench_analysis.published.csvlayout import write_study_csv
    from pffbench_analysis.runs import readable

    for run in arguments.runs:
        yield from write_study_csv(readable(run), run)


def _print_published(runs: Sequence[str]) -> None:
    """Print runs next to the studies that they repeat."""
    from pffbench_analysis.published import STUDIES, side_by_side
    from pffbench_analysis.published.terminal import print_side_by_side
    from pffbench_analysis.runs import readable

    console = make_console(_WIDTH)
    for run, summary in [(run, readable(run)) for run in runs]:
        found = side_by_side(summary)
        if found is None:
            raise UserError(
                f"{run}: its experiment names no study (key study: one of {', '.join(STUDIES)})"
            )
        if len(runs) > 1:
            console.print(f"\n{run}", style="bold", highlight=False, markup=False)
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
