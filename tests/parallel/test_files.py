"""The files themselves, read by programs and libraries that know nothing of pffbench or MPI."""

import json
import re
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from launch import PROGRAMS, run, run_experiment, write_experiment
from pffbench.data import make_source

pytestmark = pytest.mark.parallel

RANKS = 3
GLOBAL = (7, 5, 3)
STEPS = (2, 7, 5)  # two steps of an array of 7 by 5
OWN = (6, 8)

_HYPERSLAB = {"workload": "hyperslab", "source": "integers", "dtype": "int32"}
_OWN = {"files": "one", "arrays": "per_rank", "dtype": "float32", "shape_per_rank": list(OWN)}
_ALONE = _OWN | {"files": "per_rank"}
CASES = {
    "h5-shared": {"backend": "hdf5", "shape": list(GLOBAL)},
    "h5-collective": {"backend": "hdf5", "shape": list(GLOBAL), "transfer": "collective"},
    "h5-gzip": {"backend": "hdf5", "shape": list(GLOBAL), "transfer": "collective",
                "codec": "gzip", "level": 6},
    "h5-contiguous": {"backend": "hdf5", "shape": list(GLOBAL), "chunks": "contiguous",
                      "decomposition": "block"},
    "h5-steps": {"backend": "hdf5", "shape": [7, 5], "steps": 2, "transfer": "collective"},
    "h5-uniform": {"backend": "hdf5", "shape": list(GLOBAL), "source": "uniform",
                   "dtype": "float64"},
    "h5-alone": {"backend": "hdf5", **_ALONE, "settings": "defaults"},
    "h5-own": {"backend": "hdf5", **_OWN, "settings": "defaults"},
    "h5-own-matched": {"backend": "hdf5", **_OWN},
    "nc-shared": {"backend": "netcdf4", "shape": list(GLOBAL)},
    "nc-collective": {"backend": "netcdf4", "shape": list(GLOBAL), "transfer": "collective",
                      "codec": "gzip"},
    "nc-steps": {"backend": "netcdf4", "shape": [7, 5], "steps": 2},
    "nc-alone": {"backend": "netcdf4", **_ALONE, "settings": "defaults"},
    "nc-own": {"backend": "netcdf4", **_OWN, "settings": "defaults"},
    "nc-own-matched": {"backend": "netcdf4", **_OWN},
    "nc3-shared": {"backend": "netcdf3", "shape": list(GLOBAL)},
    "nc3-collective": {"backend": "netcdf3", "shape": list(GLOBAL), "transfer": "collective"},
    "nc3-steps": {"backend": "netcdf3", "shape": [7, 5], "steps": 2},
    "zarr2-shared": {"backend": "zarr", "shape": list(GLOBAL), "zarr": {"format": 2}},
    "zarr3-shared": {"backend": "zarr", "shape": list(GLOBAL), "codec": "zstd"},
    "zarr3-sharded": {"backend": "zarr", "shape": [6, 8], "chunks": [1, 4],
                      "zarr": {"shards": [2, 8]}},
    "zarr2-alone": {"backend": "zarr", **_ALONE, "settings": "defaults", "zarr": {"format": 2}},
    "zarr3-alone": {"backend": "zarr", **_ALONE, "settings": "defaults"},
    "zarr3-matched": {"backend": "zarr", **_ALONE},
    "raw-shared": {"backend": "mpiio", "shape": list(GLOBAL), "decomposition": "block",
                   "transfer": "collective"},
    "raw-alone": {"backend": "posix", **_ALONE},
    "npy-shared": {"backend": "npy", "shape": list(GLOBAL), "decomposition": "block"},
    "npy-steps": {"backend": "npy", "shape": [7, 5], "steps": 2},
    "npy-own": {"backend": "npy", **_OWN},
    "npy-alone": {"backend": "npy", **_ALONE},
    "blosc2-own": {"backend": "blosc2", **_OWN, "codec": "blosc", "chunks": [1, 2]},
    "blosc2-alone": {"backend": "blosc2", **_ALONE, "settings": "defaults"},
    "datasets": {"backend": "hdf5", "workload": "datasets", "files": "one", "arrays": "per_rank",
                 "datasets": 4,
                 "shape": [3, 2]},
}  # fmt: skip


