"""Zarr directory stores through TensorStore, formats 2 and 3."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pffbench.backends.base import Store
from pffbench.backends.sharing import made_by_root
from pffbench.backends.tensorstore_spec import GROUP_FILES
from pffbench.backends.tensorstore_store import TensorStoreStore
from pffbench.backends.zarr_directory import FormatOptions, ZarrDirectory
from pffbench.case import Options, Settings
from pffbench.units import CacheSize, Size

if TYPE_CHECKING:
    from mpi4py import MPI

Threads = Annotated[int, msgspec.Meta(ge=1, le=4096)]


class TensorStoreOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of TensorStore; every default is what the library does by itself.

    Beside `format` and `shards`:

    Parameters
    ----------
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

    threads: Threads | None = None
    io_threads: Threads | None = None
    file_io_sync: bool | None = None
    cache_pool: CacheSize | None = None
    write_empty_chunks: bool | None = None


class TensorStore(ZarrDirectory):
    """Arrays in a directory; a chunk or a shard is a file."""

    name = "tensorstore"
    summary = "Zarr directory store through TensorStore (no MPI inside)"
    libraries = ("tensorstore",)
    options_type = TensorStoreOptions

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import tensorstore

        assert isinstance(options, TensorStoreOptions)
        self._library = tensorstore
        self._context = _context(options, settings)
        empty = options.write_empty_chunks
        self._empty_chunks = settings == "matched" if empty is None else empty

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 make the directory, and the file that makes it a group for others."""
        assert isinstance(self.options, TensorStoreOptions)
        name, told = GROUP_FILES[self.options.format]

        def make() -> None:
            os.mkdir(path)
            with open(os.path.join(path, name), "x", encoding="utf-8") as file:
                json.dump(told, file)

        made_by_root(comm, make, lambda: None)
        return self._store(path, comm, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Begin with nothing in memory: there is no file to open but those of the arrays."""
        return self._store(path, comm)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, comm)

    def _store(self, path: str, comm: MPI.Intracomm | None, *, created: bool = False) -> Store:
        assert isinstance(self.options, TensorStoreOptions)
        # A context of its own, so that a store knows nothing of what another one has read.
        opener = partial(self._library.open, context=self._library.Context(self._context))
        empty = self._empty_chunks
        return TensorStoreStore(
            opener, self.options, path, comm, created=created, empty_chunks=empty
        )

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
