"""How the arrays of a user's file are stored: shapes, types, chunks, filters and properties."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pffbench.backends import hdf5_files
from pffbench.backends.inspection import codec_words
from pffbench.backends.zarr.format import Json, codecs_of, stored_codec
from pffbench.case import itemsize
from pffbench.data.base import DTYPES
from pffbench.data.contents import FAILURES, Format
from pffbench.data.readers import open_arrays
from pffbench.geometry.box import Shape
from pffbench.text import one_line, value_text

#: Most axes of an array, one of which is then that of the steps.
MOST_AXES = 5
#: Checksums, which compress nothing.
_CHECKSUMS = frozenset({"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"})
#: Properties of arrays that no key of an experiment has, in words.
_BIG_ENDIAN = "big-endian in the file, in native byte order in the experiment"
_CHECKSUM = "a checksum of each chunk in the file ({}), none in the experiment"
_FILL = "a fill value in the file, none in the experiment"
_SHUFFLE = "a byte shuffle without a codec in the file, for which no format has a key"
#: Attributes by which programs unpack integers to numbers with a fraction.
_PACKING = ("scale_factor", "add_offset")


class FileArray(msgspec.Struct, frozen=True):
    """How an array is stored; arrays that are stored alike have equal records."""

    #: Its shape.
    shape: Shape
    #: Its type, as NumPy names it.
    dtype: str
    #: Shape of a chunk; None for a contiguous array.
    chunks: Shape | None = None
    #: Codec with level and shuffle, as `StoredAs.codec`.
    codec: str = "none"
    #: Shape of a shard of Zarr.
    shards: Shape | None = None
    #: Whether the first axis is unlimited.
    grows: bool = False
    #: Why the array cannot be read; empty if it can.
    unreadable: str = ""

    @property
    def itemsize(self) -> int:
        """Bytes of an element of a type that an experiment has."""
        return itemsize(self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of an array; 0 for a type that no experiment has."""
        return math.prod(self.shape) * self.itemsize if self.dtype in DTYPES else 0

    @property
    def in_steps(self) -> bool:
        """Whether a program writes it step by step: it grows by chunks of one step."""
        if len(self.shape) == MOST_AXES:
            return True
        alone = self.chunks is None or self.chunks[0] == 1
        return self.grows and alone and len(self.shape) > 1

    @property
    def lacking(self) -> str:
        """Why no experiment has such an array; empty if one can."""
        if self.unreadable:
            return self.unreadable
        if self.dtype not in DTYPES:
            return f"type {self.dtype}"
        if not self.shape or 0 in self.shape:
            return "no elements along an axis" if self.shape else "a single value"
        return f"more than {MOST_AXES} axes" if len(self.shape) > MOST_AXES else ""

    def __str__(self) -> str:
        chunks = f"chunks {value_text(self.chunks)}" if self.chunks else "contiguous"
        return f"{self.dtype} {value_text(self.shape)}, {chunks}, codec {codec_words(self.codec)}"


class Description(NamedTuple):
    """How an array is stored, and its properties that no key of an experiment has."""

    stored: FileArray
    properties: tuple[str, ...] = ()


def structure_of(path: Path) -> dict[str, Description]:
    """Return how each array of a file is stored, by its name."""
    with open_arrays(path) as contents:
        found = {name: _describe(contents.kind, a) for name, a in contents.arrays.items()}
    others = contents.unreadable.items()
    return found | {name: Description(FileArray((), "", unreadable=why)) for name, why in others}


def _describe(kind: Format, array: Any) -> Description:
    try:
        return _DESCRIBE[kind](array, tuple(map(int, array.shape or ())))
    except TypeError:  # NumPy does not have the type
        return Description(FileArray((), "unknown"))
    except FAILURES as error:
        return Description(FileArray((), "", unreadable=one_line(str(error), 80)))


def _describe_npy(array: Any, shape: Shape) -> Description:
    flags = array.flags
    column_major = ["column-major in the file, row-major in the experiment"] * (
        flags.f_contiguous and not flags.c_contiguous
    )
    return Description(
        FileArray(shape, _name_type(array.dtype)), (*_byte_order(array.dtype), *column_major)
    )


def _describe_classic(array: Any, shape: Shape) -> Description:
    dtype = np.dtype(array.dtype)
    properties = (*_packing(array.attributes), *_unlimited([0] if array.grows else []))
    return Description(FileArray(shape, _name_type(dtype), grows=array.grows), properties)


def _describe_hdf5(dataset: Any, shape: Shape) -> Description:
    creation = dataset.id.get_create_plist()
    filters = [creation.get_filter(n) for n in range(creation.get_nfilters())]
    unlimited = [n for n, length in enumerate(dataset.maxshape or ()) if length is None]
    stored = FileArray(
        shape,
        _name_type(dataset.dtype),
        dataset.chunks,
        _name_filters(filters),
        grows=0 in unlimited,
    )
    return Description(stored, tuple(_properties_of_hdf5(dataset, creation, filters, unlimited)))


