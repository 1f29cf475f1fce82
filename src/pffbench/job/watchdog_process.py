"""The watchdog's process on each node, which ends the ranks of a run that hangs.

It sleeps until the first lease expires or a rank is gone, and checks four times a minute for
progress, in less than a millisecond. It takes no time from the ranks and needs nothing from them:
a rank that hangs in a library which holds Python's lock still answers the signal for its stacks,
because the signal is handled in C.

Started by `watchdog` as ``python -m pffbench.job.watchdog_process DESCRIPTOR COUNT LIMIT
PLACES``; the end of its standard input is the end of the rank that started it.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from pffbench.job.heartbeat import (
    ASK,
    Lease,
    Leases,
    grouped,
    moved_by,
    numbers,
    stack_of,
    state_of,
)
from pffbench.job.watchdog_notes import note_death, note_hang, note_interrupted

T = TypeVar("T")

#: Seconds that ranks live on after their stacks are reported, so that those of other nodes can be
#: reported before a launcher ends all ranks at the first death.
GRACE = 3.0
#: Seconds that a launcher has to end the others when a rank is gone, before this process does.
PATIENCE = 5.0
#: Seconds for the ranks to write their stacks.
_WRITING = 1.0
#: A deadline that has passed is checked once more after so many seconds: the step may end in
#: the moment of the check.
_ONCE_MORE = 0.2
#: Seconds between checks of a step in progress: when two checks find the same state and the file
#: system is full, the step will not end.
LOOK = 15.0
#: A file system with less free space than this is full.
_NO_ROOM = 2**20
#: Seconds that an access to a file system may take, which may be what hangs.
_ACCESS = 5.0
#: Seconds between touches of the files that show that the run lives.
TOUCH = 60.0
#: Longest sleep, in case a clock or a descriptor fails.
_LONGEST = 3600.0
#: Option of prctl(2): the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1


class NodeWatchdog:
    """Watches the ranks of a node until they have ended, and ends them if necessary.

    Parameters
    ----------
    leases : Leases
        The leases of the ranks.
    limit : str
        How long a step may take, in words.
    scratch : str
        The directory that the ranks write to; empty: not checked.
    writing : sequence of str
        The steps in which files are written.
    results : str
        The results directory; empty: nothing is recorded there.
    alive : sequence of str
        Files that are touched as long as a rank exists: `pffbench.storage.ownership` judges by
        their age whether the run of another machine lives.
    resume : str
        How to resume the run.
    """

    def __init__(
        self,
        leases: Leases,
        limit: str,
        scratch: str = "",
        writing: Sequence[str] = (),
        results: str = "",
        alive: Sequence[str] = (),
        resume: str = "",
    ) -> None:
        self._leases = leases
        self._results = results
        self._alive = alive
        self._resume = resume
        self._next_touch = time.monotonic() + TOUCH if alive else math.inf
        self._toucher: threading.Thread | None = None
        self._limit = limit
        self._scratch = scratch
        self._writing = frozenset(writing)
        self._next_look = time.monotonic() + LOOK if scratch else math.inf
        self._seen: object = None
        self._processes = {lease.rank: _process(lease.pid) for lease in leases}

    def watch(self) -> None:
        """Return when all ranks of the node have left or are gone."""
        opened = True  # standard input
        while waiting := [lease for lease in self._leases if not lease.left]:
            self._touch()
            gone = [lease for lease in waiting if not self._lives(lease)]
            if gone:
                self._note_death(gone)
                if len(gone) < len(waiting):
                    self._bereaved(gone)
                self._note_end(waiting)
                return
            late = self._late()
            if not late and self._is_stuck(waiting):
                self._end(self._full())
                return
            if not late:
                looks = self._next_look, self._next_touch
                until = min(*looks, *(lease.until for lease in waiting))
                opened = self._sleep(until, opened)
                continue
            time.sleep(_ONCE_MORE)
            if set(late) & set(self._leases):  # unchanged
                late = self._late()
                self._end(self._overdue(late), late)
                return

    def _note_end(self, gone: Sequence[Lease]) -> None:
        """Record that rank 0, which keeps the records, was killed after a signal to end."""
        if self._results and any(lease.rank == 0 and lease.asked for lease in gone):
            _in_time(partial(note_interrupted, self._results))

    def _note_death(self, gone: Sequence[Lease]) -> None:
        """Record that a rank died by itself: no signal asked it to end, and its launcher lives."""
        asked = any(lease.asked for lease in gone)
        outside = asked or state_of(gone[0].launcher) in ("gone", "Z")
        if self._results and not outside:
            _in_time(partial(note_death, self._results, gone[0]))

    def _touch(self) -> None:
        """Touch the files that show that the run lives, if it is time to."""
        if (now := time.monotonic()) < self._next_touch:
            return
        self._next_touch = now + TOUCH
        if self._toucher is None or not self._toucher.is_alive():
            self._toucher = threading.Thread(target=_touch_all, args=[self._alive], daemon=True)
            self._toucher.start()

    def _late(self) -> list[Lease]:
        now = time.monotonic()
        return [lease for lease in self._leases if not lease.left and lease.until <= now]

    def _is_stuck(self, waiting: Sequence[Lease]) -> bool:
        """Whether the ranks write to a full file system without progress since the last check.

        A library in which one rank finds no space may leave the others waiting for that rank, and
        that rank for them: no call returns an error.
        """
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + LOOK
        seen = [(lease, moved_by(lease.pid)) for lease in waiting]
        as_before, self._seen = seen == self._seen, seen
        at_it = all(lease.step in self._writing for lease in waiting)
        return as_before and at_it and bool(_in_time(partial(_is_full, self._scratch)))

    def _sleep(self, until: float, opened: bool) -> bool:
        """Wait for the deadline or a rank's end; return whether standard input is still open."""
        handles = [fd for fd in self._processes.values() if fd is not None]
        left = min(max(0.0, until - time.monotonic()), _LONGEST)
        ready, _, _ = select.select([*handles, *([sys.stdin] if opened else [])], [], [], left)
        for rank, fd in self._processes.items():
            if fd is not None and fd in ready:
                os.close(fd)
                self._processes[rank] = None
        return opened and not (sys.stdin in ready and not os.read(sys.stdin.fileno(), 2**10))

    def _lives(self, lease: Lease) -> bool:
        return self._processes[lease.rank] is not None or state_of(lease.pid) not in ("gone", "Z")

    def _bereaved(self, gone: Sequence[Lease]) -> None:
        """End the ranks that wait for one that is gone, if the launcher does not."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if not self._living():
                return
            time.sleep(_ONCE_MORE)
        self._end(
            f"{numbers(lease.rank for lease in gone)} ended in the midst of the run "
            f"({_where(gone[0])}), so the job is ended"
        )

    def _overdue(self, late: Sequence[Lease]) -> str:
        return (
            f"nothing has come to an end for {self._waited(late)}, so "
            f"the job is ended: {_where(late[0])}; {numbers(lease.rank for lease in late)}"
        )

    def _waited(self, late: Sequence[Lease]) -> str:
        passed = time.monotonic() - min(lease.since for lease in late)
        return f"{passed:.0f} s ({'hang_timeout' if self._results else 'limit'} {self._limit})"

    def _full(self) -> str:
        late = [lease for lease in self._leases if not lease.left]
        return (
            f"{self._scratch} is full and nothing has moved for {LOOK:.0f} s, so the job is ended: "
            f"the library waits for a rank that found no room ({_where(late[0])}; "
            f"{numbers(lease.rank for lease in late)})"
        )

    def _end(self, why: str, late: list[Lease] | None = None) -> None:
        """Report where the ranks are and why they are ended, then end them.

        Parameters
        ----------
        why : str
            Why they are ended.
        late : list of Lease, optional
            The ranks whose step did not end, if that is why.
        """
        living = self._living()
        for lease in living:
            with suppress(OSError):
                os.kill(lease.pid, ASK)
        time.sleep(_WRITING)
        stacks = {lease.rank: stack_of(lease) for lease in living}
        told = grouped(stacks.items())
        failed = grouped((lease.rank, lease.failed) for lease in living if lease.failed)
        failures = "".join(f" {line}, and waits for the others." for line in failed)
        resume = ""
        note: Callable[[], bool] = bool
        if late:
            stack = stacks.get(late[0].rank, "")
            note = partial(note_hang, self._results, late, self._waited(late), stack)
        if self._results:
            without = ", and this case is not tried again" if _in_time(note) else ""
            resume = f" What is recorded is kept{without}; {self._resume}"
        _say(
            f"pffbench: {socket.gethostname()}: {why}.{failures}{resume}",
            "Python's stacks, innermost call first:",
            *told,
        )
        time.sleep(GRACE)
        for lease in self._living():
            with suppress(OSError):
                os.kill(lease.pid, signal.SIGKILL)  # a library that hangs heeds no other signal
        if self._results:
            _in_time(note)  # again: rank 0 may have written its record meanwhile

    def _living(self) -> list[Lease]:
        return [lease for lease in self._leases if not lease.left and self._lives(lease)]


def _in_time(access: Callable[[], T]) -> T | None:
    """Return what an access to a file system returns; None where that takes too long."""
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(access()), daemon=True)
    thread.start()
    thread.join(_ACCESS)
    return found[0] if found else None


def _touch_all(paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(OSError):
            os.utime(path, follow_symlinks=False)


def _is_full(directory: str) -> bool:
    try:
        there = os.statvfs(directory)
    except OSError:
        return False
    return there.f_bavail * there.f_frsize < _NO_ROOM


def _where(lease: Lease) -> str:
    return f"{lease.about}, {lease.step}" if lease.about else lease.step


def _process(pid: int) -> int | None:
    """Return a descriptor that signals a process's end; None where the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # Linux before 5.3; then deadlines have to do
        return None


def _continue_without_parent() -> None:
    """Be continued when the rank ends that started this process, which may have been stopped.

    It then notices that ranks are gone, and ends too.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)


def _say(*lines: str) -> None:
    with suppress(OSError):
        print("\n".join(lines), file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> None:
    """Watch the ranks whose leases are in the file that the arguments name."""
    descriptor, count, limit, *places = arguments
    # Signals for the job are for its ranks; this process ends with them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    _continue_without_parent()
    told = json.loads(places[0]) if places else {}
    NodeWatchdog(Leases(int(descriptor), int(count)), limit, **told).watch()


if __name__ == "__main__":
    main(sys.argv[1:])
