"""The key `starts`: ranks are started anew for each repetition, and each repetition is a start."""

from __future__ import annotations

import json

import pytest

from launch import mpiexec, pffbench_cli, run_experiment
from pffbench.record.run import MeasuredRun
from pffbench.results.judge import START
from pffbench.results.summary import summarise

pytestmark = pytest.mark.parallel

CASE = {
    "workload": "hyperslab", "backend": ["hdf5", "zarr"], "files": "per_rank",
    "shape_per_rank": [[64, 64]], "chunks": [[16, 64]],
}  # fmt: skip


@pytest.fixture(scope="module")
def anew(tmp_path_factory):
    """Return a run of seven starts of two ranks; the default repeats more often."""
    return run_experiment(
        tmp_path_factory.mktemp("anew"), None, "--set", "starts=7",
        launcher=" ".join(mpiexec(2)), cases=[CASE], repetitions=50, warmup=1,
    )  # fmt: skip


@pytest.mark.full
def test_each_repetition_is_a_start_of_all_ranks(anew):
    assert anew.status == 0, anew.said
    counted = {int(row["repetition"]) for row in anew.rows if row["warmup"] == "false"}
    assert len(counted) == 7
    assert anew.record["ranks"] == 2
    assert list(anew.record["environments"]) == ["here"]
    told = anew.record["experiment"]
    assert (told["starts"], told["repetitions"], told["environments"]) == (7, 7, [])


@pytest.mark.full
def test_a_run_with_starts_is_repeated(tmp_path):
    """Its record names no environment: this one is meant, wherever it is."""
    first = run_experiment(tmp_path, None, starts=2, cases=[CASE], warmup=0)
    assert first.status == 0, first.said
    again = pffbench_cli("run", first.out, "--out", tmp_path / "again", "--scratch", tmp_path,
                         out=tmp_path / "again")  # fmt: skip
    assert again.status == 0, again.said
    assert again.record["experiment"] == first.record["experiment"]
    assert {row["repetition"] for row in again.rows} == {"0", "1"}


@pytest.mark.full
def test_formats_are_compared_by_starts(anew):
    found = summarise(anew.out)
    assert {cell.keys["total"] for cell in found.cells} == {"write", "read"}
    assert all({r % START for r in cell.seconds} == {0} for cell in found.cells)
    results = json.loads((anew.out / "results.json").read_text())
    assert {row[0] for row in results["answer"]["rows"]} >= {"HDF5", "Zarr"}
    assert all(one["rounds"] == 7 for one in results["comparisons"])
    assert "environment" not in anew.stdout


@pytest.mark.parametrize(
    ("arguments", "content", "message"),
    [
        ([], {"starts": 0}, "starts: "),
        (
            [],
            {"starts": 3, "environments": [{"name": "a", "python": "python"}]},
            "starts: the ranks of environments start anew in each round: set repetitions",
        ),
        (["--stage", "write"], {"starts": 3}, "--stage: "),
    ],
)
def test_what_it_cannot_do_is_refused(tmp_path, arguments, content, message):
    done = run_experiment(tmp_path, None, *arguments, cases=[CASE], **content)
    assert done.status == 2
    assert message in done.said
    assert not done.out.exists()


@pytest.mark.full
@pytest.mark.parametrize(
    ("launched", "trusted"),
    [(True, True), (False, False), (False, True)],
)
def test_a_stopped_run_goes_on_with_the_printed_command(tmp_path, launched, trusted):
    """Its file names no environment; without a launcher it starts nothing but this Python."""
    more = {"launcher": " ".join(mpiexec(1))} if launched else {}
    done = run_experiment(
        tmp_path, None, "--max-time", "1 s", starts=3, cases=[CASE], warmup=0, **more
    )
    assert done.status == 3, done.said
    command = f"pffbench run --resume {done.out} --trust"
    assert f"go on with: {command}\n" in done.stdout
    *untrusted, trust = command.split()[1:]
    limits = ("--max-time", "none", "--scratch", tmp_path / "scratch")
    if launched:
        refused = pffbench_cli(*untrusted, *limits)
        assert refused.status == 2
        assert "it would start: launcher: " in refused.stderr
    rest = pffbench_cli(*untrusted, *([trust] if trusted else []), *limits)
    assert rest.status == 0, rest.said
    again = MeasuredRun.load(done.out)
    assert again.record.status == "finished"
    assert all(len(seconds["write"]) == 3 for seconds in again.seconds.values())


def test_it_starts_the_ranks_itself(tmp_path):
    done = run_experiment(tmp_path, 2, starts=3, cases=[CASE])
    assert done.status == 2
    assert "start it as one process without mpiexec or srun" in done.said
