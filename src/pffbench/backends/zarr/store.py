"""Zarr directory store shared by ranks, for any of the libraries.

Ranks write disjoint chunks. The common parts are here: which files a rank has written to, and how
an array grows that all ranks write. A library provides a store that creates and opens one array,
and an array that moves one box.

The layout on disk is read from the stored metadata, without any of the libraries.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from pffbench.backends.array_spec import EVERY_ARRAYS, ArraySpec, Capabilities
from pffbench.backends.base import Backend, Call, Edges, OptionsT, Storage
from pffbench.backends.directory import DirectoryArray, DirectoryStore, create_on_root, is_root
from pffbench.backends.inspection import StoredAs, StoredChunks, places
from pffbench.backends.zarr.format import (
    COMPRESSORS,
    DESCRIPTIONS,
    SHUFFLES,
    ZARR_CODECS,
    describe,
    refuse_chunks,
    stored_chunks,
    usual_key,
)
from pffbench.case import ChunkShape, Options, Parameters
from pffbench.geometry.box import Box, Shape
from pffbench.mpi.agreement import together

if TYPE_CHECKING:
    from mpi4py import MPI


class GroupStore(DirectoryStore):
    """A group in a directory; each array is a directory of chunks.

    Parameters
    ----------
    path, comm
        As of `DirectoryStore`.
    zarr_format : {2, 3}
        Version of the format.
    created : bool
        Whether the ranks have just made it.
    empty_chunks : bool
        Whether chunks that hold only the fill value are written.
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
        super().__init__(path, comm)
        self.zarr_format = zarr_format
        self.created = created
        self.empty_chunks = empty_chunks
        # Names of arrays, and "" for the store itself.
        self._described = {""} if created and is_root(comm) else set()

    def describes(self, spec: ArraySpec) -> None:
        self._described.add(spec.name)

    def files(self) -> set[str]:
        found = set(self._written)
        if not self.empty_chunks:
            found = {file for file in found if os.path.exists(file)}
        for name in self._described:
            directory = os.path.join(self.path, name)
            there = DESCRIPTIONS.intersection(os.listdir(directory))
            found.update(os.path.join(directory, file) for file in there)
        return found


class GroupArray(DirectoryArray):
    """An array of a group; each call moves one box."""

    _store: GroupStore

    @property
    @abstractmethod
    def grid(self) -> Shape:
        """Shape of the contents of a file: a chunk, or a shard."""

    def places(self, box: Box) -> Iterable[Shape]:
        """Return the places of the files that hold a box in the grid of all of them."""
        return places(box, self.grid)

    def files_of(self, box: Box) -> Iterable[str]:
        folder = self._store.file(self._spec.name)
        key = usual_key(self._store.zarr_format)
        return (os.path.join(folder, key(place)) for place in self.places(box))

    @property
    def attributes(self) -> Any:
        """The library's mapping of attributes."""
        return self._array.attrs


class GrowingArray(GroupArray):
    """An array whose library changes its shape."""

    @abstractmethod
    def resize(self, shape: Shape) -> Any:
        """Change the shape in the store; return the array, which has it."""

    def resizer(self, length: int) -> Call:
        comm = None if self._spec.owner is not None else self._store.comm
        if is_root(comm):
            self._store.describes(self._spec)
        shape = length, *self._array.shape[1:]
        return partial(self._grow, comm, shape, self._store.open_array(self._spec))

    def _grow(self, comm: MPI.Intracomm | None, shape: Shape, look_up: Call) -> None:
        """Let rank 0 write the new shape; the others read it.

        All ranks agree on having read it, since other arrays may grow next.
        """
        grow = partial(create_on_root, comm, partial(self.resize, shape), look_up)
        self._array = grow() if comm is None else together(comm, grow)


class FormatOptions(Options, frozen=True, kw_only=True):
    """Options of the format."""

    #: Version of the Zarr format.
    format: Literal[3, 2] = 3
    #: Shard shape (format 3): one file holds the chunks of a shard.
    shards: ChunkShape | None = None


def shards_of(options: Options) -> Shape | None:
    """Return the shape of a shard, if a backend's options ask for shards."""
    return options.shards if isinstance(options, FormatOptions) else None


class ZarrDirectory(Backend[OptionsT]):
    """Arrays of a group in a directory; a chunk or a shard is a file."""

    suffix = ".zarr"
    capabilities = Capabilities(
        arrays=EVERY_ARRAYS,
        codecs=ZARR_CODECS,
        shuffles=SHUFFLES,
        compressors=COMPRESSORS,
        attributes=True,
        threads=True,
    )
    file_per = "chunk"

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: OptionsT, specs: Sequence[ArraySpec], edges: Edges
    ) -> str | None:
        zarr_format = options.format if isinstance(options, FormatOptions) else 2
        return refuse_chunks(zarr_format, shards_of(options), specs, edges)

    @classmethod
    def storage(cls, spec: ArraySpec, options: OptionsT) -> Storage:
        chunked = super().storage(spec, options)
        return replace(chunked, unit=shards_of(options) or chunked.unit)

    def describe(self, path: str) -> StoredAs:
        return describe(path)

    def stored_chunks(self, path: str, names: Sequence[str]) -> list[StoredChunks]:
        return [stored_chunks(path, name) for name in names]
