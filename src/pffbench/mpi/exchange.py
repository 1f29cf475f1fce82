"""Exchange of array data between all ranks and the writer ranks, without packing.

It is one ``MPI_Alltoallw`` whose datatypes are the common boxes of a rank and a writer, or common
runs where a rank has stretches: MPI takes the elements from where they are and puts them where they
belong. Packing them with NumPy for ``MPI_Alltoallv`` took 1.6 times as long
and twice the memory.

A writer rank takes part twice: as a rank, with its own data, and as a writer, with the boxes that
it moves. So there are two memories, and two sides of the exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pffbench.geometry.box import Box
from pffbench.geometry.stretches import Integers, Stretches, common_runs

if TYPE_CHECKING:
    from mpi4py import MPI

Buffer = np.ndarray[Any, Any]


class Piece(NamedTuple):
    """A box that a writer moves."""

    #: The box.
    box: Box
    #: The ranks whose data are in it, if others may have some of its elements too.
    ranks: Collection[int] | None = None

    def is_of(self, rank: int) -> bool:
        """Whether data of a rank are in it."""
        return self.ranks is None or rank in self.ranks


class Exchange:
    """The exchange of one call of each rank with the writers.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks of a file.
    parts : sequence of Box
        The box, or the stretches, of each rank.
    placed : mapping of int to list of Piece
        What each writer moves, by rank. If any part is stretches, these are boxes.
    itemsize : int
        Bytes of an element.

    Attributes
    ----------
    boxes : list of Box
        What this rank moves as a writer; empty if it is none.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        parts: Sequence[Box],
        placed: Mapping[int, Sequence[Piece]],
        itemsize: int,
    ) -> None:
        from mpi4py import MPI

        me, pieces = comm.rank, placed.get(comm.rank, ())
        self.boxes = [piece.box for piece in pieces]
        self._alltoallw = comm.Alltoallw
        self._element = MPI.BYTE.Create_contiguous(itemsize)
        self._types: list[MPI.Datatype] = [self._element]
        self._as_rank = self._side(
            [
                [(parts[me], piece.box, 0) for piece in placed.get(rank, ()) if piece.is_of(me)]
                for rank in range(comm.size)
            ]
        )
        offsets = np.cumsum([0, *(box.size * itemsize for box in self.boxes)]).tolist()
        self._as_writer = self._side(
            [
                [
                    (piece.box, part, offset)
                    for piece, offset in zip(pieces, offsets, strict=False)
                    if piece.is_of(rank)
                ]
                for rank, part in enumerate(parts)
            ]
        )

    def _side(self, peers: Sequence[Sequence[tuple[Box, Box, int]]]) -> tuple[Any, ...]:
        """Return the counts, displacements and datatypes of one side of the exchange.

        Parameters
        ----------
        peers : sequence of sequence of (Box, Box, int)
            For each rank of the communicator: boxes in this rank's memory, boxes of the other side,
            and byte offsets of the former in the memory.
        """
        from mpi4py import MPI

        types = [self._datatype(boxes) for boxes in peers]
        counts = [int(datatype is not None) for datatype in types]
        return (counts, [0] * len(counts)), [datatype or MPI.BYTE for datatype in types]

    def _datatype(self, boxes: Iterable[tuple[Box, Box, int]]) -> MPI.Datatype | None:
        """Return the datatype of what boxes in memory, at byte offsets, share with other boxes.

        None if they share nothing.
        """
        from mpi4py import MPI

        found, offsets = [], []
        for held, other, offset in boxes:
            common = self._common(held, other)
            if common is not None:
                found.append(common)
                offsets.append(offset)
        if not found:
            return None
        whole = MPI.Datatype.Create_struct([1] * len(found), offsets, found).Commit()
        self._types += [*found, whole]
        return whole

    def _common(self, held: Box, other: Box) -> MPI.Datatype | None:
        """Return the datatype of the elements of a box in memory that another box has too.

        One of the two may be stretches, never both. None if they share nothing.
        """
        if isinstance(held, Stretches):
            runs = common_runs(held, other)
            return self._runs(runs.packed, runs.lengths)
        if isinstance(other, Stretches):
            runs = common_runs(other, held)
            return self._runs(runs.inside, runs.lengths)
        common = held.common(other)
        if not common.size:
            return None
        each = zip(common.start, held.start, held.steps, strict=True)
        start = [(a - b) // step for a, b, step in each]
        return self._element.Create_subarray(held.shape, common.shape, start)

    def _runs(self, begins: Integers, lengths: Integers) -> MPI.Datatype | None:
        """Return the datatype of runs of elements; None if there are none."""
        if not lengths.size:
            return None
        places = begins * self._element.Get_size()
        return self._element.Create_hindexed(lengths.tolist(), places.tolist())

    def to_writers(self, mine: Buffer, as_writer: Buffer) -> Callable[[], None]:
        """Return the call that sends each rank's part to the writers, which receive their boxes.

        Parameters
        ----------
        mine : array of uint8
            Memory of this rank's part.
        as_writer : array of uint8
            Memory of its `boxes`, one after the other.
        """
        return partial(self._alltoallw, [mine, *self._as_rank], [as_writer, *self._as_writer])

    def from_writers(self, mine: Buffer, as_writer: Buffer) -> Callable[[], None]:
        """Return the call that sends the writers' boxes to the ranks, each its part.

        The parameters are those of `to_writers`.
        """
        return partial(self._alltoallw, [as_writer, *self._as_writer], [mine, *self._as_rank])

    def free(self) -> None:
        """Free the datatypes."""
        for datatype in self._types:
            datatype.Free()
