"""Arrays that differ in one file: what independent readers find in it, and what is refused."""

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from capable import ALL, KINDS
from launch import pffbench_here, run_experiment, sampled, write_experiment
from pffbench.data import make_source, seed_of_repetition
from pffbench.geometry.maps import DecompositionMap
from pffbench.workloads.map_files import write_npz
from sharing import word_of

pytestmark = pytest.mark.parallel

COMMON = {
    "workload": "hyperslab",
    "files": "one",
    "arrays": "shared",
    "dtype": "float64",
    "cache": "separate",
}
BOTH = ["independent", "collective"]
S3D = [
    {"name": "yspecies", "shape_per_rank": [3, 4, 5, 11], "decomposition": "pencil"},
    {"name": "u", "shape_per_rank": [3, 4, 5, 3], "decomposition": "pencil"},
    {"name": "pressure", "shape_per_rank": [3, 4, 5], "decomposition": "block"},
    {"name": "temp", "shape": [7, 8, 5], "decomposition": "pencil"},
]
HACC = [
    *({"name": name, "shape_per_rank": [33], "dtype": "float32"}
      for name in ("xx", "yy", "zz", "vx", "vy", "vz", "phi")),
    {"name": "pid", "shape_per_rank": [33], "dtype": "int64"},
    {"name": "mask", "shape_per_rank": [33], "dtype": "uint16", "count": 2},
]  # fmt: skip


def write_map(path, shape):
    """Deal the elements of an array out to five processes, in stretches of one to three."""
    edges = np.random.default_rng(len(shape)).permutation(np.arange(0, np.prod(shape), 3))
    starts = [edges[n::5] for n in range(5)]
    offsets = np.concatenate(starts)
    lengths = np.minimum(3, np.prod(shape) - offsets)
    write_npz(path, DecompositionMap(shape, np.array([len(s) for s in starts]), offsets, lengths))
    return {"file": path.name}


def read_arrays(path):
    """Read all arrays of a store as a program does that knows nothing of pffbench."""
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return {name: array[...] for name, array in file.items()}
    if path.suffix == ".nc":
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return {name: np.asarray(array[...]) for name, array in file.variables.items()}
    if path.suffix == ".zarr":
        return {name: array[...] for name, array in zarr.open_group(path, mode="r").arrays()}
    return {file.stem: np.load(file) for file in path.glob("*.npy")}


def expected(kinds, found):
    """Return the data of the arrays of a list, whose shapes are those found, by name."""
    data, number = {}, 0
    for kind in kinds:
        dtype, count = kind.get("dtype", "float64"), kind.get("count", 1)
        source = make_source("uniform", dtype, seed_of_repetition(1, 0))
        for copy in range(count):
            name = f"{kind['name']}_{copy:03d}" if count > 1 else kind["name"]
            data[name] = np.empty(found[name].shape, dtype)
            source.fill(data[name], number, (0,) * found[name].ndim, found[name].shape)
            number += 1
    return data


