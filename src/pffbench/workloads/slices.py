"""Workload `slices`: planes and sub-boxes read from a large volume, as in study 3."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend
from pffbench.case import Count, DataSize, Extent, GivenShape
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import Grid, Region
from pffbench.geometry.maps import DecompositionMap
from pffbench.geometry.stretches import Stretches, common_runs, merged
from pffbench.workloads.arrays import Family, at_once, of_owner, one_part
from pffbench.workloads.base import Impossible
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.listed import ArrayWorkload, MappedParameters, MappedPart, OneOrMore
from pffbench.workloads.selections import (
    Position,
    box_starts,
    slice_indices,
)
from pffbench.workloads.specs import own_chunks

VolumeShape = Annotated[tuple[Extent, ...], msgspec.Meta(min_length=3, max_length=3)]
#: Axis along which the volume is cut for writing: the middle one, so that blocks are long along
#: both the first and the last axis and no order of a raw file is favoured.
_WRITTEN_ALONG = 1
#: Chunk of ``chunks: rank_part``, where no rank holds a block of the volume: it favours no axis.
_CUBE = (64, 64, 64)
#: A block that is written by one call holds at most this many bytes (or one row of the axis).
_BLOCK_BYTES = 32 * 2**20


class SlicesParameters(MappedParameters, frozen=True, kw_only=True, tag="slices"):
    """Parameters of the workload `slices`."""

    #: Shape of the volume. Default with ``source: file``: the shape of the variable.
    shape: GivenShape[VolumeShape | None] = None
    #: Shape of each rank's part, in place of `shape`: along the second axis the volume is this
    #: long, times the number of ranks that share it.
    shape_per_rank: GivenShape[VolumeShape | None] = None
    #: Number of volumes. Or a list of volumes that differ, which are written in this order.
    datasets: DataSize[Count | Annotated[tuple[MappedPart, ...], OneOrMore]] = 1
    #: A map of the stretches of the flattened volume that each process writes, as of the workload
    #: `hyperslab`. In files of groups and arrays of ranks, which have no planes of the volume, each
    #: rank reads the elements of a slice that it wrote.
    decomposition: MapFile | None = None
    #: Slices across this axis are read: whole planes of one index.
    axis: Literal[0, 1, 2] | None = None
    #: Sub-boxes of this shape are read. One of the two is needed.
    box: DataSize[VolumeShape | None] = None
    #: Position of the slices (from the first index on, around the middle one, or at random indices,
    #: each once) or of the boxes (in the first corner, in the middle, or at random places). Random
    #: positions depend on the shape and the `count` only.
    position: Position = "first"
    #: Number of slices or boxes of each volume, each read by one call of each rank.
    count: DataSize[Count] = 1

    def with_shape(self, ranks: int) -> SlicesParameters:
        """Return parameters with the shape of the volume, by the number of ranks."""
        if (whole := self.map_shape) is not None:
            return replace(self, shape=whole)
        if self.shape_per_rank is None or self.shape is not None:
            return self
        first, cut, last = self.shape_per_rank
        shape = (first, cut * (ranks if self.shares_arrays else 1), last)
        return replace(self, shape=shape)


class Slices(ArrayWorkload):
    """A volume is written once in each repetition, then slices or sub-boxes of it are read.

    With ``arrays: shared`` all ranks write one volume. Each slice is cut over them, or over the
    ranks that have elements of it in their file. With ``arrays: per_rank`` each rank has a volume
    to itself and reads whole slices of it, unless a map cuts one volume.
    """

    name = "slices"
    summary = "planes across an axis, or sub-boxes, read out of a large volume"
    parameters_type = SlicesParameters

    def family(self, p: SlicesParameters, ranks: int) -> Family:
        p = p.with_shape(ranks)
        shape, unit, shared = _shape(p), _written_unit(p), p.shares_arrays
        dealt = not shared and p.map_file is None
        cut = Grid(shape, (1, 1 if dealt else ranks, 1), "balanced", (1, unit, 1))
        row = prod(shape) // shape[_WRITTEN_ALONG] * p.itemsize
        step = max(1, _BLOCK_BYTES // (row * unit)) * unit
        boxes = wanted(p)
        family = Family(
            parameters=p,
            ranks=ranks,
            cut=cut,
            name=partial(_name, p.number),
            count=p.number * (ranks if dealt else 1),
            dealt_to=ranks if dealt else None,
            block=lambda _: _CUBE,
            write=partial(_blocks, cut.largest.shape[_WRITTEN_ALONG], step),
            read=at_once if shared else partial(_whole_boxes, boxes),
            reading=tuple(Region(box, _over_ranks) for box in boxes) if shared else None,
        )
        if p.map_file is None:
            return family
        if p.irregular:
            return replace(family, write=at_once)
        read = partial(_elements_of_rank, p.map_file.map, ranks, boxes)
        return replace(family, block=one_part, write=at_once, read=read, reading=None)

    def refuse(
        self, parameters: SlicesParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        return super().refuse(parameters, ranks, backend) or _unreadable(parameters, backend)

    def check(self, p: SlicesParameters, ranks: int) -> str | None:
        if reason := _check_reading_of_map(p):
            return reason
        if p.map_file is None and len(p.shape_keys) != 1:
            return "give either shape (of the volume, such as [621, 998, 520]) or shape_per_rank"
        shape = _shape(p.with_shape(ranks))
        if len(shape) != 3:  # the shape of a map, or of a variable in the user's file
            return f"a volume has 3 axes, {list(shape)} has {len(shape)}"
        return _check_places(p, shape)


def _check_reading_of_map(p: SlicesParameters) -> str | None:
    """Return why slices of a volume cut by a map cannot be read, or None."""
    if p.map_file is None:
        return None
    if not p.irregular and p.rearranger == "gather":
        return Impossible(
            "rearranger: gather needs parts that are boxes, and the elements that a rank has of a "
            "slice are no box; use box or chunk_owner"
        )
    if p.irregular and p.map_file.holes == "allow":
        return (
            "slices of one array have elements that no process writes with holes: allow; use "
            "arrays: per_rank, where each rank reads the elements of a slice that it wrote"
        )
    return None


def _unreadable(p: SlicesParameters, backend: type[Backend]) -> str | None:
    """Return why a backend cannot read slices of volumes that are stored rank by rank, or None."""
    by_rank = any(one.map_file is not None and not one.irregular for _, one in p.each)
    if not by_rank or p.exchanges or backend.capabilities.stretches:
        return None
    return Impossible(
        f"backend {backend.name} moves boxes only, and the elements that a rank has of a slice are "
        "no box; with arrays: shared it needs rearranger: box or chunk_owner"
    )


def wanted(p: SlicesParameters) -> list[Box]:
    """Return the slices or boxes that are read, whole, in the order of the calls."""
    shape = _shape(p)
    if p.axis is None:
        assert p.box is not None
        starts = box_starts(shape, p.box, p.position, p.count)
        return [Box(start, p.box) for start in starts]
    axis, n = p.axis, shape[p.axis]
    flat = (*shape[:axis], 1, *shape[axis + 1 :])
    return [
        Box((*(0,) * axis, index, *(0,) * (2 - axis)), flat)
        for index in slice_indices(n, p.position, p.count)
    ]


def _shape(p: SlicesParameters) -> Shape:
    assert p.shape is not None
    return p.shape


def _name(count: int, index: int, owner: int | None) -> str:
    return ("volume" if count == 1 else f"volume_{index % count:03d}") + of_owner(owner)


def _written_unit(p: SlicesParameters) -> int:
    """Return the unit of the blocks' edges: the length of a chunk, if one is named."""
    if p.map_file is not None:
        return 1
    chunks = own_chunks(p, _shape(p), _CUBE)
    return chunks[_WRITTEN_ALONG] if isinstance(chunks, tuple) else 1


