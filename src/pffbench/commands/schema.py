"""`pffbench schema`: the JSON Schema of an experiment, for editors and other programs."""

from __future__ import annotations

import argparse
import json

from pffbench.experiment.schema import json_schema


def main(arguments: argparse.Namespace) -> int:  # noqa: ARG001 -- it takes none
    """Print the schema. Return the exit status."""
    print(json.dumps(json_schema(), indent=2))
    return 0
