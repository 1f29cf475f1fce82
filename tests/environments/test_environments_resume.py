"""A run of several environments that was killed goes on at its next whole round.

Nothing that its results directory says is obeyed before: it may be that of another user.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from launch import entries_below, pffbench_cli, pffbench_here, run_experiment, sampled
from pffbench.record.lock import RunLock
from pffbench.record.run_json import digest_of
from pffbench.storage.scratch import Scratch
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
    run = run_experiment(
        directory, None, environments=ENVIRONMENTS, launcher="env", cases=[CASE, of_file],
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


# Results directories of others: nothing of them is obeyed


@pytest.fixture
def received(killed, tmp_path):
    """A copy of its results directory, without the files of steps."""
    out = Path(shutil.copytree(killed.out, tmp_path / "run"))
    shutil.rmtree(out / ".steps", ignore_errors=True)
    return out


@pytest.mark.full
def test_links_in_the_directory_of_steps_are_refused_and_not_followed(received, tmp_path):
    other = tmp_path / "other"
    (other / "run").mkdir(parents=True)
    (other / "experiment.yaml").write_text("precious")
    steps = received / ".steps"
    steps.symlink_to(other)
    assert_not_resumed(received, "it is a symbolic link, not a directory", "--trust")
    steps.unlink()
    steps.mkdir()
    (steps / "one").symlink_to(other)
    assert_not_resumed(received, "one is a symbolic link", "--trust")
    assert sorted(path.name for path in other.rglob("*")) == ["experiment.yaml", "run"]
    assert (other / "experiment.yaml").read_text() == "precious"


def test_a_file_in_place_of_the_directory_of_steps_is_refused(received):
    (received / ".steps").write_text("")
    assert_not_resumed(received, "it is a file, not a directory", "--trust")


@pytest.mark.parametrize("alive", sampled([True, False], True))
def test_scratch_of_another_run_that_a_step_names_stays(alive, killed, received, tmp_path):
    """Of a run that runs, and of one outside of the scratch directory of this run."""
    parent = killed.out.parent / "scratch" if alive else tmp_path
    other = Scratch.create(str(parent), "other-run")
    if not alive:
        marker = Path(other.directory, ".pffbench-run")
        marker.write_text(
            json.dumps(json.loads(marker.read_text()) | {"pid": 2**22 - 1, "started": "1"})
        )
    step = received / ".steps" / "one" / "run"
    step.mkdir(parents=True)
    record = json.loads((received / "run.json").read_text())
    record |= {"scratch": other.directory, "run_id": "other-run"}
    (step / "run.json").write_text(json.dumps(record))
    # Refused after the steps were looked at: the record has other software.
    text = json.loads((received / "run.json").read_text())
    text["environments"]["two"]["provenance"]["software"]["libraries"]["numpy"]["version"] = "0"
    (received / "run.json").write_text(json.dumps(text))
    assert_not_resumed(received, "numpy version was 0", "--trust")
    assert Path(other.directory, ".pffbench-run").exists()
    shutil.rmtree(other.directory)


def with_launcher(received, command):
    record = json.loads((received / "run.json").read_text())
    record["experiment"]["launcher"] = command
    record["experiment_digest"] = digest_of(record["experiment"])
    (received / "run.json").write_text(json.dumps(record))


def test_commands_that_a_record_or_a_file_names_are_not_started_without_trust(received, tmp_path):
    command = f"bash -c 'touch {tmp_path}/PWN; exit 1' x"
    with_launcher(received, command)
    assert_not_resumed(received, "it would start: launcher: bash -c 'touch")
    record = json.loads((received / "run.json").read_text())
    file = tmp_path / "received.yaml"
    file.write_text(json.dumps(record["experiment"]))
    for named in (received, file):
        for more in ((), ("--set", "launcher=env")):
            again = pffbench_here("run", named, *more, "--out", tmp_path / "again", cwd=tmp_path)
            assert again.status == 2, again.said
            assert f"{named}: it would start: " in again.stderr
            assert "give --trust" in again.stderr
    assert not (tmp_path / "PWN").exists()
    assert not (tmp_path / "again").exists()


@pytest.mark.full
def test_a_run_of_several_environments_is_repeated_from_its_record(killed, tmp_path):
    again = pffbench_cli("run", killed.out, "--trust", "--out", tmp_path / "again", cwd=tmp_path,
                         out=tmp_path / "again")  # fmt: skip
    assert again.status == 0, again.said
    assert again.record["experiment"] == killed.record["experiment"]


@pytest.mark.parametrize("missing", sampled(["two", "provenance"], "provenance"))
def test_a_record_without_an_environment_is_refused_in_a_sentence(missing, received):
    record = json.loads((received / "run.json").read_text())
    if missing == "two":
        del record["environments"]["two"]
    else:
        del record["environments"]["two"]["provenance"]
    (received / "run.json").write_text(json.dumps(record))
    assert_not_resumed(received, f"'{missing}' is missing", "--trust")
