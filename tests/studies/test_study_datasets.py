"""Study 1 as it was done, and corrected: each thing that it did is really done, and seen.

Findings that are times (growth with the number of datasets, what printing takes) are not asserted
here, but measured in real runs and told in docs/evidence/studies.md.
"""

import json
import subprocess
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

from launch import PROGRAMS, pffbench_here, run_experiment, sampled, start_experiment
from pffbench.data import make_source, seed_of_repetition

pytestmark = [pytest.mark.parallel, pytest.mark.full]

#: 3 divides nothing evenly, 1 is a serial program.
RANKS = sampled([3, 1, 2, 4], 3)

FORMATS = ["hdf5", "netcdf4", "zarr"]
SHAPE = [9]
DATASETS = 5
BASE = {"workload": "study_datasets", "datasets": DATASETS, "shape": SHAPE}
AS_PUBLISHED = BASE | {
    "files": "per_rank", "settings": "defaults", "order": "interleaved",
    "read_sink": "print", "read_copy": True,
    "netcdf4": {"dimensions": "unlimited_shared", "enddef": "implicit"},
}  # fmt: skip
CASES = [
    AS_PUBLISHED | {"backend": [*FORMATS, "posix"]},
    BASE | {"backend": FORMATS, "files": "one", "arrays": ["per_rank", "shared"],
            "order": "interleaved",
            "transfer": ["independent", "collective"], "read_sink": "print", "read_copy": True},
    BASE | {"backend": FORMATS, "files": ["one", "per_rank"], "arrays": "per_rank",
            "order": "interleaved",
            "attributes": 3},
    # Ranks have unequal numbers of datasets, and with 4 of them one has no part of any.
    BASE | {"backend": "netcdf4", "files": "one", "arrays": ["per_rank", "shared"],
            "transfer": "collective",
            "shape": [3, 3], "order": ["create_first", "interleaved"],
            "netcdf4": {"dimensions": ["unlimited_shared", "unlimited_private"],
                        "enddef": ["explicit", "implicit"]},
            "zip": ["netcdf4.dimensions", "netcdf4.enddef"]},
]  # fmt: skip


@pytest.mark.parametrize("ranks", RANKS)
def test_all_ways_are_valid(tmp_path, ranks):
    done = run_experiment(tmp_path, ranks, cases=CASES, timeout=300)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert not any(entry["failure"] for entry in done.record["cases"].values())
    backends = [e["parameters"]["backend"] for e in done.record["cases"].values()]
    assert {b: backends.count(b) for b in set(backends)} == {
        "hdf5": 5 + 2, "netcdf4": 5 + 2 + 8, "zarr": 3 + 2, "posix": 1,
    }  # fmt: skip
    for row in done.rows:
        if row["phase"] in ("write", "read"):
            assert int(row["bytes"]) == DATASETS * 9 * 4, row
        if row["phase"] in ("set_attributes", "get_attributes"):
            assert int(row["operations"]) == DATASETS * 3, row


def test_a_copy_is_read_and_is_resident(disk, tmp_path):
    cases = [AS_PUBLISHED | {"backend": FORMATS}, BASE | {"backend": FORMATS, "read_copy": True}]
    scratch = disk / "copied"  # other tests have directories there
    scratch.mkdir()
    done = run_experiment(tmp_path, 2, "--scratch", scratch, cases=cases)
    assert done.status == 0, done.said
    reads = [row for row in done.rows if row["phase"] == "read"]
    assert len(reads) == 6
    for row in reads:
        assert row["cache"] == "warm"
        assert float(row["resident"]) > 0.99
    assert not any(scratch.iterdir())  # the copies are removed as files are


def test_what_is_read_is_printed(tmp_path):
    case = AS_PUBLISHED | {"backend": "hdf5", "shape": [2, 3]}
    told = {"program": (PROGRAMS / "printing.py",), "seed": 3}
    done = start_experiment(tmp_path, 2, cases=[case], **told).finish()
    assert done.status == 0, done.said
    source = make_source("uniform", "float32", seed_of_repetition(3, 0))
    for rank, numbers in enumerate([range(2), range(2, 5)]):
        printed = (tmp_path / f"printed-{rank}.txt").read_text()
        assert printed == "".join(f"{_data(source, n, (2, 3))}\n" for n in numbers)
    (entry,) = done.record["cases"].values()
    assert any("printed within the time" in note for note in entry["notes"])
    assert "printed within the time" in (done.out / "summary.md").read_text()


