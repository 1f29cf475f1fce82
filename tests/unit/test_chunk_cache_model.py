"""HDF5's chunk cache re-enacted: by its rules, and against what the library itself fetches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pffbench.backends.chunk_cache_model import (
    ChunkCacheSettings,
    Chunking,
    ChunkLoads,
    reading,
    writing,
)
from pffbench.parallel.decomposition import Box
from pffbench.parallel.process_counters import COUNTERS, Meter

h5py = pytest.importorskip("h5py")

ITEM = 8
READ_CALLS, WRITE_CALLS = COUNTERS.index("read_calls"), COUNTERS.index("write_calls")


def chunking(shape, chunks, nbytes, slots=521, preemption=0.75):
    return Chunking(shape, chunks, ITEM, True, ChunkCacheSettings(nbytes, slots, preemption))


def rows(shape):
    """The box of each row along the last axis, in C order."""
    ones = (1,) * (len(shape) - 1)
    return [Box((*place, 0), (*ones, shape[-1])) for place in np.ndindex(shape[:-1])]


# By its rules


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), st.integers(0, 600))
def test_rows_of_whole_chunks_decode_once_or_each_time(granules, first, second, nbytes):
    """The study's case: what does not fit is decoded with each row, what fits once."""
    shape = (granules * first, second, 3)
    one = chunking(shape, (first, second, 3), nbytes)
    expected = granules if nbytes >= one.chunk_bytes else granules * first * second
    assert reading(one, rows(shape)) == ChunkLoads(decodes=expected)


def test_the_published_counts():
    shape, chunks = (60, 30, 9, 717), (4, 30, 9, 717)
    for mebibytes, expected in ((1, 16_200), (3, 15)):
        cache = ChunkCacheSettings(mebibytes * 2**20, 521, 0.75)
        assert reading(Chunking(shape, chunks, 4, True, cache), rows(shape)).decodes == expected
    small = Chunking(shape, (1, 30, 9, 717), 4, True, ChunkCacheSettings(2**20, 521, 0.75))
    assert reading(small, rows(shape)).decodes == 60


def test_a_cache_that_is_off_or_absent_keeps_nothing():
    shape, chunks = (4, 6), (4, 6)
    for cache in (None, ChunkCacheSettings(0, 521, 0.75), ChunkCacheSettings(2**20, 0, 0.75)):
        assert reading(Chunking(shape, chunks, ITEM, True, cache), rows(shape)).decodes == 4


def test_a_row_over_three_chunks_needs_room_and_slots_for_three():
    shape, chunks = (10, 9), (10, 3)
    chunk = 10 * 3 * ITEM
    for nbytes, slots, expected in [
        (3 * chunk, 521, 3), (2 * chunk, 521, 30), (3 * chunk, 1, 30), (3 * chunk, 4, 3),
    ]:  # fmt: skip
        assert reading(chunking(shape, chunks, nbytes, slots), rows(shape)).decodes == expected


def test_chunks_whose_places_are_equal_modulo_the_slots_evict_each_other():
    shape, chunks = (8, 1), (1, 1)
    pair = [Box((0, 0), (1, 1)), Box((4, 0), (1, 1))] * 5
    assert reading(chunking(shape, chunks, 800, slots=4), pair).decodes == 10
    assert reading(chunking(shape, chunks, 800, slots=5), pair).decodes == 2


def test_writing_parts_of_chunks():
    shape, chunks = (6, 4), (3, 4)
    size = 3 * 4 * ITEM
    assert writing(chunking(shape, chunks, size), rows(shape)) == ChunkLoads(decodes=0, encodes=2)
    loads = writing(chunking(shape, chunks, size - 1), rows(shape))
    assert loads == ChunkLoads(decodes=4, encodes=6)
    whole = [Box((0, 0), (3, 4)), Box((3, 0), (3, 4))]
    assert writing(chunking(shape, chunks, 0), whole) == ChunkLoads(decodes=0, encodes=2)
    assert writing(chunking(shape, chunks, 0), []) == ChunkLoads()


def test_empty_boxes_touch_nothing():
    one = chunking((6, 4), (3, 4), 1000)
    assert list(one.touched(Box((2, 1), (0, 3)))) == []
    assert reading(one, [Box((6, 0), (0, 4))]) == ChunkLoads()


# Against the library


