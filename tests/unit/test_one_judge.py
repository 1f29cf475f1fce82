"""One function decides what is faster: every door gives its answer, no other code has a rule."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from test_architecture import MODULES

from drawn_runs import a_case, timed_run
from pffbench.cli import main
from pffbench.results.document import Results
from pffbench.results.judge import Pair, decide
from pffbench.results.summary import load
from pffbench_analysis.compare import compare_runs

#: What a rule for a difference needs. `bounds` and `decide` are the ways in.
TOOLS = {"quantile", "_tail", "_of_starts", "_of_mean", "_correlation"}


def names_in(path):
    """Return the names that a module uses."""
    tree = ast.parse(path.read_text())
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_only_the_judge_has_tests_and_intervals_at_hand():
    others = [path for path in MODULES if path.name != "judge.py"]
    imported = {
        str(path): used
        for path in others
        if "pffbench.results.judge" in path.read_text() and (used := names_in(path) & TOOLS)
    }
    assert imported == {}


@pytest.mark.parametrize(
    ("true", "cv", "word"), [(2.0, 0.05, "slower"), (1.0, 0.02, "same"), (1.1, 0.3, "open")]
)
def test_every_door_gives_the_answer_of_the_judge(tmp_path, capsys, true, cv, word):
    generator = np.random.default_rng(2)
    cases = dict([a_case("hdf5"), a_case("zarr")])
    hdf5, zarr = cases
    base, other = (0.1 * np.exp(cv * generator.normal(size=20)) for _ in range(2))
    other *= true * np.median(base) / np.median(other)
    run = timed_run(tmp_path / "run", {hdf5: (base, base), zarr: (other, other)}, cases)
    summary = load(run)
    seconds = {cell.case: cell.seconds for cell in summary.cells if cell.keys["total"] == "write"}
    # Two totals of one pair are the family of the document.
    pairs = {n: Pair([(seconds[zarr], seconds[hdf5])], n) for n in range(2)}
    judged = decide(pairs)[0]
    assert judged.word == word
    for found in summary.compared.formats:
        verdict = found.verdict if found.base == "hdf5" else found.verdict.turned
        assert verdict.word == word
        assert verdict.ratio == pytest.approx(judged.ratio, rel=1e-6)
    # The document, and the recommendation.
    document = Results.of(summary)
    used = summary.answer.way.get("backend")
    assert document.answer.way.get("backend") == used
    with pytest.raises(SystemExit):
        main(["recommend", str(run)])
    if used and word == "slower":
        assert used == "hdf5"
        assert "HDF5" in capsys.readouterr().out


def test_two_runs_are_judged_by_the_same_function(tmp_path):
    generator = np.random.default_rng(3)
    cases = dict([a_case("hdf5")])
    (name,) = cases
    runs = []
    for factor in (1.0, 2.0):
        times = 0.1 * factor * np.exp(0.05 * generator.normal(size=20))
        runs.append(load(timed_run(tmp_path / f"{factor}", {name: (times, times)}, cases)).run)
    found = compare_runs(*([run] for run in runs))
    cells = [(new.seconds, old.seconds) for row in found.comparable for new, old in row.cells]
    judged = decide({n: Pair([both]) for n, both in enumerate(cells)}, alpha=0.05 / 3)
    assert [row.verdict.word for row in found.comparable] == [v.word for v in judged.values()]
    assert {v.word for v in judged.values()} == {"slower"}
