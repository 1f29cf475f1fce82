"""A Zarr array whose metadata claim chunks without elements is named, and the others are read."""

import json

import numpy as np
import zarr

from launch import pffbench_here


def test_chunks_without_elements_are_named(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.create_array("good", data=np.arange(16, dtype="f4").reshape(4, 4), chunks=(2, 4))
    group.create_array("bad", shape=(4, 4), chunks=(2, 4), dtype="f4")
    file = tmp_path / "a.zarr" / "bad" / "zarr.json"
    metadata = json.loads(file.read_text())
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [0, 4]
    file.write_text(json.dumps(metadata))
    done = pffbench_here("init", "a.zarr", "-o", "a.yaml", cwd=tmp_path)
    assert done.status == 0, done.said
    if group["bad"].chunks == (0, 4):  # later versions of zarr-python read 1 for 0
        assert "its chunks [0, 4] hold no element" in done.stdout
    else:
        assert "chunks 1×4" in done.stdout
    assert "good" in (tmp_path / "a.yaml").read_text()
