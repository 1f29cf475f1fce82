"""Arrays cut over ranks: every element exactly once, whatever the shape and the number of ranks."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pffbench.geometry.box import Box
from pffbench.geometry.cut import Everything, Grid, Region, nearest_aligned, process_grid

shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
kinds = st.sampled_from(["slab", "pencil", "block"])
distributions = st.sampled_from(["block", "balanced", "leading"])


@given(shapes, st.integers(1, 24), kinds, distributions)
def test_every_element_belongs_to_exactly_one_rank(shape, ranks, kind, distribution):
    if kind == "pencil" and len(shape) == 1:
        kind = "slab"
    grid = process_grid(ranks, len(shape), kind)
    owners = np.zeros(shape, int)
    for rank in range(ranks):
        owners[Grid(shape, grid, distribution).part(rank).slices] += 1
    assert np.all(owners == 1)


@given(st.integers(1, 5000), st.integers(1, 4), kinds)
def test_the_grid_has_as_many_places_as_ranks_in_falling_order(ranks, ndim, kind):
    if kind == "pencil" and ndim == 1:
        return
    grid = process_grid(ranks, ndim, kind)
    assert len(grid) == ndim
    assert math.prod(grid) == ranks
    assert list(grid) == sorted(grid, reverse=True)
    cut = {"slab": 1, "pencil": 2, "block": ndim}[kind]
    assert set(grid[cut:]) <= {1}


@pytest.mark.parametrize(
    ("ranks", "kind", "grid"),
    [(12, "slab", (12, 1, 1)), (12, "pencil", (4, 3, 1)), (12, "block", (3, 2, 2)),
     (64, "block", (4, 4, 4)), (48, "block", (4, 4, 3)), (7, "block", (7, 1, 1)),
     (1, "block", (1, 1, 1))],
)  # fmt: skip
def test_known_grids(ranks, kind, grid):
    assert process_grid(ranks, 3, kind) == grid


@given(st.integers(1, 400))
def test_no_grid_of_two_axes_is_more_even(ranks):
    first, _ = process_grid(ranks, 2, "block")
    assert first == min(d for d in range(1, ranks + 1) if ranks % d == 0 and d * d >= ranks)


def test_a_pencil_needs_two_axes():
    with pytest.raises(ValueError, match="needs 2 axes"):
        process_grid(4, 1, "pencil")


@given(st.integers(1, 200), st.integers(1, 50))
def test_balanced_parts_differ_by_one_at_most(n, parts):
    sizes = [Grid((n,), (parts,), "balanced").part(r).size for r in range(parts)]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 200), st.integers(1, 50))
def test_block_parts_begin_at_multiples_of_one_number(n, parts):
    block = -(-n // parts)
    for rank in range(parts):
        box = Grid((n,), (parts,)).part(rank)
        assert box.size == 0 or box.start[0] == rank * block


@given(st.integers(1, 60), st.integers(1, 300), st.integers(1, 20), distributions)
def test_the_nearest_aligned_chunk_is_never_cut(chunk, n, parts, distribution):
    inner = Grid((n,), (parts,), distribution).edges[0]
    legal = nearest_aligned(min(chunk, n), n, inner)
    assert 1 <= legal <= n
    assert all(edge % legal == 0 for edge in inner)


@given(st.integers(2, 300), st.integers(2, 20), distributions)
def test_an_aligned_chunk_stays_as_it_is(n, parts, distribution):
    inner = Grid((n,), (parts,), distribution).edges[0]
    common = math.gcd(*inner) if inner else n
    for chunk in range(1, common + 1):
        if common % chunk == 0:
            assert nearest_aligned(chunk, n, inner) == chunk


boxes = st.integers(1, 4).flatmap(
    lambda d: st.tuples(
        st.tuples(*[st.integers(0, 5)] * d), st.tuples(*[st.integers(0, 6)] * d)
    )
)  # fmt: skip


@given(boxes, st.integers(1, 40))
def test_a_split_box_is_the_same_elements_in_the_same_order(corners, limit):
    box = Box(*corners)
    parts = list(box.split(limit))
    assert all(part.size <= limit for part in parts)
    indices = np.arange(math.prod(box.stop)).reshape(box.stop) if box.size else np.empty(0)
    if box.size:
        whole = indices[box.slices].ravel()
        assert np.array_equal(np.concatenate([indices[p.slices].ravel() for p in parts]), whole)
    else:
        assert sum(part.size for part in parts) == 0


@given(shapes, st.integers(1, 12), distributions, st.data())
def test_the_parts_of_a_global_array_are_all_of_it_once_and_cut_between_units_only(
    shape, ranks, distribution, data
):
    unit = data.draw(st.none() | st.tuples(*(st.integers(1, n) for n in shape)))
    grid = process_grid(ranks, len(shape), "block")
    array = Grid(shape, grid, distribution, unit)
    parts = [array.part(rank) for rank in range(ranks)]
    count = np.zeros(shape, int)
    for part in parts:
        count[part.slices] += 1
    assert (count == 1).all()
    for axis, cuts in enumerate(array.edges):
        edges = {part.start[axis] for part in parts if part.size}
        assert edges - {0} == set(cuts)
        assert unit is None or all(cut % unit[axis] == 0 for cut in cuts)


@given(boxes, st.integers(1, 12))
def test_a_region_is_cut_as_an_array_of_its_shape_is(corners, ranks):
    start, shape = corners
    cut = partial(Grid.over, decomposition="block", distribution="balanced")
    region, alone = Region(Box(start, shape), cut), cut(shape, ranks)
    stored = Box((0,) * len(shape), tuple(map(sum, zip(start, shape, strict=True))))
    for rank in range(ranks):
        part, inner = region.part(stored, rank, ranks), alone.part(rank)
        assert part.size == inner.size
        if part.size:
            assert part.shape == inner.shape
            assert part.start == tuple(a + b for a, b in zip(start, inner.start, strict=True))
        assert Everything().part(stored, rank, ranks) == stored


@given(boxes, boxes, st.integers(1, 5))
def test_a_rank_reads_of_a_region_what_its_file_has(region, file, ranks):
    (start, shape), (origin, extent) = region, file
    axes = min(len(start), len(origin))
    wanted, stored = Box(start[:axes], shape[:axes]), Box(origin[:axes], extent[:axes])
    parts = [Region(wanted, Grid.over).part(stored, rank, ranks) for rank in range(ranks)]
    assert sum(part.size for part in parts) == wanted.common(stored).size
    for part in parts:
        assert part.size == part.common(wanted).common(stored).size
