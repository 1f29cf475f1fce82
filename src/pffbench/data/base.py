"""Interface of the sources of data, and the supported element types."""

from __future__ import annotations

from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from pffbench.errors import UserError

#: Not of numpy.typing, which every rank would import for it.
ElementType = np.dtype[Any]
Array = np.ndarray[Any, ElementType]
#: An index of an array with several axes, or a shape.
Index = tuple[int, ...]

#: The element types, as an experiment names them.
DType = Literal[
    "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
]  # fmt: skip
DTYPES: tuple[str, ...] = get_args(DType)


class Source(Protocol):
    """Values as a pure function of seed, array number and global index.

    The value of an element does not depend on the requested box, so any rank can make or check any
    part of an array. Sources keep scratch memory: an instance serves one thread.
    """

    @property
    def dtype(self) -> ElementType:
        """Element type, in native byte order."""

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box of a logical array.

        Parameters
        ----------
        out : ndarray
            Filled in place; C-contiguous, of this source's dtype; its shape is the box's extent.
        array : int
            Number of the logical array, 0 or more.
        start : tuple of int
            Global index of the box's first element.
        shape : tuple of int
            Global shape of the array; the box must lie inside it.

        Raises
        ------
        ValueError
            The box leaves the shape, or `out` is not as described.
        """


class SeededSource:
    """A source that generates its values.

    Parameters
    ----------
    dtype : numpy.dtype
        Any supported type, unless the source allows fewer.
    seed : int
        Any integer; its low 64 bits count.
    """

    def __init__(self, dtype: ElementType, seed: int) -> None:
        self.dtype = dtype
        self._seed = seed


class DerivedSource:
    """A source that has the values of another one, moved or changed.

    Parameters
    ----------
    source : Source
        The other one.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def dtype(self) -> ElementType:
        """Element type, in native byte order."""
        return self._source.dtype


@runtime_checkable
class Comparing(Protocol):
    """A source that compares a box block by block, while each block is in the cache."""

    def matches(self, got: Array, array: int, start: Index, shape: Index) -> bool:
        """Return whether a C-contiguous box holds exactly the bytes that `fill` would put there."""


def check_dtype(name: str) -> ElementType:
    """Turn the name of an element type into a dtype.

    Raises
    ------
    UserError
        The name is not one of `DTYPES`.
    """
    if name not in DTYPES:
        raise UserError(f"dtype {name!r} is not one of {', '.join(DTYPES)}")
    return np.dtype(name)


def check_box(start: Index, extent: Index, shape: Index) -> None:
    """Raise ValueError unless the box lies inside the shape and has one axis or more."""
    if not shape or not len(start) == len(extent) == len(shape):
        raise ValueError(f"the box at {start} of {extent} does not fit the shape {shape}")
    for first, count, size in zip(start, extent, shape, strict=True):
        if first < 0 or first + count > size:
            raise ValueError(f"the box at {start} of {extent} leaves the shape {shape}")


def check_out(out: Array, dtype: ElementType) -> None:
    """Raise ValueError unless `out` is a C-contiguous array of `dtype`."""
    if out.dtype != dtype or not out.flags.c_contiguous:
        raise ValueError(
            f"the buffer must be C-contiguous {dtype}, not "
            f"{out.dtype} with strides {out.strides} and shape {out.shape}"
        )
