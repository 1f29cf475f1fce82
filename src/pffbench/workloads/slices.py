"""Workload `slices`: planes and sub-boxes read from a large volume, as in study 3."""

from __future__ import annotations

from math import prod
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Cuts
from pffbench.case import Count, Extent, Parameters
from pffbench.parallel.decomposition import Box, Shape
from pffbench.workloads.base import (
    CaseTotals,
    Workload,
    illegal_chunks,
    make_spec,
    own_chunks,
    taking_part,
)
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.selections import (
    CountAmplification,
    Position,
    box_starts,
    slice_indices,
)
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import read_store, run_stages, write_store

Integers = npt.NDArray[np.int64]
VolumeShape = Annotated[tuple[Extent, ...], msgspec.Meta(min_length=3, max_length=3)]
#: Axis along which the volume is cut for writing: the middle one, so that blocks are long along
#: both the first and the last axis and no order of a raw file is favoured.
_WRITTEN_ALONG = 1
#: Chunk of ``chunks: block``, where no rank holds a block of the volume: it favours no axis.
_CUBE = (64, 64, 64)
#: A block that is written by one call holds at most this many bytes (or one row of the axis).
_BLOCK_BYTES = 32 * 2**20


class SlicesParameters(Parameters, frozen=True, kw_only=True, tag="slices"):
    """Parameters of the workload `slices`.

    Parameters
    ----------
    shape : list of 3 int, optional
        Shape of the volume. Default with ``source: file``: the shape of the variable.
    shape_per_rank : list of 3 int, optional
        Shape of each rank's part, in place of `shape`: along the second axis the volume is this
        long, times the number of ranks that share it.
    axis : {0, 1, 2}, optional
        Slices across this axis are read: whole planes of one index.
    box : list of 3 int, optional
        Sub-boxes of this shape are read. One of the two is needed.
    position : {"first", "middle", "random"}
        Position of the slices (from the first index on, around the middle one, or at random
        indices, each once) or of the boxes (in the first corner, in the middle, or at random
        places). Random positions depend on the shape and the `count` only.
    count : int
        Number of slices or boxes, each read by one call of each rank.
    """

    shape: VolumeShape | None = None
    shape_per_rank: VolumeShape | None = None
    axis: Literal[0, 1, 2] | None = None
    box: VolumeShape | None = None
    position: Position = "first"
    count: Count = 1

    def with_shape(self, ranks: int) -> SlicesParameters:
        """Return parameters with the shape of the volume, by the number of ranks."""
        if self.shape_per_rank is None or self.shape is not None:
            return self
        first, cut, last = self.shape_per_rank
        shape = (first, cut * (ranks if self.layout == "shared" else 1), last)
        return replace(self, shape=shape)


class Slices(Workload):
    """A volume is written once in each repetition, then slices or sub-boxes of it are read.

    With ``shared`` all ranks write one volume and each slice is cut over them; with ``own`` and
    ``file_per_process`` each rank has a volume to itself and reads whole slices of it.
    """

    name = "slices"
    summary = "planes across an axis, or sub-boxes, read out of a large volume"
    parameters_type = SlicesParameters
    places = ("axis", "box", "position", "count")

    def arrays(self, parameters: SlicesParameters, ranks: int, rank: int) -> list[ArraySpec]:
        p = parameters.with_shape(ranks)
        shape = _shape(p)
        if p.layout == "shared":
            return [_spec(p, "volume", 0, None, 0)]
        nbytes = prod(shape) * p.itemsize
        if p.alone:
            return [_spec(p, "volume", rank, rank, 0)]
        return [_spec(p, f"volume_{r:06d}", r, r, r * nbytes) for r in range(ranks)]

    def writes(self, parameters: SlicesParameters, ranks: int, rank: int) -> list[Access]:
        """Return the blocks that a rank writes; ranks of one volume all make as many calls."""
        p = parameters.with_shape(ranks)
        shape = _shape(p)
        edges, longest, step, _ = _blocks(p, ranks)
        first, last = map(int, edges[rank : rank + 2] if p.layout == "shared" else edges)
        found = []
        for spec in taking_part(self.arrays(p, ranks, rank), p, rank):
            mine = spec.owner in (rank, None)
            for begin in range(first, first + longest, step):
                extent = max(0, min(step, last - begin)) if mine else 0
                found.append(Access(spec, _block(shape, min(begin, last), extent)))
        return found

    def reads(self, parameters: SlicesParameters, ranks: int, rank: int) -> list[Access]:
        p = parameters.with_shape(ranks)
        return [
            Access(spec, _part(whole, spec, ranks, rank))
            for spec in taking_part(self.arrays(p, ranks, rank), p, rank)
            for whole in wanted(p)
        ]

    def reads_elsewhere(self, parameters: SlicesParameters) -> bool:
        return parameters.layout == "shared"

    def cuts(self, parameters: SlicesParameters, ranks: int) -> Cuts:
        p = parameters.with_shape(ranks)
        inner = sorted({*_written_edges(p, ranks).tolist()} - {0, _shape(p)[_WRITTEN_ALONG]})
        return tuple(tuple(inner) if axis == _WRITTEN_ALONG else () for axis in range(3))

    def volume(self, parameters: SlicesParameters, ranks: int) -> CaseTotals:
        volumes = 1 if parameters.layout == "shared" else ranks
        size = parameters.itemsize
        return CaseTotals(volumes, volumes * prod(_shape(parameters.with_shape(ranks))) * size)

    def kinds(self, parameters: SlicesParameters, ranks: int) -> list[ArraySpec]:
        owner = None if parameters.layout == "shared" else 0
        return [_spec(parameters.with_shape(ranks), "volume", 0, owner, 0)]

    def largest_write(self, parameters: SlicesParameters, ranks: int) -> int:
        _, longest, step, row = _blocks(parameters.with_shape(ranks), ranks)
        return min(step, longest) * row

    def run(self, repetition: Repetition) -> None:
        run_stages(
            repetition,
            lambda: write_store(repetition),
            lambda: read_store(repetition, look=CountAmplification(repetition)),
        )

    def check(self, parameters: SlicesParameters, ranks: int) -> str | None:
        p = parameters
        if (p.shape is None) == (p.shape_per_rank is None):
            return "give either shape (of the volume, such as [621, 998, 520]) or shape_per_rank"
        p = p.with_shape(ranks)
        assert p.shape is not None
        if len(p.shape) != 3:  # that of a variable in the user's file
            return f"a volume has 3 axes, {list(p.shape)} has {len(p.shape)}"
        return illegal_chunks(p, p.shape) or _check_places(p, p.shape)


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


