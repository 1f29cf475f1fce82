"""`pffbench scaling`: rates as a function of the number of ranks or nodes."""

from __future__ import annotations

import argparse

from pffbench.commands.arguments import add_json
from pffbench.run.output import print_json

#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories of one experiment at several sizes of the job (example: "
        "results/1n results/2n results/4n)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="directory for tables and a figure: new, empty or from an earlier call (default: "
        "'scaling' next to the runs) (example: --out results/scaling)",
    )
    parser.add_argument(
        "--over",
        choices=("ranks", "nodes"),
        help="unit of the size of a job (default: nodes if the runs have different numbers of "
        "nodes and as many ranks on each node, otherwise ranks) (example: --over ranks)",
    )
    add_json(parser)


def main(arguments: argparse.Namespace) -> int:
    """Study a series of runs; print the answer, then each file. Return the status.

    With `--json` files are written only into a directory that was named.
    """
    from pffbench_analysis.scaling.export import scaling
    from pffbench_analysis.scaling.tables import data

    study = scaling(arguments.runs, arguments.out, arguments.over)
    if arguments.json:
        files = [path.name for path in study.write()] if arguments.out else []
        found = data(study.series, files)
        print_json({"format": "pffbench scaling", "version": _JSON_VERSION, **found})
        return 0
    for line in study.lines():
        print(line, flush=True)
    for path in study.write():
        print(path, flush=True)
    return 0
