"""Accesses of a rank to arrays, their rounds, and the transfers that move them.

A box becomes a call in four steps. An `Access` is a box of an array. `calls_of` (`buffers.py`) cuts
it into what one call of the library moves. A `Transfer` is such an access with its memory.
`Transfer.writer` and `Transfer.reader` return the prepared call, a `Call`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call
from pffbench.backends.traits import CountsMissing
from pffbench.data import Mismatch, Source, verify
from pffbench.data.views import Gathered, Strided
from pffbench.geometry.box import Box
from pffbench.geometry.stretches import Stretches


class Transfer(msgspec.Struct, frozen=True):
    """A box moved by one call, with its part of the buffer."""

    spec: ArraySpec
    box: Box
    memory: Buffer

    def fill(self, source: Source) -> None:
        """Fill the buffer with the data of the box."""
        lattice = self._lattice(source)
        if lattice is not None:
            lattice.fill(self.memory, self.spec.number, (0,) * self.memory.ndim, self.box.shape)
            return
        source.fill(
            self.memory, self.spec.number, self.spec.data_start(self.box), self.spec.logical_shape
        )

    def verify(self, source: Source, got: Buffer) -> Mismatch | None:
        """Compare the data read with the source."""
        number, lattice = self.spec.number, self._lattice(source)
        if lattice is None:
            start, shape = self.spec.data_start(self.box), self.spec.logical_shape
            return verify(source, got, number, start, shape)
        wrong = verify(lattice, got, number, (0,) * got.ndim, self.box.shape)
        return None if wrong is None else replace(wrong, index=lattice.index(wrong.index))

    def _lattice(self, source: Source) -> Strided | Gathered | None:
        """Return the elements of a box with a stride, or of stretches; None for any other box."""
        shape = self.spec.logical_shape
        if isinstance(self.box, Stretches):  # an array with these is cut along its first axis
            offsets = self.box.offsets + self.spec.origin[0] * prod(shape[1:])
            return Gathered(source, shape, offsets, self.box.lengths)
        if not self.box.stride:
            return None
        start = self.spec.data_start(self.box)
        return Strided(source, start, self.box.stride, shape)

    @property
    def blocks(self) -> Counter[int]:
        """Sizes of the blocks of memory that a library may allocate for it, and their numbers."""
        blocks = Counter([self.memory.nbytes])
        if isinstance(self.spec.chunks, tuple):
            chunk = prod(self.spec.chunks) * self.spec.itemsize
            blocks[chunk] += max(1, -(-self.memory.nbytes // chunk))
        return blocks

    def writer(self, arrays: Mapping[str, Array], collective: bool) -> Call:
        """Return the call that writes the box."""
        return arrays[self.spec.name].writer(self.box, self.memory, collective)

    def reader(self, arrays: Mapping[str, Array], collective: bool) -> Call:
        """Return the call that reads the box."""
        return arrays[self.spec.name].reader(self.box, self.memory, collective)

    def missing(self, arrays: Mapping[str, Array], call: Call, returned: Any) -> int:
        """Return how many bytes a call did not move although the library raised no error.

        Parameters
        ----------
        arrays : mapping of str to Array
            The open arrays, by name.
        call : callable
            The call that `writer` or `reader` returned.
        returned : Any
            Return value of the call.
        """
        if isinstance(returned, int):
            return self.memory.nbytes - returned
        array = arrays[self.spec.name]
        if not _counts_missing(type(array)):
            return 0
        return cast("CountsMissing", array).missing(call, self.memory.nbytes)


@cache
def _counts_missing(kind: type[Array]) -> bool:
    """Return whether arrays of a class have the trait; asked of an object it takes 10 µs."""
    return issubclass(kind, CountsMissing)


class Access(msgspec.Struct, frozen=True):
    """A box of an array that a rank writes or reads.

    It is one call of the library, unless it is longer than a call may be, or goes through writers.
    """

    spec: ArraySpec
    box: Box

    @property
    def nbytes(self) -> int:
        """Bytes of array data that the call moves."""
        return self.box.size * self.spec.itemsize

    @property
    def held(self) -> int:
        """Bytes of memory that the call needs on this rank."""
        return self.nbytes

    def view_of(self, memory: Buffer, begin: int) -> Buffer:
        """Return its part of memory, of the type and shape of the box."""
        part: Buffer = memory[begin : begin + self.nbytes]
        return part.view(self.spec.dtype).reshape(self.box.shape)


class Round(msgspec.Struct, frozen=True):
    """Arrays that are defined, or opened, together, and this rank's accesses to them.

    It is a part of one repetition. The rounds of a run, one repetition of each case, are others.
    """

    #: The arrays, including those of other ranks in the store; may be empty.
    specs: Sequence[ArraySpec]
    #: This rank's accesses, one a call; may be empty.
    accesses: Sequence[Access]

    @property
    def held(self) -> int:
        """Bytes of memory that this rank needs."""
        return sum(access.held for access in self.accesses)


#: Cuts the arrays of a store and a rank's accesses to them into rounds. Phases are collective, so
#: it must give every rank the same number of rounds.
Rounds = Callable[[Sequence[ArraySpec], Sequence[Access]], Iterator[Round]]


def all_at_once(specs: Sequence[ArraySpec], accesses: Sequence[Access]) -> Iterator[Round]:
    """Yield one round of everything: all arrays are defined before the first is moved."""
    yield Round(specs, accesses)
