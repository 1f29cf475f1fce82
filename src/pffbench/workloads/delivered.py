"""The route `Delivered`: rank 0 writes a store, and some ranks read all of it for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import msgspec
import numpy as np

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, Store
from pffbench.backends.traits import Lists
from pffbench.data.verify import Mismatch
from pffbench.mpi.delivery import Delivery
from pffbench.mpi.topology import Team
from pffbench.proc import open_descriptors
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.read_proof import POISON
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.route import Closed, PlacedBatch, Route
from pffbench.workloads.transfers import Access

#: What a program finds out about an array: name, shape, type.
Description = tuple[str, tuple[int, ...], str]

_METADATA = msgspec.msgpack.Decoder(tuple[list[Description], list[Any]])


class Delivered(Route):
    """All ranks need all arrays, which rank 0 has written; a delivery says which ranks read them.

    Data and metadata get to the other ranks in the phase `distribute`, and are verified there.

    Parameters
    ----------
    repetition : Repetition
        The repetition, in which rank 0 has a file to itself.
    way : callable
        Makes the delivery, of the ranks.
    attributes : Attributes
        Attributes of each array, delivered like the names, shapes and types.
    reads : bool
        Whether the store is read.
    """

    lookup = "inquire"

    def __init__(
        self,
        repetition: Repetition,
        way: Callable[[Team], Delivery],
        attributes: Attributes,
        *,
        reads: bool,
    ) -> None:
        super().__init__(repetition, reads=reads)
        team = repetition.place.team
        self._way = way(team) if reads else Delivery()
        self._attributes = attributes
        self._specs = repetition.subject.arrays.specs(team.rank)
        self._expected = _descriptions(self._specs)
        self._described = self._expected
        self._text = b""
        self._memory: Buffer = np.empty(0, np.uint8)
        self.opens = self._way.reads if reads else team.is_root
        self.openings = int(self.opens)
        self.receives = self._way.delivers
        if reads and repetition.subject.parameters.shares_files:
            self._comm = team.comm

    def end(self) -> None:
        """Free the memory that ranks share."""
        self._way.end()

    def opener(self, open_store: Callable[[str, Any], Store]) -> Callable[[], Store]:
        """Return the call that opens the store, on the ranks that read or write it."""
        return partial(open_store, self._path, self._comm) if self.opens else Closed

    def look_up(self, store: Store, specs: Sequence[ArraySpec]) -> Call:
        """Return the call that finds the arrays; without a list in the store, by their names."""
        if self._repetition.place.clock.counts and self._repetition.observed.reads == 1:
            open_files = open_descriptors(self._path)
            self._repetition.observed.count("open", "descriptors", open_files)
        return store.inquire if isinstance(store, Lists) else store.opener(specs)

    def wrap(self, store: Store, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        """Return the arrays of the inquiry, and keep their descriptions."""
        with self._repetition.step("inquiry"):
            if not isinstance(store, Lists):
                return store.wrap(specs, returned)
            self._described = [
                (name, tuple(map(int, shape)), np.dtype(dtype).str)
                for name, (_, shape, dtype) in sorted(returned.items())
            ]
            return store.wrap(specs, [returned[spec.name][0] for spec in specs])

    def described(self, specs: Sequence[ArraySpec]) -> int:
        """Count the arrays that this rank looks up: all of them, if it reads."""
        return len(specs) if self.opens else 0

    def note_values(self, values: Sequence[Any]) -> None:
        """Keep the metadata that this rank has read, as it delivers them."""
        with self._repetition.step("metadata"):
            if self.opens:
                self._text = _encoded(self._described, values)

    def memory_for_reading(self, nbytes: int) -> Buffer:
        """Return memory filled with bytes that no array has; ranks that share it make it first."""
        way, repetition = self._way, self._repetition
        if not way.shares:
            self._memory = super().memory_for_reading(nbytes)
            return self._memory
        with repetition.step("shared memory"):
            text = len(_encoded(self._expected, self._attributes.values(self._specs)))
            way.require(nbytes + text)
        with repetition.place.clock.phase("distribute", operations=0):
            self._memory = way.share(nbytes, text)
        with repetition.step("memory"):
            if way.reads:
                self._memory.fill(POISON)
        return self._memory

    def put_in_memory(self, batch: Sequence[Access], memory: Buffer) -> PlacedBatch:
        """Put the accesses in memory; the ranks that have the store open make the calls."""
        own = super().put_in_memory(batch, memory).own
        return PlacedBatch(own, own if self.opens else [])

    def receive(self, placed: PlacedBatch, got: list[Buffer]) -> list[Buffer]:
        """Deliver data and metadata, and verify the metadata that this rank has in the end."""
        text = self._text
        if self._way.delivers:
            received = 0 if self.opens else self._memory.nbytes
            clock = self._repetition.place.clock
            with clock.phase("distribute", received, operations=int(not self.opens)):
                for transfer, data in zip(placed.own, got, strict=False):
                    if data is not transfer.memory:  # an array that the library made
                        np.copyto(transfer.memory, np.asarray(data))
                text = self._way.deliver(text, self._memory)
            got = [transfer.memory for transfer in placed.own]
        with self._repetition.step("verification"):
            self._compare(text)
        return got

    def _compare(self, text: bytes) -> None:
        """Compare the metadata that this rank has, its own or those it received."""
        try:
            described, values = _METADATA.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            described, values = [], []
        for number, (want, told) in enumerate(zip_longest(self._expected, described)):
            if want != told:
                wrong = Mismatch(number, (), f"metadata {want}", str(told), 1)
                self._repetition.observed.mismatches.append(wrong)
                break
        if not self.opens:
            self._attributes.compare(self._repetition, self._specs, values)


def _encoded(described: Sequence[Description], values: Sequence[Any]) -> bytes:
    return msgspec.msgpack.encode((described, values), enc_hook=int)


def _descriptions(specs: Sequence[ArraySpec]) -> list[Description]:
    return [(spec.name, spec.shape, spec.stored_dtype.str) for spec in specs]
