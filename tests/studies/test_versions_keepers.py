"""Ways of keeping versions: each version comes back exactly, and each chunk is kept once."""

from importlib import import_module
from importlib.util import find_spec

import h5py
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pffbench.backends.registry import backend_class
from pffbench.doctor.libraries import needed_for
from pffbench_studies.versions import interface
from pffbench_studies.versions.chunks import Pool, grid_of, touched_chunks
from pffbench_studies.versions.history import COLUMNS, KINDS, Chances, History
from pffbench_studies.versions.interface import ColumnStorage, make_store
from pffbench_studies.versions.repetition import difference
from pffbench_studies.versions.workload import CODECS

WAYS = list(interface.WAYS)
SPARSE, DENSE = "mostly_appends_sparse", "mostly_appends_dense"
CHUNK = 16


@pytest.fixture(autouse=True, scope="module")
def eventful():
    """Let events be likely and tables small; rows come and go across the edges of chunks."""
    before = dict(KINDS)
    often = Chances(0.6, 0.5, 0.5, in_first=False)
    KINDS[SPARSE] = replace(
        KINDS[SPARSE], start=(40,), appended=3, changes=4, deletes=(9,), chances=often
    )
    KINDS[DENSE] = replace(
        KINDS[DENSE], start=(20, 20), changes=4, inserts=(2, 2), deletes=(3, 3), chances=often
    )
    yield
    KINDS.update(before)


@pytest.fixture(autouse=True)
def whole_chunks():
    with zarr.config.set({"array.write_empty_chunks": True}):
        yield


def keep_history(path, backend, keep, history, codec="none"):
    """Keep a history; return the keeper, to read it with, and the versions' tables."""
    if library := interface.WAYS[backend, keep].package:
        pytest.importorskip(library, exc_type=ImportError)
    storage, options = ColumnStorage(CHUNK, codec, 4), backend_class(backend).options_type()
    keeper = make_store(backend, keep, storage, options)
    store, tables = keeper.create(str(path)), []
    for version in history:
        stage, commit = store.stage(version), store.commit(version)
        stage()
        commit()
        store.flush()
        tables.append(version.table)
    store.close()
    return keeper, tables


def padded(values, chunks):
    """Yield the chunks of an array as bytes, filled up with zeros: another way than ours."""
    room = [(0, -n % c) for n, c in zip(values.shape, chunks, strict=True)]
    full = np.pad(values, room)
    grid = grid_of(values.shape, chunks)
    for at in np.ndindex(grid):
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunks, strict=True))
        yield at, np.ascontiguousarray(full[box])


@pytest.mark.full
@pytest.mark.parametrize("kind", [SPARSE, DENSE])
@pytest.mark.parametrize(
    ("backend", "keep", "codec"), [(*way, codec) for way in WAYS for codec in CODECS[way[0]]]
)
def test_every_version_comes_back_exactly(tmp_path, backend, keep, kind, codec):
    history = History(kind, 12, "as_described", "element" if kind == DENSE else "batch", seed=5)
    keeper, tables = keep_history(tmp_path / "store", backend, keep, history, codec)
    recalled = keeper.open(str(tmp_path / "store"))
    wanted = [12] if keep == "last" else range(13)
    for number in reversed(wanted):  # in another order than they were made
        out = {name: np.full_like(values, -1) for name, values in tables[number].items()}
        got = recalled.reader(recalled.look_up(number), out)()
        for name in COLUMNS:
            assert difference(0, tables[number][name], np.asarray(got[name])) is None
            if keep != "versioned_hdf5":  # which returns arrays of its own
                assert got[name] is out[name]
    recalled.close()


def distinct(tables):
    """Count the chunks of all versions that are unlike each other, column by column."""
    found = set()
    for table in tables:
        for name, values in table.items():
            chunks = (CHUNK,) * values.ndim
            found |= {(name, chunk.tobytes()) for _, chunk in padded(values, chunks)}
    return len(found)


