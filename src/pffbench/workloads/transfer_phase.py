"""The phase of a transfer: calls prepared, timed, watched, and asked for what they moved.

Only library calls run between its two time stamps. What is observed in addition is read off the
timer: threads and memory of the library before and after, calls that moved too little, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pffbench.backends.base import Array, Buffer, Call, what_was_read
from pffbench.backends.file_layout import ArrayInFile, diagnose_short_write
from pffbench.backends.traits import TellsLayout
from pffbench.parallel.allocator import return_free_memory
from pffbench.parallel.process_counters import metered, thread_times, threads_that_ran
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Transfer

#: Names of the counters.
THREADS, MEMORY = "threads", "memory_added"
#: Bytes of a huge page, the most that a page fault brings.
_HUGE_PAGE = 2**21
#: Makes the timed call from the library's call and the buffer that it may read into.
Sink = Callable[[Call, Buffer], Call]


def into_memory(call: Call, out: Buffer) -> Call:
    """Return the library's call itself, so that nothing else is timed."""
    return call


def write_pieces(
    repetition: Repetition,
    arrays: Mapping[str, Array],
    pieces: Sequence[Transfer],
    phase: str = "write",
) -> None:
    """Write transfers to arrays of an open store, in a phase of that name."""
    with repetition.step("preparation"):
        calls = [piece.writer(arrays, repetition.collective) for piece in pieces]
    nbytes, operations = amount(pieces)
    with (
        watched_transfer(repetition, phase, nbytes),
        repetition.clock.phase(phase, nbytes, operations),
    ):
        try:
            returned = [call() for call in calls]
        except Exception as error:
            raise_with_reason(repetition, error, arrays, pieces)
            raise
    note_short(repetition, phase, arrays, pieces, zip(calls, returned, strict=True), wrote=True)


def read_pieces(
    repetition: Repetition,
    arrays: Mapping[str, Array],
    pieces: Sequence[Transfer],
    sink: Sink = into_memory,
) -> list[Buffer]:
    """Read transfers from arrays of an open store and return the data."""
    with repetition.step("preparation"):
        readers = [piece.reader(arrays, repetition.collective) for piece in pieces]
        calls = [
            sink(reader, piece.memory) if piece.memory.size else reader
            for piece, reader in zip(pieces, readers, strict=True)
        ]
    nbytes, operations = amount(pieces)
    phase = repetition.clock.phase("read", nbytes, operations)
    with watched_transfer(repetition, "read", nbytes), phase:
        returned = [call() for call in calls]
    made = zip(readers, returned, strict=True)
    note_short(repetition, "read", arrays, pieces, made, wrote=False)
    return [what_was_read(r, piece.memory) for r, piece in zip(returned, pieces, strict=True)]


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
    for name, most in found.items():
        key = (phase, name)
        observed.counts[key] = max(observed.counts.get(key, 0.0), float(most))


@contextmanager
def _not_counted(repetition: Repetition) -> Iterator[None]:
    """Note the bytes read from the kernel's files, which are no data of a store."""
    with metered() as counted:
        yield
    repetition.observed.own_bytes += counted["read_bytes"]


def note_short(
    repetition: Repetition,
    phase: str,
    arrays: Mapping[str, Array],
    pieces: Sequence[Transfer],
    made: Iterable[tuple[Call, Any]],
    *,
    wrote: bool,
) -> None:
    """Record the calls of a phase that moved too little, and the reason of the first of them.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    phase : str
        The phase.
    arrays : mapping of str to Array
        The open arrays, by name.
    pieces : sequence of Transfer
        The transfers, one for each call.
    made : iterable of callable and its return value
        The calls.
    wrote : bool
        Whether they were writes. A short read has reached the end of its file.
    """
    for piece, (call, returned) in zip(pieces, made, strict=True):
        name, nbytes = piece.spec.name, piece.memory.nbytes
        if missing := piece.missing(arrays, call, returned):
            told = f"a call moved {nbytes - missing} of {nbytes} bytes of {name}"
            why = _diagnose(repetition, arrays, piece) if wrote and not repetition.short else ""
            repetition.short.append((phase, OSError(f"{told}: {why}" if why else told)))


def raise_with_reason(
    repetition: Repetition,
    error: Exception,
    arrays: Mapping[str, Array],
    pieces: Sequence[Transfer],
) -> None:
    """Raise an OSError with the system's reason, if a library's error lacks it and it is known.

    MPI-IO of Open MPI 5 says "known error not in list" when a disk is full.
    """
    if isinstance(error, OSError):
        return
    for piece in pieces:
        why = _diagnose(repetition, arrays, piece)
        if why and why not in str(error):
            raise OSError(f"{error}: {why}") from error


def _diagnose(repetition: Repetition, arrays: Mapping[str, Array], piece: Transfer) -> str:
    """Return why a box of a raw file cannot be written whole; empty if that is not known."""
    array = arrays[piece.spec.name]
    if not (repetition.backend.capabilities.raw and isinstance(array, TellsLayout)):
        return ""
    layout = array.layout(False)
    if not isinstance(layout, ArrayInFile):
        return ""
    return diagnose_short_write(repetition.path, layout, piece.box, piece.memory)


def amount(pieces: Sequence[Transfer]) -> tuple[int, int]:
    """Return the bytes and the calls of a batch; empty calls do not count."""
    nbytes = sum(piece.memory.nbytes for piece in pieces)
    return nbytes, sum(1 for piece in pieces if piece.memory.size)
