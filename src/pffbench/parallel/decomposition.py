"""Decomposition of an array over ranks: process grids, blocks of ranks, boxes of indices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import msgspec

Shape = tuple[int, ...]
Decomposition = Literal["slab", "pencil", "block"]
Distribution = Literal["block", "balanced"]
#: Cached results: a sweep repeats the same query for other types, codecs and options.
_REMEMBERED = 4096


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
        return tuple(a + e for a, e in zip(self.start, self.extent, strict=True))

    @property
    def extent(self) -> Shape:
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
        """An empty box that begins there."""
        return Box(self.start, (0,) * len(self.shape))

    def common(self, other: Box) -> Box:
        """Return the part of this box without stride that another one has too; it may be empty."""
        start = tuple(map(max, self.start, other.start))
        stop = tuple(map(min, self.stop, other.stop))
        return Box(start, tuple(max(0, b - a) for a, b in zip(start, stop, strict=True)))

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
            extent = min(step, self.shape[axis] - first)
            begin = self.start[axis] + first * self.steps[axis]
            start = (*self.start[:axis], begin, *self.start[axis + 1 :])
            shape = (*self.shape[:axis], extent, *self.shape[axis + 1 :])
            yield from Box(start, shape, self.stride).split(limit)


@lru_cache(maxsize=_REMEMBERED)
def process_grid(ranks: int, ndim: int, decomposition: Decomposition) -> Shape:
    """Arrange ranks in a grid over the axes of an array.

    A slab cuts the first axis, a pencil the first two, a block all of them. The factors are as
    equal as they can be and do not grow from axis to axis, as ``MPI_Dims_create`` makes them.

    Raises
    ------
    ValueError
        The array has too few axes for the decomposition.
    """
    cut = {"slab": 1, "pencil": 2, "block": ndim}[decomposition]
    if cut > ndim:
        raise ValueError(f"a {decomposition} decomposition needs {cut} axes, the array has {ndim}")
    return (*_factors(ranks, cut), *(1 for _ in range(ndim - cut)))


def _factors(number: int, count: int) -> Shape:
    """Return ``count`` factors of ``number`` with the smallest largest factor, in falling order."""
    if count == 1:
        return (number,)
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    root = number ** (1 / count)
    first = min(d for d in divisors if d >= root - 1e-9)
    best: Shape | None = None
    # The smallest divisor at or above the root is not always the best one (48 over 3 axes), so
    # each larger one is tried until it alone exceeds the best spread found.
    for divisor in (d for d in divisors if d >= first):
        if best is not None and divisor >= best[0]:
            break
        rest = _factors(number // divisor, count - 1)
        candidate = tuple(sorted((divisor, *rest), reverse=True))
        if best is None or candidate < best:
            best = candidate
    assert best is not None
    return best


@lru_cache(maxsize=_REMEMBERED)
def rank_box(shape: Shape, grid: Shape, rank: int, distribution: Distribution = "block") -> Box:
    """Return the part of an array that a rank holds.

    Parameters
    ----------
    shape : tuple of int
        Shape of the whole array.
    grid : tuple of int
        Process grid; ranks are laid out in it in C order, as ``MPI_Cart_create`` does.
    rank : int
        The rank, 0 … product of the grid - 1.
    distribution : {"block", "balanced"}
        ``block`` is the BLOCK distribution of HPF and ScaLAPACK: ``ceil(n / p)`` elements to
        each rank, the last ones fewer or none; its boundaries fall on multiples of one number,
        so chunks can be aligned to them. ``balanced``: the parts differ by at most one element.
    """
    start, extent = [], []
    coordinates = _coordinates(grid, rank)
    for n, parts, place in zip(shape, grid, coordinates, strict=True):
        ends = (_ends_before(n, parts, at, distribution) for at in (place, place + 1))
        first, last = (min(n, end) for end in ends)
        start.append(first)
        extent.append(last - first)
    return Box(tuple(start), tuple(extent))


def _ends_before(n: int, parts: int, place: int, distribution: Distribution) -> int:
    """Return where the parts before a place end along an axis of `n` elements, or beyond it."""
    return place * -(-n // parts) if distribution == "block" else place * n // parts


def _coordinates(grid: Shape, rank: int) -> Shape:
    place = []
    for parts in reversed(grid):
        rank, here = divmod(rank, parts)
        place.append(here)
    return tuple(reversed(place))


@lru_cache(maxsize=_REMEMBERED)
def boundaries(
    shape: Shape, grid: Shape, distribution: Distribution = "block"
) -> tuple[tuple[int, ...], ...]:
    """Return, for each axis, the indices at which one rank's part ends and the next begins."""
    return tuple(
        _inner_boundaries(n, parts, distribution) for n, parts in zip(shape, grid, strict=True)
    )


