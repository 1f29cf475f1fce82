"""How the chunks of an array are counted, from its metadata and files."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from pffbench.backends.zarr.format import files_of, stored_chunks

ENCODINGS = [
    (2, None), (2, {"name": "v2", "separator": "/"}),
    (3, None), (3, {"name": "v2", "separator": "."}), (3, {"name": "default", "separator": "."}),
]  # fmt: skip


@pytest.mark.parametrize(("zarr_format", "encoding"), ENCODINGS)
def test_the_chunks_of_an_array_are_counted_whatever_the_names_of_its_files(
    tmp_path, zarr_format, encoding
):
    group = zarr.create_group(tmp_path / "x.zarr", zarr_format=zarr_format)
    array = group.create_array(
        "a", shape=(10, 9), chunks=(4, 5), dtype="u2", compressors=None, chunk_key_encoding=encoding
    )
    array[...] = np.arange(90).reshape(10, 9) + 1
    array.attrs["units"] = "m"
    files = files_of(group.store.root, "a")
    assert (files.chunks, files.grid, files.chunks_in_a_file) == ((4, 5), (4, 5), 1)
    stored = stored_chunks(group.store.root, "a")
    assert (stored.count, stored.nbytes) == (6, 6 * 40)


def test_the_chunks_in_a_shard_are_counted(tmp_path):
    group = zarr.create_group(tmp_path / "x.zarr")
    array = group.create_array("a", shape=(16, 8), chunks=(4, 4), shards=(8, 8), dtype="u2")
    array[...] = 7
    files = files_of(group.store.root, "a")
    assert (files.chunks, files.grid, files.chunks_in_a_file) == ((4, 4), (8, 8), 4)
    assert stored_chunks(group.store.root, "a").count == 8
