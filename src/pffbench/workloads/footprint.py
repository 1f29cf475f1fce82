"""The footprint of a transfer: threads of the library that ran, and memory that it added."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pffbench.parallel.process_counters import metered, thread_times, threads_that_ran
from pffbench.workloads.repetition import Repetition

#: Names of the counters.
THREADS, MEMORY = "threads", "memory_added"


@contextmanager
def watched_transfer(repetition: Repetition, phase: str) -> Iterator[None]:
    """Count the threads that run in a phase, and the resident bytes that it adds at most.

    For libraries with threads of their own. Of a phase that is entered several times the largest
    values are kept. All is read off the timer, before the barrier in front of the phase and after
    the one at its end.

    Memory is looked at while warming up only: free memory that the process holds hides what a
    transfer takes, so it is returned to the system first, and taking it again takes time. The C
    library does not return all of what its threads hold, so the amount is a lower bound.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    phase : str
        The phase, entered within this block.
    """
    if not repetition.backend.capabilities.threads:
        yield
        return
    peak, observed = repetition.peak, repetition.observed
    with _not_counted(repetition):
        resident = peak.mark() if repetition.warmup and _free_memory_returned() else None
        before = thread_times()
    yield
    with _not_counted(repetition):
        found = {THREADS: threads_that_ran(before, thread_times())}
        if resident is not None:
            found[MEMORY] = max(0, peak.since_mark() - resident)
    for name, amount in found.items():
        key = (phase, name)
        observed.counts[key] = max(observed.counts.get(key, 0.0), float(amount))


def _free_memory_returned() -> bool:
    """Return free memory of the C library to the system; False where it has no such call."""
    with suppress(AttributeError):  # glibc has it
        ctypes.CDLL(None).malloc_trim(0)
        return True
    return False


@contextmanager
def _not_counted(repetition: Repetition) -> Iterator[None]:
    """Note the bytes read from the kernel's files, which are no data of a store."""
    with metered() as counted:
        yield
    repetition.observed.own_bytes += counted["read_bytes"]
