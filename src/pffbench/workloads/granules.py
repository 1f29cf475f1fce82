"""Who has which granules of a dataset, and the rows or chunks that they are moved in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Literal

from pffbench.parallel.decomposition import Box, Shape

#: What one call moves: one row along the last axis, or one chunk.
Unit = Literal["rows", "chunks"]


def granules_of(total: int, ranks: int, rank: int) -> range:
    """Return the granules that are a rank's own; the first ranks have those left over.

    Parameters
    ----------
    total : int
        Number of granules.
    ranks, rank : int
        Number of ranks, and one of them.
    """
    each, more = divmod(total, ranks)
    first = rank * each + min(rank, more)
    return range(first, first + each + (rank < more))


def region_of(granule: Shape, granules: range) -> Box:
    """Return the box that granules fill: they lie behind one another along the first axis."""
    start = (granule[0] * granules.start, *(0 for _ in granule[1:]))
    return Box(start, (granule[0] * len(granules), *granule[1:]))


def unit_shape(shape: Shape, chunks: Shape, unit: Unit) -> Shape:
    """Return what one call moves at most: a row of an array, or a chunk.

    Parameters
    ----------
    shape, chunks : tuple of int
        Shape of the array and of its chunks, or of what stands for them.
    unit : {"rows", "chunks"}
        Which.
    """
    return chunks if unit == "chunks" else (*(1 for _ in shape[1:]), shape[-1])


def cut(region: Box, unit: Shape) -> Iterator[Box]:
    """Cut a region where a grid of units lies over the array, in C order.

    Units that only partly lie in the region give the part that does.
    """
    along = [
        [
            (max(start, place * length), min(stop, (place + 1) * length))
            for place in _places(start, stop, length)
        ]
        for start, stop, length in zip(region.start, region.stop, unit, strict=True)
    ]
    for edges in itertools.product(*along):
        yield Box(tuple(a for a, _ in edges), tuple(b - a for a, b in edges))


def count(region: Box, unit: Shape) -> int:
    """Count the boxes that `cut` gives, without making them."""
    edges = zip(region.start, region.stop, unit, strict=True)
    return math.prod(len(_places(start, stop, length)) for start, stop, length in edges)


def _places(start: int, stop: int, length: int) -> range:
    """Return the places in the grid, along one axis, of the units that a stretch touches."""
    return range(start // length, -(-stop // length)) if stop > start else range(0)
