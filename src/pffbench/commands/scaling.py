"""`pffbench scaling`: rates as a function of the number of ranks or nodes."""

from __future__ import annotations

import argparse

from pffbench.commands import needing_analysis


def main(arguments: argparse.Namespace) -> int:
    """Study a series of runs and print the verdict and the written files. Return the status."""
    with needing_analysis("scaling"):
        from pffbench_analysis.scaling.export import scaling
    made = scaling(arguments.runs, arguments.out, arguments.over, arguments.predict)
    for line in [*made.lines, *map(str, made.files)]:
        print(line)
    return 0
