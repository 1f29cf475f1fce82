"""Version store of versioned-hdf5 (https://deshaw.github.io/versioned-hdf5/).

The library keeps each different chunk once, in a dataset of raw data, and creates a virtual dataset
of references for each column of each version. It does not support MPI: a file belongs to one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pffbench.backends.inspection import StoredAs
from pffbench.case import Options
from pffbench.errors import UserError
from pffbench.versioning.hdf5 import compression, file_arguments, look_at_file
from pffbench.versioning.history import COLUMNS, Table, Values, Version
from pffbench.versioning.interface import (
    Call,
    ColumnStorage,
    StoredSize,
    VersionReader,
    VersionStore,
    VersionWriter,
)
from pffbench.versioning.plain import Column, assignments, version_name


def _path(column: str) -> str:
    """Return the path of a column in a version: a table is a group, as in the study."""
    return f"table/{column}"


class VersionedHdf5(VersionStore):
    """A file of versioned-hdf5."""

    libraries = ("versioned_hdf5",)
    remedy = (
        "in an environment of setup/bootstrap: setup/bootstrap --study versioned-hdf5; elsewhere "
        "it has to be built against the HDF5 of h5py, see docs/install.md"
    )
    caller_buffer = False

    def __init__(self, storage: ColumnStorage, options: Options) -> None:
        super().__init__(storage, options)
        import h5py

        try:
            from versioned_hdf5 import VersionedHDF5File
        except ImportError as error:  # a binary wheel is built for another HDF5
            raise UserError(f"versioned_hdf5 cannot be imported ({error}); {self.remedy}") from None
        self._h5py = h5py
        self._versioned = VersionedHDF5File

    def create(self, path: str) -> VersionWriter:
        file = self._h5py.File(path, "x", **file_arguments(self.options))
        return _Keeping(file, self._versioned(file), self.storage)

    def open(self, path: str) -> VersionReader:
        file = self._h5py.File(path, "r", **file_arguments(self.options))
        return _Recalling(file, self._versioned(file))

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        return look_at_file(self._h5py, path, lambda name: name.endswith("/raw_data"))


class _Keeping(VersionWriter):
    def __init__(self, file: Any, versioned: Any, storage: ColumnStorage) -> None:
        self._file = file
        self._versioned = versioned
        self._storage = storage
        self._transaction: Any = None
        self._columns: dict[str, Column] = {}

    def stage(self, version: Version) -> Call:
        """Begin a transaction of the library and make the edits in it."""
        fill = assignments(self._columns, version)

        def call() -> None:
            self._transaction = self._versioned.stage_version(version_name(version.number))
            group = self._transaction.__enter__()
            if version.number:
                self._columns.update((name, group[_path(name)]) for name in COLUMNS)
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
            self._columns.clear()

        return call

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _Recalling(VersionReader):
    def __init__(self, file: Any, versioned: Any) -> None:
        self._file = file
        self._versioned = versioned

    def look_up(self, number: int) -> dict[str, Column]:
        group = self._versioned[version_name(number)]
        return {name: group[_path(name)] for name in COLUMNS}

    def reader(self, found: dict[str, Column], out: Table) -> Callable[[], Mapping[str, Values]]:
        """Return the call that reads each column into arrays that the library allocates."""
        return lambda: {name: column[()] for name, column in found.items()}

    def close(self) -> None:
        self._file.close()
