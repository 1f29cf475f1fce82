"""`pffbench instructions`: count the instructions of a library function in each environment."""

from __future__ import annotations

import argparse

from pffbench.errors import VALID
from pffbench.experiment.load import load_experiment
from pffbench.parallel.batch_job import StopSignals
from pffbench.text import one_line

#: The line of `pffbench --help`.
HELP = "count the instructions that a library function takes in each environment"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT.yaml",
        help="experiment with environments and cases of the workload datasets "
        "(example: configs/issues/hdf5-5962-create.yaml)",
    )
    parser.add_argument(
        "--function",
        required=True,
        metavar="NAME",
        help="function of a library whose instructions are counted, with all that it calls "
        "(example: --function H5Dcreate2)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key of the experiment, or of all its cases; may be given several times "
        "(example: --set datasets=200 --set hdf5.libver=v108)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory for the files of the runs (example: --scratch /dev/shm)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Count, and print a line for each environment. Return the exit status."""
    from pffbench_environments.instructions import count_instructions, lines_of

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
