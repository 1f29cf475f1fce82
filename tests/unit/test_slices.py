"""Slices: what of a file a box touches, where slices lie, how ranks share them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pffbench.backends.file_layout import ArrayInFile
from pffbench.backends.inspection import Touched, touched_chunks
from pffbench.backends.registry import backend_class
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.geometry.box import Box
from pffbench.workloads.selections import box_starts, slice_indices
from pffbench.workloads.slices import Slices, SlicesParameters
from sharing import keys_of

RANKS = st.integers(1, 6)


@st.composite
def boxes(draw, most=7):
    """A shape of one to four axes and a box in it, often empty or whole."""
    shape = tuple(draw(st.lists(st.integers(1, most), min_size=1, max_size=4)))
    start = tuple(draw(st.integers(0, n - 1)) for n in shape)
    extent = tuple(draw(st.integers(0, n - a)) for n, a in zip(shape, start, strict=True))
    return shape, Box(start, extent)


# Runs of raw files


def elements_of(shape, box, itemsize, begin):
    """Return where the elements of a box begin in the file, in the order of the file."""
    numbers = np.arange(math.prod(shape)).reshape(shape)
    return np.sort(begin + numbers[box.slices].reshape(-1) * itemsize)


@given(boxes(), st.sampled_from([1, 4, 8]), st.integers(0, 5000))
def test_runs_are_the_elements_of_the_box_in_the_order_of_the_file(case, itemsize, begin):
    shape, box = case
    place = ArrayInFile(shape, itemsize, begin)
    found = elements_of(shape, box, itemsize, begin)
    runs = place.runs(box)
    spread = [o + i for o in runs.offsets.tolist() for i in range(0, runs.length, itemsize)]
    assert spread == found.tolist()
    assert place.run_count(box) == len(runs.offsets)
    if box.size:
        assert place.first_byte(box) == found[0]
        # As few runs as there are: no run begins where the one before it ends.
        assert not set(runs.offsets.tolist()) & {o + runs.length for o in runs.offsets.tolist()}


@given(boxes(), st.sampled_from([1, 4, 8]), st.integers(0, 99), st.sampled_from([4, 16, 64]))
def test_pages_are_counted_once_each(case, itemsize, begin, page):
    shape, box = case
    firsts = elements_of(shape, box, itemsize, begin)
    pages = {(int(a) + i) // page for a in firsts for i in range(itemsize)}
    place = ArrayInFile(shape, itemsize, begin)
    found = place.runs(box).touched(page)
    assert found == Touched("runs", place.run_count(box), page * len(pages))


def test_pages_of_many_runs_are_counted_once_across_the_parts_looked_at(monkeypatch):
    place, box = ArrayInFile((30, 40), 1, 7), Box((0, 3), (30, 1))
    whole = place.runs(box).touched(64)
    monkeypatch.setattr("pffbench.backends.file_layout._AT_ONCE", 7)
    assert place.runs(box).touched(64) == whole


@pytest.mark.parametrize(
    ("shape", "chunks", "count", "amplified"),
    [
        ((621, 4991, 2600), (20, 156, 82), 1024, (20, 85)),
        ((621, 998, 520), (39, 63, 33), 256, (40, 33)),
    ],
    ids=["published", "scaled"],
)
def test_both_axes_lie_in_equally_many_of_the_chunks_that_h5py_guesses(
    shape, chunks, count, amplified
):
    guess = pytest.importorskip("h5py")._hl.filters.guess_chunk
    assert guess(shape, None, 1) == chunks
    planes = (1, *shape[1:]), (*shape[:2], 1)
    found = [touched_chunks(Box((0, 0, 0), p), chunks, math.prod(chunks)) for p in planes]
    assert [f.count for f in found] == [count, count]
    times = [f.nbytes / math.prod(p) for f, p in zip(found, planes, strict=True)]
    assert tuple(map(round, times)) == amplified


@given(boxes(9), st.data())
def test_chunks_are_those_that_hold_an_element(case, data):
    shape, box = case
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    places = itertools.product(*(range(a, b) for a, b in zip(box.start, box.stop, strict=True)))
    held = {tuple(i // c for i, c in zip(place, chunks, strict=True)) for place in places}
    assert touched_chunks(box, chunks, 10) == Touched("chunks", len(held), 10 * len(held))
    if box.size:
        assert touched_chunks(box, chunks, None).nbytes is None


# Where slices lie


@given(st.integers(1, 200), st.data())
def test_indices_are_in_the_axis_and_differ(n, data):
    count = data.draw(st.integers(1, n))
    for position in ("first", "middle", "random"):
        found = slice_indices(n, position, count)
        assert len(set(found)) == len(found) == count
        assert set(found) <= set(range(n))
        assert found == slice_indices(n, position, count)


def test_middle_is_the_middle_and_more_random_slices_begin_with_the_same():
    assert slice_indices(9, "middle", 3) == [3, 4, 5]
    assert slice_indices(621, "random", 5) == slice_indices(621, "random", 9)[:5]


@given(boxes(), st.sampled_from(["first", "middle", "random"]))
def test_boxes_lie_in_the_volume(case, position):
    shape, box = case
    extent = tuple(max(1, n) for n in box.shape)
    count = 4 if position == "random" else 1
    found = box_starts(shape, extent, position, count)
    assert len(found) == count
    for start in found:
        assert all(0 <= a <= n - e for a, e, n in zip(start, extent, shape, strict=True))


# How ranks share them


@st.composite
def parameters(draw):
    shape = tuple(draw(st.integers(1, 9)) for _ in range(3))
    unit = tuple(draw(st.integers(1, n)) for n in shape)
    told = {"axis": draw(st.integers(0, 2))}
    if draw(st.booleans()):
        told = {"box": tuple(draw(st.integers(1, n)) for n in shape), "position": "random",
                "count": 2}  # fmt: skip
    layout = draw(st.sampled_from(["one-shared", "one-per_rank", "per_rank"]))
    return SlicesParameters(
        backend="hdf5", **keys_of(layout), shape=shape, dtype="uint8",
        chunks=draw(st.sampled_from(["contiguous", "auto", unit])), **told,
        transfer=draw(st.sampled_from(["independent", "collective"])),
    )  # fmt: skip


def moved(accesses, shape):
    """Count how often each element of each volume is moved."""
    counts = {}
    for access in accesses:
        held = counts.setdefault(access.spec.number, np.zeros(shape, int))
        held[access.box.slices] += 1
    return counts


@settings(deadline=None)
@given(parameters(), RANKS)
def test_every_element_is_written_once_and_every_wanted_one_read_once(p, ranks):
    workload = Slices()
    assert workload.refuse(p, ranks, backend_class(p.backend)) is None
    everyone = range(ranks)
    written = moved([a for r in everyone for a in workload.arrays(p, ranks).writes(r)], p.shape)
    volumes = 1 if p.files_word == "one-shared" else ranks
    assert set(written) == set(range(volumes))
    assert all((held == 1).all() for held in written.values())

    read = moved([a for r in everyone for a in workload.arrays(p, ranks).reads(r)], p.shape)
    for held in read.values():
        assert held.sum() == sum(b.size for b in wanted_by_hand(p))
        if p.count == 1:  # boxes drawn at random may overlap
            assert held.max() == 1


def wanted_by_hand(p):
    if p.axis is not None:
        shape = [*p.shape[: p.axis], 1, *p.shape[p.axis + 1 :]]
        return [Box((0, 0, 0), tuple(shape))]
    return [Box((0, 0, 0), p.box)] * p.count


@given(parameters(), RANKS)
def test_ranks_of_a_volume_make_equally_many_calls(p, ranks):
    arrays = Slices().arrays(p, ranks)
    for accesses in (arrays.writes, arrays.reads):
        calls = {len(accesses(rank)) for rank in range(ranks)}
        assert len(calls) == 1


@given(parameters(), RANKS)
def test_blocks_are_written_at_edges_of_named_chunks(p, ranks):
    if not isinstance(p.chunks, tuple):
        return
    for rank in range(ranks):
        for access in Slices().arrays(p, ranks).writes(rank):
            if access.box.size:
                assert access.box.start[1] % p.chunks[1] == 0


# What is refused

GOOD = {"backend": "hdf5", "workload": "slices", "shape": [6, 5, 4], "dtype": "uint8", "axis": 0}


def plan(case, ranks=2):
    return make_plan(from_data({"name": "e", "cases": [case]}, "e.yaml"), ranks)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shape": None}, "give either shape .* or shape_per_rank"),
        ({"shape_per_rank": [6, 5, 4]}, "give either shape .* or shape_per_rank"),
        ({"shape": [6, 5]}, "length >= 3"),
        ({"axis": None}, "give either axis .* or box"),
        ({"box": [1, 1, 1]}, "give either axis .* or box"),
        ({"axis": 3}, r"axis.*0, 1, 2"),
        ({"count": 7}, "there are 6 slices across axis 0, count is 7"),
        ({"axis": None, "box": [7, 1, 1]}, "box .* is larger than the volume"),
        ({"axis": None, "box": [1, 1, 1], "count": 2}, "goes with position: random"),
        ({"chunks": [2, 2]}, "must have 3 axes"),
        ({"chunks": [7, 5, 4]}, "larger than the array"),
        ({"backend": "posix", "transfer": "collective"}, "cannot do transfer collective"),
        ({"backend": "zarr", "shape": [6, 9, 4], "chunks": [3, 3, 2],
          "zarr": {"shards": [6, 6, 4]}}, "shards .* would be shared by ranks"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_reason(changes, reason):
    case = {k: v for k, v in (GOOD | changes).items() if v is not None}
    with pytest.raises(UserError, match=reason):
        plan(case)


def test_lists_of_boxes_are_swept_and_one_box_is_not():
    case = {k: v for k, v in GOOD.items() if k != "axis"}
    one = plan(case | {"box": [2, 2, 2]})
    assert sum(not c.roofline for c in one.cases) == 1
    two = plan(case | {"box": [[2, 2, 2], [1, 5, 1]]})
    assert sum(not c.roofline for c in two.cases) == 2
