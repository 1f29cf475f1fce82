"""Version stores in plain Zarr directories: last version, full copies, and different chunks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from pffbench.backends.inspection import StoredAs
from pffbench.backends.zarr.format import codec_name, compressor
from pffbench.backends.zarr.zarr3 import ZarrOptions
from pffbench.case import Options
from pffbench.storage.durability import files_below
from pffbench.versioning.chunks import KeepingChunks, RecallingChunks
from pffbench.versioning.history import COLUMNS, Shape, Values
from pffbench.versioning.interface import (
    ColumnStorage,
    StoredSize,
    VersionReader,
    VersionStore,
    VersionWriter,
)
from pffbench.versioning.plain import (
    Column,
    Folder,
    KeepingCopies,
    KeepingLast,
    RecallingCopies,
    RecallingLast,
)

_DESCRIPTIONS = frozenset({"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"})


class ZarrFolder(Folder):
    """A Zarr group, in a directory or in any other Zarr store.

    Parameters
    ----------
    group : zarr.Group
        The group.
    zarr_format : {2, 3}
        Its format.
    """

    def __init__(self, group: Any, zarr_format: int) -> None:
        self._group = group
        self._format = zarr_format

    def create(
        self, name: str, shape: Shape, dtype: Any, chunks: Shape, storage: ColumnStorage | None
    ) -> Column:
        wanted: Any = storage  # it has the attributes of a specification used here
        codec = None if storage is None else compressor(self._format, wanted)
        return self._group.create_array(
            name, shape=shape, dtype=dtype, chunks=chunks, compressors=codec
        )

    def array(self, name: str) -> Column:
        return self._group[name]

    def read_into(
        self, column: Column, selection: tuple[Any, ...], out: Values, place: tuple[slice, ...]
    ) -> None:
        from zarr.buffer.cpu import NDBuffer

        column.get_basic_selection(selection, out=NDBuffer.from_numpy_array(out[place]))

    def flush(self) -> None:
        """Do nothing: zarr-python keeps no data back."""

    def close(self) -> None:
        """Do nothing: a directory holds no open file."""


class _ZarrKeeper(VersionStore):
    """Base class of the version stores in Zarr directories."""

    def __init__(self, storage: ColumnStorage, options: Options) -> None:
        super().__init__(storage, options)
        import zarr

        assert isinstance(options, ZarrOptions)
        self._zarr = zarr
        self._format = options.format

    def _create(self, path: str) -> Folder:
        return ZarrFolder(self._zarr.create_group(path, zarr_format=self._format), self._format)

    def _open(self, path: str) -> Folder:
        return ZarrFolder(self._zarr.open_group(path, mode="r"), self._format)

    def _stored_as(self, path: str, name: str) -> StoredAs:
        return stored_as(self._zarr.open_group(path, mode="r")[name])

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        raise NotImplementedError


class ZarrLast(_ZarrKeeper):
    """One array a column, resized and assigned to."""

    keeps_all = False

    def create(self, path: str) -> VersionWriter:
        return KeepingLast(self._create(path), self.storage)

    def open(self, path: str) -> VersionReader:
        return RecallingLast(self._open(path))

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        kept = chunk_files(path, lambda parts: parts[0] in COLUMNS)
        return kept, self._stored_as(path, "val")


class ZarrCopies(_ZarrKeeper):
    """One group a version."""

    def create(self, path: str) -> VersionWriter:
        return KeepingCopies(self._create(path), self.storage)

    def open(self, path: str) -> VersionReader:
        return RecallingCopies(self._open(path))

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        kept = chunk_files(path, lambda _: True)
        return kept, self._stored_as(path, "version_000000/val")


class ZarrChunks(_ZarrKeeper):
    """Each different chunk once, in arrays that grow."""

    def create(self, path: str) -> VersionWriter:
        return KeepingChunks(self._create(path), self.storage)

    def open(self, path: str) -> VersionReader:
        return RecallingChunks(self._open(path), self.storage)

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        kept = chunk_files(path, lambda parts: parts[0] == "pool")
        return kept, self._stored_as(path, "pool/val")


def chunk_files(path: str, is_data: Callable[[tuple[str, ...]], bool]) -> StoredSize:
    """Count the chunk files that hold column data, and the bytes of all others.

    Parameters
    ----------
    path : str
        The store.
    is_data : callable
        Whether a chunk with these parts of its path holds column data.
    """
    chunks = data = other = 0
    for file in files_below([path]):
        parts = PurePath(os.path.relpath(file, path)).parts
        if parts[-1] not in _DESCRIPTIONS and is_data(parts):
            chunks += 1
            data += os.path.getsize(file)
        else:
            other += os.path.getsize(file)
    return StoredSize(chunks, data, other)


def stored_as(array: Any) -> StoredAs:
    """Return the storage layout of a Zarr array."""
    codec = ", ".join(map(codec_name, array.compressors)) or "none"
    more = {"format": str(array.metadata.zarr_format)}
    return StoredAs(chunks=array.chunks, codec=codec, fill="never", more=more)
