"""What would fail in a collective call is found before it; a failed close harms no other case."""

import errno
from pathlib import Path

import numpy as np
import pytest

from faults import SLAB, finished, run_on_small_disks
from launch import Finished, mpiexec, run_experiment, sampled, write_experiment
from planted import planted
from sharing import keys_of

pytestmark = pytest.mark.parallel

TIMEOUT = ("--set", "hang_timeout=20 s")
GOOD = [SLAB | {"backend": backend, "transfer": "collective"} for backend in ("hdf5", "null")]


@pytest.mark.parametrize(
    ("backend", "layout"),
    sampled(
        [("hdf5", "one-shared"), ("netcdf4", "one-shared"), ("netcdf4", "one-per_rank")],
        ("netcdf4", "one-shared"),
    ),
)
def test_data_that_a_filter_gives_up_on_end_their_case_only(tmp_path, backend, layout):
    """They are too many to be looked at when the run is planned."""
    values = np.random.default_rng(3).integers(0, 2**32, (3, 1024, 2048), dtype="u4")
    values[:2] = 1
    np.save(tmp_path / "many.npy", values)
    bad = {"workload": "hyperslab", "backend": backend, **keys_of(layout), "codec": "blosc",
           "transfer": "collective", "source": "file", "file": str(tmp_path / "many.npy"),
           "chunks": [1, 256, 2048]}  # fmt: skip
    done = run_experiment(tmp_path, 2, *TIMEOUT, cases=[bad, *GOOD], repetitions=2)
    assert done.status == 1, done.said
    entries = done.record["cases"]
    failures = {name: entry["failure"] for name, entry in entries.items() if entry["failure"]}
    (failure,) = failures.values()
    assert failure["phase"] == "data"
    assert "codec blosc cannot make the chunk of 2097152 bytes at [" in failure["error"]
    assert "leaves such chunks as they are" in failure["error"]
    assert set(finished(done)) == {(c, i) for c in entries.keys() - failures for i in range(2)}


def test_data_of_a_generator_that_a_filter_gives_up_on_end_their_case_only(tmp_path):
    bad = {"workload": "hyperslab", "backend": "hdf5", "files": "one", "codec": "lzf",
           "transfer": "collective", "source": "integers", "dtype": "uint8", "shape": [64, 512],
           "chunks": [8, 512]}  # fmt: skip
    done = run_experiment(tmp_path, 3, *TIMEOUT, cases=[bad, *GOOD])
    assert done.status == 1, done.said
    (failure,) = [e["failure"] for e in done.record["cases"].values() if e["failure"]]
    assert "codec lzf cannot make the chunk" in failure["error"]


@pytest.mark.parametrize(
    ("backend", "number", "well", "size"),
    sampled(
        [
            ("hdf5", errno.ENOSPC, 2, 0), ("hdf5", errno.EIO, 4, 0),
            ("hdf5", errno.EFBIG, 0, 2**14),
            ("netcdf4", errno.ENOSPC, 2, 0),
            ("netcdf4", errno.EIO, 0, 2**14),
        ],
        ("hdf5", errno.EIO, 4, 0),
    ),
)  # fmt: skip
def test_a_close_that_fails_on_one_rank_does_not_end_later_cases(
    tmp_path, backend, number, well, size
):
    """HDF5 keeps the names of what it has freed, and would free the next file with them."""
    alone = {"workload": "hyperslab", "files": "per_rank"}
    bad = alone | {"backend": backend, "settings": "defaults", "chunks": [16, 256],
                   "shape_per_rank": [64, 256]}  # fmt: skip
    good = [alone | {"backend": backend, "shape_per_rank": [rows, 256]}
            for rows in (32, 16) for backend in ("hdf5", "netcdf4")]  # fmt: skip
    env = planted("defaults.", fail=number, well=well, rank=1, size=size)
    done = run_experiment(tmp_path, 2, cases=[bad, *good], repetitions=3, env=env)
    assert done.status == 1, done.said
    entries = done.record["cases"]
    failed = [name for name, entry in entries.items() if entry["failure"]]
    assert failed == [done.case(settings="defaults")]
    assert entries[failed[0]]["failure"]["rank"] == 1
    assert set(finished(done)) == {(c, i) for c in entries if c not in failed for i in range(3)}


@pytest.mark.full
def test_a_window_that_shared_memory_cannot_hold_ends_its_case_only(tmp_path):
    window = {"workload": "startup", "backend": "hdf5", "files": "one",
              "shape": [4096, 1024], "strategy": "node_leader_shared"}  # fmt: skip
    path = write_experiment(tmp_path, cases=[window, window | {"strategy": "root_bcast"}])
    out = tmp_path / "results"
    command = [*mpiexec(2), "python", "-m", "pffbench", "run", path, "--out", out, "--scratch",
               tmp_path, *TIMEOUT]  # fmt: skip
    (done,) = run_on_small_disks(tmp_path, {Path("/dev/shm"): "12m"}, (command, {}, {}))
    done = Finished(done.status, done.stdout, done.stderr, out)
    assert done.status == 1, done.said
    (failure,) = [e["failure"] for e in done.record["cases"].values() if e["failure"]]
    assert failure["phase"] == "shared memory"
    assert "/dev/shm has " in failure["error"]
