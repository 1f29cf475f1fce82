"""What of a Zarr array's files a box lies in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from pffbench.backends.stored import Touched, touched_chunks
from pffbench.parallel.decomposition import Box

#: Bytes of a chunk's entry in the index of a shard, and of the index's checksum (Zarr format 3,
#: codec ``sharding_indexed`` with its usual index codecs).
_ENTRY, _CHECKSUM = 16, 4


def touched(array: Any, box: Box) -> Touched:
    """Tell what of an array a box lies in.

    Parameters
    ----------
    array : zarr.Array
        An open array.
    box : Box
        Part of it.

    Returns
    -------
    Touched
        Chunks, with the indices of the shards that they are in.
    """
    if array.compressors or array.filters:
        return touched_chunks(box, array.chunks, None)
    found = touched_chunks(box, array.chunks, math.prod(array.chunks) * array.dtype.itemsize)
    if array.shards is None:
        return found
    entries = math.prod(array.shards) // math.prod(array.chunks)
    indices = touched_chunks(box, array.shards, _ENTRY * entries + _CHECKSUM)
    return replace(found, nbytes=(found.nbytes or 0) + (indices.nbytes or 0))
