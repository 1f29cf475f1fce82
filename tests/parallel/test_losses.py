"""`unsafe: true`: rows that ranks lose who write to one array together, read by plain libraries."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

from launch import environment, lines_of, mpiexec, pffbench_cli, pffbench_here, run_experiment
from pffbench.results.summary import summarise
from planted import run_first

pytestmark = pytest.mark.parallel

#: Each rank has four rows, and a chunk or shard of eight has the rows of two ranks.
COMMON = {"workload": "hyperslab", "shape_per_rank": [4, 64], "chunks": [8, 64]}
UNSAFE = {"unsafe": True, "repetitions": 2, "warmup": 0, "roofline": False}
SHARD = {"chunks": [4, 64], "zarr": {"shards": [8, 64]}}
#: A version of Zarr in which all ranks have read a chunk before the first of them writes it.
LATE = """
import asyncio
from zarr.storage import LocalStore
as_it_was = LocalStore.set
async def set(self, key, value, *more, **given):
    if "c/" in key:
        await asyncio.sleep(1.0)
    return await as_it_was(self, key, value, *more, **given)
LocalStore.set = set
"""
#: A version of Zarr that writes nothing but zeros.
ZEROS = """
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore
as_it_was = LocalStore.set
async def set(self, key, value, *more, **given):
    if "c/" in key:
        value = default_buffer_prototype().buffer.from_bytes(bytes(len(value)))
    return await as_it_was(self, key, value, *more, **given)
LocalStore.set = set
"""
#: Two ranks that write their rows with zarr-python alone.
PLAIN = """
import sys
import numpy as np
import zarr
from mpi4py import MPI
comm = MPI.COMM_WORLD
rows = slice(4 * comm.rank, 4 * comm.rank + 4)
if comm.rank == 0:
    zarr.create_array(sys.argv[1], shape=(8, 64), chunks=(8, 64), dtype="f4")
