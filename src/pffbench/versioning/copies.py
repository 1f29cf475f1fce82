"""Keep a full copy of each version: what everybody can do without a library for versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pffbench.versioning.folder import Column, Folder, created
from pffbench.versioning.history import COLUMNS, Table, Values, Version
from pffbench.versioning.keeper import Call, ColumnStorage, Keeping, Recalling
from pffbench.versioning.last import whole_columns


def _group(number: int) -> str:
    return f"version_{number:06d}"


class KeepingCopies(Keeping):
    """A group for each version.

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

    def stage(self, version: Version) -> Call:
        prefix = f"{_group(version.number)}/"
        return partial(created, self._folder, prefix, version, self._storage)

    def flush(self) -> None:
        self._folder.flush()

    def close(self) -> None:
        self._folder.close()


class RecallingCopies(Recalling):
    """Versions, each in its own group."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def look_up(self, number: int) -> dict[str, Column]:
        return {name: self._folder.array(f"{_group(number)}/{name}") for name in COLUMNS}

    def reader(self, found: dict[str, Column], out: Table) -> Callable[[], Mapping[str, Values]]:
        return whole_columns(self._folder, found, out)

    def close(self) -> None:
        self._folder.close()
