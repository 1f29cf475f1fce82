"""`pffbench schema`: the JSON Schema of an experiment or of results.json, for programs."""

from __future__ import annotations

import argparse

from pffbench.experiment.schema import json_schema
from pffbench.run.output import print_json


def main(arguments: argparse.Namespace) -> int:
    """Print the schema. Return the exit status."""
    if arguments.document == "results":
        from pffbench.summary.results import results_schema

        print_json(results_schema())
    else:
        print_json(json_schema())
    return 0
