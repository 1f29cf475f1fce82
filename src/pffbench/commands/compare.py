"""`pffbench compare`: the same cases in two or more runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby

from pffbench.commands import needing_analysis
from pffbench.errors import UserError

#: Stands for the ``--`` between the sides, which argparse would take away.
NEXT_SIDE = "//"


def main(arguments: argparse.Namespace) -> int:
    """Compare runs, print the verdict and the written files. Return the exit status."""
    with needing_analysis("compare"):
        from pffbench_analysis.compare import Gate, RowChoice, compare

        gate = None
        if arguments.fail_if_slower is not None:
            gate = Gate(arguments.fail_if_slower, arguments.strict, arguments.allow_missing)
        status, _ = compare(
            sides_of(arguments.runs),
            out=arguments.out,
            across=arguments.across,
            gate=gate,
            rows=RowChoice(arguments.all, arguments.only, arguments.sort),
            as_json=arguments.json,
        )
    return status


def sides_of(runs: Sequence[str]) -> list[list[str]]:
    """Return the runs of each side, the base first.

    Without `NEXT_SIDE` the first run is the base, and each other one is compared with it.

    Raises
    ------
    UserError
        A side has no run.
    """
    sides = [list(side) for of, side in groupby(runs, lambda r: r == NEXT_SIDE) if not of]
    if NEXT_SIDE not in runs:
        sides = [[run] for run in runs]
    if len(sides) < 2 or len(sides) <= list(runs).count(NEXT_SIDE):
        raise UserError(
            "compare needs two runs or more: BASE NEW, or several of each: OLD … -- NEW …"
        )
    return sides
