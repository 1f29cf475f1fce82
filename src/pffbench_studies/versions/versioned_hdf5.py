"""Version store of versioned-hdf5 (https://deshaw.github.io/versioned-hdf5/).

The library keeps each different chunk once, in a dataset of raw data, and creates a virtual dataset
of references for each column of each version. It does not support MPI: a file belongs to one rank.
"""

from __future__ import annotations

from typing import Any

import h5py

from pffbench.backends.inspection import StoredAs
from pffbench.errors import UserError
from pffbench_studies.versions.hdf5 import (
    Hdf5Folder,
    compression,
    file_arguments,
    look_at_file,
)
from pffbench_studies.versions.history import COLUMNS, Table, Version
from pffbench_studies.versions.interface import (
    WAYS,
    Call,
    ColumnStorage,
    ReadCall,
    StoredSize,
    VersionReader,
    VersionStore,
    VersionWriter,
)
from pffbench_studies.versions.plain import (
    Column,
    FolderReader,
    FolderWriter,
    assignments,
    version_name,
)

try:
    from versioned_hdf5 import VersionedHDF5File
except ImportError as error:  # a binary wheel is built for another HDF5
    _REMEDY = WAYS["hdf5", "versioned_hdf5"].remedy
    raise UserError(f"versioned_hdf5 cannot be imported ({error}); {_REMEDY}") from None


def _path(column: str) -> str:
    """Return the path of a column in a version: a table is a group, as in the study."""
    return f"table/{column}"


class VersionedHdf5(VersionStore):
    """A file of versioned-hdf5."""

    def create(self, path: str) -> VersionWriter:
        return _Keeping(self._file(path, "x"), self.storage)

    def open(self, path: str) -> VersionReader:
        return _Recalling(self._file(path, "r"), self.storage)

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        return look_at_file(path, lambda name: name.endswith("/raw_data"))

    def _file(self, path: str, mode: str) -> Any:
        return h5py.File(path, mode, **file_arguments(self.options))


class _Keeping(FolderWriter):
    """Each version is a transaction of the library."""

    def __init__(self, file: Any, storage: ColumnStorage) -> None:
        super().__init__(Hdf5Folder(file), storage)
        self._versioned = VersionedHDF5File(file)
        self._transaction: Any = None

    def stage(self, version: Version) -> Call:
        """Begin a transaction and make the edits in it."""
        fill = assignments(self._arrays, version)

        def call() -> None:
            self._transaction = self._versioned.stage_version(version_name(version.number))
            group = self._transaction.__enter__()
            if version.number:
                self._arrays.update(_columns_of(group))
                fill()
            else:
                self._create(group, version.table)

        return call

    def _create(self, group: Any, table: Table) -> None:
        told = compression(self._storage)
        for name, values in table.items():
            chunks, unlimited = self._storage.chunks(values.ndim), (None,) * values.ndim
            group.create_dataset(
                _path(name), data=values, chunks=chunks, maxshape=unlimited, **told
            )

    def commit(self, version: Version) -> Call:
        """End the transaction: the library hashes the staged chunks and writes the new ones."""

        def call() -> None:
            self._transaction.__exit__(None, None, None)
            self._arrays.clear()

        return call


class _Recalling(FolderReader):
    def __init__(self, file: Any, storage: ColumnStorage) -> None:
        super().__init__(Hdf5Folder(file), storage)
        self._versioned = VersionedHDF5File(file)

    def look_up(self, number: int) -> dict[str, Column]:
        return _columns_of(self._versioned[version_name(number)])

    def reader(self, found: dict[str, Column], out: Table) -> ReadCall:
        """Return the call that reads each column into arrays that the library allocates."""
        return lambda: {name: column[()] for name, column in found.items()}


def _columns_of(group: Any) -> dict[str, Column]:
    return {name: group[_path(name)] for name in COLUMNS}
