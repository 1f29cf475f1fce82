"""Every backend, layout and transfer, on 1 to 4 ranks, with shapes that do not divide evenly."""

import math

import h5py
import numpy as np
import pytest

from launch import run_experiment, sampled

pytestmark = pytest.mark.parallel

ALL = ["hdf5", "netcdf4", "zarr", "tensorstore", "npy", "mpiio", "posix", "memmap"]
FORMATS = ["hdf5", "netcdf4", "zarr"]
TOGETHER = ["hdf5", "netcdf4", "mpiio"]
APART = ["zarr", "tensorstore", "npy", "posix", "memmap"]
ZARR = ["zarr", "tensorstore"]
LAYOUTS = ["shared", "own", "file_per_process"]
BOTH = ["independent", "collective"]

#: Seconds after which a run hangs: a hundred times what it takes alone on a machine of two cores.
LONGEST = 3600

CASES = [
    # everything that there is
    {"backend": ALL, "layout": LAYOUTS, "transfer": BOTH, "shape": [7, 5, 3]},
    {"backend": FORMATS, "layout": LAYOUTS, "transfer": BOTH, "shape": [7, 5, 3],
     "settings": "defaults", "dtype": "float64"},
    # fewer rows than ranks: some ranks hold nothing
    {"backend": ALL, "layout": LAYOUTS, "transfer": BOTH, "shape": [[2, 3], [1]]},
    {"backend": ALL, "layout": LAYOUTS, "transfer": BOTH, "shape": [3, 2],
     "distribution": "balanced", "chunks": ["auto", "block"]},
    {"workload": "datasets", "datasets": 2, "backend": ALL, "layout": LAYOUTS, "transfer": BOTH,
     "shape": [3, 2]},
    # decompositions and distributions, one to four axes
    {"backend": TOGETHER, "transfer": BOTH, "decomposition": ["pencil", "block"],
     "distribution": ["block", "balanced"], "shape": [10, 9]},
    {"backend": ZARR, "decomposition": ["pencil", "block"], "shape": [10, 9]},
    {"backend": ZARR, "distribution": "balanced", "chunks": [1], "shape": [5]},
    {"backend": FORMATS, "decomposition": "block", "shape": [3, 4, 2, 5], "dtype": "uint16"},
    {"backend": "npy", "decomposition": ["pencil", "block"], "shape": [10, 9],
     "distribution": ["block", "balanced"]},
    # time steps and several arrays
    {"backend": [*TOGETHER, *ZARR, "npy"], "layout": ["shared", "own"], "transfer": BOTH,
     "shape_per_rank": [2, 3], "steps": 3, "arrays": 2},
    # reading other boxes than were written
    {"backend": [*TOGETHER, *ZARR, "npy"], "transfer": BOTH, "shape": [9, 10],
     "read_decomposition": "block", "decomposition": "slab"},
    {"backend": [*TOGETHER, *ZARR, "npy"], "shape": [9, 8], "read_ranks": 1, "steps": 2},
    {"backend": TOGETHER, "transfer": "collective", "shape": [9, 8], "read_ranks": 1},
    {"backend": [*TOGETHER, *ZARR, "npy"], "shape": [9, 7], "read_start": [2, 1],
     "read_shape": [5, 4]},
    # codecs, formats of Zarr
    {"backend": ["hdf5", "netcdf4"], "transfer": "collective", "layout": ["shared", "own"],
     "codec": "gzip", "source": "smooth", "shape": [16, 8]},
    {"backend": ["hdf5", "netcdf4"], "layout": "file_per_process", "codec": "gzip", "level": 1,
     "source": "integers", "shape": [16, 8]},
    {"backend": ["zarr"], "codec": ["gzip", "zstd", "blosc", "none"], "zarr": {"format": [2, 3]},
     "source": "smooth", "shape": [16, 8]},
    {"backend": ["zarr"], "layout": "own", "shape_per_rank": [8, 8], "chunks": [2, 4],
     "zarr": {"shards": [4, 8]}},
    # durability
    {"backend": [*FORMATS, "npy"], "layout": ["shared", "file_per_process"],
     "durability": ["flush", "sync"], "shape": [6, 4]},
]  # fmt: skip

PHASES = [
    "create",
    "define",
    "write",
    "close",
    "open",
    "open_array",
    "read",
    "close_read",
    "remove",
]


@pytest.fixture(scope="module", params=sampled([1, 2, 3, 4], 1, 3))
def matrix(request, tmp_path_factory):
    """One run of all cases."""
    directory = tmp_path_factory.mktemp("matrix")
    common = {"workload": "hyperslab"}
    done = run_experiment(directory, request.param, cases=CASES, common=common, timeout=LONGEST)
    assert list((directory / "scratch").iterdir()) == []
    return done


def test_everything_is_valid(matrix):
    assert matrix.status == 0, matrix.said
    assert "\nVALID: " in matrix.stdout
    assert matrix.record["valid"] is True
    assert matrix.record["reasons"] == []
    assert [n for n, entry in matrix.record["cases"].items() if "failure" in entry] == []
    assert {row["valid"] for row in matrix.rows} == {"true"}


def test_only_what_no_library_can_do_is_left_out(matrix):
    reasons = {left["reason"] for left in matrix.record["left_out"]}
    expected = {
        *(f"backend {b} cannot do transfer collective (it can: independent)" for b in APART),
        "layout file_per_process shares no file, so transfer must be independent",
        "a .npy file has no chunks; leave chunks out, or name chunks: contiguous",
    }
    if matrix.record["ranks"] > 1:
        automatic = {r for r in reasons if r.startswith("Zarr's automatic chunks would be shared")}
        assert len(automatic) == 1
        reasons -= automatic
    assert reasons == expected


