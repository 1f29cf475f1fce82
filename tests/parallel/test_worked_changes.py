"""The changes that CONTRIBUTING.md describes, made in a copy of the code, and their files counted.

One copy has all of them, and one run shows what they do.
"""

import csv
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from capable import FORMATS
from launch import REPOSITORY, environment, pffbench_cli, run_experiment, sampled
from pffbench.backends.registry import backend_class
from pffbench.geometry.maps import DecompositionMap
from pffbench.workloads.map_files import write_npz
from sharing import word_of

pytestmark = pytest.mark.parallel

CASE = {"shape_per_rank": [4, 8], "workload": "hyperslab", "backend": "hdf5", "durability": "sync"}
#: For each change the files that it takes, with texts in them and what replaces each of these.
PHASE = {
    "phases.py": (
        '    Phase("reopen", "update",',
        '    Phase("stat", "write", "files", "asking for the size"),\n'
        '    Phase("reopen", "update",',
    ),
    "workloads/write_read.py": (
        "                observed.stored_as = describe_store(repetition)\n",
        "                observed.stored_as = describe_store(repetition)\n"
        '    with place.clock.phase("stat"):\n        files_below([repetition.path])\n',
    ),
}
KEY_OF_A_PHASE = {
    "record/repetitions.py": (
        "    idle_seconds: float = 0.0\n",
        "    idle_seconds: float = 0.0\n    #: Mean own time.\n    own_mean: float = 0.0\n",
    ),
    "record/reduction.py": (
        "        own_min=_number(float(own.min())),\n",
        "        own_min=_number(float(own.min())),\n        own_mean=float(own.mean()),\n",
    ),
}
COLUMN = {
    "results/quantities.py": (
        "#: Facts of a case, which",
        "def _worked(found: PhaseSummary) -> float:\n"
        '    """Return the part of the time in which files are opened and closed."""\n'
        "    opening = ('create', 'close', 'open', 'close_read')\n"
        "    some = [mean(s.values()) for name, s in found.parts.items() if name in opening]\n"
        "    return sum(some) / mean(found.by_round.values())\n\n\n"
        "#: Facts of a case, which",
        '    Quantity(\n        "cpu_s",\n',
        '    Quantity(\n        "worked_part", _worked, "Time of opening and closing files.",\n'
        '        float, TotalColumn("worked%", lambda _, p: Cell(f"{_worked(p):.0%}")),\n'
        '    ),\n    Quantity(\n        "cpu_s",\n',
    ),
}
OPTION = {
    "run/options.py": (
        "    tables: bool\n",
        "    tables: bool\n    worked: str | None\n",
        '    parser.add_argument(\n        "--tables",\n',
        '    parser.add_argument("--worked", metavar="TEXT", help="a text (example: --worked x)")\n'
        '    parser.add_argument(\n        "--tables",\n',
    ),
    "run/recording.py": (
        '    _enter_stage(record, options.stage or "all", record.topology.hosts)\n',
        '    _enter_stage(record, options.stage or "all", record.topology.hosts)\n'
        "    record.remarks.append(str(options.worked))\n",
        '    before.status, before.valid, before.finished = "running", None, None\n',
        '    before.status, before.valid, before.finished = "running", None, None\n'
        "    before.remarks.append(f'again {options.worked}')\n",
    ),
}
WORKLOAD = {
    "workloads/neighbours.py": (REPOSITORY / "tests" / "worked" / "neighbours.py").read_text(),
    "workloads/registry.py": (
        "_BUILT_IN = {\n",
        '_BUILT_IN = {\n    "neighbours": "pffbench.workloads.neighbours:Neighbours",\n',
    ),
}
BOTH = ["independent", "collective"]
#: A pattern that knows nothing of files.
PATTERN = {
    "workloads/planes.py": (REPOSITORY / "tests" / "worked" / "planes.py").read_text(),
    "workloads/registry.py": (
        "_BUILT_IN = {\n",
        '_BUILT_IN = {\n    "planes": "pffbench.workloads.planes:Planes",\n',
    ),
}
#: The model of a backend, with another name.
MODEL = backend_class("npy")
MINE = inspect.getsource(inspect.getmodule(MODEL)).replace('name = "npy"', 'name = "worked"')
BACKEND = {
    "backends/worked.py": MINE,
    "backends/registry.py": (
        "_BUILT_IN = {\n",
        f'_BUILT_IN = {{\n    "worked": "pffbench.backends.worked:{MODEL.__name__}",\n',
    ),
}
#: The changes, and the number of files that each takes.
CHANGES = (
    (PHASE, 2), (KEY_OF_A_PHASE, 2), (COLUMN, 1), (OPTION, 2), (WORKLOAD, 2), (PATTERN, 2),
    (BACKEND, 2),
)  # fmt: skip


