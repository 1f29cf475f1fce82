"""Settings of zarr-python under mpiexec: uneven parts, and pipelines that do not do their work."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr

from launch import PROGRAMS, run, run_experiment, write_experiment
from pffbench.data import make_source

pytestmark = pytest.mark.parallel

RANKS = 3
#: Cut over three ranks into 3, 4 and 4 rows.
SHAPE = (11, 8)
UNEVEN = {
    "workload": "hyperslab", "backend": "zarr", "files": "one", "shape": list(SHAPE),
    "distribution": "balanced", "chunks": "rank_part", "dtype": "int32", "source": "integers",
    "zarr": {"chunk_grid": "rectilinear"},
}  # fmt: skip
HAS_GRID = tuple(map(int, zarr.__version__.split(".")[:2])) >= (3, 4)


def test_uneven_parts_have_a_chunk_each_that_plain_zarr_reads(tmp_path):
    experiment = write_experiment(
        tmp_path, unsupported="refuse", question="library zarrs",
        cases=[UNEVEN | {"zarr": {"chunk_grid": "rectilinear", "pipeline": ["library", "zarrs"]}}],
    )  # fmt: skip
    done = run([PROGRAMS / "write_store.py", "pffbench", tmp_path, experiment], ranks=RANKS)
    if not HAS_GRID:
        assert done.status != 0
        assert "rectilinear needs zarr-python 3.4 or newer (Python 3.12 or newer)" in done.said
        assert f"and {zarr.__version__} is installed" in done.said
        return
    assert done.status == 0, done.said
    wanted = np.empty(SHAPE, "int32")
    make_source("integers", "int32", seed=1).fill(wanted, 0, (0, 0), SHAPE)
    for pipeline in ("library", "zarrs"):
        store = tmp_path / pipeline / "shared.zarr"
        with zarr.config.set({"array.rectilinear_chunks": True}):
            array = zarr.open_group(store, mode="r")["array_000"]
            assert array.write_chunk_sizes == ((3, 4, 4), (8,))
            assert np.array_equal(array[...], wanted)
        sizes = sorted(file.stat().st_size for file in (store / "array_000" / "c").rglob("*/*"))
        assert sizes == [3 * 32, 4 * 32, 4 * 32]


def test_a_run_with_settings_is_valid_and_says_what_was_in_force(tmp_path):
    """Uneven parts, shards and threads; what the installed version cannot do is left out."""
    done = run_experiment(
        tmp_path, RANKS, warmup=1,
        cases=[
            UNEVEN,
            {**UNEVEN, "chunks": [1, 8], "zarr": {"pipeline": ["library", "zarrs"]}},
            {**UNEVEN, "shape": [12, 8], "chunks": [2, 4], "durability": "sync",
             "zarr": {"shards": [[4, 8]], "pipeline": ["library", "fused"], "workers": 2}},
        ],
    )  # fmt: skip
    assert done.status == 0, done.said
    entries = {name: e for name, e in done.record["cases"].items() if not e["raw"]}
    assert len(entries) == (5 if HAS_GRID else 3)
    facts = [(e["options"]["pipeline"], e["transfer_facts"]) for e in entries.values()]
    pipelines = {asked: found["pipeline"] for asked, found in facts}
    assert pipelines["library"] == "BatchedCodecPipeline"
    assert pipelines["zarrs"] == "ZarrsCodecPipeline"
    grids = {found["chunk_grid"] for _, found in facts}
    assert grids == ({"regular", "rectilinear"} if HAS_GRID else {"regular"})
    reasons = [left["reason"] for left in done.record["left_out"]]
    assert len(reasons) == (0 if HAS_GRID else 2)
    assert all("or newer (Python 3.12 or newer)" in reason for reason in reasons)
    sharded = done.case(pipeline="library", workers=2)
    (closed,) = (row for row in done.phases(sharded)["close"] if row["warmup"] == "false")
    # Three shards and two descriptions; the store, the array, c and its directories 0, 1 and 2.
    assert (int(closed["disk_files"]), int(closed["disk_inodes"])) == (5, 11)
    counted = {
        (row["repetition"], row["phase"], row["counter"])
        for row in done.counts if row["case"] == sharded
    }  # fmt: skip
    assert {("1", "write", "threads"), ("0", "read", "memory_added")} <= counted


def test_a_pipeline_that_falls_back_is_a_failed_case(tmp_path):
    """Planted: zarrs cannot do the array and would leave it to zarr-python."""
    program = tmp_path / "planted.py"
    program.write_text(
        "import sys\n"
        "import zarrs.pipeline\n"
        "zarrs.pipeline.get_codec_pipeline_impl = lambda *_, **__: None\n"
        "from pffbench.cli import main\n"
        "sys.exit(main())\n"
    )
    case = {**UNEVEN, "shape": [12, 8], "zarr": {"pipeline": ["library", "zarrs"]}}
    done = run_experiment(tmp_path, None, program=(program,), cases=[case])
    assert done.status == 1, done.said
    assert "FAILED" in done.said
    failed = json.dumps(done.record["cases"][done.case(pipeline="zarrs")]["failure"])
    assert "zarr.pipeline: zarrs would leave arrays like this one to zarr-python" in failed
    assert not done.record["cases"][done.case(pipeline="library")]["failure"]
