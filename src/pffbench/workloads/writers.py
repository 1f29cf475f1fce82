"""Writer ranks: which ranks move data to and from files, and which parts of an array each moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Literal

import msgspec

from pffbench.backends.base import Backend
from pffbench.case import FileCount, Parameters, Rearranger, Writers
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import Grid
from pffbench.geometry.stretches import Stretches, boxes_of_run
from pffbench.mpi.exchange import Piece
from pffbench.mpi.topology import Topology
from pffbench.units import Size
from pffbench.workloads.base import Impossible

if TYPE_CHECKING:
    from pffbench.workloads.arrays import CaseArrays, Family


class WriterRanks(msgspec.Struct, frozen=True):
    """The writer ranks of a job."""

    #: All ranks, those of a node next to each other.
    order: tuple[int, ...]
    #: The positions of the writers in `order`, increasing; the first is 0.
    positions: tuple[int, ...]

    @classmethod
    def of(cls, writers: Literal["all"] | Writers, topology: Topology) -> WriterRanks:
        """Choose the writers among the ranks of a job."""
        size, nodes = topology.size, topology.nodes
        # Nodes in the order of their first ranks, so that the first rank is a writer.
        order = tuple(sorted(range(size), key=lambda rank: (nodes.index(nodes[rank]), rank)))
        if isinstance(writers, str):
            return cls(order, tuple(range(size)))
        if writers.count is not None:
            return cls(order, _spread(0, size, writers.count))
        assert writers.per_node is not None
        positions: list[int] = []
        first = 0
        for ranks in Counter(nodes).values():
            positions += _spread(first, ranks, min(writers.per_node, ranks))
            first += ranks
        return cls(order, tuple(positions))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The writer ranks; the first is rank 0."""
        return tuple(self.order[position] for position in self.positions)

    def gathered(self) -> Iterator[Sequence[int]]:
        """Yield for each writer the ranks from its own to the next writer."""
        ends = (*self.positions[1:], len(self.order))
        for position, end in zip(self.positions, ends, strict=True):
            yield self.order[position:end]


