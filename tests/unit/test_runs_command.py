"""`pffbench runs`: results directories with verdict and answer."""

from __future__ import annotations

import json

from drawn_runs import a_case, a_run
from launch import pffbench_here
from pffbench.results.document import write_results
from pffbench.results.summary import summarise


def test_runs_are_listed_by_age_with_verdict_and_answer(tmp_path):
    cases = [a_case("hdf5"), a_case("netcdf4"), a_case("zarr"), a_case("posix")]
    new = a_run(tmp_path / "results" / "a", cases, 8, started="2026-02-01T12:00:00+00:00")
    write_results(summarise(new), new)
    a_run(tmp_path / "results" / "folder" / "b", cases, status="interrupted", valid=False)
    a_run(tmp_path / "results" / "c", cases, started="2026-01-02T12:00:00+00:00", valid=False,
          reasons=["it is broken"])  # fmt: skip
    (tmp_path / "results" / "d").mkdir()
    (tmp_path / "results" / "d" / "run.json").write_text("{}")
    done = pffbench_here("runs", "results", cwd=tmp_path)
    assert (done.status, done.stderr) == (0, "")
    damaged, b, c, a, answer = done.stdout.splitlines()
    assert damaged.startswith("results/d is not a results directory: run.json has no schema_")
    assert b == "results/folder/b  2026-01-01T12:00, some, 2 ranks: interrupted"
    assert c.endswith("2026-01-02T12:00, some, 2 ranks: INVALID (it is broken)")
    assert a == "results/a  2026-02-01T12:00, some, 2 ranks: every byte verified"
    assert answer == "    USE HDF5: no measured way is faster (95 % confidence)."


def test_what_is_no_folder_of_runs_is_one_sentence(tmp_path):
    done = pffbench_here("runs", cwd=tmp_path)
    assert done.status == 2
    assert done.stderr == "pffbench: pffbench-results: contains no results directory\n"


def test_a_command_for_a_run_names_the_run_in_a_folder(tmp_path):
    a_run(tmp_path / "results" / "first", [a_case("hdf5")])
    done = pffbench_here("report", "results", cwd=tmp_path)
    assert done.status == 2
    assert "it contains no run.json; did you mean 'results/first'?" in done.stderr


def test_an_answer_that_acts_on_a_terminal_is_escaped(tmp_path):
    run = a_run(tmp_path / "run", [a_case("hdf5")])
    text = json.dumps({"answer": {"word": "USE", "headline": "\x1b[2J", "evidence": ""}})
    (run / "results.json").write_text(text)
    assert "\x1b" not in pffbench_here("runs", run).stdout
