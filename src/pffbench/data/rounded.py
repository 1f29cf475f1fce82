"""Data as they are after a lossy format has rounded them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pffbench.data.base import Array, Source


class BitRounded:
    """A source of floating-point numbers that keeps so many bits of each mantissa.

    Half of what the last kept bit counts is added, then the bits behind it are cut off: the mode
    BitRound of netCDF-C (https://docs.unidata.ucar.edu/netcdf-c/current/, quantization), which
    does so to the bits as they are, so that a mantissa may carry over into the exponent.

    Parameters
    ----------
    source : Source
        The numbers before, of type float32 or float64.
    bits : int
        Bits of the mantissa that are kept.
    """

    def __init__(self, source: Source, bits: int) -> None:
        self._source = source
        word = np.dtype(f"u{source.dtype.itemsize}").type
        cut = np.finfo(source.dtype).nmant - bits
        self._half = word((1 << cut) >> 1)
        self._kept = ~word((1 << cut) - 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in native byte order."""
        return self._source.dtype

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        self._source.fill(out, array, start, shape)
        words = out.view(self._half.dtype)
        words += self._half
        words &= self._kept
