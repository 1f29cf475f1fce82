"""Data that go through writer ranks: what is written, who opens files, what is planted."""

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from capable import FORMATS
from launch import PROGRAMS, run_experiment, sampled
from sharing import word_of

pytestmark = pytest.mark.parallel

TWO_NODES = (PROGRAMS / "two_nodes.py",)
#: Uneven: with 4 ranks in slabs of 10 rows the last one has 7; neither chunks nor shards fit.
ARRAY = {"workload": "hyperslab", "files": "one", "shape": [37, 53]}
CHUNKED = ARRAY | {"chunks": [[5, 7]], "backend": ["hdf5", "netcdf4"]}
BOTH = ["independent", "collective"]
SHARDS = ARRAY | {
    "chunks": [[5, 7]], "backend": "zarr", "rearranger": "chunk_owner",
    "zarr": {"shards": [[10, 14], [40, 56]]},
}  # fmt: skip
#: A shard larger than the part of a rank.
LARGE_SHARDS = SHARDS | {"zarr": {"shards": [40, 56]}}


@pytest.mark.parametrize("ranks", sampled([3, 2, 4], 3))
def test_every_format_is_written_and_read_through_writers(tmp_path, ranks):
    """Slabs and blocks, time steps, more ranks than rows; shards larger than a rank's part."""
    some = [{"count": n} for n in range(1, ranks + 1)]
    few = some[1:2] if ranks == 3 else some  # 2 of 3 ranks: the parts of writers are uneven
    done = run_experiment(
        tmp_path, ranks, timeout=240,
        cases=[
            CHUNKED | {"transfer": BOTH, "writers": some[::2], "rearranger": ["gather", "box"],
                       "steps": 2},
            CHUNKED | {"backend": "hdf5", "rearranger": "chunk_owner", "codec": ["none", "gzip"],
                       "transfer": "collective", "writers": some[1:], "decomposition": "block"},
            ARRAY | {"backend": ["posix", "npy", "mpiio"], "writers": some, "rearranger": "box",
                     "chunks": "contiguous", "decomposition": "block"},
            ARRAY | {"shape": [2, 5], "backend": "posix", "writers": few, "rearranger": "box"},
            SHARDS | {"writers": few, "decomposition": ["slab", "block"]},
            # one writer shares no chunk, so that Zarr needs no owners of chunks
            CHUNKED | {"backend": "zarr", "rearranger": "gather", "writers": some[0]},
        ],
    )  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert done.record["left_out"] == []
    for case, entry in done.record["cases"].items():
        count = entry["parameters"]["writers"]["count"]
        assert entry["transfer_facts"]["writers"].startswith(f"{count} of {ranks} ranks, at most ")
        phases, nbytes = done.phases(case), 4 * 37 * 53 * (entry["parameters"]["steps"] or 1)
        if entry["parameters"]["shape"] == [37, 53]:
            for phase in ("exchange", "write", "read", "exchange_read"):
                (row,) = phases[phase]
                assert int(row["bytes"]) == nbytes, (case, phase)


