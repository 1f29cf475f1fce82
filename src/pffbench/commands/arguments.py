"""Arguments that several commands have."""

from __future__ import annotations

import argparse
import os

from pffbench.errors import VALID
from pffbench.parallel.launcher import speaks_for_all


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands whose result programs read."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document instead of text (example: --json)",
    )


def ranks(text: str) -> int:
    """Return a number of ranks."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of ranks (1 or more)")
    return number


def list_experiments(*, as_json: bool) -> int:
    """Print the experiments of the package, from one process; return the exit status."""
    if not speaks_for_all(os.environ):
        return VALID
    from pffbench.experiment.shipped import shipped_experiments

    found = shipped_experiments()
    if as_json:
        from msgspec.structs import asdict

        from pffbench.run.output import print_json

        experiments = list(map(asdict, found))
        print_json({"format": "pffbench experiments", "version": 1, "experiments": experiments})
        return VALID
    longest = max(len(one.name) for one in found)
    for one in found:
        print(f"{one.name:{longest}}  {one.question}  ({one.takes.rstrip('.')})")
    print("pffbench plan NAME shows the cases of one of them; pffbench run NAME runs it.")
    return VALID
