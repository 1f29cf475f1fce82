"""`pffbench doctor`: abilities of the software and this machine, with remedies for problems."""

from __future__ import annotations

import argparse
import os
import sys

from pffbench.commands import to_install_analysis
from pffbench.commands.arguments import add_json
from pffbench.errors import NOT_VALID, VALID
from pffbench.job.launcher import speaks_for_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--no-mpi",
        action="store_true",
        help="do not start MPI, for login nodes that forbid it",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory on the file system under test (example: --scratch /lustre/me)",
    )
    parser.add_argument(
        "--stack",
        action="store_true",
        help="also test the libraries for known data corruptions, each in about a second",
    )
    add_json(parser)


def main(arguments: argparse.Namespace) -> int:
    """Examine, alone or on all ranks, and print the findings. Return the exit status."""
    try:
        from pffbench.doctor.examination import examine
    except ImportError as error:  # a library so basic that the checks themselves need it
        if not speaks_for_all(os.environ):
            return VALID
        text = f"{error}; install pffbench with its dependencies: {to_install_analysis()}"
        print(f"pffbench: {text}", file=sys.stderr)
        return NOT_VALID
    return examine(
        arguments.scratch,
        with_mpi=not arguments.no_mpi,
        known=arguments.stack,
        as_json=arguments.json,
    )
