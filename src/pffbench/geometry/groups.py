"""Which ranks share a file: blocks of consecutive ranks, one file for each block."""

from __future__ import annotations

import msgspec


class FileGroups(msgspec.Struct, frozen=True):
    """The ranks of a job in groups, each of which has one file; equal on all ranks.

    Groups are blocks of consecutive ranks, whose sizes differ by one at most.
    """

    #: Number of groups, and of files.
    files: int
    #: Number of ranks.
    ranks: int
    #: Whether each rank opens its file alone, without a communicator.
    alone: bool = False

    @property
    def largest(self) -> int:
        """Number of ranks of the largest group."""
        return -(-self.ranks // self.files)

    def index(self, rank: int) -> int:
        """Return the number of a rank's group."""
        return ((rank + 1) * self.files - 1) // self.ranks

    def group(self, index: int) -> range:
        """Return the ranks of a group."""
        return range(index * self.ranks // self.files, (index + 1) * self.ranks // self.files)

    def members(self, rank: int) -> range:
        """Return the ranks that share the file of a rank."""
        return self.group(self.index(rank))

    def keeps(self, rank: int) -> bool:
        """Whether a rank copies and removes the file for its group: the first one does."""
        return self.members(rank).start == rank

    def owner(self, rank: int) -> int:
        """Return the number of a rank as an owner of arrays: that in the file's communicator.

        A rank that opens its file alone keeps its own number.
        """
        return rank if self.alone else rank - self.members(rank).start
