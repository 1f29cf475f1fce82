"""Calls that moved too little, or failed without naming the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pffbench.backends.base import Array, Call
from pffbench.workloads.repetition import Repetition, ShortTransfer
from pffbench.workloads.transfers import Transfer


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
        if missing := arrays[name].missing(call, returned, nbytes):
            told = f"a call moved {nbytes - missing} of {nbytes} bytes of {name}"
            why = piece.diagnose_short_write(arrays) if wrote and not repetition.short else ""
            repetition.short.append(ShortTransfer(phase, f"{told}: {why}" if why else told))


@contextmanager
def step_after_transfers(repetition: Repetition, name: str) -> Iterator[None]:
    """Enter an untimed step; it fails if calls moved too little, named by their phase.

    All ranks learn of the failure then, without an additional step.
    """
    with repetition.step(repetition.short[0].phase if repetition.short else name):
        if repetition.short:
            raise OSError(repetition.short[0].told)
        yield


def raise_with_reason(
    error: Exception, arrays: Mapping[str, Array], pieces: Sequence[Transfer]
) -> None:
    """Raise an OSError with the system's reason, if a library's error lacks it and it is known.

    MPI-IO of Open MPI 5 says "known error not in list" when a disk is full.
    """
    if isinstance(error, OSError):
        return
    for piece in pieces:
        why = piece.diagnose_short_write(arrays)
        if why and why not in str(error):
            raise OSError(f"{error}: {why}") from error
