"""Verification: every byte counts, and the first wrong element is named."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pffbench.data import DTYPES, Mismatch, make_source, source_names, verify

pytestmark = pytest.mark.long


class Given:
    """A source of values that a test chose."""

    def __init__(self, values):
        self.values = values
        self.dtype = values.dtype

    def fill(self, out, array, start, shape):
        del array, shape
        box = tuple(slice(s, s + n) for s, n in zip(start, out.shape, strict=True))
        out[...] = self.values[box]


def filled(source, array, start, extent, shape):
    out = np.empty(extent, source.dtype)
    source.fill(out, array, start, shape)
    return out


@pytest.mark.parametrize("kind", [k for k in source_names() if k != "file"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_right_data_pass_and_one_wrong_byte_is_found(kind, dtype):
    source = make_source(kind, dtype, seed=3)
    shape, start = (7, 900, 800), (2, 100, 5)
    got = filled(source, 1, start, (3, 97, 701), shape)
    assert verify(source, got, 1, start, shape) is None
    for at in [(0, 0, 0), (1, 60, 300), (2, 96, 700)]:
        wrong = got.copy()
        wrong.view(np.uint8).reshape(*got.shape, -1)[(*at, 0)] ^= 1
        mismatch = verify(source, wrong, 1, start, shape)
        assert mismatch is not None
        assert mismatch.index == tuple(s + i for s, i in zip(start, at, strict=True))
        assert (mismatch.array, mismatch.count) == (1, 1)
        assert mismatch.expected != mismatch.got


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_first_index_and_count_in_any_memory_layout(data):
    ndim = data.draw(st.integers(1, 5))
    limit = {1: 400_000, 2: 700, 3: 80, 4: 25, 5: 12}[ndim]
    shape = tuple(data.draw(st.integers(1, limit)) for _ in range(ndim))
    extent = tuple(data.draw(st.integers(1, n)) for n in shape)
    start = tuple(data.draw(st.integers(0, n - e)) for n, e in zip(shape, extent, strict=True))
    source = make_source("uniform", data.draw(st.sampled_from(["float32", "uint8"])), seed=4)
    got = filled(source, 0, start, extent, shape)
    layout = data.draw(st.sampled_from(["C", "F", "strided", "read-only"]))
    if layout == "F":
        got = np.asfortranarray(got)
    elif layout == "strided":
        got = np.repeat(got, 2, axis=-1)[..., ::2]
    flat = sorted(data.draw(st.sets(st.integers(0, got.size - 1), max_size=5)))
    where = [tuple(int(i) for i in np.unravel_index(i, extent)) for i in flat]
    for at in where:
        got[at] = got[at] + 1
    if layout == "read-only":
        got.flags.writeable = False
    mismatch = verify(source, got, 0, start, shape)
    if not where:
        assert mismatch is None
    else:
        assert mismatch is not None
        assert mismatch.index == tuple(s + i for s, i in zip(start, where[0], strict=True))
        assert mismatch.count == len(where)


def test_values_are_told():
    values = np.arange(6, dtype="int32").reshape(2, 3)
    got = values.copy()
    got[1] = (3, -4, 99)
    assert verify(Given(values), got, 5, (0, 0), (2, 3)) == Mismatch(5, (1, 1), "4", "-4", 2)


def test_bytes_are_compared_not_numbers():
    values = np.array([np.nan, -0.0, 1.0, np.inf])
    assert verify(Given(values), values.copy(), 0, (0,), (4,)) is None
    mismatch = verify(Given(values), values + 0.0, 0, (0,), (4,))
    assert mismatch is not None
    assert (mismatch.index, mismatch.expected, mismatch.got) == ((1,), "-0.0", "0.0")
    other = values.copy()
    other.view(np.uint64)[0] ^= np.uint64(1)
    mismatch = verify(Given(values), other, 0, (0,), (4,))
    assert mismatch is not None
    assert mismatch.expected == "nan (bytes 000000000000f87f)"
    assert mismatch.got == "nan (bytes 010000000000f87f)"


@pytest.mark.parametrize("dtype", [">f4", "float64", "int32"])
def test_another_type_is_wrong_throughout(dtype):
    source = make_source("uniform", "float32", seed=1)
    got = filled(source, 0, (0,), (10,), (10,)).astype(dtype)
    mismatch = verify(source, got, 0, (0,), (10,))
    assert mismatch is not None
    assert mismatch.expected == "values of float32"
    assert mismatch.got == f"values of {np.dtype(dtype)}"
    assert mismatch.count == 10


@pytest.mark.parametrize("extent", [(0,), (0, 5), (3, 0, 2)])
def test_empty_boxes_are_right(extent):
    source = make_source("uniform", "float32", seed=1)
    got = np.empty(extent, "float32")
    assert verify(source, got, 0, (0,) * len(extent), (5,) * len(extent)) is None


def test_box_outside_the_array_is_refused():
    source = make_source("uniform", "float32", seed=1)
    with pytest.raises(ValueError, match="leaves the shape"):
        verify(source, np.zeros(5, "float32"), 0, (6,), (10,))


def test_swapped_blocks_arrays_and_seeds_are_found():
    source = make_source("uniform", "float32", seed=1)
    shape = (4, 65_536)
    got = filled(source, 0, (0, 0), shape, shape)
    for wrong in (np.roll(got, 1, axis=0), np.roll(got, 1, axis=1), np.zeros_like(got)):
        mismatch = verify(source, wrong, 0, (0, 0), shape)
        assert mismatch is not None
        assert mismatch.count > 0.99 * got.size
    assert verify(source, got, 1, (0, 0), shape) is not None
    assert verify(make_source("uniform", "float32", seed=2), got, 0, (0, 0), shape) is not None


@pytest.mark.parametrize("kind", ["uniform", "smooth"])
@pytest.mark.parametrize("contiguous", [True, False])
def test_scratch_memory_is_bounded(kind, contiguous):
    source = make_source(kind, "float32", seed=1)
    got = filled(source, 0, (0, 0), (64, 2**17), (64, 2**17))
    if not contiguous:
        got = np.asfortranarray(got)
    tracemalloc.start()
    try:
        assert verify(source, got, 0, (0, 0), got.shape) is None
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**20
    finally:
        tracemalloc.stop()
