"""Counters of a process: processor time, page faults, bytes, calls, peak memory, threads."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pffbench.proc import PROC, kernel_text, labelled_bytes

#: The counters of a phase, in their order. Processor time and faults come from getrusage(2); the
#: others from /proc/PID/io (proc(5)): bytes and calls of read(2), write(2) and similar calls on
#: any open file, and bytes that this process made the kernel read from, or write to, a device. A
#: page touched through a memory map counts as a fault, a major one where it had to be read.
USAGE = ("cpu_seconds", "minor_faults", "major_faults")
IO = (
    "read_bytes", "written_bytes", "read_calls", "write_calls", "device_read_bytes",
    "device_written_bytes",
)  # fmt: skip
COUNTERS = (*USAGE, *IO)
Reading = tuple[float, ...]
_FILE = "/proc/self/io"
#: Bytes that hold the whole file of the kernel.
_LENGTH = 4096


class Meter:
    """Reads the kernel's counters of this process.

    A reading of `USAGE` takes half a microsecond, one of all `COUNTERS` some microseconds.
    Counters that this kernel does not report stay 0.

    Parameters
    ----------
    io : bool
        Whether bytes and calls are read as well.
    """

    def __init__(self, *, io: bool = False) -> None:
        self.io = io
        self._file = -1
        if io:
            try:
                self._file = os.open(_FILE, os.O_RDONLY)
            except OSError:
                self._file = -1

    def begin(self, phase: str = "") -> Reading:  # noqa: ARG002 -- a tracing one names it
        """Return the counters as they stand when this call returns."""
        if not self.io:
            return _usage()
        io, nbytes = self._io()
        if nbytes:  # this reading itself is counted from now on
            read, written, calls, *rest = io
            io = (read + nbytes, written, calls + 1, *rest)
        return (*_usage(), *io)

    def since(self, before: Reading) -> Reading:
        """Return the amounts counted since `begin` returned."""
        now = (*_usage(), *self._io()[0]) if self.io else _usage()
        return tuple([b - a for a, b in zip(before, now, strict=True)])

    def start(self) -> None:
        """Begin what this meter counts beside the kernel's counters: nothing."""

    def stop(self) -> Mapping[tuple[str, str], int]:
        """End it; return what was counted since `start`, by phase and counter."""
        return {}

    def close(self) -> None:
        """Close the kernel's file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _io(self) -> tuple[tuple[float, ...], int]:
        """Return the values of the kernel's file, and the number of bytes read for them."""
        if self._file < 0:
            return (0.0,) * len(IO), 0
        text = os.pread(self._file, _LENGTH, 0)
        return tuple([float(line.split()[1]) for line in text.splitlines()[: len(IO)]]), len(text)


@contextmanager
def metered() -> Iterator[dict[str, float]]:
    """Count system calls, bytes and processor time of a block.

    Yields
    ------
    dict of str to float
        The amounts of all `COUNTERS`; empty until the block has ended without an error.
    """
    found: dict[str, float] = {}
    meter = Meter(io=True)
    before = meter.begin()
    try:
        yield found
        found.update(zip(COUNTERS, meter.since(before), strict=True))
    finally:
        meter.close()


def _usage() -> tuple[float, float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_minflt, used.ru_majflt


class PeakMemory:
    """Reads the peak resident set size since the last reset.

    Linux keeps the peak as ``VmHWM`` and resets it when ``5`` is written to ``clear_refs``
    (proc(5)). Where that is not permitted, the peak of the whole life of the process is read.
    """

    def __init__(self) -> None:
        self._before = 0

    def reset(self) -> None:
        """Begin a new peak."""
        self._before = 0
        self._clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude allocations in this block from the peak, where the kernel permits it."""
        self._before = self.read()
        yield
        self._clear()

    def mark(self) -> int | None:
        """Begin a peak of a part; return the resident bytes, or None where it is not permitted."""
        self._before = self.read()
        return _high_water_mark() if self._clear() else None

    def since_mark(self) -> int:
        """Return the peak since `mark`, in bytes."""
        return _high_water_mark()

    def read(self) -> int:
        """Return the peak in bytes."""
        return max(self._before, _high_water_mark())

    def _clear(self) -> bool:
        with suppress(OSError):  # not permitted: see above
            (PROC / "self/clear_refs").write_text("5")
            return True
        return False


def _high_water_mark() -> int:
    peak = labelled_bytes(PROC / "self/status", "VmHWM")
    return peak.get("VmHWM", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


#: Part of the processor time of all threads from which on a thread counts as one that ran: MPI has
#: threads that wake up now and then.
_RAN = 0.01


def thread_times() -> dict[str, int]:
    """Return the processor time of each thread of this process, in ns; empty if not reported."""
    times = {}
    with suppress(OSError):
        for thread in (PROC / "self/task").iterdir():
            text = kernel_text(thread / "schedstat")
            if text:  # None of a thread that has just ended
                times[thread.name] = int(text.split()[0])
    return times


def threads_that_ran(before: Mapping[str, int], after: Mapping[str, int]) -> int:
    """Return how many threads ran between two calls of `thread_times`.

    A thread that began and ended in between is not seen.
    """
    ran = [ns - before.get(name, 0) for name, ns in after.items()]
    return sum(1 for ns in ran if ns > _RAN * sum(ran))
