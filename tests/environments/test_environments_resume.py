"""A run of several environments that was killed goes on at its next whole round."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from launch import entries_below, pffbench_cli, run_experiment
from pffbench.record.lock import RunLock
from planted import run_first

pytestmark = pytest.mark.parallel

PYTHON = {"python": sys.executable}
ENVIRONMENTS = [{"name": "one", **PYTHON}, {"name": "two", **PYTHON}]
CASE = {"workload": "datasets", "backend": ["hdf5", "npy"], "datasets": 10, "shape": [[16]],
        "files": "per_rank"}  # fmt: skip
INPUT = "mine.npy"
#: Ends the coordinator when the rows of the first environment in its second round are recorded.
DIES = """
import os, signal, sys
if "run" in sys.orig_argv:
    from pffbench_environments.merge import StepMerger
    add = StepMerger.add
    def die(self, environment, cases, result, number, first):
        if number == 2 and first > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        add(self, environment, cases, result, number, first)
    StepMerger.add = die
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run that was killed while the second of its three rounds was recorded."""
    directory = tmp_path_factory.mktemp("killed")
    np.save(directory / INPUT, np.arange(16.0))
    of_file = {"workload": "hyperslab", "backend": "hdf5", "shape": [[16]], "source": "file",
               "file": str(directory / INPUT)}  # fmt: skip
    return killed_run(directory, CASE, of_file)


def killed_run(directory, *cases):
    run = run_experiment(
        directory, None, environments=ENVIRONMENTS, launcher="env", cases=list(cases),
        repetitions=3, warmup=1, counters=True, step_repetitions=2,
        env=run_first(directory / "first", DIES),
    )  # fmt: skip
    assert run.status == -9, run.said
    for _ in range(300):  # its ranks notice that it is gone
        if entries_below(directory / "scratch") == []:
            break
        time.sleep(0.1)
    return run


def copy_of(run, place):
    return Path(shutil.copytree(run.out, place / "run"))


def rows_by_repetition(run):
    return Counter((row["case"], int(row["repetition"]), row["phase"]) for row in run.rows)


@pytest.mark.full
def test_the_round_at_hand_is_run_again_as_a_whole_and_the_others_stay(killed, tmp_path):
    begun = {key[0].rpartition("@")[2] for key in rows_by_repetition(killed) if key[1] == 2}
    assert len(begun) == 1  # rows of one environment only
    out = copy_of(killed, tmp_path)
    resumed = pffbench_cli("run", "--resume", out, "--trust", out=out)
    assert resumed.status == 0, resumed.said
    assert "VALID: every byte verified, 6 cases, 3 rounds" in resumed.stdout
    rows = rows_by_repetition(resumed)
    assert set(rows.values()) == {1}
    assert {key[:2] for key in rows} == {
        (case, number) for case in resumed.record["cases"] for number in range(4)
    }
    before = {tuple(row.values()) for row in killed.rows if int(row["repetition"]) < 2}
    after = {tuple(row.values()) for row in resumed.rows if int(row["repetition"]) < 2}
    assert before == after
    when = resumed.record["resumed"][0]
    assert all(row["started"] >= when[:19] for row in resumed.rows if int(row["repetition"]) >= 2)
    assert len(resumed.record["resumed"]) == 1
    assert not (out / ".steps").exists()
    assert entries_below(killed.out.parent / "scratch") == []
    again = pffbench_cli("run", "--resume", out)
    assert (again.status, again.stdout) == (2, "")
    assert "the run is finished" in again.stderr


def move(out):
    """Make a run one of other hosts."""
    record = json.loads((out / "run.json").read_text())
    record["topology"]["hosts"] = ["elsewhere"] * record["ranks"]
    (out / "run.json").write_text(json.dumps(record))


@pytest.mark.full
def test_a_job_on_other_hosts_continues_and_is_valid(killed, tmp_path):
    out = copy_of(killed, tmp_path)
    move(out)
    resumed = pffbench_cli("run", "--batch", "--out", out, "--trust", out=out)
    assert resumed.status == 0, resumed.said
    assert resumed.record["valid"] is True
    assert "Limited: the run was resumed on other hosts (" in resumed.stdout


def assert_not_resumed(out, sentence, *arguments, ranks=None):
    """See that a run is not resumed, and that its record stays as it is."""
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    run = pffbench_cli("run", "--resume", out, *arguments, ranks=ranks)
    assert run.status == 2, run.said
    assert run.stdout == "" or (run.stdout.startswith("starts: ") and run.stdout.count("\n") == 1)
    assert sentence in run.stderr
    assert "Traceback" not in run.stderr
    after = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    assert after.keys() - {"run.lock"} == before.keys() - {"run.lock"}
    assert all(after[name] == before[name] for name in after if name != "run.lock")


@pytest.mark.full
def test_what_is_not_the_same_run_is_refused(killed, tmp_path):
    out = copy_of(killed, tmp_path)
    assert_not_resumed(out, "as one process, without mpiexec or srun", ranks=2)
    assert_not_resumed(out, "it takes no other", "--set", "repetitions=5")
    assert_not_resumed(out, "have no stages", "--stage", "read")
    text = (out / "run.json").read_text()
    record = json.loads(text)
    record["experiment"]["repetitions"] = 4
    (out / "run.json").write_text(json.dumps(record))
    assert_not_resumed(out, "the experiment in run.json was changed")
    record = json.loads(text)
    libraries = record["environments"]["two"]["provenance"]["software"]["libraries"]
    libraries["h5py"]["version"] = "0.1"
    (out / "run.json").write_text(json.dumps(record))
    assert_not_resumed(out, "not the same run: two: h5py version was 0.1, now it is", "--trust")
    (out / "run.json").write_text(text)
    move(out)
    assert_not_resumed(out, "the ranks of the run were on elsewhere, and these are on", "--trust")


def test_a_run_whose_input_file_was_replaced_is_refused(killed, tmp_path):
    file = killed.out.parent / INPUT
    before = file.read_bytes()
    np.save(file, np.arange(1.0, 17.0))
    told = f"the file {file} has other contents than when the run began"
    try:
        assert_not_resumed(copy_of(killed, tmp_path), told, "--trust")
    finally:
        file.write_bytes(before)


def test_ranks_of_the_killed_run_that_still_run_are_not_disturbed(killed, tmp_path):
    out = copy_of(killed, tmp_path)
    step = out / ".steps" / "one" / "run"
    step.mkdir(parents=True, exist_ok=True)
    for path in step.glob("run.lock*"):
        path.unlink()
    lock = RunLock()
    lock.take(step, "the test")
    assert_not_resumed(out, "a step of environment one: another run writes there", "--trust")
    assert step.is_dir()
    lock.release()
