"""Cut a box of an array into rows that share the same columns.

The trailing axes of an array are folded into *segments* of at most `width` elements: axis `split`
is cut into groups of `group` indices, and the columns of a segment are those indices times all
later axes. What remains, the axes before `split` and the number of the group, numbers the
segments. Segments and columns depend on the global shape alone, never on the box, and every box is
at most three pieces whose rows all have the same columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Index = tuple[int, ...]
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a box: `leading` x `groups` rows of equal columns.

    Parameters
    ----------
    first, groups : int
        Numbers of the groups: ``first .. first + groups - 1``.
    inside : tuple of int
        First and one past the last index within each group.
    local : tuple of int
        The same piece as indices along the split axis of the box.
    """

    first: int
    groups: int
    inside: tuple[int, int]
    local: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tiling:
    """How one box of one array is folded into rows.

    Parameters
    ----------
    start, extent, shape : tuple of int
        First global index and extents of the box; the global shape. All of length 1 or more.
    split, group : int
        The axis that is cut into groups, and how many of its indices make a group.
    """

    start: Index
    extent: Index
    shape: Index
    split: int
    group: int

    @classmethod
    def of(cls, start: Index, extent: Index, shape: Index, width: int) -> Tiling:
        """Fold for segments of at most `width` elements.

        Raises
        ------
        ValueError
            The box does not lie inside the shape, or there is no axis.
        """
        check_box(start, extent, shape)
        split = len(shape) - 1
        inner = 1
        while split and inner * shape[split] <= width:
            inner *= shape[split]
            split -= 1
        return cls(start, extent, shape, split, max(1, width // max(1, inner)))

    @property
    def leading(self) -> int:
        """Number of box indices over all axes before the split axis."""
        return math.prod(self.extent[: self.split])

    def pieces(self) -> Iterator[Piece]:
        """Yield the cut head, the whole groups in the middle, and the cut tail."""
        group = self.group
        begin = self.start[self.split]
        end = begin + self.extent[self.split]
        at = begin
        if at % group or end - at < group:
            stop = min(end, (at // group + 1) * group)
            inside = (at % group, at % group + stop - at)
            yield Piece(at // group, 1, inside, (0, stop - begin))
            at = stop
        whole = (end - at) // group
        if whole:
            stop = at + whole * group
            yield Piece(at // group, whole, (0, group), (at - begin, stop - begin))
            at = stop
        if at < end:
            yield Piece(at // group, 1, (0, end - at), (at - begin, end - begin))

    def view(self, out: Array, piece: Piece) -> Array:
        """View a piece of a C-contiguous box as (leading, groups, columns)."""
        inner = math.prod(self.extent[self.split + 1 :])
        begin, end = piece.local
        rows = out.reshape(self.leading, -1)[:, begin * inner : end * inner]
        return rows.reshape(self.leading, piece.groups, -1)

    def columns(self, table: Array, piece: Piece) -> Array:
        """Pick the table entries of a piece's columns, shape (columns,), contiguous."""
        tail = self.shape[self.split + 1 :]
        folded = table[: self.group * math.prod(tail)].reshape(self.group, *tail)
        box = [slice(*piece.inside)]
        box += [
            slice(first, first + count)
            for first, count in zip(
                self.start[self.split + 1 :], self.extent[self.split + 1 :], strict=True
            )
        ]
        return folded[tuple(box)].reshape(-1)

    def segments(self, begin: int, end: int, first: int, last: int) -> npt.NDArray[np.uint64]:
        """Give segments their global numbers.

        Parameters
        ----------
        begin, end : int
            Range of the leading box indices, in C order over the axes before the split axis.
        first, last : int
            Range of the groups.

        Returns
        -------
        ndarray of uint64, shape (end - begin, last - first)
        """
        stride = -(-self.shape[self.split] // self.group)
        numbers = np.zeros(end - begin, dtype=np.uint64)
        rest = np.arange(begin, end, dtype=np.uint64)
        for axis in reversed(range(self.split)):
            if axis:
                rest, index = np.divmod(rest, np.uint64(self.extent[axis]))
            else:
                index = rest
            numbers += (index + np.uint64(self.start[axis])) * np.uint64(stride)
            stride *= self.shape[axis]
        groups = np.arange(first, last, dtype=np.uint64)
        return np.add.outer(numbers, groups)


def batches(leading: int, groups: int, limit: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut a `leading` x `groups` grid into blocks of at most `limit` (at least 1) cells.

    Yields
    ------
    tuple of int
        Begin and end of the first index, begin and end of the second.
    """
    if groups >= limit:
        for row in range(leading):
            for begin in range(0, groups, limit):
                yield row, row + 1, begin, min(begin + limit, groups)
    elif groups:
        step = limit // groups
        for begin in range(0, leading, step):
            yield begin, min(begin + step, leading), 0, groups


def check_box(start: Index, extent: Index, shape: Index) -> None:
    """Raise ValueError unless the box lies inside the shape and has one axis or more."""
    if not shape or not len(start) == len(extent) == len(shape):
        raise ValueError(f"the box at {start} of {extent} does not fit the shape {shape}")
    for first, count, size in zip(start, extent, shape, strict=True):
        if first < 0 or first + count > size:
            raise ValueError(f"the box at {start} of {extent} leaves the shape {shape}")
