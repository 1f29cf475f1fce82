"""What a phase costs its process beside time: CPU seconds, page faults, bytes and system calls."""

from __future__ import annotations

import os
import resource

#: What a reading holds, in its order. Bytes and calls are those of read(2) and write(2) and their
#: like, on whatever is open; ``device_…`` are bytes that this process made the kernel fetch from,
#: or hand to, a device (proc(5), ``/proc/PID/io``). A page that a memory map touches shows among
#: the faults (getrusage(2)): a major one where it had to be fetched.
COUNTERS = (
    "cpu_seconds",
    "minor_faults",
    "major_faults",
    "read_bytes",
    "written_bytes",
    "read_calls",
    "write_calls",
    "device_read_bytes",
    "device_written_bytes",
)
Reading = tuple[float, ...]
_FILE = "/proc/self/io"
_ROOM = 4096


class Meter:
    """Reads the kernel's counters of this process; a reading takes some microseconds.

    Counters that this kernel does not show stay 0.
    """

    def __init__(self) -> None:
        try:
            self._file = os.open(_FILE, os.O_RDONLY)
        except OSError:
            self._file = -1

    def begin(self) -> Reading:
        """Return the counters as they stand when this call has returned."""
        io, nbytes = self._io()
        if nbytes:  # this reading itself is counted from now on
            read, written, calls, *rest = io
            io = (read + nbytes, written, calls + 1, *rest)
        return (*_used(), *io)

    def since(self, before: Reading) -> Reading:
        """Return what has been counted since `begin` returned."""
        now = (*_used(), *self._io()[0])
        return tuple(b - a for a, b in zip(before, now, strict=True))

    def _io(self) -> tuple[tuple[float, ...], int]:
        """Return what the kernel's file says, and how many bytes were read to learn it."""
        if self._file < 0:
            return (0.0,) * 6, 0
        text = os.pread(self._file, _ROOM, 0)
        return tuple(float(line.split()[1]) for line in text.splitlines()[:6]), len(text)


def _used() -> tuple[float, float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_minflt, used.ru_majflt