@st.composite
def calls(draw):
    """An array in chunks, the settings of a cache, and boxes, many of them whole chunks."""
    ndim = draw(st.integers(1, 3))
    longest = {1: 2000, 2: 50, 3: 14}[ndim]
    shape = tuple(draw(st.integers(1, longest)) for _ in range(ndim))
    chunks = tuple(draw(st.integers(max(1, n // 8), n)) for n in shape)
    size = int(np.prod(chunks)) * ITEM
    rooms = [0, 1, size - 1, size, size + 1, 2 * size, 7 * size // 2, 6 * size]
    room = draw(st.sampled_from(rooms))
    slots = draw(st.sampled_from([1, 2, 3, 5, 7, 16, 521]))
    cached = chunking(shape, chunks, room, slots, draw(st.sampled_from([0, 0.25, 0.75, 1])))
    boxes = draw(st.lists(st.one_of(parts(shape), whole_chunks(cached)), min_size=1, max_size=30))
    return cached, boxes * draw(st.sampled_from([1, 2]))


@st.composite
def parts(draw, shape):
    start = tuple(draw(st.integers(0, n - 1)) for n in shape)
    return Box(start, tuple(draw(st.integers(1, n - s)) for n, s in zip(shape, start, strict=True)))


@st.composite
def whole_chunks(draw, one):
    place = [draw(st.integers(0, n - 1)) for n in one.grid]
    start = tuple(p * c for p, c in zip(place, one.chunks, strict=True))
    ends = zip(one.chunks, one.shape, start, strict=True)
    return Box(start, tuple(min(c, n - s) for c, n, s in ends))


def access(one):
    listed = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    listed.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    listed.set_cache(0, one.cache.slots, one.cache.nbytes, one.cache.preemption)
    return listed


def prepared(dataset, boxes, data):
    """What each call needs: nothing else than the library reads while they are made."""
    spaces = []
    for box in boxes:
        file = dataset.get_space()
        file.select_hyperslab(box.start, box.shape)
        part = np.ascontiguousarray(data[box.slices])
        spaces.append((h5py.h5s.create_simple(box.shape), file, part))
    return spaces


@settings(max_examples=150, deadline=None)
@given(case=calls())
def test_the_library_fetches_as_many_chunks_as_expected(case, tmp_path_factory):
    one, boxes = case
    path = str(tmp_path_factory.mktemp("read") / "a.h5")
    data = np.random.default_rng(1).random(one.shape)
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=data, chunks=one.chunks, compression="gzip")
    file = h5py.h5f.open(path.encode(), h5py.h5f.ACC_RDONLY, fapl=access(one))
    dataset = h5py.h5d.open(file, b"d")
    for number in range(dataset.get_num_chunks()):
        dataset.get_chunk_info(number)  # the index is in memory then, and only chunks are read
    reads = prepared(dataset, boxes, np.zeros_like(data))
    meter = Meter(io=True)
    before = meter.begin()
    for call in reads:
        dataset.read(*call)
    counted = meter.since(before)[READ_CALLS]
    file.close()
    assert counted == reading(one, boxes).decodes
    for box, (_, _, part) in zip(boxes, reads, strict=True):
        assert np.array_equal(part, data[box.slices])


@settings(max_examples=100, deadline=None)
@given(case=calls())
def test_the_library_fetches_and_stores_as_expected_while_writing(case, tmp_path_factory):
    one, boxes = case
    path = str(tmp_path_factory.mktemp("write") / "a.h5")
    data = np.random.default_rng(1).random(one.shape)
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk(one.chunks)
    creation.set_deflate(1)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    file = h5py.h5f.create(path.encode(), h5py.h5f.ACC_EXCL, fapl=access(one))
    space = h5py.h5s.create_simple(one.shape)
    dataset = h5py.h5d.create(file, b"d", h5py.h5t.NATIVE_DOUBLE, space, creation)
    writes = prepared(dataset, boxes, data)
    meter = Meter(io=True)
    before = meter.begin()
    for call in writes:
        dataset.write(*call)
    fetched = meter.since(before)[READ_CALLS]
    file.close()
    stored = meter.since(before)[WRITE_CALLS]
    expected = writing(one, boxes)
    assert fetched == expected.decodes
    # Beside the chunks the file's own structures are written, each once, at the end.
    assert expected.encodes <= stored <= expected.encodes + 12
