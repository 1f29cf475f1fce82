"""Progress of a run: a bar on a terminal, plain lines with the time in a batch log."""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pffbench.case import Case
from pffbench.parallel.launcher import on_terminal
from pffbench.text import one_line, without_digests

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Style = Literal["auto", "bar", "plain", "none"]


class Progress:
    """Progress reports on rank 0; this base class prints nothing."""

    def repetition(self, case: Case, number: int) -> None:
        """Report that a repetition is recorded."""

    def message(self, text: str) -> None:
        """Report an event."""

    def close(self) -> None:
        """Restore the terminal."""


class _Remaining:
    """Time that a run will still take, by its repetitions so far; less where cases stop early.

    Parameters
    ----------
    repetitions : int
        Of all cases, if none stops early.
    budget : float or None
        Seconds after which no repetition begins.
    """

    def __init__(self, repetitions: int, budget: float | None) -> None:
        self._repetitions = repetitions
        self._budget = math.inf if budget is None else budget
        self._begin = time.monotonic()

    def after(self, repetitions: int) -> str:
        """Return the time that is left after so many repetitions, in words."""
        elapsed = time.monotonic() - self._begin
        all_of_them = elapsed / repetitions * (self._repetitions - repetitions)
        return f"about {max(min(all_of_them, self._budget - elapsed), 0):.0f} s left, or less"


class Lines(Progress):
    """Plain lines with time stamps: one per block, and every message."""

    def __init__(self, cases: int, blocks: int, budget: float | None) -> None:
        self._cases = cases
        self._blocks = blocks
        self._count = 0
        self._remaining = _Remaining(cases * blocks, budget)

    def repetition(self, case: Case, number: int) -> None:
        self._count += 1
        if self._count % self._cases == 0 or self._count == self._cases * self._blocks:
            each = " (a repetition of each case)" if self._count == self._cases else ""
            done = f"block {number + 1} of {self._blocks}{each} done"
            self.message(f"{done}, {self._remaining.after(self._count)}")

    def message(self, text: str) -> None:
        told = one_line(without_digests(text))
        print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {told}", flush=True)


class Bar(Progress):
    """A live bar with the remaining time."""

    def __init__(self, cases: int, blocks: int, budget: float | None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar: RichProgress = RichProgress(
            TextColumn("{task.description:42.42}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            transient=True,
            # Redrawn after each repetition: a refreshing thread would run inside phases.
            auto_refresh=False,
        )
        self._task = self._bar.add_task("starting", total=cases * blocks, left="")
        self._count = 0
        self._remaining = _Remaining(cases * blocks, budget)
        self._bar.start()

    def repetition(self, case: Case, number: int) -> None:
        self._count += 1
        name = without_digests(case.id)
        left = self._remaining.after(self._count)
        self._bar.update(self._task, advance=1, description=name, left=left)
        self._bar.refresh()

    def message(self, text: str) -> None:
        self._bar.console.print(one_line(without_digests(text)), highlight=False, markup=False)

    def close(self) -> None:
        self._bar.stop()


def make_progress(style: Style, cases: int, blocks: int, budget: float | None) -> Progress:
    """Return the progress reporter of the requested style.

    Parameters
    ----------
    style : str
        ``auto`` is a bar on a terminal, and plain lines elsewhere.
    cases, blocks : int
        Number of cases, and of their repetitions if none stops early.
    budget : float or None
        Time budget of the run in seconds.
    """
    if style == "auto":
        style = "bar" if on_terminal() else "plain"
    if style == "bar":
        return Bar(cases, blocks, budget)
    return Lines(cases, blocks, budget) if style == "plain" else Progress()
