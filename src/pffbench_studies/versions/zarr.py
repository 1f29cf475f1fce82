"""Version stores in plain Zarr directories: last version, full copies, and different chunks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import zarr
from zarr.buffer.cpu import NDBuffer

from pffbench.backends.inspection import StoredAs
from pffbench.backends.zarr.format import DESCRIPTIONS, codec_name, compressor
from pffbench.backends.zarr.settings import ZarrOptions
from pffbench.storage.durability import files_below
from pffbench_studies.versions.folder_store import FolderStore
from pffbench_studies.versions.history import Shape, Values
from pffbench_studies.versions.interface import ColumnStorage, StoredSize
from pffbench_studies.versions.plain import Column, Folder


class ZarrFolder(Folder):
    """A Zarr group, in a directory or in any other Zarr store."""

    def create(
        self, name: str, shape: Shape, dtype: Any, chunks: Shape, storage: ColumnStorage | None
    ) -> Column:
        wanted: Any = storage  # it has the attributes of a specification used here
        zarr_format = self.group.metadata.zarr_format
        codec = None if storage is None else compressor(zarr_format, wanted)
        return self.group.create_array(
            name, shape=shape, dtype=dtype, chunks=chunks, compressors=codec
        )

    def read_into(
        self, column: Column, selection: tuple[Any, ...], out: Values, place: tuple[slice, ...]
    ) -> None:
        column.get_basic_selection(selection, out=NDBuffer.from_numpy_array(out[place]))


class ZarrVersions(FolderStore):
    """Versions in a Zarr directory."""

    def folder(self, path: str, *, new: bool) -> Folder:
        assert isinstance(self.options, ZarrOptions)
        if new:
            return ZarrFolder(zarr.create_group(path, zarr_format=self.options.format))
        return ZarrFolder(zarr.open_group(path, mode="r"))

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        values = self.folder(path, new=False).array(f"{self.first_prefix}val")
        return chunk_files(path, self.holds_values), stored_as(values)


def chunk_files(path: str, is_data: Callable[[str], bool]) -> StoredSize:
    """Count the chunk files that hold column data, and the bytes of all others.

    Parameters
    ----------
    path : str
        The store.
    is_data : callable
        Whether a chunk file of this path, relative to the store, holds column data.
    """
    chunks = data = other = 0
    for file in files_below([path]):
        if os.path.basename(file) not in DESCRIPTIONS and is_data(os.path.relpath(file, path)):
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
