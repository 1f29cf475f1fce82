"""`pffbench compare`: the same cases in two or more runs."""

from __future__ import annotations

import argparse

from pffbench.errors import UserError


def main(arguments: argparse.Namespace) -> int:
    """Compare runs, print the verdict and the written files. Return the exit status."""
    try:
        from pffbench_analysis.compare import compare

        status, _ = compare(
            arguments.base,
            arguments.new,
            out=arguments.out,
            across=arguments.across,
            smallest=arguments.min_effect,
            allowed=arguments.fail_if_slower,
        )
    except ModuleNotFoundError as error:  # of the figures that --out asks for
        raise UserError(
            f"compare needs {error.name}, which is not installed: pip install 'pffbench[analysis]'"
        ) from None
    return status
