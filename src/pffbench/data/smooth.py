"""Smooth fields as a source of data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pffbench.data import random
from pffbench.data.base import Array, ElementType, Index, SeededSource, check_box, check_out

#: Waves lie within +-1024, and the field within +-2**21, before it is scaled down.
_HEIGHT = 1024
_FIELD = 2**21
#: Phases are counted modulo primes below 2**16 whose multiples are far from powers of two, so that
#: a misplaced block is detected.
_PRIMES = (62171, 62119)
#: Elements in a scratch buffer, and rows whose leading waves are made at a time.
_BLOCK = 32 * 1024
_ROWS = 4096

Vector = npt.NDArray[np.int32]


class Smooth(SeededSource):
    """Sums and products of one-dimensional waves, rounded to one decimal.

    ``carrier(leading) + amplitude(leading) * wave(last)``, where the first two are made of one
    wave along each axis but the last. A wave is the parabola that resembles a sine; its period is
    between 1000 and 5000 elements, and period and phase follow from the seed, the array and the
    axis. All waves are computed in integers, so every machine and every box gives the same
    values: multiples of 0.1 within +-200 as floats, and in integer types the same field as
    whole numbers, within +-63 in one byte and +-2000 otherwise, and shifted to be positive in
    unsigned types.
    """

    def __init__(self, dtype: ElementType, seed: int) -> None:
        super().__init__(dtype, seed)
        self._shift = np.int32(15 if dtype.itemsize == 1 else 10)
        self._offset = np.int32(_FIELD if dtype.kind == "u" else 0)
        self._scratch = np.empty(_BLOCK, dtype=np.int32)

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        check_out(out, self.dtype)
        check_box(start, out.shape, shape)
        if out.size == 0:
            return
        last = len(shape) - 1
        rows = out.reshape(-1, out.shape[last])
        for begin in range(0, len(rows), _ROWS):
            part = rows[begin : begin + _ROWS]
            index = _unravel(begin, begin + len(part), start, out.shape)
            amplitude, carrier = (self._leading(array, which, index, len(part)) for which in (0, 1))
            for column in range(0, out.shape[last], _BLOCK):
                block = part[:, column : column + _BLOCK]
                first = start[last] + column
                wave = self._wave(array, last, 0, np.arange(first, first + block.shape[1]))
                step = _BLOCK // block.shape[1]
                for row in range(0, len(block), step):
                    some = slice(row, row + step)
                    self._rows(block[some], wave, amplitude[some], carrier[some])

    def _wave(self, array: int, axis: int, which: int, index: npt.NDArray[np.int64]) -> Vector:
        """Evaluate one wave at global indices along an axis, which are overwritten."""
        prime = _PRIMES[which]
        key = random.stream(self._seed, array, axis, which)
        index *= prime // 5000 + key % (prime // 1000 - prime // 5000)
        index += key >> 32
        index %= prime
        # The phase, centred on zero, times what it lacks to half a turn: a parabola each side.
        index *= 2
        index -= prime
        index *= prime - np.abs(index)
        index >>= 20  # at most prime**2 / 4, which becomes 921
        return index.astype(np.int32)

    def _leading(
        self, array: int, which: int, index: list[npt.NDArray[np.int64]], count: int
    ) -> Vector:
        """Mean of the waves along the leading axes; `_HEIGHT` without such an axis."""
        if not index:
            return np.full(count, _HEIGHT, dtype=np.int32)
        total = np.zeros(count, dtype=np.int32)
        for axis, along in enumerate(index):
            total += self._wave(array, axis, which, along.copy())
        total //= np.int32(len(index))
        return total

    def _rows(self, out: Array, wave: Vector, amplitude: Vector, carrier: Vector) -> None:
        """Fill rows, shape (rows, columns), from the wave and one pair of numbers per row."""
        field = self._scratch[: out.size].reshape(out.shape)
        np.multiply(wave, amplitude[:, np.newaxis], out=field)
        np.add(field, (carrier * _HEIGHT + self._offset)[:, np.newaxis], out=field)
        np.right_shift(field, self._shift, out=field)
        if self.dtype.kind == "f":
            np.divide(field, self.dtype.type(10), out=out, dtype=self.dtype, casting="unsafe")
        else:
            np.copyto(out, field, casting="unsafe")


def _unravel(begin: int, end: int, start: Index, extent: Index) -> list[npt.NDArray[np.int64]]:
    """Global indices along each leading axis of the rows `begin` .. `end` of a box."""
    if len(extent) == 1:
        return []
    local = np.unravel_index(np.arange(begin, end), extent[:-1])
    return [along + first for along, first in zip(local, start[:-1], strict=True)]
