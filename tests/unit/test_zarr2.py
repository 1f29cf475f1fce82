"""The backend `zarr` where zarr-python 2 is installed, and how the files of an array are found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import zarr

from pffbench.backends import registry
from pffbench.backends.registry import backend_class
from pffbench.backends.zarr import settings as zarr_settings
from pffbench.backends.zarr.format import files_of, stored_part
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.parallel.decomposition import Box


def plan(tmp_path, case, *settings):
    path = Path(tmp_path, "some.yaml")
    common = {"workload": "codecs", "shape": [40, 40], "chunks": [10, 20], "source": "integers"}
    cases = [{**common, **case}]
    path.write_text(json.dumps({"name": "some", "roofline": False, "cases": cases}))
    return make_plan(load_experiment(str(path), list(settings)), 2)


@pytest.fixture
def with_version_2(monkeypatch):
    monkeypatch.setattr(registry, "installed", {"zarr": "2.18.7"}.get)
    monkeypatch.setattr(zarr_settings, "zarr_version", lambda: "2.18.7")


def test_zarr_with_zarr_python_2_has_format_2_alone(tmp_path, with_version_2):
    with pytest.raises(UserError, match=r"format: 3 needs zarr-python 3, and 2\.18\.7 is inst"):
        plan(tmp_path, {"backend": "zarr"})
    assert len(plan(tmp_path, {"backend": "zarr", "zarr": {"format": 2}}).cases) == 1
    assert registry.missing_library(backend_class("tensorstore")) is None


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"chunks": [15, 40], "cut_unit": [20, 20]}, "would be shared by ranks"),
        ({"transfer": "collective"}, "backend zarr cannot do transfer collective"),
        ({"codec": "szip"}, "szip"),
        ({"chunks": "contiguous"}, "always chunked"),
    ],
)
def test_chunks_and_codecs_are_ruled_as_those_of_zarr_python_3(
    tmp_path, with_version_2, case, reason
):
    with pytest.raises(UserError, match=reason):
        plan(tmp_path, {"backend": "zarr", "zarr": {"format": 2}, **case})


SEPARATORS = [
    (2, None, "."), (2, "/", "/"),
    (3, None, "/"), (3, {"name": "v2", "separator": "."}, "."),
    (3, {"name": "default", "separator": "."}, "."),
]  # fmt: skip


@pytest.mark.parametrize(("zarr_format", "encoding", "separator"), SEPARATORS)
def test_the_files_of_an_array_are_found_by_its_metadata(
    tmp_path, zarr_format, encoding, separator
):
    group = zarr.create_group(tmp_path / "x.zarr", zarr_format=zarr_format)
    told = {"name": "v2", "separator": encoding} if encoding == "/" else encoding
    array = group.create_array(
        "a", shape=(10, 9), chunks=(4, 5), dtype="u2", compressors=None, chunk_key_encoding=told
    )
    array[...] = np.arange(90).reshape(10, 9) + 1
    files = files_of(group.store.root, "a")
    assert (files.chunks, files.grid, files.chunks_in_a_file) == ((4, 5), (4, 5), 1)
    assert files.key((2, 1)) == array.metadata.encode_chunk_key((2, 1))
    assert separator in files.key((2, 1))
    path = group.store.root
    assert stored_part(path, "a") == stored_part(path, "a", Box((0, 0), (10, 9)))
    assert stored_part(group.store.root, "a", Box((3, 5), (2, 1))).nbytes == 2 * 40


def test_the_chunks_in_a_shard_are_counted(tmp_path):
    group = zarr.create_group(tmp_path / "x.zarr")
    array = group.create_array("a", shape=(16, 8), chunks=(4, 4), shards=(8, 8), dtype="u2")
    array[...] = 7
    files = files_of(group.store.root, "a")
    assert (files.chunks, files.grid, files.chunks_in_a_file) == ((4, 4), (8, 8), 4)
    assert stored_part(group.store.root, "a").count == 8
    assert stored_part(group.store.root, "a", Box((9, 1), (1, 1))).count == 4
