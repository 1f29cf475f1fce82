"""Reading the variables of a user's file: HDF5, netCDF, Zarr or npy, recognised by its signature.

Zarr names codecs in the data, and some of them, such as pickle, run code from the data.

Only the library of the file's own format is imported, and only here. All files are opened
read-only by one process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from pffbench.data.base import Array, ElementType, Index
from pffbench.errors import UserError
from pffbench.regular_files import check_regular, open_regular
from pffbench.text import abridged, perhaps_meant

#: Codecs of format 2 and of numcodecs, and those of format 3. All others are refused.
_HARMLESS = frozenset(
    {
        "adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta",
        "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits",
        "pcodec", "quantize", "shuffle", "zfpy", "zlib", "zstd",
        "bytes", "transpose", "sharding_indexed",
    }
)  # fmt: skip


def refuse_codecs(what: object, metadata: Mapping[str, Any]) -> None:
    """Refuse an array with a codec that is not known to be harmless.

    Parameters
    ----------
    what : object
        The array, for the message.
    metadata : mapping
        Its metadata as plain data, of format 2 or 3.

    Raises
    ------
    UserError
        It has such a codec.
    """
    for name in _names(metadata):
        if name.removeprefix("numcodecs.") not in _HARMLESS:
            raise UserError(
                f"{what}: has the codec {name!r}, which may do more than turn bytes into numbers "
                f"(allowed: {', '.join(sorted(_HARMLESS))})"
            )


def _names(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the codecs of an array, those within shards included."""
    for codec in (*(metadata.get("filters") or ()), metadata.get("compressor")):
        if codec is not None:
            yield str(codec["id"] if isinstance(codec, Mapping) else codec.codec_id)
    for codec in metadata.get("codecs") or ():
        yield str(codec["name"])
        inner = codec.get("configuration") or {}
        yield from _names({"codecs": [*inner.get("codecs", ()), *inner.get("index_codecs", ())]})


_HDF5 = b"\x89HDF\r\n\x1a\n"
_NPY = b"\x93NUMPY"
_CLASSIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_ZARR = ("zarr.json", ".zarray", ".zgroup")
#: How netCDF-4 names the dataset of a dimension that has no coordinate variable.
_BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
#: Errors that the libraries raise for an invalid file.
FAILURES = (
    OSError, ValueError, LookupError, TypeError, RuntimeError, AttributeError, ArithmeticError
)  # fmt: skip
#: Most names that an error message lists.
_LISTED = 10
#: Most datasets of an HDF5 file that are looked at.
MOST_NAMES = 10_000

#: Arrays of a file by name, as objects of its library.
Arrays = dict[str, Any]
Format = Literal["npy", "hdf5", "classic", "zarr"]


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
        kind = _recognise(path)
        arrays = _LISTS[kind](path, stack, wanted)
        name = _choose(path, arrays, wanted)
        found = arrays[name]
        if kind == "zarr":
            refuse_codecs(path, found.metadata.to_dict())
        for other in _other_files(found) if kind == "hdf5" else ():
            check_regular(path.parent / other)
        chunks = found.chunks if kind in ("hdf5", "zarr") else None
        shape, dtype = found.shape or (), np.dtype(found.dtype)
        return Variable(path, name, shape, dtype, chunks, found, stack.pop_all().close)


@contextmanager
def open_arrays(path: Path) -> Iterator[tuple[Format, Arrays]]:
    """Open a file and yield its format and its arrays, by name, as objects of its library.

    Of very many datasets of HDF5 only the first ones are there: one more than `MOST_NAMES`.

    Raises
    ------
    UserError
        The file does not exist or cannot be read, or is of no known format.
    """
    with ExitStack() as stack:
        with _failures_of(path):
            kind = _recognise(path)
            arrays = _LISTS[kind](path, stack, None)
        yield kind, arrays


@contextmanager
def _failures_of(what: object) -> Iterator[None]:
    """Raise an error of a library as a `UserError` in one line."""
    try:
        yield
    except FAILURES as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{what}: cannot be read ({reason})") from error


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


