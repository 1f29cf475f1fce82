"""An open directory of arrays: how they are made, and how data move through TensorStore."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pffbench.backends.base import Array, ArraySpec, Buffer, Call, Store, Touched
from pffbench.backends.chunkcache import Chunking
from pffbench.backends.stored import touched_chunks
from pffbench.backends.tensorstore_spec import DRIVERS, GROUP_FILES, codecs_of, creation
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.tensorstore import TensorStoreOptions


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
