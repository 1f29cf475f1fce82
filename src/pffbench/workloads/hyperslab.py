"""Workload `hyperslab`: global arrays cut over the ranks, with time steps if wanted."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import count, product
from math import prod
from typing import Annotated, ClassVar, Literal, cast

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Cuts
from pffbench.case import ArrayShape, ChunkShape, Count, Natural, Parameters
from pffbench.data.base import DType
from pffbench.parallel.decomposition import (
    Box,
    Decomposition,
    Distribution,
    GlobalArray,
    Shape,
    part_lengths,
    process_grid,
)
from pffbench.parallel.stretches import Stretches
from pffbench.parallel.topology import Topology
from pffbench.units import Size
from pffbench.workloads.base import (
    CaseTotals,
    Impossible,
    Workload,
    illegal_chunks,
    make_spec,
    own_chunks,
    taking_part,
)
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.map_rules import (
    by_map,
    check_map,
    elements_in_files,
    refuse_map,
    stretches_told,
)
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import write_read_cycle
from pffbench.workloads.writers import (
    Rearrange,
    WriterRanks,
    Writers,
    largest_share,
)

Start = Annotated[tuple[Natural, ...], msgspec.Meta(min_length=1, max_length=4)]


#: Names of arrays that every format allows, and every language that reads them.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


class ListedArray(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Arrays of one kind among several in a file; what is left out is as the case has it.

    Parameters
    ----------
    name : str
        Name in the file; with a count the arrays are ``name_000``, ``name_001`` and so on.
    shape, shape_per_rank, dtype, decomposition, cut_unit, chunks : optional
        As in `HyperslabParameters`.
    count : int
        Number of such arrays.
    """

    name: str
    shape: ArrayShape | None = None
    shape_per_rank: ArrayShape | None = None
    dtype: DType | None = None
    decomposition: Decomposition | MapFile | None = None
    cut_unit: ArrayShape | None = None
    chunks: Literal["auto", "block", "contiguous"] | ChunkShape | None = None
    count: Count = 1

    @property
    def names(self) -> list[str]:
        """Names of its arrays."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}_{number:03d}" for number in range(self.count)]

    def within(self, p: HyperslabParameters) -> HyperslabParameters:
        """Return the parameters of a case that has these arrays only."""
        given = {key: value for key in _OWN if (value := getattr(self, key)) is not None}
        return replace(p, arrays=self.count, **given)


#: Keys of an array that a case has too.
_OWN = ("shape", "shape_per_rank", "dtype", "decomposition", "cut_unit", "chunks")


class HyperslabParameters(Parameters, frozen=True, kw_only=True, tag="hyperslab"):
    """Parameters of the workload `hyperslab`.

    Parameters
    ----------
    shape : list of int, optional
        Shape of each global array (strong scaling). Default with ``source: file``: the shape of the
        variable. A decomposition map has its own shape.
    shape_per_rank : list of int, optional
        Shape of each rank's part (weak scaling). One of the two is needed.
    arrays : int, or list of {name, count, shape, shape_per_rank, dtype, decomposition, …}
        Number of global arrays. Or a list of arrays that differ: each has a name, one of the two
        shapes, optionally a `count`, and the keys in which it differs from the case: `dtype`,
        `decomposition`, `cut_unit`, `chunks`. They are written in this order.
    steps : int
        Number of time steps. An array gets a leading axis of this length and is written and
        read step by step. Without steps there is no such axis.
    decomposition : {"slab", "pencil", "block"}, or {"file": str}
        Cut along the first axis, the first two, or all. Or a map of the stretches of the flattened
        array that each process has: ``{file: PATH, holes: refuse, overlaps: refuse}``. ``allow``
        accepts elements that no process has, or that several have (layout ``shared`` only).
    distribution : {"block", "balanced"}
        Cut of an axis of n elements that does not divide evenly over p ranks. ``block``: each rank
        has ceil(n / p) elements, and the last ones fewer or none, so that chunks can be aligned.
        ``balanced``: the parts differ by one element at most.
    cut_unit : list of int, optional
        Ranks hold whole multiples of this shape, and the remainder at the end of an axis; they then
        differ by units in place of elements. With the shape of the chunks, or of the shards, no
        chunk has data of two ranks.
    read_decomposition : {"slab", "pencil", "block"}, optional
        Another decomposition for reading (layout ``shared`` only).
    read_start, read_shape : list of int, optional
        The part of each array that is read (layout ``shared`` only, default: all of it).
    writers : "all", or {"per_node": int}, or {"count": int}
        With `rearrange`: the ranks that open, write and read the file: their number on each node,
        or in all.
    rearrange : {"none", "gather", "box", "chunk_owner"}
        Destination of each rank's data before they are written, and origin after they are read
        (layout ``shared`` only). ``none``: each rank writes and reads its own. ``gather``: the
        writer of its group of ranks, which moves each rank's part by a separate call. ``box``:
        writers that have equal slabs of the array. ``chunk_owner``: writers that have whole chunks
        or shards.
    """

    shape: ArrayShape | None = None
    shape_per_rank: ArrayShape | None = None
    arrays: Count | Annotated[tuple[ListedArray, ...], msgspec.Meta(min_length=1)] = 1
    steps: Count | None = None
    decomposition: Decomposition | MapFile = "slab"
    distribution: Distribution = "block"
    cut_unit: ArrayShape | None = None
    read_decomposition: Decomposition | None = None
    read_start: Start | None = None
    read_shape: ArrayShape | None = None
    writers: Literal["all"] | Writers = "all"
    rearrange: Rearrange = "none"

    ways: ClassVar[frozenset[str]] = Parameters.ways | {"writers", "rearrange"}

    @property
    def irregular(self) -> bool:
        return any(isinstance(one.decomposition, MapFile) for _, one in self.each)

    @property
    def each(self) -> tuple[tuple[str, HyperslabParameters], ...]:
        if isinstance(self.arrays, int):
            return (("", self),)
        return tuple(
            (f"arrays[{n}] ({one.name}): ", one.within(self)) for n, one in enumerate(self.arrays)
        )

    @property
    def names(self) -> list[list[str]]:
        """Names of the global arrays, of each kind of `each`."""
        if isinstance(self.arrays, int):
            return [[f"array_{number:03d}" for number in range(self.arrays)]]
        return [one.names for one in self.arrays]


class Hyperslab(Workload):
    """Every rank writes and reads its part of global arrays.

    With the layouts ``own`` and ``file_per_process`` the parts are arrays of their own, so the
    same bytes can be compared in all layouts. A rank whose part is empty has no such array.
    """

    name = "hyperslab"
    summary = "global 1-D to 4-D arrays cut over ranks in slabs, pencils or blocks"
    parameters_type = HyperslabParameters
    reads_once = True
    groups_ranks = True

    def arrays(self, parameters: HyperslabParameters, ranks: int, rank: int) -> list[ArraySpec]:
        return [spec for _, specs in self._specs(parameters, ranks, rank) for spec in specs]

    def _specs(
        self, parameters: HyperslabParameters, ranks: int, rank: int
    ) -> Iterator[tuple[HyperslabParameters, list[ArraySpec]]]:
        """Yield the parameters and the arrays of each kind, in the order of their definition."""
        numbers, offset = count(), 0
        for (_, p), names in zip(parameters.each, parameters.names, strict=True):
            found: list[ArraySpec] = []
            for name, number in zip(names, numbers, strict=False):
                for owner, part in self._parts(p, ranks, rank):
                    spec = self._spec(p, ranks, (name, number), owner, part, offset)
                    found.append(spec)
                    offset += spec.nbytes
            yield p, found

    def _parts(
        self, p: HyperslabParameters, ranks: int, rank: int
    ) -> Iterator[tuple[int | None, Box]]:
        """Yield the parts of a global array that the store has as arrays, each with its owner."""
        members = p.groups(ranks).members(rank)
        if p.file_layout == "shared":
            if (box := self._around(p, ranks, members)).size:
                yield None, box
            return
        for owner in members:
            part = self._part(p, ranks, owner)
            if part.size:
                yield owner, part

    def _around(self, p: HyperslabParameters, ranks: int, members: range) -> Box:
        """Return the part of a global array that is in the file that some ranks share."""
        if len(members) == ranks:
            return _whole(global_shape(p, ranks))
        return self._cut(p, ranks).around(members)

    def _boxes(self, p: HyperslabParameters, ranks: int) -> Iterator[Box]:
        """Yield the parts of a global array that are in one file each, but for empty ones."""
        groups = p.groups(ranks)
        boxes = (self._around(p, ranks, groups.group(i)) for i in range(groups.files))
        return (box for box in boxes if box.size)

    def _part(self, p: HyperslabParameters, ranks: int, rank: int) -> Box:
        if isinstance(p.decomposition, MapFile):
            return p.decomposition.map.part(ranks, rank)
        return self._cut(p, ranks).part(rank)

    def _cut(self, p: HyperslabParameters, ranks: int) -> GlobalArray:
        """Return a global array as it is cut over the ranks, which is not by a map."""
        assert not isinstance(p.decomposition, MapFile)
        shape = global_shape(p, ranks)
        grid = process_grid(ranks, len(shape), p.decomposition)
        return GlobalArray(shape, grid, p.distribution, p.cut_unit)

    def _spec(
        self,
        p: HyperslabParameters,
        ranks: int,
        called: tuple[str, int],
        owner: int | None,
        part: Box,
        offset: int,
    ) -> ArraySpec:
        p = by_map(p)
        block = self._first_part(p, ranks) if owner is None else part.shape
        steps = () if p.steps is None else (p.steps,)
        suffix = "" if owner is None else f"_rank_{owner:06d}"
        name, number = called
        return make_spec(
            p,
            f"{name}{suffix}",
            (*steps, *part.shape),
            number=number,
            offset=offset,
            owner=None if owner is None else p.groups(ranks).owner(owner),
            block=(*(1 for _ in steps), *block),
            origin=(*(0 for _ in steps), *part.start),
            logical_shape=(*steps, *global_shape(p, ranks)),
            parts=None
            if owner is not None
            else (*(1 for _ in steps), *self._lengths(p, ranks, part)),
        )

    def writes(self, parameters: HyperslabParameters, ranks: int, rank: int) -> list[Access]:
        return self._accesses(parameters, ranks, rank, self._part)

    def reads(self, parameters: HyperslabParameters, ranks: int, rank: int) -> list[Access]:
        return self._accesses(parameters, ranks, rank, self._read_part)

    def _accesses(
        self,
        parameters: HyperslabParameters,
        ranks: int,
        rank: int,
        part_of: Callable[[HyperslabParameters, int, int], Box],
    ) -> list[Access]:
        found: list[Access] = []
        for p, specs in self._specs(parameters, ranks, rank):
            part, owner = part_of(p, ranks, rank), p.groups(ranks).owner(rank)
            for spec in taking_part(specs, p, owner):
                found += _step_by_step(p, spec, part, owner)
        return found

    def _read_part(self, p: HyperslabParameters, ranks: int, rank: int) -> Box:
        """Return the part that a rank reads: its own, or its share of the region read."""
        if not self.reads_elsewhere(p):
            return self._part(p, ranks, rank)
        region, by = _region(p, ranks), p.read_decomposition or p.decomposition
        assert not isinstance(by, MapFile)
        grid = process_grid(ranks, len(region.shape), by)
        part = GlobalArray(region.shape, grid, p.distribution).part(rank)
        start = tuple(a + b for a, b in zip(region.start, part.start, strict=True))
        return Box(start, part.shape)

    def reads_elsewhere(self, parameters: HyperslabParameters) -> bool:
        p = parameters
        return any((p.read_decomposition, p.read_start, p.read_shape))

    def cuts(self, parameters: HyperslabParameters, ranks: int) -> Cuts:
        p = parameters
        if not isinstance(p.arrays, int):
            return ()  # each kind has its own
        steps: Cuts = () if p.steps is None else ((),)
        if p.rearrange == "chunk_owner":  # which cuts between chunks only
            return (*steps, *(() for _ in global_shape(p, ranks)))
        if p.layout != "file_per_group":
            return (*steps, *self._boundaries(p, ranks))
        found = [_inside(self._boundaries(p, ranks), box) for box in self._boxes(p, ranks)]
        return (*steps, *(tuple(sorted(set().union(*axis))) for axis in zip(*found, strict=True)))

    def _boundaries(self, p: HyperslabParameters, ranks: int) -> Cuts:
        if isinstance(p.decomposition, MapFile):
            return ((),) * len(global_shape(p, ranks))
        return self._cut(p, ranks).boundaries

    def volume(self, parameters: HyperslabParameters, ranks: int) -> CaseTotals:
        if not isinstance(parameters.arrays, int):
            all_of = [self.volume(one, ranks) for _, one in parameters.each]
            stored = [v.nbytes if v.extent is None else v.extent for v in all_of]
            nbytes = sum(v.nbytes for v in all_of)
            return CaseTotals(sum(v.arrays for v in all_of), nbytes, sum(stored))
        p, times = parameters, parameters.arrays
        if p.file_layout == "shared":
            parts = sum(1 for _ in self._boxes(p, ranks))
        else:
            parts = prod(len(axis) for axis in self._lengths(p, ranks))
        each = times * (p.steps or 1) * p.itemsize
        whole = prod(global_shape(p, ranks))
        if isinstance(p.decomposition, MapFile):
            moved = whole if self.exchanges(p) else int(p.decomposition.map.sizes(ranks).sum())
            return CaseTotals(times * parts, each * moved, each * elements_in_files(p, whole))
        return CaseTotals(times * parts, each * whole)

    def kinds(self, parameters: HyperslabParameters, ranks: int) -> list[ArraySpec]:
        p = parameters
        if not isinstance(p.arrays, int):
            return [kind for _, one in p.each for kind in self.kinds(one, ranks)]
        first = p.names[0][0], 0
        if p.file_layout == "shared":
            boxes = {box.shape: box for box in self._boxes(p, ranks)}
            return [self._spec(p, ranks, first, None, box, offset=0) for box in boxes.values()]
        shapes: Iterable[Shape] = [self._first_part(p, ranks)]
        if p.file_layout == "own":
            shapes = product(*(dict.fromkeys(axis) for axis in self._lengths(p, ranks)))
        return [self._spec(p, ranks, first, 0, _whole(shape), offset=0) for shape in shapes]

    def largest_write(self, parameters: HyperslabParameters, ranks: int) -> int:
        if not isinstance(parameters.arrays, int):
            return max(self.largest_write(one, ranks) for _, one in parameters.each)
        each = parameters.itemsize
        if isinstance(parameters.decomposition, MapFile):
            return each * int(parameters.decomposition.map.sizes(ranks).max())
        longest = (max(axis) for axis in self._lengths(parameters, ranks))
        return prod(longest) * each

    def _first_part(self, p: HyperslabParameters, ranks: int) -> Shape:
        """Return the shape of the first part that is not empty: rank 0's, if it is not."""
        return tuple(axis[0] for axis in self._lengths(p, ranks))

    def _lengths(
        self, p: HyperslabParameters, ranks: int, box: Box | None = None
    ) -> tuple[Shape, ...]:
        """Return, for each axis, the lengths of the parts, not empty, of an array or of a box."""
        cuts = self._boundaries(p, ranks)
        if box is None or p.layout != "file_per_group":  # whose files have a part of it
            return part_lengths(global_shape(p, ranks), cuts)
        return part_lengths(box.shape, _inside(cuts, box))

    def input_files(self, parameters: HyperslabParameters) -> tuple[str, ...]:
        by = [one.decomposition for _, one in parameters.each]
        maps = dict.fromkeys(one.file for one in by if isinstance(one, MapFile))
        return (*super().input_files(parameters), *maps)

    def told(self, parameters: HyperslabParameters, ranks: int) -> str | None:
        told = [stretches_told(one, ranks) for _, one in parameters.each]
        return "; ".join(dict.fromkeys(filter(None, told))) or None

    def exchanges(self, parameters: HyperslabParameters) -> bool:
        return parameters.rearrange != "none"

    def held_by_writer(self, parameters: HyperslabParameters, ranks: int) -> tuple[int, int]:
        p = parameters
        if not isinstance(p.writers, Writers):
            return 0, 0
        part = self.largest_write(p, ranks)
        whole = prod(global_shape(p, ranks)) * p.itemsize
        if p.writers.count is not None:
            return part + -(-whole // p.writers.count), 0
        return part, -(-whole // (ranks * (p.writers.per_node or 1)))

    def beyond_nodes(
        self, parameters: HyperslabParameters, topology: Topology, memory: int
    ) -> str | None:
        p, ranks = parameters, topology.size
        fewest = min(topology.ranks_per_node)
        if isinstance(p.writers, Writers) and (p.writers.per_node or 0) > fewest:
            return f"writers.per_node is {p.writers.per_node}, but a node has {fewest} ranks"
        parts = [self._part(p, ranks, rank) for rank in range(ranks)]
        writers = WriterRanks.of(p.writers, topology)
        most = largest_share(writers, parts, topology.nodes) * p.itemsize
        if most <= memory:
            return None
        return (
            f"the ranks and writers of a node need {Size(most)} of memory a rank for one array or "
            f"step, where {Size(memory)} are available; name more writers, or use more nodes"
        )

    def refuse(self, parameters: HyperslabParameters, backend: type[Backend]) -> str | None:
        if parameters.rearrange == "box" and backend.file_per == "chunk":
            return (
                f"rearrange: box cuts chunks between writers, which loses data with backend "
                f"{backend.name}; possible: gather, chunk_owner"
            )
        return refuse_map(parameters, backend)

    def run(self, repetition: Repetition) -> None:
        p, ranks = cast("HyperslabParameters", repetition.case.parameters), repetition.team.size
        if p.irregular:
            self._note_stretches(repetition, p)
        if not self.exchanges(p):
            write_read_cycle(repetition)
            return
        from pffbench.workloads.rearranged import rearranged_cycle  # most runs have no writers

        parts = [self._part(p, ranks, rank) for rank in range(ranks)]
        rearranged_cycle(repetition, global_shape(p, ranks), parts)

    def _note_stretches(self, repetition: Repetition, p: HyperslabParameters) -> None:
        """Record how many stretches ranks have: a fact, and where calls are counted a count."""
        team = repetition.team
        if team.is_root:  # which alone computes the parts of all ranks
            repetition.observed.facts["stretches"] = str(self.told(p, team.size))
        if not repetition.clock.counts:
            return
        boxes = [access.box for access in self.writes(p, team.size, team.rank)]
        number = sum(len(box.offsets) for box in boxes if isinstance(box, Stretches))
        for phase in ("write",) if p.read_decomposition else ("write", "read"):
            repetition.observed.count(phase, "stretches", number)

    def check(self, parameters: HyperslabParameters, ranks: int) -> str | None:
        if reason := _check_list(parameters):
            return reason
        for place, one in parameters.each:
            if reason := self._check_kind(one, ranks):
                return type(reason)(f"{place}{reason}")
        return None

    def _check_kind(self, p: HyperslabParameters, ranks: int) -> str | None:
        """Return why arrays of one kind cannot be as they are described, or None."""
        if reason := check_map(p, ranks):
            return reason
        if p.irregular:
            p = replace(by_map(p), shape=global_shape(p, ranks))
        if (p.shape is None) == (p.shape_per_rank is None):
            return "give either shape (of the whole array) or shape_per_rank"
        shape = p.shape or p.shape_per_rank
        assert shape is not None
        for key in ("decomposition", "read_decomposition"):
            if getattr(p, key) == "pencil" and len(shape) < 2:
                return f"{key}: a pencil needs 2 axes, the array has {len(shape)}"
        if p.cut_unit is not None and len(p.cut_unit) != len(shape):
            return f"cut_unit {list(p.cut_unit)} must have {len(shape)} axes, as the array has"
        return (
            self._check_chunks(p, ranks)
            or self._check_groups(p, ranks)
            or self._check_reading(p, ranks)
            or self._check_writers(p, ranks)
        )

    def _check_writers(self, p: HyperslabParameters, ranks: int) -> str | None:
        some = p.writers
        if isinstance(some, Writers):
            if reason := some.unclear():
                return reason
            if reason := some.beyond(ranks):
                return Impossible(reason)
        if p.rearrange == "none":
            more = "they need rearrange: gather, box or chunk_owner"
            return None if p.writers == "all" else f"not all ranks are writers; {more}"
        if p.layout != "shared":
            return f"rearrange: {p.rearrange} needs layout: shared"
        if p.cache == "shifted" or self.reads_elsewhere(p):
            what = "cache: shifted" if p.cache == "shifted" else "another read decomposition"
            return f"with rearrange each rank reads the part that it wrote; {what} is not possible"
        shape = global_shape(p, ranks)
        if p.rearrange == "chunk_owner" and not (
            isinstance(p.chunks, tuple)
            or isinstance(own_chunks(p, shape, self._first_part(p, ranks)), tuple)
        ):
            return Impossible(
                "rearrange: chunk_owner needs a chunk shape (chunks: a list, or block)"
            )
        return None

    def _check_groups(self, p: HyperslabParameters, ranks: int) -> str | None:
        """Return that the parts of the ranks of a group do not make an array, or None."""
        if p.layout != "file_per_group" or p.file_layout != "shared":
            return None
        held = sum(box.size for box in self._boxes(p, ranks))
        if held == prod(global_shape(p, ranks)):
            return None
        return Impossible(
            f"decomposition: {p.decomposition} gives the ranks of a group parts that are no box "
            "together; take decomposition: slab, within: own, or another number of files"
        )

    def _check_chunks(self, p: HyperslabParameters, ranks: int) -> str | None:
        if not isinstance(p.chunks, tuple):
            return None
        part, what = global_shape(p, ranks), "the array"
        if p.layout == "file_per_group" and p.file_layout == "shared":
            part, what = next(self._boxes(p, ranks)).shape, "the array of a group of ranks"
        elif p.layout != "shared":
            part, what = self._first_part(p, ranks), "a rank's part of the array, with this layout,"
        steps = (p.steps,) if p.steps else ()
        axes = range(len(part), len(part) + len(steps) + 1)
        return illegal_chunks(p, (*steps, *part), what, axes)

    def _check_reading(self, p: HyperslabParameters, ranks: int) -> str | None:
        if not self.reads_elsewhere(p):
            return None
        if p.layout != "shared":
            return "read_decomposition, read_start and read_shape need layout: shared"
        if p.cache == "shifted":
            return "cache: shifted reads the partner's part; it allows no other read decomposition"
        whole = global_shape(p, ranks)
        region = _region(p, ranks)
        if not len(region.start) == len(region.shape) == len(whole):
            return f"read_start and read_shape need {len(whole)} axes, as the array has"
        if any(stop > n for stop, n in zip(region.stop, whole, strict=True)):
            return f"the part to read ends at {list(region.stop)}, the array at {list(whole)}"
        return None


def _check_list(p: HyperslabParameters) -> str | None:
    """Return why a case cannot list arrays, or not these, or None."""
    if isinstance(p.arrays, int):
        return None
    without = {
        "shape": p.shape is None or p.source == "file", "shape_per_rank": p.shape_per_rank is None,
        "source: file": p.source != "file", "rearrange": p.rearrange == "none",
        "read_start": p.read_start is None, "read_shape": p.read_shape is None,
    }  # fmt: skip
    if found := [key for key, fine in without.items() if not fine]:
        return (
            f"arrays: {', '.join(found)} cannot be given with a list, whose arrays differ; leave "
            "it out, or make a case of each array"
        )
    if wrong := [one.name for one in p.arrays if not _NAME.fullmatch(one.name)]:
        return (
            f"arrays: the name {wrong[0]!r} is not possible in every format; take a letter, then "
            "at most 63 letters, digits and _"
        )
    names = Counter(name for names in p.names for name in names)
    if twice := [name for name, times in names.items() if times > 1]:
        return f"arrays: the name {twice[0]} stands here twice; give each array its own"
    return None


def global_shape(p: HyperslabParameters, ranks: int) -> Shape:
    """Return the shape of the global arrays, without the axis of time steps."""
    if isinstance(p.decomposition, MapFile):
        return p.decomposition.map.shape
    if p.shape is not None:
        return p.shape
    assert p.shape_per_rank is not None
    return _grown(p.shape_per_rank, ranks, p.decomposition)


@lru_cache(maxsize=4096)
def _grown(shape_per_rank: Shape, ranks: int, decomposition: Decomposition) -> Shape:
    grid = process_grid(ranks, len(shape_per_rank), decomposition)
    return tuple(g * n for g, n in zip(grid, shape_per_rank, strict=True))


def _inside(cuts: Cuts, box: Box) -> Cuts:
    """Return where a box is cut, counted from its start."""
    axes = zip(cuts, box.start, box.stop, strict=True)
    return tuple(
        tuple(c - a for c in axis[bisect_right(axis, a) : bisect_left(axis, b)])
        for axis, a, b in axes
    )


def _whole(shape: Shape) -> Box:
    return Box((0,) * len(shape), shape)


def _region(p: HyperslabParameters, ranks: int) -> Box:
    """Return the part of each global array that is read."""
    whole = global_shape(p, ranks)
    start = p.read_start or (0,) * len(whole)
    rest = tuple(n - s for n, s in zip(whole, start, strict=False))
    return Box(start, p.read_shape or rest)


def _step_by_step(
    p: HyperslabParameters, spec: ArraySpec, part: Box, rank: int
) -> Iterator[Access]:
    """Yield one access for each time step; an empty one on an array that is another rank's."""
    if isinstance(part, Stretches):
        steps = p.steps or 0
        parts = [part.in_step(step, steps) for step in range(steps)] if steps else [part]
        yield from (Access(spec, one) for one in parts)
        return
    if spec.owner is None:
        begin = spec.origin[len(spec.origin) - len(part.start) :]
        start = tuple(max(0, a - b) for a, b in zip(part.start, begin, strict=True))
        box = Box(start, part.shape)
    elif spec.owner == rank:
        box = _whole(part.shape)
    else:
        box = Box((0,) * len(part.shape), (0,) * len(part.shape))
    if p.steps is None:
        yield Access(spec, box)
        return
    for step in range(p.steps):
        yield Access(spec, Box((step, *box.start), (1 if box.size else 0, *box.shape)))
