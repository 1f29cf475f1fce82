"""Routes: which ranks have a store open, and how the bytes of a rank get to and from them.

The sequence of a repetition (`pffbench.workloads.write_read`) is the same for all. A route says
which calls this rank makes for an access, in which memory, and what it sends before a write and
receives after a read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, LazyArrays, Store
from pffbench.geometry.box import Box
from pffbench.mpi.exchange import Exchange
from pffbench.units import Size
from pffbench.workloads.arrays import Family
from pffbench.workloads.buffers import calls_of, one_after_the_other
from pffbench.workloads.read_proof import POISON
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access, Transfer
from pffbench.workloads.writers import WriterRanks, pieces_of_writers

if TYPE_CHECKING:
    from mpi4py import MPI


class PlacedBatch(NamedTuple):
    """The transfers of a batch, placed in memory: what moves in one phase."""

    #: This rank's data: made before a write, and verified after a read.
    own: list[Transfer]
    #: The calls that it makes on the open store.
    calls: list[Transfer]
    #: What is sent between ranks, with the memory of this rank's data and of its calls.
    exchanged: Sequence[tuple[Exchange, Buffer, Buffer]] = ()


class Route:
    """Every rank has the store open and moves its own data.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    reads : bool
        Whether the store is read.

    Attributes
    ----------
    opens : bool
        Whether this rank has the store open.
    receives : bool
        Whether data that are read get into this rank's own memory, wherever the library puts them.
    lookup : str
        The phase in which arrays are opened for reading.
    openings : int
        How many times this rank counts as one that opens and closes the store for reading.
    """

    opens: bool = True
    receives: bool = False
    lookup: str = "open_array"
    openings: int = 1

    def __init__(self, repetition: Repetition, *, reads: bool) -> None:
        self._repetition = repetition
        self._reads = reads
        self._path = repetition.read_path if reads else repetition.path
        self._comm = repetition.read_comm if reads else repetition.comm

    def connect(self) -> None:
        """Make what ranks need to send to each other; collective."""

    def end(self) -> None:
        """Free it."""

    @property
    def author(self) -> int:
        """The rank whose part this rank moves."""
        return self._repetition.author if self._reads else self._repetition.place.team.rank

    def accesses(self) -> list[Access]:
        """Return the accesses of this rank."""
        arrays = self._repetition.subject.arrays
        return arrays.reads(self.author) if self._reads else arrays.writes(self.author)

    def opener(self, open_store: Callable[[str, Any], Store]) -> Callable[[], Store]:
        """Return the call that opens the store on this rank."""
        return partial(open_store, self._path, self._comm)

    def look_up(self, store: Store, specs: Sequence[ArraySpec]) -> Call:
        """Return the call that opens arrays of a store that is open for reading."""
        return store.opener(specs)

    def wrap(self, store: Store, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        """Return the arrays from what that call returned."""
        return LazyArrays(store, specs, returned)

    def described(self, specs: Sequence[ArraySpec]) -> int:
        """Count the arrays of which this rank describes the opening: those of the author."""
        return count_owned(specs, self._repetition.groups.owner(self.author))

    def note_values(self, values: Sequence[Any]) -> None:
        """Note the attributes that this rank has read."""

    def memory_for_reading(self, nbytes: int) -> Buffer:
        """Return memory that holds no data of the arrays; collective.

        It is the memory that the data were written from, so it is overwritten. Memory that a
        library does not read into is not touched, so that it takes no space.
        """
        repetition = self._repetition
        with repetition.step("memory"):
            untouched = repetition.subject.returns_arrays and not self.receives
            if untouched:
                repetition.place.buffer.leave()
            memory = repetition.place.buffer.take(nbytes)
            if not untouched:
                memory.fill(POISON)
        return memory

    def put_in_memory(self, batch: Sequence[Access], memory: Buffer) -> PlacedBatch:
        """Put a batch of accesses in memory; collective over the ranks of a file."""
        transfers = one_after_the_other(self._calls(batch, self._comm), memory)
        return PlacedBatch(transfers, transfers)

    def _calls(self, batch: Sequence[Access], comm: MPI.Intracomm | None) -> list[Access]:
        repetition = self._repetition
        comm, limit = comm or repetition.place.team.comm, repetition.subject.backend.call_limit
        return calls_of(comm, batch, limit, repetition.subject.collective)

    def send(self, placed: PlacedBatch) -> None:
        """Send this rank's data to the ranks that write them; collective."""

    def receive(self, placed: PlacedBatch, got: list[Buffer]) -> list[Buffer]:
        """Return this rank's data after a read; collective.

        Parameters
        ----------
        placed : PlacedBatch
            What moved.
        got : list of array
            What the calls of this rank read.
        """
        return got


