"""What HDF5 and netCDF-4 files have in common about chunks: rules, sizes on disk, `h5repack`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pffbench.backends.base import ArraySpec
from pffbench.backends.chunkcache import ChunkCache, Chunking, StoredChunks
from pffbench.case import Parameters
from pffbench.parallel.decomposition import Shape
from pffbench.units import Size

#: A chunk must be smaller than 4 GiB: its size is kept in 32 bits (HDF5 file format).
CHUNK_LIMIT = 2**32 - 1
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def refuse_chunks(parameters: Parameters, specs: Sequence[ArraySpec]) -> str | None:
    """Say which of HDF5's rules for chunks and filters a case breaks, or None."""
    shared = parameters.layout != "file_per_process"
    for spec in specs:
        compressed = spec.codec not in ("none", "library")
        if compressed and shared and parameters.transfer == "independent":
            return "compressed data go into a shared HDF5 file only with transfer: collective"
        if compressed and shared and spec.byte_order != "native":
            return (
                "HDF5 gives up collective transfer where it converts types, and compressed data go "
                "into a shared file only by it; byte_order: big needs layout: file_per_process"
            )
        if spec.growth and spec.chunks == "contiguous":
            return "HDF5 appends to chunked data only; name a chunk shape instead of contiguous"
        if compressed and spec.chunks == "contiguous":
            return "HDF5 compresses chunked data only; name a chunk shape instead of contiguous"
        if isinstance(spec.chunks, tuple):
            size = math.prod(spec.chunks) * spec.itemsize
            if size > CHUNK_LIMIT:
                legal = list(_smaller(spec.chunks, spec.itemsize))
                return (
                    f"an HDF5 chunk must be smaller than 4 GiB, {list(spec.chunks)} is "
                    f"{Size(size)}; a legal chunk shape is {legal}"
                )
    return None


def _smaller(chunks: Shape, itemsize: int) -> Shape:
    """Halve the longest axis of a chunk until it is small enough."""
    while math.prod(chunks) * itemsize > CHUNK_LIMIT:
        longest = chunks.index(max(chunks))
        chunks = tuple(-(-n // 2) if i == longest else n for i, n in enumerate(chunks))
    return chunks


def superblock_version(path: str) -> str:
    """Return the version of a file's superblock, which follows the signature of the format."""
    with open(path, "rb") as file:
        head = file.read(len(_SIGNATURE) + 1)
    return str(head[-1]) if head.startswith(_SIGNATURE) else "unknown"


def chunking_of(dataset: Any, *, cached: bool) -> Chunking | None:
    """Tell how a dataset is chunked, with the cache that it really has.

    Parameters
    ----------
    dataset : h5py.h5d.DatasetID
        An open dataset.
    cached : bool
        Whether the calls went through the chunk cache.
    """
    from h5py import h5d

    creation = dataset.get_create_plist()
    if creation.get_layout() != h5d.CHUNKED:
        return None
    slots, nbytes, preemption = dataset.get_access_plist().get_chunk_cache()
    return Chunking(
        shape=dataset.shape,
        chunks=creation.get_chunk(),
        itemsize=int(dataset.dtype.itemsize),
        compressed=creation.get_nfilters() > 0,
        cache=ChunkCache(nbytes, slots, preemption) if cached else None,
    )


def chunks_on_disk(path: str, name: str) -> StoredChunks | None:
    """Look up what the chunks of a dataset take in a closed file."""
    import h5py

    with h5py.File(path, "r") as file:
        dataset = file[name]
        if dataset.chunks is None:
            return None
        return StoredChunks(dataset.id.get_num_chunks(), dataset.id.get_storage_size())


def h5repack(source: str, target: str, specs: Sequence[ArraySpec]) -> list[str]:
    """Return the command that rewrites a file with the datasets' new chunks and compression.

    Datasets that become alike are named together, as in a command that a person writes; those
    that are not named are copied as they are.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for spec in specs:
        assert isinstance(spec.chunks, tuple)
        chunks = "x".join(map(str, spec.chunks))
        codec = f"GZIP={spec.level}" if spec.codec == "gzip" else "NONE"
        alike.setdefault((chunks, codec), []).append(spec.name)
    told: list[str] = []
    for (chunks, codec), names in alike.items():
        together = ",".join(names)
        told += ["-l", f"{together}:CHUNK={chunks}", "-f", f"{together}:{codec}"]
    return ["h5repack", *told, source, target]
