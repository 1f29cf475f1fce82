"""Attributes of arrays: small metadata, each set and read by a call of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import msgspec

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Call, Store
from pffbench.backends.traits import HasAttributes
from pffbench.data import Mismatch
from pffbench.workloads.repetition import Repetition


class Attributes(msgspec.Struct, frozen=True):
    """Whole numbers that describe each array, equal on all ranks."""

    #: Number of attributes of each array; with 0 there is no phase for them.
    number: int

    def of_every_array(self, store: Store) -> bool:
        """Return whether each rank has to read the attributes of all arrays."""
        return bool(self.number) and store.collective_attributes

    def write(
        self,
        repetition: Repetition,
        store: Store,
        arrays: Mapping[str, Array],
        specs: Sequence[ArraySpec],
    ) -> None:
        """Set the attributes of new arrays, in the phase `set_attributes`; collective.

        All ranks set those of all arrays where the store demands it; else the owner of an array
        does, and rank 0 for arrays that all ranks write.
        """
        if not self.number:
            return
        with repetition.step("preparation"):
            owner = repetition.owner
            mine = [spec for spec in specs if (spec.owner or 0) == owner]
            wanted = specs if store.collective_attributes else mine
            calls: list[Call] = []
            if isinstance(store, HasAttributes):
                named = [(arrays[spec.name], *pair) for spec in wanted for pair in self._of(spec)]
                calls = store.attribute_writers(named)
        with repetition.place.clock.phase("set_attributes", operations=len(mine) * self.number):
            for call in calls:
                call()

    def read(
        self,
        repetition: Repetition,
        store: Store,
        arrays: Mapping[str, Array],
        specs: Sequence[ArraySpec],
        described: int,
    ) -> list[Any]:
        """Read the attributes of open arrays, in the phase `get_attributes`, and compare them.

        Parameters
        ----------
        repetition : Repetition
            The repetition.
        store : Store
            The open store.
        arrays : mapping of str to Array
            Its arrays, by name.
        specs : sequence of ArraySpec
            Those whose attributes this rank reads.
        described : int
            How many of them count as this rank's work.

        Returns
        -------
        list
            The values, array by array.
        """
        if not self.number:
            return []
        with repetition.step("preparation"):
            calls: list[Call] = []
            if isinstance(store, HasAttributes):
                named = [(arrays[spec.name], name) for spec in specs for name, _ in self._of(spec)]
                calls = store.attribute_readers(named)
        with repetition.place.clock.phase("get_attributes", operations=described * self.number):
            returned = [call() for call in calls]
        self.compare(repetition, specs, returned)
        return returned

    def compare(
        self, repetition: Repetition, specs: Sequence[ArraySpec], returned: Sequence[Any]
    ) -> None:
        """Compare values that were read, or received from who read them, with those written."""
        got_or_none = chain(returned, repeat(None))
        expected = [(spec, value) for spec in specs for _, value in self._of(spec)]
        for place, (got, (spec, value)) in enumerate(zip(got_or_none, expected, strict=False)):
            if not _is(got, value):
                index = (place % self.number,)
                wrong = Mismatch(spec.number, index, f"attribute {value}", str(got), 1)
                repetition.observed.mismatches.append(wrong)

    def values(self, specs: Sequence[ArraySpec]) -> list[int]:
        """Return the values of the attributes of arrays."""
        return [value for spec in specs for _, value in self._of(spec)]

    def _of(self, spec: ArraySpec) -> Iterator[tuple[str, int]]:
        """Yield names and values of the attributes of an array."""
        for number in range(self.number):
            yield f"attribute_{number:03d}", spec.number * self.number + number


#: What most workloads give their arrays.
NO_ATTRIBUTES = Attributes(0)


def _is(got: Any, value: int) -> bool:
    """Return whether a library returned the value, as its own type of number."""
    try:
        return int(got) == value
    except (TypeError, ValueError):
        return False
