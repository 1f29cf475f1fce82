"""Chunk decodes, computed from the calls and counted in the kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pffbench.backends import chunk_cache_model
from pffbench.backends.base import Array
from pffbench.backends.chunk_cache_model import Chunking, StoredChunks
from pffbench.parallel.decomposition import Box, Shape
from pffbench.parallel.process_counters import COUNTERS
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access

#: Count and expectation differ if they are further apart than this part of the expectation,
_TOLERANCE = 0.05
#: and than the metadata that a library reads in addition to chunks: indices, headers.
_METADATA_BYTES = 64 * 1024
_READ_BYTES = COUNTERS.index("read_bytes")


@dataclass
class Decodes:
    """Derives and counts the decodes of one rank in one repetition, off the timer.

    Parameters
    ----------
    repetition : Repetition
        The repetition, or the part of it that writes or reads.
    """

    repetition: Repetition
    #: The arrays that this rank moved data of.
    _moved: Sequence[str] = ()
    _compressed: bool = False
    _expected: float | None = None

    def after_writing(self, arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
        """Record the expected decodes and encodes of writing and closing; collective."""
        with self.repetition.step("chunks"):
            calls = [
                (chunking, boxes)
                for chunking, boxes in self._calls(arrays, accesses)
                if chunking.compressed and chunking.foreseeable
            ]
            for chunking, boxes in calls:
                work = chunk_cache_model.writing(chunking, boxes)
                self._note("write", "encodes_expected", work.encodes)
                self._note("write", "decodes_expected", work.decodes)

    def after_reading(self, arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
        """Record the chunk cache and the expected decodes of reading; collective."""
        with self.repetition.step("chunks"):
            calls = self._calls(arrays, accesses)
            if not calls:
                return
            facts, usual = (
                self.repetition.observed.facts,
                self.repetition.backend.inspection.default_chunk_cache(),
            )
            first, _ = calls[0]
            if first.foreseeable:
                facts["chunk_cache"] = str(first.cache or "none")
            if usual is not None:
                facts["chunk_cache_of_the_library"] = str(usual)
            self._compressed = all(chunking.compressed for chunking, _ in calls)
            if self._compressed and first.foreseeable:
                self._expected = sum(chunk_cache_model.reading(*call).decodes for call in calls)
                self._note("read", "decodes_expected", self._expected)

    def count(self) -> None:
        """Record how many chunks were fetched, after the store is closed; collective.

        A chunk is fetched whole each time that it is decoded, so the number of decodes is the bytes
        read by this process over those of a stored chunk. The errors are metadata, which are small,
        and collective transfers, in which MPI may let one rank fetch chunks that another decodes.
        Those are therefore counted and not compared. For chunks of unequal size the bytes do not
        determine the number.
        """
        if not self.repetition.clock.counts:
            return
        with self.repetition.step("chunks"):
            stored = self._stored_chunks()
        stored = self.repetition.team.comm.bcast(stored) if not self.repetition.alone else stored
        fetched = self._bytes_read()
        if not self._compressed or not stored or not stored.nbytes or not fetched:
            return
        mean = stored.nbytes / stored.count
        counted = round(fetched / mean)
        self._note("read", "decodes_counted", counted)
        if self._expected is None:
            return
        allowed = max(2, _TOLERANCE * self._expected) + _METADATA_BYTES / mean
        if abs(counted - self._expected) > allowed and not self.repetition.collective:
            self.repetition.observed.remarks.append(
                f"chunks were decoded {counted} times by a rank, by their rules it is "
                f"{self._expected:.0f}"
            )

    def _calls(
        self, arrays: Mapping[str, Array], accesses: Sequence[Access]
    ) -> list[tuple[Chunking, list[Box]]]:
        """Return the chunking of the arrays that this rank moves data of, and its calls."""
        mine: dict[str, list[Box]] = {}
        for access in accesses:
            if access.box.size:
                mine.setdefault(access.spec.name, []).append(access.box)
        if not self.repetition.backend.capabilities.keeps_data:
            return []
        self._moved = tuple(mine)
        found = [(arrays[name].chunking(self.repetition.collective), mine[name]) for name in mine]
        return [(chunking, boxes) for chunking, boxes in found if chunking is not None]

    def _stored_chunks(self) -> StoredChunks | None:
        """Inspect the file of this rank, or let rank 0 inspect the shared one."""
        repetition = self.repetition
        if not self._moved or not (repetition.alone or repetition.team.is_root):
            return None
        path = repetition.read_path(repetition.reader_of)
        inspection = repetition.backend.inspection
        found = [inspection.stored_chunks(path, name) for name in self._moved]
        stored = [one for one in found if one is not None and one.count]
        sizes = [one.nbytes / one.count for one in stored]
        if not stored or max(sizes) > (1 + _TOLERANCE) * min(sizes):
            return None
        return StoredChunks(sum(one.count for one in stored), sum(one.nbytes for one in stored))

    def _bytes_read(self) -> float:
        """Return the bytes that this rank's process read in the phase; 0 if not counted."""
        (reading,) = (t for t in self.repetition.clock.times if t.phase == "read")
        return reading.counters[_READ_BYTES] if reading.counters else 0.0

    def _note(self, phase: str, what: str, amount: float) -> None:
        if self.repetition.clock.counts:
            self.repetition.observed.count(phase, what, amount)


#: Unit of one call: one row along the last axis, or one chunk.
Unit = Literal["rows", "chunks"]


def granules_of(total: int, ranks: int, rank: int) -> range:
    """Return the granules of a rank; the first ranks have those left over.

    Parameters
    ----------
    total : int
        Number of granules.
    ranks, rank : int
        Number of ranks, and one of them.
    """
    each, more = divmod(total, ranks)
    first = rank * each + min(rank, more)
    return range(first, first + each + (rank < more))


def region_of(granule: Shape, granules: range) -> Box:
    """Return the box of granules, which follow one another along the first axis."""
    start = (granule[0] * granules.start, *(0 for _ in granule[1:]))
    return Box(start, (granule[0] * len(granules), *granule[1:]))


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
