"""`pffbench bisect`: find the version of a package in which a time or a count changed."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from pffbench.job.batch_job import StopSignals
from pffbench.text import one_line

#: The line of `pffbench --help`.
HELP = "find the package version that changed a time or a count"
TASK = "measure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    later = "a later version of it, which is slower or faster"
    for name, text in (("good", "a package and a version before the change"), ("bad", later)):
        parser.add_argument(
            f"--{name}",
            required=True,
            metavar="NAME==VERSION",
            help=f"{text} (example: --{name} h5py==3.1{3 if name == 'good' else 6}.0)",
        )
    parser.add_argument(
        "--case",
        required=True,
        metavar="EXPERIMENT.yaml",
        help="experiment file with one case (example: --case configs/many-datasets.yaml)",
    )
    parser.add_argument(
        "--total",
        choices=("write", "read"),
        default="write",
        help="the time that changed (default: write) (example: --total read)",
    )
    parser.add_argument(
        "--count",
        metavar="COUNTER",
        help="search by a counter instead of by time: system calls, or the instructions of a "
        "library function (example: --count write_calls, --count instructions:H5Dcreate2)",
    )
    parser.add_argument(
        "--versions",
        type=lambda text: text.split(","),
        default=[],
        metavar="V,…",
        help="versions between the two (default: all that pip lists) "
        "(example: --versions 3.14.0,3.15.0)",
    )
    parser.add_argument(
        "--launcher",
        metavar="COMMAND",
        help="command that starts the ranks (default: srun or mpiexec, with all cores) "
        "(example: --launcher 'mpiexec -n 2')",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--out",
        metavar="DIR",
        help="new directory for the results of all runs (default: ./pffbench-results/bisect-DATE) "
        "(example: --out results/h5py)",
    )
    where.add_argument(
        "--resume",
        metavar="DIR",
        help="resume a stopped search, with the options with which it began (example: --resume "
        "results/h5py)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory on the file system under test (example: --scratch /lustre/me)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Search, and print a line for each version that is tried. Return the exit status."""
    from pffbench_environments.bisect.search import Search, bisect

    name = f"pffbench-results/bisect-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    given = {field: getattr(arguments, field) for field in Search.__struct_fields__}
    given["out"] = arguments.resume or arguments.out or name
    with StopSignals() as stop:
        return bisect(Search(**given), stop, lambda text: print(one_line(text), flush=True))