def apply(change, package):
    """Make a change: new files, and texts that are replaced."""
    for name, texts in change.items():
        path = package / name
        if isinstance(texts, str):
            assert not path.exists()
            path.write_text(texts)
            continue
        text = path.read_text()
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        path.write_text(text)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a copy of the tree in which all changes are made."""
    root = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("*.egg-info")  # what is compiled and not changed stays so
    for name in ("src", "analysis", "tests"):
        shutil.copytree(REPOSITORY / name, root / name, ignore=ignored)
    for path in REPOSITORY.iterdir():
        if not path.name.startswith(".") and not (root / path.name).exists():
            (root / path.name).symlink_to(path)
    for change, files in CHANGES:
        assert len(change) == files
        apply(change, root / "src" / "pffbench")
    return root


def path_of(copy):
    """Return the environment variable by which the copy is found first."""
    return {"PYTHONPATH": os.pathsep.join(str(copy / name) for name in ("src", "analysis"))}


@pytest.fixture(scope="module")
def run(copy, tmp_path_factory):
    """Run an old workload, the new one and the new backend on two ranks."""
    cases = [CASE, CASE | {"backend": "worked"},
             {"workload": "neighbours", "shape": [4, 8], "files": "one",
              "arrays": ["per_rank", "shared"],
              "backend": ["hdf5", "worked"]}]  # fmt: skip
    done = run_experiment(
        tmp_path_factory.mktemp("run"), 2, "--worked", "after the upgrade", "--tables", cases=cases,
        counters=True, env=path_of(copy),
    )  # fmt: skip
    assert done.status == 0, done.said
    return done


def python(copy, *command, **how):
    """Run a Python program with the copy's code to its end, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False,
        env=environment(**path_of(copy)), timeout=600, **how,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def tables(run):
    """Return the rows of the tables of `summary.md`, the heads among them."""
    lines = (run.out / "summary.md").read_text().splitlines()
    return [line for line in lines if line.startswith("|")]


def test_a_phase_is_timed_in_its_place_and_is_in_the_summary(run):
    case = next(row["case"] for row in run.rows if row["phase"] == "sync")
    phases = [row["phase"] for row in run.rows if row["case"] == case]
    assert phases.index("stat") == phases.index("sync") + 1
    with (run.out / "summary.csv").open() as file:
        assert any(",stat," in line for line in file)
    assert any("stat" in head for head in tables(run))


def test_a_key_of_a_phase_is_filled(run):
    for row in run.rows:
        assert float(row["own_min"]) <= float(row["own_mean"] or 0) <= float(row["own_max"])


def test_a_column_of_the_tables_is_everywhere(copy, run):
    assert "worked%" in run.stdout
    assert any("worked%" in head for head in tables(run))
    with (run.out / "summary.csv").open(newline="") as file:
        shares = [float(row["worked_part"]) for row in csv.DictReader(file)]
    assert any(0 < share < 1 for share in shares)
    results = json.loads((run.out / "results.json").read_text())
    assert {"worked_part"} <= results["cases"][0]["phases"][0].keys()
    python(copy, "-m", "pffbench", "report", run.out)
    assert "worked%" in (run.out / "report.html").read_text()
    write = "from reference import pages; print(dict(pages())['reference/columns.md'])"
    page = python(copy, "-c", write, cwd=copy / "docs" / "tools")
    assert "| `worked_part` | `worked%` | Time of opening and closing files. |" in page


