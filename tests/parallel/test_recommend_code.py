"""The lines that `recommend` prints run under mpiexec and store data as was recommended."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from drawn_runs import a_run
from launch import PROGRAMS, pffbench_here, run
from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.experiment.plan import Cost
from pffbench.record.run_json import CaseEntry
from pffbench.workloads.registry import workload
from pffbench_analysis.recommend import advise

RANKS = 2
BLOCK = {"shape_per_rank": [4, 6]}
#: What is recommended, and how it must be stored then: files, arrays in each, and their storage.
CASES = {
    "hdf5-shared": (
        {"backend": "hdf5", **BLOCK},
        {"data.h5": ["array_0"]},
        {"shape": [8, 6], "chunks": [4, 6], "codec": "none", "values": [1, 2]},
    ),
    "hdf5-slices-collective-steps": (
        {"backend": "hdf5", "transfer": "collective", "steps": 2, "api": "high_level", **BLOCK},
        {"data.h5": ["array_0"]},
        {"shape": [2, 8, 6], "chunks": [1, 4, 6], "codec": "none", "values": [1, 2]},
    ),
    "hdf5-slices-two-arrays": (
        {"backend": "hdf5", "datasets": 2, "api": "high_level", **BLOCK},
        {"data.h5": ["array_0", "array_1"]},
        {"shape": [8, 6], "chunks": [4, 6], "codec": "none", "values": [1, 2]},
    ),
    "hdf5-file-per-node": (
        {"backend": "hdf5", "files": {"per_node": 1}, **BLOCK},
        {"data-0.h5": ["array_0"]},
        {"shape": [8, 6], "chunks": [4, 6], "codec": "none", "values": [1, 2]},
    ),
    "netcdf4-two-groups-collective": (
        {"backend": "netcdf4", "files": {"count": 2},
         "transfer": "collective", **BLOCK},
        {"data-0.nc": ["array_0"], "data-1.nc": ["array_0"]},
        {"shape": [4, 6], "chunks": [4, 6], "codec": "none", "values": [1]},
    ),
    "hdf5-the-first-array-of-a-list-file-per-node": (
        {"backend": "hdf5", "files": {"per_node": 1}, "datasets": [
            {"name": "u", "shape_per_rank": [4, 6], "dtype": "int16", "count": 2},
            {"name": "p", "shape": [9]}]},
        {"data-0.h5": ["array_0", "array_1"]},
        {"shape": [8, 6], "chunks": [4, 6], "dtype": "int16", "values": [1, 2]},
    ),
    "zarr-own-array-in-the-file-of-a-group": (
        {"backend": "zarr", "files": {"count": 1}, "arrays": "per_rank",
         **BLOCK},
        {"data-0.zarr": ["array_0_of_rank_0", "array_0_of_rank_1"]},
        {"shape": [4, 6], "chunks": [4, 6], "codec": "none"},
    ),
    "hdf5-file-per-process-steps": (
        {"backend": "hdf5", "files": "per_rank", "steps": 2, "settings": "defaults",
         **BLOCK},
        {"data-0.h5": ["array_0"], "data-1.h5": ["array_0"]},
        {"shape": [2, 4, 6], "chunks": None, "codec": "none"},
    ),
    "hdf5-collective-gzip-steps": (
        {"backend": "hdf5", "transfer": "collective", "codec": "gzip", "level": 3, "steps": 3,
         "chunks": [1, 2, 3], "durability": "flush", "hints": {"cb_nodes": 1, "b": "'x\""},
         "alignment": 8, "alignment_threshold": 64, **BLOCK},
        {"data.h5": ["array_0"]},
        {"shape": [3, 8, 6], "chunks": [1, 2, 3], "codec": "gzip 3", "values": [1, 2]},
    ),
    "hdf5-collective-blosc-filter": (
        {"backend": "hdf5", "transfer": "collective", "codec": "blosc", "compressor": "zstd",
         "level": 3, "shuffle": "bit", "chunks": [8, 64], "source": "constant",
         "shape_per_rank": [16, 64]},
        {"data.h5": ["array_0"]},
        {"shape": [32, 64], "chunks": [8, 64], "codec": "blosc-zstd 3 bit", "values": [1, 2]},
    ),
    "zarr-blosc-bitshuffle-zarrs": (
        {"backend": "zarr", "codec": "blosc", "compressor": "zstd", "level": 3, "shuffle": "bit",
         "chunks": [2, 6], "pipeline": "zarrs", **BLOCK},
        {"data.zarr": ["array_0"]},
        {"shape": [8, 6], "chunks": [2, 6], "codec": "blosc", "values": [1, 2]},
    ),
    "zarr-gzip-shuffle": (
        {"backend": "zarr", "codec": "gzip", "level": 3, "shuffle": "byte", "chunks": [2, 6],
         **BLOCK},
        {"data.zarr": ["array_0"]},
        {"shape": [8, 6], "chunks": [2, 6], "codec": "numcodecs.shuffle gzip", "values": [1, 2]},
    ),
    "zarr-2-zstd-shuffle": (
        {"backend": "zarr", "codec": "zstd", "shuffle": "byte", "chunks": [2, 6], "format": 2,
         **BLOCK},
        {"data.zarr": ["array_0"]},
        {"shape": [8, 6], "chunks": [2, 6], "codec": "shuffle zstd", "values": [1, 2]},
    ),
    "hdf5-own-defaults-synced": (
        {"backend": "hdf5", "files": "one", "arrays": "per_rank", "settings": "defaults",
         "durability": "sync",
         "alignment": 65536, "datasets": 2, **BLOCK},
        {"data.h5": [f"array_{i}_of_rank_{r}" for i in range(2) for r in range(2)]},
        {"shape": [4, 6], "chunks": None, "codec": "none"},
    ),
    "hdf5-file-per-process-gzip": (
        {"backend": "hdf5", "files": "per_rank", "codec": "gzip", "libver": "latest",
         "dtype": "float64", **BLOCK},
        {"data-0.h5": ["array_0"], "data-1.h5": ["array_0"]},
        {"shape": [4, 6], "chunks": [4, 6], "codec": "gzip 4", "dtype": "float64"},
    ),
    "hdf5-file-per-process-lzf": (
        {"backend": "hdf5", "files": "per_rank", "codec": "lzf", "shuffle": "byte",
         **BLOCK},
        {"data-0.h5": ["array_0"], "data-1.h5": ["array_0"]},
        {"shape": [4, 6], "chunks": [4, 6], "codec": "lzf byte"},
    ),
    "hdf5-uneven-block": (
        {"backend": "hdf5", "shape": [5, 3], "decomposition": "block", "chunks": [2, 3]},
        {"data.h5": ["array_0"]},
        {"shape": [5, 3], "chunks": [2, 3], "values": [1, 2]},
    ),
    "hdf5-datasets": (
        {"workload": "datasets", "backend": "hdf5", "files": "one", "arrays": "per_rank",
         "shape": [4, 4],
         "datasets_per_rank": 2},
        {"data.h5": [f"array_{i}_of_rank_{r}" for i in range(2) for r in range(2)]},
        {"shape": [4, 4], "chunks": [4, 4]},
    ),
    "netcdf4-collective-gzip": (
        {"backend": "netcdf4", "transfer": "collective", "codec": "gzip", "chunks": [2, 6],
         "hints": {"cb_nodes": 1}, "striping": {"count": 1}, **BLOCK},
        {"data.nc": ["array_0"]},
        {"shape": [8, 6], "chunks": [2, 6], "codec": "gzip 4", "values": [1, 2]},
    ),
    "netcdf4-own-flushed": (
        {"backend": "netcdf4", "files": "one", "arrays": "per_rank", "durability": "flush",
         "steps": 2, **BLOCK},
        {"data.nc": ["array_0_of_rank_0", "array_0_of_rank_1"]},
        {"shape": [2, 4, 6], "chunks": [1, 4, 6], "codec": "none"},
    ),
    "netcdf4-file-per-process-defaults": (
        {"backend": "netcdf4", "files": "per_rank", "settings": "defaults",
         "durability": "sync", **BLOCK},
        {"data-0.nc": ["array_0"], "data-1.nc": ["array_0"]},
        {"shape": [4, 6], "chunks": None, "codec": "none"},
    ),
    "zarr-shared-zstd": (
        {"backend": "zarr", "codec": "zstd", "durability": "sync", "chunks": [2, 6], **BLOCK},
        {"data.zarr": ["array_0"]},
        {"shape": [8, 6], "chunks": [2, 6], "codec": "zstd", "shards": None, "values": [1, 2]},
    ),
    "zarr-whole-chunks-of-unequal-number": (
        {"backend": "zarr", "codec": "gzip", "shape": [9, 6], "chunks": [2, 6], "cut_unit": [2, 6]},
        {"data.zarr": ["array_0"]},
        {"shape": [9, 6], "chunks": [2, 6], "codec": "gzip", "values": [1, 2]},
    ),
    "zarr-own-shards": (
        {"backend": "zarr", "files": "one", "arrays": "per_rank", "chunks": [2, 3],
         "shards": [4, 6], **BLOCK},
        {"data.zarr": ["array_0_of_rank_0", "array_0_of_rank_1"]},
        {"shape": [4, 6], "chunks": [2, 3], "shards": [4, 6], "codec": "none"},
    ),
    "zarr-format-2-blosc-per-process": (
        {"backend": "zarr", "files": "per_rank", "format": 2, "codec": "blosc", **BLOCK},
        {"data-0.zarr": ["array_0"], "data-1.zarr": ["array_0"]},
        {"shape": [4, 6], "chunks": [4, 6], "codec": "blosc"},
    ),
    "zarr-datasets-shared-defaults": (
        {"workload": "datasets", "backend": "zarr", "shape": [4, 4], "datasets": 2,
         "chunks": [2, 4], "settings": "defaults", "concurrency": 2},
        {"data.zarr": ["array_0", "array_1"]},
        {"shape": [4, 4], "chunks": [2, 4], "codec": "zstd", "values": [1, 2]},
    ),
}  # fmt: skip


def entry_of(told):
    """Return the name of a case and its entry in run.json, as a run that did it writes them."""
    told = {"workload": "hyperslab", **told}
    kind = backend_class(told["backend"])
    own = {k: told.pop(k) for k in list(told) if k in kind.options_type.__struct_fields__}
    parameters = msgspec.convert(told, workload(told["workload"]).parameters_type)
    options = msgspec.convert(own, kind.options_type, dec_hook=lambda type_, value: type_(value))
    case = Case(parameters, options)
    plain = {"workload": parameters.workload, **msgspec.to_builtins(parameters)}
    return case.id, CaseEntry(
        {**plain, "dtype": plain["dtype"] or "float32"},
        case.group,
        Cost(1, 1, 1, 1, 1),
        msgspec.to_builtins(options, enc_hook=int),
    )


def advice(directory, *told):
    """Return the recommendation of a run of these cases."""
    run_of_them = a_run(directory, list(map(entry_of, told)), repetitions=10)
    return advise(run_of_them, {"write": 1.0, "read": 1.0}, {}, 0.25)


def program(directory, told):
    found = advice(directory, told)
    assert found.program, found.why_none
    return found.program


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The program for each recommendation."""
    place = tmp_path_factory.mktemp("results")
    return {name: program(place / name, told) for name, (told, _, _) in CASES.items()}


