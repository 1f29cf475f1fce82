"""Reading the variables of a user's file: HDF5, netCDF, Zarr or npy, recognised by its signature.

Only the library of the file's own format is imported. All files are opened read-only by one
process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pffbench.data.base import Array, ElementType, Index
from pffbench.data.contents import FAILURES, Contents, Format, reason_of
from pffbench.errors import UserError
from pffbench.regular_files import open_regular
from pffbench.text import abridged, perhaps_meant

_HDF5 = b"\x89HDF\r\n\x1a\n"
_NPY = b"\x93NUMPY"
_CLASSIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_ZARR = ("zarr.json", ".zarray", ".zgroup")
#: Most names that an error message lists.
_LISTED = 10


class Variable(msgspec.Struct, frozen=True):
    """An opened variable."""

    #: The file.
    path: Path
    #: The variable's name within it; empty where it has none.
    name: str
    #: As stored; the byte order may be foreign.
    shape: Index
    dtype: ElementType
    #: Chunk shape, if it is chunked.
    chunks: Index | None
    #: Takes a tuple of slices, gives an ndarray of stored values.
    array: Any
    #: Closes the file.
    close: Callable[[], object]

    def read(self, box: tuple[slice, ...]) -> Array:
        """Read a box of stored values.

        Raises
        ------
        UserError
            The library cannot, for instance because a chunk is damaged or its codec is missing.
        """
        with _failures_of(self):
            return np.asarray(self.array[box])

    def __str__(self) -> str:
        return f"{self.path}: variable {self.name!r}" if self.name else str(self.path)


def open_variable(path: Path, variable: str | None) -> Variable:
    """Open a variable.

    Parameters
    ----------
    path : pathlib.Path
        An HDF5, netCDF or .npy file, or the directory of a Zarr group or array.
    variable : str or None
        Its name, with the groups before it; None takes the only one.

    Raises
    ------
    UserError
        The file does not exist or cannot be read, is of no known format, or has no such
        variable, or several and none is named.
    """
    wanted = None if variable is None else variable.strip("/")
    with ExitStack() as stack, _failures_of(path):
        contents = _LISTS[_recognise(path)](path, stack, wanted)
        name = _choose(path, contents, wanted)
        found = contents.arrays[name]
        if contents.kind == "hdf5" and (reason := _refuse_filters(found)):
            raise UserError(_unreadable(path, name, reason))
        chunks = found.chunks if contents.kind in ("hdf5", "zarr") else None
        shape, dtype = found.shape or (), np.dtype(found.dtype)
        return Variable(path, name, shape, dtype, chunks, found, stack.pop_all().close)


@contextmanager
def open_arrays(path: Path) -> Iterator[Contents]:
    """Open a file and yield its arrays.

    Raises
    ------
    UserError
        The file does not exist or cannot be read, or is of no known format.
    """
    with ExitStack() as stack:
        with _failures_of(path):
            contents = _LISTS[_recognise(path)](path, stack, None)
        yield contents


@contextmanager
def _failures_of(what: object) -> Iterator[None]:
    """Raise an error of a library as a `UserError` in one line."""
    try:
        yield
    except FAILURES as error:
        raise UserError(_unreadable(what, "", reason_of(error))) from error


def _unreadable(what: object, variable: str, reason: str) -> str:
    named = f"{what}: variable {variable!r}" if variable else str(what)
    return f"{named}: cannot be read ({reason})"


def _recognise(path: Path) -> Format:
    """Return the format of a file, by its first bytes or the directory's contents."""
    if not path.exists():
        raise UserError(f"{path}: there is no such file")
    if path.is_dir():
        if any((path / name).is_file() for name in _ZARR):
            return "zarr"
        raise UserError(f"{path}: the directory holds no Zarr group or array ({', '.join(_ZARR)})")
    with open_regular(path) as stream:
        head = stream.read(8)
        if head.startswith(_CLASSIC):
            return "classic"
        if head.startswith(_NPY):
            return "npy"
        # An HDF5 file may begin after a user block of 512 bytes or any double of that.
        size = os.fstat(stream.fileno()).st_size
        offset = 0
        while offset + len(_HDF5) <= size:
            stream.seek(offset)
            if stream.read(len(_HDF5)) == _HDF5:
                return "hdf5"
            offset = max(512, 2 * offset)
    raise UserError(f"{path}: is neither HDF5, netCDF, .npy nor a Zarr directory")


def _choose(path: Path, contents: Contents, variable: str | None) -> str:
    """Return the name of the requested variable, or of the only one."""
    there = sorted(contents.arrays)
    if variable is not None and variable in there:
        return variable
    for name in (variable or "", ""):
        if reason := contents.unreadable.get(name):
            raise UserError(_unreadable(path, name, reason))
    if there == [""]:
        if variable:
            raise UserError(
                f"{path}: is a single array without a name, so 'variable' must not be given"
                f" (it is {variable!r})"
            )
        return ""
    listed = abridged(there, _LISTED, ", ")
    if not there:
        others = abridged([f"{n}: {why}" for n, why in contents.unreadable.items()], _LISTED)
        raise UserError(
            f"{path}: there is no variable in the file{f' to read ({others})' if others else ''}"
        )
    if variable is None:
        if len(there) == 1:
            return there[0]
        raise UserError(f"{path}: name one of its variables with the key 'variable' ({listed})")
    hint = perhaps_meant(variable, there)
    raise UserError(f"{path}: has no variable {variable!r} (there are: {listed}){hint}")


def _list_npy(path: Path, stack: ExitStack, wanted: str | None) -> Contents:  # noqa: ARG001
    return Contents("npy", {"": np.load(path, mmap_mode="r", allow_pickle=False)})


def _list_hdf5(path: Path, stack: ExitStack, wanted: str | None) -> Contents:
    from pffbench.data.hdf5_file import list_hdf5

    return list_hdf5(path, stack, wanted)


def _refuse_filters(dataset: Any) -> str | None:
    from pffbench.data.hdf5_values import refuse_filters

    return refuse_filters(dataset.id)


def _list_classic(path: Path, stack: ExitStack, wanted: str | None) -> Contents:  # noqa: ARG001
    from pffbench.data.classic_file import list_classic

    return list_classic(path)


def _list_zarr(path: Path, stack: ExitStack, wanted: str | None) -> Contents:  # noqa: ARG001
    import zarr

    if zarr.__version__.startswith("2."):
        raise UserError(
            f"{path}: a Zarr file is read as data with zarr-python 3, and {zarr.__version__} is "
            "installed"
        )
    from pffbench.data.zarr_store import list_zarr

    return list_zarr(path, wanted)


#: What opens a file of each format, which the stack closes, and returns its arrays.
_LISTS: Mapping[Format, Callable[[Path, ExitStack, str | None], Contents]] = {
    "npy": _list_npy, "hdf5": _list_hdf5, "classic": _list_classic, "zarr": _list_zarr,
}  # fmt: skip
