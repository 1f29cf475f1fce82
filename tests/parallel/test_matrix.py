"""Every backend with all files, arrays and transfers, on 1 to 4 ranks, and uneven shapes."""

import math

import h5py
import numpy as np
import pytest

from capable import ALL, COLLECTIVE, FORMATS, FORMATS_AND_COLLECTIVE, KINDS, among, runnable
from launch import run_experiment
from pffbench.data.base import DTYPES
from sharing import keys_of, word_of

pytestmark = pytest.mark.parallel

LAYOUTS = ["one-shared", "one-per_rank", "per_rank"]
BOTH = ["independent", "collective"]
#: A backend of each library, and raw bytes in both transfers.
LIBRARIES = ("hdf5", "netcdf4", "zarr", "mpiio", "posix")

#: Seconds after which a run hangs: a hundred times what it takes alone on a machine of two cores.
LONGEST = 3600

CASES = runnable([
    {"backend": FORMATS, **keys_of(LAYOUTS), "shape": [7, 5, 3],
     "settings": "defaults", "dtype": "float64"},
    # fewer rows than ranks: some ranks hold nothing
    {"backend": ALL, **keys_of(LAYOUTS), "transfer": BOTH, "shape": [2, 3]},
    {"backend": FORMATS, "distribution": "balanced", "chunks": "rank_part", "shape": [3, 4]},
    {"workload": "datasets", "datasets": 2, "backend": among(*LIBRARIES), **keys_of(LAYOUTS),
     "transfer": BOTH, "shape": [3, 2]},
    # decompositions and distributions, one to four axes
    {"backend": FORMATS_AND_COLLECTIVE, "transfer": BOTH, "decomposition": "pencil",
     "distribution": "balanced", "shape": [10, 9]},
    {"backend": FORMATS, "distribution": "balanced", "chunks": [1], "shape": [5]},
    {"backend": FORMATS, "decomposition": "block", "shape": [3, 4, 2, 5], "dtype": "uint16"},
    # time steps and several arrays
    {"backend": FORMATS_AND_COLLECTIVE, "files": "one", "arrays": "shared", "transfer": BOTH,
     "shape_per_rank": [2, 3], "steps": 3, "datasets": 2},
    {"backend": COLLECTIVE, "files": "one", "arrays": "per_rank", "transfer": "collective",
     "shape_per_rank": [2, 3], "steps": 3, "datasets": 2},
    # reading other boxes than were written
    {"backend": among(*LIBRARIES), "transfer": BOTH, "shape": [9, 10],
     "read_decomposition": "block", "decomposition": "slab"},
    {"backend": FORMATS_AND_COLLECTIVE, "shape": [9, 7], "read_start": [2, 1],
     "read_shape": [5, 4], "steps": 2},
    {"backend": COLLECTIVE, "transfer": "collective", "shape": [9, 8], "read_shape": [1, 8]},
    # codecs, formats of Zarr
    {"backend": among("hdf5", "netcdf4"), "transfer": "collective", "files": "one",
     "arrays": ["shared", "per_rank"],
     "codec": "gzip", "source": "smooth", "shape": [16, 8]},
    {"backend": among("hdf5", "netcdf4"), "files": "per_rank", "codec": "gzip",
     "level": 1, "source": "integers", "shape": [16, 8]},
    {"backend": among("zarr"), "codec": ["gzip", "zstd", "blosc", "none"],
     "zarr": {"format": 3}, "source": "smooth", "shape": [16, 8]},
    {"backend": among("zarr"), "codec": "zstd", "zarr": {"format": 2}, "source": "smooth",
     "shape": [16, 8]},
    {"backend": among("zarr"), "files": "one", "arrays": "per_rank", "shape_per_rank": [8, 8],
     "chunks": [2, 4],
     "zarr": {"shards": [4, 8]}},
    # durability; a case with `sync` flushes first
    {"backend": among("hdf5", "netcdf4", "zarr", "npy"), "files": ["one", "per_rank"],
     "durability": "sync", "shape": [6, 4]},
    {"backend": among("hdf5", "zarr"), "durability": "flush", "shape": [6, 4]},
])  # fmt: skip
#: What differs from these cases in a value alone, or combines values that these have.
MORE = runnable([
    {"backend": COLLECTIVE, **keys_of(LAYOUTS), "transfer": "collective", "shape": [7, 5, 3],
     "settings": "defaults", "dtype": "float64"},
    {"workload": "datasets", "datasets": 2,
     "backend": [name for name in ALL if name not in LIBRARIES], **keys_of(LAYOUTS),
     "transfer": BOTH, "shape": [3, 2]},
    {"backend": FORMATS_AND_COLLECTIVE, "files": "one", "arrays": "per_rank",
     "shape_per_rank": [2, 3], "steps": 3, "datasets": 2},
    {"backend": FORMATS_AND_COLLECTIVE, "shape": [9, 7], "read_start": [2, 1],
     "read_shape": [5, 4]},
    {"backend": among("zarr"), "codec": ["gzip", "blosc", "none"], "zarr": {"format": 2},
     "source": "smooth", "shape": [16, 8]},
    {"backend": FORMATS_AND_COLLECTIVE, "transfer": BOTH, "shape": [9, 10],
     "read_decomposition": "block", "decomposition": "slab"},
    {"backend": FORMATS, "files": ["one", "per_rank"], "durability": ["flush", "sync"],
     "shape": [6, 4]},
    {"backend": ALL, **keys_of(LAYOUTS), "transfer": BOTH, "shape": [3, 2],
     "distribution": "balanced", "chunks": "rank_part"},
    {"backend": ALL, **keys_of(LAYOUTS), "transfer": BOTH, "shape": [7, 5, 3]},
    {"backend": ALL, **keys_of(LAYOUTS), "transfer": BOTH, "shape": [1]},
    {"backend": ALL, **keys_of(LAYOUTS), "transfer": BOTH, "shape": [3, 2],
     "distribution": "balanced", "chunks": "auto"},
    {"backend": FORMATS_AND_COLLECTIVE, "transfer": BOTH, "decomposition": ["pencil", "block"],
     "distribution": "block", "shape": [10, 9]},
    {"backend": FORMATS_AND_COLLECTIVE, "transfer": BOTH, "decomposition": "block",
     "distribution": "balanced", "shape": [10, 9]},
])  # fmt: skip

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


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((3, CASES), id="3"),
        *(
            pytest.param((n, CASES + MORE), id=f"{n}-all", marks=pytest.mark.full)
            for n in (1, 2, 3, 4)
        ),
    ],
)
def matrix(request, tmp_path_factory):
    """One run of all cases."""
    ranks, cases = request.param
    directory = tmp_path_factory.mktemp("matrix")
    common = {"workload": "hyperslab"}
    done = run_experiment(directory, ranks, cases=cases, common=common, timeout=LONGEST)
    assert list((directory / "scratch").iterdir()) == []
    return done


