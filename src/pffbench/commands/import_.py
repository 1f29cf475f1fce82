"""`pffbench import`: results of IOR or h5bench as a results directory."""

from __future__ import annotations

import argparse

from pffbench.errors import UserError


def main(arguments: argparse.Namespace) -> int:
    """Create a results directory and print its path. Return the exit status."""
    try:
        from pffbench_analysis.peers import import_results
    except ModuleNotFoundError as error:
        raise UserError(
            f"import needs {error.name}, which is not installed: pip install 'pffbench[analysis]'"
        ) from None
    print(import_results(arguments.program, arguments.files, arguments.out))
    return 0
