"""Lists of arrays, decomposition maps and files of groups: every workload and format has them.

What is left out has a reason that names the format.
"""

from itertools import pairwise

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from capable import FORMATS, KINDS
from launch import run_experiment
from pffbench.backends.traits import Changes
from pffbench.data import make_source, seed_of_repetition
from pffbench.geometry.maps import DecompositionMap
from pffbench.workloads.map_files import write_npz
from sharing import word_of

pytestmark = pytest.mark.parallel

BOTH = ["independent", "collective"]
#: Processes of the maps; process 1 has nothing.
PROCESSES = 7
#: For each workload arrays that differ, keys of one kind of array that a map cuts, its shape, and
#: further keys. Some ranks have nothing of some arrays.
WORKLOADS = {
    "datasets": (
        [{"name": "a", "shape": [7, 3], "count": 4}, {"name": "b", "shape": [5], "dtype": "int16"}],
        {"datasets": 2}, (4, 11), {},
    ),
    "slices": (
        [{"name": "a", "shape": [5, 11, 6]},
         {"name": "b", "shape_per_rank": [3, 2, 4], "dtype": "uint16", "count": 2}],
        {}, (5, 11, 6), {"axis": [0, 1], "count": 2},
    ),
    "updates": (
        [{"name": "a", "shape": [4, 11]},
         {"name": "b", "shape_per_rank": [6, 3, 2], "dtype": "float64", "count": 2}],
        {"shape": [4, 4, 11]}, (4, 11),
        {"change": ["append", "every_second_element", "every_second_row"], "rows": 2},
    ),
}  # fmt: skip


def write_map(path, shape):
    """Deal stretches of one to three elements of an array to processes."""
    starts = np.arange(0, np.prod(shape), 3)
    owners = np.random.default_rng(1).choice([0, 2, 3, 4, 5, 6], len(starts))
    mine = [starts[owners == process] for process in range(PROCESSES)]
    offsets = np.concatenate(mine)
    lengths = np.minimum(3, np.prod(shape) - offsets)
    write_npz(path, DecompositionMap(shape, np.array([len(m) for m in mine]), offsets, lengths))
    return {"file": path.name}


def layouts(ranks):
    """Return the keys of every way to share files among ranks."""
    files = ["one", {"count": min(2, ranks)}]
    return [{"files": files, "arrays": ["shared", "per_rank"], "transfer": BOTH},
            {"files": "per_rank"}]  # fmt: skip


def check(done, workload, formats=FORMATS):
    """Compare what ran with what the formats can, and look at the reasons of what did not."""
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    ran = {(p["backend"], word_of(p)) for p in
           (entry["parameters"] for entry in done.record["cases"].values())}  # fmt: skip
    for name in formats:
        if workload == "updates" and not issubclass(KINDS[name], Changes):
            continue
        for way in ("per_rank", "one-per_rank"):
            assert (name, way) in ran, (workload, name, way)
    for left in done.record["left_out"]:
        assert any(words in left["reason"] for words in (
            *KINDS, "Zarr", "netCDF", "HDF5", "PnetCDF",
        )), left["reason"]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_arrays_that_differ_are_valid_in_every_file(tmp_path, workload, ranks):
    listed, _, _, more = WORKLOADS[workload]
    common = {"workload": workload, "backend": FORMATS, "datasets": listed, **more}
    cases = [common | layout for layout in layouts(ranks)]
    done = run_experiment(tmp_path, ranks, cases=cases, repetitions=1, warmup=0, timeout=500)
    check(done, workload)


@pytest.mark.full
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_parts_of_a_map_are_valid_in_every_file(tmp_path, workload, ranks):
    _, arrays, shape, more = WORKLOADS[workload]
    of_map = {"decomposition": write_map(tmp_path / "map.npz", shape)}
    common = {"workload": workload, "backend": FORMATS, **arrays, **more, **of_map}
    writers = {"rearranger": ["box", "chunk_owner"], "writers": {"count": min(2, ranks)},
               "chunks": [[2, 3, 4][: len(shape)]]}  # fmt: skip
    grouped = {**writers, "files": {"count": min(2, ranks)}, "chunks": [[3]]}
    grouped["writers"] = {"count": 1}
    through = [writers, grouped] if ranks > 1 else [writers]
    cases = [common | one for one in (*layouts(ranks), *through)]
    done = run_experiment(tmp_path, ranks, cases=cases, repetitions=1, warmup=0, timeout=500)
    stretches = [name for name in FORMATS if KINDS[name].capabilities.stretches]
    check(done, workload, stretches if workload == "slices" else FORMATS)


