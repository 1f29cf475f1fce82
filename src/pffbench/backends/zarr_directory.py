"""What is the same of all libraries that write Zarr directories: their rules, and what they leave.

What lies on disk is read from the metadata there, without any of the libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pffbench.backends.base import ArraySpec, Backend, Capabilities, Cuts, StoredAs
from pffbench.backends.chunkcache import StoredChunks
from pffbench.backends.stored_parts import part_of_zarr
from pffbench.backends.tensorstore_spec import codecs_of
from pffbench.backends.zarr_chunks import chunks_on_disk
from pffbench.backends.zarr_codecs import CODECS, COMPRESSORS, SHUFFLES, configured_name
from pffbench.backends.zarr_files import files_of, metadata_of
from pffbench.backends.zarr_rules import refuse_chunks
from pffbench.case import ChunkShape, Options, Parameters
from pffbench.parallel.decomposition import Box


class FormatOptions(Options, frozen=True, kw_only=True):
    """Options of the format.

    Parameters
    ----------
    format : {3, 2}
        Version of the Zarr format.
    shards : list of int, optional
        Shard shape (format 3): one file holds the chunks of a shard.
    """

    format: Literal[3, 2] = 3
    shards: ChunkShape | None = None


class ZarrDirectory(Backend):
    """Arrays of a group in a directory; a chunk or a shard is a file."""

    suffix = ".zarr"
    capabilities = Capabilities(
        transfers=frozenset({"independent"}),
        codecs=CODECS,
        shuffles=SHUFFLES,
        compressors=COMPRESSORS,
        changes=True,
    )
    file_per_chunk = True

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        if isinstance(options, FormatOptions):
            return refuse_chunks(options.format, options.shards, specs, cuts)
        return refuse_chunks(2, None, specs, cuts)

    def describe(self, path: str) -> StoredAs:
        name = next(entry.name for entry in Path(path).iterdir() if entry.is_dir())
        metadata, files = metadata_of(path, name), files_of(path, name)
        more = {"format": str(metadata["zarr_format"])}
        codecs, inside = codecs_of(metadata)
        if inside is not None:
            more["shards"] = "×".join(map(str, files.grid))
        named = ", ".join(configured_name(*codec) for codec in codecs) or "none"
        return StoredAs(chunks=files.chunks, codec=named, fill="never", more=more)

    def stored_chunks(self, path: str, name: str) -> StoredChunks:
        return chunks_on_disk(path, name)

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks:
        return part_of_zarr(path, name, box)
