"""`pffbench instructions`: count the instructions of a library function in each environment."""

from __future__ import annotations

import argparse

from pffbench.environments.instructions import count_instructions, lines_of
from pffbench.errors import VALID
from pffbench.experiment.load import load_experiment
from pffbench.parallel.batch_job import StopSignals
from pffbench.text import one_line


def main(arguments: argparse.Namespace) -> int:
    """Count, and print a line for each environment. Return the exit status."""
    loaded = load_experiment(arguments.experiment, arguments.set)
    with StopSignals() as stop:
        counts = count_instructions(
            loaded,
            arguments.function,
            arguments.scratch,
            stop,
            lambda text: print(one_line(text), flush=True),
        )
    print(f"{arguments.function}, for each dataset:")
    for line in lines_of(counts):
        print(one_line(line))
    return VALID
