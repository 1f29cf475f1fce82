"""Several environments in one run: cases, steps and messages, without starting any."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from drawn_runs import a_case, timed_run
from pffbench.experiment.load import from_data, load_experiment
from pffbench.job.batch_job import StopSignals
from pffbench.proc import process_fields
from pffbench.results.judge import START
from pffbench.results.summary import summarise
from pffbench.storage.ownership import MARKER
from pffbench.storage.scratch import Scratch
from pffbench_environments.processes import Output, last_line, run_bounded
from pffbench_environments.start import Launch, StartedEnvironment
from pffbench_environments.steps import Ranks, remove_scratch_of, step_experiment, turn_order

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
FILES = sorted(path for path in CONFIGS.rglob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONFIGS)))
def test_a_step_has_exactly_the_cases_of_the_run(file):
    loaded = load_experiment(str(file))
    cases = [case for _, case in loaded.cases]
    if len(cases) > 500:
        cases = cases[::50]
    step = from_data(step_experiment(loaded.experiment, cases, 3), "step")
    assert [case.id for _, case in step.cases] == [case.id for case in cases]
    assert [case.group for _, case in step.cases] == [case.group for case in cases]
    assert step.experiment.rounds == (loaded.experiment.warmup + loaded.experiment.step_repetitions)
    assert step.experiment.environments == ()


def test_rounds_of_steps_have_other_data():
    loaded = load_experiment(None)
    cases = [case for _, case in loaded.cases][:1]
    seeds = {step_experiment(loaded.experiment, cases, number)["seed"] for number in range(9)}
    assert len(seeds) == 9


def test_environments_take_turns():
    assert [tuple(turn_order(2, number)) for number in range(3)] == [(0, 1), (1, 0), (0, 1)]
    followers = Counter(
        pair for number in range(6) for pair in itertools.pairwise(turn_order(3, number))
    )
    assert set(followers.values()) == {2}
    assert len(followers) == 6
    assert list(turn_order(1, 5)) == [0]


def test_a_case_of_an_environment_keeps_its_name_on_all_ranks():
    ((_, case), *_) = load_experiment(None).cases
    there = replace(case, environment="new")
    assert there.id == f"{case.id}@new"
    assert there.group == case.group
    assert pickle.loads(pickle.dumps(there)).id == there.id


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Traceback\nImportError: no\n-----\nmpiexec: 1 process failed\n-----", "ImportError: no"),
        ("pffbench: no room\n---\nmpiexec was here", "no room"),
        ("Killed\n", "Killed"),
        (
            "pffbench: rank 0 met an unexpected error\nTraceback\nOSError: too large\nkilled",
            "OSError: too large",
        ),
        ("", "it said nothing"),
    ],
)
def test_the_line_that_explains_a_failure_is_taken(text, line):
    assert last_line(text) == line


def test_messages_are_found_among_other_output_in_pieces_of_any_length():
    heard = []
    output = Output("pffbench-turn: ", heard.append)
    text = b"module loaded\n[1,0]pffbench-turn: 1 600 a\nbye\n" + b"x" * 300_000
    for place in range(0, len(text), 7):
        output.hear(text[place : place + 7])
    assert heard == ["1 600 a"]
    assert output.text.endswith("x" * 100)
    assert len(output.text) < 50_000


def test_a_long_answer_is_heard_as_a_whole():
    heard = []
    output = Output("answer: ", heard.append)
    for part in [b"answer: ", *[b"y" * 65536] * 100, b"\n"]:
        output.hear(part)
    assert list(map(len, heard)) == [100 * 65536]


@pytest.mark.full
def test_output_costs_what_it_is_long():
    """32 MiB were not heard within minutes when all of it was split again and again."""
    output = Output("pffbench-turn: ", print)
    began = time.process_time()
    for _ in range(1024):
        output.hear(b"z" * 65536)
    for _ in range(1024):
        output.hear(b"line\n" * 13107)
    assert time.process_time() - began < 30


def ranks_of(script, tmp_path, limit):
    launch = Launch((), SimpleNamespace(), StopSignals(), lambda: None, tmp_path, limit)
    return Ranks(launch, StartedEnvironment("a", ("sh", "-c")), [script], tmp_path, {"c"})


def test_a_repetition_that_nobody_ends_is_ended(tmp_path):
    ranks = ranks_of("echo 'pffbench-turn: 0 0 c'; read x; sleep 100000", tmp_path, 0.5)
    ranks.wait_for_turn(30, "start")
    assert ranks.asks == (0, "c")
    ranks.go()
    assert ranks.asks is None
    assert "its ranks did not end a repetition within 0.5 s" in ranks.leave()[1]


def test_ranks_ask_for_a_turn_once(tmp_path):
    ask = "echo 'pffbench-turn: 0 600 c'"
    ranks = ranks_of(f"{ask}; read x; {ask}; read x", tmp_path, 5)
    ranks.wait_for_turn(30, "start")
    ranks.go()
    assert ranks.asks is None
    assert "asked for a turn that is none: '0 600 c'" in ranks.leave()[1]


@pytest.mark.parametrize("ends", [True, False])
def test_a_command_is_bounded_and_leaves_no_child(ends, tmp_path):
    file = tmp_path / "child"
    wait = "" if ends else "; wait"
    command = ["sh", "-c", f"sleep 100000 & echo $! >{file}{wait}"]
    done = run_bounded(command, 1.0, lambda: None)
    assert done.status == (0 if ends else None)
    fields = process_fields(int(file.read_text()))
    assert not fields or fields[0] == "Z"


def test_output_of_a_process_that_left_the_session_does_not_keep_the_run(monkeypatch):
    """It is no child that could be ended, and prints for as long as somebody listens."""
    monkeypatch.setattr("pffbench_environments.processes._GRACE", 0.5)
    command = ["bash", "-c", "setsid yes & sleep 0.5"]
    done = run_bounded(command, 1.0, lambda: None)
    assert "y" in done.text


def test_a_step_removes_no_scratch_but_its_own(tmp_path):
    def left(parent, **marker):
        parent.mkdir(exist_ok=True)
        scratch = Scratch.create(str(parent), f"run-{len(list(tmp_path.rglob('*')))}")
        file = Path(scratch.directory, MARKER)
        gone = {"pid": 2**22 - 1, "started": "1"}
        file.write_text(json.dumps(json.loads(file.read_text()) | gone | marker))
        return scratch

    parent = tmp_path / "scratch"
    own = left(parent)
    others = [
        left(parent, pid=os.getpid(), started=""),
        left(parent, kept_for="/elsewhere"),
        left(tmp_path / "other"),
    ]
    for scratch in (own, *others):
        record = SimpleNamespace(scratch=scratch.directory, run_id=scratch.run_id)
        remove_scratch_of(record, str(parent), {"ended"})
    assert not Path(own.directory).exists()
    assert all(Path(other.directory, MARKER).exists() for other in others)


def test_the_answer_names_the_environment_and_each_round_is_a_start(tmp_path):
    cases = [a_case("hdf5", environment=name) for name in ("old", "new")]
    generator = np.random.default_rng(1)
    noise = {name: 1 + 0.02 * generator.random(9) for name, _ in cases}
    (old, _), (new, _) = cases
    seconds = {old: (2 * noise[old], 2 * noise[old]), new: (noise[new], noise[new])}
    run = timed_run(tmp_path, seconds, cases, environments={"old": {}, "new": {}})
    found = summarise(run)
    assert {round_ % START for cell in found.cells for round_ in cell.seconds} == {0}
    assert "USE HDF5, environment new: no measured way is faster" in found.answer.sentence
    assert found.answer.way == {"environment": "new"}
    assert any(
        note.startswith("Environment old instead of environment new: ")
        for note in found.answer.notes
    )
