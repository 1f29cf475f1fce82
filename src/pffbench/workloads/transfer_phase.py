"""The phases that move array data: calls prepared, timed, observed off the timer.

Every such phase of every workload goes through `_make_calls`, so each observer sees all of them.
Only library calls run between the two time stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pffbench.backends.base import Array, Buffer, Call, what_was_read
from pffbench.workloads.observers import OBSERVERS, Move, raise_with_reason
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Transfer

#: Makes the timed call from the library's call and the buffer that it may read into.
Sink = Callable[[Call, Buffer], Call]


def into_memory(call: Call, out: Buffer) -> Call:
    """Return the library's call itself, so that nothing else is timed."""
    return call


def write_transfers(
    repetition: Repetition,
    arrays: Mapping[str, Array],
    transfers: Sequence[Transfer],
    phase: str = "write",
) -> None:
    """Write transfers to arrays of an open store, in a phase of that name."""
    with repetition.step("preparation"):
        calls = [transfer.writer(arrays, repetition.subject.collective) for transfer in transfers]
    _make_calls(repetition, Move(phase, arrays, transfers, calls), calls)


def read_transfers(
    repetition: Repetition,
    arrays: Mapping[str, Array],
    transfers: Sequence[Transfer],
    sink: Sink = into_memory,
) -> list[Buffer]:
    """Read transfers from arrays of an open store and return the data."""
    with repetition.step("preparation"):
        readers = [transfer.reader(arrays, repetition.subject.collective) for transfer in transfers]
        calls = [
            sink(reader, transfer.memory) if transfer.memory.size else reader
            for transfer, reader in zip(transfers, readers, strict=True)
        ]
    move = Move("read", arrays, transfers, readers)
    _make_calls(repetition, move, calls)
    made = zip(move.returned, transfers, strict=True)
    return [what_was_read(returned, transfer.memory) for returned, transfer in made]


def _make_calls(repetition: Repetition, move: Move, calls: Sequence[Call]) -> None:
    """Make the calls in their phase, with all observers; collective.

    Observers begin before the barrier in front of the phase and end after the one behind it.
    """
    timed = repetition.place.clock.phase(move.phase, *amount(move.transfers))
    begun = [observe(repetition, move) for observe in (*OBSERVERS, *repetition.observers)]
    with timed:
        try:
            returned = [call() for call in calls]
        except Exception as error:
            raise_with_reason(repetition, error, move)
            raise
    move.returned = returned
    for end in filter(None, begun):
        end()


def amount(transfers: Sequence[Transfer]) -> tuple[int, int]:
    """Return the bytes and the calls of a batch; empty calls do not count."""
    nbytes = sum(transfer.memory.nbytes for transfer in transfers)
    return nbytes, sum(1 for transfer in transfers if transfer.memory.size)
