"""The program works without each of the packages that only entry points tie to it."""

import os
import shutil
from pathlib import Path

import pytest

from launch import run, run_experiment, sampled

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
ADDED = sorted(path.parent.name for path in (ROOT / "src").glob("pffbench_*/__init__.py"))
CASES = [
    {"workload": "hyperslab", "shape_per_rank": [8, 64], "backend": ["hdf5", "zarr"],
     "files": "per_rank"},
    {"workload": "datasets", "datasets": 4, "shape": [16], "backend": "netcdf4",
     "files": "per_rank"},
]  # fmt: skip
#: Where the copy is used, the modules of the checkout itself must not be found.
HIDE = """
import sys
sys.path[:] = [path for path in sys.path if path not in {paths!r}]
"""
#: Runs one command after another, which are separated by a line.
COMMANDS = """
import sys
from pffbench.cli import main
for command in " ".join(sys.argv[1:]).split(" | "):
    try:
        main(command.split())
    except SystemExit as ended:
        assert not ended.code, command
"""


@pytest.fixture(scope="module", params=sampled(ADDED, "pffbench_environments"))
def without(request, tmp_path_factory):
    """Return the environment variables of a copy of the code that lacks a package."""
    copy = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns(request.param)  # what is compiled stays so
    hidden = []
    for name in ("src", "analysis"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        hidden.append(str(ROOT / name))
    (copy / "sitecustomize.py").write_text(HIDE.format(paths=hidden))
    paths = [copy, copy / "src", copy / "analysis"]
    environment = {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    code = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is not None)"
    assert run(["-c", code, request.param], env=environment).status == 0, "the package is there"
    return environment


def test_plan_run_report_and_compare_work(without, tmp_path):
    done = run_experiment(tmp_path, None, cases=CASES, repetitions=2, env=without)
    assert done.status == 0, done.said
    shutil.copytree(done.out, tmp_path / "other")
    commands = (
        "plan experiment.yaml", "report results", "compare results other", "keys", "keys --schema",
        "--help", "report --help",
    )  # fmt: skip
    told = run(["-c", COMMANDS, " | ".join(commands)], cwd=tmp_path, env=without)
    assert told.status == 0, told.said
    assert "Traceback" not in told.said
    assert (done.out / "report.html").is_file()
    assert not (done.out / "published.md").exists()
