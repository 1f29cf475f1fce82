"""Zarr through TensorStore, formats 2 and 3.

https://google.github.io/tensorstore/driver/zarr/ and https://google.github.io/tensorstore/driver/zarr3/
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Buffer, Call, Store
from pffbench.backends.directory import create_on_root, do_nothing
from pffbench.backends.inspection import Chunking
from pffbench.backends.zarr.format import BLOSC_SHUFFLES, Json, codecs_of, index_bytes
from pffbench.backends.zarr.store import (
    FormatOptions,
    GroupStore,
    GrowingArray,
    ZarrDirectory,
)
from pffbench.case import Settings
from pffbench.geometry.box import Box, Shape
from pffbench.units import CacheSize, Size

if TYPE_CHECKING:
    from mpi4py import MPI


#: TensorStore's limits on its threads.
_POOLS = ("data_copy_concurrency", "file_io_concurrency")


class TensorStoreOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of TensorStore; every default is the library's own."""

    #: Threads that encode and decode (``data_copy_concurrency``), and equally many that read and
    #: write files (``file_io_concurrency``). The library's default is one per core, and at least
    #: four for files. With ``matched`` each rank has one of each.
    threads: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    #: Whether each file is synced when it is written. The library's default is yes. With
    #: ``matched`` the phase sync does it, as for all backends.
    file_io_sync: bool | None = None
    #: Bytes of decoded chunks that are kept between calls (``cache_pool``). The library's default
    #: is none. With more, it still checks at each call whether the file has changed.
    cache_pool: CacheSize | None = None
    #: Whether chunks that contain only the fill value are written. The library's default is no.
    #: ``matched`` writes them.
    write_empty_chunks: bool | None = None


class TensorStore(ZarrDirectory[TensorStoreOptions]):
    """Arrays in a directory; a chunk or a shard is a file."""

    name = "tensorstore"
    title = "Zarr (TensorStore)"
    summary = "Zarr directory store through TensorStore (no MPI inside)"
    libraries = ("tensorstore",)
    # The library opens arrays and no attributes of them.
    capabilities = replace(ZarrDirectory.capabilities, attributes=False)

    def __init__(self, options: TensorStoreOptions, settings: Settings) -> None:
        super().__init__(options, settings)
        import tensorstore

        self._library = tensorstore
        self._context = _context(options, settings)
        empty = options.write_empty_chunks
        self._empty_chunks = settings == "matched" if empty is None else empty
        self.notes = _notes(self._context)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 create the directory and the file that marks it as a group."""
        name, told = GROUP_FILES[self.options.format]

        def make() -> None:
            os.mkdir(path)
            with open(os.path.join(path, name), "x", encoding="utf-8") as file:
                json.dump(told, file)

        create_on_root(comm, make, do_nothing)
        return self._store(path, comm, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Begin with empty caches; only the files of the arrays are opened."""
        return self._store(path, comm)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, comm)

    def _store(self, path: str, comm: MPI.Intracomm | None, *, created: bool = False) -> Store:
        # A context of its own, so that a store shares no cache with another one.
        opener = partial(self._library.open, context=self._library.Context(self._context))
        empty = self._empty_chunks
        return TensorStoreStore(
            opener, self.options, path, comm, created=created, empty_chunks=empty
        )


def _notes(context: dict[str, Any]) -> tuple[str, ...]:
    threads = context.get(_POOLS[0], {}).get("limit", "the library's default")
    synced = context.get("file_io_sync", True)
    kept = context.get("cache_pool", {}).get("total_bytes_limit", 0)
    return (
        "no library flush: a write ends when its files are there",
        f"threads that encode and decode, and that read and write files: {threads}",
        f"each file synced as it is written: {'yes' if synced else 'no'}",
        f"decoded chunks kept: {Size(kept)}"
        if kept
        else "no cache: every call decodes the chunks that it touches",
    )


def _context(options: TensorStoreOptions, settings: Settings) -> dict[str, Any]:
    """Return the resources that differ from the library's own."""
    threads = options.threads or (1 if settings == "matched" else None)
    told: dict[str, Any] = {}
    if threads is not None:
        told = {name: {"limit": threads} for name in _POOLS}
    sync = False if options.file_io_sync is None and settings == "matched" else options.file_io_sync
    if sync is not None:
        told["file_io_sync"] = sync
    if options.cache_pool:
        told["cache_pool"] = {"total_bytes_limit": int(options.cache_pool)}
    return told


