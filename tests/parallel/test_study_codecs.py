"""Study 4: codecs in all formats, the files looked at with other programs."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

from launch import run_experiment, sampled
from pffbench.data import make_source, seed_of_repetition
from sharing import word_of

pytestmark = [pytest.mark.parallel, pytest.mark.full]

RANKS = sampled([3, 1, 2, 4], 3)
SHAPE = [70, 33, 50]
#: 5 x 2 x 2 chunks, so four ranks do not hold equally many; padded at the end of each axis.
CHUNKS = [16, 20, 32]
TOGETHER = {"backend": ["hdf5", "netcdf4"], "transfer": "collective"}
ZARR = {"backend": ["zarr", "tensorstore"]}
#: What some cases ask for that some of their libraries cannot do is left out, with the reason.
CASES = [
    {**TOGETHER, "codec": ["none", "szip", "lz4"], "source": "smooth"},
    {**TOGETHER, "codec": ["gzip", "zstd"], "shuffle": "byte", "source": "integers",
     "decomposition": "block"},
    {**TOGETHER, "codec": "blosc", "compressor": ["zstd", "lz4hc"], "shuffle": ["byte", "bit"],
     "zip": ["compressor", "shuffle"], "source": "smooth"},
    {"backend": "netcdf4", "transfer": "collective", "codec": "zstd", "shuffle": "byte",
     "source": "smooth", "dtype": ["float32", "float64"]},
    # One slab of chunks: all ranks but one hold nothing.
    {**TOGETHER, "codec": "gzip", "source": "integers", "shape": [[5, 40, 40]],
     "chunks": [[5, 20, 20]], "cut_unit": [[5, 20, 20]]},
    {**ZARR, "codec": "zstd", "source": "integers", "shape": [[5, 40, 40]],
     "chunks": [[5, 20, 20]], "cut_unit": [[5, 20, 20]]},
    # Ranks share chunks, each of which is counted once.
    {**TOGETHER, "codec": "gzip", "source": "integers", "cut_unit": None},
    {**ZARR, "codec": ["none", "gzip"], "source": "smooth", "durability": "sync"},
    {"backend": "zarr", "codec": ["gzip", "zstd"], "shuffle": "byte", "source": "integers",
     "decomposition": "block", "zarr": {"format": [2, 3]}},
    {"backend": "zarr", "codec": "gzip", "shuffle": "byte", "source": "integers",
     "zarr": {"pipeline": "zarrs"}},
    {**ZARR, "codec": "blosc", "compressor": ["zstd", "lz4hc"], "shuffle": ["byte", "bit"],
     "zip": ["compressor", "shuffle"], "source": "smooth", "settings": ["matched", "defaults"],
     "zarr": {"format": [2]}, "tensorstore": {"format": [3]}},
    {**ZARR, "codec": "zstd", "source": "smooth", "chunks": [[8, 10, 16]],
     "zarr": {"shards": [CHUNKS]}, "tensorstore": {"shards": [CHUNKS]}},
    {"backend": "zarr", "codec": "blosc", "source": ["smooth", "integers"],
     "zarr": {"pipeline": "zarrs"}},
    {"backend": ["hdf5", "netcdf4", "tensorstore"], "files": "one", "arrays": "per_rank",
     "codec": "blosc",
     "source": "smooth", "transfer": ["independent", "collective"]},
    {"backend": ["hdf5", "netcdf4"], "files": "per_rank", "codec": "blosc",
     "source": "smooth"},
    {"backend": "hdf5", "transfer": "collective", "codec": ["gzip", "blosc"], "source": "smooth",
     "hdf5": {"api": "low_level"}},
    {"backend": "hdf5", "transfer": "collective", "codec": "lzf", "shuffle": ["none", "byte"],
     "source": "smooth"},
]  # fmt: skip
COMMON = {"workload": "hyperslab", "shape": SHAPE, "chunks": CHUNKS, "cut_unit": CHUNKS,
          "dtype": "uint16"}  # fmt: skip


@pytest.fixture(scope="module", params=RANKS)
def run(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("codecs")
    return run_experiment(
        directory, request.param, cases=CASES, common=COMMON, roofline=False, timeout=240
    )


def test_everything_is_valid(run):
    assert run.status == 0, run.said
    assert "\nVALID: every byte verified, " in run.stdout
    assert [n for n, entry in run.record["cases"].items() if entry["failure"]] == []


def test_what_is_left_out_is_no_library_s_fault(run):
    reasons = {left["reason"] for left in run.record["left_out"]}
    assert reasons == {
        "compressed data go into a shared HDF5 file only with transfer: collective",
        "backend tensorstore cannot do transfer collective (it can: independent)",
    }


def test_filtered_writes_were_collective(run):
    modes = {
        entry["transfer_facts"]["hdf5_io_mode"]
        for entry in run.record["cases"].values()
        if entry["options"].get("api") == "low_level"
    }
    assert modes == {"chunk collective"}


def write_counters(run):
    """Return what was counted in writing, by case and counter."""
    return {(c["case"], c["counter"]): c for c in run.counts if c["phase"] == "write"}


def test_every_chunk_is_counted_once(run):
    counted = write_counters(run)
    for name, entry in run.record["cases"].items():
        p = entry["parameters"]
        if word_of(p) != "one-shared":
            continue
        chunks = math.prod(-(-n // c) for n, c in zip(p["shape"], p["chunks"], strict=True))
        options = entry["options"]
        if options.get("shards"):
            unit = options["shards"]
            files = math.prod(-(-n // u) for n, u in zip(p["shape"], unit, strict=True))
            chunks = files * math.prod(unit) // math.prod(p["chunks"])
        stored = counted[name, "stored_chunks"]
        assert float(stored["total"]) == chunks, name
        bytes_stored = float(counted[name, "stored_bytes"]["total"])
        if p["codec"] == "none" and not options.get("shards") and not options.get("pipeline"):
            chunk = np.dtype(p["dtype"]).itemsize * math.prod(p["chunks"])
            assert bytes_stored == chunks * chunk


def test_the_same_codec_takes_the_same_bytes_in_all_formats(run):
    """Nearly: libraries bring their own builds of the codecs."""
    counted, found = write_counters(run), {}
    for name, entry in run.record["cases"].items():
        p = entry["parameters"]
        if (p["compressor"], word_of(p), p["settings"]) == ("zstd", "one-shared", "matched"):
            found[p["backend"]] = float(counted[name, "stored_bytes"]["total"])
    assert set(found) == {"hdf5", "netcdf4", "zarr", "tensorstore"}
    assert max(found.values()) <= 1.02 * min(found.values()), found


def test_a_shuffle_before_a_codec_is_the_same_work_in_all_formats(run):
    counted, found = write_counters(run), {}
    for name, entry in run.record["cases"].items():
        p = entry["parameters"]
        if (p["codec"], p["shuffle"], word_of(p)) == ("gzip", "byte", "one-shared"):
            found[name] = float(counted[name, "stored_bytes"]["total"])
            assert entry["stored_as"]["codec"] == "gzip 4 byte"
    assert len(found) >= 5
    assert max(found.values()) <= 1.02 * min(found.values()), found


def test_the_ratio_is_in_the_table(run):
    assert "| ratio |" in (run.out / "summary.md").read_text()


KEPT = [
    {**TOGETHER, "codec": ["gzip", "szip", "zstd"], "files": "one", "arrays": "shared"},
    {**TOGETHER, "codec": "blosc", "compressor": "zstd", "level": 3, "shuffle": "bit"},
    {"backend": "tensorstore", "codec": "blosc", "compressor": "zstd", "shuffle": "bit",
     "tensorstore": {"format": [2, 3]}},
    {"backend": "tensorstore", "chunks": [[8, 10, 16]], "codec": "gzip",
     "tensorstore": {"shards": [CHUNKS]}},
]  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return the files that three ranks left, by backend and codec, and the data in them."""
    directory = tmp_path_factory.mktemp("kept")
    common = {**COMMON, "source": "smooth", "cache": "separate"}
    done = run_experiment(
        directory, 3, "--stage", "write", cases=KEPT, common=common, roofline=False
    )
    assert done.status == 0, done.said
    (scratch,) = (directory / "scratch").iterdir()
    files = {}
    for name, entry in done.record["cases"].items():
        (place,) = scratch.glob(f"*-{name}")
        p, options = entry["parameters"], entry["options"]
        key = (p["backend"], p["codec"], options.get("format"), bool(options.get("shards")))
        (files[key],) = place.iterdir()
    values = np.empty(SHAPE, "u2")
    source = make_source("smooth", "uint16", seed=seed_of_repetition(1, 0))
    source.fill(values, 0, (0, 0, 0), tuple(SHAPE))
    return files, values