@pytest.fixture(scope="module")
def stored(programs, tmp_path_factory):
    """Run all programs in one job, and tell what they left behind."""
    parent = tmp_path_factory.mktemp("programs")
    places = []
    for name, text in programs.items():
        place = parent / name
        place.mkdir()
        (place / "program.py").write_text(text)
        places.append(place)
    done = run([PROGRAMS / "run_all.py", *places], ranks=RANKS, timeout=600)
    assert done.status == 0, done.said
    seen = run([PROGRAMS / "look.py", *places], timeout=300)
    assert seen.status == 0, seen.said
    found = json.loads(seen.stdout)
    return {place.name: found[str(place)] for place in places}


@pytest.mark.parametrize("name", CASES)
def test_the_printed_code_stores_what_was_recommended(stored, name):
    _, files, storage = CASES[name]
    assert {file: sorted(arrays) for file, arrays in stored[name].items()} == files
    for file, arrays in stored[name].items():
        for array, found in arrays.items():
            assert storage.items() <= found.items(), (file, array, found)


@pytest.mark.parametrize("name", CASES)
def test_the_program_has_no_loop_of_one_and_nothing_empty(programs, name):
    assert not re.search(r"range\(1\)|\{\s*\}", programs[name])


def test_a_program_of_a_list_says_for_which_array_it_is(tmp_path):
    told = {"backend": "zarr", "datasets": [{"name": n, "shape": [8]} for n in "abcdef"]}
    (note,) = advice(tmp_path, told).notes
    assert note.startswith("These lines are for the array a. ")
    assert "times are of all arrays: b, c, d, and 2 more need the same calls" in note


