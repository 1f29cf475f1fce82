"""Where slices and sub-boxes lie in a volume: at its beginning, in its middle, or at random."""

from __future__ import annotations

from typing import Literal

from pffbench.data import hashing
from pffbench.parallel.decomposition import Shape

Position = Literal["first", "middle", "random"]


def slice_indices(n: int, position: Position, count: int, seed: int) -> list[int]:
    """Return the indices along an axis at which slices are taken, each once.

    Parameters
    ----------
    n : int
        Length of the axis.
    position : {"first", "middle", "random"}
        ``first`` and ``middle``: neighbours, at the beginning or around the middle.
    count : int
        Number of slices, `n` at most.
    seed : int
        Of the random ones; every rank draws the same.
    """
    if position == "random":
        drawn = hashing.counters(hashing.stream(seed, n), n).argsort(kind="stable")
        return [int(index) for index in drawn[:count]]
    first = 0 if position == "first" else (n - count) // 2
    return list(range(first, first + count))


def box_starts(shape: Shape, box: Shape, position: Position, count: int, seed: int) -> list[Shape]:
    """Return where sub-boxes begin.

    Parameters
    ----------
    shape, box : tuple of int
        Shapes of the volume and of a box, which fits into it.
    position : {"first", "middle", "random"}
        ``first`` and ``middle`` are one place each, so they take a `count` of 1. Random boxes
        are drawn one by one and may overlap.
    count : int
        Number of boxes.
    seed : int
        Of the random ones; every rank draws the same.
    """
    room = [n - extent for n, extent in zip(shape, box, strict=True)]
    if position == "first":
        return [(0,) * len(shape)]
    if position == "middle":
        return [tuple(free // 2 for free in room)]
    return [
        tuple(hashing.stream(seed, number, axis) % (free + 1) for axis, free in enumerate(room))
        for number in range(count)
    ]
