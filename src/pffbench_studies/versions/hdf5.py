"""Version stores in plain HDF5 files: last version, full copies, and different chunks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import h5py

from pffbench.backends.hdf5 import Hdf5Options
from pffbench.backends.hdf5_files import filter_arguments
from pffbench.backends.inspection import StoredAs
from pffbench.case import Options
from pffbench_studies.versions.folder_store import FolderStore
from pffbench_studies.versions.history import Shape, Values
from pffbench_studies.versions.interface import ColumnStorage, StoredSize
from pffbench_studies.versions.plain import Column, Folder


def file_arguments(options: Options) -> dict[str, Any]:
    """Return the arguments of ``h5py.File``; all others have the library's defaults."""
    assert isinstance(options, Hdf5Options)
    told = {
        "rdcc_nbytes": None if options.chunk_cache is None else int(options.chunk_cache),
        "libver": None if options.libver in (None, "earliest") else options.libver,
    }
    return {key: value for key, value in told.items() if value is not None}


def compression(storage: ColumnStorage) -> dict[str, Any]:
    """Return the arguments with which ``create_dataset`` compresses a column."""
    wanted: Any = storage  # it has the attributes of a specification used here
    return filter_arguments(wanted)


class Hdf5Folder(Folder):
    """An HDF5 file."""

    def create(
        self, name: str, shape: Shape, dtype: Any, chunks: Shape, storage: ColumnStorage | None
    ) -> Column:
        told = {} if storage is None else compression(storage)
        return self.group.create_dataset(
            name, shape, dtype, maxshape=(None,) * len(shape), chunks=chunks, **told
        )

    def read_into(
        self, column: Column, selection: tuple[Any, ...], out: Values, place: tuple[slice, ...]
    ) -> None:
        column.read_direct(out, selection, place)

    def flush(self) -> None:
        self.group.flush()

    def close(self) -> None:
        self.group.close()


class Hdf5Versions(FolderStore):
    """Versions in an HDF5 file."""

    def folder(self, path: str, *, new: bool) -> Folder:
        return Hdf5Folder(h5py.File(path, "x" if new else "r", **file_arguments(self.options)))

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        return look_at_file(path, self.holds_values)


def look_at_file(path: str, is_data: Callable[[str], bool]) -> tuple[StoredSize, StoredAs]:
    """Return the stored size of the column data of a file, and their storage layout.

    Parameters
    ----------
    path : str
        The file.
    is_data : callable
        Whether a dataset of this name holds column data.
    """
    chunks = data_bytes = 0
    stored = StoredAs()
    with h5py.File(path, "r") as file:
        names: list[str] = []
        file.visit(names.append)  # which ends where a function returns anything
        for dataset in (file[name] for name in names if is_data(name)):
            if not isinstance(dataset, h5py.Dataset) or dataset.is_virtual:
                continue
            chunks += dataset.id.get_num_chunks()
            data_bytes += dataset.id.get_storage_size()
            codec, level = dataset.compression or "none", dataset.compression_opts
            named = codec if level is None else f"{codec} {level}"
            stored = StoredAs(chunks=dataset.chunks, codec=named, fill="if set")
    return StoredSize(chunks, data_bytes, os.path.getsize(path) - data_bytes), stored
