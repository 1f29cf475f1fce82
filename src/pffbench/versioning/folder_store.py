"""Version stores in folders of named arrays: last version, full copies, or different chunks."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from pffbench.versioning.chunks import KeepingChunks, RecallingChunks
from pffbench.versioning.interface import VersionReader, VersionStore, VersionWriter
from pffbench.versioning.plain import (
    Folder,
    FolderReader,
    FolderWriter,
    KeepingCopies,
    KeepingLast,
    RecallingCopies,
    version_name,
)

FolderKeep = Literal["last", "copies", "chunks"]
_WRITERS: dict[FolderKeep, type[FolderWriter]] = {
    "last": KeepingLast, "copies": KeepingCopies, "chunks": KeepingChunks,
}  # fmt: skip
_READERS: dict[FolderKeep, type[FolderReader]] = {
    "last": FolderReader, "copies": RecallingCopies, "chunks": RecallingChunks,
}  # fmt: skip
_PREFIXES: dict[FolderKeep, str] = {
    "last": "", "copies": f"{version_name(0)}/", "chunks": "pool/",
}  # fmt: skip


class FolderStore(VersionStore):
    """A way of keeping versions in a folder; a library opens the folder."""

    keep: ClassVar[FolderKeep]

    @abstractmethod
    def create_folder(self, path: str) -> Folder:
        """Create an empty folder."""

    @abstractmethod
    def open_folder(self, path: str) -> Folder:
        """Open a folder for reading."""

    def create(self, path: str) -> VersionWriter:
        return _WRITERS[self.keep](self.create_folder(path), self.storage)

    def open(self, path: str) -> VersionReader:
        return _READERS[self.keep](self.open_folder(path), self.storage)

    @property
    def first_prefix(self) -> str:
        """Beginning of the names of the arrays that hold values of the first version."""
        return _PREFIXES[self.keep]

    def holds_values(self, name: str) -> bool:
        """Whether an array, or a part of one, of this name holds values of columns."""
        return self.keep != "chunks" or name.startswith(self.first_prefix)
