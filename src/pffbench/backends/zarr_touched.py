"""What of a Zarr array's files a box lies in."""

from __future__ import annotations

import math
from dataclasses import replace

from pffbench.backends.chunkcache import Chunking
from pffbench.backends.stored import Touched, touched_chunks
from pffbench.parallel.decomposition import Box, Shape

#: Bytes of a chunk's entry in the index of a shard, and of the index's checksum (Zarr format 3,
#: codec ``sharding_indexed`` with its usual index codecs).
_ENTRY, _CHECKSUM = 16, 4


def touched(chunking: Chunking, shards: Shape | None, box: Box) -> Touched:
    """Tell what of an array a box lies in.

    Parameters
    ----------
    chunking : Chunking
        How the array is chunked.
    shards : tuple of int or None
        Shape of a shard, where a file holds more than a chunk.
    box : Box
        Part of the array.

    Returns
    -------
    Touched
        Chunks, with the indices of the shards that they are in.
    """
    if chunking.compressed:
        return touched_chunks(box, chunking.chunks, None)
    found = touched_chunks(box, chunking.chunks, chunking.chunk_bytes)
    if shards is None:
        return found
    entries = math.prod(shards) // math.prod(chunking.chunks)
    indices = touched_chunks(box, shards, _ENTRY * entries + _CHECKSUM)
    return replace(found, nbytes=(found.nbytes or 0) + (indices.nbytes or 0))
