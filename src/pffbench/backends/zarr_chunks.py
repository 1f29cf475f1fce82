"""How Zarr arrays are chunked and encoded: what zarr-python keeps, and what lies on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pffbench.backends.base import ArraySpec
from pffbench.backends.chunkcache import Chunking, StoredChunks
from pffbench.backends.zarr_files import DESCRIPTIONS, files_of


def chunking_of(array: Any) -> Chunking:
    """Tell how an array is chunked; zarr-python keeps no chunk from one call to the next."""
    return Chunking(
        shape=array.shape,
        chunks=array.chunks,
        itemsize=int(array.dtype.itemsize),
        compressed=bool(array.compressors or array.filters),
        cache=None,
    )


def chunks_on_disk(path: str, name: str) -> StoredChunks:
    """Count the chunks of an array and the bytes of the files that hold them."""
    held = [f for f in Path(path, name).rglob("*") if f.is_file() and f.name not in DESCRIPTIONS]
    in_a_file = files_of(path, name).chunks_in_a_file
    return StoredChunks(len(held) * in_a_file, sum(f.stat().st_size for f in held))


def encoding(zarr_format: int, spec: ArraySpec) -> dict[str, Any]:
    """Return what ``create_array`` is told of the type and its byte order in the store."""
    if spec.byte_order == "native":
        return {"dtype": spec.dtype}
    if zarr_format == 2:
        return {"dtype": spec.stored_dtype}
    from zarr.codecs import BytesCodec

    # In format 3 the byte order is not the type's, but that of a codec.
    return {"dtype": spec.dtype, "serializer": BytesCodec(endian="big")}
