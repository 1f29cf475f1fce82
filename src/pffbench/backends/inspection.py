"""Records on stored arrays: layout, stored bytes, and the bytes that a read touches."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from pffbench.geometry.box import Box, Shape
from pffbench.geometry.stretches import Stretches
from pffbench.units import Size


class ChunkCacheSettings(msgspec.Struct, frozen=True):
    """Settings of a dataset's chunk cache."""

    #: Bytes of chunks that it may hold; 0 switches it off.
    nbytes: int
    #: Length of its hash table; 0 switches it off.
    slots: int
    #: The setting ``w0``: 0 evicts the least recently used chunk, 1 only fully accessed chunks.
    preemption: float

    def __str__(self) -> str:
        return f"{Size(self.nbytes)} in {self.slots} slots, w0 {self.preemption:g}"


#: Chunk cache of every array with ``matched``: the default of HDF5 up to 1.14. Larger chunks bypass
#: it, as in libraries without a cache.
MATCHED_CHUNK_CACHE = ChunkCacheSettings(2**20, 521, 0.75)


class Chunking(msgspec.Struct, frozen=True):
    """Chunking of an array, and the cache that keeps chunks between calls.

    A compressed chunk always goes through the cache. One that is larger than the whole cache is
    read and decoded in each call that touches it.
    """

    #: Shape of a chunk.
    chunks: Shape
    #: Bytes of an element.
    itemsize: int
    #: Whether a chunk has to be decoded as a whole.
    compressed: bool
    #: The cache that keeps chunks between calls, or the bytes of a pool; None without one.
    cache: ChunkCacheSettings | Size | None
    #: Shape of a shard, where a file holds more than a chunk, and the bytes of its index.
    shards: Shape | None = None
    index_bytes: int = 0

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a decoded chunk."""
        return math.prod(self.chunks) * self.itemsize

    def touched(self, box: Box) -> Touched:
        """Return the chunks that hold a box, with the indices of the shards that they are in."""
        found = touched_chunks(box, self.chunks, None if self.compressed else self.chunk_bytes)
        if self.compressed or self.shards is None:
            return found
        indices = touched_chunks(box, self.shards, self.index_bytes)
        return replace(found, nbytes=(found.nbytes or 0) + (indices.nbytes or 0))


class StoredLayout(Protocol):
    """Where an array lies in files: a `Chunking`, or an `ArrayInFile`."""

    def touched(self, box: Box) -> Touched:
        """Return the parts of the file that hold a box."""


class StoredChunks(msgspec.Struct, frozen=True):
    """Size of an array's chunks on disk."""

    #: Number of chunks.
    count: int
    #: Bytes of all of them, as stored.
    nbytes: int


class StoredAs(msgspec.Struct, frozen=True):
    """Storage layout of an array, read from the file."""

    #: Chunk shape; None when contiguous or raw.
    chunks: Shape | None = None
    #: Compression as the file names it.
    codec: str = "none"
    #: Whether fill values are written: ``never``, ``always``, ``if set`` or ``raw``.
    fill: str = "raw"
    #: Further properties, such as the format version or the shard shape.
    more: dict[str, str] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        chunks = "contiguous" if self.chunks is None else "×".join(map(str, self.chunks))
        return f"{chunks}, {self.codec}, fill {self.fill}"


def codec_words(codec: str) -> str:
    """Return a codec of `StoredAs` in words: ``gzip 4 byte`` as ``gzip level 4, byte shuffle``."""
    codec = re.sub(r"(?<!filter) (\d+)\b", r" level \1", codec)
    return re.sub(r" (byte|bit|automatic)\b", r", \1 shuffle", codec)


class Touched(msgspec.Struct, frozen=True):
    """The parts of a file that hold a box, in whole units: pages of a contiguous array, or chunks.

    A library may move more (read-ahead, its own buffers) or less (elements picked out of a chunk,
    pages already in memory): this is the demand of the storage layout.
    """

    #: Unit of `count`.
    kind: Literal["runs", "chunks"]
    #: Runs of the file, or chunks, that hold the box.
    count: int
    #: Bytes of the pages or chunks; None where chunks are compressed.
    nbytes: int | None


def touched_chunks(box: Box, chunks: Shape, chunk_bytes: int | None) -> Touched:
    """Return the chunks that hold a box.

    Parameters
    ----------
    box : Box
        Part of the array.
    chunks : tuple of int
        Shape of a chunk; chunks at the edge of the array are stored whole.
    chunk_bytes : int or None
        Bytes of a stored chunk; None where they differ.
    """
    if box.size == 0:
        return Touched("chunks", 0, 0)
    if isinstance(box, Stretches):
        count = box.count_chunks(chunks)
    else:
        count = math.prod(map(len, _places_along(box, chunks)))
    return Touched("chunks", count, None if chunk_bytes is None else count * chunk_bytes)


def places(box: Box, grid: Shape) -> Iterator[Shape]:
    """Yield the places in a grid of chunks, or shards, that hold a box, in C order."""
    return itertools.product(*_places_along(box, grid))


def _places_along(box: Box, grid: Shape) -> list[Sequence[int]]:
    """Return the places along each axis; a stride longer than a chunk skips some."""
    found: list[Sequence[int]] = []
    for start, stop, n, step, length in zip(
        box.start, box.stop, box.shape, box.steps, grid, strict=True
    ):
        if step > length:
            found.append([(start + i * step) // length for i in range(n)])
        else:
            found.append(range(start // length, -(-stop // length)) if n else ())
    return found
