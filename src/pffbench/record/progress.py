"""Progress of a run: a bar on a terminal, plain lines with the time in a batch log."""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import TYPE_CHECKING

from pffbench.case import Case
from pffbench.job.launcher import on_terminal
from pffbench.text import counted, one_line, without_digests
from pffbench.units import duration_text

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

#: Fewest seconds between two lines of progress, so that a run of two minutes has a few.
_SELDOM = 25.0
#: A tenth of the run, but for rounding.
_TENTH = 0.0999


class Progress:
    """Progress reports on rank 0; this base class prints nothing."""

    def repetition(self, case: Case, number: int, once: float = 0.0) -> None:
        """Report that a repetition is recorded; `once`: seconds that no other of the case needs."""

    def message(self, text: str) -> None:
        """Report an event."""

    def close(self) -> None:
        """Restore the terminal."""


class _Counting(Progress):
    """Progress that counts repetitions.

    Parameters
    ----------
    cases, rounds : int
        Number of cases, and of their repetitions if none stops early.
    budget : float or None
        Seconds after which no repetition begins.
    """

    def __init__(self, cases: int, rounds: int, budget: float | None) -> None:
        self._cases, self._rounds = cases, rounds
        self._all = cases * rounds
        self._budget = math.inf if budget is None else budget
        self._begin = time.monotonic()
        self._count, self._once = 0, 0.0

    def repetition(self, case: Case, number: int, once: float = 0.0) -> None:
        self._count += 1
        self._once += once

    @property
    def _left(self) -> str:
        """Time that the run will still take, by its repetitions so far; less if cases stop."""
        elapsed = time.monotonic() - self._begin
        each = (elapsed - self._once) / self._count
        first = max(self._cases - self._count, 0) * self._once / self._count
        all_of_them = each * (self._all - self._count) + first
        return f"about {max(min(all_of_them, self._budget - elapsed), 0):.0f} s left, or less"


class Lines(_Counting):
    """Plain lines with time stamps: what is planned, the rounds, and every message.

    A round has a line if a tenth of the run has passed since the last one, and `_SELDOM` seconds.
    """

    def __init__(self, cases: int, rounds: int, budget: float | None) -> None:
        super().__init__(cases, rounds, budget)
        self._shown = (0.0, self._begin, 0)
        most = "" if budget is None else f", for at most {duration_text(budget)}"
        upper = "at most " * (rounds > 1)
        self.message(f"{counted(cases, 'case')} in {upper}{counted(rounds, 'round')}{most}")

    def repetition(self, case: Case, number: int, once: float = 0.0) -> None:
        super().repetition(case, number, once)
        now = time.monotonic()
        part = max(self._count / self._all, (now - self._begin) / self._budget)
        last, when, round_shown = self._shown
        passed = part - last >= _TENTH and now - when >= _SELDOM
        if passed and part < 1 and number + 1 > round_shown:
            self._shown = (part, now, number + 1)
            self.message(f"round {number + 1} of at most {self._rounds}, {self._left}")

    def message(self, text: str) -> None:
        told = one_line(without_digests(text))
        print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {told}", flush=True)


class Bar(_Counting):
    """A live bar with the remaining time."""

    def __init__(self, cases: int, rounds: int, budget: float | None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        super().__init__(cases, rounds, budget)
        self._bar: RichProgress = RichProgress(
            TextColumn("{task.description:42.42}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            transient=True,
            # Redrawn after each repetition: a refreshing thread would run inside phases.
            auto_refresh=False,
        )
        self._task = self._bar.add_task("starting", total=self._all, left="")
        self._bar.start()

    def repetition(self, case: Case, number: int, once: float = 0.0) -> None:
        super().repetition(case, number, once)
        name = without_digests(case.id)
        self._bar.update(self._task, advance=1, description=name, left=self._left)
        self._bar.refresh()

    def message(self, text: str) -> None:
        self._bar.console.print(one_line(without_digests(text)), highlight=False, markup=False)

    def close(self) -> None:
        self._bar.stop()


def make_progress(cases: int, rounds: int, budget: float | None, *, silent: bool) -> Progress:
    """Return the progress reporter: a bar on a terminal, and plain lines elsewhere.

    Parameters
    ----------
    cases, rounds : int
        Number of cases, and of their repetitions if none stops early.
    budget : float or None
        Time budget of the run in seconds.
    silent : bool
        Whether nothing is reported.
    """
    if silent:
        return Progress()
    return (Bar if on_terminal() else Lines)(cases, rounds, budget)
