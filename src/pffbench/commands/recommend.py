"""`pffbench recommend`: the format and settings to use, by measurements."""

from __future__ import annotations

import argparse

from pffbench.commands import needing_analysis


def main(arguments: argparse.Namespace) -> int:
    """Print the recommendation of runs. Return the exit status."""
    with needing_analysis("recommend"):
        from pffbench_analysis.recommend import Weights, recommend
    write, read = arguments.weight
    for line in recommend(arguments.runs, Weights(write, read)):
        print(line)
    return 0