def _inner_boundaries(n: int, parts: int, distribution: Distribution) -> tuple[int, ...]:
    if distribution == "block":
        block = -(-n // parts)
        return tuple(range(block, n, block))
    starts = {place * n // parts for place in range(1, parts)}
    return tuple(sorted(starts - {0, n}))


@lru_cache(maxsize=_REMEMBERED)
def part_lengths(shape: Shape, cuts: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """Return, for each axis, the lengths of its parts; none of them is empty."""
    edges = [(0, *cut, n) for n, cut in zip(shape, cuts, strict=True)]
    return tuple(tuple(stop - start for start, stop in pairwise(axis)) for axis in edges)


class GlobalArray(msgspec.Struct, frozen=True):
    """An array that is cut over ranks: the part of each, and where parts meet.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    grid : tuple of int
        The ranks along each axis, see `process_grid`.
    distribution : {"block", "balanced"}
        See `rank_box`.
    unit : tuple of int, optional
        Shape of what is not cut: parts consist of whole ones, of chunks for example.
    """

    shape: Shape
    grid: Shape
    distribution: Distribution = "block"
    unit: Shape | None = None

    @classmethod
    def in_slabs(cls, shape: Shape, ranks: int) -> GlobalArray:
        """Return an array that is cut along its first axis."""
        return cls(shape, process_grid(ranks, len(shape), "slab"))

    def part(self, rank: int) -> Box:
        """Return the part of a rank; it may be empty."""
        box = rank_box(self.in_units, self.grid, rank, self.distribution)
        if self.unit is None:
            return box
        start = tuple(
            min(a * u, n) for a, u, n in zip(box.start, self.unit, self.shape, strict=True)
        )
        stop = tuple(min(b * u, n) for b, u, n in zip(box.stop, self.unit, self.shape, strict=True))
        return Box(start, tuple(b - a for a, b in zip(start, stop, strict=True)))

    def around(self, ranks: range) -> Box:
        """Return the smallest box that holds the parts of some ranks; it may be empty."""
        return _box_around(self, ranks)

    @property
    def boundaries(self) -> tuple[tuple[int, ...], ...]:
        """For each axis the indices at which one part ends and the next begins."""
        cuts = boundaries(self.in_units, self.grid, self.distribution)
        if self.unit is None:
            return cuts
        return tuple(tuple(c * u for c in axis) for axis, u in zip(cuts, self.unit, strict=True))

    @property
    def in_units(self) -> Shape:
        """Its shape as a number of units."""
        if self.unit is None:
            return self.shape
        return tuple(-(-n // u) for n, u in zip(self.shape, self.unit, strict=True))


@lru_cache(maxsize=_REMEMBERED)
def _box_around(array: GlobalArray, ranks: range) -> Box:
    parts = [array.part(rank) for rank in ranks]
    some = [part for part in parts if part.size]
    if not some:
        return parts[0].nothing
    start = tuple(map(min, zip(*(part.start for part in some), strict=True)))
    stop = map(max, zip(*(part.stop for part in some), strict=True))
    return Box(start, tuple(b - a for a, b in zip(start, stop, strict=True)))


def nearest_aligned(chunk: int, n: int, inner: list[int]) -> int:
    """Return the chunk length nearest to ``chunk`` that no boundary cuts.

    Along an axis of ``n`` elements with the inner boundaries ``inner`` a chunk belongs to one
    rank alone when every boundary is a multiple of the chunk length.
    """
    if not inner:
        return min(chunk, n)
    common = math.gcd(*inner)
    divisors = [d for d in range(1, common + 1) if common % d == 0]
    return min(divisors, key=lambda d: (abs(d - chunk), -d))
