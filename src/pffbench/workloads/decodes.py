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
    #: The arrays of which this rank moved something.
    _moved: Sequence[str] = ()
    _compressed: bool = False
    _expected: float | None = None

    def after_writing(self, arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
        """Note what writing and closing must cost; collective."""
        with self.cycle.step("chunks"):
            calls = [
                (chunking, boxes)
                for chunking, boxes in self._calls(arrays, accesses)
                if chunking.compressed and chunking.foreseeable
            ]
            for chunking, boxes in calls:
                work = chunkcache.writing(chunking, boxes)
                self._note("write", "encodes_expected", work.encodes)
                self._note("write", "decodes_expected", work.decodes)

    def after_reading(self, arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
        """Note the chunk cache that there was and what reading must cost; collective."""
        with self.cycle.step("chunks"):
            calls = self._calls(arrays, accesses)
            if not calls:
                return
            facts, usual = self.cycle.observed.facts, self.cycle.backend.default_chunk_cache()
            first, _ = calls[0]
            if first.foreseeable:
                facts["chunk_cache"] = str(first.cache or "none")
            if usual is not None:
                facts["chunk_cache_of_the_library"] = str(usual)
            self._compressed = all(chunking.compressed for chunking, _ in calls)
            if self._compressed and first.foreseeable:
                self._expected = sum(chunkcache.reading(*call).decodes for call in calls)
                self._note("read", "decodes_expected", self._expected)

    def count(self) -> None:
        """Note how many chunks were fetched, now that the store is closed; collective.

        A chunk is fetched whole and each time that it is decoded, so the bytes that this process
        read, over those of a stored chunk, are the number of decodes. Two things blur it: what
        is read beside chunks, which is little, and collective transfers, in which MPI may let one
        rank fetch what another decodes. That is why those are counted and not compared. Of
        datasets whose chunks differ in size bytes do not tell the number.
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
    ) -> list[tuple[Chunking, list[Box]]]:
        """Return how the arrays are chunked that this rank moves something of, and its calls."""
        mine: dict[str, list[Box]] = {}
        for access in accesses:
            if access.box.size:
                mine.setdefault(access.spec.name, []).append(access.box)
        if not self.cycle.backend.capabilities.keeps_data:
            return []
        self._moved = tuple(mine)
        found = [(arrays[name].chunking(self.cycle.collective), mine[name]) for name in mine]
        return [(chunking, boxes) for chunking, boxes in found if chunking is not None]

    def _stored_chunks(self) -> StoredChunks | None:
        """Look at the file of this rank, or let rank 0 look at that of all ranks."""
        cycle = self.cycle
        if not self._moved or not (cycle.alone or cycle.team.is_root):
            return None
        path = cycle.read_path(cycle.reader_of)
        found = [cycle.backend.stored_chunks(path, name) for name in self._moved]
        stored = [one for one in found if one is not None and one.count]
        sizes = [one.nbytes / one.count for one in stored]
        if not stored or max(sizes) > (1 + _TOLERANCE) * min(sizes):
            return None
        return StoredChunks(sum(one.count for one in stored), sum(one.nbytes for one in stored))

    def _bytes_read(self) -> float:
        """Return the bytes that this rank's process read in the phase; 0 where nobody counts."""
        (reading,) = (t for t in self.cycle.clock.times if t.phase == "read")
        return reading.counters[_READ_BYTES] if reading.counters else 0.0

    def _note(self, phase: str, what: str, amount: float) -> None:
        if self.cycle.clock.counts:
            self.cycle.observed.count(phase, what, amount)
