"""Several environments in one run: cases, steps and messages, without starting any."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from pffbench.environments.start import answer_in, last_line
from pffbench.environments.step import step_experiment, turn_order
from pffbench.experiment.load import from_data, load_experiment, to_plain

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
    assert step.experiment.blocks == (
        loaded.experiment.warmup + loaded.experiment.step_repetitions
    )
    assert step.experiment.environments == ()


def test_blocks_of_steps_have_other_data():
    loaded = load_experiment(None)
    cases = [case for _, case in loaded.cases][:1]
    seeds = {step_experiment(loaded.experiment, cases, block)["seed"] for block in range(9)}
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


def test_other_experiments_are_recorded_as_before():
    plain = to_plain(load_experiment(None).experiment)
    assert not {"environments", "step_repetitions", "launcher"} & plain.keys()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Traceback\nImportError: no\n-----\nmpiexec: 1 process failed\n-----", "ImportError: no"),
        ("pffbench: no room\n---\nmpiexec was here", "no room"),
        ("Killed\n", "Killed"),
        ("", "it said nothing"),
    ],
)
def test_the_line_that_explains_a_failure_is_taken(text, line):
    assert last_line(text) == line


def test_an_answer_is_found_among_other_output():
    assert answer_in('module loaded\n[1,0]pffbench-environment: {"a": 1}\nbye') == {"a": 1}
    assert answer_in("pffbench-environment: {broken") is None
    assert answer_in("nothing") is None
