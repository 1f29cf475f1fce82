"""An open directory of arrays: how they are made, and how data move through TensorStore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pffbench.backends.base import ArraySpec, Buffer, Call
from pffbench.backends.chunkcache import Chunking
from pffbench.backends.directory_store import DirectoryArray, DirectoryStore
from pffbench.backends.tensorstore_spec import DRIVERS, codecs_of, creation
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.tensorstore import TensorStoreOptions


class TensorStoreArray(DirectoryArray):
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

    @property
    def shards(self) -> Shape | None:
        return self._store.options.shards

    def chunking(self, collective: bool) -> Chunking:
        codecs, _ = codecs_of(self._array.spec().to_json()["metadata"])
        return Chunking(
            shape=tuple(self._array.shape),
            chunks=tuple(self._array.chunk_layout.read_chunk.shape),
            itemsize=int(self._array.dtype.numpy_dtype.itemsize),
            compressed=bool(codecs),
            cache=None,
            foreseeable=not self._store.options.cache_pool,
        )


class TensorStoreStore(DirectoryStore):
    """A directory of arrays.

    Parameters
    ----------
    opener : callable
        Opens an array by its specification; TensorStore's ``open`` with the store's context.
    options : TensorStoreOptions
        How arrays are made.
    path, comm, more
        As of `DirectoryStore`.
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

    def create_array(self, spec: ArraySpec) -> Any:
        metadata = creation(self.zarr_format, self.options.shards, spec)
        return self._opened(spec.name, metadata=metadata, create=True)

    def open_array(self, spec: ArraySpec) -> Any:
        return self._opened(spec.name, open=True)

    def _opened(self, name: str, **told: Any) -> Any:
        wanted = {
            "driver": DRIVERS[self.zarr_format],
            "kvstore": {"driver": "file", "path": f"{self.path}/{name}"},
            "store_data_equal_to_fill_value": self.empty_chunks,
            **told,
        }
        return self._open(wanted).result()
