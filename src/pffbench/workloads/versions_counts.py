"""What a repetition of the workload `versions` counts: rows, chunks, bytes and time per version."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pffbench.parallel.clock import PhaseTime
from pffbench.versioning.chunks import grid_of
from pffbench.versioning.history import Rows, Version
from pffbench.versioning.keeper import ColumnStorage, Kept

if TYPE_CHECKING:
    from pffbench.workloads.cycle import Observed

#: Phases that each version passes through.
_PHASES = ("write", "commit", "flush")
_TENTHS = 10


class Tally:
    """Counts what happens to a table from version to version, and that its length is right.

    Parameters
    ----------
    storage : ColumnStorage
        How columns are cut into chunks.

    Attributes
    ----------
    referenced : int
        Chunks that all versions consist of, those in several versions counted several times.
    last : int
        Chunks that the last version consists of.
    """

    def __init__(self, storage: ColumnStorage) -> None:
        self.referenced = self.last = 0
        self._storage = storage
        self._sums: dict[str, int] = {}
        self._length: int | None = None

    def see(self, version: Version) -> None:
        """Count a version.

        Raises
        ------
        RuntimeError
            It is longer or shorter than the rows that came and went say.
        """
        rows = version.rows
        if self._length is not None and version.length != self._length + rows.gained:
            raise RuntimeError(
                f"version {version.number} has {version.length} rows instead of "
                f"{self._length + rows.gained}"
            )
        self._length = version.length
        for name in Rows.__dataclass_fields__:
            self._sums[name] = self._sums.get(name, 0) + getattr(rows, name)
        self._sums["edits"] = self._sums.get("edits", 0) + len(version.edits)
        chunks = self._storage.chunks
        columns = version.table.values()
        self.last = sum(prod(grid_of(c.shape, chunks(c.ndim))) for c in columns)
        self.referenced += self.last

    def count(self, observed: Observed) -> None:
        """Tell what was counted."""
        for name, amount in self._sums.items():
            observed.count("version", name, amount)
        observed.count("version", "final_rows", self._length or 0)


def count_kept(observed: Observed, kept: Kept, referenced: int) -> None:
    """Tell what the closed store holds, against the chunks that its versions consist of."""
    observed.count("close", "file_bytes", kept.data_bytes + kept.metadata_bytes)
    observed.count("close", "data_bytes", kept.data_bytes)
    observed.count("close", "metadata_bytes", kept.metadata_bytes)
    observed.count("close", "chunks_stored", kept.chunks)
    observed.count("close", "chunks_referenced", referenced)
    observed.count("close", "chunks_reused", max(0, referenced - kept.chunks))


def count_times(observed: Observed, times: Sequence[PhaseTime]) -> None:
    """Tell how this rank's time per version goes on, so that growth with their number shows.

    The initial version is part of the first tenth of the sums and of no median.
    """
    parts = {t.phase: np.array(t.parts) for t in times if t.phase in _PHASES}
    parts["version"] = np.sum(list(parts.values()), axis=0)
    for phase, seconds in parts.items():
        for number, tenth in enumerate(np.array_split(seconds, _TENTHS), start=1):
            observed.count(phase, f"tenth_{number:02d}_seconds", float(tenth.sum()))
    each = parts["version"][1:]
    few = max(1, len(each) // _TENTHS)
    observed.count("version", "median_seconds", float(np.median(each)))
    observed.count("version", "median_seconds_first_tenth", float(np.median(each[:few])))
    observed.count("version", "median_seconds_last_tenth", float(np.median(each[-few:])))
