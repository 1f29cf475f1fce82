"""How busy the machine was with other things while a run measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pffbench.results.samples import Sample
from pffbench.storage.writeback import QUIET

#: Part of the processors of a node that others, or its host, may take.
BUSY = 0.15


@dataclass(frozen=True)
class LoadSummary:
    """The state of the machine over the repetitions that count.

    Parameters
    ----------
    repetitions : int
        Of how many it was recorded.
    busy, stolen, unsettled : int
        In how many of them other processes took more than `BUSY` of the processors, the host of a
        virtual machine did, and earlier writes were not on their device at the beginning.
    busy_others, steal : float
        Median part of the processors that they took, of these repetitions.
    """

    repetitions: int = 0
    busy: int = 0
    stolen: int = 0
    unsettled: int = 0
    busy_others: float = 0.0
    steal: float = 0.0


def load_summary(samples: Iterable[Sample]) -> LoadSummary:
    """Summarise the state of the machine by any one row of each repetition."""
    rows = {(s.case, s.repetition): s for s in samples if not s.warmup and s.steal == s.steal}
    busy = [s.busy_others for s in rows.values() if s.busy_others > BUSY]
    stolen = [s.steal for s in rows.values() if s.steal > BUSY]
    return LoadSummary(
        repetitions=len(rows),
        busy=len(busy),
        stolen=len(stolen),
        unsettled=sum((s.dirty_bytes or 0) > QUIET for s in rows.values()),
        busy_others=float(np.median(busy)) if busy else 0.0,
        steal=float(np.median(stolen)) if stolen else 0.0,
    )