def _properties_of_hdf5(
    dataset: Any, creation: Any, filters: Sequence[Any], unlimited: Sequence[int]
) -> Iterator[str]:
    from h5py import h5d

    yield from _byte_order(dataset.dtype)
    yield from _packing(dataset.attrs)
    if creation.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        yield _FILL
    yield from _unlimited(unlimited)
    if dataset.is_virtual:
        yield "a virtual dataset in the file, an ordinary one in the experiment"
    elif dataset.external:
        yield "values in external files, in the file itself in the experiment"
    elif creation.get_layout() == h5d.COMPACT:
        yield "values within the metadata (compact), outside of them in the experiment"
    numbers = [number for number, *_ in filters]
    if hdf5_files.FLETCHER32 in numbers:
        yield _CHECKSUM.format("fletcher32")
    if set(numbers) - {hdf5_files.FLETCHER32} == {hdf5_files.SHUFFLE}:
        yield _SHUFFLE
    for number, _, values, _ in filters:
        if number == hdf5_files.BLOSC and len(values) < hdf5_files.BLOSC_VALUES:
            yield (
                "the file does not name Blosc's compressor, which is then blosclz, also in the "
                "experiment"
            )


def _name_filters(filters: Sequence[Any]) -> str:
    """Return the codec of a dataset of HDF5; filters without a key by number and name."""
    plain = (hdf5_files.SHUFFLE, hdf5_files.FLETCHER32)
    others = [(n, name) for n, _, _, name in filters if n not in plain]
    known = hdf5_files.codec_name((number, values) for number, _, values, _ in filters)
    if len(others) == 1 and not known.startswith("filter"):
        return known
    return " and ".join(_name_filter(*other) for other in others) or "none"


def _name_filter(number: int, name: bytes) -> str:
    """Return the name of a filter, which HDF5 keeps in the file; some have a link after it."""
    text = one_line(name.decode("utf-8", "replace").partition(";")[0].strip(), 40)
    return f"filter {number} ({text})" if text else f"filter {number}"


def _describe_zarr(array: Any, shape: Shape) -> Description:
    metadata = array.metadata.to_dict()
    codecs = [codec for codec in codecs_of(metadata)[0] if codec[0] not in _CHECKSUMS]
    before = [name for name, _ in codecs if name == "shuffle"]
    several = len(codecs) - len(before) > 1
    codec = " and ".join(name for name, _ in codecs) if several else stored_codec(codecs)
    automatic = "byte" if array.dtype.itemsize > 1 else "bit"
    properties = list(_properties_of_zarr(array, metadata))
    if codec.endswith(" automatic"):
        codec = codec.replace("automatic", automatic)
        properties.append(f"Blosc's automatic shuffle, which is by {automatic}s for this type")
    if before and codec in ("none", "none byte"):
        codec = "none"
        properties.append(_SHUFFLE)
    stored = FileArray(shape, _name_type(array.dtype), array.chunks, codec, array.shards)
    return Description(stored, tuple(properties))


def _properties_of_zarr(array: Any, metadata: Json) -> Iterator[str]:
    every = list(_every_codec(metadata))
    endian = [told.get("endian") for name, told in every if name == "bytes"]
    yield from [_BIG_ENDIAN] if "big" in endian else _byte_order(array.dtype)
    yield from _packing(array.attrs)
    orders = [told["order"] for name, told in every if name == "transpose"]
    usual = list(range(array.ndim))
    if metadata.get("order") == "F" or any(list(order) != usual for order in orders):
        yield "transposed chunks in the file, row-major ones in the experiment"
    if checksums := sorted({name for name, _ in every if name in _CHECKSUMS}):
        yield _CHECKSUM.format(", ".join(checksums))
    if array.dtype.kind in "iuf" and array.fill_value is not None and array.fill_value != 0:
        yield _FILL


def _every_codec(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    """Yield the codecs and filters of an array, those within shards included."""
    for codec in (*(metadata.get("filters") or ()), metadata.get("compressor")):
        if codec is not None:
            yield codec["id"], codec
    for codec in metadata.get("codecs") or ():
        told = codec.get("configuration", {})
        yield codec["name"].removeprefix("numcodecs."), told
        yield from _every_codec({"codecs": told.get("codecs")})


def _byte_order(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the byte order of a type, unless it is native."""
    return () if dtype.isnative else (_BIG_ENDIAN,)


def _packing(attributes: Container[str]) -> tuple[str, ...]:
    """Return that values are packed, if attributes say how to unpack them."""
    named = " and ".join(name for name in _PACKING if name in attributes)
    return (f"packed in the file ({named}), its packed values in the experiment",) if named else ()


def _unlimited(axes: Sequence[int]) -> tuple[str, ...]:
    """Return that axes are unlimited."""
    named = ", ".join(str(axis + 1) for axis in axes)
    text = f"unlimited in the file along axis {named}, of fixed length in the experiment"
    return (text,) if named else ()


def _name_type(dtype: np.dtype[Any]) -> str:
    """Return the name of a type as NumPy has it, or in words if that says nothing."""
    if "ref" in (dtype.metadata or {}):  # as h5py notes it
        return "reference"
    words = {"O": "variable length", "S": "text", "T": "text", "U": "text", "V": "opaque"}
    told = "compound" if dtype.fields else words.get(dtype.kind)
    return told or dtype.newbyteorder("=").name


#: What describes an array of each format, from the array of its library and the shape.
_DESCRIBE = {
    "npy": _describe_npy, "hdf5": _describe_hdf5, "classic": _describe_classic,
    "zarr": _describe_zarr,
}  # fmt: skip
