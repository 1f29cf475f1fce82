"""Byte-by-byte comparison of data read with their source."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import msgspec
import numpy as np

from pffbench.data.base import Array, Comparing, Index, Source

#: Bytes generated and compared at a time: small enough to stay in a second-level cache.
_BLOCK_BYTES = 2**19


class Mismatch(msgspec.Struct, frozen=True):
    """First difference of a box from its source."""

    #: Number of the logical array.
    array: int
    #: Global index of the first wrong element, in C order.
    index: Index
    #: The two values as text, with their bytes in hexadecimal where the text is the same, or the
    #: two types where the type itself is wrong.
    expected: str
    got: str
    #: Number of wrong elements in this box.
    count: int

    def __str__(self) -> str:
        more = f"; {self.count} elements in all" if self.count > 1 else ""
        where = f", element {list(self.index)}" if self.index else ""
        return f"array {self.array}{where}: {self.got} instead of {self.expected}{more}"


def verify(source: Source, got: Array, array: int, start: Index, shape: Index) -> Mismatch | None:
    """Compare a box with its source.

    Bytes are compared, so NaNs equal themselves and -0.0 is not 0.0. The expected values are
    made in blocks of at most 512 KiB; there is never a second copy of the box.

    Parameters
    ----------
    source : Source
        Source of the expected values.
    got : ndarray
        The box that was read, in any memory layout.
    array : int
        Number of the logical array.
    start : tuple of int
        Global index of the box's first element.
    shape : tuple of int
        Global shape of the array.

    Returns
    -------
    Mismatch or None
        None if every byte is right. An array of another type or byte order than the source's is
        wrong in every element.

    Raises
    ------
    ValueError
        The box leaves the shape.
    """
    if got.size == 0:
        return None
    dtype = source.dtype
    if got.dtype != dtype:
        return Mismatch(array, start, f"values of {dtype}", f"values of {got.dtype}", got.size)
    quick = source if isinstance(source, Comparing) and got.flags.c_contiguous else None
    if quick is not None and quick.matches(got, array, start, shape):
        return None
    return _compare(source, got, array, start, shape)


def _compare(source: Source, got: Array, array: int, start: Index, shape: Index) -> Mismatch | None:
    """Compare with any source, block by block; return the first difference."""
    dtype = source.dtype
    capacity = max(1, _BLOCK_BYTES // dtype.itemsize)
    # A bytearray, because its startswith is memcmp: twice as quick as comparing with numpy.
    memory = bytearray(min(capacity, got.size) * dtype.itemsize)
    expected = np.frombuffer(memory, dtype=dtype)
    first: tuple[Index, str, str] | None = None
    count = 0
    for block in _blocks(got.shape, capacity):
        part = np.ascontiguousarray(got[block])
        offset = tuple(s + b.start for s, b in zip(start, block, strict=True))
        right = expected[: part.size].reshape(part.shape)
        source.fill(right, array, offset, shape)
        if memory.startswith(part.data):
            continue
        unsigned = np.dtype(f"u{dtype.itemsize}")
        differs = right.view(unsigned) != part.view(unsigned)
        if first is None:
            at = tuple(int(i) for i in np.unravel_index(differs.argmax(), part.shape))
            index = tuple(o + i for o, i in zip(offset, at, strict=True))
            first = (index, *_texts(right[at], part[at]))
        count += int(np.count_nonzero(differs))
    return None if first is None else Mismatch(array, *first, count)


def _blocks(extent: Index, capacity: int) -> Iterator[tuple[slice, ...]]:
    """Cut a box, in C order, into blocks of at most `capacity` elements that are contiguous."""
    axis = 0
    while axis < len(extent) - 1 and math.prod(extent[axis + 1 :]) > capacity:
        axis += 1
    step = max(1, capacity // math.prod(extent[axis + 1 :]))
    rest = tuple(slice(0, count) for count in extent[axis + 1 :])
    for outer in itertools.product(*map(range, extent[:axis])):
        for begin in range(0, extent[axis], step):
            cut = slice(begin, min(begin + step, extent[axis]))
            yield (*(slice(i, i + 1) for i in outer), cut, *rest)


def _texts(expected: np.generic, got: np.generic) -> tuple[str, str]:
    """Return both values as texts that differ."""
    texts = str(expected), str(got)
    if texts[0] != texts[1]:
        return texts
    return _with_bytes(expected), _with_bytes(got)


def _with_bytes(value: np.generic) -> str:
    return f"{value} (bytes {value.tobytes().hex()})"
