"""Keep the last state only: columns are changed in place. What versions are measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pffbench.versioning.folder import Column, Folder, assignments, created
from pffbench.versioning.history import COLUMNS, Table, Values, Version
from pffbench.versioning.keeper import Call, ColumnStorage, Keeping, Recalling


class KeepingLast(Keeping):
    """Columns that each version changes.

    Parameters
    ----------
    folder : Folder
        The store.
    storage : ColumnStorage
        How columns are stored.
    """

    def __init__(self, folder: Folder, storage: ColumnStorage) -> None:
        self._folder = folder
        self._storage = storage
        self._columns: dict[str, Column] = {}

    def stage(self, version: Version) -> Call:
        if version.number:
            return assignments(self._columns, version)

        def call() -> None:
            self._columns = created(self._folder, "", version, self._storage)

        return call

    def flush(self) -> None:
        self._folder.flush()

    def close(self) -> None:
        self._columns.clear()
        self._folder.close()


class RecallingLast(Recalling):
    """Columns as the last version left them."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def look_up(self, number: int) -> dict[str, Column]:
        return {name: self._folder.array(name) for name in COLUMNS}

    def reader(self, found: dict[str, Column], out: Table) -> Callable[[], Mapping[str, Values]]:
        return whole_columns(self._folder, found, out)

    def close(self) -> None:
        self._folder.close()


def whole_columns(
    folder: Folder, found: Mapping[str, Column], out: Table
) -> Callable[[], Mapping[str, Values]]:
    """Return the call that reads whole columns into buffers."""
    steps = [(column, out[name]) for name, column in found.items() if out[name].size]

    def call() -> Table:
        for column, buffer in steps:
            everything = (slice(None),) * buffer.ndim
            folder.read_into(column, everything, buffer, everything)
        return out

    return call
