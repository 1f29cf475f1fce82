"""Data that have been changed in parts: what was there before, and what came after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pffbench.data.base import Array, Source

#: Whether elements have been changed, of a box that begins at `start` and has the shape `extent`:
#: an array of bool that can be broadcast to `extent`.
Changed = Callable[[tuple[int, ...], tuple[int, ...]], Array]


class Generation:
    """One of several data for the same arrays.

    Parameters
    ----------
    source : Source
        Of all generations; they are different arrays of it.
    number : int
        0 or 1.
    """

    def __init__(self, source: Source, number: int) -> None:
        self._source = source
        self._number = number

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in native byte order."""
        return self._source.dtype

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box, see `Source.fill`."""
        self._source.fill(out, 2 * array + self._number, start, shape)


class Merged:
    """The first generation where nothing has been changed, the second one elsewhere.

    Parameters
    ----------
    source : Source
        Of both.
    changed : callable
        Says where.
    """

    def __init__(self, source: Source, changed: Changed) -> None:
        self._before = Generation(source, 0)
        self._after = Generation(source, 1)
        self._changed = changed

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in native byte order."""
        return self._before.dtype

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box, see `Source.fill`."""
        self._before.fill(out, array, start, shape)
        changed = np.broadcast_to(self._changed(start, out.shape), out.shape)
        if changed.any():
            after = np.empty_like(out)
            self._after.fill(after, array, start, shape)
            np.copyto(out, after, where=changed)
