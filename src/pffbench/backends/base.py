"""The interface between workloads and libraries: backend, store, array.

A backend creates and opens a *store* (a file or a directory); a store defines and opens
*arrays*; an array prepares the transfer of a *box*. A transfer is prepared outside the timed
region (data spaces, slices, property lists) and returns the call that is timed, so that nothing
but the library stands in the timed region.

To add a backend, copy ``posix.py``, the shortest one, and name it in ``registry.py``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI

Buffer = np.ndarray[Any, Any]
#: What is timed: moves the data; a reader returns the array that holds what was read.
Call = Callable[[], Any]

#: Inner boundaries between the ranks' parts, for each axis.
Cuts = tuple[tuple[int, ...], ...]

#: Largest number of bytes that one call may move through MPI-IO: counts are C ints there.
MPI_CALL_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array of a store: what it is, how it is stored and which data belong in it.

    Parameters
    ----------
    name : str
        Name in the store.
    shape : tuple of int
        Shape of the stored array.
    dtype : str
        NumPy name of the element type, native byte order.
    number : int
        Number of the logical array whose data it holds (see `pffbench.data`).
    origin : tuple of int
        Where the stored array's first element lies in the logical array.
    logical_shape : tuple of int
        Shape of the logical array.
    offset : int
        Bytes of the arrays before it in the store: where a raw backend puts it.
    owner : int or None
        The rank that alone writes it; None when all ranks write it together.
    chunks : tuple of int, "contiguous" or "library"
        Chunk shape, no chunks, or whatever the library chooses by itself.
    codec : {"none", "gzip", "zstd", "blosc", "library"}
        Compression.
    level : int
        Level of the codec.
    fill : {"none", "library"}
        Whether the library may write fill values before the data.
    """

    name: str
    shape: Shape
    dtype: str
    number: int
    origin: Shape
    logical_shape: Shape
    offset: int
    owner: int | None
    chunks: Shape | Literal["contiguous", "library"]
    codec: Literal["none", "gzip", "zstd", "blosc", "library"]
    level: int
    fill: Literal["none", "library"]

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(np.dtype(self.dtype).itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of the array data, before compression."""
        return math.prod(self.shape) * self.itemsize

    @property
    def whole(self) -> Box:
        """The box that covers the array."""
        return Box((0,) * len(self.shape), self.shape)

    def is_contiguous(self, box: Box) -> bool:
        """Whether a box is one stretch of the array in C order."""
        inner_complete = True
        for extent, n in zip(reversed(box.shape), reversed(self.shape), strict=True):
            if not inner_complete and extent > 1:
                return False
            inner_complete = inner_complete and extent == n
        return True

    def byte_offset(self, box: Box) -> int:
        """Bytes from the array's first element to the first one of a box."""
        index = 0
        for start, n in zip(box.start, self.shape, strict=True):
            index = index * n + start
        return index * self.itemsize

    def data_start(self, box: Box) -> Shape:
        """Index in the logical array of the first element of a box of this array."""
        return tuple(o + s for o, s in zip(self.origin, box.start, strict=True))


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do; impossible cases are refused by this when a run is planned.

    Parameters
    ----------
    layouts : frozenset of str
        Layouts that it can do.
    transfers : frozenset of str
        Transfers that it can do in a file that ranks share.
    codecs : frozenset of str
        Codecs that it can be asked for.
    formatted : bool
        Whether it stores a described array; False for raw bytes, which serve as the roofline.
    keeps_data : bool
        Whether what was written can be read back.
    caller_buffer : bool
        Whether a read lands in the caller's buffer; otherwise the library returns a new array
        and its allocation is part of the read.
    """

    layouts: frozenset[str] = frozenset({"file_per_process", "own", "shared"})
    transfers: frozenset[str] = frozenset({"independent", "collective"})
    codecs: frozenset[str] = frozenset({"none"})
    formatted: bool = True
    keeps_data: bool = True
    caller_buffer: bool = True


class Array(ABC):
    """An array in an open store."""

    @abstractmethod
    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        """Prepare to write a box from a C-contiguous buffer and return the call that does it.

        With ``collective`` every rank of the store calls, those with an empty box too.
        """

    @abstractmethod
    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        """Prepare to read a box and return the call that does it.

        The call returns the array that holds the data: ``out`` where the library can read into
        the caller's buffer, else a new one.
        """


class Store(ABC):
    """An open file or directory of arrays.

    Attributes
    ----------
    collective_lookup : bool
        Whether every rank has to open every array, also those that it does not touch.
    """

    collective_lookup: bool = False

    @abstractmethod
    def files(self) -> set[str]:
        """Return the files that this rank wrote to; asked after closing, off the timer."""

    @abstractmethod
    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Create all arrays of the store and return those that this rank can transfer to."""

    @abstractmethod
    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        """Open arrays: those that this rank needs, or all where `collective_lookup` says so."""

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
    capabilities: ClassVar[Capabilities]
    options_type: ClassVar[type[Options]] = Options
    #: Largest number of bytes in one transfer; longer ones are split.
    call_limit: ClassVar[int | None] = None
    #: Whether each chunk is a file of its own.
    file_per_chunk: ClassVar[bool] = False

    def __init__(self, options: Options, settings: Settings) -> None:
        self.options = options
        self.settings = settings

    @abstractmethod
    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Create a store; ``comm`` is None for a file that one rank has to itself."""

    @abstractmethod
    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Open a store for reading."""

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

    def describe(self, path: str) -> StoredAs:
        """Look at the first array of a closed store and tell how it is really stored.

        Called by one rank, off the timer.
        """
        return StoredAs()

    def notes(self) -> tuple[str, ...]:
        """Return what this library cannot match or does in its own way, for the result row."""
        return ()


@dataclass(frozen=True)
class StoredAs:
    """How an array is really stored, read from the file.

    Parameters
    ----------
    chunks : tuple of int or None
        Chunk shape; None when contiguous or raw.
    codec : str
        Compression as the file names it.
    fill : str
        Whether fill values are written: ``never``, ``always``, ``if set`` or ``raw``.
    more : dict
        Anything else worth knowing, such as the format version or the shard shape.
    """

    chunks: Shape | None = None
    codec: str = "none"
    fill: str = "raw"
    more: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        chunks = "contiguous" if self.chunks is None else "×".join(map(str, self.chunks))
        return f"{chunks}, {self.codec}, fill {self.fill}"
