"""`pffbench report`: the files that it writes, what it refuses, what it starts."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from statistics import mean, stdev

import pytest

from drawn_runs import PHASES, USUAL, a_run, edit_record
from launch import REPOSITORY, pffbench_cli, sampled
from pffbench.cli import main
from pffbench.errors import UserError
from pffbench.record.repetitions import FILE
from pffbench.results.export import write_summary
from pffbench.results.summary import summarise
from pffbench_analysis.report import report

pytestmark = pytest.mark.long

#: Results directories that documents show.
EXAMPLES = REPOSITORY / "docs" / "results"
TABLES = {"summary.csv", "samples.csv", "summary.md", "results.json"}


def reported(capsys, *arguments):
    """Run the command; return the files that it names."""
    with pytest.raises(SystemExit) as ended:
        main(["report", *map(str, arguments)])
    assert ended.value.code == 0
    return [Path(line) for line in capsys.readouterr().out.split()]


def test_it_writes_tables_the_figure_of_the_answer_and_last_the_page(run, capsys):
    (run / "summary.md").write_text("old")
    printed = reported(capsys, run)
    assert {path.name for path in printed} == TABLES | {"answer.svg", "report.html"}
    assert printed[-1] == run / "report.html"
    assert (run / "summary.md").read_text().startswith("# some")
    assert not (run / "plots").exists()


def test_other_figures_are_files_where_they_are_asked_for(run, capsys):
    figures = [path for path in reported(capsys, "--figures", run) if path.parent.name == "plots"]
    assert {path.stem.rpartition("-")[2] for path in figures} == {"times", "rounds", "phases"}
    for path in figures:
        root = ET.parse(path).getroot()
        assert root.tag.endswith("svg")
        assert sum(node.tag.endswith("path") for node in root.iter()) > 10


def test_the_table_for_programs_has_mean_and_standard_deviation_too(run):
    """Drawn repetitions of the first case's first phase take 1.1 to 1.4 ms; one alone has none."""
    lone = a_run(run.parent / "lone", USUAL[:1], repetitions=1)
    found = {}
    for place in (run, lone):
        write_summary(summarise(place), place)
        with (place / "summary.csv").open(newline="") as file:
            row = next(csv.DictReader(file))
        assert row["phase"] == PHASES[0]
        found[place] = float(row["mean_s"]), float(row["sd_s"])
    seconds = [1.3e-3, 1.1e-3, 1.4e-3, 1.2e-3]
    assert found[run] == pytest.approx((mean(seconds), stdev(seconds)))
    assert found[lone] == pytest.approx((1.3e-3, float("nan")), nan_ok=True)


def test_a_report_is_the_same_each_time(run):
    first, again = (
        {path: path.read_bytes() for path in report([run], figures=True)} for _ in range(2)
    )
    assert first == again


# Errors


def refusal_of(path):
    with pytest.raises(UserError) as caught:
        list(report([path]))
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_no_such_directory(tmp_path):
    assert "is not a results directory" in refusal_of(tmp_path / "none")


def test_not_a_run(tmp_path):
    (tmp_path / "run.json").write_text("{")
    assert "not valid JSON" in refusal_of(tmp_path)


@pytest.mark.parametrize(("version", "age"), [(1, "an older"), (999, "a newer")])
def test_other_schema(run, version, age):
    edit_record(run, schema_version=version)
    assert f"layout version {version}, of {age} pffbench" in refusal_of(run)


def test_no_schema(run):
    (run / "run.json").write_text("[]")
    assert "schema_version" in refusal_of(run)


def test_empty_directory(tmp_path):
    assert "contains no run.json" in refusal_of(tmp_path)


def test_broken_record(run):
    edit_record(run, ranks="many")
    refusal_of(run)


def test_broken_repetitions(run):
    path = run / FILE
    path.write_text(path.read_text().replace('"round":', '"round":"x",', 1))
    refusal_of(run)


def test_no_repetitions(run):
    (run / FILE).unlink()
    assert FILE in refusal_of(run)


def test_no_counted_repetition(tmp_path):
    assert "no repetition that counts" in refusal_of(a_run(tmp_path, USUAL, repetitions=0))


def test_nothing_is_written_when_one_run_cannot_be_read(run, tmp_path):
    before = sorted(run.iterdir())
    with pytest.raises(UserError):
        list(report([run, tmp_path / "none"]))
    assert sorted(run.iterdir()) == before


@pytest.mark.parametrize("name", ["plots", "report.html"])
def test_what_is_in_the_way_is_named(run, name):
    (run / name).write_text("") if name == "plots" else (run / name).mkdir()
    with pytest.raises(UserError, match=rf"{name} cannot be written"):
        list(report([run], figures=True))


def test_tables_and_figure_are_written_without_the_library_of_the_page(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UserError, match=r"needs jinja2.*pip install"):
        list(report([run]))
    assert {path.name for path in run.iterdir()} >= TABLES


# The shipped runs, and the command as a process

REPORTED = sorted(EXAMPLES.glob("*/run.json"))


@pytest.mark.parametrize(
    "example",
    # Of all of them tests/unit/test_shipped_results.py makes the files again.
    sampled(REPORTED, *(path for path in REPORTED if path.parent.name != "default")),
    ids=lambda path: path.parent.name,
)
def test_the_examples_that_come_with_the_project_can_be_reported(example, tmp_path):
    run = shutil.copytree(example.parent, tmp_path / "run")
    written = {path.name for path in report([run])}
    assert {"report.html", "summary.md", "answer.svg"} <= written


def test_the_page_is_opened(run, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = pffbench_cli("report", "--open", run, env={"BROWSER": f"{browser} %s"})
    assert (done.status, done.stderr) == (0, "")
    assert (tmp_path / "opened").read_text() == (run / "report.html").as_uri() + "\n"


def test_without_a_browser_the_page_is_named(run):
    done = pffbench_cli("report", "--open", run, env={"BROWSER": "no-such-program %s"})
    assert done.status == 0
    assert done.stderr == f"pffbench: no browser was found to open {run / 'report.html'}\n"


def test_report_starts_no_mpi_and_loads_no_format(run):
    code = (
        "import sys, pffbench.cli\n"
        "try: pffbench.cli.main(['report', 'run'])\n"
        "finally: print([m for m in sys.modules if m.split('.')[0] in "
        "('netCDF4', 'zarr', 'pandas')] + ['MPI is initialised'] * "
        "('mpi4py.MPI' in sys.modules and sys.modules['mpi4py.MPI'].Is_initialized()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=run.parent, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
