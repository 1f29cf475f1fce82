"""Sources derived from others: every n-th element, and data changed in part."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from pffbench.data.base import Array, DerivedSource, Index, Source, check_box


class Strided(DerivedSource):
    """A lattice of the elements of a source.

    Parameters
    ----------
    source : Source
        Source of the elements.
    first : tuple of int
        Global index of the lattice's first element.
    stride : tuple of int
        Distance of neighbours along each axis, 1 or more.
    shape : tuple of int
        Global shape of the source's array.
    """

    def __init__(
        self,
        source: Source,
        first: Index,
        stride: Index,
        shape: Index,
    ) -> None:
        super().__init__(source)
        self._first = first
        self._stride = stride
        self._shape = shape

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box of the lattice, see `Source.fill`; elements between are discarded.

        Here `start` and `shape` are indices and shape of the lattice.
        """
        check_box(start, out.shape, shape)
        if out.size == 0:
            return
        span = [(n - 1) * step + 1 for n, step in zip(out.shape, self._stride, strict=True)]
        between = np.empty(span, self.dtype)
        self._source.fill(between, array, self.index(start), self._shape)
        out[...] = between[tuple(slice(None, None, step) for step in self._stride)]

    def index(self, place: Index) -> Index:
        """Return the global index of an element of the lattice."""
        each = zip(self._first, place, self._stride, strict=True)
        return tuple(first + i * step for first, i, step in each)


#: Whether elements of a box that begins at `start` and has the shape `extent` have been changed, in
#: an array of a global shape: an array of bool that can be broadcast to `extent`.
Changed = Callable[[Index, Index, Index], Array]


class Generation(DerivedSource):
    """One of two sets of data for the same arrays.

    Parameters
    ----------
    source : Source
        Source of all generations, which are different arrays of it.
    number : int
        0 or 1.
    """

    def __init__(self, source: Source, number: int) -> None:
        super().__init__(source)
        self._number = number

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box, see `Source.fill`."""
        self._source.fill(out, 2 * array + self._number, start, shape)


class Merged(DerivedSource):
    """The first generation where nothing has been changed, the second one elsewhere.

    Parameters
    ----------
    source : Source
        Source of both.
    changed : callable
        Returns where elements have been changed.
    """

    def __init__(self, source: Source, changed: Changed) -> None:
        super().__init__(source)
        self._before = Generation(source, 0)
        self._after = Generation(source, 1)
        self._changed = changed

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box, see `Source.fill`."""
        self._before.fill(out, array, start, shape)
        changed = np.broadcast_to(self._changed(start, out.shape, shape), out.shape)
        if changed.any():
            after = np.empty_like(out)
            self._after.fill(after, array, start, shape)
            np.copyto(out, after, where=changed)


#: Elements of a source that are made at a time, to take some of them.
_BLOCK = 2**14
#: Elements taken at a time.
_TAKEN = 2**17


class Gathered(DerivedSource):
    """Stretches of a source's array, one after the other.

    Parameters
    ----------
    source : Source
        Source of the elements.
    shape : tuple of int
        Global shape of the source's array.
    offsets, lengths : array of int64
        First element of each stretch, in the flattened array, and number of elements.
    """

    def __init__(self, source: Source, shape: Index, offsets: Array, lengths: Array) -> None:
        super().__init__(source)
        self._shape = shape
        self._offsets = offsets
        self._ends = np.cumsum(lengths)
        self._shift = offsets - (self._ends - lengths)
        axis, inner = len(shape) - 1, 1
        while axis and inner * shape[axis] <= _BLOCK:
            inner *= shape[axis]
            axis -= 1
        self._axis, self._inner = axis, inner
        self._rows = max(1, _BLOCK // inner)

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a part of the stretches, see `Source.fill`.

        Here the last of `start` and of `shape` is the place and the number of elements in all
        stretches together. Those before it are of axes that the source's array has too, such as
        that of time steps. The stretches are the same at each index along them.
        """
        check_box(start, out.shape, shape)
        each = prod(self._shape[len(shape) - 1 :])
        for place in np.ndindex(*out.shape[:-1]):
            before = 0
            for first, index, n in zip(start, place, shape, strict=False):
                before = before * n + first + index
            row = out[place]
            for done in range(0, row.size, _TAKEN):
                part = row[done : done + _TAKEN]
                elements = self._elements(start[-1] + done, part.size)
                self._fill(part, array, elements + before * each)

    def _elements(self, first: int, count: int) -> Array:
        """Return the places in the flattened array of consecutive elements of the stretches."""
        place = np.arange(first, first + count)
        elements: Array = place + self._shift[np.searchsorted(self._ends, place, side="right")]
        return elements

    def _fill(self, out: Array, array: int, elements: Array) -> None:
        """Make the blocks of the source that hold elements, and take these."""
        length = self._shape[self._axis]
        rows = elements // self._inner
        blocks = rows // length * -(-length // self._rows) + rows % length // self._rows
        cuts = np.flatnonzero(np.diff(blocks)) + 1
        for some in np.split(np.arange(elements.size), cuts):
            first, last = int(rows[some].min()), int(rows[some].max())
            outer, row = divmod(first, length)
            extent = (
                *(1 for _ in self._shape[: self._axis]), last - first + 1,
                *self._shape[self._axis + 1 :],
            )  # fmt: skip
            where = np.unravel_index(outer, self._shape[: self._axis]) if self._axis else ()
            begin = (*map(int, where), row, *(0 for _ in self._shape[self._axis + 1 :]))
            made = np.empty(extent, self.dtype)
            self._source.fill(made, array, begin, self._shape)
            out[some[0] : some[-1] + 1] = made.reshape(-1)[
                elements[some[0] : some[-1] + 1] - first * self._inner
            ]

    def index(self, place: Index) -> Index:
        """Return the global index of an element."""
        element = self._elements(place[0], 1)[0]
        return tuple(int(i) for i in np.unravel_index(element, self._shape))
