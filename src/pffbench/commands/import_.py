"""`pffbench import`: results of IOR or h5bench as a results directory."""

from __future__ import annotations

import argparse

from pffbench.commands import needing_analysis


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="output files: JSON of IOR 4 (-O summaryFormat=JSON) or CSV of h5bench (CSV_FILE) "
        "(example: ior-posix.json ior-mpiio.json)",
    )
    parser.add_argument(
        "--from",
        choices=("ior", "h5bench"),
        required=True,
        dest="program",
        help="the program that wrote the files (example: --from ior)",
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="new results directory (example: --out results/ior)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Create a results directory and print its path. Return the exit status."""
    with needing_analysis("import"):
        from pffbench_analysis.peers import import_results
    print(import_results(arguments.program, arguments.files, arguments.out))
    return 0