OTHERS = [
    {"workload": "slices", "shape": [9, 11, 10], "axis": [0, 2], "count": 2, "chunks": [4, 3, 5]},
    {"workload": "slices", "shape": [9, 11, 10], "box": [3, 5, 4], "position": "random", "count": 3,
     "chunks": [4, 3, 5]},
    {"workload": "datasets", "shape": [7, 4], "datasets": 3, "attributes": 2, "chunks": [2, 3]},
    {"workload": "updates", "shape": [6, 9, 2], "rows": 2, "chunks": [2, 2, 2], "steps": 2,
     "change": "append", "read": ["all", "every_second_row"]},
    {"workload": "updates", "shape": [6, 9, 2], "rows": 2, "chunks": [2, 2, 2],
     "change": ["first_half", "every_second_element", "random_rows"], "read": "random_rows"},
    {"workload": "chunk_cache", "shape": [2, 3, 5], "granules": 5, "chunks": [2, 3, 5],
     "read": ["rows", "chunks"]},
    {"workload": "study_datasets", "shape": [7, 4], "datasets": 3, "chunks": [2, 3],
     "order": "interleaved", "read_copy": True},
    {"workload": "hyperslab", "chunks": "rank_part", "steps": 2, "datasets": [
        {"name": "a", "shape": [8, 5], "dtype": "int16"},
        {"name": "b", "shape_per_rank": [3, 4], "count": 2, "decomposition": "block"}]},
    {"workload": "hyperslab", "shape": [9, 8], "chunks": [2, 3], "read_decomposition": "pencil",
     "read_start": [1, 2], "read_shape": [5, 4]},
]  # fmt: skip
#: All ranks read the parts of all, which groups of ranks do not have in their files.
READ_ELSEWHERE = [
    {"workload": "study_chunk_cache", "shape": [2, 3, 5], "granules": 5, "datasets": 2,
     "chunks": [2, 3, 5], "sharing": "interleaved", "byte_order": "big"},
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 3, 4, 7])
def test_every_workload_goes_through_writers_of_one_file_and_of_files_of_groups(tmp_path, ranks):
    """Strides, regions, rows, lists, steps and appended rows; all that a format can is VALID."""
    some = {"rearranger": ["gather", "box", "chunk_owner"], "transfer": BOTH,
            "writers": {"count": min(2, ranks)}, "backend": FORMATS}  # fmt: skip
    groups = {"files": {"count": min(2, ranks)},
              "writers": {"count": 1}}  # fmt: skip
    cases = [one | some for one in (*OTHERS, *READ_ELSEWHERE)]
    cases += [one | some | groups for one in OTHERS]
    done = run_experiment(tmp_path, ranks, timeout=400, cases=cases, repetitions=1, warmup=0)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    ran = {(p["workload"], p["backend"], p["rearranger"], word_of(p))
           for p in (entry["parameters"] for entry in done.record["cases"].values())}  # fmt: skip
    for one in OTHERS:
        for word in ("one-shared", *["count_2-shared"] * (ranks > 2)):
            for way in ("gather", "box", "chunk_owner"):
                assert (one["workload"], "hdf5", way, word) in ran
            assert (one["workload"], "zarr", "chunk_owner", word) in ran


def test_only_writers_open_files_to_write(tmp_path):
    cases = [ARRAY | {"backend": "posix", "rearranger": ["gather", "box"], "writers": {"count": 2}}]
    done = run_experiment(tmp_path, 4, cases=cases, program=(PROGRAMS / "openers.py",))
    assert done.status == 0, done.said
    opened = [(tmp_path / f"opened-{rank}").read_text().splitlines() for rank in range(4)]
    assert [len(set(paths)) for paths in opened] == [2, 0, 2, 0], opened


def test_independent_readers_find_the_same_array_however_it_was_written(tmp_path):
    cases = [
        CHUNKED | {"rearranger": ["none", "gather", "box", "chunk_owner"], "cache": "separate"},
        SHARDS | {"writers": {"count": 2}, "cache": "separate"},
    ]
    done = run_experiment(tmp_path, 3, "--stage", "write", cases=cases)
    assert done.status == 0, done.said
    arrays = []
    for path in (tmp_path / "scratch").rglob("shared.*"):
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                arrays.append(file["array_000"][...])
        elif path.suffix == ".nc":
            with netCDF4.Dataset(path) as file:
                arrays.append(np.asarray(file["array_000"][...]))
        else:
            arrays.append(zarr.open_group(path, mode="r")["array_000"][...])
    assert len(arrays) == 10
    assert all((array == arrays[0]).all() for array in arrays)


