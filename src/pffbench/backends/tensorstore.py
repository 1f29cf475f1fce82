"""Zarr directory stores through TensorStore, formats 2 and 3."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from pffbench.backends.base import (
    Array,
    ArraySpec,
    Backend,
    Buffer,
    Call,
    Capabilities,
    Cuts,
    Store,
    StoredAs,
    Touched,
)
from pffbench.backends.chunkcache import Chunking, StoredChunks
from pffbench.backends.stored import touched_chunks
from pffbench.backends.stored_parts import part_of_zarr
from pffbench.backends.tensorstore_spec import DRIVERS, GROUP_FILES, codecs_of, creation
from pffbench.backends.zarr_chunks import chunks_on_disk
from pffbench.backends.zarr_codecs import CODECS, COMPRESSORS, SHUFFLES, configured_name
from pffbench.backends.zarr_rules import refuse_chunks
from pffbench.case import ChunkShape, Options, Parameters, Settings
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box, Shape
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


class TensorStoreStore(Store):
    """A directory of arrays. TensorStore knows no MPI: ranks keep apart by their chunks."""

    def __init__(
        self,
        library: Any,
        context: Any,
        opening: Mapping[str, Any],
        path: str,
        comm: MPI.Intracomm | None,
        options: TensorStoreOptions,
        created: bool,
    ) -> None:
        self._library = library
        self._context = context
        self._opening = opening
        self._path = path
        self._comm = comm
        self._options = options
        self._metadata_files: set[str] = set()
        self._chunk_files: set[str] = set()
        if created and self._is_root:
            self._metadata_files.add(os.path.join(path, GROUP_FILES[options.format][0]))

    @property
    def _is_root(self) -> bool:
        return self._comm is None or self._comm.rank == 0

    def files(self) -> set[str]:
        written = self._chunk_files
        if not self._opening["store_data_equal_to_fill_value"]:
            written = {file for file in written if os.path.exists(file)}
        return self._metadata_files | written

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Let owners create their arrays and rank 0 those that all ranks write; then open these."""
        if self._comm is None or all(spec.owner is not None for spec in specs):
            return self._create_mine(specs)
        found = together(self._comm, partial(self._create_mine, specs))
        found.update(self.arrays(s for s in specs if s.name not in found and s.owner is None))
        return found

    def _create_mine(self, specs: Sequence[ArraySpec]) -> dict[str, Array]:
        rank = None if self._comm is None else self._comm.rank
        found: dict[str, Array] = {}
        for spec in specs:
            if self._is_root if rank is None or spec.owner is None else spec.owner == rank:
                metadata = creation(self._options.format, self._options.shards, spec)
                found[spec.name] = self._array(spec, metadata=metadata, create=True)
                self._metadata_files.add(self._description(spec))
        return found

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: self._array(spec, open=True) for spec in specs}

    def _array(self, spec: ArraySpec, **told: Any) -> Array:
        directory = os.path.join(self._path, spec.name)
        wanted = {
            "driver": DRIVERS[self._options.format],
            "kvstore": {"driver": "file", "path": directory},
            **self._opening,
            **told,
        }

        def look_up() -> Any:
            return self._library.open(wanted, context=self._context).result()

        array = look_up()
        if spec.growth and (spec.owner is not None or self._is_root):
            self._metadata_files.add(self._description(spec))
        key = "{}" if self._options.format == 2 else "c/{}"
        separator = "." if self._options.format == 2 else "/"
        names = partial(_chunk_file, os.path.join(directory, key), separator)
        kept = bool(self._options.cache_pool)
        shared = None if spec.owner is not None else self._comm
        return TensorStoreArray(
            self._library, array, look_up, names, self._chunk_files, kept, shared
        )

    def _description(self, spec: ArraySpec) -> str:
        """Return the file that describes an array; it is written anew when the array grows."""
        name = ".zarray" if self._options.format == 2 else "zarr.json"
        return os.path.join(self._path, spec.name, name)

    def flush(self) -> None:
        """Do nothing: TensorStore keeps no data back after a write has ended."""

    def close(self) -> None:
        """Do nothing: a directory store holds no open file."""


def _chunk_file(pattern: str, separator: str, place: Shape) -> str:
    return pattern.format(separator.join(map(str, place)))


class TensorStoreArray(Array):
    """An array; each call moves one box and waits until it has been moved."""

    def __init__(
        self,
        library: Any,
        array: Any,
        look_up: Callable[[], Any],
        chunk_file: Any,
        written: set[str],
        keeps_chunks: bool,
        comm: MPI.Intracomm | None,
    ) -> None:
        self._library = library
        self._array = array
        self._look_up = look_up
        self._chunk_file = chunk_file
        self._written = written
        self._keeps_chunks = keeps_chunks
        self._comm = comm  # the ranks that write it together

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return _nothing
        self._written.update(self._files(box))
        write = self._array[box.slices].write

        def call() -> None:
            # The buffer stays as it is until the call has ended, so it need not be copied.
            write(buffer, can_reference_source_data_indefinitely=True).result()

        return call

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return lambda: out
        part = self._array[box.slices]
        target = self._library.array(out)

        def call() -> Buffer:
            target.write(part).result()
            return out

        return call

    def extender(self, length: int) -> Call:
        shape = (length, *self._array.shape[1:])
        if self._comm is None:
            return partial(self._resize, shape)
        return partial(self._resize_together, self._comm, shape)

    def _resize(self, shape: Shape) -> None:
        self._array = self._array.resize(exclusive_max=shape, expand_only=True).result()

    def _resize_together(self, comm: MPI.Intracomm, shape: Shape) -> None:
        """Let rank 0 write the new shape; the others read it."""
        is_root = comm.rank == 0
        together(comm, partial(self._resize, shape) if is_root else _nothing)
        if not is_root:
            self._array = self._look_up()

    def touched(self, box: Box) -> Touched:
        found = self.chunking(False)
        return touched_chunks(box, found.chunks, None if found.compressed else found.chunk_bytes)

    def chunking(self, collective: bool) -> Chunking:
        codecs, _ = codecs_of(self._array.spec().to_json()["metadata"])
        return Chunking(
            shape=tuple(self._array.shape),
            chunks=tuple(self._array.chunk_layout.read_chunk.shape),
            itemsize=int(self._array.dtype.numpy_dtype.itemsize),
            compressed=bool(codecs),
            cache=None,
            foreseeable=not self._keeps_chunks,
        )

    def _files(self, box: Box) -> Iterator[str]:
        grid = self._array.chunk_layout.write_chunk.shape
        ranges = [
            range(a // c, -(-b // c)) for a, b, c in zip(box.start, box.stop, grid, strict=True)
        ]
        for place in itertools.product(*ranges):
            yield self._chunk_file(place)


def _nothing() -> None:
    """Move nothing: an empty box touches no chunk."""
