"""Runs with `datasets: auto`: one number for all that is compared, found once and kept."""

from __future__ import annotations

import signal

import pytest

from launch import REPOSITORY, entries_below, pffbench_cli, run_experiment, write_experiment

pytestmark = pytest.mark.parallel

SOURCE = REPOSITORY / "src"
CASE = {"workload": "datasets", "datasets": "auto", "shape": [[16]], "layout": "own"}
#: Lets trials be as short as a loaded machine allows, so that the tests are.
SHORT = """
import pffbench.run.calibration as calibration
calibration.SECONDS = {seconds}
calibration.RESOLUTIONS = 0
calibration.LONGEST = 10**6
"""
#: Ends rank 0 before its second block.
DIES = """
import os, signal
from pffbench.run.runner import Runner
repetition = Runner._repetition
def die(self, case, block, *rest):
    if block == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    repetition(self, case, block, *rest)
Runner._repetition = die
"""


def planted(directory, text):
    """Return variables with which each Python runs a text when it starts."""
    directory.mkdir(parents=True)
    (directory / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": f"{directory}:{SOURCE}"}


def numbers_of(run):
    return {name: e["parameters"]["calibrated_datasets"] for name, e in run.record["cases"].items()}


def test_all_cases_of_a_comparison_have_one_number_that_the_record_explains(tmp_path):
    env = planted(tmp_path / "site", SHORT.format(seconds=0.004))
    cases = [{**CASE, "backend": ["hdf5", "netcdf4", "zarr"], "attributes": 1}]
    run = run_experiment(tmp_path, 2, cases=cases, env=env, roofline=True)
    assert run.status == 0, run.said
    (number,) = set(numbers_of(run).values())
    assert number % 2 == 0
    assert number & (number - 1) == 0
    ((group, found),) = run.record["calibrations"].items()
    assert found["number"] == number
    assert found["seconds"] >= found["wanted_seconds"] == 0.004
    assert run.record["cases"][found["case"]]["group"] == group
    assert {row["arrays"] for row in run.rows} == {str(number)}
    assert {row["group"] for row in run.rows} == {group}
    assert len({row["case"] for row in run.rows}) == 4
    assert {row["operations"] for row in run.rows if row["phase"] == "set_attributes"} == {
        str(number)
    }
    assert {row["repetition"] for row in run.rows} == {"0"}  # no trial is recorded
    assert any(text.startswith(f"datasets: auto is {number} in") for text in run.record["remarks"])
    assert entries_below(tmp_path / "scratch") == []


@pytest.mark.full
def test_a_resumed_run_keeps_the_number_and_the_names(tmp_path):
    env = planted(tmp_path / "site", SHORT.format(seconds=0.004) + DIES)
    cases = [{**CASE, "backend": "hdf5"}]
    killed = run_experiment(tmp_path, 2, cases=cases, env=env, repetitions=3)
    assert killed.status not in (0, 2)
    before = numbers_of(killed)
    assert None not in before.values()
    other = planted(tmp_path / "other", SHORT.format(seconds=0.1))
    resumed = pffbench_cli("run", "--resume", killed.out, ranks=2, env=other, out=killed.out)
    assert resumed.status == 0, resumed.said
    assert numbers_of(resumed) == before
    assert {row["arrays"] for row in resumed.rows} == set(map(str, before.values()))
    assert {row["repetition"] for row in resumed.rows} == {"0", "1", "2"}


@pytest.mark.full
def test_a_case_that_fails_in_a_trial_has_failed_and_the_others_go_on(tmp_path):
    text = SHORT.format(seconds=0.004) + (
        "from pffbench.backends.zarr.zarr3 import Zarr\n"
        "def create(self, *rest): raise OSError('no room here')\n"
        "Zarr.create = create\n"
    )
    env = planted(tmp_path / "site", text)
    run = run_experiment(tmp_path, 2, cases=[{**CASE, "backend": ["hdf5", "zarr"]}], env=env)
    assert run.status == 1, run.said
    failure = run.record["cases"][run.case(backend="zarr")]["failure"]
    assert "no room here" in failure["error"]
    assert {row["backend"] for row in run.rows} == {"hdf5"}


def test_a_signal_during_the_trials_ends_the_run(tmp_path):
    text = SHORT.format(seconds=1e9) + (
        "import os, signal\n"
        "from pffbench.run.runner import Runner\n"
        "trial = Runner.trial\n"
        "def ask(self, case):\n"
        f"    os.kill(os.getpid(), {int(signal.SIGTERM)})\n"
        "    return trial(self, case)\n"
        "Runner.trial = ask\n"
    )
    env = planted(tmp_path / "site", text)
    run = run_experiment(tmp_path, 1, cases=[{**CASE, "backend": "hdf5"}], env=env)
    assert run.record["status"] == "interrupted", run.said
    assert run.record["calibrations"] == {}
    assert entries_below(tmp_path / "scratch") == []


def test_a_plan_says_that_the_number_is_found_at_the_start(tmp_path):
    path = write_experiment(tmp_path, cases=[{**CASE, "backend": ["hdf5", "zarr"]}])
    planned = pffbench_cli("plan", path, "--ranks", "2")
    assert planned.status == 0, planned.said
    assert "datasets: auto in 2 cases: calibrated at the start" in planned.stdout
