"""Calls that moved too little, or failed without naming the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from pffbench.backends.base import Array, Call
from pffbench.backends.file_layout import Copies, diagnose_short_write
from pffbench.backends.traits import CountsMissing, TellsLayout
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
        if missing := count_missing(arrays[name], call, returned, nbytes):
            told = f"a call moved {nbytes - missing} of {nbytes} bytes of {name}"
            why = _diagnose(repetition, arrays, piece) if wrote and not repetition.short else ""
            repetition.short.append(ShortTransfer(phase, f"{told}: {why}" if why else told))


def count_missing(array: Array, call: Call, returned: Any, nbytes: int) -> int:
    """Return how many bytes a call did not move although the library raised no error.

    Parameters
    ----------
    array : Array
        The array.
    call : callable
        The call that its `writer` or `reader` returned.
    returned : Any
        Return value of the call.
    nbytes : int
        Bytes that it was to move.
    """
    if isinstance(returned, int):
        return nbytes - returned
    return cast("CountsMissing", array).missing(call, nbytes) if _counts(type(array)) else 0


@cache
def _counts(kind: type[Array]) -> bool:
    """Return whether arrays of a class have the trait; asked of an object it takes 10 µs."""
    return issubclass(kind, CountsMissing)


def _diagnose(repetition: Repetition, arrays: Mapping[str, Array], piece: Transfer) -> str:
    """Return why a box of a raw file cannot be written whole; empty if that is not known."""
    array = arrays[piece.spec.name]
    if not (repetition.backend.capabilities.raw and isinstance(array, TellsLayout)):
        return ""
    layout, path = array.layout(False), repetition.path(repetition.team.rank)
    if not isinstance(layout, Copies):
        return ""
    return diagnose_short_write(path, layout.copies, piece.box, piece.memory)


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
