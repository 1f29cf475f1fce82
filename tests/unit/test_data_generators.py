"""The generators: pure functions of seed, array and global index, fit for their purpose."""

from __future__ import annotations

import itertools
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pffbench.data import DTYPES, GENERATORS, make_source, source_names
from pffbench.errors import UserError

pytestmark = pytest.mark.long

#: Those of other packages too.
KINDS = [kind for kind in source_names() if kind != "file"]


def box(source, array, start, extent, shape):
    out = np.empty(extent, source.dtype)
    out.view(f"u{out.dtype.itemsize}").fill(0xAB)
    source.fill(out, array, start, shape)
    return out


def whole(source, array, shape):
    return box(source, array, (0,) * len(shape), shape, shape)


@st.composite
def boxes(draw):
    """A shape whose last axis may be longer than a segment, and two cuts along every axis."""
    ndim = draw(st.integers(1, 5))
    small = {1: 200_000, 2: 300, 3: 40, 4: 9, 5: 5}[ndim]
    shape = [draw(st.integers(1, small)) for _ in range(ndim)]
    if ndim == 2 and draw(st.booleans()):
        long = draw(st.integers(0, 1))
        shape[long], shape[1 - long] = draw(st.integers(60_000, 140_000)), draw(st.integers(1, 3))
    cuts = [sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in shape]
    return tuple(shape), cuts


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("uniform", "float32"), ("uniform", "uint64"), ("uniform", "int8"),
     ("integers", "int32"), ("constant", "int16"), ("smooth", "float64")],
)  # fmt: skip
@settings(max_examples=40, deadline=None)
@given(case=boxes())
def test_any_decomposition_gives_the_same_values(kind, dtype, case):
    shape, cuts = case
    source = make_source(kind, dtype, seed=11)
    expected = whole(source, 3, shape)
    built = np.empty_like(expected)
    parts = [[(0, a), (a, b), (b, n)] for (a, b), n in zip(cuts, shape, strict=True)]
    for part in itertools.product(*parts):
        start = tuple(a for a, _ in part)
        extent = tuple(b - a for a, b in part)
        built[tuple(slice(a, b) for a, b in part)] = box(source, 3, start, extent, shape)
    assert built.tobytes() == expected.tobytes()


def test_boxes_with_many_segments_and_many_rows():
    source = make_source("uniform", "float32", seed=2)
    shape = (9000, 2, 70_000)
    column = box(source, 0, (0, 1, 65_530), (9000, 1, 12), shape)
    for row in (0, 4095, 4096, 8999):
        assert np.array_equal(column[row], box(source, 0, (row, 1, 65_530), (1, 1, 12), shape)[0])


GOLDEN = {
    ("uniform", "float32"): ["0.9343896", "0.24344778", "0.70720387"],
    ("uniform", "float64"): ["0.5016447525323169", "0.08155526749198505", "0.7862139766963541"],
    ("uniform", "int8"): ["-17", "62", "-75"],
    ("uniform", "uint32"): ["4013211646", "1045618300", "3037437175"],
    ("uniform", "int64"): ["-9193031708401524599", "1504429145387517046", "-3943656057686752605"],
    ("integers", "float32"): ["934.0", "243.0", "707.0"],
    ("integers", "uint8"): ["93", "24", "70"],
    ("constant", "int16"): ["6289", "6289", "6289"],
    ("smooth", "float32"): ["-18.9", "-18.9", "-18.9"],
    ("smooth", "uint8"): ["58", "58", "58"],
}


@pytest.mark.parametrize(("kind", "dtype"), GOLDEN)
def test_values_never_change(kind, dtype):
    """Files written by one release must verify with the next."""
    values = box(make_source(kind, dtype, seed=42), 7, (5, 4321, 10), (1, 1, 3), (6, 5000, 600))
    assert [str(v) for v in values.ravel()] == GOLDEN[kind, dtype]


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_seeds_and_arrays_differ(kind, dtype):
    shape = (3, 500)
    reference = whole(make_source(kind, dtype, seed=1), 0, shape)
    assert reference.dtype == dtype
    for seed, array in [(2, 0), (1, 1), (2, 1), (-1, 0), (2**63, 0)]:
        other = whole(make_source(kind, dtype, seed=seed), array, shape)
        assert (other != reference).mean() > 0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_floats_fill_the_unit_interval(dtype):
    values = whole(make_source("uniform", dtype, seed=5), 0, (32, 65_536)).astype(float)
    assert values.min() >= 0
    assert values.max() < 1
    assert values.mean() == pytest.approx(0.5, abs=2e-3)
    assert values.var() == pytest.approx(1 / 12, rel=1e-2)
    counts, _ = np.histogram(values, 256, (0, 1))
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 400  # 255 degrees of freedom


def test_rows_columns_and_arrays_are_uncorrelated():
    source = make_source("uniform", "float32", seed=5)
    shape = (256, 70_000)
    first, second = (whole(source, array, shape)[:, :4096] - np.float32(0.5) for array in (0, 1))
    for values in (first, first[:, :256].T, np.concatenate([first[:128], second[:128]])):
        pairs = np.corrcoef(values)
        np.fill_diagonal(pairs, 0)
        assert abs(pairs).max() < 6 / np.sqrt(values.shape[1])
    assert abs((first[:, 1:] * first[:, :-1]).mean() * 12) < 6 / 1000


