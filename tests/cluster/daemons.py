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
        self._running: dict[str, subprocess.Popen[bytes]] = {}

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
        self._running[name] = process

    def pid(self, name: str) -> int | None:
        """Return the process id of a daemon, or None when it does not run."""
        self.collect()
        process = self._running.get(name)
        return None if process is None else process.pid

    def collect(self) -> None:
        """Take leave of all children that have ended; a process 1 gets every orphan."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        self._running = {n: p for n, p in self._running.items() if p.poll() is None}

    @staticmethod
    def end() -> None:
        """End every process of the machine, and of all machines inside it, at once."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(-1, signal.SIGKILL)  # for process 1: everything in its namespace but itself
            while True:
                os.waitpid(-1, 0)