#: Only what is at least as large as the alignment is aligned: each rank's part is 128 KiB.
_LARGE = _OWN | {"shape_per_rank": [1, 32768]}
ALIGNED = {
    "h5-aligned": {"backend": "hdf5", **_LARGE, "hdf5": {"alignment": "64 KiB"}},
    "nc-aligned": {"backend": "netcdf4", **_LARGE, "netcdf4": {"alignment": 65536}},
}


def write_cases(place, cases):
    """Write cases on three ranks through the benchmark's own workloads and backends."""
    experiment = write_experiment(
        place, unsupported="refuse", question=" ".join(cases),
        cases=[_HYPERSLAB | case for case in cases.values()],
    )  # fmt: skip
    done = run([PROGRAMS / "write_store.py", "pffbench", place, experiment], ranks=RANKS)
    assert done.status == 0, done.said
    return place


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_cases(tmp_path_factory.mktemp("written"), CASES | ALIGNED)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    """The same arrays written with a handful of naive library calls."""
    place = tmp_path_factory.mktemp("by-hand")
    done = run([PROGRAMS / "write_store.py", "by-hand", place], ranks=RANKS)
    assert done.status == 0, done.said
    return place


def generated(shape, dtype="int32", source="integers", number=0):
    values = np.empty(shape, dtype)
    make_source(source, dtype, seed=1).fill(values, number, (0,) * len(shape), shape)
    return values


def part_of(rank, **how):
    """The rank's rows of the global array that all ranks' own arrays make up."""
    return generated((RANKS * OWN[0], OWN[1]), "float32", **how)[rank * OWN[0] :][: OWN[0]]


def output_of(program, *arguments):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed (Debian: hdf5-tools, netcdf-bin)")
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dumped(path, name, dtype, tmp_path):
    """Read a dataset with h5dump, as raw bytes."""
    output_of("h5dump", "-d", name, "-b", "NATIVE", "-o", tmp_path / "values", path)
    return np.fromfile(tmp_path / "values", dtype)


# The values on disk


@pytest.mark.parametrize("name", ["h5-shared", "h5-collective", "h5-gzip", "h5-contiguous"])
def test_h5dump_reads_the_generators_values(written, name, tmp_path):
    values = dumped(written / name / "shared.h5", "array_000", "i4", tmp_path)
    assert np.array_equal(values.reshape(GLOBAL), generated(GLOBAL))


def test_h5dump_reads_time_steps(written, tmp_path):
    values = dumped(written / "h5-steps" / "shared.h5", "array_000", "i4", tmp_path)
    assert np.array_equal(values.reshape(STEPS), generated(STEPS))


def test_h5dump_reads_random_floats_bit_for_bit(written, tmp_path):
    values = dumped(written / "h5-uniform" / "shared.h5", "array_000", "f8", tmp_path)
    expected = generated(GLOBAL, "float64", "uniform")
    assert values.tobytes() == expected.tobytes()


@pytest.mark.parametrize("rank", range(RANKS))
def test_h5dump_reads_each_ranks_own_part(written, rank, tmp_path):
    name = f"array_000_rank_{rank:06d}"
    alone = dumped(written / "h5-alone" / f"rank-{rank}.h5", name, "f4", tmp_path)
    own = dumped(written / "h5-own" / "shared.h5", name, "f4", tmp_path)
    assert np.array_equal(alone.reshape(OWN), part_of(rank))
    assert np.array_equal(own.reshape(OWN), part_of(rank))