def text_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_h5dump_names_the_filters(kept):
    files, values = kept
    if shutil.which("h5dump") is None:
        pytest.skip("h5dump is not installed")
    expected = {"gzip": "COMPRESSION DEFLATE { LEVEL 4 }", "szip": "COMPRESSION SZIP",
                "zstd": "FILTER_ID 32015", "blosc": "FILTER_ID 32001"}  # fmt: skip
    for codec, words in expected.items():
        header = text_of("h5dump", "-pH", str(files["hdf5", codec, None, False]))
        assert words in header, codec
        assert "CHUNKED ( 16, 20, 32 )" in header
    with h5py.File(files["hdf5", "gzip", None, False], "r") as file:
        assert np.array_equal(file["array_000"][...], values)


def test_ncdump_names_the_filters(kept):
    files, values = kept
    expected = {"gzip": "_DeflateLevel = 4", "szip": '_Filter = "4,',
                "zstd": '_Filter = "32015,3"', "blosc": '_Filter = "32001,'}  # fmt: skip
    for codec, words in expected.items():
        header = text_of("ncdump", "-hs", str(files["netcdf4", codec, None, False]))
        assert words in header, (codec, header)
        assert "_ChunkSizes = 16, 20, 32" in header
    with h5py.File(files["netcdf4", "szip", None, False], "r") as file:
        assert np.array_equal(file["array_000"][...], values)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_python_reads_what_tensorstore_wrote(kept, zarr_format):
    files, values = kept
    path = files["tensorstore", "blosc", zarr_format, False]
    array = zarr.open_group(path, mode="r")["array_000"]
    assert array.metadata.zarr_format == zarr_format
    assert np.array_equal(array[...], values)
    metadata = {2: ".zarray", 3: "zarr.json"}[zarr_format]
    told = json.loads(Path(path, "array_000", metadata).read_text())
    codec = told["compressor"] if zarr_format == 2 else told["codecs"][-1]["configuration"]
    assert (codec["cname"], codec["clevel"]) == ("zstd", 5)
    assert codec["shuffle"] in (2, "bitshuffle")


def test_zarr_python_reads_the_shards_of_tensorstore(kept):
    files, values = kept
    array = zarr.open_group(files["tensorstore", "gzip", 3, True], mode="r")["array_000"]
    assert (array.chunks, array.shards) == ((8, 10, 16), tuple(CHUNKS))
    assert np.array_equal(array[...], values)
