"""`pffbench init`: write an experiment from the arrays of a user's file."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from pffbench.errors import UserError
from pffbench.job.launcher import mpi_unstarted
from pffbench.run.next_steps import available_processors
from pffbench.text import counted, one_line
from pffbench.units import Size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="HDF5, netCDF or .npy file, or Zarr directory (example: run-42.nc)",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="experiment.yaml",
        metavar="EXPERIMENT.yaml",
        help="new file for the experiment (default: experiment.yaml) (example: -o mine.yaml)",
    )


@mpi_unstarted()
def main(arguments: argparse.Namespace) -> int:
    """Write the experiment, and print what is in it. Return the exit status."""
    from pffbench.draft.from_file import draft_experiment

    ranks = max(2, available_processors())
    draft = draft_experiment(Path(arguments.file), ranks)
    output = Path(arguments.output)
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(draft.text)
    except FileExistsError:
        raise UserError(f"{output}: exists already; name another file with -o") from None
    print(one_line(f"{output}, from {arguments.file}:"))
    for text in draft.entries:
        print(f"  {text}")
    for note in draft.notes:
        print(f"note: {note}")
    costs, name = draft.plan.costs.values(), shlex.quote(str(output))
    print(
        f"planned on {counted(ranks, 'rank')}: {counted(len(draft.plan.cases), 'case')}, each of "
        f"at most {Size(max(cost.nbytes for cost in costs))} and "
        f"{max(cost.files for cost in costs)} files"
    )
    print(f"next:\n  pffbench plan {name} -n {ranks}  (its cases and what they cost)")
    print(f"  mpiexec -n {ranks} python -m pffbench run {name}")
    return 0