@contextmanager
def route_of(repetition: Repetition, *, reads: bool = False) -> Iterator[Route]:
    """Return the route of a case, which ends with the block; collective."""
    usual = ThroughWriters if repetition.subject.parameters.exchanges else Route
    kind = repetition.route or usual
    with repetition.step("plan"):
        route = kind(repetition, reads=reads)
    try:
        route.connect()
        yield route
    finally:
        route.end()


def count_owned(specs: Sequence[ArraySpec], owner: int) -> int:
    """Count the arrays that an owner defines."""
    return sum(1 for _ in owned(specs, owner))


def owned(specs: Sequence[ArraySpec], owner: int) -> Iterator[ArraySpec]:
    """Yield the arrays of an owner; those that ranks share belong to number 0."""
    return (spec for spec in specs if (spec.owner or 0) == owner)


class Closed(Store):
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


class Relayed(Access, frozen=True, kw_only=True):
    """An access that goes through writer ranks."""

    #: What is sent between the ranks and the writers.
    exchange: Exchange
    #: What this rank moves as a writer, one box a call. Each writer of a file has equally many, of
    #: which some are empty; the other ranks have none.
    calls: tuple[Access, ...]

    @property
    def held(self) -> int:
        """Bytes of this rank's data and of its calls."""
        return self.nbytes + sum(call.nbytes for call in self.calls)


