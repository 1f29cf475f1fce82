"""Counts what of the files the reads of a batch lie in, beside what they want."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pffbench.backends.base import Array
from pffbench.workloads.pieces import Piece

if TYPE_CHECKING:
    from pffbench.workloads.cycle import Cycle


def count_touched(cycle: Cycle, arrays: Mapping[str, Array], pieces: Sequence[Piece]) -> None:
    """Count runs or chunks, and the bytes of pages or chunks, where the experiment counts.

    They are derived from how the array is stored, so they are the same whether the page cache is
    warm or cold, and the same each time. Each call is counted by itself: what two calls or two
    ranks touch counts twice.
    """
    if not cycle.clock.counts:
        return
    for piece in pieces:
        found = arrays[piece.spec.name].touched(piece.box) if piece.box.size else None
        if found is None:
            continue
        cycle.observed.count("read", f"touched_{found.kind}", found.count)
        if found.nbytes is not None:
            cycle.observed.count("read", "touched_bytes", found.nbytes)
