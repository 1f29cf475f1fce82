"""Stretches of an array: the part of a rank in an irregular decomposition."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from pffbench.geometry.box import Box, Shape

Integers = np.ndarray[Any, np.dtype[np.int64]]


class RowRuns(NamedTuple):
    """Stretches cut where the rows of the last axis end: runs that each lie in one row."""

    #: First element of each run, in the flattened array, and number of elements.
    offsets: Integers
    lengths: Integers
    #: Where each begins in memory that holds the stretches one after the other.
    packed: Integers


class Stretches(Box, frozen=True, kw_only=True, eq=False, dict=True):
    """Elements of an array that are no box: stretches of the flattened array, in C order.

    In memory they lie one after the other, so `shape` is their number of elements. They are in
    increasing order, and do not overlap. `start` has an index for each axis of the array: leading
    ones are those of a time step, the others are 0. If the elements are those of a
    lattice, such as every second column, it begins at `start` and has the `stride`.

    They have no length for each axis, so some of `Box` is not defined for them: `span`, `stop`,
    `slices`, `common` and `inside`.
    """

    #: Shape of the array.
    whole: Shape
    #: First element of each stretch, in the flattened array.
    offsets: Integers
    #: Number of elements of each; 1 or more.
    lengths: Integers

    @classmethod
    def of(cls, whole: Shape, offsets: Integers, lengths: Integers) -> Stretches:
        """Return stretches of an array."""
        start = (0,) * len(whole)
        return cls(start, (int(lengths.sum()),), whole=whole, offsets=offsets, lengths=lengths)

    @property
    def lattice(self) -> Box:
        """The array, or the lattice in it that has the elements, without time steps."""
        each = zip(self.start, self.whole, self.stride or (1,) * len(self.whole), strict=True)
        return Box(self.start, tuple(len(range(*axis)) for axis in each), self.stride)

    def in_step(self, step: int, steps: int) -> Stretches:
        """Return the same elements in one step of an array with a leading axis of time steps."""
        return Stretches(
            (step, *self.start), self.shape, whole=(steps, *self.whole),
            offsets=self.offsets + step * prod(self.whole), lengths=self.lengths,
        )  # fmt: skip

    @property
    def nothing(self) -> Stretches:
        """No elements of the same array."""
        none = np.empty(0, np.int64)
        return Stretches(self.start, (0,), whole=self.whole, offsets=none, lengths=none)

    @cached_property
    def packed(self) -> Integers:
        """Where each stretch begins in memory."""
        return _begins(self.lengths)

    def split(self, limit: int) -> Iterator[Box]:
        """Cut into parts of at most ``limit`` elements, which follow each other in memory."""
        offsets, lengths = self.offsets, self.lengths
        for first in range(0, self.size, limit):
            last = min(self.size, first + limit)
            inner = np.maximum(self.packed, first)
            count = np.minimum(self.packed + lengths, last) - inner
            some = count > 0
            yield Stretches(
                self.start, (last - first,), whole=self.whole,
                offsets=(offsets + inner - self.packed)[some], lengths=count[some],
            )  # fmt: skip

    @cached_property
    def rows(self) -> RowRuns:
        """The stretches, cut where the rows of the last axis end."""
        offsets, lengths = _cut_at(self.offsets, self.lengths, self.whole[-1])
        return RowRuns(offsets, lengths, _begins(lengths))

    def every_second(self, before: int = 0) -> Stretches:
        """Return the elements whose index along the last axis is even."""
        offsets, lengths, _ = self.rows
        odd = (offsets % self.whole[-1] + before) % 2
        counts = (lengths - odd + 1) // 2
        which = np.repeat(np.arange(len(offsets)), counts)
        elements = (offsets + odd)[which] + 2 * (np.arange(len(which)) - _begins(counts)[which])
        found = Stretches.of(self.whole, elements, np.ones_like(elements))
        start, stride = (*found.start[1:], before % 2), (*(1 for _ in self.whole[1:]), 2)
        return replace(found, start=start, stride=stride)

    def boxes(self) -> Iterator[Box]:
        """Yield the fewest boxes that each stretch consists of, in the order of memory."""
        row = self.whole[-1]
        firsts = np.stack(np.unravel_index(self.offsets, self.whole), axis=1).tolist()
        for first, length in zip(firsts, self.lengths.tolist(), strict=True):
            if first[-1] + length <= row:
                yield Box(tuple(first), (*(1 for _ in first[1:]), length))
            else:
                begin = int(np.ravel_multi_index(tuple(first), self.whole))
                yield from boxes_of_run(self.whole, begin, begin + length)

    def count_chunks(self, chunks: Shape) -> int:
        """Return the number of chunks that hold any of the elements."""
        grid = tuple(-(-n // c) for n, c in zip(self.whole, chunks, strict=True))
        offsets, _ = _cut_at(*self.rows[:2], self.whole[-1], chunks[-1])
        index = np.unravel_index(offsets, self.whole)
        places = tuple(i // c for i, c in zip(index, chunks, strict=True))
        return int(np.unique(np.ravel_multi_index(places, grid)).size)


class CommonRuns(NamedTuple):
    """The runs of elements that stretches have in common with a box, in both memories."""

    #: Where each run begins in the memory of the stretches, and in that of the box.
    packed: Integers
    inside: Integers
    #: Number of elements of each.
    lengths: Integers


def common_runs(stretches: Stretches, box: Box) -> CommonRuns:
    """Return the elements that stretches and a box of one array share, in increasing order.

    The box is not stretches. If it has a stride, the stretches are elements of its lattice.
    """
    offsets, lengths, packed = stretches.rows
    index = [np.asarray(i, np.int64) for i in np.unravel_index(offsets, stretches.whole)]
    first = np.maximum(index[-1], box.start[-1])
    count = np.minimum(index[-1] + lengths, box.stop[-1]) - first
    common = count > 0
    for i, start, stop in zip(index[:-1], box.start, box.stop, strict=False):
        common &= (i >= start) & (i < stop)
    inside = np.zeros(len(offsets), np.int64)
    axes = zip([*index[:-1], first], box.start, box.shape, box.steps, strict=True)
    for i, start, n, step in axes:
        inside = inside * n + (i - start) // step
    return _joined((packed + first - index[-1])[common], inside[common], count[common])


def _joined(packed: Integers, inside: Integers, lengths: Integers) -> CommonRuns:
    """Join runs that follow each other in both memories."""
    if not lengths.size:
        return CommonRuns(packed, inside, lengths)
    apart = np.ones(len(lengths), bool)
    apart[1:] = (np.diff(packed) != lengths[:-1]) | (np.diff(inside) != lengths[:-1])
    begins = np.flatnonzero(apart)
    return CommonRuns(packed[begins], inside[begins], np.add.reduceat(lengths, begins))


def merged(offsets: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """Return stretches in any order as the fewest ones with the same elements, in order."""
    if not offsets.size:
        return offsets, lengths
    order = np.argsort(offsets, kind="stable")
    begins = offsets[order]
    ends = np.maximum.accumulate(begins + lengths[order])
    first = np.flatnonzero(np.concatenate(([True], begins[1:] > ends[:-1])))
    last = np.concatenate((first[1:] - 1, [len(ends) - 1]))
    return begins[first], ends[last] - begins[first]


def boxes_of_run(grid: Shape, first: int, end: int) -> Iterator[Box]:
    """Yield the fewest boxes that hold the places `first` to `end` of a grid in C order."""
    if first >= end:
        return
    row = prod(grid[1:])
    if row == 1:
        yield Box((first, *(0 for _ in grid[1:])), (end - first, *(1 for _ in grid[1:])))
        return
    begin, skipped = divmod(first, row)
    stop, left = divmod(end, row)
    if begin == stop:
        yield from _in_row(grid, begin, skipped, left)
        return
    if skipped:
        yield from _in_row(grid, begin, skipped, row)
        begin += 1
    if stop > begin:
        yield Box((begin, *(0 for _ in grid[1:])), (stop - begin, *grid[1:]))
    yield from _in_row(grid, stop, 0, left)


def _in_row(grid: Shape, place: int, first: int, end: int) -> Iterator[Box]:
    for box in boxes_of_run(grid[1:], first, end):
        yield Box((place, *box.start), (1, *box.shape))


def _begins(lengths: Integers) -> Integers:
    """Return where each of some runs begins in memory that has them one after the other."""
    begins: Integers = np.cumsum(lengths) - lengths
    return begins


def _cut_at(
    offsets: Integers, lengths: Integers, row: int, unit: int | None = None
) -> tuple[Integers, Integers]:
    """Cut stretches at multiples of a row.

    With a unit cut at multiples of it within the rows; each stretch must lie in one row.
    """
    base = np.zeros_like(offsets) if unit is None else offsets - offsets % row
    unit, begins = unit or row, offsets - base
    first = begins // unit
    counts = (begins + lengths - 1) // unit - first + 1
    which = np.repeat(np.arange(len(offsets)), counts)
    number = np.arange(len(which)) - np.repeat(_begins(counts), counts) + first[which]
    start = np.maximum(begins[which], number * unit)
    end = np.minimum((begins + lengths)[which], (number + 1) * unit)
    return base[which] + start, end - start
