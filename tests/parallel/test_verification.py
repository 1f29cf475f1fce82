"""What was read is what was written, the cache was in the state that the row says, or INVALID."""

import re
import shlex
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from launch import PROGRAMS, run_experiment, sparse_file
from sharing import keys_of

pytestmark = pytest.mark.parallel

ALL = ["hdf5", "netcdf4", "zarr", "mpiio", "posix"]
#: 128 KiB for each rank: enough pages that one of them is less than a hundredth.
BASE = {"workload": "hyperslab", "shape_per_rank": [32, 32, 128], "chunks": "auto"}
LAYOUTS = ["one-shared", "one-per_rank", "per_rank"]


def directory_on(disk, name):
    path = disk / name
    path.mkdir()
    return path


# Corruption


@pytest.fixture(scope="module")
def corrupted(disk):
    """Every backend, with one byte changed between writing and reading; rank 1 in file order."""
    directory = directory_on(disk, "corrupted")
    hook = shlex.join([sys.executable, str(PROGRAMS / "corrupt.py"), str(directory / "scratch")])
    cases = [
        BASE | {"backend": ALL, "files": ["one", "per_rank"], "cache": "dropped"},
        BASE | {"backend": ["hdf5", "netcdf4"], "files": "one", "arrays": "per_rank",
                "cache": "dropped",
                "settings": "defaults"},
        BASE | {"backend": "mpiio", "files": "one", "arrays": "per_rank", "cache": "warm"},
    ]  # fmt: skip
    return run_experiment(directory, 2, "--drop-hook", hook, cases=cases)


def test_a_changed_byte_makes_the_run_invalid(corrupted):
    assert corrupted.status == 1, corrupted.said
    assert "\nINVALID: " in corrupted.stdout
    assert "\nVALID: " not in corrupted.stdout
    assert corrupted.record["valid"] is False


def test_every_case_that_was_corrupted_is_invalid_and_no_other(corrupted):
    caches = {n: e["parameters"]["cache"] for n, e in corrupted.record["cases"].items()}
    for row in corrupted.rows:
        assert row["valid"] == str(caches[row["case"]] == "warm").lower()


def test_the_reason_names_case_rank_and_index(corrupted):
    for name, entry in corrupted.record["cases"].items():
        reasons = [r for r in corrupted.record["reasons"] if r.startswith(f"{name} ")]
        if entry["parameters"]["cache"] == "warm":
            assert reasons == []
            continue
        assert len(reasons) == 1, reasons
        assert re.search(r"repetition 0: rank \d", reasons[0]), reasons
        assert re.search(r"\(\d+, \d+, \d+\)|\[\d+, \d+, \d+\]", reasons[0]), reasons


@pytest.mark.parametrize(("layout", "backend"), [("one-shared", "mpiio"), ("per_rank", "posix")])
def test_raw_bytes_are_wrong_exactly_where_they_were_changed(corrupted, layout, backend):
    """The byte in the midst of the file is the first one of an element; ranks hold 32 rows."""
    name = corrupted.case(backend=backend, **keys_of(layout))
    (reason,) = (r for r in corrupted.record["reasons"] if r.startswith(f"{name} "))
    index = (32, 0, 0) if layout == "one-shared" else (16, 0, 0)
    rank = 1 if layout == "one-shared" else 0
    assert f"rank {rank}" in reason
    assert ", ".join(map(str, index)) in reason


def test_a_row_that_is_invalid_says_so_in_the_log(corrupted):
    assert corrupted.stdout.count("INVALID: ") >= len(corrupted.record["reasons"])


# Cache


@pytest.fixture(scope="module")
def cached(disk):
    """Every backend in every state of the cache on three ranks, parts of unequal size."""
    every = {"workload": "hyperslab", "shape": [70, 32, 128], "backend": ALL, "durability": "sync"}
    cases = [
        every | {"cache": "dropped", **keys_of(LAYOUTS)},
        every | {"cache": "shifted", "files": ["one", "per_rank"]},
        every | {"cache": "warm"},
    ]
    done = run_experiment(directory_on(disk, "cached"), 3, cases=cases)
    assert done.status == 0, done.said
    return done


def reads(run, **wanted):
    """Return the rows of reading of the cases with some parameters."""
    cases = {
        name
        for name, entry in run.record["cases"].items()
        if wanted.items() <= entry["parameters"].items()
    }
    rows = [row for row in run.rows if row["phase"] == "read" and row["case"] in cases]
    assert rows
    return rows


def test_dropped_means_that_nothing_is_resident(cached):
    rows = reads(cached, cache="dropped")
    assert {row["cache"] for row in rows} == {"dropped"}
    assert max(float(row["resident"]) for row in rows) < 0.01


def test_warm_means_that_everything_is_resident(cached):
    rows = reads(cached, cache="warm")
    assert {row["cache"] for row in rows} == {"warm"}
    assert min(float(row["resident"]) for row in rows) > 0.99


def test_shifted_is_measured_too(cached):
    rows = reads(cached, cache="shifted")
    assert {row["cache"] for row in rows} == {"shifted"}
    assert all(0 <= float(row["resident"]) <= 1 for row in rows)


def test_only_reads_have_a_cache_state(cached):
    others = [row for row in cached.rows if row["phase"] != "read"]
    assert {(row["cache"], row["resident"]) for row in others} == {("", "")}


def test_shifted_ranks_read_what_another_rank_wrote(cached):
    """The parts are 24, 24 and 22 rows; on one node a rank reads its right neighbour's."""
    with h5py.File(cached.out / "ranks.h5") as file:
        for name, entry in cached.record["cases"].items():
            group = file[name]
            phases = list(group.attrs["phases"])
            write, read = (group["bytes"][0, phases.index(p)] for p in ("write", "read"))
            assert list(write // (32 * 128 * 4)) == [24, 24, 22]
            shift = -1 if entry["parameters"]["cache"] == "shifted" else 0
            assert np.array_equal(read, np.roll(write, shift)), name


def test_the_cache_state_shows_in_the_summary(cached):
    for state in ("warm", "shifted", "dropped"):
        assert f"cache {state}" in (cached.out / "summary.md").read_text()
    assert "dropped" in (Path(cached.out) / "summary.csv").read_text()


def test_a_hook_that_fails_fails_the_case_and_says_why(disk):
    hook = "echo no right to drop caches >&2; exit 7"
    case = BASE | {"backend": "posix", "files": "per_rank", "cache": "dropped"}
    directory = directory_on(disk, "hook")
    done = run_experiment(directory, 2, "--drop-hook", hook, cases=[case])
    assert done.status == 1, done.said
    (entry,) = done.record["cases"].values()
    assert entry["failure"]["rank"] == 0
    assert "ended with 7: no right to drop caches" in entry["failure"]["error"]
    assert list((directory / "scratch").iterdir()) == []


# Chunks that are left out


def test_chunks_of_nothing_but_zeros_are_left_out_and_no_read_is_missed(tmp_path):
    """By default Zarr's libraries write no such chunk, so the kernel delivers fewer bytes."""
    done = run_experiment(
        tmp_path, None,
        cases=[{"workload": "hyperslab", "backend": ["zarr", "tensorstore"], "settings": "defaults",
                "chunks": [1, 8, 8], "codec": "none", **sparse_file(tmp_path, (4, 32, 32))}],
    )  # fmt: skip
    assert done.status == 0, done.said
    for entry in done.record["cases"].values():
        assert entry["disk"]["apparent"] < entry["cost"]["nbytes"]
