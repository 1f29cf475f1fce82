"""`pffbench import`: results of IOR or h5bench as a results directory."""

from __future__ import annotations

import argparse

from pffbench.commands import needing_analysis


def main(arguments: argparse.Namespace) -> int:
    """Create a results directory and print its path. Return the exit status."""
    with needing_analysis("import"):
        from pffbench_analysis.peers import import_results
    print(import_results(arguments.program, arguments.files, arguments.out))
    return 0
