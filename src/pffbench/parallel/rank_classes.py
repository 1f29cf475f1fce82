"""Classes of ranks: those whose parts of an array have one shape and lie alike in its chunks."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pffbench.parallel.decomposition import GlobalArray, Shape, ends_before
from pffbench.parallel.file_groups import FileGroups

Integers = np.ndarray[Any, np.dtype[np.int64]]


class RankClass(msgspec.Struct, frozen=True):
    """Ranks that are alike.

    Parameters
    ----------
    rank : int
        One of them.
    count : int
        Number of them.
    """

    rank: int
    count: int


class AllParts(msgspec.Struct, frozen=True):
    """The parts of all ranks of an array.

    Parameters
    ----------
    start, stop : array of int64, (ranks, axes)
        Index of the first element of each part, and past its last; equal where a part is empty.
    """

    start: Integers
    stop: Integers

    @classmethod
    def of(cls, array: GlobalArray, ranks: int) -> AllParts:
        """Return the parts that `GlobalArray.part` gives, and empty ones of further ranks."""
        places = np.unravel_index(np.arange(ranks) % np.prod(array.grid), array.grid)
        ends = [
            [np.minimum(n, ends_before(n, parts, at, array.distribution)) for at in (p, p + 1)]
            for n, parts, p in zip(array.in_units, array.grid, places, strict=True)
        ]
        both = np.moveaxis(np.array(ends, np.int64), 2, 0)  # ranks, axes, the two ends
        if array.unit is not None:
            both = np.minimum(both * np.array(array.unit)[:, None], np.array(array.shape)[:, None])
        start, stop = both[..., 0], both[..., 1]
        empty = (start == stop).any(axis=1) | (np.arange(ranks) >= np.prod(array.grid))
        return cls(np.where(empty[:, None], 0, start), np.where(empty[:, None], 0, stop))

    @property
    def sizes(self) -> Integers:
        """Number of elements of each part."""
        found: Integers = (self.stop - self.start).prod(axis=1)
        return found

    def moved(self, by: Shape) -> AllParts:
        """Return the parts of an array that begins at an index of another one."""
        some = self.sizes[:, None] > 0
        return AllParts(self.start + by * some, self.stop + by * some)

    def keys(self, whole: Integers | Shape, unit: Shape | None) -> Integers:
        """Return rows that are equal for ranks that are alike.

        Parameters
        ----------
        whole : tuple of int, or array of int64 (ranks, axes)
            Shape of the array, or of that of each rank.
        unit : tuple of int or None
            Shape of its chunks.
        """
        lengths, ends = self.stop - self.start, self.stop == np.asarray(whole)
        inside = self.start % np.array(unit) if unit else np.zeros_like(lengths)
        return np.concatenate([lengths, ends, inside], axis=1)


def boxes_of_groups(parts: AllParts, groups: FileGroups) -> AllParts:
    """Return the smallest box around the parts of each group of ranks, as `GlobalArray.around`."""
    begins = [groups.group(index).start for index in range(groups.files)]
    some = parts.sizes[:, None] > 0
    first = np.minimum.reduceat(np.where(some, parts.start, np.iinfo(np.int64).max), begins)
    last = np.maximum.reduceat(parts.stop, begins)
    return AllParts(np.minimum(first, last), last)


def of_group(parts: AllParts, groups: FileGroups, unit: Shape | None) -> Integers:
    """Return rows as `AllParts.keys`, of parts in the arrays of the files that groups share."""
    index = np.array([groups.index(rank) for rank in range(groups.ranks)])
    boxes = boxes_of_groups(parts, groups)
    whole = (boxes.stop - boxes.start)[index]
    inside = parts.moved(-boxes.start[index])
    return np.concatenate([inside.keys(whole, unit), whole], axis=1)


def classes_of(keys: Integers) -> list[RankClass]:
    """Return the classes of ranks with equal rows."""
    _, firsts, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    return [RankClass(int(a), int(n)) for a, n in zip(firsts, counts, strict=True)]
