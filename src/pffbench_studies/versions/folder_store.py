"""Version stores in folders of named arrays: last version, full copies, or different chunks."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from pffbench_studies.versions.chunks import KeepingChunks, RecallingChunks
from pffbench_studies.versions.interface import Keep, VersionReader, VersionStore, VersionWriter
from pffbench_studies.versions.plain import (
    Folder,
    FolderReader,
    FolderWriter,
    KeepingCopies,
    KeepingLast,
    RecallingCopies,
    version_name,
)


class _Keeping(NamedTuple):
    """Writer and reader of a way, and the folder of the arrays of its first version."""

    writer: type[FolderWriter]
    reader: type[FolderReader]
    first: str


_KEEPING: dict[Keep, _Keeping] = {
    "last": _Keeping(KeepingLast, FolderReader, ""),
    "copies": _Keeping(KeepingCopies, RecallingCopies, f"{version_name(0)}/"),
    "chunks": _Keeping(KeepingChunks, RecallingChunks, "pool/"),
}


class FolderStore(VersionStore):
    """A way of keeping versions in a folder; a library opens the folder."""

    @abstractmethod
    def folder(self, path: str, *, new: bool) -> Folder:
        """Create an empty folder, or open one for reading."""

    def create(self, path: str) -> VersionWriter:
        return _KEEPING[self.keep].writer(self.folder(path, new=True), self.storage)

    def open(self, path: str) -> VersionReader:
        return _KEEPING[self.keep].reader(self.folder(path, new=False), self.storage)

    @property
    def first_prefix(self) -> str:
        """Beginning of the names of the arrays that hold values of the first version."""
        return _KEEPING[self.keep].first

    def holds_values(self, name: str) -> bool:
        """Whether an array, or a part of one, of this name holds values of columns."""
        return self.keep != "chunks" or name.startswith(self.first_prefix)
