"""The notebook runs on the example that comes with the project, and is stored without outputs."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pffbench.summary.conclusions import verdict_lines
from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, decide
from pffbench.summary.summary import summarise

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "analysis" / "first-look.ipynb"
EXAMPLE = ROOT / "docs" / "results" / "example-datasets"


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def executed():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(notebook, timeout=240, kernel_name="python3", resources=where).execute()
    return notebook


def printed_text(notebook):
    return "".join(
        output.text
        for cell in code(notebook)
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    )


def test_it_is_stored_without_outputs_and_knows_no_machine():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in code(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None
        assert not re.search(r"[\"'](/|~)", cell.source)


def test_every_question_is_answered_by_a_figure_or_a_table(executed):
    asked = [cell for cell in executed.cells if cell.source.startswith("## ")]
    questions = [cell.source.splitlines()[0] for cell in asked][:-1]
    assert all(question.endswith("?") for question in questions)
    shown = [
        {kind for output in cell.outputs for kind in output.get("data", {})}
        for cell in code(executed)[1:]
    ]
    assert len(shown) == len(questions)
    assert all(kinds & {"image/png", "text/html"} for kinds in shown)
    assert sum("image/png" in kinds for kinds in shown) == 3


def test_its_verdict_and_ratios_are_those_of_the_judge(executed):
    summary = summarise(EXAMPLE)
    told = printed_text(executed)
    for line in verdict_lines(summary):
        assert line in told
    totals = {case.sample.backend: case.phases["write_total"] for case in summary.cases}
    times = {name: phase.by_block for name, phase in totals.items()}
    table = ComparisonTable(times, (("netcdf4", "hdf5"), ("zarr", "hdf5")))
    decisions = decide([table], Design.of_experiment(summary.record.experiment).looks)
    for (_, name, _), found in decisions.items():
        ratio, interval = found.alone, f"({found.alone.low:.2f}–{found.alone.high:.2f})"
        assert f"{name}: {ratio.value:.2f} times as long as hdf5 {interval}, not decided" in told
    assert not any(found.decided for found in decisions.values())
    assert "0.00–inf" not in told
    # Zarr compresses unless it is told not to, so that it is in no comparison with the others.
    assert totals["netcdf4"].ratio is not None
    assert totals["zarr"].ratio is None


def test_the_example_tells_nothing_of_who_made_it():
    assert {path.name for path in EXAMPLE.iterdir()} == {
        "README.md", "ranks.h5", "run.json", "samples.csv", "summary.md",
    }  # fmt: skip
    told = (EXAMPLE / "run.json").read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|users|work)\b", told, re.I)
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 160_000
