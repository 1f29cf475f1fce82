"""An open Zarr directory: arrays whose chunks are files, through libraries that know no MPI.

Ranks keep apart by their chunks. What that asks for is the same with every library and is
settled here: who creates which array, which files a rank has written to, and how an array grows
that all ranks write. A library brings a store that creates and opens one array, and an array
that moves one box.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pffbench.backends.base import Array, ArraySpec, Buffer, Call, Store
from pffbench.backends.chunkcache import Chunking
from pffbench.backends.sharing import is_root, made_by_root
from pffbench.backends.stored import Touched, places
from pffbench.backends.zarr_files import DESCRIPTIONS, usual_key
from pffbench.backends.zarr_touched import touched
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI


class DirectoryStore(Store):
    """A directory of arrays.

    Parameters
    ----------
    path : str
        The directory.
    comm : MPI.Intracomm or None
        The ranks that have it open; None where one rank alone has.
    zarr_format : {2, 3}
        Version of the format.
    created : bool
        Whether the ranks have just made it.
    empty_chunks : bool
        Whether chunks are written that hold nothing but the fill value.
    """

    def __init__(
        self,
        path: str,
        comm: MPI.Intracomm | None,
        *,
        zarr_format: int,
        created: bool,
        empty_chunks: bool,
    ) -> None:
        self.path = path
        self.comm = comm
        self.zarr_format = zarr_format
        self.created = created
        self.empty_chunks = empty_chunks
        self._described = {path} if created and is_root(comm) else set()
        self._chunk_files: set[str] = set()

    @abstractmethod
    def create_array(self, spec: ArraySpec) -> DirectoryArray:
        """Create an array through the library."""

    @abstractmethod
    def open_array(self, spec: ArraySpec) -> DirectoryArray:
        """Open an array through the library."""

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Let owners create their arrays and rank 0 those that all ranks write; then open these."""
        if self.comm is None or all(spec.owner is not None for spec in specs):
            return self._create_mine(specs)
        found = together(self.comm, partial(self._create_mine, specs))
        found.update(self.arrays(s for s in specs if s.name not in found and s.owner is None))
        return found

    def _create_mine(self, specs: Sequence[ArraySpec]) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for spec in specs:
            if self._creates(spec):
                found[spec.name] = self.create_array(spec)
                self.describes(spec)
        return found

    def _creates(self, spec: ArraySpec) -> bool:
        if self.comm is None or spec.owner is None:
            return is_root(self.comm)
        return spec.owner == self.comm.rank

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: self.open_array(spec) for spec in specs}

    def describes(self, spec: ArraySpec) -> None:
        """Note that this rank writes the files that describe an array."""
        self._described.add(os.path.join(self.path, spec.name))

    def writes(self, chunk_files: Iterable[str]) -> None:
        """Note that this rank writes to these files."""
        self._chunk_files.update(chunk_files)

    def files(self) -> set[str]:
        found = set(self._chunk_files)
        if not self.empty_chunks:
            found = {file for file in found if os.path.exists(file)}
        for directory in self._described:
            there = DESCRIPTIONS.intersection(os.listdir(directory))
            found.update(os.path.join(directory, file) for file in there)
        return found

    def flush(self) -> None:
        """Do nothing: these libraries keep no data back after a write has ended."""

    def close(self) -> None:
        """Do nothing: a directory store holds no open file."""


class DirectoryArray(Array):
    """An array of a directory; each call moves one box.

    Parameters
    ----------
    store : DirectoryStore
        The store.
    spec : ArraySpec
        What it is.
    array : Any
        The library's own object.
    """

    def __init__(self, store: DirectoryStore, spec: ArraySpec, array: Any) -> None:
        self._store = store
        self._spec = spec
        self._array = array

    @abstractmethod
    def write_call(self, box: Box, buffer: Buffer) -> Call:
        """Prepare to write a box that is not empty."""

    @abstractmethod
    def read_call(self, box: Box, out: Buffer) -> Call:
        """Prepare to read a box that is not empty."""

    def look_up(self) -> Any:
        """Open the array anew, as it is now; of libraries whose arrays can grow."""
        raise NotImplementedError

    def resize(self, shape: Shape) -> Any:
        """Change the shape in the store; return the array, which has it."""
        raise NotImplementedError

    @abstractmethod
    def chunking(self, collective: bool) -> Chunking:
        """Tell how the array is chunked."""

    @property
    @abstractmethod
    def grid(self) -> Shape:
        """Shape of what a file holds: a chunk, or a shard."""

    @property
    def shards(self) -> Shape | None:
        """Shape of a shard; None where there are none."""
        return None

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return _nothing
        self._store.writes(self._files(box))
        return self.write_call(box, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        return self.read_call(box, out) if box.size else _nothing

    def extender(self, length: int) -> Call:
        comm = None if self._spec.owner is not None else self._store.comm
        if is_root(comm):
            self._store.describes(self._spec)
        return partial(self._grow, comm, (length, *self._array.shape[1:]))

    def _grow(self, comm: MPI.Intracomm | None, shape: Shape) -> None:
        """Let rank 0 write the new shape; the others read it.

        All agree on having read it, since arrays may follow that they grow together too.
        """
        grow = partial(made_by_root, comm, partial(self.resize, shape), self.look_up)
        self._array = grow() if comm is None else together(comm, grow)

    def touched(self, box: Box) -> Touched:
        return touched(self.chunking(False), self.shards, box)

    def _files(self, box: Box) -> Iterable[str]:
        directory = os.path.join(self._store.path, self._spec.name)
        key = usual_key(self._store.zarr_format)
        return (os.path.join(directory, key(place)) for place in places(box, self.grid))


def _nothing() -> None:
    """Move nothing: an empty box touches no chunk."""