def test_h5ls_lists_every_dataset_with_its_shape(written):
    listed = output_of("h5ls", written / "datasets" / "shared.h5").splitlines()
    assert [re.split(r"\s+", line, maxsplit=1) for line in listed] == [
        [f"dataset_{i:06d}", "Dataset {3, 2}"] for i in range(4)
    ]


@pytest.mark.parametrize(
    ("name", "shape"),
    [("nc-shared", GLOBAL), ("nc-collective", GLOBAL), ("nc-steps", STEPS),
     ("nc3-shared", GLOBAL), ("nc3-collective", GLOBAL), ("nc3-steps", STEPS)],
)  # fmt: skip
def test_ncdump_reads_the_generators_values(written, name, shape):
    text = output_of("ncdump", "-v", "array_000", written / name / "shared.nc")
    values = re.search(r"array_000 =(.*?);", text, re.DOTALL)[1]
    assert np.array_equal(np.array(values.split(","), int).reshape(shape), generated(shape))


def test_xarray_reads_netcdf(written):
    import xarray  # one of six processes needs it

    with xarray.open_dataset(written / "nc-shared" / "shared.nc", engine="netcdf4") as data:
        assert np.array_equal(data["array_000"], generated(GLOBAL))
    with xarray.open_dataset(written / "nc-own" / "shared.nc", engine="netcdf4") as data:
        for rank in range(RANKS):
            assert np.array_equal(data[f"array_000_rank_{rank:06d}"], part_of(rank))


@pytest.mark.parametrize(
    ("name", "shape"),
    [("zarr2-shared", GLOBAL), ("zarr3-shared", GLOBAL), ("zarr3-sharded", (6, 8))],
)
def test_a_plain_zarr_reads_the_generators_values(written, name, shape):
    group = zarr.open_group(written / name / "shared.zarr", mode="r")
    assert list(group.array_keys()) == ["array_000"]
    assert np.array_equal(group["array_000"][...], generated(shape))


@pytest.mark.parametrize("name", ["zarr2-alone", "zarr3-alone", "zarr3-matched"])
def test_a_plain_zarr_reads_each_ranks_own_store(written, name):
    for rank in range(RANKS):
        group = zarr.open_group(written / name / f"rank-{rank}.zarr", mode="r")
        assert np.array_equal(group[f"array_000_rank_{rank:06d}"][...], part_of(rank))


def test_an_uncompressed_chunk_is_the_bytes_of_its_block(written):
    chunk = written / "zarr3-matched" / "rank-1.zarr" / "array_000_rank_000001" / "c" / "0" / "0"
    assert chunk.read_bytes() == part_of(1).tobytes()


@pytest.mark.parametrize(("name", "shape"), [("npy-shared", GLOBAL), ("npy-steps", STEPS)])
def test_numpy_alone_reads_what_all_ranks_wrote(written, name, shape):
    (file,) = (written / name / "shared.npydir").iterdir()
    assert file.name == "array_000.npy"
    found = np.load(file, allow_pickle=False)
    assert found.dtype == np.dtype("i4")
    assert np.array_equal(found, generated(shape))


@pytest.mark.parametrize("rank", range(RANKS))
def test_numpy_alone_reads_each_ranks_own_files(written, rank):
    for place in ("npy-own/shared.npydir", f"npy-alone/rank-{rank}.npydir"):
        found = np.load(written / place / f"array_000_rank_{rank:06d}.npy", allow_pickle=False)
        assert np.array_equal(found, part_of(rank))


@pytest.mark.parametrize("rank", range(RANKS))
def test_blosc2_alone_reads_each_ranks_own_files(written, rank):
    blosc2 = pytest.importorskip("blosc2")
    for place in ("blosc2-own/shared.b2dir", f"blosc2-alone/rank-{rank}.b2dir"):
        found = blosc2.open(written / place / f"array_000_rank_{rank:06d}.b2nd", mode="r")
        assert np.array_equal(found[...], part_of(rank))
        if "own" in place:
            assert found.chunks == (1, 2)
            assert found.schunk.cparams.codec is blosc2.Codec.LZ4


