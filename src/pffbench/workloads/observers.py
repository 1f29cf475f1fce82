"""Observers of the phases that move array data: threads, memory, short transfers, touched chunks.

An observer is called before the barrier in front of a phase. It returns what is to be done after
the phase, or None. Both are off the timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from pffbench.backends.base import Array, Call
from pffbench.backends.file_layout import ArrayInFile, diagnose_short_write
from pffbench.backends.inspection import StoredLayout
from pffbench.backends.traits import TellsLayout
from pffbench.observe.allocator import return_free_memory
from pffbench.observe.process_counters import metered, thread_times, threads_that_ran
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Transfer

#: Names of the counters.
THREADS, MEMORY = "threads", "memory_added"
#: Bytes of a huge page, the most that a page fault brings.
_HUGE_PAGE = 2**21


class Move(msgspec.Struct):
    """The calls of a phase that moves array data of an open store."""

    #: The phase.
    phase: str
    #: The open arrays, by name.
    arrays: Mapping[str, Array]
    #: The transfers, one for each call.
    transfers: Sequence[Transfer]
    #: The calls that the arrays returned.
    calls: Sequence[Call]
    #: What they returned; empty before the phase.
    returned: Sequence[Any] = ()

    @property
    def reads(self) -> bool:
        """Whether data are read."""
        return self.phase == "read"


Observer = Callable[[Repetition, Move], Callable[[], None] | None]


def observe_memory(repetition: Repetition, move: Move) -> Callable[[], None] | None:
    """Note the memory that a read takes anew; of a library with threads, also what it adds at most.

    New memory of a phase that is entered several times is added up. The most that a library with
    threads adds is looked at while warming up only: free memory that the process holds hides what a
    transfer takes, so it is returned to the system first, and taking it again takes time. The C
    library does not return all of what its threads hold, so the amount is a lower bound.

    A read of less than a huge page gets its memory in small pages, which page faults count.
    """
    threads = repetition.subject.backend.capabilities.threads
    reads = move.reads and sum(transfer.memory.nbytes for transfer in move.transfers) >= _HUGE_PAGE
    if not (threads or reads):
        return None
    peak, observed = repetition.place.peak, repetition.observed
    with _not_counted(repetition):
        emptied = threads and repetition.request.warmup and return_free_memory()
        resident = peak.mark() if emptied or reads else None
    if resident is None:
        return None

    def note() -> None:
        with _not_counted(repetition):
            added = max(0, peak.since_mark() - resident)
        if reads:
            observed.added_memory += added
        if emptied:
            observed.keep_most(move.phase, MEMORY, added)

    return note


def observe_threads(repetition: Repetition, move: Move) -> Callable[[], None] | None:
    """Note how many threads run in the phase, of a library with threads; the most is kept."""
    if not repetition.subject.backend.capabilities.threads:
        return None
    with _not_counted(repetition):
        before = thread_times()

    def note() -> None:
        with _not_counted(repetition):
            ran = threads_that_ran(before, thread_times())
        repetition.observed.keep_most(move.phase, THREADS, ran)

    return note


@contextmanager
def _not_counted(repetition: Repetition) -> Iterator[None]:
    """Note the bytes read from the kernel's files, which are no data of a store."""
    with metered() as counted:
        yield
    repetition.observed.own_bytes += counted["read_bytes"]


def observe_short(repetition: Repetition, move: Move) -> Callable[[], None]:
    """Record the calls that moved too little, and the reason of the first of them.

    A short read has reached the end of its file.
    """

    def note() -> None:
        for transfer, call, got in zip(move.transfers, move.calls, move.returned, strict=True):
            if missing := transfer.missing(move.arrays, call, got):
                nbytes = transfer.memory.nbytes
                told = f"a call moved {nbytes - missing} of {nbytes} bytes of {transfer.spec.name}"
                known = move.reads or repetition.observed.short_transfers
                why = "" if known else _diagnose(repetition, move, transfer)
                error = OSError(f"{told}: {why}" if why else told)
                repetition.observed.short_transfers.append((move.phase, error))

    return note


def raise_with_reason(repetition: Repetition, error: Exception, move: Move) -> None:
    """Raise an OSError with the system's reason, if a library's error lacks it and it is known.

    MPI-IO of Open MPI 5 says "known error not in list" when a disk is full.
    """
    if move.reads or isinstance(error, OSError):
        return
    for transfer in move.transfers:
        why = _diagnose(repetition, move, transfer)
        if why and why not in str(error):
            raise OSError(f"{error}: {why}") from error


def _diagnose(repetition: Repetition, move: Move, transfer: Transfer) -> str:
    """Return why a box of a raw file cannot be written whole; empty if that is not known."""
    array = move.arrays[transfer.spec.name]
    if not (repetition.subject.backend.capabilities.raw and isinstance(array, TellsLayout)):
        return ""
    layout = array.layout(False)
    if not isinstance(layout, ArrayInFile):
        return ""
    return diagnose_short_write(repetition.path, layout, transfer.box, transfer.memory)


def observe_touched(repetition: Repetition, move: Move) -> Callable[[], None] | None:
    """Count runs or chunks, and the bytes of pages or chunks, if the experiment counts.

    The counts are derived from the storage layout, so they do not depend on the state of the page
    cache. Each call is counted separately: bytes that two calls or two ranks touch count twice. Of
    repeated reads the first is counted.
    """
    if not repetition.place.clock.counts or (move.reads and repetition.observed.reads > 1):
        return None

    def note() -> None:
        with repetition.step("inspection"):
            layouts: dict[str, StoredLayout | None] = {}
            for transfer in move.transfers:
                if not transfer.box.size:
                    continue
                name = transfer.spec.name
                if name not in layouts:
                    array = move.arrays[name]
                    layouts[name] = array.layout(False) if isinstance(array, TellsLayout) else None
                if (layout := layouts[name]) is None:
                    continue
                found = layout.touched(transfer.box)
                repetition.observed.count(move.phase, f"touched_{found.kind}", found.count)
                if found.nbytes is not None:
                    repetition.observed.count(move.phase, "touched_bytes", found.nbytes)

    return note


#: Those of every workload; the memory first, since the others need some.
OBSERVERS: tuple[Observer, ...] = (
    observe_memory, observe_threads, observe_short, observe_touched,
)  # fmt: skip
