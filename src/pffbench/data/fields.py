"""Smooth fields and noise-like spectra as sources of data.

`ValueNoise` interpolates between random numbers at the points of a cubic lattice, with the weight
``t * t * (3 - 2 * t)`` along each axis (K. Perlin's "smoothstep"). Slow steps are done on the
lattice: the first axis comes last, where a whole plane has one weight.

`Cris` stands in for the dataset ``ES_ImaginaryLW`` of 717 channels with which The HDF Group showed
the cost of a chunk cache that is too small: gzip 6 makes it 1.076 times smaller (46 461 600 to
43 162 046 bytes, white paper "Improving I/O Performance When Working with HDF5 Compressed
Datasets"). The ratio is small because only the signs and exponents of such numbers are similar.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pffbench.data import random
from pffbench.data.base import Array, ElementType, Index, SeededSource, check_box, check_out
from pffbench.data.random import Keyed, Words

Plane = npt.NDArray[np.float32]
Range = tuple[int, int]

#: Bits of a lattice coordinate in the word that is hashed; three of them fit.
_COORDINATE_BITS = 21


class Axis(msgspec.Struct, frozen=True):
    """Position of a range of indices on the lattice."""

    #: Lattice points below the first and above the last index.
    first: int
    last: int
    #: For each index, the lattice point below it, counted from `first`.
    place: npt.NDArray[np.int64]
    #: For each index, the weight of the lattice point above it.
    weight: Plane

    @classmethod
    def of(cls, indices: Range, cell: int, step: int = 1) -> Axis:
        """Place indices that are `step` apart on a lattice whose points are `cell` apart."""
        places, inside = np.divmod(np.arange(*indices, dtype=np.int64) * step, cell)
        t = inside / cell
        weight = (t * t * (3 - 2 * t)).astype(np.float32)
        first = int(places[0])
        return cls(first, int(places[-1]) + 1, places - first, weight)


class ValueNoise:
    """A field over a box of a volume; its planes are evaluated in rising order.

    Each value is computed by the same operations in the same order in every box, each rounded
    separately, so boxes and machines agree.

    Parameters
    ----------
    state : int
        Seed of the field: a `random.stream`.
    cell : int
        Distance of the lattice points in elements.
    amplitude : float
        Values lie within +- amplitude.
    z, y, x : (int, int)
        The box: first index and one past the last one of each axis.
    step : int
        Length of an element along the first axis, in elements of the other axes.
    """

    def __init__(
        self, state: int, cell: int, amplitude: float, z: Range, y: Range, x: Range, step: int = 1
    ) -> None:
        self._start = z[0]
        self._z, self._y, self._x = Axis.of(z, cell, step), Axis.of(y, cell), Axis.of(x, cell)
        self._state, self._amplitude = state, np.float32(amplitude)
        shape = (len(self._y.place), len(self._x.place))
        self._low, self._high, self._rise = (np.empty(shape, np.float32) for _ in range(3))
        self._part = np.empty(shape, np.float32)
        self._at = -2  # the lattice planes of `_low` and `_high`; none yet

    def plane(self, z: int, out: Plane) -> None:
        """Evaluate the plane at index `z` of the first axis."""
        here = z - self._start
        self._move_to(int(self._z.place[here]))
        np.multiply(self._rise, self._z.weight[here], out=out)
        out += self._low

    def _move_to(self, place: int) -> None:
        if place == self._at:
            return
        if place == self._at + 1:
            self._low, self._high = self._high, self._low
        else:
            self._lattice_plane(place, self._low)
        self._lattice_plane(place + 1, self._high)
        np.subtract(self._high, self._low, out=self._rise)
        self._at = place

    def _lattice_plane(self, place: int, out: Plane) -> None:
        """Interpolate between the points of one lattice plane."""
        points = self._points(self._z.first + place)
        rows = _between(points, self._x)
        rises = np.diff(rows, axis=0)
        np.take(rises, self._y.place, axis=0, out=out, mode="clip")
        out *= self._y.weight[:, np.newaxis]
        np.take(rows, self._y.place, axis=0, out=self._part, mode="clip")
        out += self._part

    def _points(self, z: int) -> Plane:
        y = np.arange(self._y.first, self._y.last + 1, dtype=np.uint64)[:, np.newaxis]
        x = np.arange(self._x.first, self._x.last + 1, dtype=np.uint64)
        words = hash_points(self._state, np.uint64(z), y, x)
        points = (words >> np.uint64(40)).astype(np.float32)  # 24 bits: exact
        points *= np.float32(2.0**-23)
        points -= np.float32(1)
        points *= self._amplitude
        return points


def _between(points: Plane, axis: Axis) -> Plane:
    """Interpolate along the last axis."""
    found = np.diff(points, axis=1)[:, axis.place]
    found *= axis.weight
    found += points[:, axis.place]
    return found


def hash_points(state: int, z: Any, y: Any, x: Any) -> npt.NDArray[np.uint64]:
    """Hash points with whole coordinates, 0 <= coordinate < 2**21; arrays are broadcast."""
    bits = np.uint64(_COORDINATE_BITS)
    words: npt.NDArray[np.uint64] = np.asarray((((z << bits) | y) << bits) | x)
    words = words * np.uint64(random.GOLDEN)
    words += np.uint64(state)
    return random.mix_array(words)


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