#: Driver of each version of the format.
DRIVERS = {2: "zarr", 3: "zarr3"}
#: Files that mark a directory as a group, which TensorStore does not create.
GROUP_FILES = {
    2: (".zgroup", {"zarr_format": 2}),
    3: ("zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {}}),
}


def creation(zarr_format: int, shards: Shape | None, spec: ArraySpec) -> Json:
    """Return the metadata of a new array; settings that are not given are left out."""
    if zarr_format == 2:
        return _format_2(spec)
    return _format_3(shards, spec)


def _format_2(spec: ArraySpec) -> Json:
    metadata: Json = {"shape": list(spec.shape), "dtype": spec.stored_dtype.str, "fill_value": 0}
    if isinstance(spec.chunks, tuple):
        metadata["chunks"] = list(spec.chunks)
    if spec.codec != "library":
        metadata["compressor"] = _compressor_2(spec)
    return metadata


def _compressor_2(spec: ArraySpec) -> Json | None:
    if spec.codec == "none":
        return None
    if spec.codec != "blosc":
        return {"id": spec.codec, "level": spec.level}
    return {
        "id": "blosc",
        "cname": spec.compressor,
        "clevel": spec.level,
        "shuffle": list(BLOSC_SHUFFLES).index(spec.shuffle),
    }


def _format_3(shards: Shape | None, spec: ArraySpec) -> Json:
    metadata: Json = {"shape": list(spec.shape), "data_type": spec.dtype, "fill_value": 0}
    if isinstance(spec.chunks, tuple):
        metadata["chunk_grid"] = _grid(shards or spec.chunks)
    if spec.codec == "library" and shards is None and spec.byte_order == "native":
        return metadata
    codecs = [{"name": "bytes", "configuration": {"endian": _endian(spec)}}, *_compressors_3(spec)]
    if shards is not None:
        assert isinstance(spec.chunks, tuple)
        inside = {"chunk_shape": list(spec.chunks), "codecs": codecs}
        codecs = [{"name": "sharding_indexed", "configuration": inside}]
    metadata["codecs"] = codecs
    return metadata


def _grid(shape: Shape) -> Json:
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def _endian(spec: ArraySpec) -> str:
    return "big" if spec.stored_dtype.str.startswith(">") else "little"


def _compressors_3(spec: ArraySpec) -> list[Json]:
    if spec.codec in ("none", "library"):
        return []
    configuration: Json = {"level": spec.level}
    if spec.codec == "blosc":
        configuration = {
            "cname": spec.compressor,
            "clevel": spec.level,
            "shuffle": BLOSC_SHUFFLES[spec.shuffle],
            "typesize": spec.itemsize,
        }
    return [{"name": spec.codec, "configuration": configuration}]


class TensorStoreArray(GrowingArray):
    """An array; each call moves one box and waits until it has been moved."""

    _store: TensorStoreStore

    def write_call(self, box: Box, buffer: Buffer) -> Call:
        write = self._array[box.slices].write

        def call() -> None:
            # The buffer stays as it is until the call has ended, so it need not be copied.
            write(buffer, can_reference_source_data_indefinitely=True).result()

        return call

    def read_call(self, box: Box, out: Buffer) -> Call:
        import tensorstore

        part, target = self._array[box.slices], tensorstore.array(out)

        def call() -> None:
            target.write(part).result()

        return call

    def resize(self, shape: Shape) -> Any:
        return self._array.resize(exclusive_max=shape, expand_only=True).result()

    @property
    def grid(self) -> Shape:
        return tuple(self._array.chunk_layout.write_chunk.shape)

    def layout(self, collective: bool) -> Chunking:
        codecs, _ = codecs_of(self._array.spec().to_json()["metadata"])
        chunks = tuple(self._array.chunk_layout.read_chunk.shape)
        shards = self._store.options.shards
        return Chunking(
            chunks=chunks,
            itemsize=int(self._array.dtype.numpy_dtype.itemsize),
            compressed=bool(codecs),
            cache=self._store.options.cache_pool or None,
            shards=shards,
            index_bytes=index_bytes(shards, chunks),
        )


class TensorStoreStore(GroupStore):
    """A directory of arrays.

    Parameters
    ----------
    opener : callable
        Opens an array by its specification; TensorStore's ``open`` with the store's context.
    options : TensorStoreOptions
        How arrays are made.
    path, comm, more
        As of `GroupStore`.
    """

    array_type = TensorStoreArray

    def __init__(
        self,
        opener: Callable[[Mapping[str, Any]], Any],
        options: TensorStoreOptions,
        path: str,
        comm: MPI.Intracomm | None,
        **more: bool,
    ) -> None:
        super().__init__(path, comm, zarr_format=options.format, **more)
        self.options = options
        self._open = opener

    def create_array(self, spec: ArraySpec) -> Call:
        metadata = creation(self.zarr_format, self.options.shards, spec)
        return self._opener(spec.name, metadata=metadata, create=True)

    def open_array(self, spec: ArraySpec) -> Call:
        return self._opener(spec.name, open=True)

    def _opener(self, name: str, **told: Any) -> Call:
        wanted = {
            "driver": DRIVERS[self.zarr_format],
            "kvstore": {"driver": "file", "path": f"{self.path}/{name}"},
            "store_data_equal_to_fill_value": self.empty_chunks,
            **told,
        }

        def call() -> Any:
            return self._open(wanted).result()

        return call
