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


@pytest.mark.parametrize(
    ("budget", "said"),
    [(None, [("1", "18"), ("2", "16"), ("3", "14")]), (10, [("1", "9"), ("1", "8"), ("2", "7")]),
     (5, [("1", "4"), ("1", "3"), ("2", "2")])],
)  # fmt: skip
def test_a_line_each_tenth_bounds_what_is_left_by_the_time_budget(budget, said, clock, capsys):
    lines = progress.make_progress(2, 10, budget, silent=False)
    for repetition in range(6):
        clock.seconds += 1
        lines.repetition(CASE, repetition // 2)
    told = re.findall(r"round (\d+) of at most 10, about (\d+) s left", capsys.readouterr().out)
    assert told[:3] == said


def test_the_bar_tells_it_too(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws no bar elsewhere than on a terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    bar = progress.Bar(1, 2, 60)
    clock.seconds = 100
    bar.repetition(CASE, 0)
    bar.close()
    assert "about 0 s left, or less" in capsys.readouterr().out
