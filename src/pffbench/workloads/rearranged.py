"""A repetition whose data go through writer ranks.

    create → define → exchange → write → flush → close → sync
    open → open_array → read → exchange_read → close_read
    remove

Only the writers open the store, on a communicator of their own, as programs with I/O ranks do; a
single writer opens it as a serial program does. The other ranks take part in the exchanges and
wait in the other phases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, LazyArrays, Store
from pffbench.geometry.box import Box
from pffbench.parallel.collectives import smallest
from pffbench.parallel.exchange import Exchange
from pffbench.units import Size
from pffbench.workloads.buffers import TransferMemory, calls_of, one_after_the_other
from pffbench.workloads.read_proof import POISON
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.selections import CountAmplification
from pffbench.workloads.transfer_phase import read_pieces, write_pieces
from pffbench.workloads.transfers import Access, Transfer
from pffbench.workloads.write_read import (
    finish_writing,
    note_facts_of_reading,
    read_repeatedly,
    refuse_data,
    run_stages,
)
from pffbench.workloads.writers import WriterRanks, parts_of_writers

if TYPE_CHECKING:
    from mpi4py import MPI


def rearranged_cycle(repetition: Repetition) -> None:
    """Write everything through the writers, then read it back; collective.

    Parameters
    ----------
    repetition : Repetition
        The repetition; its arrays are of one family, and all ranks share them.
    """
    with repetition.step("plan"):
        through = _Through(repetition)
    through.connect()
    try:
        run_stages(repetition, through.write, partial(read_repeatedly, repetition, through.read))
    finally:
        through.free()


class _Elsewhere(Store):
    """The store on a rank that does not open it."""

    collective_close = False

    def files(self) -> set[str]:
        return set()

    def definer(self, specs: Sequence[ArraySpec]) -> Call:
        return tuple

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        return tuple

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        return {}

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class _Group(NamedTuple):
    """Accesses that are exchanged and moved in one phase, in this rank's memory.

    Parameters
    ----------
    outside : list of Transfer
        This rank's part, one for each access.
    inside : list of Transfer
        The transfers of this rank as a writer, one for each call.
    both : list of (array, array)
        Memory of each access, of the part and of the writer.
    """

    outside: list[Transfer]
    inside: list[Transfer]
    both: list[tuple[Buffer, Buffer]]


class _Through:
    """The arrays of a case, this rank's part of them, and its boxes as a writer."""

    def __init__(self, repetition: Repetition) -> None:
        p: Any = repetition.case.parameters
        team = repetition.team
        (family,) = repetition.arrays.families
        shape = family.cut.whole
        parts = [family.cut.part(rank) for rank in range(team.size)]
        self._repetition = repetition
        self._specs = repetition.arrays.arrays(team.rank)
        self._accesses = repetition.arrays.writes(team.rank)
        self._axes = len(shape)
        spec = self._specs[0]
        writers = WriterRanks.of(p.writers, team.topology)
        stored = repetition.backend.storage(spec, repetition.case.options)
        unit = (stored.unit or spec.shape)[-self._axes :]
        placed = parts_of_writers(p.rearrange, writers, parts, shape, unit)
        self._calls = max(map(len, placed.values()))
        self._exchange = Exchange(team.comm, parts, placed, spec.itemsize)
        self._outside = parts[team.rank].size * spec.itemsize
        self._inside = sum(box.size for box in self._exchange.boxes) * spec.itemsize
        self._has_holes = sum(part.size for part in parts) < prod(shape)
        self._writers = writers.ranks
        self._comm: MPI.Intracomm | None = None
        most = max(sum(box.size for box in boxes) for boxes in placed.values())
        held = Size(most * spec.itemsize)
        told = f"{len(placed)} of {team.size} ranks, at most {held} of each array or step"
        repetition.observed.facts["writers"] = told

    def connect(self) -> None:
        """Make the communicator of the writers; collective."""
        from mpi4py import MPI

        comm = self._repetition.team.comm
        writes = comm.rank in self._writers
        key = self._writers.index(comm.rank) if writes else 0
        made: Any = comm.Split(0 if writes else MPI.UNDEFINED, key=key)
        self._comm = made if writes else None

    def free(self) -> None:
        """Free datatypes and communicator; collective over the writers."""
        self._exchange.free()
        if self._comm is not None:
            self._comm.Free()

    def write(self) -> set[str]:
        """Write through the writers; return the files that this rank wrote to."""
        repetition, clock = self._repetition, self._repetition.clock
        path = repetition.path
        refuse_data(repetition, self._specs)
        with clock.phase("create"):
            store = self._opened(repetition.backend.create, path)
            repetition.open_stores.append(store)
        with repetition.step("preparation"):
            define_all = store.definer(self._specs)
        is_root = repetition.team.is_root
        touched = CountAmplification(repetition, "write")
        with clock.phase("define", operations=len(self._specs) * is_root):
            returned = define_all()
        arrays = LazyArrays(store, self._specs, returned)
        for group in self._groups():
            with repetition.step("data"):
                for piece in group.outside:
                    piece.fill(repetition.source)
                for piece in group.inside:
                    if self._has_holes:  # which no rank fills
                        piece.memory.fill(0)
                    repetition.blocks.update(piece.blocks)
                calls = [self._exchange.to_writers(*memory) for memory in group.both]
            nbytes = sum(piece.memory.nbytes for piece in group.outside)
            with clock.phase("exchange", nbytes, len(calls)):
                for call in calls:
                    call()
            write_pieces(repetition, arrays, group.inside)
            with repetition.step("touched"):
                touched(arrays, [Access(piece.spec, piece.box) for piece in group.inside])
        return finish_writing(repetition, store)

    def read(self) -> None:
        """Read through the writers, and verify every byte of each rank's part off the timer."""
        repetition, clock = self._repetition, self._repetition.clock
        path = repetition.read_path
        with clock.phase("open"):
            store = self._opened(repetition.backend.open, path)
            repetition.open_stores.append(store)
        with repetition.step("preparation"):
            open_all = store.opener(self._specs)
        with clock.phase("open_array", operations=len(self._specs) * repetition.team.is_root):
            returned = open_all()
        arrays = LazyArrays(store, self._specs, returned)
        for group in self._groups():
            repetition.room.fill(POISON)
            got = read_pieces(repetition, arrays, group.inside)
            with repetition.step("preparation"):
                calls = [self._exchange.from_writers(*memory) for memory in group.both]
                allocated = [
                    (piece.memory, found)
                    for piece, found in zip(group.inside, got, strict=True)
                    if found is not piece.memory
                ]
            nbytes = sum(piece.memory.nbytes for piece in group.outside)
            with clock.phase("exchange_read", nbytes, len(calls)):
                for memory, found in allocated:  # arrays of the library's own
                    np.copyto(memory, found)
                for call in calls:
                    call()
            with repetition.step("verification"):
                if repetition.keeps_data:
                    held = [piece.memory for piece in group.outside]
                    TransferMemory(repetition).verify(group.outside, held)
        note_facts_of_reading(repetition, store)
        with clock.phase("close_read"):
            store.close()
        repetition.open_stores.remove(store)

    def _opened(self, open_store: Any, path: str) -> Store:
        if self._comm is None:
            return _Elsewhere()
        alone = self._comm.size == 1 and not self._repetition.collective
        store: Store = open_store(path, None if alone else self._comm)
        return store

    def _groups(self) -> Iterator[_Group]:
        """Yield the accesses in groups that fit in memory, as many on all ranks."""
        repetition = self._repetition
        each = max(1, self._outside + self._inside)
        count = smallest(repetition.team.comm, max(1, repetition.memory // each))
        for first in range(0, len(self._accesses), count):
            accesses = self._accesses[first : first + count]
            with repetition.step("memory"):
                buffer = repetition.room.take(len(accesses) * (self._outside + self._inside))
            yield self._placed(accesses, buffer)

    def _placed(self, accesses: Sequence[Access], buffer: Buffer) -> _Group:
        """Return accesses with their memory: all parts, then all boxes of this writer."""
        repetition, count = self._repetition, len(accesses)
        parts = _cut(buffer[: count * self._outside], count)
        boxes = _cut(buffer[count * self._outside :], count)
        outside = [
            Transfer(a.spec, a.box, memory.view(a.spec.dtype).reshape(a.box.shape))
            for a, memory in zip(accesses, parts, strict=True)
        ]
        inside: list[Transfer] = []
        if self._comm is not None:
            limit, together = repetition.backend.call_limit, repetition.collective
            for access, memory in zip(accesses, boxes, strict=True):
                moved = list(self._of_writer(access))
                calls = calls_of(self._comm, moved, limit, together)
                inside += one_after_the_other(calls, memory)
        return _Group(outside, inside, list(zip(parts, boxes, strict=True)))

    def _of_writer(self, access: Access) -> Iterator[Access]:
        """Yield this writer's accesses to the array or step of another one, as many on each."""
        lead = access.box.start[: -self._axes]
        boxes = self._exchange.boxes
        for box in boxes:
            yield Access(access.spec, Box((*lead, *box.start), (*(1 for _ in lead), *box.shape)))
        nothing = Box((*lead, *(0 for _ in range(self._axes))), (0,) * len(access.box.start))
        for _ in range(self._calls - len(boxes)):
            yield Access(access.spec, nothing)


def _cut(buffer: Buffer, count: int) -> list[Buffer]:
    """Cut memory into parts of equal length."""
    length = buffer.nbytes // count
    return [buffer[i * length : (i + 1) * length] for i in range(count)]
