"""Progress of a run: a bar on a terminal, plain lines with the time in a batch log."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pffbench.case import Case
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


class Lines(Progress):
    """Plain lines with time stamps: one per block, and every message."""

    def __init__(self, cases: int, blocks: int) -> None:
        self._cases = cases
        self._blocks = blocks
        self._count = 0
        self._begin = datetime.now()

    def repetition(self, case: Case, number: int) -> None:
        self._count += 1
        total = self._cases * self._blocks
        if self._count % self._cases == 0 or self._count == total:
            elapsed = (datetime.now() - self._begin).total_seconds()
            left = elapsed / self._count * (total - self._count)
            each = " (a repetition of each case)" if self._count == self._cases else ""
            done = f"block {number + 1} of {self._blocks}{each} done"
            self.message(f"{done}, about {left:.0f} s left")

    def message(self, text: str) -> None:
        told = one_line(without_digests(text))
        print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {told}", flush=True)


class Bar(Progress):
    """A live bar with the remaining time."""

    def __init__(self, cases: int, blocks: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar: RichProgress = RichProgress(
            TextColumn("{task.description:42.42}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            transient=True,
            # Redrawn after each repetition: a refreshing thread would run inside phases.
            auto_refresh=False,
        )
        self._task = self._bar.add_task("starting", total=cases * blocks)
        self._bar.start()

    def repetition(self, case: Case, number: int) -> None:
        name = without_digests(case.id)
        self._bar.update(self._task, advance=1, description=name)
        self._bar.refresh()

    def message(self, text: str) -> None:
        self._bar.console.print(one_line(without_digests(text)), highlight=False, markup=False)

    def close(self) -> None:
        self._bar.stop()


def make_progress(style: Style, cases: int, blocks: int) -> Progress:
    """Return the progress reporter of the requested style."""
    if style == "auto":
        style = "bar" if on_terminal(os.environ) else "plain"
    if style == "bar":
        return Bar(cases, blocks)
    return Lines(cases, blocks) if style == "plain" else Progress()


def on_terminal(environ: Mapping[str, str]) -> bool:
    """Return whether the output is a terminal.

    Open MPI's mpiexec gives its ranks a pseudo-terminal even if its output goes to a file, so the
    output of the parent process is checked there.
    """
    if not sys.stdout.isatty():
        return False
    if "OMPI_COMM_WORLD_SIZE" not in environ:
        return True
    try:
        target = os.readlink(f"/proc/{os.getppid()}/fd/1")  # noqa: PTH115 -- a link of /proc
    except OSError:
        return False
    return target.startswith(("/dev/pts/", "/dev/tty"))
