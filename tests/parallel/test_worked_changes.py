"""The changes that CONTRIBUTING.md describes, each made in two files of a copy of the code."""

import shutil
from pathlib import Path

import pytest

import pffbench
from launch import run_experiment

pytestmark = pytest.mark.parallel

CASE = {"workload": "hyperslab", "shape_per_rank": [4, 8], "backend": "hdf5", "durability": "sync"}
PHASE = {
    "phases.py": (
        '    Phase("reopen", "update",',
        '    Phase("stat", "write", "files", "asking for the size"),\n'
        '    Phase("reopen", "update",',
    ),
    "workloads/write_read.py": (
        '    with repetition.step("inspection"):\n        _inspect(repetition)\n',
        '    with repetition.step("inspection"):\n        _inspect(repetition)\n'
        '    with clock.phase("stat"):\n        Path(repetition.path(0)).stat()\n',
    ),
}
COLUMN = {
    "record/samples.py": (
        "    new_memory: Natural | None = None\n",
        "    new_memory: Natural | None = None\n    own_mean: float = math.nan\n",
    ),
    "run/recorder.py": (
        "            own_min=float(own.min()),\n",
        "            own_min=float(own.min()),\n            own_mean=float(own.mean()),\n",
    ),
}
OPTION = {
    "run/options.py": (
        "    fom: bool\n",
        "    fom: bool\n    note: str | None\n",
        '    parser.add_argument(\n        "--progress",\n',
        '    parser.add_argument("--note", metavar="TEXT", help="a remark (example: --note x)")\n'
        '    parser.add_argument(\n        "--progress",\n',
    ),
    "run/recording.py": (
        "    out, warmup = Path(spec.out), spec.plan.experiment.warmup\n",
        "    record.remarks.append(str(spec.options.note))\n"
        "    out, warmup = Path(spec.out), spec.plan.experiment.warmup\n",
    ),
}


def changed(directory, change):
    """Copy the package and make a change; return the directory that holds the copy."""
    assert len(change) == 2
    source = directory / "source"
    package = source / "pffbench"
    shutil.copytree(Path(pffbench.__file__).parent, package)
    for name, texts in change.items():
        text = (package / name).read_text()
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (package / name).write_text(text)
    return str(source)


def run_changed(directory, change, *told):
    path = changed(directory, change)
    done = run_experiment(directory, 2, *told, cases=[CASE], env={"PYTHONPATH": path})
    assert done.status == 0, done.said
    return done


def test_a_phase(tmp_path):
    done = run_changed(tmp_path, PHASE)
    phases = [row["phase"] for row in done.rows]
    assert phases.index("stat") == phases.index("sync") + 1
    with (done.out / "summary.csv").open() as file:
        assert any(",stat," in line for line in file)
    (line,) = [x for x in (done.out / "summary.md").read_text().splitlines() if "| case |" in x]
    assert "stat" in line


def test_a_column(tmp_path):
    done = run_changed(tmp_path, COLUMN)
    for row in done.rows:
        assert float(row["own_min"]) <= float(row["own_mean"]) <= float(row["own_max"])


def test_a_table_of_before_the_column_is_read(tmp_path):
    import subprocess
    import sys

    from launch import environment

    (tmp_path / "before").mkdir()
    before = run_experiment(tmp_path / "before", 2, cases=[CASE])
    path = changed(tmp_path, COLUMN)
    read = (
        "import sys; from pffbench.record.samples import read_samples; "
        "rows = read_samples(sys.argv[1]); print(len(rows), rows[0].own_mean)"
    )
    done = subprocess.run(
        [sys.executable, "-c", read, before.out / "samples.csv"], capture_output=True, text=True,
        env=environment(PYTHONPATH=path), timeout=300, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [str(len(before.rows)), "nan"]


def test_an_option(tmp_path):
    done = run_changed(tmp_path, OPTION, "--note", "after the upgrade")
    assert "after the upgrade" in done.record["remarks"]
