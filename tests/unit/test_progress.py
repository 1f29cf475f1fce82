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
    ("budget", "left"), [(None, [18, 16, 14]), (120, [18, 16, 14]), (10, [8, 6, 4]), (5, [3, 1, 0])]
)
def test_what_is_left_is_bounded_by_the_time_budget(budget, left, clock, capsys):
    lines = progress.make_progress(2, 10, budget, silent=False)
    for repetition in range(6):
        clock.seconds += 1
        lines.repetition(CASE, repetition // 2)
    line = r"block (\d+) of 10.* done, about (\d+) s left, or less"
    said = re.findall(line, capsys.readouterr().out)
    assert said == [(str(block), str(seconds)) for block, seconds in enumerate(left, start=1)]


def test_the_bar_tells_it_too(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws no bar elsewhere than on a terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    bar = progress.Bar(1, 2, 60)
    clock.seconds = 100
    bar.repetition(CASE, 0)
    bar.close()
    assert "about 0 s left, or less" in capsys.readouterr().out
