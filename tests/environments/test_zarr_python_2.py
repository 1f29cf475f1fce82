"""The backend `zarr` with zarr-python 2 in its own environment; zarr-python 3 reads its files."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
import zarr

from launch import REPOSITORY, cannot_run, run_experiment, sampled
from pffbench.data import make_source, seed_of_repetition
from sharing import word_of

pytestmark = [pytest.mark.parallel, pytest.mark.full]

SHAPE = [70, 33, 50]
#: 5 x 2 x 2 chunks, so ranks do not hold equally many; padded at the end of each axis.
CHUNKS = [16, 20, 32]
#: With this ranks hold whole chunks and share none.
CUT = {"cut_unit": CHUNKS}
CASES = [
    {**CUT, "codec": ["none", "gzip", "zstd"], "source": "integers", "durability": "sync"},
    {**CUT, "codec": "blosc", "compressor": ["zstd", "lz4hc"], "shuffle": ["bit", "byte"],
     "zip": ["compressor", "shuffle"], "settings": ["matched", "defaults"], "source": "integers"},
    {**CUT, "codec": "gzip", "source": "integers", "files": ["one", "per_rank"],
     "arrays": "per_rank"},
    # One slab of chunks: all ranks but one hold nothing.
    {"codec": "zstd", "source": "integers", "shape": [[5, 40, 40]], "chunks": [[5, 20, 20]],
     "cut_unit": [[5, 20, 20]]},
    {"workload": "datasets", "datasets": 5, "shape": [[9, 7]], "source": "integers",
     "files": "one", "arrays": "per_rank", "chunks": "auto", "settings": ["matched", "defaults"]},
]  # fmt: skip
COMMON = {"workload": "hyperslab", "backend": "zarr", "shape": SHAPE, "chunks": CHUNKS,
          "dtype": "uint16", "zarr": {"format": 2}}  # fmt: skip


@pytest.fixture(scope="module")
def python():
    """Return the Python of the environment with zarr-python 2."""
    found = REPOSITORY / ".envs" / "zarr-2" / "bin" / "python"
    if not found.exists():
        cannot_run(
            "no environment has zarr-python 2: setup/env zarr-2 zarr==2.18.7 numcodecs==0.15.1"
        )
    return found


@pytest.fixture(scope="module", params=sampled([1, 3], 3))
def run(request, python, tmp_path_factory):
    directory = tmp_path_factory.mktemp("zarr2")
    zeros = directory / "zeros.npy"
    np.save(zeros, np.zeros(SHAPE, "u2"))
    empty = {**CUT, "source": "file", "file": str(zeros), "codec": "none",
             "zarr": {"write_empty_chunks": [True, False]}}  # fmt: skip
    return run_experiment(
        directory, request.param, python=python, common=COMMON, cases=[*CASES, empty], counters=True
    )


def test_everything_is_valid_and_says_which_library_it_was(run):
    assert run.status == 0, run.said
    assert "\nVALID: every byte verified, " in run.stdout
    assert [n for n, entry in run.record["cases"].items() if entry["failure"]] == []
    libraries = run.record["provenance"]["software"]["libraries"]
    assert libraries["zarr"]["version"].startswith("2.")
    assert libraries["numcodecs"]["version"].startswith("0.15.")
    assert not any("error" in facts for facts in libraries.values())


def test_threads_of_blosc_are_one_in_matched_settings(run):
    told = {
        entry["parameters"]["settings"]: note
        for entry in run.record["cases"].values()
        for note in entry["notes"]
        if "threads of Blosc" in note
    }
    assert told["matched"].endswith("threads of Blosc: 1")
    assert set(told) == {"matched", "defaults"}


@pytest.mark.parametrize("variable", sampled([None, "1", "3"]))
def test_threads_of_blosc_that_are_noted_are_those_in_force(tmp_path, python, variable):
    """C-Blosc lets BLOSC_NTHREADS overrule the setting, in every call."""
    env = {} if variable is None else {"BLOSC_NTHREADS": variable}
    case = {"codec": "blosc", "settings": ["matched", "defaults"]}
    done = run_experiment(tmp_path, 1, python=python, env=env, common=COMMON, cases=[case])
    assert done.status == 0, done.said
    found = {}
    for entry in done.record["cases"].values():
        (note,) = [n.rpartition(" ")[2] for n in entry["notes"] if "threads of Blosc" in n]
        found[entry["parameters"]["settings"]] = (note, entry["transfer_facts"]["blosc_threads"])
    usual = variable or os.environ.get("BLOSC_NTHREADS") or str(min(8, os.cpu_count()))
    assert found == {"matched": ("1", "1"), "defaults": (usual, usual)}


def test_every_chunk_is_counted_once_and_empty_ones_can_be_left_out(run):
    counted = {(c["case"], c["counter"]): c for c in run.counts if c["phase"] == "write"}
    files = {}
    for name, entry in run.record["cases"].items():
        p = entry["parameters"]
        if p["workload"] != "hyperslab" or word_of(p) != "one-shared":
            continue
        chunks = math.prod(-(-n // c) for n, c in zip(p["shape"], p["chunks"], strict=True))
        if p["source"] != "file" or entry["options"]["write_empty_chunks"]:
            assert float(counted[name, "stored_chunks"]["total"]) == chunks, name
        if p["source"] == "file":
            files[entry["options"]["write_empty_chunks"]] = entry["disk"]["files"]
    assert files[False] < files[True]


@pytest.fixture(scope="module")
def kept(python, tmp_path_factory):
    """Return the stores that three ranks left, by codec."""
    directory = tmp_path_factory.mktemp("kept2")
    common = {**COMMON, "source": "integers", "cache": "separate"}
    cases = [{**CUT, "codec": ["none", "gzip"]},
             {**CUT, "codec": "blosc", "compressor": "zstd", "level": 3,
              "shuffle": "bit"}]  # fmt: skip
    done = run_experiment(
        directory, 3, "--stage", "write", python=python, cases=cases, common=common
    )
    assert done.status == 0, done.said
    (scratch,) = (directory / "scratch").iterdir()
    found = {}
    for name, entry in done.record["cases"].items():
        (place,) = scratch.glob(f"*-{name}")
        (found[entry["parameters"]["codec"]],) = place.iterdir()
    return found


def test_zarr_python_3_reads_what_2_wrote(kept):
    values = np.empty(SHAPE, "u2")
    source = make_source("integers", "uint16", seed=seed_of_repetition(1, 0))
    source.fill(values, 0, (0, 0, 0), tuple(SHAPE))
    assert zarr.__version__.startswith("3.")
    for codec, path in kept.items():
        array = zarr.open_group(path, mode="r")["array_000"]
        assert array.metadata.zarr_format == 2
        assert array.chunks == tuple(CHUNKS)
        assert np.array_equal(array[...], values), codec
        held = [file for file in Path(path, "array_000").iterdir() if file.name != ".zarray"]
        assert len(held) == 5 * 2 * 2
    blosc = zarr.open_group(kept["blosc"], mode="r")["array_000"].compressors[0]
    assert (blosc.cname, blosc.clevel, blosc.shuffle) == ("zstd", 3, 2)
