"""Verification of the data read, off the timer; a reused buffer is read into once more.

Of what timed calls read into a reused buffer a sample is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from zlib import crc32

import numpy as np

from pffbench.backends.base import Array, Buffer, what_was_read
from pffbench.data import Mismatch
from pffbench.parallel.collectives import largest
from pffbench.workloads.read_proof import POISON, reads_apart, reads_on_the_timer
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.short_transfers import count_missing
from pffbench.workloads.transfers import WINDOWS, ReusedTransfer, Transfer

#: Parts in which transfers into a buffer that is reused are read on the timer: in a repetition that
#: counts, so that its time is hardly another one, and while warming up.
_PARTS, _WARMUP_PARTS = 2, 64
#: Counter of the timed calls that were compared with what they should have read.
CHECKED = "calls_checked"


def parts_of_reading(repetition: Repetition, count: int) -> list[slice]:
    """Return the parts in which transfers are read on the timer; collective for a reused buffer.

    All at once, unless a buffer is reused. What a call reads into that one is overwritten by the
    17th call after it at the latest, so after each part, off the timer, what is left in the buffer
    is compared: something of each of its last 17 calls. Where the parts end is drawn anew in each
    repetition, and is equal on all ranks.
    """
    if not repetition.reuses_buffer:
        return [slice(0, count)]
    count = largest(repetition.team.comm, count)
    most = _WARMUP_PARTS if repetition.warmup else _PARTS
    inner = range(WINDOWS, count, WINDOWS)  # of the turn of windows before it, each has something
    draw = Random(crc32(repetition.directory.encode()))
    ends = sorted(draw.sample(inner, min(most - 1, len(inner))))
    return [slice(a, b) for a, b in zip([0, *ends], [*ends, count], strict=True)]


@contextmanager
def watched_buffer(repetition: Repetition, pieces: Sequence[Transfer]) -> Iterator[None]:
    """Overwrite a reused buffer before a part of timed reads, and compare what they leave in it.

    The bytes that the kernel delivers meanwhile are those of the timed reads alone.
    """
    if not repetition.reuses_buffer:
        yield
        return
    repetition.room.fill(POISON)
    with reads_on_the_timer(repetition):
        yield
    if repetition.keeps_data:
        checked = set[int]()
        with repetition.step("verification"):
            for piece, begin, end in left_in_buffer(pieces):
                source = repetition.stored_source(piece.spec)
                _note(repetition, piece.verify_part(source, begin, end))
                checked.add(id(piece))
        repetition.observed.count("read", CHECKED, len(checked) / repetition.reads)


def left_in_buffer(pieces: Sequence[Transfer]) -> Iterator[tuple[ReusedTransfer, int, int]]:
    """Yield the elements that are left of transfers through one buffer, those of the last first.

    Yields
    ------
    tuple of (ReusedTransfer, int, int)
        A transfer, and the first element in its memory and the one behind the last that no later
        transfer has overwritten.
    """
    free = [(0, 2**63)]  # in elements of the buffer
    for piece in reversed(pieces):
        if not piece.memory.size or not isinstance(piece, ReusedTransfer):
            continue
        first, last = piece.place, piece.place + piece.memory.size
        for a, b in free:
            begin, end = max(a, first), min(b, last)
            if begin < end:
                yield piece, begin - first, end - first
        cut = [(a, min(b, first)) for a, b in free] + [(max(a, last), b) for a, b in free]
        free = sorted(part for part in cut if part[0] < part[1])


def verify_pieces(
    repetition: Repetition,
    arrays: Mapping[str, Array],
    pieces: Sequence[Transfer],
    results: Sequence[Buffer],
) -> None:
    """Compare what the transfers of a batch read with what it should be, every byte.

    A buffer that all transfers share holds the last of them only, and `watched_buffer` has compared
    what it held. All are read once more, each is compared, and the bytes of these reads do not
    count as those of the reads that were timed.
    """
    if not repetition.reuses_buffer:
        for piece, got in zip(pieces, results, strict=True):
            _verify(repetition, piece, got)
            repetition.observed.verified_bytes += piece.memory.nbytes
        return
    with reads_apart(repetition):
        for piece in pieces:
            piece.memory.fill(POISON)
            _verify(repetition, piece, _read_again(repetition, arrays, piece))
            repetition.observed.verified_bytes += piece.memory.nbytes


def _read_again(repetition: Repetition, arrays: Mapping[str, Array], piece: Transfer) -> Buffer:
    call = piece.reader(arrays, repetition.collective)
    returned = call()
    if missing := count_missing(arrays[piece.spec.name], call, returned, piece.memory.nbytes):
        raise OSError(f"{missing} bytes of {piece.spec.name} are missing in the file")
    return what_was_read(returned, piece.memory)


def _verify(repetition: Repetition, piece: Transfer, got: Buffer) -> None:
    source = repetition.stored_source(piece.spec)
    data = np.ascontiguousarray(np.ma.getdata(got))
    if piece.spec.byte_order != "native":  # netCDF4-python returns that of the file
        data = data.astype(data.dtype.newbyteorder("="), copy=False)
    _note(repetition, piece.verify(source, data.reshape(piece.box.shape)))


def _note(repetition: Repetition, wrong: Mismatch | None) -> None:
    if wrong is not None:
        repetition.observed.mismatches.append(wrong)
