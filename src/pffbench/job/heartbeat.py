"""Heartbeats of ranks in shared memory, and the Python stacks of ranks that hang.

A rank that begins a step writes the time by which the step must have ended: its lease. Writing it
is a store to memory, so it costs a rank about a microsecond and never a system call. The rank may
be stuck in a library that holds Python's lock: reading the lease needs nothing from it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import mmap
import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from pffbench.proc import PROC, kernel_text, number_ranges, process_fields


class _Slot(ctypes.Structure):
    """A lease in memory: the fields of `Lease`, and the step that `failed` belongs to."""

    _fields_ = (
        ("rank", ctypes.c_int64), ("pid", ctypes.c_int64), ("stacks", ctypes.c_int64),
        ("until", ctypes.c_double), ("since", ctypes.c_double), ("step", ctypes.c_char * 64),
        ("about", ctypes.c_char * 400),
        ("failed_since", ctypes.c_double), ("failed", ctypes.c_char * 400),
        ("asked", ctypes.c_bool),
        ("case", ctypes.c_char * 400), ("repetition", ctypes.c_int64),
        ("launcher", ctypes.c_int64),
    )  # fmt: skip


class Lease(NamedTuple):
    """The lease of one rank, as last written."""

    #: Rank and process number.
    rank: int
    pid: int
    #: Descriptor of the file to which the rank writes its Python stacks on request.
    stacks: int
    #: Time by which the step must have ended, by the monotonic clock, which all processes of a node
    #: share; infinite for a step without a limit, 0 when the rank has ended.
    until: float
    #: Time at which the step began.
    since: float
    #: Subject of the step, such as a case and a repetition, and the step itself.
    about: str
    step: str
    #: How the rank failed in the step, if it has and waits for the others to leave it.
    failed: str = ""
    #: Whether the rank has received a signal to end.
    asked: bool = False
    #: The case and the repetition that the step is part of; no name where it is part of none.
    case: str = ""
    repetition: int = 0
    #: Process that started the rank.
    launcher: int = 0

    @property
    def left(self) -> bool:
        """Whether the rank needs no more watching."""
        return self.until == 0


class Leases:
    """The leases of a node's ranks in a file that all of them map.

    Parameters
    ----------
    descriptor : int
        The file, open for reading and writing.
    count : int
        Number of ranks; the file is extended to the size that they need.
    """

    def __init__(self, descriptor: int, count: int) -> None:
        self.count = count
        size = ctypes.sizeof(_Slot) * count
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._slots = (_Slot * count).from_buffer(mmap.mmap(descriptor, size))

    def __iter__(self) -> Iterator[Lease]:
        return map(_lease, self._slots)

    def holder(self, place: int, rank: int, pid: int, stacks: int) -> RankLease:
        """Enter a rank and return the object with which it writes its lease."""
        slot = self._slots[place]
        holder = RankLease(slot)
        holder.step("start", math.inf)
        slot.rank, slot.pid, slot.stacks = rank, pid, stacks
        slot.launcher = os.getppid()
        return holder


def _lease(slot: _Slot) -> Lease:
    """Return a copy of a lease, field by field; a failure in an earlier step does not count."""
    found = Lease(**{name: _value(getattr(slot, name)) for name in Lease._fields})
    return found if slot.failed_since == slot.since else found._replace(failed="")


class RankLease:
    """One rank's entry among the leases."""

    def __init__(self, slot: _Slot) -> None:
        self._slot = slot

    def about(self, text: str, case: str = "", repetition: int = 0) -> None:
        """Set the subject of the following steps, and the case that they are part of."""
        self._slot.about = text.encode()[:400]
        self._slot.case, self._slot.repetition = case.encode()[:400], repetition

    def step(self, name: str, seconds: float) -> None:
        """Begin a step that must end within so many seconds."""
        now = monotonic()
        self._slot.until = now + seconds  # first: a step that has begun is never late
        self._slot.since = now
        self._slot.step = name.encode()[:64]

    def failed(self, error: str) -> None:
        """Record how this rank failed in its current step."""
        self._slot.failed = error.encode(errors="backslashreplace")[:400]
        self._slot.failed_since = self._slot.since

    def asked_to_end(self) -> None:
        """Record that a signal requests the end of this rank; it may be killed before it ends."""
        self._slot.asked = True

    def leave(self) -> None:
        """End the watching of this rank."""
        self._slot.until = 0.0


def _value(field: bytes | float) -> Any:
    return field.decode(errors="replace") if isinstance(field, bytes) else field


#: The signal at which a rank writes its stacks, in C and without Python's lock.
ASK = signal.SIGUSR2
#: Maximum number of lines of a stack that are reported.
_MOST_LINES = 60
_ADDRESS = r"0x[0-9a-f]+ "


def write_stacks_when_asked() -> int:
    """Let this process write its stacks at a signal; return the descriptor that they go to.

    They go to memory whose name only this process knows, so nothing is left of them.
    """
    descriptor = os.memfd_create("pffbench-stacks")
    faulthandler.register(ASK, file=descriptor, all_threads=True)
    return descriptor


def ask_no_more(descriptor: int) -> None:
    """Undo `write_stacks_when_asked`."""
    faulthandler.unregister(ASK)
    os.close(descriptor)


def stack_of(lease: Lease) -> str:
    """Return the stacks that a rank has written, or the reason that there are none."""
    try:
        text = Path(f"/proc/{lease.pid}/fd/{lease.stacks}").read_text(errors="replace")
    except OSError as error:
        text = f"(not to be read: {error.strerror})"
    lines = [re.sub(_ADDRESS, "", line) for line in text.splitlines()] or ["(it wrote none)"]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} more lines"]
    return "\n".join([f"process in state {state_of(lease.pid)}", *lines])


def state_of(pid: int) -> str:
    """Return the state of a process after proc(5), such as ``D`` in a call to a device."""
    return next(iter(process_fields(pid)), "gone")


def moved_by(pid: int) -> str:
    """Return the bytes that a process has read and written and its page faults, as text."""
    counters = (kernel_text(PROC / f"{pid}/io") or "").splitlines()[:4]
    return " ".join([*counters, *process_fields(pid)[7:11]])  # fields 10 to 13 of proc(5)


def grouped(stacks: Iterable[tuple[int, str]]) -> list[str]:
    """Return a paragraph for each different stack, with the ranks that have it."""
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, stack in stacks:
        ranks[stack].append(rank)
    return [f"{numbers(found)}: {stack}" for stack, found in ranks.items()]


def numbers(ranks: Iterable[int]) -> str:
    """Format ranks briefly: ``ranks 0-3, 8``."""
    text = number_ranges(set(ranks)).replace(",", ", ")
    return f"rank {text}" if text.isdecimal() else f"ranks {text}"
