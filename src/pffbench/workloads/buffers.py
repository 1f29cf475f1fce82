"""The memory that transfers go through: a block for each, or one buffer that all reuse.

`buffer_of` chooses by the key `buffer`. Both cut accesses into batches that fit in memory and into
calls, make the data, place the transfers, divide timed reads into parts and verify what was read.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from random import Random
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, what_was_read
from pffbench.data import Mismatch, Source, verify
from pffbench.data.generators import BitRounded
from pffbench.parallel.collectives import largest, smallest
from pffbench.parallel.decomposition import Box
from pffbench.parallel.process_counters import metered
from pffbench.workloads.read_proof import DEVICE, KERNEL, POISON
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access, Round, Transfer

if TYPE_CHECKING:
    from mpi4py import MPI

#: Places in the memory of a buffer that is reused, a page apart: 17 transfers in turn have contents
#: of their own, so that one that goes to another's place in the file is noticed.
WINDOWS = 17
#: Parts in which transfers into a buffer that is reused are read on the timer: in a repetition that
#: counts, so that its time is hardly another one, and while warming up.
_PARTS, _WARMUP_PARTS = 2, 64
#: Counter of the timed calls that were compared with what they should have read.
CHECKED = "calls_checked"
#: Elements of the content of each rank, and of all together, as one long array.
_OF_A_RANK, _OF_ALL = 2**40, 2**60


def buffer_of(repetition: Repetition) -> BlockBuffer:
    """Return the memory of a repetition's transfers, as its key `buffer` asks."""
    kind = getattr(repetition.case.parameters, "buffer", "block")
    return (ReusedBuffer if kind == "reuse" else BlockBuffer)(repetition)


