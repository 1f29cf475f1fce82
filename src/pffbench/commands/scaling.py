"""`pffbench scaling`: rates as a function of the number of ranks or nodes."""

from __future__ import annotations

import argparse

from pffbench.errors import UserError


def main(arguments: argparse.Namespace) -> int:
    """Study a series of runs and print the verdict and the written files. Return the status."""
    try:
        from pffbench_analysis.scaling.export import scaling
    except ModuleNotFoundError as error:
        raise UserError(
            f"scaling needs {error.name}, which is not installed: pip install 'pffbench[analysis]'"
        ) from None
    made = scaling(arguments.runs, arguments.out, arguments.over, arguments.predict)
    for line in [*made.lines, *map(str, made.files)]:
        print(line)
    return 0
