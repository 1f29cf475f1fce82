"""The bytes on disk of cases that name a codec: each chunk is counted once."""

from __future__ import annotations

import pytest

from launch import run_experiment
from sharing import word_of

pytestmark = pytest.mark.parallel

#: Of 5 x 2 chunks; three ranks have 3 rows each, so that chunks of 2 rows have data of two ranks.
SHAPE, CHUNKS, CHUNK_BYTES = [9, 6], [2, 3], 12
COMMON = {"workload": "hyperslab", "shape": SHAPE, "chunks": CHUNKS, "dtype": "int16"}
TOGETHER = {**COMMON, "transfer": "collective"}
#: Chunks that are longer than a step: each step writes a part of them.
IN_STEPS = {
    **COMMON,
    "shape": [8, 6],
    "steps": 4,
    "chunks": [2, *CHUNKS],
    "cut_unit": CHUNKS,
    "codec": "none",
}
CASES = [
    {**TOGETHER, "backend": ["hdf5", "netcdf4"], "codec": ["gzip", "none"]},
    {**TOGETHER, "backend": "hdf5", "codec": "gzip", "rearranger": "gather"},
    {**TOGETHER, "backend": "hdf5", "codec": "gzip", "rearranger": "box", "cut_unit": CHUNKS,
     "writers": {"count": 2}},
    {**COMMON, "backend": ["zarr", "tensorstore"], "codec": ["gzip", "none"], "cut_unit": CHUNKS},
    {**COMMON, "backend": "hdf5", "codec": "none", "files": {"count": 1}},
    {**COMMON, "backend": ["hdf5", "zarr"], "codec": "none", "files": "one", "arrays": "per_rank"},
    {**COMMON, "backend": ["hdf5", "zarr"], "codec": "gzip", "files": "per_rank"},
    {"workload": "datasets", "backend": "zarr", "codec": "none", "files": "one",
     "arrays": "per_rank", "datasets": 4,
     "shape": [4, 6], "chunks": CHUNKS, "dtype": "int16"},
    {**IN_STEPS, "backend": ["hdf5", "zarr"], "files": ["one", "per_rank"]},
    {**IN_STEPS, "backend": "netcdf4", "transfer": "collective"},
    {**COMMON, "backend": "hdf5"},
]  # fmt: skip


def chunks_of(parameters):
    """Return the number of chunks of a case; None where it names no codec."""
    if parameters["codec"] == "auto":
        return None
    if parameters["workload"] == "datasets":
        return 16
    if parameters["steps"]:
        return 16
    return 12 if word_of(parameters) in ("one-per_rank", "per_rank") else 10


def test_each_chunk_is_counted_once_also_if_ranks_share_it(tmp_path):
    run = run_experiment(tmp_path, 3, cases=CASES, repetitions=1, warmup=0, roofline=False)
    assert run.status == 0, run.said
    assert len(run.record["cases"]) == 22
    counted = {(c["case"], c["counter"]): float(c["total"]) for c in run.counts}
    for name, entry in run.record["cases"].items():
        chunks = chunks_of(entry["parameters"])
        assert counted.get((name, "stored_chunks")) == chunks, name
        if entry["parameters"]["codec"] == "none":
            size = CHUNK_BYTES * (2 if entry["parameters"].get("steps") else 1)
            assert counted[name, "stored_bytes"] == chunks * size, name