def test_every_backend_layout_and_transfer_ran(matrix):
    ran = {(row["backend"], row["layout"], row["transfer"]) for row in matrix.rows}
    together = {(b, lay, t) for b in TOGETHER for lay in ("shared", "own") for t in BOTH}
    alone = {(b, "file_per_process", "independent") for b in ALL}
    apart = {(b, lay, "independent") for b in APART for lay in ("shared", "own")}
    assert ran == together | alone | apart


def test_every_byte_is_written_and_read(matrix):
    for name, entry in matrix.record["cases"].items():
        p = entry["parameters"]
        phases = matrix.phases(name)
        assert [int(row["bytes"]) for row in phases["write"]] == [written_bytes(p, matrix)], name
        assert [int(row["bytes"]) for row in phases["read"]] == [read_bytes(p, matrix)], name


def written_bytes(p, run):
    ranks = run.record["ranks"]
    size = np.dtype(p["dtype"]).itemsize
    if p["workload"] == "datasets":
        return size * p["datasets"] * math.prod(p["shape"])
    shape = p["shape"] or [ranks * p["shape_per_rank"][0], *p["shape_per_rank"][1:]]
    return size * p["arrays"] * (p["steps"] or 1) * math.prod(shape)


def read_bytes(p, run):
    if p.get("read_shape") is None:
        return written_bytes(p, run)
    return np.dtype(p["dtype"]).itemsize * math.prod(p["read_shape"])


def test_phases_come_in_their_order(matrix):
    durable = {"close": [], "flush": ["flush"], "sync": ["flush"]}
    for name, entry in matrix.record["cases"].items():
        durability = entry["parameters"]["durability"]
        after = ["sync"] if durability == "sync" else []
        expected = [*PHASES[:3], *durable[durability], "close", *after, *PHASES[4:]]
        assert list(matrix.phases(name)) == expected


def test_every_rank_has_its_row(matrix):
    ranks = matrix.record["ranks"]
    with h5py.File(matrix.out / "ranks.h5") as file:
        assert len(file["host"]) == ranks
        for name in matrix.record["cases"]:
            phases = matrix.phases(name)
            group = file[name]
            assert list(group.attrs["phases"]) == list(phases)
            assert group["own"].shape == group["synced"].shape == (1, len(phases), ranks)
            assert group["peak_memory"].shape == (1, ranks)
            assert np.all(group["own"][()] > 0)
            assert np.all(group["synced"][()] >= group["own"][()])
            for i, rows in enumerate(phases.values()):
                assert group["bytes"][0, i].sum() == int(rows[0]["bytes"])
                assert group["own"][0, i].max() == float(rows[0]["own_max"])
                assert group["own"][0, i].argmax() == int(rows[0]["slowest_rank"])


def test_ranks_that_read_nothing_move_nothing(matrix):
    with h5py.File(matrix.out / "ranks.h5") as file:
        for name, entry in matrix.record["cases"].items():
            if entry["parameters"].get("read_ranks") == 1:
                group = file[name]
                read = group["bytes"][0, list(group.attrs["phases"]).index("read")]
                assert read[0] > 0
                assert not read[1:].any()


def test_disk_usage_is_what_the_layout_makes(matrix):
    ranks = matrix.record["ranks"]
    files = {"shared": 1, "own": 1, "file_per_process": ranks}
    for name, entry in matrix.record["cases"].items():
        p = entry["parameters"]
        (closed,) = matrix.phases(name)["close"]
        if p["backend"] in ZARR:
            assert int(closed["disk_files"]) >= 2
        elif p["backend"] == "npy":
            assert int(closed["disk_files"]) == int(closed["arrays"])
            for synced in matrix.phases(name).get("sync", []):  # the directories above them too
                assert int(synced["operations"]) >= int(closed["arrays"]) + 2
        else:
            assert int(closed["disk_files"]) == files[p["layout"]]
        written = written_bytes(p, matrix)
        compressed = p["codec"] not in ("auto", "none") or p["settings"] == "defaults"
        if not compressed:
            assert entry["disk"]["apparent"] >= written


def test_the_library_says_which_transfer_it_really_used(matrix):
    for name, entry in matrix.record["cases"].items():
        p = entry["parameters"]
        if p["backend"] != "hdf5" or p["layout"] == "file_per_process":
            continue
        told = entry["transfer_facts"]["hdf5_io_mode"]
        expected = "collective" if p["transfer"] == "collective" else "independent"
        assert expected in told or "mixed" in told, name


def test_the_table_tells_how_defaults_are_stored(matrix):
    lines = [line.strip() for line in matrix.stdout.splitlines()]
    names = ("zarr defaults:", "zarr matched:", "netcdf4 defaults:", "netcdf4 matched:")
    kinds = {name: [line for line in lines if line.startswith(name)] for name in names}
    assert kinds["zarr defaults:"]
    assert all("codec zstd" in line for line in kinds["zarr defaults:"])
    assert kinds["netcdf4 defaults:"]
    assert all("fill always" in line for line in kinds["netcdf4 defaults:"])
    assert any("codec none" in line for line in kinds["zarr matched:"])
    assert kinds["netcdf4 matched:"]
    assert all("fill never" in line for line in kinds["netcdf4 matched:"])