def _blocks(longest: int, step: int, spec: ArraySpec, part: Box, rank: int) -> Iterator[Box]:
    """Yield the blocks of a part that a rank writes.

    Parameters
    ----------
    longest : int
        Rows of the longest part of any rank: ranks of one volume make as many calls.
    step : int
        Most rows of a block.
    """
    first, last = part.start[_WRITTEN_ALONG], part.stop[_WRITTEN_ALONG]
    for begin in range(first, first + longest, step):
        extent = max(0, min(step, last - begin))
        shape = (part.shape[0], extent, part.shape[2]) if extent else (0, 0, 0)
        yield Box((0, min(begin, last), 0), shape)


def _whole_boxes(boxes: list[Box], spec: ArraySpec, part: Box, rank: int) -> Iterator[Box]:
    """Yield whole slices or boxes of a rank's own volume, and nothing of another rank's."""
    yield from (box if part.size else box.nothing for box in boxes)


def _elements_of_rank(
    decomposition: DecompositionMap,
    ranks: int,
    boxes: list[Box],
    spec: ArraySpec,
    part: Box,
    rank: int,
) -> Iterator[Box]:
    """Yield the elements of slices or boxes that a rank has, where they are in its part.

    The part has the rank's elements of the volume one after the other.
    """
    of_rank = decomposition.part(ranks, rank)
    held = of_rank if part.size else of_rank.nothing
    for box in boxes:
        runs = common_runs(held, box)
        yield Stretches.of(spec.shape, *merged(part.start[0] + runs.packed, runs.lengths))


def _over_ranks(shape: Shape, ranks: int) -> Grid:
    """Cut a slice or box over ranks along its first long axis."""
    axis = next((a for a, n in enumerate(shape) if n > 1), 0)
    grid = tuple(ranks if a == axis else 1 for a in range(len(shape)))
    return Grid(shape, grid, "balanced")


def _check_places(p: SlicesParameters, shape: Shape) -> str | None:
    """Return why there are no such slices or boxes, or None."""
    if (p.axis is None) == (p.box is None):
        return "give either axis (slices across it) or box (the shape of sub-boxes)"
    if p.axis is not None and p.count > shape[p.axis]:
        return f"there are {shape[p.axis]} slices across axis {p.axis}, count is {p.count}"
    if p.box is None:
        return None
    if any(extent > n for extent, n in zip(p.box, shape, strict=True)):
        return f"the box {list(p.box)} is larger than the volume {list(shape)}"
    if p.position != "random" and p.count > 1:
        return f"position {p.position} is one box; a count of {p.count} goes with position: random"
    return None
