"""`pffbench report`: rebuild summary, tables and plots of results directories."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from pffbench.errors import UserError


def main(arguments: argparse.Namespace) -> int:
    """Report on results directories and print what was written. Return the exit status."""
    if arguments.fom:
        for line in list(_figures_of_merit(arguments.runs)):
            print(line)
        return 0
    try:
        from pffbench_analysis.report import report
    except ModuleNotFoundError as error:
        raise UserError(
            f"report needs {error.name}, which is not installed: pip install 'pffbench[analysis]'"
        ) from None
    for path in report(arguments.runs):
        print(path)
    return 0


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
