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
    """An array of a store: its shape and type, its storage and its data."""

    #: Name in the store.
    name: str
    #: Shape of the stored array.
    shape: Shape
    #: NumPy name of the element type; in memory it has native byte order.
    dtype: str
    #: Number of the logical array whose data it holds (see `pffbench.data`).
    number: int
    #: Where the stored array's first element lies in the logical array.
    origin: Shape
    #: Shape of the logical array.
    logical_shape: Shape
    #: Bytes of the arrays before it in the store; its place in a raw file.
    offset: int
    #: The only rank that writes it; None when all ranks write it together.
    owner: int | None
    #: Chunk shape, no chunks, or the library's own choice.
    chunks: Shape | Literal["contiguous", "library"]
    #: Compression.
    codec: Literal["none", "gzip", "szip", "zstd", "lz4", "lzf", "blosc", "library"]
    #: Level of the codec.
    level: int
    #: Whether the library may write fill values before the data.
    fill: Literal["none", "library"]
    #: Byte order in the store; the library converts, within the transfer. Raw bytes stay as they
    #: are.
    byte_order: ByteOrder = "native"
    #: Compressor inside Blosc.
    compressor: Compressor = "lz4"
    #: Shuffle applied before compression.
    shuffle: Shuffle = "none"
    #: Rows appended along the first axis after the array has been written; if not 0, the axis is
    #: unlimited.
    growth: int = 0
    #: Of an array that all ranks write: the lengths of their parts along each axis; a number for
    #: parts of that length.
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
    """

    #: Supported values of `arrays` in files that ranks share; none if they cannot share a file.
    #: Every backend supports a file for each rank.
    arrays: frozenset[str] = frozenset()
    #: Supported transfers in a shared file.
    transfers: frozenset[str] = frozenset({"independent"})
    #: Supported codecs.
    codecs: frozenset[str] = frozenset({"none"})
    #: Shuffles that each codec supports; none for a codec that is not named.
    shuffles: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    #: Compressors supported inside Blosc.
    compressors: frozenset[str] = frozenset()
    #: Import names of optional packages that codecs need.
    codec_libraries: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: Import names of optional packages that values of its options need.
    option_libraries: Mapping[tuple[str, Any], str] = msgspec.field(default_factory=dict)
    #: Supported byte orders in the store.
    byte_orders: frozenset[str] = frozenset({"native"})
    #: Whether it stores bytes without a description, which serve as the roofline.
    raw: bool = False
    #: Whether written data cannot be read back.
    discards: bool = False
    #: Transfers whose reads return new arrays, as their users call the library; the allocation is
    #: part of the read. Other reads land in memory of the caller.
    new_arrays: frozenset[str] = frozenset()
    #: Whether reads go through a map of the file, and not through read(2) and its like.
    reads_by_mmap: bool = False
    #: Whether arrays have attributes: the trait `HasAttributes` of its stores.
    attributes: bool = False
    #: Whether the library may move data in threads of its own, so that those that ran are counted.
    threads: bool = False
    #: Whether ranks can move stretches of an array that are no box, as decomposition maps have
    #: them.
    stretches: bool = False
    #: Whether it moves them by a call for each of their boxes.
    call_per_box: bool = False

    def libraries(self, codec: str, options: Options) -> tuple[str, ...]:
        """Return the import names of packages that a case needs in addition to the backend's."""
        of_options = (
            library
            for (name, value), library in self.option_libraries.items()
            if getattr(options, name) == value
        )
        return (*filter(None, [self.codec_libraries.get(codec)]), *of_options)
