"""`pffbench report`: the files that it writes, what it refuses, what it starts."""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import islice
from pathlib import Path
from statistics import mean, stdev

import pytest
from PIL import Image

from drawn_runs import PHASES, USUAL, a_run
from launch import REPOSITORY, pffbench_cli, sampled
from pffbench.commands import report as command
from pffbench.errors import UserError
from pffbench.results.export import write_summary
from pffbench.results.summary import summarise
from pffbench_analysis.picture import SUFFIXES, save
from pffbench_analysis.report import figures, readable, report

pytestmark = pytest.mark.long

#: What `pffbench report RUN` is told beside the runs.
AS_USUAL = {"page": False, "open": False}
#: Results directories that documents show.
EXAMPLES = REPOSITORY / "docs" / "results"


def test_files_are_made_and_valid(run, capsys):
    (run / "summary.md").write_text("old")
    assert command.main(argparse.Namespace(**AS_USUAL, runs=[str(run)])) == 0
    printed = [Path(line) for line in capsys.readouterr().out.split()]
    names = {f"hyperslab-shared-{what}" for what in ("metadata", "data", "totals")} | {"answer"}
    wanted = {run / "plots" / (name + suffix) for name in names for suffix in SUFFIXES}
    derived = {run / name for name in ("summary.csv", "summary.md", "results.json",
                                       "report.html")}  # fmt: skip
    assert set(printed) == wanted | derived
    assert set(printed[printed.index(run / "report.html") + 1 :]) == wanted  # drawn after the page
    assert (run / "summary.md").read_text().startswith("# some")
    for path in wanted:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert 1400 < image.width < 2200
                assert len(image.convert("RGB").getcolors(maxcolors=10**6)) > 10
        elif path.suffix == ".svg":
            root = ET.parse(path).getroot()
            assert root.tag.endswith("svg")
            assert sum(node.tag.endswith("path") for node in root.iter()) > 10
        else:
            content = path.read_bytes()
            assert content.startswith(b"%PDF")
            assert len(content) > 10_000


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


def test_pictures_are_the_same_each_time(run, tmp_path):
    contents = []
    for where in ("a", "b"):
        files = [list(save(f, tmp_path / where)) for _, f in islice(figures(readable(run)), 2)]
        contents.append([path.read_bytes() for png, svg, _ in files for path in (png, svg)])
    assert contents[0] == contents[1]


def test_nothing_is_said_to_be_symmetric(run):
    """No interval of times or ratios is, so none is written as one number behind ±."""
    paths = [path for path in report([run]) if path.suffix not in SUFFIXES]
    assert [path.name for path in paths if "\N{PLUS-MINUS SIGN}" in path.read_text()] == []
    assert not any("\N{PLUS-MINUS SIGN}" in f.svg() for _, f in figures(readable(run)))


# Errors


def refusal_of(path):
    with pytest.raises(UserError) as caught:
        list(report([path]))
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_no_such_directory(tmp_path):
    assert "no results directory" in refusal_of(tmp_path / "none")


def test_not_a_run(tmp_path):
    (tmp_path / "run.json").write_text("{")
    assert "not valid JSON" in refusal_of(tmp_path)


@pytest.mark.parametrize(("version", "age"), [(1, "an older"), (99, "a newer")])
def test_other_schema(run, version, age):
    data = json.loads((run / "run.json").read_text()) | {"schema_version": version}
    (run / "run.json").write_text(json.dumps(data))
    assert f"layout version {version}, of {age} pffbench" in refusal_of(run)


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


def test_the_page_alone_is_written_and_opened(run, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    done = pffbench_cli("report", "--page", "--open", run, env={"BROWSER": f"{browser} %s"})
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == str(run / "report.html")
    assert not (run / "plots").exists()
    assert "plots" not in re.findall(r'href="([^"]*)"', (run / "report.html").read_text())
    assert (tmp_path / "opened").read_text() == (run / "report.html").as_uri() + "\n"


def test_without_a_browser_the_page_is_named(run):
    done = pffbench_cli("report", "--page", "--open", run, env={"BROWSER": "no-such-program %s"})
    assert done.status == 0
    assert done.stderr == f"pffbench: no browser was found to open {run / 'report.html'}\n"


def test_no_schema(run):
    (run / "run.json").write_text("[]")
    assert "schema_version" in refusal_of(run)


def test_empty_directory(tmp_path):
    assert "holds no run.json" in refusal_of(tmp_path)


def test_broken_record(run):
    data = json.loads((run / "run.json").read_text())
    del data["ranks"]
    (run / "run.json").write_text(json.dumps(data))
    refusal_of(run)


def test_broken_samples(run):
    path = run / "samples.csv"
    path.write_text(path.read_text().replace(",false,", ",perhaps,", 1))
    refusal_of(run)


def test_no_samples(run):
    (run / "samples.csv").unlink()
    assert "samples.csv" in refusal_of(run)


def test_no_counted_repetition(tmp_path):
    assert "no repetition that counts" in refusal_of(a_run(tmp_path, USUAL, repetitions=0))


def test_nothing_is_written_when_one_run_cannot_be_read(run, tmp_path):
    with pytest.raises(UserError):
        list(report([run, tmp_path / "none"]))
    assert not (run / "plots").exists()


def test_plots_in_the_way(run):
    (run / "plots").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        list(report([run]))


@pytest.mark.parametrize("name", ["jinja2", "vl_convert"])
def test_tables_are_written_without_the_libraries_that_draw(run, name, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=rf"needs? {name}.*pip install"):
        command.main(argparse.Namespace(**AS_USUAL, runs=[str(run)]))
    written = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert {"summary.csv", "summary.md", "results.json"} <= set(written)
    assert (run / "results.json").exists()


# The command as a process, and a real run


def python(*arguments, cwd):
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, check=False,
    )  # fmt: skip


def test_report_starts_no_mpi(run):
    code = (
        "import sys, pffbench.cli\n"
        "try: pffbench.cli.main(['report', 'run'])\n"
        "finally: print([m for m in sys.modules if m.split('.')[0] in "
        "('netCDF4', 'zarr', 'pandas')] + ['MPI is initialised'] * "
        "('mpi4py.MPI' in sys.modules and sys.modules['mpi4py.MPI'].Is_initialized()))"
    )
    done = python("-c", code, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_errors_end_with_status_2(tmp_path):
    done = python("-m", "pffbench", "report", "none", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_real_run(tmp_path):
    (tmp_path / "exp.yaml").write_text(
        "name: real\nrepetitions: 3\nroofline: false\ncases:\n"
        "- {workload: hyperslab, backend: ['null', posix], layout: file_per_process,"
        " shape_per_rank: [64, 64]}\n"
    )
    done = python(
        "-m", "pffbench", "run", "exp.yaml", "--out", "r",
        "--scratch", str(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written = list(report([tmp_path / "r"]))
    assert tmp_path / "r/plots/hyperslab-file_per_process-data.png" in written
    figure = dict(figures(readable(tmp_path / "r")))["hyperslab-file_per_process-data"]
    assert "pffbench " in figure.words.footnote
