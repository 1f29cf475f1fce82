"""A broken package with entry points is named, and keeps nobody from the rest of the program."""

import pytest

from drawn_runs import a_case, a_run
from launch import pffbench_cli, sampled, write_experiment

ENTRY_POINTS = """
[pffbench.backends]
broken = broken_package:Backend
[pffbench.workloads]
unfinished = broken_package:Workload
[pffbench.commands]
broken = broken_package
[pffbench.reports]
broken = broken_package:Report
"""
ABSTRACT = """
from pffbench.backends.base import Backend as BackendBase
from pffbench.workloads.base import Workload as WorkloadBase
class Backend(BackendBase): name = "broken"
class Workload(WorkloadBase): name = "unfinished"
"""
BROKEN = {
    "an error at import": "raise RuntimeError('out of order')",
    "missing attributes": "",
    "an exit at import": "raise SystemExit(3)",
    "values that are no classes": "Backend = Workload = Report = 3",
    "classes without methods": ABSTRACT,
    "no package that exists": "import a_package_that_does_not_exist",
}


@pytest.fixture(
    params=sampled(BROKEN, "an error at import", "an exit at import", "classes without methods")
)
def plugged(tmp_path, request):
    """Install a package that is broken; return the environment in which it is found."""
    place = tmp_path / "packages"
    facts = place / "broken_package-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-package\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    (place / "broken_package.py").write_text(BROKEN[request.param])
    return place


@pytest.mark.parametrize("arguments", [["--help"], ["keys"], ["report", "RUN"], ["doctor"]])
def test_a_broken_package_is_named_and_left_out(plugged, tmp_path, monkeypatch, arguments):
    monkeypatch.setenv("PYTHONPATH", str(plugged))
    run = str(a_run(tmp_path / "run", [a_case("hdf5"), a_case("zarr")]))
    done = pffbench_cli(*(run if word == "RUN" else word for word in arguments), cwd=tmp_path)
    assert "Traceback" not in done.said, done.said
    assert done.status == 0 or arguments == ["doctor"], done.said
    if arguments != ["doctor"]:
        assert "pffbench: broken of broken_package, another package, is left out" in done.stderr
    assert done.stdout


@pytest.mark.parametrize("how", [{"backend": "broken"}, {"workload": "unfinished"}])
def test_a_broken_class_that_an_experiment_names_is_one_sentence(
    plugged, tmp_path, monkeypatch, how
):  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", str(plugged))
    path = write_experiment(tmp_path, cases=[{"workload": "hyperslab", "backend": "npy"} | how])
    done = pffbench_cli("plan", path, cwd=tmp_path)
    assert done.status == 2, done.said
    lines = [line for line in done.stderr.splitlines() if "left out" not in line]
    assert len(lines) == 1, done.said
    assert "of broken_package, another package, cannot be used" in lines[0]
