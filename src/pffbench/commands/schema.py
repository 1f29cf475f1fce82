"""`pffbench schema`: the JSON Schema of an experiment or of results.json, for programs."""

from __future__ import annotations

import argparse

from pffbench.experiment.schema import json_schema
from pffbench.run.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "document",
        nargs="?",
        choices=("experiment", "results"),
        default="experiment",
        metavar="DOCUMENT",
        help="experiment (the default) or results, which is results.json (example: results)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Print the schema. Return the exit status."""
    if arguments.document == "results":
        from pffbench.results.document import results_schema

        print_json(results_schema())
    else:
        print_json(json_schema())
    return 0
