"""The contract between workloads and libraries: backend, store, array.

A backend creates and opens a *store* (a file or a directory); a store defines and opens *arrays*;
an array prepares the transfer of a *box*. Data spaces, slices and property lists are prepared
before the timer starts. The prepared call is returned, and it alone is timed.

`CONTRIBUTING.md` has the contract as a table. To add a backend, copy ``npy.py`` and add it to
``registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pffbench.backends.array_spec import ArraySpec, ByteOrder, Capabilities
from pffbench.backends.inspection import Inspection, StoredAs, Touched
from pffbench.case import Options, Parameters, Settings
from pffbench.data.base import Source
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.inspection import Chunking


Buffer = np.ndarray[Any, Any]
#: The timed call: moves the data. `Array.writer` and `Array.reader` document its return value.
Call = Callable[[], Any]


class Array(ABC):
    """An array in an open store."""

    @abstractmethod
    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        """Prepare to write a box from a C-contiguous buffer; return the call that does it.

        With ``collective`` every rank of the store calls, including those with an empty box.

        The call may be the library's own, with nothing around it. It returns the number of bytes
        that it moved, as an int, where the library may move fewer and not call it an error; else
        anything but an int.
        """

    @abstractmethod
    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        """Prepare to read a box; return the call that does it.

        The call returns the array that holds the data if the library allocates a new one instead of
        using ``out``; else as a call of `writer`. See `what_was_read`.
        """

    def missing(self, call: Call, returned: Any, nbytes: int) -> int:
        """Return how many bytes a call did not move although the library raised no error.

        Called once for each call after a phase, so that the check is not timed.

        Parameters
        ----------
        call : callable
            The call that `writer` or `reader` returned.
        returned : Any
            Return value of the call.
        nbytes : int
            Bytes that it was to move.
        """
        return nbytes - returned if isinstance(returned, int) else 0

    def diagnose_short_write(self, box: Box, buffer: Buffer) -> str:
        """Return why a box cannot be written whole, after a call that wrote a part of it.

        Off the timer, on one rank; it may write. Empty if the reason is not known.
        """
        return ""

    def resizer(self, length: int) -> Call:
        """Prepare to resize the first axis to `length`; return the call that does it.

        By default the call does nothing: the array grows when data are written beyond its end.
        """
        return _stay

    def attribute_writer(self, name: str, value: int) -> Call:
        """Prepare to set an attribute; return the call; only if `Capabilities.attributes`."""
        raise NotImplementedError

    def attribute_reader(self, name: str) -> Call:
        """Prepare to read an attribute; return the call, which returns its value."""
        raise NotImplementedError

    def touched(self, box: Box) -> Touched | None:
        """Return the parts of the file that hold a box, off the timer; None if not known."""
        return None

    def chunking(self, collective: bool) -> Chunking | None:
        """Return the array's chunking and chunk cache, after reading it.

        Off the timer. None for an array without chunks, and if not known.
        """
        return None


def what_was_read(returned: Any, out: Buffer) -> Buffer:
    """Return the array that holds the data read by a call of `Array.reader`."""
    return returned if isinstance(returned, np.ndarray) else out


def _stay() -> None:
    """Leave the length of an array unchanged."""


#: By name of an array: the library's own object for it, its shape, its type.
Inquiry = Mapping[str, tuple[Any, Sequence[int], Any]]


class LazyArrays(Mapping[str, Array]):
    """Mapping of arrays by name, created at the first access: after the phase that opened them.

    For stores in which an array is only an offset in a file, so that opening thousands of them
    takes as long as in a program that knows the offsets.

    Parameters
    ----------
    make : callable
        Creates the arrays; calls no library, since it is not timed.
    """

    def __init__(self, make: Callable[[], Mapping[str, Array]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, Array]:
        return self._make()

    def __getitem__(self, name: str) -> Array:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


#: Inner boundaries between the ranks' parts, for each axis.
Cuts = tuple[tuple[int, ...], ...]

#: Largest number of bytes that one call may move through MPI-IO: counts are C ints there.
MPI_CALL_LIMIT = 2**31 - 1


class Store(ABC):
    """An open file or directory of arrays.

    Attributes
    ----------
    collective_lookup : bool
        Whether every rank has to open every array, including those that it does not touch.
    collective_growth : bool
        Whether every rank has to take part when an array grows, including those that do not touch
        it.
    collective_attributes : bool
        Whether every rank has to set and read the attributes of every array.
    lists : bool
        Whether the store lists its arrays, see `inquire`.
    collective_close : bool
        Whether ranks that share the store have to close it together; it then stays open after one
        of them fails.
    """

    collective_lookup: bool = False
    collective_growth: bool = False
    collective_attributes: bool = False
    collective_close: bool = True
    lists: bool = False

    @abstractmethod
    def files(self) -> set[str]:
        """Return the files that this rank wrote to; called after closing, off the timer."""

    def prepare(self, specs: Sequence[ArraySpec]) -> None:
        """Prepare, off the timer, the arguments that `define` passes to the library."""
        return

    @abstractmethod
    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Create all arrays of the store and return those that this rank can transfer to."""

    @abstractmethod
    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        """Open arrays: those that this rank needs, or all of them if `collective_lookup`."""

    def end_attributes(self) -> None:
        """End the setting of attributes, on the timer; all ranks call."""
        return

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        """Prepare to open arrays, as `arrays` does; return the call that opens them.

        The call may be the library's own, with nothing around it; its result is passed to `opened`.
        """
        return partial(self.arrays, specs)

    def opened(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        """Return the arrays that a call of `opener` opened, off the timer."""
        found: Mapping[str, Array] = returned
        return found

    def inquire(self) -> Inquiry:
        """Find all arrays of the store with their shapes and types, on the timer; if `lists`."""
        raise NotImplementedError

    def wrapped(self, found: Iterable[tuple[ArraySpec, Any]]) -> Mapping[str, Array]:
        """Return the arrays for the library's objects that `inquire` found, off the timer."""
        raise NotImplementedError

    @abstractmethod
    def flush(self) -> None:
        """Pass all data that the library still holds to the operating system."""

    @abstractmethod
    def close(self) -> None:
        """Close the store; with a shared store all ranks call."""

    def transfer_facts(self) -> dict[str, str]:
        """Return the library's report of the last transfer, such as its mode."""
        return {}


class Lacking(str):
    """Reason of `Backend.refuse`: it is possible, but not with what is installed."""

    __slots__ = ()


class Backend(ABC):
    """A format through one library.

    The class itself answers all questions of planning; only an instance imports the library.

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
    #: How its makers write the format's name; empty for `name`.
    title: ClassVar[str] = ""
    #: Import names of the libraries, for their versions and for `pffbench doctor`.
    libraries: ClassVar[tuple[str, ...]] = ()
    #: Major versions of those whose interfaces differ between series, and how to install one.
    series: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    remedy: ClassVar[str] = ""
    capabilities: ClassVar[Capabilities]
    options_type: ClassVar[type[Options]] = Options
    #: Largest number of bytes in one transfer; longer ones are split. Options may lower it.
    call_limit: int | None = None
    #: The format's own program that rewrites a store with other chunks, see `repack_command`.
    repack_program: ClassVar[str | None] = None
    #: What has a file of its own.
    file_per: ClassVar[Literal["store", "array", "chunk"]] = "store"
    #: Which files are opened through MPI-IO.
    mpi_io: ClassVar[Literal["none", "shared", "all"]] = "none"
    #: Whether ranks that share a file may deadlock when no space is left.
    needs_room: ClassVar[bool] = False

    def __init__(self, options: Options, settings: Settings) -> None:
        self.options = options
        self.settings = settings

    @classmethod
    def opens_by_mpi_io(cls, parameters: Parameters) -> bool:
        """Whether the files of a case are opened through MPI-IO."""
        return cls.mpi_io == "all" or (cls.mpi_io == "shared" and parameters.shares_files)

    def load(self, codec: str) -> None:
        """Import the additional packages of a codec; before anything is timed."""
        if name := self.capabilities.codec_libraries.get(codec):
            import_module(name)

    @abstractmethod
    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Create a store; ``comm`` is None for a file of one rank."""

    @abstractmethod
    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Open a store for reading."""

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Open a store to change data in its arrays; only if `Capabilities.changes`.

        As in `open`, `comm` is None for a file of one rank.
        """
        raise NotImplementedError(f"{self.name} does not change what it has written")

    def open_counted(self, path: str) -> tuple[Store, Callable[[], int]] | None:
        """Open a store, for one rank, that counts its requests, and return the counter.

        For a pass that is not timed; None where a library makes no requests that it could count.
        """
        return None

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        """Return why a case is impossible for reasons that capabilities cannot express, or None.

        Where a library is missing or too old for it, the reason is a `Lacking`.

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
        """Return the import names of packages that a case needs in addition to `libraries`."""
        library = cls.capabilities.codec_libraries.get(parameters.codec)
        return () if library is None else (library,)

    @classmethod
    def padding(cls, spec: ArraySpec, options: Options) -> float:
        """Return the ratio of stored to array bytes where the library's own chunks are larger."""
        return 1.0

    @classmethod
    def stored_unit(cls, spec: ArraySpec, options: Options) -> Shape | None:
        """Return the shape of what an array is stored in: a chunk, or a shard; None if not known.

        One rank at a time may write to it where libraries rewrite it as a whole.
        """
        return spec.chunks if isinstance(spec.chunks, tuple) else None

    @classmethod
    def copies(cls, options: Options) -> int:
        """Return how many times each array is stored."""
        return 1

    def forget(self, overwrite: Callable[[], None]) -> None:
        """Erase the data from memory between writing and reading, off the timer.

        Parameters
        ----------
        overwrite : callable
            Overwrites the free memory of the calling thread. A library that keeps free memory of
            its own releases it first, and one with threads calls it in each.
        """
        overwrite()

    def as_read(self, source: Source) -> Source:
        """Return the data as they are read back: the same, unless digits are rounded away."""
        return source

    @property
    def inspection(self) -> Inspection:
        """Inspection of its closed stores; by default one that knows nothing."""
        return Inspection()

    @classmethod
    def repack_command(cls, source: str, target: str, specs: Sequence[ArraySpec]) -> list[str]:
        """Return the command with which `repack_program` rewrites a store.

        Parameters
        ----------
        source, target : str
            The existing store and the new one.
        specs : sequence of ArraySpec
            Its arrays as they are to be stored.
        """
        raise NotImplementedError(f"{cls.name} has no program that rewrites a store")

    def notes(self) -> tuple[str, ...]:
        """Return notes, for the result row, on settings that the library cannot match."""
        return ()


__all__ = [
    "MPI_CALL_LIMIT", "Array", "ArraySpec", "Backend", "Buffer", "ByteOrder", "Call",
    "Capabilities", "Cuts", "Inquiry", "Inspection", "Store", "StoredAs", "Touched",
    "what_was_read",
]  # fmt: skip
