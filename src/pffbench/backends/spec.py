"""What an array of a store is to be: shape, type, chunks, codec, and which data belong in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pffbench.case import Compressor, Shuffle
from pffbench.parallel.decomposition import Box, Shape

#: Byte order of the elements in a store.
ByteOrder = Literal["native", "big"]


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array of a store: what it is, how it is stored and which data belong in it.

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
        Bytes of the arrays before it in the store: where a raw backend puts it.
    owner : int or None
        The rank that alone writes it; None when all ranks write it together.
    chunks : tuple of int, "contiguous" or "library"
        Chunk shape, no chunks, or whatever the library chooses by itself.
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
        What compresses inside of blosc.
    shuffle : {"none", "byte", "bit"}
        How elements are taken apart before they are compressed.
    growth : int
        Rows, along the first axis, that are appended after the array has been written; with any
        the axis is unlimited.
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

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """Element type in the store."""
        dtype = np.dtype(self.dtype)
        return dtype.newbyteorder(">") if self.byte_order == "big" else dtype

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
