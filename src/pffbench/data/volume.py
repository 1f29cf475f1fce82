"""Sources that make volumes plane after plane, a part of each plane at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pffbench.data.base import Array, check_out
from pffbench.data.hashing import stream
from pffbench.data.tiling import check_box

#: Elements of a part of a plane: a few arrays of it fit a second-level cache.
_PART = 32 * 1024
#: A part never reaches across a multiple of this along the last axis.
WIDTH = 16 * 1024

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """The same rows and columns of consecutive planes.

    Parameters
    ----------
    state : int
        Hash of the seed, the array and the indices along the axes before the last three.
    z, y, x : (int, int)
        First global index and one past the last one, of planes, rows and columns.
    shape : tuple of int
        Global lengths of the same three axes.
    """

    state: int
    z: Range
    y: Range
    x: Range
    shape: tuple[int, int, int]


class Volume(ABC):
    """A source for arrays whose last three axes are a volume.

    With more axes there are as many independent volumes as there are indices along the axes
    before them; with fewer the missing ones have length 1.

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

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        for target, part in self._parts(out, array, start, shape):
            for plane in self._planes(part, target):
                del plane

    def matches(
        self, got: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]
    ) -> bool:
        """Tell whether a box holds exactly the bytes that `fill` would put there.

        The parameters are those of `fill`, which also says when ValueError is raised.
        """
        unsigned = np.dtype(f"u{self.dtype.itemsize}")
        for there, part in self._parts(got, array, start, shape):
            right = np.empty((1, *there.shape[1:]), self.dtype)
            target = np.broadcast_to(right, there.shape)  # every plane in the same memory
            target.flags.writeable = True
            bits, expected = there.view(unsigned), right[0].view(unsigned)
            for plane in self._planes(part, target):
                if (bits[plane] != expected).any():
                    return False
        return True

    def _parts(
        self, box: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]
    ) -> Iterator[tuple[Array, Part]]:
        """Cut a box into parts; yield each with its view, shape (planes, rows, columns)."""
        check_out(box, self.dtype)
        check_box(start, box.shape, shape)
        if box.size == 0:
            return
        missing = (0,) * (3 - len(shape))
        begin = (*missing, *start)
        volumes = box.reshape(-1, *(1 for _ in missing), *box.shape[-3:])
        lengths = (*(1 for _ in missing), *shape[-3:])
        for place, volume in zip(np.ndindex(*box.shape[:-3]), volumes, strict=True):
            leading = (first + at for first, at in zip(begin, place, strict=False))
            state = stream(self._seed, array, *leading)
            yield from _cut(volume, state, begin[-3:], lengths)

    @abstractmethod
    def _planes(self, part: Part, out: Array) -> Iterator[int]:
        """Fill the planes of a part, one after the other; yield the number of each when filled."""


def _cut(
    volume: Array, state: int, begin: tuple[int, ...], shape: tuple[int, ...]
) -> Iterator[tuple[Array, Part]]:
    planes, rows, columns = volume.shape
    z0, y0, x0 = begin
    x = x0
    while x < x0 + columns:
        x_end = min(x0 + columns, (x // WIDTH + 1) * WIDTH)
        step = max(1, _PART // (x_end - x))
        for y in range(y0, y0 + rows, step):
            y_end = min(y0 + rows, y + step)
            part = Part(state, (z0, z0 + planes), (y, y_end), (x, x_end), shape)  # type: ignore[arg-type]
            yield volume[:, y - y0 : y_end - y0, x - x0 : x_end - x0], part
        x = x_end