def test_one_rank_runs_every_backend_and_element_type(tmp_path):
    """A backend refuses the types that its library lacks."""
    raw = [name for name in ALL if name not in FORMATS]  # whose files know no type
    cases = runnable([
        {"backend": FORMATS, "dtype": list(DTYPES)},
        {"backend": raw, "dtype": ["int8", "float64"]},
    ])  # fmt: skip
    common = {"workload": "hyperslab", "files": "per_rank", "shape": [5, 3]}
    done = run_experiment(tmp_path, 1, cases=cases, common=common, timeout=LONGEST)
    assert done.status == 0, done.said
    assert {row["backend"] for row in done.rows} == set(ALL)


def test_everything_is_valid(matrix):
    assert matrix.status == 0, matrix.said
    assert "\nVALID: every byte verified, " in matrix.stdout
    assert matrix.record["valid"] is True
    assert matrix.record["reasons"] == []
    assert [n for n, entry in matrix.record["cases"].items() if entry["failure"]] == []
    assert {row["valid"] for row in matrix.rows} == {"true"}


#: Beginnings of the reasons for which a backend itself refuses cases. What the class of a backend
#: that is not here refuses is its own affair; what it says it cannot do is compared for all.
REFUSED = dict.fromkeys(("hdf5", "netcdf4", "blosc2", "mpiio", "posix"), ()) | {
    "npy": ("a .npy file has no chunks; leave chunks out, or name chunks: contiguous",),
    "zarr": ("Zarr's automatic chunks would be shared",),
    "tensorstore": ("Zarr's automatic chunks would be shared",),
}  # fmt: skip


