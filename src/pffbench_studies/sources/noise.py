"""Noise that is interpolated between random numbers at the points of a cubic lattice.

The weight along each axis is ``t * t * (3 - 2 * t)`` (K. Perlin's "smoothstep"). Slow steps are
done on the lattice: the first axis comes last, where a whole plane has one weight.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pffbench.data import random

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
    @lru_cache(32)  # a part of a volume needs the same ones for several fields
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
        rises = rows[1:] - rows[:-1]
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
    found = (points[:, 1:] - points[:, :-1])[:, axis.place]
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
