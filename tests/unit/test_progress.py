"""Remaining time as progress lines tell it: never more than the time budget holds."""

import re
from types import SimpleNamespace

import pytest

from pffbench.record import progress

CASE = SimpleNamespace(id="hyperslab/hdf5")


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def lines_of(cases, rounds, budget, each, clock, capsys):
    """Return the rounds that have a line, with the seconds left; the run obeys its budget."""
    lines = progress.make_progress(cases, rounds, budget, silent=False)
    for number in range(cases * rounds):
        clock.seconds += each
        if budget and clock.seconds > budget:
            break
        lines.repetition(CASE, number // cases)
    head, *said = capsys.readouterr().out.splitlines()
    told = re.findall(r"round (\d+) of at most \d+, about (\d+) s left", "\n".join(said))
    assert len(told) == len(said)
    return head, [(int(a), int(b)) for a, b in told]


@pytest.mark.parametrize(
    ("budget", "head", "said"),
    [(None, "2 cases in at most 10 rounds", [(1, 1800), (2, 1600), (3, 1400)]),
     (1000, "2 cases in at most 10 rounds, for at most 17 min", [(1, 900), (2, 700), (3, 500)]),
     (500, "2 cases in at most 10 rounds, for at most 8 min", [(1, 400), (2, 200)])],
)  # fmt: skip
def test_a_line_each_tenth_bounds_what_is_left_by_the_time_budget(
    budget, head, said, clock, capsys
):
    first, told = lines_of(2, 10, budget, 100, clock, capsys)
    assert first.endswith(f" {head}")
    assert told[:3] == said


@pytest.mark.parametrize(
    ("cases", "rounds", "budget", "each", "most"),
    [
        pytest.param(24, 41, 120, 0.4, 4, id="default"),
        pytest.param(2, 9, None, 0.1, 0, id="seconds"),
        pytest.param(24, 3, None, 300, 3, id="long rounds"),
        pytest.param(4, 1000, None, 10, 9, id="long"),
    ],
)
def test_each_line_has_a_new_round_and_a_run_has_few(
    cases, rounds, budget, each, most, clock, capsys
):
    _, told = lines_of(cases, rounds, budget, each, clock, capsys)
    numbers = [number for number, _ in told]
    assert len(numbers) <= most
    assert numbers == sorted(set(numbers))
    assert most == 0 or len(numbers) >= most - 1


def test_work_that_only_the_first_repetition_of_a_case_does_is_not_expected_again(clock, capsys):
    lines = progress.make_progress(2, 10, None, silent=False)
    for number in range(20):
        once = 1000 if number < 2 else 0
        clock.seconds += 100 + once
        lines.repetition(CASE, number // 2, once)
    said = capsys.readouterr().out
    told = [int(left) for left in re.findall(r"about (\d+) s left", said)]
    assert told[:3] == [1800, 1600, 1400]


def test_the_bar_tells_it_too(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws no bar elsewhere than on a terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    bar = progress.Bar(1, 2, 60)
    clock.seconds = 100
    bar.repetition(CASE, 0)
    bar.close()
    assert "about 0 s left, or less" in capsys.readouterr().out
