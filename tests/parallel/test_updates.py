"""Parts of arrays overwritten and rows appended: every way of storing, and what the files hold."""

from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from faults import run_faulty
from launch import pffbench_here, run_experiment, write_experiment
from pffbench.data import make_source, seed_of_repetition

pytestmark = pytest.mark.parallel

SHAPE = (7, 10, 3)
COMMON = {"workload": "updates", "shape": list(SHAPE), "rows": 2, "chunks": [2, 1, 3]}
CHANGES = ["second_half", "every_second_row", "every_second_element", "random_rows"]
#: Those of which a rank changes many pieces.
SCATTERED = ["every_second_element", "random_rows"]
TOGETHER = {"transfer": ["independent", "collective"]}

CASES = [
    # every change, in every way of storing
    {"backend": "hdf5", "change": CHANGES},
    {"backend": "netcdf4", "change": CHANGES, "transfer": "collective"},
    {"backend": "zarr", "change": CHANGES},
    {"backend": "mpiio", "change": SCATTERED, **TOGETHER},
    {"backend": "hdf5", "change": SCATTERED, "transfer": "collective"},
    {"backend": ["tensorstore", "posix"], "change": SCATTERED},
    {"backend": "hdf5", "change": "all"},
    {"backend": "zarr", "change": "first_half"},
    # rows appended, in all layouts
    {"backend": "hdf5", "change": "append", "steps": 3, **TOGETHER,
     "files": "one", "arrays": ["shared", "per_rank"], "read": "every_second_element"},
    {"backend": "mpiio", "change": "append", "steps": 3, "transfer": "collective",
     "files": "one", "arrays": ["shared", "per_rank"], "read": "every_second_element"},
    {"backend": "netcdf4", "change": "append", "steps": 3, "transfer": "collective",
     "files": "one", "arrays": ["shared", "per_rank"], "read": "all"},
    {"backend": "zarr", "change": "append", "steps": 3,
     "files": ["one", "per_rank"], "arrays": ["shared", "per_rank"]},
    {"backend": ["tensorstore", "posix"], "change": "append", "steps": 3},
    {"backend": ["hdf5", "netcdf4"], "change": "append", "files": "per_rank",
     "settings": "defaults", "chunks": "auto"},
    # compressed chunks that are changed in part, from a device
    {"backend": ["hdf5", "netcdf4"], "change": ["every_second_row", "append"], "codec": "gzip",
     "transfer": "collective", "cache": "dropped", "durability": "sync"},
    {"backend": "zarr", "change": ["every_second_row", "append"], "codec": "gzip",
     "cache": "dropped", "durability": "sync"},
    # parts of arrays of their own, which the others cannot see
    {"backend": "hdf5", "change": "random_rows", "files": "one", "arrays": "per_rank",
     **TOGETHER, "read": "random_rows"},
    {"backend": ["posix", "mpiio"], "change": "every_second_element", "read": "first_half"},
    {"backend": "hdf5", "hdf5": {"api": "high_level"}, "chunks": "contiguous",
     "change": "every_second_element", "read": "every_second_row"},
]  # fmt: skip
#: What combines values that these cases have.
MORE = [
    {"backend": ["hdf5", "mpiio"], "change": CHANGES, **TOGETHER},
    {"backend": ["tensorstore", "posix"], "change": CHANGES},
    {"backend": ["hdf5", "zarr"], "change": ["all", "first_half"]},
    {"backend": ["hdf5", "mpiio"], "change": "append", "steps": 3, **TOGETHER,
     "files": "one", "arrays": ["shared", "per_rank"], "read": ["all", "every_second_element"]},
    {"backend": "netcdf4", "change": "append", "steps": 3, "transfer": "collective",
     "files": "one", "arrays": ["shared", "per_rank"], "read": "every_second_element"},
    {"backend": ["tensorstore", "posix"], "change": "append", "steps": 3,
     "files": ["one", "per_rank"], "arrays": ["shared", "per_rank"]},
    {"backend": "zarr", "change": ["every_second_row", "append"], "codec": "gzip",
     "cache": "dropped", "durability": "sync", "zarr": {"format": 2}},
    {"backend": ["hdf5", "mpiio"], "change": SCATTERED,
     "files": "one", "arrays": "per_rank", **TOGETHER, "read": "random_rows"},
]  # fmt: skip


#: 2 divides 7 rows unevenly, 3 divides nothing evenly, 1 is a serial program.
@pytest.fixture(
    scope="module",
    params=[
        pytest.param((2, CASES), id="2"),
        *(
            pytest.param((n, CASES + MORE), id=f"{n}-all", marks=pytest.mark.full)
            for n in (1, 2, 3, 4)
        ),
    ],
)
def done(request, tmp_path_factory):
    """One run of all cases; of four ranks the last one has less."""
    directory = tmp_path_factory.mktemp("updates")
    ranks, cases = request.param
    found = run_experiment(
        directory, ranks, hang_timeout="60 s", cases=cases, common=COMMON,
        roofline=False, repetitions=1, warmup=0, counters=True, timeout=240,
    )  # fmt: skip
    assert list((directory / "scratch").iterdir()) == []
    return found


def test_everything_is_valid(done):
    assert done.status == 0, done.said
    assert done.record["valid"] is True, done.record["reasons"]
    assert done.record["left_out"] == []


