"""Every n-th element of a source's arrays, as arrays of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from pffbench.data.base import Array, Source
from pffbench.data.tiling import check_box


class Strided:
    """A lattice of the elements of a source.

    Parameters
    ----------
    source : Source
        Where the elements come from.
    first : tuple of int
        Global index of the lattice's first element.
    stride : tuple of int
        Distance of neighbours along each axis, 1 or more.
    shape : tuple of int
        Global shape of the source's array.
    """

    def __init__(
        self,
        source: Source,
        first: tuple[int, ...],
        stride: tuple[int, ...],
        shape: tuple[int, ...],
    ) -> None:
        self._source = source
        self._first = first
        self._stride = stride
        self._shape = shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in native byte order."""
        return self._source.dtype

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box of the lattice, see `Source.fill`; what lies between is made and let go.

        Here `start` and `shape` are indices and shape of the lattice.
        """
        check_box(start, out.shape, shape)
        if out.size == 0:
            return
        extent = [(n - 1) * step + 1 for n, step in zip(out.shape, self._stride, strict=True)]
        between = np.empty(extent, self.dtype)
        self._source.fill(between, array, self.index(start), self._shape)
        out[...] = between[tuple(slice(None, None, step) for step in self._stride)]

    def index(self, place: tuple[int, ...]) -> tuple[int, ...]:
        """Return the global index of an element of the lattice."""
        each = zip(self._first, place, self._stride, strict=True)
        return tuple(first + i * step for first, i, step in each)