def test_every_rank_wrote_its_own_file_or_array(stored):
    files = stored["hdf5-file-per-process-gzip"]
    assert [files[f"data-{r}.h5"]["array_0"]["values"] for r in range(2)] == [[1], [2]]
    arrays = stored["zarr-own-shards"]["data.zarr"]
    assert [arrays[f"array_0_of_rank_{r}"]["values"] for r in range(2)] == [[1], [2]]


def test_what_no_library_offers_is_said_instead_of_code(tmp_path):
    told = {
        "backend": "netcdf4",
        "files": "one",
        "arrays": "per_rank",
        "transfer": "collective",
        **BLOCK,
    }
    found = advice(tmp_path, told)
    assert found.program == ""
    assert found.why_none.startswith("collective writing")
    done = pffbench_here("recommend", tmp_path)
    assert done.status == 0, done.said
    assert "No program is printed: collective writing" in done.stdout


def test_unlimited_dimensions_are_not_written_into_a_program(tmp_path):
    told = {"backend": "netcdf4", "dimensions": "unlimited_shared", **BLOCK}
    found = advice(tmp_path, told)
    assert found.program == ""
    assert "netcdf4.dimensions: fixed is what to take" in found.why_none


def test_numbers_in_run_json_cannot_become_other_code(tmp_path):
    name, entry = entry_of({"backend": "hdf5", **BLOCK})
    entry.parameters["dtype"] = 'float32"); import os; os.abort(); ("'
    run_of_it = a_run(tmp_path, [(name, entry)], repetitions=10)
    found = advise(run_of_it, {"write": 1.0, "read": 1.0}, {}, 0.25)
    assert found.program == ""
    assert "of another pffbench" in found.why_none


@pytest.mark.parametrize("name", ["hdf5-collective-gzip-steps", "netcdf4-collective-gzip"])
def test_the_program_has_the_hints(programs, name):
    assert """"info": MPI.Info.Create({'cb_nodes': '1',""" in programs[name]
