"""The arrays of a case, declared once: how ranks cut them, and the calls that move the parts.

A workload returns `CaseArrays`. A plan, the checks, a footprint and a run ask nothing else about
its arrays, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Literal

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec, ByteOrder
from pffbench.case import Parameters, Writers
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import Cut, Reading, edges_inside, part_lengths
from pffbench.geometry.groups import FileGroups
from pffbench.geometry.maps import MapCut, OfMap
from pffbench.geometry.stretches import Stretches
from pffbench.workloads.specs import make_spec
from pffbench.workloads.transfers import Access

#: The boxes of an array that a rank moves, one a call, from its part of the array and its number.
#: Ranks that share an array make equally many calls, of which some are empty. The first call is
#: one of the longest.
Calls = Callable[[ArraySpec, Box, int], Iterable[Box]]
#: The shape of a chunk with ``chunks: rank_part``, from the shape of a part; None for no chunks.
Block = Callable[[Shape], Shape | None]


def at_once(spec: ArraySpec, part: Box, rank: int) -> Iterable[Box]:
    """Return one call for the part of a rank."""
    return (part,)


def one_part(part: Shape) -> Shape:
    """Return the part of a rank as a chunk."""
    return part


def array_name(index: int, owner: int | None) -> str:
    """Return the usual name of an array."""
    return f"array_{index:03d}{of_owner(owner)}"


def of_owner(owner: int | None) -> str:
    """Return the end of the name of an array that may have an owner."""
    return "" if owner is None else f"_rank_{owner:06d}"


class Volume(msgspec.Struct, frozen=True):
    """Number and bytes of arrays, over all ranks."""

    #: Number of arrays that are defined.
    arrays: int
    #: Bytes of array data that all ranks move, before compression.
    nbytes: int
    #: Upper bound of the bytes on disk, before compression: less than the arrays have where a
    #: decomposition map leaves gaps.
    disk_bytes: int


class Family(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Arrays that are alike: of one shape, cut in one way, and moved by the same calls.

    Without shared arrays the parts of ranks are arrays, or each array is dealt to a
    rank. A rank whose part is empty has no such array.
    """

    #: The case, with these arrays only.
    parameters: Parameters
    #: Number of ranks.
    ranks: int
    #: The part of each rank.
    cut: Cut
    #: Returns the name of an array, from its number in the family and the rank that owns it, or
    #: None; by default `array_name`.
    name: Callable[[int, int | None], str] = array_name
    #: Number of arrays.
    count: int = 1
    #: Number of the first of them among all arrays of the case.
    first: int = 0
    #: Number of ranks among which whole arrays are dealt, in equal shares of consecutive arrays.
    dealt_to: int | None = None
    #: Number of arrays that are dealt together: with those of other families, if it is larger than
    #: `count`.
    dealt: int = 0
    #: Number of time steps: an array gets a leading axis of this length, and each step is moved by
    #: calls of its own.
    steps: int | None = None
    #: The steps that are moved, in this order; all if not given.
    write_steps: Sequence[int] | None = None
    read_steps: Sequence[int] | None = None
    #: Rows, or time steps, appended along the first axis after the array has been written.
    growth: int = 0
    #: Shape of a chunk with ``chunks: rank_part``.
    block: Block = one_part
    #: Whether a chunk may be the part of a rank if parts have unequal lengths.
    chunk_per_part: bool = False
    #: Byte order in the store.
    byte_order: ByteOrder = "native"
    #: The calls that move a rank's part.
    write: Calls = at_once
    read: Calls = at_once
    #: What each rank reads of each array in place of what it wrote, one after the other.
    reading: tuple[Reading, ...] | None = None
    #: Returns the rank that wrote what a rank reads, if it is another one.
    author: Callable[[int], int] | None = None
    #: Returns how many elements of an array are on disk, if not all of them.
    elements_on_disk: Callable[[], int] | None = None
    #: Beginning of a message about these arrays; empty if the case has no others.
    label: str = ""

    # ---- what is stored

    @property
    def shared(self) -> bool:
        """Whether ranks share each array, those of a group if groups of ranks share files."""
        return self.dealt_to is None and self.parameters.shares_arrays

    @property
    def writers(self) -> Literal["all"] | Writers | None:
        """The ranks through which data are moved; None if each rank moves its own."""
        return self.parameters.writers if self.parameters.exchanges else None

    @property
    def irregular(self) -> bool:
        """Whether a decomposition map says which elements each rank has."""
        return isinstance(self.cut, MapCut)

    @cached_property
    def groups(self) -> FileGroups:
        """Which ranks share a file."""
        return self.parameters.groups(self.ranks)

    @property
    def whole(self) -> Box:
        """An array, without time steps."""
        return Box((0,) * len(self.cut.whole), self.cut.whole)

    @property
    def lengths(self) -> tuple[Shape, ...]:
        """For each axis the lengths of the parts; none of them is empty."""
        return part_lengths(self.cut.whole, self.cut.edges)

    @property
    def first_part(self) -> Shape:
        """Shape of the first part that is not empty: that of rank 0, unless its part is empty."""
        return tuple(axis[0] for axis in self.lengths)

    @cached_property
    def boxes(self) -> list[Box]:
        """The part of a shared array that each file has, but for empty ones."""
        found = (self._around(self.groups.group(index)) for index in range(self.groups.files))
        return [box for box in found if box.size]

    def _around(self, members: range) -> Box:
        return self.whole if len(members) == self.ranks else self.cut.around(members)

    def specs(self, rank: int, offset: int = 0) -> list[ArraySpec]:
        """Return the arrays of the store that a rank opens, in the order of their definition.

        Parameters
        ----------
        rank : int
            The rank.
        offset : int
            Bytes of the arrays before them.
        """
        found = []
        for index, owner, model in self._placed(self.groups.members(rank)):
            name = self.name(index, owner)
            found.append(replace(model, name=name, number=self.first + index, offset=offset))
            offset += self.stored_bytes(model)
        return found

    def stored_bytes(self, spec: ArraySpec) -> int:
        """Return the bytes of an array with the rows that it gets later."""
        return spec.nbytes // spec.shape[0] * (spec.shape[0] + self.growth)

    def _placed(self, members: range) -> Iterator[tuple[int, int | None, ArraySpec]]:
        """Yield the number, the owner and the storage of each array in the file of some ranks."""
        if self.dealt_to is not None:
            model = self.spec(self.whole, 0)
            for owner in range(members.start, min(members.stop, self.dealt_to)):
                owned = replace(model, owner=self.groups.owner(owner))
                yield from ((index, owner, owned) for index in self._share(self.dealt_to, owner))
            return
        parts: Iterable[tuple[int | None, Box]]
        if self.shared:
            parts = [(None, self._around(members))]
        else:
            parts = ((rank, self.cut.part(rank)) for rank in members)
        models = [(owner, self.spec(part, owner)) for owner, part in parts if part.size]
        for index in range(self.count):
            yield from ((index, owner, model) for owner, model in models)

    def _share(self, ranks: int, owner: int) -> range:
        """Return the arrays that an owner is dealt, of those that are dealt together."""
        first = self.first if self.dealt else 0
        share = FileGroups(ranks, self.dealt or self.count).group(owner)
        return range(max(0, share.start - first), min(self.count, share.stop - first))

    def spec(self, box: Box, owner: int | None) -> ArraySpec:
        """Return the first array, or what a file or an owner has of it.

        Parameters
        ----------
        box : Box
            The part of the array that is stored.
        owner : int, optional
            The rank that owns it; None if ranks share it.
        """
        lead: Shape = () if self.steps is None else (self.steps,)
        ones = tuple(1 for _ in lead)
        first, *inner = (*lead, *self.cut.whole)
        block = self.block(self.first_part if owner is None else box.shape)
        parts: tuple[int | Shape, ...] | None = None
        if self.chunk_per_part and owner is None:
            parts = (*ones, *part_lengths(box.shape, edges_inside(self.cut.edges, box)))
        made = make_spec(
            self.parameters,
            self.name(0, owner),
            (*lead, *box.shape),
            number=self.first,
            offset=0,
            owner=None if owner is None else self.groups.owner(owner),
            block=None if block is None else (*ones, *block),
            origin=(*(0 for _ in lead), *box.start),
            logical_shape=(first + self.growth, *inner),
            parts=parts,
        )
        if self.growth or self.byte_order != "native":
            return replace(made, growth=self.growth, byte_order=self.byte_order)
        return made

    @cached_property
    def kinds(self) -> list[ArraySpec]:
        """An array of each shape that is stored in any file, that of rank 0 first."""
        if self.shared:
            return [self.spec(box, None) for box in {b.shape: b for b in self.boxes}.values()]
        shapes: Iterable[Shape] = [self.cut.whole]
        if self.dealt_to is None:
            shapes = product(*(dict.fromkeys(axis) for axis in self.lengths))
        return [self.spec(Box((0,) * len(shape), shape), 0) for shape in shapes]

    @cached_property
    def volume(self) -> Volume:
        """Number and bytes of the arrays."""
        each = self.count * self.parameters.itemsize
        lead: Shape = () if self.steps is None else (self.steps,)
        first, *inner = (*lead, *self.cut.whole)
        steps = first + self.growth if lead else 1
        whole = prod((first + self.growth, *inner))
        stored = 1
        if self.shared:
            stored = len(self.boxes)
        elif self.dealt_to is None:
            stored = prod(map(len, self.lengths))
        moved = whole if self.writers is not None or not self.irregular else steps * self.cut.size
        on_disk = moved if self.elements_on_disk is None else steps * self.elements_on_disk()
        return Volume(self.count * stored, each * moved, each * on_disk)

    @property
    def writer_edges(self) -> tuple[Shape, ...]:
        """Where parts of ranks meet in arrays that they share, for each axis of the array.

        Chunks that reach over such a place have several writers.
        """
        if not self.shared:
            return ()
        edges = self.cut.edges
        one_writer = isinstance(self.writers, Writers) and self.writers.count == 1
        if self.parameters.owns_chunks or one_writer:
            edges = ((),) * len(edges)
        elif len(self.boxes) > 1:
            inside = (edges_inside(edges, box) for box in self.boxes)
            edges = tuple(tuple(sorted(set().union(*axis))) for axis in zip(*inside, strict=True))
        return edges if self.steps is None else ((), *edges)

    # ---- what is moved

    def accesses(
        self, rank: int, specs: Sequence[ArraySpec], *, reads: bool = False
    ) -> Iterator[Access]:
        """Yield the calls of a rank on arrays that it has open.

        A rank makes a call for its own arrays and for shared ones, and in collective transfers for
        those of the others, of which it moves nothing.

        Parameters
        ----------
        rank : int
            The rank.
        specs : sequence of ArraySpec
            Its `specs`.
        reads : bool
            Whether it reads.
        """
        if reads and self.author is not None:
            rank = self.author(rank)
        if not (reads and self.read_by_all):
            p, me = self.parameters, self.groups.owner(rank)
            together = (p.transfer_of_reads if reads else p.transfer) == "collective"
            specs = [spec for spec in specs if together or spec.owner in (me, None)]
        for spec in specs:
            for box in self.moved(rank, spec, reads=reads):
                yield from (Access(spec, one) for one in self.by_step(box, reads=reads))

    def moved(self, rank: int, spec: ArraySpec, *, reads: bool = False) -> Iterator[Box]:
        """Yield the boxes that a rank moves of a stored array, one a call, without time steps."""
        calls = self.read if reads else self.write
        for part in self._parts(spec, rank, reads=reads):
            yield from calls(spec, part, rank)

    def _parts(self, spec: ArraySpec, rank: int, *, reads: bool) -> Iterator[Box]:
        """Yield what a rank moves of a stored array, without steps."""
        axes = len(self.cut.whole)
        stored = Box(spec.origin[-axes:], spec.shape[-axes:])
        if reads and self.reading is not None:
            readers = self._readers(spec, rank)
            number, ranks = rank - readers.start, len(readers)
            for one in self.reading:
                read = one.part(stored, number, ranks) if readers else stored.nothing
                yield self._within(spec, read)
        elif spec.owner is None:
            yield self._within(spec, self.cut.part(rank))
        else:
            mine = spec.owner == self.groups.owner(rank)
            yield self._within(spec, stored if mine else stored.nothing)

    def _readers(self, spec: ArraySpec, rank: int) -> range:
        """Return the ranks that read a stored array, if a rank is one of them."""
        if self.read_by_all:
            return range(self.ranks)
        if spec.owner is None:
            return self.groups.members(rank)
        return range(rank, rank + (spec.owner == self.groups.owner(rank)))

    def _within(self, spec: ArraySpec, part: Box) -> Box:
        """Return a part of the array as a part of what a file has of it."""
        origin = spec.origin[-len(part.start) :]
        if not any(origin):
            return part
        start = tuple(max(0, a - b) for a, b in zip(part.start, origin, strict=True))
        return Box(start, part.shape)

    def by_step(self, box: Box, *, reads: bool = False) -> Iterator[Box]:
        """Yield a box, or the same elements of each time step that is moved."""
        if self.steps is None:
            yield box
            return
        some, lead = self.read_steps if reads else self.write_steps, 1 if box.size else 0
        for step in range(self.steps) if some is None else some:
            if isinstance(box, Stretches):
                yield box.in_step(step, self.steps + self.growth)
            else:
                stride = (1, *box.stride) if box.stride else ()
                yield Box((step, *box.start), (lead, *box.shape), stride)

    @cached_property
    def largest_call(self) -> int:
        """Bytes of the longest call of any rank that writes."""
        part = self.cut.largest if self.dealt_to is None else self.whole
        stored = (self.whole, None) if self.shared else (Box((0,) * len(part.start), part.shape), 0)
        first = next(iter(self.write(self.spec(*stored), part, 0)), None)
        return 0 if first is None else first.size * self.parameters.itemsize

    @property
    def held(self) -> int:
        """Bytes that a rank holds at a time at least, however little memory it has."""
        return self.volume.nbytes if self.read_by_all else self.largest_call

    @property
    def reads_elsewhere(self) -> bool:
        """Whether ranks read what other ranks wrote."""
        together = self.shared or self.read_by_all
        return self.author is not None or (self.reading is not None and together)

    @property
    def read_by_all(self) -> bool:
        """Whether every rank reads all of each array, although one rank owns it."""
        return self.dealt_to is not None and self.reading is not None


