"""Counts what of the files the reads of a repetition lie in, beside what they want."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pffbench.backends.base import Array
from pffbench.workloads.access import Access

if TYPE_CHECKING:
    from pffbench.workloads.cycle import Cycle


@dataclass(frozen=True)
class CountTouched:
    """Counts runs or chunks, and the bytes of pages or chunks, where the experiment counts.

    They are derived from how the array is stored, so they are the same whether the page cache is
    warm or cold, and the same each time. Each call is counted by itself: what two calls or two
    ranks touch counts twice.

    Parameters
    ----------
    cycle : Cycle
        The repetition.
    """

    cycle: Cycle

    def __call__(self, arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
        """Look at what has just been read, see `pffbench.workloads.ladder.Look`."""
        if not self.cycle.clock.counts:
            return
        for access in accesses:
            found = arrays[access.spec.name].touched(access.box) if access.box.size else None
            if found is None:
                continue
            self.cycle.observed.count("read", f"touched_{found.kind}", found.count)
            if found.nbytes is not None:
                self.cycle.observed.count("read", "touched_bytes", found.nbytes)
