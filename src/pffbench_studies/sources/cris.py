"""Noise-like spectra of a sounder as a source of data.

They stand in for the dataset ``ES_ImaginaryLW`` of 717 channels with which The HDF Group showed
the cost of a chunk cache that is too small: gzip 6 makes it 1.076 times smaller (46 461 600 to
43 162 046 bytes, white paper "Improving I/O Performance When Working with HDF5 Compressed
Datasets"). The ratio is small because only the signs and exponents of such numbers are similar.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pffbench.data.base import Array, ElementType, Index, SeededSource, check_out
from pffbench.data.random import Keyed, Words

#: Standard deviation of a channel in the middle of the spectrum.
_SIGMA = 0.1
#: Natural logarithm of the relative width of the outermost channels; chosen for the compression
#: ratio.
_SLOPE = 0.25
#: A number is the sum of four parts of a random word: the bits of each, and their first bits.
_PART_BITS = 13
_PARTS = (51, 38, 25, 12)
#: Sum of the parts in the mean, and its standard deviation (of four uniform numbers: Irwin-Hall).
_MEAN = 4 * (2**_PART_BITS - 1) / 2
_DEVIATION = 2**_PART_BITS / sqrt(3)
#: Unit of whole numbers, so that all of them fit: no value reaches 0.45.
_UNITS = {1: 250, 2: 4000, 4: 4000, 8: 4000}


class Cris(SeededSource):
    """Independent, nearly normal numbers around 0, channel after channel along the last axis.

    The standard deviation of channel i of n is ``0.1 * (1 + x + x**2 / 2)``, where x goes from
    -0.25 to 0.25: nearly an exponential. Whole numbers are the same field in smaller units,
    shifted to be positive in unsigned types. Only sums and products of numbers that are exact, or
    rounded once, are computed, so every machine gives the same values.
    """

    def __init__(self, dtype: ElementType, seed: int) -> None:
        super().__init__(dtype, seed)
        self._real = dtype if dtype.kind == "f" else np.dtype(np.float32)
        self._noise = _Noise(self._real, seed)
        self._widths: dict[int, Array] = {}

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        check_out(out, self.dtype)
        values = out if out.dtype == self._real else np.empty(out.shape, self._real)
        self._noise.fill(values, array, start, shape)
        channels = slice(start[-1], start[-1] + out.shape[-1])
        np.multiply(values, self._width(shape[-1])[channels], out=values)
        if values is not out:
            np.rint(values, out=values)
            values += self._middle
            np.copyto(out, values, casting="unsafe")

    def _width(self, channels: int) -> Array:
        """Return the factor of the noise of each channel."""
        if channels not in self._widths:
            x = np.linspace(-_SLOPE, _SLOPE, channels) if channels > 1 else np.zeros(1)
            unit = 1 if self.dtype.kind == "f" else _UNITS[self.dtype.itemsize]
            width = (1 + x + x * x / 2) * (_SIGMA / _DEVIATION * unit)
            self._widths[channels] = width.astype(self._real)
        return self._widths[channels]

    @property
    def _middle(self) -> np.float32:
        """Return the shift that makes whole numbers of unsigned types positive."""
        unsigned = self.dtype.kind == "u"
        return np.float32(_UNITS[self.dtype.itemsize] // 2 if unsigned else 0)


class _Noise(Keyed):
    """Sums of four uniform whole numbers, less their mean: exact in every floating-point type."""

    def __init__(self, dtype: ElementType, seed: int) -> None:
        super().__init__(dtype, seed, 8)
        self._sum: Words = np.empty_like(self._scratch)
        self._part: Words = np.empty_like(self._scratch)

    def _values(self, words: Words, addends: Words, out: Array) -> None:
        total = self._sum[: words.size].reshape(words.shape)
        part = self._part[: words.size].reshape(words.shape)
        np.bitwise_xor(words, addends, out=words)
        total.fill(0)
        for shift in _PARTS:
            np.right_shift(words, np.uint64(shift), out=part)
            np.bitwise_and(part, np.uint64(2**_PART_BITS - 1), out=part)
            np.add(total, part, out=total)
        np.subtract(total.view(np.int64), _MEAN, out=out, casting="unsafe")