class BlockBuffer:
    """A block of memory for each transfer of a batch: ``buffer: block``."""

    def __init__(self, repetition: Repetition) -> None:
        self._repetition = repetition

    @property
    def batch_memory(self) -> int:
        """Bytes of data that a batch may hold."""
        return self._repetition.memory

    def turns(self, rounds: Iterable[Round]) -> Iterator[Sequence[Batch]]:
        """Group batches that fit in memory together; collective, equal on all ranks.

        Data of a group are made before its first batch and verified after its last one, so that
        each of thousands of small rounds consists of its phases only.

        Parameters
        ----------
        rounds : iterable of Round
            The rounds, as many on each rank.
        """
        comm, memory, left = self._repetition.team.comm, self.batch_memory, list(rounds)
        while left:
            together = smallest(comm, _fitting(left, memory))
            if together > 1:
                yield [Batch(one, one.accesses) for one in left[:together]]
            else:
                parts = list(batches(comm, left[0].accesses, memory)) or [()]
                for number, part in enumerate(parts, start=1):
                    yield [Batch(left[0], part, number == 1, number == len(parts))]
            del left[:together]

    def for_writing(self, group: Sequence[Batch]) -> list[list[Transfer]]:
        """Make the data of a group of batches; return the transfers of each; collective."""
        repetition = self._repetition
        with repetition.step("memory"):
            memory = repetition.room.take(self._nbytes_of(group))
        pieces = self._place(group, memory, repetition.team.rank)
        with repetition.step("data"):
            for number, piece in enumerate(chain.from_iterable(pieces)):
                piece.fill(self._source(piece.spec))
                if self._may_be_kept(number, piece.spec):
                    repetition.blocks.update(piece.blocks)
            if repetition.keeps_memory:
                repetition.room.use_huge_pages()
        return pieces

    def for_reading(self, group: Sequence[Batch]) -> list[list[Transfer]]:
        """Prepare memory for reads; return the transfers of each batch of a group; collective.

        It is the memory that the data were written from, so it is overwritten. Memory that a
        library does not read into is not touched, so that it takes no space.
        """
        repetition = self._repetition
        with repetition.step("memory"):
            untouched = repetition.backend.capabilities.new_arrays
            if untouched:
                repetition.room.leave()
            memory = repetition.room.take(self._nbytes_of(group))
            if not untouched:
                memory.fill(POISON)
        return self._place(group, memory, repetition.reader_of)

    def _nbytes_of(self, group: Sequence[Batch]) -> int:
        return self._nbytes([access for turn in group for access in turn.accesses])

    def _place(self, group: Sequence[Batch], memory: Buffer, author: int) -> list[list[Transfer]]:
        """Place the transfers of a group of batches one after the other in memory."""
        found, done = [], 0
        for turn in group:
            nbytes = self._nbytes(turn.accesses)
            found.append(self.transfers(turn.accesses, memory[done : done + nbytes], author))
            done += nbytes
        return found

    def _nbytes(self, accesses: Sequence[Access]) -> int:
        """Return the bytes of memory that accesses move through together."""
        return sum(access.nbytes for access in accesses)

    def transfers(self, batch: Sequence[Access], memory: Buffer, author: int) -> list[Transfer]:
        """Return the transfers of a batch for this case's backend and transfer mode.

        Parameters
        ----------
        batch : sequence of Access
            The accesses.
        memory : array of uint8
            Their memory.
        author : int
            The rank that wrote the data, or is going to.
        """
        repetition = self._repetition
        shared = repetition.comm if author == repetition.team.rank else repetition.read_comm
        comm, limit = shared or repetition.team.comm, repetition.backend.call_limit
        calls = calls_of(comm, batch, limit, repetition.collective)
        return self._through(memory, calls, author)

    def _through(self, memory: Buffer, calls: Sequence[Access], author: int) -> list[Transfer]:
        """Give each call its part of the memory."""
        return one_after_the_other(calls, memory)

    def _may_be_kept(self, number: int, spec: ArraySpec) -> bool:
        """Return whether a library may hold the data of this transfer besides those of others."""
        return True

    def parts(self, pieces: Sequence[Transfer]) -> Iterator[slice]:
        """Yield the parts in which transfers are read on the timer, each to be read at once."""
        yield slice(0, len(pieces))

    def verify(
        self,
        arrays: Mapping[str, Array],
        pieces: Sequence[Transfer],
        results: Sequence[Buffer],
    ) -> None:
        """Compare what the transfers of a batch read with what it should be, every byte."""
        for piece, got in zip(pieces, results, strict=True):
            self._compare(piece, got)

    def _compare(self, piece: Transfer, got: Buffer) -> None:
        source = self._stored(piece.spec)
        data = np.ascontiguousarray(np.ma.getdata(got))
        if piece.spec.byte_order != "native":  # netCDF4-python returns that of the file
            data = data.astype(data.dtype.newbyteorder("="), copy=False)
        self._note(piece.verify(source, data.reshape(piece.box.shape)))
        self._repetition.observed.verified_bytes += piece.memory.nbytes

    def _source(self, spec: ArraySpec) -> Source:
        """Return the data of an array, which may have a type of its own."""
        return self._repetition.others.get(spec.dtype, self._repetition.source)

    def _stored(self, spec: ArraySpec) -> Source:
        """Return its data as the store has them: rounded, where numbers lose bits in it."""
        bits, source = self._repetition.backend.kept_bits, self._source(spec)
        return source if bits is None else BitRounded(source, bits)

    def _note(self, wrong: Mismatch | None) -> None:
        if wrong is not None:
            self._repetition.observed.mismatches.append(wrong)


