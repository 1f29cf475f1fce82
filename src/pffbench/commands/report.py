"""`pffbench report`: rebuild summary, tables and plots of results directories."""

from __future__ import annotations

import argparse

from pffbench.errors import UserError


def main(arguments: argparse.Namespace) -> int:
    """Report on results directories and print what was written. Return the exit status."""
    try:
        from pffbench_analysis.report import report
    except ModuleNotFoundError as error:
        raise UserError(
            f"report needs {error.name}, which is not installed: pip install 'pffbench[analysis]'"
        ) from None
    for path in report(arguments.runs):
        print(path)
    return 0
