"""A broken package with entry points is named, and keeps nobody from the rest of the program."""

import pytest

from drawn_runs import a_case, a_run
from launch import pffbench_cli

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
BROKEN = {
    "an error at import": "raise RuntimeError('out of order')",
    "missing attributes": "",
    "no package that exists": "import a_package_that_does_not_exist",
}


@pytest.fixture(params=BROKEN)
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
