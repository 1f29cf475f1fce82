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

from pffbench.data.base import Array
from pffbench.errors import UserError
from pffbench.regular_files import check_regular, open_regular
from pffbench.text import similar_word

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

Format = Literal["npy", "hdf5", "classic", "zarr"]


class Variable(msgspec.Struct, frozen=True):
    """An opened variable."""

    #: The file.
    path: Path
    #: The variable's name within it; empty where it has none.
    name: str
    #: As stored; the byte order may be foreign.
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: Chunk shape, if it is chunked.
    chunks: tuple[int, ...] | None
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
        try:
            return np.asarray(self.array[box])
        except FAILURES as error:
            raise UserError(f"{self}: cannot be read ({_reason(error)})") from error

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
    try:
        opener = _OPENERS[_recognise(path)]
        return opener(path, None if variable is None else variable.strip("/"))
    except FAILURES as error:
        raise UserError(f"{path}: cannot be read ({_reason(error)})") from error


@contextmanager
def open_arrays(path: Path) -> Iterator[tuple[Format, dict[str, Any]]]:
    """Open a file and yield its format and its arrays, by name, as objects of its library.

    Of very many datasets of HDF5 only the first ones are there: one more than `MOST_NAMES`.

    Raises
    ------
    UserError
        The file does not exist or cannot be read, or is of no known format.
    """
    with ExitStack() as stack:
        try:
            kind = _recognise(path)
            arrays = _LISTS[kind](path, stack)
        except FAILURES as error:
            raise UserError(f"{path}: cannot be read ({_reason(error)})") from error
        yield kind, arrays


def _reason(error: Exception) -> str:
    """Return the message of a library's error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


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
    if variable is not None and variable in there:
        return variable
    listed = ", ".join(there[:_LISTED]) + (", ..." if len(there) > _LISTED else "")
    if not there:
        raise UserError(f"{path}: there is no variable in the file")
    if variable is None:
        if len(there) == 1:
            return there[0]
        raise UserError(f"{path}: name one of its variables with the key 'variable' ({listed})")
    near = similar_word(variable, there)
    hint = f", did you mean {near!r}?" if near else ""
    raise UserError(f"{path}: has no variable {variable!r}{hint} (there are: {listed})")


def _no_name(path: Path, variable: str | None) -> None:
    if variable:
        raise UserError(
            f"{path}: is a single array without a name, so 'variable' must not be given"
            f" (it is {variable!r})"
        )


def _list_npy(path: Path, _: object = None) -> dict[str, Any]:
    return {"": np.load(path, mmap_mode="r", allow_pickle=False)}


def _open_npy(path: Path, variable: str | None) -> Variable:
    _no_name(path, variable)
    array = _list_npy(path)[""]
    return Variable(path, "", array.shape, array.dtype, None, array, lambda: None)


def _open_hdf5(path: Path, variable: str | None) -> Variable:
    """Open HDF5 and netCDF-4 alike: the values of both are HDF5 datasets."""
    import h5py

    file = h5py.File(path, "r", locking="best-effort")
    try:
        if variable:
            _refuse_link(path, file, variable)
        found = file.get(variable) if variable else None
        if not isinstance(found, h5py.Dataset):
            variable = _choose(path, _datasets(file), variable)
            found = file[variable]
        for other in _other_files(found):
            check_regular(path.parent / other)
        name = str(variable)
        return Variable(path, name, found.shape or (), found.dtype, found.chunks, found, file.close)
    except BaseException:
        file.close()
        raise


def _list_hdf5(path: Path, stack: ExitStack) -> dict[str, Any]:
    import h5py

    return _datasets(stack.enter_context(h5py.File(path, "r", locking="best-effort")))


def _datasets(file: Any) -> dict[str, Any]:
    """Return the datasets of a file by name; links are not followed."""
    import h5py

    found: dict[str, Any] = {}

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


def _open_classic(path: Path, variable: str | None) -> Variable:
    import netCDF4

    file = netCDF4.Dataset(path, "r")
    try:
        file.set_auto_maskandscale(False)
        name = _choose(path, file.variables, variable)
        found = file.variables[name]
        return Variable(path, name, found.shape, np.dtype(found.dtype), None, found, file.close)
    except BaseException:
        file.close()
        raise


def _list_classic(path: Path, stack: ExitStack) -> dict[str, Any]:
    import netCDF4

    return dict(stack.enter_context(netCDF4.Dataset(path, "r")).variables)


def _open_zarr(path: Path, variable: str | None) -> Variable:
    arrays = _list_zarr(path)
    name = ""
    if arrays.keys() == {name}:
        _no_name(path, variable)
    else:
        name = _choose(path, arrays, variable)
    found = arrays[name]
    refuse_codecs(path, found.metadata.to_dict())
    return Variable(
        path, name, found.shape, np.dtype(found.dtype), found.chunks, found, lambda: None
    )


def _list_zarr(path: Path, _: object = None) -> dict[str, Any]:
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


_OPENERS: Mapping[Format, Callable[[Path, str | None], Variable]] = {
    "npy": _open_npy, "hdf5": _open_hdf5, "classic": _open_classic, "zarr": _open_zarr,
}  # fmt: skip
_LISTS: Mapping[Format, Callable[[Path, ExitStack], dict[str, Any]]] = {
    "npy": _list_npy, "hdf5": _list_hdf5, "classic": _list_classic, "zarr": _list_zarr,
}  # fmt: skip
