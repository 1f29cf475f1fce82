"""A broken package with entry points is named, and keeps nobody from the rest of the program."""

import pytest

from drawn_runs import a_case, a_run
from launch import pffbench_cli, pffbench_in_turn, sampled, write_experiment

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


COMMANDS = [("--help",), ("keys",), ("report", "run"), ("doctor", "--no-mpi")]
NAMED = {"backend": "broken", "workload": "unfinished"}


@pytest.fixture(
    scope="module",
    params=sampled(BROKEN, "an error at import", "an exit at import", "classes without methods"),
)
def ended(tmp_path_factory, request):
    """Install a package that is broken; return what commands say then, in one process."""
    parent = tmp_path_factory.mktemp("broken")
    place = parent / "packages"
    facts = place / "broken_package-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-package\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    (place / "broken_package.py").write_text(BROKEN[request.param])
    a_run(parent / "run", [a_case("hdf5"), a_case("zarr")])
    plans = []
    for key, name in NAMED.items():
        (parent / name).mkdir()
        case = {"workload": "hyperslab", "backend": "npy", key: name}
        plans.append(("plan", write_experiment(parent / name, cases=[case]).relative_to(parent)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(place))
        return pffbench_in_turn(*plans, *COMMANDS, cwd=parent)


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_broken_package_is_named_and_left_out(ended, arguments):
    done = ended[arguments]
    assert "Traceback" not in done.said, done.said
    assert done.status == 0 or arguments[0] == "doctor", done.said
    if arguments[0] != "doctor":
        assert "pffbench: broken of broken_package, another package, is left out" in done.stderr
    assert done.stdout


@pytest.mark.parametrize("name", NAMED.values())
def test_a_broken_class_that_an_experiment_names_is_one_sentence(ended, name):
    done = ended["plan", f"{name}/experiment.yaml"]
    assert done.status == 2, done.said
    lines = [line for line in done.stderr.splitlines() if "left out" not in line]
    assert len(lines) == 1, done.said
    assert "of broken_package, another package, cannot be used" in lines[0]


CHANGES = {
    "clocks that step back": "back = itertools.count(0, -1.0)\n"
    "        time.perf_counter = time.monotonic = lambda: next(back)",
    "a clock that jumps": "now = time.monotonic()\n        time.monotonic = lambda: now + 1e6",
    "clocks that are no functions": "time.perf_counter = time.monotonic = time.sleep = None",
    "a slow clock": "true = time.perf_counter\n        time.perf_counter = lambda: true() / 1000",
    "the recursion limit": "sys.setrecursionlimit(60)",
    "the hook of errors": "sys.excepthook = None",
}
BACKEND = """
import itertools, sys, time
from pffbench.backends.npy import Npy
{at_import}
class Backend(Npy):
    name = "odd"
    def create(self, *told, **more):
        {change}
        return super().create(*told, **more)
"""


def installed(place, change="pass", at_import=""):
    """Install a package with a backend that changes what all cases share."""
    facts = place / "odd_package-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-package\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[pffbench.backends]\nodd = odd_package:Backend\n")
    code = BACKEND.format(change=change, at_import=at_import)
    (place / "odd_package.py").write_text(code)


def an_experiment(tmp_path):
    case = {"workload": "hyperslab", "backend": ["odd", "npy"], "files": "per_rank"}
    return write_experiment(
        tmp_path, cases=[case | {"shape": [8, 8]}], repetitions=3, warmup=0, time_budget="1 h",
        hang_timeout="5 s",
    )  # fmt: skip


@pytest.mark.parametrize("what", sampled(CHANGES, "clocks that step back", "the recursion limit"))
def test_what_a_backend_changes_reaches_no_other_case(tmp_path, monkeypatch, what):
    installed(tmp_path / "packages", CHANGES[what])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    path, out = an_experiment(tmp_path), tmp_path / "out"
    done = pffbench_cli("run", path, "--out", out, "--scratch", tmp_path, out=out, cwd=tmp_path)
    assert "Traceback" not in done.said, done.said
    assert done.said.count(", which was restored") == 1
    failed = {c for c, entry in done.record["cases"].items() if entry["failure"]}
    assert all("odd" in case for case in failed)
    rest = [row for row in done.rows if row["case"] not in failed]
    assert {row["valid"] for row in rest} == {"true"}
    assert all(0 < float(row["seconds"]) < 60 for row in rest)
    assert len([row for row in rest if row["phase"] == "write" and "npy" in row["case"]]) == 3
    assert done.record["valid"] == (not failed)
    assert done.record["floor"]["tick"] > 0


def test_a_package_that_replaces_a_clock_when_imported_is_refused(tmp_path, monkeypatch):
    installed(tmp_path / "packages", at_import="time.monotonic = lambda: 0.0")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    done = pffbench_cli("plan", an_experiment(tmp_path), cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert done.status == 2
    assert "of odd_package, another package, cannot be used" in line
    assert "replaces time.monotonic" in line
