"""What of a run is missing in its samples, so that a summary of a part of it says so."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from pffbench.results.samples import is_torn


def gaps_of(path: Path, cut: Set[tuple[str, int]]) -> tuple[str, ...]:
    """Find what was left out.

    Parameters
    ----------
    path : Path
        `samples.csv`.
    cut : set of (str, int)
        The repetitions, as case and number, that were cut short.
    """
    found = []
    if is_torn(path):
        found.append(f"{path.name} ends in the midst of a line, which is left out")
    if cut:
        are = "s were" if len(cut) > 1 else " was"
        found.append(f"{len(cut)} repetition{are} cut short: the rows are left out")
    return tuple(found)
