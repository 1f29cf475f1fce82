"""Chunk decodes, counted in the kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pffbench.backends.inspection import Chunking, StoredChunks
from pffbench.backends.traits import SizesChunks, TellsLayout
from pffbench.geometry.box import Box, Shape
from pffbench.observe.process_counters import COUNTERS
from pffbench.workloads.observers import Move
from pffbench.workloads.repetition import Repetition

#: Chunks whose mean sizes differ by more than this part are of unequal size.
_TOLERANCE = 0.05
_READ_BYTES = COUNTERS.index("read_bytes")


@dataclass
class Decodes:
    """Counts the decodes of one rank in one repetition, off the timer."""

    #: The repetition, or the part of it that reads.
    repetition: Repetition
    #: The arrays that this rank read data of.
    _moved: Sequence[str] = ()

    _compressed: bool = False

    def observe(self, repetition: Repetition, move: Move) -> Callable[[], None]:
        """Record the chunk cache that reading had; an observer of the phase."""

        def note() -> None:
            with repetition.step("inspection"):
                self._note(move)

        return note

    def _note(self, move: Move) -> None:
        chunkings = self._chunkings(move)
        if not chunkings:
            return
        facts = self.repetition.observed.facts
        first, usual = chunkings[0], self.repetition.subject.backend.usual_chunk_cache
        facts["chunk_cache"] = str(first.cache or "none")
        if usual is not None:
            facts["chunk_cache_of_the_library"] = str(usual)
        self._compressed = all(chunking.compressed for chunking in chunkings)

    def count(self) -> None:
        """Record how many chunks were fetched, after the store is closed; collective.

        A chunk is fetched whole each time that it is decoded, so the number of decodes is the bytes
        read by this process over those of a stored chunk. The errors are metadata, which are small,
        and collective transfers, in which MPI may let one rank fetch chunks that another decodes.
        For chunks of unequal size the bytes do not determine the number.
        """
        if not self.repetition.place.clock.counts:
            return
        with self.repetition.step("chunks"):
            stored = self._stored_chunks()
        if self.repetition.comm is not None:
            stored = self.repetition.comm.bcast(stored)
        fetched = self._bytes_read()
        if self._compressed and stored and stored.nbytes and fetched:
            counted = round(fetched / (stored.nbytes / stored.count))
            self.repetition.observed.count("read", "decodes_counted", counted)

    def _chunkings(self, move: Move) -> list[Chunking]:
        """Return the chunking of the arrays that this rank moves data of."""
        if not self.repetition.subject.keeps_data:
            return []
        moved = dict.fromkeys(
            transfer.spec.name for transfer in move.transfers if transfer.box.size
        )
        self._moved = tuple(dict.fromkeys((*self._moved, *moved)))
        collective = self.repetition.subject.collective
        arrays = (move.arrays[name] for name in moved)
        found = (array.layout(collective) for array in arrays if isinstance(array, TellsLayout))
        return [layout for layout in found if isinstance(layout, Chunking)]

    def _stored_chunks(self) -> StoredChunks | None:
        """Inspect the file of this rank, or let rank 0 inspect the shared one."""
        repetition = self.repetition
        if not self._moved or not repetition.keeps_file:
            return None
        path = repetition.read_path
        backend = repetition.subject.backend
        if not isinstance(backend, SizesChunks):
            return None
        stored = [one for one in backend.stored_chunks(path, self._moved) if one.count]
        sizes = [one.nbytes / one.count for one in stored]
        if not stored or max(sizes) > (1 + _TOLERANCE) * min(sizes):
            return None
        return StoredChunks(sum(one.count for one in stored), sum(one.nbytes for one in stored))

    def _bytes_read(self) -> float:
        """Return the bytes that this rank's process read in the phase; 0 if not counted."""
        (reading,) = (t for t in self.repetition.place.clock.times if t.phase == "read")
        return reading.counters[_READ_BYTES] if reading.counters else 0.0


#: Unit of one call: one row along the last axis, or one chunk.
Unit = Literal["rows", "chunks"]


def unit_shape(shape: Shape, chunks: Shape, unit: Unit) -> Shape:
    """Return the largest box of one call: a row of an array, or a chunk.

    Parameters
    ----------
    shape, chunks : tuple of int
        Shape of the array and of its chunks, or of a substitute for them.
    unit : {"rows", "chunks"}
        Which.
    """
    return chunks if unit == "chunks" else (*(1 for _ in shape[1:]), shape[-1])


def cut(region: Box, unit: Shape) -> Iterator[Box]:
    """Cut a region where a grid of units lies over the array, in C order.

    Units that lie only partly in the region are clipped to it.
    """
    along = [
        [
            (max(start, place * length), min(stop, (place + 1) * length))
            for place in _places(start, stop, length)
        ]
        for start, stop, length in zip(region.start, region.stop, unit, strict=True)
    ]
    for edges in itertools.product(*along):
        yield Box(tuple(a for a, _ in edges), tuple(b - a for a, b in edges))


def count(region: Box, unit: Shape) -> int:
    """Count the boxes of `cut` without listing them."""
    edges = zip(region.start, region.stop, unit, strict=True)
    return math.prod(len(_places(start, stop, length)) for start, stop, length in edges)


def _places(start: int, stop: int, length: int) -> range:
    """Return the places in the grid, along one axis, of the units that a range touches."""
    return range(start // length, -(-stop // length)) if stop > start else range(0)
