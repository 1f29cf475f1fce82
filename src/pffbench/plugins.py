"""Entry points, by which other installed packages add to the program.

The groups are `pffbench.backends`, `pffbench.workloads`, `pffbench.commands` and
`pffbench.launchers`; CONTRIBUTING.md shows how a package names what it brings.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any


@cache
def _entry_points() -> Any:  # of another type in Python 3.11
    """Return those of all groups: searching all installed packages takes 30 ms."""
    from importlib.metadata import entry_points

    return entry_points()


def plugins(group: str) -> dict[str, str]:
    """Return what other packages have in a group of entry points: name → location.

    What is known of a checkout may name a package whose folder is gone.
    """
    found = {entry.name: entry.value for entry in _entry_points().select(group=group)}
    return {name: value for name, value in found.items() if _is_there(value)}


def _is_there(location: str) -> bool:
    return find_spec(location.partition(":")[0].partition(".")[0]) is not None
