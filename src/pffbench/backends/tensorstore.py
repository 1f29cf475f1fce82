"""Zarr directory stores through TensorStore, formats 2 and 3."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from pffbench.backends.base import (
    ArraySpec,
    Backend,
    Capabilities,
    Cuts,
    Store,
    StoredAs,
)
from pffbench.backends.chunkcache import StoredChunks
from pffbench.backends.stored_parts import part_of_zarr
from pffbench.backends.tensorstore_spec import GROUP_FILES, codecs_of
from pffbench.backends.tensorstore_store import TensorStoreStore
from pffbench.backends.zarr_chunks import chunks_on_disk
from pffbench.backends.zarr_codecs import CODECS, COMPRESSORS, SHUFFLES, configured_name
from pffbench.backends.zarr_rules import refuse_chunks
from pffbench.case import ChunkShape, Options, Parameters, Settings
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box
from pffbench.units import Size

if TYPE_CHECKING:
    from mpi4py import MPI

Threads = Annotated[int, msgspec.Meta(ge=1)]


class TensorStoreOptions(Options, frozen=True, kw_only=True):
    """Options of TensorStore; every default is what the library does by itself.

    Parameters
    ----------
    format : {3, 2}
        Version of the Zarr format.
    shards : list of int, optional
        Shard shape (format 3): one file holds the chunks of a shard.
    threads : int, optional
        Threads that encode and decode (``data_copy_concurrency``). The library's default is one
        for each core; ``matched`` gives a rank one.
    io_threads : int, optional
        Threads that read and write files (``file_io_concurrency``). The library's default is one
        for each core and four at least; ``matched`` gives a rank one.
    file_io_sync : bool, optional
        Whether each file is synced as it is written. The library's default is yes; ``matched``
        leaves it to the phase sync, which does it for all backends alike.
    cache_pool : Size, optional
        Bytes of decoded chunks that are kept between calls (``cache_pool``). The library's default
        is none; with more, it still looks at each call whether the file has changed.
    write_empty_chunks : bool, optional
        Whether chunks that hold nothing but the fill value are written. The library's default
        is no; ``matched`` writes them.
    """

    format: Literal[3, 2] = 3
    shards: ChunkShape | None = None
    threads: Threads | None = None
    io_threads: Threads | None = None
    file_io_sync: bool | None = None
    cache_pool: Size | None = None
    write_empty_chunks: bool | None = None


class TensorStore(Backend):
    """Arrays in a directory; a chunk or a shard is a file."""

    name = "tensorstore"
    summary = "Zarr directory store through TensorStore (no MPI inside)"
    suffix = ".zarr"
    libraries = ("tensorstore",)
    capabilities = Capabilities(
        transfers=frozenset({"independent"}),
        codecs=CODECS,
        shuffles=SHUFFLES,
        compressors=COMPRESSORS,
        changes=True,
    )
    options_type = TensorStoreOptions
    file_per_chunk = True

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import tensorstore

        assert isinstance(options, TensorStoreOptions)
        self._library = tensorstore
        self._context = _context(options, settings)
        empty = options.write_empty_chunks
        self._empty_chunks = settings == "matched" if empty is None else empty

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        assert isinstance(options, TensorStoreOptions)
        return refuse_chunks(options.format, options.shards, specs, cuts)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 make the directory, and the file that makes it a group for others."""
        assert isinstance(self.options, TensorStoreOptions)
        name, told = GROUP_FILES[self.options.format]

        def make() -> None:
            if comm is None or comm.rank == 0:
                os.mkdir(path)
                with open(os.path.join(path, name), "x", encoding="utf-8") as file:
                    json.dump(told, file)

        make() if comm is None else together(comm, make)
        return self._store(path, comm, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Begin with nothing in memory: there is no file to open but those of the arrays."""
        return self._store(path, comm, created=False)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, comm, created=False)

    def _store(self, path: str, comm: MPI.Intracomm | None, *, created: bool) -> Store:
        assert isinstance(self.options, TensorStoreOptions)
        # A context of its own, so that a store knows nothing of what another one has read.
        context = self._library.Context(self._context)
        opening = {"store_data_equal_to_fill_value": self._empty_chunks}
        return TensorStoreStore(self._library, context, opening, path, comm, self.options, created)

    def describe(self, path: str) -> StoredAs:
        assert isinstance(self.options, TensorStoreOptions)
        name = next(entry.name for entry in os.scandir(path) if entry.is_dir())
        metadata_file = ".zarray" if self.options.format == 2 else "zarr.json"
        with open(os.path.join(path, name, metadata_file), encoding="utf-8") as file:
            metadata = json.load(file)
        grid = metadata.get("chunks") or metadata["chunk_grid"]["configuration"]["chunk_shape"]
        codecs, inner = codecs_of(metadata)
        more = {"format": str(metadata["zarr_format"])}
        if inner is not None:
            more["shards"] = "×".join(map(str, grid))
        named = ", ".join(configured_name(*codec) for codec in codecs) or "none"
        return StoredAs(chunks=tuple(inner or grid), codec=named, fill="never", more=more)

    def stored_chunks(self, path: str, name: str) -> StoredChunks:
        return chunks_on_disk(path, name)

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks:
        return part_of_zarr(path, name, box)

    def notes(self) -> tuple[str, ...]:
        threads, io_threads = (
            self._context.get(name, {}).get("limit", "the library's default")
            for name in ("data_copy_concurrency", "file_io_concurrency")
        )
        synced = self._context.get("file_io_sync", True)
        kept = self._context.get("cache_pool", {}).get("total_bytes_limit", 0)
        return (
            "no library flush: a write ends when its files are there",
            f"threads that encode and decode: {threads}; that read and write files: {io_threads}",
            f"each file synced as it is written: {'yes' if synced else 'no'}",
            f"decoded chunks kept: {Size(kept)}"
            if kept
            else "no cache: every call decodes the chunks that it touches",
        )


def _context(options: TensorStoreOptions, settings: Settings) -> dict[str, Any]:
    """Return the resources that differ from the library's own."""
    one = 1 if settings == "matched" else None
    limits = {
        "data_copy_concurrency": options.threads or one,
        "file_io_concurrency": options.io_threads or one,
    }
    told: dict[str, Any] = {name: {"limit": n} for name, n in limits.items() if n is not None}
    sync = False if options.file_io_sync is None and settings == "matched" else options.file_io_sync
    if sync is not None:
        told["file_io_sync"] = sync
    if options.cache_pool:
        told["cache_pool"] = {"total_bytes_limit": int(options.cache_pool)}
    return told
