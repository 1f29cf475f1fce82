"""Version store of Icechunk (https://icechunk.io): transactions over Zarr.

The library stores each chunk in a file and, for each commit, a snapshot and manifests that refer to
them. Each written chunk is a new file: there is no deduplication.
"""

from __future__ import annotations

from typing import Any

import icechunk
import zarr

from pffbench.backends.inspection import StoredAs
from pffbench_studies.versions.history import COLUMNS, Table, Version
from pffbench_studies.versions.interface import (
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
    assignments,
    created,
    version_name,
    whole_columns,
)
from pffbench_studies.versions.zarr import ZarrFolder, chunk_files, stored_as

# For each file it warns of several writers to one repository; here there is one.
icechunk.set_logs_filter("error")


class Icechunk(VersionStore):
    """A repository in a directory, with one branch and a tag for each version."""

    def create(self, path: str) -> VersionWriter:
        place = icechunk.local_filesystem_storage(path)
        return _Keeping(icechunk.Repository.create(place), self.storage)

    def open(self, path: str) -> VersionReader:
        return _Recalling(icechunk.Repository.open(icechunk.local_filesystem_storage(path)))

    def look_at(self, path: str) -> tuple[StoredSize, StoredAs]:
        kept = chunk_files(path, lambda name: name.startswith("chunks/"))
        return kept, stored_as(self.open(path).look_up(0)["val"])


class _Keeping(VersionWriter):
    def __init__(self, repository: Any, storage: ColumnStorage) -> None:
        self._repository = repository
        self._storage = storage
        self._session: Any = None
        self._columns: dict[str, Column] = {}

    def stage(self, version: Version) -> Call:
        """Open a session and make the edits in it; chunks are written to files at once."""
        fill = assignments(self._columns, version)

        def call() -> None:
            self._session = self._repository.writable_session("main")
            if version.number:
                group = zarr.open_group(self._session.store, mode="r+")
                self._columns.update((name, group[name]) for name in COLUMNS)
                fill()
            else:
                folder = ZarrFolder(zarr.create_group(self._session.store))
                created(folder, "", version, self._storage)

        return call

    def commit(self, version: Version) -> Call:
        """Commit the session and tag the snapshot, also of a version without edits."""
        name, empty = version_name(version.number), not version.edits

        def call() -> None:
            if empty:
                snapshot = self._repository.lookup_branch("main")
            else:
                snapshot = self._session.commit(name)
            self._repository.create_tag(name, snapshot_id=snapshot)
            self._columns.clear()

        return call


class _Recalling(VersionReader):
    def __init__(self, repository: Any) -> None:
        self._repository = repository

    def look_up(self, number: int) -> dict[str, Column]:
        session = self._repository.readonly_session(tag=version_name(number))
        group = zarr.open_group(session.store, mode="r")
        return {name: group[name] for name in COLUMNS}

    def reader(self, found: dict[str, Column], out: Table) -> ReadCall:
        return whole_columns(ZarrFolder(None), found, out)
