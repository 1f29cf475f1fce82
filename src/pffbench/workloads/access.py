"""One call of a rank."""

from __future__ import annotations

from dataclasses import dataclass

from pffbench.backends.base import ArraySpec
from pffbench.parallel.decomposition import Box


@dataclass(frozen=True, slots=True)
class Access:
    """One call of a rank: a box of an array, written or read."""

    spec: ArraySpec
    box: Box

    @property
    def nbytes(self) -> int:
        """Bytes of array data that the call moves."""
        return self.box.size * self.spec.itemsize
