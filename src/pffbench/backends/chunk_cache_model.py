"""A model of HDF5's chunk cache: how often a sequence of calls loads each chunk.

Each open dataset has such a cache (``H5Pset_cache``, ``H5Pset_chunk_cache``). Its rules, which hold
from HDF5 1.8 to 2.0:

- A compressed chunk always goes through it. Where the chunk is larger than the whole cache, it is
  read and decoded in each call that touches it, and nothing is kept.
- A chunk has one possible slot: its linear index in the grid of chunks, modulo the number of slots.
  The chunk already there is evicted.
- When the cache is full, the least recently used chunks are evicted; those whose elements were all
  read, or written, once go first (``w0`` sets how far this first choice is tried).

netCDF-4 has the same cache with sizes of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from pffbench.parallel.decomposition import Box, Shape
from pffbench.units import Size


class ChunkCacheSettings(msgspec.Struct, frozen=True):
    """Settings of a dataset's chunk cache.

    Parameters
    ----------
    nbytes : int
        Bytes of chunks that it may hold; 0 switches it off.
    slots : int
        Length of its hash table; 0 switches it off.
    preemption : float
        The setting ``w0``: 0 evicts the least recently used chunk, 1 only fully accessed chunks.
    """

    nbytes: int
    slots: int
    preemption: float

    def with_options(
        self, nbytes: int | None, slots: int | None, preemption: float | None
    ) -> ChunkCacheSettings:
        """Return these settings with those that the options of a backend name instead."""
        return ChunkCacheSettings(
            self.nbytes if nbytes is None else int(nbytes),
            slots or self.slots,
            self.preemption if preemption is None else preemption,
        )

    def __str__(self) -> str:
        return f"{Size(self.nbytes)} in {self.slots} slots, w0 {self.preemption:g}"


#: Chunk cache of every array with ``matched``: the default of HDF5 up to 1.14. Larger chunks bypass
#: it, as in libraries without a cache.
MATCHED_CHUNK_CACHE = ChunkCacheSettings(2**20, 521, 0.75)


class Chunking(msgspec.Struct, frozen=True):
    """Chunking of an array, and the cache that keeps chunks between calls.

    Parameters
    ----------
    shape, chunks : tuple of int
        Shapes of the array and of a chunk.
    itemsize : int
        Bytes of an element.
    compressed : bool
        Whether a chunk has to be decoded as a whole.
    cache : ChunkCacheSettings or None
        The cache that keeps chunks between calls; None without one.
    foreseeable : bool
        Whether `cache` is the whole model; False where chunks are kept by unknown rules.
    """

    shape: Shape
    chunks: Shape
    itemsize: int
    compressed: bool
    cache: ChunkCacheSettings | None
    foreseeable: bool = True

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a decoded chunk."""
        return math.prod(self.chunks) * self.itemsize

    @property
    def grid(self) -> Shape:
        """Number of chunks along each axis."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))

    def touched(self, box: Box) -> Iterator[tuple[Shape, int]]:
        """Yield the chunks that hold a box, in C order: place in the grid and bytes of both."""
        along = [
            [
                (place, min(stop, (place + 1) * length) - max(start, place * length))
                for place in range(start // length, -(-stop // length))
            ]
            for start, stop, length in zip(box.start, box.stop, self.chunks, strict=True)
        ]
        for parts in itertools.product(*along) if box.size else ():
            yield (
                tuple(place for place, _ in parts),
                math.prod(extent for _, extent in parts) * self.itemsize,
            )


class StoredChunks(msgspec.Struct, frozen=True):
    """Size of an array's chunks on disk.

    Parameters
    ----------
    count : int
        Number of chunks.
    nbytes : int
        Bytes of all of them, as stored.
    """

    count: int
    nbytes: int


class ChunkLoads(msgspec.Struct, frozen=True):
    """Number of chunks that a library decodes and encodes in a sequence of calls.

    Parameters
    ----------
    decodes : int
        Chunks that are fetched and decoded.
    encodes : int
        Chunks that are encoded and stored.
    """

    decodes: int = 0
    encodes: int = 0


def reading(chunking: Chunking, boxes: Iterable[Box]) -> ChunkLoads:
    """Count the chunk loads when boxes of a newly opened compressed array are read, one a call."""
    held = _Held(chunking)
    decodes = 0
    for box in boxes:
        for place, nbytes in chunking.touched(box):
            decodes += held.use(place, nbytes, writes=False) is None
    return ChunkLoads(decodes)


def writing(chunking: Chunking, boxes: Iterable[Box]) -> ChunkLoads:
    """Count the chunk loads when boxes of a new compressed array are written and it is closed."""
    held = _Held(chunking)
    stored: set[Shape] = set()
    decodes = 0
    for box in boxes:
        for place, nbytes in chunking.touched(box):
            found = held.use(place, nbytes, writes=True)
            whole = nbytes == chunking.chunk_bytes
            decodes += found is None and place in stored and not whole
            stored.add(place)
    return ChunkLoads(decodes, held.stores + held.dirty)


@dataclass(slots=True, eq=False)
class _Entry:
    """A chunk in the cache, with its bytes not yet read and not yet written."""

    place: Shape
    slot: int
    unread: int
    unwritten: int
    dirty: bool = False


class _Held:
    """The chunks in a cache, in order of eviction."""

    def __init__(self, chunking: Chunking) -> None:
        self._size = chunking.chunk_bytes
        self._bits = [math.ceil(math.log2(n)) for n in chunking.grid]
        cache = chunking.cache
        self._room = 0 if cache is None or cache.slots == 0 else cache.nbytes
        self._slots = 1 if cache is None else max(1, cache.slots)
        self._preemption = 0.0 if cache is None else cache.preemption
        self._order: list[_Entry] = []
        self._by_slot: dict[int, _Entry] = {}
        #: Changed chunks that had to be stored.
        self.stores = 0

    @property
    def dirty(self) -> int:
        """Changed chunks that are still to be stored."""
        return sum(entry.dirty for entry in self._order)

    def use(self, place: Shape, nbytes: int, writes: bool) -> _Entry | None:
        """Read from or write to a chunk; return it if it was cached, None if it was loaded."""
        slot = self._slot(place)
        found = self._by_slot.get(slot)
        if found is not None and found.place == place:
            self._put_back(found)
        elif self._size > self._room:
            self.stores += writes
            return None
        else:
            if found is not None:
                self._evict(found)
            self._make_room()
            entry = _Entry(place, slot, self._size, self._size)
            self._order.append(entry)
            self._by_slot[slot] = entry
        now = self._by_slot[slot]
        if writes:
            now.dirty = True
            now.unwritten = max(0, now.unwritten - nbytes)
        else:
            now.unread = max(0, now.unread - nbytes)
        return found if found is now else None

    def _slot(self, place: Shape) -> int:
        number = 0
        for bits, index in zip(self._bits, place, strict=True):
            number = (number << bits) ^ index
        return (number & (2**64 - 1)) % self._slots

    def _put_back(self, entry: _Entry) -> None:
        """Swap a used chunk with the next one in order of eviction."""
        here = self._order.index(entry)
        if here + 1 < len(self._order):
            self._order[here], self._order[here + 1] = self._order[here + 1], entry

    def _evict(self, entry: _Entry) -> None:
        self.stores += entry.dirty
        self._order.remove(entry)
        del self._by_slot[entry.slot]

    def _make_room(self) -> None:
        """Evict until one more chunk fits, or no chunk may be evicted.

        Two walks go along the chunks. The first evicts fully accessed chunks; the second, which
        begins later by a number of steps that `w0` sets, evicts any. When the first ends before the
        second has begun (`w0` near 1), eviction stops and the cache exceeds its limit.
        """
        head_start = int(len(self._order) * self._preemption)
        walks: list[_Entry | None] = [self._head, None]
        while any(walks) and self._is_full:
            if head_start == 0:
                walks[1] = self._head
            after = [self._next(entry) for entry in walks]
            for number in (0, 1):
                entry = walks[number]
                if entry is None or not self._is_full or not (number or self._done_with(entry)):
                    continue
                after = [self._next(entry) if other is entry else other for other in after]
                walks = [None if other is entry else other for other in walks]
                self._evict(entry)
            walks = after
            head_start -= 1

    @property
    def _is_full(self) -> bool:
        return (len(self._order) + 1) * self._size > self._room

    @property
    def _head(self) -> _Entry | None:
        return self._order[0] if self._order else None

    def _next(self, entry: _Entry | None) -> _Entry | None:
        if entry is None:
            return None
        place = self._order.index(entry) + 1
        return self._order[place] if place < len(self._order) else None

    def _done_with(self, entry: _Entry) -> bool:
        left = (entry.unread, entry.unwritten)
        return left in ((0, 0), (0, self._size), (self._size, 0))
