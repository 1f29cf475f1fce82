"""Counting decodes by what was fetched."""

from contextlib import nullcontext
from types import SimpleNamespace

from pffbench.backends.inspection import ChunkCacheSettings, Chunking, StoredChunks
from pffbench.geometry.box import Box
from pffbench.observe.process_counters import COUNTERS
from pffbench.workloads.decodes import Decodes
from pffbench.workloads.observers import Move
from pffbench.workloads.repetition import Observed

CHUNK = 1_000_000
ROWS = [Box((i, 0), (1, 100)) for i in range(10)]


def a_cycle(fetched, collective=False, counts=True):
    """Stand in for a repetition in which a rank read so many bytes."""
    counters = tuple(float(fetched) if name == "read_bytes" else 0.0 for name in COUNTERS)
    times = (SimpleNamespace(phase="read", counters=counters if counts else ()),)
    backend = SimpleNamespace(
        usual_chunk_cache=ChunkCacheSettings(2**20, 521, 0.75),
        stored_chunks=lambda *_: [StoredChunks(2, 2 * CHUNK)],
    )
    return SimpleNamespace(
        place=SimpleNamespace(clock=SimpleNamespace(counts=counts, times=times)),
        subject=SimpleNamespace(backend=backend, keeps_data=True, collective=collective),
        observed=Observed(), comm=None, keeps_file=True, read_path=str, step=nullcontext,
    )  # fmt: skip


def after(repetition, nbytes=0):
    """Read ten rows of two chunks through a cache of so many bytes, and count."""
    cache = ChunkCacheSettings(nbytes, 521, 0.75)
    chunking = Chunking((5, 100), CHUNK // 500, True, cache)
    array = SimpleNamespace(layout=lambda *_: chunking)
    transfers = [SimpleNamespace(box=box, spec=SimpleNamespace(name="d")) for box in ROWS]
    decodes = Decodes(repetition)
    decodes.observe(repetition, Move("read", {"d": array}, transfers, []))()
    decodes.count()
    return repetition.observed


def test_fetched_bytes_over_those_of_a_chunk_are_decodes():
    seen = after(a_cycle(10 * CHUNK + 4000))
    assert seen.counts == {("read", "decodes_counted"): 10}
    assert seen.facts["chunk_cache_of_the_library"] == "1 MiB in 521 slots, w0 0.75"


def test_collective_transfers_are_counted_too():
    seen = after(a_cycle(2 * CHUNK, collective=True))
    assert seen.counts["read", "decodes_counted"] == 2


def test_without_counters_nothing_is_counted():
    seen = after(a_cycle(0, counts=False))
    assert seen.counts == {}
    assert seen.facts["chunk_cache"] == "0 B in 521 slots, w0 0.75"


def test_a_rank_that_read_nothing_counts_nothing():
    repetition = a_cycle(0)
    decodes = Decodes(repetition)
    decodes.observe(repetition, Move("read", {}, [], []))()
    decodes.count()
    assert repetition.observed.counts == {}
    assert repetition.observed.facts == {}
