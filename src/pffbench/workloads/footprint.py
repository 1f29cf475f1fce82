"""The footprint of a transfer: threads of the library that ran, and memory that it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pffbench.parallel.allocator import return_free_memory
from pffbench.parallel.process_counters import metered, thread_times, threads_that_ran
from pffbench.workloads.repetition import Repetition

#: Names of the counters.
THREADS, MEMORY = "threads", "memory_added"


#: Bytes of a huge page, the most that a page fault brings.
_HUGE_PAGE = 2**21


@contextmanager
def watched_transfer(repetition: Repetition, phase: str, nbytes: int) -> Iterator[None]:
    """Note the memory that a read takes anew; of a library with threads, also its footprint.

    All is read off the timer, before the barrier in front of the phase and after the one at its
    end. Of a phase that is entered several times new memory is added up.

    The footprint is the number of threads that run in the phase, and the resident bytes that it
    adds at most; the largest values are kept. Memory is looked at while warming up only: free
    memory that the process holds hides what a transfer takes, so it is returned to the system
    first, and taking it again takes time. The C library does not return all of what its threads
    hold, so the amount is a lower bound.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    phase : str
        The phase, entered within this block.
    nbytes : int
        Bytes that this rank moves in it. Less than a huge page comes in small pages, which page
        faults count.
    """
    threads = repetition.backend.capabilities.threads
    reads = phase == "read" and nbytes >= _HUGE_PAGE
    if not (threads or reads):
        yield
        return
    peak, observed = repetition.peak, repetition.observed
    with _not_counted(repetition):
        emptied = threads and repetition.warmup and return_free_memory()
        resident = peak.mark() if emptied or reads else None
        before = thread_times() if threads else {}
    yield
    with _not_counted(repetition):
        added = 0 if resident is None else max(0, peak.since_mark() - resident)
        found = {THREADS: threads_that_ran(before, thread_times())} if threads else {}
    if reads:
        observed.added_memory += added
    if emptied and resident is not None:
        found[MEMORY] = added
    for name, amount in found.items():
        key = (phase, name)
        observed.counts[key] = max(observed.counts.get(key, 0.0), float(amount))


@contextmanager
def _not_counted(repetition: Repetition) -> Iterator[None]:
    """Note the bytes read from the kernel's files, which are no data of a store."""
    with metered() as counted:
        yield
    repetition.observed.own_bytes += counted["read_bytes"]
