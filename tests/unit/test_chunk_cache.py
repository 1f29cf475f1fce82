"""The workload `chunk_cache`: who moves which rows and chunks, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moves import each_element_moves_once, points
from pffbench.errors import UserError
from pffbench.geometry.box import Box
from pffbench.workloads.chunk_cache import ChunkCache, ChunkCacheParameters, granules_of
from pffbench.workloads.decodes import count, cut
from plans import plan_cases
from sharing import keys_of

WORKLOAD = ChunkCache()
ENTRY = {"workload": "chunk_cache", "backend": "hdf5", "shape": [4, 3, 5], "granules": 3}


def parameters(**changes):
    return ChunkCacheParameters(**{"backend": "hdf5", "shape": (4, 3, 5), "granules": 3, **changes})


# Granules, rows and chunks


@given(st.integers(1, 40), st.integers(1, 9))
def test_granules_are_dealt_out_in_order_the_first_ranks_one_more(total, ranks):
    granules = granules_of(parameters(granules=total), ranks).cut
    parts = [granules.part(rank) for rank in range(ranks)]
    assert all(part.start[1:] == (0, 0) and part.shape[1:] == (3, 5) for part in parts)
    rows = [row for part in parts for row in range(part.start[0], part.stop[0])]
    assert rows == list(range(4 * total))
    numbers = [part.shape[0] / 4 for part in parts]
    assert all(0 <= a - b <= 1 for a, b in pairwise(numbers))
    assert max(numbers) - min(numbers) <= 1


@given(st.data())
def test_units_tile_a_region_and_are_counted_without_making_them(data):
    ndim = data.draw(st.integers(1, 4))
    start = data.draw(st.tuples(*[st.integers(0, 7)] * ndim))
    extent = data.draw(st.tuples(*[st.integers(0, 6)] * ndim))
    unit = data.draw(st.tuples(*[st.integers(1, 5)] * ndim))
    region = Box(start, extent)
    boxes = list(cut(region, unit))
    assert len(boxes) == count(region, unit)
    inside = [set(points(box)) for box in boxes]
    assert sum(map(len, inside)) == region.size
    assert set().union(*inside) == set(points(region))
    for box in boxes:  # each lies in one cell of the grid
        ends = zip(box.start, box.stop, unit, strict=True)
        assert all(a // n == (b - 1) // n for a, b, n in ends)


# Who moves what


@given(
    st.sampled_from(["one-shared", "one-per_rank", "per_rank"]),
    st.sampled_from(["rows", "chunks"]),
    st.sampled_from(["independent", "collective"]),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(["auto", (4, 3, 5), (1, 3, 5), (3, 2, 5), (4, 3, 2)]),
)
def test_all_ranks_together_move_each_element_once(layout, read, transfer, granules, ranks, chunks):
    p = parameters(**keys_of(layout), read=read, granules=granules,
                   transfer="independent" if layout == "per_rank" else transfer,
                   chunks=chunks)  # fmt: skip
    each_element_moves_once(WORKLOAD, p, ranks, Box((0, 0, 0), (4 * granules, 3, 5)))


def test_a_rank_without_granules_has_no_array_but_calls_with_the_others():
    p = parameters(files="one", arrays="per_rank", transfer="collective", granules=2)
    assert [s.owner for s in WORKLOAD.arrays(p, 4).specs(3)] == [0, 1]
    assert {a.box.size for a in WORKLOAD.arrays(p, 4).reads(3)} == {0}
    assert len(WORKLOAD.arrays(p, 4).reads(3)) == len(WORKLOAD.arrays(p, 4).reads(0)) == 24
    assert WORKLOAD.arrays(parameters(files="per_rank", granules=2), 4).specs(3) == []
    assert WORKLOAD.arrays(p, 4).volume.arrays == 2


def test_the_users_own_file_gives_the_shape_of_a_granule(tmp_path):
    import numpy as np

    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4), "float32"))
    entry = {"workload": "chunk_cache", "backend": "hdf5", "granules": 2, "source": "file",
             "file": str(tmp_path / "a.npy")}  # fmt: skip
    (case,) = plan_cases(entry, ranks=1).cases
    assert case.parameters.shape == (2, 3, 4)


# What is refused


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shape": None}, "shape is missing"),
        ({"shape": [7]}, "shape needs 2 axes or more"),
        ({"granules": 0}, "granules"),
        ({"chunks": [4, 5]}, "must have 3 axes"),
        ({"chunks": [4, 3, 9]}, "larger than the array"),
        ({"read": "columns"}, "rows"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_reason(changes, reason):
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
    with pytest.raises(UserError, match=reason):
        plan_cases(entry)