def _choose(path: Path, names: Iterable[str], variable: str | None) -> str:
    """Return the name of the requested variable, or of the only one."""
    there = sorted(names)
    if there == [""]:
        if variable:
            raise UserError(
                f"{path}: is a single array without a name, so 'variable' must not be given"
                f" (it is {variable!r})"
            )
        return ""
    if variable is not None and variable in there:
        return variable
    listed = abridged(there, _LISTED, ", ")
    if not there:
        raise UserError(f"{path}: there is no variable in the file")
    if variable is None:
        if len(there) == 1:
            return there[0]
        raise UserError(f"{path}: name one of its variables with the key 'variable' ({listed})")
    hint = perhaps_meant(variable, there)
    raise UserError(f"{path}: has no variable {variable!r} (there are: {listed}){hint}")


def _list_npy(path: Path, stack: ExitStack, wanted: str | None) -> Arrays:  # noqa: ARG001
    return {"": np.load(path, mmap_mode="r", allow_pickle=False)}


def _list_hdf5(path: Path, stack: ExitStack, wanted: str | None) -> Arrays:
    """Return the datasets by name, which are the values of netCDF-4 too; or the one wanted.

    Links are not followed.
    """
    import h5py

    file = stack.enter_context(h5py.File(path, "r", locking="best-effort"))
    if wanted:
        _refuse_link(path, file, wanted)
        if isinstance(one := file.get(wanted), h5py.Dataset):
            return {wanted: one}
    found: Arrays = {}

    def visit(name: str, item: Any) -> bool | None:
        if isinstance(item, h5py.Dataset) and not _is_bare_dimension(item.attrs):
            found[name] = item
        return True if len(found) > MOST_NAMES else None  # which ends the visit

    file.visititems(visit)
    return found


def _refuse_link(path: Path, file: Any, variable: str) -> None:
    """Refuse a variable behind a link to another file, which may not be a regular file."""
    import h5py

    steps = variable.split("/")
    for place in ("/".join(steps[:n]) for n in range(1, len(steps) + 1)):
        link = file.get(place, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise UserError(
                f"{path}: {place!r} is a link to {link.filename!r}; name that file instead"
            )


def _other_files(dataset: Any) -> list[str]:
    """Return the external files in which a dataset has its values."""
    sources = dataset.virtual_sources() if dataset.is_virtual else ()
    names = [source.file_name for source in sources if source.file_name != "."]
    return [*names, *(name for name, _, _ in dataset.external or ())]


def _is_bare_dimension(attributes: Mapping[str, Any]) -> bool:
    name = attributes.get("NAME", b"")
    return isinstance(name, bytes) and name.startswith(_BARE_DIMENSION)


def _list_classic(path: Path, stack: ExitStack, wanted: str | None) -> Arrays:  # noqa: ARG001
    import netCDF4

    file = stack.enter_context(netCDF4.Dataset(path, "r"))
    file.set_auto_maskandscale(False)
    return dict(file.variables)


def _list_zarr(path: Path, stack: ExitStack, wanted: str | None) -> Arrays:  # noqa: ARG001
    """Return the arrays of a group by name, or a single array without one."""
    import zarr

    if zarr.__version__.startswith("2."):
        raise UserError(
            f"{path}: a Zarr file is read as data with zarr-python 3, and {zarr.__version__} is "
            "installed"
        )
    found = zarr.open(path, mode="r")
    if isinstance(found, zarr.Array):
        return {"": found}
    members = found.members(max_depth=None)
    return {name: item for name, item in members if isinstance(item, zarr.Array)}


#: What opens a file of each format, which the stack closes, and returns its arrays by name.
_LISTS: Mapping[Format, Callable[[Path, ExitStack, str | None], Arrays]] = {
    "npy": _list_npy, "hdf5": _list_hdf5, "classic": _list_classic, "zarr": _list_zarr,
}  # fmt: skip
