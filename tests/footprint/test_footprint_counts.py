"""`pffbench footprint` predicts what the kernel counts: exact quantities are equal, bounds hold."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace

import pytest
import yaml

from launch import (
    REPOSITORY,
    SHIPPED,
    pffbench_cli,
    sparse_file,
    write_experiment,
)
from planted import pausing
from sharing import keys_of

#: Seconds of a run at most.
LONG = 1100
pytestmark = [pytest.mark.parallel, pytest.mark.timeout(LONG + 100)]

COUNTS = {"counters": "calls", "repetitions": 1, "warmup": 0, "roofline": False}
HYPERSLAB = {"workload": "hyperslab", "durability": "sync"}
ALL = ["hdf5", "netcdf4", "zarr", "tensorstore", "npy", "mpiio", "posix", "blosc2"]
BOTH = ["independent", "collective"]
EVERY = ["one-shared", "one-per_rank", "per_rank"]
#: Formats × files × transfers, in chunks and in one piece.
FORMATS = [
    {"backend": ALL, **keys_of(EVERY), "transfer": BOTH, "chunks": [[4, 64, 64]],
     "shape_per_rank": [8, 64, 64]},
    {"backend": ["hdf5", "netcdf4", "npy", "mpiio"], "files": ["one", "per_rank"],
     "chunks": "contiguous", "shape_per_rank": [8, 64, 64], "durability": "flush"},
    # Chunks that no chunk cache holds.
    {"backend": ["hdf5", "netcdf4", "zarr"], "chunks": [[2, 512, 512]],
     "shape_per_rank": [4, 512, 512], "durability": "close"},
]  # fmt: skip
#: The latter two in all files and transfers.
MORE_FORMATS = [
    {"backend": ["hdf5", "netcdf4", "npy", "mpiio"], **keys_of(EVERY), "transfer": BOTH,
     "chunks": "contiguous", "shape_per_rank": [8, 64, 64], "durability": "flush"},
    {"backend": ["hdf5", "netcdf4", "zarr"], **keys_of(EVERY), "chunks": [[2, 512, 512]],
     "shape_per_rank": [4, 512, 512], "durability": "close"},
]  # fmt: skip
#: Parts of unequal shape, steps, several arrays, other decompositions, other kinds of chunk files.
SHAPES = [
    {"backend": ["hdf5", "zarr", "npy", "posix", "mpiio"], **keys_of(EVERY),
     "shape": [14, 10, 6], "decomposition": ["slab", "block"], "chunks": "auto", "datasets": 2},
    {"backend": ["hdf5", "netcdf4", "zarr", "tensorstore", "npy", "posix"], **keys_of(EVERY),
     "shape": [13, 10], "distribution": "balanced", "chunks": "auto", "steps": 3},
    {"backend": ["hdf5", "posix", "npy"], "shape": [12, 30, 8], "decomposition": "pencil",
     "chunks": "contiguous", "steps": 2, "read_decomposition": "slab"},
    {"backend": "posix", "shape": [9, 16], "datasets": 3},
    {"backend": ["zarr", "tensorstore"], **keys_of(EVERY), "shape_per_rank": [8, 16, 16],
     "chunks": [[2, 16, 16]], "zarr": {"shards": [[4, 16, 16]]},
     "tensorstore": {"shards": [[4, 16, 16]]}},
    {"backend": ["zarr", "tensorstore"], **keys_of(EVERY), "shape_per_rank": [8, 16, 16],
     "chunks": [[3, 16, 16]], "zarr": {"format": 2}, "tensorstore": {"format": 2}},
    {"backend": ["hdf5", "netcdf4", "zarr"], "files": ["one", "per_rank"],
     "transfer": BOTH, "shape_per_rank": [4, 16, 16], "chunks": [[2, 16, 16]], "codec": "gzip"},
    {"backend": ["hdf5", "netcdf4", "zarr"], "files": ["one", "per_rank"],
     "settings": "defaults", "shape_per_rank": [4, 16, 16]},
    {"backend": ["hdf5", "posix", "zarr"], "datasets": [
        {"name": "u", "shape_per_rank": [4, 8, 8], "count": 2},
        {"name": "ps", "shape_per_rank": [6, 5], "dtype": "float64"}]},
    {"backend": ["hdf5", "zarr", "posix"], **keys_of(EVERY),
     "shape": [22, 9], "chunks": [[4, 9]], "cut_unit": [[4, 9]]},
    {"workload": "datasets", "backend": ["hdf5", "zarr", "npy", "posix"], **keys_of(EVERY),
     "shape": [8, 30], "datasets": 5},
    {"workload": "study_datasets", "backend": ["hdf5", "zarr", "posix"], "files": "one",
     "arrays": "per_rank",
     "shape": [8, 30], "datasets": 5, "order": "interleaved", "read_copy": True},
]  # fmt: skip
#: Fewer files than ranks, and fewer writers.
THROUGH = [
    {"backend": ["hdf5", "npy", "posix", "zarr"], "arrays": arrays,
     "files": {"count": 2}, "shape_per_rank": [4, 16, 16]}
    for arrays in ("shared", "per_rank")
] + [
    {"backend": ["hdf5", "mpiio", "posix"], "shape": [24, 40], "decomposition": "block",
     "chunks": "contiguous", "rearranger": ["gather", "box"],
     "writers": [{"count": 1}, {"count": 2}, "all"]},
    {"backend": ["hdf5", "netcdf4"], "shape": [24, 40], "decomposition": "block",
     "chunks": "contiguous", "rearranger": "box", "writers": {"count": 1},
     "transfer": "collective"},
    {"backend": ["hdf5", "zarr"], "shape": [24, 40], "decomposition": "block",
     "chunks": [[6, 10]], "rearranger": "chunk_owner", "writers": {"count": 2}, "steps": 2},
]  # fmt: skip


#: The other workloads; a shard that the array's end cuts.
OTHERS = [
    {"workload": "slices", "backend": ["hdf5", "zarr", "posix", "npy"], "shape": [6, 24, 10],
     "files": ["one", "per_rank"], "chunks": [[3, 6, 10]], "axis": [0, 2], "count": 2},
    {"workload": "chunk_cache", "backend": ["hdf5", "zarr", "posix"], "shape": [2, 8],
     "files": "one", "arrays": ["shared", "per_rank"], "granules": 5, "chunks": [[2, 8]],
     "read": ["rows", "chunks"]},
    {"workload": "chunk_cache", "backend": "tensorstore", "shape": [2, 8], "files": "one",
     "arrays": "per_rank",
     "granules": 3, "chunks": [[2, 8]], "tensorstore": {"cache_pool": [0, "1 MiB"]}},
    {"workload": "updates", "backend": ["hdf5", "zarr", "posix"], "shape": [8, 16],
     "files": "per_rank", "chunks": [[4, 2]],
     "change": ["second_half", "every_second_element"], "read": ["all", "every_second_row"]},
    {"workload": "startup", "backend": ["hdf5", "zarr"], "shape": [64], "datasets": 3,
     "attributes": 2, "strategy": ["every_rank", "root_bcast", "node_leader_shared"],
     "zarr": {"format": 2, "consolidated": [False, True]}},
    {"workload": "startup", "backend": ["hdf5", "netcdf4"], "shape": [64], "datasets": 3,
     "strategy": "collective", "transfer": BOTH},
    {"backend": ["zarr", "tensorstore"], "files": "per_rank", "shape": [4, 10],
     "decomposition": "block", "chunks": [[1, 2]], "zarr": {"shards": [[4, 8]]},
     "tensorstore": {"shards": [[4, 8]]}},
]  # fmt: skip


def predicted(ranks, path):
    """Return the quantities of each case, from a process without MPI."""
    done = pffbench_cli("footprint", path, "--ranks", ranks, "--json")
    assert done.status == 0, done.said
    return {one["case"]: one for one in json.loads(done.stdout)["cases"]}


WRITING = ("create", "define", "set_attributes", "write", "flush", "close")
READING = ("open", "open_array", "inquire", "get_attributes", "read", "close_read")
MOVES = {"write": r"p?write(64|v|v2)?", "read": r"p?read(64|v|v2)?"}
NAMES = r"(mkdir|rename|link|unlink|rmdir|symlink)(at|at2)?"


def counted(done):
    """Return what the kernel and the disk say of each case, by the names of the quantities."""
    calls = {case: Counter() for case in done.record["cases"]}
    for row in done.counts:
        calls[row["case"]][row["phase"], row["counter"]] += round(float(row["total"]))
    found = {}
    for case, counts in calls.items():
        rows = {row["phase"]: row for row in done.rows if row["case"] == case}
        disk = done.record["cases"][case]["disk"]

        def total(phases, what, pattern, counts=counts):
            return sum(number for (phase, name), number in counts.items()
                       if phase in phases and re.fullmatch(what + pattern, name))  # fmt: skip

        found[case] = {
            "data_bytes": int(rows["write"]["bytes"]),
            "files": disk["files"],
            "directories": disk["directories"],
            "creates": total(WRITING, "call_", ".*_O_CREAT"),
            "renames": total(WRITING, "call_", NAMES),
            "opens_to_write": total(WRITING, "call_", r"open(at)?"),
            "opens_to_read": total(READING, "call_", r"open(at)?"),
            "write_requests": total(["write"], "call_", MOVES["write"]),
            "written_bytes": total(WRITING, "bytes_", MOVES["write"]),
            "rewritten_bytes": total(["write"], "bytes_", MOVES["read"]),
            "read_requests": total(["read"], "call_", MOVES["read"]),
            "read_bytes": total(["read"], "bytes_", MOVES["read"]),
            "memory_of_rank": max(int(row["peak_memory"]) for row in rows.values()
                                  if row["peak_memory"]),
            "syncs": total([*WRITING, "sync"], "call_", r"f(data)?sync"),
        }  # fmt: skip
    return found


def wrong(amount, count):
    certainty, value = amount["certainty"], amount["value"]
    if certainty == "exact":
        return value != count
    return (certainty == "at least" and value > count) or (certainty == "at most" and value < count)


def check(tmp_path, ranks, cases, fewest):
    cases = [HYPERSLAB | case for case in cases]
    told = compare(tmp_path, ranks, write_experiment(tmp_path, cases=cases, **COUNTS))
    assert len(told) >= fewest


def compare(directory, ranks, path, **how):
    """Predict the counts of an experiment, then count; return what was predicted."""
    told = predicted(ranks, path)
    place = directory / f"results-{path.stem}"
    done = pffbench_cli(
        "run", path, "--out", place, "--scratch", directory,
        ranks=ranks, cwd=directory, timeout=LONG, **how,
    )  # fmt: skip
    done = replace(done, out=place)
    assert done.status == 0, done.said
    found = counted(done)
    # What the installed libraries cannot do the ranks leave out.
    left_out = {one["case"] for one in done.record["left_out"]}
    assert told.keys() - found.keys() <= left_out
    told = {case: one for case, one in told.items() if case in found}
    differ = [
        f"{case} ({done.record['cases'][case]['parameters']}): {name} {amount['certainty']} "
        f"{amount['value']}, counted {found[case][name]}"
        for case, one in told.items()
        for name, amount in one["quantities"].items()
        if name in found[case] and wrong(amount, found[case][name])
    ]
    assert not differ, "\n".join(differ)
    for case, one in told.items():
        for name, sizes in one["sizes"].items():
            if sizes is not None:
                moved = name.replace("_requests", "")
                assert sum(s["requests"] for s in sizes) == found[case][name]
                nbytes = sum(s["bytes"] * s["requests"] for s in sizes)
                if moved == "read":
                    assert nbytes == found[case]["read_bytes"]
    return told


def test_formats_files_and_transfers(tmp_path):
    check(tmp_path, 2, FORMATS, 30)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_all_formats_in_all_files_and_transfers(tmp_path, ranks):
    check(tmp_path, ranks, FORMATS + MORE_FORMATS, 50)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_shapes_of_parts_and_kinds_of_chunks(tmp_path, ranks):
    check(tmp_path, ranks, SHAPES, 60)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [3, 4])
def test_groups_of_ranks_and_writers(tmp_path, ranks):
    check(tmp_path, ranks, THROUGH, 20)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_other_workloads(tmp_path, ranks):
    empty = {
        "backend": ["zarr", "tensorstore"], "chunks": [[1, 8, 8]],
        "settings": ["matched", "defaults"], "zarr": {"write_empty_chunks": [True, False]},
        "tensorstore": {"file_io_sync": [True, False]}, **sparse_file(tmp_path, (4, 32, 32)),
    }  # fmt: skip
    check(tmp_path, ranks, [*OTHERS, empty], 40)


@pytest.mark.full
def test_more_ranks_than_rows(tmp_path):
    cases = [{"backend": ["npy", "posix", "zarr"], "files": ["one", "per_rank"],
              "chunks": "auto", "shape": [5, 8]}]  # fmt: skip
    check(tmp_path, 4, cases, 6)


@pytest.mark.full
def test_sixteen_ranks(tmp_path):
    cases = [{"backend": ["hdf5", "zarr", "posix", "npy", "mpiio"], "chunks": "auto",
              "files": ["one", "per_rank"], "shape": [35, 8]}]  # fmt: skip
    check(tmp_path, 16, cases, 10)


#: Keys that are left out here, where each case runs once, in one environment.
_OF_TIME = {"environments", "launcher", "step_repetitions", "time_budget", "settle",
            "study", "max_repetitions"}  # fmt: skip
ONCE = {"counters": "calls", "repetitions": 1, "warmup": 0, "cold_reads": "compared",
        "unsupported": "skip"}  # fmt: skip
#: Most of what makes cases long and changes nothing of their laws.
_FEWER = {
    "datasets": 24,
    "datasets_per_rank": 2,
    "versions": 4,
    "granules": 2,
}
#: Of lists of these, the first and the middle one: they change no law of the counts.
_SAMPLED = {"codec", "compressor", "level", "shuffle", "source"}
#: Shapes with as many chunks and pieces as strace follows in minutes.
_SMALLER = {
    "vpic": {"shape_per_rank": [16384]},
    "chunking-vs-memmap-full": {"shape": [207, 217, 2600]},
    "zarr-benchmarks": {"shape": [260, 260, 130]},
    "zarr-benchmarks-full": {"shape": [300, 300, 200]},
}
#: Extents that are replaced: with each row its whole chunk is decoded, as long as the spectra are.
_SHORTER = {"hdf5-compression-tuning-full": {"717": "24"}}


def smaller(value, scale, key=""):
    """Return a part of an experiment with fewer arrays, and shorter ones."""
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if name not in _OF_TIME}
        return {name: smaller(one, scale, name) for name, one in kept.items()}
    if key in _FEWER and isinstance(value, int):
        return min(value, _FEWER[key])
    if not isinstance(value, list):
        return value
    if key in ("shape", "shape_per_rank") and all(isinstance(n, int) for n in value):
        return [math.ceil(value[0] * scale), *value[1:]]
    if key in _SAMPLED and len(value) > 2:
        value = [value[0], value[len(value) // 2]]
    return [smaller(one, scale, key) for one in value]


def small(directory, path, ranks, most):
    """Write a shipped experiment with arrays of so many bytes on a rank, as far as it allows."""
    text = path.read_text()
    for extent, shorter in _SHORTER.get(path.stem, {}).items():
        text = text.replace(extent, shorter)
    content = yaml.safe_load(text)
    content.setdefault("common", {}).update(_SMALLER.get(path.stem, {}))
    made, kept = directory / path.name, ({}, 1000)
    for halved in range(12):
        now = smaller(content, 2.0**-halved) | ONCE
        made.write_text(yaml.safe_dump(now))
        done = pffbench_cli("plan", made, "--ranks", ranks, "--json")
        assert not done.status or halved, done.said
        plans = [] if done.status else json.loads(done.stdout)["plans"]
        if not plans or len(plans[0]["left_out"]) > kept[1]:  # chunks that ranks would share
            made.write_text(yaml.safe_dump(kept[0]))
            break
        kept = now, len(plans[0]["left_out"])
        if max(case["cost"]["nbytes"] for case in plans[0]["cases"]) <= most * ranks:
            break
    return made


def named(path):
    return str(path.relative_to(REPOSITORY / "configs").with_suffix(""))


#: No law is known of the workloads of pffbench_studies, with which files of `paper` are read, nor
#: of jobs that are killed and of writes that race.
UNCOUNTED = (
    "workload: study_", "workload: versions", "NUMBER_DATASETS",
    "workload: survival", "unsafe: true",
)  # fmt: skip
COUNTED = [path for path in SHIPPED if not any(word in path.read_text() for word in UNCOUNTED)]
DEFAULT = REPOSITORY / "configs" / "default.yaml"


@pytest.mark.full
@pytest.mark.parametrize("path", COUNTED, ids=named)
def test_shipped_experiments(tmp_path, path):
    compare(tmp_path, 4, small(tmp_path, path, 4, 2**16), env=pausing())


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [DEFAULT, *(path for path in COUNTED if path.parent.name == "questions")], ids=named
)
def test_sixty_four_ranks_as_predicted(tmp_path, path):
    """On two cores some minutes for each, and 10 GiB of memory."""
    compare(tmp_path, 64, small(tmp_path, path, 64, 2**16), env=pausing())


@pytest.mark.slow
@pytest.mark.parametrize("backends", [["hdf5", "mpiio", "posix", "npy"], ["netcdf4"], ["zarr"]])
def test_256_ranks_as_predicted(tmp_path, backends):
    """Formats one by one: a rank's memory is that of the libraries that its run imports."""
    cases = [HYPERSLAB | case | {"backend": backends, "shape": [515, 8]} for case in (
        {"files": "one", "arrays": "shared", "transfer": BOTH, "chunks": [[1, 8], [2, 8]]},
        {"files": "per_rank", "chunks": [[1, 8], [2, 8]]},
        {"files": "one", "arrays": "shared", "chunks": "contiguous", "transfer": BOTH},
    )]  # fmt: skip
    compare(tmp_path, 256, write_experiment(tmp_path, cases=cases, **COUNTS), env=pausing())
