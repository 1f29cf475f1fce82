"""The specification of an array of a store, and the capabilities of a backend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np

from pffbench.case import Compressor, Options, Shuffle
from pffbench.geometry.box import Box, Shape

#: Byte order of the elements in a store.
ByteOrder = Literal["native", "big"]


class ArraySpec(msgspec.Struct, frozen=True):
    """An array of a store: its shape and type, its storage and its data.

    Parameters
    ----------
    name : str
        Name in the store.
    shape : tuple of int
        Shape of the stored array.
    dtype : str
        NumPy name of the element type; in memory it has native byte order.
    number : int
        Number of the logical array whose data it holds (see `pffbench.data`).
    origin : tuple of int
        Where the stored array's first element lies in the logical array.
    logical_shape : tuple of int
        Shape of the logical array.
    offset : int
        Bytes of the arrays before it in the store; its place in a raw file.
    owner : int or None
        The only rank that writes it; None when all ranks write it together.
    chunks : tuple of int, "contiguous" or "library"
        Chunk shape, no chunks, or the library's own choice.
    codec : {"none", "gzip", "szip", "zstd", "lz4", "lzf", "blosc", "library"}
        Compression.
    level : int
        Level of the codec.
    fill : {"none", "library"}
        Whether the library may write fill values before the data.
    byte_order : {"native", "big"}
        Byte order in the store; the library converts, within the transfer. Raw bytes stay as
        they are.
    compressor : {"blosclz", "lz4", "lz4hc", "zlib", "zstd"}
        Compressor inside Blosc.
    shuffle : {"none", "byte", "bit"}
        Shuffle applied before compression.
    growth : int
        Rows appended along the first axis after the array has been written; if not 0, the axis is
        unlimited.
    parts : tuple, optional
        Of an array that all ranks write: the lengths of their parts along each axis; a number for
        parts of that length.
    """

    name: str
    shape: Shape
    dtype: str
    number: int
    origin: Shape
    logical_shape: Shape
    offset: int
    owner: int | None
    chunks: Shape | Literal["contiguous", "library"]
    codec: Literal["none", "gzip", "szip", "zstd", "lz4", "lzf", "blosc", "library"]
    level: int
    fill: Literal["none", "library"]
    byte_order: ByteOrder = "native"
    compressor: Compressor = "lz4"
    shuffle: Shuffle = "none"
    growth: int = 0
    parts: tuple[int | Shape, ...] | None = None

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """Element type in the store."""
        dtype = np.dtype(self.dtype)
        return dtype.newbyteorder(">") if self.byte_order == "big" else dtype

    @property
    def shuffled_before(self) -> bool:
        """Whether a shuffle by bytes comes before the codec; Blosc has its own shuffle."""
        return self.shuffle == "byte" and self.codec != "blosc"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(np.dtype(self.dtype).itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of the array data, before compression."""
        return math.prod(self.shape) * self.itemsize

    @property
    def whole(self) -> Box:
        """The box that covers the array."""
        return Box((0,) * len(self.shape), self.shape)

    def data_start(self, box: Box) -> Shape:
        """Index in the logical array of the first element of a box of this array."""
        return tuple(o + s for o, s in zip(self.origin, box.start, strict=True))


#: All values of `arrays` and of `transfer`, for backends that support them.
EVERY_ARRAYS = frozenset({"per_rank", "shared"})
EVERY_TRANSFER = frozenset({"independent", "collective"})


class Capabilities(msgspec.Struct, frozen=True):
    """Capabilities of a backend; cases beyond them are refused when a run is planned.

    A backend names what it has, and nothing that it lacks.

    Parameters
    ----------
    arrays : frozenset of str
        Supported values of `arrays` in files that ranks share; none if they cannot share a file.
        Every backend supports a file for each rank.
    transfers : frozenset of str
        Supported transfers in a shared file.
    codecs : frozenset of str
        Supported codecs.
    shuffles : mapping of str to frozenset of str
        Shuffles that each codec supports; none for a codec that is not named.
    compressors : frozenset of str
        Compressors supported inside Blosc.
    codec_libraries : mapping of str to str
        Import names of optional packages that codecs need.
    byte_orders : frozenset of str
        Supported byte orders in the store.
    option_libraries : mapping of (str, value) to str
        Import names of optional packages that values of its options need.
    raw : bool
        Whether it stores bytes without a description, which serve as the roofline.
    discards : bool
        Whether written data cannot be read back.
    new_arrays : frozenset of str
        Transfers whose reads return new arrays, as their users call the library; the allocation is
        part of the read. Other reads land in memory of the caller.
    reads_by_mmap : bool
        Whether reads go through a map of the file, and not through read(2) and its like.
    attributes : bool
        Whether arrays have attributes: the trait `HasAttributes` of its stores.
    threads : bool
        Whether the library may move data in threads of its own, so that those that ran are
        counted.
    stretches : bool
        Whether ranks can move stretches of an array that are no box, as decomposition maps have
        them.
    call_per_box : bool
        Whether it moves them by a call for each of their boxes.
    """

    arrays: frozenset[str] = frozenset()
    transfers: frozenset[str] = frozenset({"independent"})
    codecs: frozenset[str] = frozenset({"none"})
    shuffles: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    compressors: frozenset[str] = frozenset()
    codec_libraries: Mapping[str, str] = msgspec.field(default_factory=dict)
    option_libraries: Mapping[tuple[str, Any], str] = msgspec.field(default_factory=dict)
    byte_orders: frozenset[str] = frozenset({"native"})
    raw: bool = False
    discards: bool = False
    new_arrays: frozenset[str] = frozenset()
    reads_by_mmap: bool = False
    attributes: bool = False
    threads: bool = False
    stretches: bool = False
    call_per_box: bool = False

    def libraries(self, codec: str, options: Options) -> tuple[str, ...]:
        """Return the import names of packages that a case needs in addition to the backend's."""
        of_options = (
            library
            for (name, value), library in self.option_libraries.items()
            if getattr(options, name) == value
        )
        return (*filter(None, [self.codec_libraries.get(codec)]), *of_options)
