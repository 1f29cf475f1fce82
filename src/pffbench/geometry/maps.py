"""Irregular decompositions: which stretches of an array each process of a map has."""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import prod

import msgspec
import numpy as np

from pffbench.geometry.box import Box, Shape
from pffbench.geometry.stretches import Integers, Stretches, merged
from pffbench.median import median_of


class DecompositionMap(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Stretches of an array, for each process."""

    #: Shape of the array.
    shape: Shape
    #: Number of stretches of each process; 0 for one that has nothing.
    counts: Integers
    #: First element of each stretch in the flattened array, in C order, and number of elements:
    #: those of the first process, then those of the second one, and so on.
    offsets: Integers
    lengths: Integers

    @property
    def processes(self) -> int:
        """Number of processes."""
        return len(self.counts)

    def part(self, ranks: int, rank: int) -> Stretches:
        """Return what a rank has: the stretches of its processes, joined where they meet.

        A rank stands for ``processes / ranks`` consecutive processes, rounded up or down.
        """
        return _part(self, ranks, rank)

    def beyond(self, ranks: int) -> str | None:
        """Return that ranks are more than the map has processes, or None."""
        if ranks <= self.processes:
            return None
        return f"the map is for {self.processes} processes, fewer than the {ranks} ranks"

    @property
    def overlap(self) -> str | None:
        """Which element two processes have; None if there is none."""
        order = np.argsort(self.offsets, kind="stable")
        begins = self.offsets[order]
        ends = np.maximum.accumulate(begins + self.lengths[order])
        again = np.flatnonzero(begins[1:] < ends[:-1])
        if not again.size:
            return None
        place = int(again[0])
        element = int(begins[place + 1])
        has = np.flatnonzero((begins <= element) & (begins + self.lengths[order] > element))
        first, second = sorted(self._process_of(int(order[i])) for i in has[:2].tolist())
        who = f"processes {first} and {second} both have" if first != second else (
            f"process {first} has twice"
        )  # fmt: skip
        return f"{who} element {element}; overlaps: allow takes such a map"

    def _process_of(self, stretch: int) -> int:
        return int(np.searchsorted(np.cumsum(self.counts), stretch, side="right"))

    @property
    def hole(self) -> str | None:
        """Which elements no process has; None if there are none."""
        offsets, lengths = merged(self.offsets, self.lengths)
        total = prod(self.shape)
        missing = total - int(lengths.sum())
        if not missing:
            return None
        begins = np.concatenate(([0], offsets + lengths))
        ends = np.concatenate((offsets, [total]))
        first = int(np.flatnonzero(begins < ends)[0])
        return (
            f"no process has elements {begins[first]} to {ends[first] - 1}, in all {missing} of "
            f"{total} are missing; holes: allow takes such a map"
        )

    def describe(self, ranks: int, itemsize: int) -> str:
        """Return how many stretches ranks have, and how long they are."""
        numbers, sizes = _of_ranks(self, ranks)
        counts, elements = sorted(numbers.tolist()), int(sizes.sum())
        processes = "" if ranks == self.processes else f"{self.processes} processes on "
        each = f"{counts[0]} to {counts[-1]}" if counts[0] != counts[-1] else f"{counts[0]}"
        mean = elements * itemsize / max(1, sum(counts))
        return (
            f"{processes}{ranks} ranks: {each} stretches a rank (median "
            f"{median_of(counts):g}), of {mean:.4g} bytes on average"
        )

    def sizes(self, ranks: int) -> Integers:
        """Return the number of elements of each rank."""
        return _of_ranks(self, ranks)[1]

    @cached_property
    def end(self) -> int:
        """Number of elements up to the last one that a process has."""
        return int((self.offsets + self.lengths).max())

    @cached_property
    def merged_count(self) -> int:
        """Number of stretches if all processes were one: those that meet are joined."""
        return len(merged(self.offsets, self.lengths)[0])


@lru_cache(maxsize=4)
def _bounds(decomposition: DecompositionMap, ranks: int) -> Integers:
    """Return the first stretch of each rank, and the number of all stretches."""
    first = np.arange(ranks + 1, dtype=np.int64) * decomposition.processes // ranks
    return np.concatenate(([0], np.cumsum(decomposition.counts)))[first]


@lru_cache(maxsize=4)
def _of_ranks(decomposition: DecompositionMap, ranks: int) -> tuple[Integers, Integers]:
    """Return the number of stretches and of elements of each rank, as its `part` has them."""
    rank = np.repeat(np.arange(ranks), np.diff(_bounds(decomposition, ranks)))
    order = np.lexsort((decomposition.offsets, rank))
    owner, begins, lengths = rank[order], decomposition.offsets[order], decomposition.lengths[order]
    same, gap = owner[1:] == owner[:-1], begins[1:] - (begins + lengths)[:-1]
    if (same & (gap < 0)).any():  # a rank has elements twice
        parts = [decomposition.part(ranks, number) for number in range(ranks)]
        return np.array([len(p.offsets) for p in parts]), np.array([p.size for p in parts])
    first = np.flatnonzero(np.concatenate(([True], ~same | (gap > 0))))
    sizes = np.zeros(ranks, np.int64)
    np.add.at(sizes, owner, lengths)
    return np.bincount(owner[first], minlength=ranks), sizes


@lru_cache(maxsize=4096)
def _part(decomposition: DecompositionMap, ranks: int, rank: int) -> Stretches:
    first, last = _bounds(decomposition, ranks)[rank : rank + 2].tolist()
    offsets, lengths = decomposition.offsets[first:last], decomposition.lengths[first:last]
    return Stretches.of(decomposition.shape, *merged(offsets, lengths))


class OfMap(msgspec.Struct, frozen=True, eq=False):
    """A cut by a decomposition map."""

    #: The map.
    map: DecompositionMap
    #: Number of ranks.
    ranks: int
    #: The file that the map is in.
    file: str

    @property
    def size(self) -> int:
        """Number of elements that the parts of all ranks have."""
        return int(self.map.sizes(self.ranks).sum())

    def describe(self, itemsize: int) -> str:
        """Return the file, and how many stretches of which length ranks have."""
        return f"{self.file}: {self.map.describe(self.ranks, itemsize)}"


class MapCut(OfMap, frozen=True, eq=False):
    """An array that has the map's shape: ranks have stretches of it."""

    @property
    def whole(self) -> Shape:
        """Shape of the array."""
        return self.map.shape

    @property
    def edges(self) -> tuple[Shape, ...]:
        """No edges: parts are no boxes."""
        return ((),) * len(self.whole)

    @property
    def largest(self) -> Box:
        """The largest part."""
        return self.part(int(self.map.sizes(self.ranks).argmax()))

    def part(self, rank: int) -> Box:
        """Return the part of a rank; it may be empty."""
        return self.map.part(self.ranks, rank)

    def around(self, ranks: range) -> Box:  # noqa: ARG002 -- a store has the array as a whole
        """Return a box that contains the parts of some ranks."""
        return Box((0,) * len(self.whole), self.whole)


class Consecutive(OfMap, frozen=True, eq=False):
    """An array of one axis that has the elements of each rank, one rank after the other."""

    @property
    def whole(self) -> Shape:
        """Shape of the array."""
        return (self.size,)

    @property
    def edges(self) -> tuple[Shape, ...]:
        """Where the elements of one rank end and those of the next begin."""
        inner = set(_ends(self.map, self.ranks)) - {0, self.size}
        return (tuple(sorted(inner)),)

    @property
    def largest(self) -> Box:
        """A box as long as the largest part."""
        return Box((0,), (int(self.map.sizes(self.ranks).max()),))

    def part(self, rank: int) -> Box:
        """Return the part of a rank; it may be empty."""
        return self.around(range(rank, rank + 1))

    def around(self, ranks: range) -> Box:
        """Return the parts of consecutive ranks."""
        ends = (0, *_ends(self.map, self.ranks))
        return Box((ends[ranks.start],), (ends[ranks.stop] - ends[ranks.start],))

    @property
    def stretches(self) -> tuple[Integers, Integers]:
        """First element in the map's array, and length, of each stretch of the array."""
        parts = [self.map.part(self.ranks, rank) for rank in range(self.ranks)]
        offsets, lengths = zip(*((part.offsets, part.lengths) for part in parts), strict=True)
        return np.concatenate(offsets), np.concatenate(lengths)

    def describe(self, itemsize: int) -> str:
        """Return the file, and how many stretches of which length ranks have."""
        return f"{super().describe(itemsize)}, stored one after the other"


@lru_cache(maxsize=4)
def _ends(decomposition: DecompositionMap, ranks: int) -> Shape:
    """Return for each rank how many elements it and those before it have."""
    return tuple(np.cumsum(decomposition.sizes(ranks)).tolist())
