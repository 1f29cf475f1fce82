"""Version stores in plain groups: full copies of every version, or only the last version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from pffbench_studies.versions.history import COLUMNS, Shape, Table, Values, Version
from pffbench_studies.versions.interface import (
    Call,
    ColumnStorage,
    ReadCall,
    VersionReader,
    VersionWriter,
)

#: An array of h5py, zarr-python or versioned-hdf5: all have shape, resize and item assignment.
Column = Any


class Folder(ABC):
    """An open store of named arrays that can grow.

    Parameters
    ----------
    group : h5py.File or zarr.Group
        What a library has opened.
    """

    def __init__(self, group: Any) -> None:
        self.group = group

    @abstractmethod
    def create(
        self, name: str, shape: Shape, dtype: Any, chunks: Shape, storage: ColumnStorage | None
    ) -> Column:
        """Create an array and the groups in its name; without ``storage`` uncompressed."""

    def array(self, name: str) -> Column:
        """Open an array."""
        return self.group[name]

    @abstractmethod
    def read_into(
        self, column: Column, selection: tuple[Any, ...], out: Values, place: tuple[slice, ...]
    ) -> None:
        """Read a part of an array into a part of a buffer."""

    def flush(self) -> None:
        """Pass all data to the operating system; by default the library keeps none back."""
        return

    def close(self) -> None:
        """Close the store; by default there is no open file."""
        return


def assignments(columns: Mapping[str, Column], version: Version) -> Call:
    """Return the call that turns the version before into a version, by resizing and assigning.

    Parameters
    ----------
    columns : mapping of str to array
        The columns; evaluated when the call is made.
    version : Version
        The version to make.
    """
    steps = [
        (edit.column, edit.shape, edit.slices if edit.data.size else None, edit.data)
        for edit in version.edits
    ]

    def call() -> None:
        for name, shape, place, data in steps:
            column = columns[name]
            if column.shape != shape:
                column.resize(shape)
            if place is not None:
                column[place] = data

    return call


def created(
    folder: Folder, prefix: str, version: Version, storage: ColumnStorage
) -> dict[str, Column]:
    """Create the columns of a version, with their values, and return them."""
    columns = {}
    for name, values in version.table.items():
        column = folder.create(
            prefix + name, values.shape, values.dtype, storage.chunks(values.ndim), storage
        )
        if values.size:
            column[...] = values
        columns[name] = column
    return columns


def version_name(number: int) -> str:
    """Return the name under which a version is kept."""
    return f"version_{number:06d}"


class FolderWriter(VersionWriter):
    """A store of named arrays to which versions are written.

    Parameters
    ----------
    folder : Folder
        The store.
    storage : ColumnStorage
        Storage of the columns.
    """

    def __init__(self, folder: Folder, storage: ColumnStorage) -> None:
        self._folder = folder
        self._storage = storage
        #: Open arrays, which are released before the store is closed.
        self._arrays: dict[str, Column] = {}

    def flush(self) -> None:
        self._folder.flush()

    def close(self) -> None:
        self._arrays.clear()
        self._folder.close()


class FolderReader(VersionReader):
    """A store of named arrays from which versions are read: those of the last one."""

    def __init__(self, folder: Folder, storage: ColumnStorage) -> None:
        self._folder = folder
        self._storage = storage

    def look_up(self, number: int) -> dict[str, Any]:
        return {name: self._folder.array(name) for name in COLUMNS}

    def reader(self, found: dict[str, Any], out: Table) -> ReadCall:
        return whole_columns(self._folder, found, out)

    def close(self) -> None:
        self._folder.close()


class KeepingCopies(FolderWriter):
    """A group for each version."""

    def stage(self, version: Version) -> Call:
        prefix = f"{version_name(version.number)}/"
        return partial(created, self._folder, prefix, version, self._storage)


class RecallingCopies(FolderReader):
    """Versions, each in its own group."""

    def look_up(self, number: int) -> dict[str, Column]:
        return {name: self._folder.array(f"{version_name(number)}/{name}") for name in COLUMNS}


class KeepingLast(FolderWriter):
    """Columns that each version changes."""

    def stage(self, version: Version) -> Call:
        if version.number:
            return assignments(self._arrays, version)

        def call() -> None:
            self._arrays.update(created(self._folder, "", version, self._storage))

        return call


def whole_columns(folder: Folder, found: Mapping[str, Column], out: Table) -> ReadCall:
    """Return the call that reads whole columns into buffers."""
    steps = [(column, out[name]) for name, column in found.items() if out[name].size]

    def call() -> Table:
        for column, buffer in steps:
            everything = (slice(None),) * buffer.ndim
            folder.read_into(column, everything, buffer, everything)
        return out

    return call
