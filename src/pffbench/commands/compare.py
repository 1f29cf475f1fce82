"""`pffbench compare`: the same cases in two or more runs."""

from __future__ import annotations

import argparse

from pffbench.commands import needing_analysis


def main(arguments: argparse.Namespace) -> int:
    """Compare runs, print the verdict and the written files. Return the exit status."""
    with needing_analysis("compare"):
        from pffbench_analysis.compare import RowChoice, compare

        status, _ = compare(
            arguments.base,
            arguments.new,
            out=arguments.out,
            across=arguments.across,
            smallest=arguments.min_effect,
            allowed=arguments.fail_if_slower,
            rows=RowChoice(arguments.all, arguments.only, arguments.sort),
            as_json=arguments.json,
        )
    return status
