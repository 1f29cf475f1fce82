"""The processes below process 1 of a machine: started, collected and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable

from cluster.namespaces import as_user
from cluster.settings import ClusterError, Settings


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 15) -> None:
    """Wait for a condition.

    Raises
    ------
    ClusterError
        It did not come true in time.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise ClusterError(f"{what}: not within {seconds:g} s")
        time.sleep(0.01)


class Daemons:
    """All children of a process 1, its own and those that it inherits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: dict[int, str] = {}

    def start(self, name: str, command: list[str]) -> None:
        """Start a daemon as the user; what it says goes to a log of its name."""
        with (self._settings.path / "log" / f"{name}.out").open("ab") as log:
            process = subprocess.Popen(
                [*as_user(self._settings), *command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        self.add(name, process)

    def add(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Look after a process that was started elsewhere."""
        self._running[process.pid] = name

    def pid(self, name: str) -> int | None:
        """Return the process id of a daemon, or None when it does not run."""
        self.collect()
        return next((pid for pid, known in self._running.items() if known == name), None)

    def collect(self) -> None:
        """Take leave of all children that have ended; a process 1 gets every orphan."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._running.pop(ended, None)
        except ChildProcessError:
            self._running.clear()

    @staticmethod
    def end() -> None:
        """End every process of the machine, and of all machines inside it, at once."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(-1, signal.SIGKILL)  # for process 1: everything in its namespace but itself
            while True:
                os.waitpid(-1, 0)