@pytest.mark.parametrize("dtype", [d for d in DTYPES if "int" in d])
def test_uniform_integers_are_incompressible(dtype):
    values = whole(make_source("uniform", dtype, seed=5), 0, (2**19 // np.dtype(dtype).itemsize,))
    planes = np.ascontiguousarray(values.view(np.uint8).reshape(values.size, -1).T)
    bits = np.packbits(np.unpackbits(planes, axis=0).reshape(-1))
    for text in (values.tobytes(), planes.tobytes(), bits.tobytes()):
        assert len(zlib.compress(text, 6)) > 0.99 * len(text)
    assert np.unpackbits(values.view(np.uint8)).mean() == pytest.approx(0.5, abs=2e-3)


def test_low_bits_do_not_repeat_from_segment_to_segment():
    values = whole(make_source("uniform", "uint32", seed=5), 0, (64, 65_536))
    for bit in (0, 1, 7, 16, 31):
        plane = (values >> np.uint32(bit)) & np.uint32(1)
        signs = plane[:, :8192].astype(np.float32) * 2 - 1
        pairs = signs @ signs.T / 8192
        np.fill_diagonal(pairs, 0)
        assert abs(pairs).max() < 0.07


def test_compressibility_is_ordered():
    sizes = {}
    for kind in GENERATORS:
        values = whole(make_source(kind, "float32", seed=5), 0, (4, 64, 1024))
        sizes[kind] = values.nbytes / len(zlib.compress(values.tobytes(), 6))
    assert sizes["uniform"] < 1.2 < 1.8 < sizes["integers"] < sizes["smooth"] < sizes["constant"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_keep_to_their_range(dtype):
    values = whole(make_source("integers", dtype, seed=5), 0, (300_000,))
    top = 99 if np.dtype(dtype).itemsize == 1 else 999
    assert (values.min(), values.max()) == (0, top)
    assert np.array_equal(values, values.astype(int).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_constant_is_never_a_fill_value(dtype):
    source = make_source("constant", dtype, seed=5)
    values = [whole(source, array, (2, 2)) for array in range(400)]
    assert all((v == v[0, 0]).all() and 0 < v[0, 0] <= 30_000 for v in values)
    assert all(a[0, 0] != b[0, 0] for a, b in itertools.pairwise(values))
    if np.dtype(dtype).itemsize == 1:
        assert max(v[0, 0] for v in values) <= 120


@pytest.mark.parametrize("dtype", DTYPES)
def test_smooth_has_small_steps_and_few_digits(dtype):
    values = whole(make_source("smooth", dtype, seed=5), 0, (2, 900, 900)).astype(float)
    spread = values.max() - values.min()
    assert spread > 50
    for axis in (1, 2):
        assert abs(np.diff(values, axis=axis)).max() < 0.05 * spread
    digits = values * 10 if dtype.startswith("float") else values
    assert np.allclose(digits, digits.round(), atol=2e-3)
    if dtype.startswith("uint"):
        assert values.min() >= 0


def test_smooth_does_not_repeat_at_powers_of_two():
    values = whole(make_source("smooth", "float32", seed=5), 0, (2**18,))
    for power in range(4, 17):
        assert (values[:1024] != values[2**power : 2**power + 1024]).mean() > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_empty_boxes_and_wrong_boxes(kind):
    source = make_source(kind, "float32", seed=1)
    assert box(source, 0, (4, 0), (0, 7), (4, 7)).size == 0
    assert box(source, 0, (0, 0), (0, 0), (0, 0)).size == 0
    with pytest.raises(ValueError, match="leaves the shape"):
        box(source, 0, (1, 0), (4, 7), (4, 7))
    with pytest.raises(ValueError, match="leaves the shape"):
        box(source, 0, (-1, 0), (2, 7), (4, 7))
    with pytest.raises(ValueError, match="does not fit"):
        box(source, 0, (1,), (4, 7), (4, 7))
    with pytest.raises(ValueError, match="C-contiguous"):
        source.fill(np.empty((7, 4), "float32").T, 0, (0, 0), (4, 7))
    with pytest.raises(ValueError, match="C-contiguous"):
        source.fill(np.empty((4, 7), "float64"), 0, (0, 0), (4, 7))


def test_wrong_arguments():
    with pytest.raises(UserError, match=r"'random' is not one of .*uniform"):
        make_source("random", "float32")
    with pytest.raises(UserError, match="'float16' is not one of float32"):
        make_source("uniform", "float16")
    with pytest.raises(UserError, match="not to source 'uniform'"):
        make_source("uniform", "float32", 0, file="x.h5")
    with pytest.raises(UserError, match="needs the key 'file'"):
        make_source("file")


def test_default_dtype():
    assert make_source("uniform").dtype == np.float32


def test_importing_needs_no_format_library():
    code = "import sys, pffbench.data; print([m for m in sys.modules if m in " \
           "('h5py', 'netCDF4', 'zarr', 'mpi4py', 'numcodecs')])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
