"""Environments and results directories of others: nothing hangs, nothing is obeyed."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest
from test_environments_resume import assert_not_resumed, killed_run

from launch import (
    REPOSITORY,
    entries_below,
    pffbench_cli,
    pffbench_here,
    run_experiment,
    sampled,
    start_experiment,
    wait_until,
)
from pffbench.record.run_json import digest_of
from pffbench.storage.scratch import Scratch
from planted import run_first

pytestmark = pytest.mark.parallel

HERE = {"name": "here", "python": sys.executable}
CASE = {"workload": "datasets", "backend": "npy", "datasets": 10, "shape": [[16]],
        "files": "per_rank"}  # fmt: skip
SOURCE = REPOSITORY / "src"


def site(directory, text):
    """Return the command of a Python that runs a text when it starts."""
    return f"env PYTHONPATH={run_first(directory, text)['PYTHONPATH']} {sys.executable}"


def run_in(directory, *environments, launcher="env", **content):
    return run_experiment(
        directory, None, *content.pop("arguments", ()), environments=[HERE, *environments],
        launcher=launcher, cases=[CASE], roofline=False, **content,
    )  # fmt: skip


def of_session(started):
    """Return the processes that a run has started and that are there still."""
    mine = str(started).encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"PFFBENCH_TEST_RUN=" + mine in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


#: Ranks that ask for a turn as none do.
ASKS = """
import sys
if "pffbench_environments.ranks" in sys.orig_argv:
    print("pffbench-turn: {}", flush=True)
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "asked", sampled(["0 600 nosuchcase", "x y", "0", "0 1e999 x", "\\u0000"], "0 600 nosuchcase")
)
def test_a_request_for_a_turn_that_is_none_fails_that_environment_alone(asked, tmp_path):
    lying = {"name": "lying", "command": site(tmp_path / "site", ASKS.format(asked))}
    run = run_in(tmp_path, lying, repetitions=2)
    assert run.status == 1, run.said
    assert "Traceback" not in run.said
    case = run.case(environment="lying")
    assert "asked for a turn that is none" in run.record["cases"][case]["failure"]["error"]
    assert run.record["status"] == "finished"
    assert len({row["repetition"] for row in run.rows if row["environment"] == "here"}) >= 2
    assert entries_below(tmp_path / "scratch") == []
    assert not (run.out / ".steps").exists()


#: Ranks that answer the check of the experiment as none do.
ANSWERS = """
import os, sys
if "pffbench_environments.probe" in sys.orig_argv:
    print('pffbench-environment: {}', flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize(
    "answer", sampled(["{{}}", "5", "null", "[" * 9000, '{{"topology": 1}}'], "[" * 9000)
)
def test_an_answer_that_is_none_is_refused_in_a_sentence(answer, tmp_path):
    text = ANSWERS.replace("{}", answer.replace("{{", "{").replace("}}", "}"))
    lying = {"name": "lying", "command": site(tmp_path / "site", text)}
    run = run_in(tmp_path, lying)
    assert run.status == 2, run.said
    (line,) = run.stderr.splitlines()
    assert line.startswith("pffbench: environment lying: its ranks answered in another way")
    assert not run.out.exists()
    assert entries_below(tmp_path / "scratch") == []


#: Ranks that do not leave Python at their end.
STAYS = """
import sys
if "pffbench_environments.ranks" in sys.orig_argv:
    import atexit, time
    atexit.register(time.sleep, 10**6)
