"""The interface between workloads and libraries: backend, store, array.

A backend creates and opens a *store* (a file or a directory); a store defines and opens
*arrays*; an array prepares the transfer of a *box*. A transfer is prepared outside the timed
region (data spaces, slices, property lists) and returns the call that is timed, so that nothing
but the library stands in the timed region.

To add a backend, copy ``posix.py``, a simple one, and name it in ``registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pffbench.backends.array import Array, Buffer, Call, what_was_read
from pffbench.backends.capabilities import Capabilities
from pffbench.backends.spec import ArraySpec, ByteOrder
from pffbench.backends.stored import StoredAs, Touched
from pffbench.case import Options, Parameters, Settings
from pffbench.data.base import Source
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.chunkcache import ChunkCache, StoredChunks

#: Inner boundaries between the ranks' parts, for each axis.
Cuts = tuple[tuple[int, ...], ...]

#: Largest number of bytes that one call may move through MPI-IO: counts are C ints there.
MPI_CALL_LIMIT = 2**31 - 1


class Store(ABC):
    """An open file or directory of arrays.

    Attributes
    ----------
    collective_lookup : bool
        Whether every rank has to open every array, also those that it does not touch.
    collective_growth : bool
        Whether every rank has to take part when an array grows, also those that do not touch it.
    collective_close : bool
        Whether ranks that share the store have to close it together: after a failure of one of
        them it stays open then.
    """

    collective_lookup: bool = False
    collective_growth: bool = False
    collective_close: bool = True

    @abstractmethod
    def files(self) -> set[str]:
        """Return the files that this rank wrote to; asked after closing, off the timer."""

    def prepare(self, specs: Sequence[ArraySpec]) -> None:
        """Work out, off the timer, what `define` tells the library of these arrays."""
        return

    @abstractmethod
    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Create all arrays of the store and return those that this rank can transfer to."""

    @abstractmethod
    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        """Open arrays: those that this rank needs, or all where `collective_lookup` says so."""

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        """Prepare to open arrays, as `arrays` does; return the call that opens them.

        The call may be the library's own, with nothing around it: `opened` is given what it
        returns.
        """
        return partial(self.arrays, specs)

    def opened(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        """Return the arrays that a call of `opener` opened, off the timer."""
        found: Mapping[str, Array] = returned
        return found

    @abstractmethod
    def flush(self) -> None:
        """Hand everything that the library still holds to the operating system."""

    @abstractmethod
    def close(self) -> None:
        """Close the store; with a shared store all ranks call."""

    def transfer_facts(self) -> dict[str, str]:
        """Return what the library says about the last transfer, such as the mode it used."""
        return {}


class Backend(ABC):
    """A format through one library.

    The class can be asked for everything that planning needs without the library; making an
    instance imports the library.

    Parameters
    ----------
    options : Options
        The backend's own options, of the type `Options`.
    settings : {"matched", "defaults"}
        Whether the library's switches are set for equal work or left alone.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]
    #: Import names of the libraries, for their versions and for `pffbench doctor`.
    libraries: ClassVar[tuple[str, ...]] = ()
    #: Major version of those whose interfaces of several series differ, and where it is to be had.
    series: ClassVar[Mapping[str, int]] = {}
    remedy: ClassVar[str] = ""
    capabilities: ClassVar[Capabilities]
    options_type: ClassVar[type[Options]] = Options
    #: Largest number of bytes in one transfer; longer ones are split.
    call_limit: ClassVar[int | None] = None
    #: The format's own program that rewrites a store with other chunks, see `repack_command`.
    repack_program: ClassVar[str | None] = None
    #: Whether each chunk is a file of its own.
    file_per_chunk: ClassVar[bool] = False
    #: Which files are opened through MPI-IO.
    mpi_io: ClassVar[Literal["none", "shared", "all"]] = "none"
    #: Whether ranks that share a file may wait for each other for ever when it finds no room.
    needs_room: ClassVar[bool] = False

    def __init__(self, options: Options, settings: Settings) -> None:
        self.options = options
        self.settings = settings

    @classmethod
    def opens_by_mpi_io(cls, parameters: Parameters) -> bool:
        """Whether the files of a case are opened through MPI-IO."""
        shared = parameters.layout != "file_per_process"
        return cls.mpi_io == "all" or (cls.mpi_io == "shared" and shared)

    def load(self, codec: str) -> None:
        """Import what a codec needs beside the library; before anything is timed."""
        if name := self.capabilities.codec_libraries.get(codec):
            import_module(name)

    @abstractmethod
    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Create a store; ``comm`` is None for a file that one rank has to itself."""

    @abstractmethod
    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Open a store for reading."""

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Open a store to change what is in its arrays; only where `Capabilities.changes` says so.

        As `open`, `comm` is None for a file that one rank has to itself.
        """
        raise NotImplementedError(f"{self.name} does not change what it has written")

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        """Say why a case is impossible for reasons that the capabilities cannot tell, or None.

        Parameters
        ----------
        parameters, options
            The case.
        specs : sequence of ArraySpec
            The distinct kinds of arrays of the case.
        cuts : tuple of tuple of int
            Where the arrays that all ranks write together are cut: for each axis the indices
            at which one rank's part ends and another's begins.
        """
        return None

    @classmethod
    def optional_libraries(cls, parameters: Parameters, options: Options) -> tuple[str, ...]:
        """Return the import names of what a case needs beside `libraries`."""
        library = cls.capabilities.codec_libraries.get(parameters.codec)
        return () if library is None else (library,)

    @classmethod
    def padding(cls, spec: ArraySpec, options: Options) -> float:
        """How many times its bytes an array takes where the library's own chunks are larger."""
        return 1.0

    @classmethod
    def copies(cls, options: Options) -> int:
        """Return how many times each array is stored."""
        return 1

    def forget(self, overwrite: Callable[[], None]) -> None:
        """Leave nothing of the data in memory, between writing and reading, off the timer.

        Parameters
        ----------
        overwrite : callable
            Overwrites the free memory of the thread that calls it. A library that keeps free
            memory of its own hands that back first, and one with threads calls it in each.
        """
        overwrite()

    def as_read(self, source: Source) -> Source:
        """Return what data are when they are read back: the same, but of what loses digits."""
        return source

    def describe(self, path: str) -> StoredAs:
        """Look at the first array of a closed store and tell how it is really stored.

        Called by one rank, off the timer.
        """
        return StoredAs()

    def default_chunk_cache(self) -> ChunkCache | None:
        """Return what the linked library gives an array as chunk cache by itself; None: nothing."""
        return None

    def stored_chunks(self, path: str, name: str) -> StoredChunks | None:
        """Look at an array of a closed store and tell what its chunks take on disk.

        Called by one rank, off the timer. None of an array without chunks.
        """
        return None

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks | None:
        """Look at a closed store and tell what the chunks take on disk that a box lies in.

        Called by any rank, off the timer. None of an array without chunks.
        """
        return None

    @classmethod
    def repack_command(cls, source: str, target: str, specs: Sequence[ArraySpec]) -> list[str]:
        """Return how `repack_program` rewrites a store, as a command.

        Parameters
        ----------
        source, target : str
            The store that there is, and the one to make.
        specs : sequence of ArraySpec
            Its arrays as they are to be stored.
        """
        raise NotImplementedError(f"{cls.name} has no program that rewrites a store")

    def notes(self) -> tuple[str, ...]:
        """Return what this library cannot match or does in its own way, for the result row."""
        return ()


__all__ = [
    "MPI_CALL_LIMIT",
    "Array",
    "ArraySpec",
    "Backend",
    "Buffer",
    "ByteOrder",
    "Call",
    "Capabilities",
    "Cuts",
    "Store",
    "StoredAs",
    "Touched",
    "what_was_read",
]
