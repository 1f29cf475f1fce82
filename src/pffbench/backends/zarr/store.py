"""Zarr directory store shared by ranks, for any of the libraries.

Ranks write disjoint chunks. The common parts are here: which rank creates which array, which files
a rank has written to, and how an array grows that all ranks write. A library provides a store that
creates and opens one array, and an array that moves one box.

The layout on disk is read from the stored metadata, without any of the libraries.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pffbench.backends.array_spec import ArraySpec, Capabilities
from pffbench.backends.base import Array, Backend, Buffer, Call, Cuts, LazyArrays, Store
from pffbench.backends.inspection import Touched, places
from pffbench.backends.zarr.format import (
    COMPRESSORS,
    DESCRIPTIONS,
    SHUFFLES,
    ZARR_CODECS,
    ZarrInspection,
    refuse_chunks,
    touched,
    usual_key,
)
from pffbench.case import ChunkShape, Options, Parameters
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI


T = TypeVar("T")


def is_root(comm: MPI.Intracomm | None) -> bool:
    """Whether this rank creates shared objects: rank 0, or a rank without a communicator."""
    return comm is None or comm.rank == 0


def made_by_root(comm: MPI.Intracomm | None, make: Callable[[], T], find: Callable[[], T]) -> T:
    """Let rank 0 create an object; return it, or on other ranks the object as found there.

    Collective. If creating fails, all ranks raise; if finding fails, only the failing ranks.

    Parameters
    ----------
    comm : MPI.Intracomm or None
        The ranks; None for a single one.
    make, find : callable
        Called on rank 0, and then on the others.
    """
    if comm is None:
        return make()
    if comm.rank == 0:
        return together(comm, make)
    together(comm, _nothing)
    return find()


def _nothing() -> None:
    """Create nothing."""


#: An array and the library's own object for it.
Opened = tuple[ArraySpec, Any]


class DirectoryStore(Store):
    """A directory of arrays.

    Parameters
    ----------
    path : str
        The directory.
    comm : MPI.Intracomm or None
        The ranks that have it open; None for one rank.
    zarr_format : {2, 3}
        Version of the format.
    created : bool
        Whether the ranks have just made it.
    empty_chunks : bool
        Whether chunks that hold only the fill value are written.
    """

    collective_close = False
    #: Class that wraps the library's objects.
    array_type: ClassVar[type[DirectoryArray]]

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
        # Names of arrays, and "" for the store itself.
        self._described = {""} if created and is_root(comm) else set()
        self._chunk_files: set[str] = set()

    @abstractmethod
    def create_array(self, spec: ArraySpec) -> Any:
        """Create an array; return the library's own object."""

    @abstractmethod
    def open_array(self, spec: ArraySpec) -> Any:
        """Open an array; return the library's own object."""

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Let owners create their arrays and rank 0 the shared ones; then open these."""
        create_mine = partial(self._create_mine, specs)
        if self.comm is None or all(spec.owner is not None for spec in specs):
            return self._later(create_mine())
        made = together(self.comm, create_mine)
        mine = {spec.name for spec, _ in made}
        others = [s for s in specs if s.owner is None and s.name not in mine]
        return self._later([*made, *((spec, self.open_array(spec)) for spec in others)])

    def _create_mine(self, specs: Sequence[ArraySpec]) -> list[Opened]:
        rank, root = None if self.comm is None else self.comm.rank, is_root(self.comm)
        found = []
        for spec in specs:
            if root if rank is None or spec.owner is None else spec.owner == rank:
                found.append((spec, self.create_array(spec)))
                self._described.add(spec.name)
        return found

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return self._later([(spec, self.open_array(spec)) for spec in specs])

    def wrapped(self, found: Iterable[tuple[ArraySpec, Any]]) -> Mapping[str, Array]:
        return self._later(list(found))

    def _later(self, opened: Sequence[Opened]) -> LazyArrays:
        """Wrap the library's objects when the phase is over."""
        kind = self.array_type
        return LazyArrays(lambda: {spec.name: kind(self, spec, array) for spec, array in opened})

    def describes(self, spec: ArraySpec) -> None:
        """Note that this rank writes the files that describe an array."""
        self._described.add(spec.name)

    def writes(self, chunk_files: Iterable[str]) -> None:
        """Note that this rank writes to these files."""
        self._chunk_files.update(chunk_files)

    def files(self) -> set[str]:
        found = set(self._chunk_files)
        if not self.empty_chunks:
            found = {file for file in found if os.path.exists(file)}
        for name in self._described:
            directory = os.path.join(self.path, name)
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
        Its specification.
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

    def resize(self, shape: Shape) -> Any:
        """Change the shape in the store; return the array, which has it."""
        raise NotImplementedError

    @property
    @abstractmethod
    def grid(self) -> Shape:
        """Shape of the contents of a file: a chunk, or a shard."""

    def places(self, box: Box) -> Iterable[Shape]:
        """Return the places of the files that hold a box in the grid of all of them."""
        return places(box, self.grid)

    @property
    def shards(self) -> Shape | None:
        """Shape of a shard; None without shards."""
        return None

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return _nothing
        self._store.writes(self._files(box))
        return self.write_call(box, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        return self.read_call(box, out) if box.size else _nothing

    def attribute_writer(self, name: str, value: int) -> Call:
        return partial(self._array.attrs.__setitem__, name, value)

    def attribute_reader(self, name: str) -> Call:
        return partial(self._array.attrs.__getitem__, name)

    def resizer(self, length: int) -> Call:
        comm = None if self._spec.owner is not None else self._store.comm
        if is_root(comm):
            self._store.describes(self._spec)
        return partial(self._grow, comm, (length, *self._array.shape[1:]))

    def _grow(self, comm: MPI.Intracomm | None, shape: Shape) -> None:
        """Let rank 0 write the new shape; the others read it.

        All ranks agree on having read it, since other arrays may grow next.
        """
        look_up = partial(self._store.open_array, self._spec)
        grow = partial(made_by_root, comm, partial(self.resize, shape), look_up)
        self._array = grow() if comm is None else together(comm, grow)

    def touched(self, box: Box) -> Touched | None:
        chunking = self.chunking(False)
        return None if chunking is None else touched(chunking, self.shards, box)

    def _files(self, box: Box) -> Iterable[str]:
        directory = os.path.join(self._store.path, self._spec.name)
        key = usual_key(self._store.zarr_format)
        return (os.path.join(directory, key(place)) for place in self.places(box))


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
        codecs=ZARR_CODECS,
        shuffles=SHUFFLES,
        compressors=COMPRESSORS,
        changes=True,
        attributes=True,
        threads=True,
    )
    file_per = "chunk"

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        if isinstance(options, FormatOptions):
            return refuse_chunks(options.format, options.shards, specs, cuts)
        return refuse_chunks(2, None, specs, cuts)

    @classmethod
    def stored_unit(cls, spec: ArraySpec, options: Options) -> Shape | None:
        shards = options.shards if isinstance(options, FormatOptions) else None
        return shards or super().stored_unit(spec, options)

    @property
    def inspection(self) -> ZarrInspection:
        return ZarrInspection()
