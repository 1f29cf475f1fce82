"""A variable of the user's file as a source of data."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import numpy as np

from pffbench.data.base import DTYPES, Array, ElementType, Index, check_box, check_out
from pffbench.data.readers import Variable, open_variable
from pffbench.errors import UserError

#: ``package:NAME/PATH`` names a file inside an installed package, wherever that is.
PREFIX = "package:"


def locate(file: str) -> str:
    """Return the path that a name in an experiment stands for.

    An experiment may be untrusted, so nothing is imported to find a package, and the current
    directory is not searched.

    Parameters
    ----------
    file : str
        A path, relative to the current directory, or ``package:NAME/PATH``.

    Raises
    ------
    UserError
        The name is not that of a package, the package is not installed, or the path leads out of
        it.
    """
    if not file.startswith(PREFIX):
        return file
    name, _, inside = file.removeprefix(PREFIX).partition("/")
    if not (name.isascii() and name.isidentifier()):  # a dot would import the package before it
        raise UserError(
            f"{file!r}: {name!r} is not the name of a Python package (write package:NAME/PATH, "
            "where NAME has letters, digits and underscores)"
        )
    parts = Path(inside).parts
    if not parts or ".." in parts or Path(inside).is_absolute():
        raise UserError(f"{file!r}: the path must lead to a file within the package {name}")
    found = next((spec for spec in _specs(name) if spec.submodule_search_locations), None)
    if found is None or not found.submodule_search_locations:
        raise UserError(f"{file!r}: the Python package {name} is not installed")
    return str(Path(found.submodule_search_locations[0], inside))


def _specs(name: str) -> Iterator[ModuleSpec]:
    """Yield the specifications of a top-level package, without importing anything."""
    here = os.path.realpath(".")
    elsewhere = [place for place in sys.path if place and os.path.realpath(place) != here]
    if (found := PathFinder.find_spec(name, elsewhere)) is not None:
        yield found
    for finder in sys.meta_path:  # packages installed in editable mode
        if getattr(finder, "__module__", "").startswith("__editable__"):
            found = finder.find_spec(name, None)
            if found is not None:
                yield found


#: Most bytes that one read from the user's file loads into memory, and that are kept.
_WINDOW_BYTES = 64 * 2**20

Box = tuple[slice, ...]


class FileSource:
    """Values read from one variable of a file, repeated over arrays that are larger than it.

    Element (i, j, ...) of array number n is element ((i + n) mod I, j mod J, ...) of the variable
    with shape (I, J, ...): the roll along the first axis makes a mix-up of arrays visible. Values
    are the stored ones, without mask, scale or offset, in native byte order. The file stays open,
    read-only, and only requested parts are read (at most 64 MiB at a time; whole chunks, the last
    of them kept).

    Parameters
    ----------
    file : str
        An HDF5, netCDF or .npy file, or the directory of a Zarr group or array.
    variable : str, optional
        Its name, with the groups before it; not needed where there is only one.
    dtype : numpy.dtype, optional
        The type that the caller expects.

    Attributes
    ----------
    shape : tuple of int
        The variable's shape.
    dtype : numpy.dtype
        The variable's type, in native byte order.

    Raises
    ------
    UserError
        The file or the variable does not exist, cannot be read, has an unsupported type, has no
        elements, or is not of the expected type.
    """

    def __init__(
        self, file: str, variable: str | None = None, dtype: ElementType | None = None
    ) -> None:
        self._variable: Variable = open_variable(Path(file), variable)
        self._window: tuple[Box, Array] | None = None
        self.shape: Index = self._variable.shape
        self.dtype: ElementType = self._variable.dtype.newbyteorder("=")
        try:
            self._check(dtype)
        except UserError:
            self.close()
            raise
        self.dtype = np.dtype(self.dtype.name)  # without h5py's metadata of enumerations

    def _check(self, dtype: ElementType | None) -> None:
        """Raise UserError unless the variable is an array of a supported and expected type."""
        if self.dtype.name not in DTYPES:
            raise UserError(f"{self._variable} has the type {self.dtype}, not {', '.join(DTYPES)}")
        if dtype not in (None, self.dtype):
            raise UserError(f"{self._variable} has the type {self.dtype}, not the dtype {dtype}")
        if not self.shape or 0 in self.shape:
            raise UserError(f"{self._variable} has the shape {self.shape}: it holds no array")

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`.

        Raises
        ------
        UserError
            The array and the variable differ in the number of axes, or the file is damaged.
        """
        check_out(out, self.dtype)
        if len(shape) != len(self.shape):
            raise UserError(
                f"{self._variable} has the shape {self.shape}, so an array of {len(shape)} axes "
                f"cannot be filled from it (allowed: {len(self.shape)} axes)"
            )
        check_box(start, out.shape, shape)
        if out.size == 0:
            return
        begin = (start[0] + array, *start[1:])
        axes = [
            _cuts(first % size, min(count, size), size)
            for first, count, size in zip(begin, out.shape, self.shape, strict=True)
        ]
        for cuts in itertools.product(*axes):
            self._read(tuple(c[0] for c in cuts), out[tuple(c[1] for c in cuts)])
        for axis, (count, size) in enumerate(zip(out.shape, self.shape, strict=True)):
            _repeat(out, axis, count, size)

    def close(self) -> None:
        """Close the user's file."""
        self._window = None
        self._variable.close()

    def _read(self, box: Box, out: Array) -> None:
        """Read a box of the variable, through the window where that saves reading a chunk twice."""
        if self._window is not None and _inside(box, self._window[0]):
            out[...] = _part(box, *self._window)
            return
        whole = self._aligned(box)
        if out.nbytes < _bytes(whole, self.dtype) <= _WINDOW_BYTES:
            self._window = None
            self._window = (whole, self._variable.read(whole))
            out[...] = _part(box, *self._window)
            return
        step = max(1, _WINDOW_BYTES * len(out) // out.nbytes)
        if self._variable.chunks:
            step = -(-step // self._variable.chunks[0]) * self._variable.chunks[0]
        for begin in range(box[0].start, box[0].stop, step):
            end = min(begin + step, box[0].stop)
            rows = slice(begin - box[0].start, end - box[0].start)
            out[rows] = self._variable.read((slice(begin, end), *box[1:]))

    def _aligned(self, box: Box) -> Box:
        """Widen a box to whole chunks."""
        chunks = self._variable.chunks
        if not chunks:
            return box
        return tuple(
            slice(cut.start // chunk * chunk, min(-(-cut.stop // chunk) * chunk, size))
            for cut, chunk, size in zip(box, chunks, self.shape, strict=True)
        )


def _cuts(begin: int, count: int, size: int) -> list[tuple[slice, slice]]:
    """Cut `count` <= `size` indices from `begin` on a ring: source and target slices."""
    straight = min(count, size - begin)
    cuts = [(slice(begin, begin + straight), slice(0, straight))]
    if straight < count:
        cuts.append((slice(0, count - straight), slice(straight, count)))
    return cuts


def _repeat(out: Array, axis: int, count: int, size: int) -> None:
    """Copy the first `size` indices along an axis to the rest of it, doubling each time."""
    lead = (slice(None),) * axis
    done = size
    while done < count:
        more = min(done, count - done)
        out[(*lead, slice(done, done + more))] = out[(*lead, slice(0, more))]
        done += more


def _inside(box: Box, outer: Box) -> bool:
    return all(o.start <= b.start and b.stop <= o.stop for b, o in zip(box, outer, strict=True))


def _part(box: Box, outer: Box, values: Array) -> Array:
    cut = (slice(b.start - o.start, b.stop - o.start) for b, o in zip(box, outer, strict=True))
    return values[tuple(cut)]


def _bytes(box: Box, dtype: ElementType) -> int:
    return math.prod(int(cut.stop - cut.start) for cut in box) * dtype.itemsize
