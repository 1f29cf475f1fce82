"""Boxes of indices: rectangular parts of arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

Shape = tuple[int, ...]


class Box(msgspec.Struct, frozen=True):
    """A rectangular part of an array, or every n-th element of one (in HDF5 words: a hyperslab)."""

    #: Index of the first element along each axis.
    start: Shape
    #: Number of elements along each axis; a zero makes the box empty.
    shape: Shape
    #: Distance of neighbouring elements along each axis; empty when it is 1 along all.
    stride: Shape = ()

    @property
    def steps(self) -> Shape:
        """The stride along each axis, ones included."""
        return self.stride or (1,) * len(self.shape)

    @property
    def stop(self) -> Shape:
        """Index past the last element along each axis."""
        return tuple(a + e for a, e in zip(self.start, self.span, strict=True))

    @property
    def span(self) -> Shape:
        """Length from the first to the last element along each axis, gaps included."""
        each = zip(self.shape, self.steps, strict=True)
        return tuple((n - 1) * step + 1 if n else 0 for n, step in each)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box as a NumPy index."""
        if self.stride:
            return tuple(map(slice, self.start, self.stop, self.stride))
        return tuple(slice(a, b) for a, b in zip(self.start, self.stop, strict=True))

    @property
    def nothing(self) -> Box:
        """An empty box with the same start."""
        return Box(self.start, (0,) * len(self.shape))

    def common(self, other: Box) -> Box:
        """Return the elements that this box and another one have; it may be empty."""
        if not (self.stride or other.stride):
            start = tuple(map(max, self.start, other.start))
            stop = tuple(map(min, self.stop, other.stop))
            return Box(start, tuple(max(0, b - a) for a, b in zip(start, stop, strict=True)))
        each = zip(self._ranges, other._ranges, strict=True)
        starts, shape, steps = zip(
            *(_common_along(one, another) for one, another in each), strict=True
        )
        return Box(starts, shape, steps)

    @property
    def _ranges(self) -> Iterator[range]:
        """The indices along each axis."""
        return map(range, self.start, self.stop, self.steps)

    def inside(self, part: Box) -> Box:
        """Return a part of this box as a box of the array.

        Parameters
        ----------
        part : Box
            The part, without stride. Its indices count the elements of this box.
        """
        each = zip(self.start, part.start, self.steps, strict=True)
        return Box(tuple(a + b * step for a, b, step in each), part.shape, self.stride)

    @classmethod
    def around(cls, boxes: Sequence[Box]) -> Box | None:
        """Return the smallest box with the elements of boxes that have one stride.

        None if they have several strides, or begin at different places of one.
        """
        start = tuple(map(min, zip(*(box.start for box in boxes), strict=True)))
        steps = []
        for axis, begin in enumerate(start):
            found = {box.steps[axis] for box in boxes if box.shape[axis] > 1} or {1}
            step = found.pop()
            if found or any((box.start[axis] - begin) % step for box in boxes):
                return None
            steps.append(step)
        stop = map(max, zip(*(box.stop for box in boxes), strict=True))
        each = zip(start, stop, steps, strict=True)
        shape = tuple(len(range(a, b, step)) for a, b, step in each)
        return cls(start, shape, () if set(steps) == {1} else tuple(steps))

    def every_second(self, before: int = 0) -> Box:
        """Return the elements whose index along the last axis is even; the box has no stride.

        Parameters
        ----------
        before : int
            Number of elements before the first index, where the array is part of another one.
        """
        *outer, last = self.shape
        odd = (before + self.start[-1]) % 2
        shape = (*outer, len(range(odd, last, 2)))
        stride = (*(1 for _ in outer), 2)
        return Box((*self.start[:-1], self.start[-1] + odd), shape, stride)

    def split(self, limit: int) -> Iterator[Box]:
        """Cut the box along its first long axis into boxes of at most ``limit`` elements.

        The boxes come in C order and are contiguous parts of a C-ordered buffer of the box,
        so that each of them can be moved directly from its part of that buffer.
        """
        if self.size <= limit:
            yield self
            return
        axis = next(i for i, n in enumerate(self.shape) if n > 1)
        step = max(1, limit // math.prod(self.shape[axis + 1 :]))
        for first in range(0, self.shape[axis], step):
            length = min(step, self.shape[axis] - first)
            begin = self.start[axis] + first * self.steps[axis]
            start = (*self.start[:axis], begin, *self.start[axis + 1 :])
            shape = (*self.shape[:axis], length, *self.shape[axis + 1 :])
            yield from Box(start, shape, self.stride).split(limit)


def _common_along(one: range, other: range) -> tuple[int, int, int]:
    """Return the first index that two ranges share, how many they share, and their distance."""
    step = math.lcm(one.step, other.step)
    stop = min(one.stop, other.stop)
    first = max(one.start, other.start)
    first += (one.start - first) % one.step
    begin = next((i for i in range(first, min(stop, first + step), one.step) if i in other), stop)
    return begin, len(range(begin, stop, step)), step
