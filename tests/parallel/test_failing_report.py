"""A report that fails ends no run in a traceback: it is named, and nothing measured is lost."""

from __future__ import annotations

import pytest

from faults import go_on
from launch import PROGRAMS, pffbench_here, run_experiment, sampled

pytestmark = pytest.mark.parallel
CASES = [{"workload": "hyperslab", "shape_per_rank": [16, 16], "backend": ["posix", "npy"],
          "files": "one", "arrays": "per_rank"}]  # fmt: skip
DERIVED = ("summary.csv", "summary.md", "samples.csv", "results.json")


def run_failing(directory, fails, *arguments):
    how = {"program": (PROGRAMS / "no_summary.py",), "env": {"FAILS": fails}}
    return run_experiment(directory, None, *arguments, cases=CASES, **how)


SUMMARY = ("pffbench.run.verdict:summarise", "the summary", DERIVED)
TABLES = (
    "pffbench.results.export:tables_of",
    "summary.csv, summary.md, samples.csv",
    ("summary.md",),
)
AS_JSON = ("pffbench.results.document:_phase_result", "results.json", DERIVED[3:])


@pytest.mark.parametrize(
    ("fails", "what", "missing"),
    sampled(
        [
            SUMMARY,
            (
                "pffbench.results.export:tables_of",
                "summary.csv, summary.md, samples.csv",
                DERIVED[1:2],
            ),
            AS_JSON,
            ("pffbench.run.verdict:print_summary", "what is printed", ()),
        ],
        SUMMARY,
    ),
)
def test_what_fails_is_named_and_the_rest_is_made(tmp_path, fails, what, missing):
    # Also as JSON nothing is printed in place of the document that failed.
    as_json = what == "results.json"
    done = run_failing(tmp_path, fails, *(["--json"] if as_json else []))
    assert done.status == 1, done.said
    assert (done.stdout == "") == as_json, done.said
    assert "Traceback" not in done.said
    assert "MPI_ABORT" not in done.said
    line = next(text for text in done.stderr.splitlines() if "could not be made" in text)
    assert line.startswith(f"pffbench: could not be made: {what} (KeyError: 'format', no_summary")
    assert line.endswith(f"all measurements are kept, try again with: pffbench report {done.out}")
    assert (done.record["status"], done.record["valid"]) == ("finished", True)
    assert {name for name in DERIVED if not (done.out / name).exists()} == set(missing)
    again = pffbench_here("report", done.out)
    assert again.status == 0, again.said
    assert all((done.out / name).exists() for name in DERIVED)


def test_a_verdict_that_cannot_be_recorded_leaves_a_run_that_goes_on(tmp_path):
    done = run_failing(tmp_path, "pffbench.run.recorder:Recorder.finish")
    assert done.status == 3, done.said
    assert "Traceback" not in done.said
    assert f"go on with: pffbench run --resume {done.out}" in done.stderr
    rest = go_on(done, None)
    assert (rest.status, rest.record["valid"]) == (0, True), rest.said