#: Through the writers of whole chunks and of slabs; through one writer, that receives 8 MiB.
THROUGH = CHUNKED | {"rearranger": ["box", "chunk_owner"], "writers": {"count": 2}}
LARGE = ARRAY | {"shape": [2048, 1024], "backend": "posix", "rearranger": "box",
                 "settings": ["matched", "defaults"], "writers": {"count": 1}}  # fmt: skip


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A run with counters on three ranks."""
    cases = [CHUNKED | {"backend": "hdf5", "rearranger": ["none", "gather"]}, THROUGH, LARGE,
             {"workload": "datasets", "shape": [8], "datasets": 3, "files": "one",
              "arrays": "per_rank", "backend": "zarr", "chunks": [2]},
             {"workload": "startup", "shape": [8], "datasets": 3, "backend": "hdf5", "chunks": [2]},
             {"workload": "updates", "shape": [6, 6], "chunks": [2, 2],
              "backend": "hdf5"}]  # fmt: skip
    directory = tmp_path_factory.mktemp("counted")
    done = run_experiment(directory, 3, cases=cases, counters=True, repetitions=1, warmup=0)
    assert done.status == 0, done.said
    return done


def test_the_memory_of_writers_is_touched_before_the_exchange(counted):
    """One writer receives 2048 pages, which a first touch in the exchange would count."""
    large = {counted.case(backend="posix", settings=how) for how in LARGE["settings"]}
    faults = [float(row["largest"]) for row in counted.counts if row["case"] in large
              and row["phase"] == "exchange" and row["counter"] == "minor_faults"]  # fmt: skip
    assert len(faults) == 2
    assert max(faults) < 1000


def test_chunks_are_counted_with_writers_and_without(counted):
    """Without writers the ranks of 13 rows touch 3 rows of 8 chunks each; 37 rows are 8 of them.

    37 × 53 elements in chunks of 5 × 7 are 8 × 8 chunks of 140 bytes. Slabs of writers cut a row of
    them, and writers of whole chunks cut none.
    """
    of_writers = {counted.case(backend=backend, rearranger=how): how
                  for backend in THROUGH["backend"] for how in THROUGH["rearranger"]}  # fmt: skip
    touched = {(row["case"].split(".")[1], row["phase"], float(row["total"]))
               for row in counted.counts
               if row["counter"] == "touched_chunks" and row["case"] not in of_writers}  # fmt: skip
    assert touched == {
        ("hyperslab", "write", 9 * 8 + 8), ("hyperslab", "read", 9 * 8 + 8),
        ("datasets", "write", 12), ("datasets", "read", 12), ("startup", "write", 12),
        ("startup", "read", 36), ("updates", "write", 9), ("updates", "read", 9),
        ("updates", "update", 6),
    }  # fmt: skip
    written = sorted((of_writers[row["case"]], float(row["total"])) for row in counted.counts
                     if (row["counter"], row["phase"]) == ("touched_bytes", "write")
                     and row["case"] in of_writers)  # fmt: skip
    assert written == [("box", 72 * 140)] * 2 + [("chunk_owner", 64 * 140)] * 2
    assert "×touched" in (counted.out / "summary.md").read_text()
    exchanged = {
        case
        for case, entry in counted.record["cases"].items()
        if "exchange" in counted.phases(case) and entry["parameters"]["chunks"] == [5, 7]
    }
    assert exchanged == {counted.case(rearranger="gather"), *of_writers}


@pytest.mark.parametrize("lost", sampled(["to_writers", "from_writers"], "from_writers"))
def test_an_exchange_that_loses_data_is_invalid(tmp_path, lost):
    cases = [
        CHUNKED | {"rearranger": ["gather", "box"], "writers": {"count": 2}},
        LARGE_SHARDS | {"writers": {"count": 2}},
    ]
    program = (PROGRAMS / "no_exchange.py",)
    done = run_experiment(tmp_path, 3, cases=cases, program=program, env={"LOST": lost})
    assert done.status == 1, done.said
    assert all(entry["invalid"] for entry in done.record["cases"].values())


def test_writers_are_counted_on_each_node(tmp_path):
    some = [{"per_node": 1}, {"per_node": 2}]
    cases = [ARRAY | {"backend": "hdf5", "rearranger": "gather", "writers": some}]
    done = run_experiment(tmp_path, 4, program=TWO_NODES, cases=cases)
    assert done.status == 0, done.said
    told = {entry["transfer_facts"]["writers"][:12] for entry in done.record["cases"].values()}
    assert told == {"2 of 4 ranks", "4 of 4 ranks"}
    assert "writers {per_node: 1}" in (done.out / "summary.md").read_text()


def test_writers_that_a_node_cannot_have_are_refused_before_anything_is_made(tmp_path):
    cases = [ARRAY | {"backend": "posix", "rearranger": "box", "writers": {"per_node": 3}}]
    done = run_experiment(tmp_path, 4, program=TWO_NODES, cases=cases)
    assert done.status == 2, done.said
    assert "writers.per_node is 3, but a node has 2 ranks" in done.stderr
    assert not done.out.exists()


@pytest.mark.slow
def test_a_thousand_repetitions_of_shards_larger_than_parts_lose_no_update(tmp_path):
    cases = [LARGE_SHARDS | {"writers": {"count": 3}}]
    done = run_experiment(tmp_path, 4, timeout=900, cases=cases, repetitions=1000)
    assert done.status == 0, done.said
    assert sum(row["phase"] == "exchange" for row in done.rows) == 1000
