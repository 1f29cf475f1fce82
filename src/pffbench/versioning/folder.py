"""What HDF5 groups and Zarr groups have in common, so that each way of keeping is written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pffbench.versioning.history import Shape, Values, Version
from pffbench.versioning.keeper import Call, ColumnStorage

#: An array of h5py, zarr-python or versioned-hdf5: all have shape, resize and item assignment.
Column = Any


class Folder(ABC):
    """An open store of named arrays that can grow."""

    @abstractmethod
    def create(
        self, name: str, shape: Shape, dtype: Any, chunks: Shape, storage: ColumnStorage | None
    ) -> Column:
        """Create an array; without ``storage`` it is not compressed. Groups in its name come up."""

    @abstractmethod
    def array(self, name: str) -> Column:
        """Open an array."""

    @abstractmethod
    def read_into(
        self, column: Column, selection: tuple[Any, ...], out: Values, place: tuple[slice, ...]
    ) -> None:
        """Read a part of an array into a part of a buffer."""

    @abstractmethod
    def flush(self) -> None:
        """Hand everything to the operating system."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""


def assignments(columns: Mapping[str, Column], version: Version) -> Call:
    """Return the call that makes a version of the one before by resizing and assigning.

    Parameters
    ----------
    columns : mapping of str to array
        The columns; looked at when the call is made.
    version : Version
        What is to come of them.
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