@pytest.mark.parametrize("ranks", sampled([3, 4], 3))
def test_independent_readers_find_every_byte_of_unlike_arrays(tmp_path, ranks):
    """The arrays of S3D and of HACC, and those of a file of E3SM with three maps."""
    shapes = {"d1": (61,), "d2": (7, 30), "d3": (3, 5, 11)}
    e3sm = [
        {"name": name, "decomposition": write_map(tmp_path / f"{name}.npz", shape), "count": n + 1}
        | ({"dtype": "float32"} if n else {})
        for n, (name, shape) in enumerate(shapes.items())
    ]
    every = {"backend": ["hdf5", "netcdf4"]}
    lists = {"s3d": S3D, "hacc": HACC, "e3sm": e3sm}
    cases = [every | {"datasets": kinds, "transfer": BOTH} for kinds in (S3D, e3sm)]
    cases += [every | {"datasets": HACC, "transfer": "collective"}]
    cases += [{"backend": ["zarr", "npy"], "datasets": kinds} for kinds in (S3D, HACC)]
    done = run_experiment(tmp_path, ranks, "--stage", "write", common=COMMON, cases=cases,
                          roofline=False, repetitions=1, warmup=0, unsupported="skip",
                          timeout=240)  # fmt: skip
    assert done.status == 0, done.said
    seen = set()
    for case, entry in done.record["cases"].items():
        (path,) = (tmp_path / "scratch").glob(f"*/*{case}/shared.*")
        found = read_arrays(path)
        first = entry["parameters"]["datasets"][0]["name"]
        kinds = next(one for one in lists.values() if one[0]["name"] == first)
        wanted = expected(kinds, found)
        assert found.keys() == wanted.keys(), case
        for name, data in wanted.items():
            assert found[name].dtype == data.dtype, (case, name)
            assert found[name].tobytes() == data.tobytes(), (case, name)
        seen.add((path.suffix, kinds[0]["name"]))
    assert len(seen) >= 8, seen


@pytest.mark.parametrize("ranks", sampled([3, 4], 3))
def test_what_was_written_is_verified_counted_and_as_planned(tmp_path, ranks):
    """A list, and 13 rows in chunks of 2, of which no two ranks need have equally many."""
    of_list = COMMON | {"cache": "warm", "datasets": HACC}
    unequal = {"workload": "hyperslab", "backend": ["zarr", "hdf5"], "datasets": 2,
               "shape": [13, 10], "files": ["one", "per_rank"], "arrays": ["shared", "per_rank"],
               "chunks": [[2, 10]], "durability": "close"}  # fmt: skip
    cases = [of_list | {"backend": ["hdf5", "zarr"]},
             of_list | {"backend": "netcdf4", "arrays": "per_rank", "transfer": "collective"},
             of_list | {"backend": ["zarr", "netcdf4"], "files": "per_rank"},
             unequal]  # fmt: skip
    done = run_experiment(tmp_path, ranks, cases=cases)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    planned = set()
    for case, entry in done.record["cases"].items():
        p = entry["parameters"]
        if p["datasets"] == 2:
            assert entry["disk"]["files"] == entry["cost"]["files"], p
            planned.add((p["backend"], word_of(p)))
            continue
        for row in (one for rows in done.phases(case).values() for one in rows):
            assert int(row["array_count"]) == (10 if word_of(p) == "one-shared" else 10 * ranks)
            if row["phase"] == "write":
                assert int(row["bytes"]) == ranks * 33 * (7 * 4 + 8 + 2 * 2)
    # Chunks that two ranks share are refused.
    assert planned >= {("zarr", "one-per_rank"), ("zarr", "per_rank"), ("hdf5", "one-shared")}
    assert len(done.record["cases"]) == len(planned) + 5


#: Unlike arrays, of which 3 or 4 ranks have unequal parts; the last ranks have none of the last.
UNLIKE = [
    {"name": "wide", "shape": [7, 30]},
    {"name": "cut", "shape_per_rank": [2, 4, 5], "decomposition": "pencil", "dtype": "float32"},
    {"name": "few", "shape": [2], "dtype": "uint16", "count": 2},
]


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_a_list_in_files_of_groups_and_of_ranks_is_valid_in_as_many_files_as_planned(
    tmp_path, ranks
):
    every = COMMON | {"backend": ALL, "datasets": UNLIKE}
    groups = [{"count": n} for n in sorted({min(2, ranks), ranks})]
    cases = [
        every | {"files": groups, "arrays": ["shared", "per_rank"],
                 "transfer": BOTH, "cache": "warm"},
        every | {"files": "per_rank", "cache": "warm"},
    ]  # fmt: skip
    done = run_experiment(tmp_path, ranks, cases=cases, timeout=600)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    seen = set()
    for case, entry in done.record["cases"].items():
        p, kind = entry["parameters"], KINDS[entry["parameters"]["backend"]]
        files = ranks if word_of(p) == "per_rank" else p["files"]["count"]
        # Where each array is a file the plan counts the directory of the store too.
        stores = files if kind.file_per == "array" else 0
        assert entry["disk"]["files"] + stores == entry["cost"]["files"], (case, p)
        assert done.phases(case)["write"][0]["bytes"] == str(210 * 8 + 40 * ranks * 4 + 2 * 2 * 2)
        seen.add((p["backend"], word_of(p)))
    assert {name for name, word in seen if word == "per_rank"} == set(ALL)
    assert {name for name, word in seen if word.startswith("count_")} == set(ALL)


