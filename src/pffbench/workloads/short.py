"""Transfers that moved fewer bytes than they were to, without the library calling it an error.

Looking at once would be within the time: they are noted after the phase, and said to all ranks in
the step that comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pffbench.backends.base import Array, Call
from pffbench.workloads.cycle import Cycle, Short
from pffbench.workloads.pieces import Piece


def note_short(
    cycle: Cycle,
    phase: str,
    arrays: Mapping[str, Array],
    pieces: Sequence[Piece],
    made: Iterable[tuple[Call, Any]],
    *,
    wrote: bool,
) -> None:
    """Note which of the calls that a phase made moved too little, and why the first of them did.

    Parameters
    ----------
    cycle : Cycle
        The repetition.
    phase : str
        The phase.
    arrays : mapping of str to Array
        The open arrays, by name.
    pieces : sequence of Piece
        What was to be moved, one for each call.
    made : iterable of callable and what it returned
        The calls.
    wrote : bool
        Whether they were to write. A call that reads less has come to the end of its file.
    """
    for piece, (call, returned) in zip(pieces, made, strict=True):
        name, nbytes = piece.spec.name, piece.memory.nbytes
        if missing := arrays[name].missing(call, returned, nbytes):
            told = f"a call moved {nbytes - missing} of {nbytes} bytes of {name}"
            why = piece.why_short(arrays) if wrote and not cycle.short else ""
            cycle.short.append(Short(phase, f"{told}: {why}" if why else told))


@contextmanager
def step_after_transfers(cycle: Cycle, name: str) -> Iterator[None]:
    """Enter a step that nobody times; it fails where calls moved too little, named by their phase.

    All ranks learn of it then, and no step more is needed for it.
    """
    with cycle.step(cycle.short[0].phase if cycle.short else name):
        if cycle.short:
            raise OSError(cycle.short[0].told)
        yield
