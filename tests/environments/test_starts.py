"""`run --starts`: ranks are started anew for each repetition, and each repetition is a start."""

from __future__ import annotations

import json

import pytest

from launch import mpiexec, pffbench_cli, run_experiment
from pffbench.record.run import MeasuredRun
from pffbench.summary.starts import starts_of
from pffbench.summary.summary import summarise
from pffbench_analysis.compare import compare_runs

pytestmark = pytest.mark.parallel

CASE = {
    "workload": "hyperslab", "backend": ["hdf5", "zarr"], "layout": "file_per_process",
    "shape_per_rank": [[64, 64]], "chunks": [[16, 64]],
}  # fmt: skip


@pytest.fixture(scope="module")
def anew(tmp_path_factory):
    """Return a run of seven starts of two ranks; the default repeats more often."""
    return run_experiment(
        tmp_path_factory.mktemp("anew"), None, "--starts", "7",
        launcher=" ".join(mpiexec(2)), cases=[CASE], repetitions=50, warmup=1,
    )  # fmt: skip


def test_each_repetition_is_a_start_of_all_ranks(anew):
    assert anew.status == 0, anew.said
    counted = {int(row["repetition"]) for row in anew.rows if row["warmup"] == "false"}
    assert len(counted) == 7
    assert anew.record["ranks"] == 2
    assert list(anew.record["environments"]) == ["here"]


def test_formats_are_compared_as_in_other_runs(anew):
    found = summarise(anew.out).answers
    assert {answer.total for answer in found} == {"write_total", "read_total"}
    for answer in found:
        assert {answer.name, *(other.name for other in answer.others)} == {"hdf5", "zarr"}
        assert all(other.ratio.n == 7 for other in answer.others)
    results = json.loads((anew.out / "results.json").read_text())
    assert {row[0] for row in results["answer"]["rows"]} == {"HDF5", "Zarr"}
    assert "environment" not in anew.stdout


def test_a_comparison_with_such_a_run_knows_its_variation_between_starts(anew):
    run = MeasuredRun.load(anew.out)
    found = compare_runs([run], [run])
    assert found.starts == (7, 7)
    assert all(len(starts_of(pair.base)) == 7 for pair in found.comparable if pair.is_total)


@pytest.mark.parametrize(
    ("arguments", "content", "message"),
    [
        (["--starts", "0"], {}, "must be a whole number, 1 or more"),
        (
            ["--starts", "3"],
            {"environments": [{"name": "a", "python": "python"}]},
            "has environments, whose ranks start anew in each block: set repetitions",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(tmp_path, arguments, content, message):
    done = run_experiment(tmp_path, None, *arguments, cases=[CASE], **content)
    assert done.status == 2
    assert message in done.said


def test_it_starts_the_ranks_itself(tmp_path):
    done = run_experiment(tmp_path, 2, "--starts", "3", cases=[CASE])
    assert done.status == 2
    assert "leave out mpiexec or srun" in done.said
    again = pffbench_cli("run", "--starts", "3", "--resume", tmp_path)
    assert again.status == 2
    assert "a resumed run has the starts of its record" in again.said