class ThroughWriters(Route):
    """Writer ranks have the store open, on a communicator of their own, as programs with I/O ranks.

    A single writer opens it as a serial program does. The other ranks take part in the exchanges
    and wait in the other phases.
    """

    receives = True

    def __init__(self, repetition: Repetition, *, reads: bool) -> None:
        super().__init__(repetition, reads=reads)
        p: Any = repetition.subject.parameters
        team = repetition.place.team
        self._rearranger = p.rearranger
        self._members = repetition.groups.members(team.rank)
        self._me = team.rank - self._members.start
        self._ranks = WriterRanks.of(p.writers, team.topology.part(self._members))
        self.opens = self._me in self._ranks.ranks
        self._exchanges: list[Exchange] = []
        self._most = 0
        self._writers: MPI.Intracomm | None = None
        by_family = repetition.subject.arrays.by_family(team.rank)
        self._accesses = [a for family, specs in by_family for a in self._relayed(family, specs)]
        count = f"{len(self._ranks.positions)} of {len(self._members)} ranks"
        told = f"{count}, at most {Size(self._most)} of each array or step"
        repetition.observed.facts["writers"] = told

    def connect(self) -> None:
        """Make the communicator of the writers, once in a run."""
        repetition = self._repetition
        self._writers = repetition.place.team.of_writers(repetition.groups, self._ranks.ranks)

    def end(self) -> None:
        """Free the datatypes."""
        for exchange in self._exchanges:
            exchange.free()

    def accesses(self) -> list[Access]:
        """Return the accesses of this rank, with its calls as a writer."""
        return list(self._accesses)

    def _relayed(self, family: Family, specs: Sequence[ArraySpec]) -> Iterator[Relayed]:
        """Yield the accesses to alike arrays; the n-th ones of all ranks are exchanged together."""
        if not specs:
            return
        model = specs[0]
        of_ranks = [list(family.moved(rank, model, reads=self._reads)) for rank in self._members]
        relays = [self._relay(family, model, boxes) for boxes in zip(*of_ranks, strict=True)]
        for spec in specs:
            for own, (exchange, boxes) in zip(of_ranks[self._me], relays, strict=True):
                by_step = (family.by_step(box, reads=self._reads) for box in (own, *boxes))
                for mine, *as_writer in zip(*by_step, strict=True):
                    calls = tuple(Access(spec, box) for box in as_writer)
                    yield Relayed(spec, mine, exchange=exchange, calls=calls)

    def _relay(
        self, family: Family, model: ArraySpec, boxes: Sequence[Box]
    ) -> tuple[Exchange, list[Box]]:
        """Return the exchange of one call of each rank, and the boxes of this writer.

        Boxes of a writer are followed by empty ones, so that all writers have equally many. Here
        neither the boxes nor the shape have an axis of time steps.
        """
        repetition, axes = self._repetition, len(family.cut.whole)
        stored = repetition.subject.backend.storage(model, repetition.subject.case.options)
        unit = (stored.unit or model.shape)[-axes:]
        shape = (model.shape[0] + model.growth, *model.shape[1:])[-axes:]
        placed = pieces_of_writers(self._rearranger, self._ranks, boxes, shape, unit)
        comm = self._comm or repetition.place.team.comm
        exchange = Exchange(comm, boxes, placed, model.itemsize)
        self._exchanges.append(exchange)
        held = (sum(piece.box.size for piece in some) for some in placed.values())
        self._most = max(self._most, model.itemsize * max(held))
        if not self.opens:
            return exchange, []
        nothing = Box((0,) * axes, (0,) * axes)
        more = max(map(len, placed.values())) - len(exchange.boxes)
        return exchange, [*exchange.boxes, *[nothing] * more]

    def opener(self, open_store: Callable[[str, Any], Store]) -> Callable[[], Store]:
        """Return the call that opens the store, on the writers alone."""
        if self._writers is None:
            return Closed
        alone = self._writers.size == 1 and not self._repetition.subject.collective
        return partial(open_store, self._path, None if alone else self._writers)

    def put_in_memory(self, batch: Sequence[Access], memory: Buffer) -> PlacedBatch:
        """Put each access in memory, then this writer's calls for it."""
        own: list[Transfer] = []
        transfers: list[Transfer] = []
        exchanged: list[tuple[Exchange, Buffer, Buffer]] = []
        done = 0
        for access in batch:
            assert isinstance(access, Relayed)
            mine = memory[done : done + access.nbytes]
            as_writer = memory[done + access.nbytes : done + access.held]
            own.append(Transfer(access.spec, access.box, access.view_of(mine, 0)))
            if self._writers is not None:
                calls = self._calls(access.calls, self._writers)
                transfers += one_after_the_other(calls, as_writer)
            exchanged.append((access.exchange, mine, as_writer))
            done += access.held
        return PlacedBatch(own, transfers, exchanged)

    def send(self, placed: PlacedBatch) -> None:
        """Send each rank's data to the writers, in the phase `exchange`."""
        with self._repetition.step("preparation"):
            calls = [exchange.to_writers(*memory) for exchange, *memory in placed.exchanged]
        with self._repetition.place.clock.phase("exchange", _nbytes(placed), len(calls)):
            for call in calls:
                call()

    def receive(self, placed: PlacedBatch, got: list[Buffer]) -> list[Buffer]:
        """Send each rank the data that the writers read, in the phase `exchange_read`."""
        with self._repetition.step("preparation"):
            calls = [exchange.from_writers(*memory) for exchange, *memory in placed.exchanged]
            allocated = [
                (transfer.memory, np.asarray(found))
                for transfer, found in zip(placed.calls, got, strict=True)
                if found is not transfer.memory
            ]
        with self._repetition.place.clock.phase("exchange_read", _nbytes(placed), len(calls)):
            for memory, found in allocated:  # arrays that the library made
                np.copyto(memory, found)
            for call in calls:
                call()
        return [transfer.memory for transfer in placed.own]


def _nbytes(placed: PlacedBatch) -> int:
    return sum(transfer.memory.nbytes for transfer in placed.own)
