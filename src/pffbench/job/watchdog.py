"""The watchdog of a run that hangs: no rank waits for ever for one that is stuck or gone.

Collective calls return only when all ranks make them. Each rank writes the time by which a step
must have ended (`heartbeat`) before the barrier in front of a timed phase, so none of it is timed.
One process per node watches (`watchdog_process`): it reports where the ranks are and ends them when
a step exceeds its time, when a rank is gone and the launcher leaves the others waiting for it, or
when the file system is full and nothing progresses.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pffbench
from pffbench.job.alarm import Alarm
from pffbench.job.heartbeat import Leases, RankLease, ask_no_more, write_stacks_when_asked
from pffbench.mpi.agreement import OtherRankFailedError
from pffbench.mpi.topology import Team

if TYPE_CHECKING:
    import subprocess

#: A directory in memory; a lease on a disk would make ranks wait for the disk.
_MEMORY = "/dev/shm"
#: Seconds that its process has to end when no rank is watched any more.
_ENDING = 5.0


class Watchdog:
    """Watches this rank while the ``with`` block runs; collective over the node.

    Parameters
    ----------
    team : Team
        The ranks.
    limit : float, optional
        Maximum duration of a step in seconds, for the message.
    scratch : str
        The directory that is written to; when it is full, a step in ``writing`` without progress
        counts as hung long before the limit. Empty: not checked.
    writing : sequence of str
        Names of the steps in which files are written.
    results : str
        The results directory, where it is recorded in which case the run hung, and that ranks
        which a signal had asked to end were killed before they ended. Empty: this is no run.
    alive : sequence of str
        Files that the process of this node touches as long as its ranks exist.
    resume : str
        How to resume the run.
    """

    def __init__(
        self,
        team: Team,
        limit: float | None,
        scratch: str = "",
        writing: Sequence[str] = (),
        results: str = "",
        alive: Sequence[str] = (),
        resume: str = "",
    ) -> None:
        self._team = team
        self._limit = "auto" if limit is None else f"{limit:g} s"
        self._places = {
            "scratch": scratch, "writing": writing, "results": results, "alive": alive,
            "resume": resume,
        }  # fmt: skip
        self._alarm = Alarm()
        self._seconds = math.inf
        self._holder: RankLease | None = None
        self._stacks = -1
        self._watchman: subprocess.Popen[bytes] | None = None
        #: Why the ranks of this node are not watched.
        self.missing: str | None = None
        #: Called at the beginning of each step, outside of timed regions.
        self.between_steps: Callable[[], None] | None = None

    def __enter__(self) -> Watchdog:
        file = self._opened()
        if file < 0:
            return self
        leases = Leases(file, int(self._team.node.size))
        self._stacks = write_stacks_when_asked()
        place = int(self._team.node.rank)
        self._holder = leases.holder(place, self._team.rank, os.getpid(), self._stacks)
        self._team.node.Barrier()  # all have entered themselves
        if self._team.is_leader:
            self._start(file, leases.count)
        os.close(file)
        return self

    def begin(self, about: str, seconds: float, case: str = "", repetition: int = 0) -> None:
        """Set the subject of the following steps, the case, and the time limit of each step."""
        self._seconds = seconds
        self._alarm.begin(seconds)
        if self._holder is not None:
            self._holder.about(about, case, repetition)
            self._holder.step("beginning", seconds)

    def step(self, name: str) -> None:
        """Begin a step, which also marks the end of the one before."""
        if self.between_steps is not None:
            self.between_steps()
        self._alarm.step()
        if self._holder is not None:
            self._holder.step(name, self._seconds)

    def asked_to_end(self) -> None:
        """Record that a signal has arrived; may be called by its handler."""
        if self._holder is not None:
            self._holder.asked_to_end()

    def failed(self, error: BaseException) -> None:
        """Record that this rank failed in the step: it waits for others, who may wait for it.

        A rank that only knows of another's failure is not the one that the others wait for.
        """
        if self._holder is not None and not isinstance(error, OtherRankFailedError):
            self._holder.failed(f"{type(error).__name__}: {error}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._alarm.end()
        if self._holder is None:
            return
        self._holder.leave()
        self._holder = None
        if kind is None:  # else other ranks of the node may still be far from their end
            self._team.node.Barrier()
        ask_no_more(self._stacks)
        if self._watchman is not None:
            assert self._watchman.stdin is not None
            self._watchman.stdin.close()
            if kind is None:
                self._end_process(self._watchman)

    def _end_process(self, watchman: subprocess.Popen[bytes]) -> None:
        """Wait for the process to end, which it does unless it has been stopped."""
        import subprocess

        try:
            watchman.wait(_ENDING)
        except subprocess.TimeoutExpired:
            watchman.kill()
            watchman.wait()

    def _opened(self) -> int:
        """Open the file of the node's leases, which is unlinked when all have it open."""
        path, file = "", -1
        if self._team.is_leader:
            import tempfile

            try:
                place = _MEMORY if Path(_MEMORY).is_dir() else None
                file, path = tempfile.mkstemp(prefix="pffbench-leases-", dir=place)
            except OSError as error:
                self.missing = f"no memory to share with it: {error.strerror}"
        path = self._team.node.bcast(path, root=0)
        if path and not self._team.is_leader:
            with suppress(OSError):
                file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        everybody = all(self._team.node.allgather(file >= 0))
        if path and self._team.is_leader:
            Path(path).unlink()
        if file >= 0 and not everybody:
            os.close(file)
            if self._team.is_leader:
                self.missing = "not all ranks of the node can share memory with it"
        return file if everybody else -1

    def _start(self, file: int, count: int) -> None:
        import json  # one rank of each node needs them
        import subprocess

        root = str(Path(pffbench.__file__).parents[1])
        paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        told = [str(file), str(count), self._limit, json.dumps(self._places)]
        try:
            self._watchman = subprocess.Popen(
                [sys.executable, "-P", "-S", "-m", "pffbench.job.watchdog_process", *told],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[file],
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,  # a launcher kills groups; this process ends on its own
            )
        except OSError as error:
            self.missing = f"its process cannot be made: {error.strerror}"
