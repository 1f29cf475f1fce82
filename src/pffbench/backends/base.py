"""The contract between workloads and libraries: backend, store, array.

A backend creates and opens a *store* (a file or a directory); a store defines and opens *arrays*;
an array prepares the transfer of a *box*. Arguments, data spaces, slices and property lists are
prepared before the timer starts. The prepared call is returned, and it alone is timed.

What every backend must have is abstract here. What a backend may have in addition is a protocol of
`pffbench.backends.traits`: a class has it that has its methods, and says nothing about the others.
What can be stated is data: class attributes, `Capabilities`, `Storage`.

`docs/contract.md` has the contract as a table. To add a backend, copy ``blosc2.py`` and add it to
``registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, get_args

import msgspec
import numpy as np

from pffbench.backends.array_spec import ArraySpec, Capabilities
from pffbench.backends.inspection import ChunkCacheSettings
from pffbench.case import Options, Parameters, Settings
from pffbench.geometry.box import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI
    from typing_extensions import TypeVar

    #: A backend's own options. `Backend` without them is a backend with options of any type.
    OptionsT = TypeVar("OptionsT", bound=Options, default=Any)
else:
    from typing import TypeVar

    OptionsT = TypeVar("OptionsT", bound=Options)


Buffer = np.ndarray[Any, Any]
#: A timed call. `Array.writer`, `Array.reader` and `Store.definer` document its return value.
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


def what_was_read(returned: Any, out: Buffer) -> Buffer:
    """Return the array that holds the data read by a call of `Array.reader`."""
    return returned if isinstance(returned, np.ndarray) else out


class LazyArrays(Mapping[str, Array]):
    """Arrays by name, made by `Store.wrap` at the first access: after the phase that opened them.

    Parameters
    ----------
    store : Store
        The open store.
    specs : sequence of ArraySpec
        The arrays.
    returned : Any
        What the call of `Store.definer` or `Store.opener` returned.
    """

    def __init__(self, store: Store, specs: Sequence[ArraySpec], returned: Any) -> None:
        self._opened = store, specs, returned

    @cached_property
    def _arrays(self) -> Mapping[str, Array]:
        store, specs, returned = self._opened
        return store.wrap(specs, returned)

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


#: For each axis the indices at which the part of one rank ends and the next begins.
Edges = tuple[tuple[int, ...], ...]

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
    collective_close : bool
        Whether ranks that share the store have to close it together; it then stays open after one
        of them fails.
    """

    collective_lookup: bool = False
    collective_growth: bool = False
    collective_attributes: bool = False
    collective_close: bool = True

    @abstractmethod
    def definer(self, specs: Sequence[ArraySpec]) -> Call:
        """Prepare to create arrays; return the call that does it. All ranks give the same arrays.

        The call returns the library's own object for each, which `wrap` gets; None for an array
        that this rank does not transfer to.
        """

    @abstractmethod
    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        """Prepare to open arrays; return the call that does it, as of `definer`.

        They are those that this rank needs, or all of them if `collective_lookup`.
        """

    @abstractmethod
    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        """Return arrays by name for what a call of `definer` or `opener` returned, off the timer.

        Parameters
        ----------
        specs : sequence of ArraySpec
            The arrays that the call was prepared for.
        returned : Any
            What it returned, or a list of the library's objects for these arrays.
        """

    @abstractmethod
    def flush(self) -> None:
        """Pass all data that the library still holds to the operating system."""

    @abstractmethod
    def close(self) -> None:
        """Close the store; with a shared store all ranks call."""

    @abstractmethod
    def files(self) -> set[str]:
        """Return the files that this rank wrote to; called after closing, off the timer."""


def define_arrays(store: Store, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
    """Create arrays, where preparation and call need not be told apart."""
    return store.wrap(specs, store.definer(specs)())


def open_arrays(store: Store, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
    """Open arrays, where preparation and call need not be told apart."""
    return store.wrap(specs, store.opener(specs)())


class NotInstalled(str):
    """Reason of `Backend.refuse`: it is possible, but not with what is installed."""

    __slots__ = ()


class Unsafe(str):
    """Reason of `Backend.refuse`: ranks may lose data, or the library refuses to write them so.

    Runs with ``unsafe: true`` do it all the same, so it is the reason only if there is no other.
    """

    __slots__ = ()


class Storage(msgspec.Struct, frozen=True):
    """How a backend stores an array, for planning."""

    #: Shape of what the array is stored in: a chunk, or a shard; None if not known. One rank at a
    #: time may write to it where libraries rewrite it as a whole.
    unit: Shape | None = None
    #: Ratio of stored to array bytes where the library's own chunks are larger.
    padding: float = 1.0


class Backend(ABC, Generic[OptionsT]):
    """A format through one library.

    The class itself answers all questions of planning; only an instance imports the library.

    Parameters
    ----------
    options : Options
        The backend's own options, of the type that the class is made with: ``Backend[MyOptions]``.
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
    #: Major versions of those whose interfaces differ between series.
    series: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    capabilities: ClassVar[Capabilities]
    #: The type of the options, taken from the brackets of ``Backend[MyOptions]``.
    options_type: ClassVar[type[Options]] = Options
    #: What has a file of its own.
    file_per: ClassVar[Literal["store", "array", "chunk"]] = "store"
    #: Which files are opened through MPI-IO.
    mpi_io: ClassVar[Literal["none", "shared", "all"]] = "none"
    #: Whether ranks that share a file may deadlock when no space is left.
    deadlocks_when_full: ClassVar[bool] = False
    #: Largest number of bytes in one transfer; longer ones are split. Options may lower it.
    call_limit: int | None = None
    #: The chunk cache that the linked library gives an array if nothing is set.
    usual_chunk_cache: ChunkCacheSettings | None = None
    #: Notes, for the result row, on settings that the library cannot match.
    notes: tuple[str, ...] = ()

    def __init__(self, options: OptionsT, settings: Settings) -> None:
        self.options = options
        self.settings = settings

    @property
    def new_arrays(self) -> frozenset[str]:
        """Transfers whose reads return new arrays."""
        return self.capabilities.new_arrays

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for base in vars(cls).get("__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type):
                    cls.options_type = argument

    @abstractmethod
    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Create a store; ``comm`` is None for a file of one rank."""

    @abstractmethod
    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Open a store for reading."""

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: OptionsT, specs: Sequence[ArraySpec], edges: Edges
    ) -> str | None:
        """Return why a case is impossible for reasons that capabilities cannot express, or None.

        Where a library is missing or too old for it, the reason is a `NotInstalled`. Where ranks
        may lose data, it is an `Unsafe`.

        Parameters
        ----------
        parameters, options
            The case.
        specs : sequence of ArraySpec
            The distinct kinds of arrays of the case.
        edges : tuple of tuple of int
            Where the parts of writers meet in the arrays that ranks share: for each axis the
            indices at which the part of one ends and the next begins.
        """
        return None

    @classmethod
    def storage(cls, spec: ArraySpec, options: OptionsT) -> Storage:
        """Return how an array is stored: once, in chunks of its shape, if nothing else is known."""
        return Storage(spec.chunks if isinstance(spec.chunks, tuple) else None)


def opens_by_mpi_io(kind: type[Backend], parameters: Parameters) -> bool:
    """Whether a backend opens the files of a case through MPI-IO."""
    return kind.mpi_io == "all" or (kind.mpi_io == "shared" and parameters.shares_files)
