"""Arguments that several commands have."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from pffbench.errors import VALID
from pffbench.job.launcher import speaks_for_all

#: Largest number of things. No machine has more ranks, and a plan of more needs minutes.
MOST = 10**7


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands whose result programs read."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document instead of text",
    )


def number_of(what: str) -> Callable[[str], int]:
    """Return what reads a number of things on the command line."""

    def read(text: str) -> int:
        if text.isascii() and text.isdecimal() and len(text) < 20 and 1 <= int(text) <= MOST:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {what} (1 to {MOST})")

    return read


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
