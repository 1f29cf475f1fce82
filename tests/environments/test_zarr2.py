"""The backend `zarr` where zarr-python 2 is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pffbench.backends import registry
from pffbench.backends.registry import backend_class
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench_environments import zarr2


def plan(tmp_path, case, *settings):
    path = Path(tmp_path, "some.yaml")
    common = {"workload": "hyperslab", "shape": [40, 40], "chunks": [10, 20]}
    common |= {"cut_unit": [10, 20], "source": "integers"}
    cases = [{**common, **case}]
    path.write_text(json.dumps({"name": "some", "roofline": False, "cases": cases}))
    return make_plan(load_experiment(str(path), list(settings)), 2)


@pytest.fixture
def with_version_2(monkeypatch):
    monkeypatch.setattr(registry, "installed", {"zarr": "2.18.7"}.get)
    monkeypatch.setattr(zarr2, "zarr_version", lambda: "2.18.7")
    backend_class.cache_clear()
    yield
    backend_class.cache_clear()


def test_zarr_with_zarr_python_2_has_format_2_alone(tmp_path, with_version_2):
    with pytest.raises(UserError, match=r"format: 3 needs zarr-python 3, and 2\.18\.7 is inst"):
        plan(tmp_path, {"backend": "zarr"})
    with pytest.raises(UserError, match=r"zarr\.workers needs zarr-python 3"):
        plan(tmp_path, {"backend": "zarr", "zarr": {"format": 2, "workers": 2}})
    assert len(plan(tmp_path, {"backend": "zarr", "zarr": {"format": 2}}).cases) == 1
    assert registry.missing_library(backend_class("tensorstore")) is None


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"chunks": [15, 40], "cut_unit": [[20, 20]]}, "would be shared by ranks"),
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