@pytest.mark.parametrize("kind", [SPARSE, DENSE])
@pytest.mark.parametrize(
    ("backend", "keep"), [("hdf5", "chunks"), ("zarr", "chunks"), ("hdf5", "versioned_hdf5")]
)
def test_each_different_chunk_is_kept_once(tmp_path, backend, keep, kind):
    history = History(kind, 12, "as_described", seed=8)
    keeper, tables = keep_history(tmp_path / "store", backend, keep, history)
    kept, stored = keeper.look_at(str(tmp_path / "store"))
    whole = sum(len(list(padded(v, (CHUNK,) * v.ndim))) for t in tables for v in t.values())
    # versioned-hdf5 looks at the part of an edge chunk that holds data, so it may find one more.
    assert kept.chunks == pytest.approx(distinct(tables), abs=0 if keep == "chunks" else 2)
    assert kept.chunks < whole
    item_bytes = 8 * CHUNK if kind == SPARSE else 8
    assert kept.data_bytes >= kept.chunks * item_bytes
    assert kept.metadata_bytes > 0
    assert stored.chunks[-1] == CHUNK


@pytest.mark.parametrize("backend", ["hdf5", "zarr"])
def test_another_reader_puts_versions_together(tmp_path, backend):
    """By the description at the head of chunks.py, with the bare library."""
    history = History(DENSE, 8, "as_described", seed=3)
    _, tables = keep_history(tmp_path / "store", backend, "chunks", history)
    root = h5py.File(tmp_path / "store") if backend == "hdf5" else zarr.open(tmp_path / "store")
    for number, table in enumerate(tables):
        for name, values in table.items():
            begin, *shape = (int(n) for n in root[f"shapes/{name}"][number])
            assert tuple(shape) == values.shape
            chunks = (CHUNK,) * values.ndim
            places = root[f"places/{name}"][begin : begin + int(np.prod(grid_of(shape, chunks)))]
            for place, (_, chunk) in zip(places, padded(values, chunks), strict=True):
                assert root[f"pool/{name}"][int(place)].tobytes() == chunk.tobytes()
        assert root["hashes/val"].shape == (root["pool/val"].shape[0], 32)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([SPARSE, DENSE]), st.integers(1, 50), st.integers(0, 2**32),
    st.sampled_from(["batch", "element"]),
)  # fmt: skip
def test_the_chunk_store_is_right_for_any_chunk_size(kind, chunk, seed, change):
    """What is not hashed again is as before, and places lead to the right chunks."""
    pools, contents = {}, {name: [] for name in COLUMNS}
    for version in History(kind, 8, "as_described", change, seed=seed):
        for name, values in version.table.items():
            chunks = (chunk,) * values.ndim
            pool = pools.setdefault(name, Pool(chunks))
            edits = [edit for edit in version.edits if edit.column == name]
            contents[name] += [new for _, new in pool.take(values, edits)]
            assert pool.places.shape == grid_of(values.shape, chunks)
            for at, wanted in padded(values, chunks):
                assert contents[name][pool.places[at]].tobytes() == wanted.tobytes()
    for name, pool in pools.items():
        assert len(contents[name]) == len(pool.numbers) <= pool.hashed


def test_a_version_that_changes_little_touches_few_chunks():
    before, after = list(History(SPARSE, 1, "as_published"))
    edits = [edit for edit in after.edits if edit.column == "val"]
    touched = touched_chunks(edits, before.table["val"].shape, (CHUNK,))
    assert len(touched) <= 2


def test_differences_are_told():
    right = np.array([1.0, 2.0, 3.0])
    assert difference(2, right, right.copy()) is None
    wrong = difference(2, right, np.array([1.0, 2.5, 4.0]))
    assert (wrong.array, wrong.index, wrong.count) == (2, (1,), 2)
    assert difference(2, right, right[:2]).expected == "float64 of shape (3,)"
    assert difference(2, right, right.astype(int)).got == "int64 of shape (3,)"
    assert difference(0, np.empty((0, 3)), np.empty((0, 3))) is None


def test_what_an_optional_library_needs_is_said():
    for way in interface.WAYS.values():
        assert bool(way.package) == bool(way.remedy)
        if way.package and find_spec(way.package) is not None:
            assert import_module(way.package)


def test_doctor_names_the_optional_libraries():
    uses = needed_for()
    assert uses["icechunk"] == ["zarr: no versions with keep: icechunk"]
    assert uses["versioned_hdf5"] == ["hdf5: no versions with keep: versioned_hdf5"]