class CaseArrays(msgspec.Struct, frozen=True, dict=True):
    """All arrays of a case."""

    #: The arrays, in the order in which they are defined and written.
    families: tuple[Family, ...]
    #: Number and bytes, if the arrays as declared do not tell them.
    totals: Volume | None = None
    #: Whether each array is defined after the one before it was written.
    in_turns: bool = False
    #: Whether a second store is made from the written one, so that both are on disk.
    second_store: bool = False

    def specs(self, rank: int) -> list[ArraySpec]:
        """Return the arrays of the store that a rank opens, in the order of their definition.

        In a shared file these are the arrays of all ranks; in a file of one rank its own.
        """
        return [spec for _, specs in self.by_family(rank) for spec in specs]

    def writes(self, rank: int) -> list[Access]:
        """Return the calls by which a rank writes."""
        return [a for family, some in self.by_family(rank) for a in family.accesses(rank, some)]

    def reads(self, rank: int) -> list[Access]:
        """Return the calls by which a rank reads."""
        specs = self.by_family(rank)
        return [a for family, some in specs for a in family.accesses(rank, some, reads=True)]

    def by_family(self, rank: int) -> Iterator[tuple[Family, list[ArraySpec]]]:
        """Yield each family with its arrays in the store that a rank opens."""
        offset = 0
        for family in self.families:
            yield family, (specs := family.specs(rank, offset))
            offset += sum(map(family.stored_bytes, specs))

    @cached_property
    def volume(self) -> Volume:
        """Number and bytes of all arrays."""
        each = [volume for _, volume in self.counted]
        return Volume(
            sum(v.arrays for v in each),
            sum(v.nbytes for v in each),
            sum(v.disk_bytes for v in each),
        )

    @property
    def counted(self) -> list[tuple[Family, Volume]]:
        """The families with their number and bytes; the first one where only totals are known."""
        if self.totals is not None:
            return [(self.families[0], self.totals)]
        return [(family, family.volume) for family in self.families]

    @property
    def kinds(self) -> list[ArraySpec]:
        """An array of each kind, that of rank 0 first."""
        return [kind for family in self.families for kind in family.kinds]

    @property
    def held(self) -> int:
        """Bytes that a rank holds at a time at least, however little memory it has."""
        return max(family.held for family in self.families)

    @property
    def reads_elsewhere(self) -> bool:
        """Whether ranks read what other ranks wrote."""
        return any(family.reads_elsewhere for family in self.families)

    @property
    def maps(self) -> str | None:
        """Description of the decomposition maps that cut arrays; None without any."""
        found = (
            family.cut.describe(family.parameters.itemsize)
            for family in self.families
            if isinstance(family.cut, OfMap)
        )
        return "; ".join(dict.fromkeys(found)) or None

    @cached_property
    def blocks(self) -> list[int]:
        """Sizes in bytes of the blocks of memory that data move through: a call's, and chunks."""
        chunks = [(kind.chunks, kind.itemsize) for kind in self.kinds]
        return [self.held, *(prod(shape) * n for shape, n in chunks if isinstance(shape, tuple))]
