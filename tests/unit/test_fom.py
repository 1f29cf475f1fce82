"""Lines of figures of merit."""

from __future__ import annotations

import pytest

from drawn_runs import BYTES, USUAL, a_case, a_run
from launch import pffbench_cli
from pffbench.summary.export import fom_lines
from pffbench.summary.summary import summarise


def lines_of(run):
    done = pffbench_cli("report", "--fom", run)
    assert done.status == 0, done.said
    return done.stdout


def test_values_are_medians_and_rates(tmp_path):
    run = a_run(tmp_path, USUAL)
    found = dict(line.split()[1].split("=") for line in fom_lines(summarise(run)))
    assert found["valid"] == found["finished"] == "1"
    seconds = summarise(run).cases[0].phases["write"].seconds.median
    name = "hdf5.hyperslab.shared.independent.matched.write"
    assert float(found[f"{name}.time"]) == pytest.approx(seconds)
    assert float(found[f"{name}.rate"]) == pytest.approx(BYTES / 2**20 / seconds)
    assert len(found) == len(list(fom_lines(summarise(run))))


@pytest.mark.parametrize(
    ("changes", "valid", "finished"),
    [
        ({"valid": False, "reasons": ["bytes were wrong"]}, "0", "1"),
        ({"valid": True, "status": "interrupted"}, "0", "0"),
        ({"valid": None, "status": "running"}, "0", "0"),
    ],
)
def test_what_is_not_a_whole_valid_run_is_not_called_one(tmp_path, changes, valid, finished):
    text = lines_of(a_run(tmp_path, USUAL, **changes))
    assert f"FOM valid={valid} bool\n" in text
    assert f"FOM finished={finished} bool\n" in text


def test_cases_alike_in_words_are_told_apart_whatever_was_measured(tmp_path):
    cases = [a_case("zarr", codec="gzip"), a_case("zarr"), a_case("hdf5")]
    run = a_run(tmp_path / "whole", cases)
    part = a_run(tmp_path / "part", cases)  # as a run whose first case failed leaves it
    rows = (part / "samples.csv").read_text().splitlines(keepends=True)
    (part / "samples.csv").write_text("".join(r for r in rows if not r.startswith(cases[0][0])))
    whole_names, part_names = (
        {line.split("=")[0] for line in fom_lines(summarise(r))} for r in (run, part)
    )
    assert "FOM zarr.hyperslab.shared.independent.matched.codec-gzip.write.time" in whole_names
    assert part_names < whole_names


def test_more_than_one_run_and_no_run_are_refused(tmp_path):
    run = a_run(tmp_path / "run", USUAL)
    for told in ([run, run], [tmp_path]):
        done = pffbench_cli("report", "--fom", *told)
        assert done.status == 2
        assert len(done.stderr.strip().splitlines()) == 1
