"""Inspection of stored arrays: layout, stored bytes, and the bytes that a read touches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from pffbench.parallel.decomposition import Box, Shape
from pffbench.parallel.stretches import Stretches

if TYPE_CHECKING:
    from pffbench.backends.chunk_cache_model import ChunkCacheSettings, StoredChunks


class StoredAs(msgspec.Struct, frozen=True):
    """Storage layout of an array, read from the file.

    Parameters
    ----------
    chunks : tuple of int or None
        Chunk shape; None when contiguous or raw.
    codec : str
        Compression as the file names it.
    fill : str
        Whether fill values are written: ``never``, ``always``, ``if set`` or ``raw``.
    more : dict
        Further properties, such as the format version or the shard shape.
    """

    chunks: Shape | None = None
    codec: str = "none"
    fill: str = "raw"
    more: dict[str, str] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        chunks = "contiguous" if self.chunks is None else "×".join(map(str, self.chunks))
        return f"{chunks}, {self.codec}, fill {self.fill}"


class Inspection:
    """Inspection of the closed stores of a backend: the second, optional part of its contract.

    It explains results, and is never timed. A method that a backend does not have knows nothing.
    """

    def describe(self, path: str) -> StoredAs:
        """Return the storage layout of the first array of a store; called by one rank."""
        return StoredAs()

    def default_chunk_cache(self) -> ChunkCacheSettings | None:
        """Return the linked library's default chunk cache of an array; None if it has none."""
        return None

    def stored_chunks(self, path: str, name: str) -> StoredChunks | None:
        """Return the size on disk of an array's chunks; called by one rank.

        None for an array without chunks.
        """
        return None

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks | None:
        """Return the size on disk of the chunks that hold a box; called by any rank.

        None for an array without chunks.
        """
        return None


class Touched(msgspec.Struct, frozen=True):
    """The parts of a file that hold a box, in whole units: pages of a contiguous array, or chunks.

    A library may move more (read-ahead, its own buffers) or less (elements picked out of a chunk,
    pages already in memory): this is the demand of the storage layout.

    Parameters
    ----------
    kind : {"runs", "chunks"}
        Unit of `count`.
    count : int
        Runs of the file, or chunks, that hold the box.
    nbytes : int or None
        Bytes of the pages or chunks; None where chunks are compressed.
    """

    kind: Literal["runs", "chunks"]
    count: int
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