"""


@pytest.mark.full
def test_ranks_that_do_not_end_are_ended_and_what_they_recorded_counts(tmp_path):
    staying = {"name": "staying", "command": site(tmp_path / "site", STAYS)}
    run = run_in(tmp_path, staying, repetitions=2, hang_timeout="15 s")
    assert run.status == 0, run.said
    assert any("its ranks did not end" in text for text in run.record["remarks"])
    assert len({row["repetition"] for row in run.rows if row["environment"] == "staying"}) >= 2
    assert entries_below(tmp_path / "scratch") == []


@pytest.mark.full
def test_the_first_ctrl_c_ends_a_run_whose_ranks_do_not_end(tmp_path):
    staying = {"name": "staying", "command": site(tmp_path / "site", STAYS)}
    started = start_experiment(
        tmp_path, None, hang_timeout="15 s", environments=[staying, HERE], launcher="env",
        cases=[CASE], roofline=False, repetitions=1, env={"PFFBENCH_TEST_RUN": str(tmp_path)},
    )  # fmt: skip
    lock = started.out / ".steps" / "staying" / "run"
    wait_until(lambda: (lock / "run.json").exists())
    wait_until(lambda: not (lock / "run.lock").exists())
    started.process.send_signal(signal.SIGINT)
    run = started.finish()
    assert run.status in (0, 3), run.said
    wait_until(lambda: of_session(tmp_path) == [])


def test_ctrl_c_while_environments_are_checked_ends_them_with_their_children(tmp_path):
    started = start_experiment(
        tmp_path, None, environments=[HERE], launcher="sh -c 'sleep 100000' x", cases=[CASE],
        env={"PFFBENCH_TEST_RUN": str(tmp_path)},
    )  # fmt: skip
    wait_until(lambda: any(command_of(pid) == "sleep" for pid in of_session(tmp_path)))
    started.process.send_signal(signal.SIGINT)
    run = started.finish()
    assert run.status == 3, run.said
    assert "asked the run to end before it began" in run.stderr
    assert not run.out.exists()
    wait_until(lambda: of_session(tmp_path) == [])


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


#: Ranks that print much, without the end of a line.
SHOUTS = """
import sys
if "pffbench_environments.ranks" in sys.orig_argv:
    for stream in (sys.stdout, sys.stderr):
        for _ in range(512):
            stream.write("x" * 65536)
        stream.write("\\n")
        stream.flush()
"""


@pytest.mark.full
def test_output_without_end_costs_what_it_is_long(tmp_path):
    shouting = {"name": "shouting", "command": site(tmp_path / "site", SHOUTS)}
    run = run_in(tmp_path, shouting, repetitions=1)
    assert run.status == 0, run.said


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run of two environments that was killed in its second round."""
    return killed_run(tmp_path_factory.mktemp("killed"), CASE)


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


def test_commands_given_in_the_command_line_are_started(tmp_path):
    there = json.dumps([{"name": "there", "python": sys.executable}])
    run = run_experiment(
        tmp_path, None, "--set", f"environments={there}", "--set", "launcher=env", cases=[CASE]
    )
    assert run.status == 0, run.said
    assert "starts: launcher: env; there: python " in run.stdout


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


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("launcher", "", "launcher: it names no program"),
        ("launcher", "'", "launcher: ': no closing quotation"),
        ("command", "'", "environments[0].command: ': no closing quotation"),
        ("activate", "/dev/zero", "/dev/zero: it is not a regular file"),
    ],
)
def test_commands_that_are_none_are_refused_when_planned(key, value, sentence, tmp_path):
    entry = HERE if key == "launcher" else {"name": "here", key: value}
    told = {"name": "x", "cases": [CASE], "environments": [entry]}
    told |= {"launcher": value} if key == "launcher" else {}
    (tmp_path / "x.yaml").write_text(json.dumps(told))
    done = pffbench_here("plan", tmp_path / "x.yaml")
    assert done.status == 2, done.said
    assert sentence in done.stderr


#: Ranks of which the last stops when it is to copy memory.
STOPS = """
import os, signal
from pffbench.observe import machine
rates = machine.memory_rates
def stop(team):
    if team.rank == team.size - 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return rates(team)
machine.memory_rates = stop
"""


@pytest.mark.full
def test_the_hang_timeout_is_that_of_the_memory_copy_too(tmp_path):
    run = run_experiment(
        tmp_path, 2, hang_timeout="20 s", cases=[CASE | {"shape": [[2**18]]}], repetitions=2,
        env=run_first(tmp_path / "first", STOPS),
    )  # fmt: skip
    assert run.status not in (0, 1), run.said
    assert "the speed of memory" in run.stderr
