"""`pffbench report`: rebuild summary, tables and plots of results directories."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from pffbench.errors import UserError

#: Columns where nobody knows the width, such as in a log.
_WIDTH = 140


def main(arguments: argparse.Namespace) -> int:
    """Report on results directories and print what was written. Return the exit status."""
    if arguments.fom:
        for line in list(_figures_of_merit(arguments.runs)):
            print(line)
        return 0
    try:
        if arguments.published:
            _print_published(arguments.runs)
            return 0
        for path in _written(arguments):
            print(path)
    except ModuleNotFoundError as error:
        raise UserError(
            f"report needs {error.name}, which is not installed: pip install 'pffbench[analysis]'"
        ) from None
    return 0


def _written(arguments: argparse.Namespace) -> Iterator[object]:
    """Write what is asked for and yield each file."""
    from pffbench_analysis.report import readable, report

    if not arguments.published_csv:
        yield from report(arguments.runs)
        return
    from pffbench_analysis.published.csvlayout import write_study_csv

    for run in arguments.runs:
        yield from write_study_csv(readable(run), run)


def _print_published(runs: Sequence[str]) -> None:
    """Print runs beside the studies that they redo."""
    from rich.console import Console

    from pffbench_analysis.published import STUDIES, side_by_side
    from pffbench_analysis.published.terminal import print_side_by_side
    from pffbench_analysis.report import readable

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    for run in runs:
        found = side_by_side(readable(run))
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
    from pffbench.results.fom import fom_lines
    from pffbench.results.summary import summarise

    try:
        yield from fom_lines(summarise(runs[0]))
    except ValueError as error:
        raise UserError(str(error)) from None
    except (TypeError, KeyError) as error:  # the version fits, the content does not
        raise UserError(f"{runs[0]} holds what pffbench did not write: {error}") from None