def _data(source, number, shape):
    out = np.empty(shape, np.float32)
    source.fill(out, number, (0,) * len(shape), shape)
    return out


# The files


def write_files(directory, **case):
    """Let a job write without reading, and return the directory of each case's files."""
    directory.mkdir()
    common = BASE | {"cache": "separate", "settings": "defaults"}
    done = run_experiment(directory, 3, "--stage", "write", common=common, cases=[case])
    assert done.status == 0, done.said
    scratch = Path(done.record["scratch"])
    return {name: scratch / f"0000-{name}" for name in done.record["cases"]}, done


@pytest.mark.parametrize("dimensions", ["fixed", "unlimited_shared", "unlimited_private"])
def test_dimensions_are_in_the_file_as_asked(tmp_path, dimensions):
    places, done = write_files(
        tmp_path / "files", backend="netcdf4", transfer="collective",
        netcdf4={"dimensions": dimensions},
    )  # fmt: skip
    (name,) = places
    with netCDF4.Dataset(places[name] / "shared.nc") as file:
        unlimited = [d.isunlimited() for d in file.dimensions.values()]
        assert {v.shape for v in file.variables.values()} == {tuple(SHAPE)}
    wanted = {"fixed": [False], "unlimited_shared": [True], "unlimited_private": [True] * DATASETS}
    assert unlimited == wanted[dimensions]
    told = done.record["cases"][name]["stored_as"]["more"].get("dimensions")
    wanted = None if dimensions == "fixed" else f"{len(unlimited)} unlimited for 5 variables"
    assert told == wanted


def test_both_orders_leave_the_same_files(tmp_path):
    places, done = write_files(
        tmp_path / "files", backend=FORMATS, files="per_rank",
        order=["create_first", "interleaved"],
    )  # fmt: skip
    for backend in FORMATS:
        first, second = (
            places[done.case(backend=backend, order=order)]
            for order in ("create_first", "interleaved")
        )
        names = sorted(p.relative_to(first) for p in first.rglob("*"))
        assert names == sorted(p.relative_to(second) for p in second.rglob("*"))
        assert len(names) >= 3
        for name in names:
            if (first / name).is_file():
                assert _content(first / name) == _content(second / name), name


def _content(path):
    """Return what a file holds: where it lies in an HDF5 file depends on the order."""
    if path.suffix not in (".h5", ".nc"):
        return path.read_bytes()
    with h5py.File(path) as file:
        return {
            name: (d.shape, d.dtype, d.chunks, d.maxshape, d.fillvalue, d[...].tobytes())
            for name, d in file.items()
        }


def test_what_unlimited_dimensions_take_on_disk_is_foreseen(tmp_path):
    case = {"backend": "netcdf4", "files": "per_rank", "settings": "defaults",
            "netcdf4": {"dimensions": "unlimited_shared"}}  # fmt: skip
    done = run_experiment(tmp_path, 1, cases=[BASE | case | {"datasets": 2, "shape": [32, 32]}])
    assert done.status == 0, done.said
    (entry,) = done.record["cases"].values()
    taken = entry["disk"]["apparent"]
    assert taken > 1000 * 2 * 32 * 32 * 4  # two chunks of 16 MiB
    assert taken <= entry["cost"]["space"] <= 1.2 * taken


# What is refused


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"netcdf4": {"dimensions": "unlimited_shared"}}, "needs transfer: collective"),
        ({"netcdf4": {"enddef": "implicit"}}, "needs transfer: collective"),
        ({"netcdf4": {"dimensions": "unlimited_private"}, "chunks": "contiguous",
          "transfer": "collective"}, "are always chunked"),
        ({"order": "random"}, "order"),
        ({"read_sink": "paper"}, "read_sink"),
    ],
    ids=str,
)  # fmt: skip
def test_impossible_cases_are_refused(tmp_path, case, said):
    path = tmp_path / "experiment.yaml"
    entry = BASE | {"backend": "netcdf4"} | case
    path.write_text(json.dumps({"name": "test", "roofline": False, "cases": [entry]}))
    done = pffbench_here("plan", path, "--ranks", "2")
    assert done.status == 2
    assert said in done.stderr


def test_a_study_that_is_not_there_is_refused_with_those_that_are():
    program = Path(__file__).resolve().parents[2] / "setup" / "study"
    done = subprocess.run([program, "nothing", "2"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "file-format-testing\n" in done.stderr
