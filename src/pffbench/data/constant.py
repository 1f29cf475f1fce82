"""One value all over: what deduplication and compression can do at best."""

from __future__ import annotations

from typing import Any

import numpy as np

from pffbench.data import hashing
from pffbench.data.base import Array, check_out
from pffbench.data.tiling import check_box


class Constant:
    """The same whole number in every element of an array.

    It lies in 1 .. 120 in types of one byte and in 1 .. 30000 in the others, so it is never 0,
    NaN, or a default fill value of HDF5, netCDF or Zarr, and unwritten data cannot pass for it.
    Consecutive arrays differ, and so, by the hash, do nearly all seeds.

    Parameters
    ----------
    dtype : numpy.dtype
        Any supported type.
    seed : int
        Any integer; its low 64 bits count.
    """

    def __init__(self, dtype: np.dtype[Any], seed: int) -> None:
        self.dtype = dtype
        self._range = 120 if dtype.itemsize == 1 else 30000
        self._offset = hashing.stream(seed) % self._range

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        check_out(out, self.dtype)
        check_box(start, out.shape, shape)
        out.fill(1 + (self._offset + array) % self._range)
