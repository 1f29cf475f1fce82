"""Slices of a volume: every way of storing it, every axis, with parts that leave ranks nothing."""

import json
from math import prod

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from launch import PROGRAMS, run, run_experiment, sampled, write_experiment
from pffbench.data import make_source
from pffbench.results.summary import summarise
from sharing import word_of

pytestmark = [pytest.mark.parallel, pytest.mark.full]

RANKS = sampled([3, 1, 2, 4], 2)
SHAPE = (21, 33, 26)
CHUNKS = [5, 7, 6]
COMMON = {"workload": "slices", "shape": list(SHAPE), "dtype": "uint8"}
TOGETHER = {"transfer": ["independent", "collective"]}
AXES = {"axis": [0, 1, 2]}

CASES = [
    # every way of storing the volume, along every axis
    {"backend": "hdf5", **AXES, **TOGETHER, "chunks": CHUNKS},
    {"backend": "netcdf4", **AXES, "transfer": "collective", "chunks": CHUNKS},
    {"backend": "hdf5", "axis": [0, 2], **TOGETHER, "chunks": "contiguous"},
    {"backend": "hdf5", **AXES, "settings": "defaults"},
    {"backend": "zarr", **AXES, "chunks": CHUNKS, "zarr": {"shards": [None, [10, 7, 12]]}},
    {"backend": "mpiio", **AXES, **TOGETHER},
    {"backend": "posix", **AXES},
    # each rank a volume of its own
    {"backend": ["hdf5", "posix"], "axis": 2, "files": ["one", "per_rank"], "arrays": "per_rank"},
    # more places than the first; parts of which some ranks get nothing
    {"backend": ["posix", "zarr"], "axis": 1, "position": "middle", "count": 4, "chunks": CHUNKS},
    {"backend": ["hdf5", "zarr", "mpiio"], "box": [2, 3, 26], "count": 3,
     "position": "random", "chunks": CHUNKS},
    {"backend": ["hdf5", "netcdf4", "mpiio"], "axis": 0, "shape": [3, 2, 3], "chunks": [2, 2, 2],
     "transfer": "collective"},
    # a cold cache, and hints for collective buffering
    {"backend": ["hdf5", "posix"], "axis": 2, "cache": "dropped", "chunks": CHUNKS},
    {"backend": "mpiio", "axis": 2, "transfer": "collective", "chunks": CHUNKS,
     "mpiio": {"hints": {"cb_nodes": "1"}}},
]  # fmt: skip


@pytest.fixture(scope="module", params=RANKS)
def done(request, tmp_path_factory):
    """One run of all cases."""
    directory = tmp_path_factory.mktemp("slices")
    found = run_experiment(
        directory, request.param, cases=CASES, common=COMMON, counters=True, timeout=240
    )
    assert list((directory / "scratch").iterdir()) == []
    return found


def test_everything_is_valid(done):
    assert done.status == 0, done.said
    assert done.record["valid"] is True, done.record["reasons"]
    assert done.record["left_out"] == []
    assert {row["valid"] for row in done.rows} == {"true"}


def test_all_that_was_wanted_is_read_and_verified_once(done):
    for name, entry in done.record["cases"].items():
        p = entry["parameters"]
        volumes = 1 if word_of(p) == "one-shared" else done.record["ranks"]
        flat = [1 if axis == p["axis"] else n for axis, n in enumerate(p["shape"])]
        wanted = volumes * p["count"] * prod(p["box"] or flat)
        (read,), (write,) = (done.phases(name)[phase] for phase in ("read", "write"))
        assert int(read["bytes"]) == int(read["verified_bytes"]) == wanted, name
        assert int(write["bytes"]) == volumes * prod(p["shape"]), name


@pytest.fixture(scope="module")
def counts(done):
    frame = summarise(done.out).counts()
    reads = frame[frame.phase == "read"]
    return reads.pivot_table(index="case", columns="counter", values="total")