def _spec(p: SlicesParameters, name: str, number: int, owner: int | None, offset: int) -> ArraySpec:
    return make_spec(p, name, _shape(p), number=number, offset=offset, owner=owner, block=_CUBE)


def _blocks(p: SlicesParameters, ranks: int) -> tuple[Integers, int, int, int]:
    """Return the edges of the ranks' parts, the longest part, the rows of a call, a row's bytes."""
    shape, unit = _shape(p), _written_unit(p)
    edges = _written_edges(p, ranks if p.layout == "shared" else 1)
    row = prod(shape) // shape[_WRITTEN_ALONG] * p.itemsize
    longest = int(np.diff(edges).max())
    return edges, longest, max(1, _BLOCK_BYTES // (row * unit)) * unit, row


def _block(shape: Shape, first: int, extent: int) -> Box:
    """Return a block of the volume: `extent` rows of the axis along which it is written."""
    return Box((0, first, 0), (shape[0] if extent else 0, extent, shape[2] if extent else 0))


def _written_edges(p: SlicesParameters, ranks: int) -> Integers:
    """Return where the ranks' parts of a volume begin and end, at edges of chunks if named."""
    return _edges(_shape(p)[_WRITTEN_ALONG], ranks, _written_unit(p))


def _written_unit(p: SlicesParameters) -> int:
    """Return the unit of the blocks' edges: the length of a chunk, if one is named."""
    chunks = own_chunks(p, _shape(p), _CUBE)
    return chunks[_WRITTEN_ALONG] if isinstance(chunks, tuple) else 1


def _edges(n: int, parts: int, unit: int) -> Integers:
    """Cut ``0 .. n`` into parts whose numbers of whole units differ by at most one.

    Parameters
    ----------
    n : int
        Length of the axis.
    parts : int
        Number of parts; the last ones may be empty.
    unit : int
        Inner edges are multiples of it.
    """
    return np.minimum(n, np.arange(parts + 1) * -(-n // unit) // parts * unit)


def _part(whole: Box, spec: ArraySpec, ranks: int, rank: int) -> Box:
    """Return a rank's part of a slice or box, which may be empty."""
    if spec.owner is not None:
        return whole if spec.owner == rank else Box(whole.start, (0, 0, 0))
    axis = _cut_along(whole)
    first, last = map(int, _edges_of_parts(whole, ranks)[rank : rank + 2])
    if first == last:
        return Box(whole.start, (0, 0, 0))
    start = (*whole.start[:axis], whole.start[axis] + first, *whole.start[axis + 1 :])
    return Box(start, (*whole.shape[:axis], last - first, *whole.shape[axis + 1 :]))


def _cut_along(whole: Box) -> int:
    """Return the axis along which a slice or box is cut over the ranks."""
    return next((a for a, n in enumerate(whole.shape) if n > 1), 0)


def _edges_of_parts(whole: Box, ranks: int) -> Integers:
    """Return where the ranks' parts of a slice or box begin and end, counted from its start."""
    return _edges(whole.shape[_cut_along(whole)], ranks, 1)


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
