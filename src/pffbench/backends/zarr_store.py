"""An open Zarr group: its arrays, how they are made, and how data move through zarr-python."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pffbench.backends.base import Array, ArraySpec, Buffer, Call, Store, Touched
from pffbench.backends.chunkcache import Chunking
from pffbench.backends.zarr_chunks import chunking_of, encoding
from pffbench.backends.zarr_codecs import compressor
from pffbench.backends.zarr_options import ZarrOptions
from pffbench.backends.zarr_touched import touched
from pffbench.case import Options
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI


class ZarrStore(Store):
    """A group in a directory. zarr-python knows no MPI: ranks keep apart by their chunks."""

    def __init__(
        self,
        zarr: Any,
        group: Any,
        path: str,
        comm: MPI.Intracomm | None,
        options: Options,
        created: bool,
    ) -> None:
        self._zarr = zarr
        self._group = group
        self._path = path
        self._comm = comm
        self._options = options
        self._created = created
        self._described: list[str] = [""] if created and self._is_root else []
        self._chunk_files: set[str] = set()

    @property
    def _is_root(self) -> bool:
        return self._comm is None or self._comm.rank == 0

    @property
    def _writes_empty_chunks(self) -> bool:
        return bool(self._zarr.config.get("array.write_empty_chunks"))

    def files(self) -> set[str]:
        found = set(self._chunk_files)
        if not self._writes_empty_chunks:
            found = {file for file in found if os.path.exists(file)}
        for name in self._described:
            directory = os.path.join(self._path, name)
            found.update(
                os.path.join(directory, f)
                for f in os.listdir(directory)
                if f == "zarr.json" or f.startswith(".z")
            )
        return found

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
                found[spec.name] = self._array(self._create(spec), spec)
                self._described.append(spec.name)
        return found

    def _create(self, spec: ArraySpec) -> Any:
        assert isinstance(self._options, ZarrOptions)
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunks"] = spec.chunks
        if self._options.shards is not None:
            told["shards"] = self._options.shards
        if spec.codec != "library":
            told["compressors"] = compressor(self._options.format, spec)
        told |= encoding(self._options.format, spec)
        return self._group.create_array(spec.name, shape=spec.shape, **told)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: self._array(self._group[spec.name], spec) for spec in specs}

    def _array(self, array: Any, spec: ArraySpec) -> Array:
        directory = os.path.join(self._path, spec.name)
        together = None if spec.owner is not None else self._comm
        look_up = partial(self._group.__getitem__, spec.name)
        return ZarrArray(array, look_up, directory, self._chunk_files, together)

    def flush(self) -> None:
        """Do nothing: zarr-python keeps no data back."""

    def close(self) -> None:
        """Do nothing: a directory store holds no open file."""


class ZarrArray(Array):
    """A Zarr array; each call moves one box through zarr-python.

    Parameters
    ----------
    array : zarr.Array
        The open array.
    look_up : callable
        Opens it anew.
    directory : str
        Where its chunks are.
    written : set of str
        Takes up the names of the files that are written.
    comm : MPI.Intracomm or None
        The ranks that write it together; None where one rank alone does.
    """

    def __init__(
        self,
        array: Any,
        look_up: Callable[[], Any],
        directory: str,
        written: set[str],
        comm: MPI.Intracomm | None,
    ) -> None:
        self._array = array
        self._look_up = look_up
        self._directory = directory
        self._written = written
        self._comm = comm

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return _nothing
        self._written.update(self._files(box))
        return partial(self._array.set_basic_selection, box.slices, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return lambda: out
        from zarr.buffer.cpu import NDBuffer

        target = NDBuffer.from_numpy_array(out)
        read = self._array.get_basic_selection
        slices = box.slices

        def call() -> Buffer:
            read(slices, out=target)
            return out

        return call

    def extender(self, length: int) -> Call:
        shape = (length, *self._array.shape[1:])
        if self._comm is None or self._comm.rank == 0:
            described = "zarr.json" if self._array.metadata.zarr_format == 3 else ".zarray"
            self._written.add(os.path.join(self._directory, described))
        if self._comm is None:
            return partial(self._array.resize, shape)
        return partial(self._resize_together, self._comm, shape)

    def _resize_together(self, comm: MPI.Intracomm, shape: Shape) -> None:
        """Let rank 0 write the new shape; the others read it, since zarr-python knows no MPI."""
        is_root = comm.rank == 0
        together(comm, partial(self._array.resize, shape) if is_root else _nothing)
        if not is_root:
            self._array = self._look_up()

    def touched(self, box: Box) -> Touched:
        return touched(self._array, box)

    def chunking(self, collective: bool) -> Chunking:
        return chunking_of(self._array)

    def _files(self, box: Box) -> Iterator[str]:
        grid = self._array.shards or self._array.chunks
        ranges = [
            range(a // c, -(-b // c)) for a, b, c in zip(box.start, box.stop, grid, strict=True)
        ]
        for place in itertools.product(*ranges):
            yield os.path.join(self._directory, self._array.metadata.encode_chunk_key(place))


def _nothing() -> None:
    """Move nothing: an empty box touches no chunk."""
