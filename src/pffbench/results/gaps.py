"""What of a run is missing in its samples, so that a summary of a part of it says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pffbench.results.samples import Sample, Whole, is_torn


def gaps_of(path: Path, samples: Sequence[Sample], complete: Whole) -> tuple[str, ...]:
    """Find what was left out.

    Parameters
    ----------
    path : Path
        `samples.csv`.
    samples : sequence of Sample
        Its rows.
    complete : Whole
        Which repetitions are.
    """
    found = []
    if is_torn(path):
        found.append(f"{path.name} ends in the midst of a line, which is left out")
    there = {(row.case, row.repetition) for row in samples}
    if cut := len(there - complete.finished - complete.written):
        are = "s were" if cut > 1 else " was"
        found.append(f"{cut} repetition{are} cut short: the rows are left out")
    return tuple(found)
