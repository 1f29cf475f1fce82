"""Slices of a volume: every way of storing it, every axis, with cuts that leave ranks nothing."""

import json
from math import prod

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from launch import PROGRAMS, run, run_experiment, sampled, write_experiment
from pffbench.data import make_source
from pffbench_analysis.frames import load_counts

pytestmark = [pytest.mark.parallel, pytest.mark.full]

RANKS = sampled([3, 1, 2, 4], 2)
SHAPE = (21, 33, 26)
CHUNKS = [5, 7, 6]
ORDERS = ["C", "F", "both", "three"]
COMMON = {"workload": "slices", "shape": list(SHAPE), "dtype": "uint8"}
TOGETHER = {"transfer": "collective", "read_transfer": ["independent", "collective"]}
AXES = {"axis": [0, 1, 2]}

CASES = [
    # every way of storing the volume, along every axis
    {"backend": "hdf5", **AXES, **TOGETHER, "chunks": CHUNKS},
    {"backend": "netcdf4", **AXES, "transfer": "collective", "chunks": CHUNKS},
    {"backend": "hdf5", "axis": [0, 2], **TOGETHER, "chunks": "contiguous"},
    {"backend": "hdf5", **AXES, "settings": "defaults"},
    {"backend": "zarr", **AXES, "chunks": CHUNKS, "zarr": {"shards": [None, [10, 7, 12]]}},
    {"backend": "mpiio", "axis": [0, 2], **TOGETHER, "mpiio": {"order": ["F", "both"]}},
    {"backend": "mpiio", "axis": 1, **TOGETHER, "mpiio": {"order": "three"}},
    {"backend": "posix", **AXES, "posix": {"order": ORDERS}},
    {"backend": "memmap", **AXES, "memmap": {"order": ORDERS}},
    {"backend": "memmap", "axis": 0, "memmap": {"order": ["C", "F"], "destination": "F"}},
    # each rank a volume of its own
    {"backend": ["hdf5", "memmap"], "axis": 2, "layout": ["own", "file_per_process"],
     "memmap": {"order": "F", "madvise": "random"}},
    # more places than the first; cuts of which some ranks get nothing
    {"backend": ["posix", "zarr"], "axis": 1, "position": "middle", "count": 4,
     "chunks": CHUNKS, "cut": ["aligned", "unaligned"], "cut_unit": CHUNKS},
    {"backend": ["hdf5", "memmap", "zarr", "mpiio"], "box": [2, 3, 26], "count": 3,
     "position": "random", "chunks": CHUNKS, "cut": "aligned", "cut_unit": CHUNKS},
    {"backend": ["hdf5", "netcdf4", "mpiio"], "axis": 0, "shape": [3, 2, 3], "chunks": [2, 2, 2],
     "transfer": "collective"},
    # a cold cache, and hints for collective buffering
    {"backend": ["hdf5", "memmap"], "axis": 2, "cache": "dropped", "chunks": CHUNKS},
    {"backend": "mpiio", "axis": 2, "transfer": "collective", "chunks": CHUNKS,
     "mpiio": {"hints": {"cb_nodes": "1"}, "order": "both"}},
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
    assert len(done.record["cases"]) > 50


def test_all_that_was_wanted_is_read_and_verified_once(done):
    for name, entry in done.record["cases"].items():
        p = entry["parameters"]
        volumes = 1 if p["layout"] == "shared" else done.record["ranks"]
        flat = [1 if axis == p["axis"] else n for axis, n in enumerate(p["shape"])]
        wanted = volumes * p["count"] * prod(p["box"] or flat)
        (read,), (write,) = (done.phases(name)[phase] for phase in ("read", "write"))
        assert int(read["bytes"]) == int(read["verified_bytes"]) == wanted, name
        assert int(write["bytes"]) == volumes * prod(p["shape"]), name


def test_the_store_is_told_as_it_is(done):
    told = done.record["cases"][done.case(
        backend="mpiio", order="both", transfer="collective", axis=2, read_transfer=None
    )]  # fmt: skip
    assert told["stored_as"]["more"] == {"order": "both"}
    assert told["transfer_facts"]["mpi_io_component"]


@pytest.fixture(scope="module")
def counts(done):
    frame = load_counts(done.out)
    reads = frame[frame.phase == "read"]
    return reads.pivot_table(index="case", columns="counter", values="total")


def test_what_a_slice_touches_is_counted(done, counts):
    ranks = done.record["ranks"]
    worst = done.case(backend="posix", order="F", axis=0)
    best = done.case(backend="posix", order="both", axis=0)
    # One byte in each piece of the file in the wrong order, one piece for each rank in the right.
    assert counts.touched_runs[worst] == SHAPE[1] * SHAPE[2] == counts.read_calls[worst]
    assert counts.touched_runs[best] == ranks == counts.read_calls[best]
    assert counts.read_bytes[worst] == counts.read_bytes[best] == SHAPE[1] * SHAPE[2]
    mapped = done.case(backend="memmap", order="F", destination="C", axis=0)
    assert counts.read_calls[mapped] == 0
    assert counts.touched_bytes[mapped] == counts.touched_bytes[worst] >= prod(SHAPE) // 4096 * 4096


def test_chunks_that_a_slice_touches_are_read_whole(done, counts):
    """Zarr reads whole chunks, whatever is wanted of them: what is derived is what is read."""
    name = done.case(backend="zarr", axis=0, shards=None, position="first", box=None, cut="even")
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


def test_cuts_beside_the_edges_of_chunks_touch_more_of_them(done, counts):
    wanted = {"backend": "zarr", "axis": 1, "position": "middle"}
    aligned, beside = (done.case(**wanted, cut=cut) for cut in ("aligned", "unaligned"))
    if done.record["ranks"] == 1:
        assert counts.touched_chunks[aligned] == counts.touched_chunks[beside]
    else:
        assert counts.touched_chunks[aligned] < counts.touched_chunks[beside]


# The amplification that the study is about, at its stride


@pytest.fixture(scope="module")
def stride(tmp_path_factory):
    """A thin piece of the published volume, with its first axis."""
    directory = tmp_path_factory.mktemp("stride")
    memmap = {"order": "F", "destination": "C"}
    return run_experiment(
        directory, 1, counters=True, common=COMMON | {"shape": [621, 64, 66], "axis": [2, 0]},
        cases=[{"backend": "memmap", "layout": "file_per_process", "cache": "dropped",
                "settings": "defaults", "memmap": memmap}],
    )  # fmt: skip


def test_the_worst_axis_of_a_map_moves_600_times_what_is_wanted(stride):
    assert stride.status == 0, stride.said
    frame = load_counts(stride.out)
    frame = frame[frame.phase == "read"]
    reads = frame.pivot_table(index="case", columns="counter", values="total")
    wanted = {0: 64 * 66, 2: 621 * 64}

    def times(counter, axis):
        return reads[counter][stride.case(axis=axis)] / wanted[axis]

    assert times("touched_bytes", 0) >= 600
    assert times("touched_bytes", 2) < 1.3  # 10 pages, two of them in part
    device = times("device_read_bytes", 0)
    assert device == 0 or device >= 600  # 0: a file system without a device


# The files, read by programs that know nothing of pffbench

WRITTEN = {
    "c": {"backend": "posix"},
    "f": {"backend": "posix", "posix": {"order": "F"}},
    "both": {"backend": "mpiio", "mpiio": {"order": "both"}},
    "f-together": {"backend": "mpiio", "mpiio": {"order": "F"}, "transfer": "collective"},
    "map": {"backend": "memmap", "memmap": {"order": "both"}},
    "three": {"backend": "posix", "posix": {"order": "three"}},
    "three-together": {"backend": "mpiio", "mpiio": {"order": "three"}, "transfer": "collective"},
    "h5": {"backend": "hdf5", "chunks": CHUNKS, "transfer": "collective"},
    "nc": {"backend": "netcdf4", "chunks": "contiguous"},
    "zarr": {"backend": "zarr", "chunks": CHUNKS, "zarr": {"shards": [10, 7, 12]}},
    "alone": {"backend": "memmap", "memmap": {"order": "F"}, "layout": "file_per_process"},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("written")
    experiment = write_experiment(
        place, impossible="refuse", question=" ".join(WRITTEN),
        cases=[COMMON | {"axis": 0} | case for case in WRITTEN.values()],
    )  # fmt: skip
    found = run([PROGRAMS / "write_store.py", "pffbench", place, experiment], ranks=3)
    assert found.status == 0, found.said
    return place


def volume(number=0):
    values = np.empty(SHAPE, "uint8")
    make_source("uniform", "uint8", seed=1).fill(values, number, (0, 0, 0), SHAPE)
    return values


def raw(path, offset, order):
    stored = np.fromfile(path, "uint8", count=prod(SHAPE), offset=offset)
    if order == "M":  # the middle axis is slowest
        return stored.reshape([SHAPE[axis] for axis in (1, 0, 2)]).transpose(1, 0, 2)
    return stored.reshape(SHAPE, order=order)


@pytest.mark.parametrize(
    ("name", "offset", "order", "nbytes"),
    [
        ("c", 0, "C", prod(SHAPE)),
        ("f", 0, "F", prod(SHAPE)),
        ("both", 0, "C", 2 * prod(SHAPE)),
        ("both", prod(SHAPE), "F", 2 * prod(SHAPE)),
        ("f-together", 0, "F", prod(SHAPE)),
        ("map", 0, "C", 2 * prod(SHAPE)),
        ("map", prod(SHAPE), "F", 2 * prod(SHAPE)),
        ("three", prod(SHAPE), "F", 3 * prod(SHAPE)),
        ("three", 2 * prod(SHAPE), "M", 3 * prod(SHAPE)),
        ("three-together", 2 * prod(SHAPE), "M", 3 * prod(SHAPE)),
    ],
)
def test_raw_files_hold_the_volume_in_their_order(written, name, offset, order, nbytes):
    path = written / name / "shared.raw"
    assert path.stat().st_size == nbytes
    np.testing.assert_array_equal(raw(path, offset, order), volume())


def test_each_rank_has_its_own_volume(written):
    for rank in range(3):
        path = written / "alone" / f"rank-{rank}.raw"
        np.testing.assert_array_equal(raw(path, 0, "F"), volume(rank))


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
