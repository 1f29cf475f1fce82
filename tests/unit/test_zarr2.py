"""The backend for zarr-python 2 where zarr-python 3 is, and what is refused of it."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import zarr

from pffbench.backends import registry
from pffbench.backends.registry import backend_class, backend_names
from pffbench.backends.zarr import settings as zarr_settings
from pffbench.backends.zarr.format import files_of, stored_part
from pffbench.commands.backends import main as print_backends
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


def test_zarr2_is_refused_where_zarr_python_3_is(tmp_path):
    with pytest.raises(UserError) as refused:
        plan(tmp_path, {"backend": "zarr2"})
    assert f"backend zarr2 needs zarr 2, and {zarr.__version__} is installed" in str(refused.value)
    assert "setup/bootstrap --zarr2" in str(refused.value)


def test_zarr_with_zarr_python_2_has_format_2_alone(tmp_path, with_version_2):
    with pytest.raises(UserError, match=r"format: 3 needs zarr-python 3, and 2\.18\.7 is inst"):
        plan(tmp_path, {"backend": "zarr"})
    assert len(plan(tmp_path, {"backend": "zarr", "zarr": {"format": 2}}).cases) == 1
    assert len(plan(tmp_path, {"backend": "zarr2"}).cases) == 1
    assert registry.missing_library(backend_class("tensorstore")) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"format": 3}, r"zarr2\.format: 3 is not allowed \(allowed: 2\)"),
        ({"shards": [20, 20]}, r"zarr2\.shards: unknown key .*format, blosc_threads"),
        ({"pipeline": "zarrs"}, r"zarr2\.pipeline: unknown key"),
        ({"blosc_threads": 0}, r"zarr2\.blosc_threads"),
    ],
)
def test_what_zarr_python_2_cannot_do_is_refused(tmp_path, with_version_2, options, reason):
    with pytest.raises(UserError, match=reason) as refused:
        plan(tmp_path, {"backend": "zarr2", "zarr2": options})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"chunks": [15, 40], "cut_unit": [20, 20]}, "would be shared by ranks"),
        ({"transfer": "collective"}, "backend zarr2 cannot do transfer collective"),
        ({"codec": "szip"}, "szip"),
        ({"chunks": "contiguous"}, "always chunked"),
    ],
)
def test_chunks_and_codecs_are_ruled_as_those_of_zarr_python_3(
    tmp_path, with_version_2, case, reason
):
    with pytest.raises(UserError, match=reason):
        plan(tmp_path, {"backend": "zarr2", **case})


def test_the_listing_tells_what_cannot_run_and_no_empty_list(capsys):
    assert print_backends(Namespace(names=[])) == 0
    told = capsys.readouterr().out
    assert "zarr2: Zarr directory store through zarr-python 2" in told
    assert "(cannot run: needs zarr 2, and 3." in " ".join(told.split())
    assert "(of )" not in told
    codecs = {name: part.split("codecs")[1].splitlines()[0].strip()
              for name in backend_names()
              for part in told.split("\n\n") if part.startswith(f"{name}:")}  # fmt: skip
    assert codecs["null"] == "blosc, gzip, none, zstd"
    assert codecs["zarr2"] == codecs["zarr"]


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
