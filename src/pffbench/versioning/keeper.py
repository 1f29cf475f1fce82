"""The interface between the workload `versions` and the ways of keeping versions.

A *keeper* creates a store and puts one version after the other into it, or opens a store and reads
versions. As in the backends, what is to be done is prepared off the timer and returned as a call,
so that nothing but the library, or our own chunk store, stands in the timed region.

To add a way, write a keeper and name it in ``registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pffbench.backends.stored import StoredAs
from pffbench.case import Options
from pffbench.versioning.history import Shape, Table, Values, Version

Call = Callable[[], Any]


@dataclass(frozen=True)
class ColumnStorage:
    """How columns are to be stored.

    Parameters
    ----------
    chunk : int
        Elements of a chunk along each axis.
    codec : {"none", "gzip", "lzf", "zstd"}
        Compression.
    level : int
        Level of the codec.
    """

    chunk: int
    codec: str
    level: int

    def chunks(self, axes: int) -> Shape:
        """Return the chunk shape of a column."""
        return (self.chunk,) * axes


@dataclass(frozen=True)
class Kept:
    """What a closed store holds.

    Parameters
    ----------
    chunks : int
        Chunks of column data that are stored.
    data_bytes : int
        Bytes that they take, as they are encoded.
    metadata_bytes : int
        All other bytes of the store: what it costs to find them.
    """

    chunks: int
    data_bytes: int
    metadata_bytes: int


class Keeping(ABC):
    """A store that takes versions, in the order of their numbers."""

    @abstractmethod
    def stage(self, version: Version) -> Call:
        """Prepare to hand a version over and return the call that does it."""

    def commit(self, version: Version) -> Call:
        """Return the call that makes what is staged a version; nothing where there is no such."""
        return _nothing

    def flush(self) -> None:
        """Hand everything that the library still holds to the operating system; or nothing."""
        return _nothing()

    @abstractmethod
    def close(self) -> None:
        """Close the store."""


class Recalling(ABC):
    """A store that versions are read from."""

    @abstractmethod
    def look_up(self, number: int) -> Any:
        """Find a version, without reading a value of it; this is timed."""

    @abstractmethod
    def reader(self, found: Any, out: Table) -> Callable[[], Mapping[str, Values]]:
        """Return the call that reads a version that was found.

        It returns the columns: those of ``out`` where the library reads into memory that it is
        given, else new ones.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the store."""


class Keeper(ABC):
    """A way of keeping versions. The class can be asked without its library.

    Parameters
    ----------
    storage : ColumnStorage
        How columns are to be stored.
    options : Options
        Options of the backend.
    """

    #: Import names of the libraries that it needs beside those of the backend.
    libraries: ClassVar[tuple[str, ...]] = ()
    #: How to get them.
    remedy: ClassVar[str] = ""
    #: Whether versions before the last one can be read.
    keeps_all: ClassVar[bool] = True
    #: Whether reads land in memory that they are given; else the library returns new arrays.
    caller_buffer: ClassVar[bool] = True

    def __init__(self, storage: ColumnStorage, options: Options) -> None:
        self.storage = storage
        self.options = options

    @abstractmethod
    def create(self, path: str) -> Keeping:
        """Create a store, which one rank has to itself."""

    @abstractmethod
    def open(self, path: str) -> Recalling:
        """Open a store for reading."""

    @abstractmethod
    def look_at(self, path: str) -> tuple[Kept, StoredAs]:
        """Tell what a closed store holds and how values are really stored in it."""


def _nothing() -> None:
    """Do nothing."""
