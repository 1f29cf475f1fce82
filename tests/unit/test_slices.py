"""Slices: what of a file a box touches, where slices lie, how ranks share them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.file_layout import Copy
from pffbench.backends.inspection import Touched, touched_chunks
from pffbench.backends.raw.layout import RawOptions, copies_of
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.experiment.plan import cost_of
from pffbench.parallel.decomposition import Box
from pffbench.workloads.selections import box_starts, slice_indices
from pffbench.workloads.slices import Slices, SlicesParameters

RANKS = st.integers(1, 6)


@st.composite
def boxes(draw, most=7):
    """A shape of one to four axes and a box in it, often empty or whole."""
    shape = tuple(draw(st.lists(st.integers(1, most), min_size=1, max_size=4)))
    start = tuple(draw(st.integers(0, n - 1)) for n in shape)
    extent = tuple(draw(st.integers(0, n - a)) for n, a in zip(shape, start, strict=True))
    return shape, Box(start, extent)


# Runs of raw files


def elements_of(shape, box, itemsize, order, begin):
    """Return where the elements of a box begin in the file, in the order of the file."""
    if order == "M":  # the middle axis is slowest, the others as in C
        middle = len(shape) // 2
        turned = (shape[middle], *shape[:middle], *shape[middle + 1 :])
        numbers = np.moveaxis(np.arange(math.prod(shape)).reshape(turned), 0, middle)
    else:
        numbers = np.arange(math.prod(shape)).reshape(shape, order=order)
    return np.sort(begin + numbers[box.slices].reshape(-1) * itemsize)


@given(boxes(), st.sampled_from([1, 4, 8]), st.sampled_from("CFM"), st.integers(0, 5000))
def test_runs_are_the_elements_of_the_box_in_the_order_of_the_file(case, itemsize, order, begin):
    shape, box = case
    copy = Copy(shape, itemsize, order, begin)
    found = elements_of(shape, box, itemsize, order, begin)
    runs = copy.runs(box)
    spread = [o + i for o in runs.offsets.tolist() for i in range(0, runs.length, itemsize)]
    assert spread == found.tolist()
    assert copy.run_count(box) == len(runs.offsets)
    if box.size:
        assert copy.first_byte(box) == found[0]
        # As few runs as there are: no run begins where the one before it ends.
        assert not set(runs.offsets.tolist()) & {o + runs.length for o in runs.offsets.tolist()}


@given(boxes(), st.sampled_from([1, 4, 8]), st.sampled_from("CFM"), st.integers(0, 99),
       st.sampled_from([4, 16, 64]))  # fmt: skip
def test_pages_are_counted_once_each(case, itemsize, order, begin, page):
    shape, box = case
    firsts = elements_of(shape, box, itemsize, order, begin)
    pages = {(int(a) + i) // page for a in firsts for i in range(itemsize)}
    copy = Copy(shape, itemsize, order, begin)
    found = copy.runs(box).touched(page)
    assert found == Touched("runs", copy.run_count(box), page * len(pages))


def test_pages_of_many_runs_are_counted_once_across_the_parts_looked_at(monkeypatch):
    copy, box = Copy((40, 30), 1, "F", 7), Box((3, 0), (1, 30))
    whole = copy.runs(box).touched(64)
    monkeypatch.setattr("pffbench.backends.file_layout._AT_ONCE", 7)
    assert copy.runs(box).touched(64) == whole


@given(boxes(), st.sampled_from("CFM"))
def test_a_box_comes_back_from_memory_in_the_order_of_the_file(case, order):
    shape, box = case
    values = np.arange(box.size, dtype=np.int32).reshape(box.shape)
    copy = Copy(shape, 4, order, 0)
    stored = copy.from_memory(values)
    assert stored.flags.c_contiguous
    out = np.empty_like(values)
    out.reshape(-1)[:] = stored.reshape(-1)
    held = copy.to_memory(out)
    np.testing.assert_array_equal(held, values)
    assert held.base is not None or held is out  # a view: nothing is copied


def a_spec(shape, offset=0):
    return ArraySpec(
        name="a", shape=shape, dtype="uint8", number=0, origin=(0,) * len(shape),
        logical_shape=shape, offset=offset, owner=None, chunks="contiguous", codec="none",
        level=0, fill="none",
    )  # fmt: skip


def test_two_copies_lie_one_behind_the_other_and_the_better_one_is_read():
    options = RawOptions(order="both")
    first, second = copies_of(a_spec((4, 5)), options), copies_of(a_spec((4, 5), 20), options)
    assert [c.begin for c in [*first.copies, *second.copies]] == [0, 20, 40, 60]
    assert first.best(Box((1, 0), (1, 5))).order == "C"
    assert first.best(Box((0, 1), (4, 1))).order == "F"
    assert first.best(Box((0, 0), (4, 5))).order == "C"


def test_of_three_copies_one_has_a_slice_across_any_axis_in_one_piece():
    copies = copies_of(a_spec((4, 5, 6)), RawOptions(order="three"))
    assert [c.begin for c in copies.copies] == [0, 120, 240]
    for axis, order in enumerate("CMF"):
        flat = tuple(1 if a == axis else n for a, n in enumerate((4, 5, 6)))
        copy = copies.best(Box(tuple(int(a == axis) for a in range(3)), flat))
        assert (copy.order, copy.run_count(Box((0, 0, 0), flat))) == (order, 1)


def test_the_published_worst_axis_touches_every_page_and_the_best_one_its_own():
    """Study 3: 3072 bytes of header, first index fastest, 1.97 million pages of 4 KiB."""
    copy = Copy((621, 4991, 2600), 1, "F", 3072)
    worst = copy.runs(Box((0, 0, 0), (1, 4991, 2600))).touched(4096)
    best = copy.runs(Box((0, 0, 0), (621, 4991, 1))).touched(4096)
    assert worst.count == 4991 * 2600
    assert worst.nbytes // 4096 == -(-(3072 + 621 * 4991 * 2600) // 4096)
    assert worst.nbytes / (4991 * 2600) == pytest.approx(621, rel=1e-5)
    assert best.count == 1
    assert best.nbytes / (621 * 4991) == pytest.approx(1, abs=0.002)


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
    layout = draw(st.sampled_from(["shared", "own", "file_per_process"]))
    cut = draw(st.sampled_from(["even", "aligned", "unaligned"])) if layout == "shared" else "even"
    return SlicesParameters(
        backend="hdf5", layout=layout, shape=shape, dtype="uint8", cut=cut, cut_unit=unit,
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
    assert workload.check(p, ranks) is None
    everyone = range(ranks)
    written = moved([a for r in everyone for a in workload.writes(p, ranks, r)], p.shape)
    volumes = 1 if p.layout == "shared" else ranks
    assert set(written) == set(range(volumes))
    assert all((held == 1).all() for held in written.values())

    read = moved([a for r in everyone for a in workload.reads(p, ranks, r)], p.shape)
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
    workload = Slices()
    for accesses in (workload.writes, workload.reads):
        calls = {len(accesses(p, ranks, rank)) for rank in range(ranks)}
        assert len(calls) == 1


@given(parameters(), RANKS)
def test_parts_begin_at_edges_of_the_unit_or_half_a_unit_beside(p, ranks):
    if p.cut == "even":
        return
    whole = Slices().reads(p, 1, 0)
    for rank in range(ranks):
        for access, one in zip(Slices().reads(p, ranks, rank), whole, strict=True):
            if not access.box.size:
                continue
            for axis, unit in enumerate(p.cut_unit):
                begin = access.box.start[axis]
                if begin != one.box.start[axis]:
                    assert (begin - (unit // 2 if p.cut == "unaligned" else 0)) % unit == 0


@given(parameters(), RANKS)
def test_blocks_are_written_at_edges_of_named_chunks(p, ranks):
    if not isinstance(p.chunks, tuple):
        return
    for rank in range(ranks):
        for access in Slices().writes(p, ranks, rank):
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
        ({"cut": "aligned"}, "needs cut_unit"),
        ({"cut": "aligned", "cut_unit": [2, 2, 2], "layout": "own"}, "layout must be shared"),
        ({"layout": "file_per_process", "read_transfer": "collective"}, "file that ranks share"),
        ({"chunks": [2, 2]}, "must have 3 axes"),
        ({"chunks": [7, 5, 4]}, "larger than the array"),
        ({"backend": "posix", "transfer": "collective"}, "cannot do transfer collective"),
        ({"backend": "posix", "posix": {"order": "Z"}}, "order.*C, F, both, three"),
        ({"backend": "memmap", "memmap": {"madvise": "never"}}, "madvise.*normal, random"),
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
    one = plan(case | {"box": [2, 2, 2], "cut_unit": [1, 2, 3]})
    assert sum(not c.roofline for c in one.cases) == 1
    two = plan(case | {"box": [[2, 2, 2], [1, 5, 1]]})
    assert sum(not c.roofline for c in two.cases) == 2


def test_both_orders_need_twice_the_room():
    orders = {"order": ["C", "both", "three"]}
    case = GOOD | {"shape": [100, 100, 100], "backend": "mpiio", "mpiio": orders}
    one, both, three = (cost_of(c, 2, 2**26).space for c in plan(case).cases)
    assert both == pytest.approx(2 * one, rel=0.01)
    assert three == pytest.approx(3 * one, rel=0.01)


def test_three_orders_need_three_axes():
    entry = {"workload": "hyperslab", "backend": "posix", "shape": [8, 8],
             "posix": {"order": "three"}}  # fmt: skip
    with pytest.raises(UserError, match="order: three is for arrays of 3 axes or more"):
        plan(entry)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [("shared", [6, 15, 4]), ("own", [6, 5, 4]), ("file_per_process", [6, 5, 4])],
)
def test_a_volume_grows_with_the_ranks_that_share_it(layout, shape):
    """Its shape by rank is the same work as the shape that this gives."""
    per_rank = {**GOOD, "layout": layout, "shape_per_rank": [6, 5, 4]}
    del per_rank["shape"]
    (one,), (other,) = (
        make_plan(from_data({"name": "e", "roofline": False, "cases": [case]}, "e.yaml"), 3).cases
        for case in (per_rank, GOOD | {"layout": layout, "shape": shape})
    )
    for rank in range(3):
        for told in (Slices().arrays, Slices().writes, Slices().reads):
            assert told(one.parameters, 3, rank) == told(other.parameters, 3, rank)
