"""Cuts of an array over ranks: the part of each rank, and where parts meet."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, Protocol

import msgspec

from pffbench.geometry.box import Box, Shape

Decomposition = Literal["slab", "pencil", "block"]
Distribution = Literal["block", "balanced"]
#: Cached results: a sweep repeats the same query for other types, codecs and options.
_REMEMBERED = 4096


class Cut(Protocol):
    """How an array is cut over ranks."""

    @property
    def whole(self) -> Shape:
        """Shape of the array."""

    @property
    def size(self) -> int:
        """Number of elements that the parts of all ranks have."""

    @property
    def edges(self) -> tuple[Shape, ...]:
        """For each axis the indices at which one part ends and the next begins."""

    @property
    def largest(self) -> Box:
        """A box, or stretches, with as many elements as the largest part."""

    def part(self, rank: int) -> Box:
        """Return the part of a rank; it may be empty."""

    def around(self, ranks: range) -> Box:
        """Return the smallest box that contains the parts of some ranks; it may be empty."""


class Reading(Protocol):
    """What ranks read of an array, if it is not what they wrote."""

    def part(self, stored: Box, rank: int, ranks: int) -> Box:
        """Return what a rank reads; it may be empty.

        Parameters
        ----------
        stored : Box
            The part of the array that is in the rank's file.
        rank : int
            Number of the rank among those that read it.
        ranks : int
            Number of these ranks.
        """


class Grid(msgspec.Struct, frozen=True):
    """An array that is cut by a grid of ranks."""

    #: Shape of the array.
    whole: Shape
    #: The ranks along each axis, see `process_grid`. They are laid out in C order, as
    #: ``MPI_Cart_create`` does.
    grid: Shape
    #: ``block`` is the BLOCK distribution of HPF and ScaLAPACK: ``ceil(n / p)`` elements to each
    #: rank, the last ones fewer or none; its edges fall on multiples of one number, so chunks can
    #: be aligned to them. ``balanced``: the parts differ by at most one element. ``leading``: the
    #: same, and the first ranks have the larger parts.
    distribution: Distribution | Literal["leading"] = "block"
    #: Shape of what is not cut: parts consist of whole ones, of chunks for example.
    unit: Shape | None = None

    @classmethod
    def over(
        cls,
        whole: Shape,
        ranks: int,
        decomposition: Decomposition = "slab",
        distribution: Distribution = "block",
        unit: Shape | None = None,
    ) -> Grid:
        """Return an array that is cut over ranks; by default along its first axis."""
        return cls(whole, process_grid(ranks, len(whole), decomposition), distribution, unit)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.whole)

    @property
    def edges(self) -> tuple[Shape, ...]:
        """For each axis the indices at which one part ends and the next begins."""
        return _edges(self)

    @property
    def lengths(self) -> tuple[Shape, ...]:
        """For each axis the lengths of the parts; none of them is empty."""
        return part_lengths(self.whole, self.edges)

    @property
    def largest(self) -> Box:
        """A box with as many elements as the largest part."""
        return Box((0,) * len(self.whole), tuple(map(max, self.lengths)))

    @property
    def in_units(self) -> Shape:
        """Shape of the array as a number of units."""
        if self.unit is None:
            return self.whole
        return tuple(-(-n // u) for n, u in zip(self.whole, self.unit, strict=True))

    def part(self, rank: int) -> Box:
        """Return the part of a rank; it may be empty."""
        return _part(self, rank)

    def around(self, ranks: range) -> Box:
        """Return the smallest box that contains the parts of some ranks; it may be empty."""
        return _box_around(self, ranks)


class Region(msgspec.Struct, frozen=True):
    """A box of an array. The ranks that have elements of it in their file cut these among them."""

    #: The box.
    box: Box
    #: Cuts a shape over a number of ranks.
    cut: Callable[[Shape, int], Grid]

    def part(self, stored: Box, rank: int, ranks: int) -> Box:
        """Return what a rank reads; it may be empty."""
        common = self.box.common(stored)
        if not common.size:
            return stored.nothing
        return common.inside(self.cut(common.shape, ranks).part(rank))


class Everything(msgspec.Struct, frozen=True):
    """All that a file has of an array, read by each of its ranks."""

    def part(self, stored: Box, rank: int, ranks: int) -> Box:  # noqa: ARG002 -- equal for all
        """Return what a rank reads."""
        return stored


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
def _part(cut: Grid, rank: int) -> Box:
    start, stop = [], []
    units = cut.unit or (1,) * len(cut.whole)
    axes = zip(cut.whole, cut.in_units, units, cut.grid, _coordinates(cut.grid, rank), strict=True)
    for n, count, unit, parts, place in axes:
        ends = (_end_before(count, parts, at, cut.distribution) for at in (place, place + 1))
        first, last = (min(n, end * unit) for end in ends)
        start.append(first)
        stop.append(last)
    return Box(tuple(start), tuple(b - a for a, b in zip(start, stop, strict=True)))


def _end_before(n: int, parts: int, place: int, distribution: str) -> int:
    """Return where the parts before a place end along an axis of `n` units, or beyond it."""
    if distribution == "block":
        return place * -(-n // parts)
    if distribution == "balanced":
        return place * n // parts
    each, more = divmod(n, parts)
    return place * each + min(place, more)


def _coordinates(grid: Shape, rank: int) -> Shape:
    place = []
    for parts in reversed(grid):
        rank, here = divmod(rank, parts)
        place.append(here)
    return tuple(reversed(place))


@lru_cache(maxsize=_REMEMBERED)
def _edges(cut: Grid) -> tuple[Shape, ...]:
    units = cut.unit or (1,) * len(cut.whole)
    axes = zip(cut.in_units, units, cut.grid, strict=True)
    return tuple(
        tuple(edge * unit for edge in _inner_edges(n, parts, cut.distribution))
        for n, unit, parts in axes
    )


def _inner_edges(n: int, parts: int, distribution: str) -> Sequence[int]:
    if distribution == "block":
        block = -(-n // parts)
        return range(block, n, block)
    ends = {_end_before(n, parts, place, distribution) for place in range(1, parts)}
    return sorted(ends - {0, n})


@lru_cache(maxsize=_REMEMBERED)
def _box_around(cut: Grid, ranks: range) -> Box:
    parts = [cut.part(rank) for rank in ranks]
    some = [part for part in parts if part.size]
    if not some:
        return parts[0].nothing
    start = tuple(map(min, zip(*(part.start for part in some), strict=True)))
    stop = map(max, zip(*(part.stop for part in some), strict=True))
    return Box(start, tuple(b - a for a, b in zip(start, stop, strict=True)))


@lru_cache(maxsize=_REMEMBERED)
def part_lengths(shape: Shape, edges: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """Return, for each axis, the lengths of its parts; none of them is empty."""
    axes = [(0, *inner, n) for n, inner in zip(shape, edges, strict=True)]
    return tuple(tuple(stop - start for start, stop in pairwise(axis)) for axis in axes)


def edges_inside(edges: tuple[Shape, ...], box: Box) -> tuple[Shape, ...]:
    """Return the edges within a box, counted from its start."""
    axes = zip(edges, box.start, box.stop, strict=True)
    return tuple(
        tuple(c - a for c in axis[bisect_right(axis, a) : bisect_left(axis, b)])
        for axis, a, b in axes
    )


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
