"""An open Zarr group: how its arrays are made, and how data move through zarr-python 3."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pffbench.backends.base import ArraySpec, Buffer, Call
from pffbench.backends.chunkcache import Chunking
from pffbench.backends.directory_store import DirectoryArray, DirectoryStore
from pffbench.backends.zarr_chunks import chunking_of, encoding
from pffbench.backends.zarr_codecs import compressor
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.zarr_options import ZarrOptions


class ZarrArray(DirectoryArray):
    """A Zarr array, moved through zarr-python."""

    def write_call(self, box: Box, buffer: Buffer) -> Call:
        return partial(self._array.set_basic_selection, box.slices, buffer)

    def read_call(self, box: Box, out: Buffer) -> Call:
        from zarr.buffer.cpu import NDBuffer

        target = NDBuffer.from_numpy_array(out)
        return partial(self._array.get_basic_selection, box.slices, out=target)

    def resize(self, shape: Shape) -> Any:
        self._array.resize(shape)
        return self._array

    @property
    def grid(self) -> Shape:
        found: Shape = self._array.shards or self._array.chunks
        return found

    @property
    def shards(self) -> Shape | None:
        found: Shape | None = self._array.shards
        return found

    def chunking(self, collective: bool) -> Chunking:
        return chunking_of(self._array)


class ZarrStore(DirectoryStore):
    """A group in a directory.

    Parameters
    ----------
    group : zarr.Group
        The open group.
    options : ZarrOptions
        How arrays are made.
    path, comm, more
        As of `DirectoryStore`.
    """

    array_type = ZarrArray

    def __init__(
        self,
        group: Any,
        options: ZarrOptions,
        path: str,
        comm: MPI.Intracomm | None,
        **more: bool,
    ) -> None:
        super().__init__(path, comm, zarr_format=options.format, **more)
        self._group = group
        self._options = options

    def create_array(self, spec: ArraySpec) -> Any:
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunks"] = spec.chunks
        if self._options.shards is not None:
            told["shards"] = self._options.shards
        if spec.codec != "library":
            told["compressors"] = compressor(self.zarr_format, spec)
        told |= encoding(self.zarr_format, spec)
        return self._group.create_array(spec.name, shape=spec.shape, **told)

    def open_array(self, spec: ArraySpec) -> Any:
        return self._group[spec.name]
