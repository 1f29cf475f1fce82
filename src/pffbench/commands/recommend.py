"""`pffbench recommend`: the format and settings to use, by measurements."""

from __future__ import annotations

import argparse

from pffbench.errors import UserError


def main(arguments: argparse.Namespace) -> int:
    """Print the recommendation of runs. Return the exit status."""
    try:
        from pffbench_analysis.recommend import Weights, recommend
    except ModuleNotFoundError as error:
        raise UserError(
            f"recommend needs {error.name}, which is not installed: pip install "
            "'pffbench[analysis]'"
        ) from None
    write, read = arguments.weight
    for line in recommend(arguments.runs, Weights(write, read)):
        print(line)
    return 0