def test_only_what_no_library_can_do_is_left_out(matrix):
    independent = "files: per_rank shares no file, so transfer must be independent"
    refused = set()
    for left in matrix.record["left_out"]:
        backend, reason = left["case"].split(".")[0], left["reason"]
        can = KINDS[backend].capabilities
        if reason.startswith(f"backend {backend} cannot do arrays: "):
            assert reason.split()[5] not in can.arrays
        elif reason.startswith(f"backend {backend} cannot do transfer collective (it can: "):
            assert "collective" not in can.transfers
        elif reason != independent and backend in REFUSED:
            refused.add(backend)
            assert reason.startswith(REFUSED[backend] or ("it refuses nothing",)), left
    of_several_ranks = {"zarr", "tensorstore"} if matrix.record["ranks"] > 1 else set()
    assert refused == {*among("npy", *of_several_ranks)}


def test_every_backend_ran_with_all_files_arrays_and_transfers(matrix):
    ran = {(row["backend"], word_of(row), row["transfer"]) for row in matrix.rows}
    assert ran == {
        (name, word, transfer)
        for name, kind in KINDS.items()
        for word in ("per_rank", *(f"one-{arrays}" for arrays in kind.capabilities.arrays))
        for transfer in kind.capabilities.transfers
        if word != "per_rank" or transfer == "independent"
    }


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
    return size * p["datasets"] * (p["steps"] or 1) * math.prod(shape)


def read_bytes(p, run):
    if p.get("read_shape") is None:
        return written_bytes(p, run)
    return np.dtype(p["dtype"]).itemsize * (p["steps"] or 1) * math.prod(p["read_shape"])


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
            if entry["parameters"].get("read_shape") == [1, 8]:  # rank 0 reads all of it
                group = file[name]
                read = group["bytes"][0, list(group.attrs["phases"]).index("read")]
                assert read[0] > 0
                assert not read[1:].any()


def test_disk_usage_is_what_the_layout_makes(matrix):
    ranks = matrix.record["ranks"]
    files = {"one-shared": 1, "one-per_rank": 1, "per_rank": ranks}
    for name, entry in matrix.record["cases"].items():
        p = entry["parameters"]
        (closed,) = matrix.phases(name)["close"]
        files_for_each = KINDS[p["backend"]].file_per
        if files_for_each == "chunk":
            assert int(closed["disk_files"]) >= 2
        elif files_for_each == "array":
            assert int(closed["disk_files"]) == int(closed["array_count"])
            for synced in matrix.phases(name).get("sync", []):  # the directories above them too
                assert int(synced["operations"]) >= int(closed["array_count"]) + 2
        else:
            assert int(closed["disk_files"]) == files[word_of(p)]
        written = written_bytes(p, matrix)
        compressed = p["codec"] not in ("auto", "none") or p["settings"] == "defaults"
        if not compressed:
            assert entry["disk"]["apparent"] >= written


def test_the_library_says_which_transfer_it_really_used(matrix):
    for name, entry in matrix.record["cases"].items():
        p = entry["parameters"]
        if p["backend"] != "hdf5" or word_of(p) == "per_rank":
            continue
        told = entry["transfer_facts"]["hdf5_io_mode"]
        expected = "collective" if p["transfer"] == "collective" else "independent"
        assert expected in told or "mixed" in told, name


@pytest.mark.parametrize("backend", among("zarr", "netcdf4"))
def test_the_record_tells_how_defaults_are_stored(matrix, backend):
    stored = {"matched": set(), "defaults": set()}
    for entry in matrix.record["cases"].values():
        p, how = entry["parameters"], entry["stored_as"]
        if p["backend"] == backend and how is not None:
            told = how["codec"].partition(" ")[0] if backend == "zarr" else how["fill"]
            stored[p["settings"]].add(told)
    if backend == "zarr":
        assert stored["defaults"] == {"zstd"}
        assert "none" in stored["matched"]
    else:
        assert stored == {"matched": {"never"}, "defaults": {"always"}}
