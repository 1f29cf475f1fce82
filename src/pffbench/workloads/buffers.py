"""The memory that transfers go through: a block for each transfer of a batch.

Accesses are cut into batches that fit in memory and into calls. Data are made, transfers are placed
in memory, and what was read is verified.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.backends.base import Buffer
from pffbench.data import Source
from pffbench.geometry.box import Box
from pffbench.mpi.collectives import largest, smallest
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access, Round, Transfer

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.workloads.route import PlacedBatch, Route


#: Names of counters: rows of the arrays, and those of them that are not as they were written.
ROWS, LOST_ROWS = "rows", "lost_rows"


class TransferMemory:
    """A block of memory for each transfer of a batch of a repetition.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    route : Route
        Places the transfers.
    """

    def __init__(self, repetition: Repetition, route: Route) -> None:
        self._repetition = repetition
        self._route = route

    def batches_that_fit(self, rounds: Iterable[Round]) -> Iterator[Sequence[Batch]]:
        """Yield the batches that fit in memory together; collective, equally many on all ranks.

        Their data are made before the first batch and verified after the last one, so that each of
        thousands of small rounds consists of its phases only.

        Parameters
        ----------
        rounds : iterable of Round
            The rounds, as many on each rank.
        """
        place, left = self._repetition.place, list(rounds)
        comm, memory = place.team.comm, place.memory
        while left:
            together = smallest(comm, _fitting(left, memory))
            if together > 1:
                yield [Batch(one, one.accesses) for one in left[:together]]
            else:
                parts = list(cut_to_fit(comm, left[0].accesses, memory)) or [()]
                for number, part in enumerate(parts, start=1):
                    yield [Batch(left[0], part, number == 1, number == len(parts))]
            del left[:together]

    def for_writing(self, batches: Sequence[Batch]) -> list[PlacedBatch]:
        """Make the data of batches; return what moves in each; collective."""
        repetition = self._repetition
        with repetition.step("memory"):
            memory = repetition.place.buffer.take(_held(batches))
        in_memory = self._put_in_memory(batches, memory)
        with repetition.step("data"):
            for placed in in_memory:
                for _, _, as_writer in placed.exchanged:
                    as_writer.fill(0)  # touched before ranks send to it; elements of no rank are 0
                for transfer in placed.own:
                    transfer.fill(repetition.subject.source_of(transfer.spec))
                for transfer in placed.calls:
                    repetition.observed.blocks.update(transfer.blocks)
            if repetition.subject.equal_memory:
                repetition.place.buffer.use_huge_pages()
        return in_memory

    def for_reading(self, batches: Sequence[Batch]) -> list[PlacedBatch]:
        """Prepare memory for reads; return what moves in each; collective.

        The route says where the memory is, and what it is filled with.
        """
        return self._put_in_memory(batches, self._route.memory_for_reading(_held(batches)))

    def _put_in_memory(self, batches: Sequence[Batch], memory: Buffer) -> list[PlacedBatch]:
        """Put the transfers of batches one after the other in memory."""
        placed, done = [], 0
        for batch in batches:
            held = _held([batch])
            placed.append(self._route.put_in_memory(batch.accesses, memory[done : done + held]))
            done += held
        return placed

    def verify(self, transfers: Sequence[Transfer], results: Sequence[Buffer]) -> None:
        """Compare what the transfers of a batch read with what it should be, every byte."""
        for transfer, got in zip(transfers, results, strict=True):
            self._compare(transfer, got)

    def _compare(self, transfer: Transfer, got: Buffer) -> None:
        repetition = self._repetition
        source = repetition.subject.source_of(transfer.spec)
        data = np.ascontiguousarray(got)  # without the mask of netCDF4-python
        if transfer.spec.byte_order != "native":  # netCDF4-python returns that of the file
            data = data.astype(data.dtype.newbyteorder("="), copy=False)
        data = data.reshape(transfer.box.shape)
        wrong = transfer.verify(source, data)
        if repetition.request.counts_rows:
            self._count_rows(transfer, source, None if wrong is None else data)
        if wrong is not None and not repetition.request.unsafe:
            repetition.observed.mismatches.append(wrong)
        repetition.observed.verified_bytes += transfer.memory.nbytes

    def _count_rows(self, transfer: Transfer, source: Source, data: Buffer | None) -> None:
        """Count the rows of a call, and those with any wrong byte if its data are not right.

        A row is an index along the first axis of an array, in one time step.
        """
        axes = 1 + self._repetition.subject.parameters.has_steps
        rows = math.prod(transfer.box.shape[:axes])
        lost = 0
        if data is not None and data.dtype != source.dtype:
            lost = rows
        elif data is not None:
            right = np.empty_like(data)
            replace(transfer, memory=right).fill(source)
            unequal = right.view(np.uint8) != data.view(np.uint8)
            lost = int(np.count_nonzero(unequal.reshape(rows, -1).any(axis=1)))
        self._repetition.observed.count("read", ROWS, rows)
        self._repetition.observed.count("read", LOST_ROWS, lost)


class Batch(msgspec.Struct, frozen=True):
    """The accesses of one phase: a round, or a part of one that does not fit in memory."""

    #: The round.
    round: Round
    #: The accesses of this part.
    accesses: Sequence[Access]
    #: Whether it begins and ends the round.
    first: bool = True
    last: bool = True


def _held(batches: Sequence[Batch]) -> int:
    """Return the bytes of memory that accesses move through together."""
    return sum(access.held for batch in batches for access in batch.accesses)


def cut_to_fit(
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
            nbytes += access.held
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
        nbytes += one.held
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