def stored(path):
    """Return the arrays of a store in the order of their names, by a program that is not ours."""
    if path.suffix == ".zarr":
        group = zarr.open_group(path, mode="r")
        return [group[name][...] for name in sorted(group.array_keys())]
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return [file[name][...] for name in sorted(file)]
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return [np.asarray(file[name][...]) for name in sorted(file.variables)]


def in_order_of_ranks(path, values, ranks):
    """Return the elements of an array that each rank has by a map, one rank after the other."""
    with np.load(path) as found:
        each = np.split(np.stack([found["offsets"], found["lengths"]], 1), found["counts"].cumsum())
    bounds = [rank * PROCESSES // ranks for rank in range(ranks + 1)]
    mine = [np.concatenate(each[a:b]) for a, b in pairwise(bounds)]
    return np.concatenate([values[a : a + n] for runs in mine for a, n in sorted(map(tuple, runs))])


@pytest.mark.full
@pytest.mark.parametrize("source", ["uniform", "file"])
def test_files_of_groups_and_ranks_have_the_elements_of_a_map_one_after_the_other(tmp_path, source):
    of_map = write_map(tmp_path / "map.npz", (5, 11))
    common = {"workload": "hyperslab", "decomposition": of_map, "cache": "separate",
              "dtype": "float64", "backend": ["hdf5", "netcdf4", "zarr"]}  # fmt: skip
    expected = np.empty(55)
    make_source("uniform", "float64", seed_of_repetition(1, 0)).fill(expected, 0, (0,), (55,))
    if source == "file":
        np.save(tmp_path / "data.npy", expected.reshape(5, 11))
        common |= {"source": "file", "file": "data.npy"}
        expected = in_order_of_ranks(tmp_path / "map.npz", expected, 3)
    cases = [common | {"files": ["per_rank", {"count": 2}], "arrays": "per_rank"},
             common | {"backend": ["hdf5", "netcdf4"], "files": {"count": 2}}]  # fmt: skip
    done = run_experiment(tmp_path, 3, "--stage", "write", cases=cases, roofline=False,
                          repetitions=1, warmup=0)  # fmt: skip
    assert done.status == 0, done.said
    assert len(done.record["cases"]) == 8
    for case, entry in done.record["cases"].items():
        (folder,) = (tmp_path / "scratch").glob(f"*/*{case}")
        files = sorted(path for path in folder.iterdir() if path.suffix in (".h5", ".nc", ".zarr"))
        assert len(files) == (3 if entry["parameters"]["files"] == "per_rank" else 2)
        found = np.concatenate([array for path in files for array in stored(path)])
        np.testing.assert_array_equal(found, expected)


def test_lists_maps_and_groups_are_valid_together(tmp_path):
    """One map of a list, in one file and in the files of groups."""
    of_map = write_map(tmp_path / "map.npz", (4, 11))
    files = {"files": ["one", {"count": 2}], "backend": "hdf5", "dtype": "int32"}
    mixed = [{"name": "a", "shape": [4, 11]}, {"name": "b", "decomposition": of_map}]
    rows = [mixed[0], mixed[1] | {"shape": [3, 4, 11]}]
    cases = [
        files | {"workload": "datasets", "datasets": mixed},
        files | {"workload": "updates", "datasets": rows, "change": "append", "chunks": [2, 2]},
        files | {"workload": "slices", "shape": [3, 7, 4], "axis": 1},
    ]
    done = run_experiment(tmp_path, 3, cases=cases, roofline=False, repetitions=1, warmup=0)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert done.record["left_out"] == []
    assert len(done.record["cases"]) == 6