def test_a_npy_file_is_what_numpy_itself_saves(written, tmp_path):
    np.save(tmp_path / "saved.npy", part_of(1))
    made = written / "npy-alone" / "rank-1.npydir" / "array_000_rank_000001.npy"
    assert made.read_bytes() == (tmp_path / "saved.npy").read_bytes()


def test_raw_files_are_the_bytes_of_the_arrays(written):
    shared = np.fromfile(written / "raw-shared" / "shared.raw", "i4")
    assert np.array_equal(shared.reshape(GLOBAL), generated(GLOBAL))
    for rank in range(RANKS):
        alone = np.fromfile(written / "raw-alone" / f"rank-{rank}.raw", "f4")
        assert np.array_equal(alone.reshape(OWN), part_of(rank))


# How they are stored


def properties(path, name):
    with h5py.File(path, "r") as file:
        created = file[name].id.get_create_plist()
        filters = [created.get_filter(i)[:3:2] for i in range(created.get_nfilters())]
        return {
            "layout": created.get_layout(),
            "chunks": file[name].chunks,
            "filters": filters,
            "fill time": created.get_fill_time(),
            "fill": created.fill_value_defined(),
            "allocation": created.get_alloc_time(),
            "track times": created.get_obj_track_times(),
            "type": file[name].id.get_type().encode(),
            "superblock": file.id.get_create_plist().get_version(),
        }


@pytest.mark.parametrize("file", ["h5-alone/rank-1.h5", "h5-own/shared.h5"])
def test_hdf5_defaults_are_those_of_the_library(written, by_hand, file):
    name = "array_000_rank_000001"
    made = properties(written / file, name)
    assert made == properties(by_hand / file.split("/")[1], name)
    assert made["chunks"] is None
    assert made["fill time"] == h5py.h5d.FILL_TIME_IFSET


@pytest.mark.parametrize("file", ["nc-alone/rank-1.nc", "nc-own/shared.nc"])
def test_netcdf_defaults_are_those_of_the_library(written, by_hand, file):
    """ncdump -s tells storage, chunks, endianness, filters and fill."""
    texts = [output_of("ncdump", "-hs", path) for path in
             (written / file, by_hand / file.split("/")[1])]  # fmt: skip
    assert texts[0] == texts[1]
    name = "array_000_rank_000001"
    assert properties(written / file, name) == properties(by_hand / file.split("/")[1], name)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_defaults_are_those_of_the_library(written, by_hand, zarr_format):
    documents = {2: ".zarray", 3: "zarr.json"}
    inside = f"array_000_rank_000001/{documents[zarr_format]}"
    made = written / f"zarr{zarr_format}-alone" / "rank-1.zarr" / inside
    naive = by_hand / f"rank-1.zarr{zarr_format}" / inside
    assert json.loads(made.read_text()) == json.loads(naive.read_text())


def test_matched_hdf5_differs_from_defaults_in_chunks_fill_and_format_only(written):
    name = "array_000_rank_000001"
    defaults = properties(written / "h5-own" / "shared.h5", name)
    matched = properties(written / "h5-own-matched" / "shared.h5", name)
    assert matched == defaults | {
        "layout": h5py.h5d.CHUNKED, "chunks": OWN, "fill time": h5py.h5d.FILL_TIME_NEVER,
        # Of the lowest format that netCDF-C writes, in which h5py keeps no times of objects.
        "superblock": (2, 0, 0, 0), "track times": 0,
    }  # fmt: skip


def test_matched_netcdf_differs_from_defaults_in_chunks_and_fill_only(written):
    name = "array_000_rank_000001"
    defaults = properties(written / "nc-own" / "shared.nc", name)
    matched = properties(written / "nc-own-matched" / "shared.nc", name)
    differing = {key for key in defaults if defaults[key] != matched[key]}
    assert differing - {"fill"} == {"layout", "chunks", "fill time"}
    assert matched["chunks"] == OWN
    assert matched["fill time"] == h5py.h5d.FILL_TIME_NEVER


