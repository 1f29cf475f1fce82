"""Base classes of formats whose store is a directory, in which each array has files of its own.

Ranks share such a store without MPI. The common parts are here: which rank makes what, and which
files it wrote to. A format adds how one array is created and opened, and how one box is moved.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Backend, Buffer, Call, OptionsT, Store
from pffbench.geometry.box import Box
from pffbench.mpi.agreement import together

if TYPE_CHECKING:
    from mpi4py import MPI


T = TypeVar("T")


def is_root(comm: MPI.Intracomm | None) -> bool:
    """Whether this rank creates shared objects: rank 0, or a rank without a communicator."""
    return comm is None or comm.rank == 0


def create_on_root(comm: MPI.Intracomm | None, make: Callable[[], T], find: Callable[[], T]) -> T:
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
    together(comm, do_nothing)
    return find()


def do_nothing() -> None:
    """Move nothing, or make nothing."""


class DirectoryBackend(Backend[OptionsT]):
    """A format that makes a directory for a store, and a file in it for each array."""

    file_per: ClassVar[Literal["store", "array", "chunk"]] = "array"

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        create_on_root(comm, partial(os.mkdir, path), do_nothing)
        return self.store(path, comm)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self.store(path, comm)

    @abstractmethod
    def store(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Return the store of a directory that exists."""


class DirectoryStore(Store):
    """An open directory of arrays.

    Parameters
    ----------
    path : str
        The directory.
    comm : MPI.Intracomm or None
        The ranks that have it open; None for one rank.
    """

    collective_close = False
    #: Class that wraps the library's objects.
    array_type: ClassVar[type[DirectoryArray]]

    def __init__(self, path: str, comm: MPI.Intracomm | None) -> None:
        self.path = path
        self.comm = comm
        self._written: set[str] = set()

    @abstractmethod
    def create_array(self, spec: ArraySpec) -> Call:
        """Prepare to create an array; return the call, which returns the library's own object."""

    @abstractmethod
    def open_array(self, spec: ArraySpec) -> Call:
        """Prepare to open an array; return the call, which returns the library's own object."""

    def join_array(self, spec: ArraySpec) -> Call:
        """Prepare to open a new array that rank 0 has created and all ranks write."""
        return self.open_array(spec)

    def file(self, name: str) -> str:
        """Return the path of an array, by its name."""
        return os.path.join(self.path, name)

    def definer(self, specs: Sequence[ArraySpec]) -> Call:
        """Let owners create their arrays and rank 0 the shared ones; others join these then."""
        rank = None if self.comm is None else self.comm.rank  # None: all arrays are its own
        made: list[Any] = [None] * len(specs)
        mine = [(i, s) for i, s in enumerate(specs) if rank in (None, s.owner or 0)]
        shared = [(i, s) for i, s in enumerate(specs) if s.owner is None]
        creators = [(i, self.create_array(s)) for i, s in mine]
        joiners = [] if rank in (None, 0) else [(i, self.join_array(s)) for i, s in shared]
        for _, spec in mine:
            self.describes(spec)

        def create() -> None:
            for place, create_one in creators:
                made[place] = create_one()

        def define() -> list[Any]:
            if self.comm is None or not shared:
                create()
            else:
                together(self.comm, create)  # no rank opens an array before it is there
            for place, join_one in joiners:
                made[place] = join_one()
            return made

        return define

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        calls = [self.open_array(spec) for spec in specs]
        return lambda: [call() for call in calls]

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        opened = zip(specs, returned, strict=True)
        return {s.name: self.array_type(self, s, one) for s, one in opened if one is not None}

    def describes(self, spec: ArraySpec) -> None:
        """Note that this rank writes the file that describes an array."""
        self._written.add(self.file(spec.name))

    def writes(self, files: Iterable[str]) -> None:
        """Note that this rank writes to these files."""
        self._written.update(files)

    def files(self) -> set[str]:
        return self._written

    def flush(self) -> None:
        """Do nothing: a write has ended when its files are there."""

    def close(self) -> None:
        """Do nothing: no file is open between calls."""


class OpenFilesStore(DirectoryStore):
    """A directory whose files are open, or mapped, as long as the library's objects exist."""

    def __init__(self, path: str, comm: MPI.Intracomm | None) -> None:
        super().__init__(path, comm)
        self._holding: list[DirectoryArray] = []
        self._returned: list[list[Any]] = []

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        arrays = super().wrap(specs, returned)
        found = (array for array in arrays.values() if isinstance(array, DirectoryArray))
        self._holding += (array for array in found if array.holds_file)
        self._returned.append(returned)
        return arrays

    def close(self) -> None:
        """Release the files: the page cache keeps what is mapped, even if it is to be dropped."""
        for array in self._holding:
            array.release()
        for returned in self._returned:
            returned.clear()


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

    def __init__(self, store: Any, spec: ArraySpec, array: Any) -> None:
        self._store = store
        self._spec = spec
        self._array = array

    @property
    def holds_file(self) -> bool:
        """Whether a file stays open, or mapped, until `release`; asked by an `OpenFilesStore`."""
        return True

    def release(self) -> None:
        """Let go of the library's object."""
        self._array = None

    @abstractmethod
    def write_call(self, box: Box, buffer: Buffer) -> Call:
        """Prepare to write a box that is not empty."""

    @abstractmethod
    def read_call(self, box: Box, out: Buffer) -> Call:
        """Prepare to read a box that is not empty."""

    def files_of(self, box: Box) -> Iterable[str]:
        """Return the files that hold a box: the array's only one, if it has one."""
        return [self._store.file(self._spec.name)]

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return do_nothing
        self._store.writes(self.files_of(box))
        return self.write_call(box, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        return self.read_call(box, out) if box.size else do_nothing
