"""Arguments that several commands have."""

from __future__ import annotations

import argparse


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