def test_matched_formats_have_equal_chunks_and_no_filters(written):
    name = "array_000_rank_000001"
    stored = [properties(written / f / f"shared.{f[:2]}", name) for f in ("nc-own-matched",)]
    stored += [properties(written / "h5-own-matched" / "shared.h5", name)]
    array = zarr.open_group(written / "zarr3-matched" / "rank-1.zarr", mode="r")[name]
    assert {s["chunks"] for s in stored} == {OWN} == {array.chunks}
    assert [s["filters"] for s in stored] == [[], []]
    assert array.compressors == ()


def test_default_zarr_is_compressed_and_default_netcdf_filled(written):
    name = "array_000_rank_000001"
    array = zarr.open_group(written / "zarr3-alone" / "rank-1.zarr", mode="r")[name]
    assert [type(c).__name__ for c in array.compressors] == ["ZstdCodec"]
    with netCDF4.Dataset(written / "nc-own" / "shared.nc") as file:
        header = output_of("ncdump", "-hs", written / "nc-own" / "shared.nc")
        assert file[name].chunking() == "contiguous"
    assert "_NoFill" not in header
    assert '_NoFill = "true"' in output_of(
        "ncdump", "-hs", written / "nc-own-matched" / "shared.nc"
    )


def test_codec_and_level_reach_the_file(written):
    gzip = (h5py.h5z.FILTER_DEFLATE, (6,))
    assert properties(written / "h5-gzip" / "shared.h5", "array_000")["filters"] == [gzip]
    with netCDF4.Dataset(written / "nc-collective" / "shared.nc") as file:
        filters = file["array_000"].filters()
    assert (filters["zlib"], filters["complevel"], filters["shuffle"]) == (True, 4, False)
    array = zarr.open_group(written / "zarr3-shared" / "shared.zarr", mode="r")["array_000"]
    (codec,) = array.metadata.to_dict()["codecs"][-1:]
    assert codec["name"] == "zstd"
    assert codec["configuration"]["level"] == 3


def test_shards_hold_several_chunks_in_one_file(written):
    array = zarr.open_group(written / "zarr3-sharded" / "shared.zarr", mode="r")["array_000"]
    assert (array.chunks, array.shards) == ((1, 4), (2, 8))
    files = [p for p in (written / "zarr3-sharded").rglob("*") if p.is_file() and "/c/" in str(p)]
    assert len(files) == 3


def test_alignment_places_the_data(written):
    for name in ("h5-aligned/shared.h5", "nc-aligned/shared.nc"):
        with h5py.File(written / name, "r") as file:
            stored = [d for d in file.values() if d.ndim == 2]
            offsets = [d.id.get_chunk_info(0).byte_offset for d in stored]
        assert [offset % 65536 for offset in offsets] == [0] * RANKS


def test_every_rank_writes_empty_chunks_or_none_does(tmp_path):
    zeros = tmp_path / "zeros.h5"
    with h5py.File(zeros, "w") as file:
        file["v"] = np.zeros((6, 16), dtype="f4")
    case = {"workload": "hyperslab", "backend": "zarr", "files": "one", "arrays": "shared",
            "settings": ["matched", "defaults"], "chunks": [3, 16],
            "source": "file", "file": str(zeros), "variable": "v"}  # fmt: skip
    done = run_experiment(tmp_path, 2, cases=[case])
    assert done.status == 0, done.said
    closed = [row for row in done.rows if row["phase"] == "close"]
    files = {row["settings"]: int(row["disk_files"]) for row in closed}
    metadata = 2  # of the group and of the array
    assert files == {"matched": metadata + 2, "defaults": metadata}
