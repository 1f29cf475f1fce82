"""A smooth field with few digits: data that compress well, like much of what models write."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pffbench.data import hashing
from pffbench.data.base import Array, check_out
from pffbench.data.tiling import check_box

#: Every wave is this high on both sides of zero.
_HEIGHT = 1000
#: A power of two over 2 * _HEIGHT**2: makes the field positive.
_POSITIVE = 2**21
#: Phases are counted modulo primes, so that the field repeats at no power of two.
_PRIMES = (65521, 65519)
#: Elements in a scratch buffer.
_BLOCK = 32 * 1024


class Smooth:
    """Sums and products of one-dimensional waves, rounded to two decimals.

    ``carrier(leading) + amplitude(leading) * wave(last)``, where the first two are made of one
    wave along each axis but the last. A wave is the parabola that resembles a sine; its period is
    between 200 and 1000 elements, and period and phase follow from the seed, the array and the
    axis. All waves are computed in integers, so every machine and every box gives the same
    values: multiples of 0.01 within +-157 as floats, and in integer types the same field as
    whole numbers, within +-62 in one byte and +-15700 otherwise, and shifted to be positive in
    unsigned types.

    Parameters
    ----------
    dtype : numpy.dtype
        Any supported type.
    seed : int
        Any integer; its low 64 bits count.
    """

    def __init__(self, dtype: np.dtype[Any], seed: int) -> None:
        self.dtype = dtype
        self._seed = seed
        self._shift = np.int32(15 if dtype.itemsize == 1 else 7)
        self._offset = np.int32(_POSITIVE if dtype.kind == "u" else 0)
        self._scratch = np.empty(_BLOCK, dtype=np.int32)

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        check_out(out, self.dtype)
        check_box(start, out.shape, shape)
        if out.size == 0:
            return
        last = len(shape) - 1
        wave = self._wave(array, last, 0, start[last], out.shape[last])
        waves = [
            [self._wave(array, axis, which, start[axis], out.shape[axis]) for axis in range(last)]
            for which in (0, 1)
        ]
        rows = out.reshape(-1, out.shape[last])
        for column in range(0, out.shape[last], _BLOCK):
            part = wave[column : column + _BLOCK]
            step = _BLOCK // part.size
            for row in range(0, len(rows), step):
                end = min(row + step, len(rows))
                index = _unravel(row, end, out.shape[:last])
                amplitude = _combine(waves[0], index, end - row)
                carrier = _combine(waves[1], index, end - row)
                self._rows(rows[row:end, column : column + part.size], part, amplitude, carrier)

    def _wave(
        self, array: int, axis: int, which: int, start: int, count: int
    ) -> npt.NDArray[np.int32]:
        """One wave along an axis, whole numbers within +-`_HEIGHT`, shape (count,)."""
        prime = _PRIMES[which]
        key = hashing.stream(self._seed, array, axis, which)
        step = prime // 1000 + key % (prime // 200 - prime // 1000)
        phase = (np.arange(start, start + count, dtype=np.int64) * step + (key >> 32)) % prime
        centred = 2 * phase - prime
        parabola = centred * (prime - np.abs(centred))
        wave: npt.NDArray[np.int32] = (parabola * _HEIGHT // (prime**2 // 4)).astype(np.int32)
        return wave

    def _rows(
        self,
        out: Array,
        wave: npt.NDArray[np.int32],
        amplitude: npt.NDArray[np.int32],
        carrier: npt.NDArray[np.int32],
    ) -> None:
        """Fill rows, shape (rows, columns), from the wave and one pair of numbers per row."""
        field = self._scratch[: out.size].reshape(out.shape)
        np.multiply(wave, amplitude[:, np.newaxis], out=field)
        np.add(field, (carrier * _HEIGHT + self._offset)[:, np.newaxis], out=field)
        np.right_shift(field, self._shift, out=field)
        if self.dtype.kind == "f":
            np.divide(field, self.dtype.type(100), out=out, dtype=self.dtype, casting="unsafe")
        else:
            np.copyto(out, field, casting="unsafe")


def _unravel(begin: int, end: int, extent: tuple[int, ...]) -> list[npt.NDArray[np.intp]]:
    """Split the flat range `begin` .. `end` into its indices along each axis."""
    if not extent:
        return []
    return list(np.unravel_index(np.arange(begin, end), extent))


def _combine(
    waves: list[npt.NDArray[np.int32]], index: list[npt.NDArray[np.intp]], count: int
) -> npt.NDArray[np.int32]:
    """Mean of the waves at each leading index; all `_HEIGHT` where there is no leading axis."""
    if not waves:
        return np.full(count, _HEIGHT, dtype=np.int32)
    total = waves[0][index[0]].copy()
    for wave, along in zip(waves[1:], index[1:], strict=True):
        total += wave[along]
    return total // np.int32(len(waves))
