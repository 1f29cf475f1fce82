"""Backends of other packages: found by name, listed, and refused in the same words as ours."""

import os
from collections.abc import Mapping
from typing import ClassVar

import pytest

from drawn_runs import USUAL, a_run
from launch import REPOSITORY, pffbench_cli, pffbench_in_turn, run_experiment, write_experiment
from pffbench.backends import registry
from pffbench.backends.null import Null
from pffbench.plugins import load

PLUGIN = """
from pffbench.backends.null import Null

class Mine(Null):
    name = "mine"
    summary = "does nothing, in a package of its own"
"""
CASE = {"workload": "hyperslab", "shape_per_rank": [16]}


@pytest.fixture
def with_plugin(tmp_path, monkeypatch):
    """Install a package with a backend, as pip would leave it there."""
    site = tmp_path / "site"
    noted = site / "plugin-1.0.dist-info"
    noted.mkdir(parents=True)
    (site / "plugin.py").write_text(PLUGIN)
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (noted / "entry_points.txt").write_text("[pffbench.backends]\nmine = plugin:Mine\n")
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def test_a_backend_of_another_package_is_listed_and_runs_with_its_options(with_plugin, tmp_path):
    assert "in a package of its own" in pffbench_cli("keys", timeout=300).stdout
    cases = [{**CASE, "backend": ["null", "mine"], "mine": {"delays": {"write": 0.001}}}]
    run = run_experiment(tmp_path, 2, cases=cases)
    assert run.status == 0, run.said
    delays = {c["parameters"]["backend"]: c["options"] for c in run.record["cases"].values()}
    assert delays["mine"]["delays"] == {"write": 0.001}


def test_the_library_of_a_backend_of_another_package_is_listed_by_doctor(with_plugin, tmp_path):
    plugin = PLUGIN + '    libraries = ("a_library",)\n'
    (tmp_path / "site" / "plugin.py").write_text(plugin)
    said = " ".join(pffbench_cli("doctor", "--no-mpi", timeout=300, cwd=tmp_path).stdout.split())
    _, _, absent = said.partition("a-library, which is optional, is not installed")
    assert absent.startswith(" so: the backend mine cannot run")


WRONG = [
    ({"backend": "min"}, "unknown backend 'min' (did you mean 'mine'? allowed:"),
    ({"backend": "null", "mine": 3}, "mine: the options of a backend are a mapping"),
    ({"backend": "null", "hdf5": [1, 2]}, "hdf5: the options of a backend are a mapping"),
    ({"backend": "null", "hdf6": {"x": 1}}, "hdf6: unknown key (did you mean 'hdf5'?"),
    ({"backend": "null", "workload": "hyperslap"}, "did you mean 'hyperslab'?"),
    ({"backend": 3}, "unknown backend 3"),
]


def test_a_wrong_name_is_refused_with_all_that_there_are(with_plugin, tmp_path):
    commands = []
    for number, (case, _) in enumerate(WRONG):
        (tmp_path / f"{number}").mkdir()
        path = write_experiment(tmp_path / f"{number}", cases=[{**CASE, **case}])
        commands.append(("plan", path))
    ended = pffbench_in_turn(*commands).values()
    for done, (case, said) in zip(ended, WRONG, strict=True):
        assert done.status == 2, case
        assert said in done.stderr, case


def test_a_run_that_another_package_starts_is_refused_in_a_sentence_without_it(tmp_path):
    """An installation without entry points is found before that of the checkout."""
    (tmp_path / "site" / "pffbench.egg-info").mkdir(parents=True)
    env = {"PYTHONPATH": f"{tmp_path / 'site'}:{REPOSITORY / 'src'}"}
    file = write_experiment(tmp_path, environments=[{"name": "a", "python": "x"}], cases=[
        {**CASE, "backend": "null"},
    ])  # fmt: skip
    known = a_run(tmp_path / "known", USUAL, environments={"a": {}})
    for what in ([file], ["--resume", known, "--trust"]):
        done = pffbench_cli("run", *what, env=env, cwd=tmp_path)
        assert done.status == 2, done.said
        assert "needs the package pffbench_environments, which is not installed" in done.stderr
        assert done.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"experiment.yaml", "known", "site"}


class OtherSeries(Null):
    """A backend of another package, for another series of the library of a built-in one."""

    name = "zarr"
    series: ClassVar[Mapping[str, tuple[int, ...]]] = {"zarr": (2,)}


@pytest.mark.parametrize(
    ("version", "added", "name", "lacking"),
    [
        ("2.18.7", True, "OtherSeries", None),
        ("2.18.7", False, "Zarr", "needs zarr 3, and 2.18.7 is installed"),
        ("3.1.6", True, "Zarr", None),
        ("4.0.0", True, "Zarr", "needs zarr 3, and 4.0.0 is installed"),
    ],
)
def test_a_backend_of_a_built_in_name_is_used_for_another_series_of_the_library(
    monkeypatch, version, added, name, lacking
):
    plugins = {"zarr": "other:OtherSeries"} if added else {}
    monkeypatch.setattr(registry, "installed", {"zarr": version}.get)
    monkeypatch.setattr(registry, "plugins", lambda _group: plugins)
    monkeypatch.setattr(
        "pffbench.plugins.load", lambda where: OtherSeries if "other" in where else load(where)
    )
    kind = registry.backend_class.__wrapped__("zarr")
    assert kind.__name__ == name
    assert registry.missing_library(kind) == lacking
