"""Environments that lie or stop, and commands that are none: nothing hangs."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from launch import (
    REPOSITORY,
    entries_below,
    pffbench_here,
    run_experiment,
    sampled,
    start_experiment,
    wait_until,
)
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


def test_commands_given_in_the_command_line_are_started(tmp_path):
    there = json.dumps([{"name": "there", "python": sys.executable}])
    run = run_experiment(
        tmp_path, None, "--set", f"environments={there}", "--set", "launcher=env", cases=[CASE]
    )
    assert run.status == 0, run.said
    assert "starts: launcher: env; there: python " in run.stdout


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