#: A map of four processes, each of which has stretches of an array in the places of the others.
INTERLEAVED = DecompositionMap(
    (6, 7), np.full(4, 3), np.array([0, 16, 32, 4, 20, 36, 8, 24, 40, 12, 28, 41]),
    np.array([4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 4, 1]),
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_a_declared_pattern_is_valid_in_all_files_at_the_first_try(copy, tmp_path, ranks):
    """Groups of ranks, lists, maps and strides are nothing that a workload has to know."""
    common = {"workload": "planes", "shape": [7, 4, 5], "backend": FORMATS, "transfer": BOTH}
    group = {"files": {"count": min(2, ranks)}}
    every = {"files": ["one", "per_rank", group["files"]], "arrays": ["shared", "per_rank"]}
    writers = {"rearranger": ["gather", "box", "chunk_owner"], "writers": [{"count": 1}, "all"]}
    arrays = [{"name": "a", "shape": [7, 5]}, {"name": "b", "shape": [3, 4, 6], "count": 2}]
    listed = {"shape": None, "datasets": arrays}
    write_npz(tmp_path / "map.npz", INTERLEAVED)
    of_map = {"shape": None, "decomposition": {"file": "map.npz"}}
    cases = [
        common | every,
        common | writers,
        common | group | writers | {"chunks": [3, 2, 2]},
        common | every | listed,
        common | every | of_map,
    ]
    done = run_experiment(tmp_path, ranks, cases=cases, repetitions=1, env=path_of(copy))
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    parameters = [entry["parameters"] for entry in done.record["cases"].values()]
    ran = {(p["backend"], word_of(p)) for p in parameters}
    words = ["one-shared", "one-per_rank", "per_rank"]
    words += [f"count_{min(2, ranks)}-{arrays}" for arrays in ("shared", "per_rank")]
    for backend in ("hdf5", "netcdf4", "zarr"):
        assert ran >= {(backend, word) for word in words}
    for key in ("datasets", "decomposition"):
        kinds = [p for p in parameters if not isinstance(p.get(key), int | None)]
        some = {(p["backend"], word_of(p)) for p in kinds}
        assert some >= {(backend, "per_rank") for backend in FORMATS}
        assert some >= {("hdf5", word) for word in words}
    ways = {(p["backend"], p["rearranger"]) for p in parameters}
    assert ways >= {(b, r) for b in ("hdf5", "netcdf4") for r in writers["rearranger"]}
    assert ("zarr", "chunk_owner") in ways


def test_an_option_is_in_the_record(run):
    assert "after the upgrade" in run.record["remarks"]
    assert "after the upgrade" in (run.out / "summary.md").read_text()


@pytest.mark.parametrize(
    "environments", sampled([[], [{"name": "here", "python": sys.executable}]], [])
)
def test_an_option_is_in_the_record_of_a_resumed_run_too(copy, tmp_path, environments):
    """In runs of one environment and of several; the first start is stopped by its own rule."""
    case = {"workload": "datasets", "datasets": 2, "shape": [[8]], "backend": "null",
            "null": {"delays": {"write": 1.5}}}  # fmt: skip
    more = {"environments": environments, "launcher": "env"} if environments else {}
    stopped = run_experiment(
        tmp_path, None, "--worked", "first", "--max-time", "1 s", cases=[case], repetitions=2,
        env=path_of(copy), **more,
    )  # fmt: skip
    assert stopped.status == 3, stopped.said
    trust = ["--trust"] if environments else []
    again = pffbench_cli(
        "run", "--resume", stopped.out, "--max-time", "none", "--worked", "second", *trust,
        out=stopped.out, env=path_of(copy),
    )  # fmt: skip
    assert again.status == 0, again.said
    assert {"first", "again second"} <= set(again.record["remarks"])


def test_a_workload_runs_and_brings_a_column(run):
    cases = {n: e for n, e in run.record["cases"].items() if ".neighbours." in n}
    assert {entry["parameters"]["backend"] for entry in cases.values()} == {"hdf5", "worked"}
    assert {word_of(entry["parameters"]) for entry in cases.values()} == {"one-per_rank"}
    (reason,) = {left["reason"] for left in run.record["left_out"]}
    assert (
        reason == "workload neighbours needs files: one, arrays: per_rank and transfer: independent"
    )
    assert any("read calls made" in head for head in tables(run))


def test_a_backend_runs(run):
    assert "worked" in {row["backend"] for row in run.rows}
    assert run.record["valid"] is True


@pytest.mark.full
def test_the_copys_own_tests_pass(copy):
    """No list of names in the tests has to be changed, nor a document."""
    names = ("descriptions", "results_document", "summary", "registry", "documents")
    files = [copy / "tests" / "unit" / f"test_{name}.py" for name in names]
    python(copy, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *files, cwd=copy)


@pytest.mark.full
def test_a_backend_of_another_package_runs_the_matrix(tmp_path):
    """It takes two files: its module and the entry point.

    A run of a backend that an entry point names is in tests/studies/test_memmap.py.
    """
    noted = tmp_path / "another-1.0.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    entry = f"[pffbench.backends]\nworked = another:{MODEL.__name__}\n"
    (noted / "entry_points.txt").write_text(entry)
    (tmp_path / "another.py").write_text(MINE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-m", "parallel",
         str(Path(__file__).with_name("test_matrix.py")), "-k", "[3]"],
        capture_output=True, text=True, check=False, timeout=600,
        env=environment(PYTHONPATH=str(tmp_path), PFFBENCH_TEST_BACKENDS="worked"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
