"""Accesses, and their division into rounds, batches and transfers that fit in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call
from pffbench.backends.traits import CountsMissing
from pffbench.data import Mismatch, Source, verify
from pffbench.data.views import Gathered, Strided
from pffbench.parallel.collectives import largest, smallest
from pffbench.parallel.decomposition import Box
from pffbench.parallel.stretches import Stretches

if TYPE_CHECKING:
    from mpi4py import MPI


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
        if isinstance(self.box, Stretches):
            return Gathered(source, self.box.whole, self.box.offsets, self.box.lengths)
        if not self.box.stride:
            return None
        start = self.spec.data_start(self.box)
        return Strided(source, start, self.box.stride, self.spec.logical_shape)

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


def transfers_of(
    comm: MPI.Intracomm,
    batch: Sequence[Access],
    buffer: Buffer,
    limit: int | None,
    collective: bool,
) -> list[Transfer]:
    """Return the transfers of a batch, one for each call, in the order of the calls.

    Parameters
    ----------
    comm, batch, limit, collective
        See `calls_of`; the function is collective where that one is.
    buffer : array of uint8
        Memory of the batch.
    """
    return one_after_the_other(calls_of(comm, batch, limit, collective), buffer)


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


def amount(pieces: Sequence[Transfer]) -> tuple[int, int]:
    """Return the bytes and the calls of a batch; empty calls do not count."""
    nbytes = sum(piece.memory.nbytes for piece in pieces)
    return nbytes, sum(1 for piece in pieces if piece.memory.size)


class Access(msgspec.Struct, frozen=True):
    """One call of a rank: a box of an array, written or read."""

    spec: ArraySpec
    box: Box

    @property
    def nbytes(self) -> int:
        """Bytes of array data that the call moves."""
        return self.box.size * self.spec.itemsize

    def view_of(self, memory: Buffer, begin: int) -> Buffer:
        """Return its part of memory, of the type and shape of the box."""
        part: Buffer = memory[begin : begin + self.nbytes]
        return part.view(self.spec.dtype).reshape(self.box.shape)


class Round(msgspec.Struct, frozen=True):
    """Arrays that are defined, or opened, together, and this rank's accesses to them.

    Parameters
    ----------
    specs : sequence of ArraySpec
        The arrays, including those of other ranks in the store; may be empty.
    accesses : sequence of Access
        This rank's accesses, one a call; may be empty.
    """

    specs: Sequence[ArraySpec]
    accesses: Sequence[Access]

    @property
    def nbytes(self) -> int:
        """Bytes of array data that this rank moves."""
        return sum(access.nbytes for access in self.accesses)


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


#: Cuts the arrays of a store and a rank's accesses to them into rounds. Phases are collective, so
#: it must give every rank the same number of rounds.
Rounds = Callable[[Sequence[ArraySpec], Sequence[Access]], Iterator[Round]]


def all_at_once(specs: Sequence[ArraySpec], accesses: Sequence[Access]) -> Iterator[Round]:
    """Yield one round of everything: all arrays are defined before the first is moved."""
    yield Round(specs, accesses)


def one_by_one(count: int) -> Rounds:
    """Return a function that cuts into rounds of one array for each owner.

    The n-th round holds the n-th array of each rank, so that ranks with their own arrays in a
    shared file work concurrently. A round holds one array that all ranks write together.

    Parameters
    ----------
    count : int
        Number of rounds, the same on all ranks: the largest number of arrays of a rank.
    """

    def cut(specs: Sequence[ArraySpec], accesses: Sequence[Access]) -> Iterator[Round]:
        defined: list[list[ArraySpec]] = [[] for _ in range(count)]
        moved: list[list[Access]] = [[] for _ in range(count)]
        place: dict[str, int] = {}
        seen: dict[int | None, int] = defaultdict(int)
        for spec in specs:
            place[spec.name] = seen[spec.owner]
            defined[seen[spec.owner]].append(spec)
            seen[spec.owner] += 1
        for access in accesses:
            moved[place[access.spec.name]].append(access)
        return (Round(*both) for both in zip(defined, moved, strict=True))

    return cut


def turns(comm: MPI.Intracomm, rounds: Iterator[Round], memory: int) -> Iterator[Sequence[Batch]]:
    """Group batches that fit in memory together; collective, equal on all ranks.

    Data of a group are made before its first batch and verified after its last one, so that each of
    thousands of small rounds consists of its phases only.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks.
    rounds : iterator of Round
        The rounds, as many on each rank.
    memory : int
        Most bytes of a group on a rank, but for a single access that is longer.
    """
    left = list(rounds)
    while left:
        together = smallest(comm, _fitting(left, memory))
        if together > 1:
            yield [Batch(one, one.accesses) for one in left[:together]]
        else:
            parts = list(batches(comm, left[0].accesses, memory)) or [()]
            for number, part in enumerate(parts, start=1):
                yield [Batch(left[0], part, number == 1, number == len(parts))]
        del left[:together]


def _fitting(rounds: Sequence[Round], memory: int) -> int:
    """Count the leading rounds that fit in memory together, at least one."""
    nbytes = 0
    for number, one in enumerate(rounds):
        nbytes += one.nbytes
        if number and nbytes > memory:
            return number
    return len(rounds)