class ReusedBuffer(BlockBuffer):
    """One buffer that all transfers of a rank go through in turn: ``buffer: reuse``.

    It holds the last of them only. So a part of the timed reads is compared by what they leave in
    it, and after them every byte is read once more, off the timer.
    """

    @property
    def batch_memory(self) -> int:
        """All data: the buffer holds a transfer, however many there are."""
        return sys.maxsize

    def _nbytes(self, accesses: Sequence[Access]) -> int:
        return reused_room(accesses, self._repetition.backend.call_limit)

    def _through(self, memory: Buffer, calls: Sequence[Access], author: int) -> list[Transfer]:
        return list(in_windows(calls, memory, author))

    def _may_be_kept(self, number: int, spec: ArraySpec) -> bool:
        # From one buffer a library copies one transfer at a time, unless it keeps chunks.
        return spec.chunks != "contiguous" or number < WINDOWS

    def parts(self, pieces: Sequence[Transfer]) -> Iterator[slice]:
        """Yield the parts in which transfers are read on the timer; collective.

        What a call reads is overwritten by the 17th call after it at the latest, so after each
        part, off the timer, what is left in the buffer is compared: something of each of its last
        17 calls. Where the parts end is drawn anew in each repetition, and is equal on all ranks.
        The bytes that the kernel delivers meanwhile are those of the timed reads alone.
        """
        repetition, observed = self._repetition, self._repetition.observed
        count = largest(repetition.team.comm, len(pieces))
        most = _WARMUP_PARTS if repetition.warmup else _PARTS
        inner = range(WINDOWS, count, WINDOWS)  # of the windows before it, each has something
        draw = Random(crc32(repetition.directory.encode()))
        ends = sorted(draw.sample(inner, min(most - 1, len(inner))))
        for part in map(slice, [0, *ends], [*ends, count]):
            repetition.room.fill(POISON)
            own = observed.own_bytes
            with metered() as counted:
                yield part
            timed = counted[KERNEL] - (observed.own_bytes - own)
            observed.timed_bytes = (observed.timed_bytes or 0.0) + timed
            if repetition.keeps_data:
                with repetition.step("verification"):
                    checked = self._check_left(pieces[part])
                observed.count("read", CHECKED, checked / repetition.reads)

    def _check_left(self, pieces: Sequence[Transfer]) -> int:
        """Compare what transfers have left in the buffer; return how many left something."""
        checked = set[int]()
        for piece, begin, end in left_in_buffer(pieces):
            self._note(piece.verify_part(self._stored(piece.spec), begin, end))
            checked.add(id(piece))
        return len(checked)

    def verify(
        self,
        arrays: Mapping[str, Array],
        pieces: Sequence[Transfer],
        results: Sequence[Buffer],
    ) -> None:
        """Read all transfers once more, and compare every byte.

        The bytes of these reads do not count as those of the reads that were timed.
        """
        with metered() as counted:
            for piece in pieces:
                piece.memory.fill(POISON)
                self._compare(piece, self._read_again(arrays, piece))
        observed = self._repetition.observed
        kernel, device = observed.verifying_bytes
        observed.verifying_bytes = kernel + counted[KERNEL], device + counted[DEVICE]

    def _read_again(self, arrays: Mapping[str, Array], piece: Transfer) -> Buffer:
        call = piece.reader(arrays, self._repetition.collective)
        returned = call()
        if missing := piece.missing(arrays, call, returned):
            raise OSError(f"{missing} bytes of {piece.spec.name} are missing in the file")
        return what_was_read(returned, piece.memory)


class ReusedTransfer(Transfer, frozen=True):
    """A transfer through a buffer that all transfers of a rank use.

    Its content is a window of the rank's content that begins some pages behind that of the
    transfer before: the same memory, still in the processor's cache, and other bytes.

    Parameters
    ----------
    first : int
        Index of its first element in the content of all ranks.
    """

    first: int

    def fill(self, source: Source) -> None:
        # Not the array's own number: the windows of all arrays overlap in memory.
        source.fill(self.memory.reshape(-1), 0, (self.first,), (_OF_ALL,))

    @property
    def place(self) -> int:
        """Index of its first element in the buffer."""
        return self.first % _OF_A_RANK

    def verify(self, source: Source, got: Buffer) -> Mismatch | None:
        return self._compare(source, got.reshape(-1), self.first)

    def verify_part(self, source: Source, begin: int, end: int) -> Mismatch | None:
        """Compare elements in its memory with the source."""
        return self._compare(source, self.memory.reshape(-1)[begin:end], self.first + begin)

    def _compare(self, source: Source, got: Buffer, first: int) -> Mismatch | None:
        wrong = verify(source, got, 0, (first,), (_OF_ALL,))
        if wrong is None:
            return None
        inside = np.unravel_index(wrong.index[0] - self.first, self.box.shape)
        index = tuple(a + int(b) for a, b in zip(self.box.start, inside, strict=True))
        return replace(wrong, array=self.spec.number, index=index)


