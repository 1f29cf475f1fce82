"""Shapes for a short run: arrays cut to whole chunks, and a second chunk shape to compare."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pffbench.geometry.box import Shape

#: Most chunks of an array, and steps of all arrays: each may be a file, and a call of a rank.
MOST_UNITS = 500
#: Most steps of an array without chunks, each of which gets some.
MOST_STEPS = 100
#: Bytes of a chunk from which on the second shape is smaller than the first; to which a small one
#: grows; and that one has at least.
_LARGE_CHUNK, _SMALL_CHUNK, _LEAST_CHUNK = 2**20, 2**16, 128  # which Blosc compresses
#: How many times larger or smaller the second shape is, and the parts of an array that remain for
#: the ranks at least.
_TIMES, _FEWEST_PARTS = 4, 8


def shorten(shape: Shape, unit: Shape, itemsize: int, most_bytes: int, *, counted: bool) -> Shape:
    """Return a shape, with the first axes cut to few enough whole units.

    Parameters
    ----------
    shape, unit : tuple of int
        The array, and what it is cut to multiples of.
    itemsize : int
        Bytes of an element.
    most_bytes : int
        Most bytes.
    counted : bool
        Whether the number of units is limited, too.
    """
    cut = list(shape)
    for axis, length in enumerate(unit):
        others = [n for n in range(len(cut)) if n != axis]
        nbytes = math.prod(cut[n] for n in others) * itemsize * length
        most = most_bytes // nbytes
        if counted:
            units = count_units([cut[n] for n in others], [unit[n] for n in others])
            most = min(most, MOST_UNITS // units)
        cut[axis] = min(cut[axis], max(1, most) * length)
    return tuple(cut)


def count_units(shape: Sequence[int], unit: Sequence[int]) -> int:
    """Return the number of chunks, or other units, that an array has."""
    return math.prod(-(-n // u) for n, u in zip(shape, unit, strict=True))


def other_chunks(chunks: Shape, shape: Shape, steps: int, itemsize: int) -> Shape | None:
    """Return a chunk shape to compare with another one, in whole multiples or parts of it.

    Parameters
    ----------
    chunks, shape : tuple of int
        The other one, and the array.
    steps : int
        Number of leading axes that are not cut over ranks.
    itemsize : int
        Bytes of an element.

    Returns
    -------
    tuple of int or None
        None if the array has no room for one.
    """
    grown = _grow(chunks, shape, steps, itemsize)
    shrunk = _shrink(chunks, itemsize)
    large = math.prod(chunks) * itemsize >= _LARGE_CHUNK
    order = (shrunk, grown) if large else (grown, shrunk)
    sizes = {shape: math.prod(shape) for shape in (*order, chunks)}
    unlike = [
        shape for shape in order
        if max(sizes[shape], sizes[chunks]) >= _TIMES * min(sizes[shape], sizes[chunks])
    ]  # fmt: skip
    return next((found for found in (*unlike, *order) if found != chunks), None)


def _grow(chunks: Shape, shape: Shape, steps: int, itemsize: int) -> Shape:
    """Double axes of a chunk, but those of steps only if parts for the ranks would be too few."""
    grown = list(chunks)
    target = max(_TIMES * math.prod(chunks) * itemsize, _SMALL_CHUNK)
    while math.prod(grown) * itemsize < target:
        room = [axis for axis, length in enumerate(grown) if length < shape[axis]]
        inner = [axis for axis in room if axis >= steps and _parts(grown, shape, axis, steps)]
        if not (axes := inner or [axis for axis in room if axis < steps]):
            break
        axis = max(axes, key=lambda axis: shape[axis] / grown[axis])
        grown[axis] = min(2 * grown[axis], shape[axis])
    return tuple(grown)


def _parts(chunks: Sequence[int], shape: Shape, doubled: int, steps: int) -> bool:
    """Whether enough chunks remain for the ranks when an axis of them is doubled."""
    lengths = [2 * n if axis == doubled else n for axis, n in enumerate(chunks)]
    return count_units(shape[steps:], lengths[steps:]) >= _FEWEST_PARTS


def _shrink(chunks: Shape, itemsize: int) -> Shape:
    """Halve axes of a chunk that are even, the longest first."""
    shrunk = list(chunks)
    for _ in range(_TIMES // 2):
        even = [axis for axis, length in enumerate(shrunk) if length % 2 == 0]
        if even and math.prod(shrunk) * itemsize >= 2 * _LEAST_CHUNK:
            shrunk[max(even, key=shrunk.__getitem__)] //= 2
    return tuple(shrunk)


def first_chunks(shape: Shape, steps: int, itemsize: int) -> Shape | None:
    """Return chunks for an array without any, which several ranks can share; None if too small."""
    inner = list(shape[steps:])
    nbytes = math.prod(inner) * itemsize
    most = max(min(_LARGE_CHUNK, nbytes // _FEWEST_PARTS), _LEAST_CHUNK)
    if nbytes <= most:
        return None
    while math.prod(inner) * itemsize > most:
        longest = inner.index(max(inner))
        inner[longest] = -(-inner[longest] // 2)
    return (*(1,) * steps, *inner)