def test_what_a_slice_touches_is_counted(done, counts):
    """One byte in each piece of the file along the last axis, one piece for each rank else."""
    wanted = {"backend": "posix", "files": "one", "arrays": "shared", "cache": "warm", "count": 1}
    worst, best = (done.case(**wanted, axis=axis) for axis in (2, 0))
    assert counts.touched_runs[worst] == SHAPE[0] * SHAPE[1] == counts.read_calls[worst]
    assert counts.touched_runs[best] == done.record["ranks"] == counts.read_calls[best]
    assert counts.read_bytes[worst] == SHAPE[0] * SHAPE[1]
    assert counts.read_bytes[best] == SHAPE[1] * SHAPE[2]


def test_chunks_that_a_slice_touches_are_read_whole(done, counts):
    """Zarr reads whole chunks, whatever is wanted of them: what is derived is what is read."""
    name = done.case(backend="zarr", axis=0, shards=None, position="first", box=None)
    if done.record["ranks"] == 1:
        assert counts.touched_chunks[name] == 5 * 5  # 33 by 26 in chunks of 7 by 6
    assert counts.touched_chunks[name] >= 5 * 5
    assert counts.touched_bytes[name] == prod(CHUNKS) * counts.touched_chunks[name]
    assert counts.read_bytes[name] == counts.touched_bytes[name]


def test_shards_are_read_in_part_with_their_index(done, counts):
    name = done.case(backend="zarr", axis=0, shards=(10, 7, 12))
    assert counts.touched_bytes[name] > prod(CHUNKS) * counts.touched_chunks[name]
    # Shards as small as these fit the buffer of a Python file, which reads on beyond the index.
    assert counts.read_bytes[name] >= counts.touched_bytes[name]


# The files, read by programs that know nothing of pffbench

WRITTEN = {
    "c": {"backend": "posix"},
    "together": {"backend": "mpiio", "transfer": "collective"},
    "h5": {"backend": "hdf5", "chunks": CHUNKS, "transfer": "collective"},
    "nc": {"backend": "netcdf4", "chunks": "contiguous"},
    "zarr": {"backend": "zarr", "chunks": CHUNKS, "zarr": {"shards": [10, 7, 12]}},
    "alone": {"backend": "posix", "files": "per_rank"},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("written")
    experiment = write_experiment(
        place, unsupported="refuse", question=" ".join(WRITTEN),
        cases=[COMMON | {"axis": 0} | case for case in WRITTEN.values()],
    )  # fmt: skip
    found = run([PROGRAMS / "write_store.py", "pffbench", place, experiment], ranks=3)
    assert found.status == 0, found.said
    return place


def volume(number=0):
    values = np.empty(SHAPE, "uint8")
    make_source("uniform", "uint8", seed=1).fill(values, number, (0, 0, 0), SHAPE)
    return values


def raw(path):
    return np.fromfile(path, "uint8").reshape(SHAPE)


@pytest.mark.parametrize("name", ["c", "together"])
def test_raw_files_hold_the_volume(written, name):
    np.testing.assert_array_equal(raw(written / name / "shared.raw"), volume())


def test_each_rank_has_its_own_volume(written):
    for rank in range(3):
        path = written / "alone" / f"rank-{rank}.raw"
        np.testing.assert_array_equal(raw(path), volume(rank))


def test_hdf5_files_hold_the_volume(written):
    with h5py.File(written / "h5" / "shared.h5") as file:
        assert file["volume"].chunks == tuple(CHUNKS)
        np.testing.assert_array_equal(file["volume"][...], volume())


def test_netcdf_files_hold_the_volume(written):
    with netCDF4.Dataset(written / "nc" / "shared.nc") as file:
        file.set_auto_mask(False)
        assert file["volume"].chunking() == "contiguous"
        np.testing.assert_array_equal(file["volume"][...], volume())


def test_zarr_stores_hold_the_volume(written):
    array = zarr.open_array(written / "zarr" / "shared.zarr" / "volume", mode="r")
    assert (array.chunks, array.shards) == ((5, 7, 6), (10, 7, 12))
    np.testing.assert_array_equal(array[...], volume())
    assert json.loads((written / "zarr/shared.zarr/volume/zarr.json").read_text())["shape"] == [
        *SHAPE
    ]
