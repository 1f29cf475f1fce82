"""How often chunks are decoded: derived from the calls, and counted by what was fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pffbench.backends import chunkcache
from pffbench.backends.base import Array
from pffbench.backends.chunkcache import Chunking, StoredChunks
from pffbench.parallel.decomposition import Box
from pffbench.parallel.meter import COUNTERS
from pffbench.workloads.access import Access
from pffbench.workloads.cycle import Cycle

#: Count and expectation differ when they are further apart than this part of the expectation,
_TOLERANCE = 0.05
#: and than what a library reads of a file beside chunks: indices of chunks, headers.
_METADATA_BYTES = 64 * 1024
_READ_BYTES = COUNTERS.index("read_bytes")


@dataclass
class Decodes:
    """Derives and counts the decodes of one rank in one repetition; nothing of it is timed.

    Parameters
    ----------
    cycle : Cycle
        The repetition, or the part of it that writes or reads.
    """

    cycle: Cycle
    #: The array of which this rank moved something.
    _moved: str | None = None
    _compressed: bool = False
    _expected: float | None = None

    def after_writing(self, arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
        """Note what writing and closing must cost; collective."""
        with self.cycle.step("chunks"):
            chunking, boxes = self._calls(arrays, accesses)
            if chunking is None or not (chunking.compressed and chunking.foreseeable):
                return
            work = chunkcache.writing(chunking, boxes)
            self._note("write", "encodes_expected", work.encodes)
            self._note("write", "decodes_expected", work.decodes)

    def after_reading(self, arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
        """Note the chunk cache that there was and what reading must cost; collective."""
        with self.cycle.step("chunks"):
            chunking, boxes = self._calls(arrays, accesses)
            if chunking is None:
                return
            facts, usual = self.cycle.observed.facts, self.cycle.backend.default_chunk_cache()
            if chunking.foreseeable:
                facts["chunk_cache"] = str(chunking.cache or "none")
            if usual is not None:
                facts["chunk_cache_of_the_library"] = str(usual)
            self._compressed = chunking.compressed
            if chunking.compressed and chunking.foreseeable:
                self._expected = chunkcache.reading(chunking, boxes).decodes
                self._note("read", "decodes_expected", self._expected)

    def count(self) -> None:
        """Note how many chunks were fetched, now that the store is closed; collective.

        A chunk is fetched whole and each time that it is decoded, so the bytes that this process
        read, over those of a stored chunk, are the number of decodes. Two things blur it: what
        is read beside chunks, which is little, and collective transfers, in which MPI may let one
        rank fetch what another decodes. That is why those are counted and not compared.
        """
        if not self.cycle.clock.counts:
            return
        with self.cycle.step("chunks"):
            stored = self._stored_chunks()
        stored = self.cycle.team.comm.bcast(stored) if not self.cycle.alone else stored
        fetched = self._bytes_read()
        if not self._compressed or not stored or not stored.nbytes or not fetched:
            return
        mean = stored.nbytes / stored.count
        counted = round(fetched / mean)
        self._note("read", "decodes_counted", counted)
        if self._expected is None:
            return
        allowed = max(2, _TOLERANCE * self._expected) + _METADATA_BYTES / mean
        if abs(counted - self._expected) > allowed and not self.cycle.collective:
            self.cycle.observed.remarks.append(
                f"chunks were decoded {counted} times by a rank, by their rules it is "
                f"{self._expected:.0f}"
            )

    def _calls(
        self, arrays: Mapping[str, Array], accesses: Sequence[Access]
    ) -> tuple[Chunking | None, list[Box]]:
        """Return how the array is chunked that this rank moves something of, and its calls."""
        mine = [access for access in accesses if access.box.size]
        if not mine or not self.cycle.backend.capabilities.keeps_data:
            return None, []
        self._moved = mine[0].spec.name
        assert all(access.spec.name == self._moved for access in mine), "each rank has one array"
        chunking = arrays[self._moved].chunking(self.cycle.collective)
        return chunking, [access.box for access in mine]

    def _stored_chunks(self) -> StoredChunks | None:
        """Look at the file of this rank, or let rank 0 look at that of all ranks."""
        cycle = self.cycle
        if not self._moved or not (cycle.alone or cycle.team.is_root):
            return None
        return cycle.backend.stored_chunks(cycle.read_path(cycle.reader_of), self._moved)

    def _bytes_read(self) -> float:
        """Return the bytes that this rank's process read in the phase; 0 where nobody counts."""
        (reading,) = (t for t in self.cycle.clock.times if t.phase == "read")
        return reading.counters[_READ_BYTES] if reading.counters else 0.0

    def _note(self, phase: str, what: str, amount: float) -> None:
        if self.cycle.clock.counts:
            self.cycle.observed.count(phase, what, amount)
