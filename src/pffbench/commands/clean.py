"""`pffbench clean`: list what killed runs left in a scratch directory, and remove it on demand."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pffbench.errors import NOT_VALID, VALID
from pffbench.results.leftovers import Judged, judged, remove
from pffbench.storage.scratch import scratch_parent
from pffbench.text import one_line
from pffbench.units import Size


def main(arguments: argparse.Namespace) -> int:
    """List leftovers, and remove those that nothing needs if asked to. Return the exit status."""
    parent, _ = scratch_parent(arguments.scratch)
    found = list(judged(parent, kept=arguments.kept))
    status = VALID
    for one in found:
        print(one_line(_told(one)))  # anybody may have named the directory and written its marker
        why = one_line(one.why)
        if not one.removable:
            print(f"  stays: {why}")
        elif not arguments.remove:
            print(f"  can go: {why}")
        elif trouble := remove(one):
            print(f"  could not be removed: {trouble}")
            status = NOT_VALID
        else:
            print(f"  removed: {why}")
    for line in _ending(found, parent, arguments.remove):
        print(line)
    return status


def _told(one: Judged) -> str:
    size = "unreadable"
    if one.usage is not None:
        size = f"{Size(one.usage.stored)} in {one.usage.files - 1} files"  # without the marker
    age = "of unknown age" if one.age is None else f"{_in_words(one.age)} old"
    return f"{one.leftover.path}: {size}, {age}, run {one.leftover.run_id}, {one.leftover.holder}"


def _in_words(seconds: float) -> str:
    for name, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(seconds, 0):.0f} seconds"


def _ending(found: list[Judged], parent: str, removed: bool) -> Iterator[str]:
    if not found:
        yield f"no run has left anything in {parent}"
        return
    going = [one for one in found if one.removable]
    size = Size(sum(one.usage.stored for one in going if one.usage is not None))
    if going and not removed:
        yield f"{len(going)} of {len(found)} can go, {size}; nothing was removed: add --remove"
