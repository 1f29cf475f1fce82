"""The contract between the workload `versions` and the libraries that store versions.

A `VersionStore` creates a store and writes one version after the other to it, or opens a store and
reads versions. As in the backends, work is prepared off the timer and returned as a call, so that
only the library, or the chunk store of pffbench, runs in the timed region.

To add a way of keeping versions, write a subclass of `VersionStore` and register it below.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal

import msgspec

from pffbench.backends.inspection import StoredAs
from pffbench.case import Options
from pffbench.versioning.history import (
    KINDS,
    KindName,
    Probabilities,
    Shape,
    Table,
    Values,
    Version,
)

Call = Callable[[], Any]


class ColumnStorage(msgspec.Struct, frozen=True):
    """Storage of columns.

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


class StoredSize(msgspec.Struct, frozen=True):
    """Contents of a closed store.

    Parameters
    ----------
    chunks : int
        Chunks of column data that are stored.
    data_bytes : int
        Encoded bytes of these chunks.
    metadata_bytes : int
        All other bytes of the store: the cost of finding the chunks.
    """

    chunks: int
    data_bytes: int
    metadata_bytes: int


class VersionWriter(ABC):
    """An open store to which versions are written, in the order of their numbers."""

    @abstractmethod
    def stage(self, version: Version) -> Call:
        """Prepare to write a version; return the call that does it."""

    def commit(self, version: Version) -> Call:
        """Return the call that commits the staged edits; by default it does nothing."""
        return _do_nothing

    def flush(self) -> None:
        """Pass all data that the library still holds to the operating system."""
        return _do_nothing()

    def close(self) -> None:
        """Close the store; by default there is no open file."""
        return _do_nothing()


class VersionReader(ABC):
    """An open store from which versions are read."""

    @abstractmethod
    def look_up(self, number: int) -> Any:
        """Find a version, without reading its values; timed."""

    @abstractmethod
    def reader(self, found: Any, out: Table) -> Callable[[], Mapping[str, Values]]:
        """Return the call that reads a version that was found.

        It returns the columns: those of ``out`` where the library reads into given memory, else new
        ones.
        """

    def close(self) -> None:
        """Close the store; by default there is no open file."""
        return _do_nothing()


class VersionStore(ABC):
    """A way of keeping versions. The class does not import its library.

    Parameters
    ----------
    storage : ColumnStorage
        How columns are to be stored.
    options : Options
        Options of the backend.
    """

    #: Import names of the libraries that it needs in addition to those of the backend.
    libraries: ClassVar[tuple[str, ...]] = ()
    #: How to install them.
    remedy: ClassVar[str] = ""
    #: Whether versions before the last one can be read.
    keeps_all: ClassVar[bool] = True
    #: Whether reads land in given memory; else the library returns new arrays.
    caller_buffer: ClassVar[bool] = True

    def __init__(self, storage: ColumnStorage, options: Options) -> None:
        self.storage = storage
        self.options = options

    @abstractmethod
    def create(self, path: str) -> VersionWriter:
        """Create a store for one rank."""

    @abstractmethod
    def open(self, path: str) -> VersionReader:
        """Open a store for reading."""

    @abstractmethod
    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        """Return the size and the storage layout of a closed store."""


def _do_nothing() -> None:
    """Do nothing."""


Keep = Literal["last", "copies", "chunks", "versioned_hdf5", "icechunk"]

#: Backend and way → location of its class. The modules are light: instances import the libraries.
_KEEPERS: dict[tuple[str, Keep], str] = {
    ("hdf5", "last"): "pffbench.versioning.hdf5:Hdf5Last",
    ("hdf5", "copies"): "pffbench.versioning.hdf5:Hdf5Copies",
    ("hdf5", "chunks"): "pffbench.versioning.hdf5:Hdf5Chunks",
    ("hdf5", "versioned_hdf5"): "pffbench.versioning.versioned_hdf5:VersionedHdf5",
    ("zarr", "last"): "pffbench.versioning.zarr:ZarrLast",
    ("zarr", "copies"): "pffbench.versioning.zarr:ZarrCopies",
    ("zarr", "chunks"): "pffbench.versioning.zarr:ZarrChunks",
    ("zarr", "icechunk"): "pffbench.versioning.icechunk:Icechunk",
}


def ways_of(backend: str) -> tuple[Keep, ...]:
    """Return the ways in which a backend can keep versions; none for most."""
    return tuple(keep for name, keep in _KEEPERS if name == backend)


def keeper_class(backend: str, keep: Keep) -> type[VersionStore]:
    """Return the class of a version store without importing its library.

    Raises
    ------
    KeyError
        The backend does not have this way.
    """
    module, _, attribute = _KEEPERS[backend, keep].partition(":")
    found = getattr(import_module(module), attribute)
    assert isinstance(found, type)
    assert issubclass(found, VersionStore)
    return found


_ITEM = 8
#: Approximate most bytes of a version in addition to its chunks: references, groups, attributes.
_REFERENCES = 32 * 1024


def expected_bytes(
    kind: KindName, versions: int, probabilities: Probabilities, keep: Keep, chunk: int
) -> int:
    """Estimate the bytes of one rank's store, without compression and rather too high.

    Parameters
    ----------
    kind, versions, probabilities
        As of `pffbench.versioning.history.History`.
    keep : str
        The way of keeping them.
    chunk : int
        Elements of a chunk along each axis.
    """
    known, chances = KINDS[kind], KINDS[kind].chances(probabilities)
    # Where the draw is not positive none are appended, so that the mean is a little higher.
    growth = known.appended + known.appended_sd if known.grows(probabilities) else 0
    final = (known.start[0] + versions * growth, *known.start[1:])
    shapes = [final] * 3 if not known.dense else [final[:1], final[1:], final]
    chunks = [_ITEM * math.prod((chunk,) * len(shape)) for shape in shapes]
    grids = [math.prod(-(-n // chunk) for n in shape) for shape in shapes]
    whole = sum(grid * nbytes for grid, nbytes in zip(grids, chunks, strict=True))
    if keep == "last":
        return whole
    if keep == "copies":
        return versions * (whole + _REFERENCES)
    tails = 2 * sum(chunks)
    changed = chances.change * min(grids[-1], known.changes) * chunks[-1]
    moved = (chances.insert + chances.delete) * whole
    return whole + math.ceil(versions * (tails + changed + moved + _REFERENCES))
