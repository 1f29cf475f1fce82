"""Volume resembling X-ray tomography: smooth tissue, sharp borders, noise, empty outside.

Stands in for the image of a heart (HiP-CT at 200 µm, 806 x 629 x 629 uint16) on which the HEFTIE
project compared Zarr libraries and compressors, https://github.com/HEFTIEProject/zarr-benchmarks:
there Blosc-Zstd level 3 with byte shuffle makes it 1.885 times smaller in chunks of 128 x 128 x
128, with bit shuffle 1.789 and without 1.539. The generated data come within 6 % of the study's
ratios; the size of the features in elements does not depend on the shape of the array.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pffbench.data.base import Array, ElementType
from pffbench.data.random import GOLDEN, counters, mix_array, stream
from pffbench_studies.sources.noise import Plane, ValueNoise
from pffbench_studies.sources.volumes import WIDTH, Part, Volume

#: Value of plain tissue; its variation over long and short distances; its noise; and the excess of
#: the densest parts. All chosen for the compression ratios.
_BASE, _LONG, _SHORT, _SIGMA, _CONTRAST = 12500, 1900, 1150, 115, 5000
#: The distances, in elements.
_LONG_CELL, _SHORT_CELL = 160, 16
#: Parts are dense where a field within +-1 is above this; and the slope of the contrast there.
_THRESHOLD, _STEEPNESS = 0.34, 12
#: Sum of four bytes of a random word: its mean and standard deviation (Irwin-Hall).
_MEAN, _DEVIATION = 510, 147.8

Words = npt.NDArray[np.uint32]


class Image(Volume):
    """Tissue within the ellipse that fits the last two axes, zero outside of it.

    Values lie between 8900 and 21 100; in one-byte types at a 256th of that.
    """

    def __init__(self, dtype: ElementType, seed: int) -> None:
        super().__init__(dtype, seed)
        self._columns: Words = (counters(stream(seed), WIDTH) >> np.uint64(32)).astype(np.uint32)
        scale = 1 / 256 if dtype.itemsize == 1 else 1
        self._scale = np.float32(scale)

    def _planes(self, part: Part, out: Array) -> Iterator[int]:
        long = _noise(part, 1, _LONG_CELL, _LONG)
        short = _noise(part, 2, _SHORT_CELL, _SHORT)
        dense = _noise(part, 3, _LONG_CELL, _STEEPNESS * _CONTRAST)
        inside = _ellipse(part) * self._scale
        total, field = (np.empty(inside.shape, np.float32) for _ in range(2))
        words, more = (np.empty(inside.shape, np.uint32) for _ in range(2))
        for number, z in enumerate(range(*part.z)):
            dense.plane(z, total)
            total -= np.float32(_THRESHOLD * _STEEPNESS * _CONTRAST)
            np.clip(total, 0, _CONTRAST, out=total)
            for smooth in (long, short):
                smooth.plane(z, field)
                total += field
            self._white(part, z, words, more)
            np.multiply(words, np.float32(_SIGMA / _DEVIATION), out=field)
            total += field
            total += np.float32(_BASE - _SIGMA / _DEVIATION * _MEAN)
            total *= inside
            np.trunc(total, out=total)
            np.copyto(out[number], total, casting="unsafe")
            yield number

    def _white(self, part: Part, z: int, words: Words, more: Words) -> None:
        """Sum up four bytes of a random word for each element; overwrites both arrays."""
        _, rows, columns = part.shape
        segments = -(-columns // WIDTH)
        first = (z * rows) * segments + part.x[0] // WIDTH
        keys = np.arange(*part.y, dtype=np.uint64)
        keys *= np.uint64(segments)
        keys += np.uint64(first)
        keys *= np.uint64(GOLDEN)
        keys += np.uint64(part.state)
        mix_array(keys)
        multipliers = (keys >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        addends = keys.astype(np.uint32)
        x = part.x[0] % WIDTH
        row = self._columns[x : x + words.shape[1]]
        np.multiply(row, multipliers[:, np.newaxis], out=words)
        # The low bits of a product repeat from row to row, so the high half is folded into them.
        np.right_shift(words, np.uint32(16), out=more)
        words ^= more
        words ^= addends[:, np.newaxis]
        np.right_shift(words, np.uint32(8), out=more)
        more &= np.uint32(0x00FF00FF)
        words &= np.uint32(0x00FF00FF)
        words += more
        np.right_shift(words, np.uint32(16), out=more)
        words += more
        words &= np.uint32(0xFFFF)


def _noise(part: Part, number: int, cell: int, amplitude: float) -> ValueNoise:
    return ValueNoise(stream(part.state, number), cell, amplitude, part.z, part.y, part.x)


def _ellipse(part: Part) -> Plane:
    """Return 1 within the ellipse and 0 outside."""
    _, rows, columns = part.shape
    y = (2.0 * np.arange(*part.y) - (rows - 1)) / rows
    x = (2.0 * np.arange(*part.x) - (columns - 1)) / columns
    return ((y * y)[:, np.newaxis] + x * x <= 1).astype(np.float32)