def _spread(first: int, length: int, count: int) -> tuple[int, ...]:
    return tuple(first + i * length // count for i in range(count))


def parts_of_writers(
    rearranger: Rearranger, writers: WriterRanks, parts: Sequence[Box], shape: Shape, unit: Shape
) -> dict[int, list[Box]]:
    """Return the boxes that each writer moves; together they are the array, without overlaps.

    Parameters
    ----------
    rearranger : {"gather", "box", "chunk_owner"}
        How the array is divided among the writers.
    writers : WriterRanks
        The writers.
    parts : sequence of Box
        The part of each rank.
    shape : tuple of int
        Shape of the array.
    unit : tuple of int
        Shape of a chunk, or of a shard.
    """
    count = len(writers.positions)
    found: Sequence[Sequence[Box]]
    if rearranger == "gather":
        found = [[parts[rank] for rank in ranks] for ranks in writers.gathered()]
    elif rearranger == "box":
        found = [[slab] for slab in _slabs(shape, count)]
    else:
        found = [list(_of_owner(shape, unit, number, count)) for number in range(count)]
    return {
        rank: [box for box in boxes if box.size]
        for rank, boxes in zip(writers.ranks, found, strict=True)
    }


def pieces_of_writers(
    rearranger: Rearranger, writers: WriterRanks, boxes: Sequence[Box], shape: Shape, unit: Shape
) -> dict[int, list[Piece]]:
    """Return what each writer moves of one call of all ranks.

    With ``gather`` it is the boxes of the writer's own ranks. If ranks have stretches, it is the
    writer's boxes of the whole array, or of the lattice that has the stretches. If boxes fill a
    larger one, the writers divide that. Any other boxes are cut, each by itself, into what each
    writer moves.

    Parameters
    ----------
    rearranger, writers, shape, unit
        As in `parts_of_writers`.
    boxes : sequence of Box
        The box, or the stretches, of each rank; it may be empty. No stretches with ``gather``.
    """
    if rearranger == "gather":
        return {
            group[0]: [Piece(boxes[rank], (rank,)) for rank in group if boxes[rank].size]
            for group in writers.gathered()
        }
    some = [box for box in boxes if box.size]
    areas = parts_of_writers(rearranger, writers, boxes, shape, unit)
    if stretches := [box for box in some if isinstance(box, Stretches)]:
        lattice = stretches[0].lattice  # elements of no rank are moved too
        return {
            rank: [Piece(box) for area in found if (box := area.common(lattice)).size]
            for rank, found in areas.items()
        }
    around = Box.around(some) if some else None
    if around is None or around.size != sum(box.size for box in some):
        wanted = {box: tuple(r for r, other in enumerate(boxes) if other == box) for box in some}
    elif rearranger == "box":  # equal slabs of the data
        slabs = zip(writers.ranks, _slabs(around.shape, len(writers.ranks)), strict=True)
        return {rank: [Piece(around.inside(slab))] if slab.size else [] for rank, slab in slabs}
    else:
        wanted = {around: tuple(range(len(boxes)))}
    return {
        rank: [
            Piece(common, ranks)
            for area in found
            for box, ranks in wanted.items()
            if (common := box.common(area)).size
        ]
        for rank, found in areas.items()
    }


def _slabs(shape: Shape, count: int) -> list[Box]:
    """Cut an array into equal slabs along its first axis that is longer than 1."""
    axis = next((a for a, n in enumerate(shape) if n > 1), 0)
    grid = tuple(count if a == axis else 1 for a in range(len(shape)))
    return [Grid(shape, grid, "balanced").part(number) for number in range(count)]


def _of_owner(shape: Shape, unit: Shape, number: int, count: int) -> Iterator[Box]:
    """Yield the boxes of one owner's chunks: an equal share, consecutive in C order."""
    grid = tuple(-(-n // length) for n, length in zip(shape, unit, strict=True))
    chunks = prod(grid)
    for box in boxes_of_run(grid, number * chunks // count, (number + 1) * chunks // count):
        start = tuple(a * length for a, length in zip(box.start, unit, strict=True))
        stop = tuple(min(n, b * length) for n, b, length in zip(shape, box.stop, unit, strict=True))
        yield Box(start, tuple(b - a for a, b in zip(start, stop, strict=True)))


def memory_of_writer(family: Family) -> tuple[int, int]:
    """Return the bytes that a writer rank holds, and more bytes for each rank of its node."""
    writers, each = family.writers, family.parameters.itemsize
    if not isinstance(writers, Writers):
        return 0, 0
    part, whole = family.largest_call, prod(family.cut.whole) * each
    if writers.count is not None:
        return part + -(-whole // (writers.count * family.groups.files)), 0
    return part, -(-whole // (family.ranks * (writers.per_node or 1)))


def refuse_writers(p: Parameters, arrays: CaseArrays, backend: type[Backend]) -> str | None:
    """Return why the arrays of a case cannot go through writers, or None."""
    if p.exchanges and p.cache == "shifted":
        return "with rearranger the writers read what they wrote; cache: shifted is not possible"
    found = ((family.label, _refuse(family, backend)) for family in arrays.families)
    return next((type(why)(f"{label}{why}") for label, why in found if why), None)


def _refuse(family: Family, backend: type[Backend]) -> str | None:
    p, fewest = family.parameters, family.ranks // family.groups.files
    if isinstance(p.writers, Writers):
        if reason := p.writers.unclear():
            return reason
        if reason := p.writers.beyond(fewest):
            return Impossible(reason)
    if not p.exchanges:
        more = "they need rearranger: gather, box or chunk_owner"
        return None if p.writers == "all" else f"not all ranks are writers; {more}"
    if not family.shared:
        reason = f"rearranger: {p.rearranger} needs arrays that ranks share (arrays: shared)"
        return Impossible(reason) if isinstance(p.files, FileCount) else reason
    if p.rearranger == "box" and backend.file_per == "chunk":
        return Impossible(
            f"rearranger: box cuts chunks between writers, which loses data with backend "
            f"{backend.name}; possible: gather, chunk_owner"
        )
    if p.owns_chunks and family.kinds[0].chunks in ("contiguous", "library"):
        return Impossible(
            "rearranger: chunk_owner needs a chunk shape (chunks: a list, or rank_part)"
        )
    return None


def refuse_nodes(family: Family, topology: Topology, memory: int) -> str | None:
    """Return why the nodes of a job are too few or too small for the writers, or None.

    Parameters
    ----------
    family : Family
        Arrays that go through writers.
    topology : Topology
        The nodes.
    memory : int
        Bytes that each rank may take.
    """
    chosen = family.writers or "all"
    for index in range(family.groups.files):
        members = family.groups.group(index)
        of_file = topology.part(members)
        fewest = min(of_file.ranks_per_node)
        if isinstance(chosen, Writers) and (chosen.per_node or 0) > fewest:
            return f"writers.per_node is {chosen.per_node}, but a node has {fewest} ranks"
        parts = [family.cut.part(rank) for rank in members]
        writers = WriterRanks.of(chosen, of_file)
        most = largest_share(writers, parts, of_file.nodes) * family.parameters.itemsize
        if most > memory:
            return (
                f"the ranks and writers of a node need {Size(most)} of memory a rank for one array "
                f"or step, where {Size(memory)} are available; name more writers, or use more nodes"
            )
    return None


def largest_share(writers: WriterRanks, parts: Sequence[Box], nodes: Sequence[int]) -> int:
    """Return the most elements for each rank of a node: its ranks' parts and its writers' boxes.

    Each writer is taken to hold an equal share of the array.
    """
    total = sum(part.size for part in parts)
    held = Counter[int]()
    for rank, part in enumerate(parts):
        held[nodes[rank]] += part.size
    for rank in writers.ranks:
        held[nodes[rank]] += -(-total // len(writers.positions))
    ranks = Counter(nodes)
    return max(-(-held[node] // ranks[node]) for node in ranks)