comm.barrier()
array = zarr.open_array(sys.argv[1], mode="r+")
array[rows] = np.ones((4, 64), "f4")
"""


def run(directory, ranks, cases, *options, **how):
    return run_experiment(directory, ranks, *options, cases=cases, common=COMMON, **UNSAFE | how)


def counted(out, name="lost_rows"):
    """Return a count of each repetition, by case."""
    found = {}
    for one in lines_of(out):
        counts = {c["name"]: c["total"] for c in one.get("counts", ())}
        found.setdefault(one["case"], []).append(counts.get(name))
    return found


def lost_rows(array):
    """Count the rows of a plain array that hold nothing but the fill value."""
    return int((~np.asarray(array).any(axis=1)).sum())


def plainly_read(path):
    """Return the array of a store, read by the library of its format alone."""
    if path.suffix == ".zarr":
        return zarr.open_group(str(path), mode="r")["array_000"][:]
    if path.suffix == ".nc":
        with netCDF4.Dataset(path) as file:
            return file.variables["array_000"][:].data
    with h5py.File(path) as file:
        return file["array_000"][:]


def test_a_run_of_unsafe_ways_ends_in_a_table_of_losses_and_never_in_times(tmp_path):
    cases = [
        {"backend": "zarr"},
        {"backend": "zarr", **SHARD},
        {"backend": "zarr", "chunks": [4, 64]},
    ]
    done = run(tmp_path, 4, cases, env=run_first(tmp_path / "first", LATE))
    assert done.status == 0, done.said
    answer = summarise(done.out).answer
    assert answer.word == "LOSSES"
    assert answer.headline.startswith("2 of 3 ways lose rows without an error")
    # Of the two ranks of a chunk the one that writes last has its rows there.
    assert [row[1:5] for row in answer.rows] == [
        ("8 of 16", "2 of 2", "none", "refuses"),
        ("8 of 16", "2 of 2", "none", "refuses"),
        ("0 of 16", "0 of 2", "none", "accepts"),
    ]
    assert done.record["valid"] is False
    assert not done.record["reasons"]
    assert "VALID" not in done.stdout.replace("INVALID", "")
    assert "median seconds" not in (done.out / "summary.md").read_text()
    for command in (["compare", done.out, done.out], ["scaling", done.out]):
        refused = pffbench_here(*command, cwd=tmp_path)
        assert refused.status != 0
        assert "unsafe" in refused.said
    assert "losses counted" in pffbench_here("runs", tmp_path).stdout
    assert pffbench_here("report", done.out).status == 0
    page = (done.out / "report.html").read_text()
    assert "8 of 16" in page
    assert "MiB/s" not in re.sub(r"copy [^<]*? in memory", "", page)  # the speed of memory


def test_the_losses_are_those_that_plain_readers_find(tmp_path):
    cases = [
        {"backend": "zarr"}, {"backend": "zarr", **SHARD}, {"backend": "tensorstore"},
        {"backend": ["hdf5", "netcdf4"]},
        {"backend": ["hdf5", "netcdf4"], "codec": "gzip", "transfer": "collective"},
    ]  # fmt: skip
    common = COMMON | {"cache": "separate", "durability": "sync"}
    how = {"unsupported": "skip", "cases": cases, "common": common, **UNSAFE}
    late = run_first(tmp_path / "first", LATE)
    written = run_experiment(tmp_path, 2, "--stage", "write", env=late, **how)
    assert written.status == 0, written.said
    found = {}
    for path in sorted((tmp_path / "scratch").rglob("shared.*")):
        number, case = path.parent.name.split("-", 1)
        found.setdefault(case, {})[int(number)] = lost_rows(plainly_read(path))
    there = json.loads((written.out / "run.json").read_text())
    (written.out / "run.json").write_text(json.dumps(there | {"wrote_on": ["another-host"]}))
    done = pffbench_cli(
        "run", "--resume", written.out, "--stage", "read", ranks=2, out=written.out, cwd=tmp_path
    )
    assert done.status == 0, done.said
    read = {case: some[-UNSAFE["repetitions"] :] for case, some in counted(written.out).items()}
    assert read == {case: [some[i] for i in sorted(some)] for case, some in found.items()}
    # What the ranks of TensorStore lose depends on their time.
    lost = {case: set(some) for case, some in read.items()}
    for backend, rows in {"zarr": {4}, "hdf5": {0}, "netcdf4": {0}}.items():
        assert all(lost[case] == rows for case in lost if case.startswith(backend)), lost


def test_what_hdf5_and_netcdf_refuse_or_lose_is_a_row_and_the_other_cases_run_on(tmp_path):
    cases = [
        {"backend": ["hdf5", "netcdf4"], "codec": "gzip"},
        {"backend": "hdf5", "codec": "lzf", "transfer": "collective"},
        {"backend": ["hdf5", "netcdf4"], "codec": "gzip", "transfer": "collective"},
        {"backend": ["hdf5", "netcdf4"], "transfer": ["independent", "collective"]},
    ]  # fmt: skip
    done = run(tmp_path, 2, cases)
    assert done.status == 0, done.said
    failed = {
        (p["backend"], p["codec"], p["transfer"]): entry["failure"]["phase"]
        for entry in done.record["cases"].values()
        if (p := entry["parameters"]) and entry["failure"]
    }
    assert failed.pop(("hdf5", "gzip", "independent")) == "write"
    assert failed.pop(("netcdf4", "gzip", "independent")) == "preparation"
    # HDF5 1.10 writes LZF data that do not shrink without an error, and cannot read them.
    unreadable = ["reading"] if h5py.version.hdf5_version_tuple < (1, 14) else []
    assert list(failed) == [("hdf5", "lzf", "collective")] * len(unreadable)
    assert list(failed.values()) == ["read"] * len(unreadable)
    answer = summarise(done.out).answer
    assert (
        answer.headline == f"no row was lost in 9 ways, {2 + len(unreadable)} fail with an error."
    )
    fine = [row for row in answer.rows if row[3] == "none"]
    assert (
        sorted(row[3] for row in answer.rows) == ["none"] * len(fine) + unreadable + ["writing"] * 2
    )
    assert [row[1:3] for row in fine] == [("0 of 8", "0 of 2")] * (7 - len(unreadable))
    assert any("independent" in note and "filters" in note for note in answer.notes)


def test_a_plain_program_loses_the_rows_and_ends_with_status_0(tmp_path):
    command = [*mpiexec(2), sys.executable, "-c", PLAIN, str(tmp_path / "plain")]
    env = environment(**run_first(tmp_path / "first", LATE))
    env["OMPI_MCA_btl"] = "^tcp"  # no words of a network
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert lost_rows(zarr.open_array(str(tmp_path / "plain"), mode="r")[:]) == 4


def test_a_way_that_every_run_accepts_must_lose_nothing_here_too(tmp_path):
    cases = [{"backend": "zarr", "chunks": [4, 64]}, {"backend": "hdf5"}]
    done = run(tmp_path, 2, cases, env=run_first(tmp_path / "first", ZEROS))
    assert done.status == 1
    assert "INVALID: zarr.hyperslab" in done.said
    assert "LOSSES" not in done.said


@pytest.mark.parametrize(
    "other",
    [{"starts": 2}, {"counters": "calls"}, {"environments": [{"name": "a", "python": "b"}]}],
)
def test_losses_are_counted_in_a_run_of_one_start_without_a_tracer(tmp_path, other):
    done = run(tmp_path, None, [{"backend": "zarr", "chunks": [4, 64]}], **other)
    assert done.status == 2
    assert f"unsafe cannot be used with {next(iter(other))}" in done.stderr
    assert not (tmp_path / "out").exists()
