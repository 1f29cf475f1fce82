"""What one call moves: accesses cut into batches for memory and into calls for the library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pffbench.backends.base import Array, ArraySpec, Buffer, Call
from pffbench.data import Mismatch, Source, verify
from pffbench.data.strided import Strided
from pffbench.parallel.decomposition import Box
from pffbench.parallel.extremes import largest, least
from pffbench.workloads.access import Access

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True, slots=True)
class Piece:
    """A box that one call moves, with the part of the buffer that it is moved from or to."""

    spec: ArraySpec
    box: Box
    memory: Buffer

    def fill(self, source: Source) -> None:
        """Put the data that belong there into the buffer."""
        lattice = self._lattice(source)
        if lattice is not None:
            lattice.fill(self.memory, self.spec.number, (0,) * self.memory.ndim, self.box.shape)
            return
        source.fill(
            self.memory, self.spec.number, self.spec.data_start(self.box), self.spec.logical_shape
        )

    def verify(self, source: Source, got: Buffer) -> Mismatch | None:
        """Compare what was read with the data that belong there."""
        number, lattice = self.spec.number, self._lattice(source)
        if lattice is None:
            start, shape = self.spec.data_start(self.box), self.spec.logical_shape
            return verify(source, got, number, start, shape)
        wrong = verify(lattice, got, number, (0,) * got.ndim, self.box.shape)
        return None if wrong is None else replace(wrong, index=lattice.index(wrong.index))

    def _lattice(self, source: Source) -> Strided | None:
        """Return the elements that a box with a stride takes, None of a box without."""
        if not self.box.stride:
            return None
        start = self.spec.data_start(self.box)
        return Strided(source, start, self.box.stride, self.spec.logical_shape)

    def writer(self, arrays: Mapping[str, Array], collective: bool) -> Call:
        """Return the call that writes the piece."""
        return arrays[self.spec.name].writer(self.box, self.memory, collective)

    def reader(self, arrays: Mapping[str, Array], collective: bool) -> Call:
        """Return the call that reads the piece."""
        return arrays[self.spec.name].reader(self.box, self.memory, collective)

    def why_short(self, arrays: Mapping[str, Array]) -> str:
        """Say what keeps the piece from being written whole, empty where that is not known."""
        return arrays[self.spec.name].why_short(self.box, self.memory)


def batches(
    comm: MPI.Intracomm, accesses: Sequence[Access], memory: int
) -> Iterator[Sequence[Access]]:
    """Cut the accesses into batches that fit in memory, the same number of them on all ranks.

    In a collective transfer the n-th call of every rank must be in the same batch, so the ranks
    agree on the shortest batch that any of them can take; a single access always fits.
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
        agreed = least(comm, longest - done if at_end else fits)
        yield accesses[done : done + agreed]
        done += agreed


def pieces_of(
    comm: MPI.Intracomm,
    batch: Sequence[Access],
    buffer: Buffer,
    limit: int | None,
    collective: bool,
) -> list[Piece]:
    """Return the pieces of a batch, one for each call, in the order of the calls.

    An access that is longer than one call may move is split. On an array that all ranks write
    together all must make the same number of calls, so the ranks with less get empty pieces:
    collective transfers need it, and so do the views of independent MPI-IO, which are set
    collectively.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks; the function is collective for arrays that all ranks write together.
    batch : sequence of Access
        What this rank moves.
    buffer : array of uint8
        Memory of the batch, see `Room`.
    limit : int or None
        Most bytes that one call of the library moves.
    collective : bool
        Whether the transfer is collective.
    """
    found: list[Piece] = []
    done = 0
    for access in batch:
        boxes = _split(access, limit)
        together = collective or access.spec.owner is None
        if together and limit is not None and access.spec.nbytes > limit:
            most = largest(comm, len(boxes))
            boxes += [Box(access.box.start, (0,) * len(access.box.shape))] * (most - len(boxes))
        for box in boxes:
            nbytes = box.size * access.spec.itemsize
            memory = buffer[done : done + nbytes].view(access.spec.dtype).reshape(box.shape)
            found.append(Piece(access.spec, box, memory))
            done += nbytes
    return found


def _split(access: Access, limit: int | None) -> list[Box]:
    if limit is None or access.nbytes <= limit:
        return [access.box]
    return list(access.box.split(limit // access.spec.itemsize))


def amount(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Return the bytes and the calls of a batch; calls that move nothing do not count."""
    nbytes = sum(piece.memory.nbytes for piece in pieces)
    return nbytes, sum(1 for piece in pieces if piece.memory.size)
