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
from typing import Any, Literal

import msgspec

from pffbench.backends.inspection import StoredAs
from pffbench.case import Options
from pffbench.plugins import load
from pffbench_studies.versions.history import (
    KindName,
    Probabilities,
    Shape,
    Table,
    Values,
    Version,
    kind_of,
)

Call = Callable[[], Any]
#: A call that returns the columns of a version.
ReadCall = Callable[[], Mapping[str, Values]]
Keep = Literal["last", "copies", "chunks", "versioned_hdf5", "icechunk"]


class ColumnStorage(msgspec.Struct, frozen=True):
    """Storage of columns."""

    #: Elements of a chunk along each axis.
    chunk: int
    #: Compression.
    codec: str
    #: Level of the codec.
    level: int
    #: Nothing is shuffled before it.
    shuffle: str = "none"

    @property
    def shuffled_before(self) -> bool:
        """Whether bytes are shuffled before the codec, as of `ArraySpec`."""
        return False

    def chunks(self, axes: int) -> Shape:
        """Return the chunk shape of a column."""
        return (self.chunk,) * axes


class StoredSize(msgspec.Struct, frozen=True):
    """Contents of a closed store."""

    #: Chunks of column data that are stored.
    chunks: int
    #: Encoded bytes of these chunks.
    data_bytes: int
    #: All other bytes of the store: the cost of finding the chunks.
    metadata_bytes: int


class VersionWriter(ABC):
    """An open store to which versions are written, in the order of their numbers."""

    @abstractmethod
    def stage(self, version: Version) -> Call:
        """Prepare to write a version; return the call that does it."""

    def commit(self, version: Version) -> Call:
        """Return the call that commits the staged edits; by default it does nothing."""
        return lambda: None

    def flush(self) -> None:  # noqa: B027 -- not every library keeps data back
        """Pass all data that the library still holds to the operating system."""

    def close(self) -> None:  # noqa: B027 -- not every store is an open file
        """Close the store."""


class VersionReader(ABC):
    """An open store from which versions are read."""

    @abstractmethod
    def look_up(self, number: int) -> Any:
        """Find a version, without reading its values; timed."""

    @abstractmethod
    def reader(self, found: Any, out: Table) -> ReadCall:
        """Return the call that reads a version that was found.

        It returns the columns: those of ``out`` where the library reads into given memory, else new
        ones.
        """

    def close(self) -> None:  # noqa: B027 -- not every store is an open file
        """Close the store."""


class VersionStore(ABC):
    """A way of keeping versions.

    Parameters
    ----------
    keep : str
        Name of the way.
    storage : ColumnStorage
        How columns are to be stored.
    options : Options
        Options of the backend.
    """

    def __init__(self, keep: Keep, storage: ColumnStorage, options: Options) -> None:
        self.keep = keep
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


class KeepingWay(msgspec.Struct, frozen=True):
    """A way in which a backend can keep versions."""

    #: Location of its class, whose module imports the libraries.
    store: str
    #: Import name of the library that it needs in addition to those of the backend, if any.
    package: str = ""
    #: How to install it.
    remedy: str = ""


_HDF5 = KeepingWay("pffbench_studies.versions.hdf5:Hdf5Versions")
_ZARR = KeepingWay("pffbench_studies.versions.zarr:ZarrVersions")
#: The ways that any folder of arrays has.
_FOLDERS: tuple[Keep, ...] = ("last", "copies", "chunks")
#: The ways, by backend and name.
WAYS: dict[tuple[str, Keep], KeepingWay] = {
    **{("hdf5", keep): _HDF5 for keep in _FOLDERS},
    **{("zarr", keep): _ZARR for keep in _FOLDERS},
    ("hdf5", "versioned_hdf5"): KeepingWay(
        "pffbench_studies.versions.versioned_hdf5:VersionedHdf5",
        "versioned_hdf5",
        "in an environment of `make env`: make study STUDY=versioned-hdf5; elsewhere "
        "it has to be built against the HDF5 of h5py, see docs/install.md",
    ),
    ("zarr", "icechunk"): KeepingWay(
        "pffbench_studies.versions.icechunk:Icechunk", "icechunk", "pip install icechunk"
    ),
}


def make_store(backend: str, keep: Keep, storage: ColumnStorage, options: Options) -> VersionStore:
    """Make a way of keeping versions; imports its libraries.

    Raises
    ------
    KeyError
        The backend does not have this way.
    UserError
        The library cannot be imported.
    """
    made: VersionStore = load(WAYS[backend, keep].store)(keep, storage, options)
    return made


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
        As of `pffbench_studies.versions.history.History`.
    keep : str
        The way of keeping them.
    chunk : int
        Elements of a chunk along each axis.
    """
    known = kind_of(kind, probabilities)
    # Where the draw is not positive none are appended, so that the mean is a little higher.
    growth = known.appended + known.appended_sd if known.grows else 0
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
    chances = known.chances
    changed = chances.change * min(grids[-1], known.changes) * chunks[-1]
    moved = (chances.insert + chances.delete) * whole
    return whole + math.ceil(versions * (tails + changed + moved + _REFERENCES))