def test_the_bytes_are_those_of_the_selections(done):
    rows, row = SHAPE[0], 10 * 3 * 4
    wanted = {"all": rows * row, "first_half": 3 * row, "second_half": 4 * row,
              "every_second_row": 4 * row, "random_rows": 2 * row,
              "every_second_element": rows * 10 * 2 * 4}  # fmt: skip
    for name, entry in done.record["cases"].items():
        p, phases = entry["parameters"], done.phases(name)
        moved = wanted | {"append": p["rows"] * p["steps"] * row}
        (update,) = phases["update"] if p["change"] != "append" else [None]
        if update is not None:
            assert int(update["bytes"]) == moved[p["change"]], name
        else:
            assert sum(int(r["bytes"]) for r in phases["update"]) == moved["append"], name
        (read,) = phases["read"]
        assert read["bytes"] == read["verified_bytes"], name
        if p["change"] != "append":
            assert int(read["bytes"]) == wanted[p["read"]], name


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The files that three ranks left, by backend and change, and the data that belong in them."""
    directory = tmp_path_factory.mktemp("left")
    cases = [
        {"backend": ["hdf5", "netcdf4"], "transfer": "collective"},
        {"backend": ["zarr", "posix"]},
    ]
    done = run_experiment(
        directory, 3, "--stage", "write", cases=[
            {**case, "change": change, **more}
            for case in cases
            for change, more in (("every_second_element", {}), ("append", {"steps": 2}))
        ], common={**COMMON, "cache": "separate"}, roofline=False, repetitions=1, warmup=0,
    )  # fmt: skip
    assert done.status == 0, done.said
    (scratch,) = (directory / "scratch").iterdir()
    files = {}
    for name, entry in done.record["cases"].items():
        (place,) = scratch.glob(f"*-{name}")
        (file,) = place.iterdir()
        files[entry["parameters"]["backend"], entry["parameters"]["change"]] = file
    return files


def expected_data(change):
    rows = SHAPE[0] + (4 if change == "append" else 0)
    shape = (rows, *SHAPE[1:])
    before, after = np.empty(shape, "f4"), np.empty(shape, "f4")
    source = make_source("uniform", None, seed=seed_of_repetition(1, 0))
    source.fill(before, 0, (0, 0, 0), shape)
    source.fill(after, 1, (0, 0, 0), shape)
    if change == "append":
        before[SHAPE[0] :] = after[SHAPE[0] :]
    else:
        before[:, :, ::2] = after[:, :, ::2]
    return before


def contents(backend, file: Path, shape):
    if backend == "hdf5":
        with h5py.File(file, "r") as opened:
            return opened["records"][...]
    if backend == "netcdf4":
        with netCDF4.Dataset(file) as opened:
            return np.ma.getdata(opened["records"][...])
    if backend == "zarr":
        return zarr.open_group(file, mode="r")["records"][...]
    return np.fromfile(file, "f4").reshape(shape)


@pytest.mark.parametrize("backend", ["hdf5", "netcdf4", "zarr", "posix"])
@pytest.mark.parametrize("change", ["every_second_element", "append"])
def test_other_programs_find_old_and_new_data(left, backend, change):
    right = expected_data(change)
    assert np.array_equal(contents(backend, left[backend, change], right.shape), right)


def test_the_growing_axis_is_unlimited(left):
    with h5py.File(left["hdf5", "append"], "r") as file:
        assert file["records"].maxshape == (None, *SHAPE[1:])
    with netCDF4.Dataset(left["netcdf4", "append"]) as file:
        assert [d.isunlimited() for d in file["records"].get_dims()] == [True, False, False]


@pytest.mark.parametrize("backend", ["hdf5", "zarr"])
def test_a_change_that_is_not_made_is_noticed(tmp_path, backend):
    case = {"workload": "updates", "backend": backend, "shape": [4, 6], "chunks": [2, 3]}
    fault = {"verb": "write", "kind": "skip", "rank": 1, "after": 1, "backend": backend}
    done = run_faulty(tmp_path, 2, fault=fault, cases=[case], repetitions=1, roofline=False)
    assert done.status == 1, done.said
    assert " instead of " in done.record["reasons"][0]


def test_a_store_that_does_not_open_again_ends_its_case(tmp_path):
    cases = [{"workload": "updates", "backend": "zarr", "shape": [n, 6], "chunks": [1, 3]}
             for n in (2, 3)]  # fmt: skip
    fault = {"verb": "reopen", "kind": "fail", "rank": 1, "after": 0, "backend": "zarr"}
    done = run_faulty(tmp_path, 2, fault=fault, cases=cases, repetitions=1, roofline=False)
    assert [e["failure"]["phase"] for e in done.record["cases"].values()] == ["reopen"] * 2


@pytest.mark.parametrize(("case", "words"), [
    ({"backend": "hdf5", "shape": [9]}, "rows has 2 axes or more"),
    ({"backend": "hdf5", "shape": [1, 4]}, "one row has no first half"),
    ({"backend": "hdf5", "change": "random_rows", "rows": 8}, "random_rows takes 8 rows of 7"),
    ({"backend": "hdf5", "steps": 2}, "steps are those of change: append"),
    ({"backend": "hdf5", "shape_per_rank": [7, 10]}, "either shape"),
    ({"backend": "hdf5", "source": "file", "file": "rows.npy"}, "must differ from what was there"),
    ({"backend": "hdf5", "change": "append", "chunks": "contiguous"}, "appends to chunked data"),
    ({"backend": "netcdf4", "change": "append"}, "in collective transfer only"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_made(tmp_path, case, words):
    np.save(tmp_path / "rows.npy", np.ones((7, 10)))
    path = write_experiment(tmp_path, cases=[{"workload": "updates", "shape": [7, 10], **case}])
    done = pffbench_here("plan", path, cwd=tmp_path)
    assert done.status == 2
    assert words in done.stderr, done.said