def in_windows(calls: Sequence[Access], memory: Buffer, author: int) -> Iterator[ReusedTransfer]:
    """Yield the transfers of calls, whose windows in memory begin a page apart, in turn.

    Parameters
    ----------
    calls : sequence of Access
        The calls of this rank.
    memory : array of uint8
        The buffer, of `reused_room` bytes.
    author : int
        The rank that wrote the data, or is going to.
    """
    for number, call in enumerate(calls):
        begin = number % WINDOWS * mmap.PAGESIZE
        window = call.view_of(memory, begin)
        first = author * _OF_A_RANK + begin // call.spec.itemsize
        yield ReusedTransfer(call.spec, call.box, window, first)


def reused_room(accesses: Sequence[Access], limit: int | None) -> int:
    """Return the bytes of the buffer that transfers share: the longest, and its windows."""
    longest = max((access.nbytes for access in accesses), default=0)
    return min(longest, limit or longest) + (WINDOWS - 1) * mmap.PAGESIZE


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


class Batch(msgspec.Struct, frozen=True):
    """The accesses of one phase: a round, or a part of one that does not fit in memory.

    Parameters
    ----------
    round : Round
        The round.
    accesses : sequence of Access
        The accesses of this part.
    first, last : bool
        Whether it begins and ends the round.
    """

    round: Round
    accesses: Sequence[Access]
    first: bool = True
    last: bool = True


def batches(
    comm: MPI.Intracomm, accesses: Sequence[Access], memory: int
) -> Iterator[Sequence[Access]]:
    """Cut the accesses into batches that fit in memory, the same number of them on all ranks.

    In a collective transfer the n-th call of every rank must be in the same batch, so the ranks
    agree on the shortest batch that fits on any of them; a single access always fits.
    """
    longest = largest(comm, len(accesses))
    done = 0
    while done < longest:
        fits, nbytes = 0, 0
        for access in accesses[done:]:
            nbytes += access.nbytes
            if fits and nbytes > memory:
                break
            fits += 1
        at_end = done + fits >= len(accesses)
        agreed = smallest(comm, longest - done if at_end else fits)
        yield accesses[done : done + agreed]
        done += agreed


def _fitting(rounds: Sequence[Round], memory: int) -> int:
    """Count the leading rounds that fit in memory together, at least one."""
    nbytes = 0
    for number, one in enumerate(rounds):
        nbytes += one.nbytes
        if number and nbytes > memory:
            return number
    return len(rounds)


def calls_of(
    comm: MPI.Intracomm, batch: Sequence[Access], limit: int | None, collective: bool
) -> list[Access]:
    """Return a batch cut into what one call of the library moves, in the order of the calls.

    An access longer than the limit of one call is split. On an array that all ranks write together
    all must make the same number of calls, so the ranks with less get empty ones: collective
    transfers need it, as do the views of independent MPI-IO, which are set collectively.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks; the function is collective for arrays that all ranks write together.
    batch : sequence of Access
        Accesses of this rank.
    limit : int or None
        Most bytes that one call of the library moves.
    collective : bool
        Whether the transfer is collective.
    """
    found: list[Access] = []
    for access in batch:
        boxes = _split(access, limit)
        together = collective or access.spec.owner is None
        if together and limit is not None and access.spec.nbytes > limit:
            most = largest(comm, len(boxes))
            boxes += [access.box.nothing] * (most - len(boxes))
        found += [Access(access.spec, box) for box in boxes]
    return found


def one_after_the_other(calls: Sequence[Access], memory: Buffer) -> list[Transfer]:
    """Return the transfers of calls, each with a block of memory behind that of the one before."""
    found, done = [], 0
    for call in calls:
        found.append(Transfer(call.spec, call.box, call.view_of(memory, done)))
        done += call.nbytes
    return found


def _split(access: Access, limit: int | None) -> list[Box]:
    if limit is None or access.nbytes <= limit:
        return [access.box]
    return list(access.box.split(limit // access.spec.itemsize))
