"""`pffbench report`: make summary, page and figures of results directories again."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from pathlib import Path

from pffbench.errors import UserError

#: The page of a run, in its results directory.
PAGE = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories (example: results/first)",
    )
    parser.add_argument(
        "--figures",
        action="store_true",
        help="also write figures of all cases, into plots/",
    )
    parser.add_argument(
        "--batch",
        type=int,
        metavar="STATUS",
        help="for the last line of a job script: write the report, queue the job again if the run "
        "was interrupted, and exit with STATUS, the exit status of srun or mpiexec (example: "
        "--batch $? results/first)",
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="open the page in a browser",
    )


def main(arguments: argparse.Namespace) -> int:
    """Report on results directories and print the written files. Return the exit status."""
    if arguments.batch is not None:
        return _end_of_job(arguments)
    from pffbench_analysis.report import report

    for path in report(arguments.runs, figures=arguments.figures):
        print(path, flush=True)
        if arguments.open and path.name == PAGE:
            _open(path)
    return 0


def _end_of_job(arguments: argparse.Namespace) -> int:
    """Report on the run of a batch job, and return the exit status of the job."""
    from pffbench.run.batch import end_of_job

    def draw() -> None:
        from pffbench_analysis.report import report

        list(report(arguments.runs))

    if len(arguments.runs) > 1:
        raise UserError("report --batch: a job has one run")
    return end_of_job(arguments.runs[0], arguments.batch, os.environ, draw)


def _open(page: Path) -> None:
    """Open a page in the user's browser, or say that there is none."""
    if not webbrowser.open(page.resolve().as_uri()):
        print(f"pffbench: no browser was found to open {page}", file=sys.stderr)
