"""How many times smaller arrays are in the files, by what the workload `codecs` counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pffbench.results.summary import CaseSummary


def compression_ratio(case: CaseSummary, *, padded: bool = False) -> float | None:
    """Return the bytes of array data over those of the chunks in the files; None: not counted.

    Parameters
    ----------
    case : CaseSummary
        The case.
    padded : bool
        Count what pads the chunks at the edges of an array as data: what the compressor was given,
        over what it made of it. Otherwise padding makes the ratio smaller, below 1 without any
        compression.
    """
    stored = case.counts.get(("write", "stored_bytes"))
    data = case.counts.get(("write", "padded_bytes"), 0.0) if padded else float(case.nbytes)
    return data / stored if stored and data else None
