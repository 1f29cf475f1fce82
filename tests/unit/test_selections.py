"""Selections of rows and elements: boxes, the mask that tells them, and boxes with a stride."""

from math import prod
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pffbench.backends.file_layout import ArrayInFile
from pffbench.data import make_source
from pffbench.data.views import Generation, Merged, Strided
from pffbench.geometry.box import Box
from pffbench.geometry.cut import Grid
from pffbench.workloads.selections import Selection, selected, selected_boxes

SELECTIONS = get_args(Selection)
KINDS = ["uniform", "integers", "constant", "smooth"]


@given(
    selection=st.sampled_from(SELECTIONS),
    shape=st.tuples(st.integers(2, 9), st.integers(1, 9), st.integers(1, 4)),
    ranks=st.integers(1, 5),
    owned=st.booleans(),
    count=st.integers(1, 2),
)
def test_the_ranks_boxes_are_what_the_mask_tells(selection, shape, ranks, owned, count):
    rows = shape[0]
    taken = np.zeros(shape, int)
    numbers = set()
    for rank in range(ranks):
        part = Grid(shape, (1, ranks, 1)).part(rank)
        mine, origin = taken, (0, 0, 0)
        if owned:  # an array of its own, whose elements lie in the whole one from `origin` on
            mine, origin = taken[part.slices], part.start
            part = Box((0, 0, 0), part.shape)
        boxes = selected_boxes(selection, part, origin, rows, count)
        numbers.add(len(boxes))
        for box in boxes:
            mine[box.slices] += 1
            assert mine[box.slices].shape == box.shape or box.size == 0
    told = selected(selection, (0, 0, 0), shape, rows, count)
    assert (taken == np.broadcast_to(told, shape)).all()
    assert len(numbers) == 1
    if selection == "random_rows":
        assert taken.sum() == count * prod(shape[1:])


boxes_with_strides = st.integers(1, 3).flatmap(
    lambda axes: st.tuples(*[
        st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(0, 2)) for _ in range(axes)
    ])
)  # fmt: skip


def _box(axes):
    """A box with a stride, and the shape of an array that has it."""
    shape = tuple(n for n, _, _ in axes)
    start = tuple(min(first, n - 1) for n, _, first in axes)
    stride = tuple(step for _, step, _ in axes)
    counts = zip(start, shape, stride, strict=True)
    return Box(start, tuple(len(range(a, n, s)) for a, n, s in counts), stride), shape


@given(axes=boxes_with_strides)
def test_stretches_of_a_box_with_a_stride_are_its_elements(axes):
    box, shape = _box(axes)
    array = ArrayInFile(shape, 4, 100)
    place = 100 + 4 * np.arange(prod(shape)).reshape(shape)
    runs = array.runs(box)
    assert len(runs.offsets) == array.run_count(box)
    found = [offset + i for offset in runs.offsets for i in range(0, runs.length, 4)]
    assert found == place[box.slices].ravel().tolist()


@given(axes=boxes_with_strides, limit=st.integers(1, 9))
def test_a_box_with_a_stride_is_split_into_its_elements(axes, limit):
    box, shape = _box(axes)
    place = np.arange(prod(shape)).reshape(shape)
    parts = list(box.split(limit))
    assert all(part.size <= limit for part in parts)
    found = np.concatenate([place[part.slices].ravel() for part in parts])
    assert found.tolist() == place[box.slices].ravel().tolist()


@given(axes=boxes_with_strides)
def test_a_lattice_holds_every_so_many_of_the_source(axes):
    box, shape = _box(axes)
    source = make_source("uniform", "int64", 3)
    whole = np.empty(shape, "int64")
    source.fill(whole, 5, (0,) * len(shape), shape)
    lattice = Strided(source, box.start, box.stride, shape)
    out = np.empty(box.shape, "int64")
    lattice.fill(out, 5, (0,) * len(shape), box.shape)
    assert (out == whole[box.slices]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_generations_of_all_data_differ(kind):
    source, shape = make_source(kind, None, 1), (8, 64, 64)
    before, after = (np.empty(shape, source.dtype) for _ in range(2))
    Generation(source, 0).fill(before, 0, (0, 0, 0), shape)
    Generation(source, 1).fill(after, 0, (0, 0, 0), shape)
    assert (before != after).any()


def test_merged_data_are_both_generations():
    source, shape = make_source("uniform", "uint8", 1), (6, 50)
    expected, after, merged = (np.empty((4, 30), "uint8") for _ in range(3))
    Generation(source, 0).fill(expected, 2, (1, 7), shape)
    Generation(source, 1).fill(after, 2, (1, 7), shape)
    expected[1:3] = after[1:3]

    def changed(start, shape, whole):
        assert (start, shape, whole) == ((1, 7), (4, 30), (6, 50))
        return np.array([False, True, True, False]).reshape(-1, 1)

    Merged(source, changed).fill(merged, 2, (1, 7), shape)
    assert (merged == expected).all()
