"""Verification of the data read, off the timer; a reused buffer is read into once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pffbench.backends.base import Array, Buffer, what_was_read
from pffbench.workloads.read_proof import POISON, reads_apart
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Transfer


def verify_pieces(
    repetition: Repetition,
    arrays: Mapping[str, Array],
    pieces: Sequence[Transfer],
    results: Sequence[Buffer],
) -> None:
    """Compare what the transfers of a batch read with what it should be, every byte.

    A buffer that all transfers share holds the last of them only. That one is compared as it was
    read on the timer; then all are read once more, each is compared, and the bytes of these reads
    do not count as those of the reads that were timed.
    """
    if not repetition.reuses_buffer:
        for piece, got in zip(pieces, results, strict=True):
            _verify(repetition, piece, got)
            repetition.observed.verified_bytes += piece.memory.nbytes
        return
    last = [both for both in zip(pieces, results, strict=True) if both[0].memory.size][-1:]
    for piece, got in last:
        _verify(repetition, piece, got)
    with reads_apart(repetition):
        for piece in pieces:
            piece.memory.fill(POISON)
            _verify(repetition, piece, _read_again(repetition, arrays, piece))
            repetition.observed.verified_bytes += piece.memory.nbytes


def _read_again(repetition: Repetition, arrays: Mapping[str, Array], piece: Transfer) -> Buffer:
    call = piece.reader(arrays, repetition.collective)
    returned = call()
    if missing := arrays[piece.spec.name].missing(call, returned, piece.memory.nbytes):
        raise OSError(f"{missing} bytes of {piece.spec.name} are missing in the file")
    return what_was_read(returned, piece.memory)


def _verify(repetition: Repetition, piece: Transfer, got: Buffer) -> None:
    source = repetition.backend.as_read(repetition.source)
    data = np.ascontiguousarray(np.ma.getdata(got))
    if piece.spec.byte_order != "native":  # netCDF4-python returns that of the file
        data = data.astype(data.dtype.newbyteorder("="), copy=False)
    wrong = piece.verify(source, data.reshape(piece.box.shape))
    if wrong is not None:
        repetition.observed.mismatches.append(wrong)
