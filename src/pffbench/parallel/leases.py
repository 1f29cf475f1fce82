"""What each rank of a node is about, in memory that a process beside the ranks can read.

A rank that begins a step writes until when the step must have ended: its lease. Writing it is a
store to memory, so it costs a rank about a microsecond and never a system call. The rank may be
stuck in a library that keeps Python's lock: whoever reads the lease needs nothing from it.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

_WHO = struct.Struct("<qqq")
_STEP = struct.Struct("<dd64s")
_ABOUT = struct.Struct("<400s")
_FAILED = struct.Struct("<d400s")
_STEP_AT = _WHO.size
_ABOUT_AT = _STEP_AT + _STEP.size
_FAILED_AT = _ABOUT_AT + _ABOUT.size
_ASKED = struct.Struct("<q")
_ASKED_AT = _FAILED_AT + _FAILED.size
#: Bytes of one rank.
SLOT = 1024


@dataclass(frozen=True)
class Lease:
    """What one rank has written of itself.

    Parameters
    ----------
    rank, pid : int
        Its number and its process.
    stacks : int
        Its descriptor of the file that its Python stacks go to when it is asked for them.
    until : float
        When the step must have ended, by the monotonic clock, which all processes of a node
        share; infinite when nothing has to, 0 when the rank has come to its end.
    since : float
        When the step began.
    about, step : str
        What it is about, such as a case and a repetition, and the step of it.
    failed : str
        How the rank failed in the step, if it has, and waits for the others to leave it.
    asked : bool
        Whether a signal has asked the rank to end.
    """

    rank: int
    pid: int
    stacks: int
    until: float
    since: float
    about: str
    step: str
    failed: str = ""
    asked: bool = False

    @property
    def left(self) -> bool:
        """Whether the rank needs no watching any more."""
        return self.until == 0


class Leases:
    """The leases of a node's ranks in a file that all of them map.

    Parameters
    ----------
    descriptor : int
        The file, open for reading and writing.
    count : int
        How many ranks it is for; the file is made as large as they need.
    """

    def __init__(self, descriptor: int, count: int) -> None:
        self.count = count
        if os.fstat(descriptor).st_size < SLOT * count:
            os.ftruncate(descriptor, SLOT * count)
        self._memory = mmap.mmap(descriptor, SLOT * count)

    def __iter__(self) -> Iterator[Lease]:
        return (self._read(SLOT * place) for place in range(self.count))

    def _read(self, at: int) -> Lease:
        rank, pid, stacks = _WHO.unpack_from(self._memory, at)
        until, since, step = _STEP.unpack_from(self._memory, at + _STEP_AT)
        (about,) = _ABOUT.unpack_from(self._memory, at + _ABOUT_AT)
        failed_since, failed = _FAILED.unpack_from(self._memory, at + _FAILED_AT)
        error = _text(failed) if failed_since == since else ""
        (asked,) = _ASKED.unpack_from(self._memory, at + _ASKED_AT)
        told = (_text(about), _text(step), error, bool(asked))
        return Lease(rank, pid, stacks, until, since, *told)

    def holder(self, place: int, rank: int, pid: int, stacks: int) -> Holder:
        """Enter a rank and return what it writes its leases with."""
        holder = Holder(self._memory, SLOT * place)
        holder.step("start", math.inf)
        _WHO.pack_into(self._memory, SLOT * place, rank, pid, stacks)
        return holder


class Holder:
    """One rank's place among the leases."""

    def __init__(self, memory: mmap.mmap, at: int) -> None:
        self._memory = memory
        self._at = at
        self._since = 0.0

    def about(self, text: str) -> None:
        """Say what the following steps belong to."""
        _ABOUT.pack_into(self._memory, self._at + _ABOUT_AT, text.encode()[:400])

    def step(self, name: str, seconds: float) -> None:
        """Begin a step that must have ended after so many seconds."""
        now = self._since = time.monotonic()
        _STEP.pack_into(self._memory, self._at + _STEP_AT, now + seconds, now, name.encode()[:64])

    def failed(self, error: str) -> None:
        """Say how this rank failed in the step that it has begun last."""
        told = error.encode(errors="backslashreplace")[: _FAILED.size - 8]
        _FAILED.pack_into(self._memory, self._at + _FAILED_AT, self._since, told)

    def asked_to_end(self) -> None:
        """Say that a signal has asked this rank to end; it may be killed before it has."""
        _ASKED.pack_into(self._memory, self._at + _ASKED_AT, 1)

    def leave(self) -> None:
        """Need no watching any more."""
        _STEP.pack_into(self._memory, self._at + _STEP_AT, 0.0, time.monotonic(), b"")


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode(errors="replace")
