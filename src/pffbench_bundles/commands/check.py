"""`pffbench check`: a bundle or a results directory by the rules of a valid result."""

from __future__ import annotations

import argparse
from pathlib import Path

from pffbench.errors import NOT_VALID, VALID

#: Broken rules are listed with so many places each.
_NAMED = 5

#: The line of `pffbench --help`.
HELP = "check a bundle or a results directory by the rules of a valid result"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "file", metavar="FILE", help="a bundle, or a results directory (example: run.zip)"
    )


def main(arguments: argparse.Namespace) -> int:
    """Print which rules a result breaks, and its answer. Return the exit status."""
    from pffbench_bundles.bundled import directories_of

    with directories_of(arguments.file) as directories:
        good = [_check(name, directory) for name, directory in directories.items()]
    return VALID if all(good) else NOT_VALID


def _check(name: str, directory: Path) -> bool:
    """Print what the rules say of one run; return whether all of them hold."""
    from pffbench.run.output import make_console
    from pffbench.summary.export import print_answer
    from pffbench.summary.summary import summarise
    from pffbench.text import abridged, one_line
    from pffbench_bundles.rules import examine

    findings = list(examine(directory))
    broken = [found for found in findings if found.broken]
    looked_at = sum(found.looked_at for found in findings)
    held = len(findings) - len(broken)
    print(one_line(f"{name}: {held} of {len(findings)} rules hold ({looked_at} things looked at)"))
    if idle := [str(found.rule.number) for found in findings if not found.looked_at]:
        print(f"nothing to look at: rule {', '.join(idle)}")
    for found in broken:
        print(f"rule {found.rule.number} is broken: {found.rule.sentence}")
        for text in abridged(found.broken, _NAMED, "\n").split("\n"):
            print(one_line(f"    {text}"))
    if not broken:
        print_answer(summarise(directory), make_console(120))
    return not broken