@pytest.mark.full
def test_independent_readers_find_the_arrays_of_a_list_in_files_of_groups(tmp_path):
    """The files of all groups, in their order, hold what one file holds."""
    kinds = [kind | {"decomposition": "slab"} for kind in (*S3D, *UNLIKE)]
    cases = [COMMON | {"backend": ["hdf5", "netcdf4", "zarr"], "datasets": kinds, **files}
             for files in ({"files": {"count": 3}},
                            {"files": "per_rank"})]  # fmt: skip
    done = run_experiment(tmp_path, 4, "--stage", "write", cases=cases)
    assert done.status == 0, done.said
    assert len(done.record["cases"]) == 6
    for case in done.record["cases"]:
        (folder,) = (tmp_path / "scratch").glob(f"*/*{case}")
        files = [read_arrays(path) for path in sorted(folder.glob("[gr]*-00000*.*"))]
        assert len(files) == (3 if "count_3" in case else 4)
        parts = {}
        for name, array in (one for file in files for one in file.items()):
            parts.setdefault(name.partition("_rank_")[0], []).append(array)
        found = {name: np.concatenate(arrays) for name, arrays in parts.items()}
        wanted = expected(kinds, found)
        assert found.keys() == wanted.keys(), case
        for name, data in wanted.items():
            assert found[name].dtype == data.dtype, (case, name)
            assert found[name].tobytes() == data.tobytes(), (case, name)


@pytest.mark.parametrize(("keys", "told"), [
    ({"datasets": []}, "empty list"),
    ({"datasets": [{"name": "a", "shape": [4]}, {"name": "a", "shape": [5]}]},
     "two arrays have the name a;"),
    ({"datasets": [{"name": "a", "shape": [4], "count": 2}, {"name": "a_001", "shape": [5]}]},
     "two arrays have the name a_001;"),
    ({"datasets": [{"name": "a/b", "shape": [4]}]}, "name 'a/b' is not possible"),
    ({"datasets": [{"name": "a"}]}, "datasets[0] (a): give either shape"),
    ({"datasets": [{"name": "a", "shape": [4], "shape_per_rank": [4]}]}, "[0] (a): give either"),
    ({"datasets": [{"name": "a", "shape": [4], "dtype": "float31"}]},
     "cases[0].datasets[0].dtype: 'float31' is not allowed (allowed: float32, "),
    ({"datasets": [{"name": "a", "shape": [4], "steps": 3}]},
     "cases[0].datasets[0]: Object contains"),
    ({"datasets": [{"name": "a", "shape": [4]}], "shape": [4]}, "datasets: shape cannot be"),
    ({"datasets": [{"name": "a", "shape": [4]}], "source": "file", "file": "x.npy"},
     "datasets: source: file cannot be"),
])  # fmt: skip
def test_a_list_that_makes_no_sense_is_one_sentence(tmp_path, keys, told):
    np.save(tmp_path / "x.npy", np.zeros(4))
    path = write_experiment(tmp_path, common=COMMON | {"cache": "warm"} | keys,
                            cases=[{"backend": "hdf5"}])  # fmt: skip
    done = pffbench_here("plan", path, cwd=tmp_path)
    assert done.status == 2, done.said
    assert told in " ".join(done.said.split()), done.said
    assert len(done.said.strip().splitlines()) < 5, done.said
